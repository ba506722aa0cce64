//! Small tables without a large class: a descent along gradients that are all clipped to one norm.
//!
//! T steps of η along means of gradients of norm at most 1 end with noise of η·√T·(√T/μ)/n = ηT/(nμ) in every weight, whatever T is: so
//! ηT = ¾·nμ leaves noise of ¾, and the mean of the last half of the points less. The clip is a bias that no budget removes, so that
//! larger tables take the minimiser. Rows are centred, in units of two standard deviations and held to [-1, 1] in every feature; the descent
//! starts at the classes' shares. docs/spec/default.md#9.2 has the measurements that the constants are from.
use quietly_core::{
    lattice::Lattice,
    mechanism::{PlannedRelease, Stage},
    progress::report,
    release::{BoundedSum, Released, Releaser},
};
use quietly_data::Private;
use quietly_engine::{
    descent::{At, Average, ClippedGradient, Descent, FixedClip, StepSum, Update},
    error::Error,
};

use super::Rows;
use crate::{
    design_matrix::{Examples, Features, Shape as RowShape},
    dp_gd::GRADIENT,
    glm::Glm,
    run::{Fitting, Weights},
    standardise::RowMap,
};

/// ηT over nμ.
const REACH: f64 = 0.75;
/// Where gradients are cut: at that of a row of nothing but its constant.
const CLIP: f64 = 1.0;
const CONSTANT: f64 = 1.0;
const STEPS: f64 = 100.0;
const MOST_STEPS: f64 = 400.0;
/// Longer steps do not settle where classes overlap.
const LONGEST_STEP: f64 = 6.0;
/// Rows from which on so many passes are slow.
const MANY_ROWS: u64 = 100_000;
/// nμ per weight up to which a descent is the better solver where no class is large: for two classes and for more. For more than two
/// docs/spec/default.md#9.2 has 5 as well, and says that it is too low.
const FEW: (f64, f64) = (5.0, 20.0);
/// And whatever the number of weights: below, not even the shares of classes are known to one thirtieth (`COUNTS_SHARE`), and a minimiser asks
/// more than that.
const FEW_FOR_ANY: f64 = 60.0;

/// How many steps there are for so many rows of `width` features, each worth `mu`; none if the table is not small.
pub(super) fn steps(rows: u64, width: usize, classes: usize, mu: f64) -> Option<u64> {
    let signal = rows as f64 * mu;
    let steps = (REACH * signal / LONGEST_STEP).ceil().max(STEPS);
    let few = if classes == 2 { FEW.0 } else { FEW.1 };
    let weights = (width * (classes - 1)) as f64;
    let small =
        signal <= (few * weights).max(FEW_FOR_ANY) && rows <= MANY_ROWS && steps <= MOST_STEPS;
    small.then_some(steps as u64)
}

/// The stage, whose steps have this noise.
pub(super) fn stage(steps: u64, noise: f64) -> Stage {
    Stage::new("descent", steps, vec![PlannedRelease::sum(GRADIENT, noise)])
}

/// The sum of clipped gradients over all rows.
struct Gradient<'a> {
    examples: Private<Examples<'a>>,
    glm: Glm,
    lattice: Lattice,
}

impl ClippedGradient for Gradient<'_> {
    fn sum(&mut self, at: &At<'_>, _: &mut Releaser) -> Result<StepSum, Error> {
        let sum = self
            .examples
            .as_ref()
            .map(|rows| rows.clipped_gradient_sum(self.glm, at.weights, &self.lattice, None));
        let gradient = BoundedSum::new(sum, self.lattice.sensitivity());
        Ok(StepSum { gradient, norms: None })
    }
}

/// A step of fixed length along the mean gradient.
struct Step {
    length: f64,
}

impl Update for Step {
    fn step(&mut self, _: u64, weights: &mut [f64], released: &Released) {
        weights.iter_mut().zip(&released.values).for_each(|(w, g)| *w -= self.length * g);
    }
}

/// Descends on rows that go through `map`.
pub(super) fn fit(
    run: &mut Fitting<'_, '_>,
    rows: &Rows<'_>,
    map: RowMap,
    steps: u64,
) -> Result<Weights, Error> {
    let (width, threads) = (run.shape.width, run.releaser.threads());
    run.constant = CONSTANT;
    run.radius = (width as f64 + CONSTANT * CONSTANT).sqrt() * (1.0 + 1e-12);
    let shape = RowShape { width, constant: CONSTANT, l1: None, radius: run.radius };
    let mapped = rows.features.as_ref().zip(rows.target.as_ref());
    let mapped =
        mapped.map(|(features, target)| (map.rows(*features, target.len(), threads), target));
    let examples = mapped.as_ref().map(|(rows, target)| {
        Examples::new(shape, Features::Dense(rows), (*target).clone(), threads)
    });
    let size = run.problem.loss.outputs() * (width + 1);
    let glm = Glm { derivative_bound: f64::INFINITY, ..run.problem.glm(width, run.radius)? };
    let mut gradient = Gradient { examples, glm, lattice: Lattice::for_sums(CLIP, size) };
    let mut start = vec![0.0; size];
    for (weights, offset) in start.chunks_exact_mut(width + 1).zip(&run.offsets) {
        weights[width] = offset / CONSTANT;
    }
    // What all steps are worth together.
    let mu = (steps as f64).sqrt() / run.releaser.noise(GRADIENT);
    let mut update = Step { length: REACH * mu / steps as f64 };
    let average = Average::last_half(steps).dividing_first();
    let clip = &mut FixedClip(CLIP);
    let update = &mut update;
    let mut descent = Descent { release: GRADIENT, steps: 0..steps, clip, update, average };
    let watch = &mut *run.watch;
    let report = &mut |t| Ok(report(watch, "step", t + 1, steps)?);
    let found = descent.run(start, &mut gradient, run.releaser, report)?;
    Ok(run.weights(&found, Some(map)))
}
