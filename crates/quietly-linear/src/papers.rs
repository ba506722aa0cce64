//! The algorithms of the papers: each a short file beside its citation, made of the same few parts.
//!
//! A [`Recipe`] says what a descent is made of; `descent.rs` runs it. Which rows a step sees is the plan's
//! [`Sampler`], so that what is charged is what runs.
use quietly_accounting::Neighbours;
use quietly_core::{
    budget::Budget,
    mechanism::{PlannedRelease, Sampler, Stage, normal_quantile},
    privacy_plan::PrivacyPlan,
    progress::ProgressCallback,
    release::{Releaser, depth},
};
use quietly_data::Table;
use quietly_engine::{
    algorithm::{self, Access, Algorithm, Planned, Shape, mu},
    backend::{Backend, Batch, run_query},
    error::Error,
    link::Link,
    query::{Query, QuerySum, TargetBins, TargetHistogram},
    residual::Residual,
    target_scaling::TargetScaling,
    whitening::WIDEST,
};
use serde::{Deserialize, Serialize};

use crate::{
    earlier::SCALE,
    full_batch::{FIRST, MOMENT, NORM, THRESHOLD},
};

pub use self::{
    adassp::{AdaSsp, BoundedRows},
    boosted_adassp::BoostedAdaSsp,
    config::{Averaging, Clip, Noise, Pace, Recipe, Sampling},
    tukey_em::TukeyEm,
};

pub use self::tukey_em::warning as tukey_em_warning;

mod adaptive_gd;
mod adassp;
mod boosted_adassp;
mod clip_rules;
mod config;
mod descent;
mod dp_ambssgd;
mod dp_glmtron;
mod dp_mbglmtron;
mod dp_pgd;
mod dp_sgd;
mod dp_ssgd;
mod dp_taglmtron;
mod space;
#[cfg(test)]
mod test_support;
mod tukey_depth;
mod tukey_em;

/// The question for a sum of clipped gradients.
const GRADIENT: &str = "gradient";
/// The question for how many norms lie above a threshold.
const STAT: &str = "rows above a threshold";

/// A run of a recipe.
pub struct Run<'a> {
    pub plan: &'a PrivacyPlan,
    pub shape: Shape,
    pub backend: &'a mut dyn Backend,
    pub public: Option<&'a Table>,
    pub unit: &'a TargetScaling,
    pub releaser: &'a mut Releaser,
}

impl Run<'_> {
    /// The sum of a query over the rows of a batch.
    fn query(&mut self, batch: &Batch, query: &dyn Query) -> Result<QuerySum, Error> {
        run_query(self.backend, self.releaser, batch, query)
    }

    /// Releases how many rows there are: every row has its target in one bin.
    fn count_rows(&mut self) -> Result<(), Error> {
        let bins = TargetBins::Sizes(vec![1.0]);
        let counts = self.query(&Batch::All, &TargetHistogram { unit: *self.unit, bins })?;
        Ok(self.releaser.count_rows(self.plan, self.shape.rows, counts.histogram().total())?)
    }

    /// A private quantile of |y|, as a bin of these thresholds.
    fn target_quantile(&mut self, thresholds: &[f64], level: f64) -> Result<usize, Error> {
        let bins = TargetBins::Sizes(thresholds.to_vec());
        let counts = self.query(&Batch::All, &TargetHistogram { unit: *self.unit, bins })?;
        Ok(self.releaser.quantile(SCALE, level, counts.histogram())?)
    }
}

/// The intercept and the weights, by a fit in units of the target's range.
fn in_units(
    run: algorithm::Run<'_, '_>,
    link: Link,
    fit: impl FnOnce(&mut Run<'_>, &mut ProgressCallback<'_>) -> Result<(f64, Vec<f64>), Error>,
) -> Result<(f64, Vec<f64>), Error> {
    let algorithm::Run { plan, shape, range, backend, public, releaser, watch } = run;
    let unit = TargetScaling::new(link, range);
    let mut run = Run { plan, shape, backend, public, unit: &unit, releaser };
    let (intercept, weights) = fit(&mut run, watch)?;
    Ok(unit.decode(intercept, weights))
}

