//! The privacy cost of a differentially private computation, as a certified interval.
//!
//! ```
//! use quietly_accounting::{Event, Neighbours, epsilon};
//!
//! // A thousand noisy sums over Poisson samples of one percent.
//! let run = Event::poisson(0.01, 1.0)?.repeat(1000)?;
//! let cost = epsilon(&run, Neighbours::AddRemove, 1e-5)?;
//! assert!(cost.lower > 1.82 && cost.upper < 1.83);
//! # Ok::<(), quietly_accounting::Error>(())
//! ```
//!
//! # Where to start
//!
//! * [`Event`] describes what was run. The code that samples and adds noise builds it.
//! * [`epsilon`], [`delta`] and [`curve`] compute its cost. [`calibrate`] finds the least noise for
//!   a budget.
//! * [`renyi`] is a second accountant: closed forms, faster, looser, and independent of the first.
//! * [`TrialCount`] gives the cost of releasing the best of a random number of trials.
//! * [`CorrelatedGaussian`] describes noise that is correlated between steps.
//! * [`Error`] is the only error type.
//!
//! # What is promised
//!
//! The upper end of every [`PrivacyBound`] is certified: it includes the errors of truncation,
//! grid, Fourier transform and rounding. The lower end is what some pair of neighbouring tables
//! leaks. No data and no fresh randomness enter, so the same event has the same cost on every
//! machine with IEEE arithmetic. An event without a theorem is an error that names an alternative,
//! never a guess. For example, a shuffle cannot be priced as Poisson sampling.
//!
//! A *unit* is the unit of privacy: one row, or all rows of one person. A *noise multiplier* is the
//! standard deviation of the noise over the sensitivity, the largest norm that one unit can add to
//! a sum.
//!
//! The specification is `docs/spec/accounting.md`. Proofs stand at the head of the files that use
//! them.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub use crate::{
    accountant::{PrivacyBound, curve, delta, epsilon},
    calibrate::{Calibration, calibrate, gaussian_mu},
    correlated::{CorrelatedGaussian, Participation, Strategy},
    error::Error,
    event::{Event, Neighbours},
    objective_perturbation::DerivativeBound,
    private_selection::TrialCount,
};

mod accountant;
mod calibrate;
mod composition;
mod convolution;
mod correlated;
mod dominating_pair;
mod error;
mod event;
mod gaussian;
mod interval;
mod laplace;
mod monte_carlo;
mod normal;
mod objective_perturbation;
mod pld_grid;
mod private_selection;
mod random_allocation;
mod ratio_distribution;
pub mod renyi;
mod sampled_gaussian;
mod theorems;
