//! AMP: the minimiser of a perturbed objective, rounded with noise of its own.
//!
//! Iyengar, Near, Song, Thakkar, Thakurta, Wang, *Towards Practical Differentially Private Convex Optimization*, S&P 2019, after Kifer,
//! Smith, Thakurta 2012. `quietly_accounting::Event::objective` has the theorem for the exact minimiser.
//!
//! Corrected: no solver finds argmin J. What is found lies within a of it, proven for every table (a depends on released
//! and public numbers only). Given argmin J, two tables' points are at most 2a apart, so a Gaussian release of sensitivity
//! 2a covers the rest; the published nγ/Λ is a. The noise in b is on a lattice: b is within √d/2 units of the ideal one, which
//! moves argmin J by at most √d/2 units/Λ, and is part of a. No retry, no tolerance that depends on data.
use quietly_accounting::{Neighbours, Slopes};
use quietly_data::Private;
use quietly_noise::{RoundedNormal, Stream};

use super::{
    examples::Examples,
    glm::Glm,
    loss::Loss,
    minimise::{Near, Objective, Terms},
    run::Fitting,
    set::Set,
};
use crate::{
    charge::{Charge, Stage},
    error::Error,
    linalg::norm,
    plan::Plan,
    progress::tell,
};

pub(crate) const MINIMISER: &str = "minimiser of a perturbed objective";
pub(crate) const ROUNDING: &str = "rounding of the minimiser";

/// The share of ε that determinants may take, where slopes do not know of them.
const DETERMINANT_SHARE: f64 = 0.1;
/// The μ of the rounding, in parts of the whole budget's.
const ROUNDING_SHARE: f64 = 0.01;
/// Slopes of logistic losses are cut here where rows are scaled: rows that are wrong by far pull no harder than others.
pub(crate) const CUT: f64 = 0.75;

/// The questions, where the whole budget is worth `mu` for a row that is there or not.
pub(crate) fn stages(plan: &Plan, mu: f64, noise: f64) -> Vec<Stage> {
    let program = plan.program();
    let slopes = match program.loss {
        Loss::Logistic => Slopes::Logistic { most: program.cut },
        Loss::Softmax { classes } => Slopes::Classes { count: classes as u64 },
        loss if loss.sign_known() => Slopes::OneSign,
        _ => Slopes::TwoSigns,
    };
    let epsilon = plan.budget.epsilon();
    let coupled =
        program.loss == Loss::Logistic && plan.budget.neighbours() == Neighbours::AddRemove;
    // As long as c = 4·bend stays below ε, curvature costs nothing; a little beyond it costs little.
    let bend = if coupled {
        0.25 / (0.6 / epsilon).max(shrinkage(plan, 0.02, mu) * noise).max(0.25)
    } else {
        (DETERMINANT_SHARE * epsilon).exp_m1().min(1.0)
    };
    let minimiser = Charge::objective(MINIMISER, noise, bend, slopes);
    let rounding = Charge::sum(ROUNDING, 1.0 / (ROUNDING_SHARE * mu));
    vec![Stage::new("minimiser", 1, vec![minimiser]), Stage::new("rounding", 1, vec![rounding])]
}

/// Λ in units of the noise and the radius that noise and bias are about in balance at: it grows with the number of weights, and
/// with how uneven classes are not; where there are few rows it keeps the model small. `variance` is that of the class.
fn shrinkage(plan: &Plan, variance: f64, mu: f64) -> f64 {
    if !plan.program().scales {
        return 0.0;
    }
    let d = (plan.width + 1) as f64;
    let few = 25.0 * d.sqrt() / (plan.rows as f64 * mu);
    ((d * variance.max(0.02)).sqrt() / 6.4).max(few.min(few.sqrt()))
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
    fn new(run: &Fitting<'_, '_>, glm: Glm) -> Self {
        let (noise, bend) = run.door.tilt(MINIMISER);
        let smooth = glm.bend * run.radius * run.radius;
        // A cut slope is still charged by the uncut one.
        let steepest = if glm.loss == Loss::Logistic { 1.0 } else { glm.steepest };
        let noise = noise * steepest * run.radius * (1.0 + 1e-12);
        // The budget's, as the rounding was given its share of it.
        let mu = 1.0 / (ROUNDING_SHARE * run.door.noise(ROUNDING));
        let shrink = shrinkage(run.plan, run.share * (1.0 - run.share), mu) * noise * run.radius;
        let ridge = run.rows * run.program.regulariser.ridge;
        let strong = (smooth / bend * (1.0 + 1e-12)).max(ridge).max(shrink);
        // 2³⁰ units to σ: the lattice is far finer than the noise.
        let unit = 2f64.powi(noise.log2().floor() as i32 - 30);
        Setting { strong, noise: noise / unit, unit }
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
    let setting = Setting::new(run, glm);
    let size = all / glm.outputs();
    let terms = Terms { glm, radius: run.radius, size, strong: setting.strong };
    // How near the minimiser is asked to be: where it matters to nobody, but not nearer than 53 bits usually show.
    let sigma = setting.noise * setting.unit;
    let harmless = 0.05 * sigma / terms.steepest(run.rows) / run.door.noise(ROUNDING);
    let strong = setting.strong;
    let tilt =
        2.0 * sigma * (all as f64).sqrt() + run.offset.abs() / run.constant.max(1e-300) * strong;
    let set = run.set_inside();
    let (near, far) = match set {
        None => (terms.least_distance(2.0 * run.rows, 64.0 / run.radius, tilt), 0.0),
        Some(set) => {
            let far = farthest(set, all);
            (terms.least_distance_within(run.rows, far, 4.0 * tilt), far)
        }
    };
    let near = near.max(harmless);
    let lasso = run.rows * program.regulariser.lasso;
    let watch = &mut *run.watch;
    // The ridge is centred where the constant alone would say what the classes' shares are.
    let centre = run.offset / run.constant.max(1e-300) * strong;
    let found = run.door.objective(MINIMISER, examples, |examples, stream, step| {
        let mut tilt = setting.tilt(all, stream, step)?;
        if let Some(last) = tilt.last_mut() {
            *last -= centre;
        }
        let objective =
            Objective { terms, examples: &examples, rows: 0..examples.rows(), tilt: &tilt };
        let mut keep_on = |pass: u64| tell(watch, "pass", pass, pass.max(30));
        let Near { point, .. } = match set {
            None => objective.minimise(near, &mut keep_on)?,
            Some(set) => objective.minimise_within(set, lasso, far, near, &mut keep_on)?,
        };
        Ok(point)
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
