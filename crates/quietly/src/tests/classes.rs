//! Classes: no row moves a question by more than is charged, whichever solver runs, and no table makes a run fail.
use std::{collections::BTreeMap, ops::ControlFlow};

use quietly_accounting::Neighbours;
use quietly_core::{
    budget::Budget,
    random::Random,
    release::{Releaser, Witnessed},
};
use quietly_data::{Encoding, Private, Schema, Table};
use quietly_glm::{Loss, classes, dp_gd, objective_perturbation};
use quietly_noise::Key;

use crate::{
    methods::Method,
    plan::{Convex, FitInput, Plan, plan_auto_classes, test_support::options},
};

const WIDTH: usize = 3;
const BOTH: [Neighbours; 2] = [Neighbours::AddRemove, Neighbours::ReplaceOne];

type Record = ([f64; WIDTH], f64);

fn table(rows: &[Record]) -> Private<Table> {
    let x = rows.iter().flat_map(|r| r.0).collect();
    Private::new(Table::new(WIDTH, x, rows.iter().map(|r| r.1).collect()))
}

fn budget(epsilon: f64, neighbours: Neighbours) -> Budget {
    Budget::new(epsilon, 1e-5).unwrap().under(neighbours)
}

fn plan(loss: Loss, rows: u64, budget: Budget) -> Plan {
    Convex::new(loss).plan(rows, WIDTH, budget).unwrap()
}

/// Two numbers and a category of two values, one of them encoded; so many classes.
fn encoding(classes: usize) -> Encoding {
    let values: Vec<String> = (0..classes).map(|k| k.to_string()).collect();
    let schema = format!(
        "rows = 9000\n[columns]\na = {{ range = [-1, 1] }}\nb = {{ range = [-1, 1] }}\nc = {{ range = [-1, 1] }}\ny = {{ values = [{}] }}",
        values.join(", ")
    );
    let columns = ["a", "b", "c", "y"].map(String::from);
    Encoding::new(&Schema::parse(&schema).unwrap(), &columns, None, Some("y")).unwrap()
}

/// Every kind of plan, with the releases that it witnesses.
fn plans(neighbours: Neighbours) -> Vec<(&'static str, Loss, Plan, usize)> {
    let four = Loss::Softmax { classes: 4 };
    let of = |loss, epsilon| plan(loss, 40, budget(epsilon, neighbours));
    let amp = |loss| {
        let convex = Convex::new(loss).method(Method::ScaledAmp);
        convex.plan(40, WIDTH, budget(1.0, neighbours)).unwrap()
    };
    let auto = |classes| plan_auto_classes(&encoding(classes), 9000, budget(2.0, neighbours));
    vec![
        ("one of two solvers", Loss::Logistic, of(Loss::Logistic, 0.5), 5),
        ("a descent of several classes", four, of(four, 0.5), 5),
        ("a minimiser", Loss::Logistic, amp(Loss::Logistic), 5),
        ("a minimiser of several classes", four, amp(four), 5),
        ("splines and a gate", Loss::Logistic, auto(2).unwrap(), 9),
        ("splines and a gate of several classes", four, auto(4).unwrap(), 9),
    ]
}

fn witnessed(plan: &Plan, rows: &[Record], seed: u64) -> Vec<Witnessed> {
    let mut releaser = Releaser::new(Key::from_seed(seed), plan.stages(), 2);
    releaser.witness = Some(Vec::new());
    let quiet = &mut |_| ControlFlow::Continue(());
    plan.through(&mut releaser, &table(rows), None, (0.0, 1.0), quiet).unwrap();
    releaser.witness.unwrap()
}

/// Rows at the corners of what is possible, and some that are no rows.
fn row(random: &mut Random) -> Record {
    let x = std::array::from_fn(|_| match random.word() % 5 {
        0 => 1.0,
        1 => -1.0,
        2 => 0.0,
        _ => random.number(),
    });
    let y = match random.word() % 8 {
        0 => f64::NAN,
        1 => 7.0,
        w => (w % 4) as f64,
    };
    (x, y)
}

/// What neighbours move every release by, over what is charged, at most.
fn moved(plan: &Plan, neighbours: Neighbours) -> BTreeMap<String, f64> {
    let (mut random, mut most) = (Random(5), BTreeMap::new());
    for seed in 0..40 {
        let mut rows: Vec<Record> = (0..12).map(|_| row(&mut random)).collect();
        let before = witnessed(plan, &rows, seed);
        let times = match neighbours {
            Neighbours::AddRemove => {
                rows.push(row(&mut random));
                1.0
            }
            Neighbours::ReplaceOne => {
                rows[(seed % 12) as usize] = row(&mut random);
                2.0
            }
        };
        let after = witnessed(plan, &rows, seed);
        assert_eq!(before.len(), after.len(), "no row decides what is released");
        let rounded = objective_perturbation::ROUNDING;
        for (a, b) in before.iter().zip(&after).filter(|(a, _)| !a.purpose.ends_with(rounded)) {
            assert_eq!((&a.purpose, a.bound), (&b.purpose, b.bound));
            let apart = a.values.iter().zip(&b.values).map(|(a, b)| (a - b) as f64);
            let apart = match a.bound {
                Some(bound) => apart.map(|x| x * x).sum::<f64>().sqrt() / bound / times,
                None => apart.map(f64::abs).sum::<f64>() / times,
            };
            let so_far: &mut f64 = most.entry(a.purpose.clone()).or_default();
            *so_far = so_far.max(apart);
        }
    }
    most
}

