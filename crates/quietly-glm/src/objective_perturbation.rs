//! Objective perturbation (AMP): the minimiser of a perturbed objective, with a second noise for its rounding.
//!
//! Iyengar, Near, Song, Thakkar, Thakurta, Wang, *Towards Practical Differentially Private Convex Optimization*, S&P 2019, after Kifer,
//! Smith, Thakurta 2012. `quietly_accounting::Event::objective_perturbation` has the theorem for the exact minimiser.
//!
//! # Proof: a point near the minimiser
//!
//! Corrected: no solver finds argmin J. What is found lies within a of it, proven for every table (a depends on released
//! and public numbers only). Given argmin J, two tables' points are at most 2a apart, so a Gaussian release of sensitivity
//! 2a covers the rest; the published nγ/Λ is a. The noise in b is on a lattice: b is within √d/2 units of the ideal one, which
//! moves argmin J by at most √d/2 units/Λ, and is part of a. No retry, no tolerance that depends on data.
//!
//! # Proof: objective perturbation with δ = 0
//!
//! b has independent Laplace coordinates of scale t, with density proportional to e^(-‖b‖₁/t). As there, the
//! ratio of densities at w is that of b(w) and b(w) + v, times that of the determinants: at most e^(‖v‖₁/t + D), where v is the
//! difference of two tables' gradients at w. A row's gradient is derivatives ⊗ z and measures at most S·‖z‖₁ in the 1-norm, S being
//! `derivative_bound` for one score. For several, derivatives are p - e_y, whose 1-norm 2(1 - p_y) is √2 times the bound √2(1 - p_y) on their
//! Euclidean one. And ‖z‖₁ ≤ √size·R, or what rows are cut to. So t = ‖v‖₁/(ε - D) is enough, with one such gradient for a
//! row that is there or not and two for a replaced one. For a set or a rougher r, take limits as there.
//!
//! What is drawn is discrete Laplace noise k of the same scale. Give it and the continuous one the same quantiles: for p = e^(-1/t)
//! the distributions 1 - p^(k+1)/(1 + p) and 1 - e^(-x/t)/2 agree at x = k + ½ + t·ln cosh(1/2t), so k is the continuous number rounded,
//! but for 1/8t units: b is within √d·(½ + 1/8t) units of the ideal one and a function of it. The last release has
//! discrete Laplace noise.
use quietly_accounting::{DerivativeBound, Neighbours};
use quietly_core::{
    budget::Budget,
    mechanism::{Mechanism, PlannedRelease, Stage},
    progress::report,
    release::ratio_above,
};
use quietly_data::Private;
use quietly_engine::{algorithm::Shape, error::Error, linalg::norm};
use quietly_noise::{DiscreteLaplace, RoundedGaussian, Stream};
use serde::{Deserialize, Serialize};

use super::{
    design_matrix::Examples,
    fit::{ConvexMethod, for_one, mu},
    glm::Glm,
    loss::Loss,
    minimiser::{Near, Objective, Terms},
    problem::Problem,
    quantile_intercept,
    run::Fitting,
    set::Set,
};

pub const MINIMISER: &str = "minimiser of a perturbed objective";
/// The stage of the minimiser.
pub const STAGE: &str = "minimiser";
pub const ROUNDING: &str = "rounding of the minimiser";

/// The share of ε that determinants may take, where derivatives do not know of them.
const DETERMINANT_SHARE: f64 = 0.1;
/// The μ of the rounding, in parts of the whole budget's.
const ROUNDING_SHARE: f64 = 0.01;
/// Derivatives of logistic losses are clipped here where rows are scaled: rows that are wrong by far pull no harder than others.
pub const CUT: f64 = 0.75;

/// Objective perturbation: the minimiser of an objective with a random linear term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectivePerturbation {}

impl ConvexMethod for ObjectivePerturbation {
    fn stages(&self, problem: &Problem, shape: Shape, budget: Budget, noise: f64) -> Vec<Stage> {
        let mu = mu(problem, shape, budget);
        let mut stages =
            stages_of("", problem, shape, (budget, budget.epsilon()), for_one(mu, budget), noise);
        stages.extend(quantile_intercept::stage(problem, shape, budget));
        stages
    }

    fn pure_stages(
        &self,
        problem: &Problem,
        shape: Shape,
        budget: Budget,
        epsilon: f64,
    ) -> Vec<Stage> {
        let shift = quantile_intercept::pure_stage(problem, shape, budget, epsilon);
        let left = epsilon - shift.as_ref().map_or(0.0, |(_, share)| *share);
        let mut stages = pure_stages(left, budget.neighbours());
        stages.extend(shift.map(|(stage, _)| stage));
        stages
    }

