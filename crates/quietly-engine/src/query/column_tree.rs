//! Counts of the values of columns in a tree of intervals.
//!
//! # Proof: one row in a tree
//!
//! The public range [-1, 1] of each of m columns is cut into 16 intervals, each of these into 16, and so once more:
//! 4096 cells. The query adds one count to one interval of each of the three levels of each column, whatever the row
//! holds: a value outside of the range counts in the first or the last cell, one that is not a number in the last. A row
//! whose target is not a number is a null record and adds nothing.
//!
//! 1. *Add-remove.* A row adds a vector with 3m entries 1 and zeros elsewhere, of norm √(3m).
//! 2. *Replace-one.* On every level of every column two rows add two unit vectors, which differ by at most √2. The sums
//!    of the two tables differ by at most √(6m); by √(3m) if one of the two rows is a null record.
//! 3. *What is declared.* A release takes a bound for a row that joins or leaves, and prices a replaced row as if it
//!    moved the sum twice as far. So [`one_in_each`] is √(3m) under add-remove, and √(6m)/2 under replace-one.
//! 4. *Rounding.* Counts are multiples of [`UNIT`], integers all the same. The bound is rounded up.
//!
//! Not covered: steps that see a sample of the rows are priced for a row that is there or not, under either relation; they
//! take [`Neighbours::AddRemove`].
use quietly_accounting::Neighbours;
use quietly_core::release::one_in_each;
use serde::{Deserialize, Serialize};

use super::{Cache, Output, Query, Rows, add_to, encoded};
use crate::{kernels::in_blocks, query::Sensitivity, target_scaling::TargetScaling};

/// How many intervals an interval is cut into.
pub const BRANCHES: usize = 16;
/// How many levels there are.
pub const LEVELS: u32 = 3;
/// How many cells the last level has.
pub const CELLS: usize = BRANCHES.pow(LEVELS);
/// How many intervals the tree of a column has.
pub const NODES: usize = BRANCHES + BRANCHES * BRANCHES + CELLS;
/// What a row adds to a count, so that little noise is not rounded away.
const UNIT: u32 = 1 << 10;
/// How many rows a worker takes at a time.
const BLOCK: usize = 4096;

/// The values that are counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TreeColumns {
    /// Those of these features.
    Features(Vec<usize>),
    /// The target, in these units.
    Target(TargetScaling),
}

/// How many values lie in each interval of the trees of some columns: the sixteen of the first level of the first column,
/// then its other levels, then the next column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnTree {
    pub columns: TreeColumns,
    /// What a neighbouring table is; for steps that see a sample of the rows, [`Neighbours::AddRemove`].
    #[serde(with = "quietly_core::budget::relation")]
    pub neighbours: Neighbours,
}

impl ColumnTree {
    pub const KIND: &str = "column-tree";

    fn count(&self) -> usize {
        match &self.columns {
            TreeColumns::Features(columns) => columns.len(),
            TreeColumns::Target(_) => 1,
        }
    }

    /// Counts one row.
    #[inline]
    fn add_row(&self, features: &[f64], target: f64, totals: &mut [u64]) {
        if target.is_nan() {
            return;
        }
        match &self.columns {
            TreeColumns::Features(columns) => {
                for (&column, totals) in columns.iter().zip(totals.chunks_exact_mut(NODES)) {
                    add_value(features[column], totals);
                }
            }
            TreeColumns::Target(unit) => add_value(unit.encode(target), totals),
        }
    }
}

/// The cell of a value.
#[inline]
pub fn cell(value: f64) -> usize {
    let at = (value + 1.0) * (0.5 * CELLS as f64);
    // As a cast: below 0 gives 0.
    if at.is_nan() { CELLS - 1 } else { (at as usize).min(CELLS - 1) }
}

#[inline]
fn add_value(value: f64, totals: &mut [u64]) {
    let cell = cell(value);
    totals[cell / (BRANCHES * BRANCHES)] += 1;
    totals[BRANCHES + cell / BRANCHES] += 1;
    totals[BRANCHES + BRANCHES * BRANCHES + cell] += 1;
}

impl Query for ColumnTree {
    fn outputs(&self) -> Vec<Output> {
        let histograms = LEVELS as usize * self.count();
        let bound = (one_in_each(histograms, self.neighbours) * f64::from(UNIT)).next_up();
        let sensitivity = Sensitivity::l2(bound, 1.0 / f64::from(UNIT));
        vec![Output::Sum { len: NODES * self.count(), sensitivity }]
    }

