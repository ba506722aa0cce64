//! Compares the lengths in Arrow IPC files and streams with the size of the file.
//!
//! The reader allocates as much memory as a footer, a message or a compressed buffer declares. A
//! flipped bit there would ask for an exabyte, and the process would abort. Only metadata is read
//! here, and eight bytes of every compressed buffer.
use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
};

use arrow_ipc::{
    CompressionType, Message, MessageHeader, RecordBatch, reader::read_footer_length,
    root_as_footer, root_as_message,
};

use crate::panic_guard::max_inflated;

/// The most rows of a batch whose columns take no bytes, as columns of nulls do.
const FREE_ROWS: u64 = 1 << 16;

/// Whether all lengths in a file fit its size.
pub(crate) fn fit(file: &mut File) -> io::Result<bool> {
    let size = file.metadata()?.len();
    let mut frames = Frames { file, size };
    frames.file.rewind()?;
    let magic = frames.bytes(0, 6.min(size))?;
    let fits = if magic == b"ARROW1" { frames.of_file()? } else { frames.of_stream()? };
    frames.file.rewind()?;
    Ok(fits.is_some())
}

struct Frames<'a> {
    file: &'a mut File,
    size: u64,
}

/// `None` if a length does not fit.
type Fits = io::Result<Option<()>>;

impl Frames<'_> {
    fn bytes(&mut self, at: u64, length: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(at))?;
        Read::by_ref(self.file).take(length).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn of_file(&mut self) -> Fits {
        let Some(tail) = self.size.checked_sub(10) else { return Ok(None) };
        let Ok(last) = <[u8; 10]>::try_from(self.bytes(tail, 10)?) else { return Ok(None) };
        let Ok(length) = read_footer_length(last) else { return Ok(None) };
        let Some(start) = tail.checked_sub(length as u64) else { return Ok(None) };
        let bytes = self.bytes(start, length as u64)?;
        let Ok(footer) = root_as_footer(&bytes) else { return Ok(None) };
        let blocks = footer.dictionaries().into_iter().chain(footer.recordBatches()).flatten();
        for block in blocks {
            let place = (block.offset(), block.metaDataLength(), block.bodyLength());
            let (Ok(at), Ok(head), Ok(body)) =
                (u64::try_from(place.0), u64::try_from(place.1), u64::try_from(place.2))
            else {
                return Ok(None);
            };
            let end = at.checked_add(head).and_then(|end| end.checked_add(body));
            if head < 8 || end.is_none_or(|end| end > self.size) {
                return Ok(None);
            }
            let bytes = self.bytes(at, head)?;
            let start = if bytes.starts_with(&[0xFF; 4]) { 8 } else { 4 };
            let Some(Ok(message)) = bytes.get(start..).map(root_as_message) else {
                return Ok(None);
            };
            if self.message(&message, at + head, body)?.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(()))
    }

    fn of_stream(&mut self) -> Fits {
        let mut at = 0;
        loop {
            let start = self.bytes(at, 8)?;
            let word = |from: usize| {
                let four = start.get(from..from + 4)?;
                Some(u32::from_le_bytes(four.try_into().ok()?))
            };
            // Streams before version 0.15 have no marker before the length.
            let (length, skip) = match word(0) {
                Some(u32::MAX) => (word(4), 8),
                first => (first, 4),
            };
            // The reader itself handles a truncated length and the zeros at the end.
            let Some(length) = length.filter(|n| *n > 0).map(u64::from) else {
                return Ok(Some(()));
            };
            at += skip;
            if at + length > self.size {
                return Ok(None);
            }
            let bytes = self.bytes(at, length)?;
            let Ok(message) = root_as_message(&bytes) else { return Ok(None) };
            let Ok(body) = u64::try_from(message.bodyLength()) else { return Ok(None) };
            at += length;
            if at.checked_add(body).is_none_or(|end| end > self.size) {
                return Ok(None);
            }
            if self.message(&message, at, body)?.is_none() {
                return Ok(None);
            }
            at += body;
        }
    }

    fn message(&mut self, message: &Message<'_>, at: u64, body: u64) -> Fits {
        let batch = match message.header_type() {
            MessageHeader::RecordBatch => message.header_as_record_batch(),
            MessageHeader::DictionaryBatch => {
                message.header_as_dictionary_batch().and_then(|batch| batch.data())
            }
            _ => return Ok(Some(())),
        };
        match batch {
            Some(batch) => self.batch(&batch, at, body),
            None => Ok(None),
        }
    }

    /// Checks that the buffers of a batch are inside its body, that they do not decompress to more
    /// than they can, and that they are large enough for its rows.
    fn batch(&mut self, batch: &RecordBatch<'_>, at: u64, body: u64) -> Fits {
        let ratio = batch.compression().map(|compression| match compression.codec() {
            CompressionType::LZ4_FRAME => 255,
            _ => 1 << 15,
        });
        let mut unpacked: u64 = 0;
        for buffer in batch.buffers().into_iter().flatten() {
            let (Ok(offset), Ok(length)) =
                (u64::try_from(buffer.offset()), u64::try_from(buffer.length()))
            else {
                return Ok(None);
            };
            if offset.checked_add(length).is_none_or(|end| end > body) {
                return Ok(None);
            }
            let mut whole = length;
            if let (Some(ratio), true) = (ratio, length > 0) {
                let Ok(said) = <[u8; 8]>::try_from(self.bytes(at + offset, 8.min(length))?) else {
                    return Ok(None);
                };
                whole = match i64::from_le_bytes(said) {
                    -1 => length,
                    said => match u64::try_from(said) {
                        Ok(said) if said <= max_inflated(length, ratio) => said,
                        _ => return Ok(None),
                    },
                };
            }
            unpacked = unpacked.saturating_add(whole);
        }
        let rows = unpacked.saturating_mul(8).saturating_add(FREE_ROWS);
        let sound = |length: i64| u64::try_from(length).is_ok_and(|length| length <= rows);
        Ok(sound(batch.length()).then_some(()))
    }
}
