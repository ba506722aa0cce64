//! DP-GD, DP-SGD and Frank–Wolfe: noisy sums of clipped gradients.
//!
//! DP-SGD: Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar, Zhang, *Deep Learning with Differential Privacy*, CCS 2016. DP-GD: Bassily,
//! Smith, Thakurta, *Private Empirical Risk Minimization*, FOCS 2014. Frank–Wolfe: Talwar, Thakurta, Zhang, *Nearly Optimal Private
//! LASSO*, NeurIPS 2015; Gaussian noise in place of a choice by the exponential mechanism, which it beats after three steps.
//!
//! [`query`](super::query) proves what a row can move: what it adds to a sum at a point of the set. All points here are such points:
//! projected, or between points of it.
//!
//! All else is post-processing: a step is a function of what was released, and so is the mean of the last half.
use quietly_core::{
    budget::Budget,
    mechanism::{PlannedRelease, Sampler, Stage},
    progress::report,
    release::{Released, Releaser},
};
use quietly_engine::{
    algorithm::{Access, Shape},
    backend::{Backend, Batch, run_query},
    descent::{At, Average, ClippedGradient, Descent, FixedClip, StepSum, Update},
    error::Error,
};
use serde::{Deserialize, Serialize};

use super::{
    constants::Constants,
    fit::{ConvexMethod, check_not_scaled},
    problem::Problem,
    query::{ConvexQuery, GradientSum, Statistic},
    run::Fitting,
    set::Set,
};

/// The question of every step.
pub const GRADIENT: &str = "sum of clipped gradients";
/// Steps of a descent, unless one asks otherwise.
const STEPS: u64 = 100;
/// The chance of a row to be in a step of DP-SGD: a multiple of 2⁻³².
const RATE: f64 = 429_496_730.0 / 4_294_967_296.0;

/// Descent along noisy sums of clipped gradients.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "method", rename_all = "kebab-case")]
pub enum NoisyGradients {
    /// Every row in every step.
    DpGd,
    /// Poisson samples.
    DpSgd {
        /// The chance of a row to be in a step: a multiple of 2⁻³².
        rate: f64,
    },
    /// Steps towards the lowest vertex of the set.
    FrankWolfe,
}

impl NoisyGradients {
    /// DP-SGD at the usual rate.
    pub const DP_SGD: Self = NoisyGradients::DpSgd { rate: RATE };
}

impl ConvexMethod for NoisyGradients {
    fn sampler(&self, problem: &Problem, _: Shape) -> Sampler {
        match *self {
            NoisyGradients::DpSgd { rate } => {
                Sampler::Poisson { steps: problem.steps.unwrap_or(1), rate }
            }
            NoisyGradients::DpGd | NoisyGradients::FrankWolfe => Sampler::FullBatch,
        }
    }

    fn stages(&self, problem: &Problem, _: Shape, _: Budget, noise: f64) -> Vec<Stage> {
        let steps = problem.steps.unwrap_or(1);
        vec![Stage::new("descent", steps, vec![PlannedRelease::sum(GRADIENT, noise)])]
    }

    fn check(&self, problem: &Problem, _: Shape, budget: Budget) -> Result<(), Error> {
        check_not_scaled(problem)?;
        budget.unless_pure()?;
        let got = "a descent without steps";
        Error::ensure(problem.steps.is_some(), "plan", "as it was planned", got)
    }

    fn access(&self) -> Access {
        Access::Sums
    }

    fn solve_sums(
        &self,
        run: &mut Fitting<'_, '_>,
        backend: &mut dyn Backend,
    ) -> Result<Vec<f64>, Error> {
        match self {
            NoisyGradients::FrankWolfe => frank_wolfe(run, backend),
            _ => fit(run, backend),
        }
    }
}

