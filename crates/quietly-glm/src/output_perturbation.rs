//! Output perturbation (SC-PSGD and GD-OP): noise on the last iterate of non-private gradient steps.
//!
//! Wu, Li, Kumar, Chaudhuri, Jha, Naughton, *Bolt-on Differential Privacy for Scalable Stochastic Gradient Descent-based
//! Analytics*, SIGMOD 2017. GD-OP is the case of one batch of all rows.
//!
//! # Proof: output perturbation
//!
//! K passes of m steps over batches of b rows, taken by their place: a replaced row is in one step of every pass. As in
//! [`phases`](super::phases), a step of η ≤ 2/(β + λ) shrinks distances by ρ = 1 - ηλ, and a replaced row moves the step it is in by at
//! most ηG/b. The move of pass p happens no later than step pm and is followed by at least (K - p)m other steps, so that
//! the last point moves by at most
//!
//! Δ = (Gη/b)·Σ_p ρ^((K-p)m) = (Gη/b)·(1 - ρ^(Km))/(1 - ρ^m), for λ = 0 KGη/b.
//!
//! *Falling steps* η_t = min(1/β, 1/λt), T = Km. A move at step t is at most η_t·G/b and shrinks by Π(1 - η_s·λ) over s > t. For s above
//! β/λ the factors are 1 - 1/s, whose product from max(t, ⌊β/λ⌋) on is max(t, ⌊β/λ⌋)/T; η_t is at most 1/λt and 1/β, so each move ends
//! below G/(λbT), if T is above β/λ, and otherwise starts below it. K of them: Δ = G/(λbm).
//!
//! λ is the ridge's alone: a null record has no other. Rounding moves each step by at most u: 2Tu more. The one
//! release has noise for all of that, and is paid for once.
//!
//! Corrected: G for the published 2L, exact noise for the published √(2 ln(1.25/δ)), rounding, points that stay in the set.
use quietly_accounting::Neighbours;
use quietly_core::{
    budget::Budget,
    mechanism::{PlannedRelease, Stage},
    progress::report,
};
use quietly_data::Private;
use quietly_engine::{algorithm::Shape, error::Error};
use serde::{Deserialize, Serialize};

use super::{
    constants::Constants,
    design_matrix::{self, Examples},
    fit::{ConvexMethod, check_not_scaled},
    glm::Glm,
    problem::Problem,
    problem::ProblemParameters,
    run::Fitting,
};

/// The one question.
pub const POINT: &str = "last iterate";
/// Rows to a step of SC-psgd.
const BATCH: usize = 50;
/// Passes of SC-psgd, unless one asks otherwise.
const PASSES: u64 = 5;
/// More steps of GD-OP than this take too long.
const MOST_STEPS: f64 = 400.0;

/// Output perturbation: the last point of a descent is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "method", rename_all = "kebab-case")]
pub enum OutputPerturbation {
    /// Passes of minibatches.
    ScPsgd,
    /// Full-batch steps.
    GdOp,
}

impl ConvexMethod for OutputPerturbation {
    fn stages(&self, _: &Problem, _: Shape, _: Budget, noise: f64) -> Vec<Stage> {
        vec![Stage::new("point", 1, vec![PlannedRelease::sum(POINT, noise)])]
    }

    fn pure_stages(&self, _: &Problem, _: Shape, budget: Budget, epsilon: f64) -> Vec<Stage> {
        let charge = PlannedRelease::laplace(POINT, epsilon, budget.neighbours());
        vec![Stage::new("point", 1, vec![charge])]
    }

    fn check(&self, problem: &Problem, shape: Shape, budget: Budget) -> Result<(), Error> {
        check_not_scaled(problem)?;
        check(problem, shape, budget)
    }

    fn reads_once(&self, problem: &Problem) -> bool {
        *self == OutputPerturbation::ScPsgd && problem.steps == Some(1)
    }

    fn solve(
        &self,
        run: &mut Fitting<'_, '_>,
        examples: Private<Examples<'_>>,
    ) -> Result<Vec<f64>, Error> {
        fit(*self, run, &examples)
    }
}

/// What these methods need of a problem.
pub fn check(problem: &Problem, shape: Shape, budget: Budget) -> Result<(), Error> {
    let relation = budget.neighbours();
    let want =
        "replace-one: batches use rows by their place, which an added or removed row would shift";
    Error::ensure(relation == Neighbours::ReplaceOne, "neighbours", want, relation.name())?;
    let parameters = problem.parameters(shape.width, problem.longest, 1.0)?;
    let want = "bounded: `constraint` l2 with a `radius`, or l1";
    Error::ensure(parameters.distance.is_finite(), "set of weights", want, "everything")?;
    let want = "smooth (phased-erm fits nonsmooth losses)";
    Error::ensure(parameters.smoothness.is_finite(), "loss", want, "nonsmooth")?;
    let steps = problem.steps.unwrap_or(1);
    Error::ensure((1..=100_000).contains(&steps), "steps", "from 1 to 100000", steps)?;
    if let Some(step) = problem.step_size {
        let fine =
            step > 0.0 && step <= 2.0 / (parameters.smoothness + parameters.strong_convexity);
        let want =
            "above 0 and at most 2/(smoothness + ridge), where steps do not stretch distances";
        Error::ensure(fine, "step size", want, step)?;
    }
    Ok(())
}

/// How long steps are.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pace {
    Even(f64),
    /// min(1/β, 1/λt).
    Falling,
}

/// The steps of a run: public.
#[derive(Clone, Copy, Debug)]
struct Walk {
    passes: u64,
    /// Steps of a pass.
    steps: usize,
    batch: usize,
    pace: Pace,
}

