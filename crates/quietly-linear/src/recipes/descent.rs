//! A recipe's descent: its gradients, its clip and its steps, for the one loop of [`quietly_engine::descent`].
//!
//! Given the answers before it, each question is a sum of rows clipped to a known norm, a count or a quantile, under the
//! name and with the noise that the plan has charged; everything else is post-processing.
use quietly_core::{
    charge::Sampler,
    lattice::Lattice,
    progress::{Watch, tell},
    release::{BoundedSum, Door, Histogram, Released},
};
use quietly_engine::{
    descent::{At, ClippedGradient, Descent, StepSum, Update},
    error::Error,
    linalg::dot,
    pass::{Grid, Query},
    residual::Residual,
    unit::Unit,
};

use super::{
    Clip, GRADIENT, Noise, Pace, Recipe, Run,
    space::Space,
    steps::Steps,
    threshold::{PublicRows, STAT_PART, Threshold},
};

/// The intercept and the weights, in units of the target's range.
pub(super) fn fit(
    recipe: &Recipe,
    run: &mut Run<'_>,
    watch: &mut Watch<'_>,
) -> Result<(f64, Vec<f64>), Error> {
    let public = matches!(recipe.clip, Clip::Public { .. });
    let given = run.public.is_some_and(|t| t.rows() > 0);
    Error::unless(
        given || !public,
        "public table",
        "one with at least one row (--public FILE)",
        "empty or missing",
    )?;

    let (space, spare) = Space::new(run, recipe)?;
    let d = run.shape.width + 1;
    let cells = match recipe.clip {
        Clip::Stat => recipe.steps as usize * STAT_PART,
        Clip::Falling { .. } => recipe.steps as usize + 1,
        _ => recipe.steps as usize,
    };
    let steps = Steps::new(run, &space, spare, cells)?;
    let public = run.public.filter(|_| public).map(|table| -> PublicRows {
        let (unit, distance) = (*run.unit, recipe.residual.distance());
        let residual = move |u: f64, raw: f64| distance.of(u, unit.of(raw));
        (space.cached(None, table, run.threads), Box::new(residual))
    });
    let radius = recipe.radius.map(|radius| radius / space.scale());
    // Rows measure about √d, and are taken to measure at most a quarter more.
    let bound = (1.25 * (d as f64).sqrt(), radius.unwrap_or(0.0));
    let full = run.plan.sampler == Sampler::Full;
    let (unit, threads) = (run.unit, run.threads);
    let mut gradient = Gradient { steps, recipe, unit, base: None, full, threads };
    let weights = vec![0.0; d];
    let mut clip = Threshold::first(run, recipe.clip, public, &weights, &mut gradient, bound)?;
    if recipe.noise == Noise::Tree {
        gradient.base = Some(Lattice::for_sums(clip.now(), d));
        run.door.aggregate_by_tree(GRADIENT);
    }
    let mut update = Step { recipe, rows: recipe.rows(run.shape), radius };
    let average = recipe.average.of(recipe.steps);
    let all = 0..recipe.steps;
    let mut descent =
        Descent { release: GRADIENT, steps: all, clip: &mut clip, update: &mut update, average };
    let report = &mut |t| Ok(tell(watch, "step", t + 1, recipe.steps)?);
    let weights = descent.run(weights, &mut gradient, run.door, report)?;
    Ok(space.unmap(weights))
}

impl Recipe {
    /// The residual of a step. max(u, 0) has two derivatives at 0, where all scores start.
    fn residual_at(&self, step: u64) -> Residual {
        match self.residual {
            Residual::Relu if step == 0 => Residual::Glmtron,
            residual => residual,
        }
    }
}

/// Sums of clipped gradients over the rows of a step.
struct Gradient<'a> {
    steps: Steps,
    recipe: &'a Recipe,
    unit: &'a Unit,
    /// The lattice of all leaves of a tree.
    base: Option<Lattice>,
    /// Whether every step sees every row.
    full: bool,
    threads: usize,
}

