//! Reading a table as it is, once.
use std::ops::Range;

use prefetch_index::prefetch_index;
use quietly_data::Table;

use super::{
    ABREAST, Affine, Block, LANES, Query, Tally, across, dispatch, filled, in_lanes,
    transform::Columns,
    workers::{Gathered, in_blocks},
};
use crate::lattice::{nearest, norm};

/// How many rows a worker takes at a time.
const BLOCK: usize = 1024;

/// How far ahead rows are called into the cache, in bytes: about what memory delivers while it
/// makes us wait for the first of them.
const AHEAD_BYTES: usize = 4096;

/// Numbers in a line of the cache.
const LINE: usize = 8;

/// Rows of a table, seen through a public map.
#[derive(Clone)]
pub(crate) struct Rows<'a> {
    pub(super) table: &'a Table,
    pub(super) map: &'a Affine,
    chosen: Chosen<'a>,
}

#[derive(Clone)]
enum Chosen<'a> {
    Range(Range<usize>),
    These(&'a [u32]),
}

impl<'a> Rows<'a> {
    /// All rows of the table.
    pub(crate) fn all(table: &'a Table, map: &'a Affine) -> Self {
        Self::range(table, map, 0..table.rows())
    }

    /// A slice of the table.
    pub(crate) fn range(table: &'a Table, map: &'a Affine, range: Range<usize>) -> Self {
        assert_eq!(table.width(), map.table_width(), "a map for this table");
        Self { table, map, chosen: Chosen::Range(range) }
    }

    /// These rows only; memory is fastest if they ascend.
    pub(crate) fn these(table: &'a Table, map: &'a Affine, rows: &'a [u32]) -> Self {
        assert_eq!(table.width(), map.table_width(), "a map for this table");
        Self { table, map, chosen: Chosen::These(rows) }
    }

    /// How many rows there are. This number is private.
    pub(crate) fn rows(&self) -> usize {
        match &self.chosen {
            Chosen::Range(range) => range.len(),
            Chosen::These(rows) => rows.len(),
        }
    }

    /// Shows the target of every row, in order.
    pub(crate) fn targets(&self, mut each: impl FnMut(f64)) {
        match &self.chosen {
            Chosen::Range(range) => {
                self.table.target()[range.clone()].iter().for_each(|y| each(*y))
            }
            Chosen::These(rows) => rows.iter().for_each(|&i| each(self.table.target()[i as usize])),
        }
    }

    /// Writes the features of row `i` under the map, without the constant, in front of zeros.
    #[inline(always)]
    pub(super) fn transformed(&self, i: usize, into: &mut [[f64; LANES]]) {
        let row = match &self.chosen {
            Chosen::Range(range) => range.start + i,
            Chosen::These(rows) => rows[i] as usize,
        };
        let width = self.table.width();
        let (whole, rest) = self.table.features()[row * width..][..width].as_chunks();
        let last = (!rest.is_empty()).then(|| filled(rest));
        let chunks = whole.iter().chain(&last).zip(&self.map.columns);
        for (into, (x, columns)) in into.iter_mut().zip(chunks) {
            *into = columns.apply(x);
        }
        into[self.map.columns.len()..].fill([0.0; LANES]);
    }

    /// One pass over the rows. The constant feature is the last of the weights and of the sum.
    pub(crate) fn pass<L>(&self, query: &Query<'_, L>, threads: usize) -> Tally
    where
        L: Fn(f64, f64) -> f64 + Sync,
    {
        match &self.chosen {
            Chosen::Range(range) => self.fold(range.len(), |i| range.start + i, query, threads),
            Chosen::These(rows) => self.fold(rows.len(), |i| rows[i] as usize, query, threads),
        }
    }

    #[inline(always)]
    fn fold<L: Fn(f64, f64) -> f64 + Sync>(
        &self,
        rows: usize,
        row: impl Fn(usize) -> usize + Sync,
        query: &Query<'_, L>,
        threads: usize,
    ) -> Tally {
        let width = self.map.table_width();
        assert_eq!(query.weights.len(), self.map.width(), "a weight for every feature");
        let kernel = Kernel {
            table: self.table,
            map: self.map,
            weights: in_lanes(&query.weights[..width]),
            intercept: query.weights[width] * self.map.constant,
            query,
        };
        let ahead = (AHEAD_BYTES / 8 / width.max(1)).next_multiple_of(ABREAST).max(ABREAST);
        let work = |into: &mut Gathered, block: Range<usize>| {
            dispatch(RowBlock { kernel: &kernel, rows, row: &row, block, ahead, into });
            into.end_block();
        };
        let sums = query.sums();
        let start = || Gathered::new(sums, query.bins());
        let workers = in_blocks(rows, BLOCK, threads, start, work);
        Tally::of(workers, sums)
    }
}

/// What is known before the first row is read.
struct Kernel<'a, L> {
    table: &'a Table,
    map: &'a Affine,
    weights: Vec<[f64; LANES]>,
    intercept: f64,
    query: &'a Query<'a, L>,
}

