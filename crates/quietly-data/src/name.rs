//! Invisible characters in names, units and values.
//!
//! An escape sequence in a name can overwrite a terminal, and a change of direction can reverse what
//! is read. Names with such characters are refused. In other output they are escaped, as `\u{1b}`.
use std::{borrow::Cow, path::Path};

use crate::{Error, Value};

/// The most characters of a name.
const LONGEST: usize = 200;

/// Format characters: category Cf of Unicode 17, and U+2065, which is unassigned.
const FORMAT: [(u32, u32); 20] = [
    (0xAD, 0xAD),
    (0x600, 0x605),
    (0x61C, 0x61C),
    (0x6DD, 0x6DD),
    (0x70F, 0x70F),
    (0x890, 0x891),
    (0x8E2, 0x8E2),
    (0x180E, 0x180E),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0xFEFF, 0xFEFF),
    (0xFFF9, 0xFFFB),
    (0x110BD, 0x110BD),
    (0x110CD, 0x110CD),
    (0x13430, 0x1343F),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0001, 0xE0001),
    (0xE0020, 0xE007F),
];

/// Whether a character is invisible: controls (Cc), formats (Cf), line and paragraph separators (Zl,
/// Zp). The joiners U+200C and U+200D are not counted, because words of some scripts need them.
///
/// ```
/// use quietly_data::is_hidden;
///
/// assert!(is_hidden('\u{1b}') && is_hidden('\u{202e}') && is_hidden('\n'));
/// assert!(!is_hidden('é') && !is_hidden('\u{200d}') && !is_hidden(' '));
/// ```
pub fn is_hidden(c: char) -> bool {
    let format = |(first, last): &(u32, u32)| (*first..=*last).contains(&u32::from(c));
    let joiner = matches!(c, '\u{200C}' | '\u{200D}');
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}')
        || (!joiner && !c.is_ascii() && FORMAT.iter().any(format))
}

/// The same text with every invisible character escaped, as `\u{1b}`, except line ends.
pub fn visible(text: &str) -> Cow<'_, str> {
    let shown = |c: char| c == '\n' || !is_hidden(c);
    if text.chars().all(shown) {
        return text.into();
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if shown(c) {
            safe.push(c);
        } else {
            safe.extend(c.escape_unicode());
        }
    }
    safe.into()
}

/// What is wrong with the name of a column or a unit, if anything.
pub fn name_problem(name: &str) -> Option<&'static str> {
    if name.chars().any(is_hidden) {
        return Some("has a character that cannot be seen, such as a control character");
    }
    (name.chars().count() > LONGEST).then_some("has more than 200 characters")
}

/// What is wrong with a value, which may be long, if anything.
pub(crate) fn value_problem(value: &Value) -> Option<String> {
    let Value::Text(text) = value else { return None };
    let problem = "has a character that cannot be seen, such as a control character";
    text.chars().any(is_hidden).then(|| format!("the value {text:?} {problem}"))
}

/// Refuses names in a header that no schema may have. The message does not quote them: the first
/// line may be a row.
pub(crate) fn check_header(path: &Path, names: &[String]) -> Result<(), Error> {
    if names.iter().all(|name| name_problem(name).is_none()) {
        return Ok(());
    }
    let got = "a name with a character that cannot be seen, or with more than 200 characters";
    Err(Error::NoHeader { path: path.into(), got })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All of Unicode 17: 65 controls, 170 formats without two joiners, two separators, and U+2065,
    /// which is unassigned.
    #[test]
    fn all_hidden_characters_are_known() {
        let hidden: Vec<char> = ('\0'..=char::MAX).filter(|c| is_hidden(*c)).collect();
        assert_eq!(hidden.len(), 65 + 170 - 2 + 2 + 1);
        for c in hidden {
            assert!(name_problem(&format!("a{c}b")).is_some());
            let shown = visible(&format!("a{c}b")).into_owned();
            assert!(c == '\n' || shown == format!("a\\u{{{:x}}}b", u32::from(c)), "{shown}");
        }
        assert_eq!(name_problem("Größe (m²) 身長 \u{200c}"), None);
        assert_eq!(name_problem(&"é".repeat(200)), None);
        assert!(name_problem(&"é".repeat(201)).is_some());
    }
}
