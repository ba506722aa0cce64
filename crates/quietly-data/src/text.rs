//! Text files: unpacking, and cutting into pieces of whole records.
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

/// A quoted field is closed within this many bytes, or its quote was none. Without a bound, one
/// stray quote could swallow the rest of the file.
const QUOTED: usize = 1 << 20;

/// A record is no longer than this, or it cannot be read.
const RECORD: usize = 16 << 20;

/// The bytes of a text file and a count of the bytes read from the disk.
type Opened = (Box<dyn Read + Send>, Arc<AtomicU64>);

/// A text file that begins with a header, unpacked if its first bytes are those of gzip.
pub(crate) fn open(path: &Path) -> io::Result<Opened> {
    unpacked(path, true)
}

/// A text file that begins with a row, unpacked only if its name ends in `.gz`: a row must not decide.
pub(crate) fn open_by_name(path: &Path) -> io::Result<Opened> {
    unpacked(path, path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz")))
}

fn unpacked(path: &Path, may_be_packed: bool) -> io::Result<Opened> {
    let mut file = File::open(path)?;
    let mut magic = Vec::new();
    Read::by_ref(&mut file).take(2).read_to_end(&mut magic)?;
    file.rewind()?;
    let (counted, count) = Counted::new(file);
    if may_be_packed && magic == [0x1F, 0x8B] {
        Ok((Box::new(MultiGzDecoder::new(BufReader::with_capacity(1 << 17, counted))), count))
    } else {
        Ok((Box::new(counted), count))
    }
}

/// A file that counts what is read from it.
pub(crate) struct Counted {
    file: File,
    count: Arc<AtomicU64>,
}

impl Counted {
    pub(crate) fn new(file: File) -> (Self, Arc<AtomicU64>) {
        let count = Arc::new(AtomicU64::new(0));
        (Counted { file, count: count.clone() }, count)
    }
}

impl Seek for Counted {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.count.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// A text, cut into pieces that end where a record ends.
pub(crate) struct Pieces {
    reader: Box<dyn Read + Send>,
    /// What was read beyond the last piece.
    carry: Vec<u8>,
    ended: bool,
    size: usize,
    /// The delimiter, if fields may be quoted.
    delimiter: Option<u8>,
    /// Stands in for a record that is too long: a line that cannot be read.
    broken: Vec<u8>,
}

impl Pieces {
    pub(crate) fn new(
        reader: Box<dyn Read + Send>,
        size: usize,
        delimiter: Option<u8>,
        broken: Vec<u8>,
    ) -> Self {
        Pieces { reader, carry: Vec::new(), ended: false, size, delimiter, broken }
    }

    /// Leaves out the first bytes.
    pub(crate) fn skip(&mut self, bytes: u64) -> io::Result<()> {
        io::copy(&mut Read::by_ref(&mut self.reader).take(bytes), &mut io::sink()).map(drop)
    }

    /// Puts the next piece at the start of `buffer` and returns its length; 0 at the end. The
    /// buffer only ever grows, so that it is not cleared again and again.
    pub(crate) fn next(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let mut filled = self.carry.len();
        let mut full = self.size.max(2 * filled);
        grow(buffer, full.max(self.broken.len()));
        buffer[..filled].copy_from_slice(&self.carry);
        self.carry.clear();
        loop {
            while filled < full && !self.ended {
                let read = read(&mut self.reader, &mut buffer[filled..full])?;
                self.ended = read == 0;
                filled += read;
            }
            let text = &buffer[..filled];
            let end = if self.ended { filled } else { records_end(text, self.delimiter) };
            if end > 0 || self.ended {
                self.carry.extend_from_slice(&text[end..]);
                return Ok(end);
            }
            if filled >= RECORD {
                return self.give_up(buffer);
            }
            full *= 2;
            grow(buffer, full);
        }
    }

    /// Skips to the end of the line; a broken line takes the place of the record.
    fn give_up(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !self.ended {
            let read = read(&mut self.reader, buffer)?;
            self.ended = read == 0;
            if let Some(newline) = memchr2(b'\n', b'\r', &buffer[..read]) {
                self.carry.extend_from_slice(&buffer[newline + 1..read]);
                break;
            }
        }
        buffer[..self.broken.len()].copy_from_slice(&self.broken);
        Ok(self.broken.len())
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

/// Where the last record ends that `text` holds to its end. `text` starts with a record.
///
/// LF ends a record, and so does CR: between CR and LF there is then a blank line, which is no
/// record. So it does not matter whether a text is cut there.
pub(crate) fn records_end(text: &[u8], delimiter: Option<u8>) -> usize {
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

/// The next quote, from `at` on, that stands at the start of a field.
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
    /// The last byte of the text, unless another quote follows it.
    Last,
    /// Nothing so far, but the text may go on.
    NotYet,
    /// Nothing: it is not a quoted field.
    Never,
}

/// The quote that closes the one at `quote`; two quotes in a row stand for one and close nothing.
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

/// The end of the record whose field starts at `at`: the start of the next.
pub(crate) fn skip_record(text: &[u8], mut at: usize, delimiter: u8) -> usize {
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

    /// Wherever a text is cut off, what is found is where a record of the whole text ends.
    #[test]
    fn records_end_where_records_end() {
        let records = [
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
        let text = records.concat().into_bytes();
        let mut ends = vec![0];
        for record in records {
            ends.push(ends[ends.len() - 1] + record.len());
        }
        for pair in ends.windows(2) {
            assert_eq!(skip_record(&text, pair[0], b','), pair[1]);
        }
        let open = ends[9];
        for length in 0..text.len() {
            let end = records_end(&text[..length], Some(b','));
            assert!(ends.contains(&end), "{length}: {end}");
            // Not more than one record is held back, as far as quotes are closed.
            let last = ends.iter().rev().find(|e| **e <= length.min(open)).unwrap();
            assert!(end >= *last || text[length - 1] == b'"', "{length}: {end}");
        }
    }

    #[test]
    fn a_quote_without_end_is_given_up() {
        let mut text = b"\"a\n".to_vec();
        text.extend(b"b\n".repeat(QUOTED));
        assert_eq!(records_end(&text[..QUOTED / 2], Some(b',')), 0);
        assert_eq!(records_end(&text, Some(b',')), text.len());
        assert_eq!(skip_record(&text, 0, b','), 3);
    }
}
