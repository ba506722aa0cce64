//! One layer: its weights, and products of slabs of them with splines.
//!
//! Weights lie as [input][function][output], the outputs filled up with zeros to whole chunks of
//! lanes. The o + 1 functions that are not zero at a point are then one slab of memory. A row's
//! numbers are multiplied and added in one order that depends on the network alone, never fused,
//! so that they have the same bits whatever is computed beside them and on every processor.
use super::{
    activation::{LANES, Lanes, across},
    architecture::{Input, LayerShape},
    quantized_rows::Row,
};

/// Outputs are filled up to a multiple of this.
pub(super) const TILE: usize = 16;
/// How many inputs are worked on at a time, at most.
const GROUP: usize = 16;
/// How many bytes of weights a group has, at most: half a fast cache.
const GROUP_BYTES: usize = 16 << 10;

#[derive(Clone, Debug)]
pub(super) struct Layer {
    pub(super) shape: LayerShape,
    /// Chunks of lanes per function.
    pub(super) chunks: usize,
    /// 1/√d.
    pub(super) scale: f32,
    weights: Vec<Lanes>,
    /// The first function of every spline input.
    pub(super) splines: Vec<u32>,
    /// The one function of every plain input.
    pub(super) plain: Vec<u32>,
    group: usize,
}

impl Layer {
    /// A layer of zeros, of splines with so many functions or of these inputs.
    pub(super) fn new(shape: LayerShape, basis: usize, inputs: Option<&[Input]>) -> Self {
        let (mut splines, mut plain, mut next) = (vec![], vec![], 0);
        for i in 0..shape.inputs {
            match inputs.map_or(Input::Spline, |inputs| inputs[i]) {
                Input::Spline => {
                    splines.push(next);
                    next += basis as u32;
                }
                Input::Plain => {
                    plain.push(next);
                    next += 1;
                }
            }
        }
        let padded = shape.outputs.next_multiple_of(TILE);
        let group = (GROUP_BYTES / (4 * basis * padded)).clamp(1, GROUP);
        let chunks = padded / LANES;
        let weights = vec![[0.0; LANES]; shape.rows * chunks];
        let scale = (1.0 / (shape.inputs as f64).sqrt()) as f32;
        Self { shape, chunks, scale, weights, splines, plain, group }
    }

    /// Takes over weights [function][output].
    pub(super) fn set(&mut self, weights: impl Iterator<Item = f32>) {
        let mut weights = weights;
        for row in self.weights.chunks_exact_mut(self.chunks) {
            let row = &mut row.as_flattened_mut()[..self.shape.outputs];
            row.iter_mut().for_each(|w| *w = weights.next().expect("as many weights"));
        }
    }

    /// The weights [function][output].
    pub(super) fn get(&self) -> impl Iterator<Item = f32> {
        let rows = self.weights.chunks_exact(self.chunks);
        rows.flat_map(|row| row.as_flattened()[..self.shape.outputs].iter().copied())
    }

    /// One weight.
    pub(super) fn weight(&self, function: usize, output: usize) -> f64 {
        f64::from(self.weights[function * self.chunks..].as_flattened()[output])
    }

