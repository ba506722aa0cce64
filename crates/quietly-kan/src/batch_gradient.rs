//! Sums of gradients over a batch.
//!
//! Rows are taken a sheet at a time. First their factors are found, chunk by chunk; then every
//! input adds up the products that concern its own weights. So no two threads ever write to the
//! same place, and a sum is taken in the order of the rows whatever the number of threads.
//!
//! An input first sorts the rows of a sheet by its interval: all rows of one interval add to the
//! same o + 1 functions, whose sums then stay in registers.
use std::{sync::Mutex, thread};

use quietly_engine::kernels::{SimdBlock, dispatch};

use super::{
    buckets::{Add, Entry},
    clipped_gradient::{Exact, Plain, Sensitivity, Side},
    gradient::{CHUNK, Factors, chunk},
    layer::{Layer, TILE},
    network::Network,
    quantized_rows::QuantizedRows,
};

/// Rows per sheet: enough to fill registers once per interval, few enough for the cache.
const SHEET: usize = 1024;

/// The numbers that a sum is made of.
pub(super) trait Arithmetic: Sync {
    /// An entry of δ.
    type Delta: Copy + Default + Send + Sync;
    /// A spline of a unit, as it is stored.
    type Word: Copy + Default + Send + Sync;
    /// A spline, as it is multiplied.
    type Factor: Copy + Default;
    /// A sum of so many products.
    type Partial: Copy + Default;
    /// A sum of any number.
    type Total: Copy + Send;

    /// How many products a partial sum may have.
    const RUN: usize;

    fn word(b: f32) -> Self::Word;
    fn square(word: Self::Word) -> u64;
    fn factor(word: Self::Word) -> Self::Factor;
    fn byte(byte: u8) -> Self::Factor;
    fn product(sum: Self::Partial, delta: Self::Delta, factor: Self::Factor) -> Self::Partial;
    fn flush(total: &mut Self::Total, sum: Self::Partial);

    /// Clips: writes the δ of row `slot` of a chunk of so many rows, scaled to the clipping norm.
    fn clip(&self, sides: &mut [Side<'_, Self::Delta>], slot: usize, chunk: usize);
}

impl Network {
    /// Adds the gradients of these rows to `out`, each clipped to norm `clip` on a lattice.
    ///
    /// The layout is that of [`weights`](Network::weights). The sum is exact: it is the same for
    /// any order of the rows and any number of threads, and `i64` holds 2³⁰ rows with room.
    ///
    /// # Panics
    ///
    /// If `out` is not as long as the weights, a row is not there, or `clip` is not within 1e-9
    /// to 1e9. All are public.
    pub fn clipped_sum(
        &self,
        rows: &QuantizedRows,
        which: &[u32],
        clip: f64,
        threads: usize,
        out: &mut [i64],
    ) -> Sensitivity {
        let exact = Exact::new(self, clip);
        self.sum(&exact, rows, which, threads, out);
        exact.sensitivity()
    }

    /// The same without privacy: gradients as they are, in floating point.
    pub fn plain_sum(&self, rows: &QuantizedRows, which: &[u32], threads: usize, out: &mut [f64]) {
        self.sum(&Plain, rows, which, threads, out);
    }

    fn sum<A: Arithmetic>(
        &self,
        kind: &A,
        rows: &QuantizedRows,
        which: &[u32],
        threads: usize,
        out: &mut [A::Total],
    ) {
        assert_eq!(out.len(), self.shape.weights(), "a sum for every weight");
        match self.shape.degree {
            1 => self.sum_of::<A, 2>(kind, rows, which, threads, out),
            2 => self.sum_of::<A, 3>(kind, rows, which, threads, out),
            3 => self.sum_of::<A, 4>(kind, rows, which, threads, out),
            4 => self.sum_of::<A, 5>(kind, rows, which, threads, out),
            _ => self.sum_of::<A, 6>(kind, rows, which, threads, out),
        }
    }

    fn sum_of<A: Arithmetic, const Q: usize>(
        &self,
        kind: &A,
        rows: &QuantizedRows,
        which: &[u32],
        threads: usize,
        out: &mut [A::Total],
    ) {
        let mut sheet = Sheet::<A, Q>::new(self, which.len().min(SHEET));
        for which in which.chunks(SHEET) {
            let pieces = sheet.pieces(which);
            share(
                pieces,
                threads,
                || Factors::<Q>::new(self),
                |factors, piece| dispatch(Find { kind, network: self, rows, factors, piece }),
            );
            let (sheet, columns) = (&sheet, self.columns(out));
            share(
                columns,
                threads,
                || vec![Entry::default(); which.len()],
                |entries, column| {
                    dispatch(Add::<A, Q> { sheet, network: self, rows, which, entries, column });
                },
            );
        }
    }

    /// The weights of every input of every trainable layer.
    fn columns<'a, T>(&self, out: &'a mut [T]) -> Vec<Column<'a, T>> {
        let mut columns = vec![];
        let mut rest = out;
        for (l, layer) in self.layers.iter().enumerate().filter(|(_, l)| l.shape.trainable) {
            let (mut splines, mut plain) = (0, 0);
            let mut next = 0;
            for _ in 0..layer.shape.inputs {
                let spline = layer.splines.get(splines).is_some_and(|start| *start == next);
                let (functions, input) = if spline {
                    splines += 1;
                    (self.shape.basis, splines - 1)
                } else {
                    plain += 1;
                    (1, plain - 1)
                };
                next += functions as u32;
                let (out, after) = rest.split_at_mut(functions * layer.shape.outputs);
                rest = after;
                columns.push(Column { layer: l, spline, input, out });
            }
        }
        columns
    }
}

