//! `quietly bounds`: ranges for a schema, at a printed privacy cost or from a public file.
use std::path::{Path, PathBuf};

use clap::Args;
use quietly::{
    Budget, Encoding, Key, Missing, Rule, Run, Schema, private_range, private_range_on,
    public_range, range_reading,
};
use serde_json::json;

use crate::{
    error::Failure,
    format,
    ledger::{Charging, Receipt, pay},
    parse::{Count, Number},
    remote::Cluster,
    tables::{Reading, SchemaFile, files_read, key, with_features},
    terminal::{Progress, Screen, WIDTH},
};

#[derive(Args, Debug)]
pub(crate) struct Bounds {
    /// The sensitive table, then the columns; only columns with --public
    #[arg(required = true, value_name = "FILE COLUMN")]
    words: Vec<String>,
    /// Privacy budget ε of all ranges (δ = 0, add-remove), for one row or the rows of one unit
    #[arg(long, value_name = "E")]
    epsilon: Option<Number>,
    /// A public file: its ranges cost nothing
    #[arg(long, value_name = "FILE", conflicts_with = "epsilon")]
    public: Option<PathBuf>,
    /// Approximate number of rows of the table
    #[arg(long, value_name = "N", default_value = "10000")]
    rows: Count,
    /// Largest number of rows of a unit (such as a person); by default that of the schema
    #[arg(long, value_name = "K", conflicts_with = "public")]
    rows_per_unit: Option<Count>,
    /// Number of features of libsvm text, which has no header
    #[arg(long, value_name = "D")]
    features: Option<Count>,
    /// A fixed seed, for tests: anyone who knows the seed can remove the noise
    #[arg(long, value_name = "N")]
    seed: Option<Count>,
    #[command(flatten)]
    schema: SchemaFile,
    #[command(flatten)]
    charging: Charging,
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    cluster: Cluster,
}

