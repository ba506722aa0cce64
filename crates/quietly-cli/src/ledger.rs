//! `quietly budget`: what may be spent on a table, and what was; and charging it.
use std::path::{Path, PathBuf};

use clap::Args;
use quietly::{Budget, Ledger, Spending};
use serde_json::{Value, json};

use crate::{args::Relation, failure::Failure, number::Number, screen::Screen};

#[derive(Args, Debug)]
pub(crate) struct Account {
    /// The ledger of one table
    #[arg(value_name = "LEDGER")]
    ledger: PathBuf,
    /// Begin a ledger: the epsilon that may be spent in all
    #[arg(long, value_name = "E", requires = "delta")]
    limit: Option<Number>,
    /// The delta that may be spent in all
    #[arg(long, value_name = "D", requires = "limit")]
    delta: Option<Number>,
    /// One row's difference: add-remove or replace-one
    #[arg(long, value_name = "HOW", hide_possible_values = true, value_enum, default_value_t = Relation::AddRemove)]
    neighbours: Relation,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Where a run is written down.
#[derive(Args, Debug)]
pub(crate) struct Charging {
    /// The ledger to charge, before the table is read: see `quietly budget`
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
}

impl Charging {
    /// Writes down what is about to be spent, or refuses; says what is left.
    pub(crate) fn charge(&self, what: &str, budget: Budget) -> Result<Option<String>, Failure> {
        let Some(path) = &self.ledger else { return Ok(None) };
        let mut ledger = Ledger::open(path, None)?;
        ledger.charge(what, budget)?;
        let said = ledger.to_string();
        Ok(said.lines().last().map(|line| format!("ledger: {line}")))
    }

    /// The file, if it is not to be written over.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.ledger.as_deref()
    }
}

/// Shows a ledger, or begins one.
pub(crate) fn run(account: &Account, screen: &mut Screen) -> Result<(), Failure> {
    let limit = match (account.limit, account.delta) {
        (Some(epsilon), Some(delta)) => {
            let budget = match delta.0 {
                0.0 => Budget::pure(epsilon.0),
                delta => Budget::new(epsilon.0, delta),
            };
            Some(budget?.under(account.neighbours.into()))
        }
        _ => None,
    };
    let ledger = Ledger::open(&account.ledger, limit)?;
    if account.json {
        return Ok(screen.say_json(&report(&ledger))?);
    }
    Ok(screen.say(&ledger.to_string())?)
}

fn report(ledger: &Ledger) -> Value {
    let pair = |(epsilon, delta): (f64, f64)| json!({ "epsilon": epsilon, "delta": delta });
    let entry = |s: &Spending| serde_json::to_value(s).expect("plain fields");
    let (epsilon, delta) = ledger.left();
    json!({
        "ledger": ledger.path().display().to_string(),
        "limit": serde_json::to_value(ledger.limit()).expect("plain fields"),
        "spent": pair(ledger.spent()),
        "left": pair((epsilon.max(0.0), delta.max(0.0))),
        "entries": ledger.entries().iter().map(entry).collect::<Vec<_>>(),
    })
}
