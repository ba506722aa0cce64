//! Passes over rows: the loops that a fit spends its time in.
//!
//! Every pass turns each record into a vector of integers of bounded norm, or into one bin of a
//! histogram, and adds them up. [`lattice`](quietly_core::lattice) proves the bound. Integers add up to
//! the same in any order, so a pass gives the same bits on any number of threads and for any
//! order of the rows. Within a record, numbers are added in one fixed order, four lanes abreast
//! and never fused, so that every processor gives the same bits too.
//!
//! * [`WhitenedRows`] holds transformed rows, for methods that come back to them many times.
//! * [`Rows`] reads a table as it is, once: whole, or the rows that [`allocate`] gives a step.
//! * [`LinearQuery`] is what is asked of every row: a clipped gradient, a bin of its norm, or both.
use quietly_core::lattice::Lattice;

pub use self::{
    allocate::{Bucket, allocate, places},
    bent::Bent,
    cached::{Map, WhitenedRows},
    grid::Bins,
    moment::second_moment,
    rows::Rows,
    transform::{Affine, Linear},
    workers::{Totals, in_blocks},
};

mod allocate;
mod bent;
mod cached;
mod grid;
mod moment;
mod rows;
#[cfg(test)]
mod tests;
mod transform;
mod workers;

/// How many numbers of a row are worked on abreast, on every processor.
const LANES: usize = 4;

/// How many rows are worked on abreast, so that one need not wait for the other.
const ABREAST: usize = 4;

/// What is asked of every row z with target y.
///
/// Its residual is c = `residual(⟨z, weights⟩, y)`. With a clip, the gradients c·z, held to that
/// norm, are added up on its lattice; with a grid, the norms |c|·‖z‖ before clipping are counted.
pub struct LinearQuery<'a, L> {
    /// One weight per feature of the transformed row.
    pub weights: &'a [f64],
    /// From a row's score and target to the factor of its gradient.
    pub residual: L,
    /// Asks for the sum.
    pub clip: Option<&'a Lattice>,
    /// Asks for the counts.
    pub grid: Option<&'a Bins>,
}

impl<L: Fn(f64, f64) -> f64 + Sync> LinearQuery<'_, L> {
    fn bins(&self) -> usize {
        self.grid.map_or(0, Bins::bins)
    }

    /// The width of the sum that is asked for.
    fn sums(&self) -> usize {
        self.clip.map_or(0, |_| self.weights.len())
    }

    /// Counts rows with these scores, norms and targets; returns their clipped coefficients.
    #[inline(always)]
    fn clipped_coefficients<const R: usize>(
        &self,
        scores: [f64; R],
        norms: [f64; R],
        targets: [f64; R],
        counts: &mut [u64],
    ) -> [f64; R] {
        let residuals: [f64; R] = std::array::from_fn(|r| (self.residual)(scores[r], targets[r]));
        if let Some(grid) = self.grid {
            for r in 0..R {
                counts[grid.bin(residuals[r].abs() * norms[r])] += 1;
            }
        }
        match self.clip {
            Some(clip) => std::array::from_fn(|r| clip.clipped_coefficient(residuals[r], norms[r])),
            None => [0.0; R],
        }
    }
}

/// Work on one block of rows, compiled for every kind of processor.
///
/// Not a closure: those are not always inlined, and what is not inlined is compiled for the least
/// of them.
pub trait SimdBlock {
    fn run(self);
}

/// Runs a block with the best instructions this processor has.
pub fn dispatch(block: impl SimdBlock) {
    struct Inlined<B>(B);
    impl<B: SimdBlock> pulp::NullaryFnOnce for Inlined<B> {
        type Output = ();

        #[inline(always)]
        fn call(self) {
            self.0.run();
        }
    }
    pulp::Arch::new().dispatch(Inlined(block));
}

/// The sums of the lanes of several rows, in the one order we use.
#[inline(always)]
fn across<const R: usize>(rows: [[f64; LANES]; R]) -> [f64; R] {
    // Opaque to the optimiser, which otherwise sees the rows side by side here, turns the loop
    // before around to suit, and spends its time moving numbers between lanes.
    std::hint::black_box(rows).map(|lanes| (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]))
}

/// `values` in chunks of lanes; the last is filled up with zeros.
fn in_lanes(values: &[f64]) -> Vec<[f64; LANES]> {
    let (chunks, rest) = values.as_chunks();
    let mut lanes = chunks.to_vec();
    if !rest.is_empty() {
        lanes.push(filled(rest));
    }
    lanes
}

/// Fewer numbers than lanes, filled up with zeros.
#[inline(always)]
fn filled(rest: &[f64]) -> [f64; LANES] {
    std::array::from_fn(|lane| rest.get(lane).copied().unwrap_or(0.0))
}
