//! The default regression: whitened full-batch descent, robust first, with a high clip last.
//!
//! Every question to the data goes through the door under one of the names below; between them there is only
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
use crate::{
    charge::normal_quantile,
    descent::{Average, LEVEL, MEDIAN, Residual, StepSize, TO_MEDIAN, unclipped},
    design::Reach,
    error::Error,
    keeper::Keeper,
    lattice::Lattice,
    linalg::{Square, dot},
    metric::{Metric, Whitening},
    model::Link,
    plan::Plan,
    progress::{Watch, tell},
    question::{Answer, Bins, Gradients, Question, View},
    release::{Door, LatticeSum},
    unit::Unit,
};

pub(crate) const SCALE: &str = "scale of the target";
pub(crate) const CENTRE: &str = "centre of the target";
pub(crate) const NORM: &str = "norm of the rows";
pub(crate) const MOMENT: &str = "second moment";
pub(crate) const FIRST: &str = "first threshold";
pub(crate) const ROBUST: &str = "gradient, clipped at the median";
pub(crate) const THRESHOLD: &str = "threshold";
pub(crate) const TAIL: &str = "tail of the residuals";
pub(crate) const CHEAP: &str = "gradient, first steps";
pub(crate) const LAST: &str = "gradient, last steps";

/// The value of the constant feature.
pub(crate) const CONSTANT: f64 = 0.5;
/// The heavy ball of the cheap steps.
const MOMENTUM: f64 = 0.4;

/// The intercept and the weights, in units of the target's range.
pub(crate) fn fit(
    plan: &Plan,
    rows: &mut dyn Keeper,
    unit: &Unit,
    door: &mut Door,
    watch: &mut Watch<'_>,
) -> Result<(f64, Vec<f64>), Error> {
    let (width, design) = (plan.width, plan.design());
    let steps = u64::from(design.whitenings)
        + design.robust_steps
        + design.cheap_steps
        + design.final_steps;
    let mut done = 0;
    let mut step = |watch: &mut Watch<'_>| {
        done += 1;
        tell(watch, "step", done, steps)
    };

    // 1. The target.
    let (scale, centre) = target(plan, rows, unit, door)?;
    if design.reach == Reach::Centre {
        return Ok((centre, vec![0.0; width]));
    }
    // max(u, 0) cannot be moved.
    let centre = if plan.link == Link::Linear { centre } else { 0.0 };

    // 2. Whitening.
    let norm = 1.1 * row_norm(width, rows, door)?;
    let start = Whitening::new(width, CONSTANT, norm, plan.rows);
    let cuts: Vec<f64> = (0..design.whitenings)
        .map(|round| if round == 0 { norm } else { design.whitened_norm })
        .collect();
    let whitening = whiten(start, &cuts, rows, door, &mut || step(watch))?;

    // 3. The metric.
    let stretch = Residual::polishing(plan.link).stretch();
    let noise = stretch * door.noise(LAST) / (design.final_steps as f64).sqrt();
    let metric = Metric::new(whitening, plan.rows, noise);

    // 4. Robust steps.
    let residual = Residual::approaching(plan.link);
    let d = width + 1;
    let (view, unit, count) = (metric.view(width), *unit, plan.rows as f64);
    let mut session = Session { rows, door, metric: &metric, view, unit, centre, count };
    let mut w = vec![0.0; d];
    let start = scale * (d as f64).sqrt();
    let grid = quarters(start, -40, 8);
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
        let direction = metric.newton(residual, &w, &gradient);
        w.iter_mut().zip(direction).for_each(|(w, x)| *w += far * x);
        if spiked.is_none() {
            let grid = falling(threshold, design.threshold_depth);
            threshold = session.threshold(THRESHOLD, LEVEL, &grid, &w, residual)?;
        }
    }

    // 5. The high clip: as far as noise allows, but no farther than the residuals reach.
    let threshold = TO_MEDIAN * threshold;
    let mut factor = metric.highest_clip;
    if factor > 2.0 && spiked.is_none() {
        let normal = normal_quantile(0.5 * (1.0 + level)) / MEDIAN;
        let grid = quarters(threshold, 0, 24);
        let heaviness = match tail {
            None => session.threshold(TAIL, level, &grid, &w, residual)? / threshold / normal,
            // It was spent.
            Some(_) => 1.0,
        };
        factor = factor.min((0.7 * normal * heaviness.powi(3)).max(2.0));
    }
    let (clip, left) = spiked.map_or((threshold * factor, unclipped(factor)), |tail| (tail, 1.0));
    let gentle = |m: &f64| m / (1.0 + 0.02 * (m - 1.0)) / left;
    let mut stepping = StepSize::new(metric.multipliers.iter().map(gentle).collect());
    let mut average = Average::new(d);
    let mut noises = Vec::new();
    for t in 0..design.cheap_steps + design.final_steps {
        step(watch)?;
        let last = t >= design.cheap_steps;
        let residual = if last { Residual::polishing(plan.link) } else { residual };
        let purpose = if last { LAST } else { CHEAP };
        let (gradient, std) = session.gradient(purpose, clip, &w, residual)?;
        let mut direction = metric.newton(residual, &w, &gradient);
        direction.iter_mut().zip(&metric.multipliers).for_each(|(x, m)| *x /= m);
        let std = std * residual.stretch();
        let momentum = if last { 0.0 } else { MOMENTUM };
        stepping.go(&mut w, direction, std, momentum);
        noises.push((std, momentum, last));
        if last {
            average.take(&w);
        }
    }
    let w = average.mean();

    // 6. Shrinkage, and back to the table's own columns.
    let w = metric.shrink(w, &stepping.sizes, left, &noises);
    let (weights, constant) = metric.unmap(&w);
    Ok((centre + constant * CONSTANT, weights))
}

