//! What is public about a table, checked before anything is spent on it: names, types, and whether a
//! column of such a type can hold what its rule wants.
use std::path::{Path, PathBuf};

use arrow_schema::DataType;

use crate::{
    Encoding, Error, Schema,
    plan::{Cell, Plan},
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

/// The ledger that a schema file names, also if the schema is not finished; none if there is no
/// such file, or it names none.
///
/// # Errors
///
/// [`Error::Unreadable`], [`Error::Syntax`] or [`Error::Schema`].
pub fn ledger_named_in(schema: &Path) -> Result<Option<PathBuf>, Error> {
    let text = match std::fs::read_to_string(schema) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|e| Error::unreadable(schema, &e))?,
    };
    // The parser's own words may quote lines of what is not a schema.
    let table: toml::Table = text
        .trim_start_matches('\u{feff}')
        .parse()
        .map_err(|_| Error::Syntax { problem: format!("{} cannot be read", schema.display()) })?;
    match table.get("ledger").map(|ledger| ledger.as_str()) {
        None | Some(Some("?")) => Ok(None),
        Some(Some(path)) if !path.is_empty() => {
            let folder = schema.parent().unwrap_or(Path::new(""));
            Ok(Some(folder.join(path)))
        }
        Some(_) => {
            let problem = "ledger must be the path of a ledger, such as \"people.ledger\"".into();
            Err(Error::Schema { problems: vec![problem] })
        }
    }
}
