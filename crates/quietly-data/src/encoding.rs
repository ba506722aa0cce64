use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::{
    Error, Missing, Rule, Schema, Value,
    error::{all_nearest, nearest},
};

/// How the cells of a row become numbers in [-1, 1]. Public: it comes from the schema alone.
///
/// A number is clamped to its range [lo, hi] and moved to [-1, 1]. A category becomes one feature,
/// 0 or 1, for each value but the first. The target is clamped and keeps its own units.
///
/// ```
/// use quietly_data::{Encoding, Kind, Schema};
///
/// let schema = Schema::parse(
///     r#"
///     rows = 100
///     [columns]
///     age  = { range = [0, 100] }
///     city = { values = ["A", "B"], other = true }
///     pay  = { range = [0, 1e5] }
///     "#,
/// )?;
/// let columns = ["id", "age", "city", "pay"].map(String::from);
/// let encoding = Encoding::new(&schema, &columns, None, Some("pay"))?;
/// let names: Vec<&str> = encoding.features().iter().map(|f| f.name.as_str()).collect();
/// assert_eq!(names, ["age", "city=B", "city=other"]);
/// assert_eq!(encoding.features()[0].kind, Kind::Number { centre: 50.0, half_width: 50.0 });
/// assert_eq!(encoding.ignored(), ["id"]);
/// # Ok::<(), quietly_data::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Encoding {
    inputs: Vec<Input>,
    target: Option<Target>,
    features: Vec<Feature>,
    ignored: Vec<String>,
    predicting: bool,
}

/// One number of an encoded row.
#[derive(Clone, Debug, PartialEq)]
pub struct Feature {
    /// `age`, `city=B` or `city=other`.
    pub name: String,
    /// The column it comes from.
    pub column: String,
    /// How it comes from there.
    pub kind: Kind,
}

/// How a feature comes from its column.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Kind {
    /// (x - centre) / half_width, of x clamped to its range.
    Number {
        /// The middle of the range.
        centre: f64,
        /// From the middle to either end.
        half_width: f64,
    },
    /// 1 if the cell is this value, otherwise 0.
    Category {
        /// The value.
        value: Value,
    },
    /// 1 if the cell is none of the declared values, otherwise 0.
    Other,
}

/// The column to be predicted, and its public bounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// The name of the column.
    pub name: String,
    /// The least value.
    pub lo: f64,
    /// The greatest value.
    pub hi: f64,
}

/// A column that features come from. A range has its missing rule filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Input {
    pub(crate) column: String,
    pub(crate) rule: Rule,
}

/// What a model file keeps of an encoding; the rest follows.
#[derive(Serialize, Deserialize)]
struct Stored {
    inputs: Vec<Input>,
    target: Option<Target>,
}

impl Encoding {
    /// The encoding of a table with these columns.
    ///
    /// Without `features`, all columns of the schema except the target are features, those of `*`
    /// in the order of the file. Columns that the schema does not describe are
    /// [`ignored`](Self::ignored).
    ///
    /// # Errors
    ///
    /// If a name is not in the schema or not in the table, if the target has no range, or if no
    /// feature is left.
    pub fn new(
        schema: &Schema,
        columns: &[String],
        features: Option<&[String]>,
        target: Option<&str>,
    ) -> Result<Self, Error> {
        let there: HashSet<&str> = columns.iter().map(String::as_str).collect();
        let wanted: Vec<String> = match features {
            Some(names) => distinct(names.iter().map(String::as_str)),
            None => default_features(schema, columns, target),
        };
        if let Some(name) = target
            && wanted.iter().any(|w| w == name)
        {
            let problem = "it is among the features; leave it out there";
            return Err(Error::Target { name: name.into(), problem });
        }
        let asked = || wanted.iter().map(String::as_str).chain(target);
        let unknown: Vec<String> =
            asked().filter(|n| schema.rule(n).is_none()).map(Into::into).collect();
        if !unknown.is_empty() {
            let near = all_nearest(&unknown, schema.columns.iter().map(|(name, _)| name.as_str()));
            return Err(Error::UnknownColumns { names: unknown, near });
        }
        let absent: Vec<String> = asked().filter(|n| !there.contains(n)).map(Into::into).collect();
        if !absent.is_empty() {
            return Err(missing_columns(absent, columns));
        }
        let target = target.map(|name| Target::new(schema, name)).transpose()?;
        let inputs = wanted.into_iter().map(|column| Input::new(schema, column)).collect();
        let mut encoding = Encoding::from_inputs(inputs, target)?;
        let used: HashSet<&str> = encoding.columns().collect();
        let ignored = columns.iter().filter(|c| !used.contains(c.as_str())).cloned().collect();
        encoding.ignored = ignored;
        Ok(encoding)
    }

    fn from_inputs(inputs: Vec<Input>, target: Option<Target>) -> Result<Self, Error> {
        let features: Vec<Feature> = inputs.iter().flat_map(Input::features).collect();
        if features.is_empty() {
            let problem = "wanted at least one column with a range, or with two values";
            return Err(Error::NoFeatures { problem });
        }
        Ok(Encoding { inputs, target, features, ignored: Vec::new(), predicting: false })
    }

