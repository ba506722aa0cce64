//! The algorithms of the papers: each a short file beside its citation, made of the same few parts.
//!
//! A [`Recipe`] says what a descent is made of; `descent.rs` runs it. Which rows a step sees is the plan's
//! [`Sampler`], so that what is charged is what runs.
use quietly_accounting::Neighbours;
use quietly_data::{Private, Table};

use crate::{
    charge::{self, Charge, Sampler, Stage, normal_quantile},
    descent::Residual,
    design::WIDEST,
    error::Error,
    full_batch::{FIRST, MOMENT, NORM, SCALE, THRESHOLD},
    method::Method,
    model::Link,
    plan::{Plan, Wishes},
    progress::Watch,
    release::Door,
    rows_used,
    unit::Unit,
};

pub use self::parts::{Averaging, Clip, Noise, Pace, Recipe};

pub(crate) use self::tree::{Tree, depth};

mod adaptive_gd;
mod adassp;
mod boosted_adassp;
mod deep;
mod descent;
mod dp_ambssgd;
mod dp_glmtron;
mod dp_mbglmtron;
mod dp_pgd;
mod dp_sgd;
mod dp_ssgd;
mod dp_taglmtron;
mod parts;
mod space;
mod steps;
#[cfg(test)]
mod tests;
mod threshold;
mod tree;
#[cfg(test)]
mod trial;
mod tukey_em;

/// The question for a sum of clipped gradients.
const GRADIENT: &str = "gradient";
/// The question for how many norms lie above a threshold.
const STAT: &str = "rows above a threshold";

/// A run of a recipe.
pub(crate) struct Run<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) table: &'a Private<Table>,
    pub(crate) public: Option<&'a Table>,
    pub(crate) unit: &'a Unit,
    pub(crate) door: &'a mut Door,
    pub(crate) threads: usize,
}

impl Run<'_> {
    /// The intercept and the weights, in units of the target's range.
    pub(crate) fn fit(&mut self, watch: &mut Watch<'_>) -> Result<(f64, Vec<f64>), Error> {
        match self.plan.method {
            Method::AdaSsp => adassp::fit(self, watch),
            Method::BoostedAdaSsp => boosted_adassp::fit(self, watch),
            Method::TukeyEm => tukey_em::fit(self, watch),
            _ => descent::fit(self, watch),
        }
    }
}

/// Plans a method of the papers for a budget of `mu`; false if it is not one.
pub(crate) fn plan(plan: &mut Plan, wishes: &Wishes, mu: f64) -> Result<bool, Error> {
    let links = plan.method.about().links;
    let want = match plan.link {
        Link::Linear => "one for linear regression",
        Link::Relu => "one for relu regression",
        other => other.not_least_squares(),
    };
    let regression = matches!(plan.link, Link::Linear | Link::Relu);
    let fine = regression && links.contains(&plan.link);
    Error::unless(fine, "method", want, plan.method.name())?;
    let Some((sampler, mut recipe)) = recipe(plan, wishes, mu)? else {
        wishes.none(plan.method)?;
        return statistics(plan, mu);
    };
    let unused = wishes.public && !matches!(recipe.clip, Clip::Public { .. });
    Error::unless(!unused, "public table", UNUSED, "given")?;
    let unused = wishes.radius.is_some() && recipe.clip != Clip::Bound;
    Error::unless(!unused, "radius", UNUSED, "given")?;
    plan.sampler = sampler;
    // Whitening pays where the noise of the second moment is well below the moment itself.
    let d = (plan.width + 1) as f64;
    let blur = d.powf(1.5) / (MOMENT_SHARE.sqrt() * mu * plan.rows as f64);
    // Each resolves directions that the one before lost in its noise.
    recipe.whitenings = recipe.whitenings.min(match blur {
        _ if plan.width > WIDEST => 0,
        b if b < 0.015 => 3,
        b if b < 0.13 => 2,
        b if b < 0.25 => 1,
        _ => 0,
    });
    let neighbours = plan.budget.neighbours();
    plan.calibrate(|noise| recipe.stages(sampler, neighbours, mu, noise))?;
    recipe.step_size = recipe.step(plan);
    if let Some(step) = wishes.step_size {
        Error::unless(step > 0.0 && step < 1e6, "step size", "above 0 and below 1e6", step)?;
        recipe.step_size = step;
    }
    if recipe.whitenings == 0 && !matches!(recipe.pace, Pace::PerRow { .. }) {
        plan.warnings.push(format!(
            "{} takes features for centred, of like size and hardly correlated; where they are not, it may diverge. \
             --method auto does not.",
            plan.method.name()
        ));
    }
    if recipe.clip == Clip::Stat {
        let apart = plan.rows as f64 / (recipe.steps as f64 * threshold::STAT_PART as f64);
        let enough = 3.0 * plan.noise(STAT);
        if apart < 2.0 * enough {
            plan.warnings.push(format!(
                "a step sets about {apart:.0} rows apart for its threshold, and a count of them has noise of {:.0}: the lowest \
                 threshold will be taken, and nothing learnt. Take more rows or fewer steps.",
                plan.noise(STAT)
            ));
        }
    }
    plan.expected_loss = recipe.noise_in_a_step(plan).powi(2) / recipe.steps as f64;
    plan.recipe = Some(recipe);
    Ok(true)
}

