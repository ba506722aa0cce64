//! The intercept of a quantile regression, corrected by a private quantile of the residuals.
//!
//! The ridge of a perturbed objective pulls the intercept to the middle of the range, and a rounded corner blurs the level: the
//! surface then has too many or too few rows below it, the more so the smaller the budget. What the first-order condition says of this
//! is how far the share of rows is off, but not how far to move: that depends on how dense the rows are.
//!
//! So one more question is asked, planned and charged as any other: the quantile of the residuals y - u at the level itself, by the
//! exponential mechanism, where u is the score that predictions have.
//!
//! # Proof: one row, one residual
//!
//! 1. The weights were released before, and are held: composition prices them, and here they are public. So are the grid of residuals, the
//!    level q, and whether the question is asked at all ([`level`] sees the plan alone).
//! 2. A row that is not a null record has one residual, which depends on that row and public values. It lies in one bin of the grid: values
//!    beyond its ends count as the ends. One row more or less therefore changes one count, by 1.
//! 3. The score of a threshold is -|(1 - q)·(rows not above it) - q·(rows above it)|. Adding a row moves it by at most max(q, 1 - q);
//!    replacing one, by at most 1. `Releaser::quantile` divides by the first, and the charge has the parameter under each relation.
//! 4. The intercept is moved by the threshold that is chosen: post-processing.
use quietly_core::{
    budget::Budget,
    mechanism::{PlannedRelease, Stage},
    release::Histogram,
};
use quietly_data::Private;
use quietly_engine::{algorithm::Shape, error::Error, histogram::tally, kernels::Bins};

use super::{
    design_matrix::Examples, fit::mu, loss::Loss, problem::Problem, run::Fitting, set::Set,
};

const SHIFT: &str = "residual quantile";
/// The share of μ² that it takes, and that of ε where δ is 0.
const SHARE: f64 = 0.03;
const PURE_SHARE: f64 = 0.05;
/// Rows times the question's μ from which on the answer is worth it: fewer rows cannot tell the level.
const ENOUGH: f64 = 300.0;
/// Residuals are told apart in units of the target's range: up to 1, in steps of 2⁻¹⁰.
const STEPS: i32 = 1 << 10;

/// The level, if a plan of this budget asks for the shift: public numbers alone decide.
fn level(problem: &Problem, shape: Shape, budget: Budget) -> Option<f64> {
    let Loss::SmoothQuantile { level, .. } = problem.loss else { return None };
    let free = problem.set == Set::Everything && problem.constant > 0.0;
    let known = (0.002..=0.998).contains(&level);
    let mu = match budget.is_pure() {
        true => PURE_SHARE * budget.epsilon(),
        false => SHARE.sqrt() * mu(problem, shape, budget),
    };
    (free && known && shape.rows as f64 * mu >= ENOUGH).then_some(level)
}

/// The release, where δ is above 0.
pub(super) fn stage(problem: &Problem, shape: Shape, budget: Budget) -> Option<Stage> {
    let level = level(problem, shape, budget)?;
    let mu = SHARE.sqrt() * mu(problem, shape, budget);
    let charge = PlannedRelease::quantile(SHIFT, level, mu, budget.neighbours());
    Some(Stage::new("level", 1, vec![charge]))
}

/// The same where δ is 0, and what it takes of `epsilon`.
pub(super) fn pure_stage(
    problem: &Problem,
    shape: Shape,
    budget: Budget,
    epsilon: f64,
) -> Option<(Stage, f64)> {
    let (level, share) = (level(problem, shape, budget)?, PURE_SHARE * epsilon);
    let charge = PlannedRelease::pure_quantile(SHIFT, level, share, budget.neighbours());
    Some((Stage::new("level", 1, vec![charge]), share))
}

/// Moves the constant's weight by the answer, if the plan has the question.
pub(super) fn apply(
    run: &mut Fitting<'_, '_>,
    examples: &Private<Examples<'_>>,
    weights: &mut [f64],
) -> Result<(), Error> {
    let Some(level) = level(run.problem, run.shape, run.plan.budget) else { return Ok(()) };
    let threads = run.releaser.threads();
    let at = |k: i32| f64::from(k) / f64::from(STEPS);
    // Grids have no negative numbers: all are moved up by 1.
    let grid = Bins::new((0..=2 * STEPS).map(at).collect());
    let counts = examples.as_ref().map(|examples| {
        let residuals = examples.residuals(weights);
        tally(&residuals, grid.bins(), |r| grid.bin((r + 1.0).clamp(0.0, 2.0)), threads)
    });
    let found = run.releaser.quantile(SHIFT, level, Histogram::new(counts))? as i32;
    // The middle of the bin that holds the quantile.
    let shift = at(found) - 1.0 - 0.5 * at(1);
    if let Some(last) = weights.last_mut() {
        *last += shift / run.constant;
    }
    Ok(())
}
