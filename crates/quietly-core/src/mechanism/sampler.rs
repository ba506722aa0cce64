//! Samplers: which rows a step sees, and the event that the accountant prices. `batch_sampling.rs` draws the batches.
use std::fmt;

use quietly_accounting::{Event, Participation};
use serde::{Deserialize, Serialize};

use super::{Stage, descent};
use crate::error::Error;

/// Which rows a step sees: the sampler, as the accountant sees it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "sampler", rename_all = "kebab-case")]
pub enum Sampler {
    /// Every step sees every row.
    FullBatch,
    /// Each row is in one of `steps` steps, drawn uniformly, secretly and on its own.
    RandomAllocation {
        /// How many steps there are.
        steps: u64,
    },
    /// Each row is in one of `steps` parts, drawn independently, and is charged as if the parts were public: no
    /// amplification, for mechanisms that none is proven for.
    Partition {
        /// How many parts there are.
        steps: u64,
    },
    /// Each row is in one of `steps` parts by its position in the table, which is public: no amplification, and for
    /// rows that are replaced only.
    OrderedPartition {
        /// How many parts there are.
        steps: u64,
    },
    /// Each row joins each of `steps` steps with chance `rate`, secretly and on its own.
    Poisson {
        /// How many steps there are.
        steps: u64,
        /// The chance to join one: a multiple of 2^-32.
        rate: f64,
    },
    /// Each row draws one of `bins` bins, uniformly, secretly and on its own, and is in every step of that bin: "balls and bins".
    BallsAndBins {
        /// Steps of a pass.
        bins: u64,
        /// Passes.
        #[serde(rename = "epochs")]
        passes: u64,
    },
    /// The same, but each row is charged as if its bin were public.
    Cyclic {
        /// Steps of a pass.
        period: u64,
        /// Passes.
        #[serde(rename = "epochs")]
        passes: u64,
    },
    /// Each of `steps` steps sees `batch` of exactly `rows` rows, drawn anew: for rows that are replaced only.
    FixedSize {
        /// How many steps there are.
        steps: u64,
        /// Rows to a step.
        batch: u64,
        /// How many rows there are. A plan that is written down has another `rows` beside it.
        #[serde(rename = "of_rows")]
        rows: u64,
    },
}

impl Sampler {
    /// More groups than this cannot be drawn.
    pub const MOST_GROUPS: u64 = 1 << 16;

    /// How many groups there are, where each unit is drawn into one of them.
    pub fn groups(self) -> Option<u64> {
        match self {
            Sampler::RandomAllocation { steps } | Sampler::Partition { steps } => Some(steps),
            Sampler::BallsAndBins { bins, .. } => Some(bins),
            Sampler::Cyclic { period, .. } => Some(period),
            // Parts by place are not drawn.
            Sampler::FullBatch
            | Sampler::Poisson { .. }
            | Sampler::FixedSize { .. }
            | Sampler::OrderedPartition { .. } => None,
        }
    }

    /// How many steps there are, if the sampler says.
    pub fn steps(self) -> Option<u64> {
        match self {
            Sampler::FullBatch => None,
            Sampler::RandomAllocation { steps }
            | Sampler::Partition { steps }
            | Sampler::OrderedPartition { steps }
            | Sampler::Poisson { steps, .. }
            | Sampler::FixedSize { steps, .. } => Some(steps),
            Sampler::BallsAndBins { bins, passes } => Some(bins.saturating_mul(passes)),
            Sampler::Cyclic { period, passes } => Some(period.saturating_mul(passes)),
        }
    }

    /// The share of rows that a step sees, on average.
    pub fn share(self) -> f64 {
        match self {
            Sampler::FullBatch => 1.0,
            Sampler::RandomAllocation { steps }
            | Sampler::Partition { steps }
            | Sampler::OrderedPartition { steps } => 1.0 / steps as f64,
            Sampler::Poisson { rate, .. } => rate,
            Sampler::BallsAndBins { bins, .. } => 1.0 / bins as f64,
            Sampler::Cyclic { period, .. } => 1.0 / period as f64,
            Sampler::FixedSize { batch, rows, .. } => batch as f64 / rows as f64,
        }
    }

