//! The default regression: rows through a private map of their columns, whitened descent, robust first, with a high clip last.
//!
//! Every question to the data goes through the releaser under one of the names below; between them there is only
//! post-processing. Given the answers before it, each question is a sum of rows of bounded norm or a quantile, so
//! the plan's charges compose (adaptive composition), and nothing else depends on a row. Which of them are asked, and for which share of
//! the budget, is the [`Design`], which public numbers decide.
//!
//! 1. Trees of the numeric columns: they are winsorised, centred and scaled, and what lies beyond may have features of its own.
//! 2. The target's centre: the mean of its tree, or a noisy mean.
//! 3. Up to three whitenings. Each takes the second moment of rows cut to a known norm, in the space that the ones before
//!    have whitened, so that three of them resolve directions that one would lose in its noise. Cutting rows biases
//!    the second moment, but it only decides the metric, not the answer.
//! 4. A metric for clipping, between the whitened one (least noise) and the table's own (few rows clipped when there is
//!    budget to spare): covariance + λ.
//! 5. Steps: robust ones, cheap ones with a heavy ball, then dear ones that are averaged. Before each kind, a histogram of gradient norms
//!    gives the clip of the least predicted error, so that the bias of clipping vanishes as noise does.
//! 6. What is known of the noise in that average shrinks it (James and Stein), so that little budget gives little model
//!    rather than a wild one.
//! 7. Where noise is large, two more sums tell what the model gains over the constant, and it is drawn to that.
//!
//! Predictions are held to the public range of the target, which is never worse for targets within it.
use std::cell::Cell;

use quietly_core::{
    budget::Budget,
    mechanism::{Sampler, Stage},
    privacy_plan::PrivacyPlan,
    progress::{ProgressCallback, report},
    release::Releaser,
};
use quietly_engine::{
    algorithm::{Access, Algorithm, Run, Shape},
    backend::{Backend, Batch, run_query},
    column_map::{ColumnMap, Standardise},
    descent::{Average, ClipRule, Descent},
    error::Error,
    histogram::bin_value,
    linalg::Square,
    link::Link,
    query::{ClippedGradients, SecondMoment},
    residual::Residual,
    target_scaling::TargetScaling,
    transform::RowTransform,
    whitening::{Preconditioner, Whitening},
};
use serde::{Deserialize, Serialize};

use self::{
    clip::{Found, Histograms, Quartiles},
    gate::Gate,
    steps::{Gradients, Phase, Steps},
    target::TargetQuestions,
};
use crate::{
    budget_split::{ClipFrom, Design, Learnable},
    linear_fit::LinearFit,
};

pub(crate) mod clip;
pub(crate) mod gate;
mod steps;
mod target;

pub const COLUMNS: &str = "column trees";
pub const TARGET: &str = "target tree";
pub const MEAN: &str = "target mean";
pub const NORM: &str = "row norm (median)";
pub const CENTRES: &str = "mean of the features";
pub const MOMENT: &str = "second moment";
pub const NORMS: &str = "gradient norm histogram";
pub const FIRST: &str = "first clipping threshold";
pub const THRESHOLD: &str = "threshold";
pub const ROBUST: &str = "gradient (robust steps)";
pub const CHEAP: &str = "gradient (warm-up steps)";
pub const LAST: &str = "gradient (final steps)";
pub const GATE: &str = "gain over the constant";

/// The value of the constant feature.
pub const CONSTANT: f64 = 0.5;
/// The heavy ball of the cheap steps.
const MOMENTUM: f64 = 0.4;
/// With quartiles for clips, they are at most so many medians high: farther up, a histogram is asked for.
const HIGHEST_OF_QUARTILES: f64 = 2.0;

/// The default regression: its link, its columns, and how it divides the budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FullBatch {
    /// Linear or ReLU.
    pub link: Link,
    /// The features that are numeric columns, which a map may winsorise: public. None turns the map off.
    pub numbers: Vec<usize>,
    /// How the budget is divided.
    #[serde(flatten)]
    pub design: Design,
}

impl Algorithm for FullBatch {
    type Fitted = LinearFit;

