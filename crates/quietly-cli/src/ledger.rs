//! `quietly budget`: what may be spent on a table, and what was; and charging it.
use std::path::{Path, PathBuf};

use clap::Args;
use quietly::{Budget, Charge, Key, Ledger, LedgerEntry, Run};
use serde_json::{Value, json};

use crate::{args::Relation, error::Failure, parse::Number, tables::beside, terminal::Screen};

#[derive(Args, Debug)]
pub(crate) struct Account {
    /// The ledger of one table
    #[arg(value_name = "LEDGER")]
    ledger: PathBuf,
    /// Create a ledger: the total epsilon that may be spent
    #[arg(long, value_name = "E", requires = "delta")]
    limit: Option<Number>,
    /// The total delta that may be spent
    #[arg(long, value_name = "D", requires = "limit")]
    delta: Option<Number>,
    /// Neighbouring relation: add-remove or replace-one
    #[arg(long, value_name = "HOW", hide_possible_values = true, value_enum, default_value_t = Relation::AddRemove)]
    neighbours: Relation,
    /// Repair a ledger whose last line is incomplete; the repair is recorded
    #[arg(long, conflicts_with = "limit")]
    repair: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Where a run is written down. Every verb that spends has these flags, and pays by [`pay`].
#[derive(Args, Debug)]
pub(crate) struct Charging {
    /// The ledger to charge before the table is read (see `quietly budget`); by default that of the schema, or QUIETLY_LEDGER
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// Charge no ledger, even if the schema or QUIETLY_LEDGER names one
    #[arg(long, conflicts_with = "ledger", hide_short_help = true)]
    no_ledger: bool,
}

impl Charging {
    /// Refuses to read the rows of a table as public ones where a schema of it names a ledger.
    pub(crate) fn expect_public(&self, schema: &Path, files: &[PathBuf]) -> Result<(), Failure> {
        expect_public(schema, files, self.no_ledger)
    }

    /// The ledger of a table, if there is one: the schema in use may name it, or one beside the table.
    pub(crate) fn open(&self, schema: &Path, files: &[PathBuf]) -> Result<Option<Ledger>, Failure> {
        if self.no_ledger {
            return Ok(None);
        }
        let path = match (&self.ledger, named(schema, files)?) {
            (Some(typed), Some(named)) if !same(typed, &named) => {
                let (typed, named) = (typed.display().to_string(), named.display().to_string());
                return Err(Failure::Ledgers { typed, named });
            }
            (Some(path), _) => Some(path.clone()),
            (None, Some(named)) => Some(named),
            (None, None) => {
                let set = std::env::var_os("QUIETLY_LEDGER").filter(|path| !path.is_empty());
                set.map(PathBuf::from)
            }
        };
        Ok(path.map(|path| Ledger::open(&path, None)).transpose()?)
    }
}

/// Refuses to read the rows of a table as public ones where a schema of it names a ledger, unless `insists`.
pub(crate) fn expect_public(
    schema: &Path,
    files: &[PathBuf],
    insists: bool,
) -> Result<(), Failure> {
    match named(schema, files)?.filter(|_| !insists) {
        Some(named) => Err(Failure::Unledgered { named: named.display().to_string() }),
        None => Ok(()),
    }
}

/// The ledger that the schema in use names, or a schema that stands beside the table. They must not name two.
fn named(schema: &Path, files: &[PathBuf]) -> Result<Option<PathBuf>, Failure> {
    let mut found: Option<PathBuf> = None;
    for file in std::iter::once(schema.into()).chain(files.iter().flat_map(|file| schemas(file))) {
        let settings = quietly::LedgerSettings::read(&file).map_err(quietly::Error::from)?;
        match (&found, settings.ledger) {
            (Some(used), Some(other)) if !same(used, &other) => {
                let (typed, named) = (used.display().to_string(), other.display().to_string());
                return Err(Failure::Ledgers { typed, named });
            }
            (None, Some(ledger)) => found = Some(ledger),
            _ => {}
        }
    }
    Ok(found)
}

/// Where the schema of a file or folder may stand: beside it, beside what a link leads to, and beside its folder, which may be the
/// table as a whole.
fn schemas(file: &Path) -> Vec<PathBuf> {
    let real = std::fs::canonicalize(file).or_else(|_| std::path::absolute(file));
    let mut all = vec![beside(file)];
    if let Ok(real) = real {
        all.push(beside(&real));
        all.extend(real.parent().filter(|folder| folder.file_name().is_some()).map(beside));
    }
    all
}

/// Whether two paths mean one file, which need not be there.
pub(crate) fn same(a: &Path, b: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).or_else(|_| std::path::absolute(path));
    real(a).is_ok_and(|a| real(b).is_ok_and(|b| a == b))
}

