//! Reading a table as it is, once.
use std::ops::Range;

use quietly_core::lattice::{norm, raised};
use quietly_data::{Table, prefetch};

use super::{
    ABREAST, Affine, Bucket, LANES, LinearQuery, SimdBlock, Totals, across, dispatch, filled,
    in_lanes,
    transform::Columns,
    workers::{Gathered, in_blocks},
};

/// How many rows a worker takes at a time.
const BLOCK: usize = 1024;

/// How far ahead rows are called into the cache, in bytes: about what memory delivers while it
/// makes us wait for the first of them.
const AHEAD_BYTES: usize = 4096;

/// Numbers in a line of the cache.
const LINE: usize = 8;

/// Rows of a table, seen through a public map.
#[derive(Clone)]
pub struct Rows<'a> {
    pub(super) table: &'a Table,
    pub(super) map: &'a Affine,
    chosen: Chosen<'a>,
}

#[derive(Clone)]
enum Chosen<'a> {
    Range(Range<usize>),
    These(&'a Bucket),
}

impl<'a> Rows<'a> {
    /// All rows of the table.
    pub fn all(table: &'a Table, map: &'a Affine) -> Self {
        Self::range(table, map, 0..table.rows())
    }

    /// A slice of the table.
    pub fn range(table: &'a Table, map: &'a Affine, range: Range<usize>) -> Self {
        assert_eq!(table.width(), map.table_width(), "a map for this table");
        Self { table, map, chosen: Chosen::Range(range) }
    }

    /// These rows only; memory is fastest if they ascend.
    pub fn these(table: &'a Table, map: &'a Affine, rows: &'a Bucket) -> Self {
        assert_eq!(table.width(), map.table_width(), "a map for this table");
        Self { table, map, chosen: Chosen::These(rows) }
    }

    /// How many rows there are. This number is private.
    pub fn rows(&self) -> usize {
        match &self.chosen {
            Chosen::Range(range) => range.len(),
            Chosen::These(bucket) => bucket.rows.len(),
        }
    }

    /// The target of every row, in order.
    pub fn targets(&self) -> &[f64] {
        match &self.chosen {
            Chosen::Range(range) => &self.table.target()[range.clone()],
            Chosen::These(bucket) => &bucket.targets,
        }
    }

    /// Where in the table row `i` is.
    #[inline(always)]
    fn place(&self, i: usize) -> usize {
        match &self.chosen {
            Chosen::Range(range) => range.start + i,
            Chosen::These(bucket) => bucket.rows[i] as usize,
        }
    }

    /// How many rows ahead they are called into the cache.
    fn ahead(&self) -> usize {
        (AHEAD_BYTES / 8 / self.table.width().max(1)).next_multiple_of(ABREAST).max(ABREAST)
    }

    /// Calls the row that comes some after row `i` into the cache. Past the end the last one is called again, which
    /// does no harm.
    #[inline(always)]
    pub(super) fn call(&self, i: usize) {
        let width = self.table.width();
        let start = self.place((i + self.ahead()).min(self.rows() - 1)) * width;
        for line in (start..start + width).step_by(LINE) {
            prefetch(self.table.features(), line);
        }
        prefetch(self.table.features(), start + width);
    }

    /// Writes the features of row `i` under the map, without the constant, in front of zeros.
    #[inline(always)]
    pub(super) fn transformed(&self, i: usize, into: &mut [[f64; LANES]]) {
        let width = self.table.width();
        let row = self.place(i);
        let (whole, rest) = self.table.features()[row * width..][..width].as_chunks();
        let last = (!rest.is_empty()).then(|| filled(rest));
        let chunks = whole.iter().chain(&last).zip(&self.map.columns);
        for (into, (x, columns)) in into.iter_mut().zip(chunks) {
            *into = columns.apply(x);
        }
        into[self.map.columns.len()..].fill([0.0; LANES]);
    }

    /// One pass over the rows. The constant feature is the last of the weights and of the sum.
    pub fn pass<L>(&self, query: &LinearQuery<'_, L>, threads: usize) -> Totals
    where
        L: Fn(f64, f64) -> f64 + Sync,
    {
        match &self.chosen {
            // Memory sees by itself that these lie one after the other.
            Chosen::Range(range) => self.fold(|i| range.start + i, None, query, threads),
            Chosen::These(bucket) => {
                self.fold(|i| bucket.rows[i] as usize, Some(self.ahead()), query, threads)
            }
        }
    }

    #[inline(always)]
    fn fold<L: Fn(f64, f64) -> f64 + Sync>(
        &self,
        place: impl Fn(usize) -> usize + Sync,
        ahead: Option<usize>,
        query: &LinearQuery<'_, L>,
        threads: usize,
    ) -> Totals {
        let width = self.map.table_width();
        assert_eq!(query.weights.len(), self.map.width(), "a weight for every feature");
        let kernel = Kernel {
            features: self.table.features(),
            targets: self.targets(),
            map: self.map,
            weights: in_lanes(&query.weights[..width]),
            intercept: query.weights[width] * self.map.constant,
            query,
        };
        let work = |(into, sheet): &mut (Gathered, Sheet), block: Range<usize>| {
            let rows = block.len();
            dispatch(RowBlock { kernel: &kernel, place: &place, block, ahead, sheet, into });
            into.end_block(rows);
        };
        let start = || {
            // Behind the features there is the constant.
            let mut sheet = vec![[[0.0; LANES]; ABREAST]; self.map.width().div_ceil(LANES)];
            sheet[width / LANES].iter_mut().for_each(|z| z[width % LANES] = self.map.constant);
            (Gathered::new(query.sums(), query.bins()), sheet)
        };
        let workers = in_blocks(self.rows(), BLOCK, threads, start, work);
        Totals::of(workers.into_iter().map(|(worker, _)| worker).collect(), query.sums())
    }
}

/// Transformed rows, as many as are worked on abreast, chunk by chunk.
type Sheet = Vec<[[f64; LANES]; ABREAST]>;

/// What is known before the first row is read.
struct Kernel<'a, L> {
    features: &'a [f64],
    targets: &'a [f64],
    map: &'a Affine,
    weights: Vec<[f64; LANES]>,
    intercept: f64,
    query: &'a LinearQuery<'a, L>,
}

