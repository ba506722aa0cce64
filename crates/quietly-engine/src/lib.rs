//! One engine for every model: queries over rows, the backends that sum them, and the descent along noisy gradients.
//!
//! * [`query`] is what is summed over rows, with its sensitivity; [`backend`] sums it, wherever the rows are.
//! * [`algorithm`] is one way to fit: what it will release, and how it runs.
//! * [`descent`] is the loop of every descent along noisy gradients.
//! * [`column_map`] is what is learnt of single columns: winsor intervals, scales, ranks.
//! * [`pass`] has the kernels that read rows, [`transform`] and [`metric`] the public maps that rows go through.
//! * [`normals`] draws public numbers: directions, weights at the start.
//! * [`remote`] sends queries to workers in other processes.
//!
//! It knows no loss, no model and no paper.
pub mod algorithm;
pub mod backend;
pub mod bends;
pub mod column_map;
pub mod descent;
pub mod error;
pub mod expansion;
pub mod histogram;
pub mod kernels;
pub mod linalg;
pub mod link;
pub mod norm_histogram;
pub mod normals;
pub mod partitioned;
pub mod query;
pub mod remote;
pub mod residual;
pub mod splines;
pub mod target_scaling;
pub mod transform;
pub mod whitening;
pub mod wire;
