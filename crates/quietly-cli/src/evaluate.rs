//! `quietly evaluate`: how good a model is on a table.
use std::{ops::ControlFlow, path::PathBuf};

use clap::Args;
use quietly::{Budget, Model, Scores};
use serde_json::{Value, json};

use crate::{
    args::Relation,
    failure::Failure,
    number::{Count, Number},
    screen::{Progress, Screen, WIDTH},
    tables::{Files, highest_index, key},
    words,
};

mod classes;

#[derive(Args, Debug)]
pub(crate) struct Evaluate {
    /// The model file
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    #[command(flatten)]
    table: Files,
    /// Spend this much for a private estimate; without it the scores are exact and not private
    #[arg(long, value_name = "E")]
    epsilon: Option<Number>,
    /// The delta of a private estimate
    #[arg(long, value_name = "D", default_value = "1e-5", requires = "epsilon")]
    delta: Number,
    /// One row's difference: add-remove or replace-one
    #[arg(long, value_name = "HOW", hide_possible_values = true, value_enum, default_value_t = Relation::AddRemove, requires = "epsilon")]
    neighbours: Relation,
    /// A fixed seed, for tests: whoever knows it can remove the noise
    #[arg(long, value_name = "N", requires = "epsilon")]
    seed: Option<Count>,
}

const NOT_PRIVATE: &str = "These scores were computed from the rows themselves, without noise: they are NOT private. Keep \
                           them to yourself if the rows are sensitive, or spend something: --epsilon 0.1";

/// Prints how good the model is.
pub(crate) fn run(evaluate: &Evaluate, screen: &mut Screen) -> Result<(), Failure> {
    let model = Model::read(&evaluate.model)?;
    let reading = &evaluate.table.reading;
    let source = reading.open(&evaluate.table.files, highest_index(&model.encoding))?;
    let threads = reading.threads()?;
    let mut watch = |_| ControlFlow::Continue(());
    let spent = match evaluate.epsilon {
        None => None,
        Some(epsilon) => {
            let budget =
                Budget::new(epsilon.0, evaluate.delta.0)?.under(evaluate.neighbours.into());
            Some((budget, key(evaluate.seed)?))
        }
    };
    let progress = Progress::new("evaluating");
    let (said, certificate) = match (model.link.is_classifier(), spent) {
        (false, None) => {
            (regression(&model, &quietly::evaluate(&model, &source, threads, &mut watch)?), None)
        }
        (false, Some((budget, key))) => {
            let (scores, certificate) =
                quietly::evaluate_privately(&model, &source, threads, budget, key, &mut watch)?;
            (regression(&model, &scores), Some(certificate))
        }
        (true, None) => {
            let scores = quietly::evaluate_classes(&model, &source, threads, &mut watch)?;
            (classes::said(&model, &scores), None)
        }
        (true, Some((budget, key))) => {
            let (scores, certificate) = quietly::evaluate_classes_privately(
                &model, &source, threads, budget, key, &mut watch,
            )?;
            (classes::said(&model, &scores), Some(certificate))
        }
    };
    drop(progress);
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
        None => screen.say(&format!("\n{}", words::wrap(NOT_PRIVATE, "", WIDTH)))?,
        Some(certificate) => screen.say(&format!("\nA private estimate:\n{certificate}"))?,
    }
    Ok(())
}

/// Scores for people and for programs.
struct Said {
    text: String,
    json: Value,
}

fn regression(model: &Model, scores: &Scores) -> Said {
    let json = json!({
        "r2": words::json(scores.r2), "rmse": words::json(scores.rmse), "rows": words::json(scores.rows),
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
