//! `quietly predict`: one prediction for every row, in the file's order.
use std::{io::Write as _, ops::ControlFlow, path::PathBuf, time::Instant};

use clap::Args;
use quietly::{Classified, Link, Model, ReadOptions};
use serde_json::json;

use crate::{
    error::Failure,
    output::{self, Output},
    tables::Files,
    terminal::{Progress, Screen},
};

#[derive(Args, Debug)]
pub(crate) struct Predict {
    /// The model file
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    #[command(flatten)]
    table: Files,
    /// The CSV file to write, with the column `prediction`, and `probability` of a classifier that has them
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    /// Do not hold predictions of a number to the public range of the target
    #[arg(long)]
    unclamped: bool,
    /// Prefix labels and names that a spreadsheet would read as formulas with '
    #[arg(long)]
    for_spreadsheets: bool,
    /// Overwrite any file; without it only older predictions are replaced
    #[arg(long)]
    force: bool,
}

/// Reads rows, writes predictions; both stream.
pub(crate) fn run(predict: &Predict, screen: &mut Screen) -> Result<(), Failure> {
    let model = Model::read(&predict.model)?;
    let model = if predict.unclamped { model.unclamped() } else { model };
    let reading = &predict.table.reading;
    let source = reading.open(&predict.table.files, ReadOptions::of_encoding(&model.encoding))?;
    let started = Instant::now();
    let threads = reading.threads()?;
    let inputs = [std::slice::from_ref(&predict.model), &predict.table.files].concat();
    let own = |start: &[u8]| {
        let line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
        line == b"prediction" || line.starts_with(b"prediction,probability")
    };
    output::probe_own(&predict.output, &inputs, predict.force, own)?;
    let mut output = Output::create(&predict.output)?;
    let failed = |e: &std::io::Error| Failure::file(&predict.output, e);
    let labels = Labels::new(&model, predict.for_spreadsheets);
    output.write_all(labels.header.as_bytes()).map_err(|e| failed(&e))?;
    let progress = Progress::new("predicting");
    let mut rows = 0_u64;
    let mut trouble = None;
    let mut write = |lines: String, count: usize| {
        if let Err(error) = output.write_all(lines.as_bytes()) {
            trouble = Some(error);
            return ControlFlow::Break(());
        }
        rows += count as u64;
        ControlFlow::Continue(())
    };
    let done = if model.link.is_classifier() {
        quietly::classify(&model, &source, threads, &mut |said| {
            write(said.iter().map(|row| labels.line(row)).collect(), said.len())
        })
    } else {
        quietly::predict(&model, &source, threads, &mut |said| {
            write(said.iter().map(|p| format!("{p}\n")).collect(), said.len())
        })
    };
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

/// What a spreadsheet takes for the beginning of a formula.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// How classes are written.
struct Labels {
    /// As cells of CSV.
    names: Vec<String>,
    header: String,
}

impl Labels {
    fn new(model: &Model, for_spreadsheets: bool) -> Labels {
        let cell = |text: &str| match for_spreadsheets && text.starts_with(FORMULA) {
            true => cell(&format!("'{text}")),
            false => cell(text),
        };
        let names = model.encoding.target().map(|target| target.class_names()).unwrap_or_default();
        let probabilities = model.link.is_classifier() && model.link != Link::Svm;
        let header = match (probabilities, names.len()) {
            (false, _) => "prediction\n".into(),
            (true, 2) => "prediction,probability\n".into(),
            (true, _) => {
                let each = names.iter().map(|name| cell(&format!("probability {name}")));
                format!("prediction,probability,{}\n", each.collect::<Vec<_>>().join(","))
            }
        };
        Labels { names: names.iter().map(|name| cell(name)).collect(), header }
    }

    /// The class; of two classes the probability of the last; of more that of the predicted one, and then of each.
    fn line(&self, said: &Classified) -> String {
        let name = &self.names[said.class];
        match said.probabilities[..] {
            [] => format!("{name}\n"),
            [_, last] => format!("{name},{last}\n"),
            ref all => {
                let each: String = all.iter().map(|p| format!(",{p}")).collect();
                format!("{name},{}{each}\n", all[said.class])
            }
        }
    }
}

/// A cell of CSV, in quotes where it needs them.
fn cell(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) || text.is_empty() {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.into()
    }
}
