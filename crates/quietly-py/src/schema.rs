//! What is public about a table.
use std::path::PathBuf;

use pyo3::{
    prelude::*,
    types::{PyDict, PyTuple},
};
use quietly::{Missing, Rule, Value};

use crate::{
    errors::{exception, guard, raise},
    model::Model,
    plan::refusal,
};

/// What is publicly known about a table, written down before it is read.
///
/// A number has a range, a category its values:
///
/// >>> import quietly
/// >>> schema = quietly.Schema(age=(0, 100), sex=["F", "M"], rows=30_000, unit="person")
/// >>> schema.columns
/// ['age', 'sex']
///
/// Parameters
/// ----------
/// columns : dict or None, default None
///     What is known of each column, by its name; for names that are no words of Python. "*" stands for all that are not named.
///     A range is a pair of numbers, (0, 100): cells beyond it are cut. A category is a list of its values, ["F", "M"]: others
///     are missing. A dict says more: {"range": (0, 80), "missing": 40}, where missing is a number, "middle" or "drop", and
///     "numbers_in_text": True reads numbers in a column of texts; or
///     {"values": ["A", "B"], "other": True}, where all other values make one more.
/// rows : int or None, default None
///     About how many rows there are. It need only be about right.
/// unit : str, default "row"
///     What one row is, in a word; or what has several rows, if ``rows_per_unit`` says so.
/// rows_per_unit : int, default 1
///     How many rows a unit has, at most. Epsilon and delta are then for all of them together. With 1, one row is protected at a time,
///     and a person with several rows is not protected at that epsilon.
/// missing : "middle" or "drop", default "middle"
///     What becomes of cells of a number that are missing or cannot be read: the middle of the range, or the row counts as none.
/// features : int or None, default None
///     How many features there are, for files of libsvm text.
/// others : keywords
///     Columns by name, as in ``columns``: age=(0, 100).
#[pyclass(frozen, eq, module = "quietly._quietly")]
#[derive(Clone, PartialEq)]
pub(crate) struct Schema {
    pub(crate) inner: quietly::Schema,
    has_rows: bool,
    /// The ledger that all fits are charged to.
    ledger: Option<PathBuf>,
}

