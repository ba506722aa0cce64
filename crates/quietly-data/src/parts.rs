//! Parts of a Parquet table: what one worker reads, wherever it is.
use std::{
    fmt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    Error, Source, Unnamed,
    parquet::{self, Size},
    source::{Input, Layout},
};

/// Some row groups of one Parquet file. How many rows they have, and where these are among all, is **private**: it is not
/// printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The file.
    pub path: PathBuf,
    /// Which of its row groups.
    pub groups: Vec<usize>,
    /// How many records of the table come before.
    pub(crate) before: u64,
    /// How many records there are.
    pub(crate) records: u64,
    /// How many bytes these row groups have.
    pub(crate) bytes: u64,
}

impl Part {
    /// How many records of the table come before those of this part: **private**, unless the number of rows is public.
    pub fn before(&self) -> u64 {
        self.before
    }

    /// How many records this part has, null records among them: **private**, too.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Adds the next row groups of the same file.
    ///
    /// # Panics
    ///
    /// If they are of another file, or do not come next.
    pub fn join(&mut self, next: Part) {
        assert_eq!(self.path, next.path, "one file");
        assert_eq!(self.before + self.records, next.before, "the next row groups");
        self.groups.extend(next.groups);
        self.records += next.records;
        self.bytes += next.bytes;
    }

    /// How many bytes are read for it, if all columns are.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Part { path, groups, .. } = self;
        f.debug_struct("Part").field("path", path).field("groups", groups).finish_non_exhaustive()
    }
}

impl Source {
    /// Every row group of a Parquet table, in order.
    ///
    /// # Errors
    ///
    /// [`Error::NotParquet`] if a file is something else; [`Error::Damaged`] if one cannot be read.
    pub fn parts(&self) -> Result<Vec<Part>, Error> {
        let (mut parts, mut before) = (Vec::new(), 0);
        for input in self.inputs() {
            let Layout::Parquet { groups, .. } = &input.layout else {
                return Err(Error::NotParquet { path: input.path.clone() });
            };
            let sizes = parquet::sizes(&input.path)?;
            let all = || (0..sizes.len()).collect();
            for group in groups.clone().unwrap_or_else(all) {
                let Some(Size { records, bytes }) = sizes.get(group).copied() else {
                    return Err(damaged(input));
                };
                let (path, groups) = (input.path.clone(), vec![group]);
                parts.push(Part { path, groups, before, records, bytes });
                before += records;
            }
        }
        Ok(parts)
    }

    /// A table that is no more than this part.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or is not Parquet.
    pub fn of_part(part: &Part) -> Result<Self, Error> {
        let (columns, types) = parquet::open(&part.path)?;
        let layout = Layout::Parquet { types, groups: Some(part.groups.clone()) };
        Ok(Source::of(Input { path: part.path.clone(), bytes: part.bytes, layout }, columns))
    }
}

impl Source {
    /// Writes the records of a part to a new Parquet file, a row group for every step that has any, in order: `step` says which of
    /// `steps` steps the next record belongs to. Returns how many records each step has: **private**.
    ///
    /// The file has no name until [`Unnamed::name`] gives it `to`.
    ///
    /// # Errors
    ///
    /// If the part cannot be read, or the file not written.
    ///
    /// # Panics
    ///
    /// If `step` says another number.
    pub fn regroup(
        part: &Part,
        to: &Path,
        steps: usize,
        step: &mut dyn FnMut() -> usize,
    ) -> Result<(Vec<u64>, Unnamed), Error> {
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
