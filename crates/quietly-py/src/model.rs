//! A fitted model with its certificate.
use std::{ops::ControlFlow, path::PathBuf};

use pyo3::{
    prelude::*,
    types::{PyByteArray, PyBytes, PyDict},
};
use quietly::{Key, Link, Reads, classify, predict};

use crate::{
    errors::{guard, raise},
    plan::{Plan, Wishes},
    schema::Schema,
    table::Table,
};

/// What a release promises, and why.
#[pyclass(frozen, module = "quietly._quietly")]
pub(crate) struct Certificate(quietly::Certificate);

#[pymethods]
impl Certificate {
    /// The certified upper bound on epsilon.
    #[getter]
    fn epsilon(&self) -> f64 {
        self.0.epsilon
    }

    /// The delta at which it holds.
    #[getter]
    fn delta(&self) -> f64 {
        self.0.asked.delta()
    }

    /// What was taken to be public.
    #[getter]
    fn public(&self) -> Vec<String> {
        self.0.public.clone()
    }

    /// Made with a fixed seed, or without any noise: not for release.
    #[getter]
    fn test_only(&self) -> bool {
        self.0.test_only
    }

    /// What the price means for one person, in words.
    fn odds(&self) -> String {
        self.0.odds()
    }

    /// The whole certificate as JSON.
    fn to_json(&self) -> String {
        serde_json::to_string_pretty(&self.0).expect("plain fields")
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        self.0.to_string()
    }
}

/// A fitted model: what the model file holds.
#[pyclass(frozen, module = "quietly._quietly")]
pub(crate) struct Model(quietly::Model);

#[pymethods]
impl Model {
    /// Plans, reads, releases and signs. `public` is what was taken to be public beside the schema.
    #[staticmethod]
    fn fit(
        py: Python<'_>,
        table: &Table,
        schema: &Schema,
        wishes: &Bound<'_, PyDict>,
        public: Vec<String>,
    ) -> PyResult<Self> {
        guard(|| Model::fitted(py, table, schema, wishes, public))
    }

    /// Reads a model file.
    #[staticmethod]
    fn read(path: PathBuf) -> PyResult<Self> {
        guard(|| Ok(Model(quietly::Model::read(&path).map_err(raise)?)))
    }

    /// Reads the bytes of a model file.
    #[staticmethod]
    fn of_bytes(bytes: &[u8]) -> PyResult<Self> {
        guard(|| Ok(Model(quietly::Model::from_json(bytes, "what was pickled").map_err(raise)?)))
    }