/// One input and the sums for its weights.
pub(super) struct Column<'a, T> {
    pub(super) layer: usize,
    pub(super) spline: bool,
    pub(super) input: usize,
    pub(super) out: &'a mut [T],
}

/// The factors of the rows of a sheet.
pub(super) struct Sheet<A: Arithmetic, const Q: usize> {
    pub(super) layers: Vec<SheetLayer<A, Q>>,
}

pub(super) struct SheetLayer<A: Arithmetic, const Q: usize> {
    /// Which layer of the network this is.
    pub(super) layer: usize,
    pub(super) tiles: usize,
    /// [chunk of rows][tile][row].
    pub(super) deltas: Vec<[A::Delta; TILE]>,
    /// How many inputs have splines here rather than with the rows.
    pub(super) inputs: usize,
    /// [row][input].
    pub(super) intervals: Vec<u8>,
    pub(super) words: Vec<[A::Word; Q]>,
}

/// A chunk of rows, and where their factors go.
struct Piece<'a, A: Arithmetic, const Q: usize> {
    which: &'a [u32],
    layers: Vec<PieceLayer<'a, A, Q>>,
}

struct PieceLayer<'a, A: Arithmetic, const Q: usize> {
    layer: usize,
    inputs: usize,
    deltas: &'a mut [[A::Delta; TILE]],
    intervals: &'a mut [u8],
    words: &'a mut [[A::Word; Q]],
}

impl<A: Arithmetic, const Q: usize> Sheet<A, Q> {
    fn new(network: &Network, rows: usize) -> Self {
        let rows = rows.next_multiple_of(CHUNK);
        let layers = network.layers.iter().enumerate().filter(|(_, l)| l.shape.trainable);
        let of = |(l, layer): (usize, &Layer)| {
            let tiles = layer.shape.outputs.div_ceil(TILE);
            let inputs = if l > 0 { layer.shape.inputs } else { 0 };
            SheetLayer {
                layer: l,
                tiles,
                deltas: vec![Default::default(); rows * tiles],
                inputs,
                intervals: vec![0; rows * inputs],
                words: vec![[A::Word::default(); Q]; rows * inputs],
            }
        };
        Self { layers: layers.map(of).collect() }
    }

    fn pieces<'a>(&'a mut self, which: &'a [u32]) -> Vec<Piece<'a, A, Q>> {
        let mut pieces: Vec<_> =
            which.chunks(CHUNK).map(|which| Piece { which, layers: vec![] }).collect();
        for of in &mut self.layers {
            let mut deltas = of.deltas.chunks_exact_mut(CHUNK * of.tiles);
            let (mut intervals, mut words) = (of.intervals.as_mut_slice(), of.words.as_mut_slice());
            for piece in &mut pieces {
                let here;
                (here, intervals) = intervals.split_at_mut(CHUNK * of.inputs);
                let there;
                (there, words) = words.split_at_mut(CHUNK * of.inputs);
                piece.layers.push(PieceLayer {
                    layer: of.layer,
                    inputs: of.inputs,
                    deltas: deltas.next().expect("room for every chunk"),
                    intervals: here,
                    words: there,
                });
            }
        }
        pieces
    }
}

/// Finds the factors of a chunk of rows.
struct Find<'a, A: Arithmetic, const Q: usize> {
    kind: &'a A,
    network: &'a Network,
    rows: &'a QuantizedRows,
    factors: &'a mut Factors<Q>,
    piece: Piece<'a, A, Q>,
}

impl<A: Arithmetic, const Q: usize> SimdBlock for Find<'_, A, Q> {
    #[inline(always)]
    fn run(self) {
        let Find { kind, network, rows, factors, piece } = self;
        let mut layers = piece.layers;
        let chunk = chunk(rows, piece.which);
        let chunk = &chunk[..piece.which.len()];
        factors.first(network, chunk);
        for (slot, row) in chunk.iter().enumerate() {
            factors.forward(network, slot);
            factors.backward(network, row.label);
            let mut sides = Vec::with_capacity(layers.len());
            for of in &mut layers {
                let mut squares = if of.layer == 0 { row.squares } else { 0 };
                let here = slot * of.inputs..(slot + 1) * of.inputs;
                let splines = &factors.splines[of.layer];
                if of.layer > 0 {
                    of.intervals[here.clone()].copy_from_slice(&splines.intervals);
                }
                for (into, values) in of.words[here].iter_mut().zip(&splines.values) {
                    for k in 0..Q {
                        into[k] = A::word(values[k]);
                        squares += A::square(into[k]);
                    }
                }
                sides.push(Side {
                    deltas: &factors.deltas[of.layer],
                    scale: network.layers[of.layer].scale,
                    squares,
                    into: of.deltas,
                });
            }
            kind.clip(&mut sides, slot, CHUNK);
        }
    }
}

/// Gives jobs to idle workers.
pub(super) fn share<J: Send, S>(
    jobs: Vec<J>,
    threads: usize,
    start: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, J) + Sync,
) {
    let others = threads.min(jobs.len()).saturating_sub(1);
    let jobs = Mutex::new(jobs.into_iter());
    let next = || jobs.lock().unwrap_or_else(|poison| poison.into_inner()).next();
    let run = || {
        let mut state = start();
        while let Some(job) = next() {
            work(&mut state, job);
        }
    };
    thread::scope(|scope| {
        for _ in 0..others {
            scope.spawn(run);
        }
        run();
    });
}
