//! One phase of localisation: a pass or a minimiser over disjoint rows, released, starting where the last phase ended.
//!
//! Su, Hu, Wang, *Faster Rates of Differentially Private Stochastic Convex Optimization*, JMLR 2024, after Feldman, Koren, Talwar, *Private
//! Stochastic Convex Optimization: Optimal Rates in Linear Time*, STOC 2020.
//!
//! # Proof: localisation
//!
//! Rows belong to phases by their place in the table, so a replaced row is seen by one phase. Given what was released
//! before, that phase is a Gaussian release of a point that a replaced row moves by at most Δ; all later phases see the
//! same rows and the same past. So the price of all phases is that of one (adaptive parallel composition). Centres, radii and
//! starts are released or public.
//!
//! # Proof: stability of one pass
//!
//! Step t takes w to Π(w - η(Σ_batch ∇ℓ/b + ∇r)), r being λ-strongly convex and all of it β-smooth on the set. For η ≤ 2/(β + λ) the map
//! from w shrinks distances by 1 - ηλ: it is ∫(I - η∇²h) along the segment, whose eigenvalues lie in [1 - ηβ, 1 - ηλ], and
//! Π does not stretch. A replaced row of step j moves w by at most ηG/b there, where G bounds the difference of two rows'
//! gradients at one point. So the mean of w_1 to w_(T+1) moves by at most
//!
//! G/(λb(T+1))·(1 - (1 - ηλ)^T), for λ = 0 Gη/b·T/(T+1),
//!
//! with j = 1 the worst. λ comes from r alone, as a null record has no other. Starts must lie in the set, where the
//! constants hold: every release is projected (the published algorithms do not, and their proofs fail there).
//! Rounding moves each step by at most u: 2Tu more.
//!
//! # Proof: stability of a minimiser
//!
//! F(w) = Σ ℓ + n·r + ‖w - c‖²/η over n rows is (2/η + nλ)-strongly convex. At the two minimisers w*, w'* optimality gives
//! (2/η + nλ)‖w* - w'*‖² ≤ ⟨∇ℓ(w'*, z) - ∇ℓ(w'*, z'), w'* - w*⟩ ≤ G‖w* - w'*‖. What is found lies within a of it: Δ = G/(2/η + nλ) + 2a.
use quietly_core::{progress::report, release::Releaser};
use quietly_data::Private;
use quietly_engine::error::Error;

use crate::{
    ball_intersection::{self, Ball, BallIntersection},
    constants::Constants,
    design_matrix::{self, Examples},
    glm::Glm,
    minimiser::{Objective, Terms},
    nonsmooth_erm::{Dual, NonsmoothSum},
    problem::{Problem, ProblemParameters},
    projection::norm,
    run::Fitting,
};

/// The question that every phase asks.
pub const PHASE: &str = "iterate of a phase";

/// One phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    /// How many rows it takes, after those of the phases before.
    pub rows: usize,
    /// η of a row: a batch of b rows takes a step of bη.
    pub step: f64,
    /// Rows to a step; none for a minimiser.
    pub batch: Option<usize>,
    /// 1/γ of ‖w - centre‖²/2γ, added to every row's loss.
    pub pull: f64,
    /// Weights stay within this of the centre.
    pub ball: Option<f64>,
    /// Its start is the centre of this phase and those after it.
    pub moves_centre: bool,
}

impl Phase {
    /// Steps of its pass.
    fn steps(&self) -> usize {
        self.batch.map_or(0, |batch| self.rows.div_ceil(batch))
    }

    /// How far a replaced row moves the mean of a pass, without rounding. See the module.
    pub fn moved(&self, parameters: &ProblemParameters) -> f64 {
        let steps = self.steps() as f64;
        let Some(batch) = self.batch else { return 0.0 };
        let (batch, strong) = (batch as f64, parameters.strong_convexity + self.pull);
        let (diameter, step) = (parameters.constants.diameter, self.step * batch);
        let flat = diameter * step / batch * steps / (steps + 1.0);
        if strong == 0.0 {
            return flat;
        }
        // 1 - (1 - ηλ)^T without loss; not below.
        let shrunk = -(steps * (-step * strong).ln_1p()).exp_m1();
        (diameter * shrunk / (strong * batch * (steps + 1.0)) * (1.0 + 1e-12)).min(flat)
    }