/// Plans a method that is no descent; false if it is none of the papers'.
fn statistics(plan: &mut Plan, mu: f64) -> Result<bool, Error> {
    let shape = plan.clone();
    match plan.method {
        Method::AdaSsp | Method::BoostedAdaSsp | Method::TukeyEm if plan.width > WIDEST => {
            return Err(Error::TooLarge {
                what: "a least-squares fit in closed form",
                needed: format!("{:.0e} operations", (plan.width as f64).powi(3) * 17.0),
                instead: "take at most 1000 features, or another method",
            });
        }
        Method::AdaSsp => plan.calibrate(|noise| adassp::stages(&shape, mu, noise))?,
        Method::BoostedAdaSsp => {
            plan.calibrate(|noise| boosted_adassp::stages(&shape, mu, noise))?
        }
        Method::TukeyEm => {
            plan.stages = tukey_em::stages(plan);
            // A promise leaves no δ beside it: the count takes Laplace noise, priced under the dearer relation.
            let share = rows_used::PURE_SHARE * plan.budget.epsilon().min(100.0);
            plan.stages.push(rows_used::pure_stage(share, Neighbours::ReplaceOne, plan.sampler));
            let event = charge::event(plan.sampler, &plan.stages)?;
            let (neighbours, delta) = (plan.budget.neighbours(), plan.budget.delta());
            plan.epsilon = quietly_accounting::epsilon(&event, neighbours, delta)?.upper;
            plan.warnings.extend(tukey_em::warning(plan));
        }
        _ => return Ok(false),
    }
    plan.expected_loss = f64::INFINITY;
    Ok(true)
}

/// What a wish must be that a method has no use for.
const UNUSED: &str = "left out with this method, which has no use for it";

impl Wishes {
    /// Refuses wishes for a method that has no use for any, but for steps of one pass.
    fn none(&self, method: Method) -> Result<(), Error> {
        let steps = method == Method::OnePass || self.steps.is_none();
        Error::unless(steps, "steps", UNUSED, "given")?;
        Error::unless(self.step_size.is_none(), "step size", UNUSED, "given")?;
        Error::unless(self.radius.is_none(), "radius", UNUSED, "given")?;
        Error::unless(!self.public, "public table", UNUSED, "given")
    }
}

/// The sampler and the parts of a method.
fn recipe(plan: &Plan, wishes: &Wishes, mu: f64) -> Result<Option<(Sampler, Recipe)>, Error> {
    Ok(Some(match plan.method {
        Method::DpSsgd => dp_ssgd::recipe(plan, wishes)?,
        Method::DpAmbssgd => dp_ambssgd::recipe(wishes)?,
        Method::DpAmbssgdPublished => dp_ambssgd::published(wishes)?,
        Method::DpGlmtron => dp_glmtron::recipe(plan, wishes)?,
        Method::DpMbglmtron => dp_mbglmtron::recipe(wishes)?,
        Method::DpMbglmtronPublished => dp_mbglmtron::published(wishes)?,
        Method::DpTaglmtron => dp_taglmtron::recipe(plan, wishes)?,
        Method::DpPgd => dp_pgd::recipe(plan.link, wishes)?,
        Method::DpSgd => dp_sgd::recipe(plan.link, wishes)?,
        Method::DpSgdOnePass => dp_sgd::one_pass(wishes)?,
        Method::DpSgdOneRow => dp_sgd::one_row(plan, wishes)?,
        Method::AdaptiveGd => adaptive_gd::recipe(plan, wishes, mu)?,
        _ => return Ok(None),
    }))
}