    fn sampler(&self, _: Shape) -> Sampler {
        Sampler::FullBatch
    }

    fn stages(&self, _: Shape, budget: Budget, noise_multiplier: f64) -> Vec<Stage> {
        self.design.stages(budget.neighbours(), noise_multiplier)
    }

    fn check(&self, shape: Shape, budget: Budget) -> Result<(), Error> {
        self.link.check_least_squares()?;
        check_numbers(&self.numbers, shape)?;
        let columns = !self.design.columns || !self.numbers.is_empty();
        Error::ensure(columns, "plan", "as it was planned", "one that was changed")?;
        Ok(budget.unless_pure()?)
    }

    fn access(&self) -> Access {
        Access::Sums
    }

    fn fit(&self, run: Run<'_, '_>) -> Result<LinearFit, Error> {
        let Run { plan, shape, range, backend, releaser, watch, .. } = run;
        if self.design.reach == Learnable::Nothing {
            let middle = 0.5 * range.0 + 0.5 * range.1;
            return Ok(LinearFit::plain(self.link, (middle, vec![0.0; shape.width])));
        }
        backend.begin(&releaser.draw(plan.sampler))?;
        self.fit_begun(plan, shape, range, backend, releaser, watch)
    }
}

/// Refuses features that are not there, or stand there twice.
pub fn check_numbers(numbers: &[usize], shape: Shape) -> Result<(), Error> {
    let rising = numbers.is_sorted_by(|a, b| a < b);
    let good = rising && numbers.last().is_none_or(|last| *last < shape.width);
    Error::ensure(good, "plan", "as it was planned", "one whose columns are not in the table")
}

impl FullBatch {
    /// The fit on a backend that has begun: for algorithms that are more than this.
    ///
    /// # Errors
    ///
    /// As [`Algorithm::fit`].
    pub fn fit_begun(
        &self,
        plan: &PrivacyPlan,
        shape: Shape,
        range: (f64, f64),
        backend: &mut dyn Backend,
        releaser: &mut Releaser,
        watch: &mut ProgressCallback<'_>,
    ) -> Result<LinearFit, Error> {
        let unit = TargetScaling::new(self.link, range);
        let fit = self.fit_scaled(plan, shape, (unit, range), backend, releaser, watch)?;
        Ok(fit.in_units(&unit, range))
    }

    /// The same in units of the target's range.
    pub(crate) fn fit_scaled(
        &self,
        plan: &PrivacyPlan,
        shape: Shape,
        (unit, range): (TargetScaling, (f64, f64)),
        backend: &mut dyn Backend,
        releaser: &mut Releaser,
        watch: &mut ProgressCallback<'_>,
    ) -> Result<LinearFit, Error> {
        let range = (unit.encode(range.0), unit.encode(range.1));
        Fit { algorithm: self, plan, shape, range, unit, backend, releaser, watch }.run()
    }
}

/// A fit on its way, in units of the target's range.
struct Fit<'a, 'w> {
    algorithm: &'a FullBatch,
    plan: &'a PrivacyPlan,
    shape: Shape,
    /// The public range of the target, in its units.
    range: (f64, f64),
    unit: TargetScaling,
    backend: &'a mut dyn Backend,
    releaser: &'a mut Releaser,
    watch: &'a mut ProgressCallback<'w>,
}

