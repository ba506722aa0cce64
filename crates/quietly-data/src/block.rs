//! Encoded rows on their way from a file, and the cheap bookkeeping of null records.
use crate::{encoding::Nulls, plan::Row};

/// Some rows, encoded, in the order of the file. This is somebody's data: it cannot be printed.
#[derive(Clone, Default)]
pub struct Block {
    /// How many rows there are. Null records are left out, unless they keep their places.
    pub rows: usize,
    /// How many features a row has.
    pub width: usize,
    /// All features, row after row, each within [-1, 1].
    pub features: Vec<f64>,
    /// The target of every row; 0 where there is no target or none is read, NaN for a null record
    /// that keeps its place.
    pub target: Vec<f64>,
    /// The places of the null records, counted among all records of the block: some methods go by the place of a row, which
    /// must not depend on what is in the rows before it.
    pub nulls: Vec<usize>,
    /// How many of [`Source::bytes`](crate::Source::bytes) have been read with this block.
    pub position: u64,
}

impl Block {
    /// Empties the block for other rows, and keeps its memory.
    pub(crate) fn restart(&mut self, width: usize, position: u64) {
        (self.rows, self.width, self.position) = (0, width, position);
        self.features.clear();
        self.target.clear();
        self.nulls.clear();
    }

    /// Adds a row, unless `fill` says that it is the null record.
    #[inline]
    pub(crate) fn push(&mut self, nulls: Nulls, fill: impl FnOnce(&mut Row<'_>) -> bool) {
        let start = self.features.len();
        self.features.resize(start + self.width, 0.0);
        let mut target = 0.0;
        let kept = fill(&mut Row { features: &mut self.features[start..], target: &mut target });
        if kept {
            self.target.push(target);
            self.rows += 1;
        } else if nulls == Nulls::Stay {
            self.features[start..].fill(0.0);
            self.target.push(f64::NAN);
            self.rows += 1;
        } else {
            self.features.truncate(start);
            self.nulls.push(self.rows + self.nulls.len());
        }
    }

    /// Makes room for so many more rows, and no more.
    pub(crate) fn reserve(&mut self, rows: usize) {
        self.features.reserve_exact(rows * self.width);
        self.target.reserve_exact(rows);
    }

    /// Adds `rows` rows of zeros and returns their features and targets.
    pub(crate) fn grow(&mut self, rows: usize) -> (&mut [f64], &mut [f64]) {
        let (features, target) = (self.features.len(), self.target.len());
        self.features.resize(features + rows * self.width, 0.0);
        self.target.resize(target + rows, 0.0);
        self.rows += rows;
        (&mut self.features[features..], &mut self.target[target..])
    }

    /// Leaves out those of the last rows that are not kept, or makes them null where they stay.
    pub(crate) fn retain_last(&mut self, kept: &[bool], nulls: Nulls) {
        let first = self.rows - kept.len();
        if nulls == Nulls::Stay {
            for row in (first..self.rows).filter(|row| !kept[row - first]) {
                self.features[row * self.width..(row + 1) * self.width].fill(0.0);
                self.target[row] = f64::NAN;
            }
            return;
        }
        let mut rows = first;
        for row in first..self.rows {
            if !kept[row - first] {
                self.nulls.push(rows + self.nulls.len());
                continue;
            }
            if rows != row {
                self.target[rows] = self.target[row];
                let from = row * self.width..(row + 1) * self.width;
                self.features.copy_within(from, rows * self.width);
            }
            rows += 1;
        }
        self.rows = rows;
        self.target.truncate(rows);
        self.features.truncate(rows * self.width);
    }
}