struct RowBlock<'a, L, I> {
    kernel: &'a Kernel<'a, L>,
    rows: usize,
    row: I,
    block: Range<usize>,
    ahead: usize,
    into: &'a mut Gathered,
}

impl<L: Fn(f64, f64) -> f64 + Sync, I: Fn(usize) -> usize> Block for RowBlock<'_, L, I> {
    #[inline(always)]
    fn run(self) {
        let Self { kernel, row, into, .. } = self;
        let (features, target) = (kernel.table.features(), kernel.table.target());
        let width = kernel.table.width();
        let mut i = self.block.start;
        while i + ABREAST <= self.block.end {
            // Past the end the last row is called again, which does no harm.
            let soon: [usize; ABREAST] =
                std::array::from_fn(|r| row((i + self.ahead + r).min(self.rows - 1)));
            for row in soon {
                prefetch_index(target, row);
            }
            let rows: [usize; ABREAST] = std::array::from_fn(|r| row(i + r));
            kernel.add(
                rows.map(|row| &features[row * width..][..width]),
                rows.map(|row| target[row]),
                soon.map(|row| row * width),
                into,
            );
            i += ABREAST;
        }
        for i in i..self.block.end {
            let row = row(i);
            kernel.add([&features[row * width..][..width]], [target[row]], [row * width], into);
        }
    }
}

impl<L: Fn(f64, f64) -> f64 + Sync> Kernel<'_, L> {
    /// Adds `R` rows, in two sweeps: scores and norms, then gradients. Meanwhile memory sends the
    /// rows that start at the numbers `soon`.
    #[inline(always)]
    fn add<const R: usize>(
        &self,
        rows: [&[f64]; R],
        targets: [f64; R],
        soon: [usize; R],
        into: &mut Gathered,
    ) {
        let features = self.table.features();
        let whole = rows[0].len() / LANES;
        let chunks: [&[[f64; LANES]]; R] = rows.map(|row| &row.as_chunks().0[..whole]);
        let rest: [[f64; LANES]; R] = rows.map(|row| filled(row.as_chunks::<LANES>().1));
        let columns = &self.map.columns[..];

        let mut sweep = Sweep { scores: [[0.0; LANES]; R], squares: [[0.0; LANES]; R] };
        for (j, (weights, columns)) in self.weights.iter().zip(columns).enumerate().take(whole) {
            // One line of the cache holds two chunks.
            for r in (j % 2..R).step_by(2) {
                prefetch_index(features, soon[r] + j / 2 * LINE);
            }
            sweep.add(chunks.map(|chunk| &chunk[j]), weights, columns);
        }
        if columns.len() > whole {
            sweep.add(rest.each_ref(), &self.weights[whole], &columns[whole]);
        }
        for r in 0..R {
            prefetch_index(features, soon[r] + rows[r].len());
        }
        let constant = self.map.constant;
        let scores = across(sweep.scores).map(|score| score + self.intercept);
        let norms = across(sweep.squares).map(|squares| norm(squares + constant * constant));
        let coefficients = self.query.judge(scores, norms, targets, &mut into.counts);

        let Some((last, sums)) = into.block.split_last_mut() else { return };
        let width = rows[0].len();
        let rows = rows.map(|row| &row[..width]);
        let columns = self.map.shift[..width].iter().zip(&self.map.scale[..width]);
        for (j, (sum, (shift, scale))) in sums[..width].iter_mut().zip(columns).enumerate() {
            for r in 0..R {
                *sum += nearest(coefficients[r] * ((rows[r][j] - shift) * scale));
            }
        }
        for coefficient in coefficients {
            *last += nearest(coefficient * constant);
        }
    }
}

/// The first sweep, lane by lane.
struct Sweep<const R: usize> {
    scores: [[f64; LANES]; R],
    squares: [[f64; LANES]; R],
}

impl<const R: usize> Sweep<R> {
    #[inline(always)]
    fn add(&mut self, x: [&[f64; LANES]; R], weights: &[f64; LANES], columns: &Columns) {
        for (r, x) in x.into_iter().enumerate() {
            let z = columns.apply(x);
            for lane in 0..LANES {
                self.scores[r][lane] += z[lane] * weights[lane];
                self.squares[r][lane] += z[lane] * z[lane];
            }
        }
    }
}
