//! Sensitive tables: files, public schemas, and rows that cannot be printed.
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
//! // What anybody knows about such a table, written down without looking at its rows.
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
//! * [`Source`] opens CSV, Parquet, Arrow IPC and libsvm files, or takes a table in memory; reads whole or in blocks.
//! * [`Schema`] says what is public: ranges and values of columns, and about how many rows.
//! * [`Encoding`] turns cells into numbers in [-1, 1]; a model keeps it to [predict].
//! * [`Target`] is what is to be predicted: a number with a range, or one of a few classes.
//! * [`Private`] holds what came from somebody's data; [`Table`] is such rows, [`Sparse`] such rows
//!   without their zeros.
//! * [`Error`] is the only error type.
//!
//! [predict]: Encoding::predicting
//!
//! # What is promised
//!
//! Types, schemas and names that a schema or a model says are public: they may be wrong, and errors
//! name them. A name that only a file says may be a cell of a file without a header: errors tell its
//! place. Cells are not public: *no cell and no row causes an error, a panic or a message*. In
//! training,
//!
//! * a number beyond its range is clamped; infinities too;
//! * a missing number (an empty cell, `NA`, `?`, NaN, or any text that is no number) is the middle
//!   of its range, another number, or makes the row the null record, as the schema says;
//! * a value that was not declared, or is missing, is `other` where the schema has it, and
//!   otherwise makes the row the null record;
//! * a missing target, a label that is not among the declared classes (unless the schema has
//!   `other`), or a line that cannot be read, makes the row the null record.
//!
//! Null records are left out, or [keep their places](Encoding::keeping_places). The rows are the same, in the same order and bit for bit, for any
//! number of threads and any split of the rows over files. One line of a CSV file is one row only
//! if whoever wrote it quoted quotes; a stray one can join the lines of one megabyte at most.
pub use crate::{
    block::Block,
    encoding::{Encoding, Feature, Kind},
    error::Error,
    format::Format,
    name::{is_hidden, name_problem, visible},
    numerals::Notation,
    parts::Part,
    picks::Picks,
    private::Private,
    schema::{Missing, Rule, Schema},
    source::{Options, Source},
    sparse::Sparse,
    suits::{Charges, charges_named_in},
    table::Table,
    target::Target,
    unnamed::{Unnamed, is_hidden_name},
    value::Value,
};

mod block;
mod columns;
mod csr;
mod csv;
mod damage;
mod delta;
mod encoding;
mod error;
mod feed;
mod format;
mod frames;
mod header;
mod ipc;
mod libsvm;
mod matrix;
mod memory;
mod name;
#[doc(hidden)]
pub mod near;
mod notation;
mod number;
mod numerals;
mod pages;
mod parquet;
mod parts;
mod picks;
mod plan;
mod positioned;
mod private;
mod repeated;
mod schema;
mod source;
mod sparse;
mod split;
mod stream;
mod suits;
mod table;
mod target;
mod text;
mod unnamed;
mod untyped;
mod value;
