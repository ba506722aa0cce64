//! Accounting.
mod account;
mod allocation;
mod cells;
mod compose;
mod error;
mod mixture;
mod gaussian;
mod interval;
mod laplace;
mod law;
mod normal;
mod part;
pub use error::Error;
pub use interval::Interval;
