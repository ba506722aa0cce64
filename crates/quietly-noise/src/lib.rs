//! Exact noise on an integer lattice, from cryptographic randomness.
//!
//! ```
//! use quietly_noise::{Key, RoundedNormal};
//!
//! let key = Key::from_os()?;
//! let mut sums = vec![1_000, -250, 0]; // an exact integer sum, in lattice units
//! RoundedNormal::new(400.5)?.add(&key.stream("gradient"), 0, &mut sums)?;
//! // `sums` is now round(sums + 400.5·Z): the ideal Gaussian mechanism, rounded.
//! println!("released {sums:?}; randomness: {}", key.source());
//! # Ok::<(), quietly_noise::Error>(())
//! ```
//!
//! # Where to start
//!
//! * [`Key`] is the root of randomness; [`Key::stream`] gives every use a stream of its own.
//! * [`RoundedNormal`] is independent Gaussian noise, [`DiscreteLaplace`] the one for pure ε.
//! * [`Correlated`] is noise correlated between steps, rounded once.
//! * [`Tree`] and [`Banded`] take secret sums and release them under a strategy matrix.
//! * [`ExponentialMechanism`] chooses one of many; [`Bits`] makes exact single choices.
//! * [`Error`] is the only error type.
//!
//! # What is promised
//!
//! Every law is **exact** given uniform bits: there is no table of approximate probabilities, no
//! floating point between the bits and the noise, and no statistical distance to account for. The
//! proofs stand at the head of the source files: `table.rs` (a cover of the normal density with
//! exactly equal areas), `real.rs` (a normal variable as a real number with late bits), `round.rs`
//! and `correlated.rs` (rounding it once), `exp.rs` (the one error bound), `layout.rs` (which bits
//! belong to whom), `normal.rs` (how they fit together).
//!
//! Noise is a function of (key, stream name, step, coordinate): the same for any number of threads,
//! in any order, on any machine. No error and no `Debug` output contains data or key bytes.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub use crate::{
    banded::{Banded, BandedInverse},
    bits::Bits,
    choice::ExponentialMechanism,
    correlated::Correlated,
    error::Error,
    key::{Key, Source, Stream},
    laplace::DiscreteLaplace,
    normal::RoundedNormal,
    scale::{Dyadic, Ratio},
    tree::{Prefix, Tree},
};

mod accept;
mod banded;
mod bits;
mod choice;
mod correlated;
mod error;
mod exp;
mod fill;
mod key;
mod laplace;
mod layout;
mod normal;
mod real;
mod round;
mod scale;
mod table;
mod tree;
mod uniform;

#[cfg(test)]
mod leaks;
#[cfg(test)]
mod stats;
