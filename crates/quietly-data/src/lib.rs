//! Sensitive tables: files, public schemas, and rows that cannot be printed.
pub use crate::{private::Private, table::Table};

mod private;
mod table;
