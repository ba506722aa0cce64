//! The settings of a paper's descent, as plans and model files name them.
use quietly_core::mechanism::Sampler;
use quietly_engine::{descent::Average, residual::Residual};
use serde::{Deserialize, Serialize};

use super::{MOST_WHITENINGS, Paper};

/// What a descent is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recipe {
    /// The paper's algorithm.
    pub method: Paper,
    /// Which rows a step sees.
    #[serde(flatten)]
    pub sampling: Sampling,
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

/// Which rows a step of a descent sees. How many steps a sampler has follows from the clip: see
/// [`Recipe::sampler`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "sampling", rename_all = "kebab-case")]
pub enum Sampling {
    /// Every row in every step.
    FullBatch,
    /// Each row in one step, drawn secretly.
    RandomAllocation,
    /// Each row in one step, without amplification.
    Partition,
    /// Each row in each step with this chance.
    Poisson {
        /// A multiple of 2^-32.
        rate: f64,
    },
}

/// Where gradients are clipped.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "clip", rename_all = "kebab-case")]
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
pub enum Noise {
    /// Each with noise of its own.
    Independent,
    /// As prefix sums, by the nodes of a binary tree.
    Tree,
}

/// Which iterates are averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Averaging {
    /// Those after the first half: w_(h+1) to w_T, h = ⌊T/2⌋.
    LastHalf,
    /// All of w_1 to w_T.
    All,
}

/// How far a step goes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "pace", rename_all = "kebab-case")]
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
    pub(super) fn usual(method: Paper, residual: Residual, steps: u64) -> Self {
        Recipe {
            method,
            sampling: Sampling::FullBatch,
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

impl Recipe {
    /// The sampler. A threshold that falls takes rows of a step before the first; DP-STAT takes rows of its own in
    /// every step.
    pub fn sampler(&self) -> Sampler {
        let steps = match self.clip {
            Clip::Stat => 2 * self.steps,
            Clip::Falling { .. } => self.steps + 1,
            _ => self.steps,
        };
        match self.sampling {
            Sampling::FullBatch => Sampler::FullBatch,
            Sampling::RandomAllocation => Sampler::RandomAllocation { steps },
            Sampling::Partition => Sampler::Partition { steps },
            Sampling::Poisson { rate } => Sampler::Poisson { steps: self.steps, rate },
        }
    }
}

impl Averaging {
    /// The average over so many steps.
    pub(super) fn of(self, steps: u64) -> Average {
        match self {
            Averaging::LastHalf => Average::last_half(steps),
            Averaging::All => Average::over(0..steps),
        }
    }
}
