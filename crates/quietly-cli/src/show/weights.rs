//! The weights of models that have them, as a table.
use quietly::{Affine, AnyAlgorithm, Link, Model, VarianceShares};
use serde_json::{Value, json};

use crate::{format, terminal::WIDTH};

/// How many classes fit beside each other.
const MOST_CLASSES: usize = 6;
/// How many features make an equation that can be read.
const MOST_TERMS: usize = 12;

/// The names of what is weighed.
pub(super) fn names(model: &Model) -> Vec<String> {
    let features: Vec<String> = model.encoding.features().iter().map(|f| f.name.clone()).collect();
    model.expansion.as_ref().map_or(features.clone(), |expansion| expansion.names(&features))
}

/// The names of the outputs.
fn outputs(model: &Model) -> Vec<String> {
    match model.link {
        Link::Softmax => {
            model.encoding.target().map(|target| target.class_names()).unwrap_or_default()
        }
        _ => vec!["weight".into()],
    }
}

pub(super) fn table(model: &Model) -> String {
    let (outputs, sums) = (outputs(model), model.affine());
    let shown = outputs.len().min(MOST_CLASSES);
    let natural = model.natural().filter(|_| outputs.len() == 1);
    let names = names(model);
    let widest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(9);
    let mut lines = vec![];
    let mut line = |name: &str, cells: Vec<String>| {
        let cells: String = cells.iter().map(|cell| format!("  {cell:>12}")).collect();
        lines.push(format!("  {name:<widest$}{cells}"));
    };
    let row = |part: &dyn Fn(&Affine) -> f64| -> Vec<String> {
        let natural = natural.iter().flatten();
        sums.iter().take(shown).chain(natural).map(|sum| neat(part(sum))).collect()
    };
    let heads = outputs.iter().take(shown).map(|name| name.chars().take(12).collect());
    line("feature", heads.chain(natural.as_ref().map(|_| "per unit".into())).collect());
    line("intercept", row(&|sum| sum.intercept));
    for (k, name) in names.iter().enumerate() {
        line(name, row(&|sum| sum.weights[k]));
    }
    if shown < outputs.len() {
        lines.push(format!("  and {} more classes: --json has all", outputs.len() - shown));
    }
    lines.push(match model.expansion {
        Some(_) => "weights are for functions of the features".into(),
        None => {
            "weights are for features as the schema encodes them: numbers within [-1, 1]".into()
        }
    });
    if let Some([sum]) = natural.as_deref()
        && names.len() <= MOST_TERMS
    {
        let equation = equation(sum, &names);
        lines.push(format::wrap(&format!("in units of the columns: {equation}"), "", WIDTH));
    }
    lines.extend(bends(model));
    if model.rows.is_some() {
        let clipped = "Rows farther from the centre than the radius in the model file are clipped to it first: for them the \
                       model is not this sum.";
        lines.push(format::wrap(clipped, "", WIDTH));
    }
    lines.join("\n")
}

/// What is added to the sum: a line for every column that bends, and one for all pairs.
fn bends(model: &Model) -> Vec<String> {
    let Some(bends) = &model.bends else {
        let none = "The private gate kept none of the bends that were planned: the linear model stands alone.";
        let planned = matches!(model.plan.algorithm(), AnyAlgorithm::Additive(_));
        return if planned { vec![format::wrap(none, "", WIDTH)] } else { Vec::new() };
    };
    let names = names(model);
    let VarianceShares { columns, pairs, .. } = model.shares_of_variance();
    let all = "all pairs of them";
    let widest = columns.iter().map(|(j, _)| names[*j].chars().count()).chain([all.len()]).max();
    let widest = widest.unwrap_or(0);
    let line = |name: &str, share: f64| format!("  {name:<widest$}  {:>5.1} %", 100.0 * share);
    let head = format!(
        "To the sum, held to the range of the target, bends are added (times t = {:.2}, already in what follows). Shares of the \
         variance of predictions, of columns with their weights and bends, as if columns were independent:",
        bends.kept
    );
    let mut lines = vec![format::wrap(&head, "", WIDTH)];
    lines.extend(columns.iter().map(|(j, share)| line(&names[*j], *share)));
    if !pairs.is_empty() {
        lines.push(line(all, pairs.iter().map(|pair| pair.1).sum()));
    }
    lines
}

/// The weighted sum as one line.
fn equation(sum: &Affine, names: &[String]) -> String {
    let mut text = format!("u = {}", neat(sum.intercept));
    for (w, name) in sum.weights.iter().zip(names) {
        let sign = if *w < 0.0 { '-' } else { '+' };
        text += &format!(" {sign} {} [{name}]", neat(w.abs()));
    }
    text
}

pub(super) fn json(model: &Model) -> Value {
    let (names, sums, natural) = (names(model), model.affine(), model.natural());
    let each = |(k, (name, sum)): (usize, (String, &Affine))| {
        let natural = natural.as_ref().map(|natural| &natural[k]);
        let weight = |(j, name): (usize, &String)| {
            let per_unit = natural.map(|natural| format::json(natural.weights[j]));
            json!({ "feature": name, "weight": format::json(sum.weights[j]), "per_unit": per_unit })
        };
        let weights: Vec<Value> = names.iter().enumerate().map(weight).collect();
        let in_units = natural.map(|natural| format::json(natural.intercept));
        json!({
            "output": name, "intercept": format::json(sum.intercept), "intercept_in_units": in_units, "weights": weights,
        })
    };
    let outputs: Vec<Value> = outputs(model).into_iter().zip(&sums).enumerate().map(each).collect();
    let mut json = json!({
        "model": model.link.name(), "target": model.target, "outputs": outputs,
        "clips_rows": model.rows.is_some(),
    });
    if let Some(bends) = &model.bends {
        let VarianceShares { columns, pairs, .. } = model.shares_of_variance();
        let column = |(j, share): &(usize, f64)| json!({ "feature": names[*j], "share_of_variance": format::json(*share) });
        let pair = |((i, j), share): &((usize, usize), f64)| json!({ "features": [names[*i], names[*j]], "share_of_variance": format::json(*share) });
        json["bends"] = json!({
            "kept": format::json(bends.kept),
            "functions": bends.functions,
            "columns": columns.iter().map(column).collect::<Vec<_>>(),
            "pairs": pairs.iter().map(pair).collect::<Vec<_>>(),
        });
    }
    json
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
