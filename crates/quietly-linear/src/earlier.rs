//! The default regressions of earlier versions: what their plans list, so that files and models can still be checked.
//!
//! They are not run any more. A plan of that time is refused where it would be.
use quietly_accounting::Neighbours;
use quietly_core::{
    budget::Budget,
    mechanism::{PlannedRelease, Sampler, Stage},
    rows_used::ROWS_USED,
};
use quietly_engine::{
    algorithm::{Access, Algorithm, Run, Shape},
    error::Error,
    link::Link,
    residual::LEVEL,
};
use serde::{Deserialize, Serialize};

use crate::{
    budget_split::Learnable,
    full_batch::{CHEAP, FIRST, LAST, MOMENT, NORM, ROBUST, THRESHOLD},
    linear_fit::LinearFit,
};

pub(crate) const SCALE: &str = "target scale";
pub(crate) const CENTRE: &str = "target median";
const TAIL: &str = "residual tail quantile";

/// The default regression of earlier versions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EarlierFullBatch {
    /// Linear or ReLU.
    pub link: Link,
    /// How the budget was divided.
    #[serde(flatten)]
    pub design: BudgetSplit,
}

impl Algorithm for EarlierFullBatch {
    type Fitted = LinearFit;

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

    fn fit(&self, _: Run<'_, '_>) -> Result<LinearFit, Error> {
        Err(refused())
    }
}

fn refused() -> Error {
    let want = "one of this version; an earlier one made this plan, so plan the fit again";
    Error::Parameter { name: "plan", want, got: "one of an earlier version".into() }
}

/// One pass of earlier versions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EarlierOnePass {
    /// Linear or ReLU.
    pub link: Link,
    /// How many steps there were.
    pub steps: u64,
    /// Whether the first step counted its rows: plans of the first versions did not.
    pub counts_rows: bool,
}

impl Algorithm for EarlierOnePass {
    type Fitted = LinearFit;

    fn sampler(&self, _: Shape) -> Sampler {
        Sampler::RandomAllocation { steps: self.steps }
    }

    fn stages(&self, _: Shape, _: Budget, noise: f64) -> Vec<Stage> {
        let sum = |purpose: &str, share: f64| PlannedRelease::sum(purpose, noise / share.sqrt());
        let choice = |purpose: &str, level: f64, share: f64| {
            PlannedRelease::quantile(purpose, level, share.sqrt() / noise, Neighbours::AddRemove)
        };
        let part = if self.counts_rows { 0.95 } else { 1.0 };
        let mut scales = vec![choice(SCALE, LEVEL, 0.6 * part), choice(NORM, 0.5, 0.4 * part)];
        if self.counts_rows {
            scales.push(sum(ROWS_USED, 0.05));
        }
        let robust = vec![sum(ROBUST, 0.8), choice(THRESHOLD, LEVEL, 0.2)];
        vec![
            Stage::new("scales", 1, scales),
            Stage::new("centre", 1, vec![choice(CENTRE, 0.5, 1.0)]),
            Stage::new("whitening", 1, vec![sum(MOMENT, 1.0)]),
            Stage::new("scale", 1, vec![choice(FIRST, LEVEL, 1.0)]),
            Stage::new("robust steps", 4, robust),
            Stage::new("last steps", self.steps.saturating_sub(8), vec![sum(LAST, 1.0)]),
        ]
    }

    fn count_stage(&self, _: Budget, _: Sampler) -> Result<Option<Stage>, Error> {
        Ok(None)
    }

    fn check(&self, _: Shape, budget: Budget) -> Result<(), Error> {
        let fine = (10..=1000).contains(&self.steps);
        Error::ensure(fine, "steps", "from 10 to 1000 for one pass", self.steps)?;
        self.link.check_least_squares()?;
        Ok(budget.unless_pure()?)
    }

    fn access(&self) -> Access {
        Access::Sums
    }

    fn fit(&self, _: Run<'_, '_>) -> Result<LinearFit, Error> {
        Err(refused())
    }
}

/// What a fit did with its budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BudgetSplit {
    /// How much can be learnt at all.
    pub reach: Learnable,
    /// How often the features are whitened.
    pub whitenings: u32,
    /// Steps with a clip at the median, which find the scale of the residuals.
    pub robust_steps: u64,
    /// Cheap steps with a high clip, which find the place.
    pub cheap_steps: u64,
    /// Dear steps with a high clip; their average is the answer.
    pub final_steps: u64,
    /// Rows are cut to this norm in the second and third whitening, in whitened units.
    pub whitened_norm: f64,
    /// By how many quarter powers of two the threshold may fall in one step.
    pub threshold_depth: i32,
    /// The level of the tail that the high clip is fitted to.
    pub tail_level: f64,
    /// Shares of μ²; they add up to one.
    pub shares: EarlierShares,
}

/// Shares of μ², for all questions of a kind together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the questions bear these names")]
pub struct EarlierShares {
    pub target_scale: f64,
    pub target_centre: f64,
    pub row_norm: f64,
    pub second_moment: f64,
    pub first_threshold: f64,
    pub thresholds: f64,
    pub high_clip: f64,
    pub robust: f64,
    pub cheap: f64,
    pub last: f64,
}

impl BudgetSplit {
    /// The questions of a full-batch fit whose noise is `noise` for a share of one.
    pub fn stages(&self, neighbours: Neighbours, noise: f64) -> Vec<Stage> {
        let shares = &self.shares;
        let sum = |purpose: &str, share: f64| PlannedRelease::sum(purpose, noise / share.sqrt());
        // A replaced row moves a Gaussian sum twice as far: the same share is worth twice the μ.
        let factor = if neighbours == Neighbours::ReplaceOne { 2.0 } else { 1.0 };
        let choice = |purpose: &str, level: f64, share: f64| {
            PlannedRelease::quantile(purpose, level, factor * share.sqrt() / noise, neighbours)
        };
        let scale = choice(SCALE, LEVEL, shares.target_scale);
        let centre = choice(CENTRE, 0.5, shares.target_centre);
        let mut stages = vec![Stage::new("target", 1, vec![scale, centre])];
        if self.reach != Learnable::Weights {
            return stages;
        }
        let mut add = |name: &str, steps: u64, releases: Vec<PlannedRelease>| {
            stages.push(Stage::new(name, steps, releases));
        };
        add("rows", 1, vec![choice(NORM, 0.5, shares.row_norm)]);
        if self.whitenings > 0 {
            let rounds = u64::from(self.whitenings);
            let each = shares.second_moment / rounds as f64;
            add("whitening", rounds, vec![sum(MOMENT, each)]);
        }
        add("scale", 1, vec![choice(FIRST, LEVEL, shares.first_threshold)]);
        let steps = self.robust_steps;
        let gradient = sum(ROBUST, shares.robust / steps as f64);
        let threshold = choice(THRESHOLD, LEVEL, shares.thresholds / steps as f64);
        add("robust steps", steps, vec![gradient, threshold]);
        add("tail", 1, vec![choice(TAIL, self.tail_level, shares.high_clip)]);
        let (steps, each) = (self.cheap_steps, shares.cheap / self.cheap_steps as f64);
        add("first steps", steps, vec![sum(CHEAP, each)]);
        let (steps, each) = (self.final_steps, shares.last / self.final_steps as f64);
        add("last steps", steps, vec![sum(LAST, each)]);
        stages
    }
}