    /// Whether every step is drawn on its own, so that rows are in no groups that the steps share.
    pub fn is_drawn_by_step(self) -> bool {
        match self {
            Sampler::FullBatch | Sampler::Poisson { .. } | Sampler::FixedSize { .. } => true,
            Sampler::RandomAllocation { .. }
            | Sampler::Partition { .. }
            | Sampler::OrderedPartition { .. }
            | Sampler::BallsAndBins { .. }
            | Sampler::Cyclic { .. } => false,
        }
    }

    /// What the stages of its steps amount to, found sound; none if there are no steps but over all rows.
    pub(super) fn event(self, stages: &[&Stage]) -> Result<Option<Event>, Error> {
        let mu = stages.iter().map(|stage| stage.mu()).fold(0.0, f64::max);
        // Rounded to the safe side.
        let noise = (1.0 - 1e-12) / mu;
        Ok(match self {
            Sampler::FullBatch => None,
            _ if self.is_descent(stages) => Some(descent(self, stages)?),
            Sampler::RandomAllocation { steps } => Some(Event::random_allocation(steps, 1, noise)?),
            Sampler::Poisson { steps, rate } => Some(Event::poisson(rate, noise)?.repeat(steps)?),
            Sampler::Partition { .. } | Sampler::OrderedPartition { .. } => {
                let part = |stage: &&Stage| stage.event(1);
                Some(Event::disjoint(stages.iter().map(part).collect::<Result<_, _>>()?)?)
            }
            Sampler::BallsAndBins { .. } | Sampler::Cyclic { .. } | Sampler::FixedSize { .. } => {
                unreachable!("always a descent")
            }
        })
    }

    /// Whether these stages are priced as one event: one sum in every step.
    pub(super) fn is_descent(self, stages: &[&Stage]) -> bool {
        match self {
            Sampler::BallsAndBins { .. } | Sampler::Cyclic { .. } | Sampler::FixedSize { .. } => {
                true
            }
            Sampler::Poisson { .. } => !stages.iter().all(|stage| stage.is_gaussian()),
            Sampler::FullBatch
            | Sampler::RandomAllocation { .. }
            | Sampler::Partition { .. }
            | Sampler::OrderedPartition { .. } => false,
        }
    }

    /// Whether a row takes part in the releases of one part only, and is charged for those.
    pub(super) fn is_partition(self) -> bool {
        matches!(self, Sampler::Partition { .. } | Sampler::OrderedPartition { .. })
    }

    /// In which steps a row takes part, for correlated noise.
    pub(super) fn participation(self) -> Option<Participation> {
        match self {
            Sampler::FullBatch => Some(Participation::FullBatch),
            Sampler::Poisson { rate, .. } => Some(Participation::Poisson { rate }),
            Sampler::BallsAndBins { bins, .. } => Some(Participation::BallsAndBins { bins }),
            Sampler::Cyclic { period, .. } => Some(Participation::Cyclic { period }),
            Sampler::FixedSize { batch, rows, .. } => {
                Some(Participation::FixedSize { share: batch as f64 / rows as f64 })
            }
            Sampler::RandomAllocation { .. }
            | Sampler::Partition { .. }
            | Sampler::OrderedPartition { .. } => None,
        }
    }
}

impl fmt::Display for Sampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sampler::FullBatch => write!(f, "every row in every step"),
            Sampler::RandomAllocation { steps } => {
                write!(
                    f,
                    "random allocation: each row in one of {steps} steps, uniformly at random"
                )
            }
            Sampler::Partition { steps } => {
                write!(f, "partition: each row in one of {steps} parts")
            }
            Sampler::OrderedPartition { steps } => {
                write!(f, "partition: each row in one of {steps} parts, by its place in the table")
            }
            Sampler::Poisson { steps, rate } => {
                write!(f, "Poisson sampling, rate {rate:.4}, {steps} steps")
            }
            Sampler::BallsAndBins { bins, passes } => {
                write!(f, "balls-and-bins, {bins} batches per epoch, {passes} epochs")
            }
            Sampler::Cyclic { period, passes } => {
                write!(f, "cyclic, {period} batches per epoch, {passes} epochs")
            }
            Sampler::FixedSize { steps, batch, rows } => {
                write!(
                    f,
                    "fixed-size batches: {batch} of {rows} rows, uniformly at random, {steps} steps"
                )
            }
        }
    }
}
