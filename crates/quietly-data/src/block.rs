//! A block of encoded rows, and the positions of its null rows.
use crate::{column_decoder::DenseRow, encoding::NullRows};

/// Encoded rows in the order of the file. They are private: a block cannot be printed.
#[derive(Clone, Default)]
pub struct Block {
    /// The number of rows. Null rows are not among them, unless they keep their positions.
    pub rows: usize,
    /// The number of features of a row.
    pub width: usize,
    /// All features, row after row, each within [-1, 1].
    pub features: Vec<f64>,
    /// The target of every row: 0 where no target is read, NaN for a null row that keeps its
    /// position.
    pub target: Vec<f64>,
    /// The positions of dropped null rows among all rows of the block. Some algorithms use the
    /// position of a row, which must not depend on the cells of the rows before it.
    pub nulls: Vec<usize>,
    /// How many of [`Source::bytes`](crate::Source::bytes) are read up to the end of this block.
    pub position: u64,
}

impl Block {
    /// Removes all rows and keeps the memory.
    pub(crate) fn restart(&mut self, width: usize, position: u64) {
        (self.rows, self.width, self.position) = (0, width, position);
        self.features.clear();
        self.target.clear();
        self.nulls.clear();
    }

    /// Adds a row. It is a null row if `fill` returns false.
    #[inline]
    pub(crate) fn push(&mut self, nulls: NullRows, fill: impl FnOnce(&mut DenseRow<'_>) -> bool) {
        let start = self.features.len();
        self.features.resize(start + self.width, 0.0);
        let mut target = 0.0;
        let kept =
            fill(&mut DenseRow { features: &mut self.features[start..], target: &mut target });
        if kept {
            self.target.push(target);
            self.rows += 1;
        } else if nulls == NullRows::Keep {
            self.features[start..].fill(0.0);
            self.target.push(f64::NAN);
            self.rows += 1;
        } else {
            self.features.truncate(start);
            self.nulls.push(self.rows + self.nulls.len());
        }
    }

    /// Reserves memory for exactly `rows` more rows.
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

    /// Drops those of the last rows that are not kept, or makes them null rows in place.
    pub(crate) fn retain_last(&mut self, kept: &[bool], nulls: NullRows) {
        let first = self.rows - kept.len();
        if nulls == NullRows::Keep {
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
