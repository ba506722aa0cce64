//! What a network does with each column, as curves: computed from the network and the schema alone.
//!
//! All other columns are drawn uniformly from what the schema allows, a fixed number of times. Curves that are not parallel tell
//! that columns work together.
use quietly::{
    Encoding, Key, Kind, Link, Model,
    kan::{NetworkLoss, Trained},
};

use super::{
    MOST,
    panels::{Curve, Panel, Panels, Places},
};
use crate::failure::Failure;

/// Points of a number's range.
const POINTS: usize = 41;
/// The most values of a category.
const VALUES: usize = 64;
/// How many settings of the other columns there are, if that does not take long, and how many of them are drawn.
const SETTINGS: usize = 40;
const DRAWN: usize = 10;
/// Numbers that a network may be shown.
const AFFORDABLE: usize = 200_000_000;

/// All columns of a network, those first that matter most.
pub(super) struct Curves<'a> {
    model: &'a Model,
    network: &'a Trained,
    /// What is on the vertical axis, in words.
    pub(super) what: String,
    columns: Vec<Column>,
}

/// One column of the table.
struct Column {
    name: String,
    /// Its features, from one to the next, and the values that they take together at every place.
    features: (usize, usize),
    values: Vec<Vec<f64>>,
    places: Places,
    /// [setting][place][output].
    answers: Vec<Vec<Vec<f64>>>,
    /// The mean over settings of how far an answer goes.
    effect: f64,
}

impl<'a> Curves<'a> {
    pub(super) fn of(model: &'a Model, network: &'a Trained) -> Result<Curves<'a>, Failure> {
        let mut columns = columns(&model.encoding);
        let mut bits = Key::from_seed(1).stream("settings of the other columns").bits(0)?;
        let places: usize = columns.iter().map(|column| column.values.len()).sum();
        let once = (places * model.encoding.width()).max(1);
        let mut settings = vec![];
        for _ in 0..(AFFORDABLE / once).clamp(4, SETTINGS) {
            let mut row = vec![];
            for column in &columns {
                let place = bits.below(column.values.len() as u64)? as usize;
                row.extend_from_slice(&column.values[place]);
            }
            settings.push(row);
        }
        let answer = answers(model, network);
        for column in &mut columns {
            let (from, to) = column.features;
            let outputs = network.shape().loss.outputs();
            for setting in &settings {
                let mut rows = vec![];
                for value in &column.values {
                    rows.extend_from_slice(&setting[..from]);
                    rows.extend_from_slice(value);
                    rows.extend_from_slice(&setting[to..]);
                }
                let scores = network.scores_of_rows(&rows, 1);
                column.answers.push(scores.chunks_exact(outputs).map(&answer).collect());
            }
            column.effect = (0..outputs).map(|k| column.reach(k)).fold(0.0, f64::max);
        }
        columns.sort_by(|a, b| b.effect.total_cmp(&a.effect));
        Ok(Curves { model, network, what: what(model), columns })
    }

    /// Columns and how far they move an answer.
    pub(super) fn effects(&self) -> impl Iterator<Item = (&str, f64)> {
        self.columns.iter().map(|column| (column.name.as_str(), column.effect))
    }

    /// What columns do to answers.
    pub(super) fn panels(&self) -> Panels {
        let classes = self.model.encoding.target().map(|t| t.class_names()).unwrap_or_default();
        let several = self.network.shape().loss.outputs() > 1;
        let panel = |column: &Column| Panel {
            title: column.name.clone(),
            places: column.places.clone(),
            curves: if several { column.means() } else { column.each_and_mean() },
        };
        Panels {
            title: format!("What each column does to the {}", self.what),
            note: if several {
                "Means over settings of the other columns, drawn uniformly from the schema.".into()
            } else {
                "Bold: the mean over settings of the other columns, drawn uniformly from the schema; thin: some of them. \
                 Where thin lines are not parallel, columns work together."
                    .into()
            },
            names: if several { classes } else { vec![] },
            panels: self.columns.iter().take(MOST).map(panel).collect(),
        }
    }

    /// What columns add to the units of the first layer that training moved most.
    pub(super) fn of_units(&self, count: usize) -> Result<Panels, Failure> {
        let seed = self.model.plan.network.as_ref().map_or(1, |training| training.seed);
        let mut units = self.network.moved_most(seed)?;
        units.truncate(count);
        let curve = |column: &Column, colour: usize, unit: usize| {
            let (from, _) = column.features;
            let at = |value: &Vec<f64>| {
                let each = value.iter().enumerate();
                each.map(|(k, x)| self.network.function(from + k, unit, *x)).sum::<f64>()
            };
            Curve { values: column.values.iter().map(at).collect(), colour, bold: true }
        };
        let panel = |column: &Column| Panel {
            title: column.name.clone(),
            places: column.places.clone(),
            curves: units.iter().enumerate().map(|(c, unit)| curve(column, c, *unit)).collect(),
        };
        Ok(Panels {
            title: "What each column adds to units of the first layer".into(),
            note: "The units that training moved farthest from where they started.".into(),
            names: units.iter().map(|unit| format!("unit {}", unit + 1)).collect(),
            panels: self.columns.iter().take(MOST).map(panel).collect(),
        })
    }
}