/// Checks a problem for one of these methods and gives it its steps; the whole budget is worth `mu`. Returns
/// warnings.
pub fn plan(
    method: NoisyGradients,
    problem: &mut Problem,
    shape: Shape,
    budget: Budget,
    mu: f64,
) -> Result<Vec<String>, Error> {
    budget.unless_pure()?;
    let (width, mut warnings) = (shape.width, Vec::new());
    let mut steps = problem.steps.unwrap_or(STEPS);
    let constants = problem.constants(width, problem.longest)?;
    if method == NoisyGradients::FrankWolfe {
        let want = "bounded: `constraint` l1 with a `radius`, or a simplex";
        Error::ensure(problem.set != Set::Everything, "set of weights", want, "everything")?;
        let want = "0 for frank-wolfe: an L1 ball does the same";
        Error::ensure(problem.regulariser.lasso == 0.0, "lasso", want, problem.regulariser.lasso)?;
        problem.glm(width, problem.longest)?;
        let few = few_steps(problem, &constants, width, shape.rows as f64 * mu);
        steps = problem.steps.unwrap_or(few);
    }
    Error::ensure((1..=100_000).contains(&steps), "steps", "from 1 to 100000", steps)?;
    if let Some(step) = problem.step_size {
        Error::ensure(step > 0.0 && step < 1e9, "step size", "above 0 and below 1e9", step)?;
    }
    if problem.set == Set::Everything && problem.step_size.is_none() {
        warnings.push(
            "the weights are unbounded: step sizes assume scores of about 2. A constraint would give better ones."
                .into(),
        );
    }
    problem.steps = Some(steps);
    Ok(warnings)
}

/// 3 to 10: what the bound 2βD²/T + √T·B·G·√(2 ln 2d)/(nμ) is least at.
fn few_steps(problem: &Problem, constants: &Constants, width: usize, units: f64) -> u64 {
    let size = problem.size(width);
    let smooth = constants.smooth.unwrap_or(f64::INFINITY);
    let curved = 2.0 * smooth * problem.set.diameter(size).powi(2);
    let widest = problem.set.norms(size).linf;
    let noisy = widest * constants.diameter * (2.0 * (2.0 * size as f64).ln()).sqrt() / units;
    (2.0 * curved / noisy).powf(2.0 / 3.0).clamp(3.0, 10.0) as u64
}

/// Sums of clipped gradients over the rows of a step.
struct Gradient<'a> {
    backend: &'a mut dyn Backend,
    query: ConvexQuery,
    sum: GradientSum,
}

impl<'a> Gradient<'a> {
    fn new(run: &Fitting<'_, '_>, backend: &'a mut dyn Backend) -> Result<Self, Error> {
        let sum = GradientSum::new(run)?;
        let query = ConvexQuery::new(run, Statistic::GradientSum(sum.clone()));
        Ok(Gradient { backend, query, sum })
    }
}

impl ClippedGradient for Gradient<'_> {
    fn sum(&mut self, at: &At<'_>, releaser: &mut Releaser) -> Result<StepSum, Error> {
        let query = self.query.with(Statistic::GradientSum(self.sum.at(at.weights)));
        let sum = run_query(self.backend, releaser, &Batch::step(at.step), &query)?;
        Ok(StepSum { gradient: sum.sum(), norms: None })
    }
}

/// Runs all steps with one clip.
fn descend(
    run: &mut Fitting<'_, '_>,
    mut gradient: Gradient<'_>,
    update: &mut dyn Update,
    average: Average,
) -> Result<Vec<f64>, Error> {
    let start = run.problem.set.center(run.problem.size(run.shape.width));
    let steps = run.problem.steps.expect("was planned");
    let clip = &mut FixedClip(gradient.sum.clip());
    let mut descent = Descent { release: GRADIENT, steps: 0..steps, clip, update, average };
    let watch = &mut *run.watch;
    let report = &mut |t| Ok(report(watch, "step", t + 1, steps)?);
    descent.run(start, &mut gradient, run.releaser, report)
}

