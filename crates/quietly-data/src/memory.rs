//! Tables in memory: Arrow columns and row-major matrices, which are not copied.
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;

use crate::{
    Error,
    block::Block,
    column_decoder::{ColumnDecoder, RowDecoder},
    columns::{self, Tile},
    csr,
    header::check_names,
    matrix,
    source::{Input, Layout, Source},
};

/// What errors call a table without a path.
const NAME: &str = "the table";

/// The batches of a table in memory.
pub(crate) struct Memory {
    batches: Vec<RecordBatch>,
    /// The type of every column. A matrix has one entry for each of its columns.
    pub(crate) types: Vec<DataType>,
    /// Whether one of the batches' columns is sparse.
    pub(crate) sparse: bool,
}

impl Memory {
    pub(crate) fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }
}

impl Source {
    /// A table in memory, of Arrow record batches that all have the same columns.
    ///
    /// A column of lists of one length, of 32 or 64 bit floating-point numbers, is a row-major
    /// matrix. It represents as many columns as a list has entries, and `columns` names each of
    /// them.
    ///
    /// One column may be sparse: lists of (index, value), a 32 or 64 bit integer and a
    /// floating-point number. It represents all columns that the others do not. Such a table is
    /// read like libsvm text.
    ///
    /// The rows are the same, bit for bit, as those of a file that holds the same table.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateColumns`] if two columns have one name. [`Error::Batches`] if the batches
    /// differ, or if the number of names is not that of the columns.
    pub fn in_memory(columns: Vec<String>, batches: Vec<RecordBatch>) -> Result<Self, Error> {
        check_names(NAME.as_ref(), &columns)?;
        let fields = |batch: &RecordBatch| -> Vec<DataType> {
            batch.columns().iter().map(|column| column.data_type().clone()).collect()
        };
        let first = batches.first().map(fields).unwrap_or_default();
        if batches.iter().any(|batch| fields(batch) != first) {
            return Err(Error::Batches { problem: "they do not all have the same columns" });
        }
        let sparse = first.iter().filter(|field| csr::values(field).is_some()).count();
        if sparse > 1 {
            return Err(Error::Batches { problem: "more than one column is sparse" });
        }
        let beside = first.iter().filter(|field| csr::values(field).is_none());
        let beside: usize =
            beside.map(|field| matrix::shape(field).map_or(1, |(width, _)| width)).sum();
        let mut types = Vec::new();
        for field in first {
            match (matrix::shape(&field), csr::values(&field)) {
                (Some((width, number)), _) => types.extend(vec![number; width]),
                (_, Some(number)) => {
                    types.extend(vec![number; columns.len().saturating_sub(beside)]);
                }
                _ => types.push(field),
            }
        }
        if batches.is_empty() {
            types = vec![DataType::Null; columns.len()];
        }
        if types.len() != columns.len() {
            return Err(Error::Batches {
                problem: "the number of names is not the number of columns",
            });
        }
        let bytes = batches.iter().map(|batch| batch.num_rows() as u64).sum::<u64>()
            * 8
            * columns.len() as u64;
        let layout = Layout::Memory(Memory { batches, types, sparse: sparse > 0 });
        Ok(Source::of(Input { path: NAME.into(), bytes, layout }, columns))
    }
}

/// The batches of a table in memory, in slices.
pub(crate) struct Slices {
    next: usize,
    /// How many rows of the next batch are read.
    done: usize,
    rows: usize,
    /// How many bytes are read.
    pub(crate) read: u64,
}

impl Slices {
    pub(crate) fn new(rows: usize) -> Self {
        Slices { next: 0, done: 0, rows, read: 0 }
    }

    /// The next rows, at most `self.rows`.
    pub(crate) fn next(&mut self, memory: &Memory) -> Option<RecordBatch> {
        loop {
            let batch = memory.batches.get(self.next)?;
            let count = self.rows.min(batch.num_rows() - self.done);
            if count == 0 {
                (self.next, self.done) = (self.next + 1, 0);
                continue;
            }
            let slice = batch.slice(self.done, count);
            self.done += count;
            self.read += 8 * (count * memory.types.len()) as u64;
            return Some(slice);
        }
    }
}

/// Decodes a batch that holds all columns of the table.
pub(crate) fn decode(batch: &RecordBatch, decoder: &RowDecoder, block: &mut Block) {
    let widths = widths(batch, decoder.cells.len());
    columns::in_tiles(batch.num_rows(), decoder, block, |tile, start, count| {
        let mut cells = &decoder.cells[..];
        for (column, width) in batch.columns().iter().zip(&widths) {
            let (here, rest) = cells.split_at(*width);
            cells = rest;
            if here.iter().all(|cell| matches!(cell, ColumnDecoder::Skip)) {
                continue;
            }
            let part = column.slice(start, count);
            match csr::values(column.data_type()) {
                Some(_) => csr::fill(tile, &part, here, decoder.nulls),
                None => fill_column(tile, &part, here),
            }
        }
    });
}

/// Fills a tile with an Arrow column, or with a matrix.
pub(crate) fn fill_column(tile: &mut Tile<'_>, part: &ArrayRef, cells: &[ColumnDecoder]) {
    if !matrix::fill(tile, part, cells, |row| row) {
        tile.fill(part, &cells[0]);
    }
}

/// How many columns of the table each column of a batch represents. A sparse one represents the
/// rest.
pub(crate) fn widths(batch: &RecordBatch, all: usize) -> Vec<usize> {
    let width = |column: &ArrayRef| match csr::values(column.data_type()) {
        Some(_) => None,
        None => Some(matrix::shape(column.data_type()).map_or(1, |(width, _)| width)),
    };
    let beside: usize = batch.columns().iter().filter_map(width).sum();
    batch.columns().iter().map(|column| width(column).unwrap_or(all - beside)).collect()
}
