//! `quietly diagnose`: whether a signal can be learnt at a budget, and what would be enough.
use std::path::PathBuf;

use clap::Args;
use quietly::{
    Budget, Certificate, Encoding, Neighbours, ReadOptions, Run,
    diagnose::{Diagnosis, Separation, private_separation, public_separation},
};
use serde_json::{Value, json};

use crate::{
    error::Failure,
    format,
    ledger::{Charging, Receipt, pay},
    parse::{Count, Number},
    tables::{BudgetArgs, Reading, SchemaFile, key, usual_delta},
    terminal::{Progress, Screen, WIDTH},
};

#[derive(Args, Debug)]
pub(crate) struct Diagnose {
    /// The table whose signal is estimated; leave it out with --snr
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The signal-to-noise ratio, if known: half the distance of the class means over the standard deviation within a class
    #[arg(long, value_name = "X")]
    snr: Option<Number>,
    /// Approximate number of rows, with --snr
    #[arg(long, value_name = "N")]
    rows: Option<Count>,
    /// The column with the classes
    #[arg(long, value_name = "COLUMN")]
    target: Option<String>,
    /// The feature columns, with commas; all others of the schema by default
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    features: Option<Vec<String>>,
    #[command(flatten)]
    schema: SchemaFile,
    /// Privacy budget ε of the estimate, in addition to --epsilon and at the same delta
    #[arg(long, value_name = "E", conflicts_with = "public")]
    spend: Option<Number>,
    /// The table is public: its signal is computed exactly, and costs nothing
    #[arg(long)]
    public: bool,
    #[command(flatten)]
    spending: BudgetArgs,
    /// Number of steps of a network as in the paper
    #[arg(long, value_name = "T")]
    steps: Option<Count>,
    /// The power of the network's ReLU
    #[arg(long, value_name = "Q", default_value = "3")]
    power: Number,
    /// A fixed seed, for tests: anyone who knows the seed can remove the noise
    #[arg(long, value_name = "N", requires = "spend")]
    seed: Option<Count>,
    #[command(flatten)]
    charging: Charging,
    #[command(flatten)]
    reading: Reading,
}

/// Where the signal is known from.
enum Signal {
    Typed,
    Public(Separation),
    Private(Separation, Box<Certificate>),
}