/// Parameters that a user may give beyond the defaults.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parameters {
    pub steps: Option<u64>,
    pub step_size: Option<f64>,
    pub radius: Option<f64>,
    pub public: bool,
}

/// Plans a descent of the papers; `name` is what messages call it.
pub fn plan(
    (paper, name): (Paper, &str),
    link: Link,
    shape: Shape,
    budget: Budget,
    asked: &Parameters,
) -> Result<Planned<Recipe>, Error> {
    let mu = mu(budget);
    let mut recipe = recipe(paper, link, shape, asked, mu)?;
    let unused = asked.public && !matches!(recipe.clip, Clip::Public { .. });
    Error::ensure(!unused, "public table", UNUSED, "given")?;
    let unused = asked.radius.is_some() && recipe.clip != Clip::Bound;
    Error::ensure(!unused, "radius", UNUSED, "given")?;
    // Whitening pays where the noise of the second moment is well below the moment itself.
    let d = (shape.width + 1) as f64;
    let blur = d.powf(1.5) / (MOMENT_SHARE.sqrt() * mu * shape.rows as f64);
    // Each resolves directions that the one before lost in its noise.
    recipe.whitenings = recipe.whitenings.min(match blur {
        _ if shape.width > WIDEST => 0,
        b if b < 0.015 => 3,
        b if b < 0.13 => 2,
        b if b < 0.25 => 1,
        _ => 0,
    });
    if recipe.clip == Clip::Stat {
        let most = Sampler::MOST_GROUPS / clip_rules::STAT_PART;
        let want = "at most 5957, as each row is drawn into one of eleven groups of a step";
        Error::ensure(recipe.steps <= most, "steps", want, recipe.steps)?;
    }
    let privacy = Algorithm::plan(&recipe, shape, budget)?;
    recipe.step_size = recipe.step(&privacy, shape);
    if let Some(step) = asked.step_size {
        Error::ensure(step > 0.0 && step < 1e6, "step size", "above 0 and below 1e6", step)?;
        recipe.step_size = step;
    }
    let mut warnings = Vec::new();
    if recipe.whitenings == 0 && !matches!(recipe.pace, Pace::PerRow { .. }) {
        warnings.push(format!(
            "{name} assumes centred features of similar size and little correlation; otherwise it may diverge. \
             --method auto does not."
        ));
    }
    if recipe.clip == Clip::Stat {
        let apart = shape.rows as f64 / (recipe.steps as f64 * clip_rules::STAT_PART as f64);
        let noise = privacy.noise(STAT);
        if apart < 2.0 * (3.0 * noise) {
            warnings.push(format!(
                "each step uses about {apart:.0} rows for its threshold, and their count has noise {noise:.0}: the lowest \
                 threshold will be used, and nothing learnt. Use more rows or fewer steps."
            ));
        }
    }
    let expected_loss = recipe.noise_in_a_step(&privacy, shape).powi(2) / recipe.steps as f64;
    Ok(Planned { expected_loss, warnings, ..Planned::new(recipe, shape, privacy) })
}

/// Refuses tables that are too wide for a closed form.
pub fn check_width(shape: Shape) -> Result<(), Error> {
    if shape.width <= WIDEST {
        return Ok(());
    }
    Err(Error::TooLarge {
        what: "a least-squares fit in closed form",
        needed: format!("{:.0e} operations", (shape.width as f64).powi(3) * 17.0),
        instead: "take at most 1000 features, or another method",
    })
}

/// What a parameter must be that a method has no use for.
const UNUSED: &str = "left out with this method, which has no use for it";

impl Parameters {
    /// Refuses parameters for a method that has no use for any, but for steps where it has them.
    pub fn none(&self, has_steps: bool) -> Result<(), Error> {
        Error::ensure(has_steps || self.steps.is_none(), "steps", UNUSED, "given")?;
        Error::ensure(self.step_size.is_none(), "step size", UNUSED, "given")?;
        Error::ensure(self.radius.is_none(), "radius", UNUSED, "given")?;
        Error::ensure(!self.public, "public table", UNUSED, "given")
    }
}

