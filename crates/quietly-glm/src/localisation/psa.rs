//! PSA, private stochastic approximation: Phased-SGD in balls that halve.
//!
//! Su, Hu, Wang 2024, Algorithm 2.
//!
//! Corrected: centres are projected, so that balls meet the set; the projection onto both is exact
//! ([`within`](crate::ball_intersection)), so that the paper's objection to its own algorithm falls. Balls are twice the published size,
//! as the mean distance that the proof bounds does not put the minimiser inside; the first is the whole set.
use super::{phase::Phase, phased_sgd};
use crate::problem::ProblemParameters;

/// Balls, in units of the distance that is expected.
const ROOM: f64 = 2.0;

/// How many stages there are: the theorem asks for 256 rows or more.
pub fn stages(rows: usize) -> usize {
    let n = rows.max(2) as f64;
    ((0.5 * (2.0 * n / n.log2()).log2()).floor() as usize).saturating_sub(1).max(1)
}

/// The phases for `rows` rows.
pub fn phases(parameters: &ProblemParameters, rows: usize) -> Vec<Phase> {
    let stages = stages(rows);
    let mut all = Vec::new();
    for k in 0..stages {
        let part = if k + 1 < stages { rows / stages } else { rows - k * (rows / stages) };
        let distance = parameters.distance * 0.5_f64.powi(k as i32);
        let ball = (k > 0).then_some(ROOM * distance);
        let phases = phased_sgd::phases(parameters, part, distance);
        all.extend(phases.into_iter().map(|phase| Phase { ball, ..phase }));
    }
    all
}
