//! Planning classes: which arms and solvers there are, from public numbers alone (docs/spec/default.md#9).
use quietly_core::budget::Budget;
use quietly_data::Encoding;
use quietly_engine::{
    algorithm::{Algorithm, Planned, Shape},
    error::Error,
    expansion::Expansion,
};
use quietly_glm::{Classes, Loss, classes::Splines, standardise};

use super::Convex;
use crate::{
    methods::Method,
    plan::Plan,
    spec::{longest, numeric_features},
};

/// Functions of a numeric feature, as with `--expand splines=8`.
const FUNCTIONS: usize = 8;

impl Convex {
    /// Whether these are classes that the default rules are for.
    pub(super) fn has_classes(&self, width: usize, budget: Budget) -> bool {
        let classes = matches!(self.loss, Loss::Logistic | Loss::Softmax { .. });
        let asked = self.clip.is_some() || self.steps.is_some() || self.step_size.is_some();
        let private = budget.is_private() && !budget.is_pure();
        let method = matches!(self.method, Method::Auto | Method::ScaledAmp);
        classes && !asked && private && method && self.can_scale(width)
    }

    /// The plan for classes, with splines of the numeric features where rows and budget allow them.
    fn classes_with_splines(
        &self,
        encoding: &Encoding,
        rows: u64,
        budget: Budget,
    ) -> Result<Plan, Error> {
        let width = encoding.width();
        if !self.has_classes(width, budget) {
            return self.draft(rows, width, budget);
        }
        let (mut classes, shape, mu) = self.linear_arm(rows, width, budget)?;
        let expansion = Expansion::splines(encoding, FUNCTIONS);
        let longest = expansion.longest(encoding).hypot(self.constant);
        let expanded = self.clone().rows_within(longest);
        let mut problem = expanded.problem(expansion.width())?;
        problem.scale(standardise::is_calm(rows, expansion.width(), mu));
        let splines = Splines { problem, expansion };
        classes = classes.with_splines(shape, mu, numeric_features(encoding).len(), splines);
        planned(classes, shape, budget)
    }

    /// The plan for classes.
    pub(super) fn classes(&self, rows: u64, width: usize, budget: Budget) -> Result<Plan, Error> {
        let (classes, shape, _) = self.linear_arm(rows, width, budget)?;
        planned(classes, shape, budget)
    }

    fn linear_arm(
        &self,
        rows: u64,
        width: usize,
        budget: Budget,
    ) -> Result<(Classes, Shape, f64), Error> {
        let (mut problem, shape) = (self.problem(width)?, Shape::new(rows, width)?);
        let mu = quietly_engine::algorithm::mu(budget);
        problem.scale(standardise::is_calm(rows, width, mu));
        let mut classes = Classes { problem, descent: None, gated: false, splines: None };
        if self.method == Method::Auto {
            classes = classes.with_descent(shape, mu).with_gate(shape, mu);
        }
        Ok((classes, shape, mu))
    }
}

fn planned(classes: Classes, shape: Shape, budget: Budget) -> Result<Plan, Error> {
    Algorithm::check(&classes, shape, budget)?;
    let privacy = classes.plan(shape, budget)?;
    Ok(Planned::new(classes, shape, privacy).into())
}

/// The default plan for a target with classes: the linear arm of `fit logistic`, and where rows and budget allow it an arm of splines and a
/// gate that chooses between them (docs/spec/default.md#9.3). Public numbers alone decide.
///
/// # Errors
///
/// [`Error::Data`](Error) if the target has no classes, [`Error::Accounting`] if the budget cannot be met.
pub fn plan_auto_classes(encoding: &Encoding, rows: u64, budget: Budget) -> Result<Plan, Error> {
    let loss = match encoding.expect_classes()?.class_count() {
        2 => Loss::Logistic,
        classes => Loss::Softmax { classes },
    };
    let convex = Convex::new(loss).rows_within(longest(encoding));
    Plan::for_unit(budget, |budget| convex.classes_with_splines(encoding, rows, budget))
}
