//! The model that is taken where none is named: numbers take the ladder of additive models, classes logistic regression.
//!
//! Public numbers alone decide, and the plan says which did. docs/spec/default.md#6
use quietly_core::budget::Budget;
use quietly_engine::{
    algorithm::{Algorithm, Planned, Shape, mu},
    error::Error,
    link::Link,
};
use quietly_linear::{additive::Additive, ladder::LadderInput};

use super::{Plan, Regression};

/// The plan for a target that is a number: the ladder, whose rung 0 is the plan of linear regression.
///
/// `numbers` are the features that are numeric columns. Without noise it is least squares.
///
/// # Errors
///
/// As [`Regression::plan`].
pub(crate) fn plan_auto_number(
    numbers: Vec<usize>,
    rows: u64,
    width: usize,
    budget: Budget,
) -> Result<Plan, Error> {
    let regression = Regression::new(Link::Linear).numeric(numbers.clone());
    let one = budget.of_one_row()?;
    if !one.is_private() {
        let plan = regression.plan(rows, width, budget)?;
        return Ok(plan.chosen("least squares: without noise that is the plain model".into()));
    }
    let shape = Shape::new(rows, width)?;
    let neighbours = one.neighbours();
    let input = LadderInput { rows, width, numbers: numbers.len(), mu: mu(one), neighbours };
    let choice = input.choose();
    let additive = choice.rung.and_then(|rung| Additive::new(input, numbers, rung));
    let (Some(additive), false) = (additive, one.is_pure()) else {
        return Ok(regression.plan(rows, width, budget)?.chosen(choice.why));
    };
    let seconds = choice.seconds.ceil().max(1.0);
    let why = format!("{}. Its bends take about {seconds} s on one core", choice.why);
    let plan = Plan::for_unit(budget, |budget| {
        let privacy = Algorithm::plan(&additive, shape, budget)?;
        Ok(Planned::new(additive, shape, privacy).into())
    })?;
    Ok(plan.chosen(why))
}

impl Plan {
    /// The same, with what was taken and why.
    pub(crate) fn chosen(self, why: String) -> Self {
        Plan { why: Some(format!("auto uses {why}.")), ..self }
    }
}
