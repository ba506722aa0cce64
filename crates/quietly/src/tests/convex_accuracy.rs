//! Whether the methods learn: where the best weights are known, and in the order that experiments found.
use quietly_accounting::Neighbours;
use quietly_core::{budget::Budget, random::Random};
use quietly_data::{Private, Table};
use quietly_engine::linalg::{dot, norm};
use quietly_glm::{Loss, Set, loss::logistic};

use crate::{
    methods::Method,
    plan::{Convex, FitInput, test_support::options},
};

fn run(convex: &Convex, epsilon: f64, x: &[f64], y: &[f64], seed: u64) -> Vec<f64> {
    let width = x.len() / y.len();
    let budget = Budget::new(epsilon, 1e-5).unwrap().under(Neighbours::ReplaceOne);
    let plan = convex.plan(y.len() as u64, width, budget).unwrap();
    let table = Private::new(Table::new(width, x.to_vec(), y.to_vec()));
    let fit = plan.fit(FitInput::table(&table, (-1.0, 1.0)), options(seed, 2)).unwrap();
    let (intercept, mut w) = fit.coefficients().unwrap();
    w.push(intercept);
    w
}

/// -⟨w, x⟩ + ‖w‖^θ/θ for rows in {±½}⁴ is least at Z·‖Z‖^(-(θ-2)/(θ-1)), Z their mean.
#[test]
fn the_hard_instance_is_solved() {
    const ROWS: usize = 20_000;
    let mut random = Random(11);
    let mut coin = |_| if random.number() < 0.4 { 0.5 } else { -0.5 };
    let x: Vec<f64> = (0..4 * ROWS).map(&mut coin).collect();
    let y = vec![1.0; ROWS];
    let mean: Vec<f64> =
        (0..4).map(|j| x.iter().skip(j).step_by(4).sum::<f64>() / ROWS as f64).collect();
    for theta in [2.0, 3.0, 4.0] {
        let value = |w: &[f64]| norm(w).powf(theta) / theta - dot(w, &mean);
        let shrink = norm(&mean).powf(-(theta - 2.0) / (theta - 1.0));
        let best: Vec<f64> = mean.iter().map(|z| shrink * z).collect();
        for method in [Method::PhasedErm, Method::PhasedSgd] {
            let convex = Convex::new(Loss::Margin).method(method).within(Set::L2 { radius: 1.0 });
            let convex = convex.power(theta, 1.0).constant(0.0).rows_within(1.0).known_radius();
            for seed in 0..3 {
                let w = run(&convex, 2.0, &x, &y, seed);
                let excess = value(&w[..4]) - value(&best);
                assert!((0.0..1e-3).contains(&excess), "{theta} {method:?} {excess}");
            }
        }
        // Control: staying at zero is far from good enough.
        assert!(value(&[0.0; 4]) - value(&best) > 0.01, "{theta}");
    }
}

/// Labels by logistic odds.
fn labelled(rows: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
    const TRUE: [f64; 5] = [1.5, -1.0, 0.5, 0.0, 0.8];
    let mut random = Random(seed);
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for _ in 0..rows {
        let row: [f64; 5] = std::array::from_fn(|_| random.number());
        let odds = logistic(dot(&row, &TRUE) + 0.3);
        y.push(if 0.5 + 0.5 * random.number() < odds { 1.0 } else { -1.0 });
        x.extend(row);
    }
    (x, y)
}

fn loss(w: &[f64], x: &[f64], y: &[f64]) -> f64 {
    let rows = x.chunks_exact(5).zip(y);
    let one = |(x, y): (&[f64], &f64)| Loss::Logistic.value(dot(x, &w[..5]) + w[5], *y);
    rows.map(one).sum::<f64>() / y.len() as f64
}

#[test]
fn methods_come_in_the_order_of_the_experiments() {
    let (test_x, test_y) = labelled(50_000, 1);
    let mut excess = [0.0; 3];
    for seed in 0..4 {
        let (x, y) = labelled(10_000, 100 + seed);
        let convex = Convex::new(Loss::Logistic).within(Set::L2 { radius: 4.0 });
        let best = loss(&run(&convex, f64::INFINITY, &x, &y, 0), &test_x, &test_y);
        for (k, method) in
            [Method::Amp, Method::PhasedErm, Method::PhasedSgd].into_iter().enumerate()
        {
            let w = run(&convex.clone().method(method), 1.0, &x, &y, seed);
            let more = loss(&w, &test_x, &test_y) - best;
            excess[k] += 0.25 * more;
        }
    }
    println!("{excess:?}");
    assert!(excess[0] < 1e-3 && excess[0] < excess[1] && excess[1] < excess[2], "{excess:?}");
}
