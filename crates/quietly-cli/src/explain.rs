//! `quietly explain CODE`, and the page docs/errors.md, from one table.
use serde_json::json;

use crate::{error::Failure, format, terminal::Screen};

mod accounting;
mod command;
mod data;
mod learning;
mod python;

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
        .chain(&python::ENTRIES)
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
    let body = |text| format::wrap(text, "  ", crate::terminal::WIDTH);
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
         Every error has a stable code. `quietly explain CODE` prints its section of this page. The page is the output of\n\
         `quietly explain --markdown`, and a test compares them.\n\n\
         Exit status: 0 done; 1 refused, as the parameters, the theorems, the budget or the schema do not allow it\n\
         (A codes, D codes but D01 and D03, C10, C15, C16, Q02, Q03, Q07), or an audit found a violation (C13); 2 not understood or\n\
         broken (the others); 130 interrupted (Q06). Errors go to stderr, with `--json` as JSON, and then nothing goes\n\
         to stdout, except the numbers of C13. No message contains a value from a table.\n\n\
         The examples below run in a folder with the synthetic clinic:\n\n\
         ```console\n$ quietly example\n```\n",
    );
    for entry in entries() {
        let body = |text| format::wrap(text, "", 100);
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
                && c.starts_with(['A', 'C', 'D', 'P', 'Q'])
                && c[1..].bytes().all(|b| b.is_ascii_digit())
        };
        quoted.filter(looks).map(String::from).collect()
    }

    #[test]
    fn every_code_is_explained_and_no_other() {
        let mut produced = codes(include_str!("error.rs").split("#[cfg(test)]").next().unwrap());
        for library in [
            include_str!("../../quietly-accounting/src/error.rs"),
            include_str!("../../quietly-data/src/error.rs"),
            include_str!("../../quietly-engine/src/error.rs"),
            include_str!("../../../python/quietly/errors.py"),
        ] {
            produced.extend(codes(library));
        }
        produced.sort();
        let mut explained: Vec<&str> = entries().map(|e| e.code).collect();
        explained.sort_unstable();
        assert_eq!(produced, explained);
        assert!(produced.len() >= 38, "{produced:?}");
    }

    /// What a page promises about a refusal, and the test that holds it to that.
    const PROMISES: [(&str, &str, &str, &str); 15] = [
        ("A01", "Nothing was computed", REFUSALS, "a_senseless_value_is_refused_under_its_flag"),
        ("C07", "is no error", PAGES, "a_reader_that_stops_early_is_no_error"),
        ("C09", "before anything is charged", SPENT, "a_full_disk_is_found_out_before_the_charge"),
        ("C09", "No partial file is left", RUNS, "a_place_that_cannot_be_written_costs_nothing"),
        ("C10", "Nothing was charged or written", SPENT, "a_model_that_is_there_is_not_replaced"),
        ("C15", "Nothing was charged", SPENT, "a_schema_that_names_its_ledger_is_not_passed_by"),
        ("D03", "Nothing was used or saved", TABLES, "a_damaged_file_is_named"),
        ("D13", "Nothing was charged", SPENT, "what_is_public_is_refused_before_the_charge"),
        (
            "P01",
            "Nothing was spent",
            PIPELINES,
            "test_a_pipeline_is_refused_before_anything_is_charged",
        ),
        (
            "P02",
            "Nothing was spent",
            SPENDING,
            "test_what_fits_several_times_is_refused_or_charged",
        ),
        ("P03", "Nothing was spent", LOAD, "test_files_without_parameters_say_what_they_can"),
        ("Q02", "before anything is charged", SPENT, "what_is_public_is_refused_before_the_charge"),
        ("Q03", "Nothing was charged", SPENT, "what_is_public_is_refused_before_the_charge"),
        ("Q06", "Nothing was released", SPENT, "a_run_that_is_stopped_stays_charged"),
        ("Q07", "was not read", LEDGER, "a_ledger_is_begun_charged_and_refuses"),
    ];
    const REFUSALS: &str = include_str!("../tests/refusals.rs");
    const PAGES: &str = include_str!("../tests/pages.rs");
    const SPENT: &str = include_str!("../tests/spent.rs");
    const RUNS: &str = include_str!("../tests/refused_runs.rs");
    const TABLES: &str = include_str!("../tests/bad_tables.rs");
    const LEDGER: &str = include_str!("../tests/ledger.rs");
    const SPENDING: &str = include_str!("../../../python/tests/test_spending.py");
    const LOAD: &str = include_str!("../../../python/tests/test_load.py");
    const PIPELINES: &str = include_str!("../../../python/tests/test_pipelines.py");

    /// A sentence that says that nothing was spent, written or left is tied to a test by name.
    #[test]
    fn every_promise_has_a_test() {
        let claims = ["nothing was", "nothing is saved", "before anything", "is left", "no error"];
        for entry in entries() {
            let text = format!("{} {}", entry.why, entry.fix);
            let own: Vec<_> = PROMISES.iter().filter(|(code, ..)| *code == entry.code).collect();
            for (_, claim, tests, name) in &own {
                assert!(text.contains(claim), "{} no longer says: {claim}", entry.code);
                let is_there = tests.contains(&format!("fn {name}()"))
                    || tests.contains(&format!("def {name}("));
                assert!(is_there, "{}: no test {name}", entry.code);
            }
            let claimed = text.to_lowercase();
            let claimed = claims.iter().any(|claim| claimed.contains(claim));
            assert!(!claimed || !own.is_empty(), "{}: {text}", entry.code);
        }
    }
}