struct RowBlock<'a, L, I> {
    kernel: &'a Kernel<'a, L>,
    place: I,
    block: Range<usize>,
    /// How many rows ahead they are called into the cache, if they are.
    ahead: Option<usize>,
    sheet: &'a mut Sheet,
    into: &'a mut Gathered,
}

impl<L: Fn(f64, f64) -> f64 + Sync, I: Fn(usize) -> usize> SimdBlock for RowBlock<'_, L, I> {
    #[inline(always)]
    fn run(self) {
        let Self { kernel, place, sheet, into, .. } = self;
        let (features, targets) = (kernel.features, kernel.targets);
        let width = kernel.map.table_width();
        let mut i = self.block.start;
        while i + ABREAST <= self.block.end {
            // Past the end the last row is called again, which does no harm.
            let soon = self.ahead.map(|ahead| -> [usize; ABREAST] {
                std::array::from_fn(|r| place((i + ahead + r).min(targets.len() - 1)) * width)
            });
            kernel.add(
                std::array::from_fn(|r| &features[place(i + r) * width..][..width]),
                std::array::from_fn(|r| targets[i + r]),
                soon,
                sheet,
                into,
            );
            i += ABREAST;
        }
        for (i, y) in (i..).zip(&targets[i..self.block.end]) {
            kernel.add([&features[place(i) * width..][..width]], [*y], None, sheet, into);
        }
    }
}

impl<L: Fn(f64, f64) -> f64 + Sync> Kernel<'_, L> {
    /// Adds `R` rows, in two sweeps: scores and norms, then gradients. Meanwhile memory sends the
    /// rows that start at the numbers `soon`, if there are any.
    #[inline(always)]
    fn add<const R: usize>(
        &self,
        rows: [&[f64]; R],
        targets: [f64; R],
        soon: Option<[usize; R]>,
        sheet: &mut Sheet,
        into: &mut Gathered,
    ) {
        let width = rows[0].len();
        let (whole, over) = (width / LANES, width % LANES);
        let chunks: [&[[f64; LANES]]; R] = rows.map(|row| &row.as_chunks().0[..whole]);
        let columns = &self.map.columns[..];
        let constant = self.map.constant;

        let mut sweep = Sweep { scores: [[0.0; LANES]; R], squares: [[0.0; LANES]; R] };
        let parts = self.weights.iter().zip(columns).zip(&mut sheet[..whole]);
        for (j, ((weights, columns), sheet)) in parts.enumerate() {
            if let Some(soon) = soon {
                // One line of the cache holds two chunks.
                for r in (j % 2..R).step_by(2) {
                    prefetch(self.features, soon[r] + j / 2 * LINE);
                }
            }
            let z = sweep.add(chunks.map(|chunk| &chunk[j]), weights, columns);
            sheet[..R].copy_from_slice(&z);
        }
        if over > 0 {
            let rest: [[f64; LANES]; R] = rows.map(|row| filled(row.as_chunks::<LANES>().1));
            let z = sweep.add(rest.each_ref(), &self.weights[whole], &columns[whole]);
            sheet[whole][..R].copy_from_slice(&z);
            sheet[whole].iter_mut().for_each(|z| z[over] = constant);
        }
        for start in soon.into_iter().flatten() {
            prefetch(self.features, start + width);
        }
        let scores = across(sweep.scores).map(|score| score + self.intercept);
        let norms = across(sweep.squares).map(|squares| norm(squares + constant * constant));
        let coefficients =
            self.query.clipped_coefficients(scores, norms, targets, &mut into.counts);

        for (sum, sheet) in into.block.iter_mut().zip(sheet) {
            // Opaque, as in `across`: one chunk after the other. And written once: memory is slow to give back what it was just given.
            let sheet = std::hint::black_box(sheet);
            let mut total = *sum;
            for r in 0..R {
                for lane in 0..LANES {
                    total[lane] =
                        total[lane].wrapping_add(raised(coefficients[r] * sheet[r][lane]));
                }
            }
            *sum = total;
        }
    }
}

/// The first sweep, lane by lane.
struct Sweep<const R: usize> {
    scores: [[f64; LANES]; R],
    squares: [[f64; LANES]; R],
}

impl<const R: usize> Sweep<R> {
    /// Adds one chunk of each row; returns them transformed.
    #[inline(always)]
    fn add(
        &mut self,
        x: [&[f64; LANES]; R],
        weights: &[f64; LANES],
        columns: &Columns,
    ) -> [[f64; LANES]; R] {
        let z = x.map(|x| columns.apply(x));
        for (r, z) in z.iter().enumerate() {
            for lane in 0..LANES {
                self.scores[r][lane] += z[lane] * weights[lane];
                self.squares[r][lane] += z[lane] * z[lane];
            }
        }
        z
    }
}
