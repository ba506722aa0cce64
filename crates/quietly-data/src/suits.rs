//! What is public about a table, checked before anything is spent on it: names, types, and whether a
//! column of such a type can hold what its rule wants.
use std::path::{Path, PathBuf};

use arrow_schema::DataType;

use crate::{
    Encoding, Error, Schema, columns,
    notation::count,
    plan::{Cell, Plan},
    schema::MOST_ROWS_PER_UNIT,
    source::{Layout, Source},
};

impl Source {
    /// Whether this table can be read with this encoding: its columns are there, and have types
    /// that can be read. Reads no row.
    ///
    /// `schema`, where there is one, is also asked whether a column of such a type can hold
    /// anything of what its rule wants: a range over texts finds no number, and texts are not found
    /// among numbers. `numbers_in_text = true` in the column's rule insists.
    ///
    /// # Errors
    ///
    /// [`Error::MissingColumns`], or [`Error::Types`].
    pub fn check(&self, encoding: &Encoding, schema: Option<&Schema>) -> Result<(), Error> {
        let plan = Plan::new(encoding, self.columns())?;
        self.check_types(&plan)?;
        let Some(schema) = schema else { return Ok(()) };
        let insisted = |name: &str| {
            let own = schema.columns.iter().any(|(column, _)| column == name);
            let rule = if own { name } else { "*" };
            schema.numbers_in_text.iter().any(|column| column == rule)
        };
        for input in self.inputs() {
            let types = match &input.layout {
                Layout::Parquet { types, .. } | Layout::Ipc(types) => types,
                Layout::Memory(memory) => &memory.types,
                Layout::Csv { .. } | Layout::Libsvm => continue,
            };
            let cells = plan.cells.iter().zip(types).zip(self.columns()).enumerate();
            let bad = cells.filter_map(|(place, ((cell, kind), name))| {
                let why = unsuited(cell, kind)?;
                // A name that only the file says may be a cell.
                let column = match plan.named[place] {
                    true => format!("{name:?}"),
                    false => format!("column {}", place + 1),
                };
                let kind = columns::kind(kind);
                (!insisted(name)).then(|| format!("{column} is {kind}, and {why}"))
            });
            let columns: Vec<String> = bad.take(20).collect();
            if !columns.is_empty() {
                return Err(Error::Types { path: input.path.clone(), columns });
            }
        }
        Ok(())
    }
}

/// Why no cell of a column of this type is what its rule wants.
fn unsuited(cell: &Cell, kind: &DataType) -> Option<&'static str> {
    use DataType::*;
    let kind = if let Dictionary(_, values) = kind { values } else { kind };
    let text =
        matches!(kind, Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView | Boolean);
    match cell {
        Cell::Number(_) | Cell::Target { .. } if text => {
            Some("its rule is a range (numbers_in_text = true if they are numbers all the same)")
        }
        Cell::Category(_) | Cell::Class(_)
            if kind.is_numeric() && !cell.lookup().is_some_and(|l| l.has_numbers()) =>
        {
            Some("all values in its rule are texts")
        }
        _ => None,
    }
}

/// What a schema file says of the charges for its table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charges {
    /// The ledger that all of them go to, if it names one.
    pub ledger: Option<PathBuf>,
    /// How many rows a unit has, at most: all prices are for that many.
    pub rows_per_unit: u64,
}

/// What a schema file says of charges, also if the schema is not finished; no ledger and units of
/// one row if there is no such file.
///
/// # Errors
///
/// [`Error::Unreadable`], [`Error::Syntax`] or [`Error::Schema`].
pub fn charges_named_in(schema: &Path) -> Result<Charges, Error> {
    let text = match std::fs::read_to_string(schema) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Charges { ledger: None, rows_per_unit: 1 });
        }
        read => read.map_err(|e| Error::unreadable(schema, &e))?,
    };
    // The parser's own words may quote lines of what is not a schema.
    let table: toml::Table = text
        .trim_start_matches('\u{feff}')
        .parse()
        .map_err(|_| Error::Syntax { problem: format!("{} cannot be read", schema.display()) })?;
    let refused = |problem: &str| Error::Schema { problems: vec![problem.into()] };
    let ledger = match table.get("ledger").map(|ledger| ledger.as_str()) {
        None | Some(Some("?")) => None,
        Some(Some(path)) if !path.is_empty() => {
            let folder = schema.parent().unwrap_or(Path::new(""));
            Some(folder.join(path))
        }
        Some(_) => {
            return Err(refused("ledger must be the path of a ledger, such as \"people.ledger\""));
        }
    };
    let rows_per_unit = table.get("rows_per_unit").map_or(Some(1), count);
    match rows_per_unit.filter(|k| *k <= MOST_ROWS_PER_UNIT) {
        Some(rows_per_unit) => Ok(Charges { ledger, rows_per_unit }),
        None => Err(refused("rows_per_unit must be a count from 1 to a million")),
    }
}