    fn check(&self, problem: &Problem, shape: Shape, budget: Budget) -> Result<(), Error> {
        if problem.scales {
            budget.unless_pure()?;
        }
        let public = budget.neighbours() == Neighbours::ReplaceOne;
        problem.minimisable(shape.width, public && problem.set != Set::Everything)
    }

    fn solve(
        &self,
        run: &mut Fitting<'_, '_>,
        examples: Private<Examples<'_>>,
    ) -> Result<Vec<f64>, Error> {
        fit(run, &examples)
    }
}

/// The releases, under names that begin with `arm`, where the minimiser may spend about `epsilon`, and `mu` for a row that is there
/// or not.
pub(super) fn stages_of(
    arm: &str,
    problem: &Problem,
    shape: Shape,
    (budget, epsilon): (Budget, f64),
    mu: f64,
    noise: f64,
) -> Vec<Stage> {
    let derivatives = match problem.loss {
        Loss::Logistic => DerivativeBound::Logistic { clip: problem.cut },
        Loss::Softmax { classes } => DerivativeBound::Softmax { classes: classes as u64 },
        loss if loss.sign_known() => DerivativeBound::OneSign,
        _ => DerivativeBound::TwoSigns,
    };
    let coupled = problem.loss == Loss::Logistic && budget.neighbours() == Neighbours::AddRemove;
    // As long as c = 4·smoothness stays below ε, curvature costs nothing; a little beyond it costs little.
    let smoothness = if coupled {
        0.25 / (0.6 / epsilon).max(shrinkage(problem, shape, 0.02, mu) * noise).max(0.25)
    } else {
        (DETERMINANT_SHARE * epsilon).exp_m1().min(1.0)
    };
    let named = |name: &str| format!("{arm}{name}");
    let minimiser = PlannedRelease::objective(&named(MINIMISER), noise, smoothness, derivatives);
    // No more noise than the accountant knows.
    let rounding = PlannedRelease::sum(&named(ROUNDING), (1.0 / (ROUNDING_SHARE * mu)).min(5e4));
    let one = |name: &str, charge| Stage::new(&named(name), 1, vec![charge]);
    vec![one(STAGE, minimiser), one("rounding", rounding)]
}

/// The questions where δ is 0 and there is `epsilon` to spend.
fn pure_stages(epsilon: f64, neighbours: Neighbours) -> Vec<Stage> {
    let share = ROUNDING_SHARE * epsilon;
    let minimiser = PlannedRelease::approximate_dp(MINIMISER, epsilon - share, 0.0);
    let rounding = PlannedRelease::laplace(ROUNDING, share, neighbours);
    vec![Stage::new("minimiser", 1, vec![minimiser]), Stage::new("rounding", 1, vec![rounding])]
}

/// Λ in units of the noise and the radius that noise and bias are about in balance at: it grows with the number of weights, and
/// with how uneven classes are not; where there are few rows it keeps the model small. `variance` is that of the class.
fn shrinkage(problem: &Problem, shape: Shape, variance: f64, mu: f64) -> f64 {
    if !problem.scales {
        return 0.0;
    }
    let d = (shape.width + 1) as f64;
    let few = 25.0 * d.sqrt() / (shape.rows as f64 * mu);
    ((d * variance.max(0.02)).sqrt() / 6.4).max(few.min(few.sqrt()))
}

/// What the perturbation is, given the bound on rows: all of it public.
struct Setting {
    /// Λ.
    strong: f64,
    /// σ of b in lattice units, or the scale of Laplace noise, and what a unit is worth.
    noise: f64,
    unit: f64,
    pure: bool,
}

