//! How a budget is divided: every number of the default regressions that depends on public quantities alone.
//!
//! With μ the privacy parameter of the whole fit (Gaussian differential privacy), n rows and d features (the constant among
//! them), three ratios decide: μn, how many noise units the table is worth; d^1.5/(μn), how well a noisy second
//! moment resolves the features; d/(μn), the noise of a gradient. docs/regression.md has the table of all decisions.
use quietly_accounting::Neighbours;
use quietly_core::mechanism::{PlannedRelease, Stage};
use quietly_engine::{
    column_map::{MOST_RANK_NOISE, rank_noise, tree_noise},
    link::Link,
    residual::LEVEL,
    whitening::WIDEST,
};
use serde::{Deserialize, Serialize};

use crate::full_batch::{
    CENTRES, CHEAP, COLUMNS, FIRST, GATE, LAST, MEAN, MOMENT, NORM, NORMS, ROBUST, TARGET,
    THRESHOLD,
};

/// Below this many noise units a mean tells no more than the middle of the range: of 98 in 100 means the squared error is at most 6/(nμ)² in
/// half ranges, and that of the middle at most 1 (docs/spec/default.md#1, P3).
const LEAST_FOR_MEAN: f64 = 2.4;
/// Below this many only a constant can be learnt.
const LEAST_UNITS: f64 = 30.0;
/// A ReLU model has at most so many features for each row.
const RELU_FEATURES_PER_ROW: f64 = 0.05;
/// Nor where there are fewer of them for each feature.
const LEAST_PER_FEATURE: f64 = 6.0;
/// With this many for each feature, tails are features of their own.
const TAILS: f64 = 50.0;
/// The share of the trees of all columns.
pub const TREES: f64 = 0.06;
/// That of the tree of the target.
const TARGET_TREE: f64 = 0.015;
/// That of the mean of the rows, where it is asked for.
const ROW_MEAN: f64 = 0.05;
/// A mean of the target, and the gate, are to be worth so many noise units.
const MEAN_UNITS: f64 = 36.0;
/// The most noise in ranks of a tree whose mean a gate draws to.
const MOST_RANK_NOISE_OF_BASE: f64 = 0.02;
/// The least share of the gate.
const GATE_SHARE: f64 = 0.04;
/// The most that a second moment may cost.
const MOST_MOMENT: f64 = 0.12;
/// A histogram of norms is of use if it is worth so many noise units.
const HISTOGRAM_UNITS: f64 = 100.0;
/// With fewer noise units in all, they would drown.
const LEAST_FOR_HISTOGRAMS: f64 = 230.0;
/// The least and the most share of one.
const HISTOGRAM: (f64, f64) = (0.01, 0.03);
/// A constant is a mean within released bounds if those cut off no more than this at either end.
const MOST_CUT_OFF: f64 = 0.03;

/// What a fit does with its budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Design {
    /// How much can be learnt at all.
    pub reach: Learnable,
    /// Whether the trees of numeric columns are released, and rows go through the map that they make.
    pub columns: bool,
    /// Whether what lies beyond winsor intervals has features of its own.
    pub tails: bool,
    /// Where the centre of the target comes from.
    pub centre: Centre,
    /// How clipping norms are found.
    pub clip: ClipFrom,
    /// Whether the weights are held against the constant in the end.
    pub gate: bool,
    /// How often the features are whitened.
    pub whitenings: u32,
    /// Steps that find the scale of the residuals.
    pub robust_steps: u64,
    /// Cheap steps, which find the place.
    pub cheap_steps: u64,
    /// Dear steps; their average is the answer.
    pub final_steps: u64,
    /// Rows are cut to this norm in the second and third whitening, in whitened units.
    pub whitened_norm: f64,
    /// Shares of μ²; they add up to one.
    pub shares: Shares,
}

/// How much a budget lets one learn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Learnable {
    /// Nothing: the middle of the target's range is predicted, and nothing is spent.
    Nothing,
    /// The centre of the target only.
    Centre,
    /// All weights.
    Weights,
}

/// Where the centre of the target comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Centre {
    /// The mean within the public range.
    Mean,
    /// The mean of a released tree.
    Tree,
    /// The mean within bounds from a released tree.
    MeanWithinTree,
}

/// How clipping norms are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClipFrom {
    /// Histograms of gradient norms: before the robust steps, the cheap ones and the last.
    Histograms,
    /// Third quartiles of gradient norms, where a histogram would drown in its noise.
    Quartiles,
}

/// Shares of μ², for all questions of a kind together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the questions bear these names")]
pub struct Shares {
    pub columns: f64,
    pub target_tree: f64,
    pub target_mean: f64,
    pub row_norm: f64,
    pub row_mean: f64,
    pub second_moment: f64,
    pub clips: f64,
    pub robust: f64,
    pub cheap: f64,
    pub last: f64,
    pub gate: f64,
}