/// What was charged.
pub(crate) struct Receipt {
    ledger: Ledger,
    run: String,
}

impl Receipt {
    /// What is left, for people.
    pub(crate) fn left(&self) -> String {
        format!("ledger: {}", self.ledger.to_string().lines().last().unwrap_or_default())
    }

    /// Writes down that the run has ended. If that fails it stays charged and begun, which is no worse.
    pub(crate) fn finish(&mut self) {
        let _ = self.ledger.finish(&self.run);
    }
}

/// The right to one release with the noise of `key`: charged to the ledger, if there is one, before the table is read.
pub(crate) fn pay(
    ledger: Option<Ledger>,
    run: Run,
    budget: Budget,
    key: Key,
) -> Result<(Charge, Option<Receipt>), Failure> {
    let Some(mut ledger) = ledger else { return Ok((Charge::without_ledger(key), None)) };
    let charge = ledger.pay(&run, budget, key)?;
    Ok((charge, Some(Receipt { ledger, run: run.name })))
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
    let repaired = if account.repair { Ledger::repair(&account.ledger)? } else { None };
    let ledger = Ledger::open(&account.ledger, limit)?;
    if account.json {
        let mut report = report(&ledger);
        if account.repair {
            report["repaired"] = repaired.into();
        }
        return Ok(screen.say_json(&report)?);
    }
    screen.say(&ledger.to_string())?;
    match (account.repair, repaired) {
        (true, Some(done)) => Ok(screen.say(&format!("repaired: {done}"))?),
        (true, None) => Ok(screen.say("nothing to repair: the last line is whole")?),
        (false, _) => Ok(()),
    }
}

fn report(ledger: &Ledger) -> Value {
    let pair = |(epsilon, delta): (f64, f64)| json!({ "epsilon": epsilon, "delta": delta });
    let entry = |s: &LedgerEntry| {
        let mut entry = serde_json::to_value(s).expect("plain fields");
        (entry["at"], entry["state"]) = (s.at().into(), s.state().into());
        entry
    };
    json!({
        "ledger": ledger.path().display().to_string(),
        "limit": serde_json::to_value(ledger.limit()).expect("plain fields"),
        "spent": pair(ledger.spent()),
        "left": pair(ledger.left()),
        "entries": ledger.entries().iter().map(entry).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use crate::help;

    /// Verbs that have an --epsilon, and read no sensitive table.
    const NO_TABLE: [&str; 4] = ["plan", "account", "calibrate", "audit"];

    /// From clap itself: no verb can be added that spends beside the ledger.
    #[test]
    fn every_verb_that_spends_takes_a_ledger() {
        let mut spending = Vec::new();
        for verb in help::command().get_subcommands() {
            let has = |flag: &str| verb.get_arguments().any(|arg| arg.get_long() == Some(flag));
            let name = verb.get_name();
            if (has("epsilon") || has("spend")) && !NO_TABLE.contains(&name) {
                assert!(has("ledger") && has("no-ledger"), "{name} spends beside the ledger");
                spending.push(name.to_string());
            }
            // Only the verbs of the accountant and the audit have subcommands.
            let nested = verb.get_subcommands().any(|inner: &Command| inner.get_name() != "help");
            assert!(!nested || NO_TABLE.contains(&name), "{name}");
        }
        spending.sort();
        assert_eq!(spending, ["bounds", "check", "diagnose", "evaluate", "fit"]);
    }
}
