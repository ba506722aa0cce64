//! Every error as a named Python exception with the same sentence and the same code.
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Mutex, PoisonError},
};

use pyo3::prelude::*;
use quietly::Error;

/// Where the last panic was: a file and a line of quietly, and nothing of what it was about.
static PLACE: Mutex<String> = Mutex::new(String::new());

/// The exception for an error.
pub(crate) fn raise(error: impl Into<Error>) -> PyErr {
    let error = error.into();
    exception(&format!("{}Error", error.name()), &error.to_string(), Some(error.code()))
}

/// An exception of `quietly.errors` by its name.
pub(crate) fn exception(name: &str, message: &str, code: Option<&str>) -> PyErr {
    let make = |py: Python<'_>| -> PyResult<PyErr> {
        let value = py.import("quietly.errors")?.getattr(name)?.call1((message,))?;
        value.setattr("code", code)?;
        Ok(PyErr::from_value(value))
    };
    Python::attach(|py| make(py).unwrap_or_else(|error| error))
}

/// Does some work. A panic there is a fault of ours: it becomes an exception that says where, and no more, for what a panic
/// says may hold a value.
pub(crate) fn guard<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let place = PLACE.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let message = format!(
            "quietly {} failed at {place}: a fault of quietly, not of yours, and nothing was released; please report it \
             with what you called",
            env!("CARGO_PKG_VERSION")
        );
        Err(exception("InternalError", &message, None))
    })
}

/// From now on a panic prints nothing, and only its place is kept.
fn quiet_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map_or("an unknown place".into(), |at| {
            let file = std::path::Path::new(at.file()).file_name().unwrap_or_default();
            format!("{}:{}", file.to_string_lossy(), at.line())
        });
        *PLACE.lock().unwrap_or_else(PoisonError::into_inner) = place;
    }));
}

/// Panics, for the test that a panic does not get out.
#[pyfunction]
fn _panic(py: Python<'_>, secret: &str) -> PyResult<()> {
    guard(|| py.detach(|| panic!("about {secret}")))
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    quiet_panics();
    module.add_function(wrap_pyfunction!(_panic, module)?)
}
