//! The default regression: whitened full-batch descent, robust first, with a high clip last.
//!
//! Every question to the data goes through the releaser under one of the names below; between them there is only
//! post-processing. Given the answers before it, each question is a sum of rows clipped to a known norm or a quantile, so
//! the plan's charges compose (adaptive composition), and nothing else depends on a row.
//!
//! 1. The target's scale and centre: private medians.
//! 2. Up to three whitenings. Each takes the second moment of rows cut to a known norm, in the space that the ones before
//!    have whitened, so that three of them resolve directions that one would lose in its noise. Cutting rows biases
//!    the second moment, but it only decides the metric, not the answer.
//! 3. A metric for clipping, between the whitened one (least noise) and the table's own (few rows clipped when there is
//!    budget to spare): covariance + λ. λ and the highest clip that noise allows follow from the budget.
//! 4. Three steps with a clip at the median find the scale of the residuals, whatever their tails.
//!    Where three quarters of the rows have one and the same target there is no such scale: the tail of the residuals is asked for instead,
//!    and nothing below it is clipped.
//! 5. Steps with a high clip remove the bias of the first: cheap ones with a heavy ball, then dear ones that are averaged.
//! 6. What is known of the noise in that average shrinks it (James and Stein), so that little budget gives little model
//!    rather than a wild one.
use quietly_core::{
    budget::Budget,
    mechanism::{Sampler, Stage, normal_quantile},
    privacy_plan::PrivacyPlan,
    progress::{ProgressCallback, report},
    release::Releaser,
};
use quietly_engine::{
    algorithm::{Access, Algorithm, Run, Shape},
    backend::{Backend, Batch, run_query},
    descent::{Average, Mean, StepSize},
    error::Error,
    histogram::{bin_value, decreasing_bins, geometric_bins, linear_bins},
    linalg::Square,
    link::Link,
    query::{ClippedGradients, QuerySum, SecondMoment, TargetBins, TargetHistogram},
    residual::{LEVEL, MEDIAN, Residual, TO_MEDIAN, unclipped},
    target_scaling::TargetScaling,
    transform::RowTransform,
    whitening::{Preconditioner, Whitening},
};
use serde::{Deserialize, Serialize};

use crate::budget_split::{BudgetSplit, Learnable};

pub const SCALE: &str = "target scale";
pub const CENTRE: &str = "target median";
pub const NORM: &str = "row norm (median)";
pub const MOMENT: &str = "second moment";
pub const FIRST: &str = "first clipping threshold";
pub const ROBUST: &str = "gradient (robust steps)";
pub const THRESHOLD: &str = "threshold";
pub const TAIL: &str = "residual tail quantile";
pub const CHEAP: &str = "gradient (warm-up steps)";
pub const LAST: &str = "gradient (final steps)";

/// The value of the constant feature.
pub const CONSTANT: f64 = 0.5;
/// The heavy ball of the cheap steps.
const MOMENTUM: f64 = 0.4;

/// The default regression: its link, and how it divides the budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FullBatch {
    /// Linear or ReLU.
    pub link: Link,
    /// How the budget is divided.
    #[serde(flatten)]
    pub design: BudgetSplit,
}

impl Algorithm for FullBatch {
    type Fitted = (f64, Vec<f64>);

    fn sampler(&self, _: Shape) -> Sampler {
        Sampler::FullBatch
    }

    fn stages(&self, _: Shape, budget: Budget, noise_multiplier: f64) -> Vec<Stage> {
        match self.design.reach {
            Learnable::Nothing => Vec::new(),
            _ => self.design.stages(budget.neighbours(), noise_multiplier),
        }
    }

    fn check(&self, _: Shape, budget: Budget) -> Result<(), Error> {
        self.link.check_least_squares()?;
        Ok(budget.unless_pure()?)
    }

    fn access(&self) -> Access {
        Access::Sums
    }

    fn fit(&self, run: Run<'_, '_>) -> Result<(f64, Vec<f64>), Error> {
        let Run { plan, shape, range, backend, releaser, watch, .. } = run;
        if self.design.reach == Learnable::Nothing {
            return Ok((0.5 * range.0 + 0.5 * range.1, vec![0.0; shape.width]));
        }
        let unit = TargetScaling::new(self.link, range);
        backend.begin(&releaser.draw(plan.sampler))?;
        let (intercept, weights) = fit(self, (plan, shape), backend, &unit, releaser, watch)?;
        Ok(unit.decode(intercept, weights))
    }
}