/// The algorithms that are descents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "each has a file of its own")]
pub enum Paper {
    DpSsgd,
    DpAmbssgd,
    DpAmbssgdPublished,
    DpGlmtron,
    DpMbglmtron,
    DpMbglmtronPublished,
    DpTaglmtron,
    DpPgd,
    DpSgd,
    DpSgdOnePass,
    DpSgdOneRow,
    AdaptiveGd,
}

impl Paper {
    /// All of them.
    pub const ALL: [Paper; 12] = [
        Paper::DpSsgd,
        Paper::DpAmbssgd,
        Paper::DpAmbssgdPublished,
        Paper::DpGlmtron,
        Paper::DpMbglmtron,
        Paper::DpMbglmtronPublished,
        Paper::DpTaglmtron,
        Paper::DpPgd,
        Paper::DpSgd,
        Paper::DpSgdOnePass,
        Paper::DpSgdOneRow,
        Paper::AdaptiveGd,
    ];

    /// The name that people type, and that files have.
    pub fn name(self) -> &'static str {
        match self {
            Paper::DpSsgd => "dp-ssgd",
            Paper::DpAmbssgd => "dp-ambssgd",
            Paper::DpAmbssgdPublished => "dp-ambssgd-published",
            Paper::DpGlmtron => "dp-glmtron",
            Paper::DpMbglmtron => "dp-mbglmtron",
            Paper::DpMbglmtronPublished => "dp-mbglmtron-published",
            Paper::DpTaglmtron => "dp-taglmtron",
            Paper::DpPgd => "dp-pgd",
            Paper::DpSgd => "dp-sgd",
            Paper::DpSgdOnePass => "dp-sgd-one-pass",
            Paper::DpSgdOneRow => "dp-sgd-one-row",
            Paper::AdaptiveGd => "adaptive-gd",
        }
    }

    /// The algorithm of this name.
    pub fn named(name: &str) -> Option<Self> {
        Paper::ALL.into_iter().find(|paper| paper.name() == name)
    }
}

/// The parts of a method.
fn recipe(
    paper: Paper,
    link: Link,
    shape: Shape,
    asked: &Parameters,
    mu: f64,
) -> Result<Recipe, Error> {
    match paper {
        Paper::DpSsgd => dp_ssgd::recipe(shape, asked),
        Paper::DpAmbssgd => dp_ambssgd::recipe(asked),
        Paper::DpAmbssgdPublished => dp_ambssgd::published(asked),
        Paper::DpGlmtron => dp_glmtron::recipe(shape, asked),
        Paper::DpMbglmtron => dp_mbglmtron::recipe(asked),
        Paper::DpMbglmtronPublished => dp_mbglmtron::published(asked),
        Paper::DpTaglmtron => dp_taglmtron::recipe(shape, asked),
        Paper::DpPgd => dp_pgd::recipe(link, asked),
        Paper::DpSgd => dp_sgd::recipe(link, asked),
        Paper::DpSgdOnePass => dp_sgd::one_pass(asked),
        Paper::DpSgdOneRow => dp_sgd::one_row(shape, asked),
        Paper::AdaptiveGd => adaptive_gd::recipe(link, shape, asked, mu),
    }
}

impl Algorithm for Recipe {
    type Fitted = (f64, Vec<f64>);

    fn sampler(&self, _: Shape) -> Sampler {
        Recipe::sampler(self)
    }

    fn stages(&self, _: Shape, budget: Budget, noise: f64) -> Vec<Stage> {
        self.releases(budget.neighbours(), mu(budget), noise)
    }

    fn check(&self, _: Shape, budget: Budget) -> Result<(), Error> {
        budget.unless_pure()?;
        let plain = self.noise != Noise::Tree && self.clip != Clip::Stat;
        let right = match self.sampling {
            Sampling::FullBatch | Sampling::RandomAllocation => plain,
            // A replaced row of a Poisson sample is priced for sums only.
            Sampling::Poisson { .. } => plain && !matches!(self.clip, Clip::Falling { .. }),
            Sampling::Partition => true,
        };
        let most = match self.clip {
            // A step has a group for its threshold and others for its gradient.
            Clip::Stat => Sampler::MOST_GROUPS / clip_rules::STAT_PART,
            _ => Sampler::MOST_GROUPS - 1,
        };
        let steps = (1..=most).contains(&self.steps) && self.whitenings <= MOST_WHITENINGS;
        let got = "one whose parts do not go together";
        Error::ensure(right && steps, "plan", "as it was planned", got)
    }

