//! Feature learning with noisy gradient descent: can this signal be learnt at this privacy?
//!
//! *Understanding Private Learning From Feature Perspective* (anonymous submission, "the paper" below) trains a two-layer
//! network on pictures of which one patch carries the label and the others carry noise, and asks whether the network learns
//! the signal or memorises the noise. Its noise has no proven sensitivity, so it promises nothing. Here is
//!
//! * [`Descent`]: the same network with clipped gradients, through the releaser. [`Descent::plan`] prices it exactly,
//!   [`PatchPlan::run`] gives a [`Network`] with its certificate.
//! * [`study`]: the same on made-up pictures, without noise, with the paper's, or with the honest one, while the signal and
//!   the noise in every filter are watched. A [`Course`] is for research: it holds what no release may hold.
//!
//! Whether a signal, so many rows and a budget are enough is said by [`quietly::diagnose`].
pub use self::{
    descent::{Descent, PatchPlan},
    network::Network,
    patches::{Images, World},
    trajectory::{Course, Moment, Noise, study},
};

mod decomposition;
mod descent;
mod gradient;
mod network;
mod patches;
mod trajectory;

#[cfg(test)]
mod tests;
