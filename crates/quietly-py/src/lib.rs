//! The Python package's core: what crosses the border between Python and `quietly`, and nothing else.
//!
//! One file for each thing that crosses. There is no arithmetic here; defaults, docstrings and scikit-learn's manners live in
//! `python/quietly`.
use pyo3::prelude::*;

mod accounting;
mod borrow;
mod certificate;
mod errors;
mod ledger;
mod model;
mod noise;
mod plan;
mod progress;
mod remote;
mod scaler;
mod schema;
mod scheme;
mod table;
mod tune;

#[pymodule]
fn _quietly(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<schema::Schema>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<plan::Plan>()?;
    module.add_class::<certificate::Certificate>()?;
    module.add_class::<model::Model>()?;
    module.add_class::<ledger::Budget>()?;
    module.add_class::<ledger::LedgerFile>()?;
    module.add_class::<scaler::Scaler>()?;
    module.add_class::<remote::Worker>()?;
    module.add_function(wrap_pyfunction!(plan::parameters, module)?)?;
    module.add_function(wrap_pyfunction!(plan::renamed_parameters, module)?)?;
    tune::add(module)?;
    errors::add(module)?;
    accounting::add(module)?;
    noise::add(module)
}
