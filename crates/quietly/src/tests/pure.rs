//! What methods without δ release, between neighbours and as a user sees it.

use quietly_accounting::Neighbours;
use quietly_core::{
    budget::Budget,
    mechanism::{Mechanism, PlannedRelease, Stage},
    release::{BoundedSum, Releaser, Sensitivity},
};
use quietly_data::Private;
use quietly_glm::{Loss, glm::Glm};
use quietly_noise::Key;

use super::{
    gradients::{BALL, WIDTH, farthest, learnable},
    phases::METHODS,
};
use crate::plan::{FitInput, test_support::options};
use crate::{
    methods::Method,
    plan::{Convex, PlanRecord},
};

/// Every method that has δ = 0, ready to plan.
fn pure_methods() -> Vec<(Convex, Neighbours)> {
    let convex = || Convex::new(Loss::Logistic).within(BALL).ridge(0.01).growing(2.0, 0.01);
    let mut all: Vec<_> = [Method::ScPsgd, Method::GdOp, Method::Amp]
        .into_iter()
        .chain(METHODS)
        .map(|method| (convex().method(method), Neighbours::ReplaceOne))
        .collect();
    all.push((convex().method(Method::Amp), Neighbours::AddRemove));
    all.push((Convex::new(Loss::Logistic), Neighbours::AddRemove));
    all
}

/// A pure plan costs what was asked, says so, runs, gives the same bits on any number of threads, and is refused with less noise.
#[test]
fn pure_budgets_are_kept_from_plan_to_certificate() {
    let rows = learnable(300);
    for (convex, neighbours) in pure_methods() {
        let budget = Budget::pure(2.0).unwrap().under(neighbours);
        let plan = convex.plan(300, WIDTH, budget).unwrap();
        let name = plan.method().name();
        assert!(
            plan.epsilon() <= 2.0 && plan.epsilon() > 2.0 * (1.0 - 1e-9),
            "{name} {}",
            plan.epsilon()
        );
        assert!(plan.to_string().contains("at delta 0 ("), "{plan}");
        let run = |threads| {
            let fit = plan.fit(FitInput::table(&rows, (-1.0, 1.0)), options(3, threads));
            fit.unwrap().coefficients().unwrap()
        };
        let (intercept, weights) = run(1);
        assert!(intercept.is_finite() && weights.iter().all(|w| w.is_finite()), "{name}");
        assert_eq!(run(3), (intercept, weights), "{name}");
        let certificate = plan.certificate("person", None).unwrap();
        assert_eq!((certificate.epsilon, certificate.curve.len()), (plan.epsilon(), 1), "{name}");
        // e²/(1 + e²) = 0.8808, rounded up.
        assert!(certificate.odds().contains("88.1 times in 100"), "{}", certificate.odds());
        assert!(certificate.to_string().contains("at delta 0\n"), "{certificate}");
        let read: PlanRecord =
            serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
        assert!(read.clone().check().is_ok(), "{name}");
        for (k, stage) in plan.stages().iter().enumerate() {
            let mut less = read.clone();
            match &mut less.parts().0.stages[k].releases[0].mechanism {
                Mechanism::Laplace { scale } => *scale *= 0.9,
                Mechanism::Exponential { add_remove, replace_one } => {
                    (*add_remove, *replace_one) = (2.0 * *add_remove, 2.0 * *replace_one);
                }
                Mechanism::ApproximateDp { epsilon, .. } => *epsilon *= 1.1,
                _ => panic!("{name}: {} is not pure", stage.name),
            }
            assert!(less.check().is_err(), "{name} {k}");
        }
    }
}

/// Points that are released with Laplace noise are as near as it is planned for, in the 1-norm; half of that would not do.
#[test]
fn no_row_moves_a_pure_release_by_more_than_is_charged() {
    let budget = Budget::pure(1.0).unwrap().under(Neighbours::ReplaceOne);
    let cases = [
        (Method::GdOp, quietly_glm::output_perturbation::POINT),
        (Method::ScPsgd, quietly_glm::output_perturbation::POINT),
        (Method::PhasedErm, quietly_glm::localisation::phase::PHASE),
        (Method::PhasedSgd, quietly_glm::localisation::phase::PHASE),
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
        let charge = PlannedRelease {
            times: draws,
            ..PlannedRelease::laplace("test", epsilon, Neighbours::AddRemove)
        };
        let Mechanism::Laplace { scale } = charge.mechanism else { panic!("Laplace") };
        let mut releaser =
            Releaser::new(Key::from_seed(4), &[Stage::new("test", 1, vec![charge])], 1);
        let mut draw = |value: i64| {
            let what = BoundedSum::new(Private::new(vec![value]), Sensitivity::l1(bound, 1.0));
            let (noisy, t) = releaser.sum("test", what).unwrap();
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

/// The density of argmin J in one dimension, with a Laplace perturbation: ratios stay within e^ε, and with six tenths of the noise do not.
#[test]
fn a_laplace_tilt_hides_a_row() {
    let glm = Glm { loss: Loss::Huber { width: 0.7 }, derivative_bound: 0.7, smoothness: 1.0 };
    let density = |rows: &[(f64, f64)], strong: f64, t: f64, w: f64| {
        let (mut gradient, mut second) = (strong * w, strong);
        for &(z, y) in rows {
            let (mut derivative, mut curve) = ([w * z], [0.0]);
            glm.second_derivatives(&derivative, y, &mut curve);
            glm.derivatives(&mut derivative, y);
            gradient += derivative[0] * z;
            second += curve[0] * z * z;
        }
        -gradient.abs() / t + second.ln()
    };
    let others = [(1.0, 1.0), (-0.5, 1.0), (0.3, -1.0)];
    let kinds = [(1.0, 1.0), (-1.0, 1.0), (1.0, -1.0), (0.4, -1.0)];
    for epsilon in [0.5, 2.0] {
        let strong = quietly_glm::objective_perturbation::strong_enough(
            glm.loss,
            glm.smoothness,
            0.1 * epsilon,
        );
        let apart = quietly_glm::objective_perturbation::apart_in_l1(
            glm,
            1,
            1.0,
            None,
            Neighbours::ReplaceOne,
        );
        let left = epsilon
            - quietly_glm::objective_perturbation::determinant(glm.loss, glm.smoothness, strong);
        let worst = |share: f64| {
            let mut worst = 0.0_f64;
            for (here, there) in kinds.iter().flat_map(|a| kinds.iter().map(move |b| (a, b))) {
                let (here, there) =
                    ([&others[..], &[*here]].concat(), [&others[..], &[*there]].concat());
                for k in -2000..=2000 {
                    let (w, t) = (f64::from(k) / 100.0, share * apart / left);
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
