//! DP-AMBSSGD: one pass of minibatches whose clip follows the residuals.
//!
//! Varshney, Thakurta, Jain, *(Nearly) Optimal Private Linear Regression via Adaptive Clipping*, Algorithms 2 and 3.
//!
//! Corrected: a threshold is a private quantile of the gradients' norms, asked of the rows of the step before (DP-STAT sets
//! an eleventh of all rows apart and overshoots: see `threshold.rs`); the step is 1/curvature (the printed 1/4d does not
//! converge in log N steps); rows are drawn by random allocation, which makes noise up to √T times smaller.
use super::{Clip, Recipe, steps};
use crate::{charge::Sampler, descent::Residual, error::Error, plan::Wishes};

pub(super) fn recipe(wishes: &Wishes) -> Result<(Sampler, Recipe), Error> {
    let steps = steps(wishes, 19)?;
    let recipe = Recipe::usual(Residual::Squared, steps);
    // The first step only sets the threshold.
    Ok((Sampler::Allocation { steps: steps + 1 }, recipe))
}

/// As published, corrected where the proof needs it: every step has rows of its own for DP-STAT and for the gradient, and
/// a row pays for its own part only (Theorem 9 charges both). Parts are drawn row by row rather than cut from a
/// permutation, so that a row can also be added or removed.
pub(super) fn published(wishes: &Wishes) -> Result<(Sampler, Recipe), Error> {
    let (_, recipe) = recipe(wishes)?;
    let steps = steps(wishes, 10)?;
    // A step has eleven cells, and cells are numbered below 65536.
    Error::unless(steps <= 5957, "steps", "from 1 to 5957 for this method", steps)?;
    let recipe = Recipe { steps, whitenings: 0, clip: Clip::Stat, ..recipe };
    Ok((Sampler::Parts { steps: 2 * steps }, recipe))
}
