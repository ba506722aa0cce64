//! `quietly predict`: one prediction for every row, in the file's order.
use std::{io::Write as _, ops::ControlFlow, path::PathBuf, time::Instant};

use clap::Args;
use quietly::Model;
use serde_json::json;

use crate::{
    failure::Failure,
    output::{self, Output},
    screen::{Progress, Screen},
    tables::{Files, highest_index},
};

#[derive(Args, Debug)]
pub(crate) struct Predict {
    /// The model file
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    #[command(flatten)]
    table: Files,
    /// Where the predictions go: CSV with the one column `prediction`
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
}

/// Reads rows, writes predictions; both stream.
pub(crate) fn run(predict: &Predict, screen: &mut Screen) -> Result<(), Failure> {
    let model = Model::read(&predict.model)?;
    let reading = &predict.table.reading;
    let source = reading.open(&predict.table.files, highest_index(&model.encoding))?;
    let started = Instant::now();
    let threads = reading.threads()?;
    let inputs = [std::slice::from_ref(&predict.model), &predict.table.files].concat();
    output::probe(&predict.output, &inputs)?;
    let mut output = Output::create(&predict.output)?;
    let failed = |e: &std::io::Error| Failure::file(&predict.output, e);
    output.write_all(b"prediction\n").map_err(|e| failed(&e))?;
    let progress = Progress::new("predicting");
    let mut rows = 0_u64;
    let mut trouble = None;
    let done = quietly::predict(&model, &source, threads, &mut |predictions| {
        let mut lines = String::with_capacity(20 * predictions.len());
        for p in predictions {
            lines.push_str(&format!("{p}\n"));
        }
        if let Err(error) = output.write_all(lines.as_bytes()) {
            trouble = Some(error);
            return ControlFlow::Break(());
        }
        rows += predictions.len() as u64;
        ControlFlow::Continue(())
    });
    if let Some(error) = trouble {
        return Err(failed(&error));
    }
    done?;
    output.finish()?;
    drop(progress);
    let path = predict.output.display().to_string();
    if reading.json {
        let seconds = started.elapsed().as_secs_f64();
        return Ok(screen.say_json(&json!({ "output": path, "rows": rows, "seconds": seconds }))?);
    }
    screen.say(&format!("{path}: {rows} predictions of {}", model.target))?;
    let file = predict.table.files[0].display();
    Ok(screen.say(&format!(
        "\nnext: quietly evaluate {} {file}      (if {file} has the column {})",
        predict.model.display(),
        model.target
    ))?)
}
