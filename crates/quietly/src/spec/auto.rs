//! The model that is taken where none is named, by what is public alone.
use quietly_core::budget::Budget;
use quietly_data::Encoding;
use quietly_engine::error::Error;

use super::{Family, ModelSpec, numeric_features};
use crate::plan::{Plan, plan_auto_number};

impl Family {
    /// What the kind of a target makes of it: [`Auto`](Family::Auto) becomes linear or logistic, others stay.
    #[must_use]
    pub fn of_target(self, encoding: &Encoding) -> Self {
        let classes = encoding.target().map_or(0, |target| target.class_count());
        match self {
            Family::Auto if classes == 0 => Family::Linear,
            Family::Auto => Family::Logistic,
            named => named,
        }
    }
}

impl ModelSpec {
    pub(super) fn auto(
        &self,
        encoding: &Encoding,
        rows: u64,
        budget: Budget,
    ) -> Result<Plan, Error> {
        let named = ModelSpec { family: Family::Auto.of_target(encoding), ..self.clone() };
        if named.family == Family::Logistic {
            return plan_auto_classes(&named, encoding, rows, budget);
        }
        let given = self.foreign(|_| false);
        if self.public_rows || !given.is_empty() {
            let given = if given.is_empty() { "public rows" } else { &given };
            let why = format!("linear regression: the target is a number, and {given} is given");
            return Ok(named.planned(encoding, rows, budget)?.chosen(why));
        }
        encoding.expect_range()?;
        plan_auto_number(numeric_features(encoding), rows, encoding.width(), budget)
    }
}

/// The plan for a target of classes, by a spec of logistic regression.
fn plan_auto_classes(
    spec: &ModelSpec,
    encoding: &Encoding,
    rows: u64,
    budget: Budget,
) -> Result<Plan, Error> {
    let classes = encoding.target().map_or(0, |target| target.class_count());
    let plan = spec.planned(encoding, rows, budget)?;
    Ok(plan.chosen(format!("logistic regression: the target has {classes} classes")))
}
