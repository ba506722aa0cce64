//! A plan as text.
use std::fmt;

use quietly_core::{
    mechanism::{Mechanism, Sampler},
    privacy_plan::UncheckedPlan,
};
use quietly_linear::budget_split::Learnable;

use super::Plan;
use crate::any_algorithm::AnyAlgorithm;

impl<P: AsRef<UncheckedPlan>> fmt::Display for Plan<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.budget().is_private() {
            let network = matches!(self.algorithm, AnyAlgorithm::Kan(_));
            let what = if network { "a network" } else { "least squares" };
            return write!(f, "{what} without noise: NO PRIVACY");
        }
        match self.sampler() {
            Sampler::FullBatch => writeln!(f, "full batch: every row in every step")?,
            Sampler::RandomAllocation { steps } => {
                writeln!(
                    f,
                    "one pass, random allocation: each row in one of {steps} steps, uniformly at random"
                )?;
            }
            Sampler::Partition { steps } => {
                writeln!(f, "one pass: each row in one of {steps} parts")?
            }
            Sampler::OrderedPartition { steps } => {
                writeln!(
                    f,
                    "one pass: each row in one of {steps} phases, by its place in the table"
                )?;
            }
            Sampler::Poisson { steps, rate } => {
                writeln!(f, "Poisson sampling, rate {rate:.4}, {steps} steps")?;
            }
            other => writeln!(f, "{other}")?,
        }
        for stage in self.stages() {
            for charge in &stage.releases {
                let how = match charge.mechanism {
                    Mechanism::Gaussian { noise } => format!("noise multiplier {noise:.2}"),
                    Mechanism::CorrelatedGaussian { noise, correlation } => {
                        format!("noise multiplier {noise:.2}, {correlation}")
                    }
                    Mechanism::Laplace { scale } => {
                        format!("Laplace noise, scale {scale:.2} times the 1-norm sensitivity")
                    }
                    Mechanism::Exponential { add_remove, .. } => {
                        format!("exponential mechanism, epsilon {add_remove:.4}")
                    }
                    Mechanism::ObjectivePerturbation { noise, .. } => {
                        format!("objective perturbation, noise multiplier {noise:.2}")
                    }
                    Mechanism::ApproximateDp { epsilon, delta } => {
                        format!("(ε, δ)-private mechanism, epsilon {epsilon:.4}, delta {delta:e}")
                    }
                };
                let whom = stage.whom(charge);
                writeln!(f, "  {:>3} x {:<28} {how}{whom}", stage.steps, charge.purpose)?;
            }
        }
        if let AnyAlgorithm::Kan(training) = &self.algorithm {
            write!(f, "{training}")?;
        }
        let default =
            matches!(self.algorithm, AnyAlgorithm::FullBatch(_) | AnyAlgorithm::OnePass(_));
        if default && self.reach() == Learnable::Weights {
            writeln!(
                f,
                "expected: noise adds up to about {:.2} % to the squared error of least squares",
                100.0 * self.expected_loss
            )?;
        }
        write!(
            f,
            "epsilon {:.4} of {} at delta {} ({})",
            (self.unit_epsilon() * 1e4).ceil() / 1e4,
            self.unit_budget().epsilon(),
            self.unit_budget().delta_in_words(),
            self.unit_budget().neighbours().name()
        )?;
        match self.unit_budget().rows_per_unit() {
            1 => write!(f, ", for one row"),
            rows => write!(
                f,
                ", for the up to {rows} rows of a unit; one row: epsilon {:.4} at delta {}",
                (self.epsilon() * 1e4).ceil() / 1e4,
                match self.budget().is_pure() {
                    true => "0".into(),
                    false => format!("{:.2e}", self.budget().delta()),
                }
            ),
        }
    }
}