impl Setting {
    fn new(run: &Fitting<'_, '_>, glm: Glm) -> Self {
        let (loss, neighbours) = (run.problem.loss, run.plan.budget.neighbours());
        let smooth = glm.smoothness * run.radius * run.radius;
        let ridge = run.rows * run.problem.regulariser.strong();
        let (noise, strong, pure) = match run.releaser.planned(&run.named(MINIMISER)) {
            Mechanism::ObjectivePerturbation { noise, smoothness, derivative } => {
                let noise = noise * charged_derivative(derivative, glm, neighbours) * run.radius;
                // The budget's, as the rounding was given its share of it.
                let mu = 1.0 / (ROUNDING_SHARE * run.releaser.noise(&run.named(ROUNDING)));
                let shrink = shrinkage(run.problem, run.shape, run.variance, mu);
                let strong = smooth / smoothness * (1.0 + 1e-12);
                (noise, strong.max(ridge).max(shrink * noise * run.radius), false)
            }
            Mechanism::ApproximateDp { epsilon, .. } => {
                let strong = strong_enough(loss, smooth, DETERMINANT_SHARE * epsilon).max(ridge);
                let left = epsilon - determinant(loss, smooth, strong);
                let size = run.problem.size(run.shape.width) / glm.outputs();
                let apart = apart_in_l1(glm, size, run.radius, run.problem.l1, neighbours);
                (apart / left, strong, true)
            }
            other => unreachable!("a minimiser is not planned as {other:?}"),
        };
        // 2³⁰ units to σ: the lattice is far finer than the noise.
        let noise = noise * (1.0 + 1e-12);
        let unit = 2f64.powi(noise.log2().floor() as i32 - 30);
        Setting { strong, noise: noise / unit, unit, pure }
    }

    /// The standard deviation of b in every coordinate.
    fn deviation(&self) -> f64 {
        self.noise * self.unit * if self.pure { std::f64::consts::SQRT_2 } else { 1.0 }
    }

    /// What b's length does not exceed, but for chances that no one lives to see: a minimiser is not asked to be nearer than
    /// rounding allows for such a b.
    fn longest(&self, size: usize) -> f64 {
        // Laplace noise is beyond 42 scales once in 10¹⁸ draws.
        self.deviation() * (size as f64).sqrt() * if self.pure { 30.0 } else { 2.0 }
    }

    /// b.
    fn linear_term(&self, size: usize, stream: &Stream, step: u64) -> Result<Vec<f64>, Error> {
        let mut units = vec![0; size];
        if self.pure {
            DiscreteLaplace::new(ratio_above(self.noise)?)?.fill(stream, step, &mut units)?;
        } else {
            RoundedGaussian::new(self.noise)?.fill(stream, step, &mut units)?;
        }
        Ok(units.iter().map(|&k| k as f64 * self.unit).collect())
    }

    /// How far b's lattice moves the minimiser.
    fn blur(&self, size: usize) -> f64 {
        0.51 * (size as f64).sqrt() * self.unit / self.strong
    }
}

/// Λ over the square of the radius, which is the same for every radius.
pub fn least_ridge(run: &Fitting<'_, '_>) -> f64 {
    let glm = derivatives_of(run.problem, run.shape.width, run.radius, false);
    let setting = Setting::new(run, glm.expect("a plan that was checked"));
    setting.strong / (run.radius * run.radius)
}

/// The derivative that noise is in units of.
pub fn charged_derivative(derivatives: DerivativeBound, glm: Glm, neighbours: Neighbours) -> f64 {
    match (derivatives, neighbours) {
        // The law that knows of derivative and curvature together has the longest row as its unit, whatever derivatives are cut to.
        (DerivativeBound::Logistic { .. }, Neighbours::AddRemove) => 1.0,
        // Of a replaced row the corners alone count: `most` in units that make `derivative_bound` of it, in a set less than 1.
        (DerivativeBound::Logistic { clip }, Neighbours::ReplaceOne) => glm.derivative_bound / clip,
        _ => glm.derivative_bound,
    }
}

/// What determinants may add to ε, where no row's second derivative exceeds `smooth` and the objective is `strong`-convex without it.
pub fn determinant(loss: Loss, smooth: f64, strong: f64) -> f64 {
    match loss {
        // smooth = R²/2, and the trace is (1 - 1/K)·R².
        Loss::Softmax { classes } => {
            let k = classes as f64;
            (k - 1.0) * (2.0 * smooth / (k * strong)).ln_1p()
        }
        _ => (smooth / strong).ln_1p(),
    }
}

/// The least strong convexity for which they add no more than `share`.
pub fn strong_enough(loss: Loss, smooth: f64, share: f64) -> f64 {
    let above = 1.0 + 1e-9;
    above
        * match loss {
            Loss::Softmax { classes } => {
                let k = classes as f64;
                2.0 * smooth / (k * (share / (k - 1.0)).exp_m1())
            }
            _ => smooth / share.exp_m1(),
        }
}

/// The weights.
fn fit(run: &mut Fitting<'_, '_>, examples: &Private<Examples<'_>>) -> Result<Vec<f64>, Error> {
    let mut weights = minimise(run, examples)?.weights;
    run.problem.set.project(&mut weights);
    quantile_intercept::apply(run, examples, &mut weights)?;
    Ok(weights)
}

