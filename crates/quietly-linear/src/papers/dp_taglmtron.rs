//! DP-TAGLMtron: one pass of GLMtron, prefix sums of gradients released by a binary tree.
//!
//! After Ding et al., *Revisiting Differentially Private ReLU Regression* (NeurIPS 2024), of which only the outline was
//! at hand: the definition here is ours. A row is in one leaf and in at most ⌊log2 T⌋ + 1 nodes that close (`tree.rs`); no
//! amplification is claimed. Better than independent noise for large ε only.
use quietly_engine::{algorithm::Shape, error::Error, residual::Residual};

use super::{Clip, Noise, Pace, Paper, Parameters, Recipe, Sampling, steps};

/// Fewer rows than this are no quantile.
const FEW: u64 = 40;

pub(super) fn recipe(shape: Shape, asked: &Parameters) -> Result<Recipe, Error> {
    // One part more, before these, sets the first threshold.
    let steps = steps(asked, 15)?;
    let recipe = Recipe {
        sampling: Sampling::Partition,
        noise: Noise::Tree,
        pace: Pace::Given { step: 1.0 },
        ..Recipe::usual(Paper::DpTaglmtron, Residual::Glmtron, steps)
    };
    if shape.rows < FEW * steps {
        // One threshold of all rows serves all parts, in steps that a single row can take.
        let step = 0.125 * shape.rows as f64 / (steps as f64 * (shape.width + 1) as f64);
        let pace = Pace::Given { step: step.min(1.0) };
        return Ok(Recipe { clip: Clip::Fixed { level: 0.5 }, pace, ..recipe });
    }
    Ok(recipe)
}
