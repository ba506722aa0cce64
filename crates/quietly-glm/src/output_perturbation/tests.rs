use quietly_engine::linalg::norm;

use super::*;
use crate::{
    Loss, Regulariser, Set,
    design_matrix::{Features, Shape},
};

/// Rows of norm 1 without a constant, and weights in the unit ball.
fn problem(loss: Loss, ridge: f64) -> Problem {
    Problem {
        loss,
        set: Set::L2 { radius: 1.0 },
        regulariser: Regulariser { ridge, ..Regulariser::default() },
        constant: 0.0,
        l1: None,
        longest: 1.0,
        finds_radius: false,
        scales: false,
        cut: 1.0,
        clip: None,
        steps: None,
        step_size: None,
        stages: None,
        growth: None,
    }
}

/// Rows of which one counts and all others are null records.
fn lone(rows: usize, at: usize, row: ([f64; 2], f64)) -> (Vec<f64>, Vec<f64>) {
    let (mut x, mut y) = (vec![0.0; 2 * rows], vec![f64::NAN; rows]);
    x[2 * at..][..2].copy_from_slice(&row.0);
    y[at] = row.1;
    (x, y)
}

/// docs/spec/convex.md#11, test 2, for (2.5d): the best of many pairs of tables, over the bound.
fn attack(loss: Loss, ridge: f64, rows: usize, walk: impl Fn(&ProblemParameters) -> Walk) -> f64 {
    let problem = &problem(loss, ridge);
    let parameters = problem.parameters(2, 1.0, 1.0).unwrap();
    let glm = problem.glm(2, 1.0).unwrap();
    let walk = walk(&parameters);
    let shape = Shape { width: 2, constant: 0.0, l1: None, radius: 1.0 };
    let last = |at: usize, row: ([f64; 2], f64)| {
        let (x, y) = lone(rows, at, row);
        let examples = Examples::new(shape, Features::Dense(&x), y, 1);
        let pass = |w, pass| walk.pass((problem, glm, &parameters), &examples, pass, w);
        (0..walk.passes).fold(problem.set.center(2), pass)
    };
    let mut most = 0.0_f64;
    for at in [0, rows / 2, rows - 1] {
        for angle in [0.3, 0.9, 1.2, 1.5, std::f64::consts::FRAC_PI_2] {
            let (sin, cos) = f64::sin_cos(angle);
            let pair = (last(at, ([cos, sin], 1.0)), last(at, ([cos, -sin], 1.0)));
            let apart: Vec<f64> = pair.0.iter().zip(&pair.1).map(|(a, b)| a - b).collect();
            most = most.max(norm(&apart));
        }
    }
    most / walk.apart(glm, &parameters, 1.0, 1.0)
}

/// Never above the bound, and for each near enough to it that half of it would not do.
#[test]
fn a_replaced_row_moves_the_last_point_by_at_most_the_bound() {
    let even = |step: f64, passes, steps, batch| {
        move |_: &ProblemParameters| Walk { passes, steps, batch, pace: Pace::Even(step) }
    };
    let falling =
        |_: &ProblemParameters| Walk { passes: 4, steps: 10, batch: 3, pace: Pace::Falling };
    let found = [
        ("one batch", attack(Loss::Logistic, 0.0, 30, even(0.5, 12, 1, 30))),
        ("one batch, ridge", attack(Loss::Logistic, 0.3, 30, even(0.5, 12, 1, 30))),
        ("batches", attack(Loss::Logistic, 0.0, 30, even(0.1, 4, 10, 3))),
        ("batches, ridge", attack(Loss::Logistic, 0.3, 30, even(0.2, 4, 10, 3))),
        ("straight", attack(Loss::Margin, 0.0, 30, even(0.2, 4, 10, 3))),
        ("straight, ridge", attack(Loss::Margin, 0.2, 30, even(0.3, 4, 10, 3))),
        ("falling", attack(Loss::Margin, 0.5, 30, falling)),
        ("falling, logistic", attack(Loss::Logistic, 0.5, 30, falling)),
    ];
    for (name, found) in found {
        println!("{name}: {found}");
        assert!(found <= 1.0 && found > 0.5, "{name}: {found}");
    }
    // A straight loss meets it.
    assert!(attack(Loss::Margin, 0.0, 30, even(0.2, 4, 10, 3)) > 0.99);
}

/// By hand, and against the sum that the closed form stands for.
#[test]
fn the_closed_form_is_the_sum() {
    let constants = Constants { lipschitz: 1.0, diameter: 1.5, smooth: Some(0.25) };
    let parameters = |strong| ProblemParameters {
        constants,
        radius: 1.0,
        size: 2,
        mu: 1.0,
        distance: 1.0,
        strong_convexity: strong,
        smoothness: 0.25 + strong,
    };
    let walk = Walk { passes: 3, steps: 7, batch: 5, pace: Pace::Even(0.4) };
    let flat = walk.moved(&parameters(0.0));
    assert!((flat - 3.0 * 1.5 * 0.4 / 5.0).abs() < 1e-9);
    let rho = 1.0_f64 - 0.4 * 0.2;
    let sum = 1.5 * 0.4 / 5.0 * (1.0 + rho.powi(7) + rho.powi(14));
    let found = walk.moved(&parameters(0.2));
    assert!(found >= sum && found < sum * (1.0 + 1e-9), "{found} {sum}");
    let falling = Walk { pace: Pace::Falling, ..walk }.moved(&parameters(0.2));
    assert!((falling - 1.5 / (0.2 * 5.0 * 7.0)).abs() < 1e-9);
}
