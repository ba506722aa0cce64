//! The gradient of one row: in every layer an outer product of two vectors.
//!
//! With r the derivative of the loss by the scores, and b' the derivatives of the splines,
//!
//! * the last layer has δ = r,
//! * the layer below it δ_i = (1 - u_i²)/√d Σ_j δ_j Σ_k w_{jik} b'_k(u_i), where u = tanh(a),
//!
//! and the gradient of every layer is δ ⊗ φ/√d. Its squared norm is ‖δ‖²‖φ‖²/d, exactly.
use super::{
    activation::{LANES, Lanes, tanh_of},
    architecture::NetworkLoss,
    network::{Network, zeros},
    quantized_rows::{ONE, QuantizedRows, Row},
};

/// How many rows are worked on together, so that a group of weights serves all of them.
pub(super) const CHUNK: usize = 32;

/// Room for what one row needs, layer by layer.
pub(super) struct Factors<const Q: usize> {
    /// What the rows of a chunk add up to in the first layer.
    first: Vec<Lanes>,
    /// u, for every hidden layer.
    units: Vec<Vec<Lanes>>,
    /// The splines of the inputs of every layer; those of the first come with the rows.
    pub(super) splines: Vec<Splines<Q>>,
    /// The derivatives of the units' functions, if they are tabulated.
    slopes: Vec<Lanes>,
    /// The scores, filled up with zeros.
    pub(super) scores: Vec<Lanes>,
    /// δ of every layer, filled up with zeros.
    pub(super) deltas: Vec<Vec<Lanes>>,
}

/// Splines of the inputs of a layer that are not zero.
pub(super) struct Splines<const Q: usize> {
    pub(super) intervals: Vec<u8>,
    pub(super) values: Vec<[f32; Q]>,
    slopes: Vec<[f32; Q]>,
    /// Whether anything reads them.
    needed: bool,
}

impl<const Q: usize> Factors<Q> {
    pub(super) fn new(network: &Network) -> Self {
        let layers = &network.layers;
        let last = layers.len() - 1;
        let splines = layers.iter().enumerate().map(|(l, layer)| {
            let tabulated = l == last && network.tables.is_some();
            let needed = l > 0 && (layer.shape.trainable || !tabulated);
            let size = if needed { layer.shape.inputs } else { 0 };
            let (values, slopes) = (vec![[0.0; Q]; size], vec![[0.0; Q]; size]);
            Splines { intervals: vec![0; size], values, slopes, needed }
        });
        Self {
            first: zeros(CHUNK * layers[0].chunks),
            units: layers[..last].iter().map(|layer| zeros(layer.chunks)).collect(),
            splines: splines.collect(),
            slopes: zeros(layers[last - 1].chunks),
            scores: zeros(layers[last].chunks),
            deltas: layers.iter().map(|layer| zeros(layer.chunks)).collect(),
        }
    }

