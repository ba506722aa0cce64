//! DP-MBGLMtron: minibatches of GLMtron with thresholds that follow the residuals.
//!
//! Ding, Lei, Wang, Zheng, Wang, Xu, *Nearly Optimal Differentially Private ReLU Regression*, Algorithms 2 and 3.
//!
//! GLMtron's pseudo-gradient (max(u, 0) - y)·x is the gradient of the convex loss max(u, 0)²/2 - y·u. For symmetric x its
//! mean is H(w - w*)/2: linear regression with half the curvature, hence steps of twice the length.
//!
//! Corrected as DP-AMBSSGD is; besides, the absolute value is missing in the count of DP-Threshold, the step O(1/R²) does
//! not converge in κ log N steps, and averaging all iterates leaves a bias of 1/log² N.
use quietly_engine::{error::Error, residual::Residual};

use super::{Averaging, Clip, Paper, Parameters, Recipe, dp_ambssgd};

pub(super) fn recipe(asked: &Parameters) -> Result<Recipe, Error> {
    let recipe = dp_ambssgd::recipe(asked)?;
    let recipe = Recipe { method: Paper::DpMbglmtron, residual: Residual::Glmtron, ..recipe };
    if !asked.public {
        return Ok(recipe);
    }
    // Public thresholds cost nothing: no step is needed to set the first.
    Ok(Recipe { whitenings: 0, clip: Clip::Public { level: 0.5 }, ..recipe })
}

/// As published: parts without amplification, DP-Threshold on rows of its own or on public ones, all iterates averaged.
pub(super) fn published(asked: &Parameters) -> Result<Recipe, Error> {
    let (method, average) = (Paper::DpMbglmtronPublished, Averaging::All);
    let recipe = dp_ambssgd::published(asked)?;
    let recipe = Recipe { method, residual: Residual::Glmtron, average, ..recipe };
    if !asked.public {
        return Ok(recipe);
    }
    Ok(Recipe { clip: Clip::Public { level: 1.0 - 1.0 / 64.0 }, ..recipe })
}
