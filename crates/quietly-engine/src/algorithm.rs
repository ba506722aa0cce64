//! One way to fit: what it will release, and how it runs.
//!
//! The parameters of an algorithm are a value that implements [`Algorithm`]. Its `stages` are both the plan and
//! the check: a plan that is read from a file must list these releases, and no others.
use std::fmt;

use quietly_accounting::gaussian_mu;
use quietly_core::{
    budget::Budget,
    mechanism::{Sampler, Stage},
    privacy_plan::PrivacyPlan,
    progress::ProgressCallback,
    release::Releaser,
    rows_used,
};
use quietly_data::Table;
use serde::{Deserialize, Serialize};

use crate::{backend::Backend, error::Error};

/// What is public about a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// About how many rows there are.
    pub rows: u64,
    /// How many features a row has, without the constant; where rows are expanded, after that.
    pub width: usize,
}

/// No table is larger: more is a mistake, and numbers near the end of their range overflow.
const MOST_ROWS: u64 = 1_000_000_000_000_000;
const MOST_FEATURES: usize = (1 << 20) - 1;

impl Shape {
    /// # Errors
    ///
    /// [`Error::Parameter`] if there are no rows or features, or more than there can be.
    pub fn new(rows: u64, width: usize) -> Result<Self, Error> {
        Error::ensure((1..=MOST_ROWS).contains(&rows), "rows", "from 1 to 1e15", rows)?;
        let fine = (1..=MOST_FEATURES).contains(&width);
        Error::ensure(fine, "number of features", "from 1 to a million", width)?;
        Ok(Shape { rows, width })
    }
}

/// What an algorithm needs of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Sums of queries over rows: any backend has them.
    Sums,
    /// The rows themselves, on this machine.
    Rows,
}

/// One way to fit.
pub trait Algorithm: fmt::Debug {
    /// What a fit gives.
    type Fitted;

    /// Which rows its steps see.
    fn sampler(&self, shape: Shape) -> Sampler;

    /// Everything it will release but the number of rows, if noise has this multiplier. No data.
    fn stages(&self, shape: Shape, budget: Budget, noise_multiplier: f64) -> Vec<Stage>;

    /// The release of the number of rows used; none if one of its own stages has it.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`] if the budget is outside the accountant's range.
    fn count_stage(&self, budget: Budget, sampler: Sampler) -> Result<Option<Stage>, Error> {
        if !budget.is_pure() {
            return Ok(Some(rows_used::stage(budget, sampler)?));
        }
        let epsilon = rows_used::PURE_SHARE * budget.epsilon() * (1.0 - 1e-12);
        Ok(Some(rows_used::pure_stage(epsilon, budget.neighbours(), sampler)))
    }

    /// The least noise for which all of it stays within the budget.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`] if the budget cannot be met.
    fn plan(&self, shape: Shape, budget: Budget) -> Result<PrivacyPlan, Error> {
        let sampler = self.sampler(shape);
        if self.stages(shape, budget, 1.0).is_empty() {
            return Ok(PrivacyPlan::fixed(budget, sampler, Vec::new())?);
        }
        let count = self.count_stage(budget, sampler)?;
        let stages =
            |noise| self.stages(shape, budget, noise).into_iter().chain(count.clone()).collect();
        Ok(match budget.is_pure() {
            true => PrivacyPlan::fixed(budget, sampler, stages(1.0))?,
            false => PrivacyPlan::calibrate(budget, sampler, stages)?,
        })
    }

    /// Refuses parameters that no proof covers: plans are files, and files can be changed.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] for anything that does not go together.
    fn check(&self, shape: Shape, budget: Budget) -> Result<(), Error>;

    /// What it needs of the rows.
    fn access(&self) -> Access;

    /// Whether null records keep their places among the others.
    fn keeps_places(&self, _: &PrivacyPlan) -> bool {
        false
    }

    /// Runs it.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupted`], [`Error::Noise`], or what a backend fails with. No row can cause an error.
    fn fit(&self, run: Run<'_, '_>) -> Result<Self::Fitted, Error>;
}

/// A planned algorithm.
pub struct Planned<A> {
    pub algorithm: A,
    pub shape: Shape,
    pub privacy: PrivacyPlan,
    /// What noise is expected to add to the mean squared error, as a share of what least squares leaves;
    /// infinite where there is no saying.
    pub expected_loss: f64,
    pub warnings: Vec<String>,
}

impl<A> Planned<A> {
    /// A plan of which no more is known.
    pub fn new(algorithm: A, shape: Shape, privacy: PrivacyPlan) -> Self {
        Planned { algorithm, shape, privacy, expected_loss: 0.0, warnings: Vec::new() }
    }
}

/// One run of a plan.
pub struct Run<'a, 'w> {
    pub plan: &'a PrivacyPlan,
    pub shape: Shape,
    /// The public range of the target; of classes, their first and last number.
    pub range: (f64, f64),
    /// The rows, wherever they are.
    pub backend: &'a mut dyn Backend,
    /// A public table of the same columns, where there is one.
    pub public: Option<&'a Table>,
    pub releaser: &'a mut Releaser,
    pub watch: &'a mut ProgressCallback<'w>,
}

/// How many rows of a table in memory are not null records.
pub fn rows_used(table: &Table) -> u64 {
    table.target().iter().filter(|y| !y.is_nan()).count() as u64
}

/// The μ that a Gaussian release with the whole budget could have, for a row that is there or not.
///
/// A budget outside the accountant's range counts as 1: it is refused where it is priced.
pub fn mu(budget: Budget) -> f64 {
    let replaced = budget.neighbours() == quietly_accounting::Neighbours::ReplaceOne;
    let mu = gaussian_mu(budget.epsilon(), budget.delta()).unwrap_or(1.0);
    mu / if replaced { 2.0 } else { 1.0 }
}