/// The questions of a plan's method under its sampler, whatever their noise; none if they do not go together.
pub(crate) fn questions(plan: &Plan) -> Option<Vec<Stage>> {
    let (sampler, neighbours) = (plan.sampler, plan.budget.neighbours());
    let full = sampler == Sampler::Full && plan.recipe.is_none();
    match plan.method {
        Method::AdaSsp => return full.then(|| adassp::stages(plan, 1.0, 1.0)),
        Method::BoostedAdaSsp => return full.then(|| boosted_adassp::stages(plan, 1.0, 1.0)),
        Method::TukeyEm => return full.then(|| tukey_em::stages(plan)),
        _ => {}
    }
    let recipe = plan.recipe.as_ref()?;
    let plain = recipe.noise != Noise::Tree && recipe.clip != Clip::Stat;
    let right = match sampler {
        Sampler::Full | Sampler::Allocation { .. } => plain,
        // A replaced row of a Poisson sample is priced for sums only.
        Sampler::Poisson { .. } => plain && !matches!(recipe.clip, Clip::Falling { .. }),
        Sampler::Parts { .. } => true,
        _ => false,
    };
    right.then(|| recipe.stages(sampler, neighbours, 1.0, 1.0))
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
    fn stages(&self, sampler: Sampler, neighbours: Neighbours, mu: f64, noise: f64) -> Vec<Stage> {
        // A replaced row moves a Gaussian sum twice as far: the same share is worth twice the μ. Random allocation asks
        // for the price of a row that is there or not, under either relation.
        let allocation = matches!(sampler, Sampler::Allocation { .. });
        let price = |mu: f64, all_rows: bool, purpose: &str, level: f64| {
            if neighbours == Neighbours::ReplaceOne && (all_rows || !allocation) {
                Charge::quantile(purpose, level, 2.0 * mu, Neighbours::ReplaceOne)
            } else {
                Charge::quantile(purpose, level, mu, Neighbours::AddRemove)
            }
        };
        let once = |name: &str, charge: Charge| Stage::new(name, 1, vec![charge]).of_all_rows();
        let mut stages = Vec::new();
        if !matches!(self.clip, Clip::Public { .. }) {
            stages.push(once("rows", price(NORM_SHARE.sqrt() * mu, true, NORM, 0.5)));
        }
        if self.whitenings > 0 {
            let rounds = self.whitenings;
            // Two are taken where noise is a good part of the moment: they get more.
            let share = if rounds == 2 { 1.7 * MOMENT_SHARE } else { MOMENT_SHARE };
            let noise = (rounds as f64 / share).sqrt() / mu;
            let moment = Stage::new("whitening", rounds, vec![Charge::sum(MOMENT, noise)]);
            stages.push(moment.of_all_rows());
        }
        let mut gradient = Charge::sum(GRADIENT, noise);
        if self.noise == Noise::Tree {
            let depth = tree::depth(self.steps);
            gradient = Charge::sum(GRADIENT, noise * (depth as f64).sqrt());
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
                let full = sampler == Sampler::Full;
                let first = if full { (0.04 * steps as f64).sqrt() } else { 1.0 };
                let first = price(first / noise, full, FIRST, level);
                stages.push(Stage::new("scale", 1, vec![first]));
                let share = THRESHOLD_SHARE.sqrt() / noise;
                gradient.mechanism =
                    Charge::sum("", noise_of(&gradient) / (1.0 - THRESHOLD_SHARE).sqrt()).mechanism;
                let threshold = price(share, full, THRESHOLD, level);
                stages.push(Stage::new("steps", steps, vec![gradient, threshold]));
            }
            Clip::Stat => {
                let counts = threshold::STAT_GRID as u64;
                let mut stat = Charge::sum(STAT, noise * (counts as f64).sqrt());
                stat.times = counts;
                stages.push(Stage::new("thresholds", steps, vec![stat]));
                stages.push(Stage::new("steps", steps, vec![gradient]));
            }
            Clip::Public { .. } => stages.push(Stage::new("steps", steps, vec![gradient])),
        }
        stages
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
    fn noise_in_a_step(&self, plan: &Plan) -> f64 {
        let level = self.left().min(0.98);
        let noise = plan.noise(GRADIENT);
        let d = (plan.width + 1) as f64;
        let stretch = self.residual.stretch();
        stretch * d * normal_quantile(0.5 * (1.0 + level)) * noise / (level * self.rows(plan))
    }

    /// How many rows a step sees, about.
    fn rows(&self, plan: &Plan) -> f64 {
        let rows = plan.rows as f64;
        match plan.sampler {
            Sampler::Full => rows,
            Sampler::Allocation { steps } => rows / steps as f64,
            Sampler::Parts { .. } if self.clip == Clip::Stat => {
                rows / self.steps as f64 * (1.0 - 1.0 / threshold::STAT_PART as f64)
            }
            Sampler::Parts { steps } | Sampler::Places { steps } => rows / steps as f64,
            Sampler::Poisson { rate, .. } => rows * rate,
            _ => unreachable!("no recipe takes its rows like this"),
        }
    }

    /// The step for a mean gradient.
    fn step(&self, plan: &Plan) -> f64 {
        let d = (plan.width + 1) as f64;
        match self.pace {
            // Stationary noise stays below a quarter of the residuals, β·A/(2 - β) ≤ 1/4, as long as there are steps enough
            // to arrive.
            Pace::Curvature => {
                let least = (10.0 / self.steps as f64).min(0.5);
                let beta = (0.25 / self.noise_in_a_step(plan).powi(2)).clamp(least, 1.0);
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

fn noise_of(charge: &Charge) -> f64 {
    match charge.mechanism {
        crate::charge::Mechanism::Gaussian { noise } => noise,
        _ => unreachable!("a sum"),
    }
}

/// The steps that were wished for, or `usual`.
fn steps(wishes: &Wishes, usual: u64) -> Result<u64, Error> {
    let steps = wishes.steps.unwrap_or(usual);
    Error::unless((1..=65_535).contains(&steps), "steps", "from 1 to 65535", steps)?;
    Ok(steps)
}

/// GLMtron for ReLU models, least squares for linear ones.
fn approaching(link: Link) -> Residual {
    Residual::approaching(link)
}
