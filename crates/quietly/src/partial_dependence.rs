//! Partial dependence of a network on each column, as curves: computed from the network and the schema alone.
//!
//! All other columns are drawn uniformly from what the schema allows, a fixed number of times. Curves that are not parallel tell
//! that columns work together. Models are public, so this costs nothing.
use quietly_data::{Encoding, Kind};
use quietly_engine::{error::Error, link::Link};
use quietly_kan::{KanModel, NetworkLoss};
use quietly_noise::Key;

use crate::model::Model;

/// Points of a number's range.
const POINTS: usize = 41;
/// The most values of a category.
const VALUES: usize = 64;
/// How many settings of the other columns there are, if that does not take long.
const SETTINGS: usize = 40;
/// Numbers that a network may be shown.
const AFFORDABLE: usize = 200_000_000;

/// All columns of a network, those first that matter most.
#[derive(Clone, Debug)]
pub struct Curves {
    /// What is on the vertical axis, in words.
    pub what: String,
    /// The classes, if there is an answer for each of them; otherwise there is one answer.
    pub outputs: Vec<String>,
    /// Every column of the table.
    pub columns: Vec<ColumnCurves>,
}

/// One column of the table.
#[derive(Clone, Debug)]
pub struct ColumnCurves {
    /// Its name.
    pub name: String,
    /// How many of its values are not shown, as there are too many.
    pub hidden: usize,
    /// Where its values stand.
    pub places: Places,
    /// The mean over settings of how far an answer goes.
    pub effect: f64,
    /// Its first feature, and the values that its features take together at every place.
    first: usize,
    values: Vec<Vec<f64>>,
    /// [setting][place][output].
    answers: Vec<Vec<Vec<f64>>>,
}

/// Where values stand.
#[derive(Clone, Debug, PartialEq)]
pub enum Places {
    /// Evenly from one end to the other.
    Range((f64, f64)),
    /// One for each name.
    Names(Vec<String>),
}

impl Curves {
    /// The curves of a model, if it is a network.
    ///
    /// # Errors
    ///
    /// [`Error::Noise`] only if a fixed stream of random bits ends.
    pub fn of(model: &Model) -> Result<Option<Curves>, Error> {
        let Some(network) = &model.network else { return Ok(None) };
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
        let outputs = network.shape().loss.outputs();
        for column in &mut columns {
            let (from, to) = column.features();
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
        let classes = model.encoding.target().map(|t| t.class_names()).unwrap_or_default();
        let outputs = if outputs > 1 { classes } else { vec![] };
        Ok(Some(Curves { what: what(model), outputs, columns }))
    }
}

impl ColumnCurves {
    /// The mean over settings of the other columns: a value of answer `output` for every place.
    ///
    /// # Panics
    ///
    /// If there is no such answer.
    pub fn mean(&self, output: usize) -> Vec<f64> {
        let mean = |place: usize| {
            self.answers.iter().map(|curve| curve[place][output]).sum::<f64>()
                / self.answers.len() as f64
        };
        (0..self.values.len()).map(mean).collect()
    }

    /// The same for each setting.
    ///
    /// # Panics
    ///
    /// If there is no such answer.
    pub fn settings(&self, output: usize) -> impl Iterator<Item = Vec<f64>> {
        let curve =
            move |curve: &Vec<Vec<f64>>| curve.iter().map(|answer| answer[output]).collect();
        self.answers.iter().map(curve)
    }

    /// What the column adds to a unit of the first layer, at every place.
    pub fn of_unit(&self, network: &KanModel, unit: usize) -> Vec<f64> {
        let at = |value: &Vec<f64>| {
            let each = value.iter().enumerate();
            each.map(|(k, x)| network.function(self.first + k, unit, *x)).sum::<f64>()
        };
        self.values.iter().map(at).collect()
    }

    /// Its features, from one to the next column's first.
    fn features(&self) -> (usize, usize) {
        (self.first, self.first + self.values.first().map_or(0, Vec::len))
    }

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
}

/// The columns of a table, with the values that their features take.
fn columns(encoding: &Encoding) -> Vec<ColumnCurves> {
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
                let mut names: Vec<String> =
                    encoding.baseline(&first.column).map(|v| v.to_string()).into_iter().collect();
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
        let hidden = match places {
            Places::Range(_) => 0,
            Places::Names(_) => same.saturating_sub(VALUES),
        };
        columns.push(ColumnCurves {
            name: first.column.clone(),
            hidden,
            places,
            effect: 0.0,
            first: from,
            values,
            answers: vec![],
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
fn answers(model: &Model, network: &KanModel) -> impl Fn(&[f64]) -> Vec<f64> {
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