/// Says whether it is enough, and what would be.
pub(crate) fn run(asked: &Diagnose, screen: &mut Screen) -> Result<(), Failure> {
    let wrong = |what: &str| Err(Failure::Signal(what.into()));
    let mut receipt = None;
    let (diagnosis, signal) = match (asked.files.first(), asked.snr) {
        (None, None) => return wrong("neither was given"),
        (Some(_), Some(_)) => return wrong("both were given"),
        (None, Some(snr)) => {
            if asked.spend.is_some() || asked.public || asked.target.is_some() {
                return wrong("--target, --spend and --public are for a table");
            }
            let Some(rows) = asked.rows else { return wrong("--snr needs --rows") };
            let rows = rows.at_least_one("rows")?;
            (asked.diagnosis(snr.0, rows, asked.spending.budget(rows, None)?)?, Signal::Typed)
        }
        (Some(first), None) => {
            let Some(target) = &asked.target else {
                return wrong("a table needs --target, the column with the classes");
            };
            if asked.rows.is_some() {
                return wrong("--rows is for --snr; a table has rows = N in its schema");
            }
            if asked.spend.is_none() && !asked.public {
                return wrong("a table needs --spend E, the budget of the estimate, or --public");
            }
            let schema = asked.schema.read(first)?;
            let source = asked.reading.open(&asked.files, ReadOptions::of_schema(&schema))?;
            let columns = asked.features.as_deref();
            let encoding = Encoding::new(&schema, source.columns(), columns, Some(target))
                .map_err(quietly::Error::from)?;
            let schema_file = asked.schema.path(first);
            // A public table is charged to no ledger.
            let ledger = match asked.spend {
                Some(_) => asked.charging.open(&schema_file, &asked.files)?,
                None => {
                    asked.charging.expect_public(&schema_file, &asked.files)?;
                    None
                }
            };
            let usual = ledger.as_ref().map(|l| l.usual_delta(usual_delta(schema.rows)));
            let (k, unit) = (schema.rows_per_unit, asked.spending.budget(schema.rows, usual)?);
            let budget = unit.for_units_of(k)?;
            // What is refused is refused before anything is spent.
            asked.diagnosis(1.0, schema.rows, budget)?;
            let threads = asked.reading.threads()?;
            let progress = Progress::new("estimating the signal");
            let signal = match asked.spend {
                None => Signal::Public(public_separation(&source, &encoding, threads)?),
                Some(spend) => {
                    let price = Budget::new(spend.0, unit.delta())?.under(unit.neighbours());
                    let price = price.for_units_of(k)?;
                    expect_finite(price)?;
                    let (rows, unit) = (schema.rows, &schema.unit);
                    source.check(&encoding, Some(&schema)).map_err(quietly::Error::from)?;
                    expect_two_classes(&encoding)?;
                    let run = Run::new(&format!("signal of {target}"))?;
                    let (charge, charged) = pay(ledger, run, price, key(asked.seed)?)?;
                    receipt = charged;
                    let (found, certificate) =
                        private_separation(&source, &encoding, rows, unit, price, charge, threads)?;
                    receipt.iter_mut().for_each(Receipt::finish);
                    Signal::Private(found, Box::new(certificate))
                }
            };
            drop(progress);
            let snr = signal.separation().map_or(0.0, |s| s.snr);
            (asked.diagnosis(snr, schema.rows, budget)?, signal)
        }
    };
    if asked.reading.json {
        return Ok(screen.say_json(&report(&diagnosis, &signal))?);
    }
    screen.say(&signal.told(&diagnosis))?;
    screen.say(&numbers(&diagnosis))?;
    let verdict = format!("verdict: {}", diagnosis.sentences().join(" "));
    screen.say(&format!("\n{}", format::wrap(&verdict, "", WIDTH)))?;
    screen.say(&format::wrap(&least(&diagnosis), "", WIDTH))?;
    if let Signal::Private(_, certificate) = &signal {
        screen.say(&format!("\nThe estimate:\n{certificate}"))?;
    }
    if let Some(receipt) = receipt {
        screen.say(&receipt.left())?;
    }
    let next = match signal {
        Signal::Typed => "quietly-lab reproduce features --quick",
        _ => "stronger features help as much as more rows: docs/features.md",
    };
    Ok(screen.say(&format!("\nnext: {next}"))?)
}

/// Refuses what a private estimate would refuse later.
fn expect_two_classes(encoding: &Encoding) -> Result<(), Failure> {
    let classes = encoding.expect_classes().map_err(quietly::Error::from)?.class_count();
    if classes == 2 {
        return Ok(());
    }
    let want = "2 for a private estimate; public tables may have more";
    let (name, got) = ("number of classes", classes.to_string());
    Err(quietly::Error::Parameter { name, want, got }.into())
}

fn expect_finite(budget: Budget) -> Result<(), Failure> {
    if budget.is_private() {
        return Ok(());
    }
    let (name, want) = ("epsilon", "finite: without privacy there is nothing to diagnose");
    Err(quietly_accounting::Error::Parameter { name, want, got: budget.epsilon() }.into())
}

impl Diagnose {
    fn diagnosis(&self, snr: f64, rows: u64, budget: Budget) -> Result<Diagnosis, Failure> {
        expect_finite(budget)?;
        let diagnosis = Diagnosis::new(snr, rows, budget)?.power(self.power.0)?;
        match self.steps {
            Some(steps) => Ok(diagnosis.steps(steps.get("steps")?)?),
            None => Ok(diagnosis),
        }
    }
}

impl Signal {
    fn separation(&self) -> Option<&Separation> {
        match self {
            Signal::Typed => None,
            Signal::Public(found) | Signal::Private(found, _) => Some(found),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Signal::Typed => "typed",
            Signal::Public(_) => "public",
            Signal::Private(..) => "private",
        }
    }

