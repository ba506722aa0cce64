//! Kolmogorov–Arnold networks: the computing core, on integers where privacy needs them.
//!
//! Wang, Schuchardt, Kalinin, Zhou, Fellenz, Lampert and Kloft, *Population Risk Bounds for
//! Kolmogorov–Arnold Networks Trained by DP-SGD with Correlated Noise*.
//!
//! Every layer computes a = W φ(x) / √d, where φ(x) are the B-splines of its d inputs, and hands
//! tanh(a) to the next; the last hands out its a as the scores. The gradient of one row in one
//! layer is therefore an outer product δ ⊗ φ/√d, whose norm is a product of two norms: clipping
//! costs a few dot products. Rows are prepared once, and the sum over a batch is exact.
//!
//! * [`shape`] says how a network looks; nothing in it depends on data.
//! * [`splines`](quietly_engine::splines) are its functions, [`features`] the rows as small integers.
//! * [`network`] holds the weights, [`layer`] and [`tables`] compute with them.
//! * [`gradient`] finds the two factors of a row, [`clipped`] puts them on the lattice with a
//!   certificate in integers, [`sums`] adds up the products.
//! * [`bound`] is the longest gradient that any row can have.

pub use self::{
    planning::{Clip, Kan, Sampling},
    query::NetworkQuery,
    shape::{Input, LastLayer, NetworkLoss, NetworkShape},
    speed::{StepSpeed, step_speed},
    suits::{ENOUGH_ROWS, rows_for_each_feature},
    trained::Trained,
    training::{Alternative, Average, NetworkNoise, Training},
};

pub mod activation;
pub mod bound;
pub mod buckets;
pub mod choice;
pub mod clipped;
pub mod features;
pub mod functions;
pub mod gradient;
pub mod layer;
pub mod network;
pub mod planning;
pub mod query;
#[cfg(test)]
mod reference;
pub mod shape;
pub mod speed;
pub mod suits;
pub mod sums;
pub mod tables;
#[cfg(test)]
mod tests;
pub mod train;
pub mod trained;
pub mod training;