    /// The same encoding for prediction: no target is read and no row is left out, so that row i
    /// of what is read is row i of the file. A value that was not declared counts as the baseline
    /// (as `other` where that is declared), a missing number as its fill or the middle.
    #[must_use]
    pub fn predicting(&self) -> Self {
        Encoding { predicting: true, ..self.clone() }
    }

    /// Whether this is for prediction.
    pub fn is_predicting(&self) -> bool {
        self.predicting
    }

    /// The numbers of an encoded row.
    pub fn features(&self) -> &[Feature] {
        &self.features
    }

    /// How many numbers an encoded row has.
    pub fn width(&self) -> usize {
        self.features.len()
    }

    /// The target.
    pub fn target(&self) -> Option<&Target> {
        self.target.as_ref()
    }

    /// The columns of the file that are not used.
    pub fn ignored(&self) -> &[String] {
        &self.ignored
    }

    /// The columns that are read: those of the features and, unless predicting, the target.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        let target = self.target.as_ref().filter(|_| !self.predicting).map(|t| t.name.as_str());
        self.inputs.iter().map(|i| i.column.as_str()).chain(target)
    }

    pub(crate) fn inputs(&self) -> &[Input] {
        &self.inputs
    }
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut seen = HashSet::new();
    names.filter(|n| seen.insert(*n)).map(Into::into).collect()
}

fn default_features(schema: &Schema, columns: &[String], target: Option<&str>) -> Vec<String> {
    let named: HashSet<&str> = schema.columns.iter().map(|(name, _)| name.as_str()).collect();
    let mut names = Vec::new();
    for (name, _) in &schema.columns {
        match name.as_str() {
            "*" => names.extend(columns.iter().filter(|c| !named.contains(c.as_str()))),
            _ => names.push(name),
        }
    }
    distinct(names.into_iter().map(String::as_str).filter(|n| Some(*n) != target))
}

/// The error for columns that are not in the table.
pub(crate) fn missing_columns(names: Vec<String>, columns: &[String]) -> Error {
    let near = names.iter().take(20).filter_map(|n| nearest(n, columns.iter().map(|c| c.as_str())));
    let near = distinct(near);
    Error::MissingColumns { names, near }
}

impl Target {
    fn new(schema: &Schema, name: &str) -> Result<Self, Error> {
        match schema.rule(name) {
            Some(Rule::Range { lo, hi, .. }) => Ok(Target { name: name.into(), lo: *lo, hi: *hi }),
            _ => {
                let problem = "the target needs a range, such as { range = [0, 1] }";
                Err(Error::Target { name: name.into(), problem })
            }
        }
    }
}

impl Input {
    fn new(schema: &Schema, column: String) -> Self {
        let mut rule = schema.rule(&column).expect("was looked up before").clone();
        if let Rule::Range { missing, .. } = &mut rule {
            missing.get_or_insert(schema.missing);
        }
        Input { column, rule }
    }

    pub(crate) fn features(&self) -> Vec<Feature> {
        let feature = |name, kind| Feature { name, column: self.column.clone(), kind };
        match &self.rule {
            Rule::Range { lo, hi, .. } => {
                let kind = Kind::Number { centre: (lo + hi) / 2.0, half_width: (hi - lo) / 2.0 };
                vec![feature(self.column.clone(), kind)]
            }
            Rule::Values { values, other } => {
                let mut all: Vec<Feature> = values[1..]
                    .iter()
                    .map(|value| {
                        let kind = Kind::Category { value: value.clone() };
                        feature(format!("{}={value}", self.column), kind)
                    })
                    .collect();
                if *other {
                    all.push(feature(format!("{}=other", self.column), Kind::Other));
                }
                all
            }
        }
    }
}

impl From<Encoding> for Stored {
    fn from(encoding: Encoding) -> Self {
        Stored { inputs: encoding.inputs, target: encoding.target }
    }
}

impl TryFrom<Stored> for Encoding {
    type Error = Error;

    fn try_from(stored: Stored) -> Result<Self, Error> {
        let mut problems = Vec::new();
        for Input { column, rule } in &stored.inputs {
            problems.extend(rule.check().err().map(|p| format!("column {column:?}: {p}")));
        }
        if let Some(Target { name, lo, hi }) = &stored.target {
            let rule = Rule::Range { lo: *lo, hi: *hi, missing: None };
            problems.extend(rule.check().err().map(|p| format!("column {name:?}: {p}")));
        }
        if problems.is_empty() {
            Encoding::from_inputs(stored.inputs, stored.target)
        } else {
            Err(Error::Schema { problems })
        }
    }
}

impl Missing {
    /// The number that takes the place of a missing one, if any does.
    pub(crate) fn fill(self, lo: f64, hi: f64) -> Option<f64> {
        match self {
            Missing::Middle => Some((lo + hi) / 2.0),
            Missing::Drop => None,
            Missing::Number(m) => Some(m),
        }
    }
}
