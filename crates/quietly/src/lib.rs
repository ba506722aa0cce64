//! Differentially private learning on sensitive tables: plan, release, prove.
pub use quietly_data::{Private, Table};
