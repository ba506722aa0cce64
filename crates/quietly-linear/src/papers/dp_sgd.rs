//! DP-SGD: Poisson samples, one clip, independent noise.
//!
//! Abadi et al., *Deep Learning with Differential Privacy*, CCS 2016, on least squares or on least squares through
//! max(u, 0). The gradient of the latter is zero at the start, where all scores are zero; the first step takes max's
//! other derivative there, which makes it GLMtron's.
//! Features are whitened where the budget allows: what others do by public standardisation is not public here.
use quietly_engine::{algorithm::Shape, error::Error, link::Link, residual::Residual};

use super::{Clip, Paper, Parameters, Recipe, Sampling, dp_glmtron, dp_mbglmtron, steps};

/// The chance to join a step: 3277·2^-16, about a twentieth.
const RATE: f64 = 3277.0 / 65_536.0;

pub(super) fn recipe(link: Link, asked: &Parameters) -> Result<Recipe, Error> {
    let steps = steps(asked, 100)?;
    Ok(Recipe {
        sampling: Sampling::Poisson { rate: RATE },
        clip: Clip::Fixed { level: 0.5 },
        ..Recipe::usual(Paper::DpSgd, Residual::polishing(link), steps)
    })
}

/// DP-MBGLMtron in all but the gradient: random allocation and thresholds that follow the residuals.
pub(super) fn one_pass(asked: &Parameters) -> Result<Recipe, Error> {
    let recipe = dp_mbglmtron::recipe(asked)?;
    Ok(Recipe { method: Paper::DpSgdOnePass, residual: Residual::Relu, ..recipe })
}

/// DP-GLMtron in all but the gradient: one row a step, clipped at a quantile of public rows.
pub(super) fn one_row(shape: Shape, asked: &Parameters) -> Result<Recipe, Error> {
    let recipe = dp_glmtron::recipe(shape, asked)?;
    Ok(Recipe { method: Paper::DpSgdOneRow, residual: Residual::Relu, ..recipe })
}
