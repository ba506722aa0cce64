//! What filters are made of: signal, memorised noise, and the noise of privacy.
//!
//! Lemma 4.2 of the paper, with clipping: after t steps
//!
//! w = w₀ + j·Γ·v/‖v‖² + Σ_i Φ_i ξ_i/‖ξ_i‖² - η·Σ_s z_s
//!
//! for a filter of label j, where i runs over all patches of noise. Γ never falls, Φ_i rises if the label of its picture is j
//! (the paper's overlined Φ, "memorised" here) and falls otherwise (the underlined one, "pushed away").
//!
//! All of this is computed from the pictures without noise: nothing here can be released.
use quietly_engine::linalg::{Factor, dot, norm};

use super::{
    gradient::Look,
    network::Network,
    patches::{Images, World},
    trajectory::Moment,
};

/// Γ and Φ, followed step by step.
pub(crate) struct Decomposition {
    /// Γ of every filter.
    signal: Vec<f64>,
    /// Φ, at (i·(P - 1) + p - 1)·2m + f: picture by picture, patch by patch.
    noise: Vec<f64>,
    /// <w₀, x_p>, picture by picture as they were looked at first.
    first: Vec<Vec<f64>>,
}

impl Decomposition {
    pub(crate) fn new(network: &Network, images: &Images) -> Decomposition {
        let filters = 2 * network.filters;
        let count = images.len() * (images.patches() - 1) * filters;
        Decomposition { signal: vec![0.0; filters], noise: vec![0.0; count], first: Vec::new() }
    }

    /// One step by the recursion: w moves by -`step`·Σ s·α ⊗ x.
    pub(crate) fn advance(
        &mut self,
        network: &Network,
        images: &Images,
        looks: &[Look],
        step: f64,
    ) {
        let (patches, filters) = (images.patches(), self.signal.len());
        for (i, look) in looks.iter().enumerate() {
            let image = images.image(i);
            for f in 0..filters {
                let alpha = &look.alpha[f * patches..][..patches];
                self.signal[f] -= step * network.sign(f) * alpha[0] * image.label * image.square(0);
                for (p, alpha) in alpha.iter().enumerate().skip(1) {
                    let at = (i * (patches - 1) + p - 1) * filters + f;
                    self.noise[at] -= step * alpha * image.square(p);
                }
            }
        }
    }

    /// Where the coefficients stand, and what the filters themselves have in common with the pictures.
    pub(crate) fn moment(
        &mut self,
        step: u64,
        network: &Network,
        images: &Images,
        looks: &[Look],
    ) -> Moment {
        if self.first.is_empty() {
            self.first = looks.iter().map(|look| look.inner.clone()).collect();
        }
        let (patches, filters) = (images.patches(), self.signal.len());
        let mut moment = Moment { step, ..Moment::default() };
        moment.signal = self.signal.iter().fold(0.0, |most, s| s.abs().max(most));
        for (at, phi) in self.noise.iter().enumerate() {
            let label = images.image(at / filters / (patches - 1)).label;
            let own = label == network.sign(at % filters);
            let into = if own { &mut moment.memorised } else { &mut moment.pushed_away };
            *into = phi.abs().max(*into);
        }
        for (look, first) in looks.iter().zip(&self.first) {
            moment.steepest = look.norm.max(moment.steepest);
            for (at, (now, then)) in look.inner.iter().zip(first).enumerate() {
                let into =
                    if at % patches == 0 { &mut moment.raw_signal } else { &mut moment.raw_noise };
                *into = (now - then).abs().max(*into);
            }
        }
        moment
    }

    /// The same by projection: how far apart the two are, over 1 + the largest coefficient, and how much of `moved`
    /// (w - w₀ + η·Σ z) neither explains. None if the patches of noise are too many to be told apart.
    pub(crate) fn disagreement(
        &self,
        network: &Network,
        images: &Images,
        world: &World,
        moved: &[f64],
    ) -> Option<f64> {
        let (d, filters) = (network.dimension, self.signal.len());
        let patches = images.patches();
        let noise: Vec<&[f64]> = (0..images.len())
            .flat_map(|i| (1..patches).map(move |p| images.image(i).patch(p)))
            .collect();
        if noise.len() >= d {
            return None;
        }
        let gram: Vec<f64> = noise.iter().flat_map(|a| noise.iter().map(|b| dot(a, b))).collect();
        let factor = Factor::new(gram, noise.len())?;
        let square = dot(&world.signal, &world.signal);
        let (mut apart, mut largest) = (0.0_f64, 0.0_f64);
        for (f, moved) in moved.chunks_exact(d).enumerate() {
            let sign = network.sign(f);
            let signal = sign * dot(moved, &world.signal);
            apart = apart.max((signal - self.signal[f]).abs());
            largest = largest.max(signal.abs());
            let mut shadows: Vec<f64> = noise.iter().map(|x| dot(x, moved)).collect();
            factor.solve(&mut shadows);
            let mut left = moved.to_vec();
            quietly_engine::linalg::add(&mut left, &world.signal, -sign * signal / square);
            for (at, (share, x)) in shadows.iter().zip(&noise).enumerate() {
                let phi = share * dot(x, x);
                apart = apart.max((phi - self.noise[at * filters + f]).abs());
                largest = largest.max(phi.abs());
                quietly_engine::linalg::add(&mut left, x, -share);
            }
            apart = apart.max(norm(&left));
        }
        Some(apart / (1.0 + largest))
    }
}
