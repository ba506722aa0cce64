//! Which plans run on which backend: rows in parts, on other machines, or both.
use quietly_core::{
    allocation::Allocation,
    mechanism::{Mechanism, PlannedRelease, Sampler},
};
use quietly_data::Encoding;
use quietly_engine::{
    algorithm::{Access, Algorithm},
    backend::ReadSpec,
    error::Error,
    expansion::Expansion,
};
use quietly_kan::NetworkNoise;
use quietly_linear::papers::Noise;

use super::Plan;
use crate::{any_algorithm::AnyAlgorithm, methods::Method};

impl Plan {
    /// How rows are to be read for this plan.
    pub fn reading(&self, encoding: &Encoding) -> ReadSpec {
        let (encoding, expansion) = (encoding.clone(), self.expansion.clone());
        let places = self.algorithm.keeps_places(&self.privacy);
        ReadSpec { encoding, places, expansion }
    }

    /// Whether all that this plan asks are sums over rows, so that it does not matter where these are.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if it asks for something else; it says what to take instead.
    pub fn check_sums(&self) -> Result<(), Error> {
        let want = "one whose releases are sums over rows: any for linear and relu but exact and tukey-em; dp-gd, dp-sgd or \
                    frank-wolfe for other losses; kan";
        Error::ensure(self.are_sums(), "method", want, self.method().name())?;
        self.expands_alike()
    }

    fn are_sums(&self) -> bool {
        self.algorithm.access() == Access::Sums
    }

    fn expands_alike(&self) -> Result<(), Error> {
        // A cosine has not the same bits on every machine.
        let waves = matches!(self.expansion, Some(Expansion::RandomFourier { .. }));
        Error::ensure(!waves, "expand", "splines on a cluster", "fourier")
    }

    /// Whether all rows are asked in every step, so that rows need no places: they may come in any order, and in another one each time.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if steps have rows of their own, or all that this plan asks are not sums.
    pub fn check_every_row(&self) -> Result<(), Error> {
        let want = "one whose steps see all rows, as the rows of this table have no order: full-batch, adassp, boosted-adassp, \
                    dp-pgd or adaptive-gd for linear and relu; dp-gd or frank-wolfe for other losses; kan with full batches";
        let every = self.are_sums() && self.sampler() == Sampler::FullBatch;
        Error::ensure(every, "method", want, self.method().name())?;
        self.expands_alike()
    }

    /// Whether a run of this plan can be resumed without a second draw of anything that was used before.
    ///
    /// A run that resumes has another key. Its noise and its samples are drawn anew, which is right where each step has its own.
    /// Correlated noise and trees depend on the noise of earlier steps; and where each row is in one group, a row that was in a
    /// step before the break could be in another one after it, unless the table was partitioned beforehand.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if it cannot.
    pub fn check_resumable(&self, allocation: Option<&Allocation>) -> Result<(), Error> {
        let want = "left out: the noise of a step depends on earlier noise, which is not stored";
        let releases = self.stages().iter().flat_map(|stage| &stage.releases);
        let mixed = |charge: &PlannedRelease| {
            matches!(charge.mechanism, Mechanism::CorrelatedGaussian { .. })
        };
        let tree = |charge: &PlannedRelease| charge.times > 1;
        let independent = match &self.algorithm {
            AnyAlgorithm::Recipe(recipe) => recipe.noise == Noise::Independent,
            AnyAlgorithm::Kan(training) => training.noise == NetworkNoise::Independent,
            _ => !releases.clone().any(tree),
        };
        let independent = independent && !releases.clone().any(mixed);
        Error::ensure(independent, "checkpoint", want, "given")?;
        let drawn_by_step = self.sampler().is_drawn_by_step() || allocation.is_some();
        let want = "left out, or the table partitioned: a resumed run would draw the groups of the rows again";
        Error::ensure(drawn_by_step, "checkpoint", want, "given")
    }

    /// Whether a table that was partitioned like this, or not at all, has as many steps as are planned.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if it has not.
    pub fn suits(&self, allocation: Option<&Allocation>) -> Result<(), Error> {
        let there = allocation.map_or(0, |allocation| allocation.steps);
        match self.sampler() {
            Sampler::RandomAllocation { steps } => {
                let partitioned = self.method() == Method::OnePass || allocation.is_some();
                let want = "partitioned for as many steps as the plan has";
                let got = match there {
                    0 => format!("not partitioned; run quietly partition TABLE --steps {steps}"),
                    there => {
                        format!("partitioned for {there} steps, not {steps}; give `steps` {there}")
                    }
                };
                Error::ensure(there == steps || !partitioned, "table", want, got)
            }
            Sampler::FullBatch => Ok(()),
            _ => {
                let want = "one that is not partitioned, as this plan draws its own batches";
                let got = format!("partitioned for {there} steps");
                Error::ensure(allocation.is_none(), "table", want, got)
            }
        }
    }

    /// Whether the rows of a backend are grouped as the allocation says, which the certificate records: unrecorded groups, or
    /// groups that the run draws, are not those of a partitioned table.
    pub(super) fn check_groups(
        &self,
        groups: Option<u64>,
        allocation: Option<&Allocation>,
    ) -> Result<(), Error> {
        let recorded = allocation.map(|allocation| allocation.steps);
        let fits = groups == recorded || self.sampler() == Sampler::FullBatch;
        Error::ensure(fits, "table", "grouped as its allocation says", "grouped otherwise")
    }
}
