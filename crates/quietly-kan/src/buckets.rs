//! Products of factors, added up input by input.
//!
//! The rows of a sheet are sorted by their interval, so that the sums for the functions of one interval stay in registers.
use quietly_engine::kernels::SimdBlock;

use super::{
    batch_gradient::{Arithmetic, Column, Sheet, SheetLayer},
    gradient::CHUNK,
    layer::TILE,
    network::Network,
    quantized_rows::QuantizedRows,
};

/// One row of a sheet: where its δ are, and the splines of the input at hand.
#[derive(Clone, Copy)]
pub(super) struct Entry<F, const Q: usize> {
    at: u32,
    factors: [F; Q],
}

impl<F: Copy + Default, const Q: usize> Default for Entry<F, Q> {
    fn default() -> Self {
        Self { at: 0, factors: [F::default(); Q] }
    }
}

/// Adds up what a sheet of rows says about the weights of one input.
pub(super) struct Add<'a, A: Arithmetic, const Q: usize> {
    pub(super) sheet: &'a Sheet<A, Q>,
    pub(super) network: &'a Network,
    pub(super) rows: &'a QuantizedRows,
    pub(super) which: &'a [u32],
    pub(super) entries: &'a mut [Entry<A::Factor, Q>],
    pub(super) column: Column<'a, A::Total>,
}

impl<A: Arithmetic, const Q: usize> SimdBlock for Add<'_, A, Q> {
    #[inline(always)]
    fn run(self) {
        let Add { sheet, network, rows, which, entries, column } = self;
        let Column { layer, spline, input, out } = column;
        let outputs = network.layers[layer].shape.outputs;
        let of = sheet.layers.iter().find(|of| of.layer == layer).expect("a trainable layer");
        if !spline {
            let of_rows = which.iter().map(|i| rows.row(*i).plain[input]).enumerate();
            let mut some = vec![];
            for (row, byte) in of_rows.filter(|(_, byte)| *byte != 0) {
                some.push(Entry { at: place(row, of.tiles), factors: [A::byte(byte)] });
            }
            add_bucket::<A, 1>(&some, &of.deltas, of.tiles, outputs, out);
            return;
        }
        let mut ends = [0u32; 256];
        if layer == 0 {
            let cells = RowCells { rows, which, input };
            sort::<A, Q>(cells, which.len(), &mut ends, entries, of.tiles);
        } else {
            sort::<A, Q>(UnitCells { of, input }, which.len(), &mut ends, entries, of.tiles);
        }
        let mut start = 0;
        for (interval, end) in ends[..network.basis.intervals].iter().enumerate() {
            let bucket = &entries[start..*end as usize];
            add_bucket::<A, Q>(
                bucket,
                &of.deltas,
                of.tiles,
                outputs,
                &mut out[interval * outputs..],
            );
            start = *end as usize;
        }
    }
}

/// Where a row's δ start among those of a sheet.
#[inline(always)]
fn place(row: usize, tiles: usize) -> u32 {
    ((row / CHUNK) * tiles * CHUNK + row % CHUNK) as u32
}

/// The splines of one input for the rows of a sheet.
trait Cells<A: Arithmetic, const Q: usize> {
    fn interval(&self, row: usize) -> u8;
    fn factors(&self, row: usize) -> [A::Factor; Q];
}

/// Those of the first layer.
struct RowCells<'a> {
    rows: &'a QuantizedRows,
    which: &'a [u32],
    input: usize,
}

impl<A: Arithmetic, const Q: usize> Cells<A, Q> for RowCells<'_> {
    #[inline(always)]
    fn interval(&self, row: usize) -> u8 {
        self.rows.interval(self.which[row], self.input)
    }

    #[inline(always)]
    fn factors(&self, row: usize) -> [A::Factor; Q] {
        let words = self.rows.words::<Q>(self.which[row], self.input);
        let mut factors = [A::Factor::default(); Q];
        for k in 0..Q {
            factors[k] = A::byte(words[k]);
        }
        factors
    }
}

