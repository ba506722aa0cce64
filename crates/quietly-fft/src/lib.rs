//! Real fast Fourier transforms, behind functions without type parameters.
//!
//! ```
//! use quietly_fft::{forward, inverse};
//!
//! let mut signal = vec![1.0, 2.0, 0.0, 0.0];
//! let mut spectrum = forward(&mut signal);
//! assert_eq!(spectrum[0].re, 3.0);
//! // The inverse is not normalised: it returns the signal times its length.
//! let back = inverse(&mut spectrum, 4);
//! assert_eq!(back, [4.0, 8.0, 0.0, 0.0]);
//! ```
//!
//! # Why this crate exists
//!
//! `rustfft` is generic code: whichever crate names its types compiles all of it. Without this
//! crate, the accountant and each of its test programs would do so again. The functions here are
//! concrete, so the transform is compiled once and linked.
//!
//! The results are those of `realfft`, bit for bit. They are the same for every call on one
//! machine; another processor may choose other vector instructions and round differently. Callers
//! that need a bound must allow for the rounding of a transform, as the accountant does.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

use std::cell::RefCell;

use realfft::RealFftPlanner;

pub use realfft::num_complex::Complex64;

thread_local! {
    /// Plans are kept for the next transform of the same length.
    static PLANNER: RefCell<RealFftPlanner<f64>> = RefCell::new(RealFftPlanner::new());
}

/// The first `signal.len() / 2 + 1` coefficients Σ_j signal_j·e^(-2πi·jk/n), n the length.
///
/// The other coefficients are their complex conjugates. `signal` is used as scratch space: its
/// contents afterwards are unspecified.
///
/// # Panics
///
/// If `signal` is empty.
pub fn forward(signal: &mut [f64]) -> Vec<Complex64> {
    assert!(!signal.is_empty(), "a transform needs at least one point");
    let plan = PLANNER.with_borrow_mut(|planner| planner.plan_fft_forward(signal.len()));
    let mut spectrum = plan.make_output_vec();
    plan.process(signal, &mut spectrum).expect("the lengths match the plan");
    spectrum
}

/// The inverse of [`forward`] for a signal of `length` points, times `length`.
///
/// `spectrum` is used as scratch space: its contents afterwards are unspecified.
///
/// # Panics
///
/// If `length` is zero, if `spectrum` does not have `length / 2 + 1` coefficients, or if a
/// coefficient that must be real (the first, and the last of an even length) is not.
pub fn inverse(spectrum: &mut [Complex64], length: usize) -> Vec<f64> {
    assert!(length > 0, "a transform needs at least one point");
    let plan = PLANNER.with_borrow_mut(|planner| planner.plan_fft_inverse(length));
    let mut signal = plan.make_output_vec();
    plan.process(spectrum, &mut signal).expect("the spectrum is that of a real signal");
    signal
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fixed signal with no symmetry.
    fn signal(length: usize) -> Vec<f64> {
        (0..length).map(|j| ((j * j * 7 + 3 * j) % 101) as f64 / 101.0 - 0.3).collect()
    }

    /// The definition, in O(n²) operations. The limit is above the rounding of both sums: at most
    /// n·log₂ n units of the sum of magnitudes.
    #[test]
    fn coefficients_are_those_of_the_definition() {
        for length in [1, 2, 16, 128, 1024] {
            let input = signal(length);
            let spectrum = forward(&mut input.clone());
            assert_eq!(spectrum.len(), length / 2 + 1);
            for (k, found) in spectrum.iter().enumerate() {
                let turn = |j: usize| std::f64::consts::TAU * ((j * k) % length) as f64;
                let term = |(j, x): (usize, &f64)| Complex64::cis(-turn(j) / length as f64) * x;
                let exact: Complex64 = input.iter().enumerate().map(term).sum();
                assert!((found - exact).norm() < 1e-11, "{length} {k}: {found} {exact}");
                // Another signal has another transform.
                assert!(length < 16 || (found - exact - 1e-9).norm() > 1e-10);
            }
        }
    }

    #[test]
    fn the_inverse_returns_the_signal_times_its_length() {
        for length in [2, 16, 4096] {
            let input = signal(length);
            let back = inverse(&mut forward(&mut input.clone()), length);
            for (x, y) in input.iter().zip(&back) {
                assert!((x - y / length as f64).abs() < 1e-14, "{length}: {x} {y}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "the spectrum is that of a real signal")]
    fn a_spectrum_of_the_wrong_length_is_refused() {
        inverse(&mut [Complex64::default(); 3], 8);
    }
}
