//! Compares the lengths in a Parquet file with the size of the file.
//!
//! Footer and page headers are Thrift structures in the compact protocol. The reader allocates as
//! much memory as some of their numbers declare, so they are checked here first. Only pages of
//! delta-encoded text are decompressed, because they contain a count.
use std::io::Read;

use parquet::{
    basic::Compression,
    file::{
        metadata::ParquetMetaData,
        reader::{ChunkReader, Length},
    },
};

use crate::{delta_lengths, panic_guard::max_inflated, shared_file::SharedFile};

/// The deepest nesting of structures and of columns.
const DEEP: usize = 64;

/// `Some` if no list, text or nesting in the footer is beyond its own length.
pub(crate) fn footer_fits(file: &SharedFile) -> Option<()> {
    let tail = file.len().checked_sub(8)?;
    let last = file.get_bytes(tail, 8).ok()?;
    let length = u64::from(u32::from_le_bytes(last.get(..4)?.try_into().ok()?));
    let footer = file.get_bytes(tail.checked_sub(length)?, length as usize).ok()?;
    // The remaining children of each open group. Field 4 begins a schema element.
    let mut open: Vec<i64> = Vec::new();
    let mut walk = Walk { bytes: &footer, at: 0, path: Vec::new() };
    walk.structure(&mut |path, value| {
        match path {
            [2, 4] => {
                while open.last() == Some(&0) {
                    open.pop();
                }
                if let Some(left) = open.last_mut() {
                    *left -= 1;
                }
            }
            [2, 5] if value > 0 => open.push(value),
            _ => {}
        }
        (open.len() <= DEEP).then_some(())
    })
}

/// The first codec of a file that is not supported.
pub(crate) fn unknown_codec(metadata: &ParquetMetaData) -> Option<&'static str> {
    let columns = metadata.row_groups().iter().flat_map(|group| group.columns());
    columns.into_iter().find_map(|column| match column.compression() {
        Compression::BROTLI(_) => Some("brotli"),
        Compression::LZO => Some("lzo"),
        _ => None,
    })
}

/// `Some` if all pages are inside the file, and none decompresses to more than it can.
pub(crate) fn pages_fit(file: &SharedFile, metadata: &ParquetMetaData) -> Option<()> {
    for group in metadata.row_groups() {
        u64::try_from(group.num_rows()).ok()?;
        for column in group.columns() {
            let ratio = match column.compression() {
                Compression::UNCOMPRESSED => 1,
                Compression::SNAPPY => 64,
                Compression::GZIP(_) => 1032,
                Compression::LZ4 | Compression::LZ4_RAW => 255,
                _ => 1 << 15,
            };
            let (start, length) = column.byte_range();
            let end = start.checked_add(length).filter(|end| *end <= file.len())?;
            let (mut at, mut counts) = (start, false);
            while at < end {
                at = page_fits(file, at, end, ratio, &mut counts)?;
            }
            if counts {
                delta_lengths::counts_fit(file, column, group.num_rows() as usize)?;
            }
        }
    }
    Some(())
}

/// The end of the page that starts at `at`. Sets `counts` if its values begin with a count.
fn page_fits(file: &SharedFile, at: u64, end: u64, ratio: u64, counts: &mut bool) -> Option<u64> {
    let mut bytes = Vec::new();
    let (mut unpacked, mut packed, mut values) = (0, 0, 0);
    // Most headers are small, but statistics may contain a cell of any length.
    let mut window = 256;
    let length = loop {
        bytes.clear();
        file.get_read(at).ok()?.take(window.min(end - at)).read_to_end(&mut bytes).ok()?;
        let mut walk = Walk { bytes: &bytes, at: 0, path: Vec::new() };
        let walked = walk.structure(&mut |path, value| {
            match path {
                [2] => unpacked = value,
                [3] => packed = value,
                [7, 1] => values = value,
                // The encodings DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY, in pages of version 1 and 2.
                [5, 2] | [8, 4] => *counts |= matches!(value, 6 | 7),
                _ => {}
            }
            Some(())
        });
        match walked {
            Some(()) => break walk.at as u64,
            None if window < end - at => window = window.saturating_mul(16),
            None => return None,
        }
    };
    let (unpacked, packed) = (u64::try_from(unpacked).ok()?, u64::try_from(packed).ok()?);
    let values = u64::try_from(values).ok()?;
    let after = at.checked_add(length)?.checked_add(packed)?;
    let fits = after <= end && unpacked <= max_inflated(packed, ratio) && values <= unpacked;
    fits.then_some(after)
}