    /// Adds up the first layer for a chunk of rows.
    #[inline(always)]
    pub(super) fn first(&mut self, network: &Network, rows: &[Row<'_>]) {
        let layer = &network.layers[0];
        layer.of_rows::<Q>(rows, &mut self.first[..rows.len() * layer.chunks]);
    }

    /// From the first layer of row `slot` of the chunk to its scores.
    #[inline(always)]
    pub(super) fn forward(&mut self, network: &Network, slot: usize) {
        let chunks = network.layers[0].chunks;
        let sums = &self.first[slot * chunks..][..chunks];
        let scale = (f64::from(network.layers[0].scale) / ONE) as f32;
        for (unit, sum) in self.units[0].iter_mut().zip(sums) {
            *unit = tanh_of(sum, scale);
        }
        for (l, layer) in network.layers.iter().enumerate().skip(1) {
            let last = l + 1 == network.layers.len();
            let (below, above) = self.units.split_at_mut(l);
            let below = &below[l - 1];
            self.splines[l].fill(network, below);
            if last && let Some(tables) = &network.tables {
                self.scores[0][0] = tables.at::<Q>(below, &mut self.slopes) * layer.scale;
                return;
            }
            let into = if last { &mut self.scores } else { &mut above[0] };
            layer.of_splines(&self.splines[l].intervals, &self.splines[l].values, into);
            if last {
                into.as_flattened_mut().iter_mut().for_each(|f| *f *= layer.scale);
            } else {
                into.iter_mut().for_each(|a| *a = tanh_of(a, layer.scale));
            }
        }
    }

    /// From the scores to δ of every layer.
    #[inline(always)]
    pub(super) fn backward(&mut self, network: &Network, label: f32) {
        let last = network.layers.len() - 1;
        let outputs = network.shape.loss.outputs();
        let residuals = &mut self.deltas[last].as_flattened_mut()[..outputs];
        residual(network.shape.loss, &self.scores.as_flattened()[..outputs], label, residuals);
        for l in (1..=last).rev() {
            let layer = &network.layers[l];
            let (below, above) = self.deltas.split_at_mut(l);
            let (into, deltas, units) = (&mut below[l - 1], &above[0], &self.units[l - 1]);
            if l == last && network.tables.is_some() {
                let factor = deltas[0][0] * layer.scale;
                for ((into, slope), u) in into.iter_mut().zip(&self.slopes).zip(units) {
                    for lane in 0..LANES {
                        into[lane] = factor * slope[lane] * (1.0 - u[lane] * u[lane]);
                    }
                }
                continue;
            }
            let splines = &self.splines[l];
            let into = into.as_flattened_mut().iter_mut().zip(units.as_flattened());
            for (i, (into, u)) in into.take(layer.shape.inputs).enumerate() {
                let slope = layer.back(i, splines.intervals[i], &splines.slopes[i], deltas);
                *into = slope * layer.scale * (1.0 - u * u);
            }
        }
    }
}

impl<const Q: usize> Splines<Q> {
    #[inline(always)]
    fn fill(&mut self, network: &Network, units: &[Lanes]) {
        if !self.needed {
            return;
        }
        let into = self.intervals.iter_mut().zip(&mut self.values).zip(&mut self.slopes);
        for (((interval, values), slopes), v) in into.zip(units.as_flattened()) {
            let point = network.basis.at(f64::from(*v));
            *interval = point.interval as u8;
            *values = std::array::from_fn(|k| point.values[k] as f32);
            *slopes = std::array::from_fn(|k| point.slopes[k] as f32);
        }
    }
}

/// The rows of a chunk.
#[inline(always)]
pub(super) fn chunk<'a>(rows: &'a QuantizedRows, which: &[u32]) -> [Row<'a>; CHUNK] {
    let mut chunk = [rows.row(which[0]); CHUNK];
    for (row, i) in chunk.iter_mut().zip(which) {
        *row = rows.row(*i);
    }
    chunk
}

/// The derivative of the loss by the scores. A label that is not a number makes none of them one.
fn residual(loss: NetworkLoss, scores: &[f32], label: f32, into: &mut [f32]) {
    let y = f64::from(label);
    match loss {
        NetworkLoss::Logistic => {
            into[0] = (-y / (1.0 + libm::exp(y * f64::from(scores[0])))) as f32;
        }
        NetworkLoss::Huber { width } => {
            into[0] = (f64::from(scores[0]) - y).clamp(-width, width) as f32;
        }
        NetworkLoss::Softmax { .. } => {
            let top = scores.iter().fold(f32::NEG_INFINITY, |top, f| top.max(*f));
            let mut sum = 0.0;
            for (into, f) in into.iter_mut().zip(scores) {
                let e = libm::expf(f - top);
                *into = e;
                sum += f64::from(e);
            }
            let share = (1.0 / sum) as f32;
            for (class, into) in into.iter_mut().enumerate() {
                let own = if class as f32 == label { 1.0 } else { 0.0 };
                *into = *into * share - own + 0.0 * label;
            }
        }
    }
}
