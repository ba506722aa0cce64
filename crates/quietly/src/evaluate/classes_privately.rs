//! Scores of a classifier, released with noise.
use std::ops::ControlFlow;

use quietly_core::{
    budget::Budget, certificate::Certificate, charge::Charge, release::Sensitivity,
};
use quietly_data::Source;
use quietly_engine::{error::Error, link::Link};

use super::{
    UNITS,
    classes::{BINS, Bin, ClassScores, calibration_error},
    expect_classifier, rows,
};
use crate::{
    model::{Classified, Model},
    one_sum::OneSum,
};

const PURPOSE: &str = "right answers, losses and a histogram of scores";

/// No row costs more than this: -ln 1/1000.
const MOST_LOSS: f64 = 6.907755278982137;

/// Ends of the bins of 1/(1 + e^-score): tenths, and finer where a rare class lives.
const ENDS: [f64; 17] = [
    0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97, 0.99, 0.997, 0.999,
];
const CELLS: usize = ENDS.len() + 1;

/// The scores of a classifier with noise, and what they cost.
///
/// One release: the number of rows, of right answers, the sum of -ln p cut at ln 1000 and over ln 1000, and for two classes a
/// histogram of scores in 18 bins for each class. A row adds at most 1 to each of the first three, and 1 to one bin: a vector
/// of norm at most √(3 + 1). (A replaced row moves it by at most twice that, which is how it is charged.) AUC and calibration
/// follow from the histogram, so they are approximate: rows of one bin count as ties, and their probability as its middle. A
/// bin that does not stand out of the noise is not shown.
///
/// # Errors
///
/// [`Error::Accounting`] if the budget is refused, [`Error::Data`] if the table cannot be read, [`Error::Parameter`] if the model
/// is no classifier.
pub fn evaluate_classes_privately(
    model: &Model,
    source: &Source,
    threads: usize,
    budget: Budget,
    charge: Charge,
    watch: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<(ClassScores, Certificate), Error> {
    expect_classifier(model)?;
    let classes = model.encoding.expect_classes()?.class_count();
    let budget = budget.for_units_of_at_least(model.rows_per_unit())?;
    let plan = OneSum::plan(PURPOSE, budget)?;
    let key = charge.spend(budget)?;
    let mut sums = vec![0_i128; entries(classes)];
    rows(&model.encoding, source, threads, watch, &mut |row, y| {
        add(&mut sums, &model.classify(row), y as usize, classes);
    })?;
    let public = vec!["the model".into(), "the classes of the target".into()];
    let sensitivity = Sensitivity::l2(bound(classes), 1.0 / UNITS);
    let unit = &model.certificate.unit;
    let (noisy, noise, certificate) =
        plan.release(sums, sensitivity, (key, threads), public, unit)?;
    Ok((scores(&noisy, noise, model.link != Link::Svm), certificate))
}

fn entries(classes: usize) -> usize {
    3 + if classes == 2 { 2 * CELLS } else { 0 }
}

/// The norm of what one row adds: three entries of at most 1, and one bin.
pub(super) fn bound(classes: usize) -> f64 {
    if classes == 2 { 2.0 * UNITS } else { 3.0_f64.sqrt() * UNITS }
}

/// Adds a row. Entries are cut towards zero, so that none exceeds its bound.
pub(super) fn add(sums: &mut [i128], said: &Classified, class: usize, classes: usize) {
    let one = UNITS as i128;
    sums[0] += one;
    sums[1] += one * i128::from(said.class == class);
    if let Some(p) = said.probabilities.get(class) {
        let loss = (-p.ln()).clamp(0.0, MOST_LOSS) / MOST_LOSS;
        sums[2] += (loss * UNITS) as i128;
    }
    if classes == 2 {
        let p = 1.0 / (1.0 + (-said.score).exp());
        sums[3 + class.min(1) * CELLS + ENDS.partition_point(|end| *end <= p)] += one;
    }
}

/// What follows from the noisy sums: (rows, right, loss) and the bins of the first and the last class, if there are any.
pub(super) fn scores(noisy: &[f64], noise: f64, probabilities: bool) -> ClassScores {
    let n = noisy[0].max(1.0);
    let mut scores = ClassScores {
        rows: noisy[0],
        accuracy: Some((noisy[1] / n).clamp(0.0, 1.0)),
        log_loss: probabilities.then(|| (noisy[2] / n).clamp(0.0, 1.0) * MOST_LOSS),
        noise: Some(noise),
        ..ClassScores::default()
    };
    if noisy.len() > 3 {
        let (first, last) = noisy[3..].split_at(CELLS);
        scores.auc = auc(first, last, noise);
        if probabilities {
            scores.calibration = calibration(first, last, noise);
            scores.calibration_error = calibration_error(&scores.calibration);
        }
    }
    scores
}

/// The chance that one of the last class is in a higher bin than one of the first; half of it for the same bin. None where
/// either class is lost in the noise of its count.
fn auc(first: &[f64], last: &[f64], noise: f64) -> Option<f64> {
    let (firsts, lasts): (f64, f64) = (first.iter().sum(), last.iter().sum());
    let (mut below, mut pairs) = (0.0, 0.0);
    for (f, l) in first.iter().zip(last) {
        pairs += l * (below + 0.5 * f);
        below += f;
    }
    let enough = OUT_OF_NOISE * noise * (CELLS as f64).sqrt();
    (firsts > enough && lasts > enough).then(|| (pairs / (firsts * lasts)).clamp(0.0, 1.0))
}

/// A count of so many standard deviations is more than noise.
const OUT_OF_NOISE: f64 = 4.0;

/// Tenths, from the finer bins.
fn calibration(first: &[f64], last: &[f64], noise: f64) -> Vec<Bin> {
    let mut bins = Vec::new();
    let edge = |k: usize| if k == 0 { 0.0 } else { ENDS.get(k - 1).copied().unwrap_or(1.0) };
    for i in 0..BINS {
        let (from, to) = (i as f64 / BINS as f64, (i + 1) as f64 / BINS as f64);
        let inside = |k: &usize| from - 1e-9 < edge(*k) && edge(*k + 1) < to + 1e-9;
        let cells: Vec<usize> = (0..CELLS).filter(inside).collect();
        let total = |of: &dyn Fn(usize) -> f64| cells.iter().map(|k| of(*k)).sum::<f64>();
        let rows = total(&|k| first[k] + last[k]);
        if rows < OUT_OF_NOISE * noise * (2.0 * cells.len() as f64).sqrt() {
            continue;
        }
        let middle = |k: usize| 0.5 * (edge(k) + edge(k + 1));
        let probability = (total(&|k| (first[k] + last[k]) * middle(k)) / rows).clamp(from, to);
        let fraction = (total(&|k| last[k]) / rows).clamp(0.0, 1.0);
        bins.push(Bin { from, to, rows, probability, fraction });
    }
    bins
}
