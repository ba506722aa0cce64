//! Convex losses, their public constants, and the sets that weights are kept in.
//!
//! The objective is f(w, z) = ℓ(w, z) + r(w): a data term ℓ(w, (x, y)) = q(⟨w, x⟩, y) and a
//! regulariser r. Privacy hangs on two numbers, both suprema over everything that is possible:
//! the longest gradient of ℓ, and the longest difference of two gradients of ℓ at one w. Neither
//! sees r, which is the same for all records, nor any data.
//!
//! * [`Loss`] is q: its values, slopes and bends.
//! * [`constants()`] bounds the gradients, from what is public about rows and weights.
//! * [`Set`] is where the weights live, and projects onto it; [`Within`] cuts a ball out of it.
//! * [`Regulariser`] is r.
#![allow(dead_code, reason = "the algorithms that use these come next")]

#[allow(unused_imports, reason = "the algorithms that use them come next")]
pub(crate) use self::{
    constants::{Constants, Domain, Norms, constants, constants_clipped},
    regulariser::Regulariser,
    within::{Ball, Within},
};
pub use self::{loss::Loss, set::Set};

mod constants;
mod loss;
mod project;
#[cfg(test)]
mod projection_tests;
mod regulariser;
mod set;
mod softmax;
mod spread;
mod within;