/// A released minimiser, and what is public of its noise.
pub struct Minimised {
    pub weights: Vec<f64>,
    /// The standard deviation of b in every coordinate.
    pub deviation: f64,
    /// Λ.
    pub strong: f64,
}

/// The minimiser, as it is released.
pub fn minimise(
    run: &mut Fitting<'_, '_>,
    examples: &Private<Examples<'_>>,
) -> Result<Minimised, Error> {
    let problem = run.problem;
    let all = problem.size(run.shape.width);
    let glm = derivatives_of(problem, run.shape.width, run.radius, run.set_inside().is_some())?;
    let setting = Setting::new(run, glm);
    let size = all / glm.outputs();
    let set = run.set_inside();
    let far = set.map_or(0.0, |set| farthest(set, all));
    let power_term = problem.regulariser.power_term(run.rows, far);
    let terms = Terms { glm, radius: run.radius, size, strong: setting.strong, power_term };
    // How near the minimiser is asked to be: so near that it does not matter, but not nearer than 53 bits usually show.
    let harmless = 0.05 * setting.deviation()
        / terms.derivative_bound(run.rows)
        / run.noise(&run.named(ROUNDING));
    // The ridge is centred where the constants alone would say what the classes' shares are.
    let centre = |offset: &f64| offset / run.constant.max(1e-300) * setting.strong;
    let centres: Vec<f64> = run.offsets.iter().map(centre).collect();
    let linear_term = setting.longest(all) + centres.iter().map(|c| c.abs()).sum::<f64>();
    let near = match set {
        None => terms.least_distance(2.0 * run.rows, 64.0 / run.radius, linear_term),
        Some(_) => terms.least_distance_within(run.rows, far, 4.0 * linear_term),
    };
    let near = near.max(harmless);
    let lasso = run.rows * problem.regulariser.lasso;
    let (minimiser, rounding) = (run.named(MINIMISER), run.named(ROUNDING));
    let watch = &mut *run.watch;
    let found =
        run.releaser.objective(&minimiser, examples.as_ref(), |examples, stream, step| {
            let mut linear_term = setting.linear_term(all, stream, step)?;
            for (of_output, centre) in linear_term.chunks_exact_mut(size).zip(&centres) {
                of_output[size - 1] -= centre;
            }
            let objective =
                Objective { terms, examples, rows: 0..examples.rows(), linear_term: &linear_term };
            let mut keep_on = |pass: u64| report(watch, "minimising", pass, pass.max(30));
            let Near { point, .. } = match set {
                None => objective.minimise(near, &mut keep_on)?,
                Some(set) => objective.minimise_within(set, lasso, far, near, &mut keep_on)?,
            };
            Ok::<_, Error>(point)
        })?;
    // Given the exact minimiser, two tables' points are at most so far apart.
    let apart = 2.0 * (near + setting.blur(all));
    let weights = run.release(&rounding, found, apart)?;
    Ok(Minimised { weights, deviation: setting.deviation(), strong: setting.strong })
}

/// The loss with bounds that hold for all weights that are tried: those of the set, or any.
///
/// One score's derivatives are held to the set's bound wherever the weights are; those of several are not.
pub fn derivatives_of(
    problem: &Problem,
    width: usize,
    radius: f64,
    inside: bool,
) -> Result<Glm, Error> {
    let glm = problem.glm(width, radius)?;
    if inside || glm.outputs() == 1 {
        return Ok(glm);
    }
    let anywhere = Problem { set: Set::Everything, ..problem.clone() }.glm(width, radius)?;
    Ok(Glm { derivative_bound: anywhere.derivative_bound, ..glm })
}

/// What neighbours' gradients are apart in the 1-norm, at most, for rows of `size` numbers that measure at most `radius` and,
/// in the 1-norm, `l1`.
pub fn apart_in_l1(
    glm: Glm,
    size: usize,
    radius: f64,
    l1: Option<f64>,
    neighbours: Neighbours,
) -> f64 {
    let row = ((size as f64).sqrt() * radius).min(l1.unwrap_or(f64::INFINITY));
    let outputs = if glm.outputs() > 1 { std::f64::consts::SQRT_2 } else { 1.0 };
    let rows = match neighbours {
        Neighbours::AddRemove => 1.0,
        Neighbours::ReplaceOne => 2.0,
    };
    rows * outputs * glm.derivative_bound * row
}

/// The norm that no point of the set exceeds.
pub fn farthest(set: &Set, size: usize) -> f64 {
    let start = set.center(size);
    norm(&start) + set.radius_from(&start)
}
