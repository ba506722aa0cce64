//! The map of numeric columns: winsor interval, centre, standard deviation and ranks, from released counts in a tree.
//!
//! Everything here is post-processing of [`ColumnTree`](crate::query::ColumnTree) counts that were released with noise.
//! Values are those of encoded features, within the public range [-1, 1].
use quietly_accounting::Neighbours;
use quietly_core::release::{Releaser, one_in_each};
use serde::{Deserialize, Serialize};

use crate::{
    backend::{Backend, Batch, run_query},
    error::Error,
    query::{
        ColumnTree, TreeColumns,
        column_tree::{CELLS, LEVELS, NODES},
    },
    target_scaling::TargetScaling,
};

pub use self::standardise::{Standardise, Tail};

mod consistent;
mod sparse;
mod standardise;

/// The width of a cell.
const CELL: f64 = 2.0 / CELLS as f64;
/// The least share of a column's mass that is cut off at either end.
pub const LEAST_CUT: f64 = 0.02;
/// Beyond this share the quartiles say more than the quantile itself.
const MOST_CUT: f64 = 0.1;
/// The interval ends no nearer than so many interquartile ranges from the quartiles.
const REACH: f64 = 3.0;
/// The least standard deviation, over the length of the interval.
const LEAST_SD: f64 = 0.05;
/// Noise in ranks above this share of the rows makes a tree worthless.
pub const MOST_RANK_NOISE: f64 = 0.15;

/// One numeric column of released values only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MappedColumn {
    /// The lower end of the winsor interval.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// The mean of the winsorised column.
    pub centre: f64,
    /// Its standard deviation, at least 0.05 of the interval.
    pub sd: f64,
    /// F at the 4097 ends of the cells of [-1, 1]; left out where nothing needs ranks.
    #[serde(with = "sparse", default, skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<f64>,
    /// Whether all released mass lies in one cell.
    pub constant: bool,
}

/// The map of all features of an encoded row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ColumnMap {
    /// None for a feature that is no numeric column.
    pub columns: Vec<Option<MappedColumn>>,
}

/// The standard deviation of noise on one count of the trees of m columns: `noise` is the planned multiplier.
pub fn tree_noise(columns: usize, neighbours: Neighbours, noise: f64) -> f64 {
    noise * one_in_each(LEVELS as usize * columns, neighbours)
}

/// ρ: about the standard deviation of a rank, where counts have this noise; public.
pub fn rank_noise(sd: f64, rows: f64) -> f64 {
    8f64.sqrt() * sd / rows
}

/// The share of mass to cut off at either end, by the noise in ranks.
pub fn cut(rank_noise: f64) -> f64 {
    LEAST_CUT.max(2.0 * rank_noise)
}

impl MappedColumn {
    /// From the released counts of one tree, whose noise has standard deviation `sd`; at least the share `cut` lies beyond
    /// either end of the interval.
    ///
    /// # Panics
    ///
    /// Unless there is one count for every interval of a tree.
    pub fn from_tree(counts: &[f64], sd: f64, cut: f64) -> Self {
        let mass = consistent::cells(counts, sd);
        let mut ranks = vec![0.0; CELLS + 1];
        for (k, mass) in mass.iter().enumerate() {
            ranks[k + 1] = (ranks[k] + mass).min(1.0);
        }
        ranks[CELLS] = 1.0;
        let mut column = MappedColumn {
            low: -1.0,
            high: 1.0,
            centre: 0.0,
            sd: 1.0,
            constant: mass.iter().filter(|mass| **mass > 0.0).count() == 1,
            ranks,
        };
        let (first, third) = (column.quantile(0.25), column.quantile(0.75));
        let spread = third - first;
        (column.low, column.high) = match cut {
            cut if cut <= MOST_CUT => (
                column.quantile(cut).min(first - REACH * spread),
                column.quantile(1.0 - cut).max(third + REACH * spread),
            ),
            _ if spread < CELL => (-1.0, 1.0),
            _ => (first - REACH * spread, third + REACH * spread),
        };
        (column.low, column.high) = (column.low.max(-1.0), column.high.min(1.0));
        let middle = |k: usize| column.winsorise(-1.0 + CELL * (k as f64 + 0.5));
        let moment = |power: i32| -> f64 {
            mass.iter().enumerate().map(|(k, mass)| mass * middle(k).powi(power)).sum()
        };
        let (mean, square) = (moment(1), moment(2));
        let least = LEAST_SD * (column.high - column.low);
        column.centre = mean;
        column.sd = (square - mean * mean).max(least * least).sqrt().max(f64::MIN_POSITIVE);
        column
    }