    /// Σ word · weight for every output of several rows, `chunks` chunks for each.
    #[inline(always)]
    pub(super) fn of_rows<const Q: usize>(&self, rows: &[Row<'_>], sums: &mut [Lanes]) {
        sums.fill([0.0; LANES]);
        for first in (0..self.splines.len()).step_by(self.group) {
            let starts = &self.splines[first..self.splines.len().min(first + self.group)];
            for (row, sums) in rows.iter().zip(sums.chunks_exact_mut(self.chunks)) {
                let (mut at, mut factors) = ([0; GROUP], [[0.0; Q]; GROUP]);
                let intervals = &row.intervals[first..][..starts.len()];
                for ((at, start), interval) in at.iter_mut().zip(starts).zip(intervals) {
                    *at = (*start as usize + usize::from(*interval)) * self.chunks;
                }
                let words = &row.words[first * Q..][..starts.len() * Q];
                for (to, word) in factors.as_flattened_mut().iter_mut().zip(words) {
                    *to = f32::from(*word);
                }
                self.add(&at[..starts.len()], &factors[..starts.len()], sums);
            }
        }
        for (row, sums) in rows.iter().zip(sums.chunks_exact_mut(self.chunks)) {
            for (start, word) in self.plain.iter().zip(row.plain) {
                // Most columns of a one-hot code are zero.
                if *word != 0 {
                    self.add(&[*start as usize * self.chunks], &[[f32::from(*word)]], sums);
                }
            }
        }
    }

    /// The same for one row of splines as numbers.
    #[inline(always)]
    pub(super) fn of_splines<const Q: usize>(
        &self,
        intervals: &[u8],
        factors: &[[f32; Q]],
        sums: &mut [Lanes],
    ) {
        sums.fill([0.0; LANES]);
        for ((start, interval), factors) in self.splines.iter().zip(intervals).zip(factors) {
            let at = (*start as usize + usize::from(*interval)) * self.chunks;
            self.add(&[at], &[*factors], sums);
        }
    }

    /// Adds slabs of weights from `at` on, each function with its factor.
    #[inline(always)]
    fn add<const Q: usize>(&self, at: &[usize], factors: &[[f32; Q]], sums: &mut [Lanes]) {
        let mut chunk = 0;
        while chunk + 4 <= self.chunks {
            self.add_tile::<Q, 4>(at, factors, chunk, sums);
            chunk += 4;
        }
        while chunk + 2 <= self.chunks {
            self.add_tile::<Q, 2>(at, factors, chunk, sums);
            chunk += 2;
        }
    }

    #[inline(always)]
    #[expect(clippy::needless_range_loop, reason = "iterators here become calls without lanes")]
    fn add_tile<const Q: usize, const T: usize>(
        &self,
        at: &[usize],
        factors: &[[f32; Q]],
        chunk: usize,
        sums: &mut [Lanes],
    ) {
        let sums: &mut [Lanes; T] = sums[chunk..].first_chunk_mut().expect("a tile");
        let mut kept = *sums;
        for i in 0..at.len().min(factors.len()) {
            let (slab, factors) = (&self.weights[at[i] + chunk..], &factors[i]);
            let tile = |k: usize| slab[k * self.chunks..].first_chunk::<T>().expect("a tile");
            let (w, mut products) = (tile(0), [[0.0; LANES]; T]);
            for t in 0..T {
                for lane in 0..LANES {
                    products[t][lane] = w[t][lane] * factors[0];
                }
            }
            for k in 1..Q {
                let w = tile(k);
                for t in 0..T {
                    for lane in 0..LANES {
                        products[t][lane] += w[t][lane] * factors[k];
                    }
                }
            }
            for t in 0..T {
                for lane in 0..LANES {
                    kept[t][lane] += products[t][lane];
                }
            }
        }
        *sums = kept;
    }

    /// Σ_j δ_j Σ_k b'_k w_{jk} for one input: what its value does to the loss.
    #[inline(always)]
    pub(super) fn back<const Q: usize>(
        &self,
        input: usize,
        interval: u8,
        slopes: &[f32; Q],
        deltas: &[Lanes],
    ) -> f32 {
        let at = (self.splines[input] as usize + usize::from(interval)) * self.chunks;
        let slab = &self.weights[at..][..Q * self.chunks];
        let mut sums = [0.0; LANES];
        for (chunk, delta) in deltas.iter().enumerate() {
            let mut w = [0.0; LANES];
            for lane in 0..LANES {
                w[lane] = slab[chunk][lane] * slopes[0];
            }
            for k in 1..Q {
                let row = &slab[k * self.chunks + chunk];
                for lane in 0..LANES {
                    w[lane] += row[lane] * slopes[k];
                }
            }
            for lane in 0..LANES {
                sums[lane] += w[lane] * delta[lane];
            }
        }
        across(sums)
    }
}
