//! The accountant: the schemes of `quietly account`, by the same names.
use pyo3::{prelude::*, types::PyDict};
use quietly_accounting::{Error, Event, Neighbours, PrivacyBound};

use crate::{
    errors::{exception, guard, raise},
    ledger::relation,
    scheme::{NoiseParameter, Scheme},
};

/// (lower, upper): the upper end is certified; the lower is what some tables really leak.
type Interval = (f64, f64);

/// Runs one after the other, on the same people.
type Runs<'py> = Vec<Bound<'py, PyDict>>;

/// Epsilon at a delta.
#[pyfunction]
fn epsilon(py: Python<'_>, runs: Runs<'_>, neighbours: &str, delta: f64) -> PyResult<Interval> {
    guard(|| {
        let (event, neighbours) = read(&runs, neighbours)?;
        interval(py.detach(|| quietly_accounting::epsilon(&event, neighbours, delta)))
    })
}

/// Delta at an epsilon.
#[pyfunction]
fn delta(py: Python<'_>, runs: Runs<'_>, neighbours: &str, epsilon: f64) -> PyResult<Interval> {
    guard(|| {
        let (event, neighbours) = read(&runs, neighbours)?;
        interval(py.detach(|| quietly_accounting::delta(&event, neighbours, epsilon)))
    })
}

/// (delta, epsilon) pairs: the whole curve.
#[pyfunction]
fn curve(py: Python<'_>, runs: Runs<'_>, neighbours: &str) -> PyResult<Vec<(f64, f64)>> {
    guard(|| {
        let (event, neighbours) = read(&runs, neighbours)?;
        py.detach(|| quietly_accounting::curve(&event, neighbours)).map_err(raise)
    })
}

/// The setting of the scheme's noise_parameter with the least noise that keeps epsilon at or below what is asked, and the epsilon it has.
#[pyfunction]
fn calibrate(
    py: Python<'_>,
    run: &Bound<'_, PyDict>,
    neighbours: &str,
    epsilon: f64,
    delta: f64,
) -> PyResult<(f64, Interval)> {
    guard(|| {
        let (scheme, neighbours) = (Scheme::read(run)?, relation(neighbours)?);
        if scheme.noise_parameter == NoiseParameter::Nothing {
            let message = "approximate-dp has no noise to calibrate: ask for its epsilon instead";
            return Err(exception("ParameterError", message, None));
        }
        let event = |noise: f64| scheme.event(noise);
        let found = py.detach(|| quietly_accounting::calibrate(event, neighbours, epsilon, delta));
        let found = found.map_err(raise)?;
        let setting = scheme.setting(found.noise_multiplier);
        Ok((setting, (found.epsilon.lower, found.epsilon.upper)))
    })
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(epsilon, module)?)?;
    module.add_function(wrap_pyfunction!(delta, module)?)?;
    module.add_function(wrap_pyfunction!(curve, module)?)?;
    module.add_function(wrap_pyfunction!(calibrate, module)?)
}

fn interval(answer: Result<PrivacyBound, Error>) -> PyResult<Interval> {
    let answer = answer.map_err(raise)?;
    Ok((answer.lower, answer.upper))
}

fn read(runs: &Runs<'_>, neighbours: &str) -> PyResult<(Event, Neighbours)> {
    let mut all: Option<Event> = None;
    for run in runs {
        let next = Scheme::told(run)?;
        all = Some(match all {
            Some(before) => before.then(next),
            None => next,
        });
    }
    let nothing = || exception("ParameterError", "wanted at least one run, got none", None);
    Ok((all.ok_or_else(nothing)?, relation(neighbours)?))
}
