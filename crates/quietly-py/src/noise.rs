//! Exact noise on the integers, alone: for researchers.
use pyo3::prelude::*;
use quietly::Key;
use quietly_noise::{DiscreteLaplace, Error, Ratio, RoundedGaussian};

use crate::{
    errors::{exception, guard, raise},
    plan::refusal,
};

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
fn rounded_gaussian(
    scale: f64,
    size: &Bound<'_, PyAny>,
    random_state: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<i64>> {
    draws(size, random_state, |key, out| {
        RoundedGaussian::new(scale)?.fill(&key.stream("python"), 0, out)
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
    numerator: &Bound<'_, PyAny>,
    denominator: &Bound<'_, PyAny>,
    size: &Bound<'_, PyAny>,
    random_state: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<i64>> {
    let from_one = "a whole number from 1 to 2^64 - 1";
    let numerator = whole("numerator", from_one, numerator)?;
    let denominator = whole("denominator", from_one, denominator)?;
    draws(size, random_state, |key, out| {
        let scale = Ratio::new(numerator, denominator)?;
        DiscreteLaplace::new(scale)?.fill(&key.stream("python"), 0, out)
    })
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(rounded_gaussian, module)?)?;
    module.add_function(wrap_pyfunction!(discrete_laplace, module)?)
}

/// A whole number that is not negative.
fn whole(name: &str, want: &str, given: &Bound<'_, PyAny>) -> PyResult<u64> {
    let refused = |_| exception("ParameterError", &refusal(name, want, given), None);
    given.extract().map_err(refused)
}

fn draws(
    size: &Bound<'_, PyAny>,
    seed: Option<&Bound<'_, PyAny>>,
    fill: impl FnOnce(&Key, &mut [i64]) -> Result<(), Error>,
) -> PyResult<Vec<i64>> {
    guard(|| {
        let want = "a whole number from 0, of as many draws as fit into memory";
        let count = whole("size", want, size)?;
        let mut out: Vec<i64> = Vec::new();
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        out.try_reserve_exact(count)
            .map_err(|_| exception("ParameterError", &refusal("size", want, size), None))?;
        out.resize(count, 0);
        let key = match seed {
            Some(seed) => {
                Key::from_seed(whole("random_state", "None or a whole number from 0", seed)?)
            }
            None => Key::from_os().map_err(raise)?,
        };
        fill(&key, &mut out).map_err(raise)?;
        Ok(out)
    })
}