/// The intercept and the weights, in units of the target's range.
fn fit(
    FullBatch { link, design }: &FullBatch,
    (plan, shape): (&PrivacyPlan, Shape),
    backend: &mut dyn Backend,
    unit: &TargetScaling,
    releaser: &mut Releaser,
    watch: &mut ProgressCallback<'_>,
) -> Result<(f64, Vec<f64>), Error> {
    let (width, link) = (shape.width, *link);
    let steps = u64::from(design.whitenings)
        + design.robust_steps
        + design.cheap_steps
        + design.final_steps;
    let mut done = 0;
    let mut step = |watch: &mut ProgressCallback<'_>| {
        done += 1;
        Ok(report(watch, "step", done, steps)?)
    };

    // 1. The target.
    let (scale, centre) = target((plan, shape), backend, unit, releaser)?;
    if design.reach == Learnable::Centre {
        return Ok((centre, vec![0.0; width]));
    }
    // max(u, 0) cannot be moved.
    let centre = if link == Link::Linear { centre } else { 0.0 };

    // 2. Whitening.
    let norm = 1.1 * row_norm(width, backend, releaser)?;
    let start = Whitening::new(width, CONSTANT, norm, shape.rows);
    let cuts: Vec<f64> = (0..design.whitenings)
        .map(|round| if round == 0 { norm } else { design.whitened_norm })
        .collect();
    let whitening = whiten(start, &cuts, backend, releaser, &mut || step(watch))?;

    // 3. The preconditioner.
    let stretch = Residual::polishing(link).stretch();
    let noise = stretch * releaser.noise(LAST) / (design.final_steps as f64).sqrt();
    let preconditioner = Preconditioner::new(whitening, shape.rows, noise);

    // 4. Robust steps.
    let residual = Residual::approaching(link);
    let d = width + 1;
    let (transform, unit, count) = (preconditioner.transform(width), *unit, shape.rows as f64);
    let mut session = Session {
        backend,
        releaser,
        preconditioner: &preconditioner,
        transform,
        unit,
        centre,
        count,
    };
    let mut w = vec![0.0; d];
    let start = scale * (d as f64).sqrt();
    let grid = geometric_bins(start, -40, 8);
    let mut threshold = session.threshold(FIRST, LEVEL, &grid, &w, residual)?;
    let level = design.tail_level;
    let is_least = |threshold: f64| threshold < grid[1];
    let tail = match is_least(threshold) {
        true => Some(session.threshold(TAIL, level, &grid, &w, residual)?),
        false => None,
    };
    // Where most rows have one and the same target, the others have all there is to learn: nothing of them is clipped.
    let spiked = tail.filter(|tail| !is_least(*tail));
    for _ in 0..design.robust_steps {
        step(watch)?;
        // A clip at the median leaves half of the curvature.
        let (clip, far) = spiked.map_or((TO_MEDIAN * threshold, 2.0), |tail| (tail, 1.0));
        let (gradient, _) = session.gradient(ROBUST, clip, &w, residual)?;
        let direction = preconditioner.newton(residual, &w, &gradient);
        w.iter_mut().zip(direction).for_each(|(w, x)| *w += far * x);
        if spiked.is_none() {
            let grid = decreasing_bins(threshold, design.threshold_depth);
            threshold = session.threshold(THRESHOLD, LEVEL, &grid, &w, residual)?;
        }
    }

    // 5. The high clip: as far as noise allows, but no farther than the residuals reach.
    let threshold = TO_MEDIAN * threshold;
    let mut factor = preconditioner.highest_clip;
    if factor > 2.0 && spiked.is_none() {
        let normal = normal_quantile(0.5 * (1.0 + level)) / MEDIAN;
        let grid = geometric_bins(threshold, 0, 24);
        let heaviness = match tail {
            None => session.threshold(TAIL, level, &grid, &w, residual)? / threshold / normal,
            // It was spent.
            Some(_) => 1.0,
        };
        factor = factor.min((0.7 * normal * heaviness.powi(3)).max(2.0));
    }
    let (clip, left) = spiked.map_or((threshold * factor, unclipped(factor)), |tail| (tail, 1.0));
    let gentle = |m: &f64| m / (1.0 + 0.02 * (m - 1.0)) / left;
    let mut stepping = StepSize::new(preconditioner.multipliers.iter().map(gentle).collect());
    let all = design.cheap_steps + design.final_steps;
    let mut average = Mean::new(Average::over(design.cheap_steps..all), d);
    let mut noises = Vec::new();
    for t in 0..all {
        step(watch)?;
        let last = t >= design.cheap_steps;
        let residual = if last { Residual::polishing(link) } else { residual };
        let purpose = if last { LAST } else { CHEAP };
        let (gradient, std) = session.gradient(purpose, clip, &w, residual)?;
        let mut direction = preconditioner.newton(residual, &w, &gradient);
        direction.iter_mut().zip(&preconditioner.multipliers).for_each(|(x, m)| *x /= m);
        let std = std * residual.stretch();
        let momentum = if last { 0.0 } else { MOMENTUM };
        stepping.go(&mut w, direction, std, momentum);
        noises.push((std, momentum, last));
        average.take(t, &w);
    }
    let w = average.of(w);

    // 6. Shrinkage, and back to the table's own columns.
    let w = preconditioner.shrink(w, &stepping.sizes, left, &noises);
    let (weights, constant) = preconditioner.unmap(&w);
    Ok((centre + constant * CONSTANT, weights))
}

/// The rows, and the releaser of what is computed from them.
struct Session<'a> {
    backend: &'a mut dyn Backend,
    releaser: &'a mut Releaser,
    preconditioner: &'a Preconditioner,
    transform: RowTransform,
    unit: TargetScaling,
    centre: f64,
    count: f64,
}

