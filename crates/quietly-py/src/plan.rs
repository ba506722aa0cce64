//! Plans: the releases of a fit and their cost, before any row is read.
use pyo3::{prelude::*, types::PyDict};
use quietly::{
    Budget, Encoding, Family, Key, ModelSpec, Neighbours, PARAMETERS, ParameterInfo, ParameterKind,
    ParameterValue, RENAMED,
};

use crate::{
    errors::{exception, guard, raise},
    ledger::relation,
    model::threads,
    schema::Schema,
};

/// Every release that a fit will make, and its cost; planned from public values, before any row is read.
///
/// It prints as text and shows as HTML in notebooks. ``estimator.plan()`` makes one, and fitted estimators have theirs: ``plan_``.
#[pyclass(frozen, module = "quietly._quietly")]
pub(crate) struct Plan(pub(crate) quietly::PlanRecord);

#[pymethods]
impl Plan {
    /// The plan for a table with these columns; no row is read.
    #[staticmethod]
    fn of(columns: Vec<String>, schema: &Schema, keywords: &Bound<'_, PyDict>) -> PyResult<Self> {
        guard(|| Ok(Plan(Keywords(keywords).plan(schema, &columns, false)?.1.record())))
    }

    /// What the fit will cost: the certified upper bound on epsilon. Never above the budget.
    #[getter]
    fn epsilon(&self) -> f64 {
        self.0.unit_epsilon()
    }

    /// The delta at which it holds.
    #[getter]
    fn delta(&self) -> f64 {
        self.0.unit_budget().delta()
    }

    /// About how many rows there are, as it was declared.
    #[getter]
    fn rows(&self) -> u64 {
        self.0.rows()
    }

    /// The method that was chosen: "full-batch", "one-pass" and so on, as ``quietly methods`` lists them.
    #[getter]
    fn method(&self) -> &'static str {
        self.0.method().name()
    }

    /// What the planner wants to be known: that the budget is too small to learn much, say.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.0.warnings.clone()
    }

    /// Why this model, where the planner chose it: the public number that decided. None where the model was named.
    #[getter]
    fn why(&self) -> Option<String> {
        self.0.why.clone()
    }

    /// The whole plan as JSON.
    fn to_json(&self) -> String {
        serde_json::to_string_pretty(&self.0).expect("plain fields")
    }

    fn _repr_html_(&self) -> String {
        self.0.fragment()
    }

    fn __str__(&self) -> String {
        let warnings: String = self.0.warnings.iter().map(|w| format!("\nwarning: {w}")).collect();
        let why = self.0.why.as_ref().map_or(String::new(), |why| format!("{why}\n"));
        why + &self.0.to_string() + &warnings
    }

    fn __repr__(&self) -> String {
        self.0.to_string()
    }
}

/// What is wrong with something that a caller wrote, which is public.
pub(crate) fn refusal(name: &str, want: &str, given: &Bound<'_, PyAny>) -> String {
    let kind = given.get_type().name().map_or("something else".into(), |n| n.to_string());
    let got = match kind.as_str() {
        "int" | "float" | "bool" | "str" | "NoneType" => given.repr().map(|r| r.to_string()).ok(),
        _ => None,
    };
    let got = got.filter(|text| text.len() <= 60).unwrap_or(format!("of type {kind}"));
    format!("{name} must be {want}, but is {got}")
}

/// The parameters of an estimator, by name.
pub(crate) struct Keywords<'a, 'py>(pub(crate) &'a Bound<'py, PyDict>);

impl Keywords<'_, '_> {
    /// A parameter, if it is there and not None.
    pub(crate) fn get<T>(&self, name: &str, want: &str) -> PyResult<Option<T>>
    where
        T: for<'a, 'p> FromPyObject<'a, 'p>,
    {
        let Some(given) = self.0.get_item(name)?.filter(|given| !given.is_none()) else {
            return Ok(None);
        };
        let refused = || exception("ParameterError", &refusal(name, want, &given), None);
        given.extract().map(Some).map_err(|_| refused())
    }

    pub(crate) fn number(&self, name: &str) -> PyResult<Option<f64>> {
        self.get(name, "a number")
    }

    pub(crate) fn count(&self, name: &str) -> PyResult<Option<u64>> {
        self.get(name, "a whole number, at least 1")
    }

    pub(crate) fn word(&self, name: &str) -> PyResult<Option<String>> {
        self.get(name, "a word")
    }

    /// What the certificate must say that it does not cover, beside what it always says.
    pub(crate) fn not_covered(&self) -> PyResult<Vec<String>> {
        Ok(self.get("not_covered", "a list of sentences")?.unwrap_or_default())
    }