/// A position in a Thrift structure, and the fields that lead to it.
struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
    path: Vec<i16>,
}

/// Called with the fields that lead to a number, and the number. For a text it is the length.
type Visit<'a> = dyn FnMut(&[i16], i64) -> Option<()> + 'a;

impl Walk<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn unsigned(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        let value = self.unsigned()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn skip(&mut self, length: u64) -> Option<()> {
        let left = (self.bytes.len() - self.at) as u64;
        (length <= left).then(|| self.at += length as usize)
    }

    fn structure(&mut self, visit: &mut Visit<'_>) -> Option<()> {
        if self.path.len() >= DEEP {
            return None;
        }
        let mut last: i16 = 0;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            last = match head >> 4 {
                0 => i16::try_from(self.signed()?).ok()?,
                step => last.checked_add(i16::from(step))?,
            };
            self.path.push(last);
            self.value(head & 0x0F, false, visit)?;
            self.path.pop();
        }
    }

    /// Skips a value. The type of a boolean field holds its value. In a list it is a byte.
    fn value(&mut self, kind: u8, listed: bool, visit: &mut Visit<'_>) -> Option<()> {
        match kind {
            1 | 2 => self.skip(u64::from(listed)),
            3 => self.skip(1),
            4..=6 => {
                let number = self.signed()?;
                visit(&self.path, number)
            }
            7 => self.skip(8),
            8 => {
                let length = self.unsigned()?;
                self.skip(length)?;
                visit(&self.path, length as i64)
            }
            9 | 10 => {
                let head = self.byte()?;
                let count = match head >> 4 {
                    15 => self.unsigned()?,
                    count => u64::from(count),
                };
                // Every element takes at least a byte.
                if count > (self.bytes.len() - self.at) as u64 || self.path.len() >= DEEP {
                    return None;
                }
                // Lists in lists are nested, but have no field of their own.
                let nested = matches!(head & 0x0F, 9 | 10);
                if nested {
                    self.path.push(0);
                }
                for _ in 0..count {
                    self.value(head & 0x0F, true, visit)?;
                }
                if nested {
                    self.path.pop();
                }
                Some(())
            }
            12 => self.structure(visit),
            // Maps and the rest do not occur in Parquet.
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(bytes: &[u8]) -> Option<Vec<(Vec<i16>, i64)>> {
        let mut seen = Vec::new();
        let mut walk = Walk { bytes, at: 0, path: Vec::new() };
        walk.structure(&mut |path, value| {
            seen.push((path.to_vec(), value));
            Some(())
        })?;
        Some(seen)
    }

    #[test]
    fn numbers_are_found_and_lengths_checked() {
        // Field 1: -1; field 2: a list of two structures with field 4, a text.
        let good = [0x15, 1, 0x19, 0x2C, 0x48, 1, b'x', 0, 0x48, 0, 0, 0];
        let seen = walk(&good).unwrap();
        assert_eq!(seen, [(vec![1], -1), (vec![2, 4], 1), (vec![2, 4], 0)]);
        for cut in 0..good.len() {
            assert_eq!(walk(&good[..cut]), None, "{cut}");
        }
        // A list of 2 billion, a text of 2 billion, endless nesting.
        assert_eq!(walk(&[0x19, 0xFC, 0xFF, 0xFF, 0xFF, 0xFF, 7, 0]), None);
        assert_eq!(walk(&[0x18, 0xFF, 0xFF, 0xFF, 0xFF, 7, 0]), None);
        assert_eq!(walk(&[0x1C; 1000]), None);
        assert_eq!(walk(&[&[0x19][..], &[0x19; 1000]].concat()), None);
    }
}
