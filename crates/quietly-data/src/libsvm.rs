//! libsvm text: `label index:value index:value … # comment`, indices from 1. An index that is not
//! there means 0, which is a value like any other.
use memchr::memchr;

use crate::{block::Block, number, plan::Plan};

/// The columns of libsvm text: `label`, `1`, `2`, …
pub(crate) fn columns(features: usize) -> Vec<String> {
    let numbered = (1..=features).map(|i| i.to_string());
    std::iter::once("label".to_string()).chain(numbered).collect()
}

/// Whether a line is a number and then pairs, at least one.
pub(crate) fn looks_like(line: &[u8]) -> bool {
    let mut words = words(line);
    let label = words.next().is_some_and(|word| number::whole(word).is_some());
    let mut pairs = words.map(|word| pair(word).is_some()).peekable();
    label && pairs.peek().is_some() && pairs.all(|good| good)
}

/// Encodes the rows of a piece of text that holds whole lines.
pub(crate) fn decode(text: &[u8], plan: &Plan, block: &mut Block) {
    let mut cells: Vec<&[u8]> = Vec::new();
    for line in text.split(|byte| *byte == b'\n') {
        if words(line).next().is_none() {
            continue;
        }
        cells.clear();
        cells.resize(plan.cells.len(), b"0");
        let readable = read(line, &mut cells);
        block.push(|row| match readable {
            Some(()) => plan.cells.iter().zip(&cells).all(|(cell, text)| cell.text(text, row)),
            None => plan.broken(row),
        });
    }
}

/// Finds the cells of a line; `None` if it cannot be read.
fn read<'a>(line: &'a [u8], cells: &mut [&'a [u8]]) -> Option<()> {
    let mut words = words(line);
    cells[0] = words.next()?;
    for word in words {
        let (index, value) = pair(word)?;
        *cells.get_mut(index)? = value;
    }
    Some(())
}

/// An index and its value. The index of a query (`qid:7`) and 0 are none.
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
    fn libsvm_is_told_from_csv() {
        assert!(looks_like(b"+1 1:0.5 7:-2 # why"));
        assert!(looks_like(b"-1 3:1\r"));
        for line in ["age,height", "1,2,3", "1 2 3", "a 1:2", "1", "", "1 0:5"] {
            assert!(!looks_like(line.as_bytes()), "{line}");
        }
    }
}
