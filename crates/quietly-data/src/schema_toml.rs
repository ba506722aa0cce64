//! Schemas as TOML: parses rules, collecting all their problems, and writes them.
use crate::{Missing, Notation, Rule, Value, error::nearest};

/// The names whose value is still a question mark.
pub(crate) fn unfinished(table: &toml::Table) -> Vec<String> {
    let open = |value: &toml::Value| value.as_str().is_some_and(|s| s.trim() == "?");
    let columns = table.get("columns").and_then(toml::Value::as_table);
    let all = table.iter().chain(columns.into_iter().flatten());
    all.filter(|(_, value)| open(value)).map(|(name, _)| name.clone()).collect()
}

/// A whole number from 1, which may be written 3e4.
pub(crate) fn count(value: &toml::Value) -> Option<u64> {
    let n = number(value)?;
    (n.fract() == 0.0 && (1.0..=1e15).contains(&n)).then_some(n as u64)
}

fn number(value: &toml::Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|i| i as f64))
}

/// Parses the notation of numbers.
pub(crate) fn read_notation(table: &toml::Table) -> Result<Notation, String> {
    let mark = |key: &str| match table.get(key).map(toml::Value::as_str) {
        None => Ok(None),
        Some(Some(text)) if text.chars().count() == 1 => Ok(text.chars().next()),
        Some(_) => Err(format!("{key} must be one character, such as \",\"")),
    };
    let usual = Notation::default();
    let decimal = mark("decimal")?.unwrap_or(usual.decimal);
    let notation = Notation { decimal, thousands: mark("thousands")? };
    notation.check().map(|()| notation)
}

/// The lines for a notation that is not the default.
pub(crate) fn notation_in_toml(notation: &Notation) -> String {
    let mut text = String::new();
    if notation.decimal != Notation::default().decimal {
        text += &format!("decimal = {}\n", text_in_toml(&notation.decimal.to_string()));
    }
    if let Some(mark) = notation.thousands {
        text += &format!("thousands = {}\n", text_in_toml(&mark.to_string()));
    }
    text
}

/// Parses the rule of a column. Problems are appended to `problems`.
pub(crate) fn read_rule(
    name: &str,
    rule: &toml::Value,
    problems: &mut Vec<String>,
) -> Option<Rule> {
    let before = problems.len();
    let mut problem = |text: String| problems.push(format!("column {name:?}: {text}"));
    let Some(rule) = rule.as_table() else {
        problem("expected { range = [0, 100] } or { values = [\"a\", \"b\"] }".into());
        return None;
    };
    let known = ["range", "missing", "values", "other", "numbers_in_text"];
    for key in rule.keys().filter(|k| !known.contains(&k.as_str())) {
        let near = nearest(key, known).map(|near| format!("; did you mean {near:?}?"));
        problem(format!(
            "{key:?} is not a key{}",
            near.unwrap_or_else(|| format!("; the keys are {}", known.join(", ")))
        ));
    }
    let read = match (rule.get("range"), rule.get("values")) {
        (Some(range), None) => {
            if rule.contains_key("other") {
                problem("other is for values, not for a range".into());
            }
            if rule.get("numbers_in_text").is_some_and(|said| !said.is_bool()) {
                problem("numbers_in_text must be true or false".into());
            }
            let ends = range.as_array().and_then(|ends| match ends.as_slice() {
                [lo, hi] => Some((number(lo)?, number(hi)?)),
                _ => None,
            });
            let missing = rule.get("missing").map(|m| match m.as_str() {
                Some("middle") => Some(Missing::Middle),
                Some("drop") => Some(Missing::Drop),
                _ => number(m).map(Missing::Number),
            });
            match (ends, missing) {
                (None, _) => {
                    problem("range must be two numbers, such as [0, 100]".into());
                    None
                }
                (_, Some(None)) => {
                    problem("missing must be \"middle\", \"drop\" or a number".into());
                    None
                }
                (Some((lo, hi)), missing) => {
                    Some(Rule::Range { lo, hi, missing: missing.flatten() })
                }
            }
        }
        (None, Some(values)) => {
            if rule.contains_key("numbers_in_text") {
                problem("numbers_in_text is for a range, not for values".into());
            }
            if rule.contains_key("missing") {
                problem("missing is for a range; use other = true with values".into());
            }
            let values = values
                .as_array()
                .and_then(|list| list.iter().map(Value::from_toml).collect::<Option<Vec<_>>>());
            let other = rule.get("other").map_or(Some(false), toml::Value::as_bool);
            if values.is_none() {
                problem("values must be a list of texts, numbers or booleans".into());
            }
            if other.is_none() {
                problem("other must be true or false".into());
            }
            values.zip(other).map(|(values, other)| Rule::Values { values, other })
        }
        (Some(_), Some(_)) => {
            problem("a column has a range or values, not both".into());
            None
        }
        (None, None) => {
            problem("expected a range or values".into());
            None
        }
    };
    let read = read?;
    if let Err(text) = read.check() {
        problem(text);
    }
    (problems.len() == before).then_some(read)
}

/// Whether a rule declares that its numbers are written as text.
pub(crate) fn in_text(rule: &toml::Value) -> bool {
    rule.get("numbers_in_text").and_then(toml::Value::as_bool).unwrap_or(false)
}

/// A rule as an inline table.
pub(crate) fn rule_in_toml(rule: &Rule, in_text: bool) -> String {
    match rule {
        Rule::Range { lo, hi, missing } => {
            let own = missing.map(|m| format!(", missing = {}", missing_in_toml(m)));
            let in_text = if in_text { ", numbers_in_text = true" } else { "" };
            format!("{{ range = [{lo:?}, {hi:?}]{}{in_text} }}", own.unwrap_or_default())
        }
        Rule::Values { values, other } => {
            let values: Vec<String> = values.iter().map(value_in_toml).collect();
            let other = if *other { ", other = true" } else { "" };
            format!("{{ values = [{}]{other} }}", values.join(", "))
        }
    }
}

pub(crate) fn missing_in_toml(missing: Missing) -> String {
    match missing {
        Missing::Middle => "\"middle\"".into(),
        Missing::Drop => "\"drop\"".into(),
        Missing::Number(m) => format!("{m:?}"),
    }
}

fn value_in_toml(value: &Value) -> String {
    match value {
        Value::Text(text) => text_in_toml(text),
        Value::Number(x) => format!("{x:?}"),
        Value::Bool(b) => b.to_string(),
    }
}

pub(crate) fn key_in_toml(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(bare) { name.into() } else { text_in_toml(name) }
}

pub(crate) fn text_in_toml(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted += &format!("\\u{:04X}", c as u32),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}
