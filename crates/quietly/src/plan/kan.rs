//! Planning networks.
use super::Plan;
use crate::{budget::Budget, error::Error, kan::Kan};

impl Kan {
    /// The plan for about `rows` rows.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] for anything that does not go together, [`Error::TooLarge`] for networks that do not fit,
    /// [`Error::Accounting`] if the budget cannot be met.
    pub fn plan(&self, rows: u64, budget: Budget) -> Result<Plan, Error> {
        Plan::for_unit(budget, |budget| Ok(self.draft(rows, budget)?.into()))
    }
}
