//! What a differentially private computation costs: certified, in milliseconds, for the scheme that ran.
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
//! * [`Event`] says what was done: a plain value that the sampler and the noise make.
//! * [`epsilon`], [`delta`], [`curve`] say what it costs; [`calibrate`] finds the least noise for a budget.
//! * [`renyi`] is a second opinion by closed forms: quicker, looser, and independent of the rest.
//! * [`Trials`] prices the best of a random number of trials.
//! * [`Correlated`] describes noise that is correlated from step to step.
//! * [`Error`] is the only error type.
//!
//! # What is promised
//!
//! Every [`Answer`] has a certified upper end: theorem, truncation, grid, Fourier transform and rounding are all counted in
//! it. Its lower end is what some pair of neighbouring tables really leaks. No data and no randomness enter; the same
//! question has the same answer on every machine with IEEE arithmetic. A scheme without a theorem is an error that names
//! another scheme, never a guess: there is no way to ask for Poisson's price for a shuffle.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub use crate::{
    calibrate::{Calibration, calibrate, gaussian_mu},
    correlated::{Correlated, Participation, Strategy},
    error::Error,
    event::{Event, Neighbours},
    objective::Slopes,
    privacy::{Answer, curve, delta, epsilon},
    trials::Trials,
};

mod account;
mod allocation;
mod branch;
mod calibrate;
mod cells;
mod compose;
mod correlated;
mod error;
mod event;
mod gaussian;
mod interval;
mod laplace;
mod law;
mod mixture;
mod normal;
mod objective;
mod part;
mod privacy;
pub mod renyi;
mod sampling;
mod trials;