#[pymethods]
impl Schema {
    #[new]
    #[pyo3(signature = (columns=None, /, *, rows=None, unit=None, rows_per_unit=None, missing=None, features=None, **others),
           text_signature = "(columns=None, /, *, rows=None, unit='row', rows_per_unit=1, missing='middle', features=None, **others)")]
    fn new(
        columns: Option<&Bound<'_, PyAny>>,
        rows: Option<&Bound<'_, PyAny>>,
        unit: Option<&Bound<'_, PyAny>>,
        rows_per_unit: Option<&Bound<'_, PyAny>>,
        missing: Option<&Bound<'_, PyAny>>,
        features: Option<&Bound<'_, PyAny>>,
        others: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let no_dict = |given: &Bound<'_, PyAny>| {
            let want = "a dict, such as {\"age\": (0, 100), \"sex\": [\"F\", \"M\"]}";
            wrong(&refusal("columns", want, given))
        };
        let columns = columns.map(|given| given.cast::<PyDict>().map_err(|_| no_dict(given)));
        let columns = columns.transpose()?;
        let mut rules: Vec<(String, Rule)> = Vec::new();
        let mut numbers_in_text = Vec::new();
        for (name, said) in columns.into_iter().chain(others).flatten() {
            let text = name.extract::<String>();
            let name = text.map_err(|_| {
                let want = "a text, as that of x0 for a column without a name";
                wrong(&refusal("the name of a column", want, &name))
            })?;
            if rules.iter().any(|(known, _)| *known == name) {
                return Err(wrong(&format!("column {name:?} is there twice")));
            }
            let rule = rule(&name, &said)?;
            if is_number_in_text(&said) {
                numbers_in_text.push(name.clone());
            }
            rules.push((name, rule));
        }
        let missing = match missing.map(|said| (said, said.extract::<String>())) {
            None => Missing::Middle,
            Some((_, Ok(word))) if word == "middle" => Missing::Middle,
            Some((_, Ok(word))) if word == "drop" => Missing::Drop,
            Some((said, _)) => {
                return Err(wrong(&refusal("missing", "\"middle\" or \"drop\"", said)));
            }
        };
        let count = |name, given: Option<&Bound<'_, PyAny>>| -> PyResult<Option<u64>> {
            let Some(given) = given else { return Ok(None) };
            let refused = || wrong(&refusal(name, "a whole number, at least 1", given));
            let count = given.extract().ok().filter(|count| *count > 0);
            count.map(Some).ok_or_else(refused)
        };
        let rows = count("rows", rows)?;
        let features = count("features", features)?.map(|count| count as usize);
        let unit = match unit {
            None => "row".into(),
            Some(said) => {
                let no_word = |_| wrong(&refusal("unit", "a word for what one row is", said));
                said.extract().map_err(no_word)?
            }
        };
        let rows_per_unit = count("rows_per_unit", rows_per_unit)?.unwrap_or(1);
        let declared = rows.unwrap_or(1);
        let schema = quietly::Schema {
            rows: declared,
            unit,
            rows_per_unit,
            missing,
            features,
            columns: rules,
            numbers_in_text,
            ..Default::default()
        };
        Schema::checked(&schema.to_toml(), rows.is_some(), None)
    }

    /// A schema from a TOML file, as the command line reads it.
    ///
    /// Raises SchemaError where it says something impossible, FileError if it cannot be read.
    #[staticmethod]
    fn read(path: PathBuf) -> PyResult<Self> {
        guard(|| {
            let inner = quietly::Schema::read(&path).map_err(raise_data)?;
            let ledger = quietly::LedgerSettings::read(&path).map_err(raise_data)?.ledger;
            // A process that has another working directory means the same file.
            let ledger = ledger.map(|ledger| std::path::absolute(&ledger).unwrap_or(ledger));
            Ok(Schema { inner, has_rows: true, ledger })
        })
    }

    /// A schema from TOML text, as ``to_toml`` writes it. ``has_rows`` is False if its number of rows is not to be taken. ``ledger`` is the
    /// path of the ledger that fits are charged to.
    #[staticmethod]
    #[pyo3(name = "parse", signature = (text, has_rows=true, ledger=None))]
    fn checked(text: &str, has_rows: bool, ledger: Option<PathBuf>) -> PyResult<Self> {
        guard(|| {
            let inner = quietly::Schema::parse(text).map_err(raise_data)?;
            // A text has no folder: a ledger that it names is relative to the working directory.
            let named = inner.ledger.as_ref().map(PathBuf::from);
            let ledger = ledger.or(named).map(|path| std::path::absolute(&path).unwrap_or(path));
            Ok(Schema { inner, has_rows, ledger })
        })
    }

    /// The schema as TOML, for the command line, which needs the number of rows.
    ///
    /// Raises SchemaError if that is missing.
    fn to_toml(&self) -> PyResult<String> {
        let missing = "the schema has no number of rows, without which it cannot be written: Schema(..., rows=30_000)";
        self.has_rows.then(|| self.inner.to_toml()).ok_or_else(|| wrong(missing))
    }

    /// About how many rows there are, if the schema says so.
    #[getter]
    fn rows(&self) -> Option<u64> {
        self.has_rows.then_some(self.inner.rows)
    }

    /// How many rows a unit has, at most.
    #[getter]
    fn rows_per_unit(&self) -> u64 {
        self.inner.rows_per_unit
    }

    /// The ledger that the schema's file names: every fit is charged to it. None if it names none.
    #[getter]
    fn ledger(&self) -> Option<PathBuf> {
        self.ledger.clone()
    }

    /// Whether charges depend on it: it names a ledger, or units of several rows.
    #[getter]
    fn charges_units(&self) -> bool {
        self.ledger.is_some() || self.inner.rows_per_unit > 1
    }

    /// The same with the unit, the rows of a unit and the ledger of another: for columns that were made from its columns.
    fn charged_like(&self, other: &Schema) -> Self {
        let mut inner = self.inner.clone();
        (inner.unit, inner.rows_per_unit) = (other.inner.unit.clone(), other.inner.rows_per_unit);
        Schema { inner, has_rows: self.has_rows, ledger: other.ledger.clone() }
    }

    /// The same with numbers written as in the table that a model was fitted on.
    fn written_like(&self, model: &Model) -> Self {
        let mut inner = self.inner.clone();
        inner.notation = model.0.encoding.notation();
        Schema { inner, has_rows: self.has_rows, ledger: self.ledger.clone() }
    }

    /// The names of the columns that are described; "*" stands for all others.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.inner.columns.iter().map(|(name, _)| name.clone()).collect()
    }

    /// The same with a rule for one more column.
    fn with_column(&self, name: String, said: &Bound<'_, PyAny>) -> PyResult<Self> {
        let rule = rule(&name, said)?;
        let mut inner = self.inner.clone();
        if is_number_in_text(said) {
            inner.numbers_in_text.push(name.clone());
        }
        inner.columns.push((name, rule));
        Schema::checked(&inner.to_toml(), self.has_rows, self.ledger.clone())
    }

    /// The same for a table that has only these of its columns.
    fn for_columns(&self, there: Vec<String>) -> Self {
        let mut inner = self.inner.clone();
        inner.columns.retain(|(name, _)| name == "*" || there.contains(name));
        Schema { inner, has_rows: self.has_rows, ledger: self.ledger.clone() }
    }

    /// What a column holds, as the schema says: "range", "numbers in texts", "texts", "numbers", "truths" or "values"; None if it does not say. Texts that are
    /// numbers or truths count as such: they are found among these, too.
    fn holds(&self, name: &str) -> Option<&'static str> {
        let (_, rule) = self.inner.columns.iter().find(|(column, _)| column == name)?;
        let Rule::Values { values, .. } = rule else {
            let insists = self.inner.numbers_in_text.iter().any(|column| column == name);
            return Some(if insists { "numbers in texts" } else { "range" });
        };
        let kind = |value: &Value| match value {
            Value::Bool(_) => "truths",
            Value::Number(_) => "numbers",
            Value::Text(text) if text.parse::<f64>().is_ok() => "numbers",
            Value::Text(text) if ["true", "false"].contains(&text.to_lowercase().as_str()) => {
                "truths"
            }
            Value::Text(_) => "texts",
        };
        let first = kind(values.first()?);
        Some(if values.iter().all(|value| kind(value) == first) { first } else { "values" })
    }

    /// Whether the first line of CSV holds names, even where they look like data.
    #[getter]
    fn header(&self) -> bool {
        self.inner.header
    }

    /// How many features libsvm text has.
    #[getter]
    fn features(&self) -> Option<usize> {
        self.inner.features
    }

    fn __repr__(&self) -> String {
        let has_rows = if self.has_rows { "" } else { ", has_rows=False" };
        let ledger =
            self.ledger.as_ref().map_or(String::new(), |path| format!(", ledger={path:?}"));
        format!("Schema.parse({:?}{has_rows}{ledger})", self.inner.to_toml())
    }

    #[allow(clippy::type_complexity)]
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (String, bool, Option<PathBuf>))> {
        let parse = py.get_type::<Schema>().getattr("parse")?;
        Ok((parse, (self.inner.to_toml(), self.has_rows, self.ledger.clone())))
    }
}

