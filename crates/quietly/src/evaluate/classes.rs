//! Accuracy, log loss, AUC and calibration of a classifier.
use std::ops::ControlFlow;

use quietly_data::Source;
use quietly_engine::error::Error;
use serde::Serialize;

use super::{expect_classifier, rows};
use crate::model::{Classified, Model};

/// How good a classifier is.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ClassScores {
    /// Rows that have a label.
    pub rows: f64,
    /// Rows that were left out, most often because their label is not declared; not known of private scores.
    pub left_out: Option<u64>,
    /// The share of rows whose class is predicted. None without rows.
    pub accuracy: Option<f64>,
    /// The mean of -ln p, p being the probability that was given to the class of the row, never below 1e-15. None for a
    /// support vector machine.
    pub log_loss: Option<f64>,
    /// How likely a row of the last class scores above one of the first, ties counting half. None unless there are two
    /// classes, each with rows.
    pub auc: Option<f64>,
    /// Ten bins of the probability of the last of two classes, those that have rows. None for a support vector machine.
    pub calibration: Vec<Bin>,
    /// The mean over all rows of |probability - fraction| of their bin.
    pub calibration_error: Option<f64>,
    /// For private scores the standard deviation of the noise in every count.
    pub noise: Option<f64>,
}

/// Rows to whose last class a similar probability was given.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Bin {
    /// The least probability.
    pub from: f64,
    /// The greatest.
    pub to: f64,
    /// How many rows there are.
    pub rows: f64,
    /// Their mean probability.
    pub probability: f64,
    /// Which share of them is in the last class.
    pub fraction: f64,
}

/// The exact scores of a classifier: **not private**. For public rows, or for readers who may see the rows.
///
/// AUC is exact, which takes 16 bytes for every row.
///
/// # Errors
///
/// [`Error::Data`] if the table cannot be read, [`Error::Interrupted`] if `watch` said so, [`Error::Parameter`] if the model is no
/// classifier.
pub fn evaluate_classes(
    model: &Model,
    source: &Source,
    threads: usize,
    watch: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<ClassScores, Error> {
    expect_classifier(model)?;
    let mut tally = Tally::new(model.encoding.expect_classes()?.class_count());
    let encoding = model.encoding.keeping_null_rows();
    rows(&encoding, source, threads, watch, &mut |row, y| match y.is_nan() {
        true => tally.left_out += 1,
        false => tally.add(&model.classify(row), y as usize),
    })?;
    Ok(tally.scores())
}

/// What is known of the rows so far.
pub(super) struct Tally {
    classes: usize,
    left_out: u64,
    rows: u64,
    right: u64,
    loss: Option<f64>,
    /// The score of every row, and whether it is of the last class.
    scores: Vec<(f64, bool)>,
    /// Rows, the sum of their probabilities and how many are of the last class.
    bins: [(u64, f64, u64); BINS],
}

pub(super) const BINS: usize = 10;

impl Tally {
    pub(super) fn new(classes: usize) -> Self {
        let (scores, bins) = (Vec::new(), [(0, 0.0, 0); BINS]);
        Tally { classes, left_out: 0, rows: 0, right: 0, loss: None, scores, bins }
    }

    pub(super) fn add(&mut self, said: &Classified, class: usize) {
        self.rows += 1;
        self.right += u64::from(said.class == class);
        if let Some(p) = said.probabilities.get(class) {
            *self.loss.get_or_insert(0.0) -= p.clamp(LEAST, 1.0 - LEAST).ln();
        }
        if self.classes != 2 {
            return;
        }
        self.scores.push((said.score, class == 1));
        if let Some(p) = said.probabilities.get(1) {
            let bin = &mut self.bins[((p * BINS as f64) as usize).min(BINS - 1)];
            *bin = (bin.0 + 1, bin.1 + p, bin.2 + u64::from(class == 1));
        }
    }

    pub(super) fn scores(self) -> ClassScores {
        let n = self.rows as f64;
        let bin = |(i, (rows, sum, last)): (usize, &(u64, f64, u64))| {
            let (rows, at) = (*rows as f64, |i: usize| i as f64 / BINS as f64);
            let (probability, fraction) = (sum / rows, *last as f64 / rows);
            Bin { from: at(i), to: at(i + 1), rows, probability, fraction }
        };
        let full = self.bins.iter().enumerate().filter(|(_, bin)| bin.0 > 0);
        let calibration: Vec<Bin> = full.map(bin).collect();
        ClassScores {
            rows: n,
            left_out: Some(self.left_out),
            accuracy: (n > 0.0).then(|| self.right as f64 / n),
            log_loss: self.loss.map(|loss| loss / n),
            auc: auc(self.scores),
            calibration_error: calibration_error(&calibration),
            calibration,
            noise: None,
        }
    }
}

/// A probability of 0 that turns out wrong costs -ln of this, not infinity.
const LEAST: f64 = 1e-15;

/// The mean over all rows of |probability - fraction|.
pub(super) fn calibration_error(bins: &[Bin]) -> Option<f64> {
    let rows: f64 = bins.iter().map(|b| b.rows).sum();
    let off: f64 = bins.iter().map(|b| b.rows * (b.probability - b.fraction).abs()).sum();
    (rows > 0.0).then(|| off / rows)
}

/// The chance that one of the last class scores above one of the first, from one sort: equal scores share their ranks.
fn auc(mut scores: Vec<(f64, bool)>) -> Option<f64> {
    scores.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    // Twice the number of pairs in order, ties counting half: an integer.
    let (mut first, mut last, mut twice) = (0_u128, 0_u128, 0_u128);
    // Zero has two signs and one place.
    for ties in scores.chunk_by(|a, b| a.0 == b.0) {
        let lasts = ties.iter().filter(|(_, last)| *last).count() as u128;
        let firsts = ties.len() as u128 - lasts;
        twice += lasts * (2 * first + firsts);
        (first, last) = (first + firsts, last + lasts);
    }
    (first > 0 && last > 0).then(|| twice as f64 / (2 * first * last) as f64)
}
