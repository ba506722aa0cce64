//! What a schema file says about the ledger of its table, also before the schema is complete.
use std::path::{Path, PathBuf};

use crate::{Error, schema::MAX_ROWS_PER_UNIT, schema_toml::count};

/// The ledger that a schema file names, and the unit of privacy that its entries are for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerSettings {
    /// The ledger, if the schema names one.
    pub ledger: Option<PathBuf>,
    /// The most rows of one unit of privacy. Every cost is for that many rows together.
    pub rows_per_unit: u64,
}

impl LedgerSettings {
    /// Reads the settings from a schema file. The other entries of the schema may be unfinished. A
    /// file that does not exist names no ledger, and its units have one row.
    ///
    /// # Errors
    ///
    /// [`Error::Unreadable`], [`Error::Syntax`] or [`Error::Schema`].
    pub fn read(schema: &Path) -> Result<Self, Error> {
        let text = match std::fs::read_to_string(schema) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(LedgerSettings { ledger: None, rows_per_unit: 1 });
            }
            read => read.map_err(|e| Error::unreadable(schema, &e))?,
        };
        // The parser's message may quote lines of a file that is not a schema.
        let syntax = |_| Error::Syntax { problem: format!("{} cannot be read", schema.display()) };
        let table: toml::Table = text.trim_start_matches('\u{feff}').parse().map_err(syntax)?;
        let refused = |problem: &str| Error::Schema { problems: vec![problem.into()] };
        let ledger = match table.get("ledger").map(|ledger| ledger.as_str()) {
            None | Some(Some("?")) => None,
            Some(Some(path)) if !path.is_empty() => {
                let folder = schema.parent().unwrap_or(Path::new(""));
                Some(folder.join(path))
            }
            Some(_) => {
                return Err(refused(
                    "ledger must be the path of a ledger, such as \"people.ledger\"",
                ));
            }
        };
        let rows_per_unit = table.get("rows_per_unit").map_or(Some(1), count);
        match rows_per_unit.filter(|k| *k <= MAX_ROWS_PER_UNIT) {
            Some(rows_per_unit) => Ok(LedgerSettings { ledger, rows_per_unit }),
            None => Err(refused("rows_per_unit must be a count from 1 to a million")),
        }
    }
}
