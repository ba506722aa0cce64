//! Tables in memory: encoded, or in arrays that belong to someone else.
use std::{ops::Range, sync::Mutex};

use quietly_data::{Gather, Private, Sparse, Table};

use super::{Backend, Batch, members, one_step};
use crate::{
    charge::Sampler,
    draw::Draw,
    error::Error,
    pass::{Bucket, Cached, allocate, in_blocks, places},
    query::{Cache, Dataset, Query, QuerySum, Rows},
};

/// Numbers that are encoded at a time: they stay in the cache of the processor until they are summed.
pub(crate) const BLOCK: usize = 1 << 14;

/// How much memory may be taken to cache rows of borrowed arrays: what a reader of files holds at one time.
const CACHED: usize = 24 << 20;

/// How the rows of a step are told, once a run has begun.
enum Steps<G> {
    /// All rows are in every step.
    All,
    /// Every row is in one group.
    Grouped(Private<Vec<G>>),
    /// Every step is a sample of its own.
    Sampled(Draw),
}

/// A step before the draw is known would be all rows, which is priced otherwise.
const NOT_BEGUN: &str = "a run that has begun";

/// A table that is there, encoded.
pub(crate) struct InMemory<'a> {
    data: Private<Dataset<'a>>,
    steps: Option<Steps<Bucket>>,
    cache: Private<Cache>,
    threads: usize,
}

impl<'a> InMemory<'a> {
    pub(crate) fn new(table: &'a Private<Table>, threads: usize) -> Self {
        Self::of(table.as_ref().map(Dataset::Dense), threads)
    }

    pub(crate) fn sparse(rows: &'a Private<Sparse>, threads: usize) -> Self {
        Self::of(rows.as_ref().map(Dataset::Sparse), threads)
    }

    fn of(data: Private<Dataset<'a>>, threads: usize) -> Self {
        InMemory { data, steps: None, cache: Private::new(Cache::reused()), threads }
    }

    /// What queries have left in the cache.
    pub(crate) fn into_cache(self) -> Private<Cache> {
        self.cache
    }
}

impl Backend for InMemory<'_> {
    fn begin(&mut self, draw: &Draw) -> Result<(), Error> {
        let (data, threads) = (self.data.as_ref(), self.threads);
        self.steps = Some(match draw.sampler() {
            Sampler::Full => Steps::All,
            Sampler::Poisson { .. } => Steps::Sampled(draw.clone()),
            _ => Steps::Grouped(data.map(|data| allocate(data.dense(), draw, threads))),
        });
        Ok(())
    }

    fn sum(&mut self, batch: &Batch, query: &dyn Query) -> Result<QuerySum, Error> {
        let (threads, mut totals) = (self.threads, query.zeros());
        let steps = match batch {
            Batch::All => &Steps::All,
            Batch::Steps(_) => self.steps.as_ref().expect(NOT_BEGUN),
        };
        let rows = self.data.as_ref().zip(self.cache.as_mut());
        let totals = match (steps, batch) {
            (Steps::Sampled(draw), Batch::Steps(steps)) => rows.map(|(data, cache)| {
                let members = members(*data, draw, one_step(steps), 0);
                let rows = Rows { members: Some(&members), ..Rows::all(*data, 0, threads) };
                query.add(&rows, cache, &mut totals);
                totals
            }),
            (Steps::Grouped(groups), _) => rows.zip(groups.as_ref()).map(|((data, _), groups)| {
                for members in &groups[batch.groups(groups.len())] {
                    let rows = Rows { members: Some(members), ..Rows::all(*data, 0, threads) };
                    query.add(&rows, &mut Cache::once(), &mut totals);
                }
                totals
            }),
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
pub(crate) struct Borrowed<'a> {
    picks: Private<Gather<'a>>,
    steps: Option<Steps<Vec<u32>>>,
    /// The caches of the first blocks of the table.
    caches: Private<Vec<Mutex<Cache>>>,
    threads: usize,
}

impl<'a> Borrowed<'a> {
    pub(crate) fn new(picks: Private<Gather<'a>>, threads: usize) -> Self {
        Self::caching(picks, CACHED, threads)
    }

    /// The same, where so many bytes may be cached.
    fn caching(picks: Private<Gather<'a>>, bytes: usize, threads: usize) -> Self {
        let caches = |picks: &Gather<'_>| {
            let blocks = picks.rows().div_ceil(block(picks));
            let width = picks.width() + 1;
            // Each has its own map beside it, which may be a matrix.
            let each = Cached::bytes(block(picks), width) + width * width * size_of::<f64>();
            (0..(bytes / each).min(blocks)).map(|_| Mutex::new(Cache::reused())).collect()
        };
        Borrowed { caches: picks.as_ref().map(caches), steps: None, picks, threads }
    }
}

