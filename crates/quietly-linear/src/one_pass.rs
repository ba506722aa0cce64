//! One-pass regression by random allocation: for tables of any size, at the speed of reading them.
//!
//! Each row is in one of T steps, drawn uniformly, secretly and on its own. The first step finds scales, the next the centre of
//! the target, the next the second moment, the rest are a descent: robust first, with a high clip last, averaged. A step is
//! asked one question, so that all rows are read once. A row meets one step only, so the
//! theorem of random allocation prices the whole run by what a step may cost, about as much noise per step as T steps
//! over all rows would have.
//!
//! Gradients are taken in the table's own columns, centred and scaled, so that a row costs O(d); whitening is applied
//! to their noisy sum, which is post-processing.
use quietly_accounting::Neighbours;
use quietly_core::{
    budget::Budget,
    mechanism::{PlannedRelease, Sampler, Stage},
    privacy_plan::PrivacyPlan,
    progress::{ProgressCallback, report},
    release::Releaser,
    rows_used::ROWS_USED,
};
use quietly_engine::{
    algorithm::{Access, Algorithm, Run, Shape},
    backend::{Backend, Batch, run_query},
    descent::{Average, Mean, StepSize},
    error::Error,
    histogram::{bin_value, decreasing_bins, geometric_bins, linear_bins},
    linalg::Square,
    link::Link,
    query::{ClippedGradients, Combined, SecondMoment, TargetBins, TargetHistogram},
    residual::{LEVEL, Residual, TO_MEDIAN, unclipped},
    target_scaling::TargetScaling,
    transform::RowTransform,
};
use serde::{Deserialize, Serialize};

use self::space::Space;
use crate::full_batch::size;

mod space;

const SCALE: &str = "target scale";
const CENTRE: &str = "target median";
const NORM: &str = "row norm (median)";
const MOMENT: &str = "second moment";
const FIRST: &str = "first clipping threshold";
const ROBUST: &str = "gradient (robust steps)";
const THRESHOLD: &str = "threshold";
const LAST: &str = "gradient (final steps)";

/// The value of the constant feature.
const CONSTANT: f64 = 0.5;
/// Shares of a step's budget: for the target's scale and the row norm; for thresholds in robust steps.
const SCALES: [f64; 2] = [0.6, 0.4];
/// The share of the first step that the number of its rows takes from them.
const COUNT: f64 = 0.05;
const THRESHOLDS: f64 = 0.2;
/// The quantile that is asked for where most rows have one and the same target.
const TAIL: f64 = 0.95;

/// How many steps there are, unless one asks for others.
const STEPS: u64 = 21;

/// How much of the budget's worth a question to one of T steps has, compared with one to all rows: about √T/T, as it sees that
/// part of the rows and random allocation makes noise √T times smaller.
pub fn efficiency(steps: u64) -> f64 {
    1.0 / (steps as f64).sqrt()
}

/// Steps that find the scale of the residuals.
const ROBUST_STEPS: u64 = 4;
/// Steps before them: scales, centre, second moment, first threshold.
const FIRST_STEPS: u64 = 4;

/// One pass over the rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OnePass {
    /// Linear or ReLU.
    pub link: Link,
    /// How many steps there are: what is more than a few makes the last ones more.
    pub steps: u64,
    /// Whether the first step counts its rows: plans of the first versions did not.
    pub counts_rows: bool,
}

impl OnePass {
    /// A pass of so many steps, or of the usual number.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if there are too few to learn anything, or more than are of use.
    pub fn new(link: Link, steps: Option<u64>) -> Result<Self, Error> {
        let pass = OnePass { link, steps: steps.unwrap_or(STEPS), counts_rows: true };
        pass.check_steps()?;
        Ok(pass)
    }

    fn check_steps(&self) -> Result<(), Error> {
        let fine = (10..=1000).contains(&self.steps);
        Error::ensure(fine, "steps", "from 10 to 1000 for one pass", self.steps)
    }

    /// The steps at the end.
    fn last(&self) -> u64 {
        self.steps.saturating_sub(FIRST_STEPS + ROBUST_STEPS)
    }
}