    /// Whether it has rows, and a step.
    pub fn is_sound(&self) -> bool {
        self.rows > 0 && self.step > 0.0 && self.step.is_finite() && self.pull.is_finite()
    }

    /// Whether the theorems above are about it: its step contracts, or it is a minimiser.
    pub fn suits(&self, parameters: &ProblemParameters) -> bool {
        let Some(batch) = self.batch else { return true };
        let smoothness = parameters.smoothness + parameters.strong_convexity + 2.0 * self.pull;
        self.step * batch as f64 * smoothness <= 2.0 * (1.0 + 1e-12)
    }

    /// Λ of its minimiser: of all its rows and the pull to its start.
    fn strong(&self, parameters: &ProblemParameters) -> f64 {
        self.rows as f64 * parameters.strong_convexity + 2.0 / self.step
    }

    /// Its minimiser where the loss has a corner.
    pub fn nonsmooth_sum(&self, problem: &Problem, parameters: &ProblemParameters) -> NonsmoothSum {
        NonsmoothSum {
            loss: problem.loss,
            radius: parameters.radius,
            size: parameters.size,
            strong: self.strong(parameters),
            rows: self.rows as f64,
            far: problem.set.norms(parameters.size).l2,
        }
    }
}

/// The weights after all phases.
pub fn fit(
    run: &mut Fitting<'_, '_>,
    examples: &Private<Examples<'_>>,
    phases: &[Phase],
    parameters: &ProblemParameters,
) -> Result<Vec<f64>, Error> {
    let (problem, size) = (run.problem, parameters.size);
    let mut w = problem.set.center(size);
    let (mut centre, mut from) = (w.clone(), 0);
    for (done, phase) in phases.iter().enumerate() {
        report(run.watch, "phase", done as u64 + 1, phases.len() as u64)?;
        if phase.moves_centre {
            centre.clone_from(&w);
        }
        let ball = phase.ball.map(|radius| Ball { centre: centre.clone(), radius });
        let set = BallIntersection { set: problem.set.clone(), ball };
        let pass =
            Pass { problem, glm: run.glm()?, phase, parameters, set: &set, centre: &centre, from };
        let (point, apart) = match phase.batch {
            Some(_) => (examples.as_ref().map(|e| pass.mean(e, &w)), pass.apart()),
            None => pass.minimiser(run, examples, &w)?,
        };
        w = run.release(PHASE, point, apart)?;
        set.project(&mut w);
        from += phase.rows;
    }
    Ok(w)
}

/// A phase on its rows.
struct Pass<'a> {
    problem: &'a Problem,
    glm: Glm,
    phase: &'a Phase,
    parameters: &'a ProblemParameters,
    set: &'a BallIntersection,
    centre: &'a [f64],
    from: usize,
}

