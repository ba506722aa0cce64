//! Tables in memory: encoded, or in borrowed arrays.
use std::{ops::Range, sync::Mutex};

use quietly_core::{
    batch_sampling::{BatchDraw, Batches},
    mechanism::Sampler,
};
use quietly_data::{Gather, Private, Sparse, Table};

use super::{Backend, Batch, bucket, members, one_step};
use crate::{
    error::Error,
    kernels::{Bucket, WhitenedRows, allocate, in_blocks, places},
    query::{Cache, Dataset, Query, QuerySum, Rows},
};

/// Numbers that are encoded at a time: they stay in the cache of the processor until they are summed.
pub const BLOCK: usize = 1 << 14;

/// How much memory may be taken to cache rows of borrowed arrays: what a reader of files holds at one time.
const CACHED: usize = 24 << 20;

/// How the rows of a step are told, once a run has begun.
enum Steps<G> {
    /// All rows are in every step.
    All,
    /// Every row is in one group.
    Grouped(Private<Vec<G>>),
    /// Every step is a sample of its own.
    Sampled(BatchDraw),
    /// Every step is a sample of one size, drawn after the step before.
    Ordered(Private<Batches>),
}

/// A step before the draw is known would be all rows, which is priced otherwise.
const NOT_BEGUN: &str = "a run that has begun";

/// A table that is there, encoded.
pub struct InMemory<'a> {
    data: Private<Dataset<'a>>,
    steps: Option<Steps<Bucket>>,
    cache: Private<Cache>,
    threads: usize,
}

impl<'a> InMemory<'a> {
    pub fn new(table: &'a Private<Table>, threads: usize) -> Self {
        Self::of(table.as_ref().map(Dataset::Dense), threads)
    }

    pub fn sparse(rows: &'a Private<Sparse>, threads: usize) -> Self {
        Self::of(rows.as_ref().map(Dataset::Sparse), threads)
    }

    fn of(data: Private<Dataset<'a>>, threads: usize) -> Self {
        InMemory { data, steps: None, cache: Private::new(Cache::reused()), threads }
    }

    /// What queries have left in the cache.
    pub fn into_cache(self) -> Private<Cache> {
        self.cache
    }
}

impl Backend for InMemory<'_> {
    fn begin(&mut self, draw: &BatchDraw) -> Result<(), Error> {
        let (data, threads) = (self.data.as_ref(), self.threads);
        self.steps = Some(match draw.sampler() {
            Sampler::FullBatch => Steps::All,
            Sampler::FixedSize { .. } => {
                Steps::Ordered(data.map(|data| draw.batches(data.records())))
            }
            by_step if by_step.is_drawn_by_step() => Steps::Sampled(draw.clone()),
            _ => Steps::Grouped(data.map(|data| allocate(data.dense(), draw, threads))),
        });
        Ok(())
    }

    fn sum(&mut self, batch: &Batch, query: &dyn Query) -> Result<QuerySum, Error> {
        let (threads, mut totals) = (self.threads, query.zeros());
        let mut all = Steps::All;
        let steps = match batch {
            Batch::All => &mut all,
            Batch::Steps(_) => self.steps.as_mut().expect(NOT_BEGUN),
        };
        let rows = self.data.as_ref().zip(self.cache.as_mut());
        let add = |data: &Dataset<'_>, members: &Bucket, cache: &mut Cache, totals: &mut [i128]| {
            let rows = Rows { members: Some(members), ..Rows::all(*data, 0, threads) };
            query.add(&rows, cache, totals);
        };
        let totals = match (steps, batch) {
            (Steps::Sampled(draw), Batch::Steps(steps)) => rows.map(|(data, cache)| {
                add(data, &members(*data, draw, steps, 0), cache, &mut totals);
                totals
            }),
            (Steps::Ordered(batches), Batch::Steps(steps)) => {
                rows.zip(batches.as_mut()).map(|((data, cache), batches)| {
                    let places = batches.step(one_step(steps)).iter().map(|&at| u64::from(at));
                    add(data, &bucket(*data, places, 0), cache, &mut totals);
                    totals
                })
            }
            (Steps::Grouped(groups), _) => {
                rows.zip(groups.as_ref()).map(|((data, cache), groups)| {
                    let these = &groups[batch.groups(groups.len())];
                    these.iter().for_each(|members| add(data, members, cache, &mut totals));
                    totals
                })
            }
            _ => rows.map(|(data, cache)| {
                query.add(&Rows::all(*data, 0, threads), cache, &mut totals);
                totals
            }),
        };
        Ok(QuerySum::new(query, totals))
    }

    fn count(&mut self) -> Result<Private<u64>, Error> {
        Ok(self.data.as_ref().map(|data| data.records() as u64))
    }

    fn rows(&mut self) -> Result<Private<Dataset<'_>>, Error> {
        Ok(self.data.as_ref().map(|data| *data))
    }
}

/// Arrays in memory that belong to someone else: their rows are encoded anew for every query, and nothing is copied but what
/// fits in [`CACHED`] bytes.
pub struct Borrowed<'a> {
    picks: Private<Gather<'a>>,
    steps: Option<Steps<Vec<u32>>>,
    /// The caches of the first blocks of the table.
    caches: Private<Vec<Mutex<Cache>>>,
    threads: usize,
}

