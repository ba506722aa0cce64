//! The linear arm: a minimiser on rows whose radius grows with what the budget can pay.
//!
//! The noise of objective perturbation on rows clipped to R = ρ·rms adds about ρ²d²/(2v(nμ)²) to the log loss (docs/spec/default.md#9.1):
//! the standard deviation of b is R/μ, a score has curvature v = p(1 - p) of its class, and rms²/d is the mean square of a feature. ρ lets
//! that be [`NOISE`]: a small radius buys less noise and clips rows, a large one clips none.
//!
//! The ridge Λ is a multiple of R², too. With it the mean loss at the minimiser is at most Λ‖w‖²/2n above the best w, whatever the table:
//! where scores have a mean square of 4, ‖w‖²·rms²/d is 4 and that is 2Λd/(n·rms²). ρ lets this be no more than [`NOISE`] either, which a
//! large radius on few rows would exceed: most of all where classes are nearly separable, and v next to nothing.
//!
//! Rows on a sphere have lost one of d directions, so that a larger radius can return about one part in d of what features say: noise and
//! ridge may cost [`NOISE`] over d. The specification has no such factor; ijcnn1 (22 features), where the sphere is the better model, shows
//! why it is needed.
use quietly_core::{
    budget::Budget,
    mechanism::{Mechanism, Stage, noise_of_steps},
};
use quietly_engine::{algorithm::Shape, error::Error, linalg::norm};

use super::{Rows, descent, offsets};
use crate::{
    design_matrix::{Examples, Features, Shape as RowShape},
    loss::Loss,
    objective_perturbation::{self as perturbed, MINIMISER, Minimised, STAGE, charged_derivative},
    problem::Problem,
    run::{Fitting, Weights},
    standardise::{self, Asked, Moments},
};

/// τ: what noise may add to the log loss where there is one feature.
const NOISE: f64 = 0.001;
/// The least and the largest ρ: the radius over the root mean square of the rows' norms.
const RHO: (f64, f64) = (0.7, 3.0);
/// nμ per feature from which on scores are shrunk towards the classes' shares: below, Λ keeps the model small.
const SHRUNK_FROM: f64 = 10.0;
/// The largest share of a class for which a descent runs instead of the minimiser: a released one must exceed it by so many standard
/// deviations of its noise. Near it a descent loses little if it is wrong, and the minimiser much.
const EVEN: f64 = 0.65;
const DOUBT: f64 = 2.0;

/// What is planned of an arm.
pub(super) struct Arm<'a> {
    /// What the names of its releases begin with.
    pub name: &'static str,
    pub problem: &'a Problem,
    pub shape: Shape,
    /// The share of μ² that it has.
    pub share: f64,
}

impl Arm<'_> {
    /// The releases, where the budget is worth `mu` for a row that is there or not, and the minimiser has `noise` if it has all of the
    /// budget; with so many steps of a descent that may run instead.
    pub(super) fn stages(
        &self,
        budget: Budget,
        mu: f64,
        noise: f64,
        descent: Option<u64>,
    ) -> Vec<Stage> {
        let part = self.share.sqrt();
        let (mu, epsilon, noise) = (part * mu, part * budget.epsilon(), noise / part);
        let mut stages = standardise::stages_of_classes(self.name, mu, budget.neighbours());
        if let (Some(steps), Loss::Softmax { .. }) = (descent, self.problem.loss) {
            // Without a radius, and without a minimiser.
            stages.pop();
            stages.push(descent::stage(steps, noise * (steps as f64).sqrt()));
            return stages;
        }
        let solved =
            perturbed::stages_of(self.name, self.problem, self.shape, (budget, epsilon), mu, noise);
        let steps = descent.map(|steps| {
            let noise = noise_of_steps(&solved[0].releases[0], steps);
            descent::stage(steps, noise).instead_of(STAGE)
        });
        stages.extend(solved);
        stages.extend(steps);
        stages
    }
}

