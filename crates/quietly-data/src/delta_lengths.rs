//! Compares the counts in delta-encoded Parquet text with the number of values of their pages.
//!
//! DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY begin with a list of lengths, packed in blocks. Its
//! header holds their number, and the reader allocates that many before it reads one. So pages of
//! these encodings are decompressed here first. A count above the values of the page means that the
//! file is damaged.
use std::sync::Arc;

use parquet::{
    basic::Encoding,
    column::page::{Page, PageReader},
    file::{metadata::ColumnChunkMetaData, serialized_reader::SerializedPageReader},
};

use crate::shared_file::SharedFile;

/// No program writes blocks of more values.
const BLOCK: u64 = 1 << 16;

/// `Some` if no page of a column counts more texts than it has values, and all can be read.
pub(crate) fn counts_fit(
    file: &SharedFile,
    column: &ColumnChunkMetaData,
    rows: usize,
) -> Option<()> {
    let file = Arc::new(file.clone());
    let mut pages = SerializedPageReader::new(file, column, rows, None).ok()?;
    let levels = column.column_descr();
    let (repeated, defined) = (levels.max_rep_level() > 0, levels.max_def_level() > 0);
    while let Some(page) = pages.get_next_page().ok()? {
        let (bytes, values, encoding) = match &page {
            Page::DataPage { buf, num_values, encoding, .. } => {
                let mut rest: &[u8] = buf;
                for there in [repeated, defined] {
                    rest = if there { after_levels(rest)? } else { rest };
                }
                (rest, *num_values, *encoding)
            }
            Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => {
                let levels = def_levels_byte_len.checked_add(*rep_levels_byte_len)?;
                (buf.get(levels as usize..)?, *num_values, *encoding)
            }
            Page::DictionaryPage { .. } => continue,
        };
        let most = u64::from(values);
        match encoding {
            Encoding::DELTA_LENGTH_BYTE_ARRAY => {
                Lengths::of(bytes, most)?;
            }
            Encoding::DELTA_BYTE_ARRAY => {
                let prefixes = Lengths::of(bytes, most)?;
                Lengths::of(prefixes.rest, most)?;
            }
            _ => {}
        }
    }
    Some(())
}

/// The bytes after levels that begin with their own length.
fn after_levels(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.get(u32::from_le_bytes(*length) as usize..)
}

/// A packed list of lengths that was skipped.
struct Lengths<'a> {
    rest: &'a [u8],
}

impl<'a> Lengths<'a> {
    fn of(mut bytes: &'a [u8], most: u64) -> Option<Self> {
        let block = number(&mut bytes)?;
        let miniblocks = number(&mut bytes)?;
        let count = number(&mut bytes)?;
        number(&mut bytes)?;
        let sound = (1..=BLOCK).contains(&block) && (1..=block).contains(&miniblocks);
        if count > most || !sound || !block.is_multiple_of(8 * miniblocks) {
            return None;
        }
        let each = block / miniblocks;
        let mut left = count.saturating_sub(1);
        while left > 0 {
            number(&mut bytes)?;
            let (widths, rest) = bytes.split_at_checked(miniblocks as usize)?;
            bytes = rest;
            for width in widths {
                // Miniblocks after the last value are absent, and the last one may be truncated.
                if left == 0 {
                    break;
                }
                let packed = each * u64::from(*width) / 8;
                bytes = bytes.get(packed.min(bytes.len() as u64) as usize..)?;
                left = left.saturating_sub(each);
            }
        }
        Some(Lengths { rest: bytes })
    }
}

/// A variable-length integer: seven bits a byte.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