/// Under either relation. The counts reach their bound, so that a smaller one would be seen, and gradients come near theirs; everything
/// moves. Log losses of so few rows differ little between candidates: gate.rs has rows that reach its bound.
#[test]
fn no_row_moves_a_release_by_more_than_is_charged() {
    for neighbours in BOTH {
        for (name, _, plan, releases) in plans(neighbours) {
            let most = moved(&plan, neighbours);
            assert_eq!(most.len(), releases, "{name} {most:?}");
            assert!(
                most.values().all(|m| *m <= 1.0 && *m > 0.02),
                "{name} {neighbours:?} {most:?}"
            );
            let counts = most[classes::COUNTS];
            assert!(counts > 0.99, "{name} {neighbours:?} {counts}");
            if let Some(gradient) = most.get(dp_gd::GRADIENT) {
                assert!(*gradient > 0.6, "{name} {neighbours:?} {gradient}");
            }
        }
    }
}

/// Of two solvers the one runs that the released counts say, the other cannot, and the certificate says which ran.
#[test]
fn released_counts_choose_the_solver() {
    let mut random = Random(11);
    let mut of_share = |share: f64| -> Vec<Record> {
        let rows = 0..4000;
        rows.map(|k| {
            let x = std::array::from_fn(|_| random.number());
            (x, f64::from(u8::from(k as f64 >= share * 4000.0)))
        })
        .collect()
    };
    let plan = plan(Loss::Logistic, 4000, budget(0.04, Neighbours::AddRemove));
    let steps = plan.stages().iter().filter(|stage| stage.instead_of.is_some()).count();
    assert_eq!(steps, 1, "{plan}");
    for (share, ran) in [(0.5, "descent"), (0.99, "minimiser")] {
        let table = table(&of_share(share));
        let fit = plan.fit(FitInput::table(&table, (0.0, 1.0)), options(1, 2)).unwrap();
        let certificate = fit.certificate("row").unwrap();
        assert_eq!(certificate.ran, [ran]);
        assert!(certificate.is_consistent() && certificate.to_string().contains(ran));
        assert_eq!(certificate.epsilon, plan.epsilon());
        let mut other = certificate.clone();
        other.ran = vec!["rows".into()];
        assert!(!other.is_consistent());
    }
    for stage in ["sum of clipped gradients", "minimiser"] {
        assert!(plan.to_string().contains(stage), "{plan}");
    }
}

/// Neither an empty table, nor one class, nor rows without features, nor far more rows than declared make a run fail, and the result has
/// the same bits on any number of threads.
#[test]
fn no_table_makes_a_run_fail() {
    let mut random = Random(3);
    let tables: [Vec<Record>; 5] = [
        vec![],
        vec![([0.0; 3], 1.0); 50],
        vec![([1.0; 3], f64::NAN); 20],
        (0..4000).map(|_| row(&mut random)).collect(),
        vec![([1.0, -1.0, 1.0], 0.0); 300],
    ];
    for neighbours in BOTH {
        for (name, _, plan, _) in plans(neighbours) {
            for rows in &tables {
                let learn = |threads| {
                    let table = table(rows);
                    let fit = plan.fit(FitInput::table(&table, (0.0, 1.0)), options(1, threads));
                    fit.unwrap().weights().unwrap()
                };
                let found = learn(1);
                let finite = |w: &quietly_glm::Weights| {
                    let mut all = w.outputs.iter().flat_map(|(b, w)| w.iter().chain([b]));
                    all.all(|w| w.is_finite())
                };
                assert!(
                    finite(&found) && found.splines.as_ref().is_none_or(|s| finite(s)),
                    "{name}"
                );
                assert_eq!(found, learn(3), "{name}");
            }
        }
    }
}

/// docs/spec/default.md#9.2 to 9.4, from public numbers alone.
#[test]
fn public_numbers_say_what_is_planned() {
    let stages = |plan: &Plan| plan.stages().iter().map(|s| s.name.clone()).collect::<Vec<_>>();
    let has = |plan: &Plan, name: &str| stages(plan).iter().any(|stage| stage == name);
    let of = |loss, rows, width, epsilon| {
        let budget = budget(epsilon, Neighbours::AddRemove);
        Convex::new(loss).plan(rows, width, budget).unwrap()
    };
    let ten = Loss::Softmax { classes: 10 };
    // Two classes may take either solver; several take the descent where the table is small.
    let small = of(Loss::Logistic, 400, 30, 0.5);
    assert!(has(&small, "descent") && has(&small, "minimiser") && !has(&small, "gate"));
    let small = of(ten, 1258, 64, 1.0);
    assert!(has(&small, "descent") && !has(&small, "minimiser"));
    // Between, there is a gate; beyond, the linear arm is alone.
    let middle = of(Loss::Logistic, 4000, 60, 1.0);
    assert!(has(&middle, "gate") && !has(&middle, "descent") && has(&middle, "minimiser"));
    let large = of(Loss::Logistic, 20_000, 10, 1.0);
    assert!(!has(&large, "gate") && !has(&large, "descent"));
    let budget = budget(1.0, Neighbours::AddRemove);
    let auto = |rows| plan_auto_classes(&encoding(2), rows, budget).unwrap();
    assert!(has(&auto(20_000), "splines: minimiser") && has(&auto(20_000), "gate"));
    assert!(!has(&auto(2000), "splines: minimiser"));
    // Other methods, parameters and budgets are planned as before.
    let other = Convex::new(Loss::Logistic).ridge(0.1).plan(400, 30, budget).unwrap();
    assert_eq!(other.method(), Method::Amp);
}
