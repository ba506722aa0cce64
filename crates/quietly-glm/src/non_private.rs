//! Non-private fits: the minimiser without noise, for plans with ε = ∞.
//!
//! A corner that a private fit rounds off is sharp here. The width of the rounded corner goes to 0 by continuation: each width starts
//! from the minimiser of the last, until hardly a row lies within it. As many rows as there are weights always do, because a
//! minimiser of the pinball loss goes through them.
use quietly_core::{budget::Budget, mechanism::Stage, progress::report};
use quietly_data::Private;
use quietly_engine::{algorithm::Shape, error::Error};
use serde::{Deserialize, Serialize};

use super::{
    design_matrix::Examples,
    fit::{ConvexMethod, check_not_scaled},
    glm::Glm,
    loss::Loss,
    minimiser::{Objective, Terms, WIDEST},
    objective_perturbation,
    problem::Problem,
    run::Fitting,
    set::Set,
};

/// The widths of a corner, in units of the target's range: the first, the factor between two, and where they end.
const BROADEST: f64 = 0.4;
const NARROWER: f64 = 0.25;
const NARROWEST: f64 = 1e-7;
/// The share of rows that may lie within the last.
const WITHIN: f64 = 1e-4;
/// The ridge in units of the largest squares of the rows: weights that no row decides are small, and separable classes, which have
/// no minimiser, get one. A column that fills a ten-thousandth of its range has squares of 1e-8 of that, and is not held back.
const RIDGE: f64 = 1e-13;

/// The minimiser, without noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Minimiser {}

impl ConvexMethod for Minimiser {
    fn stages(&self, _: &Problem, _: Shape, _: Budget, _: f64) -> Vec<Stage> {
        Vec::new()
    }

    fn check(&self, problem: &Problem, shape: Shape, budget: Budget) -> Result<(), Error> {
        check_not_scaled(problem)?;
        budget.check_not_private()?;
        problem.minimisable(shape.width, problem.set != Set::Everything)
    }

    fn solve(
        &self,
        run: &mut Fitting<'_, '_>,
        examples: Private<Examples<'_>>,
    ) -> Result<Vec<f64>, Error> {
        fit(run, examples)
    }
}

/// The weights.
fn fit(run: &mut Fitting<'_, '_>, examples: Private<Examples<'_>>) -> Result<Vec<f64>, Error> {
    let (problem, watch) = (run.problem, &mut *run.watch);
    let glm = problem.glm(run.shape.width, run.radius)?;
    let all = problem.size(run.shape.width);
    let found: Result<_, quietly_core::error::Error> =
        run.releaser.non_private(examples, |examples| {
            let rows = examples.rows().max(1) as f64;
            let far = match &problem.set {
                Set::Everything => 0.0,
                set => objective_perturbation::farthest(set, all),
            };
            let power_term = problem.regulariser.power_term(rows, far);
            let smooth = glm.smoothness * run.radius * run.radius;
            let ridge = rows * problem.regulariser.strong();
            let terms = Terms {
                glm,
                radius: run.radius,
                size: all / glm.outputs(),
                strong: ridge.max(RIDGE * rows * smooth),
                power_term,
            };
            let linear_term = vec![0.0; all];
            let objective = Objective {
                terms,
                examples: &examples,
                rows: 0..examples.rows(),
                linear_term: &linear_term,
            };
            let mut keep_on = |pass: u64| report(watch, "minimising", pass, pass.max(30));
            let near = (1e-4 / run.radius).max(terms.least_distance(rows, 1e3 / run.radius, 0.0));
            match (&problem.set, glm.loss) {
                (Set::Everything, Loss::SmoothQuantile { level, .. }) => {
                    let strong = ridge.max(RIDGE * rows * run.radius * run.radius);
                    let terms = Terms { strong, ..terms };
                    sharpen(Objective { terms, ..objective }, level, &mut keep_on)
                }
                (Set::Everything, _) if all <= WIDEST => {
                    objective.settle(vec![0.0; all], &mut keep_on)
                }
                (Set::Everything, _) => Ok(objective.descend(near, &mut keep_on)?.0.point),
                (set, _) => {
                    let near = near.max(terms.least_distance_within(rows, far, 0.0));
                    let lasso = rows * problem.regulariser.lasso;
                    Ok(objective.minimise_within(set, lasso, far, near, &mut keep_on)?.point)
                }
            }
        });
    Ok(found?)
}

/// The minimiser of the pinball loss at this level.
fn sharpen<E>(
    mut objective: Objective<'_>,
    level: f64,
    keep_on: &mut dyn FnMut(u64) -> Result<(), E>,
) -> Result<Vec<f64>, E> {
    let mut w = vec![0.0; objective.linear_term.len()];
    let (mut width, mut passes) = (BROADEST, 0);
    loop {
        let glm = objective.terms.glm;
        let loss = Loss::SmoothQuantile { level, width };
        objective.terms.glm = Glm { loss, smoothness: 0.5 / width, ..glm };
        let mut done = 0;
        w = objective.settle(w, &mut |pass| {
            done = pass;
            keep_on(passes + pass)
        })?;
        passes += done;
        let examples = objective.examples;
        let inside = |i: &usize| {
            !examples.is_null(*i) && (examples.score(*i, &w) - examples.target(*i)).abs() < width
        };
        let within = objective.rows.clone().filter(inside).count();
        let few = (WITHIN * objective.rows.len() as f64).max(w.len() as f64);
        if within as f64 <= few || width < NARROWEST {
            return Ok(w);
        }
        width *= NARROWER;
    }
}
