//! The one loop that runs every descent.
//!
//! Given the answers before it, each question is a sum of rows clipped to a known norm, a count or a quantile, under the
//! name and with the noise that the plan has charged; everything else is post-processing.
use super::{Clip, GRADIENT, Noise, Pace, Run, space::Space, steps::Steps, threshold, tree::Tree};
use crate::{
    descent::{Average, Residual},
    error::Error,
    lattice::Lattice,
    linalg::dot,
    pass::Query,
    progress::{Watch, tell},
    release::LatticeSum,
};

/// The intercept and the weights, in units of the target's range.
pub(super) fn fit(run: &mut Run<'_>, watch: &mut Watch<'_>) -> Result<(f64, Vec<f64>), Error> {
    let recipe = run.plan.recipe.clone().expect("a descent has a recipe");
    let public = matches!(recipe.clip, Clip::Public { .. });
    let given = run.public.is_some_and(|t| t.rows() > 0);
    Error::unless(
        given || !public,
        "public table",
        "one with at least one row (--public FILE)",
        "empty or missing",
    )?;

    let (space, spare) = Space::new(run, &recipe)?;
    let d = run.plan.width + 1;
    let cells = match recipe.clip {
        Clip::Stat => recipe.steps as usize * threshold::STAT_PART,
        Clip::Falling { .. } => recipe.steps as usize + 1,
        _ => recipe.steps as usize,
    };
    let steps = Steps::new(run, &space, spare, cells)?;
    let public = if public { run.public.map(|t| space.cached(None, t, run.threads)) } else { None };
    let unit = run.unit;
    let y = |raw: f64| unit.of(raw);
    let mut w = vec![0.0; d];
    let radius = recipe.radius.map(|radius| radius / space.scale());
    // Rows measure about √d, and are taken to measure at most a quarter more.
    let bound = (1.25 * (d as f64).sqrt(), radius.unwrap_or(0.0));
    // max(u, 0) has two derivatives at 0, where all scores start.
    let residual = |t: u64| {
        if t == 0 && recipe.residual == Residual::Relu {
            Residual::Glmtron
        } else {
            recipe.residual
        }
    };
    let distance = recipe.residual.distance();
    let at = threshold::At { steps: &steps, weights: &w, residual: distance, y };
    let mut clip = threshold::Threshold::first(run, recipe.clip, public, &at, bound)?;

    let rows = recipe.rows(run.plan);
    let mut average = Average::new(d);
    let mut tree = Tree::default();
    let base = Lattice::for_sums(clip.clip.clamp(1e-250, 1e250), d);
    for t in 0..recipe.steps {
        tell(watch, "step", t + 1, recipe.steps)?;
        let residual = residual(t);
        clip.look(run, t, &threshold::At { steps: &steps, weights: &w, residual: distance, y })?;
        let now = clip.clip.clamp(1e-250, 1e250);
        let lattice = match recipe.noise {
            Noise::Independent => Lattice::for_sums(now, d),
            Noise::Tree => base.with_clip(now, d),
        };
        let grid = clip.grid();
        let of = |u: f64, raw: f64| residual.of(u, y(raw));
        let query = Query {
            weights: &w,
            residual: of,
            clip: Some(&lattice),
            grid: grid.as_ref().map(|(_, grid)| grid),
        };
        let first = t as usize;
        let cells = match recipe.clip {
            Clip::Stat => first * threshold::STAT_PART + 1..(first + 1) * threshold::STAT_PART,
            Clip::Falling { .. } => first + 1..first + 2,
            _ => first..first + 1,
        };
        let (sum, mut counts) = steps.tally(t, cells.clone(), &query, run.threads)?;
        if grid.is_some() && distance != residual {
            let of = |u: f64, raw: f64| distance.of(u, y(raw));
            let query = Query { weights: &w, residual: of, clip: None, grid: query.grid };
            counts = steps.tally(t, cells, &query, run.threads)?.1;
        }
        let (bound, unit) = (lattice.bound() as f64, lattice.step());
        let step = recipe.step_size / rows;
        match recipe.noise {
            Noise::Independent => {
                let (mut gradient, _) = run.door.sum(GRADIENT, LatticeSum { sum, bound, unit })?;
                if recipe.pace == Pace::Curvature {
                    // The constant makes one direction of max(u, 0) flat: Newton's step for it, at no price.
                    let size = dot(&w[..d - 1], &w[..d - 1]).sqrt();
                    let plain = gradient.clone();
                    gradient = residual.newton(&w, &gradient, plain, size);
                    gradient.iter_mut().for_each(|g| *g /= residual.stretch());
                }
                w.iter_mut().zip(gradient).for_each(|(w, g)| *w += step * g);
            }
            Noise::Tree => {
                let prefix = tree.add(run.door, GRADIENT, sum, bound, unit)?;
                w = prefix.into_iter().map(|p| step * p).collect();
            }
        }
        if let Some(radius) = radius {
            let norm = dot(&w, &w).sqrt();
            w.iter_mut().for_each(|w| *w *= (radius / norm).min(1.0));
        }
        if let Some((thresholds, _)) = grid {
            clip.fall(run, &thresholds, counts)?;
        }
        if recipe.average.takes(t, recipe.steps) {
            average.take(&w);
        }
    }
    Ok(space.unmap(average.mean()))
}