impl Column {
    /// How far output `k` goes, in the mean over settings.
    fn reach(&self, k: usize) -> f64 {
        let span = |curve: &Vec<Vec<f64>>| {
            let of = curve.iter().map(|answer| answer[k]);
            let (low, high) =
                of.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v: f64| (l.min(v), h.max(v)));
            high - low
        };
        self.answers.iter().map(span).sum::<f64>() / self.answers.len() as f64
    }

    /// The mean of every output over settings.
    fn means(&self) -> Vec<Curve> {
        let outputs = self.answers[0][0].len();
        let mean = |k: usize, place: usize| {
            self.answers.iter().map(|curve| curve[place][k]).sum::<f64>()
                / self.answers.len() as f64
        };
        let curve = |k: usize| Curve {
            values: (0..self.values.len()).map(|place| mean(k, place)).collect(),
            colour: k,
            bold: true,
        };
        (0..outputs).map(curve).collect()
    }

    /// Some settings, and the mean over all.
    fn each_and_mean(&self) -> Vec<Curve> {
        let thin = |curve: &Vec<Vec<f64>>| Curve {
            values: curve.iter().map(|answer| answer[0]).collect(),
            colour: 0,
            bold: false,
        };
        let mut curves: Vec<Curve> = self.answers.iter().take(DRAWN).map(thin).collect();
        curves.extend(self.means());
        curves
    }
}

/// The columns of a table, with the values that their features take.
fn columns(encoding: &Encoding) -> Vec<Column> {
    let features = encoding.features();
    let mut columns = vec![];
    let mut from = 0;
    while let Some(first) = features.get(from) {
        let same = features[from..].iter().take_while(|f| f.column == first.column).count();
        let (values, places) = match first.kind {
            Kind::Number { centre, half_width } => {
                let x = |k: usize| 2.0 * k as f64 / (POINTS - 1) as f64 - 1.0;
                let ends = (centre - half_width, centre + half_width);
                ((0..POINTS).map(|k| vec![x(k)]).collect(), Places::Range(ends))
            }
            _ => {
                let mut names: Vec<String> = encoding
                    .without_feature(&first.column)
                    .map(|v| v.to_string())
                    .into_iter()
                    .collect();
                let mut values = vec![vec![0.0; same]; names.len()];
                for (k, feature) in features[from..from + same].iter().enumerate().take(VALUES) {
                    let mut one = vec![0.0; same];
                    one[k] = 1.0;
                    values.push(one);
                    names.push(match &feature.kind {
                        Kind::Category { value } => value.to_string(),
                        _ => "other".into(),
                    });
                }
                (values, Places::Names(names))
            }
        };
        columns.push(Column {
            name: first.column.clone(),
            features: (from, from + same),
            values,
            places,
            answers: vec![],
            effect: 0.0,
        });
        from += same;
    }
    columns
}

/// What the answers of a model are.
fn what(model: &Model) -> String {
    let classes = model.encoding.target().map(|t| t.class_names()).unwrap_or_default();
    match (model.link, classes.last()) {
        (Link::Logistic, Some(last)) => format!("log odds of {} = {last}", model.target),
        (Link::Softmax, _) => format!("probabilities of {}", model.target),
        _ => format!("prediction of {}", model.target),
    }
}

/// From the scores of a row to answers.
fn answers(model: &Model, network: &Trained) -> impl Fn(&[f64]) -> Vec<f64> {
    let range = model.encoding.target().map_or((-1.0, 1.0), |t| (t.lo, t.hi));
    let loss = network.shape().loss;
    move |scores| match loss {
        NetworkLoss::Softmax { .. } => {
            let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let odds: Vec<f64> = scores.iter().map(|s| (s - top).exp()).collect();
            let total: f64 = odds.iter().sum();
            odds.into_iter().map(|o| o / total).collect()
        }
        NetworkLoss::Huber { .. } => {
            vec![0.5 * (range.0 + range.1) + 0.5 * (range.1 - range.0) * scores[0]]
        }
        _ => vec![scores[0]],
    }
}