impl Walk {
    /// docs/spec/convex.md#6.2. A, all steps together, balances D²/2A against what noise costs: along curved
    /// directions, and d-fold at the
    /// edge of the set.
    fn new(
        method: OutputPerturbation,
        problem: &Problem,
        parameters: &ProblemParameters,
        rows: usize,
        reach: f64,
    ) -> Self {
        let Constants { lipschitz, diameter, smooth } = parameters.constants;
        let trace = smooth.unwrap_or(0.0) * if problem.loss.outputs() > 1 { 2.0 } else { 1.0 };
        let edge = parameters.size as f64 * lipschitz / (4.0 * reach);
        let units = parameters.distance * rows as f64 * parameters.mu / diameter;
        let whole = (units * units / (2.0 * (trace + edge))).cbrt();
        let longest = 1.0 / parameters.smoothness;
        let even = |steps: f64| {
            let asked = problem.step_size.unwrap_or((whole / steps).min(longest));
            Pace::Even(asked.min(2.0 / (parameters.smoothness + parameters.strong_convexity)))
        };
        if method == OutputPerturbation::GdOp {
            let usual = (whole / longest).ceil().clamp(1.0, MOST_STEPS) as u64;
            let passes = problem.steps.unwrap_or(usual);
            return Walk { passes, steps: 1, batch: rows, pace: even(passes as f64) };
        }
        let batch = BATCH.min(rows);
        let (passes, steps) = (problem.steps.unwrap_or(PASSES), rows / batch);
        // Where even steps would be done with, falling ones are more exact.
        let falling = problem.step_size.is_none() && parameters.strong_convexity * whole > 1.0;
        let pace = if falling { Pace::Falling } else { even(passes as f64 * steps as f64) };
        Walk { passes, steps, batch, pace }
    }

    fn step(&self, t: u64, parameters: &ProblemParameters) -> f64 {
        match self.pace {
            Pace::Even(step) => step,
            Pace::Falling => (1.0 / parameters.smoothness)
                .min(1.0 / (parameters.strong_convexity * (t + 1) as f64)),
        }
    }

    fn count(&self) -> u64 {
        self.passes * self.steps as u64
    }

    /// How far a replaced row moves the last point, without rounding. See the module.
    fn moved(&self, parameters: &ProblemParameters) -> f64 {
        let (diameter, strong, batch) =
            (parameters.constants.diameter, parameters.strong_convexity, self.batch as f64);
        let times = match self.pace {
            Pace::Falling => {
                return diameter / (strong * batch * self.steps as f64) * (1.0 + 1e-12);
            }
            Pace::Even(_) if strong == 0.0 => self.passes as f64,
            Pace::Even(step) => {
                // (1 - ρ^(Km))/(1 - ρ^m) without loss; not below.
                let pass = self.steps as f64 * (-step * strong).ln_1p();
                let ratio = (self.passes as f64 * pass).exp_m1() / pass.exp_m1();
                (ratio * (1.0 + 1e-12)).min(self.passes as f64)
            }
        };
        diameter * self.step(0, parameters) / batch * times * (1.0 + 1e-12)
    }

    /// How far apart the last points of two neighbours are, rounding included.
    fn apart(&self, glm: Glm, parameters: &ProblemParameters, radius: f64, far: f64) -> f64 {
        let (size, step) = (parameters.size, self.step(0, parameters));
        let batch = self.batch as f64;
        let gradient = design_matrix::rounding(glm, radius, size, batch, far) / batch;
        let reach = far + step * (parameters.constants.lipschitz + parameters.smoothness * far);
        let u = step * gradient + 32.0 * (size as f64 + 16.0) * f64::EPSILON * reach;
        self.moved(parameters) + 2.0 * self.count() as f64 * u
    }

    /// Where pass `pass` leads from `w`.
    fn pass(
        &self,
        (problem, glm, parameters): (&Problem, Glm, &ProblemParameters),
        examples: &Examples<'_>,
        pass: u64,
        mut w: Vec<f64>,
    ) -> Vec<f64> {
        let batch = self.batch;
        for at in 0..self.steps {
            let step = self.step(pass * self.steps as u64 + at as u64, parameters);
            let rows = examples.at(at * batch..(at + 1) * batch);
            let mut g = examples.gradient(glm, &w, rows);
            g.iter_mut().for_each(|g| *g /= batch as f64);
            problem.regulariser.add_gradient(&w, &mut g);
            w.iter_mut().zip(g).for_each(|(w, g)| *w -= step * g);
            problem.regulariser.prox_in(step, &problem.set, &mut w);
        }
        w
    }
}

/// The weights.
fn fit(
    method: OutputPerturbation,
    run: &mut Fitting<'_, '_>,
    examples: &Private<Examples<'_>>,
) -> Result<Vec<f64>, Error> {
    let (problem, width) = (run.problem, run.shape.width);
    // A replaced row moves the point twice as far as noise is planned for.
    let parameters = problem.parameters(width, run.radius, 2.0 / run.noise(POINT))?;
    let (glm, far) = (run.glm()?, problem.set.norms(parameters.size).l2);
    // A table without rows is one without a gradient.
    let walk = Walk::new(method, problem, &parameters, (run.rows as usize).max(1), far);
    let apart = walk.apart(glm, &parameters, run.radius, far);
    let mut last = Private::new(problem.set.center(parameters.size));
    for pass in 0..walk.passes {
        report(run.watch, "pass", pass + 1, walk.passes)?;
        let both = last.zip(examples.as_ref());
        last = both.map(|(w, e)| walk.pass((problem, glm, &parameters), e, pass, w));
    }
    let mut w = run.release(POINT, last, apart)?;
    problem.set.project(&mut w);
    Ok(w)
}

#[cfg(test)]
mod tests;