    /// F⁻¹(p), with F linear inside of a cell.
    pub fn quantile(&self, p: f64) -> f64 {
        // The cell whose upper end is the first to reach p; it has mass.
        let end = self.ranks.partition_point(|rank| *rank < p).clamp(1, CELLS);
        let (below, above) = (self.ranks[end - 1], self.ranks[end]);
        let part =
            if above > below { ((p - below) / (above - below)).clamp(0.0, 1.0) } else { 0.0 };
        -1.0 + CELL * ((end - 1) as f64 + part)
    }

    /// x held to the winsor interval.
    #[inline]
    pub fn winsorise(&self, x: f64) -> f64 {
        x.max(self.low).min(self.high)
    }

    /// The winsorised x, centred and scaled.
    #[inline]
    pub fn standardise(&self, x: f64) -> f64 {
        (self.winsorise(x) - self.centre) / self.sd
    }

    /// F(x), linear inside of a cell.
    ///
    /// # Panics
    ///
    /// If ranks were left out.
    #[inline]
    pub fn rank(&self, x: f64) -> f64 {
        let at = ((x + 1.0) / CELL).clamp(0.0, CELLS as f64);
        let k = (at as usize).min(CELLS - 1);
        self.ranks[k] + (self.ranks[k + 1] - self.ranks[k]) * (at - k as f64)
    }

    /// What lies below the winsor interval and above it, over the public length of either part: within [-1, 0] and [0, 1]. Zero where
    /// the interval reaches the end of the range.
    #[inline]
    pub fn tails(&self, x: f64) -> (f64, f64) {
        let (below, above) = self.has_tails();
        (
            if below { (x.max(-1.0) - self.low).min(0.0) / (self.low + 1.0) } else { 0.0 },
            if above { (x.min(1.0) - self.high).max(0.0) / (1.0 - self.high) } else { 0.0 },
        )
    }

    /// Whether the range goes on below the winsor interval, and above it.
    pub fn has_tails(&self) -> (bool, bool) {
        (self.low > -1.0, self.high < 1.0)
    }

    /// The same without ranks, for models that have no use for them.
    #[must_use]
    pub fn without_ranks(self) -> Self {
        MappedColumn { ranks: Vec::new(), ..self }
    }
}

impl ColumnMap {
    /// The same without ranks.
    #[must_use]
    pub fn without_ranks(self) -> Self {
        let columns = self.columns.into_iter().map(|c| c.map(MappedColumn::without_ranks));
        ColumnMap { columns: columns.collect() }
    }

    /// Whether it may stand in a file for rows of so many features.
    pub fn fits(&self, width: usize) -> bool {
        let good = |column: &MappedColumn| {
            let ranks = &column.ranks;
            let rising = ranks.is_empty() || ranks.len() == CELLS + 1 && ranks.is_sorted();
            let ends = -1.0 <= column.low && column.low <= column.high && column.high <= 1.0;
            rising && ends && column.centre.is_finite() && column.sd.is_finite() && column.sd > 0.0
        };
        self.columns.len() == width && self.columns.iter().flatten().all(good)
    }

    /// Releases the trees of these features of rows with `width` features, as planned under `purpose`, and maps them.
    ///
    /// # Errors
    ///
    /// If rows cannot be reached or there is no randomness. No row can cause an error.
    pub fn release(
        (purpose, features, width): (&str, &[usize], usize),
        neighbours: Neighbours,
        (batch, rows): (&Batch, f64),
        backend: &mut dyn Backend,
        releaser: &mut Releaser,
    ) -> Result<Self, Error> {
        let query = ColumnTree { columns: TreeColumns::Features(features.to_vec()), neighbours };
        let sum = run_query(backend, releaser, batch, &query)?.sum();
        let noise = releaser.noise(purpose);
        let sd = tree_noise(features.len(), neighbours, noise);
        let (counts, _) = releaser.sum(purpose, sum)?;
        let cut = cut(rank_noise(sd, rows));
        let mut map = ColumnMap { columns: vec![None; width] };
        for (&feature, counts) in features.iter().zip(counts.chunks_exact(NODES)) {
            map.columns[feature] = Some(MappedColumn::from_tree(counts, sd, cut));
        }
        Ok(map)
    }
}

/// Releases the tree of the target, in these units, as planned under `purpose`.
///
/// # Errors
///
/// As [`ColumnMap::release`].
pub fn release_target(
    purpose: &str,
    unit: TargetScaling,
    neighbours: Neighbours,
    (batch, rows): (&Batch, f64),
    backend: &mut dyn Backend,
    releaser: &mut Releaser,
) -> Result<MappedColumn, Error> {
    let query = ColumnTree { columns: TreeColumns::Target(unit), neighbours };
    let sum = run_query(backend, releaser, batch, &query)?.sum();
    let sd = tree_noise(1, neighbours, releaser.noise(purpose));
    let (counts, _) = releaser.sum(purpose, sum)?;
    Ok(MappedColumn::from_tree(&counts, sd, cut(rank_noise(sd, rows))))
}

#[cfg(test)]
mod tests;
