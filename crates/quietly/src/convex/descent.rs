//! DP-GD, DP-SGD and Frank–Wolfe: noisy sums of clipped gradients.
//!
//! DP-SGD: Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar, Zhang, *Deep Learning with Differential Privacy*, CCS 2016. DP-GD: Bassily,
//! Smith, Thakurta, *Private Empirical Risk Minimization*, FOCS 2014. Frank–Wolfe: Talwar, Thakurta, Zhang, *Nearly Optimal Private
//! LASSO*, NeurIPS 2015; Gaussian noise in place of a choice by the exponential mechanism, which it beats after three steps.
//!
//! # What a row can move
//!
//! Each gradient is held to norm C and becomes integers q, ‖q‖ ≤ C in units of the lattice ([`Examples::clipped`]): what a row
//! adds, under either relation, to a full sum and to a sample. A replaced row of a full sum moves it by ‖q - q'‖, at most 2C and
//! also at most (G + 2e)/h + √d: G bounds the difference of two gradients at one point of the set; holding a gradient leaves it
//! between 0 and itself, in the hull of all gradients, whose diameter is G too; e is what floating point does to one
//! gradient before it is rounded to the lattice of step h, which moves each of two vectors by √d/2. The smaller counts. G and e
//! hold for points of the set; all points here are: projected, or between points of it.
//!
//! All else is post-processing: a step is a function of what was released, and so is the mean of the last half.
use quietly_accounting::Neighbours;
use quietly_data::Private;
use quietly_noise::Stream;

use super::{
    asked::{Asked, What},
    coins::Coins,
    constants::Constants,
    examples::{self, Examples},
    glm::Glm,
    program::Program,
    run::Fitting,
    set::Set,
};
use crate::{
    charge::Sampler,
    error::Error,
    keeper::Keeper,
    lattice::Lattice,
    method::Method,
    plan::Plan,
    progress::tell,
    question::{Answer, Question},
    release::{Door, LatticeSum},
};

/// The question of every step.
pub(crate) const GRADIENT: &str = "sum of clipped gradients";
/// Steps of a descent, unless one asks otherwise.
const STEPS: u64 = 100;
/// The chance of a row to be in a step of DP-SGD: a multiple of 2⁻³².
const RATE: f64 = 429_496_730.0 / 4_294_967_296.0;

/// Checks a plan for one of these methods and gives it its steps; the whole budget is worth `mu`.
pub(crate) fn plan(plan: &mut Plan, mu: f64) -> Result<(), Error> {
    plan.budget.unless_pure()?;
    let (program, width) = (plan.program(), plan.width);
    let mut steps = program.steps.unwrap_or(STEPS);
    let constants = program.constants(width, program.longest)?;
    if plan.method == Method::FrankWolfe {
        let want = "bounded: --constraint l1 --radius B, or a simplex";
        Error::unless(program.set != Set::Everything, "set of weights", want, "everything")?;
        let want = "0 for frank-wolfe: an L1 ball does the same";
        Error::unless(program.regulariser.lasso == 0.0, "lasso", want, program.regulariser.lasso)?;
        program.glm(width, program.longest)?;
        let few = few_steps(program, &constants, width, plan.rows as f64 * mu);
        steps = program.steps.unwrap_or(few);
    }
    Error::unless((1..=100_000).contains(&steps), "steps", "from 1 to 100000", steps)?;
    if let Some(step) = program.step_size {
        Error::unless(step > 0.0 && step < 1e9, "step size", "above 0 and below 1e9", step)?;
    }
    if program.set == Set::Everything && program.step_size.is_none() {
        plan.warnings.push(
            "nothing bounds the weights: steps are sized for scores of about 2. A constraint would size them better."
                .into(),
        );
    }
    plan.convex.as_mut().expect("a program").steps = Some(steps);
    if plan.method == Method::DpSgd {
        plan.sampler = Sampler::Poisson { steps, rate: RATE };
    }
    Ok(())
}

/// 3 to 10: what the bound 2βD²/T + √T·B·G·√(2 ln 2d)/(nμ) is least at.
fn few_steps(program: &Program, constants: &Constants, width: usize, units: f64) -> u64 {
    let size = program.size(width);
    let smooth = constants.smooth.unwrap_or(f64::INFINITY);
    let curved = 2.0 * smooth * program.set.diameter(size).powi(2);
    let widest = program.set.norms(size).linf;
    let noisy = widest * constants.diameter * (2.0 * (2.0 * size as f64).ln()).sqrt() / units;
    (2.0 * curved / noisy).powf(2.0 / 3.0).clamp(3.0, 10.0) as u64
}

/// Sums of gradients on a lattice.
struct Sums {
    glm: Glm,
    clip: f64,
    lattice: Lattice,
    /// What one row is charged for, in units.
    bound: f64,
}

