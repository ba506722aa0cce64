//! Ledgers: what may be spent, and what was.
use std::{path::PathBuf, sync::Mutex};

use pyo3::prelude::*;
use quietly::{Charge, Key, Neighbours};

use crate::{
    errors::{exception, raise},
    plan::refusal,
};

/// What may be spent: epsilon, and the delta at which it holds.
#[pyclass(frozen, eq, module = "quietly._quietly")]
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Budget(pub(crate) quietly::Budget);

#[pymethods]
impl Budget {
    /// Epsilon from 0.001 to 1000, and delta from 1e-12 to 0.5, or 0.
    #[new]
    #[pyo3(signature = (epsilon, delta, neighbours="add-remove"))]
    fn new(
        epsilon: &Bound<'_, PyAny>,
        delta: &Bound<'_, PyAny>,
        neighbours: &str,
    ) -> PyResult<Self> {
        let number = |name, given: &Bound<'_, PyAny>| {
            let refused = |_| exception("ParameterError", &refusal(name, "a number", given), None);
            given.extract::<f64>().map_err(refused)
        };
        let (epsilon, delta) = (number("epsilon", epsilon)?, number("delta", delta)?);
        let budget = match delta {
            0.0 => quietly::Budget::pure(epsilon),
            _ => quietly::Budget::new(epsilon, delta),
        };
        Ok(Budget(budget.map_err(raise)?.under(relation(neighbours)?)))
    }

    #[getter]
    fn epsilon(&self) -> f64 {
        self.0.epsilon()
    }

    #[getter]
    fn delta(&self) -> f64 {
        self.0.delta()
    }

    /// How two tables that must look alike may differ: add-remove or replace-one.
    #[getter]
    fn neighbours(&self) -> &'static str {
        self.0.neighbours().name()
    }

    fn __repr__(&self) -> String {
        let (epsilon, delta, relation) = (self.epsilon(), self.delta(), self.neighbours());
        format!("Budget(epsilon={epsilon}, delta={delta:e}, neighbours={relation:?})")
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyAny>, (f64, f64, &'static str)) {
        let kind = py.get_type::<Budget>().into_any();
        (kind, (self.epsilon(), self.delta(), self.neighbours()))
    }
}

/// The neighbouring relation of this name.
pub(crate) fn relation(word: &str) -> PyResult<Neighbours> {
    let known = [Neighbours::AddRemove, Neighbours::ReplaceOne];
    known.into_iter().find(|n| n.name() == word).ok_or_else(|| {
        let message = format!("neighbours must be add-remove or replace-one, but is {word:?}");
        exception("ParameterError", &message, None)
    })
}

/// A file that says what may be spent on one table, and what was.
#[pyclass(frozen, module = "quietly._quietly")]
pub(crate) struct LedgerFile(Mutex<quietly::Ledger>);

impl LedgerFile {
    fn with<T>(&self, work: impl FnOnce(&mut quietly::Ledger) -> T) -> T {
        // Nothing in it is half done, whatever another thread ran into.
        work(&mut self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    /// As [`with`](Self::with), with what other processes have spent. A file that cannot be read now says what it said last.
    fn newest<T>(&self, work: impl FnOnce(&quietly::Ledger) -> T) -> T {
        self.with(|ledger| {
            if let Ok(now) = quietly::Ledger::open(ledger.path(), None) {
                *ledger = now;
            }
            work(ledger)
        })
    }

    /// Writes down what is about to be spent, or refuses; gives the right to it, and the run that has it.
    pub(crate) fn pay(
        &self,
        what: &str,
        budget: quietly::Budget,
        key: Key,
    ) -> PyResult<(Charge, String)> {
        let run = quietly::Run::new(what).map_err(raise)?;
        let charge = self.with(|ledger| ledger.pay(&run, budget, key)).map_err(raise)?;
        Ok((charge, run.name))
    }

    /// Writes down that a run has ended. If that fails it stays charged and begun, which is no worse.
    pub(crate) fn finish(&self, run: &str) {
        let _ = self.with(|ledger| ledger.finish(run));
    }
}

#[pymethods]
impl LedgerFile {
    #[new]
    #[pyo3(signature = (path, limit=None))]
    fn new(path: PathBuf, limit: Option<&Budget>) -> PyResult<Self> {
        let ledger = quietly::Ledger::open(&path, limit.map(|limit| limit.0));
        Ok(LedgerFile(Mutex::new(ledger.map_err(raise)?)))
    }

    /// What may be spent in all.
    #[getter]
    fn limit(&self) -> Budget {
        Budget(self.with(|ledger| ledger.limit()))
    }

    /// (epsilon, delta) of all that was spent.
    #[getter]
    fn spent(&self) -> (f64, f64) {
        self.newest(|ledger| ledger.spent())
    }

    /// (epsilon, delta) that may still be spent.
    #[getter]
    fn left(&self) -> (f64, f64) {
        let (epsilon, delta) = self.newest(|ledger| ledger.left());
        (epsilon.max(0.0), delta.max(0.0))
    }

    /// The delta of a fit that names none: that of so many rows, or a tenth of what is left if that is less.
    fn usual_delta(&self, rows: u64) -> PyResult<f64> {
        let usual = quietly::Budget::usual(1.0, None, rows).map_err(raise)?.delta();
        Ok(self.newest(|ledger| ledger.usual_delta(usual)))
    }

    /// All that was spent: (seconds since 1970, what, epsilon, delta).
    #[getter]
    fn entries(&self) -> Vec<(u64, String, f64, f64)> {
        self.newest(|ledger| {
            let row = |s: &quietly::LedgerEntry| (s.when, s.what.clone(), s.epsilon, s.delta);
            ledger.entries().iter().map(row).collect()
        })
    }

    fn __str__(&self) -> String {
        self.newest(|ledger| ledger.to_string())
    }
}