    /// The bytes of the model file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.to_json().as_bytes())
    }

    /// A prediction for every row, as 64 bit numbers; of a classifier the place of the class.
    #[pyo3(signature = (table, n_jobs=None))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        table: &Table,
        n_jobs: Option<i64>,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        guard(|| {
            let said = py.detach(|| {
                let mut all = Vec::new();
                let each = &mut |said: &[f64]| {
                    all.extend_from_slice(said);
                    ControlFlow::Continue(())
                };
                predict(&self.0, &table.source, threads(n_jobs), each).map(|()| all)
            });
            Ok(bytes(py, &said.map_err(raise)?))
        })
    }

    /// The probability of every class for every row.
    #[pyo3(signature = (table, n_jobs=None))]
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        table: &Table,
        n_jobs: Option<i64>,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        self.classified(py, table, n_jobs, |said| said.probabilities.clone())
    }

    /// For two classes one score, positive for the last of them; for more the logarithms of the probabilities.
    #[pyo3(signature = (table, n_jobs=None))]
    fn scores<'py>(
        &self,
        py: Python<'py>,
        table: &Table,
        n_jobs: Option<i64>,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let two = self.classes().is_some_and(|classes| classes.len() == 2);
        self.classified(py, table, n_jobs, move |said| match two {
            true => vec![said.score],
            false => said.probabilities.iter().map(|p| p.max(f64::MIN_POSITIVE).ln()).collect(),
        })
    }

    /// The classes as they are written, if it is a classifier.
    #[getter]
    fn classes(&self) -> Option<Vec<String>> {
        let target = self.0.encoding.target().filter(|target| target.is_classes())?;
        Some(target.class_names())
    }

    /// The declared classes as they are in the schema, if it is a classifier.
    fn class_values<'py>(&self, py: Python<'py>) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        let Some(target) = self.0.encoding.target().filter(|target| target.is_classes()) else {
            return Ok(None);
        };
        let object = |value: &quietly::Value| -> PyResult<Bound<'py, PyAny>> {
            Ok(match value {
                quietly::Value::Bool(truth) => truth.into_pyobject(py)?.to_owned().into_any(),
                quietly::Value::Number(x) if x.fract() == 0.0 && x.abs() < 1e15 => {
                    (*x as i64).into_pyobject(py)?.into_any()
                }
                quietly::Value::Number(x) => x.into_pyobject(py)?.into_any(),
                quietly::Value::Text(text) => text.into_pyobject(py)?.into_any(),
            })
        };
        let mut values: Vec<_> = target.classes.iter().map(object).collect::<PyResult<_>>()?;
        if target.other {
            values.push("other".into_pyobject(py)?.into_any());
        }
        Ok(Some(values))
    }

    /// Names of the numbers that a row becomes.
    #[getter]
    fn features(&self) -> Vec<String> {
        self.0.encoding.features().iter().map(|feature| feature.name.clone()).collect()
    }

    /// The columns that features are made of.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.encoding.predicting().columns().map(Into::into).collect()
    }

    /// All weights, one class after the other.
    #[getter]
    fn weights(&self) -> Vec<f64> {
        self.0.weights.clone()
    }

    /// The intercept, or one for every class.
    #[getter]
    fn intercepts(&self) -> Vec<f64> {
        match self.0.link {
            Link::Softmax => self.0.intercepts.clone(),
            _ => vec![self.0.intercept],
        }
    }

    /// What is fitted: linear, relu, robust, quantile, logistic, svm or softmax.
    #[getter]
    fn link(&self) -> &'static str {
        self.0.link.name()
    }

    /// Whether it is a network.
    #[getter]
    fn is_network(&self) -> bool {
        self.0.network.is_some()
    }

    /// What was planned before the data was read.
    #[getter]
    fn plan(&self) -> Plan {
        Plan(self.0.plan.clone())
    }

    /// What was promised, and why.
    #[getter]
    fn certificate(&self) -> Certificate {
        Certificate(self.0.certificate.clone())
    }
}

impl Model {
    fn fitted(
        py: Python<'_>,
        table: &Table,
        schema: &Schema,
        wishes: &Bound<'_, PyDict>,
        public: Vec<String>,
    ) -> PyResult<Self> {
        let wishes = Wishes(wishes);
        let (encoding, plan) =
            wishes.plan(schema, table.source.columns(), table.source.is_sparse())?;
        let seed = wishes.get("random_state", "None or a whole number from 0")?;
        let key = match seed {
            Some(seed) => Key::from_seed(seed),
            None => Key::from_os().map_err(raise)?,
        };
        let threads = threads(wishes.get("n_jobs", "None or a whole number")?);
        let mut interrupted = None;
        let fitted = py.detach(|| {
            let reads = Reads { source: &table.source, public: None, encoding: &encoding };
            plan.fit_from(reads, &schema.inner.unit, key, threads, &mut |_| match Python::attach(
                |py| py.check_signals(),
            ) {
                Ok(()) => ControlFlow::Continue(()),
                Err(signal) => {
                    interrupted = Some(signal);
                    ControlFlow::Break(())
                }
            })
        });
        if let Some(signal) = interrupted {
            return Err(signal);
        }
        let mut model = fitted.map_err(raise)?;
        model.certificate.public.extend(public);
        Ok(Model(model))
    }

    fn classified<'py>(
        &self,
        py: Python<'py>,
        table: &Table,
        n_jobs: Option<i64>,
        take: impl Fn(&quietly::Classified) -> Vec<f64> + Send + Sync,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        guard(|| {
            let said = py.detach(|| {
                let mut all = Vec::new();
                let each = &mut |said: &[quietly::Classified]| {
                    all.extend(said.iter().flat_map(&take));
                    ControlFlow::Continue(())
                };
                classify(&self.0, &table.source, threads(n_jobs), each).map(|()| all)
            });
            Ok(bytes(py, &said.map_err(raise)?))
        })
    }
}

/// How many threads may work: none or fewer than one means one for every core.
fn threads(n_jobs: Option<i64>) -> usize {
    match n_jobs {
        Some(count) if count > 0 => count.min(256) as usize,
        _ => std::thread::available_parallelism().map_or(1, |n| n.get()),
    }
}

fn bytes<'py>(py: Python<'py>, numbers: &[f64]) -> Bound<'py, PyByteArray> {
    let all: Vec<u8> = numbers.iter().flat_map(|x| x.to_ne_bytes()).collect();
    PyByteArray::new(py, &all)
}
