//! Which rows a step of a recipe sees.
use std::ops::Range;

use quietly_core::{charge::Sampler, draw::Draw};
use quietly_data::Private;
use quietly_engine::{
    error::Error,
    pass::{Cached, Query, Tally, allocate, grouped},
};

use super::{Run, space::Space};

/// A sum and counts, apart.
pub(super) type Answers = (Private<Vec<i64>>, Private<Vec<u64>>);

/// Rows in a recipe's space, as its sampler gives them to steps.
pub(super) enum Steps {
    /// Every row in every step.
    All(Private<Cached>),
    /// Each row in one cell; the rows of a cell lie together, and each cell ends where the next begins.
    Each(Private<(Cached, Vec<usize>)>),
    /// A Poisson sample of the rows in each step.
    Sampled { rows: Private<Cached>, draw: Draw },
}

impl Steps {
    /// Gives each row its steps; `cells` is how many cells there are where each row is in one.
    pub(super) fn new(
        run: &Run<'_>,
        space: &Space,
        spare: Private<Option<Cached>>,
        cells: usize,
    ) -> Result<Self, Error> {
        let (threads, sampler) = (run.threads, run.plan.sampler);
        let table = run.table.as_ref().zip(spare);
        match sampler {
            Sampler::Places { .. }
            | Sampler::Bins { .. }
            | Sampler::Cyclic { .. }
            | Sampler::FixedSize { .. } => unreachable!("no recipe takes its rows like this"),
            Sampler::Full => {
                Ok(Steps::All(table.map(|(t, spare)| space.cached(spare, t, threads))))
            }
            Sampler::Poisson { .. } => {
                let rows = table.map(|(t, spare)| space.cached(spare, t, threads));
                Ok(Steps::Sampled { rows, draw: run.door.draw(sampler) })
            }
            Sampler::Allocation { .. } | Sampler::Parts { .. } => {
                let draw = run.door.draw(in_cells(sampler, cells as u64));
                Ok(Steps::Each(table.map(|(table, _)| {
                    let buckets = allocate(table, &draw, threads);
                    let (table, ends) = grouped(table, &buckets);
                    (space.cached(None, &table, threads), ends)
                })))
            }
        }
    }

    /// Tallies a query over the rows of step `step`, which has these cells.
    pub(super) fn tally<L: Fn(f64, f64) -> f64 + Sync>(
        &self,
        step: u64,
        cells: Range<usize>,
        query: &Query<'_, L>,
        threads: usize,
    ) -> Answers {
        let tally = match self {
            Steps::All(rows) => rows.as_ref().map(|rows| rows.pass(query, threads)),
            Steps::Each(rows) => rows.as_ref().map(|(rows, ends)| {
                let end = |cell: usize| if cell == 0 { 0 } else { ends[cell - 1] };
                rows.pass_over(end(cells.start)..end(cells.end), query, threads)
            }),
            Steps::Sampled { rows, draw } => rows.as_ref().map(|rows| {
                let members = draw.members(step, 0..rows.rows() as u64);
                rows.at(&members).pass(query, threads)
            }),
        };
        apart(tally)
    }

    /// Tallies a query over all rows.
    pub(super) fn tally_all<L>(&self, query: &Query<'_, L>, threads: usize) -> Answers
    where
        L: Fn(f64, f64) -> f64 + Sync,
    {
        apart(match self {
            Steps::All(rows) | Steps::Sampled { rows, .. } => {
                rows.as_ref().map(|rows| rows.pass(query, threads))
            }
            Steps::Each(rows) => rows.as_ref().map(|(rows, _)| rows.pass(query, threads)),
        })
    }
}

/// The sampler whose groups are the cells. A step of DP-STAT has several: each row pays for its part as if all knew which, however
/// likely the parts are.
fn in_cells(sampler: Sampler, cells: u64) -> Sampler {
    match sampler {
        Sampler::Parts { .. } => Sampler::Parts { steps: cells },
        _ => sampler,
    }
}

fn apart(tally: Private<Tally>) -> Answers {
    tally.map(|tally| (tally.sum, tally.counts)).split()
}