/// Rows to be asked, and the door to ask through.
struct Session<'a> {
    rows: &'a mut dyn Keeper,
    door: &'a mut Door,
    metric: &'a Metric,
    view: View,
    unit: Unit,
    centre: f64,
    count: f64,
}

impl Session<'_> {
    /// What is asked at these weights.
    fn gradients(&self, weights: &[f64], residual: Residual) -> Gradients {
        Gradients {
            view: self.view.clone(),
            weights: self.metric.forth(weights),
            residual: Some(residual),
            unit: self.unit,
            centre: self.centre,
            clip: None,
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
        let lattice = Lattice::for_sums(clip, weights.len());
        let asked = Gradients { clip: Some(clip), ..self.gradients(weights, residual) };
        let sum = self.door.ask(self.rows, 0, &Question::gradients(asked))?.map(Answer::sums);
        let what = LatticeSum { sum, bound: lattice.bound() as f64, unit: lattice.step() };
        let (mut mean, std) = self.door.sum(purpose, what)?;
        mean.iter_mut().for_each(|g| *g /= self.count);
        Ok((self.metric.back(mean), std / self.count))
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
        let asked = self.gradients(weights, residual);
        let asked = Gradients { thresholds: Some(thresholds.to_vec()), ..asked };
        let counts = self.door.ask(self.rows, 0, &Question::gradients(asked))?.map(Answer::counts);
        Ok(middle(thresholds, self.door.quantile(purpose, level, counts)?))
    }
}

