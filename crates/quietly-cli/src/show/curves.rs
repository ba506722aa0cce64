//! A network's curves as panels: what columns do to answers, or to units.
use quietly::{AnyAlgorithm, ColumnCurves, Curves, Model, kan::KanModel};

use super::{
    MOST,
    panels::{Curve, Panel, Panels},
};
use crate::error::Failure;

/// How many settings of the other columns are drawn.
const DRAWN: usize = 10;

/// What columns do to answers.
pub(super) fn panels(curves: &Curves) -> Panels {
    let several = !curves.outputs.is_empty();
    let panel = |column: &ColumnCurves| Panel {
        title: title(column),
        places: column.places.clone(),
        curves: if several { means(column, curves.outputs.len()) } else { each_and_mean(column) },
    };
    Panels {
        title: format!("What each column does to the {}", curves.what),
        note: if several {
            "Means over settings of the other columns, drawn uniformly from the schema.".into()
        } else {
            "Bold: the mean over settings of the other columns, drawn uniformly from the schema; thin: some of them. \
             Where thin lines are not parallel, columns work together."
                .into()
        },
        names: curves.outputs.clone(),
        panels: curves.columns.iter().take(MOST).map(panel).collect(),
        maps: Vec::new(),
    }
}

/// What columns add to the units of the first layer that training moved most.
pub(super) fn of_units(
    curves: &Curves,
    model: &Model,
    network: &KanModel,
    count: usize,
) -> Result<Panels, Failure> {
    let seed = match model.plan.algorithm() {
        AnyAlgorithm::Kan(training) => training.seed,
        _ => 1,
    };
    let mut units = network.moved_most(seed)?;
    units.truncate(count);
    let curve = |column: &ColumnCurves, colour: usize, unit: usize| Curve {
        values: column.of_unit(network, unit),
        colour,
        bold: true,
    };
    let panel = |column: &ColumnCurves| Panel {
        title: column.name.clone(),
        places: column.places.clone(),
        curves: units.iter().enumerate().map(|(c, unit)| curve(column, c, *unit)).collect(),
    };
    Ok(Panels {
        title: "What each column adds to units of the first layer".into(),
        note: "The units that training moved farthest from where they started.".into(),
        names: units.iter().map(|unit| format!("unit {}", unit + 1)).collect(),
        panels: curves.columns.iter().take(MOST).map(panel).collect(),
        maps: Vec::new(),
    })
}

/// Its name, and how many of its values are not shown.
fn title(column: &ColumnCurves) -> String {
    match column.hidden {
        0 => column.name.clone(),
        hidden => format!("{} ({hidden} more values)", column.name),
    }
}

/// The mean of every output over settings.
fn means(column: &ColumnCurves, outputs: usize) -> Vec<Curve> {
    let curve = |k: usize| Curve { values: column.mean(k), colour: k, bold: true };
    (0..outputs).map(curve).collect()
}

/// Some settings, and the mean over all.
fn each_and_mean(column: &ColumnCurves) -> Vec<Curve> {
    let thin = |values: Vec<f64>| Curve { values, colour: 0, bold: false };
    let mut curves: Vec<Curve> = column.settings(0).take(DRAWN).map(thin).collect();
    curves.extend(means(column, 1));
    curves
}