impl<'a> Borrowed<'a> {
    pub fn new(picks: Private<Gather<'a>>, threads: usize) -> Self {
        Self::caching(picks, CACHED, threads)
    }

    /// The same, where so many bytes may be cached.
    pub fn caching(picks: Private<Gather<'a>>, bytes: usize, threads: usize) -> Self {
        let caches = |picks: &Gather<'_>| {
            let blocks = picks.rows().div_ceil(block(picks));
            let width = picks.width() + 1;
            // Each has its own map beside it, which may be a matrix.
            let each = WhitenedRows::bytes(block(picks), width) + width * width * size_of::<f64>();
            (0..(bytes / each).min(blocks)).map(|_| Mutex::new(Cache::reused())).collect()
        };
        Borrowed { caches: picks.as_ref().map(caches), steps: None, picks, threads }
    }
}

impl Backend for Borrowed<'_> {
    fn begin(&mut self, draw: &BatchDraw) -> Result<(), Error> {
        let (picks, threads) = (self.picks.as_ref(), self.threads);
        self.steps = Some(match draw.sampler() {
            Sampler::FullBatch => Steps::All,
            Sampler::FixedSize { .. } => {
                Steps::Ordered(picks.map(|picks| draw.batches(picks.rows())))
            }
            by_step if by_step.is_drawn_by_step() => Steps::Sampled(draw.clone()),
            _ => Steps::Grouped(picks.map(|picks| places(picks.rows(), draw, threads))),
        });
        Ok(())
    }

    fn sum(&mut self, batch: &Batch, query: &dyn Query) -> Result<QuerySum, Error> {
        let (threads, mut totals) = (self.threads, query.zeros());
        let mut all = Steps::All;
        let steps = match batch {
            Batch::All => &mut all,
            Batch::Steps(_) => self.steps.as_mut().expect(NOT_BEGUN),
        };
        let add_some = |picks: &Gather<'_>, members: &[u32], totals: &mut [i128]| {
            let places = |block: Range<usize>| members[block].to_vec();
            add_picked(picks, members.len(), places, &[], query, threads, totals);
        };
        let rows = self.picks.as_ref().zip(self.caches.as_ref());
        let totals = match (steps, batch) {
            (Steps::Sampled(draw), Batch::Steps(steps)) => rows.map(|(picks, _)| {
                let members = draw.members(one_step(steps), 0..picks.rows() as u64);
                let members: Vec<u32> = members.into_iter().map(|place| place as u32).collect();
                add_some(picks, &members, &mut totals);
                totals
            }),
            (Steps::Ordered(batches), Batch::Steps(steps)) => {
                rows.zip(batches.as_mut()).map(|((picks, _), batches)| {
                    let mut members = batches.step(one_step(steps)).to_vec();
                    members.sort_unstable();
                    add_some(picks, &members, &mut totals);
                    totals
                })
            }
            (Steps::Grouped(groups), _) => rows.zip(groups.as_ref()).map(|((picks, _), groups)| {
                for members in &groups[batch.groups(groups.len())] {
                    add_some(picks, members, &mut totals);
                }
                totals
            }),
            _ => rows.map(|(picks, caches)| {
                let places = |block: Range<usize>| (block.start as u32..block.end as u32).collect();
                let records = picks.rows();
                add_picked(picks, records, places, caches, query, threads, &mut totals);
                totals
            }),
        };
        Ok(QuerySum::new(query, totals))
    }

    fn count(&mut self) -> Result<Private<u64>, Error> {
        Ok(self.picks.as_ref().map(|picks| picks.rows() as u64))
    }
}

/// How many records are encoded at a time. A query of d² numbers should be worth its while.
fn block(picks: &Gather<'_>) -> usize {
    (BLOCK / picks.width()).max(64).max(picks.width() / 2)
}

/// Adds some records: a worker for each thread encodes a block and sums it while it is in the cache of the processor. The
/// first blocks may have caches, for the next query.
fn add_picked(
    picks: &Gather<'_>,
    count: usize,
    places: impl Fn(Range<usize>) -> Vec<u32> + Sync,
    caches: &[Mutex<Cache>],
    query: &dyn Query,
    threads: usize,
    totals: &mut [i128],
) {
    let (size, numbers) = (block(picks), totals.len());
    let start = || (vec![0; numbers], Table::empty(picks.width()));
    let work = |(totals, table): &mut (Vec<i128>, Table), block: Range<usize>| {
        let cache = caches.get(block.start / size);
        let mut cache = cache.map(|cache| cache.lock().expect("a worker has its blocks alone"));
        let mut once = Cache::once();
        let cache = cache.as_deref_mut().unwrap_or(&mut once);
        if !query.is_served_by(cache) {
            picks.take(&places(block), table);
        }
        query.add(&Rows::all(Dataset::Dense(table), 0, 1), cache, totals);
    };
    for (worker, _) in in_blocks(count, size, threads, start, work) {
        totals.iter_mut().zip(worker).for_each(|(total, x)| *total += x);
    }
}
