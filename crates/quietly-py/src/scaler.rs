//! Private means and standard deviations, and numbers scaled by them.
use std::ops::ControlFlow;

use pyo3::{
    prelude::*,
    types::{PyByteArray, PyDict},
};
use quietly::{Encoding, Kind};

use crate::{
    certificate::Certificate,
    errors::raise,
    ledger::LedgerFile,
    model::{bytes, threads},
    plan::Keywords,
    progress::watched,
    schema::Schema,
    table::Table,
};

/// Means and standard deviations of columns.
#[pyclass(frozen, module = "quietly._quietly")]
pub(crate) struct Scaler {
    moments: Vec<quietly::Moments>,
    encoding: Encoding,
    certificate: quietly::Certificate,
    /// Whether the mean is taken away, and whether numbers are divided by the standard deviation.
    with: (bool, bool),
}

impl Scaler {
    fn scaled(&self, moments: &quietly::Moments, x: f64) -> f64 {
        let from = if self.with.0 { moments.mean } else { 0.0 };
        let unit = if self.with.1 { moments.deviation } else { 1.0 };
        (x.clamp(moments.range.0, moments.range.1) - from) / unit
    }
}

#[pymethods]
impl Scaler {
    /// Asks the table once, within the budget.
    #[staticmethod]
    #[pyo3(signature = (table, schema, keywords, public, ledger=None))]
    fn fit(
        py: Python<'_>,
        table: &Table,
        schema: &Schema,
        keywords: &Bound<'_, PyDict>,
        public: Vec<String>,
        ledger: Option<&LedgerFile>,
    ) -> PyResult<Self> {
        let keywords = Keywords(keywords);
        let columns = table.source.columns();
        let encoding = Encoding::new(&schema.inner, columns, None, None).map_err(raise)?;
        let rows = keywords.count("rows")?.unwrap_or(schema.inner.rows);
        let budget = keywords.budget(rows, schema)?;
        let (key, threads) = (keywords.key()?, keywords.threads()?);
        let not_covered = keywords.not_covered()?;
        let yes = |name: &str| keywords.get(name, "True or False").map(|said| said.unwrap_or(true));
        let with = (yes("with_mean")?, yes("with_std")?);
        let (charge, run) = match ledger {
            Some(ledger) => {
                let (charge, run) = ledger.pay("means and standard deviations", budget, key)?;
                (charge, Some((ledger, run)))
            }
            None => (quietly::Charge::without_ledger(key), None),
        };
        let found = watched(py, None, |watch| {
            let unit = &schema.inner.unit;
            quietly::Moments::of(&table.source, &encoding, unit, budget, charge, threads, watch)
        });
        let (moments, mut certificate) = found?;
        if let Some((ledger, run)) = run {
            ledger.finish(&run);
        }
        certificate.public.extend(public);
        certificate.not_covered.extend(not_covered);
        Ok(Scaler { moments, encoding, certificate, with })
    }

    /// Every number of every row, scaled.
    #[pyo3(signature = (table, n_jobs=None))]
    fn transform<'py>(
        &self,
        py: Python<'py>,
        table: &Table,
        n_jobs: Option<i64>,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let encoding = self.encoding.predicting();
        let place = |kind: &Kind| match kind {
            Kind::Number { centre, half_width } => (*centre, *half_width),
            _ => (0.0, 1.0),
        };
        let places: Vec<(f64, f64)> =
            encoding.features().iter().map(|feature| place(&feature.kind)).collect();
        let all = py.detach(|| {
            let mut all = Vec::new();
            table.source.blocks(&encoding, threads(n_jobs), &mut |block| {
                for row in block.features.chunks_exact(block.width.max(1)) {
                    let each = row.iter().zip(&places).zip(&self.moments);
                    all.extend(
                        each.map(|((x, (centre, half)), m)| self.scaled(m, centre + half * x)),
                    );
                }
                ControlFlow::Continue(())
            })?;
            Ok::<_, quietly::DataError>(all)
        });
        Ok(bytes(py, &all.map_err(raise)?))
    }

    #[getter]
    fn means(&self) -> Vec<f64> {
        self.moments.iter().map(|m| m.mean).collect()
    }

    #[getter]
    fn deviations(&self) -> Vec<f64> {
        self.moments.iter().map(|m| m.deviation).collect()
    }

    /// The standard deviation of the noise in every mean.
    #[getter]
    fn noise(&self) -> Vec<f64> {
        self.moments.iter().map(|m| m.noise).collect()
    }

    /// What no scaled number of a column lies beyond: it follows from the schema and what was released.
    #[getter]
    fn ranges(&self) -> Vec<(f64, f64)> {
        let end = |m, x| self.scaled(m, x);
        self.moments.iter().map(|m| (end(m, m.range.0), end(m, m.range.1))).collect()
    }

    #[getter]
    fn certificate(&self) -> Certificate {
        Certificate(self.certificate.clone())
    }

    fn to_json(&self) -> String {
        let all = (&self.moments, &self.encoding, &self.certificate, self.with);
        serde_json::to_string(&all).expect("plain fields")
    }

    #[staticmethod]
    fn of_json(text: &str) -> PyResult<Self> {
        let read = serde_json::from_str(text);
        let (moments, encoding, certificate, with) = read.map_err(|_| {
            let path = "what was pickled".into();
            raise(quietly::Error::Model { path, why: "it is damaged".into() })
        })?;
        Ok(Scaler { moments, encoding, certificate, with })
    }
}
