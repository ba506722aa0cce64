//! Every error as a named Python exception with the same sentence and the same code.
use pyo3::prelude::*;
use quietly::{DataError, Error};

/// The exception for an error.
pub(crate) fn raise(error: impl Into<Error>) -> PyErr {
    let error = error.into();
    exception(name(&error), &error.to_string(), Some(error.code()))
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

fn name(error: &Error) -> &'static str {
    use quietly_accounting::Error as Accounting;
    match error {
        Error::Accounting(Accounting::Parameter { .. }) | Error::Parameter { .. } => {
            "ParameterError"
        }
        Error::Accounting(_) | Error::Spent { .. } => "BudgetError",
        Error::Data(DataError::Unreadable { .. } | DataError::NoFiles { .. }) => "FileError",
        Error::Data(
            DataError::Syntax { .. } | DataError::Unfinished { .. } | DataError::Schema { .. },
        ) => "SchemaError",
        Error::Data(_) => "DataError",
        Error::Noise(_) => "NoiseError",
        Error::TooLarge { .. } => "TooLargeError",
        Error::Model { .. } => "ModelError",
        Error::File { .. } => "FileError",
        Error::Stopped => "StoppedError",
        _ => "QuietlyError",
    }
}