/// What a design is made for: public numbers.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub link: Link,
    pub rows: u64,
    /// How many features a row has, without the constant.
    pub width: usize,
    /// How many of them are numeric columns that may be mapped: none turns the map off.
    pub numbers: usize,
    /// What the budget is worth for a row that is there or not.
    pub mu: f64,
    pub neighbours: Neighbours,
    /// The share of the trees of all columns: [`TREES`], or what makes that of a whole of which this is a part.
    pub trees: f64,
    /// Whether tails may have features of their own.
    pub tails: bool,
}

impl Design {
    pub fn new(wanted: Wanted) -> Self {
        let Wanted { link, rows, width, numbers, mu, neighbours, trees, tails } = wanted;
        let (n, own) = (rows as f64, (width + 1) as f64);
        let units = mu * n;
        let mut design = Design {
            reach: Learnable::Weights,
            columns: false,
            tails: false,
            centre: Centre::Mean,
            clip: ClipFrom::Quartiles,
            gate: false,
            whitenings: 0,
            robust_steps: 3,
            cheap_steps: 6,
            final_steps: 6,
            whitened_norm: 0.0,
            shares: Shares::default(),
        };
        // Noise in ranks where a tree of so many columns has this share.
        let blurred = |columns: usize, share: f64| {
            rank_noise(tree_noise(columns, neighbours, 1.0 / (mu * share.sqrt())), n)
        };
        if units < LEAST_FOR_MEAN {
            return Design { reach: Learnable::Nothing, ..design };
        }
        // Half of the rows of max(u, 0) are active, and a model of few rows may hang on a handful of them.
        let (enough, active, few) = match link {
            Link::Relu => (5.0 * LEAST_UNITS, 0.5, own > RELU_FEATURES_PER_ROW * n),
            _ => (LEAST_UNITS, 1.0, false),
        };
        let per_feature = active * units / own;
        if units < enough || per_feature < LEAST_PER_FEATURE || few {
            design.reach = Learnable::Centre;
            let bounded = 2.0 * blurred(1, 0.5) <= MOST_CUT_OFF;
            design.centre = if bounded { Centre::MeanWithinTree } else { Centre::Mean };
            let half = if bounded { 0.5 } else { 0.0 };
            design.shares =
                Shares { target_tree: half, target_mean: 1.0 - half, ..Shares::default() };
            return design;
        }
        design.columns = numbers > 0 && blurred(numbers, trees) <= MOST_RANK_NOISE;
        design.tails = tails && design.columns && units >= TAILS * own;
        let d = own + if design.tails { 2.0 * numbers as f64 } else { 0.0 };
        // The model of max(u, 0) is not convex, and is held against the constant. A linear one is not: shrinkage by the known noise keeps it
        // from being worse, and a gate would cost more than it saves (docs/regression.md).
        design.gate = link == Link::Relu;
        // What a gate draws to has to be near the mean, and nothing corrects it afterwards.
        let most = if design.gate { MOST_RANK_NOISE_OF_BASE } else { MOST_RANK_NOISE };
        let tree = blurred(1, TARGET_TREE) <= most;
        design.centre = if tree { Centre::Tree } else { Centre::Mean };
        let histogram = (HISTOGRAM_UNITS / units).powi(2);
        let blur = d.powf(1.5) / units;
        design.whitenings = match blur {
            _ if width > WIDEST => 0,
            b if b < 0.005 => 3,
            b if b < 0.045 => 2,
            b if b <= MOST_MOMENT.sqrt() => 1,
            _ => 0,
        };
        // Without whitening steps are short, and the clip has to fall with the residuals, step by step.
        if design.whitenings == 0 {
            (design.robust_steps, design.cheap_steps) = (9, 3);
        }
        design.clip = match units >= LEAST_FOR_HISTOGRAMS && design.whitenings > 0 {
            true => ClipFrom::Histograms,
            false => ClipFrom::Quartiles,
        };
        // Questions with one number for an answer need little where there are many rows, and a certain least where
        // there are few.
        let small = (800.0 / units).clamp(0.25, 1.0);
        let least = |enough: f64, most: f64| (enough / units).powi(2).min(most);
        let moment = (std::f64::consts::SQRT_2 * blur / 0.06).powi(2).clamp(0.04, MOST_MOMENT);
        let quartile = 0.0125 * small;
        let mut shares = Shares {
            columns: if design.columns { trees } else { 0.0 },
            target_tree: if tree { TARGET_TREE } else { 0.0 },
            target_mean: if tree { 0.0 } else { least(MEAN_UNITS, 0.2).max(0.01) },
            row_norm: (0.01 * small).max(least(10.0, 0.05)),
            // Where no second moment is known, features that are not centred would have a curvature of their own.
            row_mean: if design.whitenings == 0 { ROW_MEAN } else { 0.0 },
            second_moment: moment * f64::from(design.whitenings),
            clips: match design.clip {
                ClipFrom::Histograms => 3.0 * histogram.clamp(HISTOGRAM.0, HISTOGRAM.1),
                ClipFrom::Quartiles => {
                    quartile.max(least(12.0, 0.1)) + quartile * design.robust_steps as f64
                }
            },
            gate: if design.gate { least(MEAN_UNITS, 0.2).max(GATE_SHARE) } else { 0.0 },
            ..Shares::default()
        };
        let gradients = 1.0 - shares.total();
        let parts = if design.whitenings > 0 { [0.1, 0.3, 0.6] } else { [0.4, 0.1, 0.5] };
        [shares.robust, shares.cheap, shares.last] = parts.map(|part| part * gradients);
        design.shares = shares;
        let resolved = 0.1 * moment.sqrt() / (std::f64::consts::SQRT_2 * blur);
        design.whitened_norm = (d * resolved.clamp(1.5, 6.0)).sqrt();
        design
    }

