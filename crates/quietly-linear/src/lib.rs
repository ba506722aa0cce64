//! Least squares and ReLU regression: the default in full batches, one pass by random allocation, and the algorithms of the
//! papers.
//!
//! * [`full_batch`] is the default, [`one_pass`] reads every row once; [`design`] splits their budget.
//! * [`recipes`] has the papers' algorithms, one file each.
//! * [`exact`] is least squares without noise.
pub mod budget_split;
pub mod full_batch;
pub mod least_squares;
pub mod one_pass;
pub mod papers;
