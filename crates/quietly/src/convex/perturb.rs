//! AMP: the minimiser of a perturbed objective, rounded with noise of its own.
//!
//! Iyengar, Near, Song, Thakkar, Thakurta, Wang, *Towards Practical Differentially Private Convex Optimization*, S&P 2019, after Kifer,
//! Smith, Thakurta 2012. [`corners`](super::corners) has the theorem for the exact minimiser.
//!
//! Corrected: no solver finds argmin J. What is found lies within a of it, proven for every table (a depends on released
//! and public numbers only). Given argmin J, two tables' points are at most 2a apart, so a Gaussian release of sensitivity
//! 2a covers the rest; the published nγ/Λ is a. The noise in b is on a lattice: b is within √d/2 units of the ideal one, which
//! moves argmin J by at most √d/2 units/Λ, and is part of a. No retry, no tolerance that depends on data.
//!
//! # With δ = 0
//!
//! b has independent Laplace coordinates of scale t, with density proportional to e^(-‖b‖₁/t). As in [`corners`](super::corners), the
//! ratio of densities at w is that of b(w) and b(w) + v, times that of the determinants: at most e^(‖v‖₁/t + D), where v is the
//! difference of two tables' gradients at w. A row's gradient is slopes ⊗ z and measures at most S·‖z‖₁ in the 1-norm, S being
//! `steepest` for one score. For several, slopes are p - e_y, whose 1-norm 2(1 - p_y) is √2 times the bound √2(1 - p_y) on their
//! Euclidean one. And ‖z‖₁ ≤ √size·R, or what rows are cut to. So t = ‖v‖₁/(ε - D) is enough, with one such gradient for a
//! row that is there or not and two for a replaced one. For a set or a rougher r, take limits as there.
//!
//! What is drawn is discrete Laplace noise k of the same scale. Give it and the continuous one the same quantiles: for p = e^(-1/t)
//! the distributions 1 - p^(k+1)/(1 + p) and 1 - e^(-x/t)/2 agree at x = k + ½ + t·ln cosh(1/2t), so k is the continuous number rounded,
//! but for 1/8t units: b is within √d·(½ + 1/8t) units of the ideal one and a function of it. The last release has
//! discrete Laplace noise.
use quietly_accounting::Neighbours;
use quietly_data::Private;
use quietly_noise::{DiscreteLaplace, RoundedNormal, Stream};

