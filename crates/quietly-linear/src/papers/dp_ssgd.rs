//! DP-SSGD: one row a step, one clip for all.
//!
//! Varshney, Thakurta, Jain, *(Nearly) Optimal Private Linear Regression via Adaptive Clipping*, Algorithm 1.
//!
//! Corrected: rows are drawn by random allocation, whose price is exact for every ε (the paper's shuffling theorem holds
//! for small ε only); the clip is a private quantile instead of a formula in unknown constants; the average has
//! T - ⌊T/2⌋ terms. The clip does not follow the residuals, so that risk does not fall with their size: offered for
//! research, never a default.
use quietly_engine::{algorithm::Shape, error::Error, residual::Residual};

use super::{Clip, Pace, Paper, Parameters, Recipe, Sampling, steps};

pub(super) fn recipe(shape: Shape, asked: &Parameters) -> Result<Recipe, Error> {
    // As many steps as rows, as far as steps can be numbered.
    let steps = steps(asked, shape.rows.min(65_535))?;
    Ok(Recipe {
        sampling: Sampling::RandomAllocation,
        whitenings: 0,
        clip: Clip::Fixed { level: 0.5 },
        // 1/(4R²), with R 1.25 medians of the rows' norms.
        pace: Pace::PerRow { most: 0.16 },
        ..Recipe::usual(Paper::DpSsgd, Residual::Squared, steps)
    })
}
