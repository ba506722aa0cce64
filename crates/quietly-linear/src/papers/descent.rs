//! A recipe's descent: its gradients, its clip and its steps, for the one loop of [`quietly_engine::descent`].
//!
//! Given the answers before it, each question is a sum of rows clipped to a known norm, a count or a quantile, under the
//! name and with the noise that the plan has charged; everything else is post-processing.
use quietly_core::{
    mechanism::Sampler,
    progress::{ProgressCallback, report},
    release::{Histogram, Released, Releaser},
};
use quietly_engine::{
    backend::{Backend, Batch, run_query},
    descent::{At, ClippedGradient, Descent, StepSum, Update},
    error::Error,
    histogram::geometric_bins,
    linalg::dot,
    query::{ClippedGradients, Combined},
    residual::Residual,
    target_scaling::TargetScaling,
    transform::RowTransform,
};

use super::{
    Clip, GRADIENT, Noise, Pace, Recipe, Run,
    clip_rules::{PublicRows, STAT_PART, Threshold},
    dp_pgd::TARGET_LEVEL,
    space::Space,
};

/// The intercept and the weights, in units of the target's range.
pub(super) fn fit(
    recipe: &Recipe,
    run: &mut Run<'_>,
    watch: &mut ProgressCallback<'_>,
) -> Result<(f64, Vec<f64>), Error> {
    let public = matches!(recipe.clip, Clip::Public { .. });
    let given = run.public.is_some_and(|t| t.rows() > 0);
    Error::ensure(
        given || !public,
        "public table",
        "one with at least one row (--public FILE)",
        "empty or missing",
    )?;

    run.count_rows()?;
    let space = Space::new(run, recipe)?;
    let d = run.shape.width + 1;
    let cells = match recipe.clip {
        Clip::Stat => recipe.steps * STAT_PART,
        Clip::Falling { .. } => recipe.steps + 1,
        _ => recipe.steps,
    };
    // A step of DP-STAT has several groups: each row pays for its group as if all knew which, however likely the groups are.
    let sampler = match run.plan.sampler {
        Sampler::Partition { .. } => Sampler::Partition { steps: cells },
        sampler => sampler,
    };
    run.backend.begin(&run.releaser.draw(sampler))?;
    let transform = space.transform(run.shape.width);
    let threads = run.releaser.threads();
    let public = run.public.filter(|_| public).map(|table| -> PublicRows {
        let (unit, distance) = (*run.unit, recipe.residual.distance());
        let residual = move |u: f64, raw: f64| distance.of(u, unit.encode(raw));
        (transform.cached(None, table, threads), Box::new(residual))
    });
    let radius = recipe.radius.map(|radius| radius / space.scale());
    // Rows measure about √d, and are taken to measure at most a quarter more.
    let bound = (1.25 * (d as f64).sqrt(), radius.unwrap_or(0.0));
    let target = match recipe.clip {
        Clip::Bound => {
            let wide = geometric_bins(1.0, -80, 1);
            // Rows of norm one: their norm times the target is the target.
            wide[run.target_quantile(&wide, TARGET_LEVEL)?]
        }
        _ => 0.0,
    };
    let (plan, shape, unit) = (run.plan, run.shape, *run.unit);
    let full = plan.sampler == Sampler::FullBatch;
    let mut gradient =
        Gradient { backend: run.backend, transform, recipe, unit, lattice_clip: None, full };
    let weights = vec![0.0; d];
    let bound = bound.0 * (bound.0 * bound.1 + target);
    let mut clip =
        Threshold::first(run.releaser, recipe.clip, public, &weights, &mut gradient, bound)?;
    if recipe.noise == Noise::Tree {
        gradient.lattice_clip = Some(clip.now());
        run.releaser.aggregate_by_tree(GRADIENT);
    }
    let mut update = Step { recipe, rows: recipe.rows(shape), radius };
    let average = recipe.average.of(recipe.steps);
    let all = 0..recipe.steps;
    let mut descent =
        Descent { release: GRADIENT, steps: all, clip: &mut clip, update: &mut update, average };
    let report = &mut |t| Ok(report(watch, "step", t + 1, recipe.steps)?);
    let weights = descent.run(weights, &mut gradient, run.releaser, report)?;
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
    backend: &'a mut dyn Backend,
    transform: RowTransform,
    recipe: &'a Recipe,
    unit: TargetScaling,
    /// The clipping norm of the lattice of all leaves of a tree.
    lattice_clip: Option<f64>,
    /// Whether every step sees every row.
    full: bool,
}

impl Gradient<'_> {
    fn query(&self, weights: &[f64], residual: Residual) -> ClippedGradients {
        ClippedGradients {
            transform: self.transform.clone(),
            weights: weights.to_vec(),
            residual: Some(residual),
            unit: self.unit,
            centre: 0.0,
            clip: None,
            lattice_clip: self.lattice_clip,
            thresholds: None,
        }
    }

    /// The groups of rows of a step.
    fn batch(&self, step: u64) -> Batch {
        match self.recipe.clip {
            _ if self.full => Batch::All,
            Clip::Stat => Batch::Steps(step * STAT_PART + 1..(step + 1) * STAT_PART),
            Clip::Falling { .. } => Batch::step(step + 1),
            _ => Batch::step(step),
        }
    }
}

impl ClippedGradient for Gradient<'_> {
    fn sum(&mut self, at: &At<'_>, releaser: &mut Releaser) -> Result<StepSum, Error> {
        let (residual, distance) =
            (self.recipe.residual_at(at.step), self.recipe.residual.distance());
        let thresholds = at.bins.map(|bins| bins.to_vec());
        let mut gradients =
            ClippedGradients { clip: Some(at.clip), ..self.query(at.weights, residual) };
        let batch = self.batch(at.step);
        let sum = match thresholds {
            // Norms are those of the distance, whatever the step goes along.
            Some(_) if distance != residual => {
                let norms = ClippedGradients { thresholds, ..self.query(at.weights, distance) };
                let both = Combined::new(vec![Box::new(gradients), Box::new(norms)]);
                run_query(self.backend, releaser, &batch, &both)?
            }
            thresholds => {
                gradients.thresholds = thresholds;
                run_query(self.backend, releaser, &batch, &gradients)?
            }
        };
        let (sums, counts) = sum.split();
        let gradient = sums.into_iter().next().expect("one sum");
        Ok(StepSum { gradient, norms: counts.into_iter().next() })
    }

    /// DP-STAT has rows of its own in every step, and a falling clip has those of the first group where rows are sampled.
    fn norms(&mut self, at: &At<'_>, releaser: &mut Releaser) -> Result<Histogram, Error> {
        let thresholds = at.bins.map(|bins| bins.to_vec());
        let distance = self.recipe.residual.distance();
        let query = ClippedGradients { thresholds, ..self.query(at.weights, distance) };
        let batch = match self.recipe.clip {
            Clip::Stat => Batch::step(at.step * STAT_PART),
            Clip::Falling { .. } if !self.full => Batch::step(0),
            _ => Batch::All,
        };
        Ok(run_query(self.backend, releaser, &batch, &query)?.histogram())
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
