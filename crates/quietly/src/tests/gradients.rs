//! What the rivals release, between neighbours and as a user sees it.
use std::ops::ControlFlow;

use quietly_accounting::Neighbours;
use quietly_core::{
    budget::Budget,
    random::Random,
    release::{Releaser, Witnessed},
};
use quietly_data::{Private, Table};
use quietly_glm::{Loss, Set};
use quietly_noise::Key;

use crate::plan::{FitInput, test_support::options};
use crate::{
    methods::Method,
    plan::{Convex, Plan, PlanRecord},
};

pub(super) const WIDTH: usize = 3;
pub(super) const BALL: Set = Set::L2 { radius: 1.0 };

pub(super) type Row = ([f64; WIDTH], f64);

pub(super) fn row(random: &mut Random, classes: u64) -> Row {
    let mut number = || match random.word() % 4 {
        0 => 1.0,
        1 => -1.0,
        _ => random.number(),
    };
    let x = std::array::from_fn(|_| number());
    let class = (random.word() >> 8) % classes;
    (x, if classes == 2 { 2.0 * class as f64 - 1.0 } else { class as f64 })
}

pub(super) fn table(rows: &[Row]) -> Private<Table> {
    let x = rows.iter().flat_map(|r| r.0).collect();
    Private::new(Table::new(WIDTH, x, rows.iter().map(|r| r.1).collect()))
}

fn witnessed(plan: &Plan, rows: &[Row], seed: u64) -> Vec<Witnessed> {
    let mut releaser = Releaser::new(Key::from_seed(seed), plan.stages(), 1);
    releaser.witness = Some(Vec::new());
    let quiet = &mut |_| ControlFlow::Continue(());
    let done = plan.through(&mut releaser, &table(rows), None, (-1.0, 1.0), quiet);
    // Several outputs are fitted, but are no pair of an intercept and weights.
    assert!(done.is_ok() || plan.problem().loss.outputs() > 1);
    releaser.witness.unwrap()
}

/// The farthest that neighbouring tables' questions named `purpose` are apart, over what one row may add.
pub(super) fn farthest(plan: &Plan, purpose: &str, classes: u64, rows: usize) -> f64 {
    let mut most = 0.0_f64;
    for seed in 0..12 {
        let mut random = Random(100 + seed);
        let mut rows: Vec<Row> = (0..rows).map(|_| row(&mut random, classes)).collect();
        let before = witnessed(plan, &rows, seed);
        match plan.budget().neighbours() {
            Neighbours::AddRemove => rows.truncate(rows.len() - 1),
            Neighbours::ReplaceOne => {
                let last = rows.last_mut().unwrap();
                // Every other time the opposite row.
                *last = if seed % 2 == 0 {
                    (last.0.map(|x| -x), last.1)
                } else {
                    row(&mut random, classes)
                };
            }
        }
        let after = witnessed(plan, &rows, seed);
        assert_eq!(before.len(), after.len(), "no row decides what is asked");
        for (a, b) in before.iter().zip(&after).filter(|(a, _)| a.purpose == purpose) {
            assert_eq!((&a.purpose, a.bound), (&b.purpose, b.bound));
            let apart = a.values.iter().zip(&b.values).map(|(a, b)| (a - b) as f64);
            let apart = match plan.budget().is_pure() {
                true => apart.map(f64::abs).sum(),
                false => apart.map(|x| x * x).sum::<f64>().sqrt(),
            };
            most = most.max(apart / a.bound.unwrap());
        }
    }
    most
}

/// Neighbours are at most one row's bound apart, or two; where gradients meet the bound, half of it would not do.
#[test]
fn no_row_moves_a_sum_of_gradients_by_more_than_is_charged() {
    let softmax = Loss::Softmax { classes: 3 };
    let huber = Loss::Huber { width: 0.2 };
    let l1 = Set::L1 { radius: 1.0 };
    let of = |loss| Convex::new(loss).method(Method::DpGd);
    let cases = [
        (of(Loss::Logistic).clip(0.2), 2, true),
        (of(Loss::Logistic).within(BALL), 2, true),
        (of(Loss::Hinge), 2, true),
        (of(huber).within(BALL), 2, true),
        (of(Loss::Squared).within(l1.clone()).rows_within_l1(1.0), 2, false),
        (of(softmax).clip(0.3), 3, true),
        (of(softmax).within(BALL), 3, false),
        (of(Loss::Logistic).within(l1).method(Method::FrankWolfe), 2, true),
        (of(Loss::Logistic).clip(0.2).method(Method::DpSgd), 2, true),
    ];
    for neighbours in [Neighbours::AddRemove, Neighbours::ReplaceOne] {
        let most = if neighbours == Neighbours::AddRemove { 1.0 } else { 2.0 };
        for (convex, classes, tight) in &cases {
            let budget = Budget::new(2.0, 1e-5).unwrap().under(neighbours);
            let convex = convex.clone().rows_within(1.0).known_radius().constant(0.5);
            let convex = convex.steps(6);
            let plan = convex.plan(400, WIDTH, budget).unwrap();
            let found = farthest(&plan, quietly_glm::dp_gd::GRADIENT, *classes, 20) / most;
            let name = (plan.method().name(), plan.problem().loss, neighbours);
            println!("{name:?}: {found}");
            assert!(found <= 1.0, "{name:?}: {found}");
            assert!(found > if *tight { 0.5 } else { 0.2 }, "{name:?}: {found}");
        }
    }
}

