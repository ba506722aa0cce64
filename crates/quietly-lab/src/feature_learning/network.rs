//! The two-layer network: m filters for each label, a power of the ReLU, a fixed second layer.
use quietly_engine::{error::Error, linalg::dot_in_eight, normals::normals};
use quietly_noise::Stream;
use serde::{Deserialize, Serialize};

use super::patches::{Image, Images};
use crate::GRID;

/// f(x) = F₊(x) - F₋(x), where F_j is the mean over m filters w of Σ_p max(<w, x_p>, 0)^q.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Network {
    pub(crate) filters: usize,
    pub(crate) power: f64,
    pub(crate) dimension: usize,
    /// The m filters of label 1, then those of label -1.
    pub(crate) weights: Vec<f64>,
}

impl Network {
    /// A network with normal weights of standard deviation `start`.
    pub(crate) fn drawn(
        filters: usize,
        power: f64,
        dimension: usize,
        start: f64,
        stream: &Stream,
    ) -> Result<Network, Error> {
        let mut weights = normals(stream, 0, GRID, 2 * filters * dimension)?;
        weights.iter_mut().for_each(|w| *w *= start);
        Ok(Network { filters, power, dimension, weights })
    }

    /// f of one picture, given patch after patch: its sign is the label.
    ///
    /// # Panics
    ///
    /// If the numbers are not those of whole patches.
    pub fn score(&self, picture: &[f64]) -> f64 {
        assert_eq!(picture.len() % self.dimension, 0, "whole patches");
        let mut score = 0.0;
        for patch in picture.chunks_exact(self.dimension) {
            for (f, w) in self.weights.chunks_exact(self.dimension).enumerate() {
                score += self.sign(f) * dot_in_eight(w, patch).max(0.0).powf(self.power);
            }
        }
        score / self.filters as f64
    }

    /// The filters, those of label 1 first: public, as they were released.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// 1 or -1: the label of a filter.
    pub(crate) fn sign(&self, filter: usize) -> f64 {
        if filter < self.filters { 1.0 } else { -1.0 }
    }

    /// The share of pictures whose label the network gets wrong; a score of 0 is wrong.
    pub(crate) fn error(&self, images: &Images) -> f64 {
        let mut pass = Pass::new(self, images.patches());
        let wrong = (0..images.len()).filter(|&i| pass.look(self, images.image(i)) <= 0.0).count();
        wrong as f64 / images.len().max(1) as f64
    }
}

/// What one picture does to the network: <w, x_p> and the factors of its gradient, filter after filter.
pub(crate) struct Pass {
    /// <w_f, x_p>, at f·P + p.
    pub(crate) inner: Vec<f64>,
    /// α with ∇_f = Σ_p α_fp x_p: j/m σ'(<w_f, x_p>) ℓ'(y f(x)) y.
    pub(crate) alpha: Vec<f64>,
}

impl Pass {
    pub(crate) fn new(network: &Network, patches: usize) -> Pass {
        let size = 2 * network.filters * patches;
        Pass { inner: vec![0.0; size], alpha: vec![0.0; size] }
    }

    /// Looks at a picture alone; returns y·f(x).
    #[inline(always)]
    pub(crate) fn look(&mut self, network: &Network, image: Image<'_>) -> f64 {
        let (patches, m) = (image.patches(), network.filters as f64);
        let lines = network.weights.chunks_exact(network.dimension);
        let (mut score, whole) = (0.0, whole(network.power));
        for (f, w) in lines.enumerate() {
            for p in 0..patches {
                let z = dot_in_eight(w, image.patch(p));
                let before = power(z.max(0.0), network.power, whole);
                self.inner[f * patches + p] = z;
                // For now σ'(z) alone.
                self.alpha[f * patches + p] = network.power * before;
                score += network.sign(f) * before * z.max(0.0);
            }
        }
        let margin = image.label * score / m;
        // ℓ'(z) = -1/(1 + e^z).
        let slope = -image.label / (1.0 + margin.exp()) / m;
        for (f, alpha) in self.alpha.chunks_exact_mut(patches).enumerate() {
            alpha.iter_mut().for_each(|a| *a *= network.sign(f) * slope);
        }
        margin
    }
}

/// q - 1, if it is a whole number worth multiplying out.
fn whole(power: f64) -> Option<i32> {
    (power.fract() == 0.0 && power <= 9.0).then_some(power as i32 - 1)
}

/// z^(q-1).
#[inline(always)]
fn power(z: f64, q: f64, whole: Option<i32>) -> f64 {
    match whole {
        Some(n) => (1..n).fold(z, |product, _| product * z),
        None => z.powf(q - 1.0),
    }
}
