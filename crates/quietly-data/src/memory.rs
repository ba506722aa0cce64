//! A table that is in memory already: columns of Arrow, and matrices row by row. Nothing is copied.
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;

use crate::{
    Error,
    block::Block,
    columns::{self, Tile},
    csr,
    header::check_names,
    matrix,
    plan::{Cell, Plan},
    source::{Input, Layout, Source},
};

/// What errors call a table that has no path.
const NAME: &str = "the table";

/// The batches of a table in memory.
pub(crate) struct Memory {
    batches: Vec<RecordBatch>,
    /// The type of every column, those of a matrix one by one.
    pub(crate) types: Vec<DataType>,
    /// Whether zeros are left out of one of them.
    pub(crate) sparse: bool,
}

impl Memory {
    pub(crate) fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }
}

impl Source {
    /// A table that is in memory, of Arrow batches that all have the same columns.
    ///
    /// A column of lists of one length, of 32 or 64 bit floating-point numbers, is a matrix that lies there row by row: it
    /// stands for so many columns, and `columns` names each of them.
    ///
    /// One column may be of lists of (index, value), a 32 or 64 bit integer and a floating-point number: rows without their
    /// zeros. It stands for all columns that the others do not. Such a table is read like libsvm text.
    ///
    /// The rows are the same, bit for bit, as those of a file that holds the same table.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateColumns`] if two columns have one name, [`Error::Batches`] if the batches differ or have other columns
    /// than there are names.
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
            return Err(Error::Batches { problem: "more than one column leaves zeros out" });
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
            return Err(Error::Batches { problem: "there is not one name for every column" });
        }
        let bytes = batches.iter().map(|batch| batch.num_rows() as u64).sum::<u64>()
            * 8
            * columns.len() as u64;
        let layout = Layout::Memory(Memory { batches, types, sparse: sparse > 0 });
        Ok(Source::of(Input { path: NAME.into(), bytes, layout }, columns))
    }
}

/// The batches of a table in memory, cut into slices.
pub(crate) struct Slices {
    next: usize,
    /// How many rows of the next batch are done.
    done: usize,
    rows: usize,
    /// How many bytes there are up to here.
    pub(crate) read: u64,
}

impl Slices {
    pub(crate) fn new(rows: usize) -> Self {
        Slices { next: 0, done: 0, rows, read: 0 }
    }

    /// The next rows, at most as many as were asked for.
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

/// Encodes the rows of a batch whose columns, those of matrices one by one, are all those of the plan.
pub(crate) fn decode(batch: &RecordBatch, plan: &Plan, block: &mut Block) {
    let widths = widths(batch, plan.cells.len());
    columns::in_tiles(batch.num_rows(), plan, block, |tile, start, count| {
        let mut cells = &plan.cells[..];
        for (column, width) in batch.columns().iter().zip(&widths) {
            let (here, rest) = cells.split_at(*width);
            cells = rest;
            if here.iter().all(|cell| matches!(cell, Cell::Skip)) {
                continue;
            }
            let part = column.slice(start, count);
            match csr::values(column.data_type()) {
                Some(_) => csr::fill(tile, &part, here, plan.nulls),
                None => fill_column(tile, &part, here),
            }
        }
    });
}

/// Fills a tile with a column of Arrow, or with a matrix.
pub(crate) fn fill_column(tile: &mut Tile<'_>, part: &ArrayRef, cells: &[Cell]) {
    if !matrix::fill(tile, part, cells, |row| row) {
        tile.fill(part, &cells[0]);
    }
}

/// How many columns of the table each column of a batch stands for: one that leaves zeros out for the rest.
pub(crate) fn widths(batch: &RecordBatch, all: usize) -> Vec<usize> {
    let width = |column: &ArrayRef| match csr::values(column.data_type()) {
        Some(_) => None,
        None => Some(matrix::shape(column.data_type()).map_or(1, |(width, _)| width)),
    };
    let beside: usize = batch.columns().iter().filter_map(width).sum();
    batch.columns().iter().map(|column| width(column).unwrap_or(all - beside)).collect()
}
