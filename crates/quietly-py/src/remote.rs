//! Rows on the workers of Spark: tasks are sent as bytes, and sums come back as bytes.
use std::{
    ops::ControlFlow,
    sync::{Mutex, PoisonError},
};

use pyo3::{prelude::*, types::PyBytes};
use quietly::{
    BatchDraw, Encoding, Error, Foreign, Plan, Private, Sampler,
    backend::{Backend, Batch, ReadSpec},
    decode_query,
    query::{Query, QuerySum},
    remote::{self, Task},
};

use crate::{
    errors::{exception, guard, raise},
    table::Table,
};

/// Does a task with some rows after others, where they are.
#[pyclass(frozen, module = "quietly._quietly")]
pub(crate) struct Worker(Mutex<Option<remote::Worker>>);

#[pymethods]
impl Worker {
    #[new]
    fn new(task: &[u8]) -> PyResult<Self> {
        guard(|| {
            let task: Task = quietly::from_bytes(task).map_err(other)?;
            let worker = remote::Worker::new(&task, decode_query).map_err(raise)?;
            Ok(Worker(Mutex::new(Some(worker))))
        })
    }

    /// Adds all rows of a table.
    fn add(&self, py: Python<'_>, table: &Table) -> PyResult<()> {
        guard(|| {
            let added = py.detach(|| {
                let mut worker = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                worker.as_mut().map(|worker| worker.add(&table.source))
            });
            added.ok_or(Foreign::Bytes).map_err(other)?.map_err(raise)
        })
    }

    /// The sum over all of them: **private**, and for the process alone that adds noise to it.
    fn sum<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let worker = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Not a release: it goes to the process that adds noise, which is trusted with the rows.
        let message = worker.ok_or(Foreign::Bytes).map_err(other)?.message().sent_to_driver();
        Ok(PyBytes::new(py, &message))
    }
}

fn other(why: Foreign) -> PyErr {
    let message = format!("the parts of quietly have incompatible versions: {why}");
    exception("RemoteError", &message, None)
}

/// Rows on workers: `run` takes a task, and returns the sums of all workers.
pub(crate) struct There {
    run: Py<PyAny>,
    read: ReadSpec,
    /// How many rows there are: not private.
    count: Py<PyAny>,
    raised: Option<PyErr>,
}

impl There {
    /// Rows of a table like this one, which has none, for a plan that may ask them.
    pub(crate) fn new(
        (run, count): (Py<PyAny>, Py<PyAny>),
        empty: &Table,
        (plan, encoding): (&Plan, &Encoding),
    ) -> PyResult<Self> {
        plan.check_every_row().map_err(raise)?;
        if empty.source.is_sparse() {
            let message =
                "rows on workers hold numbers and texts, not lists: give each entry a column";
            return Err(exception("ColumnTypesError", message, None));
        }
        // Names and types of columns are public, and refused here rather than by a worker.
        empty.source.scan(encoding, &mut |_| ControlFlow::Continue(())).map_err(raise)?;
        Ok(There { run, read: plan.reading(encoding), count, raised: None })
    }

    /// What Python answered; if it raised, that is kept.
    fn heard<T>(&mut self, answer: PyResult<T>) -> Result<T, Error> {
        answer.map_err(|error| {
            self.raised = Some(error);
            Error::Interrupted
        })
    }

    /// What Python raised, if anything.
    pub(crate) fn raised(self) -> Option<PyErr> {
        self.raised
    }
}

impl Backend for There {
    fn begin(&mut self, draw: &BatchDraw) -> Result<(), Error> {
        // Rows that come in any order have no places, so that a step cannot be told. Plans are refused for that before they
        // are charged.
        let (name, want) = ("method", "one that sums every row in every step");
        match draw.sampler() {
            Sampler::FullBatch => Ok(()),
            sampler => Err(Error::Parameter { name, want, got: sampler.to_string() }),
        }
    }

    fn sum(&mut self, _: &Batch, query: &dyn Query) -> Result<QuerySum, Error> {
        let task = Task::new(&self.read, query, None);
        let sums = Python::attach(|py| -> PyResult<Vec<Vec<u8>>> {
            let task = PyBytes::new(py, &quietly::to_bytes(&task));
            self.run.call1(py, (task,))?.extract(py)
        });
        let sum = sums.and_then(|sums| remote::add_messages(query, &sums).map_err(other));
        self.heard(sum)
    }

    /// It is called under replace-one alone, where the number of rows is public.
    fn count(&mut self) -> Result<Private<u64>, Error> {
        let counted = Python::attach(|py| self.count.call0(py)?.extract::<u64>(py));
        self.heard(counted).map(Private::new)
    }
}
