//! The weights of a network, and its scores.
//!
//! Weights are single precision: half the bytes and twice the lanes of double precision, and a
//! rounding error of 1e-7 drowns in the noise of any private step. Privacy does not depend on it,
//! since what is certified and added are integers ([`clipped_gradient`](super::clipped_gradient)).
use quietly_engine::{
    error::Error,
    kernels::{SimdBlock, dispatch},
    normals::normals,
    splines::Basis,
};
use quietly_noise::Key;

use super::{
    activation::Lanes,
    architecture::NetworkShape,
    batch_gradient::share,
    gradient::{CHUNK, Factors, chunk},
    layer::Layer,
    lookup_table::Tables,
    quantized_rows::QuantizedRows,
};

/// A network with its weights. None of it is private.
#[derive(Clone, Debug)]
pub struct Network {
    pub(super) shape: NetworkShape,
    pub(super) basis: Basis,
    pub(super) layers: Vec<Layer>,
    /// The last layer, if it has one score.
    pub(super) tables: Option<Tables>,
}

impl Network {
    /// A network with independent standard normal weights in every layer, drawn from `seed`.
    ///
    /// That is the published start. It also suits layers above the first, as 1/√d in every layer
    /// keeps scores of the order of one, and as a last layer of zeros would let nothing below it
    /// learn. The seed is public; no draw depends on data.
    ///
    /// # Errors
    ///
    /// What [`NetworkShape::check`] says, or [`Error::Noise`].
    pub fn new(shape: NetworkShape, seed: u64) -> Result<Self, Error> {
        shape.check()?;
        let key = Key::from_seed(seed);
        let mut weights = vec![];
        for (l, of) in shape.layers().into_iter().enumerate() {
            let stream = key.stream(&format!("network layer {l}"));
            // Multiples of 2⁻³⁰, far below single precision of most.
            let drawn = normals(&stream, 0, 30, of.rows * of.outputs)?;
            weights.extend(drawn.into_iter().map(|z| z as f32));
        }
        Self::of(shape, &weights)
    }

    /// A network of known weights, layer after layer, each [input][function][output], fixed ones too.
    ///
    /// # Errors
    ///
    /// What [`NetworkShape::check`] says, and [`Error::Parameter`] if there are not as many weights or one is no number.
    pub fn of(shape: NetworkShape, weights: &[f32]) -> Result<Self, Error> {
        shape.check()?;
        let all: usize = shape.layers().iter().map(|of| of.rows * of.outputs).sum();
        Error::ensure(
            weights.len() == all,
            "weights of the network",
            "as many as its shape has",
            weights.len(),
        )?;
        let finite = weights.iter().all(|w| w.is_finite());
        Error::ensure(finite, "weights of the network", "finite numbers", "one that is not")?;
        let mut weights = weights.iter().copied();
        let mut layers = vec![];
        for (l, of) in shape.layers().into_iter().enumerate() {
            let inputs = (l == 0).then_some(shape.inputs.as_slice());
            let mut layer = Layer::new(of, shape.basis, inputs);
            layer.set(&mut weights);
            layers.push(layer);
        }
        let mut network = Self { basis: shape.basis(), shape, layers, tables: None };
        network.tabulate();
        Ok(network)
    }

    /// All weights, fixed ones too.
    pub fn all_weights(&self) -> Vec<f32> {
        self.layers.iter().flat_map(Layer::get).collect()
    }

    /// How the network looks.
    pub fn shape(&self) -> &NetworkShape {
        &self.shape
    }

    /// The trainable weights, layer after layer, each [input][function][output].
    pub fn weights(&self) -> Vec<f64> {
        let trainable = self.layers.iter().filter(|layer| layer.shape.trainable);
        trainable.flat_map(|layer| layer.get().map(f64::from)).collect()
    }

    /// Takes over trainable weights, each rounded to single precision.
    ///
    /// # Panics
    ///
    /// If there are not as many as [`NetworkShape::weights`] says.
    pub fn set_weights(&mut self, weights: &[f64]) {
        assert_eq!(weights.len(), self.shape.weights(), "as many weights");
        let mut weights = weights.iter().map(|w| *w as f32);
        for layer in self.layers.iter_mut().filter(|layer| layer.shape.trainable) {
            layer.set(&mut weights);
        }
        self.tabulate();
    }

    fn tabulate(&mut self) {
        let [.., below, last] = self.layers.as_slice() else { unreachable!("two layers or more") };
        if last.shape.outputs == 1 {
            let weights: Vec<f64> = last.get().map(f64::from).collect();
            self.tables = Some(Tables::new(self.basis, &weights, below.chunks));
        }
    }

    /// The scores of rows, as many for each as there are outputs.
    pub fn scores(&self, rows: &QuantizedRows, which: &[u32], threads: usize) -> Vec<f32> {
        match self.shape.degree {
            1 => self.scores_of::<2>(rows, which, threads),
            2 => self.scores_of::<3>(rows, which, threads),
            3 => self.scores_of::<4>(rows, which, threads),
            4 => self.scores_of::<5>(rows, which, threads),
            _ => self.scores_of::<6>(rows, which, threads),
        }
    }

    fn scores_of<const Q: usize>(
        &self,
        rows: &QuantizedRows,
        which: &[u32],
        threads: usize,
    ) -> Vec<f32> {
        let outputs = self.shape.loss.outputs();
        let mut scores = vec![0.0; which.len() * outputs];
        let jobs = which.chunks(CHUNK).zip(scores.chunks_mut(CHUNK * outputs)).collect();
        share(
            jobs,
            threads,
            || Factors::<Q>::new(self),
            |factors, (which, scores)| {
                dispatch(Scores { network: self, rows, which, factors, scores })
            },
        );
        scores
    }
}

struct Scores<'a, const Q: usize> {
    network: &'a Network,
    rows: &'a QuantizedRows,
    which: &'a [u32],
    factors: &'a mut Factors<Q>,
    scores: &'a mut [f32],
}

impl<const Q: usize> SimdBlock for Scores<'_, Q> {
    #[inline(always)]
    fn run(self) {
        let outputs = self.network.shape.loss.outputs();
        let rows = chunk(self.rows, self.which);
        self.factors.first(self.network, &rows[..self.which.len()]);
        for (slot, scores) in self.scores.chunks_exact_mut(outputs).enumerate() {
            self.factors.forward(self.network, slot);
            scores.copy_from_slice(&self.factors.scores.as_flattened()[..outputs]);
        }
    }
}

/// Chunks of zeros.
pub(super) fn zeros(chunks: usize) -> Vec<Lanes> {
    vec![Lanes::default(); chunks]
}
