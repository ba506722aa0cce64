//! The first line of CSV: a header with the names of the columns, or a row of data.
//!
//! A name that only the file contains may be a cell: `split -l`, for example, makes files without a
//! header. The line is a header if it contains every name of the schema or the model, if no cell of
//! it looks like data, or if the caller says so. Messages contain only counts and positions.
use std::{
    collections::{HashMap, HashSet},
    io::Read,
    path::Path,
};

use crate::{
    Error, Format, Options, chunk_reader::text_failed, csv, name, number, schema::MAX_COLUMNS,
    source::Layout, text_chunks,
};

/// The most bytes of a header. Each read doubles the bytes, so that they are scanned only a few
/// times.
const LONGEST: usize = 16 << 20;
/// The most characters of a name.
const NAME: usize = 128;

/// Reads at most 64 kB more, or as many bytes as there are already.
pub(crate) fn read_more(reader: &mut dyn Read, start: &mut Vec<u8>) -> std::io::Result<usize> {
    reader.take(start.len().max(1 << 16) as u64).read_to_end(start)
}

/// The layout and the names of a CSV file. `start` holds its first bytes.
pub(crate) fn csv_layout(
    path: &Path,
    mut reader: Box<dyn Read + Send>,
    mut start: Vec<u8>,
    options: &Options,
) -> Result<(Layout, Vec<String>), Error> {
    if let Some(delimiter) = options.delimiter.filter(|d| b"\"\r\n".contains(d)) {
        return Err(Error::Delimiter { delimiter: delimiter as char });
    }
    let no_header = |got| Err(Error::NoHeader { path: path.into(), got });
    let (mut delimiter, mut end);
    let skipped = loop {
        let mark = if start.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
        let blank = start[mark..].iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
        let text = &start[mark + blank..];
        // Whether a quote opens a field depends on the delimiter, which the first line shows.
        let line = &text[..csv::line_end(text).unwrap_or(text.len())];
        delimiter = options.delimiter.unwrap_or_else(|| csv::sniff(line));
        end = text_chunks::skip_row(text, 0, delimiter);
        if end < text.len() || text.ends_with(b"\n") || text.ends_with(b"\r") {
            break mark + blank;
        }
        if start.len() > LONGEST {
            return no_header("a first line of more than 16 MB");
        }
        let read = read_more(&mut reader, &mut start);
        if read.map_err(|e| text_failed(path, Format::Csv, &e))? == 0 {
            break mark + blank;
        }
    };
    let text = &start[skipped..skipped + end];
    if text.trim_ascii().is_empty() {
        return no_header("only blank lines");
    }
    if text.len() > LONGEST {
        return no_header("a first line of more than 16 MB");
    }
    // Names of columns may be in brackets.
    let (first, next) = (text.first(), text[1..].trim_ascii_start().first());
    let inside = next.is_none_or(|next| b"\"{[".contains(next));
    if matches!(first, Some(b'{' | b'[')) && inside {
        return no_header("what looks like JSON, which is not supported");
    }
    let names = csv::header(text, delimiter, MAX_COLUMNS + 1);
    if names.len() > MAX_COLUMNS {
        return no_header("more than a million columns");
    }
    if let (false, Some(got)) = (options.header, problem(&names, &options.names)) {
        return no_header(got);
    }
    Ok((Layout::Csv { delimiter, start: (skipped + end) as u64 }, names))
}

/// Why a first line is not a header, if it is not. `known` are the names of the schema or the
/// model.
fn problem(names: &[String], known: &[String]) -> Option<&'static str> {
    let there: HashSet<&str> = names.iter().map(String::as_str).collect();
    let found = known.iter().filter(|name| there.contains(name.as_str())).count();
    if found == 0 && !known.is_empty() {
        return Some(
            "a first line with none of the names of the schema or the model, which may be a row of \
             data",
        );
    }
    // A column may be named 2020, and a cell may hold 2020: such a name proves nothing.
    let telling = known.iter().any(|name| data(name).is_none());
    if telling && found == known.len() {
        return None;
    }
    names.iter().find_map(|name| data(name))
}

/// Why a cell looks like data, if it does.
fn data(cell: &str) -> Option<&'static str> {
    if cell.is_empty() {
        Some("what looks like a row of data (a cell is empty)")
    } else if cell.chars().any(char::is_control) {
        Some("what looks like a row of data (a cell contains a control character)")
    } else if cell.chars().nth(NAME).is_some() {
        Some("what looks like a row of data (a cell has more than 128 characters)")
    } else if is_number_or_date(cell) {
        Some("what looks like a row of data (a cell is a number or a date)")
    } else {
        None
    }
}