    /// The signal, where it is from and what it cost.
    fn told(&self, diagnosis: &Diagnosis) -> String {
        let Some(found) = self.separation() else {
            return format!("signal  SNR {}, as given", diagnosis.snr());
        };
        let mut text = format!(
            "signal  SNR {:.3}, within {:.3} to {:.3} by two standard deviations; {} classes",
            found.snr, found.low, found.high, found.classes
        );
        if let Some(directions) = found.directions {
            text += &format!(
                "\n        on {directions} random directions, as noise would hide the signal in so many features"
            );
        }
        if !found.stands_out() {
            text += "\n        which noise or chance alone can explain";
        }
        text + &match self {
            Signal::Private(_, certificate) => format!(
                "\nspent   epsilon {} at delta {:e} on this estimate ({}){}; training costs extra",
                format::high(certificate.epsilon),
                certificate.budget.delta(),
                certificate.budget.neighbours().name(),
                if certificate.test_only { ", TEST ONLY: a fixed seed" } else { "" }
            ),
            _ => "\nspent   nothing: the table was declared public, and its rows were used without noise; NOT private".into(),
        }
    }
}

/// The three numbers and their limits.
fn numbers(diagnosis: &Diagnosis) -> String {
    let budget = diagnosis.budget();
    let apart = match budget.neighbours() {
        Neighbours::AddRemove => "1",
        Neighbours::ReplaceOne => "2",
    };
    let time = match diagnosis.time() {
        Some(time) => {
            format!("{:<9} steps over those the signal needs; enough from 2", format::low(time))
        }
        None => "-         unknown without --steps".into(),
    };
    format!(
        "budget  epsilon {} at delta {:e} ({}), about {} rows\n\
         \n\
         Q_priv  {:<9} SNR n mu / {apart}: signal over privacy noise; enough from 30, too little below 10\n\
         Q_stat  {:<9} SNR^q n: signal over memorisation; enough from 10\n\
         Q_time  {time}",
        budget.epsilon(),
        budget.delta(),
        budget.neighbours().name(),
        diagnosis.rows(),
        format::low(diagnosis.privacy()),
        format::low(diagnosis.statistics()),
    )
}

fn least(diagnosis: &Diagnosis) -> String {
    format!(
        "Enough (each with all else unchanged): {}; {}; {}.",
        match diagnosis.least_rows() {
            Some(rows) => format!("{rows} rows"),
            None => "no number of rows".into(),
        },
        match diagnosis.least_epsilon() {
            Some(epsilon) => format!("epsilon {}", format::high(epsilon)),
            None => "no epsilon".into(),
        },
        match diagnosis.least_snr() {
            Some(snr) => format!("SNR {}", format::high(snr)),
            None => "no SNR".into(),
        },
    )
}

fn report(diagnosis: &Diagnosis, signal: &Signal) -> Value {
    let budget = diagnosis.budget();
    let mut value = json!({
        "snr": diagnosis.snr(),
        "snr_from": signal.name(),
        "rows": diagnosis.rows(),
        "epsilon": budget.epsilon(),
        "delta": budget.delta(),
        "neighbours": budget.neighbours().name(),
        "q_priv": diagnosis.privacy(),
        "q_stat": diagnosis.statistics(),
        "q_time": diagnosis.time(),
        "verdict": diagnosis.verdict().name(),
        "says": diagnosis.sentences(),
        "multiply_snr_rows_by": format::json(diagnosis.factor()),
        "least": {
            "rows": diagnosis.least_rows(),
            "epsilon": diagnosis.least_epsilon(),
            "snr": diagnosis.least_snr(),
        },
    });
    if let Some(found) = signal.separation() {
        value["separation"] = serde_json::to_value(found).expect("plain fields");
        value["private"] = matches!(signal, Signal::Private(..)).into();
    }
    if let Signal::Private(_, certificate) = signal {
        value["spent"] = format::json(certificate.epsilon);
        value["test_only"] = certificate.test_only.into();
        value["certificate"] = serde_json::to_value(certificate).expect("plain fields");
    }
    value
}