impl Algorithm for OnePass {
    type Fitted = (f64, Vec<f64>);

    fn sampler(&self, _: Shape) -> Sampler {
        Sampler::RandomAllocation { steps: self.steps }
    }

    /// A step as a whole is 1/noise-GDP for a row that is there or not.
    fn stages(&self, _: Shape, _: Budget, noise: f64) -> Vec<Stage> {
        let counts = self.counts_rows;
        let sum = |purpose: &str, share: f64| PlannedRelease::sum(purpose, noise / share.sqrt());
        // The theorem wants the price of a row that is there or not, under either relation.
        let choice = |purpose: &str, level: f64, share: f64| {
            PlannedRelease::quantile(purpose, level, share.sqrt() / noise, Neighbours::AddRemove)
        };
        let [scale, norm] = SCALES.map(|share| if counts { share * (1.0 - COUNT) } else { share });
        let mut scales = vec![choice(SCALE, LEVEL, scale), choice(NORM, 0.5, norm)];
        if counts {
            scales.push(sum(ROWS_USED, COUNT));
        }
        vec![
            Stage::new("scales", 1, scales),
            Stage::new("centre", 1, vec![choice(CENTRE, 0.5, 1.0)]),
            Stage::new("whitening", 1, vec![sum(MOMENT, 1.0)]),
            Stage::new("scale", 1, vec![choice(FIRST, LEVEL, 1.0)]),
            Stage::new(
                "robust steps",
                ROBUST_STEPS,
                vec![sum(ROBUST, 1.0 - THRESHOLDS), choice(THRESHOLD, LEVEL, THRESHOLDS)],
            ),
            Stage::new("last steps", self.last(), vec![sum(LAST, 1.0)]),
        ]
    }

    /// The first step counts its rows.
    fn count_stage(&self, _: Budget, _: Sampler) -> Result<Option<Stage>, Error> {
        Ok(None)
    }

    fn check(&self, _: Shape, budget: Budget) -> Result<(), Error> {
        self.check_steps()?;
        self.link.check_least_squares()?;
        Ok(budget.unless_pure()?)
    }

    fn access(&self) -> Access {
        Access::Sums
    }

    fn fit(&self, run: Run<'_, '_>) -> Result<(f64, Vec<f64>), Error> {
        let Run { plan, shape, range, backend, releaser, watch, .. } = run;
        let unit = TargetScaling::new(self.link, range);
        backend.begin(&releaser.draw(plan.sampler))?;
        let (intercept, weights) = fit(self, (plan, shape), backend, &unit, releaser, watch)?;
        Ok(unit.decode(intercept, weights))
    }
}