    /// The parameters that the model file is to keep for `load`, which come as JSON.
    pub(crate) fn parameters(
        &self,
    ) -> PyResult<Option<serde_json::Map<String, serde_json::Value>>> {
        let wrong =
            |_| exception("ParameterError", "the parameters cannot be written to a file", None);
        let text = self.word("parameters")?;
        text.map(|text| serde_json::from_str(&text).map_err(wrong)).transpose()
    }

    /// The encoding of a table with these columns, and the plan; `sparse` if the table leaves zeros out.
    pub(crate) fn plan(
        &self,
        schema: &Schema,
        columns: &[String],
        sparse: bool,
    ) -> PyResult<(Encoding, quietly::Plan)> {
        let target = self.word("target")?.unwrap_or_default();
        let mut encoding =
            Encoding::new(&schema.inner, columns, None, Some(&target)).map_err(raise)?;
        let spec = self.spec()?;
        // As the command line does: these families keep zeros out of the way.
        let family = spec.family.of_target(&encoding);
        if sparse && !matches!(family, Family::Linear | Family::Relu | Family::Kan) {
            encoding = encoding.with_symmetric_ranges();
        }
        let rows = self.count("rows")?.unwrap_or(schema.inner.rows);
        let plan = spec.plan(&encoding, rows, self.budget(rows, schema)?);
        Ok((encoding, plan.map_err(raise)?))
    }

    pub(crate) fn neighbours(&self) -> PyResult<Neighbours> {
        relation(&self.word("neighbours")?.unwrap_or_default())
    }

    /// What may be spent on a unit of about so many rows in all.
    pub(crate) fn budget(&self, rows: u64, schema: &Schema) -> PyResult<Budget> {
        let none = || {
            let message =
                "epsilon must be a number from 0.001 to 1000, or inf for no privacy, but is None";
            exception("ParameterError", message, None)
        };
        let epsilon = self.number("epsilon")?.ok_or_else(none)?;
        let budget = Budget::usual(epsilon, self.number("delta")?, rows).map_err(raise)?;
        budget.under(self.neighbours()?).for_units_of(schema.inner.rows_per_unit).map_err(raise)
    }

    /// The operating system's randomness, or that of a seed.
    pub(crate) fn key(&self) -> PyResult<Key> {
        match self.get("random_state", "None or a whole number from 0")? {
            Some(seed) => Ok(Key::from_seed(seed)),
            None => Key::from_os().map_err(raise),
        }
    }

    /// The callback for progress.
    pub(crate) fn tell(&self) -> PyResult<Option<Py<PyAny>>> {
        self.get("tell", "None, or something to call")
    }

    /// How many threads may work.
    pub(crate) fn threads(&self) -> PyResult<usize> {
        Ok(threads(self.get("n_jobs", "None or a whole number")?))
    }

    /// The model that the parameters ask for.
    pub(crate) fn spec(&self) -> PyResult<ModelSpec> {
        let family = self.word("family")?.unwrap_or_default();
        let family = Family::named(&family).ok_or_else(|| {
            exception("ParameterError", "family must be one that models have", None)
        })?;
        let mut spec = ModelSpec::new(family);
        for ParameterInfo { name, kind, .. } in PARAMETERS {
            let value = match kind {
                ParameterKind::Number => self.number(name)?.map(ParameterValue::Number),
                ParameterKind::Count => self.count(name)?.map(ParameterValue::Count),
                ParameterKind::Counts => {
                    let want = "a sequence of whole numbers, such as (32, 16)";
                    self.get(name, want)?.map(ParameterValue::Counts)
                }
                ParameterKind::Word => match self.number(name) {
                    Ok(number) => number.map(ParameterValue::Number),
                    Err(_) => self.word(name)?.map(ParameterValue::Word),
                },
            };
            if let Some(value) = value {
                spec.set(name, value).map_err(raise)?;
            }
        }
        Ok(spec)
    }
}

/// Name, type and meaning of all parameters that models declare.
#[pyfunction]
pub(crate) fn parameters() -> Vec<(&'static str, &'static str, String)> {
    let kind = |info: &ParameterInfo| match info.kind {
        ParameterKind::Number => "float or None, default None",
        ParameterKind::Count => "int or None, default None",
        ParameterKind::Counts => "sequence of int or None, default None",
        ParameterKind::Word => "str or None, default None",
    };
    let help = |info: &ParameterInfo| info.help.trim().replace('`', "``") + ".";
    PARAMETERS.iter().map(|info| (info.name, kind(info), help(info))).collect()
}

/// Old and new names of parameters.
#[pyfunction]
pub(crate) fn renamed_parameters() -> Vec<(&'static str, &'static str)> {
    RENAMED.to_vec()
}
