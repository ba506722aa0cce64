//! Backends: they sum queries over the rows of a table, wherever these are.
//!
//! A backend adds up what [`Query::add`](crate::query::Query::add) says of each block of rows. All backends give the same bits.
//! It is handed whole units of privacy, and must hand them on whole. Today that is one row each.
use std::ops::Range;

use quietly_core::{batch_sampling::BatchDraw, mechanism::Sampler, release::Releaser};
use quietly_data::Private;

use crate::{
    error::Error,
    kernels::Bucket,
    query::{Dataset, Query, QuerySum},
};

pub use self::parts::{ParquetParts, ReadSpec, Sample};

pub use self::{
    memory::{Borrowed, InMemory},
    parts::{Accumulator, sum_parts},
    spilled::Spilled,
};

pub mod memory;
mod parts;
pub mod spilled;

/// Which rows a query is summed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Batch {
    /// All rows.
    All,
    /// The rows of these steps, as the draw says that [`Backend::begin`] was given.
    Steps(Range<u64>),
}

impl Batch {
    /// The rows of one step.
    pub fn step(step: u64) -> Self {
        Batch::Steps(step..step + 1)
    }

    /// Which of so many groups of rows are meant, where each row is in one. Every epoch has the same groups.
    fn groups(&self, groups: usize) -> Range<usize> {
        match self {
            Batch::All => 0..groups,
            Batch::Steps(range) => {
                let first = range.start as usize % groups.max(1);
                first..first + (range.end - range.start) as usize
            }
        }
    }
}

/// The rows of a table, in memory, in files or on other machines.
pub trait Backend {
    /// Takes the draw of a run, before its first sum: it says which rows are in which step.
    ///
    /// A backend whose rows were grouped by step before the run began keeps its own groups.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if it cannot tell the rows of a step. No row can cause an error.
    fn begin(&mut self, draw: &BatchDraw) -> Result<(), Error>;

    /// The sum of a query over the rows of a batch. Algorithms call `run_query` instead.
    ///
    /// # Errors
    ///
    /// If rows cannot be reached. No row can cause an error.
    fn sum(&mut self, batch: &Batch, query: &dyn Query) -> Result<QuerySum, Error>;

    /// How many groups its rows were in before the run, if they were: the same for every run.
    fn groups(&self) -> Option<u64> {
        None
    }

    /// How many units of privacy there are, null records among them: private, unless the relation makes it public.
    ///
    /// # Errors
    ///
    /// As [`sum`](Self::sum).
    fn count(&mut self) -> Result<Private<u64>, Error>;

    /// The rows themselves, for algorithms that are not made of sums.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] unless they are in the memory of this process.
    fn rows(&mut self) -> Result<Private<Dataset<'_>>, Error> {
        let want = "one whose releases are sums over rows, or the table one that fits in memory";
        Err(Error::Parameter { name: "method", want, got: "one that needs the rows".into() })
    }
}

/// Sums a query over the rows of a batch, unless the checkpoint has what was released of the sum: the one caller of
/// [`Backend::sum`], which a test checks.
///
/// What the sum is for must be released before the next query: a run that resumes has no sums of queries that the checkpoint
/// replies to, but zeros, which are replaced by what was released.
pub fn run_query(
    backend: &mut dyn Backend,
    releaser: &mut Releaser,
    batch: &Batch,
    query: &dyn Query,
) -> Result<QuerySum, Error> {
    if releaser.next_query()? { backend.sum(batch, query) } else { Ok(QuerySum::zero(query)) }
}

/// The one step of a batch of rows that are sampled anew for every step.
///
/// # Panics
///
/// If there are more: a row may be in several of them, and would count twice.
fn one_step(steps: &Range<u64>) -> u64 {
    assert_eq!(steps.end - steps.start, 1, "one step of a sample");
    steps.start
}

/// Those rows of a table, whose first record has this place, that are in these steps.
fn members(data: Dataset<'_>, draw: &BatchDraw, steps: &Range<u64>, first: u64) -> Bucket {
    let places = first..first + data.records() as u64;
    let members = match draw.groups() {
        Some(_) => draw.group_members(steps, places),
        None => draw.members(one_step(steps), places),
    };
    bucket(data, members, first)
}

/// The rows at these places, where the first record of the table has place `first`.
fn bucket(data: Dataset<'_>, places: impl IntoIterator<Item = u64>, first: u64) -> Bucket {
    let (target, nulls): (_, &[usize]) = match data {
        Dataset::Dense(table) => (table.target(), table.nulls()),
        Dataset::Sparse(rows) => (&rows.target, &[]),
    };
    // A null record that was left out is a member without a row.
    let row = |place: u64| match nulls.binary_search(&((place - first) as usize)) {
        Ok(_) => None,
        Err(before) => Some((place - first) as u32 - before as u32),
    };
    Bucket::new(places.into_iter().filter_map(row).collect(), target)
}

/// Whether rows that are in these many groups from before the run can be told apart by the steps of a draw.
///
/// Samples of their own for every step are refused: the places of such rows are those in their file, and not those in the table.
fn check_groups(draw: &BatchDraw, groups: usize) -> Result<(), Error> {
    let good = draw.sampler() == Sampler::FullBatch || draw.groups() == Some(groups as u64);
    Error::ensure(good, "table", "grouped by the steps of the plan", "grouped otherwise")
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    /// A sum that goes around `run_query` would be summed again by a run that resumes, and its noise drawn twice.
    #[test]
    fn only_run_query_asks_a_backend_for_a_sum() {
        fn callers(folder: &Path, found: &mut Vec<String>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    if !path.ends_with("src/tests") {
                        callers(&path, found);
                    }
                } else if path.extension().is_some_and(|e| e == "rs") {
                    let text = fs::read_to_string(&path).unwrap();
                    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
                    // The first argument of `Backend::sum` is a batch, and that of no other `sum`.
                    let calls = code.split(".sum(").skip(1);
                    let batches = ["batch", "&batch", "&Batch::", "Batch::"];
                    let count = calls.filter(|rest| batches.iter().any(|b| rest.starts_with(b)));
                    found.extend(count.map(|_| path.file_name().unwrap().to_string_lossy().into()));
                }
            }
        }
        let crates = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        let mut found = Vec::new();
        for package in fs::read_dir(crates).unwrap() {
            callers(&package.unwrap().path().join("src"), &mut found);
        }
        assert_eq!(found, ["backend.rs"]);
    }
}