impl Sums {
    fn new(run: &Fitting<'_, '_>) -> Result<Self, Error> {
        let (program, width) = (run.program, run.plan.width);
        let constants = program.constants(width, run.radius)?;
        let glm = program.slopes(width, run.radius)?;
        let size = program.size(width);
        let clip = program.clip.unwrap_or(f64::INFINITY).min(constants.lipschitz);
        let lattice = Lattice::for_sums(clip, size);
        let mut bound = lattice.bound() as f64;
        let full = run.plan.sampler == Sampler::Full;
        if full && run.plan.budget.neighbours() == Neighbours::ReplaceOne {
            let far = program.set.norms(size).l2;
            let apart = apart(&glm, &constants, run.radius, size, far) / lattice.step();
            // A slope with a corner may jump by rounding, and without a set there is no bound on that of a score.
            let apart = apart + (size as f64).sqrt();
            bound = if apart.is_finite() { bound.min(0.5 * apart * (1.0 + 1e-12)) } else { bound };
        }
        Ok(Sums { glm, clip, lattice, bound })
    }

    /// The noisy sum of a step, and the standard deviation of its noise.
    fn release(
        &self,
        run: &mut Fitting<'_, '_>,
        rows: &mut Rows<'_>,
        sample: &Sample,
        step: u64,
        w: &[f64],
    ) -> Result<(Vec<f64>, f64), Error> {
        let coins = sample.of_step(step);
        let sum = match rows {
            Rows::Here(examples) => examples.as_ref().map(|examples| {
                let chosen =
                    coins.map(|coins| examples.at_places(&coins.places(0, examples.records())));
                examples.clipped(self.glm, w, &self.lattice, chosen.as_deref())
            }),
            Rows::Kept(kept) => {
                let (weights, radius, clip) = (w.to_vec(), run.radius, self.clip);
                let what = What::Gradients { weights, radius, clip, coins };
                kept.ask(run.door, 0, what)?.map(Answer::sums)
            }
        };
        let unit = self.lattice.step();
        run.door.sum(GRADIENT, LatticeSum { sum, bound: self.bound, unit })
    }
}

/// G + 2e: how far apart two rows' computed gradients may be at one point no longer than `far`.
fn apart(glm: &Glm, constants: &Constants, radius: f64, size: usize, far: f64) -> f64 {
    // Holding a gradient to the clip takes a norm and a quotient more than a plain one.
    let held = 4.0 * (size as f64 + 32.0) * f64::EPSILON * constants.lipschitz;
    let error = examples::rounding(*glm, radius, size, 1.0, far) + held;
    // A null record is as far from a row as the row is long.
    constants.diameter.max(constants.lipschitz) + 2.0 * error
}

/// Rows that are here, or that somebody else keeps.
pub(super) enum Rows<'a> {
    Here(&'a Private<Examples<'a>>),
    Kept(&'a mut Kept<'a>),
}

/// Rows that somebody else keeps, of a problem that is public.
pub(super) struct Kept<'a> {
    pub(super) rows: &'a mut dyn Keeper,
    pub(super) program: Program,
    pub(super) width: usize,
    pub(super) range: (f64, f64),
}

impl Kept<'_> {
    pub(super) fn ask(
        &mut self,
        door: &mut Door,
        step: usize,
        what: What,
    ) -> Result<Private<Answer>, Error> {
        let (program, width, range) = (self.program.clone(), self.width, self.range);
        door.ask(self.rows, step, &Question::convex(Asked { program, width, range, what }))
    }
}

/// Which rows a step sees.
struct Sample {
    stream: Stream,
    /// In units of 2⁻³²; none for every row.
    chance: Option<u64>,
}

impl Sample {
    fn new(run: &Fitting<'_, '_>) -> Self {
        let chance = match run.plan.sampler {
            Sampler::Poisson { rate, .. } => Some((rate * 2f64.powi(32)) as u64),
            _ => None,
        };
        Sample { stream: run.door.sampling(), chance }
    }

    /// The coins of a step; none if it sees every row.
    fn of_step(&self, step: u64) -> Option<Coins> {
        self.chance.map(|chance| Coins::new(&self.stream, step, chance))
    }

    /// The share of rows that a step sees.
    fn rate(&self) -> f64 {
        self.chance.map_or(1.0, |chance| chance as f64 * 2f64.powi(-32))
    }
}

