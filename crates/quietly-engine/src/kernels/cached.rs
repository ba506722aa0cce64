//! Transformed rows, kept in memory for methods that come back to them many times.
use std::{ops::Range, sync::Mutex};

use quietly_core::lattice::{norm, raised};
use quietly_data::Table;

use super::{
    ABREAST, Affine, LANES, Linear, LinearQuery, SimdBlock, Totals, across, dispatch, filled,
    in_lanes,
    transform::{TILE, TOGETHER},
    workers::{Gathered, in_blocks},
};

/// How many rows a worker takes at a time.
const BLOCK: usize = 1024;

/// Rows z in single precision, each with a bound on its norm and its target.
///
/// Every number is finite: a row that is not, or is too large for single precision, is zero.
pub struct WhitenedRows {
    width: usize,
    /// Chunks per row; the last is filled up with zeros.
    stride: usize,
    pub(super) chunks: Vec<[f32; LANES]>,
    /// ‖z‖ of the numbers that are stored, rounded up.
    pub(super) norms: Vec<f32>,
    targets: Vec<f64>,
}

/// A public map from the rows of a table to those of a [`WhitenedRows`].
pub trait Map: Sync {
    /// How many features the table must have.
    fn table_width(&self) -> usize;

    /// How many features a transformed row has.
    fn width(&self) -> usize;

    /// Writes the transformed rows of the table, `stride` chunks each, in front of zeros.
    fn fill(&self, rows: &[f64], into: &mut [[f32; LANES]], stride: usize);
}

impl Map for Affine {
    fn table_width(&self) -> usize {
        self.table_width()
    }

    fn width(&self) -> usize {
        self.width()
    }

    #[inline(always)]
    fn fill(&self, rows: &[f64], into: &mut [[f32; LANES]], stride: usize) {
        let width = self.table_width();
        for (i, into) in into.chunks_exact_mut(stride).enumerate() {
            let (whole, rest) = rows[i * width..][..width].as_chunks();
            let last = (!rest.is_empty()).then(|| filled(rest));
            let columns = whole.iter().chain(&last).zip(&self.columns);
            for (into, (x, columns)) in into.iter_mut().zip(columns) {
                *into = columns.apply(x).map(|z| z as f32);
            }
            into[width / LANES][width % LANES] = self.constant as f32;
        }
    }
}

impl Map for Linear {
    fn table_width(&self) -> usize {
        self.table_width()
    }

    fn width(&self) -> usize {
        self.width()
    }

    #[inline(always)]
    fn fill(&self, rows: &[f64], into: &mut [[f32; LANES]], stride: usize) {
        let width = self.table_width();
        let mut columns = vec![[0.0; TOGETHER]; width + 1];
        columns[width] = [1.0; TOGETHER];
        for (i, into) in into.chunks_mut(TOGETHER * stride).enumerate() {
            let rows = &rows[i * TOGETHER * width..];
            // In the place of rows behind the last one it is multiplied again, and not written.
            let last = into.len() / stride - 1;
            let rows: [&[f64]; TOGETHER] =
                std::array::from_fn(|r| &rows[r.min(last) * width..][..width]);
            for (j, column) in columns[..width].iter_mut().enumerate() {
                *column = std::array::from_fn(|r| rows[r][j] as f32);
            }
            self.multiply(&columns, into, stride);
        }
    }
}

impl Linear {
    /// Writes the products with several rows, which are given column by column; those that have no room are not written.
    #[inline(always)]
    pub(super) fn multiply(
        &self,
        columns: &[[f32; TOGETHER]],
        into: &mut [[f32; LANES]],
        stride: usize,
    ) {
        for (t, tile) in self.tiles.iter().enumerate() {
            let products = tile.times(columns);
            for (product, into) in products.iter().zip(into.chunks_exact_mut(stride)) {
                // A tile is two chunks; the second may be one too many.
                let [first, second] = halves(product);
                match &mut into[2 * t..] {
                    [a, b, ..] => (*a, *b) = (first, second),
                    rest => rest[0] = first,
                }
            }
        }
    }
}

/// A block of rows to be transformed.
struct Fill<'a, M> {
    map: &'a M,
    rows: &'a [f64],
    chunks: &'a mut [[f32; LANES]],
    norms: &'a mut [f32],
}

impl<M: Map> SimdBlock for Fill<'_, M> {
    #[inline(always)]
    fn run(self) {
        let stride = self.chunks.len() / self.norms.len();
        self.map.fill(self.rows, self.chunks, stride);
        for (row, norm) in self.chunks.chunks_exact_mut(stride).zip(self.norms) {
            *norm = seal(row);
        }
    }
}

