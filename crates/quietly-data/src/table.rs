use crate::Block;

/// Rows in memory, encoded: every feature is finite and within [-1, 1], every target is finite.
///
/// Features are stored row after row, `width` to a row. There is no constant column: models add
/// their own. Null rows are not in the table, unless it was read so that they [keep their
/// positions](crate::Encoding::keeping_null_rows): then they are rows of zeros whose target is NaN.
pub struct Table {
    width: usize,
    features: Vec<f64>,
    target: Vec<f64>,
    nulls: Vec<usize>,
}

impl Table {
    /// A table of features that are already within [-1, 1]. Numbers outside are clamped and NaN
    /// becomes 0. A row whose target is not finite is a null row.
    ///
    /// # Panics
    ///
    /// If `features` does not hold `width` numbers for every target, which is a bug in the caller.
    pub fn new(width: usize, mut features: Vec<f64>, target: Vec<f64>) -> Self {
        assert_eq!(features.len(), width * target.len(), "width numbers for every row");
        for x in &mut features {
            *x = if x.is_nan() { 0.0 } else { x.clamp(-1.0, 1.0) };
        }
        let mut table = Table { width, features, target, nulls: Vec::new() };
        if table.target.iter().any(|y| !y.is_finite()) {
            table.drop_null_rows();
        }
        table
    }

    /// Drops the rows whose target is not finite.
    pub(crate) fn drop_null_rows(&mut self) {
        let Table { width, features, target, nulls } = self;
        let (width, mut kept) = (*width, 0);
        for row in 0..target.len() {
            if target[row].is_finite() {
                target[kept] = target[row];
                features.copy_within(row * width..(row + 1) * width, kept * width);
                kept += 1;
            } else {
                nulls.push(row);
            }
        }
        target.truncate(kept);
        features.truncate(kept * width);
    }

    /// Replaces the rows by `rows` others and reuses their memory. The caller overwrites them.
    pub(crate) fn restart(&mut self, width: usize, rows: usize) -> (&mut [f64], &mut [f64]) {
        self.width = width;
        self.nulls.clear();
        self.features.resize(rows * width, 0.0);
        self.target.resize(rows, 0.0);
        (&mut self.features, &mut self.target)
    }

    /// A table without rows.
    pub fn empty(width: usize) -> Self {
        Table { width, features: Vec::new(), target: Vec::new(), nulls: Vec::new() }
    }

    /// The same rows with `width` other features. `map` gets the old features of a row and a slice
    /// of zeros, into which it writes the new ones. These are clamped to [-1, 1], as by
    /// [`new`](Self::new).
    #[must_use]
    pub fn with_features(
        &self,
        width: usize,
        threads: usize,
        map: impl Fn(&[f64], &mut [f64]) + Sync,
    ) -> Self {
        let mut features = vec![0.0; self.rows() * width];
        let share = self.rows().div_ceil(threads.max(1)).max(1);
        let map = &map;
        std::thread::scope(|scope| {
            for (part, into) in features.chunks_mut((share * width).max(1)).enumerate() {
                scope.spawn(move || {
                    for (k, into) in into.chunks_exact_mut(width).enumerate() {
                        map(&self.features[(part * share + k) * self.width..][..self.width], into);
                        for x in into {
                            *x = if x.is_nan() { 0.0 } else { x.clamp(-1.0, 1.0) };
                        }
                    }
                });
            }
        });
        Table { width, features, target: self.target.clone(), nulls: self.nulls.clone() }
    }

    /// Appends the rows of a block.
    pub(crate) fn append(&mut self, block: &Block) {
        let before = self.target.len() + self.nulls.len();
        self.nulls.extend(block.nulls.iter().map(|place| before + place));
        self.features.extend_from_slice(&block.features);
        self.target.extend_from_slice(&block.target);
    }

    /// Exchanges the rows with those of a block, so that the block can reuse the memory.
    pub(crate) fn swap(&mut self, block: &mut Block) {
        self.width = block.width;
        std::mem::swap(&mut self.features, &mut block.features);
        std::mem::swap(&mut self.target, &mut block.target);
        std::mem::swap(&mut self.nulls, &mut block.nulls);
    }

    /// The number of features of a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The positions of the dropped null rows among all rows, in ascending order. With them, the
    /// position of a row does not depend on the cells of the rows before it.
    pub fn nulls(&self) -> &[usize] {
        &self.nulls
    }

    /// The number of rows, without dropped null rows. It is private under both relations. Under
    /// replace-one only the number of all rows is public, null rows included.
    pub fn rows(&self) -> usize {
        self.target.len()
    }

    /// All features, row after row.
    pub fn features(&self) -> &[f64] {
        &self.features
    }

    /// The target of every row.
    pub fn target(&self) -> &[f64] {
        &self.target
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::NullRows;

    /// Rows keep their order, targets and positions for any number of threads, and new features
    /// are within [-1, 1].
    #[test]
    fn new_features_keep_rows_targets_and_positions() {
        let table = Table::new(2, vec![0.5, 0.1, 0.2, 0.3, 0.0, -1.0], vec![1.0, f64::NAN, 3.0]);
        for threads in [1, 2, 5] {
            let other = table.with_features(3, threads, |row, into| {
                (into[0], into[1]) = (3.0 * row[0], if row[1] < 0.0 { f64::NAN } else { row[1] });
            });
            assert_eq!((other.width(), other.rows()), (3, 2));
            assert_eq!(other.features(), [1.0, 0.1, 0.0, 0.0, 0.0, 0.0]);
            assert_eq!((other.target(), other.nulls()), (&[1.0, 3.0][..], &[1][..]));
        }
    }

    /// A null row does not move the rows after it.
    #[test]
    fn null_rows_keep_their_positions() {
        let target = vec![f64::NAN, 1.0, f64::INFINITY, f64::NAN, 2.0];
        let table = Table::new(1, vec![0.1, 0.2, 0.3, 0.4, 0.5], target);
        assert_eq!((table.rows(), table.features()), (2, &[0.2, 0.5][..]));
        assert_eq!(table.nulls(), [0, 2, 3]);

        let mut table = Table::empty(1);
        let mut block = Block::default();
        for _ in 0..2 {
            block.restart(1, 0);
            // Row by row: kept, null, kept.
            for kept in [true, false, true] {
                block.push(NullRows::Drop, |_| kept);
            }
            // By columns: null, kept, null.
            block.grow(3);
            block.retain_last(&[false, true, false], NullRows::Drop);
            assert_eq!((block.rows, &block.nulls[..]), (3, &[1, 3, 5][..]));
            table.append(&block);
        }
        assert_eq!(table.nulls(), [1, 3, 5, 7, 9, 11]);
        assert_eq!(table.rows(), 6);
    }
}
