//! The curves and maps of an additive regression as panels.
use quietly::{Model, Places, VarianceShares};

use super::{
    MOST,
    panels::{Curve, Map, Panel, Panels},
    weights::names,
};

/// A curve has so many places.
const POINTS: usize = 129;
/// A map has so many to a side.
const SIDE: usize = 24;
/// The most maps, of the pairs that explain most.
const MOST_MAPS: usize = 8;
/// Pairs that explain less are left out.
const LEAST_SHARE: f64 = 0.005;

/// One curve for each column that bends and one map for each strong pair, those that explain most first.
pub(super) fn panels(model: &Model) -> Panels {
    let names = names(model);
    let VarianceShares { mut columns, mut pairs, .. } = model.shares_of_variance();
    columns.sort_by(|a, b| b.1.total_cmp(&a.1));
    pairs.sort_by(|a, b| b.1.total_cmp(&a.1));
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let panel = |(feature, share): &(usize, f64)| {
        let curve = model.curve(*feature, POINTS).expect("it bends");
        let ends = (curve.at[0], curve.at[curve.at.len() - 1]);
        Panel {
            title: format!("{} ({})", names[*feature], percent(*share)),
            places: Places::Range(ends),
            curves: vec![
                Curve { values: curve.linear, colour: 1, bold: false },
                Curve { values: curve.adds, colour: 0, bold: true },
            ],
        }
    };
    let strong = pairs.iter().filter(|(_, share)| *share >= LEAST_SHARE).take(MOST_MAPS);
    let map = |(pair, share): &((usize, usize), f64)| {
        let map = model.pair_map(*pair, SIDE).expect("it bends");
        let ends = |at: &[f64]| (at[0], at[at.len() - 1]);
        Map {
            title: format!("{} and {} ({})", names[pair.0], names[pair.1], percent(*share)),
            ranges: [ends(&map.first), ends(&map.second)],
            values: map.adds,
        }
    };
    Panels {
        title: format!("What each column adds to {}", model.target),
        note: "Bold: all that a column adds; thin: its linear part; in brackets the share of the variance of predictions. Maps: what \
               two columns add together, the first to the right, blue below zero and orange above."
            .into(),
        names: Vec::new(),
        panels: columns.iter().take(MOST).map(panel).collect(),
        maps: strong.map(map).collect(),
    }
}
