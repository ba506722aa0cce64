//! Private tables: files, public schemas, and rows that cannot be printed.
//!
//! ```
//! use quietly_data::{Encoding, Options, Schema, Source};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("people.csv");
//! # std::fs::write(&path, "age,sex,pay\n50,M,900\n?,F,1e9\n31,X,5\n").unwrap();
//! // people.csv:  age,sex,pay
//! //              50,M,900
//! //              ?,F,1e9
//! //              31,X,5
//! let source = Source::open([&path], &Options::default())?;
//!
//! // What is publicly known about such a table, written down without looking at its rows.
//! let schema = Schema::parse(
//!     r#"
//!     rows = 3
//!     [columns]
//!     age = { range = [0, 100] }
//!     sex = { values = ["F", "M"] }
//!     pay = { range = [0, 1000] }
//!     "#,
//! )?;
//! let encoding = Encoding::new(&schema, source.columns(), None, Some("pay"))?;
//! let table = source.read(&encoding, 2)?;
//! assert_eq!(format!("{table:?}"), "Private(..)");
//! # let table = table.declassify();
//! # assert_eq!(table.features(), [0.0, 1.0, 0.0, 0.0]);
//! # assert_eq!(table.target(), [900.0, 1000.0]);
//! # Ok::<(), quietly_data::Error>(())
//! ```
//!
//! # Where to start
//!
//! * [`Source`] opens CSV, Parquet, Arrow IPC and libsvm files, or takes a table in memory. It is
//!   read whole or in blocks.
//! * [`Schema`] declares what is public: ranges and values of columns, and about how many rows.
//! * [`Encoding`] turns cells into numbers in [-1, 1]. A model stores it to [predict].
//! * [`Target`] is the column to predict: a number with a range, or one of a few classes.
//! * [`Private`] holds a value that depends on the rows: a [`Table`], or a [`Sparse`] table without
//!   its zeros.
//! * [`Error`] is the only error type.
//!
//! [predict]: Encoding::predicting
//!
//! # What is promised
//!
//! File types, schemas, and names that a schema or a model contains are public: errors quote them.
//! A name that only a file contains may be a cell of a file without a header, so errors give its
//! position instead. Cells are not public: *no cell and no row causes an error, a panic or a
//! message*.
//!
//! A row that does not hold what the schema declares is a **null row**. In training,
//!
//! * a number outside its range is clamped, and so are infinities;
//! * a missing number (an empty cell, `NA`, `?`, NaN, or any text that is not a number) becomes the
//!   middle of its range, becomes another number, or makes the row a null row, as the schema says;
//! * a missing or undeclared value is `other` where the schema declares it, and makes the row a
//!   null row where it does not;
//! * a missing target, a label that is not among the declared classes (unless the schema declares
//!   `other`), or a line that cannot be read, makes the row a null row.
//!
//! Null rows are dropped, or [keep their positions](Encoding::keeping_null_rows). The rows are the
//! same, in the same order and bit for bit, for any number of threads and any split of the rows
//! into files. A line of a CSV file is one row only if quotes inside its fields are escaped. A
//! stray quote can join the lines of at most one megabyte.
pub use crate::{
    atomic_file::{AtomicFile, is_temporary_name},
    block::Block,
    encoding::{Encoding, Feature, Kind},
    error::Error,
    format::Format,
    gather::Gather,
    ledger_settings::LedgerSettings,
    name::{is_hidden, name_problem, visible},
    notation::Notation,
    row_groups::TablePart,
    schema::{Missing, Rule, Schema},
    source::{Options, Source},
    sparse::Sparse,
    table::Table,
    target::Target,
    value::Value,
};

/// Serialisation of private values does not compile.
///
/// ```compile_fail,E0277
/// # use quietly_data::Private;
/// # let salary = Private::new(4711);
/// fn written<T: serde::Serialize>(_: &T) {}
/// written(&salary);
/// ```
pub use quietly_private::Private;

#[doc(hidden)]
pub use crate::prefetch::prefetch;

mod atomic_file;
mod block;
mod chunk_reader;
mod column_decoder;
mod columns;
mod csr;
mod csv;
mod delta_lengths;
mod duplicate_files;
mod encoding;
mod error;
mod format;
mod gather;
mod header;
mod ipc;
mod ipc_lengths;
mod ledger_settings;
mod lenient_types;
mod libsvm;
mod matrix;
mod memory;
mod name;
mod notation;
mod number;
mod panic_guard;
mod parallel_decode;
mod parquet;
mod parquet_lengths;
mod prefetch;
mod row_groups;
mod schema;
mod schema_toml;
mod shared_file;
mod source;
mod sparse;
mod split;
mod table;
mod target;
mod text_chunks;
mod type_check;
mod value;