impl Session<'_> {
    /// Gradients at these weights, of which nothing is summed yet.
    fn gradients(&self, weights: &[f64], residual: Residual) -> ClippedGradients {
        ClippedGradients {
            transform: self.transform.clone(),
            weights: self.preconditioner.forth(weights),
            residual: Some(residual),
            unit: self.unit,
            centre: self.centre,
            clip: None,
            lattice_clip: None,
            thresholds: None,
        }
    }

    /// A noisy mean gradient, and the standard deviation of its noise.
    fn gradient(
        &mut self,
        purpose: &str,
        clip: f64,
        weights: &[f64],
        residual: Residual,
    ) -> Result<(Vec<f64>, f64), Error> {
        let clip = clip.clamp(1e-250, 1e250);
        let query = ClippedGradients { clip: Some(clip), ..self.gradients(weights, residual) };
        let sum = self.run(&query)?.sum();
        let (mut mean, std) = self.releaser.sum(purpose, sum)?;
        mean.iter_mut().for_each(|g| *g /= self.count);
        Ok((self.preconditioner.back(mean), std / self.count))
    }

    /// The threshold below which about `level` of the gradients' norms lie.
    fn threshold(
        &mut self,
        purpose: &str,
        level: f64,
        thresholds: &[f64],
        weights: &[f64],
        residual: Residual,
    ) -> Result<f64, Error> {
        let query = self.gradients(weights, residual);
        let query = ClippedGradients { thresholds: Some(thresholds.to_vec()), ..query };
        let counts = self.run(&query)?.histogram();
        Ok(bin_value(thresholds, self.releaser.quantile(purpose, level, counts)?))
    }

    fn run(&mut self, query: &ClippedGradients) -> Result<QuerySum, Error> {
        run_query(self.backend, self.releaser, &Batch::All, query)
    }
}

/// Whitens once for every cut: rows are cut to that norm in the space that the rounds before have made.
pub fn whiten(
    mut whitening: Whitening,
    cuts: &[f64],
    backend: &mut dyn Backend,
    releaser: &mut Releaser,
    step: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<Whitening, Error> {
    for (round, cut) in cuts.iter().enumerate() {
        step()?;
        let (width, transform) = whitening.shape();
        let transform = match round {
            0 => RowTransform::plain(width, CONSTANT),
            _ => transform,
        };
        let query = SecondMoment { transform, norm: *cut };
        let moment = run_query(backend, releaser, &Batch::All, &query)?.sum();
        let (upper, std) = releaser.sum(MOMENT, moment)?;
        whitening.refine(&Square::symmetric(width + 1, &upper), std);
    }
    Ok(whitening)
}

/// The private scale of y, and its median on a grid of that size. The number of rows is released with them.
fn target(
    (plan, shape): (&PrivacyPlan, Shape),
    backend: &mut dyn Backend,
    unit: &TargetScaling,
    releaser: &mut Releaser,
) -> Result<(f64, f64), Error> {
    let wide = geometric_bins(1.0, -80, 1);
    let sizes = TargetHistogram { unit: *unit, bins: TargetBins::Sizes(wide.clone()) };
    let counts = run_query(backend, releaser, &Batch::All, &sizes)?.histogram();
    // Every row has its target in one of the bins.
    let count = counts.total();
    let scale = size(&wide, releaser.quantile(SCALE, LEVEL, counts)?);
    releaser.count_rows(plan, shape.rows, count)?;
    let places = TargetHistogram { unit: *unit, bins: TargetBins::Centres(scale) };
    let counts = run_query(backend, releaser, &Batch::All, &places)?.histogram();
    Ok((scale, linear_bins(scale).0[releaser.quantile(CENTRE, 0.5, counts)?]))
}

/// The size of targets whose quantile lies in bin k; if that is nought, and most of them are 0, that of their range.
pub fn size(thresholds: &[f64], k: usize) -> f64 {
    if k == 0 { 1.0 } else { bin_value(thresholds, k) }
}

/// The private median of the norms of rows, the constant among their features.
pub fn row_norm(
    width: usize,
    backend: &mut dyn Backend,
    releaser: &mut Releaser,
) -> Result<f64, Error> {
    let thresholds = norms(width);
    let plain = RowTransform::plain(width, CONSTANT);
    let query = ClippedGradients::norms(plain, thresholds.clone());
    let counts = run_query(backend, releaser, &Batch::All, &query)?.histogram();
    Ok(bin_value(&thresholds, releaser.quantile(NORM, 0.5, counts)?))
}

/// From the least norm a row can have to the greatest, in eighth powers of two.
pub fn norms(width: usize) -> Vec<f64> {
    let most = (width as f64 + CONSTANT * CONSTANT).sqrt() / CONSTANT;
    let steps = (8.0 * most.log2()).ceil() as i32 + 1;
    (0..=steps).map(|k| CONSTANT * 2.0_f64.powf(f64::from(k) / 8.0)).collect()
}
