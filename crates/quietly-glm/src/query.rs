//! Queries of convex problems: the number of rows, their norms, and sums of clipped gradients.
//!
//! # Proof: clipped gradients on the lattice
//!
//! Each gradient is clipped to norm C and becomes integers q, ‖q‖ ≤ C in units of the lattice ([`Examples::clipped`]): what a
//! row adds, under either relation, to a full sum and to a sample. A replaced row of a full sum moves it by ‖q - q'‖, at most 2C and
//! also at most (G + 2e)/h + √d: G bounds the difference of two gradients at one point of the set; clipping a gradient leaves it
//! between 0 and itself, in the hull of all gradients, whose diameter is G too; e is what floating point does to one
//! gradient before it is rounded to the lattice of step h, which moves each of two vectors by √d/2. The smaller counts. G and e
//! hold for points of the set; algorithms ask at such points alone: projected, or between points of it.
//!
//! A row that is no null record adds one to the count of rows, and one to the bin of its norm.
use quietly_accounting::Neighbours;
use quietly_core::{lattice::Lattice, mechanism::Sampler};
use quietly_engine::{
    error::Error,
    histogram::tally,
    kernels::Bins,
    query::{Cache, Dataset, Output, Query, Rows, Sensitivity, add_to, encoded},
};
use serde::{Deserialize, Serialize};

use super::{
    constants::Constants,
    design_matrix::{self, Examples, Features, Measured, Shape},
    glm::Glm,
    loss::Loss,
    problem::Problem,
    run::{Fitting, target},
};

/// A query over the rows of a convex problem.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConvexQuery {
    problem: Problem,
    /// Features, without the constant.
    width: usize,
    /// The public range of the target.
    range: (f64, f64),
    statistic: Statistic,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Statistic {
    /// How many rows are not null records.
    RowCount,
    /// How many norms of rows lie between these.
    NormHistogram(Vec<f64>),
    /// Σ of clipped gradients.
    GradientSum(GradientSum),
}

/// The gradients at some weights, of rows held to `radius`, each clipped to norm `clip`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GradientSum {
    weights: Vec<f64>,
    radius: f64,
    clip: f64,
    /// What one row is charged for, in steps of the lattice.
    bound: f64,
}

impl GradientSum {
    /// For rows as they are bounded now; the weights are still to be set.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if gradients have no bound.
    pub fn new(run: &Fitting<'_, '_>) -> Result<Self, Error> {
        let (problem, width, radius) = (run.problem, run.shape.width, run.radius);
        let constants = problem.constants(width, radius)?;
        let size = problem.size(width);
        let clip = problem.clip.unwrap_or(f64::INFINITY).min(constants.lipschitz);
        let lattice = Lattice::for_sums(clip, size);
        let mut bound = lattice.bound() as f64;
        let full = run.plan.sampler == Sampler::FullBatch;
        if full && run.plan.budget.neighbours() == Neighbours::ReplaceOne {
            let (glm, far) = (problem.derivatives(width, radius)?, problem.set.norms(size).l2);
            let apart = apart(&glm, &constants, radius, size, far) / lattice.step();
            // A derivative with a corner may jump by rounding, and without a set there is no bound on that of a score.
            let apart = apart + (size as f64).sqrt();
            bound = if apart.is_finite() { bound.min(0.5 * apart * (1.0 + 1e-12)) } else { bound };
        }
        Ok(GradientSum { weights: vec![0.0; size], radius, clip, bound })
    }

    /// The norm that gradients are clipped to.
    pub fn clip(&self) -> f64 {
        self.clip
    }

    /// The same at these weights.
    pub fn at(&self, weights: &[f64]) -> Self {
        GradientSum { weights: weights.to_vec(), ..*self }
    }

    fn lattice(&self) -> Lattice {
        Lattice::for_sums(self.clip, self.weights.len())
    }

    /// What one row can add.
    pub fn sensitivity(&self) -> Sensitivity {
        Sensitivity::l2(self.bound, self.lattice().step())
    }
}

/// G + 2e: how far apart two rows' computed gradients may be at one point no longer than `far`.
fn apart(glm: &Glm, constants: &Constants, radius: f64, size: usize, far: f64) -> f64 {
    // Clipping a gradient takes a norm and a quotient more than a plain one.
    let held = 4.0 * (size as f64 + 32.0) * f64::EPSILON * constants.lipschitz;
    let error = design_matrix::rounding(*glm, radius, size, 1.0, far) + held;
    // A null record is as far from a row as the row is long.
    constants.diameter.max(constants.lipschitz) + 2.0 * error
}