/// The intercept and the weights, in units of the target's range.
fn fit(
    layout: &OnePass,
    (plan, shape): (&PrivacyPlan, Shape),
    backend: &mut dyn Backend,
    unit: &TargetScaling,
    releaser: &mut Releaser,
    watch: &mut ProgressCallback<'_>,
) -> Result<(f64, Vec<f64>), Error> {
    let (width, d) = (shape.width, shape.width + 1);
    let (link, steps, last_steps) = (layout.link, layout.steps, layout.last());
    let share = shape.rows as f64 / steps as f64;
    let mut at = 0;
    let mut step = |watch: &mut ProgressCallback<'_>| {
        at += 1;
        report(watch, "step", at, steps).map(|()| Batch::step(at - 1))
    };

    // Scales: medians of |y| and of the rows' norms.
    let now = step(watch)?;
    let plain = RowTransform::plain(width, CONSTANT);
    let (wide, norms) = (geometric_bins(1.0, -80, 1), crate::full_batch::norms(width));
    let sizes = TargetHistogram { unit: *unit, bins: TargetBins::Sizes(wide.clone()) };
    let lengths = ClippedGradients::norms(plain.clone(), norms.clone());
    let both = Combined::new(vec![Box::new(sizes), Box::new(lengths)]);
    let (_, counts) = run_query(backend, releaser, &now, &both)?.split();
    let Ok([sizes, lengths]) = <[_; 2]>::try_from(counts) else { unreachable!("two histograms") };
    let count = sizes.total();
    let scale = size(&wide, releaser.quantile(SCALE, LEVEL, sizes)?);
    let norm = 1.1 * bin_value(&norms, releaser.quantile(NORM, 0.5, lengths)?);
    releaser.count_rows(plan, shape.rows, count)?;

    // The median of y, on a grid of that size.
    let now = step(watch)?;
    let places = TargetHistogram { unit: *unit, bins: TargetBins::Centres(scale) };
    let counts = run_query(backend, releaser, &now, &places)?.histogram();
    let centre = linear_bins(scale).0[releaser.quantile(CENTRE, 0.5, counts)?];
    let centre = if link == Link::Linear { centre } else { 0.0 };

    // The second moment of rows cut to that norm.
    let now = step(watch)?;
    let moment =
        run_query(backend, releaser, &now, &SecondMoment { transform: plain, norm })?.sum();
    let (upper, std) = releaser.sum(MOMENT, moment)?;
    let space = Space::new(&Square::symmetric(d, &upper), std, share);

    // The descent.
    let residual = Residual::approaching(link);
    let mut w = vec![0.0; d];
    let grid = geometric_bins(scale * (d as f64).sqrt(), -40, 8);
    let mut thresholds = grid.clone();
    let mut threshold = 0.0;
    let is_least = |threshold: f64| threshold < grid[1];
    // Whether most rows have one and the same target: the others have all there is to learn, and nothing of them is clipped.
    let mut spiked = false;
    let mut stepping = StepSize::new(vec![1.0; d]);
    let steps = ROBUST_STEPS + 1..ROBUST_STEPS + last_steps + 1;
    let mut average = Mean::new(Average::over(steps), d);
    let mut noise = 0.0;
    for t in 0..=ROBUST_STEPS + last_steps {
        let now = step(watch)?;
        let last = t > ROBUST_STEPS;
        let residual =
            if t > ROBUST_STEPS + last_steps / 2 { Residual::polishing(link) } else { residual };
        // The high clip: as far as noise allows; robust steps clip at the median.
        let factor =
            if last { space.highest_clip(releaser.noise(LAST), last_steps, share) } else { 1.0 };
        let clip = if spiked { threshold } else { TO_MEDIAN * threshold * factor };
        let clip = clip.clamp(1e-250, 1e250);
        let query = ClippedGradients {
            transform: space.transform.clone(),
            weights: w.clone(),
            residual: Some(residual),
            unit: *unit,
            centre,
            clip: (t > 0).then_some(clip),
            lattice_clip: None,
            thresholds: (!last).then(|| thresholds.clone()),
        };
        let (sum, counts) = run_query(backend, releaser, &now, &query)?.split();
        if let Some(sum) = sum.into_iter().next() {
            let purpose = if last { LAST } else { ROBUST };
            let (gradient, std) = releaser.sum(purpose, sum)?;
            let left = match () {
                () if spiked => 1.0,
                () if last => unclipped(factor),
                () => 0.5,
            };
            let far = 1.0 / left / share;
            let gradient: Vec<f64> = gradient.iter().map(|g| g * far).collect();
            let plain = space.solve(&gradient);
            let direction = residual.newton(&w, &gradient, plain, space.size(&w));
            noise = space.noise(std * far * residual.stretch());
            stepping.go(&mut w, direction, noise, 0.0);
        }
        average.take(t, &w);
        if let Some(counts) = counts.into_iter().next() {
            let purpose = if t == 0 { FIRST } else { THRESHOLD };
            // After a first threshold that is none, the next is that of the tail.
            let tail = t == 1 && is_least(threshold);
            let level = if tail { TAIL } else { LEVEL };
            let found = bin_value(&thresholds, releaser.quantile(purpose, level, counts)?);
            threshold = if spiked { threshold } else { found };
            spiked |= tail && !is_least(found);
            let wide = t == 0 && is_least(threshold);
            thresholds = if wide { grid.clone() } else { decreasing_bins(threshold, 12) };
        }
    }
    let w = space.shrink(average.of(w), noise / (last_steps as f64).sqrt());
    Ok(space.unmap(&w, centre))
}
