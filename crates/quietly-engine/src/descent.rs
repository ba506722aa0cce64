//! The one loop of noisy steps: a clip, a sum of clipped gradients, its release, an update, an average.
//!
//! Three traits say what differs between algorithms. [`ClippedGradient`] sums the gradients of a step, wherever rows are.
//! [`ClipRule`] finds the clipping norm. [`Update`] turns a released sum into the next weights.
//!
//! # Privacy
//!
//! Rows are seen by [`ClippedGradient`] alone, whose sums and counts are private until the releaser adds the planned noise.
//! Given what was released before, a step releases a sum of vectors of bounded norm, and what the rule of the clip releases under
//! names of its own; weights, clips and averages are functions of released values. So the price of a run is that of
//! the planned releases, by adaptive composition.
use std::ops::Range;

pub use self::{
    average::{Average, Mean},
    step_size::StepSize,
};
use quietly_core::release::{BoundedSum, Histogram, Released, Releaser};

use crate::error::Error;

mod average;
mod step_size;

/// Where a step stands.
#[derive(Clone, Copy)]
pub struct At<'a> {
    pub step: u64,
    pub weights: &'a [f64],
    /// The clipping norm.
    pub clip: f64,
    /// The ends of the bins in which norms are counted before they are clipped, if they are.
    pub bins: Option<&'a [f64]>,
}

/// What the rows of a step say.
pub struct StepSum {
    pub gradient: BoundedSum,
    /// How many norms lie in each bin.
    pub norms: Option<Histogram>,
}

/// The sum of the clipped gradients of a step, wherever its rows are.
pub trait ClippedGradient {
    /// The sum over the rows of the step, and the counts of their norms if there are bins.
    ///
    /// # Errors
    ///
    /// If rows cannot be reached. No row can cause an error.
    fn sum(&mut self, at: &At<'_>, releaser: &mut Releaser) -> Result<StepSum, Error>;

    /// The counts of norms alone, of the rows that the step has for finding its clip: all of its rows, unless some are set
    /// apart.
    ///
    /// # Errors
    ///
    /// As [`sum`](Self::sum).
    ///
    /// # Panics
    ///
    /// If there are no bins.
    fn norms(&mut self, at: &At<'_>, releaser: &mut Releaser) -> Result<Histogram, Error> {
        Ok(self.sum(at, releaser)?.norms.expect("counts in these bins"))
    }
}

/// How the clipping norm of a step is found.
pub trait ClipRule {
    /// The clipping norm of a step at these weights. It may release something of its own first.
    ///
    /// # Errors
    ///
    /// As [`ClippedGradient::sum`], and [`Error::Noise`] if there is no randomness.
    fn clip(
        &mut self,
        step: u64,
        weights: &[f64],
        gradient: &mut dyn ClippedGradient,
        releaser: &mut Releaser,
    ) -> Result<f64, Error>;

    /// The bins in which the norms of this step are counted, for the next clip.
    fn bins(&self) -> Option<Vec<f64>> {
        None
    }

    /// Learns from those counts, after the update.
    ///
    /// # Errors
    ///
    /// [`Error::Noise`] if there is no randomness.
    fn after(&mut self, _norms: Histogram, _releaser: &mut Releaser) -> Result<(), Error> {
        Ok(())
    }
}

/// One clipping norm for all steps.
pub struct FixedClip(pub f64);

impl ClipRule for FixedClip {
    fn clip(
        &mut self,
        _step: u64,
        _weights: &[f64],
        _gradient: &mut dyn ClippedGradient,
        _releaser: &mut Releaser,
    ) -> Result<f64, Error> {
        Ok(self.0)
    }
}

/// From a released sum to the next weights: step sizes, momentum, preconditioners, projections. Post-processing.
pub trait Update {
    /// `released` is the sum, not the mean: each update divides by what it takes for the number of rows.
    fn step(&mut self, step: u64, weights: &mut [f64], released: &Released);
}

/// Some steps of a descent, under one name in the plan.
pub struct Descent<'a> {
    /// The release of every step.
    pub release: &'a str,
    pub steps: Range<u64>,
    pub clip: &'a mut dyn ClipRule,
    pub update: &'a mut dyn Update,
    pub average: Average,
}

impl Descent<'_> {
    /// Runs all steps from these weights; returns the average that was asked for. `report` is called before each step.
    ///
    /// # Errors
    ///
    /// As [`ClippedGradient::sum`], [`ClipRule::clip`] and `report`.
    pub fn run(
        &mut self,
        mut weights: Vec<f64>,
        gradient: &mut dyn ClippedGradient,
        releaser: &mut Releaser,
        report: &mut dyn FnMut(u64) -> Result<(), Error>,
    ) -> Result<Vec<f64>, Error> {
        let mut mean = Mean::new(self.average, weights.len());
        for step in self.steps.clone() {
            report(step)?;
            let clip = self.clip.clip(step, &weights, gradient, releaser)?;
            let bins = self.clip.bins();
            let at = At { step, weights: &weights, clip, bins: bins.as_deref() };
            let sum = gradient.sum(&at, releaser)?;
            let released = releaser.release(self.release, sum.gradient)?;
            self.update.step(step, &mut weights, &released);
            if let Some(norms) = sum.norms {
                self.clip.after(norms, releaser)?;
            }
            mean.take(step, &weights);
        }
        Ok(mean.of(weights))
    }
}

#[cfg(test)]
mod tests;
