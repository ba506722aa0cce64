use std::ops::ControlFlow;

use crate::{
    Encoding, Error, Private, Source,
    block::Block,
    encoding::Nulls,
    feed::Piece,
    plan::{Fill, Plan},
    stream::Part,
};

/// Rows in memory without their zeros, encoded like those of a [`Table`](crate::Table): every value
/// is finite and within [-1, 1]. This is somebody's data: it cannot be printed.
///
/// Row i holds `values[starts[i]..starts[i + 1]]` at the features `index[..]` of the same places, in
/// ascending order.
pub struct Sparse {
    /// How many features a row has.
    pub width: usize,
    /// Where each row starts, and where the last one ends.
    pub starts: Vec<usize>,
    /// Which features are not zero.
    pub index: Vec<u32>,
    /// What they are.
    pub values: Vec<f64>,
    /// The target of every row; NaN for a null record that keeps its place.
    pub target: Vec<f64>,
}

impl Sparse {
    /// No rows.
    ///
    /// # Panics
    ///
    /// If there are more than four billion features.
    pub fn empty(width: usize) -> Self {
        assert!(u32::try_from(width).is_ok(), "at most 2^32 features");
        let (index, values, target) = (Vec::new(), Vec::new(), Vec::new());
        Sparse { width, starts: vec![0], index, values, target }
    }

    /// How many rows there are. This number is private unless the relation is replace-one.
    pub fn rows(&self) -> usize {
        self.target.len()
    }

    /// The features of a row that are not zero, and what they are.
    pub fn row(&self, row: usize) -> (&[u32], &[f64]) {
        let range = self.starts[row]..self.starts[row + 1];
        (&self.index[range.clone()], &self.values[range])
    }

    /// Adds a row, given by its features in ascending order. Zeros are left out.
    pub fn push(&mut self, features: impl IntoIterator<Item = (u32, f64)>, target: f64) {
        for (index, x) in features.into_iter().filter(|(_, x)| *x != 0.0) {
            self.index.push(index);
            self.values.push(x);
        }
        self.starts.push(self.index.len());
        self.target.push(target);
    }

    fn append(&mut self, rows: &Sparse) {
        let before = self.index.len();
        self.starts.extend(rows.starts[1..].iter().map(|start| before + start));
        self.index.extend_from_slice(&rows.index);
        self.values.extend_from_slice(&rows.values);
        self.target.extend_from_slice(&rows.target);
    }

    fn restart(&mut self, width: usize) {
        self.width = width;
        self.starts.clear();
        self.starts.push(0);
        self.index.clear();
        self.values.clear();
        self.target.clear();
    }
}

impl Source {
    /// Reads the whole table into memory without its zeros: memory goes with the number of values
    /// that are not zero. The time does so, too, for libsvm text that is encoded so that [zero stays
    /// zero](Encoding::zero_stays_zero).
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn read_sparse(
        &self,
        encoding: &Encoding,
        threads: usize,
    ) -> Result<Private<Sparse>, Error> {
        let mut plan = Plan::new(encoding, self.columns())?;
        plan.sparse = true;
        let mut rows = Sparse::empty(encoding.width());
        self.pieces(&plan, threads, &mut |thin: &Thin| {
            rows.append(&thin.rows);
            ControlFlow::Continue(())
        })?;
        Ok(Private::new(rows))
    }
}

/// Some rows on their way.
pub(crate) struct Thin {
    /// Where they are encoded first, unless the text has no zeros to begin with.
    block: Block,
    rows: Sparse,
}

impl Default for Thin {
    fn default() -> Self {
        Thin { block: Block::default(), rows: Sparse::empty(0) }
    }
}

impl Part for Thin {
    fn decode(
        &mut self,
        piece: &Piece<'_>,
        buffer: &[u8],
        plan: &Plan,
        used: &[usize],
    ) -> Result<(), Error> {
        let Thin { block, rows } = self;
        rows.restart(plan.width);
        if piece.decode_thin(buffer, plan, rows) {
            return Ok(());
        }
        piece.decode(buffer, plan, used, block)?;
        for (features, target) in block.features.chunks_exact(plan.width).zip(&block.target) {
            rows.push((0..).zip(features.iter().copied()), *target);
        }
        Ok(())
    }
}

/// A row being filled, without its zeros.
#[derive(Default)]
pub(crate) struct ThinRow {
    features: Vec<(u32, f64)>,
    target: f64,
}

impl ThinRow {
    /// Fills a row and adds it to `rows`, unless it is the null record and those are left out.
    pub(crate) fn add(
        &mut self,
        rows: &mut Sparse,
        nulls: Nulls,
        fill: impl FnOnce(&mut Self) -> bool,
    ) {
        self.features.clear();
        self.target = 0.0;
        if fill(self) {
            // Columns of the file may have another order than features.
            if !self.features.is_sorted_by_key(|(slot, _)| *slot) {
                self.features.sort_unstable_by_key(|(slot, _)| *slot);
            }
            rows.push(self.features.iter().copied(), self.target);
        } else if nulls == Nulls::Stay {
            rows.push([], f64::NAN);
        }
    }
}

impl Fill for ThinRow {
    fn feature(&mut self, slot: usize, x: f64) {
        self.features.push((slot as u32, x));
    }

    fn target(&mut self, y: f64) {
        self.target = y;
    }
}
