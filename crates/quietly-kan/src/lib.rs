//! Kolmogorov–Arnold networks: the computing core, on integers where privacy needs them.
//!
//! Wang, Schuchardt, Kalinin, Zhou, Fellenz, Lampert and Kloft, *Population Risk Bounds for
//! Kolmogorov–Arnold Networks Trained by DP-SGD with Correlated Noise*.
//!
//! Every layer computes a = W φ(x) / √d, where φ(x) are the B-splines of its d inputs, and hands
//! tanh(a) to the next; the last hands out its a as the scores. The gradient of one row in one
//! layer is therefore an outer product δ ⊗ φ/√d, whose norm is a product of two norms: clipping
//! costs a few dot products. Rows are quantized once, and the sum over a batch is exact.
//!
//! * [`architecture`] says how a network looks; nothing in it depends on data.
//! * [`splines`](quietly_engine::splines) are its functions, [`quantized_rows`] the rows as small integers.
//! * [`network`] holds the weights, [`layer`] and [`lookup_table`] compute with them.
//! * [`gradient`] finds the two factors of a row, [`clipped_gradient`] puts them on the lattice with a
//!   certificate in integers, [`batch_gradient`] adds up the products.
//! * [`bound`] is the longest gradient that any row can have.

pub use self::{
    architecture::{Input, LastLayer, NetworkLoss, NetworkShape},
    auto_config::NetworkSampler,
    config::{Alternative, Average, KanConfig, NetworkNoise},
    model::KanModel,
    planning::{Clip, Kan},
    query::NetworkQuery,
    recommend::{ENOUGH_ROWS, rows_for_each_feature},
};

pub mod activation;
pub mod architecture;
pub mod auto_config;
pub mod batch_gradient;
pub mod bound;
pub mod buckets;
pub mod clipped_gradient;
pub mod config;
pub mod functions;
pub mod gradient;
pub mod layer;
pub mod lookup_table;
pub mod model;
pub mod network;
pub mod planning;
pub mod quantized_rows;
pub mod query;
pub mod recommend;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;
pub mod train;