    fn add(&self, rows: &Rows<'_>, _: &mut Cache, totals: &mut [i128]) {
        let (table, targets) = (rows.data.dense(), rows.targets());
        let width = table.width();
        let place = |i: usize| rows.members.map_or(i, |members| members.rows()[i] as usize);
        let work = |counts: &mut Vec<u64>, block: std::ops::Range<usize>| {
            for i in block {
                let row = &table.features()[place(i) * width..][..width];
                self.add_row(row, targets[i], counts);
            }
        };
        let start = || vec![0; totals.len()];
        for counts in in_blocks(targets.len(), BLOCK, rows.threads, start, work) {
            let counts: Vec<u64> = counts.iter().map(|count| count * u64::from(UNIT)).collect();
            add_to(totals, &[], &counts);
        }
    }

    fn encode(&self) -> Vec<u8> {
        encoded(Self::KIND, self)
    }
}

#[cfg(test)]
mod tests {
    use quietly_core::random::Random;
    use quietly_data::Table;

    use super::*;
    use crate::query::Dataset;

    fn sums(query: &ColumnTree, rows: &[([f64; 3], f64)], threads: usize) -> Vec<i128> {
        let features = rows.iter().flat_map(|row| row.0).collect();
        let table = Table::new(3, features, rows.iter().map(|row| row.1).collect());
        let mut totals = vec![0; query.outputs().iter().map(Output::size).sum()];
        query.add(&Rows::all(Dataset::Dense(&table), 0, threads), &mut Cache::once(), &mut totals);
        totals
    }

    fn row(random: &mut Random) -> ([f64; 3], f64) {
        let mut number = || match random.word() % 5 {
            0 => 1.0,
            1 => -1.0,
            2 => 7.0,
            _ => random.number(),
        };
        (std::array::from_fn(|_| number()), number())
    }

    /// Neighbours under either relation are never farther apart than is declared, and some are as far: the bound is that
    /// of a row that joins, and half of that of a replaced row. Control: nine tenths of either do not hold.
    #[test]
    fn no_row_moves_a_tree_by_more_than_is_declared() {
        let unit = TargetScaling::ITSELF;
        for columns in [TreeColumns::Features(vec![0, 2]), TreeColumns::Target(unit)] {
            for (neighbours, factor) in
                [(Neighbours::AddRemove, 1.0), (Neighbours::ReplaceOne, 2.0)]
            {
                let query = ColumnTree { columns: columns.clone(), neighbours };
                let [Output::Sum { sensitivity, .. }] = query.outputs()[..] else { panic!() };
                let mut most = 0.0_f64;
                for seed in 0..200 {
                    let mut random = Random(seed);
                    let mut rows: Vec<_> = (0..20).map(|_| row(&mut random)).collect();
                    let before = sums(&query, &rows, 1);
                    match neighbours {
                        Neighbours::AddRemove => _ = rows.pop(),
                        Neighbours::ReplaceOne => rows[7] = row(&mut random),
                    }
                    let after = sums(&query, &rows, 1);
                    let apart = before.iter().zip(&after).map(|(a, b)| ((a - b) as f64).powi(2));
                    most = most.max(apart.sum::<f64>().sqrt());
                }
                let bound = factor * sensitivity.bound;
                assert!(most <= bound && most > 0.9 * bound, "{most} {bound}");
            }
        }
    }

    #[test]
    fn every_level_counts_every_row_but_null_records_whatever_the_threads() {
        let query = ColumnTree {
            columns: TreeColumns::Features(vec![1]),
            neighbours: Neighbours::AddRemove,
        };
        let mut random = Random(3);
        let mut rows: Vec<_> = (0..10_000).map(|_| row(&mut random)).collect();
        let all = sums(&query, &rows, 1);
        let levels =
            [0..BRANCHES, BRANCHES..BRANCHES + 256, BRANCHES + 256..NODES].map(|level| &all[level]);
        for level in levels {
            assert_eq!(level.iter().sum::<i128>(), 10_000 * i128::from(UNIT));
        }
        for (parents, children) in [(levels[0], levels[1]), (levels[1], levels[2])] {
            let sums = children.chunks_exact(BRANCHES).map(|c| c.iter().sum::<i128>());
            assert!(sums.eq(parents.iter().copied()));
        }
        assert_eq!(sums(&query, &rows, 3), all);
        rows.extend([([0.3; 3], f64::NAN), ([f64::MAX; 3], f64::NAN)]);
        assert_eq!(sums(&query, &rows, 2), all);
    }

    #[test]
    fn values_lie_in_their_cells() {
        for (value, wanted) in
            [(-2.0, 0), (-1.0, 0), (0.0, 2048), (1.0, 4095), (3.0, 4095), (f64::NAN, 4095)]
        {
            assert_eq!(cell(value), wanted, "{value}");
        }
        for k in 0..CELLS {
            assert_eq!(cell(-1.0 + (k as f64 + 0.5) / 2048.0), k);
        }
    }
}
