//! Least squares and ReLU regression: the default in full batches, one pass by random allocation, and the algorithms of the
//! papers.
//!
//! * [`full_batch`] is the default, [`one_pass`] reads every row once; [`design`] divides their budget.
//! * [`linear_fit`] is what they give: a model of winsorised columns.
//! * [`additive`] adds bends of columns and pairs to it; [`ladder`] says how many.
//! * [`papers`] has the papers' algorithms, one file each.
//! * [`least_squares`] is least squares without noise.
//! * [`earlier`] knows the plans of earlier versions.
pub mod additive;
pub mod budget_split;
pub mod earlier;
pub mod full_batch;
pub mod ladder;
pub mod least_squares;
pub mod linear_fit;
pub mod one_pass;
pub mod papers;
