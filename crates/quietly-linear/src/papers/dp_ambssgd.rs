//! DP-AMBSSGD: one pass of minibatches whose clip follows the residuals.
//!
//! Varshney, Thakurta, Jain, *(Nearly) Optimal Private Linear Regression via Adaptive Clipping*, Algorithms 2 and 3.
//!
//! Corrected: a threshold is a private quantile of the gradients' norms, asked of the rows of the step before (DP-STAT sets
//! an eleventh of all rows apart and overshoots: see `threshold.rs`); the step is 1/curvature (the printed 1/4d does not
//! converge in log N steps); rows are drawn by random allocation, which makes noise up to √T times smaller.
use quietly_engine::{error::Error, residual::Residual};

use super::{Clip, Paper, Parameters, Recipe, Sampling, steps};

pub(super) fn recipe(asked: &Parameters) -> Result<Recipe, Error> {
    // One step more, before these, only sets the threshold.
    let steps = steps(asked, 19)?;
    let sampling = Sampling::RandomAllocation;
    Ok(Recipe { sampling, ..Recipe::usual(Paper::DpAmbssgd, Residual::Squared, steps) })
}

/// As published, corrected where the proof needs it: every step has rows of its own for DP-STAT and for the gradient, and
/// a row pays for its own part only (Theorem 9 charges both). Parts are drawn row by row rather than cut from a
/// permutation, so that a row can also be added or removed.
pub(super) fn published(asked: &Parameters) -> Result<Recipe, Error> {
    let recipe = recipe(asked)?;
    let steps = steps(asked, 10)?;
    // A step has eleven cells, and cells are numbered below 65536.
    Error::ensure(steps <= 5957, "steps", "from 1 to 5957 for this method", steps)?;
    let (method, sampling) = (Paper::DpAmbssgdPublished, Sampling::Partition);
    Ok(Recipe { method, sampling, steps, whitenings: 0, clip: Clip::Stat, ..recipe })
}
