//! `quietly label`: what a model promises, as one page for people who did not make it.
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::{certificate, error::Failure, output, terminal::Screen};

#[derive(Args, Debug)]
pub(crate) struct Label {
    /// The model file
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// The HTML file to write
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    /// Overwrite any file; without it only an older label is replaced
    #[arg(long)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Writes the label of a model file.
pub(crate) fn run(label: &Label, screen: &mut Screen) -> Result<(), Failure> {
    let model = std::slice::from_ref(&label.model);
    let own = |start: &[u8]| {
        let text = String::from_utf8_lossy(start);
        text.starts_with("<!DOCTYPE html>") && text.contains("<title>Privacy label: ")
    };
    output::probe_own(&label.output, model, label.force, own)?;
    let model = certificate::read(&label.model)?;
    output::write(&label.output, model.label().as_bytes())?;
    let path = label.output.display().to_string();
    if label.json {
        let certificate = certificate::json(&model);
        return Ok(screen.say_json(&json!({ "output": path, "certificate": certificate }))?);
    }
    Ok(screen.say(&format!("{path}: one self-contained HTML page"))?)
}