impl Fit<'_, '_> {
    fn run(self) -> Result<LinearFit, Error> {
        let FullBatch { link, numbers, design } = self.algorithm;
        let (link, width, rows) = (*link, self.shape.width, self.shape.rows as f64);
        let neighbours = self.plan.budget.neighbours();
        let steps = design.robust_steps + design.cheap_steps + design.final_steps;
        let all = u64::from(design.whitenings) + steps;

        // 1. Columns.
        let map = match design.columns {
            false => None,
            true => Some(ColumnMap::release(
                (COLUMNS, numbers, width),
                neighbours,
                (&Batch::All, rows),
                self.backend,
                self.releaser,
            )?),
        };
        let mut columns = map.as_ref().map(|map| map.standardise(design.tails));

        // 2. The target.
        let (plan, shape, unit, range) = (self.plan, self.shape, self.unit, self.range);
        let (backend, releaser) = (&mut *self.backend, &mut *self.releaser);
        let (middle, noise_of_mean) =
            TargetQuestions { plan, shape, unit, range, backend, releaser }
                .centre(design.centre)?;
        if design.reach != Learnable::Weights {
            return Ok(LinearFit::plain(link, (middle, vec![0.0; width])));
        }
        // max(u, 0) cannot be moved.
        let centre = if link == Link::Linear { middle } else { 0.0 };

        // 3. Whitening, and 4. the metric.
        let inside = columns.as_ref().map_or(width, Standardise::width);
        let norm = 1.1 * row_norm(width, columns.as_ref(), self.backend, self.releaser)?;
        if design.shares.row_mean > 0.0 {
            let first = columns.unwrap_or_else(|| Standardise::nothing(width));
            let mean = row_mean(&first, norm, rows, self.backend, self.releaser)?;
            columns = Some(first.centred(&mean));
        }
        let start = Whitening::new(inside, CONSTANT, norm, shape.rows);
        let cuts: Vec<f64> = (0..design.whitenings)
            .map(|round| if round == 0 { norm } else { design.whitened_norm })
            .collect();
        let mut done = 0;
        let watch = &mut *self.watch;
        let mut step = || {
            done += 1;
            Ok(report(watch, "step", done, all)?)
        };
        let whitening =
            whiten(start, &cuts, columns.as_ref(), self.backend, self.releaser, &mut step)?;
        let stretch = Residual::polishing(link).stretch();
        let noise = stretch * self.releaser.noise(LAST) / (design.final_steps as f64).sqrt();
        let preconditioner = Preconditioner::new(whitening, shape.rows, noise);

        // 5. Steps.
        let transform = preconditioner.transform(inside).after(columns.clone());
        let phases = Phase::all(design, link);
        let found = Found { left: Cell::new(1.0), scale: Cell::new(1.0) };
        // What a clip of one adds to the error of predictions: of the last iterate, or of an average.
        let noise_of = |phase: &Phase| {
            let last = if phase.averaged { design.final_steps as f64 } else { 1.0 };
            let one = phase.residual.stretch() * self.releaser.noise(phase.release) / rows;
            one * (preconditioner.noise_gain() / last).sqrt()
        };
        let mut clip: Box<dyn ClipRule> = match design.clip {
            ClipFrom::Histograms => Box::new(Histograms {
                phases: phases.iter().map(|p| (p.steps.start, noise_of(p))).collect(),
                release: NORMS,
                rows: shape.rows,
                neighbours,
                clip: 1.0,
                found: &found,
            }),
            ClipFrom::Quartiles => Box::new(Quartiles {
                robust_steps: design.robust_steps,
                factor: preconditioner.highest_clip.min(HIGHEST_OF_QUARTILES),
                threshold: 1.0,
                found: &found,
            }),
        };
        let mut update = Steps::new(&preconditioner, rows, &found);
        let mut w = vec![0.0; inside + 1];
        for phase in &phases {
            let residual = phase.residual;
            let (preconditioner, transform) = (&preconditioner, &transform);
            let backend = &mut *self.backend;
            let mut gradients =
                Gradients { backend, preconditioner, transform, residual, unit, centre };
            update.phase = *phase;
            let average = if phase.averaged { Average::over(phase.range()) } else { Average::Last };
            let mut descent = Descent {
                release: phase.release,
                steps: phase.range(),
                clip: &mut *clip,
                update: &mut update,
                average,
            };
            w = descent.run(w, &mut gradients, self.releaser, &mut |_| step())?;
        }

        // 6. Shrinkage.
        let mut w = update.shrink(w);
        // Low clips draw the constant to the median, where residuals are skewed: it stays as near to the mean as that is known.
        if let (Some(most), Link::Linear, ClipFrom::Quartiles) = (noise_of_mean, link, design.clip)
        {
            preconditioner.hold_constant(&mut w, most / CONSTANT);
        }
        let scale = found.scale.get() / preconditioner.effective_width().max(1.0).sqrt();

        // 7. The gate.
        let kept = match design.gate {
            false => 1.0,
            true => {
                let gate = Gate {
                    release: GATE,
                    transform: &transform,
                    link,
                    range,
                    unit,
                    rows,
                    neighbours,
                    base: middle,
                    scale,
                    energy: preconditioner.energy(&w),
                    effective_width: preconditioner.effective_width(),
                };
                let w = preconditioner.forth(&w);
                gate.kept(w, centre, self.backend, self.releaser)?
            }
        };

        // Back to winsorised columns as they are.
        let (weights, constant) = preconditioner.unmap(&w);
        let (mut weights, moved) =
            columns.as_ref().map_or((weights.clone(), 0.0), |c| c.unmap(weights.clone()));
        let intercept = centre + constant * CONSTANT + moved;
        weights.iter_mut().for_each(|w| *w *= kept);
        let tail_weights = weights.split_off(width);
        Ok(LinearFit {
            link,
            intercept: middle + kept * (intercept - middle),
            weights,
            map,
            tails: columns.map_or_else(Vec::new, |columns| columns.tails),
            tail_weights,
            range: None,
            centre: middle,
            residual_scale: Some(scale),
            bends: None,
        })
    }
}

