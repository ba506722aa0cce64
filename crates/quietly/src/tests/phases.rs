//! Every method from a plan to weights: attacked with neighbouring tables, and with unexpected tables.
use std::ops::ControlFlow;

use quietly_accounting::Neighbours;
use quietly_core::{
    budget::Budget,
    mechanism::{Mechanism, Sampler},
    privacy_plan::UncheckedPlan,
    random::Random,
    release::{Releaser, Witnessed},
};
use quietly_data::{Private, Table};
use quietly_glm::{Loss, Set, localisation::phase::PHASE};
use quietly_noise::Key;

use crate::plan::{FitInput, test_support::options};
use crate::{
    methods::Method,
    plan::{Convex, Plan, PlanRecord},
};

const WIDTH: usize = 3;
const ROWS: u64 = 120;
pub(super) const METHODS: [Method; 8] = [
    Method::PhasedSgd,
    Method::Psa,
    Method::PhasedSgdSc,
    Method::PsaTwo,
    Method::IteratedPhasedSgd,
    Method::PhasedErm,
    Method::EpochDpSgd,
    Method::FasterDpsgdSc,
];

type Record = ([f64; WIDTH], f64);

fn plan(loss: Loss, method: Method, set: Set, epsilon: f64) -> Plan {
    let budget = Budget::new(epsilon, 1e-5).unwrap().under(Neighbours::ReplaceOne);
    let convex = Convex::new(loss).method(method).within(set).ridge(0.2).growing(2.0, 0.1);
    convex.plan(ROWS, WIDTH, budget).unwrap()
}

/// Every method, and every loss with a corner in every set.
fn plans(epsilon: f64) -> Vec<Plan> {
    let disc = Set::L2 { radius: 2.0 };
    let mut plans: Vec<Plan> =
        METHODS.map(|method| plan(Loss::Logistic, method, disc.clone(), epsilon)).into();
    for loss in [Loss::Hinge, Loss::Quantile { level: 0.7 }, Loss::Squared] {
        for set in [disc.clone(), Set::L1 { radius: 1.0 }, Set::Simplex { total: 1.0 }] {
            plans.push(plan(loss, Method::PhasedErm, set, epsilon));
        }
    }
    plans
}

fn record(random: &mut Random) -> Record {
    let mut number = || match random.word() % 4 {
        0 => 1.0,
        1 => -1.0,
        _ => random.number(),
    };
    (std::array::from_fn(|_| number()), number().signum())
}

fn table(rows: &[Record]) -> Private<Table> {
    let x = rows.iter().flat_map(|r| r.0).collect();
    Private::new(Table::new(WIDTH, x, rows.iter().map(|r| r.1).collect()))
}

/// What a plan would have released of these rows, each question after the same history.
fn witnessed(plan: &Plan, rows: &[Record], seed: u64) -> Vec<Witnessed> {
    let mut releaser = Releaser::new(Key::from_seed(seed), plan.stages(), 1);
    releaser.witness = Some(Vec::new());
    let quiet = &mut |_| ControlFlow::Continue(());
    plan.through(&mut releaser, &table(rows), None, (-1.0, 1.0), quiet).unwrap();
    releaser.witness.unwrap()
}

/// The most of a bound that is used, and how many phases moved.
fn compare(a: &[Witnessed], b: &[Witnessed]) -> (f64, usize) {
    assert_eq!(a.len(), b.len(), "no row decides what is asked");
    let (mut most, mut moved) = (0.0_f64, 0);
    for (a, b) in a.iter().zip(b).filter(|(a, _)| a.purpose == PHASE) {
        assert_eq!((&b.purpose, a.bound), (&a.purpose, b.bound), "no row decides a bound");
        let square = |(a, b): (&i64, &i64)| ((a - b) as f64).powi(2);
        let far = a.values.iter().zip(&b.values).map(square).sum::<f64>().sqrt();
        // A replaced row is charged for twice what one adds.
        most = most.max(far / (2.0 * a.bound.unwrap()));
        moved += usize::from(a.values != b.values);
    }
    (most, moved)
}

/// Replaced by another row, by one that is no record at all, at any place; in tables as long as declared, shorter or longer.
#[test]
fn a_replaced_row_moves_one_phase_within_its_bound() {
    for plan in plans(1.0) {
        let Sampler::OrderedPartition { steps } = plan.sampler() else {
            panic!("phases go by places")
        };
        let mut most = 0.0_f64;
        for seed in 0..8 {
            let mut random = Random(77 + seed);
            let count = [ROWS, ROWS, ROWS - 30, ROWS + 30][seed as usize % 4];
            let mut rows: Vec<Record> = (0..count).map(|_| record(&mut random)).collect();
            // Null records among them.
            rows[5].1 = f64::NAN;
            let before = witnessed(&plan, &rows, seed);
            assert_eq!(before.iter().filter(|w| w.purpose == PHASE).count() as u64, steps);
            for (at, null) in
                [(0, false), (0, true), (7, true), (31, true), (64, false), (118, true)]
            {
                let at = at.min(rows.len() - 1);
                let mut other = rows.clone();
                other[at] = if null { ([0.3; WIDTH], f64::NAN) } else { record(&mut random) };
                let (far, moved) = compare(&before, &witnessed(&plan, &other, seed));
                let name = format!("{:?} {:?} {at} {null}", plan.method(), plan.problem().loss);
                assert!(far <= 1.0, "{name}: {far}");
                assert!(moved <= 1, "{name}: {moved} phases moved");
                most = most.max(far);
            }
        }
        assert!(most > 0.05, "{:?} {most}", plan.method());
    }
}

