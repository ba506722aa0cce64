//! Gradients of pictures, of rank P: their norms without writing them down, and their sums on a lattice.
//!
//! The gradient of one picture is ∇ = Σ_p α_p ⊗ x_p over its P patches, so that
//!
//! ‖∇‖² = Σ_pp' <α_p, α_p'> <x_p, x_p'>.   (4.1)
//!
//! # Proof: clipped gradients of patches
//!
//! A picture enters as the integers q = round(a·Σ_p α_p x_p), with a from [`Lattice::coefficient`] for a norm N. That file
//! proves ‖q‖ ≤ C if N is not below the norm of what is computed, up to roundings that it counts. Here patches may cancel:
//! the sum (4.1) can be small where its terms are large, and so can entries of the gradient. Let A = Σ_p ‖α_p‖ ‖x_p‖ and
//! u = 2⁻⁵³. Every term of (4.1) is two inner products, of 2m and of d numbers, and a product; by Cauchy and Schwarz the
//! computed sum is within (2m + d + P² + 8)·u·A² of the exact one. An entry is a sum of P products of three numbers, so
//! that the computed gradient is within (P + 4)·u·A of the exact one, in norm. [`Norm::of`] adds twice the one under the root
//! and twice the other behind it. Where nothing cancels this changes the twelfth digit.
//!
//! A picture is looked at alone: its q depends on it and on the released weights, and on no other picture.
use std::{ops::Range, thread};

use quietly_core::lattice::{self, Lattice, lowered, raised};

use super::{
    network::{Network, Pass},
    patches::{Image, Images},
};

/// What all pictures add up to.
pub(crate) struct Summed {
    /// The sum of all gradients on the lattice, in its units.
    pub(crate) sum: Vec<i64>,
    /// For each picture, what a student of the run wants to know; empty unless asked for.
    pub(crate) looks: Vec<Look>,
}

/// What one picture did in one step.
pub(crate) struct Look {
    /// <w_f, x_p>, at f·P + p.
    pub(crate) inner: Vec<f64>,
    /// s·α, where s is what clipping leaves.
    pub(crate) alpha: Vec<f64>,
    /// ‖∇‖ before clipping.
    pub(crate) norm: f64,
}

/// Pictures `range`, looked at one after the other with the best instructions this processor has.
struct Walk<'a, F> {
    network: &'a Network,
    images: &'a Images,
    range: Range<usize>,
    each: F,
}

impl<F: FnMut(&Pass, Image<'_>)> pulp::NullaryFnOnce for Walk<'_, F> {
    type Output = ();

    #[inline(always)]
    fn call(mut self) {
        let mut pass = Pass::new(self.network, self.images.patches());
        for at in self.range {
            let image = self.images.image(at);
            pass.look(self.network, image);
            (self.each)(&pass, image);
        }
    }
}

/// The sum of all clipped gradients, on any number of threads: integers add up to the same.
pub(crate) fn clipped(
    network: &Network,
    images: &Images,
    lattice: &Lattice,
    threads: usize,
    looking: bool,
) -> Summed {
    let share = images.len().div_ceil(threads.max(1)).max(1);
    let part = |range: Range<usize>| {
        let mut sum = Sum::new(network);
        let mut looks = Vec::new();
        let each = |pass: &Pass, image: Image<'_>| {
            let norm = Norm::of(pass, image, network);
            let coefficient = lattice.clipped_coefficient(1.0, norm.bound);
            sum.add(pass, image, coefficient);
            if looking {
                looks.push(Look::of(pass, coefficient * lattice.step(), norm.value));
            }
        };
        pulp::Arch::new().dispatch(Walk { network, images, range, each });
        (sum.lowered(), looks)
    };
    let ranges =
        (0..images.len()).step_by(share).map(|from| from..(from + share).min(images.len()));
    let mut all = Summed { sum: vec![0; network.weights.len()], looks: Vec::new() };
    thread::scope(|scope| {
        let workers: Vec<_> = if threads > 1 {
            ranges.map(|range| Err(scope.spawn(|| part(range)))).collect()
        } else {
            ranges.map(|range| Ok(part(range))).collect()
        };
        for worker in workers {
            let (sum, looks) = worker.unwrap_or_else(|w| w.join().expect("a sum does not panic"));
            // A picture adds less than 2³¹ to an entry, and 2³¹ pictures fit into no memory.
            all.sum.iter_mut().zip(sum).for_each(|(all, part)| *all += part);
            all.looks.extend(looks);
        }
    });
    all
}

