//! `quietly certificate`: what a model promises.
use std::path::PathBuf;

use clap::Args;
use quietly::Model;

use crate::{failure::Failure, fit, screen::Screen};

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
    if !model.certificate.adds_up() {
        let why = "the questions that its certificate lists do not cost what it says: it was changed, or another version made it";
        let path = show.model.display().to_string();
        return Err(quietly::Error::Model { path, why: why.into() }.into());
    }
    if show.json {
        let value = serde_json::to_value(&model.certificate).expect("plain fields");
        return Ok(screen.say_json(&value)?);
    }
    let title = format!(
        "{} of {} on {} features",
        fit::title(model.link, model.network.is_some()),
        model.target,
        model.encoding.width()
    );
    screen.say(&screen.bold(&title))?;
    Ok(screen.say(&model.certificate.to_string())?)
}