/// Prints one schema line for every column.
pub(crate) fn run(bounds: &Bounds, screen: &mut Screen) -> Result<(), Failure> {
    let threads = bounds.reading.threads()?;
    let features = bounds.features.map(|f| f.at_least_one("features")).transpose()?;
    let features = features.map(|f| f as usize);
    let mut found: Vec<(&String, Option<(f64, f64)>)> = vec![];
    let mut spent = 0.0;
    let rows = bounds.rows.at_least_one("rows")?;
    let mut receipt = None;
    let mut unit = 1;
    if let Some(public) = &bounds.public {
        bounds.charging.expect_public(&bounds.schema.path(public), std::slice::from_ref(public))?;
        let source = bounds.reading.open(std::slice::from_ref(public), with_features(features))?;
        let _progress = Progress::new("reading the public file");
        for column in &bounds.words {
            found.push((column, Some(public_range(&source, column, threads)?)));
        }
    } else {
        let (file, columns) = bounds.words.split_first().expect("clap asks for one");
        let Some(epsilon) = bounds.epsilon else {
            return Err(Failure::Price { file: file.clone() });
        };
        if columns.is_empty() {
            return Err(Failure::NoColumns { file: file.clone() });
        }
        let source = bounds.reading.open(&[PathBuf::from(file)], with_features(features))?;
        let _progress = Progress::new("estimating ranges");
        let table = Path::new(file);
        let schema_file = bounds.schema.path(table);
        unit = match bounds.rows_per_unit {
            Some(rows) => rows.at_least_one("rows-per-unit")?,
            None => {
                quietly::LedgerSettings::read(&schema_file)
                    .map_err(quietly::Error::from)?
                    .rows_per_unit
            }
        };
        let each = epsilon.0 / columns.len() as f64;
        if !(1e-3..=100.0).contains(&each) {
            let (want, got) = ("from 0.001 to 100 for each column", epsilon.0.to_string());
            return Err(quietly::Error::Parameter { name: "epsilon", want, got }.into());
        }
        let all = Budget::pure(epsilon.0)?.for_units_of(unit)?;
        let each = Budget::pure(each)?.for_units_of(unit)?;
        // All names and types are looked up before anything is spent.
        let schema = schema(columns.iter().map(|c| (c.as_str(), -1.0, 1.0)));
        Encoding::new(&schema, source.columns(), None, None)
            .and_then(|encoding| source.check(&encoding, Some(&schema)))
            .map_err(quietly::Error::from)?;
        if !bounds.reading.json {
            // A comment, as the other lines are for a schema.
            screen.say(&format::wrap(&files_read(&source), "# ", WIDTH))?;
        }
        let ledger = bounds.charging.open(&schema_file, &[table.into()])?;
        let run = Run::new(&format!("ranges of {}", columns.join(", ")))?;
        let first = key(bounds.seed)?;
        let (charge, charged) = pay(ledger, run, all, first)?;
        receipt = charged;
        let shares = charge.shared(columns.len(), || match bounds.seed {
            Some(seed) => Ok(Key::from_seed(seed.get("seed")?)),
            None => Ok(Key::from_os()?),
        })?;
        for (column, charge) in columns.iter().zip(shares) {
            let range = match bounds.cluster.fleet()? {
                None => private_range(&source, column, rows, each, charge, threads)?,
                Some(fleet) => {
                    let reading = range_reading(source.columns(), column)?;
                    let mut rows_there = fleet.rows(&source, reading)?;
                    private_range_on(&mut rows_there, column, rows, each, charge)?
                }
            };
            found.push((column, range));
        }
        spent = epsilon.0;
    }
    receipt.iter_mut().for_each(Receipt::finish);
    if bounds.reading.json {
        let ranges: serde_json::Map<_, _> =
            found.iter().map(|(c, range)| ((*c).clone(), json!(range))).collect();
        return Ok(screen.say_json(&json!({
            "ranges": ranges, "epsilon": spent, "delta": 0, "neighbours": "add-remove",
            "rows_per_unit": unit,
            "test_only": bounds.seed.is_some() && bounds.public.is_none(),
        }))?);
    }
    for (column, range) in &found {
        match range {
            Some((low, high)) => screen.say(&line(column, *low, *high))?,
            None => screen.say(&format::wrap(&few_numbers(column, rows), "# ", WIDTH))?,
        }
    }
    let price = match &bounds.public {
        Some(public) => format!("spent nothing: {} is public", public.display()),
        None => format!(
            "spent epsilon {spent} (pure, {} added or removed){}",
            if unit == 1 { "one row".into() } else { format!("up to {unit} rows of one unit") },
            if bounds.seed.is_some() { "; TEST ONLY: a fixed seed" } else { "" }
        ),
    };
    screen.say(&format!("\n{price}"))?;
    if let Some(receipt) = receipt {
        screen.say(&receipt.left())?;
    }
    Ok(screen.say(&format::wrap(
        "next: copy the lines into the schema's [columns]. Values outside a range count as its ends.",
        "",
        WIDTH,
    ))?)
}

/// What to look into where a column has hardly any number.
fn few_numbers(column: &str, rows: u64) -> String {
    format!(
        "{column}: too few numbers for about {rows} rows: is it a category or a date, are its numbers written with a \
         decimal comma, or are there fewer rows (--rows)?"
    )
}

/// The line of a schema that says so.
fn line(column: &str, lo: f64, hi: f64) -> String {
    schema([(column, lo, hi)].into_iter()).to_toml().lines().last().unwrap_or_default().into()
}

/// A schema that says no more than these ranges.
fn schema<'a>(ranges: impl Iterator<Item = (&'a str, f64, f64)>) -> Schema {
    let rule = |lo, hi| Rule::Range { lo, hi, missing: None };
    let columns = ranges.map(|(name, lo, hi)| (name.to_string(), rule(lo, hi))).collect();
    Schema { missing: Missing::Middle, columns, ..Schema::default() }
}
