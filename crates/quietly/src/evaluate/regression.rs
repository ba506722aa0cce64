//! Scores of a regression: exact, or released with noise.
use std::ops::ControlFlow;

use quietly_core::{
    budget::Budget, certificate::Certificate, charge::Charge, release::Sensitivity,
};
use quietly_data::Source;
use quietly_engine::error::Error;
use serde::Serialize;

use super::{UNITS, rows};
use crate::{model::Model, one_sum::OneSum};

/// How far predictions are from the target.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Scores {
    /// Rows that have a target.
    pub rows: f64,
    /// 1 - (mean squared error) / (variance of the target).
    pub r2: f64,
    /// The root of the mean squared error.
    pub rmse: f64,
}

/// The exact scores: **not private**. For public rows, or for readers who may see the rows.
///
/// # Errors
///
/// [`Error::Data`] if the table cannot be read, [`Error::Interrupted`] if `watch` said so, [`Error::Parameter`] if the model is a
/// classifier.
pub fn evaluate(
    model: &Model,
    source: &Source,
    threads: usize,
    watch: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<Scores, Error> {
    expect_regression(model)?;
    let sums = fold(model, source, threads, watch, [0.0; 4], |sums, _, y, error| {
        sums[0] += 1.0;
        sums[1] += y;
        sums[2] += y * y;
        sums[3] += error * error;
    })?;
    let half = half_width(model);
    Ok(scores(sums, half))
}

/// The scores with noise, and what they cost.
///
/// One release: the number of rows, the sum and the sum of squares of the target, and the sum of squared errors, where
/// the target is moved to [-1, 1] by its public range and a prediction counts as the nearest number in that range. One
/// row adds a vector (1, y, y², e²/4) of norm at most 2: every entry is at most 1.
///
/// # Errors
///
/// [`Error::Accounting`] if the budget is refused, [`Error::Data`] if the table cannot be read, [`Error::Parameter`] if the model
/// is a classifier.
pub fn evaluate_privately(
    model: &Model,
    source: &Source,
    threads: usize,
    budget: Budget,
    charge: Charge,
    watch: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<(Scores, Certificate), Error> {
    expect_regression(model)?;
    let budget = budget.for_units_of_at_least(model.rows_per_unit())?;
    let plan = OneSum::plan("squared errors", budget)?;
    let key = charge.spend(budget)?;
    let sums = fold(model, source, threads, watch, [0_i128; 4], |sums, bounded, y, _| {
        let error = (bounded - y).clamp(-2.0, 2.0);
        // Each entry is cut towards zero, so that none exceeds its bound.
        for (sum, x) in sums.iter_mut().zip([1.0, y, y * y, 0.25 * error * error]) {
            *sum += (x * UNITS) as i128;
        }
    })?;
    let public = vec!["the model".into(), "the range of the target".into()];
    let sensitivity = Sensitivity::l2(2.0 * UNITS, 1.0 / UNITS);
    let unit = &model.certificate.unit;
    let (noisy, _, certificate) =
        plan.release(sums.to_vec(), sensitivity, (key, threads), public, unit)?;
    let sums = [noisy[0], noisy[1], noisy[2], 4.0 * noisy[3].max(0.0)];
    Ok((scores(sums, half_width(model)), certificate))
}

fn expect_regression(model: &Model) -> Result<(), Error> {
    let (good, got) = (!model.link.is_classifier(), model.link.name());
    Error::ensure(good, "model", "a regression for these scores", got)
}

fn half_width(model: &Model) -> f64 {
    model.encoding.target().map_or(1.0, |t| 0.5 * (t.hi - t.lo))
}

/// From the sums of (1, y, y², e²), in units of half the target's range.
fn scores([rows, y, squares, errors]: [f64; 4], half: f64) -> Scores {
    let n = rows.max(1.0);
    let mean = y / n;
    let variance = (squares / n - mean * mean).max(0.0);
    let error = errors / n;
    let r2 = if variance > 0.0 { 1.0 - error / variance } else { f64::NAN };
    Scores { rows, r2, rmse: error.sqrt() * half }
}

/// Adds up over all rows that have a target: `add(sums, prediction in range, target, error)`, moved to [-1, 1].
fn fold<S>(
    model: &Model,
    source: &Source,
    threads: usize,
    watch: &mut dyn FnMut(u64) -> ControlFlow<()>,
    mut sums: S,
    add: impl Fn(&mut S, f64, f64, f64),
) -> Result<S, Error> {
    let half = half_width(model);
    let middle = model.encoding.target().map_or(0.0, |t| 0.5 * (t.hi + t.lo));
    let each = &mut |row: &[f64], y: f64| {
        let u = (model.predict(row) - middle) / half;
        let y = (y - middle) / half;
        add(&mut sums, u.clamp(-1.0, 1.0), y.clamp(-1.0, 1.0), u - y);
    };
    rows(&model.encoding, source, threads, watch, each)?;
    Ok(sums)
}
