//! Rows that an engine of Python's world keeps: questions go there as bytes, and answers come back so.
use std::{
    ops::ControlFlow,
    sync::{Mutex, PoisonError},
};

use pyo3::{prelude::*, types::PyBytes};
use quietly::{
    Answer, Elsewhere, Encoding, Errand, Error, Foreign, Keeper, Model, Neighbours, Paid, Plan,
    Private, Question, Reading, Watch,
};

use crate::{
    errors::{exception, guard, raise},
    table::Table,
};

/// Somebody on an errand, who asks some rows after others, where they are.
#[pyclass(frozen, module = "quietly._quietly")]
pub(crate) struct Worker(Mutex<Option<quietly::Worker>>);

#[pymethods]
impl Worker {
    #[new]
    fn new(errand: &[u8]) -> PyResult<Self> {
        guard(|| {
            let errand: Errand = quietly::from_bytes(errand).map_err(other)?;
            Ok(Worker(Mutex::new(Some(quietly::Worker::new(errand).map_err(raise)?))))
        })
    }

    /// Asks all rows of a table.
    fn ask(&self, py: Python<'_>, table: &Table) -> PyResult<()> {
        guard(|| {
            let asked = py.detach(|| {
                let mut worker = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                worker.as_mut().map(|worker| worker.ask(&table.source))
            });
            asked.ok_or(Foreign::Bytes).map_err(other)?.map_err(raise)
        })
    }

    /// What they said, added up: **private**, and for the process alone that adds noise to it.
    fn answer<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let worker = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Not a release: it goes to the process that adds noise, which is trusted with the rows.
        let answer = worker.ok_or(Foreign::Bytes).map_err(other)?.answer().sent_to_driver();
        Ok(PyBytes::new(py, &quietly::sealed(&answer.to_bytes())))
    }
}

fn other(why: Foreign) -> PyErr {
    let message = format!("the parts of quietly do not understand each other: {why}");
    exception("ElsewhereError", &message, None)
}

/// Rows that are elsewhere: `ask` takes an errand, and returns the answers of all workers.
pub(crate) struct There {
    ask: Py<PyAny>,
    reading: Reading,
    /// Says how many there are: for whoever may know it.
    count: Py<PyAny>,
    raised: Option<PyErr>,
}

impl There {
    /// Rows of a table like this one, which has none, for a plan that may ask them.
    pub(crate) fn new(
        (ask, count): (Py<PyAny>, Py<PyAny>),
        empty: &Table,
        (plan, encoding): (&Plan, &Encoding),
    ) -> PyResult<Self> {
        plan.asks_every_row().map_err(raise)?;
        if empty.source.is_sparse() {
            let message = "rows that are elsewhere hold numbers and texts, and no lists: give each of them a column";
            return Err(exception("ColumnTypesError", message, None));
        }
        // Names and types of columns are public, and refused here rather than by a worker.
        empty.source.scan(encoding, &mut |_| ControlFlow::Continue(())).map_err(raise)?;
        Ok(There { ask, reading: plan.reading(encoding), count, raised: None })
    }

    /// Fits them.
    pub(crate) fn fit(
        &mut self,
        (plan, encoding): (&Plan, &Encoding),
        unit: &str,
        (paid, threads): (Paid, usize),
        watch: &mut Watch<'_>,
    ) -> Result<Model, Error> {
        // Under replace-one, and only then, the number of rows is public.
        let public = plan.budget.neighbours() == Neighbours::ReplaceOne;
        let counted = Python::attach(|py| match public && plan.convex.is_some() {
            true => self.count.call0(py)?.extract::<u64>(py),
            false => Ok(0),
        });
        let records = self.heard(counted)?;
        let mut from = Elsewhere { rows: self, records, allocation: None, journal: None };
        plan.fit_elsewhere(&mut from, encoding, unit, paid, threads, watch)
    }

    /// What Python answered; if it raised, that is kept.
    fn heard<T>(&mut self, answer: PyResult<T>) -> Result<T, Error> {
        answer.map_err(|error| {
            self.raised = Some(error);
            Error::Stopped
        })
    }

    /// What `ask` raised, if anything.
    pub(crate) fn raised(self) -> Option<PyErr> {
        self.raised
    }
}

impl Keeper for There {
    fn ask(&mut self, _step: usize, question: &Question) -> Result<Private<Answer>, Error> {
        let errand = Errand { reading: self.reading.clone(), question: question.clone() };
        let answers = Python::attach(|py| -> PyResult<Vec<Vec<u8>>> {
            let errand = PyBytes::new(py, &quietly::to_bytes(&errand));
            self.ask.call1(py, (errand,))?.extract(py)
        });
        let sum = answers.and_then(|answers| {
            let mut all = question.nothing();
            for bytes in &answers {
                let answer = quietly::opened(bytes).map_err(other)?;
                let answer = Answer::from_bytes(answer, question).ok_or(Foreign::Bytes);
                all.add(&answer.map_err(other)?);
            }
            Ok(Private::new(all))
        });
        self.heard(sum)
    }
}
