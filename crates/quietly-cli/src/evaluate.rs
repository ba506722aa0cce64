//! `quietly evaluate`: how good a model is on a table.
use std::{ops::ControlFlow, path::PathBuf};

use clap::Args;
use quietly::{Budget, Model, ReadOptions, Run, Scores};
use serde_json::{Value, json};

use crate::{
    args::Relation,
    error::Failure,
    format,
    ledger::{Charging, Receipt, pay},
    parse::{Count, Number},
    tables::{Files, SchemaFile, files_read, key},
    terminal::{Progress, Screen, WIDTH},
};

mod classes;

#[derive(Args, Debug)]
pub(crate) struct Evaluate {
    /// The model file
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    #[command(flatten)]
    table: Files,
    /// Privacy budget ε of a private estimate; without it the scores are exact and not private
    #[arg(long, value_name = "E")]
    epsilon: Option<Number>,
    /// Privacy budget δ of a private estimate; 1e-5 by default, or a tenth of what the ledger has left if that is less
    #[arg(long, value_name = "D", requires = "epsilon")]
    delta: Option<Number>,
    /// Neighbouring relation: add-remove or replace-one
    #[arg(long, value_name = "HOW", hide_possible_values = true, value_enum, default_value_t = Relation::AddRemove, requires = "epsilon")]
    neighbours: Relation,
    /// A fixed seed, for tests: anyone who knows the seed can remove the noise
    #[arg(long, value_name = "N", requires = "epsilon")]
    seed: Option<Count>,
    #[command(flatten)]
    schema: SchemaFile,
    #[command(flatten)]
    charging: Charging,
}

/// The delta of a private estimate.
const DELTA: f64 = 1e-5;

const NOT_PRIVATE: &str = "These scores were computed from the rows themselves, without noise: they are NOT private. Do not \
                           share them if the rows are sensitive; for a private estimate use --epsilon 0.1";

/// Prints how good the model is.
pub(crate) fn run(evaluate: &Evaluate, screen: &mut Screen) -> Result<(), Failure> {
    let model = Model::read(&evaluate.model)?;
    let reading = &evaluate.table.reading;
    let options = ReadOptions::of_encoding(&model.encoding);
    let source = reading.open(&evaluate.table.files, options)?;
    let threads = reading.threads()?;
    let mut watch = |_| ControlFlow::Continue(());
    let mut receipt = None;
    let spent = match evaluate.epsilon {
        None => None,
        Some(epsilon) => {
            // What is public is refused before anything is spent.
            source.check(&model.encoding, None).map_err(quietly::Error::from)?;
            let table = &evaluate.table.files[0];
            let schema = evaluate.schema.path(table);
            let ledger = evaluate.charging.open(&schema, &evaluate.table.files)?;
            let usual = || ledger.as_ref().map_or(DELTA, |ledger| ledger.usual_delta(DELTA));
            let delta = evaluate.delta.map_or_else(usual, |delta| delta.0);
            let budget = Budget::new(epsilon.0, delta)?.under(evaluate.neighbours.into());
            // The units of the table, or those of the model if they are larger.
            let table = quietly::LedgerSettings::read(&schema).map_err(quietly::Error::from)?;
            let budget = budget.for_units_of(table.rows_per_unit)?;
            let budget = budget.for_units_of_at_least(model.rows_per_unit())?;
            let run = Run::new(&format!("scores of a model of {}", model.target))?;
            let (charge, charged) = pay(ledger, run, budget, key(evaluate.seed)?)?;
            receipt = charged;
            Some((budget, charge))
        }
    };
    if !reading.json {
        screen.say(&format::wrap(&files_read(&source), "", WIDTH))?;
    }
    let progress = Progress::new("evaluating");
    let (said, certificate) = match (model.link.is_classifier(), spent) {
        (false, None) => {
            let scores = quietly::evaluate(&model, &source, threads, &mut watch)?;
            scored(scores.rows)?;
            (regression(&model, &scores), None)
        }
        (false, Some((budget, charge))) => {
            let (scores, certificate) =
                quietly::evaluate_privately(&model, &source, threads, budget, charge, &mut watch)?;
            (regression(&model, &scores), Some(certificate))
        }
        (true, None) => {
            let scores = quietly::evaluate_classes(&model, &source, threads, &mut watch)?;
            scored(scores.rows)?;
            (classes::said(&model, &scores), None)
        }
        (true, Some((budget, charge))) => {
            let (scores, certificate) = quietly::evaluate_classes_privately(
                &model, &source, threads, budget, charge, &mut watch,
            )?;
            (classes::said(&model, &scores), Some(certificate))
        }
    };
    drop(progress);
    let certificate = certificate.map(|mut certificate| {
        certificate.add_files(&source.file_names());
        certificate
    });
    receipt.iter_mut().for_each(Receipt::finish);
    if reading.json {
        let mut object = said.json;
        let fields = object.as_object_mut().expect("made as an object");
        fields.insert("private".into(), certificate.is_some().into());
        match &certificate {
            Some(c) => fields.insert("certificate".into(), serde_json::to_value(c).expect("plain")),
            None => fields.insert("warning".into(), NOT_PRIVATE.into()),
        };
        return Ok(screen.say_json(&object)?);
    }
    screen.say(&said.text)?;
    match certificate {
        None => screen.say(&format!("\n{}", format::wrap(NOT_PRIVATE, "", WIDTH)))?,
        Some(certificate) => screen.say(&format!("\nA private estimate:\n{certificate}"))?,
    }
    match receipt {
        Some(receipt) => Ok(screen.say(&receipt.left())?),
        None => Ok(()),
    }
}

/// Refuses scores of no row. They are not private, so that this may depend on the rows.
fn scored(rows: f64) -> Result<(), Failure> {
    if rows > 0.0 { Ok(()) } else { Err(Failure::NoRows) }
}

/// Scores for people and for programs.
struct Said {
    text: String,
    json: Value,
}

fn regression(model: &Model, scores: &Scores) -> Said {
    let json = json!({
        "r2": format::json(scores.r2), "rmse": format::json(scores.rmse), "rows": format::json(scores.rows),
    });
    let r2 = if scores.r2.is_nan() {
        "undefined, as the target does not vary".into()
    } else {
        format!("{:.4}", scores.r2)
    };
    let text = format!(
        "R2    {r2}\nRMSE  {:.4}   (in units of {})\nrows  {:.0}",
        scores.rmse, model.target, scores.rows
    );
    Said { text, json }
}
