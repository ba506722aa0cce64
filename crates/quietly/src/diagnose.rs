//! Diagnosis: whether a signal can be learnt at a budget, and how strong the signal in a table is.
//!
//! * [`Diagnosis`]: whether a signal, so many rows and a budget are enough, and what would be.
//! * [`private_separation`] and [`public_separation`]: how strong the signal in a table is.
//!
//! ```
//! use quietly::{Budget, diagnose::{Diagnosis, Verdict}};
//!
//! let few = Diagnosis::new(0.6, 50, Budget::new(1.0, 1e-5)?)?;
//! assert_eq!(few.verdict(), Verdict::No);
//! // Four times as many rows are enough.
//! let many = Diagnosis::new(0.6, 200, Budget::new(1.0, 1e-5)?)?;
//! assert_eq!(many.verdict(), Verdict::Enough);
//! # Ok::<(), quietly::Error>(())
//! ```
pub use self::{
    diagnosis::{Diagnosis, Setup, Verdict},
    snr::{Separation, private_separation, public_separation},
};

mod diagnosis;
mod snr;
