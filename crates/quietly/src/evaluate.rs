//! Evaluation of a model on a table: exact, or private.
use std::ops::ControlFlow;

use quietly_data::{Encoding, Source};

pub use self::{
    classes::{Bin, ClassScores, evaluate_classes},
    classes_privately::evaluate_classes_privately,
    regression::{Scores, evaluate, evaluate_privately},
};
use quietly_engine::error::Error;

use crate::{
    model::{Classified, Model},
    one_sum::blocks,
};

mod classes;
mod classes_privately;
mod regression;
#[cfg(test)]
mod tests;

/// A prediction for every row, in order and in blocks; of a classifier the place of the class.
///
/// # Errors
///
/// [`Error::Data`] if the table cannot be read, [`Error::Interrupted`] if `each` said so.
pub fn predict(
    model: &Model,
    source: &Source,
    threads: usize,
    each: &mut dyn FnMut(&[f64]) -> ControlFlow<()>,
) -> Result<(), Error> {
    apply(model, source, threads, |row| model.predict(row), each)
}

/// What a classifier says about every row, in order and in blocks.
///
/// # Errors
///
/// As [`predict`], and [`Error::Parameter`] if the model is no classifier.
pub fn classify(
    model: &Model,
    source: &Source,
    threads: usize,
    each: &mut dyn FnMut(&[Classified]) -> ControlFlow<()>,
) -> Result<(), Error> {
    expect_classifier(model)?;
    apply(model, source, threads, |row| model.classify(row), each)
}

fn expect_classifier(model: &Model) -> Result<(), Error> {
    Error::ensure(model.link.is_classifier(), "model", "a classifier", model.link.name())
}

fn apply<T>(
    model: &Model,
    source: &Source,
    threads: usize,
    say: impl Fn(&[f64]) -> T,
    each: &mut dyn FnMut(&[T]) -> ControlFlow<()>,
) -> Result<(), Error> {
    let encoding = model.encoding.predicting();
    blocks(source, &encoding, threads, &mut |block| {
        let rows = block.features.chunks_exact(block.width.max(1));
        let said: Vec<T> = rows.map(&say).collect();
        each(&said)
    })
}

/// Hands every row and its target to `each`, in order.
fn rows(
    encoding: &Encoding,
    source: &Source,
    threads: usize,
    watch: &mut dyn FnMut(u64) -> ControlFlow<()>,
    each: &mut dyn FnMut(&[f64], f64),
) -> Result<(), Error> {
    blocks(source, encoding, threads, &mut |block| {
        for (row, y) in block.features.chunks_exact(block.width.max(1)).zip(&block.target) {
            each(row, *y);
        }
        watch(block.position)
    })
}

/// Lattice units per unit of an entry.
pub(crate) const UNITS: f64 = (1_u64 << 30) as f64;
