//! Parquet tables in parts, which are read again for every query.
use std::{
    ops::{ControlFlow, Range},
    sync::atomic::{AtomicUsize, Ordering},
};

use quietly_core::{batch_sampling::BatchDraw, mechanism::Sampler};
use quietly_data::{Encoding, Private, Source, Table, TablePart};
use serde::{Deserialize, Serialize};

use super::{Backend, Batch, check_groups, members};
use crate::{
    error::Error,
    expansion::{Expander, Expansion},
    query::{Cache, Dataset, Query, QuerySum, Rows},
};

/// How rows are read: all of it is public.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReadSpec {
    /// How a row becomes numbers.
    pub encoding: Encoding,
    /// Whether null records keep their places.
    pub places: bool,
    /// What expands these numbers before anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expansion: Option<Expansion>,
}

/// The rows of some steps of a draw. **It is secret** which these are, and never printed.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    draw: BatchDraw,
    steps: Range<u64>,
}

impl std::fmt::Debug for Sample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sample(..)")
    }
}

/// Accumulates a query over one source after another.
pub struct Accumulator {
    encoding: Encoding,
    expander: Option<Expander>,
    /// Which rows are meant, if not all.
    sample: Option<Sample>,
    /// How many records of the table come before the next.
    pub before: u64,
    totals: Vec<i128>,
}

impl Accumulator {
    /// # Errors
    ///
    /// [`Error::Parameter`] if rows are expanded in a way that makes no sense.
    pub fn new(read: &ReadSpec, query: &dyn Query, sample: Option<&Sample>) -> Result<Self, Error> {
        let encoding = match read.places {
            true => read.encoding.keeping_null_rows(),
            false => read.encoding.clone(),
        };
        let expander = match &read.expansion {
            Some(expansion) => Some(Expander::new(expansion)?),
            None => None,
        };
        let (sample, totals) = (sample.cloned(), query.zeros());
        Ok(Accumulator { encoding, expander, sample, before: 0, totals })
    }

    /// Adds all rows of a source.
    ///
    /// # Errors
    ///
    /// [`Error::Data`] if it cannot be read; no row can cause an error.
    pub fn add(&mut self, source: &Source, query: &dyn Query) -> Result<(), Error> {
        let Accumulator { encoding, expander, sample, before, totals } = self;
        source.scan(encoding, &mut |table: &Table| {
            let expanded = expander.as_ref().map(|expander| expander.public_table(table, 1));
            let data = Dataset::Dense(expanded.as_ref().unwrap_or(table));
            let sample = sample.as_ref();
            let these = sample.map(|s| members(data, &s.draw, &s.steps, *before));
            let rows = Rows { members: these.as_ref(), ..Rows::all(data, *before, 1) };
            query.add(&rows, &mut Cache::once(), totals);
            *before += (table.rows() + table.nulls().len()) as u64;
            ControlFlow::Continue(())
        })?;
        Ok(())
    }

    pub fn sum(self, query: &dyn Query) -> QuerySum {
        QuerySum::new(query, Private::new(self.totals))
    }
}

/// The sum of a query over some parts of a table: the same for any number of threads, and any order of the parts.
///
/// # Errors
///
/// [`Error::Data`] if a file cannot be read; no row can cause an error.
pub fn sum_parts(
    read: &ReadSpec,
    query: &dyn Query,
    sample: Option<&Sample>,
    parts: &[TablePart],
    threads: usize,
) -> Result<QuerySum, Error> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<QuerySum, Error> {
        let mut rows = Accumulator::new(read, query, sample)?;
        while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
            rows.before = part.first_row();
            rows.add(&Source::of_part(part)?, query)?;
        }
        Ok(rows.sum(query))
    };
    std::thread::scope(|scope| {
        let others = threads.min(parts.len()).saturating_sub(1);
        let handles: Vec<_> = (0..others).map(|_| scope.spawn(work)).collect();
        let mut all = work()?;
        for handle in handles {
            let more = handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            all = all.plus(more);
        }
        Ok(all)
    })
}

/// A Parquet table that is read again for every query, in parts.
pub struct ParquetParts {
    steps: Vec<Vec<TablePart>>,
    read: ReadSpec,
    /// That of the run, once it has begun.
    draw: Option<BatchDraw>,
    threads: usize,
}

impl ParquetParts {
    /// The parts of every step of a table that is grouped by step; all parts as one step of a table that is not.
    pub fn new(steps: Vec<Vec<TablePart>>, read: ReadSpec, threads: usize) -> Self {
        ParquetParts { steps, read, draw: None, threads }
    }

    /// How rows are read.
    pub fn read(&self) -> &ReadSpec {
        &self.read
    }

    /// The parts that have the rows of a batch, and which of their rows are meant, if not all.
    ///
    /// # Panics
    ///
    /// If a step is asked for before [`begin`](Backend::begin).
    pub fn batch(&self, batch: &Batch) -> (Vec<TablePart>, Option<Sample>) {
        let Batch::Steps(steps) = batch else { return (self.steps.concat(), None) };
        let draw = self.draw.as_ref().expect("a run that has begun");
        match draw.sampler() {
            Sampler::FullBatch => (self.steps.concat(), None),
            _ if draw.groups() == Some(self.steps.len() as u64) => {
                (self.steps[batch.groups(self.steps.len())].concat(), None)
            }
            _ => {
                let sample = Sample { draw: draw.clone(), steps: steps.clone() };
                (self.steps.concat(), Some(sample))
            }
        }
    }
}

impl Backend for ParquetParts {
    fn begin(&mut self, draw: &BatchDraw) -> Result<(), Error> {
        // Steps of a table that is not grouped are told by place: each reads the table once.
        if self.steps.len() > 1 {
            check_groups(draw, self.steps.len())?;
        }
        self.draw = Some(draw.clone());
        Ok(())
    }

    fn groups(&self) -> Option<u64> {
        (self.steps.len() > 1).then_some(self.steps.len() as u64)
    }

    fn sum(&mut self, batch: &Batch, query: &dyn Query) -> Result<QuerySum, Error> {
        let (parts, sample) = self.batch(batch);
        sum_parts(&self.read, query, sample.as_ref(), &parts, self.threads)
    }

    fn count(&mut self) -> Result<Private<u64>, Error> {
        Ok(Private::new(self.steps.iter().flatten().map(TablePart::rows).sum()))
    }
}
