//! `quietly init`: a schema to fill in, from a header.
use std::path::PathBuf;

use clap::Args;
use quietly::Schema;
use serde_json::json;

use crate::{
    error::Failure,
    format, output,
    parse::Count,
    tables::{Files, beside, with_features},
    terminal::{Screen, WIDTH},
};

#[derive(Args, Debug)]
pub(crate) struct Init {
    #[command(flatten)]
    table: Files,
    /// Number of features of libsvm text, which has no header
    #[arg(long, value_name = "D")]
    features: Option<Count>,
    /// The schema file to write; FILE.schema.toml by default
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite the schema file
    #[arg(long)]
    force: bool,
}

/// Writes a schema with every column named and nothing filled in.
pub(crate) fn run(init: &Init, screen: &mut Screen) -> Result<(), Failure> {
    let features =
        init.features.map(|f| f.at_least_one("features")).transpose()?.map(|f| f as usize);
    let source = init.table.reading.open(&init.table.files, with_features(features))?;
    let path = init.output.clone().unwrap_or_else(|| beside(&init.table.files[0]));
    if path.exists() && !init.force {
        return Err(Failure::Exists(path.display().to_string()));
    }
    let mut text = Schema::template(source.columns());
    if let Some(features) = features {
        text = text.replacen("[columns]", &format!("features = {features}\n\n[columns]"), 1);
    }
    output::write(&path, text.as_bytes())?;
    let columns = source.columns().len();
    if init.table.reading.json {
        return Ok(screen.say_json(&json!({
            "schema": path.display().to_string(), "columns": columns,
        }))?);
    }
    let path = path.display();
    let count = format!("{columns} column{}", if columns == 1 { "" } else { "s" });
    if features.is_some() {
        screen.say(&format!("{path}: {count}, the label and the features."))?;
    } else {
        screen.say(&format!("{path}: {count}."))?;
        let names = format!(
            "The column names are the first line of {}; no other line was read. Check {path}: if these are data rather than \
             names, delete it.",
            init.table.files[0].display()
        );
        screen.say(&format::wrap(&names, "", WIDTH))?;
    }
    screen
        .say("Fill in the lines marked \"?\": a range for a number, the values of a category.")?;
    let file = init.table.files[0].display();
    screen.say(&format!(
        "\nnext: edit the schema, or\n      \
         quietly bounds {file} COLUMN --epsilon 0.1            (estimates a range, and spends epsilon 0.1)\n      \
         quietly bounds --public other.csv COLUMN             (from a public file; spends nothing)"
    ))?;
    Ok(())
}