impl Backend for Borrowed<'_> {
    fn begin(&mut self, draw: &Draw) -> Result<(), Error> {
        let (picks, threads) = (self.picks.as_ref(), self.threads);
        self.steps = Some(match draw.sampler() {
            Sampler::Full => Steps::All,
            Sampler::Poisson { .. } => Steps::Sampled(draw.clone()),
            _ => Steps::Grouped(picks.map(|picks| places(picks.rows(), draw, threads))),
        });
        Ok(())
    }

    fn sum(&mut self, batch: &Batch, query: &dyn Query) -> Result<QuerySum, Error> {
        let (threads, mut totals) = (self.threads, query.zeros());
        let steps = match batch {
            Batch::All => &Steps::All,
            Batch::Steps(_) => self.steps.as_ref().expect(NOT_BEGUN),
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, FixedSizeListArray, Float64Array, RecordBatch};
    use arrow_schema::{DataType, Field};
    use quietly_data::{Encoding, Schema, Source};

    use super::*;
    use crate::{
        decode_query,
        link::Link,
        query::{ClippedGradients, Combined, SecondMoment, TargetBins, TargetHistogram},
        residual::Residual,
        transform::RowTransform,
        unit::Unit,
    };

    /// 3000 rows of 400 numbers, so that there are many parts; some are null records.
    fn source() -> (Source, Encoding) {
        let number = |k: usize| ((k * 7919 % 1009) as f64 / 504.5 - 1.0) * 1.1;
        let numbers = Float64Array::from_iter_values((0..3000 * 400).map(number));
        let item = Arc::new(Field::new("item", DataType::Float64, true));
        let matrix: ArrayRef =
            Arc::new(FixedSizeListArray::new(item, 400, Arc::new(numbers), None));
        let target = |k: usize| if k % 17 == 3 { f64::NAN } else { number(5 * k + 1) };
        let target: ArrayRef = Arc::new(Float64Array::from_iter_values((0..3000).map(target)));
        let batch = RecordBatch::try_from_iter([("x", matrix), ("y", target)]).unwrap();
        let mut names: Vec<String> = (0..400).map(|k| format!("x{k}")).collect();
        let columns: String =
            names.iter().map(|n| format!("{n} = {{ range = [-1, 1] }}\n")).collect();
        let schema = format!("rows = 3000\n[columns]\n{columns}y = {{ range = [-1, 1] }}");
        names.push("y".into());
        let schema = Schema::parse(&schema).unwrap();
        let encoding = Encoding::new(&schema, &names, None, Some("y")).unwrap();
        (Source::in_memory(names, vec![batch]).unwrap(), encoding)
    }

    /// Queries under maps that come and go, and some that no map serves.
    fn queries() -> Vec<Box<dyn Query>> {
        let map = |by: f64| {
            RowTransform::linear(
                (0..3 * 401).map(|k| by * ((k * 31 % 101) as f64 - 50.0) / 500.0).collect(),
                400,
            )
        };
        let gradients = |transform: &RowTransform, at: f64| -> Box<dyn Query> {
            Box::new(ClippedGradients {
                transform: transform.clone(),
                weights: vec![at; 3],
                residual: Some(Residual::approaching(Link::Linear)),
                unit: Unit::ITSELF,
                centre: 0.1,
                clip: Some(0.5),
                thresholds: Some(vec![0.1, 0.2, 0.4]),
            })
        };
        let targets = || -> Box<dyn Query> {
            let bins = TargetBins::Sizes(vec![0.25, 0.5]);
            Box::new(TargetHistogram { unit: Unit::ITSELF, bins })
        };
        let moment =
            |transform| -> Box<dyn Query> { Box::new(SecondMoment { transform, norm: 3.0 }) };
        let both = |a, b| -> Box<dyn Query> { Box::new(Combined::new(vec![a, b])) };
        let (one, other) = (map(1.0), map(-0.5));
        vec![
            targets(),
            gradients(&one, 0.0),
            gradients(&one, 0.2),
            both(gradients(&other, 0.2), targets()),
            targets(),
            gradients(&other, -0.1),
            moment(RowTransform::plain(400, 0.5)),
            moment(one.clone()),
            both(gradients(&one, 0.3), gradients(&other, 0.3)),
            gradients(&one, 0.4),
        ]
    }

    /// Whether two sums have the same bits, and are not those of no rows.
    fn assert_alike(found: &QuerySum, wanted: &QuerySum, query: &dyn Query) {
        let zero = QuerySum::zero(query).encode();
        _ = found.encode().zip(wanted.encode()).zip(zero).map(|((found, wanted), zero)| {
            assert!(found == wanted && wanted != zero, "{:?}", query.outputs());
        });
    }

    #[test]
    fn borrowed_arrays_give_the_sums_of_a_table() {
        let (source, encoding) = source();
        let table = source.read(&encoding, 2).unwrap();
        let mut whole = InMemory::new(&table, 2);
        let mut wanted = |query: &dyn Query| whole.sum(&Batch::All, query).unwrap();
        // No block is cached, a few are, or all.
        for bytes in [0, 5 << 20, 1 << 30] {
            for threads in [1, 3] {
                let picks = source.gather(&encoding).unwrap().unwrap();
                let mut rows = Borrowed::caching(picks, bytes, threads);
                for query in queries() {
                    let found = rows.sum(&Batch::All, &*query).unwrap();
                    assert_alike(&found, &wanted(&*query), &*query);
                }
            }
        }
    }

    #[test]
    fn an_encoded_query_gives_the_same_sums() {
        let (source, encoding) = source();
        let table = source.read(&encoding, 2).unwrap();
        let mut rows = InMemory::new(&table, 2);
        for query in queries() {
            let bytes = query.encode();
            let again = decode_query(&bytes).unwrap();
            assert_eq!(again.outputs(), query.outputs());
            let wanted = rows.sum(&Batch::All, &*query).unwrap();
            assert_alike(&rows.sum(&Batch::All, &*again).unwrap(), &wanted, &*query);
            let bad: [&[u8]; 4] = [&bytes[..bytes.len() - 1], &bytes[1..], b"", b"combined\n"];
            for bad in bad {
                assert!(decode_query(bad).is_none());
            }
        }
    }
}
