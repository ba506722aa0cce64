//! `quietly check`: whether a table matches its schema, at a privacy cost or for a public table.
use std::ops::ControlFlow;

use clap::Args;
use quietly::{Budget, Charge, ColumnCheck, ReadOptions, Run, TableCheck};
use serde_json::json;

use crate::{
    args::Relation,
    error::Failure,
    format,
    ledger::{Charging, Receipt, pay},
    parse::{Count, Number},
    tables::{Files, SchemaFile, files_read, key, usual_delta},
    terminal::{Progress, Screen, WIDTH},
};

#[derive(Args, Debug)]
pub(crate) struct Check {
    #[command(flatten)]
    table: Files,
    #[command(flatten)]
    schema: SchemaFile,
    /// The column to predict, to count the rows that a fit would use
    #[arg(long, value_name = "COLUMN")]
    target: Option<String>,
    /// Privacy budget ε
    #[arg(long, value_name = "E", required_unless_present = "public")]
    epsilon: Option<Number>,
    /// Privacy budget δ; below 1 / (10 rows) by default
    #[arg(long, value_name = "D", requires = "epsilon")]
    delta: Option<Number>,
    /// The rows are public: numbers are exact and cost nothing
    #[arg(long, conflicts_with = "epsilon")]
    public: bool,
    /// Neighbouring relation: add-remove or replace-one
    #[arg(long, value_name = "HOW", hide_possible_values = true, value_enum, default_value_t = Relation::AddRemove, requires = "epsilon")]
    neighbours: Relation,
    /// A fixed seed, for tests: anyone who knows the seed can remove the noise
    #[arg(long, value_name = "N", requires = "epsilon")]
    seed: Option<Count>,
    #[command(flatten)]
    charging: Charging,
}

/// A share of cells from which a column is pointed out.
const MANY: f64 = 0.5;

/// What no column shows.
const BROKEN: &str =
    "Lines with more or fewer cells than the header are not rows, and count in no column.";

/// Prints what does not fit.
pub(crate) fn run(check: &Check, screen: &mut Screen) -> Result<(), Failure> {
    let reading = &check.table.reading;
    let path = check.schema.path(&check.table.files[0]);
    let schema = check.schema.read(&check.table.files[0])?;
    let source = reading.open(&check.table.files, ReadOptions::of_schema(&schema))?;
    let threads = reading.threads()?;
    let key = key(check.seed)?;
    let mut receipt = None;
    let (budget, charge) = match check.epsilon {
        None => {
            check.charging.expect_public(&path, &check.table.files)?;
            (Budget::new(f64::INFINITY, 1e-6)?, Charge::without_ledger(key))
        }
        Some(epsilon) => {
            let ledger = check.charging.open(&path, &check.table.files)?;
            let least = usual_delta(schema.rows);
            let usual = || ledger.as_ref().map_or(least, |ledger| ledger.usual_delta(least));
            let delta = check.delta.map_or_else(usual, |delta| delta.0);
            let budget = Budget::new(epsilon.0, delta)?.under(check.neighbours.into());
            let budget = budget.for_units_of(schema.rows_per_unit)?;
            TableCheck::refuse(&source, &schema, check.target.as_deref())?;
            let (charge, charged) = pay(ledger, Run::new("a check of the table")?, budget, key)?;
            receipt = charged;
            (budget, charge)
        }
    };
    if !reading.json {
        screen.say(&format::wrap(&files_read(&source), "", WIDTH))?;
    }
    let progress = Progress::new("checking");
    let mut watch = |_| ControlFlow::Continue(());
    let target = check.target.as_deref();
    let (found, certificate) =
        TableCheck::of(&source, &schema, target, budget, charge, threads, &mut watch)?;
    drop(progress);
    receipt.iter_mut().for_each(Receipt::finish);
    if reading.json {
        let mut report = json!(found);
        report["private"] = budget.is_private().into();
        report["warning"] = found.usable.warning().into();
        report["certificate"] = serde_json::to_value(&certificate).expect("plain fields");
        return Ok(screen.say_json(&report)?);
    }
    screen.say(&found.usable.to_string().replace("were used", "can be used"))?;
    screen.say(&table(&found))?;
    if let Some(warning) = found.usable.warning() {
        screen.say(&format::wrap(&format!("WARNING: {warning} {BROKEN}"), "", WIDTH))?;
    }
    match budget.is_private() {
        true => screen.say(&format!(
            "\nspent epsilon {} at delta {:e}: {}",
            format::high(certificate.epsilon),
            budget.delta(),
            certificate.relation()
        ))?,
        false => screen.say("\nThese numbers are exact: they are NOT private.")?,
    }
    match receipt {
        Some(receipt) => Ok(screen.say(&receipt.left())?),
        None => Ok(()),
    }
}

/// One line for each column.
fn table(found: &TableCheck) -> String {
    let width = found.columns.iter().map(|c| c.column.chars().count()).max().unwrap_or(6).max(6);
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let line = |column: &ColumnCheck| {
        let note = match column {
            c if c.missing > MANY => "   <- not what the schema says",
            c if c.at_ends.is_some_and(|share| share > MANY) => "   <- is the range too narrow?",
            _ => "",
        };
        let ends = column.at_ends.map_or("-".into(), percent);
        format!("{:<width$}  {:>21}  {:>20}{note}", column.column, percent(column.missing), ends)
    };
    let head = format!("\n{:<width$}  missing or undeclared  at ends of its range", "column");
    let lines: Vec<String> = found.columns.iter().map(line).collect();
    let noise = match found.deviation {
        0.0 => String::new(),
        noise => format!("\n(shares are ± {}, 95 %)", percent(1.96 * noise)),
    };
    format!("{head}\n{}{noise}", lines.join("\n"))
}
