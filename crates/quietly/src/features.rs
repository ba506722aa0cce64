//! Feature learning with noisy gradient descent: can this signal be learnt at this privacy?
//!
//! *Understanding Private Learning From Feature Perspective* (anonymous submission, "the paper" below) trains a two-layer
//! network on pictures of which one patch carries the label and the others carry noise, and asks whether the network learns
//! the signal or memorises the noise. Its noise has no proven sensitivity, so it promises nothing. Here is
//!
//! * [`Descent`]: the same network with clipped gradients, through the release door. [`Descent::plan`] prices it exactly,
//!   [`PatchPlan::run`] gives a [`Network`] with its certificate.
//! * [`study`]: the same on made-up pictures, without noise, with the paper's, or with the honest one, while the signal and
//!   the noise in every filter are watched. A [`Course`] is for research: it holds what no release may hold.
//! * [`Diagnosis`]: whether a signal, so many rows and a budget are enough, and what would be.
//! * [`private_separation`] and [`public_separation`]: how strong the signal in a table is.
//!
//! ```
//! use quietly::{Budget, features::{Diagnosis, Verdict}};
//!
//! let few = Diagnosis::new(0.6, 50, Budget::new(1.0, 1e-5)?)?;
//! assert_eq!(few.verdict(), Verdict::No);
//! // Four times as many rows are enough.
//! let many = Diagnosis::new(0.6, 200, Budget::new(1.0, 1e-5)?)?;
//! assert_eq!(many.verdict(), Verdict::Enough);
//! # Ok::<(), quietly::Error>(())
//! ```
pub(crate) use self::patches::normals;
pub use self::{
    course::{Course, Moment, Noise, study},
    descent::{Descent, PatchPlan},
    diagnosis::{Diagnosis, Verdict},
    network::Network,
    patches::{Images, World},
    separation::{Separation, private_separation, public_separation},
};

mod course;
mod decomposition;
mod descent;
mod diagnosis;
mod gradient;
mod network;
mod patches;
mod separation;

#[cfg(test)]
mod tests;
