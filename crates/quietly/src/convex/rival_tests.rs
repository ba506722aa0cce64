//! What the rivals and the methods without δ release, between neighbours and as a user sees it.
use std::ops::ControlFlow;

use quietly_accounting::Neighbours;
use quietly_data::{Private, Table};
use quietly_noise::Key;

use super::{Convex, Loss, Set, glm::Glm};
use crate::{
    Budget, Mechanism, Method, Plan,
    charge::{Charge, Stage},
    pass::random::Random,
    release::{Door, LatticeSum, Witnessed},
};

const WIDTH: usize = 3;
const BALL: Set = Set::L2 { radius: 1.0 };

type Row = ([f64; WIDTH], f64);

fn row(random: &mut Random, classes: u64) -> Row {
    let mut number = || match random.word() % 4 {
        0 => 1.0,
        1 => -1.0,
        _ => random.number(),
    };
    let x = std::array::from_fn(|_| number());
    let class = (random.word() >> 8) % classes;
    (x, if classes == 2 { 2.0 * class as f64 - 1.0 } else { class as f64 })
}

fn table(rows: &[Row]) -> Private<Table> {
    let x = rows.iter().flat_map(|r| r.0).collect();
    Private::new(Table::new(WIDTH, x, rows.iter().map(|r| r.1).collect()))
}

fn witnessed(plan: &Plan, rows: &[Row], seed: u64) -> Vec<Witnessed> {
    let mut door = Door::new(Key::from_seed(seed), &plan.stages, 1);
    door.witness = Some(Vec::new());
    let quiet = &mut |_| ControlFlow::Continue(());
    let done = plan.through(&mut door, &table(rows), None, (-1.0, 1.0), quiet);
    // Several outputs are fitted, but are no pair of an intercept and weights.
    assert!(done.is_ok() || plan.program().loss.outputs() > 1);
    door.witness.unwrap()
}

