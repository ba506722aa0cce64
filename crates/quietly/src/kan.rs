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
//! * [`splines`](crate::splines) are its functions, [`features`] the rows as small integers.
//! * [`network`] holds the weights, [`layer`] and [`tables`] compute with them.
//! * [`gradient`] finds the two factors of a row, [`clipped`] puts them on the lattice with a
//!   certificate in integers, [`sums`] adds up the products.
//! * [`bound`] is the longest gradient that any row can have.

pub use self::{
    planning::{Clip, Kan, Sampling},
    shape::{Input, LastLayer, NetworkLoss, NetworkShape},
    speed::{StepSpeed, step_speed},
    suits::{ENOUGH_ROWS, rows_for_each_feature},
    trained::Trained,
    training::{Alternative, Average, NetworkNoise, Training},
};

mod activation;
mod bound;
mod buckets;
mod choice;
mod clipped;
mod features;
mod functions;
mod gradient;
mod layer;
mod network;
#[cfg(test)]
mod plan_tests;
mod planning;
#[cfg(test)]
mod reference;
mod shape;
mod speed;
mod suits;
mod sums;
mod tables;
#[cfg(test)]
mod tests;
mod train;
#[cfg(test)]
mod train_tests;
mod trained;
mod training;
#[cfg(test)]
mod utility_tests;