/// Fits the arm that `run` names to the rows.
pub(super) fn fit(
    run: &mut Fitting<'_, '_>,
    rows: &Rows<'_>,
    descent: Option<u64>,
) -> Result<Weights, Error> {
    let problem = run.problem;
    let (width, longest) = (run.shape.width, problem.longest);
    let asked = Asked {
        arm: run.arm,
        features: &rows.features,
        target: &rows.target,
        width,
        longest,
        rows: run.rows,
        sides: false,
    };
    let moments = Moments::ask(run.releaser, &asked)?;
    let largest = rows.shares.iter().copied().fold(0.0, f64::max);
    run.offsets = offsets(problem.loss, &rows.shares);
    if let Some(steps) = descent {
        let instead = largest - DOUBT * rows.doubt <= EVEN;
        if run.releaser.is_undecided(STAGE) {
            run.releaser.choose(STAGE, instead);
        }
        if instead || problem.loss != Loss::Logistic {
            return descent::fit(run, rows, moments.held_map(longest), steps);
        }
    }
    let mut map = moments.map();
    let rms = moments.size(run.releaser, &asked, &map)?;
    run.variance = largest * (1.0 - largest);
    // The radius bounds rows; the norm that the questions were cut to need not.
    (map.cut, map.radius) = (longest, rho(run) * rms);
    run.constant = problem.constant * map.radius;
    run.radius = map.radius * (1.0 + problem.constant * problem.constant).sqrt() * (1.0 + 1e-12);
    let shape = RowShape { width, constant: run.constant, l1: None, radius: run.radius };
    let threads = run.releaser.threads();
    let mapped = rows
        .features
        .as_ref()
        .zip(rows.target.as_ref())
        .map(|(features, target)| (map.rows(*features, target.len(), threads), target));
    let examples = mapped.as_ref().map(|(rows, target)| {
        Examples::new(shape, Features::Dense(rows), (*target).clone(), threads)
    });
    let mut found = perturbed::minimise(run, &examples)?;
    if run.rows / noise_over_radius(run) >= SHRUNK_FROM * width as f64 {
        shrink(&mut found, run, &rows.shares, rms);
    }
    Ok(run.weights(&found.weights, Some(map)))
}

/// The standard deviation of b over the radius: 1/μ.
fn noise_over_radius(run: &Fitting<'_, '_>) -> f64 {
    let glm =
        run.problem.glm(run.shape.width, run.problem.longest).expect("a plan that was checked");
    match run.releaser.planned(&run.named(MINIMISER)) {
        Mechanism::ObjectivePerturbation { noise, derivative, .. } => {
            noise * charged_derivative(derivative, glm, run.plan.budget.neighbours())
        }
        other => unreachable!("a minimiser is not planned as {other:?}"),
    }
}

/// ρ of docs/spec/default.md#9.1 with τ/d in the place of τ, and not so large that the ridge could cost more than noise may.
fn rho(run: &Fitting<'_, '_>) -> f64 {
    let (rows, width) = (run.rows, run.shape.width as f64);
    let most = NOISE / width;
    let signal = rows / (noise_over_radius(run) * width);
    let of_noise = (2.0 * run.variance * most).sqrt() * signal;
    let of_ridge = (most * rows / (2.0 * width * perturbed::least_ridge(run))).sqrt();
    of_noise.min(of_ridge).clamp(RHO.0, RHO.1)
}

/// Shrinks the weights of features by what is known of their noise, so that scores come nearer to those of the shares.
fn shrink(found: &mut Minimised, run: &Fitting<'_, '_>, shares: &[f64], rms: f64) {
    let width = run.shape.width;
    let square = rms * rms / width as f64;
    let of_outputs: &[f64] = if run.offsets.len() == 1 { &shares[1..] } else { shares };
    // The noise of a weight, squared: over the curvature that rows and Λ give it.
    let noise = |p: &f64| {
        let curvature = run.rows * p * (1.0 - p) * square + found.strong;
        (found.deviation / curvature).powi(2)
    };
    let noise = width as f64 * of_outputs.iter().map(noise).sum::<f64>();
    let features = |weights: &[f64]| norm(&weights[..width]).powi(2);
    let energy: f64 = found.weights.chunks_exact(width + 1).map(features).sum();
    let kept = (1.0 - noise / energy.max(1e-300)).max(0.0);
    for weights in found.weights.chunks_exact_mut(width + 1) {
        weights[..width].iter_mut().for_each(|w| *w *= kept);
    }
}