impl WhitenedRows {
    /// The rows of `table` under `map`.
    pub fn new<M: Map>(table: &Table, map: &M, threads: usize) -> Self {
        Self::again(None, table, map, threads)
    }

    /// The same in the place of rows that are no longer needed: fresh memory costs more than what is written to it.
    pub fn again<M: Map>(spare: Option<Self>, table: &Table, map: &M, threads: usize) -> Self {
        assert_eq!(table.width(), map.table_width(), "a map for this table");
        let (rows, width) = (table.rows(), table.width());
        let stride = map.width().div_ceil(LANES).max(1);
        let fits =
            |old: &Self| old.stride == stride && old.width == map.width() && old.rows() == rows;
        let (mut chunks, mut norms, targets) = match spare.filter(fits) {
            Some(mut old) => {
                // They may have been turned into residuals.
                old.targets.copy_from_slice(table.target());
                (old.chunks, old.norms, old.targets)
            }
            None => (vec![[0.0; LANES]; rows * stride], vec![0.0; rows], table.target().to_vec()),
        };
        let blocks: Vec<_> = chunks
            .chunks_mut(BLOCK * stride)
            .zip(norms.chunks_mut(BLOCK))
            .enumerate()
            .map(|(i, (chunks, norms))| {
                let rows = &table.features()[i * BLOCK * width..][..norms.len() * width];
                Mutex::new(Some(Fill { map, rows, chunks, norms }))
            })
            .collect();
        let work = |(): &mut (), taken: Range<usize>| {
            for block in &blocks[taken] {
                let block = block.lock().ok().and_then(|mut block| block.take());
                dispatch(block.expect("every block is taken once"));
            }
        };
        in_blocks(blocks.len(), 1, threads, || (), work);
        drop(blocks);
        Self { width: map.width(), stride, chunks, norms, targets }
    }

    /// How many bytes so many rows of this width take.
    pub fn bytes(rows: usize, width: usize) -> usize {
        rows * (width.next_multiple_of(LANES) * size_of::<f32>()
            + size_of::<f32>()
            + size_of::<f64>())
    }

    /// How many rows there are. This number is private unless the relation is replace-one.
    pub fn rows(&self) -> usize {
        self.norms.len()
    }

    /// How many features a row has.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The same rows with these targets.
    ///
    /// # Panics
    ///
    /// If there is not one for every row.
    pub fn with_targets(self, targets: Vec<f64>) -> Self {
        assert_eq!(targets.len(), self.rows(), "a target for every row");
        Self { targets, ..self }
    }

    /// The chunks of one row.
    #[inline(always)]
    pub(super) fn row(&self, row: usize) -> &[[f32; LANES]] {
        &self.chunks[row * self.stride..][..self.stride]
    }

    /// One pass over all rows.
    pub fn pass<L>(&self, query: &LinearQuery<'_, L>, threads: usize) -> Totals
    where
        L: Fn(f64, f64) -> f64 + Sync,
    {
        self.pass_over(0..self.rows(), query, threads)
    }

    /// One pass over some rows.
    pub fn pass_over<L>(
        &self,
        range: Range<usize>,
        query: &LinearQuery<'_, L>,
        threads: usize,
    ) -> Totals
    where
        L: Fn(f64, f64) -> f64 + Sync,
    {
        assert_eq!(query.weights.len(), self.width, "a weight for every feature");
        let weights = in_lanes(query.weights);
        let work = |into: &mut Gathered, block: Range<usize>| {
            let rows = block.len();
            let block = range.start + block.start..range.start + block.end;
            dispatch(CachedBlock { rows: self, weights: &weights, query, block, into });
            into.end_block(rows);
        };
        let start = || Gathered::new(query.sums(), query.bins());
        let workers = in_blocks(range.len(), BLOCK, threads, start, work);
        Totals::of(workers, query.sums())
    }

    /// Hands the score and the target of every row to `add`, with what a worker has gathered; returns what all have. That must add up
    /// to the same for any split of the rows.
    pub fn fold_scores<S: Send>(
        &self,
        weights: &[f64],
        threads: usize,
        start: impl Fn() -> S + Sync,
        add: impl Fn(&mut S, f64, f64) + Sync,
    ) -> Vec<S> {
        assert_eq!(weights.len(), self.width, "a weight for every feature");
        let weights = in_lanes(weights);
        let work = |state: &mut S, block: Range<usize>| {
            for row in block {
                let mut score = [0.0; LANES];
                for (z, weights) in self.row(row).iter().zip(&weights) {
                    for lane in 0..LANES {
                        score[lane] += f64::from(z[lane]) * weights[lane];
                    }
                }
                add(state, across([score])[0], self.targets[row]);
            }
        };
        in_blocks(self.rows(), BLOCK, threads, start, work)
    }

    /// A copy of the rows at these places.
    pub fn at(&self, places: &[u32]) -> Self {
        let (width, stride) = (self.width, self.stride);
        let mut some = Self { width, stride, chunks: vec![], norms: vec![], targets: vec![] };
        for row in places.iter().map(|&place| place as usize) {
            some.chunks.extend_from_slice(self.row(row));
            some.norms.push(self.norms[row]);
            some.targets.push(self.targets[row]);
        }
        some
    }
}

/// A block of rows to be asked.
struct CachedBlock<'a, L> {
    rows: &'a WhitenedRows,
    weights: &'a [[f64; LANES]],
    query: &'a LinearQuery<'a, L>,
    block: Range<usize>,
    into: &'a mut Gathered,
}

