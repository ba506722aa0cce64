//! A ledger as a table for people.
use std::fmt;

use super::{Ledger, LedgerEntry, lines::iso_8601};

impl LedgerEntry {
    /// When, as ISO 8601 writes it.
    pub fn at(&self) -> String {
        iso_8601(self.when)
    }

    /// How far its run has come: `finished`, or `begun` if nothing says so.
    pub fn state(&self) -> &'static str {
        if self.finished { "finished" } else { "begun" }
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = pair(self.limit.epsilon(), self.limit.delta());
        let unit = match self.rows_per_unit() {
            None | Some(1) => String::new(),
            Some(rows) => format!(", for units of up to {rows} rows"),
        };
        writeln!(f, "limit {limit} ({}{unit})", self.limit.neighbours().name())?;
        let row = |s: &LedgerEntry| {
            [s.at(), s.what.clone(), neat(s.epsilon), small(s.delta), s.state().into()]
        };
        let mut rows = vec![["date", "what", "epsilon", "delta", "state"].map(String::from)];
        rows.extend(self.spent.iter().map(row));
        let widest = |column: usize| {
            rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
        };
        let widths = [0, 1, 2, 3].map(widest);
        for row in rows.iter().filter(|_| !self.spent.is_empty()) {
            write!(f, "  ")?;
            for (cell, width) in row.iter().zip(widths) {
                write!(f, "{cell:<width$}  ")?;
            }
            writeln!(f, "{}", row[4])?;
        }
        let ((spent, s), (left, l)) = (self.spent(), self.left());
        write!(f, "spent {}, left {}", pair(spent, s), pair(left, l))?;
        match self.spent.last() {
            Some(last) if left >= last.epsilon && l >= last.delta => {
                let by_delta = if last.delta > 0.0 { l / last.delta } else { f64::INFINITY };
                // A little is added so that 0.3 / 0.1 is 3.
                let more = (left / last.epsilon.max(1e-3)).min(by_delta) + 1e-9;
                write!(f, ": enough for {} more like the last", more.floor())
            }
            Some(_) => write!(f, ": too little for one more run like the last"),
            None => Ok(()),
        }
    }
}

/// "epsilon 1, delta 1e-6".
pub(super) fn pair(epsilon: f64, delta: f64) -> String {
    format!("epsilon {}, delta {}", neat(epsilon), small(delta))
}

fn neat(x: f64) -> String {
    ((x * 1e6).round() / 1e6).to_string()
}

fn small(x: f64) -> String {
    if x == 0.0 { "0".into() } else { format!("{:e}", (x * 1e15).round() / 1e15) }
}
