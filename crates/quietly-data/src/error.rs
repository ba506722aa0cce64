use std::path::{Path, PathBuf};

use crate::Format;

/// Errors of files, schemas and encodings.
///
/// Errors name files, types and entries of the schema, which are public. The name of a column is
/// quoted only if the caller, the schema or the model contains it. A name that only a file contains
/// may be a cell of its first row, so errors give its position, or a count. No cell and no row
/// causes an error or appears in one.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages explain the fields")]
#[non_exhaustive]
pub enum Error {
    /// A file or folder cannot be opened or read.
    #[error("cannot read {}: {problem}; check the path and its permissions", path.display())]
    Unreadable { path: PathBuf, problem: std::io::ErrorKind },
    /// A folder, a pattern or a list of paths holds no table.
    #[error(
        "no table in {place}: expected files that end in {}; if the names end otherwise, pass the \
         files one by one", crate::format::ENDINGS.join(", ")
    )]
    NoFiles { place: String },
    /// A file is damaged or truncated, or has another format.
    #[error(
        "{} cannot be read as {format}: it has another format, is damaged or is truncated; check \
         the file, or pass its format", path.display()
    )]
    Damaged { path: PathBuf, format: Format },
    /// The first bytes of a file are those of an unsupported format.
    #[error("{} is {what} and cannot be read as {format}; {instead}", path.display())]
    Foreign { path: PathBuf, format: Format, what: &'static str, instead: &'static str },
    /// A file has no line of column names.
    #[error(
        "{} has no header: expected a first line with the names of the columns, got {got}; add a \
         header, or set header = true in the schema if the line is one", path.display()
    )]
    NoHeader { path: PathBuf, got: &'static str },
    /// Columns of a file, counted from 1, have the same name.
    #[error("{} of {} have the same name; rename all but one", positions(columns), path.display())]
    DuplicateColumns { path: PathBuf, columns: Vec<usize> },
    /// Two files of one table have different columns.
    #[error(
        "{} and {} are not one table: {difference}; the columns must be the same, in the same order",
        first.display(), second.display()
    )]
    DifferentColumns { first: PathBuf, second: PathBuf, difference: String },
    /// A schema is not TOML.
    #[error("the schema is not valid TOML: {problem}")]
    Syntax { problem: String },
    /// A schema still contains question marks.
    #[error(
        "the schema is not finished: replace \"?\" for {} by what is publicly known, never by what \
         the table contains",
        quoted(names)
    )]
    Unfinished { names: Vec<String> },
    /// A schema contains invalid entries.
    #[error("the schema cannot be used:\n{}", listed(problems))]
    Schema { problems: Vec<String> },
    /// The file lacks columns that the schema, the features or the model require.
    #[error("the table has no column {}; check the header of the file", quoted(names))]
    MissingColumns { names: Vec<String> },
    /// Features or target name columns that the schema does not describe.
    #[error(
        "the schema does not describe {}; {}",
        quoted(names),
        hint(near, "add them under [columns]")
    )]
    UnknownColumns { names: Vec<String>, near: Vec<String> },
    /// The target is of the wrong kind, or is also a feature.
    #[error("{name:?} cannot be the target: {problem}")]
    Target { name: String, problem: &'static str },
    /// No target is given.
    #[error("there is no target; pass the name of the column to predict")]
    NoTarget,
    /// A column has a type that cannot be read as the schema declares.
    #[error(
        "{} has columns that cannot be read as the schema declares: {}; expected numbers, texts or \
         booleans; convert them, or remove them from the schema", path.display(), columns.join(", ")
    )]
    Types { path: PathBuf, columns: Vec<String> },
    /// Record batches in memory are not one table.
    #[error("the record batches in memory are not one table: {problem}")]
    Batches { problem: &'static str },
    /// The number of features of libsvm text is not given.
    #[error(
        "{} is libsvm text, which has no header; set features = N (the highest index) in the schema",
        path.display()
    )]
    Features { path: PathBuf },
    /// A file that is not Parquet cannot be read in parts.
    #[error(
        "{} is not Parquet; only Parquet can be read in parts, by several machines or step by step; \
         convert the table to Parquet first", path.display()
    )]
    NotParquet { path: PathBuf },
    /// Files seem to hold the same rows.
    #[error("{}: {problem}; every row must be in the table once", listing(files))]
    RepeatedFiles { files: Vec<PathBuf>, problem: &'static str },
    /// The delimiter is a quote or ends a line.
    #[error("the delimiter cannot be {delimiter:?}; expected one byte such as ',' or ';'")]
    Delimiter { delimiter: char },
    /// There are no features.
    #[error("there are no features: {problem}")]
    NoFeatures { problem: &'static str },
}

impl Error {
    /// The stable code that `quietly explain` takes.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Unreadable { .. } => "D01",
            Error::NoFiles { .. } => "D02",
            Error::Damaged { .. } | Error::Foreign { .. } => "D03",
            Error::NoHeader { .. } => "D04",
            Error::DuplicateColumns { .. } => "D05",
            Error::DifferentColumns { .. } => "D06",
            Error::Syntax { .. } => "D07",
            Error::Unfinished { .. } => "D08",
            Error::Schema { .. } => "D09",
            Error::MissingColumns { .. } => "D10",
            Error::UnknownColumns { .. } => "D11",
            Error::Target { .. } | Error::NoTarget => "D12",
            Error::Types { .. } => "D13",
            Error::Features { .. } => "D14",
            Error::NoFeatures { .. } => "D15",
            Error::Delimiter { .. } => "D16",
            Error::Batches { .. } => "D17",
            Error::NotParquet { .. } => "D18",
            Error::RepeatedFiles { .. } => "D19",
        }
    }

    /// The name of the Python exception, without its suffix "Error".
    pub fn name(&self) -> &'static str {
        match self {
            Error::Unreadable { .. } => "Unreadable",
            Error::NoFiles { .. } => "NoFiles",
            Error::Damaged { .. } | Error::Foreign { .. } => "Damaged",
            Error::NoHeader { .. } => "NoHeader",
            Error::DuplicateColumns { .. } => "DuplicateColumns",
            Error::DifferentColumns { .. } => "DifferentColumns",
            Error::Syntax { .. } => "SchemaSyntax",
            Error::Unfinished { .. } => "UnfinishedSchema",
            Error::Schema { .. } => "ImpossibleSchema",
            Error::MissingColumns { .. } => "MissingColumns",
            Error::UnknownColumns { .. } => "UnknownColumns",
            Error::Target { .. } => "Target",
            Error::NoTarget => "NoTarget",
            Error::Types { .. } => "ColumnTypes",
            Error::Batches { .. } => "RecordBatch",
            Error::NotParquet { .. } => "NotParquet",
            Error::RepeatedFiles { .. } => "RepeatedFiles",
            Error::Features { .. } => "FeatureCount",
            Error::Delimiter { .. } => "Delimiter",
            Error::NoFeatures { .. } => "NoFeatures",
        }
    }

    pub(crate) fn unreadable(path: &Path, problem: &std::io::Error) -> Self {
        Error::Unreadable { path: path.into(), problem: problem.kind() }
    }
}