/// Whitens once for every cut: rows are cut to that norm in the space that the rounds before have made.
pub fn whiten(
    mut whitening: Whitening,
    cuts: &[f64],
    columns: Option<&Standardise>,
    backend: &mut dyn Backend,
    releaser: &mut Releaser,
    step: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<Whitening, Error> {
    for (round, cut) in cuts.iter().enumerate() {
        step()?;
        let (width, transform) = whitening.shape();
        let transform = match round {
            0 => plain(width, columns),
            _ => transform.after(columns.cloned()),
        };
        let query = SecondMoment { transform, norm: *cut };
        let moment = run_query(backend, releaser, &Batch::All, &query)?.sum();
        let (upper, std) = releaser.sum(MOMENT, moment)?;
        whitening.refine(&Square::symmetric(width + 1, &upper), std);
    }
    Ok(whitening)
}

/// The private median of the norms of rows of so many features, standardised first if that is said, the constant among their features.
pub fn row_norm(
    width: usize,
    columns: Option<&Standardise>,
    backend: &mut dyn Backend,
    releaser: &mut Releaser,
) -> Result<f64, Error> {
    let plain = plain(width, columns);
    let thresholds = norms(plain.width() - 1);
    let query = ClippedGradients::norms(plain, thresholds.clone());
    let counts = run_query(backend, releaser, &Batch::All, &query)?.histogram();
    Ok(bin_value(&thresholds, releaser.quantile(NORM, 0.5, counts)?))
}

/// The noisy mean of standardised rows that are cut to this norm together with their constant.
fn row_mean(
    columns: &Standardise,
    norm: f64,
    rows: f64,
    backend: &mut dyn Backend,
    releaser: &mut Releaser,
) -> Result<Vec<f64>, Error> {
    let plain = plain(0, Some(columns));
    let query = ClippedGradients {
        clip: Some(norm),
        thresholds: None,
        ..ClippedGradients::norms(plain, vec![])
    };
    let sum = run_query(backend, releaser, &Batch::All, &query)?.sum();
    let (sums, _) = releaser.sum(CENTRES, sum)?;
    Ok(sums[..columns.width()].iter().map(|sum| sum / rows).collect())
}

/// Rows of so many features, or standardised rows, with the constant.
fn plain(width: usize, columns: Option<&Standardise>) -> RowTransform {
    match columns {
        None => RowTransform::plain(width, CONSTANT),
        Some(columns) => {
            RowTransform::scaled(columns.width(), 1.0, CONSTANT).after(Some(columns.clone()))
        }
    }
}

/// From the least norm a row can have to the greatest, in eighth powers of two.
pub fn norms(width: usize) -> Vec<f64> {
    let most = (width as f64 + CONSTANT * CONSTANT).sqrt() / CONSTANT;
    let steps = (8.0 * most.log2()).ceil() as i32 + 1;
    (0..=steps).map(|k| CONSTANT * 2.0_f64.powf(f64::from(k) / 8.0)).collect()
}
