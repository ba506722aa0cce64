//! Phased-SGD: halves of the rows, quarters of the step.
//!
//! Su, Hu, Wang 2024, Algorithm 1 (Feldman, Koren, Talwar 2020, Algorithm 2).
//!
//! Corrected: releases are projected; there are ⌊log2 n⌋ phases, as ⌈log2 n⌉ leaves the last one empty; rows left over
//! join the first; batches, which cost nothing and calm the steps; at most twelve phases, as later ones have too few rows
//! to matter. The step is twice that of the bound's minimum, which is flat there.
use super::phase::Phase;
use crate::problem::ProblemParameters;

/// More phases would have too few rows.
const MOST: u32 = 12;
/// In units of the step that the bound is least at.
pub const BOLDNESS: f64 = 2.0;

/// How many phases there are for so many rows.
pub fn count(rows: usize) -> u32 {
    rows.max(2).ilog2().min(MOST)
}

/// The phases for `rows` rows, `distance` from the minimiser.
pub fn phases(parameters: &ProblemParameters, rows: usize, distance: f64) -> Vec<Phase> {
    let step = BOLDNESS * parameters.step(rows as f64, distance);
    with_step(parameters, rows, step, 0.0)
}

/// The phases for a step, with a pull to the centre.
pub fn with_step(parameters: &ProblemParameters, rows: usize, step: f64, pull: f64) -> Vec<Phase> {
    let sizes = sizes(rows, count(rows));
    let (smooth, strong) = (parameters.smoothness + pull, parameters.strong_convexity + pull);
    let phase = |(i, rows): (usize, usize)| {
        let step = (step * 0.25_f64.powi(i as i32 + 1)).min(2.0 / (smooth + strong));
        let batch = (1.0 / (smooth * step)).clamp(1.0, (rows as f64 / 8.0).max(1.0)) as usize;
        Phase { rows, step, batch: Some(batch), pull, ball: None, moves_centre: i == 0 }
    };
    sizes.into_iter().enumerate().map(phase).collect()
}

/// ⌊n/2^i⌋ rows for phase i = 1, 2, …; what is left over goes to the first.
pub fn sizes(rows: usize, count: u32) -> Vec<usize> {
    let mut sizes: Vec<usize> = (1..=count).map(|i| rows >> i).collect();
    sizes[0] += rows - sizes.iter().sum::<usize>();
    sizes
}
