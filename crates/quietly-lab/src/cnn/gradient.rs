//! Sums of clipped gradients, picture by picture.
//!
//! # Proof: clipped gradients of a CNN
//!
//! A picture's gradient is computed in single precision, alone, by a fixed order of operations: it is a vector z of 32-bit
//! numbers that hangs on the picture and on the released weights, and on nothing else. How near it is to the true gradient is
//! of no concern. It enters as the integers round(a·z), with a = [`Lattice::coefficient`] for the coefficient 1 and the
//! norm of z. Squares of 32-bit numbers are exact in 64 bits, neither overflow nor vanish, and are added up in some fixed order,
//! which is what that file's proof asks for: ‖round(a·z)‖ ≤ C. A gradient with an entry that is no number has an infinite
//! norm or none, for which a is 0; then nothing is added at all.
//!
//! # Proof: sums of CNN gradients are exact
//!
//! An entry of one picture is below 2³¹, and there are fewer than 2³² pictures, as places are 32 bits wide: integers add up to
//! the same in any order and on any number of threads.
use std::thread;

use quietly_core::lattice::{self, Lattice, lowered, raised};

use super::{
    dataset::{Picture, Pictures},
    network::{ConvNet, Each, Pass, Walk},
};

/// The sum of the clipped gradients of some pictures, in units of the lattice.
pub(super) fn clipped(
    network: &ConvNet,
    pictures: &Pictures,
    which: &[u32],
    lattice: &Lattice,
    threads: usize,
) -> Vec<i64> {
    let width = network.weights().len();
    let share = which.len().div_ceil(threads.max(1)).max(1);
    let part = |which: &[u32]| {
        let each = Sum { lattice, raised: vec![0; width], count: 0 };
        pulp::Arch::new().dispatch(Walk { network, pictures, which, each }).lowered()
    };
    let mut all = vec![0_i64; width];
    thread::scope(|scope| {
        let workers: Vec<_> = which.chunks(share).map(|w| scope.spawn(move || part(w))).collect();
        for worker in workers {
            let sum = worker.join().expect("a sum does not panic");
            all.iter_mut().zip(sum).for_each(|(all, part)| *all += part);
        }
    });
    all
}

/// A sum on its way.
struct Sum<'a> {
    lattice: &'a Lattice,
    raised: Vec<i64>,
    count: usize,
}

impl Each for Sum<'_> {
    #[inline(always)]
    fn picture(&mut self, network: &ConvNet, pass: &mut Pass, picture: Picture<'_>) {
        pass.look(network, picture);
        if pass.back(network, picture.label) {
            self.count += add(&pass.gradient, self.lattice, &mut self.raised);
        }
    }
}

impl Sum<'_> {
    fn lowered(self) -> Vec<i64> {
        self.raised.into_iter().map(|sum| lowered(sum, self.count)).collect()
    }
}

/// Adds one gradient to a [raised] sum; how many were added: one, or none if it is no vector.
#[inline(always)]
pub(super) fn add(gradient: &[f32], lattice: &Lattice, sum: &mut [i64]) -> usize {
    let (eights, rest) = gradient.as_chunks::<8>();
    let mut lanes = [0.0_f64; 8];
    for eight in eights {
        for (lane, g) in lanes.iter_mut().zip(eight) {
            *lane += f64::from(*g) * f64::from(*g);
        }
    }
    let squares =
        lanes.iter().sum::<f64>() + rest.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>();
    let coefficient = lattice.clipped_coefficient(1.0, lattice::norm(squares));
    if coefficient == 0.0 {
        return 0;
    }
    for (sum, g) in sum.iter_mut().zip(gradient) {
        *sum = sum.wrapping_add(raised(coefficient * f64::from(*g)));
    }
    1
}
