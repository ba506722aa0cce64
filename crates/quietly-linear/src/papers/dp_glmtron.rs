//! DP-GLMtron: one row per step, with the clipping norm from a quantile of public rows.
//!
//! Ding, Lei, Wang, Zheng, Wang, Xu, *Nearly Optimal Differentially Private ReLU Regression*, Algorithm 1.
//!
//! Corrected: the threshold bounds the gradient's norm ‖x‖·|r| rather than the residual; it is renewed at geometric
//! times rather than at each step; the last half is averaged (the printed average contains w_0 = 0 and drops w_N); rows are
//! drawn by random allocation, for every ε. Thresholds read the last released weights and public rows: post-processing.
use quietly_engine::{algorithm::Shape, error::Error, residual::Residual};

use super::{Clip, Pace, Paper, Parameters, Recipe, Sampling, steps};

pub(super) fn recipe(shape: Shape, asked: &Parameters) -> Result<Recipe, Error> {
    Error::ensure(
        asked.public,
        "public table",
        "a file of public rows (--public FILE)",
        "missing",
    )?;
    let steps = steps(asked, shape.rows.min(65_535))?;
    Ok(Recipe {
        sampling: Sampling::RandomAllocation,
        whitenings: 0,
        clip: Clip::Public { level: 0.5 },
        pace: Pace::PerRow { most: 0.125 },
        ..Recipe::usual(Paper::DpGlmtron, Residual::Glmtron, steps)
    })
}