impl Pass<'_> {
    /// The mean of w_1 to w_(T+1).
    fn mean(&self, examples: &Examples<'_>, start: &[f64]) -> Vec<f64> {
        let Phase { rows, step, batch, pull, .. } = *self.phase;
        let (mut w, mut sum) = (start.to_vec(), start.to_vec());
        // Rows that should be there and are not are null records.
        let end = self.from + rows;
        let batch = batch.unwrap_or(1);
        let step = step * batch as f64;
        for t in 0..self.phase.steps() {
            let first = self.from + t * batch;
            let rows = examples.at(first..end.min(first + batch));
            let mut g = examples.gradient(self.glm, &w, rows);
            g.iter_mut().for_each(|g| *g /= batch as f64);
            self.problem.regulariser.add_gradient(&w, &mut g);
            for ((w, g), c) in w.iter_mut().zip(g).zip(self.centre) {
                *w -= step * (g + pull * (*w - c));
            }
            self.problem.regulariser.prox(step, self.set, &mut w);
            sum.iter_mut().zip(&w).for_each(|(s, w)| *s += w);
        }
        let count = (self.phase.steps() + 1) as f64;
        sum.iter().map(|s| s / count).collect()
    }

    /// How far apart the means of two neighbours are, rounding included.
    fn apart(&self) -> f64 {
        let (steps, size) = (self.phase.steps() as f64, self.parameters.size);
        let Constants { lipschitz, .. } = self.parameters.constants;
        let batch = self.phase.batch.unwrap_or(1) as f64;
        let step = self.phase.step * batch;
        let far = self.set.norms(size).l2;
        let gradient =
            design_matrix::rounding(self.glm, self.parameters.radius, size, batch, far) / batch;
        let reach = far + step * (lipschitz + (self.parameters.smoothness + self.phase.pull) * far);
        // What is projected lies within 2·far + … of the ball's centre: both are in the set.
        let away = 2.0 * (reach + step * self.phase.pull * far);
        let ball =
            if self.set.ball.is_some() { ball_intersection::ERROR * away.max(1.0) } else { 0.0 };
        let u = step * gradient + 32.0 * (size as f64 + 16.0) * f64::EPSILON * reach + ball;
        // The mean itself is a running sum.
        self.phase.moved(self.parameters) + 2.0 * steps * (u + f64::EPSILON * reach)
    }

    /// The minimiser of a phase, and how far apart those of two neighbours are.
    fn minimiser(
        &self,
        run: &mut Fitting<'_, '_>,
        examples: &Private<Examples<'_>>,
        start: &[f64],
    ) -> Result<(Private<Vec<f64>>, f64), Error> {
        let rows = self.phase.rows as f64;
        let strong = self.phase.strong(self.parameters);
        let (size, diameter) = (self.parameters.size, self.parameters.constants.diameter);
        let radius = self.parameters.radius;
        let far = self.set.norms(size).l2;
        let linear_term: Vec<f64> = start.iter().map(|c| -2.0 / self.phase.step * c).collect();
        let lasso = rows * self.problem.regulariser.lasso;
        if !self.problem.loss.is_smooth() {
            return self.nonsmooth_minimiser(run, examples, &linear_term, lasso);
        }
        let power_term = self.problem.regulariser.power_term(rows, far);
        let terms =
            Terms { glm: self.glm, radius, size: size / self.glm.outputs(), strong, power_term };
        // Near enough for half a per cent, if 53 bits can show it.
        let least = terms.least_distance_within(rows, far, norm(&linear_term));
        let near = (0.0025 * diameter / strong).max(least);
        let (from, set, watch) = (self.from, &self.problem.set, &mut *run.watch);
        let found = examples.as_ref().map(|examples| {
            let rows = examples.at(from..from + self.phase.rows);
            let objective = Objective { terms, examples, rows, linear_term: &linear_term };
            let mut keep_on = |pass: u64| report(watch, "minimising", pass, pass.max(30));
            objective.minimise_within(set, lasso, far, near, &mut keep_on).map(|near| near.point)
        });
        Ok((Releaser::unless_interrupted(found)?, diameter / strong + 2.0 * near))
    }

    /// The same for a loss with a corner.
    fn nonsmooth_minimiser(
        &self,
        run: &mut Fitting<'_, '_>,
        examples: &Private<Examples<'_>>,
        linear_term: &[f64],
        lasso: f64,
    ) -> Result<(Private<Vec<f64>>, f64), Error> {
        let nonsmooth = self.phase.nonsmooth_sum(self.problem, self.parameters);
        let diameter = self.parameters.constants.diameter;
        let reach = nonsmooth.reach(diameter);
        let (from, set, watch) = (self.from, &self.problem.set, &mut *run.watch);
        let found = examples.as_ref().map(|examples| {
            let rows = examples.at(from..from + self.phase.rows);
            let dual = Dual { nonsmooth, examples, rows, linear_term, set, lasso };
            let mut keep_on = |pass: u64| report(watch, "minimising", pass, pass.max(30));
            dual.minimise(reach, &mut keep_on).map(|near| near.point)
        });
        Ok((Releaser::unless_interrupted(found)?, diameter / nonsmooth.strong + 2.0 * reach.near))
    }
}

#[cfg(test)]
mod tests;
