//! How a network is trained: public, part of the plan.
use std::fmt;

use quietly_core::mechanism::{Correlation, Sampler};
use quietly_engine::error::Error;
use serde::{Deserialize, Serialize};

use super::architecture::{LastLayer, NetworkShape};

/// How a network is trained: everything public about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KanConfig {
    /// How the network looks.
    pub shape: NetworkShape,
    /// Gradients are cut to this norm, each on its own.
    pub clip: f64,
    /// η: how far a step goes where the mean of the cut gradients has the norm of the cut.
    pub step_size: f64,
    /// β: how much of the direction of a step is that of the steps before. 0 for plain steps.
    #[serde(default)]
    pub momentum: f64,
    /// How many steps there are.
    pub steps: u64,
    /// Which rows a step sees.
    pub sampler: Sampler,
    /// What noise is like from step to step.
    pub noise: NetworkNoise,
    /// Weights stay within this of where they start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ball: Option<f64>,
    /// Which iterates make the model.
    pub average: Average,
    /// Where the public first weights come from.
    pub seed: u64,
    /// What was weighed against the sampler and the noise of this plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<Alternative>,
}

/// What noise is like from step to step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "noise", rename_all = "kebab-case")]
pub enum NetworkNoise {
    /// On its own in every step.
    Independent,
    /// Taken back in part by the steps after.
    Mixed {
        /// How.
        #[serde(flatten)]
        correlation: Correlation,
    },
    /// On the nodes of a binary tree: prefixes of a single pass have little of it.
    Tree,
}

/// Which weights are handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Average {
    /// Those of the last step.
    Last,
    /// The mean over the last half of the steps.
    Half,
    /// The mean over all steps.
    All,
    /// Those of a step drawn uniformly at random: what the published theorems are about.
    #[serde(alias = "lot")]
    Random,
}

/// A sampler and a noise that were not taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alternative {
    /// Both in words.
    pub what: String,
    /// The noise of the last weights over what all steps can learn, as a multiple of the one that was taken.
    pub noise: f64,
}

impl KanConfig {
    /// Refuses what no proof covers: plans are files, and files can be changed.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] for anything outside its domain.
    pub fn check(&self) -> Result<(), Error> {
        self.shape.check()?;
        let KanConfig { clip, step_size, steps, .. } = *self;
        Error::ensure((1e-6..=1e6).contains(&clip), "clipping_norm", "from 1e-6 to 1e6", clip)?;
        let fine = (0.0..1.0).contains(&self.momentum);
        Error::ensure(fine, "momentum", "at least 0 and below 1", self.momentum)?;
        let fine = step_size > 0.0 && step_size <= 1e6;
        Error::ensure(fine, "step size", "above 0 and at most 1e6", step_size)?;
        Error::ensure((1..=1_000_000).contains(&steps), "steps", "from 1 to 1000000", steps)?;
        let groups = self.sampler.groups().unwrap_or(1);
        let want = "at most 65536, as each row is drawn into one of them";
        Error::ensure(groups <= Sampler::MOST_GROUPS, "batches_per_epoch", want, groups)?;
        let ball = self.ball.unwrap_or(1.0);
        Error::ensure(ball > 0.0 && ball.is_finite(), "radius", "above 0", ball)?;
        match self.noise {
            NetworkNoise::Mixed { correlation } => Ok(correlation.check()?),
            NetworkNoise::Independent | NetworkNoise::Tree => Ok(()),
        }
    }
}

impl fmt::Display for KanConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NetworkShape { inputs, hidden, basis, degree, last, .. } = &self.shape;
        let units: Vec<String> = hidden.iter().map(ToString::to_string).collect();
        let last = match last {
            LastLayer::Fixed => "the last layer fixed",
            LastLayer::Trainable => "the last layer trained",
        };
        writeln!(
            f,
            "network: {} inputs, {basis} splines of degree {degree} each, {} units, {last}: {} weights",
            inputs.len(),
            units.join(" then "),
            self.shape.weights()
        )?;
        write!(f, "  gradients clipped to norm {:.3}, step size {:.3}", self.clip, self.step_size)?;
        match self.momentum {
            0.0 => writeln!(f)?,
            momentum => writeln!(f, " with momentum {momentum:.3}")?,
        }
        for Alternative { what, noise } in &self.rejected {
            writeln!(f, "  not chosen ({noise:.2} times the noise): {what}")?;
        }
        Ok(())
    }
}