    fn access(&self) -> Access {
        Access::Sums
    }

    fn fit(&self, run: algorithm::Run<'_, '_>) -> Result<(f64, Vec<f64>), Error> {
        in_units(run, self.link(), |run, watch| descent::fit(self, run, watch))
    }
}

/// Shares of μ² for the norm of the rows, the second moment, and a threshold or bound found once.
const NORM_SHARE: f64 = 0.03;
const MOMENT_SHARE: f64 = 0.12;
const ONCE_SHARE: f64 = 0.05;
/// More would share the budget for second moments too thinly.
const MOST_WHITENINGS: u64 = 3;
/// The share of a step that its threshold takes.
const THRESHOLD_SHARE: f64 = 0.1;

impl Recipe {
    /// The questions, where a step is worth 1/noise for a row that is there or not, and the whole budget is worth `mu` under
    /// the relation, for a row that is there or not.
    fn releases(&self, neighbours: Neighbours, mu: f64, noise: f64) -> Vec<Stage> {
        // A replaced row moves a Gaussian sum twice as far: the same share is worth twice the μ. Random allocation asks
        // for the price of a row that is there or not, under either relation.
        let allocation = self.sampling == Sampling::RandomAllocation;
        let price = |mu: f64, all_rows: bool, purpose: &str, level: f64| {
            if neighbours == Neighbours::ReplaceOne && (all_rows || !allocation) {
                PlannedRelease::quantile(purpose, level, 2.0 * mu, Neighbours::ReplaceOne)
            } else {
                PlannedRelease::quantile(purpose, level, mu, Neighbours::AddRemove)
            }
        };
        let once =
            |name: &str, charge: PlannedRelease| Stage::new(name, 1, vec![charge]).of_all_rows();
        let mut stages = Vec::new();
        if !matches!(self.clip, Clip::Public { .. }) {
            stages.push(once("rows", price(NORM_SHARE.sqrt() * mu, true, NORM, 0.5)));
        }
        if self.whitenings > 0 {
            let rounds = self.whitenings;
            // Two are taken where noise is a good part of the moment: they get more.
            let share = if rounds == 2 { 1.7 * MOMENT_SHARE } else { MOMENT_SHARE };
            let noise = (rounds as f64 / share).sqrt() / mu;
            let moment = Stage::new("whitening", rounds, vec![PlannedRelease::sum(MOMENT, noise)]);
            stages.push(moment.of_all_rows());
        }
        let mut gradient = PlannedRelease::sum(GRADIENT, noise);
        if self.noise == Noise::Tree {
            let depth = depth(self.steps);
            gradient = PlannedRelease::sum(GRADIENT, noise * (depth as f64).sqrt());
            gradient.times = depth;
        }
        let steps = self.steps;
        match self.clip {
            Clip::Fixed { level } => {
                let found = price(ONCE_SHARE.sqrt() * mu, true, FIRST, level);
                stages.push(once("threshold", found));
                stages.push(Stage::new("steps", steps, vec![gradient]));
            }
            Clip::Bound => {
                let found = price(ONCE_SHARE.sqrt() * mu, true, SCALE, dp_pgd::TARGET_LEVEL);
                stages.push(once("target", found));
                stages.push(Stage::new("steps", steps, vec![gradient]));
            }
            Clip::Falling { level } => {
                let full = self.sampling == Sampling::FullBatch;
                let first = if full { (0.04 * steps as f64).sqrt() } else { 1.0 };
                let first = price(first / noise, full, FIRST, level);
                stages.push(Stage::new("scale", 1, vec![first]));
                let share = THRESHOLD_SHARE.sqrt() / noise;
                gradient.mechanism =
                    PlannedRelease::sum("", noise_of(&gradient) / (1.0 - THRESHOLD_SHARE).sqrt())
                        .mechanism;
                let threshold = price(share, full, THRESHOLD, level);
                stages.push(Stage::new("steps", steps, vec![gradient, threshold]));
            }
            Clip::Stat => {
                let counts = clip_rules::STAT_GRID as u64;
                let mut stat = PlannedRelease::sum(STAT, noise * (counts as f64).sqrt());
                stat.times = counts;
                stages.push(Stage::new("thresholds", steps, vec![stat]));
                stages.push(Stage::new("steps", steps, vec![gradient]));
            }
            Clip::Public { .. } => stages.push(Stage::new("steps", steps, vec![gradient])),
        }
        stages
    }