/// The weights after a descent.
pub(crate) fn fit(run: &mut Fitting<'_, '_>, mut rows: Rows<'_>) -> Result<Vec<f64>, Error> {
    let (program, sums, sample) = (run.program, Sums::new(run)?, Sample::new(run));
    let size = program.size(run.plan.width);
    let steps = program.steps.expect("was planned");
    let seen = run.rows * sample.rate();
    let deviation = run.door.noise(GRADIENT) * sums.bound * sums.lattice.step() / seen;
    let step = match program.step_size {
        Some(step) => step,
        None => step_size(run, steps as f64, deviation)?,
    };
    let mut w = program.set.center(size);
    let mut mean = vec![0.0; size];
    let kept = steps.div_ceil(2);
    for t in 0..steps {
        tell(run.watch, "step", t + 1, steps)?;
        let (mut g, _) = sums.release(run, &mut rows, &sample, t, &w)?;
        g.iter_mut().for_each(|g| *g /= seen);
        program.regulariser.add_gradient(&w, &mut g);
        w.iter_mut().zip(g).for_each(|(w, g)| *w -= step * g);
        program.regulariser.prox_in(step, &program.set, &mut w);
        if t >= steps - kept {
            mean.iter_mut().zip(&w).for_each(|(mean, w)| *mean += w / kept as f64);
        }
    }
    // The mean of points of the set, but for rounding.
    program.set.project(&mut mean);
    Ok(mean)
}

/// Spec 6.1: T steps of A/T, where D²/2A and what noise of this deviation in every step adds along curved directions are
/// in balance; no longer than 1/β. Along corners there is no balance but that of the plain bound.
fn step_size(run: &Fitting<'_, '_>, steps: f64, deviation: f64) -> Result<f64, Error> {
    let (program, width) = (run.program, run.plan.width);
    let ground = program.ground(width, run.radius, 1.0)?;
    let size = ground.size as f64;
    // Where nothing bounds the weights: those that give a row of average direction a score of 2.
    let guess = 2.0 * size.sqrt() / run.radius;
    let distance = if ground.distance.is_finite() { ground.distance } else { guess };
    let Constants { lipschitz, smooth, .. } = ground.constants;
    let Some(smooth) = smooth.filter(|&s| s > 0.0) else {
        let noise = size * deviation * deviation;
        return Ok(distance / (steps * (lipschitz * lipschitz + noise)).sqrt());
    };
    // The trace of a row's curvature: one direction, or for several outputs at most twice the largest of them.
    let trace = if program.loss.outputs() > 1 { 2.0 * smooth } else { smooth };
    let whole = (distance * distance * steps / (2.0 * trace * deviation * deviation)).cbrt();
    Ok((whole / steps).min(1.0 / ground.smooth))
}

/// The weights after some steps to vertices.
pub(crate) fn frank_wolfe(
    run: &mut Fitting<'_, '_>,
    mut rows: Rows<'_>,
) -> Result<Vec<f64>, Error> {
    let (program, sums, sample) = (run.program, Sums::new(run)?, Sample::new(run));
    let size = program.size(run.plan.width);
    let steps = program.steps.expect("was planned");
    let (mut w, mut vertex) = (program.set.center(size), vec![0.0; size]);
    for t in 0..steps {
        tell(run.watch, "step", t + 1, steps)?;
        let (mut g, _) = sums.release(run, &mut rows, &sample, t, &w)?;
        g.iter_mut().for_each(|g| *g /= run.rows);
        program.regulariser.add_gradient(&w, &mut g);
        program.set.lowest_point(&g, &mut vertex);
        let part = 2.0 / (t as f64 + 2.0);
        w.iter_mut().zip(&vertex).for_each(|(w, v)| *w += part * (v - *w));
    }
    program.set.project(&mut w);
    Ok(w)
}

#[cfg(test)]
mod tests {
    use quietly_noise::Key;

    use super::*;

    /// Each row is drawn on its own: as often as it is charged for (five standard errors, which a fresh seed would miss once in
    /// a million times), anew in every step, and the same whatever rows come after it.
    #[test]
    fn samples_are_drawn_row_by_row() {
        let chance = (RATE * 2f64.powi(32)) as u64;
        assert_eq!(chance as f64 * 2f64.powi(-32), RATE, "a multiple of 2^-32");
        let sample = Sample { stream: Key::from_seed(1).stream("test"), chance: Some(chance) };
        let rows = |step, count| sample.of_step(step).unwrap().places(0, count);
        let (all, less) = (rows(0, 100_001), rows(0, 50_000));
        let share = all.len() as f64 / 100_001.0;
        assert!((share - RATE).abs() < 5.0 * (RATE * (1.0 - RATE) / 1e5).sqrt(), "{share}");
        assert_eq!(all[..less.len()], less);
        assert!(all[less.len()] >= 50_000);
        assert_ne!(rows(1, 50_000), less);
        let both = rows(1, 50_000).iter().filter(|row| less.binary_search(row).is_ok()).count();
        assert!((both as f64 / 50_000.0 - RATE * RATE).abs() < 5.0 * RATE / 50_000_f64.sqrt());
    }
}
