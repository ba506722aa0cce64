//! Flags that every verb on tables shares.
use std::path::{Path, PathBuf};

use clap::Args;
use quietly::{Budget, Encoding, Format, Key, Neighbours, ReadOptions, Schema, Source};

use crate::{
    args::Relation,
    error::Failure,
    parse::{Count, Number},
};

/// Files that make one table.
#[derive(Args, Debug)]
pub(crate) struct Files {
    /// CSV, Parquet, Arrow or libsvm files (also .gz), or a folder of them: one table
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

/// How files are read.
#[derive(Args, Debug)]
pub(crate) struct Reading {
    /// csv, parquet, arrow or libsvm; detected from the name by default
    #[arg(long, value_name = "NAME")]
    format: Option<String>,
    /// CSV delimiter; detected from the header by default
    #[arg(long, value_name = "C")]
    delimiter: Option<String>,
    /// The first line of CSV has names, even if they look like data, such as 2020,2021
    #[arg(long)]
    header_is_names: bool,
    /// Number of threads; all cores by default
    #[arg(long, value_name = "N")]
    threads: Option<Count>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl Reading {
    /// Opens files, with what schema or model say about them.
    pub(crate) fn open(
        &self,
        files: &[PathBuf],
        mut options: ReadOptions,
    ) -> Result<Source, Failure> {
        if let Some(name) = &self.format {
            options.format = Some(format(name)?);
        }
        if let Some(text) = &self.delimiter {
            options.delimiter = Some(delimiter(text)?);
        }
        options.header |= self.header_is_names;
        Ok(Source::open(files, &options).map_err(quietly::Error::from)?)
    }

    pub(crate) fn threads(&self) -> Result<usize, Failure> {
        match self.threads {
            Some(count) => Ok(count.at_least_one("threads")?.min(256) as usize),
            None => Ok(std::thread::available_parallelism().map_or(1, |n| n.get())),
        }
    }
}

fn format(name: &str) -> Result<Format, Failure> {
    match name {
        "csv" => Ok(Format::Csv),
        "parquet" => Ok(Format::Parquet),
        "arrow" | "ipc" => Ok(Format::Ipc),
        "libsvm" => Ok(Format::Libsvm),
        _ => Err(Failure::Unreadable {
            flag: "--format".into(),
            typed: name.into(),
            wanted: "csv, parquet, arrow or libsvm".into(),
        }),
    }
}

/// What is known of files before there is a schema.
pub(crate) fn with_features(features: Option<usize>) -> ReadOptions {
    ReadOptions { features, ..ReadOptions::default() }
}

/// Which files make the table: `table (2 files): a.parquet, b.parquet`.
///
/// A table whose rows are there twice protects each of them half as well, so look at the list. It tells no sizes: they are
/// exact functions of the rows.
pub(crate) fn files_read(source: &Source) -> String {
    const MOST: usize = 20;
    let names = source.file_names();
    let more = match names.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (count, shown) = (names.len(), names[..names.len().min(MOST)].join(", "));
    match count {
        1 => format!("table: {shown}"),
        _ => format!("table ({count} files): {shown}{more}"),
    }
}

fn delimiter(text: &str) -> Result<u8, Failure> {
    match text.as_bytes() {
        b"\\t" | b"tab" => Ok(b'\t'),
        [one] if one.is_ascii() && !b"\"\r\n".contains(one) => Ok(*one),
        _ => Err(Failure::Unreadable {
            flag: "--delimiter".into(),
            typed: text.into(),
            wanted: "one character, or tab".into(),
        }),
    }
}

/// The public schema.
#[derive(Args, Debug)]
pub(crate) struct SchemaFile {
    /// The public schema; FILE.schema.toml by default
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
}

impl SchemaFile {
    pub(crate) fn read(&self, table: &Path) -> Result<Schema, Failure> {
        let schema = Schema::read(self.path(table));
        // A table that is not there has no schema beside it either.
        if schema.is_err() && self.schema.is_none() && !table.to_string_lossy().contains('*') {
            std::fs::metadata(table).map_err(|e| {
                quietly::Error::from(quietly::DataError::Unreadable {
                    path: table.into(),
                    problem: e.kind(),
                })
            })?;
        }
        Ok(schema.map_err(quietly::Error::from)?)
    }

