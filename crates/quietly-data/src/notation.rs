//! How numbers are written as text: the decimal mark and the thousands separator.
use serde::{Deserialize, Serialize};

use crate::number;

/// How numbers are written as text. Public: the schema declares it, and a model stores it.
///
/// ```
/// use quietly_data::Schema;
///
/// let schema = Schema::parse(
///     "rows = 100\ndecimal = \",\"\nthousands = \".\"\n[columns]\na = { range = [0, 1e5] }",
/// )?;
/// assert_eq!((schema.notation.decimal, schema.notation.thousands), (',', Some('.')));
/// # Ok::<(), quietly_data::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notation {
    /// The decimal mark: a point or a comma.
    pub decimal: char,
    /// The thousands separator, if there is one.
    pub thousands: Option<char>,
}

impl Default for Notation {
    fn default() -> Self {
        Notation { decimal: '.', thousands: None }
    }
}

/// The thousands separators, with spaces of three widths.
const SEPARATORS: [char; 8] = ['.', ',', '\'', '\u{2019}', '_', ' ', '\u{a0}', '\u{202f}'];

impl Notation {
    /// Whether numbers have a decimal point and no thousands separator.
    pub fn is_usual(&self) -> bool {
        *self == Notation::default()
    }

    /// Refuses invalid marks, which a schema or a model file may contain.
    pub(crate) fn check(&self) -> Result<(), String> {
        if !matches!(self.decimal, '.' | ',') {
            return Err("decimal must be \".\" or \",\"".into());
        }
        match self.thousands {
            Some(mark) if !SEPARATORS.contains(&mark) || mark == self.decimal => Err(
                "thousands must be a point, a comma, an apostrophe, an underscore or a space, and \
                 must differ from decimal"
                    .into(),
            ),
            _ => Ok(()),
        }
    }

    /// Parses trimmed text as a number, if all of it is one.
    #[inline]
    pub(crate) fn read(self, text: &[u8]) -> Option<f64> {
        if self.is_usual() { number::whole(text) } else { self.convert(text) }
    }

    /// Parses a number in another notation than Rust's. Separators are between groups of three
    /// digits, or two as in 12,34,567. The last group has three.
    #[cold]
    fn convert(self, text: &[u8]) -> Option<f64> {
        // No number is written with so many characters.
        if text.len() > 400 {
            return None;
        }
        let text = std::str::from_utf8(text).ok()?;
        let mut plain = String::with_capacity(text.len());
        // The digits of the current group, and whether there was a separator.
        let (mut group, mut grouped, mut fraction) = (0, false, false);
        for c in text.chars() {
            if Some(c) == self.thousands {
                let fits = if grouped { matches!(group, 2 | 3) } else { matches!(group, 1..=3) };
                if fraction || !fits {
                    return None;
                }
                (group, grouped) = (0, true);
                continue;
            }
            let whole_part_ends = !(fraction || c.is_ascii_digit() || matches!(c, '+' | '-'));
            if whole_part_ends {
                if grouped && group != 3 {
                    return None;
                }
                fraction = true;
            }
            match c {
                c if c == self.decimal => plain.push('.'),
                '.' => return None,
                c => plain.push(c),
            }
            group += usize::from(c.is_ascii_digit());
        }
        if grouped && !fraction && group != 3 {
            return None;
        }
        number::whole(plain.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_notations_are_parsed() {
        let german = Notation { decimal: ',', thousands: Some('.') };
        let french = Notation { decimal: ',', thousands: Some('\u{202f}') };
        let indian = Notation { decimal: '.', thousands: Some(',') };
        let comma = Notation { decimal: ',', thousands: None };
        for (notation, text, want) in [
            (german, "3,5", Some(3.5)),
            (german, "-1.234.567,25", Some(-1_234_567.25)),
            (german, "51.260", Some(51_260.0)),
            (german, "1,5e3", Some(1500.0)),
            (german, "7", Some(7.0)),
            (german, "0.5", None),
            (german, "1.2345", None),
            (german, "1.23,5", None),
            (german, "1,234.5", None),
            (german, ".123", None),
            (german, "", None),
            (french, "1\u{202f}000,5", Some(1000.5)),
            (indian, "12,34,567.5", Some(1_234_567.5)),
            (indian, "51,260", Some(51_260.0)),
            (indian, "12,34", None),
            (comma, "3,5", Some(3.5)),
            (comma, "3.5", None),
            (comma, "inf", Some(f64::INFINITY)),
            (comma, "x", None),
            (Notation::default(), "3.5", Some(3.5)),
            (Notation::default(), "3,5", None),
        ] {
            assert_eq!(notation.read(text.as_bytes()), want, "{notation:?} {text}");
        }
    }

    #[test]
    fn invalid_notations_are_refused() {
        let check = |decimal, thousands| Notation { decimal, thousands }.check().is_ok();
        assert!(check(',', Some('.')) && check('.', Some(',')) && check(',', None));
        assert!(!check(';', None) && !check(',', Some(',')) && !check('.', Some('5')));
    }
}
