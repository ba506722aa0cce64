use std::{collections::HashMap, fmt};

use serde::{Deserialize, Serialize};

use crate::Notation;

/// A public value of a category.
///
/// A text is compared with the text of a cell without surrounding spaces. A number is compared with
/// the number in a cell, so that `1` equals `1.0`. A boolean matches `true` or `false`, in lower,
/// upper or title case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
}

impl Value {
    pub(crate) fn from_toml(value: &toml::Value) -> Option<Self> {
        match value {
            toml::Value::String(text) => Some(Value::Text(text.clone())),
            toml::Value::Integer(i) => Some(Value::Number(*i as f64)),
            // -0.0 and 0.0 are one value.
            toml::Value::Float(x) => x.is_finite().then_some(Value::Number(x + 0.0)),
            toml::Value::Boolean(b) => Some(Value::Bool(*b)),
            _ => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(b) => b.fmt(f),
            Value::Number(x) => x.fmt(f),
            Value::Text(text) => f.write_str(text.trim()),
        }
    }
}

/// Finds the index of a cell among the values of its column.
#[derive(Debug)]
pub(crate) struct Lookup {
    texts: HashMap<Box<[u8]>, usize>,
    /// Numbers, which a text cell may write in several ways.
    numbers: HashMap<u64, usize>,
    /// Numbers, and texts that are the usual form of a number, for cells that are numbers.
    numerals: HashMap<u64, usize>,
    /// How numbers are written in a text cell.
    notation: Notation,
}

impl Lookup {
    pub(crate) fn new(values: &[Value], notation: Notation) -> Self {
        let (mut texts, mut numbers, mut numerals) =
            (HashMap::new(), HashMap::new(), HashMap::new());
        for (place, value) in values.iter().enumerate() {
            match value {
                Value::Bool(b) => {
                    for spelling in if *b { TRUE } else { FALSE } {
                        texts.entry(spelling.as_bytes().into()).or_insert(place);
                    }
                }
                Value::Number(x) => {
                    numbers.insert((x + 0.0).to_bits(), place);
                    numerals.insert((x + 0.0).to_bits(), place);
                }
                Value::Text(text) => {
                    let text = text.trim();
                    texts.insert(text.as_bytes().into(), place);
                    match text.parse::<f64>() {
                        Ok(x) if x.to_string() == text => {
                            numerals.entry((x + 0.0).to_bits()).or_insert(place);
                        }
                        _ => {}
                    }
                }
            }
        }
        Lookup { texts, numbers, numerals, notation }
    }

    /// Whether any value is a number, or a text that is one.
    pub(crate) fn has_numbers(&self) -> bool {
        !self.numerals.is_empty()
    }

    /// The index of a trimmed text.
    pub(crate) fn text(&self, cell: &[u8]) -> Option<usize> {
        let exact = self.texts.get(cell).copied();
        if exact.is_some() || self.numbers.is_empty() {
            return exact;
        }
        let x = self.notation.read(cell)?;
        self.numbers.get(&(x + 0.0).to_bits()).copied()
    }

    /// The index of a number.
    pub(crate) fn number(&self, cell: f64) -> Option<usize> {
        self.numerals.get(&(cell + 0.0).to_bits()).copied()
    }
}

const TRUE: [&str; 3] = ["true", "True", "TRUE"];
const FALSE: [&str; 3] = ["false", "False", "FALSE"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_numbers_are_compared_separately() {
        let values = [Value::Text("01".into()), Value::Number(2.0), Value::Bool(true)];
        let lookup = Lookup::new(&values, Notation::default());
        assert_eq!(lookup.text(b"01"), Some(0));
        assert_eq!(lookup.text(b"1"), None);
        assert_eq!(lookup.number(1.0), None);
        for two in ["2", "2.0", "+2", "0.2e1"] {
            assert_eq!(lookup.text(two.as_bytes()), Some(1));
        }
        assert_eq!(lookup.number(2.0), Some(1));
        assert_eq!(lookup.text(b"True"), Some(2));
        assert_eq!(lookup.text(b"NaN"), None);
    }

    #[test]
    fn a_number_matches_the_text_that_writes_it() {
        let values = [Value::Text("A".into()), Value::Text("7".into())];
        let lookup = Lookup::new(&values, Notation::default());
        assert_eq!(lookup.number(7.0), Some(1));
        assert_eq!(lookup.text(b"7.0"), None);
    }
}
