//! DP-GLMtron: one row a step, clipped at a quantile of public rows.
//!
//! Ding, Lei, Wang, Zheng, Wang, Xu, *Nearly Optimal Differentially Private ReLU Regression*, Algorithm 1.
//!
//! Corrected: the threshold bounds the gradient's norm ‖x‖·|r| rather than the residual; it is renewed at geometric
//! times rather than at each step; the last half is averaged (the printed average contains w_0 = 0 and drops w_N); rows are
//! drawn by random allocation, for every ε. Thresholds read the last released weights and public rows: post-processing.
use super::{Clip, Pace, Recipe, steps};
use crate::{
    charge::Sampler,
    descent::Residual,
    error::Error,
    plan::{Plan, Wishes},
};

pub(super) fn recipe(plan: &Plan, wishes: &Wishes) -> Result<(Sampler, Recipe), Error> {
    Error::unless(
        wishes.public,
        "public table",
        "a file of public rows (--public FILE)",
        "missing",
    )?;
    let steps = steps(wishes, plan.rows.min(65_535))?;
    let recipe = Recipe {
        whitenings: 0,
        clip: Clip::Public { level: 0.5 },
        pace: Pace::PerRow { most: 0.125 },
        ..Recipe::usual(Residual::Glmtron, steps)
    };
    Ok((Sampler::Allocation { steps }, recipe))
}
