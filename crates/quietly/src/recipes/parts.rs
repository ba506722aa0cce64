//! The parts that descents are made of, as plans and model files name them.
use serde::{Deserialize, Serialize};

use super::MOST_WHITENINGS;
use crate::descent::Residual;

/// What a descent is made of, besides its sampler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Recipe {
    /// The model.
    pub residual: Residual,
    /// How many gradients are taken.
    pub steps: u64,
    /// How often features are whitened first.
    pub whitenings: u64,
    /// Where gradients are clipped.
    pub clip: Clip,
    /// How sums are released.
    pub noise: Noise,
    /// Which iterates are averaged.
    pub average: Averaging,
    /// How far a step goes.
    pub pace: Pace,
    /// The step for a mean gradient, in units where features have mean square one.
    pub step_size: f64,
    /// Weights are held to this norm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub radius: Option<f64>,
}

/// Where gradients are clipped.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "clip", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Clip {
    /// At a private quantile of all norms at the start, for the whole run.
    Fixed {
        /// The quantile's level.
        level: f64,
    },
    /// At a private quantile of the last step's norms, never above the one before.
    Falling {
        /// The quantile's level.
        level: f64,
    },
    /// Where noisy counts of rows set apart say that hardly any norm is above: DP-STAT.
    Stat,
    /// At a quantile of public rows.
    Public {
        /// The quantile's level.
        level: f64,
    },
    /// At a bound that no gradient of a row of usual norm exceeds, given the norm that weights may have.
    Bound,
}

/// How sums are released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Noise {
    /// Each with noise of its own.
    Independent,
    /// As prefix sums, by the nodes of a binary tree.
    Tree,
}

/// Which iterates are averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Averaging {
    /// Those after the first half: w_(h+1) to w_T, h = ⌊T/2⌋.
    LastHalf,
    /// All of w_1 to w_T.
    All,
}

/// How far a step goes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "pace", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Pace {
    /// β over the curvature that clipping leaves, with β as large as noise allows.
    Curvature,
    /// `most` over the squared norm of a row, or less where noise is large: for steps of one row.
    PerRow {
        /// The step in squared norms of a row.
        most: f64,
    },
    /// This step.
    Given {
        /// The step for a mean gradient.
        step: f64,
    },
}

impl Recipe {
    /// What most recipes have in common: whitened, clipped at a falling median, noise of its own for every sum, the last half
    /// averaged, steps as long as the curvature allows.
    pub(super) fn usual(residual: Residual, steps: u64) -> Self {
        Recipe {
            residual,
            steps,
            whitenings: MOST_WHITENINGS,
            clip: Clip::Falling { level: 0.5 },
            noise: Noise::Independent,
            average: Averaging::LastHalf,
            pace: Pace::Curvature,
            step_size: 0.0,
            radius: None,
        }
    }
}

impl Averaging {
    /// Whether w_(t+1), made by step t from 0 on, is averaged.
    pub(super) fn takes(self, t: u64, steps: u64) -> bool {
        match self {
            Averaging::LastHalf => t >= steps / 2,
            Averaging::All => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec 14.7: the last half has T - ⌊T/2⌋ terms, w_T among them; w_0 is never one, as no step makes it.
    #[test]
    fn the_last_half_ends_with_the_last_iterate() {
        for steps in [1, 2, 3, 19, 20, 4001] {
            let taken: Vec<u64> =
                (0..steps).filter(|&t| Averaging::LastHalf.takes(t, steps)).collect();
            assert_eq!(taken.len() as u64, steps - steps / 2);
            assert_eq!(taken.last(), Some(&(steps - 1)));
            assert!((0..steps).all(|t| Averaging::All.takes(t, steps)));
        }
    }
}
