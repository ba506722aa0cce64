//! Histograms of targets and of values: every row in one bin.
use serde::{Deserialize, Serialize};

use super::{Cache, Output, Query, Rows, add_to, encoded};
use crate::{
    histogram::{linear_bins, tally},
    kernels::Bins,
    target_scaling::TargetScaling,
};

/// How many targets lie in each bin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetHistogram {
    pub unit: TargetScaling,
    pub bins: TargetBins,
}

/// Grid of targets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TargetBins {
    /// Of their absolute values, between these thresholds.
    Sizes(Vec<f64>),
    /// Of themselves, as [`linear_bins`] says for this scale.
    Centres(f64),
}

impl TargetHistogram {
    pub const KIND: &str = "target-histogram";
}

impl Query for TargetHistogram {
    fn outputs(&self) -> Vec<Output> {
        let bins = match &self.bins {
            TargetBins::Sizes(thresholds) => thresholds.len() + 1,
            TargetBins::Centres(scale) => linear_bins(*scale).0.len() + 1,
        };
        vec![Output::Counts { bins }]
    }

    fn add(&self, rows: &Rows<'_>, _: &mut Cache, totals: &mut [i128]) {
        let (unit, bins, threads) = (self.unit, totals.len(), rows.threads);
        let counts = match &self.bins {
            TargetBins::Sizes(thresholds) => {
                let grid = Bins::new(thresholds.clone());
                tally(rows.targets(), bins, |y| grid.bin(unit.encode(y).abs()), threads)
            }
            TargetBins::Centres(scale) => {
                let (_, bin) = linear_bins(*scale);
                tally(rows.targets(), bins, |y| bin(unit.encode(y)), threads)
            }
        };
        add_to(totals, &[], &counts);
    }

    fn encode(&self) -> Vec<u8> {
        encoded(Self::KIND, self)
    }
}

/// How many first features, times `scale`, lie in each bin between these thresholds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValueHistogram {
    pub scale: f64,
    pub thresholds: Vec<f64>,
}

impl ValueHistogram {
    pub const KIND: &str = "value-histogram";
}

impl Query for ValueHistogram {
    fn outputs(&self) -> Vec<Output> {
        vec![Output::Counts { bins: self.thresholds.len() + 1 }]
    }

    fn add(&self, rows: &Rows<'_>, _: &mut Cache, totals: &mut [i128]) {
        assert!(rows.members.is_none(), "values of all rows");
        let table = rows.data.dense();
        for row in table.features().chunks_exact(table.width()) {
            totals[self.thresholds.partition_point(|&end| end < row[0] * self.scale)] += 1;
        }
    }

    fn encode(&self) -> Vec<u8> {
        encoded(Self::KIND, self)
    }
}
