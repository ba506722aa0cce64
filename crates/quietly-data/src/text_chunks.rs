//! Text files: decompression, and chunks of whole rows.
use std::{
    fs::File,
    io::{self, BufReader, ErrorKind, Read, Seek},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use flate2::read::MultiGzDecoder;
use memchr::{memchr, memchr2, memrchr2};

/// A quote that is not closed within this many bytes does not open a field. Without a bound, one
/// stray quote could swallow the rest of the file.
const QUOTED: usize = 1 << 20;

/// A row with more bytes than this cannot be read.
const MAX_ROW: usize = 16 << 20;

/// The bytes of a text file and a count of the bytes read from the disk.
type Opened = (Box<dyn Read + Send>, Arc<AtomicU64>);

/// A text file that begins with a header, decompressed if its first bytes are those of gzip.
pub(crate) fn open(path: &Path) -> io::Result<Opened> {
    decompressed(path, true)
}

/// A text file that begins with a row, decompressed only if its name ends in `.gz`: a row must not
/// decide.
pub(crate) fn open_by_name(path: &Path) -> io::Result<Opened> {
    decompressed(path, path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz")))
}

fn decompressed(path: &Path, may_be_gzip: bool) -> io::Result<Opened> {
    let mut file = File::open(path)?;
    let mut magic = Vec::new();
    Read::by_ref(&mut file).take(2).read_to_end(&mut magic)?;
    file.rewind()?;
    let (counted, count) = CountingFile::new(file);
    if may_be_gzip && magic == [0x1F, 0x8B] {
        Ok((Box::new(MultiGzDecoder::new(BufReader::with_capacity(1 << 17, counted))), count))
    } else {
        Ok((Box::new(counted), count))
    }
}

/// A file that counts the bytes that are read from it.
pub(crate) struct CountingFile {
    file: File,
    count: Arc<AtomicU64>,
}

impl CountingFile {
    pub(crate) fn new(file: File) -> (Self, Arc<AtomicU64>) {
        let count = Arc::new(AtomicU64::new(0));
        (CountingFile { file, count: count.clone() }, count)
    }
}

impl Seek for CountingFile {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl Read for CountingFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.count.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// The chunks of a text. Each ends where a row ends.
pub(crate) struct TextChunks {
    reader: Box<dyn Read + Send>,
    /// The bytes after the last chunk that are already read.
    carry: Vec<u8>,
    ended: bool,
    size: usize,
    /// The delimiter, if fields may be quoted.
    delimiter: Option<u8>,
    /// Replaces a row that is too long: a line that cannot be read.
    unreadable_row: Vec<u8>,
}

impl TextChunks {
    pub(crate) fn new(
        reader: Box<dyn Read + Send>,
        size: usize,
        delimiter: Option<u8>,
        unreadable_row: Vec<u8>,
    ) -> Self {
        TextChunks { reader, carry: Vec::new(), ended: false, size, delimiter, unreadable_row }
    }

    /// Skips the first bytes.
    pub(crate) fn skip(&mut self, bytes: u64) -> io::Result<()> {
        io::copy(&mut Read::by_ref(&mut self.reader).take(bytes), &mut io::sink()).map(drop)
    }

    /// Puts the next chunk at the start of `buffer` and returns its length, which is 0 at the end.
    /// The buffer never shrinks, so that it is not zeroed again for each chunk.
    pub(crate) fn next(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let mut filled = self.carry.len();
        let mut full = self.size.max(2 * filled);
        grow(buffer, full.max(self.unreadable_row.len()));
        buffer[..filled].copy_from_slice(&self.carry);
        self.carry.clear();
        loop {
            while filled < full && !self.ended {
                let read = read(&mut self.reader, &mut buffer[filled..full])?;
                self.ended = read == 0;
                filled += read;
            }
            let text = &buffer[..filled];
            let end = if self.ended { filled } else { rows_end(text, self.delimiter) };
            if end > 0 || self.ended {
                self.carry.extend_from_slice(&text[end..]);
                return Ok(end);
            }
            if filled >= MAX_ROW {
                return self.skip_long_row(buffer);
            }
            full *= 2;
            grow(buffer, full);
        }
    }

    /// Skips to the end of the line. A line that cannot be read replaces the row.
    fn skip_long_row(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !self.ended {
            let read = read(&mut self.reader, buffer)?;
            self.ended = read == 0;
            if let Some(newline) = memchr2(b'\n', b'\r', &buffer[..read]) {
                self.carry.extend_from_slice(&buffer[newline + 1..read]);
                break;
            }
        }
        buffer[..self.unreadable_row.len()].copy_from_slice(&self.unreadable_row);
        Ok(self.unreadable_row.len())
    }
}

fn grow(buffer: &mut Vec<u8>, size: usize) {
    if buffer.len() < size {
        buffer.resize(size, 0);
    }
}

fn read(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match reader.read(buffer) {
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// The end of the last complete row in `text`, which starts with a row.
///
/// LF ends a row, and so does CR. Between CR and LF there is then a blank line, which is not a row.
/// So a chunk may end there.
pub(crate) fn rows_end(text: &[u8], delimiter: Option<u8>) -> usize {
    let mut end = 0;
    let mut at = 0;
    while let Some(delimiter) = delimiter {
        let Some(quote) = opening_quote(text, at, delimiter) else { break };
        end = memrchr2(b'\n', b'\r', &text[at..quote]).map_or(end, |newline| at + newline + 1);
        at = match closing_quote(text, quote) {
            Close::At(closing) => closing + 1,
            Close::NotYet | Close::Last => return end,
            Close::Never => match memchr2(b'\n', b'\r', &text[quote..]) {
                Some(newline) => quote + newline + 1,
                None => return end,
            },
        };
        if matches!(text[at - 1], b'\n' | b'\r') {
            end = at;
        }
    }
    memrchr2(b'\n', b'\r', &text[at..]).map_or(end, |newline| at + newline + 1)
}

/// The next quote, from `at` on, that is at the start of a field.
fn opening_quote(text: &[u8], mut at: usize, delimiter: u8) -> Option<usize> {
    loop {
        let quote = at + memchr(b'"', &text[at..])?;
        let before = quote.checked_sub(1).map(|before| text[before]);
        match before {
            None | Some(b'\n' | b'\r') => return Some(quote),
            Some(before) if before == delimiter => return Some(quote),
            Some(_) => {}
        }
        at = quote + 1;
    }
}

/// What closes a quoted field.
pub(crate) enum Close {
    /// The quote here.
    At(usize),
    /// The last byte of the text, unless another quote follows in the next chunk.
    Last,
    /// Nothing so far, but more text may follow.
    NotYet,
    /// Nothing: the field is not quoted.
    Never,
}

/// Finds the quote that closes the one at `quote`. Two adjacent quotes are an escaped quote.
pub(crate) fn closing_quote(text: &[u8], quote: usize) -> Close {
    let far = quote + QUOTED;
    let near = &text[..text.len().min(far)];
    let mut at = quote + 1;
    while let Some(found) = memchr(b'"', &near[at.min(near.len())..]) {
        let closing = at + found;
        match text.get(closing + 1) {
            Some(b'"') => at = closing + 2,
            None => return Close::Last,
            Some(_) => return Close::At(closing),
        }
    }
    if text.len() < far { Close::NotYet } else { Close::Never }
}

/// The start of the next row, given the start of a field.
pub(crate) fn skip_row(text: &[u8], mut at: usize, delimiter: u8) -> usize {
    loop {
        let newline = memchr2(b'\n', b'\r', &text[at..]).map_or(text.len(), |n| at + n + 1);
        match opening_quote(&text[..newline], at, delimiter) {
            None => return newline,
            Some(quote) => match closing_quote(text, quote) {
                Close::At(closing) => at = closing + 1,
                Close::Last => return text.len(),
                _ => {
                    let newline = memchr2(b'\n', b'\r', &text[quote..]);
                    return newline.map_or(text.len(), |n| quote + n + 1);
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For every prefix of a text, the end that is found is the end of a row of the whole text.
    #[test]
    fn row_ends_do_not_depend_on_where_a_chunk_ends() {
        let rows = [
            "a,\"b\nc\"\r",
            "\n",
            "x,y\r",
            "1,\"\r\"\r",
            "\"\"\"x\n\"\"\",1\n",
            "5\"\n",
            "\",\n\"y\"z\n",
            ",\"\n\n\"\n",
            "\"\"\n",
            "\"open\n",
            "1,2\n",
        ];
        let text = rows.concat().into_bytes();
        let mut ends = vec![0];
        for row in rows {
            ends.push(ends[ends.len() - 1] + row.len());
        }
        for pair in ends.windows(2) {
            assert_eq!(skip_row(&text, pair[0], b','), pair[1]);
        }
        let open = ends[9];
        for length in 0..text.len() {
            let end = rows_end(&text[..length], Some(b','));
            assert!(ends.contains(&end), "{length}: {end}");
            // At most one row is held back, where quotes are closed.
            let last = ends.iter().rev().find(|e| **e <= length.min(open)).unwrap();
            assert!(end >= *last || text[length - 1] == b'"', "{length}: {end}");
        }
    }

    #[test]
    fn an_unclosed_quote_is_no_quote() {
        let mut text = b"\"a\n".to_vec();
        text.extend(b"b\n".repeat(QUOTED));
        assert_eq!(rows_end(&text[..QUOTED / 2], Some(b',')), 0);
        assert_eq!(rows_end(&text, Some(b',')), text.len());
        assert_eq!(skip_row(&text, 0, b','), 3);
    }
}
