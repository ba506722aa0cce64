//! `quietly explain CODE`, and the page docs/errors.md, from one table.
use serde_json::json;

use crate::{failure::Failure, screen::Screen, words};

mod accounting;
mod command;
mod data;
mod learning;

/// One code, explained.
pub(crate) struct Entry {
    code: &'static str,
    title: &'static str,
    why: &'static str,
    fix: &'static str,
    example: &'static str,
}

/// Every code that the libraries and the command can produce.
fn entries() -> impl Iterator<Item = &'static Entry> {
    accounting::ENTRIES
        .iter()
        .chain(&command::ENTRIES)
        .chain(&data::ENTRIES)
        .chain(&learning::ENTRIES)
}

/// Says what a code means, or lists all of them.
pub(crate) fn run(
    code: Option<&str>,
    markdown: bool,
    json: bool,
    screen: &mut Screen,
) -> Result<(), Failure> {
    if markdown {
        return Ok(screen.say(&page())?);
    }
    let Some(code) = code else {
        if json {
            let all: Vec<_> = entries().map(Entry::json).collect();
            return Ok(screen.say_json(&json!({ "codes": all }))?);
        }
        for entry in entries() {
            screen.say(&format!("{}  {}", screen.bold(entry.code), entry.title))?;
        }
        return Ok(screen.say("\nnext: quietly explain A01")?);
    };
    let wanted = code.trim_matches(['[', ']']).to_ascii_uppercase();
    let found = entries().find(|e| e.code == wanted);
    let entry = found.ok_or_else(|| Failure::NoSuchCode(code.into()))?;
    if json {
        return Ok(screen.say_json(&entry.json())?);
    }
    let title = screen.bold(&format!("{}: {}", entry.code, entry.title));
    let body = |text| words::wrap(text, "  ", crate::screen::WIDTH);
    screen.say(&format!("{title}\n\n{}\n\n{}\n", body(entry.why), body(entry.fix)))?;
    Ok(screen.say(&format!("for example:\n  {}", entry.example))?)
}

impl Entry {
    fn json(&self) -> serde_json::Value {
        json!({
            "code": self.code, "title": self.title, "why": self.why, "fix": self.fix, "example": self.example,
        })
    }
}

/// docs/errors.md.
fn page() -> String {
    let mut text = String::from(
        "# Error codes\n\n\
         Every refusal has a code that stays. `quietly explain CODE` prints what stands here; this page is made by\n\
         `quietly explain --markdown` and a test compares them.\n\n\
         Exit status: 0 done; 1 refused, as the parameters, the theorems, the budget or the schema do not allow it\n\
         (A codes, D codes but D01 and D03, C10, Q02, Q03, Q07), or an audit caught a violation (C13); 2 not understood or\n\
         broken (the others); 130 interrupted (Q06). Errors go to stderr, with `--json` as JSON, and then no answer goes\n\
         to stdout, but for C13, whose numbers do. No message holds a value from a table.\n\n\
         The examples below work in a folder that holds the made-up clinic:\n\n\
         ```console\n$ quietly example\n```\n",
    );
    for entry in entries() {
        let body = |text| words::wrap(text, "", 100);
        text.push_str(&format!("\n## {}: {}\n\n{}\n\n", entry.code, entry.title, body(entry.why)));
        text.push_str(&format!("{}\n\n```console\n$ {}\n```\n", body(entry.fix), entry.example));
    }
    text.trim_end().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The codes that stand as string literals in some source text.
    fn codes(source: &str) -> Vec<String> {
        let quoted = source.split('"').skip(1).step_by(2);
        let looks = |c: &&str| {
            c.len() == 3
                && c.starts_with(['A', 'C', 'D', 'Q'])
                && c[1..].bytes().all(|b| b.is_ascii_digit())
        };
        quoted.filter(looks).map(String::from).collect()
    }

    #[test]
    fn every_code_is_explained_and_no_other() {
        let mut produced = codes(include_str!("failure.rs").split("#[cfg(test)]").next().unwrap());
        for library in [
            include_str!("../../quietly-accounting/src/error.rs"),
            include_str!("../../quietly-data/src/error.rs"),
            include_str!("../../quietly/src/error.rs"),
        ] {
            produced.extend(codes(library));
        }
        produced.sort();
        let mut explained: Vec<&str> = entries().map(|e| e.code).collect();
        explained.sort_unstable();
        assert_eq!(produced, explained);
        assert!(produced.len() >= 38, "{produced:?}");
    }
}
