//! Descents of the papers, beside as many bare passes as they have steps.
//!
//! A fit is set-up and steps. Set-up (the norm of the rows, second moments, writing the rows in the whitened space, the first
//! threshold) is the same however many steps follow, so it is shown apart, in bare passes: where it is s of them and a
//! step is one, T steps cost 1 + s/T times their bare passes, and no fewer than 5·s steps can meet a target of 1.2.
use std::hint::black_box;

use quietly::{AnyAlgorithm, Link, Method, Regression};

use crate::{
    Line, best,
    regression::{Numbers, RUNS, SHAPES, THREADS},
};

/// As many steps as the method takes by itself, and a long descent.
const STEPS: [u64; 2] = [20, 100];

pub(crate) fn lines() -> Vec<Line> {
    SHAPES.into_iter().flat_map(compare).collect()
}

fn compare((rows, width): (usize, usize)) -> Vec<Line> {
    let numbers = Numbers::new(rows, width);
    let plans = STEPS.map(|steps| {
        numbers.plan_of(Regression::new(Link::Linear).method(Method::AdaptiveGd).steps(steps))
    });
    let AnyAlgorithm::Recipe(recipe) = plans[0].algorithm() else { panic!("a descent") };
    let whitenings = recipe.whitenings;
    // The fastest of several runs of each, taken in turns.
    let (mut bare, mut fit, mut before) = (f64::INFINITY, [f64::INFINITY; 2], f64::INFINITY);
    for _ in 0..RUNS {
        bare = bare.min(best(3, || numbers.bare_pass(THREADS)));
        for (least, plan) in fit.iter_mut().zip(&plans) {
            let (total, parts) = numbers.fit(plan, THREADS);
            *least = least.min(total);
            before = before.min(parts[0]);
        }
    }
    let [few, many] = STEPS.map(|steps| steps as f64);
    let step = (fit[1] - fit[0]) / (many - few) / bare;
    let setup = before / bare;
    println!(
        "{rows} x {width}: a bare pass {:.2} ms; set-up with {whitenings} whitenings {:.1} ms, as long as {setup:.1} bare passes: \
         with it, steps as fast as bare passes would make {:.2}x of {few} and {:.2}x of {many}",
        1e3 * bare,
        1e3 * before,
        1.0 + setup / few,
        1.0 + setup / many,
    );
    let line = |what: String, measured: f64| {
        Line::at_most(format!("{rows} x {width}: {what}"), measured, 1.2, "x")
    };
    let whole = |k: usize| {
        let steps = STEPS[k];
        line(format!("fit of {steps} steps / {steps} bare passes"), fit[k] / (steps as f64 * bare))
    };
    vec![line("one more step / bare pass".into(), step), whole(0), whole(1)]
}

impl Numbers {
    /// One clipped gradient over all rows, in plain arithmetic: no lattice, no thresholds, no noise.
    fn bare_pass(&self, threads: usize) {
        let share = self.rows.div_ceil(threads);
        let weights = vec![0.1; self.width];
        std::thread::scope(|scope| {
            for (x, y) in self.features.chunks(share * self.width).zip(self.target.chunks(share)) {
                let part = Gradient { x, y, weights: &weights };
                scope.spawn(move || black_box(pulp::Arch::new().dispatch(part)));
            }
        });
    }
}

/// The sum of gradients of least squares, each held to norm one.
struct Gradient<'a> {
    x: &'a [f64],
    y: &'a [f64],
    weights: &'a [f64],
}

impl pulp::NullaryFnOnce for Gradient<'_> {
    type Output = Vec<f64>;

    #[inline(always)]
    fn call(self) -> Vec<f64> {
        let mut sum = vec![0.0; self.weights.len()];
        for (x, y) in self.x.chunks_exact(self.weights.len()).zip(self.y) {
            let (scores, squares) = lanes(x, self.weights);
            let residual = y - scores;
            let held = residual / (residual.abs() * squares.sqrt()).max(1.0);
            sum.iter_mut().zip(x).for_each(|(s, x)| *s += held * x);
        }
        sum
    }
}

/// ⟨x, w⟩ and ⟨x, x⟩, eight numbers abreast.
#[inline(always)]
fn lanes(x: &[f64], w: &[f64]) -> (f64, f64) {
    let (mut scores, mut squares) = ([0.0; 8], [0.0; 8]);
    let ((x, x_rest), (w, w_rest)) = (x.as_chunks::<8>(), w.as_chunks::<8>());
    for (x, w) in x.iter().zip(w) {
        for k in 0..8 {
            scores[k] += x[k] * w[k];
            squares[k] += x[k] * x[k];
        }
    }
    let rest = x_rest.iter().zip(w_rest);
    let (score, square) = rest.fold((0.0, 0.0), |(s, q), (x, w)| (s + x * w, q + x * x));
    (scores.iter().sum::<f64>() + score, squares.iter().sum::<f64>() + square)
}
