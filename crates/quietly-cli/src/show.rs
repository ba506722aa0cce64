//! `quietly show`: what a model has learnt, to look at. Models are public; no table is read.
use std::path::PathBuf;

use clap::Args;
use quietly::{ColumnCurves, Curves, Model, kan::KanModel};
use serde_json::{Value, json};

use crate::{
    error::Failure, fit, format, output, parse::Count, show::panels::Panels, terminal::Screen,
};

mod bends;
mod curves;
mod panels;
mod weights;

/// How many columns of a table are drawn or told, at most.
const MOST: usize = 24;
/// How many units can be told apart.
const MOST_UNITS: u64 = 10;

#[derive(Args, Debug)]
pub(crate) struct Look {
    /// The model file
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Draw what columns do, of a network or an additive regression, into this SVG file
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Draw the splines of this many units, those that training moved most, instead of the effect of columns on predictions
    #[arg(long, value_name = "K")]
    units: Option<Count>,
    /// Overwrite any file; without it only an older picture is replaced
    #[arg(long, requires = "output")]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Tells what a model file has learnt.
pub(crate) fn run(look: &Look, screen: &mut Screen) -> Result<(), Failure> {
    let model = Model::read(&look.model)?;
    if let Some(network) = &model.network {
        return curved(look, &model, network, screen);
    }
    let drawable = model.bends.is_some() && look.units.is_none();
    if !drawable && (look.output.is_some() || look.units.is_some()) {
        let text = match model.bends {
            Some(_) => {
                "--units draws networks, and this additive regression has no units; leave it out"
                    .into()
            }
            None => format!(
                "--output draws networks and additive regressions, --units networks, and this {} model has weights only; \
                 leave them out",
                model.link.name()
            ),
        };
        return Err(Failure::Misplaced(text));
    }
    if let Some(path) = &look.output {
        let inputs = std::slice::from_ref(&look.model);
        output::probe_own(path, inputs, look.force, output::is_svg)?;
        output::write(path, bends::panels(&model).svg().as_bytes())?;
    }
    if look.json {
        return Ok(screen.say_json(&weights::json(&model))?);
    }
    let count = model.encoding.width();
    let kind = match model.bends {
        Some(_) => "additive regression".into(),
        None => fit::title(model.link, false),
    };
    let title = format!("{kind} of {} on {count} features", model.target);
    screen.say(&screen.bold(&title))?;
    screen.say(&weights::table(&model))?;
    let next = match &look.output {
        Some(path) => {
            let path = path.display();
            screen.say(&format!("\n{path}: what each column adds, and what pairs add together"))?;
            "certificate"
        }
        None if model.bends.is_some() => "show --output curves.svg",
        None => "certificate",
    };
    Ok(screen.say(&format!("\nnext: quietly {next} {}", look.model.display()))?)
}

fn curved(
    look: &Look,
    model: &Model,
    network: &KanModel,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let units = look.units.map(|units| units.at_least_one("units")).transpose()?;
    if units.is_some() && look.output.is_none() {
        return Err(quietly::Error::Parameter {
            name: "units",
            want: "given with --output, which names the picture",
            got: "alone".into(),
        }
        .into());
    }
    if let Some(path) = &look.output {
        let inputs = std::slice::from_ref(&look.model);
        output::probe_own(path, inputs, look.force, output::is_svg)?;
    }
    let curves = Curves::of(model)?.expect("a network has curves");
    let shape = network.shape();
    if let Some(path) = &look.output {
        let picture: Panels = match units {
            Some(units) => {
                curves::of_units(&curves, model, network, units.min(MOST_UNITS) as usize)?
            }
            None => curves::panels(&curves),
        };
        output::write(path, picture.svg().as_bytes())?;
    }
    let output = look.output.as_ref().map(|path| path.display().to_string());
    if look.json {
        let each = |column: &ColumnCurves| -> Value {
            json!({ "column": column.name, "effect": format::json(column.effect) })
        };
        let effects: Vec<Value> = curves.columns.iter().map(each).collect();
        return Ok(screen.say_json(&json!({
            "model": "kan", "target": model.target, "hidden": shape.hidden, "basis": shape.basis, "degree": shape.degree,
            "weights": shape.weights(), "of": curves.what, "columns": effects, "output": output,
        }))?);
    }
    let hidden: Vec<String> = shape.hidden.iter().map(ToString::to_string).collect();
    let title = format!(
        "{} of {} on {} columns: {} hidden units, {} splines of degree {} for every number",
        fit::title(model.link, true),
        model.target,
        curves.columns.len(),
        hidden.join(" and "),
        shape.basis,
        shape.degree
    );
    screen.say(&screen.bold(&title))?;
    screen.say(&format!("how far each column moves the {}, over its range:", curves.what))?;
    let widest =
        curves.columns.iter().take(MOST).map(|c| c.name.chars().count()).max().unwrap_or(0);
    for ColumnCurves { name: column, effect, .. } in curves.columns.iter().take(MOST) {
        screen.say(&format!("  {column:<widest$}  {effect:.3}"))?;
    }
    let more = curves.columns.len().saturating_sub(MOST);
    if more > 0 {
        screen.say(&format!("  and {more} columns that move it less: --json lists all"))?;
    }
    let model = look.model.display();
    let Some(path) = output else {
        return Ok(screen.say(&format!("\nnext: quietly show {model} --output functions.svg"))?);
    };
    let count = curves.columns.len().min(MOST);
    screen.say(&match units {
        Some(units) => {
            let units = units.min(MOST_UNITS);
            format!(
                "{path}: {count} panels, what each column adds to the {units} units that moved most"
            )
        }
        None => {
            format!("{path}: {count} panels, what each column does to the {}", curves.what)
        }
    })?;
    Ok(screen.say(&format!("\nnext: quietly certificate {model}"))?)
}