    /// The questions of a fit whose noise is `noise` for a share of one.
    pub fn stages(&self, neighbours: Neighbours, noise: f64) -> Vec<Stage> {
        let shares = &self.shares;
        let sum = |purpose: &str, share: f64| PlannedRelease::sum(purpose, noise / share.sqrt());
        // A replaced row moves a Gaussian sum twice as far: the same share is worth twice the μ.
        let factor = if neighbours == Neighbours::ReplaceOne { 2.0 } else { 1.0 };
        let choice = |purpose: &str, level: f64, share: f64| {
            PlannedRelease::quantile(purpose, level, factor * share.sqrt() / noise, neighbours)
        };
        let mut stages = Vec::new();
        if self.reach == Learnable::Nothing {
            return stages;
        }
        let mut add = |name: &str, steps: u64, releases: Vec<PlannedRelease>| {
            stages.push(Stage::new(name, steps, releases));
        };
        if self.columns {
            add("columns", 1, vec![sum(COLUMNS, shares.columns)]);
        }
        let asked = [(TARGET, shares.target_tree), (MEAN, shares.target_mean)];
        let asked = asked.into_iter().filter(|(_, share)| *share > 0.0);
        add("target", 1, asked.map(|(purpose, share)| sum(purpose, share)).collect());
        if self.reach != Learnable::Weights {
            return stages;
        }
        add("rows", 1, vec![choice(NORM, 0.5, shares.row_norm)]);
        if shares.row_mean > 0.0 {
            add("centre of the rows", 1, vec![sum(CENTRES, shares.row_mean)]);
        }
        if self.whitenings > 0 {
            let rounds = u64::from(self.whitenings);
            let each = shares.second_moment / rounds as f64;
            add("whitening", rounds, vec![sum(MOMENT, each)]);
        }
        match self.clip {
            ClipFrom::Histograms => add("clips", 3, vec![sum(NORMS, shares.clips / 3.0)]),
            ClipFrom::Quartiles => {
                let each = shares.clips / (self.robust_steps + 1) as f64;
                add("first clip", 1, vec![choice(FIRST, LEVEL, each)]);
                add("clips", self.robust_steps, vec![choice(THRESHOLD, LEVEL, each)]);
            }
        }
        let mut descend = |name: &str, steps: u64, purpose: &str, share: f64| {
            add(name, steps, vec![sum(purpose, share / steps as f64)]);
        };
        descend("robust steps", self.robust_steps, ROBUST, shares.robust);
        descend("first steps", self.cheap_steps, CHEAP, shares.cheap);
        descend("last steps", self.final_steps, LAST, shares.last);
        if self.gate {
            add("gate", 1, vec![sum(GATE, shares.gate)]);
        }
        stages
    }
}

impl Shares {
    pub fn total(&self) -> f64 {
        self.columns
            + self.target_tree
            + self.target_mean
            + self.row_norm
            + self.row_mean
            + self.second_moment
            + self.clips
            + self.robust
            + self.cheap
            + self.last
            + self.gate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_none_is_negative() {
        for rows in [1, 100, 1_000, 4_000, 20_000, 1_000_000, 1_000_000_000] {
            for width in [1, 10, 50, 200, 2_000] {
                for mu in [1e-4, 0.03, 0.27, 0.7, 5.0, 50.0] {
                    for (link, trees) in [(Link::Linear, TREES), (Link::Relu, TREES / 0.4)] {
                        let numbers = width / 2;
                        let neighbours = Neighbours::AddRemove;
                        let tails = true;
                        let design = Design::new(Wanted {
                            link,
                            rows,
                            width,
                            numbers,
                            mu,
                            neighbours,
                            trees,
                            tails,
                        });
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
}