fn raise_data(error: quietly::DataError) -> PyErr {
    raise(error)
}

fn wrong(message: &str) -> PyErr {
    exception("SchemaError", message, None)
}

fn rule(name: &str, said: &Bound<'_, PyAny>) -> PyResult<Rule> {
    let want = "a range such as (0, 100), a list of values such as [\"F\", \"M\"], or a dict with one of them";
    let want = || wrong(&refusal(&format!("column {name:?}"), want, said));
    if let Ok(dict) = said.cast::<PyDict>() {
        let rule = match (dict.get_item("range")?, dict.get_item("values")?) {
            (Some(ends), None) => range(name, &ends)?.ok_or_else(want)?,
            (None, Some(values)) => rule(name, &values)?,
            _ => return Err(want()),
        };
        let known: &[&str] = match rule {
            Rule::Range { .. } => &["range", "missing", "numbers_in_text"],
            Rule::Values { .. } => &["values", "other"],
        };
        for key in dict.keys() {
            let key = key.extract::<String>().map_err(|_| want())?;
            if !known.contains(&key.as_str()) {
                return Err(wrong(&format!(
                    "column {name:?} has {}, beside which there may be {}, but not {key:?}",
                    known[0],
                    known[1..].join(" or ")
                )));
            }
        }
        if dict.get_item("numbers_in_text")?.is_some_and(|said| said.extract::<bool>().is_err()) {
            return Err(want());
        }
        let (missing, other) = (dict.get_item("missing")?, dict.get_item("other")?);
        return match rule {
            Rule::Range { lo, hi, .. } => {
                let missing = match missing {
                    None => None,
                    Some(word) if word.extract::<&str>().is_ok_and(|w| w == "middle") => {
                        Some(Missing::Middle)
                    }
                    Some(word) if word.extract::<&str>().is_ok_and(|w| w == "drop") => {
                        Some(Missing::Drop)
                    }
                    Some(number) => Some(Missing::Number(number.extract().map_err(|_| want())?)),
                };
                Ok(Rule::Range { lo, hi, missing })
            }
            Rule::Values { values, .. } => {
                let other = other.map_or(Ok(false), |o| o.extract::<bool>()).map_err(|_| want())?;
                Ok(Rule::Values { values, other })
            }
        };
    }
    if said.is_instance_of::<PyTuple>() {
        return range(name, said)?.ok_or_else(want);
    }
    let values: Vec<Bound<'_, PyAny>> = said.extract().map_err(|_| want())?;
    let values = values.iter().map(value).collect::<Option<Vec<Value>>>().ok_or_else(want)?;
    if let [Value::Number(lo), Value::Number(hi)] = values[..]
        && hi > lo + 2.0
    {
        // Most likely a range was meant.
        let text = format!(
            "{name}=[{lo}, {hi}] lists two values, and whatever is neither of them is missing; a range is written {name}=({lo}, {hi})"
        );
        let text = std::ffi::CString::new(text.replace('\0', "")).unwrap_or_default();
        PyErr::warn(said.py(), &said.py().get_type::<pyo3::exceptions::PyUserWarning>(), &text, 1)?;
    }
    Ok(Rule::Values { values, other: false })
}

