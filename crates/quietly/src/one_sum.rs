//! One noisy sum over a table, with its certificate; and reading a table that may be stopped.
use std::ops::ControlFlow;

use quietly_core::{
    budget::Budget,
    certificate::Certificate,
    lattice::clamped,
    mechanism::{self, Sampler, Stage},
    release::{BoundedSum, Releaser, Sensitivity},
};
use quietly_data::{Block, Encoding, Private, Source};
use quietly_engine::error::Error;
use quietly_noise::Key;

/// A planned sum.
pub(crate) struct OneSum {
    purpose: &'static str,
    budget: Budget,
    stages: Vec<Stage>,
}

impl OneSum {
    /// Prices a sum, before anything is spent.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`] if the budget is refused.
    pub(crate) fn plan(purpose: &'static str, budget: Budget) -> Result<OneSum, Error> {
        let stages = mechanism::one_sum(purpose, budget.of_one_row()?)?;
        Ok(OneSum { purpose, budget, stages })
    }

    /// The same, but without noise where the budget is infinite.
    ///
    /// # Errors
    ///
    /// As [`plan`](Self::plan).
    pub(crate) fn plan_or_plain(purpose: &'static str, budget: Budget) -> Result<OneSum, Error> {
        match budget.is_private() {
            true => OneSum::plan(purpose, budget),
            false => Ok(OneSum { purpose, budget, stages: Vec::new() }),
        }
    }

    /// The sum, the standard deviation of its noise, and what it cost.
    ///
    /// # Errors
    ///
    /// [`Error::Noise`] if there is no randomness.
    pub(crate) fn release(
        self,
        sums: Vec<i128>,
        sensitivity: Sensitivity,
        (key, threads): (Key, usize),
        public: Vec<String>,
        unit_of_privacy: &str,
    ) -> Result<(Vec<f64>, f64, Certificate), Error> {
        let OneSum { purpose, budget, stages } = self;
        let origin = budget.is_private().then_some(key.source());
        let mut releaser = Releaser::new(key, &stages, threads);
        let sum: Private<Vec<i64>> = Private::new(sums.into_iter().map(clamped).collect());
        let (sums, noise) = if budget.is_private() {
            releaser.sum(purpose, BoundedSum::new(sum, sensitivity))?
        } else {
            let plain = |sum: Vec<i64>| sum.iter().map(|&s| s as f64 * sensitivity.unit).collect();
            (releaser.non_private(sum, plain), 0.0)
        };
        let certificate =
            Certificate::new(budget, Sampler::FullBatch, &stages, public, unit_of_privacy, origin)?;
        Ok((sums, noise, certificate))
    }
}

/// Hands a table to `each`, block by block.
///
/// # Errors
///
/// [`Error::Data`] if it cannot be read, [`Error::Interrupted`] if `each` said so.
pub(crate) fn blocks(
    source: &Source,
    encoding: &Encoding,
    threads: usize,
    each: &mut dyn FnMut(&Block) -> ControlFlow<()>,
) -> Result<(), Error> {
    let mut stopped = false;
    source.blocks(encoding, threads, &mut |block| {
        let on = each(block);
        stopped = on.is_break();
        on
    })?;
    if stopped { Err(Error::Interrupted) } else { Ok(()) }
}
