//! DP-SGD: Poisson samples, one clip, independent noise.
//!
//! Abadi et al., *Deep Learning with Differential Privacy*, CCS 2016, on least squares or on least squares through
//! max(u, 0). The gradient of the latter is zero at the start, where all scores are zero; the first step takes max's
//! other derivative there, which makes it GLMtron's.
//! Features are whitened where the budget allows: what others do by public standardisation is not public here.
use super::{Clip, Recipe, dp_glmtron, dp_mbglmtron, steps};
use crate::{
    charge::Sampler,
    descent::Residual,
    error::Error,
    model::Link,
    plan::{Plan, Wishes},
};

/// The chance to join a step: 3277·2^-16, about a twentieth.
const RATE: f64 = 3277.0 / 65_536.0;

pub(super) fn recipe(link: Link, wishes: &Wishes) -> Result<(Sampler, Recipe), Error> {
    let steps = steps(wishes, 100)?;
    let recipe = Recipe {
        clip: Clip::Fixed { level: 0.5 },
        ..Recipe::usual(Residual::polishing(link), steps)
    };
    Ok((Sampler::Poisson { steps, rate: RATE }, recipe))
}

/// DP-MBGLMtron in all but the gradient: random allocation and thresholds that follow the residuals.
pub(super) fn one_pass(wishes: &Wishes) -> Result<(Sampler, Recipe), Error> {
    let (sampler, recipe) = dp_mbglmtron::recipe(wishes)?;
    Ok((sampler, Recipe { residual: Residual::Relu, ..recipe }))
}

/// DP-GLMtron in all but the gradient: one row a step, clipped at a quantile of public rows.
pub(super) fn one_row(plan: &Plan, wishes: &Wishes) -> Result<(Sampler, Recipe), Error> {
    let (sampler, recipe) = dp_glmtron::recipe(plan, wishes)?;
    Ok((sampler, Recipe { residual: Residual::Relu, ..recipe }))
}
