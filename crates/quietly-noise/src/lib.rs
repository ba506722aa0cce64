//! Exact noise on an integer lattice, from cryptographic randomness.
//!
//! ```
//! use quietly_noise::{Key, RoundedGaussian};
//!
//! let key = Key::from_os()?;
//! let mut sums = vec![1_000, -250, 0]; // an exact integer sum, in lattice units
//! RoundedGaussian::new(400.5)?.add(&key.stream("gradient"), 0, &mut sums)?;
//! // `sums` is now round(sums + 400.5·Z): the ideal Gaussian mechanism, rounded.
//! println!("released {sums:?}; randomness: {}", key.source());
//! # Ok::<(), quietly_noise::Error>(())
//! ```
//!
//! # Where to start
//!
//! * [`Key`] is the root of randomness. [`Key::stream`] derives a separate stream for each use.
//! * [`RoundedGaussian`] is independent Gaussian noise, [`DiscreteLaplace`] is noise for pure ε.
//! * [`CorrelatedNoise`] is Gaussian noise that is correlated between steps and rounded once.
//! * [`ExponentialMechanism`] selects one of several candidates. [`Bits`] makes single exact draws.
//! * [`Error`] is the only error type.
//!
//! # What is promised
//!
//! Given uniform bits, every distribution is **exact**: there is no table of approximate
//! probabilities, no floating point between the bits and the noise, and no statistical distance to
//! account for. The proofs stand at the head of the source files: `ziggurat.rs` (a cover of the
//! normal density by regions of equal area), `lazy_normal.rs` (a normal variable as a real number
//! whose bits are drawn when needed), `round.rs` and `correlated.rs` (rounding it once), `exp.rs`
//! (the error bound of the exponential), `stream_layout.rs` (no two uses share random bits) and
//! `rounded_gaussian.rs` (the theorem that combines them).
//!
//! Noise is a function of (key, stream name, step, coordinate). It is the same for any number of
//! threads, in any order, on any machine. No error and no `Debug` output contains data or key
//! bytes.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub use crate::{
    bits::Bits,
    correlated::CorrelatedNoise,
    error::Error,
    exact_numbers::{Dyadic, Ratio},
    exponential_mechanism::ExponentialMechanism,
    key::{Key, Source, Stream},
    laplace::DiscreteLaplace,
    rounded_gaussian::RoundedGaussian,
};

mod bits;
mod correlated;
mod error;
mod exact_numbers;
mod exp;
mod exponential_mechanism;
mod fill;
mod key;
mod laplace;
mod lazy_normal;
mod lazy_uniform;
mod rejection;
mod round;
mod rounded_gaussian;
mod stream_layout;
mod ziggurat;