/// The weights after a descent.
fn fit(run: &mut Fitting<'_, '_>, backend: &mut dyn Backend) -> Result<Vec<f64>, Error> {
    let (problem, gradient) = (run.problem, Gradient::new(run, backend)?);
    let steps = problem.steps.expect("was planned");
    let seen = run.rows * run.plan.sampler.share();
    let sensitivity = gradient.sum.sensitivity();
    let deviation = run.releaser.noise(GRADIENT) * sensitivity.bound * sensitivity.unit / seen;
    let step = match problem.step_size {
        Some(step) => step,
        None => step_size(run, steps as f64, deviation)?,
    };
    let mut update = ProximalStep { problem, rows: seen, step };
    let average = Average::last_half(steps).dividing_first();
    let mut mean = descend(run, gradient, &mut update, average)?;
    // The mean of points of the set, but for rounding.
    problem.set.project(&mut mean);
    Ok(mean)
}

/// A step along the mean gradient, the regulariser's proximal step, and back into the set.
struct ProximalStep<'a> {
    problem: &'a Problem,
    /// About how many rows a step sees.
    rows: f64,
    step: f64,
}

impl Update for ProximalStep<'_> {
    fn step(&mut self, _step: u64, w: &mut [f64], released: &Released) {
        let mut g: Vec<f64> = released.values.iter().map(|g| g / self.rows).collect();
        self.problem.regulariser.add_gradient(w, &mut g);
        w.iter_mut().zip(g).for_each(|(w, g)| *w -= self.step * g);
        self.problem.regulariser.prox_in(self.step, &self.problem.set, w);
    }
}

/// docs/spec/convex.md#6.1: T steps of A/T, where D²/2A and what noise of this deviation in every step
/// adds along curved directions are
/// in balance; no longer than 1/β. Along corners there is no balance but that of the plain bound.
fn step_size(run: &Fitting<'_, '_>, steps: f64, deviation: f64) -> Result<f64, Error> {
    let (problem, width) = (run.problem, run.shape.width);
    let parameters = problem.parameters(width, run.radius, 1.0)?;
    let size = parameters.size as f64;
    // Where nothing bounds the weights: those that give a row of average direction a score of 2.
    let guess = 2.0 * size.sqrt() / run.radius;
    let distance = if parameters.distance.is_finite() { parameters.distance } else { guess };
    let Constants { lipschitz, smooth, .. } = parameters.constants;
    let Some(smooth) = smooth.filter(|&s| s > 0.0) else {
        let noise = size * deviation * deviation;
        return Ok(distance / (steps * (lipschitz * lipschitz + noise)).sqrt());
    };
    // The trace of a row's curvature: one direction, or for several outputs at most twice the largest of them.
    let trace = if problem.loss.outputs() > 1 { 2.0 * smooth } else { smooth };
    let whole = (distance * distance * steps / (2.0 * trace * deviation * deviation)).cbrt();
    Ok((whole / steps).min(1.0 / parameters.smoothness))
}

/// The weights after some steps to vertices.
fn frank_wolfe(run: &mut Fitting<'_, '_>, backend: &mut dyn Backend) -> Result<Vec<f64>, Error> {
    let (problem, gradient) = (run.problem, Gradient::new(run, backend)?);
    let vertex = vec![0.0; problem.size(run.shape.width)];
    let mut update = VertexStep { problem, rows: run.rows, vertex };
    let mut w = descend(run, gradient, &mut update, Average::Last)?;
    problem.set.project(&mut w);
    Ok(w)
}

/// Step t goes 2/(t + 2) of the way to the vertex that the mean gradient is lowest at.
struct VertexStep<'a> {
    problem: &'a Problem,
    rows: f64,
    vertex: Vec<f64>,
}

impl Update for VertexStep<'_> {
    fn step(&mut self, step: u64, w: &mut [f64], released: &Released) {
        let mut g: Vec<f64> = released.values.iter().map(|g| g / self.rows).collect();
        self.problem.regulariser.add_gradient(w, &mut g);
        self.problem.set.lowest_point(&g, &mut self.vertex);
        let part = 2.0 / (step as f64 + 2.0);
        w.iter_mut().zip(&self.vertex).for_each(|(w, v)| *w += part * (v - *w));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rate that is charged is the one that is drawn.
    #[test]
    fn the_rate_is_a_multiple_of_two_to_the_minus_32() {
        let chance = RATE * 2f64.powi(32);
        assert_eq!(chance.trunc(), chance);
    }
}