use super::{
    corners,
    examples::Examples,
    glm::Glm,
    minimise::{Near, Objective, Terms},
    program::Program,
    run::Fitting,
    set::Set,
};
use crate::{
    charge::{Charge, Stage},
    error::Error,
    linalg::norm,
    progress::tell,
    release::{Promise, ratio_above},
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

/// The questions where δ is 0 and there is `epsilon` to spend.
pub(crate) fn pure_stages(epsilon: f64, neighbours: Neighbours) -> Vec<Stage> {
    let share = ROUNDING_SHARE * epsilon;
    let minimiser = Charge::promise(MINIMISER, epsilon - share, 0.0);
    let rounding = Charge::laplace(ROUNDING, share, neighbours);
    vec![Stage::new("minimiser", 1, vec![minimiser]), Stage::new("rounding", 1, vec![rounding])]
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
    fn new(
        run: &Fitting<'_, '_>,
        glm: Glm,
        Promise { epsilon, delta }: Promise,
    ) -> Result<Self, Error> {
        let (loss, neighbours) = (run.program.loss, run.plan.budget.neighbours());
        let smooth = glm.bend * run.radius * run.radius;
        let ridge = run.rows * run.program.regulariser.ridge;
        let least = corners::strong_enough(loss, smooth, DETERMINANT_SHARE * epsilon);
        let strong = ridge.max(least);
        let left = epsilon - corners::determinant(loss, smooth, strong);
        let pure = delta == 0.0;
        let noise = if pure {
            let size = run.program.size(run.plan.width) / glm.outputs();
            apart_in_l1(glm, size, run.radius, run.program.l1, neighbours) / left
        } else {
            corners::noise(loss, neighbours, left, delta)? * glm.steepest * run.radius
        };
        // 2³⁰ units to σ: the lattice is far finer than the noise.
        let noise = noise * (1.0 + 1e-12);
        let unit = 2f64.powi(noise.log2().floor() as i32 - 30);
        Ok(Setting { strong, noise: noise / unit, unit, pure })
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
    fn tilt(&self, size: usize, stream: &Stream, step: u64) -> Result<Vec<f64>, Error> {
        let mut units = vec![0; size];
        if self.pure {
            DiscreteLaplace::new(ratio_above(self.noise)?)?.fill(stream, step, &mut units)?;
        } else {
            RoundedNormal::new(self.noise)?.fill(stream, step, &mut units)?;
        }
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
    let glm = slopes_of(program, run.plan.width, run.radius, run.set_inside().is_some())?;
    let setting = Setting::new(run, glm, run.door.promise(MINIMISER))?;
    let size = all / glm.outputs();
    let terms = Terms { glm, radius: run.radius, size, strong: setting.strong };
    // How near the minimiser is asked to be: where it matters to nobody, but not nearer than 53 bits usually show.
    let harmless = 0.05 * setting.deviation() / terms.steepest(run.rows) / run.noise(ROUNDING);
    let tilt = setting.longest(all);
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

/// The loss with bounds that hold for all weights that are tried: those of the set, or any.
///
/// One score's slopes are held to the set's bound wherever the weights are; those of several are not.
fn slopes_of(program: &Program, width: usize, radius: f64, inside: bool) -> Result<Glm, Error> {
    let glm = program.glm(width, radius)?;
    if inside || glm.outputs() == 1 {
        return Ok(glm);
    }
    let anywhere = Program { set: Set::Everything, ..program.clone() }.glm(width, radius)?;
    Ok(Glm { steepest: anywhere.steepest, ..glm })
}

/// What neighbours' gradients are apart in the 1-norm, at most, for rows of `size` numbers that measure at most `radius` and,
/// in the 1-norm, `l1`.
pub(super) fn apart_in_l1(
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
    rows * outputs * glm.steepest * row
}

/// The norm that no point of the set exceeds.
pub(crate) fn farthest(set: &Set, size: usize) -> f64 {
    let start = set.center(size);
    norm(&start) + set.radius_from(&start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Budget, Convex, Loss,
        convex::{
            examples::{Features, Shape},
            minimise::tests::SMOOTH,
        },
        pass::random::Random,
    };

    /// Random rows at corners, with and without a bound on their 1-norm: never above, and hardly below.
    #[test]
    fn gradients_in_the_1_norm_stay_within_their_bound() {
        let mut random = Random(6);
        for (glm, l1) in SMOOTH.into_iter().flat_map(|glm| [(glm, None), (glm, Some(1.2))]) {
            let glm = match glm.loss {
                Loss::Squared => Glm { steepest: 1.5, ..glm },
                // √2, not below.
                Loss::Softmax { .. } => Glm { steepest: 1.4142135623730952, ..glm },
                _ => glm,
            };
            let shape = Shape { width: 2, constant: 0.0, l1, radius: 1.0 };
            let bound = |n| apart_in_l1(glm, 2, 1.0, l1, n) * (1.0 + 1e-12);
            let (mut joins, mut replaced) = (0.0_f64, 0.0_f64);
            for _ in 0..4000 {
                let mut sign = || if random.word() % 512 < 256 { 1.0 } else { -1.0 };
                let x: Vec<f64> = (0..4).map(|_| sign()).collect();
                let y = match glm.loss {
                    Loss::Softmax { .. } => vec![1.0 + sign(), 1.0 + sign()],
                    _ => vec![sign(), sign()],
                };
                let far = if random.word() % 512 < 256 { 40.0 } else { 0.01 };
                let w: Vec<f64> = (0..2 * glm.outputs()).map(|_| far * random.number()).collect();
                let examples = Examples::new(shape, Features::Dense(&x), y, 1);
                let (a, b) = (examples.gradient(glm, &w, 0..1), examples.gradient(glm, &w, 1..2));
                joins = joins.max(a.iter().map(|a| a.abs()).sum());
                replaced = replaced.max(a.iter().zip(&b).map(|(a, b)| (a - b).abs()).sum());
            }
            let (joins, replaced) =
                (joins / bound(Neighbours::AddRemove), replaced / bound(Neighbours::ReplaceOne));
            // Slopes of one sign push opposite rows half as hard.
            let least = if glm.loss.sign_known() { 0.49 } else { 0.9 };
            assert!(joins <= 1.0 && joins > 0.9, "{glm:?} {l1:?} {joins}");
            assert!(replaced <= 1.0 && replaced > least, "{glm:?} {l1:?} {replaced}");
        }
    }

    /// Where weights may leave a small set on the way, slopes of several outputs are steeper than in it.
    #[test]
    fn slopes_of_several_outputs_are_bounded_where_weights_go() {
        let convex = Convex::new(Loss::Softmax { classes: 3 }).within(Set::L2 { radius: 0.1 });
        let plan = convex.plan(1000, 2, Budget::new(1.0, 1e-5).unwrap()).unwrap();
        let bound = |inside| {
            slopes_of(plan.program(), 2, 1.0, inside).map(|glm| (glm, glm.steepest)).unwrap()
        };
        let (glm, anywhere) = bound(false);
        let mut slopes = [0.0, 9.0, 0.0];
        glm.slopes(&mut slopes, 0.0);
        let long = norm(&slopes);
        assert!(long <= anywhere && long > 1.3 * bound(true).1, "{long} {anywhere}");
    }
}
