//! `--expand`: splines or waves of the features.
use std::str::FromStr;

use quietly::{Encoding, Expansion};

use crate::number::Unreadable;

/// Splines of every number.
const SPLINES: usize = 6;
/// Waves of all features.
const WAVES: usize = 256;

/// What is made of the features before a model sees them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Expand {
    Splines(Option<usize>),
    Waves(Option<usize>),
}

impl FromStr for Expand {
    type Err = Unreadable;

    fn from_str(text: &str) -> Result<Expand, Unreadable> {
        let wanted = Unreadable("splines, splines=P, waves or waves=COUNT");
        let (word, count) = match text.trim().split_once('=') {
            Some((word, count)) => (word, Some(count.parse().map_err(|_| wanted)?)),
            None => (text.trim(), None),
        };
        match word {
            "splines" => Ok(Expand::Splines(count)),
            "waves" => Ok(Expand::Waves(count)),
            _ => Err(wanted),
        }
    }
}

impl Expand {
    /// The flag, to be typed again.
    pub(crate) fn typed(self) -> String {
        let (word, count) = match self {
            Expand::Splines(count) => ("splines", count),
            Expand::Waves(count) => ("waves", count),
        };
        let count = count.map(|count| format!("={count}"));
        format!(" --expand {word}{}", count.unwrap_or_default())
    }

    /// What it makes of the features of an encoding.
    pub(crate) fn expansion(self, encoding: &Encoding) -> Result<Expansion, quietly::Error> {
        let expansion = match self {
            Expand::Splines(count) => Expansion::splines(encoding, count.unwrap_or(SPLINES)),
            Expand::Waves(count) => Expansion::waves(encoding, count.unwrap_or(WAVES)),
        };
        expansion.check()?;
        Ok(expansion)
    }
}

/// The expansion in a headline: `, as 48 splines`.
pub(crate) fn in_words(expansion: Option<&Expansion>) -> String {
    let Some(expansion) = expansion else { return String::new() };
    match expansion {
        Expansion::Splines { functions, .. } => {
            format!(" ({functions} splines for each number: {} in all)", expansion.width())
        }
        Expansion::Waves { count, .. } => format!(" (through {count} waves)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_read_and_typed_again() {
        for typed in ["splines", "splines=5", "waves", "waves=64"] {
            let expand: Expand = typed.parse().unwrap();
            assert_eq!(expand.typed(), format!(" --expand {typed}"));
        }
        for wrong in ["", "spline", "splines=", "splines=x", "waves=-1", "waves=1.5", "=5"] {
            assert!(wrong.parse::<Expand>().is_err(), "{wrong}");
        }
    }
}
