//! Epoch-DP-SGD: passes that double while their steps halve; and Faster-DPSGD-SC, which starts it from Iterated Phased-SGD.
//!
//! Su, Hu, Wang 2024, Algorithms 7 and 8, for losses that are strongly convex row by row.
//!
//! Corrected: the published noise rests on the stability of losses (L²) as if it were that of weights (L), and has half of
//! what its own proof asks for: it is too little for L below about 0.55. Here Δ is that of a mean under contraction. The
//! epochs follow from the rows there are; where not even one has its length, there is one, with all rows.
use super::{iterated_phased_sgd, phase::Phase};
use crate::problem::ProblemParameters;

/// Rows of the first epoch: 2^(2τ+3)·κ.
fn first(parameters: &ProblemParameters, tau: f64) -> f64 {
    (2f64.powf(2.0 * tau + 3.0) * parameters.smoothness / parameters.strong_convexity).ceil()
}

/// Whether the first epoch fits.
pub fn fits(parameters: &ProblemParameters, rows: usize, tau: f64) -> bool {
    first(parameters, tau) <= rows as f64
}

/// How many epochs there are.
pub fn count(parameters: &ProblemParameters, rows: usize, tau: f64) -> u32 {
    ((rows as f64 / first(parameters, tau) + 1.0).log2().floor() as u32).clamp(1, 24)
}

/// The phases for `rows` rows in so many epochs.
pub fn phases(parameters: &ProblemParameters, rows: usize, epochs: u32) -> Vec<Phase> {
    let all = 2f64.powi(epochs as i32) - 1.0;
    let mut left = rows;
    let first = (rows as f64 / all) as usize;
    // A longer step than 8/(λn) contracts no further.
    let bold = (0.25 / parameters.smoothness)
        .min(8.0 / (parameters.strong_convexity * first.max(1) as f64));
    let phase = |i: u32| {
        let rows = if i + 1 < epochs { first << i } else { left };
        left -= rows;
        let step = bold * 0.5_f64.powi(i as i32);
        Phase { rows, step, batch: Some(1), pull: 0.0, ball: None, moves_centre: i == 0 }
    };
    (0..epochs).map(phase).collect()
}

/// Algorithm 8: half of the rows for either.
pub fn faster(parameters: &ProblemParameters, rows: usize, epochs: u32) -> Vec<Phase> {
    let half = rows / 2;
    let mut all = iterated_phased_sgd::phases(
        parameters,
        half,
        iterated_phased_sgd::count(half, 2.0),
        None,
        0.0,
    );
    all.extend(phases(parameters, rows - half, epochs));
    all
}