/// Rows as they were measured for an earlier query.
struct MeasuredRows {
    /// What they were measured for.
    key: Key,
    rows: Measured,
}

/// What decides targets and measures.
#[derive(Clone, PartialEq)]
struct Key {
    loss: Loss,
    range: (f64, f64),
    constant: f64,
    l1: Option<f64>,
    radius: f64,
}

impl ConvexQuery {
    pub const KIND: &str = "convex";

    pub fn new(run: &Fitting<'_, '_>, statistic: Statistic) -> Self {
        let (problem, width, range) = (run.problem.clone(), run.shape.width, run.range);
        ConvexQuery { problem, width, range, statistic }
    }

    /// Another statistic of the same problem.
    pub fn with(&self, statistic: Statistic) -> Self {
        ConvexQuery { statistic, ..self.clone() }
    }

    /// The rows, measured: all of them at once where later queries will use it.
    fn examples<'a>(&self, rows: &Rows<'a>, cache: &mut Cache) -> Examples<'a> {
        let Problem { constant, l1, longest, loss, .. } = self.problem;
        let (features, raw, nulls) = parts(rows.data);
        let shape = Shape { width: self.width, constant, l1, radius: longest };
        let kept = cache.take().filter(|there: &MeasuredRows| there.key == self.key());
        if let Some(kept) = kept {
            return Examples::again(shape, features, kept.rows, rows.threads);
        }
        let targets = raw.iter().map(|&y| target(loss, y, self.range)).collect();
        let again = cache.is_reused() || matches!(self.statistic, Statistic::NormHistogram(_));
        let new = if again { Examples::new } else { Examples::for_one_pass };
        new(shape, features, targets, rows.threads).without(nulls.to_vec())
    }

    fn key(&self) -> Key {
        let Problem { constant, l1, longest, loss, .. } = self.problem;
        Key { loss, range: self.range, constant, l1, radius: longest }
    }
}

/// Features, targets as they came, and the places of null records that were left out.
pub(super) fn parts(data: Dataset<'_>) -> (Features<'_>, &[f64], &[usize]) {
    match data {
        Dataset::Dense(table) => (Features::Dense(table.features()), table.target(), table.nulls()),
        Dataset::Sparse(rows) => (Features::from(rows), &rows.target, &[]),
    }
}

impl Query for ConvexQuery {
    fn outputs(&self) -> Vec<Output> {
        vec![match &self.statistic {
            Statistic::RowCount => Output::Counts { bins: 1 },
            Statistic::NormHistogram(radii) => Output::Counts { bins: radii.len() + 1 },
            Statistic::GradientSum(sum) => {
                Output::Sum { len: sum.weights.len(), sensitivity: sum.sensitivity() }
            }
        }]
    }

    /// # Panics
    ///
    /// If gradients have no bound: plans were checked for that.
    fn add(&self, rows: &Rows<'_>, cache: &mut Cache, totals: &mut [i128]) {
        let mut examples = self.examples(rows, cache);
        let all = rows.members.is_none();
        match &self.statistic {
            Statistic::RowCount => {
                assert!(all, "all rows are counted");
                add_to(totals, &[], &[examples.targets().filter(|y| !y.is_nan()).count() as u64]);
            }
            Statistic::NormHistogram(radii) => {
                assert!(all, "the norms of all rows");
                let (grid, threads) = (Bins::new(radii.clone()), rows.threads);
                let bin = |m: design_matrix::Measure| grid.bin(m.norm);
                add_to(totals, &[], &tally(examples.measures(), grid.bins(), bin, threads));
            }
            Statistic::GradientSum(sum) => {
                examples = examples.held_to(sum.radius);
                let derivatives = self.problem.derivatives(self.width, sum.radius);
                let glm = derivatives.expect("a plan that was checked");
                let members = rows.members.map(|members| members.rows());
                let q = examples.clipped_gradient_sum(glm, &sum.weights, &sum.lattice(), members);
                add_to(totals, &q, &[]);
            }
        }
        if cache.is_reused() {
            cache.put(MeasuredRows { key: self.key(), rows: examples.measured() });
        }
    }

    fn encode(&self) -> Vec<u8> {
        encoded(Self::KIND, self)
    }
}
