//! `quietly bounds`: ranges for a schema, at a shown price or from a public file.
use std::path::PathBuf;

use clap::Args;
use quietly::{DataError, Missing, Rule, Schema, private_range, public_range};
use serde_json::json;

use crate::{
    failure::Failure,
    number::{Count, Number},
    screen::{Progress, Screen},
    tables::{Reading, key},
    words,
};

#[derive(Args, Debug)]
pub(crate) struct Bounds {
    /// The sensitive table, then the columns; only columns with --public
    #[arg(required = true, value_name = "FILE COLUMN")]
    words: Vec<String>,
    /// What the ranges may cost in all: pure epsilon, one row added or removed
    #[arg(long, value_name = "E")]
    epsilon: Option<Number>,
    /// A file that anybody may see: its ranges cost nothing
    #[arg(long, value_name = "FILE", conflicts_with = "epsilon")]
    public: Option<PathBuf>,
    /// About how many rows the table has
    #[arg(long, value_name = "N", default_value = "10000")]
    rows: Count,
    /// A fixed seed, for tests: whoever knows it can remove the noise
    #[arg(long, value_name = "N")]
    seed: Option<Count>,
    #[command(flatten)]
    reading: Reading,
}

/// Prints one schema line for every column.
pub(crate) fn run(bounds: &Bounds, screen: &mut Screen) -> Result<(), Failure> {
    let threads = bounds.reading.threads()?;
    let mut found: Vec<(&String, f64, f64)> = vec![];
    let mut spent = 0.0;
    if let Some(public) = &bounds.public {
        let source = bounds.reading.open(std::slice::from_ref(public), None)?;
        let _progress = Progress::new("reading the public file");
        for column in &bounds.words {
            let (low, high) = public_range(&source, column, threads)?;
            found.push((column, low, high));
        }
    } else {
        let (file, columns) = bounds.words.split_first().expect("clap asks for one");
        let Some(epsilon) = bounds.epsilon else {
            return Err(Failure::Price { file: file.clone() });
        };
        if columns.is_empty() {
            return Err(Failure::NoColumns { file: file.clone() });
        }
        let rows = bounds.rows.at_least_one("rows")?;
        let source = bounds.reading.open(&[PathBuf::from(file)], None)?;
        let _progress = Progress::new("estimating ranges");
        let each = epsilon.0 / columns.len() as f64;
        let key = key(bounds.seed)?;
        // All names are looked up before anything is spent.
        let missing = columns.iter().filter(|c| !source.columns().contains(c)).cloned();
        let names: Vec<String> = missing.collect();
        if !names.is_empty() {
            return Err(Failure::Library(DataError::MissingColumns { names, near: vec![] }.into()));
        }
        for column in columns {
            let (low, high) =
                private_range(&source, column, rows, each, key(bounds.seed)?, threads)?;
            found.push((column, low, high));
        }
        spent = epsilon.0;
    }
    if bounds.reading.json {
        let ranges: serde_json::Map<_, _> =
            found.iter().map(|(c, low, high)| ((*c).clone(), json!([low, high]))).collect();
        return Ok(screen.say_json(&json!({
            "ranges": ranges, "epsilon": spent, "delta": 0, "neighbours": "add-remove",
            "test_only": bounds.seed.is_some() && bounds.public.is_none(),
        }))?);
    }
    for (column, low, high) in &found {
        screen.say(&line(column, *low, *high))?;
    }
    let price = match &bounds.public {
        Some(public) => format!("spent nothing, as {} is public", public.display()),
        None => format!(
            "spent epsilon {spent} (pure, one row added or removed){}",
            if bounds.seed.is_some() { "; TEST ONLY: a seed was given" } else { "" }
        ),
    };
    screen.say(&format!("\n{price}"))?;
    Ok(screen.say(&words::wrap(
        "next: copy the lines into the schema's [columns]. Values beyond a range will count as its ends.",
        "",
        crate::screen::WIDTH,
    ))?)
}

/// The line of a schema that says so.
fn line(column: &str, lo: f64, hi: f64) -> String {
    let rule = Rule::Range { lo, hi, missing: None };
    let columns = vec![(column.to_string(), rule)];
    let (unit, missing) = (String::from("row"), Missing::Middle);
    let schema = Schema { rows: 1, unit, missing, features: None, columns };
    schema.to_toml().lines().last().unwrap_or_default().into()
}
