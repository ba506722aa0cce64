//! DP-TAGLMtron: one pass of GLMtron, prefix sums of gradients released by a binary tree.
//!
//! After Ding et al., *Revisiting Differentially Private ReLU Regression* (NeurIPS 2024), of which only the outline was
//! at hand: the definition here is ours. A row is in one leaf and in at most ⌊log2 T⌋ + 1 nodes that close (`tree.rs`); no
//! amplification is claimed. Better than independent noise for large ε only.
use super::{Noise, Pace, Recipe, steps};
use crate::{charge::Sampler, descent::Residual, error::Error, plan::Wishes};

pub(super) fn recipe(wishes: &Wishes) -> Result<(Sampler, Recipe), Error> {
    let steps = steps(wishes, 15)?;
    let recipe = Recipe {
        noise: Noise::Tree,
        pace: Pace::Given { step: 1.0 },
        ..Recipe::usual(Residual::Glmtron, steps)
    };
    // One part more sets the first threshold.
    Ok((Sampler::Parts { steps: steps + 1 }, recipe))
}
