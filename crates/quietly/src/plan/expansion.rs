//! Plans whose rows are expanded first.
use quietly_core::privacy_plan::UncheckedPlan;
use quietly_data::Source;
use quietly_engine::{
    error::Error,
    expansion::{Expander, Expansion},
};

use super::Plan;
use crate::any_algorithm::AnyAlgorithm;

impl Plan {
    /// The same plan for rows that an expansion makes of those of a table. It must have been made for as many features as a row
    /// has after it; tables and encodings then have as many as before it.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if the expansion and the plan do not go together: not with another number of features, for a network,
    /// or for the one pass that streams.
    pub fn expanding(mut self, expansion: Expansion) -> Result<Self, Error> {
        self.expansion = Some(expansion);
        self.check_expansion()?;
        Ok(self)
    }
}

impl<P: AsRef<UncheckedPlan>> Plan<P> {
    /// How many features a row of the table has, before any expansion.
    pub fn inputs(&self) -> usize {
        self.expansion.as_ref().map_or(self.width(), Expansion::inputs)
    }

    /// Refuses an expansion that does not go with the rest of the plan.
    pub(crate) fn check_expansion(&self) -> Result<(), Error> {
        let Some(expansion) = &self.expansion else { return Ok(()) };
        expansion.check()?;
        let (want, after) = ("what the plan was made for", expansion.width());
        Error::ensure(after == self.width(), "number of expanded features", want, after)?;
        let want = "left out for a network, which learns its splines";
        Error::ensure(
            !matches!(self.algorithm, AnyAlgorithm::Kan(_)),
            "expand",
            want,
            expansion.name(),
        )?;
        let streams = matches!(self.algorithm, AnyAlgorithm::OnePass(_));
        let want = "left out with method one-pass, which streams rows (use full-batch)";
        Error::ensure(!streams, "expand", want, expansion.name())
    }

    /// Refuses a file of sparse rows, before any of it is read.
    pub(crate) fn check_dense(&self, source: &Source) -> Result<(), Error> {
        let want = "left out for sparse rows, whose zeros it would fill";
        let Some(expansion) = &self.expansion else { return Ok(()) };
        Error::ensure(!source.is_sparse(), "expand", want, expansion.name())
    }

    /// What expands the rows of this plan, if anything does.
    pub(crate) fn expander(&self) -> Result<Option<Expander>, Error> {
        let Some(expansion) = &self.expansion else { return Ok(None) };
        Expander::new(expansion).map(Some)
    }
}
