//! Exact noise on the integers, alone: for researchers.
use pyo3::prelude::*;
use quietly::Key;
use quietly_noise::{DiscreteLaplace, Error, Ratio, RoundedNormal};

use crate::errors::{guard, raise};

/// Draws of a Gaussian, each rounded to the nearest integer, exactly.
///
/// Parameters
/// ----------
/// scale : float
///     The standard deviation, in units of the lattice, above 0.
/// size : int
///     How many draws.
/// random_state : int or None, default None
///     None takes the operating system's randomness. A whole number from 0 repeats the draws, for tests.
///
/// Returns
/// -------
/// list of int
#[pyfunction]
#[pyo3(signature = (scale, size, *, random_state=None))]
fn rounded_gaussian(scale: f64, size: usize, random_state: Option<u64>) -> PyResult<Vec<i64>> {
    draws(size, random_state, |key, out| {
        RoundedNormal::new(scale)?.fill(&key.stream("python"), 0, out)
    })
}

/// Draws of the discrete Laplace law: P(x) in proportion to exp(-|x| denominator / numerator), exactly.
///
/// Parameters
/// ----------
/// numerator : int
///     Of the scale, at least 1.
/// denominator : int
///     Of the scale, at least 1.
/// size : int
///     How many draws.
/// random_state : int or None, default None
///     None takes the operating system's randomness. A whole number from 0 repeats the draws, for tests.
///
/// Returns
/// -------
/// list of int
#[pyfunction]
#[pyo3(signature = (numerator, denominator, size, *, random_state=None))]
fn discrete_laplace(
    numerator: u64,
    denominator: u64,
    size: usize,
    random_state: Option<u64>,
) -> PyResult<Vec<i64>> {
    draws(size, random_state, |key, out| {
        let scale = Ratio::new(numerator, denominator)?;
        DiscreteLaplace::new(scale)?.fill(&key.stream("python"), 0, out)
    })
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(rounded_gaussian, module)?)?;
    module.add_function(wrap_pyfunction!(discrete_laplace, module)?)
}

fn draws(
    size: usize,
    seed: Option<u64>,
    fill: impl FnOnce(&Key, &mut [i64]) -> Result<(), Error>,
) -> PyResult<Vec<i64>> {
    guard(|| {
        let key = match seed {
            Some(seed) => Key::from_seed(seed),
            None => Key::from_os().map_err(raise)?,
        };
        let mut out = vec![0; size];
        fill(&key, &mut out).map_err(raise)?;
        Ok(out)
    })
}