/// The most names or problems in one message: a table may have thousands of columns.
const MAX_LISTED: usize = 20;

/// `"a", "b" and 7 more`.
pub(crate) fn quoted(names: &[String]) -> String {
    let shown: Vec<_> = names.iter().take(MAX_LISTED).map(|n| format!("{n:?}")).collect();
    let more = names.len() - shown.len();
    let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
    shown.join(", ") + &tail
}

/// `columns 3 and 7`, `columns 1, 2 and 4`.
fn positions(columns: &[usize]) -> String {
    let shown: Vec<String> = columns.iter().take(MAX_LISTED).map(ToString::to_string).collect();
    match (shown.split_last(), columns.len().saturating_sub(MAX_LISTED)) {
        (None, _) => "columns".into(),
        (Some((last, rest)), 0) => format!("columns {} and {last}", rest.join(", ")),
        (Some(_), more) => format!("columns {} and {more} more", shown.join(", ")),
    }
}

/// `a.csv, b.csv and 7 more`.
fn listing(files: &[PathBuf]) -> String {
    let shown: Vec<String> =
        files.iter().take(MAX_LISTED).map(|f| f.display().to_string()).collect();
    let more = files.len() - shown.len();
    let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
    shown.join(", ") + &tail
}

fn listed(problems: &[String]) -> String {
    let mut lines: Vec<_> = problems.iter().take(MAX_LISTED).map(|p| format!("  - {p}")).collect();
    if problems.len() > MAX_LISTED {
        lines.push(format!("  - and {} more", problems.len() - MAX_LISTED));
    }
    lines.join("\n")
}

fn hint(near: &[String], otherwise: &str) -> String {
    if near.is_empty() { otherwise.into() } else { format!("did you mean {}?", quoted(near)) }
}

/// The name most similar to `wanted`, if one is similar enough.
pub(crate) fn nearest<'a>(
    wanted: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let allowed = wanted.chars().count() / 3 + 1;
    let distances = names.into_iter().take(1000).map(|name| (distance(wanted, name), name));
    distances.min_by_key(|(d, _)| *d).filter(|(d, _)| *d <= allowed).map(|(_, name)| name)
}

/// The [`nearest`] of each of `wanted`, once.
pub(crate) fn all_nearest<'a>(
    wanted: &[String],
    names: impl IntoIterator<Item = &'a str> + Clone,
) -> Vec<String> {
    let mut near: Vec<String> = Vec::new();
    for name in wanted.iter().take(MAX_LISTED) {
        match nearest(name, names.clone()) {
            Some(found) if !near.iter().any(|n| n == found) => near.push(found.into()),
            _ => {}
        }
    }
    near
}

/// The edit distance, ignoring case: letters to insert, delete or replace.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.to_lowercase().chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested() {
        let names = ["age", "hours", "education"];
        assert_eq!(nearest("Age", names), Some("age"));
        assert_eq!(nearest("hour", names), Some("hours"));
        assert_eq!(nearest("eduction", names), Some("education"));
        assert_eq!(nearest("salary", names), None);
    }

    #[test]
    fn long_lists_are_shortened() {
        let names: Vec<String> = (0..30).map(|i| i.to_string()).collect();
        assert!(quoted(&names).ends_with("\"19\" and 10 more"));
    }
}