impl ClippedGradient for Gradient<'_> {
    fn sum(&mut self, at: &At<'_>, _door: &mut Door) -> Result<StepSum, Error> {
        let d = at.weights.len();
        let lattice = match &self.base {
            None => Lattice::for_sums(at.clip, d),
            Some(base) => base.with_clip(at.clip, d),
        };
        let grid = at.bins.map(|bins| Grid::new(bins.to_vec()));
        let (residual, distance) =
            (self.recipe.residual_at(at.step), self.recipe.residual.distance());
        let query = Query {
            weights: at.weights,
            residual: |u: f64, raw: f64| residual.of(u, self.unit.of(raw)),
            clip: Some(&lattice),
            grid: grid.as_ref(),
        };
        let first = at.step as usize;
        let cells = match self.recipe.clip {
            Clip::Stat => first * STAT_PART + 1..(first + 1) * STAT_PART,
            Clip::Falling { .. } => first + 1..first + 2,
            _ => first..first + 1,
        };
        let (sum, mut counts) = self.steps.tally(at.step, cells.clone(), &query, self.threads);
        if grid.is_some() && distance != residual {
            let query = Query {
                weights: at.weights,
                residual: |u: f64, raw: f64| distance.of(u, self.unit.of(raw)),
                clip: None,
                grid: grid.as_ref(),
            };
            counts = self.steps.tally(at.step, cells, &query, self.threads).1;
        }
        let gradient = BoundedSum::new(sum, lattice.sensitivity());
        Ok(StepSum { gradient, norms: grid.map(|_| Histogram::new(counts)) })
    }

    /// DP-STAT has rows of its own in every step, and a falling clip has those of the first cell where rows are sampled.
    fn norms(&mut self, at: &At<'_>, _door: &mut Door) -> Result<Histogram, Error> {
        let grid = Grid::new(at.bins.expect("bins").to_vec());
        let distance = self.recipe.residual.distance();
        let query = Query {
            weights: at.weights,
            residual: |u: f64, raw: f64| distance.of(u, self.unit.of(raw)),
            clip: None,
            grid: Some(&grid),
        };
        let apart = match self.recipe.clip {
            Clip::Stat => Some(at.step as usize * STAT_PART),
            Clip::Falling { .. } if !self.full => Some(0),
            _ => None,
        };
        let (_, counts) = match apart {
            Some(cell) => self.steps.tally(at.step, cell..cell + 1, &query, self.threads),
            None => self.steps.tally_all(&query, self.threads),
        };
        Ok(Histogram::new(counts))
    }
}

/// A step of a recipe's length, within its radius.
struct Step<'a> {
    recipe: &'a Recipe,
    /// About how many rows a step sees.
    rows: f64,
    radius: Option<f64>,
}

impl Update for Step<'_> {
    fn step(&mut self, t: u64, w: &mut [f64], released: &Released) {
        let step = self.recipe.step_size / self.rows;
        match &released.prefix {
            None => {
                let mut gradient = released.values.clone();
                if self.recipe.pace == Pace::Curvature {
                    // The constant makes one direction of max(u, 0) flat: Newton's step for it, at no price.
                    let d = w.len();
                    let size = dot(&w[..d - 1], &w[..d - 1]).sqrt();
                    let residual = self.recipe.residual_at(t);
                    gradient = residual.newton(w, &released.values, gradient, size);
                    gradient.iter_mut().for_each(|g| *g /= residual.stretch());
                }
                w.iter_mut().zip(gradient).for_each(|(w, g)| *w += step * g);
            }
            // A tree knows the sum of all steps better than their increments.
            Some(prefix) => w.iter_mut().zip(prefix).for_each(|(w, p)| *w = step * p),
        }
        if let Some(radius) = self.radius {
            let norm = dot(w, w).sqrt();
            w.iter_mut().for_each(|w| *w *= (radius / norm).min(1.0));
        }
    }
}