/// G, where it is known, saves noise: a bound of 2C would be larger.
#[test]
fn a_replaced_row_is_charged_by_the_diameter() {
    let budget = Budget::new(1.0, 1e-5).unwrap().under(Neighbours::ReplaceOne);
    let bound = |convex: Convex| {
        let convex = convex.rows_within(1.0).known_radius().method(Method::DpGd).steps(2);
        let plan = convex.plan(400, WIDTH, budget).unwrap();
        let asked = witnessed(&plan, &[([1.0; 3], 1.0)], 1);
        let lattice = plan.problem().constants(WIDTH, 1.0).unwrap().lipschitz;
        let lattice = quietly_core::lattice::Lattice::for_sums(lattice, WIDTH + 1);
        let gradient = asked.iter().find(|asked| asked.purpose == quietly_glm::dp_gd::GRADIENT);
        2.0 * gradient.unwrap().bound.unwrap() * lattice.step()
    };
    // max 2σ(cos t) sin t = 1.09910, and twice the longest gradient where nothing is known.
    let ball = bound(Convex::new(Loss::Logistic).within(BALL));
    assert!((1.0990..1.0995).contains(&ball), "{ball}");
    let anywhere = bound(Convex::new(Loss::Logistic));
    assert!((1.9999..2.0001).contains(&anywhere), "{anywhere}");
}

pub(super) fn learnable(rows: usize) -> Private<Table> {
    let mut random = Random(5);
    let rows: Vec<Row> = (0..rows)
        .map(|_| {
            let x: [f64; WIDTH] = std::array::from_fn(|_| random.number());
            (x, if x[0] - x[1] + 0.3 * random.number() > 0.0 { 1.0 } else { -1.0 })
        })
        .collect();
    table(&rows)
}

#[test]
fn what_does_not_go_together_is_refused_before_any_row_is_read() {
    let replaced = Budget::new(1.0, 1e-5).unwrap().under(Neighbours::ReplaceOne);
    let pure = Budget::pure(1.0).unwrap().under(Neighbours::ReplaceOne);
    let convex = |method| Convex::new(Loss::Logistic).method(method);
    let refused = |convex: Convex, budget: Budget, words: &str| {
        let error = convex.plan(1000, WIDTH, budget).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    for method in [Method::DpGd, Method::DpSgd, Method::FrankWolfe] {
        refused(convex(method).within(BALL), pure, "gd-op, phased-erm");
    }
    let regression = crate::plan::Regression::new(quietly_engine::link::Link::Linear);
    let error = regression.plan(1000, WIDTH, pure).unwrap_err().to_string();
    assert!(error.contains("amp, sc-psgd"), "{error}");
    for method in [Method::ScPsgd, Method::GdOp] {
        refused(convex(method).within(BALL), replaced.under(Neighbours::AddRemove), "replace-one");
        refused(convex(method), replaced, "bounded");
        refused(Convex::new(Loss::Hinge).within(BALL).method(method), replaced, "smooth");
        refused(convex(method).within(BALL).step_size(1e3), replaced, "stretch");
        refused(convex(method).within(BALL).clip(1.0), replaced, "none");
    }
    refused(convex(Method::FrankWolfe), replaced, "bounded");
    refused(convex(Method::FrankWolfe).within(BALL).lasso(0.1), replaced, "L1 ball");
    refused(convex(Method::FrankWolfe).within(BALL).step_size(0.1), replaced, "none");
    refused(convex(Method::DpGd).steps(0), replaced, "100000");
    refused(convex(Method::DpGd).step_size(-1.0), replaced, "above 0");
    refused(convex(Method::DpGd).clip(0.0), replaced, "1e-9");
    refused(convex(Method::Amp).steps(3), replaced, "none");
    refused(convex(Method::AdaSsp), replaced, "one for this model");
}

/// With many rows every rival learns, on either relation that it has, the same bits on any number of threads.
#[test]
fn rivals_learn_and_do_not_hang_on_threads() {
    let rows = learnable(4000);
    let ball = Set::L2 { radius: 8.0 };
    let cases = [
        (Convex::new(Loss::Logistic).method(Method::DpGd), true),
        (Convex::new(Loss::Logistic).within(ball.clone()).method(Method::DpGd), true),
        (Convex::new(Loss::Hinge).within(ball.clone()).method(Method::DpGd), true),
        (Convex::new(Loss::Logistic).within(ball.clone()).method(Method::DpSgd), true),
        (
            Convex::new(Loss::Logistic).within(Set::L1 { radius: 8.0 }).method(Method::FrankWolfe),
            true,
        ),
        (Convex::new(Loss::Logistic).within(ball.clone()).method(Method::GdOp), false),
        (Convex::new(Loss::Logistic).within(ball.clone()).method(Method::ScPsgd), false),
        (Convex::new(Loss::Logistic).within(ball).ridge(0.05).method(Method::ScPsgd), false),
    ];
    for (convex, both) in cases {
        for neighbours in [Neighbours::ReplaceOne, Neighbours::AddRemove] {
            if neighbours == Neighbours::AddRemove && !both {
                continue;
            }
            let budget = Budget::new(4.0, 1e-5).unwrap().under(neighbours);
            let plan = convex.plan(4000, WIDTH, budget).unwrap();
            assert!(plan.epsilon() <= 4.0);
            let run = |threads| {
                let fit = plan.fit(FitInput::table(&rows, (-1.0, 1.0)), options(8, threads));
                fit.unwrap().coefficients().unwrap()
            };
            let (intercept, w) = run(1);
            let angle = (w[0] - w[1]) / (2.0 * w.iter().map(|w| w * w).sum::<f64>()).sqrt();
            println!("{} {neighbours:?}: {angle} {intercept} {w:?}", plan.method().name());
            assert!(angle > 0.9, "{} {angle}", plan.method().name());
            assert_eq!(run(2), (intercept, w));
            let read: PlanRecord =
                serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
            assert!(read.check().is_ok());
        }
    }
}
