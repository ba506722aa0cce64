use std::path::{Path, PathBuf};

use crate::Format;

/// What can go wrong, in the caller's words.
///
/// Errors speak of files, types and the schema, which are public. A name of a column is quoted only
/// where the command line, the schema or the model says it. A name that only a file says may be a
/// cell of its first row: errors tell its place, or how many there are. No cell and no row causes an
/// error, and none appears in one.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages explain the fields")]
#[non_exhaustive]
pub enum Error {
    /// A file or folder cannot be opened or read.
    #[error("cannot read {}: {problem}; check the path and who may read it", path.display())]
    Unreadable { path: PathBuf, problem: std::io::ErrorKind },
    /// A folder, a pattern or a list of paths holds no table.
    #[error(
        "no table in {place}: wanted files that end in {}; name the files themselves if they end \
         otherwise", crate::format::ENDINGS.join(", ")
    )]
    NoFiles { place: String },
    /// A file is not what its format says, or it ends too early.
    #[error(
        "{} cannot be read as {format}: it is something else, damaged or cut off; check the file, \
         or say which format it has", path.display()
    )]
    Damaged { path: PathBuf, format: Format },
    /// A file is of a format that is not read, by its first bytes.
    #[error("{} is {what}, which is not read as {format}; {instead}", path.display())]
    Foreign { path: PathBuf, format: Format, what: &'static str, instead: &'static str },
    /// A file has no line of column names.
    #[error(
        "{} has no header: wanted a first line with the names of the columns, got {got}; add one, \
         or insist by header = true in the schema", path.display()
    )]
    NoHeader { path: PathBuf, got: &'static str },
    /// Columns of a file, counted from 1, that have the same name.
    #[error("{} of {} have the same name; rename all but one", places(columns), path.display())]
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
    /// A schema still has question marks.
    #[error(
        "the schema is not finished: replace \"?\" for {}, by what is publicly known and never by \
         what the table happens to hold",
        quoted(names)
    )]
    Unfinished { names: Vec<String> },
    /// A schema says something impossible.
    #[error("the schema cannot be used:\n{}", listed(problems))]
    Schema { problems: Vec<String> },
    /// The file lacks columns that the schema, the features or the model name.
    #[error("the table has no column {}; check the header of the file", quoted(names))]
    MissingColumns { names: Vec<String> },
    /// Features or target name columns that the schema does not describe.
    #[error(
        "the schema does not describe {}; {}",
        quoted(names),
        hint(near, "add them under [columns]")
    )]
    UnknownColumns { names: Vec<String>, near: Vec<String> },
    /// The target is of the wrong kind, or is a feature too.
    #[error("{name:?} cannot be the target: {problem}")]
    Target { name: String, problem: &'static str },
    /// There is nothing to learn to predict.
    #[error("there is no target; name the column to predict")]
    NoTarget,
    /// A column has a type that cannot be read as its schema says.
    #[error(
        "{} has columns that cannot be read as the schema says: {}; wanted numbers, texts or \
         booleans; convert them, or leave them out of the schema", path.display(), columns.join(", ")
    )]
    Types { path: PathBuf, columns: Vec<String> },
    /// Batches in memory do not make one table.
    #[error("the batches in memory are not one table: {problem}")]
    Batches { problem: &'static str },
    /// libsvm text does not say how many features it has.
    #[error(
        "{} is libsvm text, which has no header; say features = N (the highest index) in the schema",
        path.display()
    )]
    Features { path: PathBuf },
    /// Something else than Parquet cannot be read in parts.
    #[error(
        "{} is not Parquet: only that can be read in parts, by many machines or step by step; write the table as Parquet \
         first", path.display()
    )]
    NotParquet { path: PathBuf },
    /// Files that seem to hold the same rows.
    #[error("{}: {problem}; every row must be in the table once", listing(files))]
    RepeatedFiles { files: Vec<PathBuf>, problem: &'static str },
    /// Lines or quotes would end at the delimiter.
    #[error("the delimiter cannot be {delimiter:?}; wanted one byte such as ',' or ';'")]
    Delimiter { delimiter: char },
    /// Nothing is left to learn from.
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

    /// What the other languages call it: the name of an exception without its "Error".
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
            Error::Batches { .. } => "Batches",
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

/// At most this many names or problems in one message; a table may have thousands of columns.
const MOST: usize = 20;

/// `"a", "b" and 7 more`.
pub(crate) fn quoted(names: &[String]) -> String {
    let shown: Vec<_> = names.iter().take(MOST).map(|n| format!("{n:?}")).collect();
    let more = names.len() - shown.len();
    let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
    shown.join(", ") + &tail
}

/// `columns 3 and 7`, `columns 1, 2 and 4`.
fn places(columns: &[usize]) -> String {
    let shown: Vec<String> = columns.iter().take(MOST).map(ToString::to_string).collect();
    match (shown.split_last(), columns.len().saturating_sub(MOST)) {
        (None, _) => "columns".into(),
        (Some((last, rest)), 0) => format!("columns {} and {last}", rest.join(", ")),
        (Some(_), more) => format!("columns {} and {more} more", shown.join(", ")),
    }
}

/// `a.csv, b.csv and 7 more`.
fn listing(files: &[PathBuf]) -> String {
    let shown: Vec<String> = files.iter().take(MOST).map(|f| f.display().to_string()).collect();
    let more = files.len() - shown.len();
    let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
    shown.join(", ") + &tail
}

fn listed(problems: &[String]) -> String {
    let mut lines: Vec<_> = problems.iter().take(MOST).map(|p| format!("  - {p}")).collect();
    if problems.len() > MOST {
        lines.push(format!("  - and {} more", problems.len() - MOST));
    }
    lines.join("\n")
}

fn hint(near: &[String], otherwise: &str) -> String {
    if near.is_empty() { otherwise.into() } else { format!("did you mean {}?", quoted(near)) }
}

/// The name that looks most like `wanted`, if any does.
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
    for name in wanted.iter().take(MOST) {
        match nearest(name, names.clone()) {
            Some(found) if !near.iter().any(|n| n == found) => near.push(found.into()),
            _ => {}
        }
    }
    near
}

/// How many letters must be inserted, deleted or replaced; upper and lower case are the same.
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
    fn the_nearest_name_is_near() {
        let names = ["age", "hours", "education"];
        assert_eq!(nearest("Age", names), Some("age"));
        assert_eq!(nearest("hour", names), Some("hours"));
        assert_eq!(nearest("eduction", names), Some("education"));
        assert_eq!(nearest("salary", names), None);
    }

    #[test]
    fn long_lists_are_cut() {
        let names: Vec<String> = (0..30).map(|i| i.to_string()).collect();
        assert!(quoted(&names).ends_with("\"19\" and 10 more"));
    }
}
