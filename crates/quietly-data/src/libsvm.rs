//! libsvm text: `label index:value index:value … # comment`, indices from 1. An index that is not
//! there means 0, which is a value like any other.
use memchr::memchr;

use crate::{
    Sparse,
    block::Block,
    number,
    plan::{Fill, Plan},
    sparse::ThinRow,
};

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
    let mut cells = Vec::new();
    for line in lines(text) {
        let readable = read(line, plan.cells.len(), &mut cells).is_some();
        block.push(plan.nulls, |row| {
            if !readable {
                return plan.broken(row);
            }
            row.features.copy_from_slice(&plan.absent.features);
            *row.target = plan.absent.target;
            for (index, _) in &cells {
                plan.cells[*index].clear(row.features);
            }
            encode(plan, &cells, row)
        });
    }
}

/// The same without zeros, if an absent cell is one: what is not there takes no time.
pub(crate) fn decode_thin(text: &[u8], plan: &Plan, rows: &mut Sparse) {
    let (mut cells, mut thin) = (Vec::new(), ThinRow::default());
    for line in lines(text) {
        let readable = read(line, plan.cells.len(), &mut cells).is_some();
        thin.add(rows, plan.nulls, |row| {
            if !readable {
                return plan.broken(row);
            }
            row.target(plan.absent.target);
            encode(plan, &cells, row)
        });
    }
}

/// Encodes the cells that are there. False if one of them, or one that is not, makes this the null
/// record.
fn encode(plan: &Plan, cells: &[(usize, &[u8])], row: &mut impl Fill) -> bool {
    let there = cells.iter().filter(|(index, _)| plan.absent.null[*index]).count();
    there == plan.absent.nulls
        && cells.iter().all(|(index, text)| plan.cells[*index].text(text, row))
}

/// The lines that have words.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| matches!(byte, b'\n' | b'\r')).filter(|line| words(line).next().is_some())
}

/// Finds the cells of a line, in the order of their columns; `None` if it cannot be read. Of two
/// cells with one index the last counts.
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
