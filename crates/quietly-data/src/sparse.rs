use std::ops::ControlFlow;

use crate::{
    Encoding, Error, Private, Source,
    block::Block,
    chunk_reader::Chunk,
    column_decoder::{RowDecoder, RowWriter},
    encoding::NullRows,
    parallel_decode::Decoded,
};

/// Sparse rows in memory, encoded like those of a [`Table`](crate::Table): every value is finite and
/// within [-1, 1]. They are private: they cannot be printed.
///
/// Row i has the values `values[starts[i]..starts[i + 1]]` at the features `index[..]` of the same
/// range, in ascending order.
pub struct Sparse {
    /// The number of features of a row.
    pub width: usize,
    /// The start of each row, and the end of the last.
    pub starts: Vec<usize>,
    /// The features that are not zero.
    pub index: Vec<u32>,
    /// Their values.
    pub values: Vec<f64>,
    /// The target of every row. NaN for a null row that keeps its position.
    pub target: Vec<f64>,
}

impl Sparse {
    /// A table without rows.
    ///
    /// # Panics
    ///
    /// If `width` is 2³² or more.
    pub fn empty(width: usize) -> Self {
        assert!(u32::try_from(width).is_ok(), "at most 2^32 features");
        let (index, values, target) = (Vec::new(), Vec::new(), Vec::new());
        Sparse { width, starts: vec![0], index, values, target }
    }

    /// The number of rows. It is private unless the relation is replace-one.
    pub fn rows(&self) -> usize {
        self.target.len()
    }

    /// The features of a row that are not zero, and their values.
    pub fn row(&self, row: usize) -> (&[u32], &[f64]) {
        let range = self.starts[row]..self.starts[row + 1];
        (&self.index[range.clone()], &self.values[range])
    }

    /// Adds a row, given by its features in ascending order. Zeros are not stored.
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
    /// Reads the whole table into memory without its zeros. Memory is proportional to the number of
    /// values that are not zero. So is the time, if the table is sparse and 0 is [encoded as
    /// 0](Encoding::with_symmetric_ranges).
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn read_sparse(
        &self,
        encoding: &Encoding,
        threads: usize,
    ) -> Result<Private<Sparse>, Error> {
        let mut decoder = RowDecoder::new(encoding, self.columns())?;
        decoder.sparse = true;
        let mut rows = Sparse::empty(encoding.width());
        self.for_each_chunk(&decoder, threads, &mut |sparse_block: &SparseBlock| {
            rows.append(&sparse_block.rows);
            ControlFlow::Continue(())
        })?;
        Ok(Private::new(rows))
    }
}

/// A block of sparse rows.
pub(crate) struct SparseBlock {
    /// Where dense input is decoded first.
    block: Block,
    rows: Sparse,
}

impl Default for SparseBlock {
    fn default() -> Self {
        SparseBlock { block: Block::default(), rows: Sparse::empty(0) }
    }
}

impl Decoded for SparseBlock {
    fn decode(
        &mut self,
        chunk: &Chunk<'_>,
        buffer: &[u8],
        decoder: &RowDecoder,
        used: &[usize],
    ) -> Result<(), Error> {
        let SparseBlock { block, rows } = self;
        rows.restart(decoder.width);
        if chunk.decode_sparse(buffer, decoder, rows) {
            return Ok(());
        }
        chunk.decode(buffer, decoder, used, block)?;
        for (features, target) in block.features.chunks_exact(decoder.width).zip(&block.target) {
            rows.push((0..).zip(features.iter().copied()), *target);
        }
        Ok(())
    }
}

/// A sparse row that is being filled.
#[derive(Default)]
pub(crate) struct SparseRow {
    features: Vec<(u32, f64)>,
    target: f64,
}

impl SparseRow {
    /// Fills a row and adds it to `rows`, unless it is a null row and those are dropped.
    pub(crate) fn add(
        &mut self,
        rows: &mut Sparse,
        nulls: NullRows,
        fill: impl FnOnce(&mut Self) -> bool,
    ) {
        self.features.clear();
        self.target = 0.0;
        if fill(self) {
            // The columns of the file may have another order than the features.
            if !self.features.is_sorted_by_key(|(slot, _)| *slot) {
                self.features.sort_unstable_by_key(|(slot, _)| *slot);
            }
            rows.push(self.features.iter().copied(), self.target);
        } else if nulls == NullRows::Keep {
            rows.push([], f64::NAN);
        }
    }
}

impl RowWriter for SparseRow {
    fn feature(&mut self, slot: usize, x: f64) {
        self.features.push((slot as u32, x));
    }

    fn target(&mut self, y: f64) {
        self.target = y;
    }
}
