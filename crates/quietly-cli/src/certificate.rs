//! `quietly certificate`: prints and checks the certificate of a model.
use std::path::{Path, PathBuf};

use clap::Args;
use quietly::Model;

use crate::{error::Failure, fit, terminal::Screen};

#[derive(Args, Debug)]
pub(crate) struct Show {
    /// The model file
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A model file whose certificate says what its questions cost.
pub(crate) fn read(path: &Path) -> Result<Model, Failure> {
    let model = Model::read(path)?;
    if !model.certificate.is_consistent() {
        let why = "the releases in its certificate do not cost what it says: the file was changed, or another version made it";
        let path = path.display().to_string();
        return Err(quietly::Error::Model { path, why: why.into() }.into());
    }
    Ok(model)
}

/// The certificate as programs read it: as in the file, with what it protects in words and the file's digest.
pub(crate) fn json(model: &Model) -> serde_json::Value {
    let certificate = &model.certificate;
    let mut value = serde_json::to_value(certificate).expect("plain fields");
    if certificate.budget.is_private() {
        value["protects"] = certificate.relation().into();
        value["unit_in_words"] = certificate.scope().into();
    }
    value["digest"] = model.digest().into();
    value
}

/// Prints the certificate of a model file.
pub(crate) fn run(show: &Show, screen: &mut Screen) -> Result<(), Failure> {
    let model = read(&show.model)?;
    if show.json {
        return Ok(screen.say_json(&json(&model))?);
    }
    let title = format!(
        "{} of {} on {} features",
        fit::title(model.link, model.network.is_some()),
        model.target,
        model.encoding.width()
    );
    screen.say(&screen.bold(&title))?;
    screen.say(&model.certificate.to_string())?;
    screen.say(&format!("digest   {}", model.digest_in_words()))?;
    Ok(screen
        .say(&format!("\nnext: quietly label {} --output label.html", show.model.display()))?)
}
