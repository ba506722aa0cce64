//! How a budget is divided: every number of the default regression that depends on public quantities alone.
//!
//! With μ the privacy parameter of the whole fit (Gaussian differential privacy), n rows and d features (the constant among
//! them), three ratios decide: μn, how many noise units the table is worth; d^1.5/(μn), how well a noisy second
//! moment resolves the features; d/(μn), the noise of a gradient. The constants were found by experiment on other
//! tables and seeds than those of the published comparison (docs/regression.md).
use quietly_accounting::Neighbours;
use quietly_core::mechanism::{PlannedRelease, Stage};
use quietly_engine::{link::Link, residual::LEVEL, whitening::WIDEST};
use serde::{Deserialize, Serialize};

use crate::full_batch;

/// Below this many noise units nothing can be learnt, not even the target's middle.
const NOTHING: f64 = 30.0;
/// Below this many, only the target's middle: weights would now and then be worse than none.
const CENTRE: f64 = 60.0;

/// What a fit does with its budget.
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
    pub shares: Shares,
}

/// How much a budget lets one learn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Learnable {
    /// Nothing: the middle of the target's range is predicted, and nothing is spent.
    Nothing,
    /// The middle of the target only.
    Centre,
    /// All weights.
    Weights,
}

/// Shares of μ², for all questions of a kind together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the questions bear these names")]
pub struct Shares {
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
    /// The design for about `rows` rows of `width` features, without the constant.
    pub fn new(link: Link, rows: u64, width: usize, mu: f64) -> Self {
        let (rows, d) = (rows as f64, (width + 1) as f64);
        let units = mu * rows;
        let mut design = BudgetSplit {
            reach: Learnable::Weights,
            whitenings: 0,
            robust_steps: 3,
            cheap_steps: 6,
            final_steps: 6,
            whitened_norm: 0.0,
            threshold_depth: 12,
            tail_level: 0.0,
            shares: Shares::default(),
        };
        if units < NOTHING {
            return BudgetSplit { reach: Learnable::Nothing, ..design };
        }
        // A ReLU model of few rows may hang on a handful of active ones.
        let (enough, each) = match link {
            Link::Linear => (CENTRE, 0.2),
            Link::Relu => (1.7 * CENTRE, 0.03),
            other => other.not_least_squares(),
        };
        if units < enough || d > (0.5 * mu).min(each) * rows {
            design.reach = Learnable::Centre;
            design.shares = Shares { target_scale: 0.5, target_centre: 0.5, ..Shares::default() };
            return design;
        }
        let blur = d.powf(1.5) / units;
        design.whitenings = match blur {
            _ if width > WIDEST => 0,
            b if b < 0.005 => 3,
            b if b < 0.045 => 2,
            _ => 1,
        };
        // Questions with one number for an answer need little where there are many rows, and a certain least where
        // there are few.
        let small = (800.0 / units).clamp(0.25, 1.0);
        let least = |enough: f64, most: f64| (enough / units).powi(2).min(most);
        let target = (0.01 * small).max(least(16.0, 0.2));
        let threshold = 0.0125 * small;
        let moment = (std::f64::consts::SQRT_2 * blur / 0.06).powi(2).clamp(0.04, 0.12);
        let mut shares = Shares {
            target_scale: target,
            target_centre: target,
            row_norm: (0.01 * small).max(least(10.0, 0.05)),
            second_moment: moment * f64::from(design.whitenings),
            first_threshold: threshold.max(least(12.0, 0.1)),
            thresholds: threshold * design.robust_steps as f64,
            high_clip: 0.03,
            ..Shares::default()
        };
        let gradients = 1.0 - shares.total();
        shares.robust = 0.1 * gradients;
        shares.cheap = 0.3 * gradients;
        shares.last = 0.6 * gradients;
        design.shares = shares;
        let resolved = 0.1 * moment.sqrt() / (std::f64::consts::SQRT_2 * blur);
        design.whitened_norm = (d * resolved.clamp(1.5, 6.0)).sqrt();
        design.threshold_depth = if units * threshold.sqrt() >= 15.0 { 12 } else { 2 };
        design.tail_level = (1.0 - 10.0 / (shares.high_clip.sqrt() * units)).clamp(0.75, 0.999);
        design
    }

    /// The questions of a full-batch fit whose noise is `noise` for a share of one.
    pub fn stages(&self, neighbours: Neighbours, noise: f64) -> Vec<Stage> {
        let shares = &self.shares;
        let sum = |purpose: &str, share: f64| PlannedRelease::sum(purpose, noise / share.sqrt());
        // A replaced row moves a Gaussian sum twice as far: the same share is worth twice the μ.
        let factor = if neighbours == Neighbours::ReplaceOne { 2.0 } else { 1.0 };
        let choice = |purpose: &str, level: f64, share: f64| {
            PlannedRelease::quantile(purpose, level, factor * share.sqrt() / noise, neighbours)
        };
        let scale = choice(full_batch::SCALE, LEVEL, shares.target_scale);
        let centre = choice(full_batch::CENTRE, 0.5, shares.target_centre);
        let mut stages = vec![Stage::new("target", 1, vec![scale, centre])];
        if self.reach != Learnable::Weights {
            return stages;
        }
        let mut add = |name: &str, steps: u64, releases: Vec<PlannedRelease>| {
            stages.push(Stage::new(name, steps, releases));
        };
        add("rows", 1, vec![choice(full_batch::NORM, 0.5, shares.row_norm)]);
        if self.whitenings > 0 {
            let rounds = u64::from(self.whitenings);
            let each = shares.second_moment / rounds as f64;
            add("whitening", rounds, vec![sum(full_batch::MOMENT, each)]);
        }
        add("scale", 1, vec![choice(full_batch::FIRST, LEVEL, shares.first_threshold)]);
        let steps = self.robust_steps;
        let gradient = sum(full_batch::ROBUST, shares.robust / steps as f64);
        let threshold = choice(full_batch::THRESHOLD, LEVEL, shares.thresholds / steps as f64);
        add("robust steps", steps, vec![gradient, threshold]);
        add("tail", 1, vec![choice(full_batch::TAIL, self.tail_level, shares.high_clip)]);
        let (steps, each) = (self.cheap_steps, shares.cheap / self.cheap_steps as f64);
        add("first steps", steps, vec![sum(full_batch::CHEAP, each)]);
        let (steps, each) = (self.final_steps, shares.last / self.final_steps as f64);
        add("last steps", steps, vec![sum(full_batch::LAST, each)]);
        stages
    }
}

impl Shares {
    pub fn total(&self) -> f64 {
        self.target_scale
            + self.target_centre
            + self.row_norm
            + self.second_moment
            + self.first_threshold
            + self.thresholds
            + self.high_clip
            + self.robust
            + self.cheap
            + self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_none_is_negative() {
        for rows in [0, 100, 1_000, 4_000, 20_000, 1_000_000, 1_000_000_000] {
            for width in [1, 10, 50, 200, 2_000] {
                for mu in [1e-4, 0.03, 0.27, 0.7, 5.0] {
                    let design = BudgetSplit::new(Link::Linear, rows, width, mu);
                    if design.reach == Learnable::Nothing {
                        continue;
                    }
                    let total = design.shares.total();
                    assert!((total - 1.0).abs() < 1e-12, "{rows} {width} {mu}: {total}");
                    let s = design.shares;
                    assert!(design.reach == Learnable::Centre || s.last > 0.1, "{design:?}");
                }
            }
        }
    }
}
