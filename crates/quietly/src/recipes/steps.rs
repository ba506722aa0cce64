//! Which rows a step of a recipe sees.
use std::ops::Range;

use quietly_data::Private;
use quietly_noise::Stream;

use super::{Run, space::Space};
use crate::{
    charge::Sampler,
    error::Error,
    pass::{Cached, Query, Tally, allocate, grouped},
};

/// A sum and counts, apart.
pub(super) type Answers = (Private<Vec<i64>>, Private<Vec<u64>>);

/// Rows in a recipe's space, as its sampler gives them to steps.
pub(super) enum Steps {
    /// Every row in every step.
    All(Private<Cached>),
    /// Each row in one cell; the rows of a cell lie together, and each cell ends where the next begins.
    Each(Private<(Cached, Vec<usize>)>),
    /// Each row in each step with chance `chance`·2⁻³².
    Sampled { rows: Private<Cached>, chance: u64, stream: Stream },
}

impl Steps {
    /// Gives each row its steps; `cells` is how many cells there are where each row is in one.
    pub(super) fn new(
        run: &Run<'_>,
        space: &Space,
        spare: Private<Option<Cached>>,
        cells: usize,
    ) -> Result<Self, Error> {
        let (threads, stream) = (run.threads, run.door.sampling());
        let table = run.table.as_ref().zip(spare);
        match run.plan.sampler {
            Sampler::Places { .. }
            | Sampler::Bins { .. }
            | Sampler::Cyclic { .. }
            | Sampler::FixedSize { .. } => unreachable!("no recipe takes its rows like this"),
            Sampler::Full => {
                Ok(Steps::All(table.map(|(t, spare)| space.cached(spare, t, threads))))
            }
            Sampler::Poisson { rate, .. } => {
                let rows = table.map(|(t, spare)| space.cached(spare, t, threads));
                // A multiple of 2⁻³², so that the rate that is charged is the one that is drawn.
                Ok(Steps::Sampled { rows, chance: (rate * 2.0_f64.powi(32)) as u64, stream })
            }
            Sampler::Allocation { .. } | Sampler::Parts { .. } => {
                Ok(Steps::Each(table.map(|(table, _)| {
                    let buckets = allocate(table, cells, &stream, threads);
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
    ) -> Result<Answers, Error> {
        let tally = match self {
            Steps::All(rows) => rows.as_ref().map(|rows| rows.pass(query, threads)),
            Steps::Each(rows) => rows.as_ref().map(|(rows, ends)| {
                let end = |cell: usize| if cell == 0 { 0 } else { ends[cell - 1] };
                rows.pass_over(end(cells.start)..end(cells.end), query, threads)
            }),
            Steps::Sampled { rows, chance, stream } => {
                let mut bits = stream.bits(step)?;
                let mut word = None;
                // Two draws of 32 bits from a word.
                let mut take = || {
                    let low: u64 = match word.take() {
                        Some(high) => high,
                        None => {
                            let both = bits.word().expect("a step has fewer words than a stream");
                            word = Some(both >> 32);
                            both & 0xffff_ffff
                        }
                    };
                    low < *chance
                };
                rows.as_ref().map(|rows| rows.chosen(&mut take).pass(query, threads))
            }
        };
        Ok(apart(tally))
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

fn apart(tally: Private<Tally>) -> Answers {
    tally.map(|tally| (tally.sum, tally.counts)).split()
}
