//! DP-MBGLMtron: minibatches of GLMtron with thresholds that follow the residuals.
//!
//! Ding, Lei, Wang, Zheng, Wang, Xu, *Nearly Optimal Differentially Private ReLU Regression*, Algorithms 2 and 3.
//!
//! GLMtron's pseudo-gradient (max(u, 0) - y)·x is the gradient of the convex loss max(u, 0)²/2 - y·u. For symmetric x its
//! mean is H(w - w*)/2: linear regression with half the curvature, hence steps of twice the length.
//!
//! Corrected as DP-AMBSSGD is; besides, the absolute value is missing in the count of DP-Threshold, the step O(1/R²) does
//! not converge in κ log N steps, and averaging all iterates leaves a bias of 1/log² N.
use super::{Averaging, Clip, Recipe, dp_ambssgd, steps};
use crate::{charge::Sampler, descent::Residual, error::Error, plan::Wishes};

pub(super) fn recipe(wishes: &Wishes) -> Result<(Sampler, Recipe), Error> {
    let (sampler, recipe) = dp_ambssgd::recipe(wishes)?;
    let recipe = Recipe { residual: Residual::Glmtron, ..recipe };
    if !wishes.public {
        return Ok((sampler, recipe));
    }
    // Public thresholds cost nothing: no step is needed to set the first.
    let recipe = Recipe { whitenings: 0, clip: Clip::Public { level: 0.5 }, ..recipe };
    Ok((Sampler::Allocation { steps: recipe.steps }, recipe))
}

/// As published: parts without amplification, DP-Threshold on rows of its own or on public ones, all iterates averaged.
pub(super) fn published(wishes: &Wishes) -> Result<(Sampler, Recipe), Error> {
    let (sampler, recipe) = dp_ambssgd::published(wishes)?;
    let recipe = Recipe { residual: Residual::Glmtron, average: Averaging::All, ..recipe };
    if !wishes.public {
        return Ok((sampler, recipe));
    }
    let steps = steps(wishes, 10)?;
    let recipe = Recipe { clip: Clip::Public { level: 1.0 - 1.0 / 64.0 }, ..recipe };
    Ok((Sampler::Parts { steps }, recipe))
}
