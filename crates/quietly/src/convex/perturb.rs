//! AMP: the minimiser of a perturbed objective, rounded with noise of its own.
//!
//! Iyengar, Near, Song, Thakkar, Thakurta, Wang, *Towards Practical Differentially Private Convex Optimization*, S&P 2019, after Kifer,
//! Smith, Thakurta 2012. [`corners`](super::corners) has the theorem for the exact minimiser.
//!
//! Corrected: no solver finds argmin J. What is found lies within a of it, proven for every table (a depends on released
//! and public numbers only). Given argmin J, two tables' points are at most 2a apart, so a Gaussian release of sensitivity
//! 2a covers the rest; the published nγ/Λ is a. The noise in b is on a lattice: b is within √d/2 units of the ideal one, which
//! moves argmin J by at most √d/2 units/Λ, and is part of a. No retry, no tolerance that depends on data.
use quietly_data::Private;
use quietly_noise::{RoundedNormal, Stream};

use super::{
    corners,
    examples::Examples,
    glm::Glm,
    minimise::{Near, Objective, Terms},
    run::Fitting,
    set::Set,
};
use crate::{
    charge::{Charge, Stage},
    error::Error,
    linalg::norm,
    progress::tell,
    release::Promise,
};

pub(crate) const MINIMISER: &str = "minimiser of a perturbed objective";
pub(crate) const ROUNDING: &str = "rounding of the minimiser";

/// The share of δ for the minimiser; the rest is for what composes with it.
const DELTA_SHARE: f64 = 0.9;
/// The share of ε that determinants may take.
const DETERMINANT_SHARE: f64 = 0.1;
/// The μ of the rounding, in parts of the whole budget's.
const ROUNDING_SHARE: f64 = 0.01;

/// The questions, where the minimiser is worth 1/`noise` of ε and the whole budget `mu`.
pub(crate) fn stages(delta: f64, mu: f64, noise: f64) -> Vec<Stage> {
    let minimiser = Charge::promise(MINIMISER, 1.0 / noise, DELTA_SHARE * delta);
    let rounding = Charge::sum(ROUNDING, 1.0 / (ROUNDING_SHARE * mu));
    vec![Stage::new("minimiser", 1, vec![minimiser]), Stage::new("rounding", 1, vec![rounding])]
}

/// What the perturbation is, given the bound on rows: all of it public.
struct Setting {
    /// Λ.
    strong: f64,
    /// σ of b in lattice units, and what a unit is worth.
    noise: f64,
    unit: f64,
}

impl Setting {
    fn new(
        run: &Fitting<'_, '_>,
        glm: Glm,
        Promise { epsilon, delta }: Promise,
    ) -> Result<Self, Error> {
        let (loss, neighbours) = (run.program.loss, run.plan.budget.neighbours());
        let smooth = glm.bend * run.radius * run.radius;
        let ridge = run.rows * run.program.regulariser.strong();
        let least = corners::strong_enough(loss, smooth, DETERMINANT_SHARE * epsilon);
        let strong = ridge.max(least);
        let left = epsilon - corners::determinant(loss, smooth, strong);
        let noise = corners::noise(loss, neighbours, left, delta)?;
        // 2³⁰ units to σ: the lattice is far finer than the noise.
        let noise = noise * glm.steepest * run.radius * (1.0 + 1e-12);
        let unit = 2f64.powi(noise.log2().floor() as i32 - 30);
        Ok(Setting { strong, noise: noise / unit, unit })
    }

    /// b.
    fn tilt(&self, size: usize, stream: &Stream, step: u64) -> Result<Vec<f64>, Error> {
        let mut units = vec![0; size];
        RoundedNormal::new(self.noise)?.fill(stream, step, &mut units)?;
        Ok(units.iter().map(|&k| k as f64 * self.unit).collect())
    }

    /// How far b's lattice moves the minimiser.
    fn blur(&self, size: usize) -> f64 {
        0.51 * (size as f64).sqrt() * self.unit / self.strong
    }
}

/// The weights.
pub(crate) fn fit(
    run: &mut Fitting<'_, '_>,
    examples: Private<Examples<'_>>,
) -> Result<Vec<f64>, Error> {
    let program = run.program;
    let all = program.size(run.plan.width);
    let glm = program.glm(run.plan.width, run.radius)?;
    let setting = Setting::new(run, glm, run.door.promise(MINIMISER))?;
    let size = all / glm.outputs();
    let set = run.set_inside();
    let far = set.map_or(0.0, |set| farthest(set, all));
    let bowl = program.regulariser.bowl(run.rows, far);
    let terms = Terms { glm, radius: run.radius, size, strong: setting.strong, bowl };
    // How near the minimiser is asked to be: where it matters to nobody, but not nearer than 53 bits usually show.
    let sigma = setting.noise * setting.unit;
    let harmless = 0.05 * sigma / terms.steepest(run.rows) / run.door.noise(ROUNDING);
    let tilt = 2.0 * sigma * (all as f64).sqrt();
    let near = match set {
        None => terms.least_distance(2.0 * run.rows, 64.0 / run.radius, tilt),
        Some(_) => terms.least_distance_within(run.rows, far, 4.0 * tilt),
    };
    let near = near.max(harmless);
    let lasso = run.rows * program.regulariser.lasso;
    let watch = &mut *run.watch;
    let found = run.door.promised(MINIMISER, examples, |examples, _, stream, step| {
        let tilt = setting.tilt(all, stream, step)?;
        let objective =
            Objective { terms, examples: &examples, rows: 0..examples.rows(), tilt: &tilt };
        let mut keep_on = |pass: u64| tell(watch, "pass", pass, pass.max(30));
        let Near { point, .. } = match set {
            None => objective.minimise(near, &mut keep_on)?,
            Some(set) => objective.minimise_within(set, lasso, far, near, &mut keep_on)?,
        };
        Ok(Private::new(point))
    })?;
    // Given the exact minimiser, two tables' points are at most so far apart.
    let apart = 2.0 * (near + setting.blur(all));
    let mut weights = run.release(ROUNDING, found, apart)?;
    program.set.project(&mut weights);
    Ok(weights)
}

/// The norm that no point of the set exceeds.
pub(crate) fn farthest(set: &Set, size: usize) -> f64 {
    let start = set.center(size);
    norm(&start) + set.radius_from(&start)
}