impl<L: Fn(f64, f64) -> f64 + Sync> SimdBlock for CachedBlock<'_, L> {
    #[inline(always)]
    fn run(mut self) {
        let Range { start, end } = self.block;
        let quads = (end - start) / ABREAST;
        for i in (start..).step_by(ABREAST).take(quads) {
            self.add([i, i + 1, i + 2, i + 3]);
        }
        for i in start + quads * ABREAST..end {
            self.add([i]);
        }
    }
}

impl<L: Fn(f64, f64) -> f64 + Sync> CachedBlock<'_, L> {
    /// Adds `R` rows, in two sweeps: scores, then gradients.
    #[inline(always)]
    fn add<const R: usize>(&mut self, rows: [usize; R]) {
        let Self { rows: cached, weights, query, into, .. } = self;
        let chunks = rows.map(|row| &cached.row(row)[..weights.len()]);
        let mut scores = [[0.0; LANES]; R];
        for (j, weights) in weights.iter().enumerate() {
            for r in 0..R {
                for lane in 0..LANES {
                    scores[r][lane] += f64::from(chunks[r][j][lane]) * weights[lane];
                }
            }
        }
        let coefficients = query.clipped_coefficients(
            across(scores),
            rows.map(|row| f64::from(cached.norms[row])),
            rows.map(|row| cached.targets[row]),
            &mut into.counts,
        );
        // Without lanes: the optimiser turns loops over chunks around, and spends its time moving numbers.
        let sums = into.block.as_flattened_mut();
        let rows = chunks.map(|chunks| &chunks.as_flattened()[..sums.len()]);
        for (j, sum) in sums.iter_mut().enumerate() {
            let mut total = *sum;
            for r in 0..R {
                total = total.wrapping_add(raised(coefficients[r] * f64::from(rows[r][j])));
            }
            *sum = total;
        }
    }
}

/// The chunks of a tile.
#[inline(always)]
fn halves(tile: &[f32; TILE]) -> [[f32; LANES]; TILE / LANES] {
    std::array::from_fn(|half| std::array::from_fn(|lane| tile[half * LANES + lane]))
}

/// A single that is no less than a positive x.
///
/// What is rounded is at least the smallest normal single, so that rounding takes at most 2⁻²⁴ of it; a fourfold of that was added before, of
/// which the two roundings in double precision take next to nothing.
#[inline(always)]
pub(super) fn upward(x: f64) -> f32 {
    const MORE: f64 = 1.0 + 1.0 / (1 << 22) as f64;
    (x * MORE + f64::from(f32::MIN_POSITIVE)) as f32
}

/// Makes a row that is not finite zero; returns its norm, rounded up.
#[inline(always)]
fn seal(row: &mut [[f32; LANES]]) -> f32 {
    let mut squares = [0.0; LANES];
    for chunk in row.iter() {
        for lane in 0..LANES {
            squares[lane] += f64::from(chunk[lane]) * f64::from(chunk[lane]);
        }
    }
    let squares = across([squares])[0];
    // The square of any finite single is far from infinite in double precision, and so is their sum.
    if !squares.is_finite() {
        row.fill([0.0; LANES]);
        return f32::MIN_POSITIVE;
    }
    upward(norm(squares))
}