/// Whether the rule of a range insists that texts of the column are numbers.
fn is_number_in_text(said: &Bound<'_, PyAny>) -> bool {
    let said = said.cast::<PyDict>().ok().and_then(|dict| dict.get_item("numbers_in_text").ok()?);
    said.is_some_and(|said| said.extract().unwrap_or(false))
}

/// Two ends; none if it is something else.
fn range(name: &str, said: &Bound<'_, PyAny>) -> PyResult<Option<Rule>> {
    let Ok(ends) = said.extract::<Vec<f64>>() else { return Ok(None) };
    let [lo, hi] = ends[..] else { return Ok(None) };
    if !(lo.is_finite() && hi.is_finite()) {
        return Err(wrong(&format!(
            "the range of column {name:?} must be two finite numbers, but is ({lo}, {hi})"
        )));
    }
    Ok(Some(Rule::Range { lo, hi, missing: None }))
}

/// A value that a column may hold.
fn value(said: &Bound<'_, PyAny>) -> Option<Value> {
    if let Ok(text) = said.extract::<String>() {
        return Some(Value::Text(text));
    }
    if let Ok(truth) = said.extract::<bool>() {
        return Some(Value::Bool(truth));
    }
    said.extract::<f64>().ok().filter(|x| x.is_finite()).map(|x| Value::Number(x + 0.0))
}
