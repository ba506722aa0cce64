//! Parts of a Parquet table: the row groups that one worker reads.
use std::{
    fmt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    AtomicFile, Error, Source,
    parquet::{self, Size},
    source::{Input, Layout},
};

/// Some row groups of one Parquet file. The number of their rows, and their position in the table,
/// are **private** and not printed.
#[doc(alias = "Part")]
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TablePart {
    /// The file.
    pub path: PathBuf,
    /// The row groups, by number.
    pub groups: Vec<usize>,
    /// The position of the first row in the table.
    pub(crate) first_row: u64,
    /// The number of rows.
    pub(crate) rows: u64,
    /// The bytes of these row groups.
    pub(crate) bytes: u64,
}

impl TablePart {
    /// The position of the first row in the table: **private**, unless the number of rows is public.
    pub fn first_row(&self) -> u64 {
        self.first_row
    }

    /// The number of rows, null rows included: **private**, too.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Appends the next row groups of the same file.
    ///
    /// # Panics
    ///
    /// If they are of another file, or not the next ones.
    pub fn join(&mut self, next: TablePart) {
        assert_eq!(self.path, next.path, "one file");
        assert_eq!(self.first_row + self.rows, next.first_row, "the next row groups");
        self.groups.extend(next.groups);
        self.rows += next.rows;
        self.bytes += next.bytes;
    }

    /// The bytes to read if all columns are read.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl fmt::Debug for TablePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TablePart { path, groups, .. } = self;
        f.debug_struct("TablePart")
            .field("path", path)
            .field("groups", groups)
            .finish_non_exhaustive()
    }
}

impl Source {
    /// Every row group of a Parquet table, in order.
    ///
    /// # Errors
    ///
    /// [`Error::NotParquet`] if a file is something else; [`Error::Damaged`] if one cannot be read.
    pub fn parts(&self) -> Result<Vec<TablePart>, Error> {
        let (mut parts, mut first_row) = (Vec::new(), 0);
        for input in self.inputs() {
            let Layout::Parquet { groups, .. } = &input.layout else {
                return Err(Error::NotParquet { path: input.path.clone() });
            };
            let sizes = parquet::sizes(&input.path)?;
            let all = || (0..sizes.len()).collect();
            for group in groups.clone().unwrap_or_else(all) {
                let Some(Size { rows, bytes }) = sizes.get(group).copied() else {
                    return Err(damaged(input));
                };
                let (path, groups) = (input.path.clone(), vec![group]);
                parts.push(TablePart { path, groups, first_row, rows, bytes });
                first_row += rows;
            }
        }
        Ok(parts)
    }

    /// The table of the rows of one part.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or is not Parquet.
    pub fn of_part(part: &TablePart) -> Result<Self, Error> {
        let (columns, types) = parquet::open(&part.path)?;
        let layout = Layout::Parquet { types, groups: Some(part.groups.clone()) };
        Ok(Source::of(Input { path: part.path.clone(), bytes: part.bytes, layout }, columns))
    }
}

impl Source {
    /// Writes the rows of a part to a new Parquet file, grouped by step: a row group for every step
    /// that has rows. `step` returns which of `steps` steps the next row belongs to. Returns the
    /// number of rows of each step, which is **private**.
    ///
    /// The file has no name until [`AtomicFile::commit`] gives it `to`.
    ///
    /// # Errors
    ///
    /// If the part cannot be read, or the file not written.
    ///
    /// # Panics
    ///
    /// If `step` returns a number that is not below `steps`.
    pub fn regroup(
        part: &TablePart,
        to: &Path,
        steps: usize,
        step: &mut dyn FnMut() -> usize,
    ) -> Result<(Vec<u64>, AtomicFile), Error> {
        let batches = parquet::batches(part)?;
        let mut these: Vec<Vec<(usize, usize)>> = vec![Vec::new(); steps];
        for (k, batch) in batches.iter().enumerate() {
            (0..batch.num_rows()).for_each(|row| these[step()].push((k, row)));
        }
        let file = parquet::write_groups(to, &batches, &these)?;
        Ok((these.iter().map(|rows| rows.len() as u64).collect(), file))
    }
}

impl Source {
    /// Whether a file was written by [`regroup`](Self::regroup).
    pub fn is_regrouped(path: &Path) -> bool {
        parquet::written_by(path).is_some_and(|program| program == parquet::PROGRAM)
    }
}

fn damaged(input: &Input) -> Error {
    Error::Damaged { path: input.path.clone(), format: input.layout.format() }
}
