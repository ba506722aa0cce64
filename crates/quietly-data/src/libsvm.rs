//! libsvm text: `label index:value index:value … # comment`, with indices from 1. An index that is
//! not listed means 0, which is a value like any other.
use memchr::memchr;

use crate::{
    Sparse,
    block::Block,
    column_decoder::{RowDecoder, RowWriter},
    number,
    sparse::SparseRow,
};

/// The columns of libsvm text: `label`, `1`, `2`, …
pub(crate) fn columns(features: usize) -> Vec<String> {
    let numbered = (1..=features).map(|i| i.to_string());
    std::iter::once("label".to_string()).chain(numbered).collect()
}

/// Whether a line is a number followed by at least one pair.
pub(crate) fn looks_like(line: &[u8]) -> bool {
    let mut words = words(line);
    let label = words.next().is_some_and(|word| number::whole(word).is_some());
    let mut pairs = words.map(|word| pair(word).is_some()).peekable();
    label && pairs.peek().is_some() && pairs.all(|good| good)
}

/// Decodes a chunk of text that holds whole lines.
pub(crate) fn decode(text: &[u8], decoder: &RowDecoder, block: &mut Block) {
    let mut cells = Vec::new();
    for line in lines(text) {
        let readable = read(line, decoder.cells.len(), &mut cells).is_some();
        block.push(decoder.nulls, |row| {
            if !readable {
                return decoder.unreadable(row);
            }
            row.features.copy_from_slice(&decoder.zero_row.features);
            *row.target = decoder.zero_row.target;
            for (index, _) in &cells {
                decoder.cells[*index].clear(row.features);
            }
            encode(decoder, &cells, row)
        });
    }
}

/// Decodes a chunk to sparse rows. Cells that are not listed take no time. They must be encoded
/// as 0.
pub(crate) fn decode_sparse(text: &[u8], decoder: &RowDecoder, rows: &mut Sparse) {
    let (mut cells, mut sparse_row) = (Vec::new(), SparseRow::default());
    for line in lines(text) {
        let readable = read(line, decoder.cells.len(), &mut cells).is_some();
        sparse_row.add(rows, decoder.nulls, |row| {
            if !readable {
                return decoder.unreadable(row);
            }
            row.target(decoder.zero_row.target);
            encode(decoder, &cells, row)
        });
    }
}

/// Decodes the listed cells. False if one of them, or a 0 that is not listed, makes this a null row.
fn encode(decoder: &RowDecoder, cells: &[(usize, &[u8])], row: &mut impl RowWriter) -> bool {
    let there = cells.iter().filter(|(index, _)| decoder.zero_row.null[*index]).count();
    there == decoder.zero_row.nulls
        && cells.iter().all(|(index, text)| decoder.cells[*index].text(text, row))
}

/// The lines that are not blank.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| matches!(byte, b'\n' | b'\r')).filter(|line| words(line).next().is_some())
}

/// Finds the cells of a line, in the order of their columns. `None` if the line cannot be read. Of
/// two cells with one index the last counts.
fn read<'a>(line: &'a [u8], columns: usize, cells: &mut Vec<(usize, &'a [u8])>) -> Option<()> {
    cells.clear();
    let mut words = words(line);
    cells.push((0, words.next()?));
    let mut ascending = true;
    for word in words {
        let (index, value) = pair(word).filter(|(index, _)| *index < columns)?;
        ascending &= cells.last().is_some_and(|(last, _)| *last < index);
        cells.push((index, value));
    }
    if !ascending {
        cells.reverse();
        cells.sort_by_key(|(index, _)| *index);
        cells.dedup_by_key(|(index, _)| *index);
    }
    Some(())
}

/// An index and its value. A query id (`qid:7`) and index 0 are refused.
fn pair(word: &[u8]) -> Option<(usize, &[u8])> {
    let colon = memchr(b':', word)?;
    let index = std::str::from_utf8(&word[..colon]).ok()?.parse().ok()?;
    (index > 0).then_some((index, &word[colon + 1..]))
}

/// The words of a line, without its comment.
fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let line = memchr(b'#', line).map_or(line, |comment| &line[..comment]);
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libsvm_is_distinguished_from_csv() {
        assert!(looks_like(b"+1 1:0.5 7:-2 # why"));
        assert!(looks_like(b"-1 3:1\r"));
        for line in ["age,height", "1,2,3", "1 2 3", "a 1:2", "1", "", "1 0:5"] {
            assert!(!looks_like(line.as_bytes()), "{line}");
        }
    }
}
