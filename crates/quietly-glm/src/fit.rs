//! A convex problem and the method that solves it, as an algorithm.
use std::fmt;

use quietly_accounting::Neighbours;
use quietly_core::{
    budget::Budget,
    mechanism::{Sampler, Stage},
    privacy_plan::PrivacyPlan,
    rows_used::PURE_SHARE,
};
use quietly_data::Private;
use quietly_engine::{
    algorithm::{Access, Algorithm, Planned, Run, Shape},
    backend::Backend,
    error::Error,
};
use serde::{Deserialize, Serialize};

use super::{
    design_matrix::Examples,
    problem::Problem,
    run::{self, Fitting, Weights},
    standardise,
};

/// The share of μ² that a bound on the rows takes.
const RADIUS_SHARE: f64 = 0.002;
/// The share of ε that it takes where δ is 0.
const PURE_RADIUS_SHARE: f64 = 0.05;

/// A convex problem and the method that solves it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConvexFit<M> {
    /// How it is solved.
    #[serde(flatten)]
    pub method: M,
    /// What is solved.
    pub problem: Problem,
}

/// A way to solve a convex problem.
pub trait ConvexMethod: fmt::Debug {
    /// Which rows its steps see.
    fn sampler(&self, _: &Problem, _: Shape) -> Sampler {
        Sampler::FullBatch
    }

    /// What it releases, if noise has this multiplier.
    fn stages(&self, problem: &Problem, shape: Shape, budget: Budget, noise: f64) -> Vec<Stage>;

    /// The same where δ is 0 and there is `epsilon` to spend; nothing for methods that have no such guarantee.
    fn pure_stages(&self, _: &Problem, _: Shape, _: Budget, _epsilon: f64) -> Vec<Stage> {
        Vec::new()
    }

    /// Refuses problems that it is not proven for.
    fn check(&self, problem: &Problem, shape: Shape, budget: Budget) -> Result<(), Error>;

    fn access(&self) -> Access {
        Access::Rows
    }

    /// Whether every row is looked at once, so that it need not be measured before.
    fn reads_once(&self, _: &Problem) -> bool {
        false
    }

    /// The weights, from rows in memory: for methods that need them.
    fn solve(&self, _: &mut Fitting<'_, '_>, _: Private<Examples<'_>>) -> Result<Vec<f64>, Error> {
        panic!("{self:?} takes sums over rows")
    }

    /// The weights, from sums over rows that a backend has: for methods that need no more.
    fn solve_sums(&self, _: &mut Fitting<'_, '_>, _: &mut dyn Backend) -> Result<Vec<f64>, Error> {
        panic!("{self:?} takes the rows themselves")
    }
}

/// The μ that the whole budget is worth.
pub fn mu(problem: &Problem, shape: Shape, budget: Budget) -> f64 {
    match budget.is_pure() {
        // What a Gaussian with the noise of a Laplace release would be worth.
        true => budget.epsilon() / (2.0 * problem.size(shape.width) as f64).sqrt(),
        // A budget outside the accountant's range is refused where it is priced.
        false => quietly_accounting::gaussian_mu(budget.epsilon(), budget.delta()).unwrap_or(1.0),
    }
}

/// The plan of a method.
///
/// # Errors
///
/// [`Error::Accounting`] if the budget cannot be met.
pub fn planned<M: ConvexMethod>(
    method: M,
    problem: Problem,
    shape: Shape,
    budget: Budget,
) -> Result<Planned<ConvexFit<M>>, Error> {
    let fit = ConvexFit { method, problem };
    let privacy = fit.plan(shape, budget)?;
    Ok(Planned::new(fit, shape, privacy))
}

impl<M: ConvexMethod> Algorithm for ConvexFit<M> {
    type Fitted = Weights;

    fn sampler(&self, shape: Shape) -> Sampler {
        self.method.sampler(&self.problem, shape)
    }

    fn stages(&self, shape: Shape, budget: Budget, noise: f64) -> Vec<Stage> {
        let ConvexFit { method, problem } = self;
        let (mu, neighbours, mut stages) =
            (mu(problem, shape, budget), budget.neighbours(), Vec::new());
        if !budget.is_private() {
            return stages;
        }
        if budget.is_pure() {
            // What is divided and added up again may round.
            let mut left = (1.0 - PURE_SHARE) * budget.epsilon() * (1.0 - 1e-12);
            if problem.finds_radius {
                let share = PURE_RADIUS_SHARE * left;
                stages.push(run::pure_radius_stage(problem, shape, budget, share));
                left -= share;
            }
            stages.extend(method.pure_stages(problem, shape, budget, left));
            return stages;
        }
        if problem.scales {
            stages.extend(standardise::stages(for_one(mu, budget), neighbours));
        } else if problem.finds_radius {
            stages.push(run::radius_stage(problem, shape, budget, RADIUS_SHARE.sqrt() * mu));
        }
        stages.extend(method.stages(problem, shape, budget, noise));
        stages
    }

    fn check(&self, shape: Shape, budget: Budget) -> Result<(), Error> {
        self.problem.check(shape.width)?;
        self.method.check(&self.problem, shape, budget)
    }

    fn access(&self) -> Access {
        self.method.access()
    }

    /// Under replace-one the number of records is public, null records among them, and some methods go by a row's
    /// place.
    fn keeps_places(&self, plan: &PrivacyPlan) -> bool {
        let poisson = matches!(plan.sampler, Sampler::Poisson { .. });
        plan.budget.neighbours() == Neighbours::ReplaceOne || poisson
    }

    fn fit(&self, run: Run<'_, '_>) -> Result<Weights, Error> {
        run::fit(self, run)
    }
}

/// What of μ a row that is there or not may cost: a replaced one moves sums twice as far.
pub fn for_one(mu: f64, budget: Budget) -> f64 {
    if budget.neighbours() == Neighbours::ReplaceOne { 0.5 * mu } else { mu }
}

/// Refuses problems whose rows are to be standardised: only objective perturbation does that.
pub(super) fn check_not_scaled(problem: &Problem) -> Result<(), Error> {
    let got = "one that standardises rows for another method";
    Error::ensure(!problem.scales, "plan", "as it was planned", got)
}