/// Those of the layers above.
struct UnitCells<'a, A: Arithmetic, const Q: usize> {
    of: &'a SheetLayer<A, Q>,
    input: usize,
}

impl<A: Arithmetic, const Q: usize> Cells<A, Q> for UnitCells<'_, A, Q> {
    #[inline(always)]
    fn interval(&self, row: usize) -> u8 {
        self.of.intervals[row * self.of.inputs + self.input]
    }

    #[inline(always)]
    fn factors(&self, row: usize) -> [A::Factor; Q] {
        let words = &self.of.words[row * self.of.inputs + self.input];
        let mut factors = [A::Factor::default(); Q];
        for k in 0..Q {
            factors[k] = A::factor(words[k]);
        }
        factors
    }
}

/// Sorts rows by interval, each interval in the order of the rows, and says where each ends.
#[inline(always)]
fn sort<A: Arithmetic, const Q: usize>(
    cells: impl Cells<A, Q>,
    rows: usize,
    ends: &mut [u32; 256],
    entries: &mut [Entry<A::Factor, Q>],
    tiles: usize,
) {
    // Interval i counts at i + 1, so that sums of counts are where the intervals start.
    for row in 0..rows {
        ends[usize::from(cells.interval(row)) + 1] += 1;
    }
    for i in 1..256 {
        ends[i] += ends[i - 1];
    }
    for row in 0..rows {
        let next = &mut ends[usize::from(cells.interval(row))];
        entries[*next as usize] = Entry { at: place(row, tiles), factors: cells.factors(row) };
        *next += 1;
    }
}

/// Adds the products of rows that share an interval to its functions, `outputs` sums for each.
#[inline(always)]
#[expect(clippy::needless_range_loop, reason = "iterators here become calls without lanes")]
fn add_bucket<A: Arithmetic, const Q: usize>(
    bucket: &[Entry<A::Factor, Q>],
    deltas: &[[A::Delta; TILE]],
    tiles: usize,
    outputs: usize,
    out: &mut [A::Total],
) {
    for run in bucket.chunks(A::RUN) {
        if outputs == 1 {
            let mut sums = [A::Partial::default(); Q];
            for entry in run {
                let delta = deltas[entry.at as usize][0];
                for k in 0..Q {
                    sums[k] = A::product(sums[k], delta, entry.factors[k]);
                }
            }
            out.iter_mut().zip(sums).for_each(|(out, sum)| A::flush(out, sum));
            continue;
        }
        for tile in 0..tiles {
            let deltas = &deltas[tile * CHUNK..];
            let mut sums = [[A::Partial::default(); TILE]; Q];
            for entry in run {
                let delta = &deltas[entry.at as usize];
                // Spelt out: a loop over functions would keep the sums in memory.
                add_products::<A, Q, 0>(&mut sums, delta, &entry.factors);
                add_products::<A, Q, 1>(&mut sums, delta, &entry.factors);
                add_products::<A, Q, 2>(&mut sums, delta, &entry.factors);
                add_products::<A, Q, 3>(&mut sums, delta, &entry.factors);
                add_products::<A, Q, 4>(&mut sums, delta, &entry.factors);
                add_products::<A, Q, 5>(&mut sums, delta, &entry.factors);
            }
            let lanes = TILE.min(outputs - tile * TILE);
            for k in 0..Q {
                let out = &mut out[k * outputs + tile * TILE..][..lanes];
                for lane in 0..lanes {
                    A::flush(&mut out[lane], sums[k][lane]);
                }
            }
        }
    }
}

/// Adds the products of a tile with function K, if there are so many.
#[inline(always)]
fn add_products<A: Arithmetic, const Q: usize, const K: usize>(
    sums: &mut [[A::Partial; TILE]; Q],
    delta: &[A::Delta; TILE],
    factors: &[A::Factor; Q],
) {
    if K < Q {
        let (sums, factor) = (&mut sums[K], factors[K]);
        for lane in 0..TILE {
            sums[lane] = A::product(sums[lane], delta[lane], factor);
        }
    }
}