/// Whether a cell is a number, an amount, a date or a time: digits without letters, or with those
/// of a month, a time zone or an exponent.
fn is_number_or_date(cell: &str) -> bool {
    const WORDS: [&str; 18] = [
        "", "t", "tz", "z", "am", "pm", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug",
        "sep", "oct", "nov", "dec",
    ];
    const MONTHS: [&str; 11] = [
        "january",
        "february",
        "march",
        "april",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    if !cell.chars().any(|c| c.is_ascii_digit()) {
        return false;
    }
    let letters = cell.chars().filter(|c| c.is_alphabetic()).flat_map(char::to_lowercase);
    let letters: String = letters.take(16).collect();
    number::whole(cell.as_bytes()).is_some()
        || WORDS.contains(&letters.as_str())
        || MONTHS.contains(&letters.as_str())
}

/// Refuses columns that have the same name.
pub(crate) fn check_names(path: &Path, names: &[String]) -> Result<(), Error> {
    name::check_header(path, names)?;
    let mut first: HashMap<&str, usize> = HashMap::new();
    let mut twice: Vec<usize> = Vec::new();
    for (place, name) in names.iter().enumerate() {
        if let Some(before) = first.insert(name, place) {
            twice.extend([before + 1, place + 1]);
        }
    }
    twice.sort_unstable();
    twice.dedup();
    if twice.is_empty() {
        return Ok(());
    }
    Err(Error::DuplicateColumns { path: path.into(), columns: twice })
}

/// How the columns of two files differ, as counts.
pub(crate) fn difference(first: &[String], second: &[String]) -> String {
    let only = |a: &[String], b: &[String]| {
        let b: HashSet<&String> = b.iter().collect();
        a.iter().filter(|name| !b.contains(name)).count()
    };
    let (mine, yours) = (only(first, second), only(second, first));
    if (mine, yours) == (0, 0) {
        return "they have the same columns in another order".into();
    }
    if yours == second.len() {
        let columns = if yours == 1 { "1 column".into() } else { format!("{yours} columns") };
        return format!(
            "the second has {columns}, none of which the first has (its first line may be a row of data)"
        );
    }
    let counted = |n: usize, which: &str| match n {
        0 => None,
        1 => Some(format!("1 column is only in the {which}")),
        n => Some(format!("{n} columns are only in the {which}")),
    };
    let parts = [counted(mine, "first"), counted(yours, "second")];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(line: &str) -> Vec<String> {
        csv::header(line.as_bytes(), b',', 100)
    }

    #[test]
    fn a_row_of_data_is_not_a_header() {
        for line in [
            "5.1,3.5,1.4,0.2,setosa",
            "0,1,0,1",
            "0,1,2,3",
            "K-4711,44,HIV positive,3.2",
            "name,2020-01-31",
            "name,31.12.2020 12:30",
            "name,12-Jan-2020",
            "name,2020-01-31T00:00:00Z",
            "name,1e-5",
            "name,$5",
            "name,,age",
            "name,a\u{1b}[2J",
        ] {
            assert!(problem(&names(line), &[]).is_some(), "{line}");
        }
        let long = format!("name,{}", "x".repeat(129));
        assert!(problem(&names(&long), &[]).is_some());
        for line in ["label,x0.5,x", "q1,q2,1st,2nd", "age", "Größe (cm),温度", "may,inf,nan"] {
            assert_eq!(problem(&names(line), &[]), None, "{line}");
        }
    }

    #[test]
    fn known_names_prove_a_header() {
        let known = names("a,y");
        assert_eq!(problem(&names(",a,2020,y"), &known), None);
        assert!(problem(&names(",a,2020,z"), &known).is_some());
        assert!(problem(&names("b,c,d"), &known).is_some());
        // Names such as 0 and 1 do not prove that a line of zeros and ones is a header.
        assert!(problem(&names("0,1,0"), &names("0,1")).is_some());
    }

    #[test]
    fn differences_are_counted() {
        let describe = |a: &str, b: &str| difference(&names(a), &names(b));
        assert!(describe("a,b", "b,a").contains("another order"));
        assert!(describe("a,b", "c,d").contains("the second has 2 columns, none of which"));
        let some = describe("a,b,c", "a,d");
        assert_eq!(some, "2 columns are only in the first, 1 column is only in the second");
    }
}
