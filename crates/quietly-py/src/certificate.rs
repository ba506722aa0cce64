//! Certificates.
use pyo3::{prelude::*, types::PyDict};
use quietly::Label;

use crate::errors::exception;

/// What a release promises, and why: the proof that goes with a model.
///
/// It prints as text, shows as HTML in notebooks, and has forms for programs (``to_json``) and for people who have to approve
/// a release (``label``). It holds parameters and theorems, and no data. Fitted estimators have one: ``certificate_``.
#[pyclass(frozen, module = "quietly._quietly")]
pub(crate) struct Certificate(pub(crate) quietly::Certificate);

#[pymethods]
impl Certificate {
    /// The certificate that ``to_json`` wrote.
    #[staticmethod]
    fn of_json(text: &str) -> PyResult<Self> {
        let damaged =
            || exception("ModelError", "this is not a certificate, or it is damaged", Some("Q04"));
        quietly::certificate_from_json(text).map(Certificate).ok_or_else(damaged)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        let of_json = py.get_type::<Certificate>().getattr("of_json")?;
        Ok((of_json, (serde_json::to_string(&self.0).expect("plain fields"),)))
    }

    /// What was spent: the certified upper bound on epsilon. Never above the budget.
    #[getter]
    fn epsilon(&self) -> f64 {
        self.0.epsilon
    }

    /// The epsilon of the budget.
    #[getter]
    fn budget(&self) -> f64 {
        self.0.budget.epsilon()
    }

    /// The delta at which epsilon holds.
    #[getter]
    fn delta(&self) -> f64 {
        self.0.budget.delta()
    }

    /// The neighbouring relation: "add-remove" or "replace-one".
    #[getter]
    fn neighbours(&self) -> &'static str {
        self.0.budget.neighbours().name()
    }

    /// What one row is: the unit of privacy.
    #[getter]
    fn unit(&self) -> &str {
        &self.0.unit
    }

    /// (delta, epsilon) pairs, each of which holds. None without noise; the only pair has delta 0 where delta is 0.
    #[getter]
    fn curve(&self) -> Vec<(f64, f64)> {
        self.0.curve.clone()
    }

    /// About how many rows were used, with noise: a dict of about, deviation, declared and laplace (the kind of noise); None for older files.
    #[getter]
    fn rows_used<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(used) = &self.0.rows_used else { return Ok(None) };
        let told = PyDict::new(py);
        told.set_item("about", used.about)?;
        told.set_item("deviation", used.deviation)?;
        told.set_item("declared", used.declared)?;
        told.set_item("laplace", used.laplace)?;
        Ok(Some(told))
    }

    /// What to look into, if far fewer or far more rows were used than declared.
    #[getter]
    fn rows_warning(&self) -> Option<String> {
        self.0.rows_used.and_then(|used| used.warning())
    }

    /// What was taken to be public, one sentence each.
    #[getter]
    fn public(&self) -> Vec<String> {
        self.0.public.clone()
    }

    /// What no part of this promises, one sentence each.
    #[getter]
    fn not_covered(&self) -> Vec<String> {
        self.0.not_covered.clone()
    }

    /// Whether it was made with a fixed seed, or without any noise: not for release.
    #[getter]
    fn test_only(&self) -> bool {
        self.0.test_only
    }

    /// What the price means for one person, in words.
    fn odds(&self) -> String {
        self.0.odds()
    }

    /// The whole certificate as JSON, as it is in the model file.
    fn to_json(&self) -> String {
        serde_json::to_string_pretty(&self.0).expect("plain fields")
    }

    /// The certificate as one HTML page: no scripts, nothing from elsewhere.
    ///
    /// Raises ModelError if the listed releases do not cost the certified epsilon: then its file was edited.
    fn label(&self) -> PyResult<String> {
        check(&self.0)?;
        Ok(self.0.label())
    }

    fn _repr_html_(&self) -> String {
        self.0.fragment()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        self.0.to_string()
    }
}

/// Refuses certificates that were changed.
pub(crate) fn check(certificate: &quietly::Certificate) -> PyResult<()> {
    if certificate.is_consistent() {
        return Ok(());
    }
    let why = "the releases in this certificate do not cost what it says: it was changed, or another version made it";
    Err(exception("ModelError", why, Some("Q04")))
}
