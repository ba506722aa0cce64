//! `quietly certificate`: what a model promises.
use std::path::PathBuf;

use clap::Args;
use quietly::Model;

use crate::{failure::Failure, screen::Screen};

#[derive(Args, Debug)]
pub(crate) struct Show {
    /// The model file
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints the certificate of a model file.
pub(crate) fn run(show: &Show, screen: &mut Screen) -> Result<(), Failure> {
    let model = Model::read(&show.model)?;
    if show.json {
        let value = serde_json::to_value(&model.certificate).expect("plain fields");
        return Ok(screen.say_json(&value)?);
    }
    let title = format!(
        "{} regression of {} on {} features",
        model.link.name(),
        model.target,
        model.weights.len()
    );
    screen.say(&screen.bold(&title))?;
    Ok(screen.say(&model.certificate.to_string())?)
}