/// The farthest that neighbouring tables' questions named `purpose` are apart, over what one row may add.
fn farthest(plan: &Plan, purpose: &str, classes: u64, rows: usize) -> f64 {
    let mut most = 0.0_f64;
    for seed in 0..12 {
        let mut random = Random(100 + seed);
        let mut rows: Vec<Row> = (0..rows).map(|_| row(&mut random, classes)).collect();
        let before = witnessed(plan, &rows, seed);
        match plan.budget.neighbours() {
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
            let apart = match plan.budget.is_pure() {
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
            let found = farthest(&plan, super::descent::GRADIENT, *classes, 20) / most;
            let name = (plan.method.name(), plan.program().loss, neighbours);
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
        let lattice = plan.program().constants(WIDTH, 1.0).unwrap().lipschitz;
        let lattice = crate::lattice::Lattice::for_sums(lattice, WIDTH + 1);
        2.0 * asked[0].bound.unwrap() * lattice.step()
    };
    // max 2σ(cos t) sin t = 1.09910, and twice the longest gradient where nothing is known.
    let ball = bound(Convex::new(Loss::Logistic).within(BALL));
    assert!((1.0990..1.0995).contains(&ball), "{ball}");
    let anywhere = bound(Convex::new(Loss::Logistic));
    assert!((1.9999..2.0001).contains(&anywhere), "{anywhere}");
}

/// Every method that has δ = 0, ready to plan.
fn pure_methods() -> Vec<(Convex, Neighbours)> {
    let convex = || Convex::new(Loss::Logistic).within(BALL).ridge(0.01).growing(2.0, 0.01);
    let mut all: Vec<_> = [
        Method::ScPsgd,
        Method::GdOp,
        Method::PhasedSgd,
        Method::Psa,
        Method::PhasedSgdSc,
        Method::PsaTwo,
        Method::IteratedPhasedSgd,
        Method::PhasedErm,
        Method::EpochDpSgd,
        Method::FasterDpsgdSc,
        Method::Amp,
    ]
    .map(|method| (convex().method(method), Neighbours::ReplaceOne))
    .into();
    all.push((convex().method(Method::Amp), Neighbours::AddRemove));
    all.push((Convex::new(Loss::Logistic), Neighbours::AddRemove));
    all
}

fn learnable(rows: usize) -> Private<Table> {
    let mut random = Random(5);
    let rows: Vec<Row> = (0..rows)
        .map(|_| {
            let x: [f64; WIDTH] = std::array::from_fn(|_| random.number());
            (x, if x[0] - x[1] + 0.3 * random.number() > 0.0 { 1.0 } else { -1.0 })
        })
        .collect();
    table(&rows)
}

/// A pure plan costs what was asked, says so, runs, gives the same bits on any number of threads, and is refused with less noise.
#[test]
fn pure_budgets_are_kept_from_plan_to_certificate() {
    let rows = learnable(300);
    for (convex, neighbours) in pure_methods() {
        let budget = Budget::pure(2.0).unwrap().under(neighbours);
        let plan = convex.plan(300, WIDTH, budget).unwrap();
        let name = plan.method.name();
        assert!(
            plan.epsilon <= 2.0 && plan.epsilon > 2.0 * (1.0 - 1e-9),
            "{name} {}",
            plan.epsilon
        );
        assert!(plan.to_string().contains("at delta 0 ("), "{plan}");
        let run = |threads| {
            let quiet = &mut |_| ControlFlow::Continue(());
            plan.run(&rows, (-1.0, 1.0), Key::from_seed(3), threads, quiet).unwrap()
        };
        let (intercept, weights) = run(1);
        assert!(intercept.is_finite() && weights.iter().all(|w| w.is_finite()), "{name}");
        assert_eq!(run(3), (intercept, weights), "{name}");
        let certificate = plan.certificate("person", None).unwrap();
        assert_eq!((certificate.epsilon, certificate.curve.len()), (plan.epsilon, 1), "{name}");
        // e²/(1 + e²) = 0.8808, rounded up.
        assert!(certificate.odds().contains("88.1 times in 100"), "{}", certificate.odds());
        assert!(certificate.to_string().contains("at delta 0\n"), "{certificate}");
        let read: Plan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
        assert!(read.certificate("person", None).is_ok(), "{name}");
        for (k, stage) in plan.stages.iter().enumerate() {
            let mut less = read.clone();
            match &mut less.stages[k].charges[0].mechanism {
                Mechanism::Laplace { scale } => *scale *= 0.9,
                Mechanism::Selection { add_remove, replace_one } => {
                    (*add_remove, *replace_one) = (2.0 * *add_remove, 2.0 * *replace_one);
                }
                Mechanism::Promise { epsilon, .. } => *epsilon *= 1.1,
                Mechanism::Gaussian { .. } => panic!("{name}: {} is not pure", stage.name),
            }
            assert!(less.certificate("person", None).is_err(), "{name} {k}");
        }
    }
}

/// Points that are released with Laplace noise are as near as it is planned for, in the 1-norm; half of that would not do.
#[test]
fn no_row_moves_a_pure_release_by_more_than_is_charged() {
    let budget = Budget::pure(1.0).unwrap().under(Neighbours::ReplaceOne);
    let cases = [
        (Method::GdOp, super::bolt_on::POINT),
        (Method::ScPsgd, super::bolt_on::POINT),
        (Method::PhasedErm, super::phases::PHASE),
        (Method::PhasedSgd, super::phases::PHASE),
    ];
    for (method, purpose) in cases {
        let convex = Convex::new(Loss::Margin).within(BALL).rows_within(1.0).known_radius();
        let plan = convex.method(method).constant(0.0).plan(20, WIDTH, budget).unwrap();
        let found = farthest(&plan, purpose, 2, 20) / 2.0;
        println!("{}: {found}", method.name());
        assert!(found <= 1.0, "{}: {found}", method.name());
        assert!(found > 0.5, "{}: {found}", method.name());
    }
}

/// The law is P(k) ∝ e^(-|k|/t), so the ratios of releases from points ‖a - b‖₁ apart are known exactly, and with them ε.
/// 40,000 draws follow that law: five standard errors, which a fresh seed would miss once in 10⁵ tests. The control is half of t.
#[test]
fn laplace_releases_keep_their_epsilon_exactly() {
    for (epsilon, bound) in [(0.5, 3.0), (1.0, 7.0), (0.003, 1e12), (20.0, 1.0)] {
        let draws = 40_000;
        let charge =
            Charge { times: draws, ..Charge::laplace("test", epsilon, Neighbours::AddRemove) };
        let Mechanism::Laplace { scale } = charge.mechanism else { panic!("Laplace") };
        let mut door = Door::new(Key::from_seed(4), &[Stage::new("test", 1, vec![charge])], 1);
        let mut draw = |value: i64| {
            let what = LatticeSum { sum: Private::new(vec![value]), bound, unit: 1.0 };
            let (noisy, t) = door.laplace("test", what).unwrap();
            (noisy[0], t)
        };
        let (_, t) = draw(0);
        assert!(t >= scale * bound && bound / t <= epsilon, "{epsilon} {bound} {t}");
        // A lattice made coarser adds one unit.
        assert!(t <= scale * (bound + 4.0 * bound / 2f64.powi(30)) * (1.0 + 1e-9) + 1e-9, "{t}");
        let log = |k: f64, from: f64| -(k - from).abs() / t;
        for k in -100..=100 {
            let k = f64::from(k) * (bound / 10.0).ceil();
            assert!((log(k, 0.0) - log(k, bound)).abs() <= epsilon * (1.0 + 1e-12));
        }
        let misses = |t: f64, seen: f64| {
            let chance = (-(t.ceil()) / t).exp() * 2.0 / (1.0 + (-1.0 / t).exp());
            let error = (chance * (1.0 - chance) / draws as f64).sqrt();
            (seen - chance).abs() / error
        };
        let beyond = |far: f64, all: &[f64]| {
            all.iter().filter(|k| k.abs() >= far).count() as f64 / all.len() as f64
        };
        let all: Vec<f64> = (1..draws).map(|_| draw(0).0).collect();
        if t > 1.0 && t < 1e6 {
            assert!(misses(t, beyond(t.ceil(), &all)) < 5.0, "{epsilon} {bound}");
            assert!(misses(0.5 * t, beyond((0.5 * t).ceil(), &all)) > 5.0, "{epsilon} {bound}");
        }
    }
}

/// The density of argmin J in one dimension, with a Laplace tilt: ratios stay within e^ε, and with six tenths of the noise do not.
#[test]
fn a_laplace_tilt_hides_a_row() {
    let glm = Glm { loss: Loss::Huber { width: 0.7 }, steepest: 0.7, bend: 1.0 };
    let density = |rows: &[(f64, f64)], strong: f64, t: f64, w: f64| {
        let (mut gradient, mut bend) = (strong * w, strong);
        for &(z, y) in rows {
            let (mut slope, mut curve) = ([w * z], [0.0]);
            glm.bends(&slope, y, &mut curve);
            glm.slopes(&mut slope, y);
            gradient += slope[0] * z;
            bend += curve[0] * z * z;
        }
        -gradient.abs() / t + bend.ln()
    };
    let others = [(1.0, 1.0), (-0.5, 1.0), (0.3, -1.0)];
    let kinds = [(1.0, 1.0), (-1.0, 1.0), (1.0, -1.0), (0.4, -1.0)];
    for epsilon in [0.5, 2.0] {
        let strong = super::corners::strong_enough(glm.loss, glm.bend, 0.1 * epsilon);
        let left = epsilon - super::corners::determinant(glm.loss, glm.bend, strong);
        let worst = |share: f64| {
            let mut worst = 0.0_f64;
            for (here, there) in kinds.iter().flat_map(|a| kinds.iter().map(move |b| (a, b))) {
                let (here, there) =
                    ([&others[..], &[*here]].concat(), [&others[..], &[*there]].concat());
                for k in -2000..=2000 {
                    let (w, t) = (f64::from(k) / 100.0, share * 2.0 * glm.steepest / left);
                    let ratio = density(&here, strong, t, w) - density(&there, strong, t, w);
                    worst = worst.max(ratio.abs());
                }
            }
            worst / epsilon
        };
        let (found, control) = (worst(1.0), worst(0.6));
        println!("{epsilon}: {found}, with less noise {control}");
        assert!(found <= 1.0 && control > 1.0, "{epsilon}: {found} {control}");
    }
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
    let regression = crate::Regression::new(crate::Link::Linear);
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
            assert!(plan.epsilon <= 4.0);
            let run = |threads| {
                let quiet = &mut |_| ControlFlow::Continue(());
                plan.run(&rows, (-1.0, 1.0), Key::from_seed(8), threads, quiet).unwrap()
            };
            let (intercept, w) = run(1);
            let angle = (w[0] - w[1]) / (2.0 * w.iter().map(|w| w * w).sum::<f64>()).sqrt();
            println!("{} {neighbours:?}: {angle} {intercept} {w:?}", plan.method.name());
            assert!(angle > 0.9, "{} {angle}", plan.method.name());
            assert_eq!(run(2), (intercept, w));
            let read: Plan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
            assert!(read.certificate("person", None).is_ok());
        }
    }
}
