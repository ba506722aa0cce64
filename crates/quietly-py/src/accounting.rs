//! What a run costs: the schemes of `quietly account`, by the same names.
use pyo3::{prelude::*, types::PyDict};
use quietly_accounting::{Answer, Error, Event, Neighbours};

use crate::{
    errors::{exception, raise},
    plan::Wishes,
};

/// (lower, upper): the upper end is certified; the lower is what some tables really leak.
type Interval = (f64, f64);

/// Epsilon at a delta.
#[pyfunction]
fn epsilon(py: Python<'_>, scheme: &Bound<'_, PyDict>, delta: f64) -> PyResult<Interval> {
    let (event, neighbours) = read(scheme)?;
    interval(py.detach(|| quietly_accounting::epsilon(&event, neighbours, delta)))
}

/// Delta at an epsilon.
#[pyfunction]
fn delta(py: Python<'_>, scheme: &Bound<'_, PyDict>, epsilon: f64) -> PyResult<Interval> {
    let (event, neighbours) = read(scheme)?;
    interval(py.detach(|| quietly_accounting::delta(&event, neighbours, epsilon)))
}

/// (delta, epsilon) pairs: the whole curve.
#[pyfunction]
fn curve(py: Python<'_>, scheme: &Bound<'_, PyDict>) -> PyResult<Vec<(f64, f64)>> {
    let (event, neighbours) = read(scheme)?;
    py.detach(|| quietly_accounting::curve(&event, neighbours)).map_err(raise)
}

/// The least noise that keeps epsilon at or below what is asked, and the epsilon it has.
#[pyfunction]
fn calibrate(
    py: Python<'_>,
    scheme: &Bound<'_, PyDict>,
    epsilon: f64,
    delta: f64,
) -> PyResult<(f64, Interval)> {
    let (scheme, neighbours) = (Scheme::read(scheme)?, Wishes(scheme).neighbours()?);
    let event = |noise: f64| scheme.event(noise);
    let found = py.detach(|| quietly_accounting::calibrate(event, neighbours, epsilon, delta));
    let found = found.map_err(raise)?;
    Ok((found.noise_multiplier, (found.epsilon.lower, found.epsilon.upper)))
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(epsilon, module)?)?;
    module.add_function(wrap_pyfunction!(delta, module)?)?;
    module.add_function(wrap_pyfunction!(curve, module)?)?;
    module.add_function(wrap_pyfunction!(calibrate, module)?)
}

fn interval(answer: Result<Answer, Error>) -> PyResult<Interval> {
    let answer = answer.map_err(raise)?;
    Ok((answer.lower, answer.upper))
}

/// A scheme but for its noise.
#[derive(Clone, Copy)]
enum Scheme {
    Gaussian { steps: u64 },
    Laplace { steps: u64 },
    Poisson { rate: f64, steps: u64 },
    FixedSize { records: u64, batch: u64, steps: u64 },
    Allocation { steps: u64, select: u64, epochs: u64 },
    Shuffle { steps: u64, epochs: u64 },
    Tree { steps: u64, epochs: u64 },
}

impl Scheme {
    fn read(said: &Bound<'_, PyDict>) -> PyResult<Self> {
        let wishes = Wishes(said);
        let count = |name: &str| Ok::<u64, PyErr>(wishes.count(name)?.unwrap_or(1));
        let (steps, epochs) = (count("steps")?, count("epochs")?);
        let name = wishes.word("scheme")?.unwrap_or_default();
        Ok(match name.as_str() {
            "gaussian" => Scheme::Gaussian { steps },
            "laplace" => Scheme::Laplace { steps },
            "poisson" => {
                Scheme::Poisson { rate: wishes.number("rate")?.unwrap_or(f64::NAN), steps }
            }
            "fixed-size" => {
                Scheme::FixedSize { records: count("records")?, batch: count("batch")?, steps }
            }
            "allocation" => Scheme::Allocation { steps, select: count("select")?, epochs },
            "shuffle" => Scheme::Shuffle { steps, epochs },
            "tree" => Scheme::Tree { steps, epochs },
            _ => {
                let want = "gaussian, laplace, poisson, fixed-size, allocation, shuffle or tree";
                let message = format!("scheme must be {want}, but is {name:?}");
                return Err(exception("ParameterError", &message, None));
            }
        })
    }

    fn event(self, noise: f64) -> Result<Event, Error> {
        match self {
            Scheme::Gaussian { steps } => Event::gaussian(noise)?.repeat(steps),
            Scheme::Laplace { steps } => Event::laplace(noise)?.repeat(steps),
            Scheme::Poisson { rate, steps } => Event::poisson(rate, noise)?.repeat(steps),
            Scheme::FixedSize { records, batch, steps } => {
                Event::fixed_size(records, batch, noise)?.repeat(steps)
            }
            Scheme::Allocation { steps, select, epochs } => {
                Event::allocation(steps, select, noise)?.repeat(epochs)
            }
            Scheme::Shuffle { steps, epochs } => Event::shuffled(steps, noise)?.repeat(epochs),
            Scheme::Tree { steps, epochs } => Event::tree(steps, noise)?.repeat(epochs),
        }
    }
}

fn read(said: &Bound<'_, PyDict>) -> PyResult<(Event, Neighbours)> {
    let wishes = Wishes(said);
    let noise = wishes.number("noise")?.unwrap_or(f64::NAN);
    Ok((Scheme::read(said)?.event(noise).map_err(raise)?, wishes.neighbours()?))
}