/// Whitens once for every cut: rows are cut to that norm in the space that the rounds before have made.
pub(crate) fn whiten(
    mut whitening: Whitening,
    cuts: &[f64],
    rows: &mut dyn Keeper,
    door: &mut Door,
    step: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<Whitening, Error> {
    for (round, cut) in cuts.iter().enumerate() {
        step()?;
        let (width, view) = whitening.shape();
        let view = if round == 0 { View::plain(width, CONSTANT) } else { view };
        let lattice = Lattice::for_products(*cut, width + 1);
        let sum = door.ask(rows, 0, &Question::moment(view, *cut))?.map(Answer::sums);
        let bound = (lattice.bound() as f64).powi(2);
        let what = LatticeSum { sum, bound, unit: lattice.step() * lattice.step() };
        let (upper, std) = door.matrix(MOMENT, width + 1, what)?;
        whitening.refine(&Square::symmetric(width + 1, &upper), std);
    }
    Ok(whitening)
}

/// `start`·2^(k/4) for k from `first` to `last`.
pub(crate) fn quarters(start: f64, first: i32, last: i32) -> Vec<f64> {
    (first..=last).map(|k| start * 2.0_f64.powf(0.25 * f64::from(k))).collect()
}

/// A grid whose highest bin has `threshold` in its middle: the next threshold is no greater.
pub(crate) fn falling(threshold: f64, depth: i32) -> Vec<f64> {
    quarters(threshold * 2.0_f64.powf(0.125), -depth, 0)
}

/// The value that stands for bin k: the geometric mean of its ends.
pub(crate) fn middle(thresholds: &[f64], k: usize) -> f64 {
    (thresholds[k.saturating_sub(1)] * thresholds[k]).sqrt()
}

/// The private scale of y, and its median on a grid of that size. The number of rows is released with them.
pub(crate) fn target(
    plan: &Plan,
    rows: &mut dyn Keeper,
    unit: &Unit,
    door: &mut Door,
) -> Result<(f64, f64), Error> {
    let wide = quarters(1.0, -80, 1);
    let sizes = Question::targets(*unit, Bins::Sizes(wide.clone()));
    let counts = door.ask(rows, 0, &sizes)?.map(Answer::counts);
    // Every row has its target in one of the bins.
    let count = counts.as_ref().map(|counts| counts.iter().sum());
    let scale = size(&wide, door.quantile(SCALE, LEVEL, counts)?);
    door.count_rows(plan, count)?;
    let places = Question::targets(*unit, Bins::Centres(scale));
    let counts = door.ask(rows, 0, &places)?.map(Answer::counts);
    Ok((scale, centres(scale).0[door.quantile(CENTRE, 0.5, counts)?]))
}

/// The size of targets whose quantile lies in bin k; if that is nought, and most of them are 0, that of their range.
pub(crate) fn size(thresholds: &[f64], k: usize) -> f64 {
    if k == 0 { 1.0 } else { middle(thresholds, k) }
}

/// 801 thresholds from -2·scale to 2·scale, and the bin of a value among them.
pub(crate) fn centres(scale: f64) -> (Vec<f64>, impl Fn(f64) -> usize + Sync) {
    let step = scale / 200.0;
    let thresholds = (0..=800).map(|k| -2.0 * scale + step * f64::from(k)).collect();
    // As a cast: below 0 and not a number give 0, beyond the end the last bin.
    let bin = move |y: f64| ((((y + 2.0 * scale) / step).ceil()) as usize).min(801);
    (thresholds, bin)
}

/// The private median of the norms of rows, the constant among their features.
pub(crate) fn row_norm(width: usize, rows: &mut dyn Keeper, door: &mut Door) -> Result<f64, Error> {
    let thresholds = norms(width);
    let asked = Question::norms(View::plain(width, CONSTANT), thresholds.clone());
    let counts = door.ask(rows, 0, &asked)?.map(Answer::counts);
    Ok(middle(&thresholds, door.quantile(NORM, 0.5, counts)?))
}

/// From the least norm a row can have to the greatest, in eighth powers of two.
pub(crate) fn norms(width: usize) -> Vec<f64> {
    let most = (width as f64 + CONSTANT * CONSTANT).sqrt() / CONSTANT;
    let steps = (8.0 * most.log2()).ceil() as i32 + 1;
    (0..=steps).map(|k| CONSTANT * 2.0_f64.powf(f64::from(k) / 8.0)).collect()
}

/// ⟨a, a⟩ weighted by `h`.
pub(crate) fn weighted(h: &[f64], a: &[f64]) -> f64 {
    dot(&h.iter().zip(a).map(|(h, a)| h * a).collect::<Vec<_>>(), a)
}
