//! The model that is taken where none is named, by what is public alone.
use quietly_core::budget::Budget;
use quietly_data::Encoding;
use quietly_engine::error::Error;
use quietly_glm::Classes;

use super::{Family, ModelSpec, numeric_features};
use crate::{
    any_algorithm::AnyAlgorithm,
    plan::{Plan, plan_auto_classes, plan_auto_number},
};

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
        let classes = encoding.target().map_or(0, |target| target.class_count());
        let (model, kind) = match classes {
            0 => ("linear", "is a number".to_string()),
            count => ("logistic", format!("has {count} classes")),
        };
        let given = self.foreign(|_| false);
        if self.public_rows || !given.is_empty() {
            let given = if given.is_empty() { "public rows" } else { &given };
            let why = format!("{model} regression: the target {kind}, and it was given {given}");
            return Ok(named.planned(encoding, rows, budget)?.chosen(why));
        }
        if classes > 0 {
            let plan = plan_auto_classes(encoding, rows, budget)?;
            let why = match plan.algorithm() {
                AnyAlgorithm::Classes(Classes { splines: Some(_), .. }) => {
                    format!(
                        "logistic regression and splines, with a gate between them: the target {kind}, and rows and budget carry both"
                    )
                }
                _ => format!(
                    "logistic regression: the target {kind}, and rows and budget do not carry splines beside it"
                ),
            };
            return Ok(plan.chosen(why));
        }
        encoding.expect_range()?;
        plan_auto_number(numeric_features(encoding), rows, encoding.width(), budget)
    }
}