/// With all other rows null, a row alone moves a minimiser by nearly all that is charged: in the first phase, at the middle of the
/// set, logistic gradients differ by 2·½·R of the bound's G.
#[test]
fn the_bound_of_a_minimiser_is_nearly_met() {
    for (loss, least) in [(Loss::Logistic, 0.85), (Loss::Hinge, 0.93)] {
        let budget = Budget::new(1.0, 1e-5).unwrap().under(Neighbours::ReplaceOne);
        let disc = Set::L2 { radius: 1.0 };
        let convex = Convex::new(loss).method(Method::PhasedErm).within(disc).constant(0.0);
        let plan = convex.rows_within(1.0).known_radius().plan(ROWS, WIDTH, budget).unwrap();
        let mut rows = vec![([0.0; WIDTH], f64::NAN); ROWS as usize];
        rows[0] = ([1.0, 0.0, 0.0], 1.0);
        let before = witnessed(&plan, &rows, 1);
        rows[0].1 = -1.0;
        let (far, moved) = compare(&before, &witnessed(&plan, &rows, 1));
        assert!(far <= 1.0 && far > least && moved == 1, "{loss:?} {far}");
    }
}

#[test]
fn no_table_makes_a_run_fail() {
    let zero = ([0.0; WIDTH], 1.0);
    let huge = ([1e300, -1e300, f64::NAN], -1.0);
    let tables: [Vec<Record>; 7] = [
        vec![],
        vec![zero],
        vec![zero; 500],
        vec![huge; ROWS as usize],
        vec![([1.0; WIDTH], f64::INFINITY); 60],
        vec![([f64::MIN_POSITIVE, 5e-324, -0.0], -1.0); 119],
        (0..ROWS).map(|i| if i % 2 == 0 { huge } else { ([1.0, 1.0, 1.0], 0.4) }).collect(),
    ];
    for epsilon in [0.3, 8.0] {
        for plan in plans(epsilon) {
            let text = serde_json::to_string(&plan).unwrap();
            for rows in &tables {
                let table = table(rows);
                let fit = plan.fit(FitInput::table(&table, (-1.0, 1.0)), options(3, 2));
                let (intercept, weights) = fit.unwrap().coefficients().unwrap();
                let mut all = weights;
                all.push(intercept);
                assert!(plan.problem().set.contains(&all, 1e-9), "{:?} {all:?}", plan.method());
            }
            // Read again, it is the same plan and may run.
            let again: PlanRecord = serde_json::from_str(&text).unwrap();
            assert!(again == plan.record() && again.check().is_ok(), "{:?}", plan.method());
        }
    }
}

#[test]
fn a_changed_plan_is_refused() {
    for plan in plans(1.0) {
        let problem = |edit: &dyn Fn(&mut quietly_glm::Problem)| {
            let mut other = plan.record();
            edit(other.program_mut());
            other
        };
        let with = |edit: &dyn Fn(&mut UncheckedPlan)| {
            let mut other = plan.record();
            edit(other.parts().0);
            other
        };
        let changed = [
            ("no longer convex", problem(&|p| p.regulariser.ridge = -1.0)),
            ("a power that repels", problem(&|p| p.regulariser.power = Some((3.0, -5.0)))),
            ("no set", problem(&|p| p.set = Set::L2 { radius: -1.0 })),
            ("all of space", problem(&|p| p.set = Set::Everything)),
            ("endless rows", problem(&|p| p.longest = f64::INFINITY)),
            ("more steps", with(&|p| p.sampler = Sampler::OrderedPartition { steps: 40 })),
            ("rows joining", with(&|p| p.budget = p.budget.under(Neighbours::AddRemove))),
            (
                "less noise",
                with(&|p| {
                    for charge in p.stages.iter_mut().flat_map(|s| &mut s.releases) {
                        if let Mechanism::Gaussian { noise } = &mut charge.mechanism {
                            *noise *= 0.9;
                        }
                    }
                }),
            ),
            ("a free phase", with(&|p| p.stages.last_mut().unwrap().steps += 1)),
        ];
        for (what, other) in changed {
            assert!(other.check().is_err(), "{:?}: {what}", plan.method());
        }
    }
}
