use quietly_accounting::{DerivativeBound, Neighbours};
use quietly_core::{budget::Budget, random::Random};
use quietly_engine::linalg::norm;
use quietly_glm::{
    Loss, Problem, Set,
    design_matrix::{Examples, Features, Shape},
    glm::Glm,
    objective_perturbation::*,
};

use crate::plan::Convex;

/// Losses with bounds that hold for rows of norm 2 and the weights of these tests.
const SMOOTH: [Glm; 6] = [
    Glm { loss: Loss::Logistic, derivative_bound: 1.0, smoothness: 0.25 },
    Glm { loss: Loss::Squared, derivative_bound: 40.0, smoothness: 2.0 },
    Glm { loss: Loss::SmoothHinge { width: 0.5 }, derivative_bound: 1.0, smoothness: 1.0 },
    Glm { loss: Loss::Huber { width: 0.7 }, derivative_bound: 0.7, smoothness: 1.0 },
    Glm {
        loss: Loss::SmoothQuantile { level: 0.3, width: 0.5 },
        derivative_bound: 0.7,
        smoothness: 1.0,
    },
    Glm { loss: Loss::Softmax { classes: 3 }, derivative_bound: 1.5, smoothness: 0.5 },
];

/// Random rows at corners, with and without a bound on their 1-norm: never above, and hardly below.
#[test]
fn gradients_in_the_1_norm_stay_within_their_bound() {
    let mut random = Random(6);
    for (glm, l1) in SMOOTH.into_iter().flat_map(|glm| [(glm, None), (glm, Some(1.2))]) {
        let glm = match glm.loss {
            Loss::Squared => Glm { derivative_bound: 1.5, ..glm },
            // √2, not below.
            Loss::Softmax { .. } => {
                Glm { derivative_bound: std::f64::consts::SQRT_2 * (1.0 + f64::EPSILON), ..glm }
            }
            _ => glm,
        };
        let shape = Shape { width: 2, constant: 0.0, l1, radius: 1.0 };
        let bound = |n| apart_in_l1(glm, 2, 1.0, l1, n) * (1.0 + 1e-12);
        let (mut joins, mut replaced) = (0.0_f64, 0.0_f64);
        for _ in 0..4000 {
            let mut sign = || if random.word() % 512 < 256 { 1.0 } else { -1.0 };
            let x: Vec<f64> = (0..4).map(|_| sign()).collect();
            let y = match glm.loss {
                Loss::Softmax { .. } => vec![1.0 + sign(), 1.0 + sign()],
                _ => vec![sign(), sign()],
            };
            let far = if random.word() % 512 < 256 { 40.0 } else { 0.01 };
            let w: Vec<f64> = (0..2 * glm.outputs()).map(|_| far * random.number()).collect();
            let examples = Examples::new(shape, Features::Dense(&x), y, 1);
            let (a, b) = (examples.gradient(glm, &w, 0..1), examples.gradient(glm, &w, 1..2));
            joins = joins.max(a.iter().map(|a| a.abs()).sum());
            replaced = replaced.max(a.iter().zip(&b).map(|(a, b)| (a - b).abs()).sum());
        }
        let (joins, replaced) =
            (joins / bound(Neighbours::AddRemove), replaced / bound(Neighbours::ReplaceOne));
        // Derivatives of one sign push opposite rows half as hard.
        let least = if glm.loss.sign_known() { 0.49 } else { 0.9 };
        assert!(joins <= 1.0 && joins > 0.9, "{glm:?} {l1:?} {joins}");
        assert!(replaced <= 1.0 && replaced > least, "{glm:?} {l1:?} {replaced}");
    }
}

/// Where weights may leave a small set on the way, derivatives of several outputs are steeper than in it.
#[test]
fn derivatives_of_several_outputs_are_bounded_where_weights_go() {
    let convex = Convex::new(Loss::Softmax { classes: 3 }).within(Set::L2 { radius: 0.1 });
    let plan = convex.plan(1000, 2, Budget::new(1.0, 1e-5).unwrap()).unwrap();
    let bound = |inside| {
        derivatives_of(plan.problem(), 2, 1.0, inside)
            .map(|glm| (glm, glm.derivative_bound))
            .unwrap()
    };
    let (glm, anywhere) = bound(false);
    let mut derivatives = [0.0, 9.0, 0.0];
    glm.derivatives(&mut derivatives, 0.0);
    let long = norm(&derivatives);
    assert!(long <= anywhere && long > 1.3 * bound(true).1, "{long} {anywhere}");
}

/// No derivative exceeds what is charged for, cut or not, in a set or anywhere; in a small set that is little more than one half.
#[test]
fn derivatives_are_charged_for_by_the_steepest() {
    let of = |set, cut, neighbours| {
        let problem = Convex::new(Loss::Logistic).within(set).constant(0.0);
        let budget = Budget::new(1.0, 1e-5).unwrap().under(neighbours);
        let plan = problem.method(crate::methods::Method::Amp).plan(1000, 2, budget).unwrap();
        let glm = derivatives_of(&Problem { cut, ..plan.problem().clone() }, 2, 0.6, true).unwrap();
        let derivative_bound = (0..200).map(|k| {
            let mut derivative = [f64::from(k) * 0.1];
            glm.derivatives(&mut derivative, -1.0);
            derivative[0]
        });
        let charged =
            charged_derivative(DerivativeBound::Logistic { clip: cut }, glm, neighbours) * cut;
        (derivative_bound.fold(0.0, f64::max), charged)
    };
    let small = || Set::L2 { radius: 0.5 };
    for (set, cut) in
        [(Set::Everything, 1.0), (Set::Everything, 0.75), (small(), 1.0), (small(), 0.52)]
    {
        let (derivative_bound, charged) = of(set.clone(), cut, Neighbours::ReplaceOne);
        assert!(
            (derivative_bound..derivative_bound * (1.0 + 1e-6)).contains(&charged),
            "{set:?} {cut} {derivative_bound} {charged}"
        );
        // Where derivative and curvature are one law, its unit is the row.
        assert_eq!(of(set, cut, Neighbours::AddRemove).1, cut);
    }
    let (_, charged) = of(small(), 1.0, Neighbours::ReplaceOne);
    assert!((charged - quietly_glm::loss::logistic(0.3)).abs() < 1e-9, "{charged}");
}
