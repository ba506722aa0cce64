//! The weights of models that have them, as a table.
use quietly::{Expansion, Kind, Link, Model};
use serde_json::{Value, json};

use crate::words;

/// How many classes fit beside each other.
const MOST_CLASSES: usize = 6;

/// What one feature weighs in one output: of the number that the model sees, and of one unit of the column, if it is made of one
/// column in a straight line.
struct Weight {
    encoded: f64,
    per_unit: Option<f64>,
}

/// The names of what is weighed.
fn names(model: &Model) -> Vec<String> {
    let features: Vec<String> = model.encoding.features().iter().map(|f| f.name.clone()).collect();
    model.expansion.as_ref().map_or(features.clone(), |expansion| expansion.names(&features))
}

/// The outputs and their intercepts.
fn outputs(model: &Model) -> Vec<(String, f64)> {
    match model.link {
        Link::Softmax => {
            let classes =
                model.encoding.target().map(|target| target.class_names()).unwrap_or_default();
            classes.into_iter().zip(model.intercepts.iter().copied()).collect()
        }
        _ => vec![("weight".into(), model.intercept)],
    }
}

fn weight(model: &Model, output: usize, feature: usize) -> Weight {
    let each = model.expansion.as_ref().map_or(model.encoding.width(), Expansion::width);
    let encoded = model.weights[output * each + feature];
    if model.expansion.is_some() {
        return Weight { encoded, per_unit: None };
    }
    let scale = model.rows.as_ref().map_or(1.0, |map| map.scale[feature]);
    let width = match model.encoding.features()[feature].kind {
        Kind::Number { half_width, .. } => half_width,
        _ => 1.0,
    };
    Weight { encoded, per_unit: Some(encoded * scale / width) }
}

pub(super) fn table(model: &Model) -> String {
    let outputs = outputs(model);
    let shown = outputs.len().min(MOST_CLASSES);
    let names = names(model);
    let widest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(9);
    let one = outputs.len() == 1 && model.expansion.is_none();
    let mut lines = vec![];
    let mut line = |name: &str, cells: Vec<String>| {
        let cells: String = cells.iter().map(|cell| format!("  {cell:>12}")).collect();
        lines.push(format!("  {name:<widest$}{cells}"));
    };
    let heads = outputs.iter().take(shown).map(|(name, _)| name.chars().take(12).collect());
    let per_unit = one.then(|| "per unit".to_string());
    line("feature", heads.chain(per_unit).collect());
    line("intercept", outputs.iter().take(shown).map(|(_, c)| neat(*c)).collect());
    for (k, name) in names.iter().enumerate() {
        let mut cells: Vec<String> =
            (0..shown).map(|output| neat(weight(model, output, k).encoded)).collect();
        cells.extend(weight(model, 0, k).per_unit.filter(|_| one).map(neat));
        line(name, cells);
    }
    if shown < outputs.len() {
        lines.push(format!("  and {} more classes: --json has all", outputs.len() - shown));
    }
    lines.push(match &model.rows {
        _ if model.expansion.is_some() => "weights are for functions of the features".into(),
        None => "weights are for features as the model sees them: numbers within [-1, 1]".into(),
        Some(_) => {
            "weights are for features that are centred, scaled and cut; per unit for rows that are not cut"
                .to_string()
        }
    });
    lines.join("\n")
}

pub(super) fn json(model: &Model) -> Value {
    let names = names(model);
    let feature = |output: usize, k: usize| {
        let Weight { encoded, per_unit } = weight(model, output, k);
        json!({
            "feature": names[k],
            "weight": words::json(encoded), "per_unit": per_unit.map(words::json),
        })
    };
    let each = |(output, (name, intercept)): (usize, (String, f64))| {
        let weights: Vec<Value> = (0..names.len()).map(|k| feature(output, k)).collect();
        json!({ "output": name, "intercept": words::json(intercept), "weights": weights })
    };
    let outputs: Vec<Value> = outputs(model).into_iter().enumerate().map(each).collect();
    json!({ "model": model.link.name(), "target": model.target, "outputs": outputs })
}

/// Four digits that count.
fn neat(x: f64) -> String {
    match x.abs() {
        0.0 => "0".into(),
        size if !(1e-3..1e6).contains(&size) => format!("{x:.3e}"),
        size => {
            let places = (3 - size.log10().floor() as i32).max(0) as usize;
            format!("{x:.places$}")
        }
    }
}
