//! Ranks in a file: the cells that have mass, and F at their upper ends.
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::query::column_tree::CELLS;

#[derive(Serialize, Deserialize)]
struct Steps {
    /// The cells that have mass.
    cells: Vec<usize>,
    /// F at the upper end of each.
    ranks: Vec<f64>,
}

pub(super) fn serialize<S: Serializer>(ranks: &[f64], to: S) -> Result<S::Ok, S::Error> {
    let rises = |k: &usize| ranks[k + 1] != ranks[*k];
    let cells: Vec<usize> = (0..ranks.len().saturating_sub(1)).filter(rises).collect();
    let ranks = cells.iter().map(|k| ranks[k + 1]).collect();
    Steps { cells, ranks }.serialize(to)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
    let Steps { cells, ranks: ends } = Steps::deserialize(from)?;
    let rising = cells.is_sorted() && cells.last().is_none_or(|last| *last < CELLS);
    if cells.len() != ends.len() || !rising {
        return Err(D::Error::custom("ranks of a column that do not go together"));
    }
    let mut ranks = vec![0.0; CELLS + 1];
    let mut steps = cells.into_iter().zip(ends).peekable();
    for k in 0..CELLS {
        ranks[k + 1] = ranks[k];
        while let Some((_, end)) = steps.next_if(|(cell, _)| *cell == k) {
            ranks[k + 1] = end;
        }
    }
    Ok(ranks)
}
