//! CSV: reads the header, and decodes chunks of whole rows.
use std::borrow::Cow;

use memchr::{memchr, memchr3};

use crate::{
    block::Block,
    column_decoder::{ColumnDecoder, DenseRow, RowDecoder},
    number,
    text_chunks::{Close, closing_quote, skip_row},
};

/// The names in a header line, at most `most`. The line ends at the first newline outside quotes.
pub(crate) fn header(line: &[u8], delimiter: u8, most: usize) -> Vec<String> {
    let mut names = Vec::new();
    let mut at = 0;
    loop {
        if names.len() == most {
            return names;
        }
        let Some(field) = field(line, at, delimiter) else {
            // A quote is not closed: split the line as if there were none.
            let text = String::from_utf8_lossy(line);
            let cells = text.trim().split(delimiter as char);
            return cells.map(|n| n.trim().into()).take(most).collect();
        };
        names.push(String::from_utf8_lossy(field.text.trim_ascii()).into_owned());
        at = field.next;
        if field.last {
            return names;
        }
    }
}

/// The end of the first line. A line ends with LF, CR LF or CR.
pub(crate) fn line_end(text: &[u8]) -> Option<usize> {
    memchr::memchr2(b'\n', b'\r', text)
}

/// The delimiter that occurs most often in a header line, outside quotes.
pub(crate) fn sniff(line: &[u8]) -> u8 {
    let mut counts = [(b',', 0), (b';', 0), (b'\t', 0), (b'|', 0)];
    let mut quoted = false;
    for byte in line {
        quoted ^= *byte == b'"';
        if let Some((_, count)) = counts.iter_mut().find(|(d, _)| !quoted && d == byte) {
            *count += 1;
        }
    }
    // The first of equals, so that a single column gets a comma.
    let most = counts.iter().map(|(_, n)| *n).max();
    counts.into_iter().find(|(_, n)| Some(*n) == most).map_or(b',', |(d, _)| d)
}

/// Decodes a chunk of text that holds whole rows.
pub(crate) fn decode(text: &[u8], delimiter: u8, decoder: &RowDecoder, block: &mut Block) {
    // Numbers are parsed fast only if their characters cannot be the delimiter.
    let plain = decoder.notation.is_usual()
        && !(delimiter.is_ascii_alphanumeric() || b"+-.".contains(&delimiter));
    let mut at = 0;
    while at < text.len() {
        match text[at..] {
            [b'\n' | b'\r', ..] => at += 1,
            _ => {
                block.push(decoder.nulls, |row| {
                    let mut fields = Fields { text, at, delimiter, plain, readable: true };
                    let kept = fields.read(&decoder.cells, row);
                    at = fields.at;
                    if fields.readable {
                        return kept;
                    }
                    row.features.fill(0.0);
                    decoder.unreadable(row)
                });
            }
        }
    }
}

/// The fields of a row, which are read up to `at`.
struct Fields<'a> {
    text: &'a [u8],
    at: usize,
    delimiter: u8,
    plain: bool,
    readable: bool,
}

impl Fields<'_> {
    /// Reads all fields, or fewer if an earlier one makes this a null row. Ends at the start of the
    /// next row.
    #[inline]
    fn read(&mut self, cells: &[ColumnDecoder], row: &mut DenseRow<'_>) -> bool {
        let fields = cells.len();
        for (i, cell) in cells.iter().enumerate() {
            let last = i + 1 == fields;
            let number = matches!(cell, ColumnDecoder::Number(_) | ColumnDecoder::Target { .. });
            let kept = match self.number(number, last) {
                Some(x) => cell.number(x, row),
                None => {
                    let Some(field) = field(self.text, self.at, self.delimiter) else {
                        return self.unreadable();
                    };
                    if field.last != last {
                        // Too few fields, or too many.
                        if field.last {
                            self.at = field.next;
                            self.readable = false;
                            return false;
                        }
                        return self.unreadable();
                    }
                    self.at = field.next;
                    cell.text(&field.text, row)
                }
            };
            if !kept {
                // Too many or too few fields would make it a null row as well: find its end.
                if !last {
                    self.at = skip_row(self.text, self.at, self.delimiter);
                }
                return false;
            }
        }
        true
    }

    /// The number that fills the next field, if it is written in the usual notation without quotes.
    #[inline]
    fn number(&mut self, wanted: bool, last: bool) -> Option<f64> {
        if !(wanted && self.plain) {
            return None;
        }
        let (x, used) = number::prefix(&self.text[self.at..])?;
        let end = self.at + used;
        self.at = match self.text.get(end) {
            Some(byte) if *byte == self.delimiter && !last => end + 1,
            Some(b'\n') if last => end + 1,
            Some(b'\r') if last && self.text.get(end + 1) == Some(&b'\n') => end + 2,
            Some(b'\r') if last => end + 1,
            None if last => end,
            _ => return None,
        };
        Some(x)
    }

    fn unreadable(&mut self) -> bool {
        self.at = skip_row(self.text, self.at, self.delimiter);
        self.readable = false;
        false
    }
}

struct Field<'a> {
    text: Cow<'a, [u8]>,
    /// Where the next field, or the next row, starts.
    next: usize,
    /// Whether the row ends here.
    last: bool,
}

/// The field that starts at `at`. `None` if its quotes do not match.
fn field(text: &[u8], at: usize, delimiter: u8) -> Option<Field<'_>> {
    if text.get(at) != Some(&b'"') {
        let length = memchr3(delimiter, b'\n', b'\r', &text[at..]);
        let end = length.map_or(text.len(), |n| at + n);
        let last = text.get(end) != Some(&delimiter);
        let next = (end + 1).min(text.len());
        return Some(Field { text: text[at..end].into(), next, last });
    }
    let closing = match closing_quote(text, at) {
        Close::At(closing) => closing,
        Close::Last => text.len() - 1,
        Close::NotYet | Close::Never => return None,
    };
    let after = &text[closing + 1..];
    let blank = |b: &u8| *b != delimiter && matches!(b, b' ' | b'\t');
    let spaces = after.iter().take_while(|b| blank(b)).count();
    let end = closing + 1 + spaces;
    let last = match text.get(end) {
        Some(byte) if *byte == delimiter => false,
        Some(b'\n' | b'\r') | None => true,
        Some(_) => return None,
    };
    let inside = unescape(&text[at + 1..closing]);
    Some(Field { text: inside, next: (end + 1).min(text.len()), last })
}

/// Replaces every two quotes by one.
fn unescape(inside: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = memchr(b'"', inside) else { return inside.into() };
    let mut text = inside[..first].to_vec();
    let mut rest = inside[first..].iter();
    while let Some(byte) = rest.next() {
        text.push(*byte);
        if *byte == b'"' {
            rest.next();
        }
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_and_delimiters_guessed() {
        let line = b"a; \"b;c\" ;\"d\"\"e\";f\r\n";
        let header = |line: &[u8], delimiter| header(line, delimiter, 1000);
        assert_eq!(sniff(line), b';');
        assert_eq!(header(line, b';'), ["a", "\"b", "c\"", "d\"e", "f"]);
        assert_eq!(header(b"\"a,b\",c", b','), ["a,b", "c"]);
        assert_eq!(header(b"\"a\" ,c\r1,2\r", b','), ["a", "c"]);
        assert_eq!(header(b"a,b,\n", b','), ["a", "b", ""]);
        assert_eq!(super::header(b"a,b,c,d\n", b',', 2), ["a", "b"]);
        assert_eq!(sniff(b"age\n"), b',');
        assert_eq!(sniff(b"\"a,b,c\"\td\n"), b'\t');
    }
}