/// The sum of all gradients as they are: for pictures that are made up, and for nothing that is to be private.
pub(crate) fn plain(network: &Network, images: &Images) -> (Vec<f64>, Vec<Look>) {
    let (mut sum, mut looks) = (vec![0.0; network.weights.len()], Vec::new());
    let each = |pass: &Pass, image: Image<'_>| {
        let patches = image.patches();
        for (line, alpha) in
            sum.chunks_exact_mut(network.dimension).zip(pass.alpha.chunks_exact(patches))
        {
            for (p, a) in alpha.iter().enumerate().filter(|(_, a)| **a != 0.0) {
                line.iter_mut().zip(image.patch(p)).for_each(|(g, x)| *g += a * x);
            }
        }
        looks.push(Look::of(pass, 1.0, Norm::of(pass, image, network).value));
    };
    pulp::Arch::new().dispatch(Walk { network, images, range: 0..images.len(), each });
    (sum, looks)
}

impl Look {
    fn of(pass: &Pass, kept: f64, norm: f64) -> Look {
        let alpha = pass.alpha.iter().map(|a| kept * a).collect();
        Look { inner: pass.inner.clone(), alpha, norm }
    }
}

/// The norm of a picture's gradient.
pub(crate) struct Norm {
    /// By (4.1).
    pub(crate) value: f64,
    /// Not below the norm, whatever rounding did, for [`Lattice::coefficient`].
    pub(crate) bound: f64,
}

impl Norm {
    pub(crate) fn of(pass: &Pass, image: Image<'_>, network: &Network) -> Norm {
        let patches = image.patches();
        let factors = |p: usize, other: usize| {
            let lines = pass.alpha.chunks_exact(patches);
            lines.map(|line| line[p] * line[other]).sum::<f64>()
        };
        let (mut square, mut apart) = (0.0, 0.0);
        for p in 0..patches {
            let own = factors(p, p);
            apart += (own * image.square(p)).sqrt();
            square += own * image.square(p);
            for other in 0..p {
                square += 2.0 * factors(p, other) * image.gram[p * patches + other];
            }
        }
        let (p, d) = (patches as f64, network.dimension as f64);
        let terms = 2.0 * network.filters as f64 + d + p * p + 8.0;
        let missed = terms * f64::EPSILON * apart * apart;
        // A NaN stays one: `max` would hide it.
        let value = if square < 0.0 { 0.0 } else { square.sqrt() };
        let within = if square < 0.0 { missed } else { square + missed };
        Norm { value, bound: lattice::norm(within) + (p + 4.0) * f64::EPSILON * apart }
    }
}

/// A sum of gradients on the lattice, and how many were added to each filter.
struct Sum {
    dimension: usize,
    raised: Vec<i64>,
    counts: Vec<usize>,
}

impl Sum {
    fn new(network: &Network) -> Sum {
        let (raised, counts) = (vec![0; network.weights.len()], vec![0; 2 * network.filters]);
        Sum { dimension: network.dimension, raised, counts }
    }

    #[inline(always)]
    fn add(&mut self, pass: &Pass, image: Image<'_>, coefficient: f64) {
        if coefficient == 0.0 {
            return;
        }
        let patches = image.patches();
        let lines = self.raised.chunks_exact_mut(self.dimension).zip(&mut self.counts);
        let mut held = [0.0; 2];
        let mut mixed = Vec::new();
        for ((line, count), alpha) in lines.zip(pass.alpha.chunks_exact(patches)) {
            // Half of the filters are asleep.
            if alpha.iter().all(|a| *a == 0.0) {
                continue;
            }
            *count += 1;
            if let ([a, b], 2) = (alpha, patches) {
                held = [coefficient * a, coefficient * b];
                let both = image.patch(0).iter().zip(image.patch(1));
                for (sum, (x, y)) in line.iter_mut().zip(both) {
                    *sum = sum.wrapping_add(raised(held[0] * x + held[1] * y));
                }
                continue;
            }
            mixed.clear();
            mixed.resize(self.dimension, 0.0);
            for (p, a) in alpha.iter().enumerate() {
                held[0] = coefficient * a;
                mixed.iter_mut().zip(image.patch(p)).for_each(|(g, x)| *g += held[0] * x);
            }
            for (sum, g) in line.iter_mut().zip(&mixed) {
                *sum = sum.wrapping_add(raised(*g));
            }
        }
    }

    fn lowered(self) -> Vec<i64> {
        let lines = self.raised.chunks_exact(self.dimension).zip(&self.counts);
        lines.flat_map(|(line, count)| line.iter().map(|s| lowered(*s, *count))).collect()
    }
}