    /// How a prediction follows from the weighted sum.
    pub fn link(&self) -> Link {
        if self.residual == Residual::Squared { Link::Linear } else { Link::Relu }
    }

    /// The level of the clip, or how much of the curvature it leaves.
    fn left(&self) -> f64 {
        match self.clip {
            Clip::Fixed { level } | Clip::Falling { level } | Clip::Public { level } => level,
            Clip::Stat | Clip::Bound => 1.0,
        }
    }

    /// The noise of a step's mean gradient over the size of the residuals, per unit of step: d·θ·m/(q·rows), twice that
    /// through max(u, 0), where half of the curvature is.
    fn noise_in_a_step(&self, plan: &PrivacyPlan, shape: Shape) -> f64 {
        let level = self.left().min(0.98);
        let noise = plan.noise(GRADIENT);
        let d = (shape.width + 1) as f64;
        let stretch = self.residual.stretch();
        stretch * d * normal_quantile(0.5 * (1.0 + level)) * noise / (level * self.rows(shape))
    }

    /// How many rows a step sees, about.
    fn rows(&self, shape: Shape) -> f64 {
        let rows = shape.rows as f64;
        match self.sampler() {
            Sampler::FullBatch => rows,
            Sampler::RandomAllocation { steps } => rows / steps as f64,
            Sampler::Partition { .. } if self.clip == Clip::Stat => {
                rows / self.steps as f64 * (1.0 - 1.0 / clip_rules::STAT_PART as f64)
            }
            Sampler::Partition { steps } | Sampler::OrderedPartition { steps } => {
                rows / steps as f64
            }
            Sampler::Poisson { rate, .. } => rows * rate,
            _ => unreachable!("no recipe takes its rows like this"),
        }
    }

    /// The step for a mean gradient.
    fn step(&self, plan: &PrivacyPlan, shape: Shape) -> f64 {
        let d = (shape.width + 1) as f64;
        match self.pace {
            // Stationary noise stays below a quarter of the residuals, β·A/(2 - β) ≤ 1/4, as long as there are steps enough
            // to arrive.
            Pace::Curvature => {
                let least = (10.0 / self.steps as f64).min(0.5);
                let beta = (0.25 / self.noise_in_a_step(plan, shape).powi(2)).clamp(least, 1.0);
                self.residual.stretch() * beta / self.left()
            }
            Pace::PerRow { most } => {
                let noise = plan.noise(GRADIENT);
                (most / d).min(0.25 / (noise * noise * d))
            }
            Pace::Given { step } => step,
        }
    }
}

fn noise_of(charge: &PlannedRelease) -> f64 {
    match charge.mechanism {
        quietly_core::mechanism::Mechanism::Gaussian { noise } => noise,
        _ => unreachable!("a sum"),
    }
}

/// The steps that were asked for, or `usual`.
fn steps(asked: &Parameters, usual: u64) -> Result<u64, Error> {
    let steps = asked.steps.unwrap_or(usual);
    Error::ensure((1..=65_535).contains(&steps), "steps", "from 1 to 65535", steps)?;
    Ok(steps)
}

/// GLMtron for ReLU models, least squares for linear ones.
fn approaching(link: Link) -> Residual {
    match link {
        Link::Relu => Residual::Glmtron,
        other => Residual::approaching(other),
    }
}
