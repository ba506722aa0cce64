//! A fitted model with its certificate.
use std::{ops::ControlFlow, path::PathBuf};

use pyo3::{
    prelude::*,
    types::{PyByteArray, PyBytes, PyDict},
};
use quietly::{
    Charge, Curves, FitInput, FitOptions, Places, VarianceShares, classify, evaluate,
    evaluate_classes, predict,
};

use crate::{
    certificate::{self, Certificate},
    errors::{exception, guard, raise},
    ledger::LedgerFile,
    plan::{Keywords, Plan},
    progress::watched,
    remote::There,
    schema::Schema,
    table::Table,
};

/// How many places a curve has, and a map along each side.
const CURVE_POINTS: usize = 129;
const MAP_POINTS: usize = 24;

/// A fitted model: what the model file holds.
#[pyclass(frozen, module = "quietly._quietly")]
pub(crate) struct Model(pub(crate) quietly::Model);

#[pymethods]
impl Model {
    /// Plans, charges the ledger if there is one, reads, releases and signs. `public` is what was taken to be public beside the schema.
    /// `remote` is a function that sums queries over rows on workers, and one that counts them; `table` has no rows then.
    #[staticmethod]
    #[pyo3(signature = (table, schema, keywords, public, ledger=None, remote=None))]
    fn fit(
        py: Python<'_>,
        table: &Table,
        schema: &Schema,
        keywords: &Bound<'_, PyDict>,
        public: Vec<String>,
        ledger: Option<&LedgerFile>,
        remote: Option<(Py<PyAny>, Py<PyAny>)>,
    ) -> PyResult<Self> {
        guard(|| {
            let keywords = Keywords(keywords);
            let sparse = table.source.is_sparse();
            let (encoding, plan) = keywords.plan(schema, table.source.columns(), sparse)?;
            let (key, threads) = (keywords.key()?, keywords.threads()?);
            let (not_covered, parameters) = (keywords.not_covered()?, keywords.parameters()?);
            let planned = (&plan, &encoding);
            let there = remote.map(|there| There::new(there, table, planned));
            let mut there = there.transpose()?;
            table.check(&encoding, schema)?;
            let (charge, run) = match ledger {
                Some(ledger) => {
                    let target = keywords.word("target")?.unwrap_or_default();
                    let what = format!("{} of {target}", plan.link().name());
                    let (charge, run) = ledger.pay(&what, plan.unit_budget(), key)?;
                    (charge, Some((ledger, run)))
                }
                None => (Charge::without_ledger(key), None),
            };
            let unit = &schema.inner.unit;
            let fitted = watched(py, keywords.tell()?, |watch| {
                let input = match &mut there {
                    Some(there) => FitInput::backend(there, &encoding),
                    None => FitInput::source(&table.source, &encoding),
                };
                let options = FitOptions::new(charge).threads(threads).watch(watch);
                plan.fit(input, options)?.model(unit)
            });
            let raised = there.and_then(There::raised);
            let mut model = raised.map_or(fitted, Err)?;
            if let Some((ledger, run)) = run {
                ledger.finish(&run);
            }
            model.certificate.public.extend(public);
            model.certificate.add_files(&table.source.file_names());
            model.certificate.not_covered.extend(not_covered);
            model.parameters = parameters;
            Ok(Model(model))
        })
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

    /// R2, or the share of rows whose class is right, without noise: for **public** rows.
    #[pyo3(signature = (table, n_jobs=None))]
    fn score(&self, py: Python<'_>, table: &Table, n_jobs: Option<i64>) -> PyResult<f64> {
        let classes = self.0.link.is_classifier();
        let scored = py.detach(|| {
            let on = &mut |_| ControlFlow::Continue(());
            let (source, threads) = (&table.source, threads(n_jobs));
            match classes {
                true => evaluate_classes(&self.0, source, threads, on)
                    .map(|scores| scores.accuracy.unwrap_or(0.0)),
                false => evaluate(&self.0, source, threads, on).map(|scores| scores.r2),
            }
        });
        scored.map_err(raise)
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

    /// All weights, one class after the other: of features as the schema encodes them, within [-1, 1], or as they are expanded.
    #[getter]
    fn weights(&self) -> Vec<f64> {
        parts(self.0.affine()).1
    }

    /// The intercept that goes with them, or one for every class.
    #[getter]
    fn intercepts(&self) -> Vec<f64> {
        parts(self.0.affine()).0
    }

    /// Intercepts and weights of features as the model sees them: centred and scaled, where it does that.
    fn scaled(&self) -> (Vec<f64>, Vec<f64>) {
        parts(self.0.scaled())
    }

    /// The same of columns in their own units, categories as 0 and 1. None where features are expanded.
    fn natural(&self) -> Option<(Vec<f64>, Vec<f64>)> {
        self.0.natural().map(parts)
    }

    /// Whether rows far from the centre are clipped, so that the model is a weighted sum for the others only.
    #[getter]
    fn clips_rows(&self) -> bool {
        self.0.rows.is_some()
    }

    /// What tells the model file from any other; None if it was read from a file that has none.
    #[getter]
    fn digest(&self) -> Option<String> {
        self.0.digest()
    }

    /// The column that is predicted.
    #[getter]
    fn target(&self) -> &str {
        &self.0.target
    }

    /// The parameters of the estimator, as JSON, if the file has them.
    #[getter]
    fn parameters(&self) -> Option<String> {
        self.0.parameters.as_ref().map(|all| serde_json::to_string(all).expect("plain fields"))
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

    /// The page for people who did not make the model.
    fn label(&self) -> PyResult<String> {
        certificate::check(&self.0.certificate)?;
        Ok(self.0.label())
    }

    /// What a network does with each column: what is on the vertical axis, the names of its answers, and the columns.
    fn curves<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(String, Vec<String>, Vec<Bound<'py, PyDict>>)> {
        let curves = py.detach(|| Curves::of(&self.0)).map_err(raise)?;
        let none = || exception("ModelError", "only networks have curves", None);
        let Curves { what, outputs, columns } = curves.ok_or_else(none)?;
        let mut told = vec![];
        for column in &columns {
            let dict = PyDict::new(py);
            dict.set_item("name", &column.name)?;
            dict.set_item("hidden", column.hidden)?;
            dict.set_item("effect", column.effect)?;
            match &column.places {
                Places::Range(ends) => dict.set_item("range", ends)?,
                Places::Names(names) => dict.set_item("names", names)?,
            }
            let answers = 0..outputs.len().max(1);
            let means: Vec<Vec<f64>> = answers.map(|k| column.mean(k)).collect();
            dict.set_item("means", means)?;
            dict.set_item("settings", column.settings(0).collect::<Vec<_>>())?;
            told.push(dict);
        }
        Ok((what, outputs, told))
    }

    /// What columns and pairs add in an additive regression, those that explain most first: of each column its name, its share of the
    /// variance of predictions, places, what it adds there and what its linear part adds; of each pair the same over a square.
    fn bends<'py>(&self, py: Python<'py>) -> PyResult<[Vec<Bound<'py, PyDict>>; 2]> {
        let model = &self.0;
        let name = |feature: usize| model.encoding.features()[feature].name.clone();
        let VarianceShares { mut columns, mut pairs, .. } = model.shares_of_variance();
        columns.sort_by(|a, b| b.1.total_cmp(&a.1));
        pairs.sort_by(|a, b| b.1.total_cmp(&a.1));
        let column = |(feature, share): (usize, f64)| {
            let dict = PyDict::new(py);
            dict.set_item("name", name(feature))?;
            dict.set_item("share", share)?;
            if let Some(curve) = model.curve(feature, CURVE_POINTS) {
                dict.set_item("at", curve.at)?;
                dict.set_item("adds", curve.adds)?;
                dict.set_item("linear", curve.linear)?;
            }
            Ok(dict)
        };
        let pair = |((i, j), share): ((usize, usize), f64)| {
            let dict = PyDict::new(py);
            dict.set_item("names", (name(i), name(j)))?;
            dict.set_item("share", share)?;
            if let Some(map) = model.pair_map((i, j), MAP_POINTS) {
                dict.set_item("first", map.first)?;
                dict.set_item("second", map.second)?;
                dict.set_item("adds", map.adds)?;
            }
            Ok(dict)
        };
        let columns = columns.into_iter().map(column).collect::<PyResult<_>>()?;
        Ok([columns, pairs.into_iter().map(pair).collect::<PyResult<_>>()?])
    }

    /// Whether bends of columns are added to its linear part.
    #[getter]
    fn has_bends(&self) -> bool {
        self.0.bends.is_some()
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

/// All intercepts, and all weights.
fn parts(sums: Vec<quietly::Affine>) -> (Vec<f64>, Vec<f64>) {
    let (intercepts, weights): (Vec<f64>, Vec<Vec<f64>>) =
        sums.into_iter().map(|sum| (sum.intercept, sum.weights)).unzip();
    (intercepts, weights.concat())
}

/// How many threads may work: none or fewer than one means one for every core.
pub(crate) fn threads(n_jobs: Option<i64>) -> usize {
    match n_jobs {
        Some(count) if count > 0 => count.min(256) as usize,
        _ => std::thread::available_parallelism().map_or(1, |n| n.get()),
    }
}

pub(crate) fn bytes<'py>(py: Python<'py>, numbers: &[f64]) -> Bound<'py, PyByteArray> {
    let all: Vec<u8> = numbers.iter().flat_map(|x| x.to_ne_bytes()).collect();
    PyByteArray::new(py, &all)
}
