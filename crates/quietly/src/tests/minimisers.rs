//! Fits without privacy are the plain model.

use nalgebra::{DMatrix, DVector};
use quietly_core::{budget::Budget, random::Random};
use quietly_data::{Private, Table};
use quietly_engine::linalg::dot;
use quietly_glm::Loss;

use crate::plan::Convex;
use crate::plan::{FitInput, test_support::options};

const ROWS: usize = 2000;
const WIDTH: usize = 3;
const LEVELS: [f64; 7] = [0.05, 0.1, 0.2, 0.5, 0.75, 0.9, 0.95];

fn learnt(loss: Loss, x: &[f64], y: &[f64]) -> Vec<f64> {
    let budget = Budget::new(f64::INFINITY, 1e-5).unwrap();
    let plan = Convex::new(loss).plan(y.len() as u64, WIDTH, budget).unwrap();
    let table = Private::new(Table::new(WIDTH, x.to_vec(), y.to_vec()));
    let fit = plan.fit(FitInput::table(&table, (-1.0, 1.0)), options(1, 2)).unwrap();
    let (intercept, mut w) = fit.coefficients().unwrap();
    w.push(intercept);
    w
}

/// Three tables: noise that grows with a feature; skewed noise in a narrow part of the range; features of few values.
fn table(kind: u64) -> (Vec<f64>, Vec<f64>) {
    let mut random = Random(20 + kind);
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for _ in 0..ROWS {
        let mut row: Vec<f64> = (0..WIDTH).map(|_| random.number()).collect();
        if kind == 2 {
            row.iter_mut().for_each(|x| *x = x.signum());
        }
        let noise = (0..4).map(|_| random.number()).sum::<f64>();
        let skewed = -(0.5 + 0.5 * random.number()).max(1e-3).ln();
        y.push(match kind {
            0 => 0.3 * row[0] - 0.1 * row[1] + 0.1 * (1.2 + row[2]) * noise,
            1 => -0.8 + 0.05 * row[0] + 0.03 * skewed,
            _ => 0.1 * row[0] + 0.2 * row[1] * row[2] + 0.1 * skewed - 0.3,
        });
        x.extend(row);
    }
    (x, y)
}

fn score(w: &[f64], row: &[f64]) -> f64 {
    dot(&w[..WIDTH], row) + w[WIDTH]
}

fn total(loss: Loss, w: &[f64], x: &[f64], y: &[f64]) -> f64 {
    x.chunks_exact(WIDTH).zip(y).map(|(row, y)| loss.value(score(w, row), *y)).sum()
}

/// The pinball loss by majorisation, an algorithm that shares nothing with ours: each |r| is bounded by a parabola through the last r
/// (Hunter and Lange, *Quantile Regression via an MM Algorithm*, 2000).
fn majorised(level: f64, x: &[f64], y: &[f64]) -> Vec<f64> {
    let mut w = vec![0.0; WIDTH + 1];
    for _ in 0..400 {
        let (mut matrix, mut right) =
            (DMatrix::zeros(WIDTH + 1, WIDTH + 1), DVector::zeros(WIDTH + 1));
        for (row, y) in x.chunks_exact(WIDTH).zip(y) {
            let z = DVector::from_iterator(WIDTH + 1, row.iter().copied().chain([1.0]));
            let weight = 1.0 / ((y - score(&w, row)).abs() + 1e-5);
            matrix += weight * &z * z.transpose();
            right += (weight * y + 2.0 * level - 1.0) * z;
        }
        w = matrix.cholesky().unwrap().solve(&right).as_slice().to_vec();
    }
    w
}

/// Within a thousandth of the least pinball loss, and below the surface lies the level of rows but for as many as there are weights: so it
/// is at every minimiser (Koenker and Bassett, *Regression Quantiles*, 1978, Theorem 3.4).
#[test]
fn quantiles_without_privacy_are_the_plain_ones() {
    for kind in 0..3 {
        let (x, y) = table(kind);
        for level in LEVELS {
            let w = learnt(Loss::SmoothQuantile { level, width: 0.05 }, &x, &y);
            let loss = Loss::Quantile { level };
            let (found, best) =
                (total(loss, &w, &x, &y), total(loss, &majorised(level, &x, &y), &x, &y));
            assert!(found <= 1.001 * best, "{kind} {level}: {found} {best}");
            let below = x.chunks_exact(WIDTH).zip(&y).filter(|(row, y)| score(&w, row) >= **y);
            let share = below.count() as f64 / ROWS as f64;
            let apart = (WIDTH + 2) as f64 / ROWS as f64;
            assert!((share - level).abs() <= apart, "{kind} {level}: {share}");
        }
    }
}

/// No step in any of many directions goes down, whatever its length; a control is a point a hundredth away.
#[test]
fn other_losses_reach_their_minimum() {
    let mut random = Random(3);
    let directions: Vec<Vec<f64>> =
        (0..40).map(|_| (0..=WIDTH).map(|_| random.number()).collect()).collect();
    for (loss, kind) in [
        (Loss::Huber { width: 0.1 }, 0),
        (Loss::Huber { width: 0.01 }, 1),
        (Loss::SmoothHinge { width: 0.5 }, 0),
        (Loss::SmoothHinge { width: 0.05 }, 2),
        (Loss::Logistic, 2),
    ] {
        let (x, mut y) = table(kind);
        if loss.needs_labels() {
            y.iter_mut().for_each(|y| *y = if *y + 0.2 > 0.0 { 1.0 } else { -1.0 });
        }
        let w = learnt(loss, &x, &y);
        let least = |w: &[f64]| {
            let moved = |(d, t): (&Vec<f64>, f64)| {
                let w: Vec<f64> = w.iter().zip(d).map(|(w, d)| w + t * d).collect();
                total(loss, &w, &x, &y)
            };
            let lengths = [1e-1, 1e-2, 1e-3].map(|t| [t, -t]).concat();
            let all = directions.iter().flat_map(|d| lengths.iter().map(move |t| (d, *t)));
            all.map(moved).fold(f64::INFINITY, f64::min)
        };
        let here = total(loss, &w, &x, &y);
        assert!(here <= least(&w) * (1.0 + 1e-6), "{loss:?} {here} {}", least(&w));
        let away: Vec<f64> = w.iter().map(|w| w + 0.05).collect();
        assert!(total(loss, &away, &x, &y) > least(&away) * (1.0 + 1e-6), "{loss:?}");
    }
}

/// A column that fills a ten-thousandth of its range has the weight of one that fills all of it, in its own units.
#[test]
fn narrow_columns_are_not_held_back() {
    let (x, y) = table(0);
    let labels: Vec<f64> = y.iter().map(|y| if *y > 0.0 { 1.0 } else { -1.0 }).collect();
    let losses = [
        (Loss::Logistic, &labels),
        (Loss::SmoothHinge { width: 0.5 }, &labels),
        (Loss::Huber { width: 0.1 }, &y),
        (Loss::SmoothQuantile { level: 0.9, width: 0.1 }, &y),
    ];
    for (loss, y) in losses {
        let whole = learnt(loss, &x, y);
        for scale in [1e-2, 1e-4] {
            let narrow: Vec<f64> =
                x.chunks_exact(WIDTH).flat_map(|row| [scale * row[0], row[1], row[2]]).collect();
            let w = learnt(loss, &narrow, y);
            let share = scale * w[0] / whole[0];
            assert!((share - 1.0).abs() < 0.01, "{loss:?} {scale}: {share}");
        }
    }
}