    pub(crate) fn path(&self, table: &Path) -> PathBuf {
        self.schema.clone().unwrap_or_else(|| beside(table))
    }
}

/// people.csv -> people.schema.toml
pub(crate) fn beside(table: &Path) -> PathBuf {
    let name = table.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.split('.').next().unwrap_or_default();
    table.with_file_name(format!("{stem}.schema.toml"))
}

/// What may be spent.
#[derive(Args, Debug)]
pub(crate) struct BudgetArgs {
    /// Privacy budget ε; inf for no privacy
    #[arg(long, value_name = "E")]
    epsilon: Number,
    /// Privacy budget δ; by default below 1 / (10 rows) and at most a tenth of what the ledger has left, and 0 for methods with pure privacy
    #[arg(long, value_name = "D")]
    delta: Option<Number>,
    /// Neighbouring relation: add-remove or replace-one
    #[arg(long, value_name = "HOW", hide_possible_values = true, value_enum, default_value_t = Relation::AddRemove)]
    neighbours: Relation,
}

impl BudgetArgs {
    /// What may be spent; `usual` is the delta where none is typed, if it is not that of the rows.
    pub(crate) fn budget(&self, rows: u64, usual: Option<f64>) -> Result<Budget, Failure> {
        let delta = self.delta.map(|delta| delta.0).or(usual);
        let budget = Budget::usual(self.epsilon.0, delta, rows)?;
        Ok(budget.under(self.neighbours()))
    }

    /// The flags that differ from their defaults, to be typed again.
    pub(crate) fn typed(&self) -> String {
        let mut flags = format!(" --epsilon {}", self.epsilon.0);
        if let Some(delta) = self.delta {
            flags += &format!(" --delta {:e}", delta.0);
        }
        if self.neighbours() == Neighbours::ReplaceOne {
            flags += " --neighbours replace-one";
        }
        flags
    }

    fn neighbours(&self) -> Neighbours {
        self.neighbours.into()
    }
}

/// The largest power of ten that is at most 1 / (10 rows), within what can be accounted for.
pub(crate) fn usual_delta(rows: u64) -> f64 {
    let digits = (rows.max(1) as f64 * 10.0).log10().ceil() as i32;
    10.0_f64.powi(-digits.clamp(5, 12))
}

/// Which columns take part.
#[derive(Args, Debug)]
pub(crate) struct Columns {
    /// The column to predict
    #[arg(long, value_name = "COLUMN")]
    pub(crate) target: String,
    /// Columns to predict it from, with commas; all others of the schema by default
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    features: Option<Vec<String>>,
}

impl Columns {
    /// The flags, to be typed again.
    pub(crate) fn typed(&self) -> String {
        let features = self.features.as_ref().map(|f| format!(" --features {}", f.join(",")));
        format!(" --target {}{}", self.target, features.unwrap_or_default())
    }

    pub(crate) fn encoding(&self, schema: &Schema, file: &[String]) -> Result<Encoding, Failure> {
        let features = self.features.as_deref();
        let encoding = Encoding::new(schema, file, features, Some(&self.target));
        Ok(encoding.map_err(quietly::Error::from)?)
    }
}

/// Fresh randomness, or a fixed seed for tests.
pub(crate) fn key(seed: Option<Count>) -> Result<Key, Failure> {
    match seed {
        Some(seed) => Ok(Key::from_seed(seed.get("seed")?)),
        None => Ok(Key::from_os().map_err(quietly::Error::from)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_stand_beside_their_tables() {
        assert_eq!(beside(Path::new("a/people.csv.gz")), Path::new("a/people.schema.toml"));
    }

    #[test]
    fn delta_stays_below_a_tenth_of_a_row() {
        for rows in [1, 10, 9_999, 10_000, 10_001, 1_000_000, u64::MAX] {
            let delta = usual_delta(rows);
            assert!((1e-12..=1e-5).contains(&delta), "{rows}");
            assert!(delta <= 0.1 / rows as f64 * (1.0 + 1e-9) || delta == 1e-12, "{rows} {delta}");
        }
    }

    #[test]
    fn a_delimiter_is_one_character() {
        assert_eq!(delimiter("tab").unwrap(), b'\t');
        assert_eq!(delimiter(";").unwrap(), b';');
        for bad in ["", "ab", "\"", "é"] {
            assert!(delimiter(bad).is_err(), "{bad}");
        }
    }
}
