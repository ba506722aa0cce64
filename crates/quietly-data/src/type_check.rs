//! Checks what is public about a table before budget is spent on it: names, types, and whether a
//! column of a type can hold what its rule declares.
use arrow_schema::DataType;

use crate::{
    Encoding, Error, Schema,
    column_decoder::{ColumnDecoder, RowDecoder},
    columns,
    source::{Layout, Source},
};

impl Source {
    /// Checks that this table can be read with this encoding: its columns exist, and have types that
    /// can be read. Reads no row.
    ///
    /// With `schema`, also checks that the type of a column can hold what its rule declares. A
    /// column of text is refused for a range, unless the rule has `numbers_in_text = true`. A column
    /// of numbers is refused if all declared values are texts.
    ///
    /// # Errors
    ///
    /// [`Error::MissingColumns`], or [`Error::Types`].
    pub fn check(&self, encoding: &Encoding, schema: Option<&Schema>) -> Result<(), Error> {
        let decoder = RowDecoder::new(encoding, self.columns())?;
        self.check_types(&decoder)?;
        let Some(schema) = schema else { return Ok(()) };
        let numbers_in_text = |name: &str| {
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
            let cells = decoder.cells.iter().zip(types).zip(self.columns()).enumerate();
            let bad = cells.filter_map(|(place, ((cell, kind), name))| {
                let why = mismatch(cell, kind)?;
                // A name that only the file contains may be a cell.
                let column = match decoder.named[place] {
                    true => format!("{name:?}"),
                    false => format!("column {}", place + 1),
                };
                let kind = columns::kind(kind);
                (!numbers_in_text(name)).then(|| format!("{column} is {kind}, but {why}"))
            });
            let columns: Vec<String> = bad.take(20).collect();
            if !columns.is_empty() {
                return Err(Error::Types { path: input.path.clone(), columns });
            }
        }
        Ok(())
    }
}

/// Why no cell of this type can be what the rule declares, if so.
fn mismatch(cell: &ColumnDecoder, kind: &DataType) -> Option<&'static str> {
    use DataType::*;
    let kind = if let Dictionary(_, values) = kind { values } else { kind };
    let text =
        matches!(kind, Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView | Boolean);
    match cell {
        ColumnDecoder::Number(_) | ColumnDecoder::Target { .. } if text => {
            Some("its rule is a range (set numbers_in_text = true if the texts are numbers)")
        }
        ColumnDecoder::Category(_) | ColumnDecoder::Class(_)
            if kind.is_numeric() && !cell.lookup().is_some_and(|l| l.has_numbers()) =>
        {
            Some("all values in its rule are texts")
        }
        _ => None,
    }
}
