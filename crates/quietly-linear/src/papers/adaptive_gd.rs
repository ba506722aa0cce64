//! Full-batch descent, whitened, with the clip at a private median.
//!
//! After Liu, Jain, Kong, Oh, Suggala, *Near Optimal Private and Robust Linear Regression*: they clip ‖x‖ and the residual
//! apart, on thirds of the data; here one clip on their product serves all steps on the same rows. Clipping a symmetric
//! residual is Huber regression: unbiased on well-specified models, biased on most real tables, which is why the
//! default raises its clip in the end.
use quietly_engine::{algorithm::Shape, error::Error, link::Link, residual::MEDIAN};

use super::{Paper, Parameters, Recipe, approaching, steps};

pub(super) fn recipe(
    link: Link,
    shape: Shape,
    asked: &Parameters,
    mu: f64,
) -> Result<Recipe, Error> {
    let residual = approaching(link);
    // Where noise drowns a single step in the residuals, few steps are better than many.
    let d = (shape.width + 1) as f64;
    let noise = residual.stretch() * d * MEDIAN / (0.5 * 0.75_f64.sqrt() * mu * shape.rows as f64);
    let steps = steps(asked, if noise < 0.5 { 20 } else { 5 })?;
    Ok(Recipe::usual(Paper::AdaptiveGd, residual, steps))
}
