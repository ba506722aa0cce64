use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::{
    Error, Missing, Notation, Rule, Schema, Target, Value, error::all_nearest, name::name_problem,
    schema::MAX_COLUMNS,
};

/// How the cells of a row become numbers in [-1, 1]. Public: it depends on the schema alone.
///
/// A number is clamped to its range [lo, hi] and mapped linearly to [-1, 1]. A category becomes one
/// feature, 0 or 1, for each value but the first. A target with a range is clamped and keeps its
/// own units. A target with values becomes the number of its class: 0, 1, 2, …
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
/// assert_eq!(encoding.baseline("city").unwrap().to_string(), "A");
/// assert_eq!(encoding.ignored(), 1);
/// # Ok::<(), quietly_data::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Encoding {
    inputs: Vec<Input>,
    target: Option<Target>,
    features: Vec<Feature>,
    ignored: usize,
    nulls: NullRows,
    notation: Notation,
}

/// What happens to null rows: rows that do not hold what the schema declares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum NullRows {
    /// They are dropped.
    Drop,
    /// They keep their positions, as zeros with target NaN.
    Keep,
    /// There are none: missing cells are filled in, and no target is read.
    Fill,
}

/// A feature: one number of an encoded row.
#[derive(Clone, Debug, PartialEq)]
pub struct Feature {
    /// `age`, `city=B` or `city=other`.
    pub name: String,
    /// The column that it is computed from.
    pub column: String,
    /// How it is computed.
    pub kind: Kind,
}

/// How a feature is computed from a cell of its column.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Kind {
    /// (x - centre) / half_width, where x is clamped to its range.
    Number {
        /// The middle of the range.
        centre: f64,
        /// The distance from the middle to either end.
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

/// A column that features are computed from. The missing rule of a range is filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Input {
    pub(crate) column: String,
    pub(crate) rule: Rule,
    /// Only the table's first line contains this name, because the schema uses `*`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) from_header: bool,
}

/// What a model file stores of an encoding. The rest is computed from it.
#[derive(Serialize, Deserialize)]
struct Stored {
    inputs: Vec<Input>,
    target: Option<Target>,
    #[serde(default, skip_serializing_if = "Notation::is_usual")]
    notation: Notation,
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
    /// If a name is not in the schema or not in the table, if the target has a single value, or if
    /// there is no feature.
    pub fn new(
        schema: &Schema,
        columns: &[String],
        features: Option<&[String]>,
        target: Option<&str>,
    ) -> Result<Self, Error> {
        let there: HashSet<&str> = columns.iter().map(String::as_str).collect();
        let rules: HashMap<&str, &Rule> =
            schema.columns.iter().map(|(name, rule)| (name.as_str(), rule)).collect();
        let rule = |name: &str| rules.get(name).or_else(|| rules.get("*")).copied();
        let wanted: Vec<String> = match features {
            Some(names) => distinct(names.iter().map(String::as_str)),
            None => default_features(schema, columns, target),
        };
        if let Some(name) = target
            && wanted.iter().any(|w| w == name)
        {
            let problem = "it is also a feature; remove it from the features";
            return Err(Error::Target { name: name.into(), problem });
        }
        let names = || wanted.iter().map(String::as_str).chain(target);
        let unknown: Vec<String> = names().filter(|n| rule(n).is_none()).map(Into::into).collect();
        if !unknown.is_empty() {
            let near = all_nearest(&unknown, schema.columns.iter().map(|(name, _)| name.as_str()));
            return Err(Error::UnknownColumns { names: unknown, near });
        }
        let absent: Vec<String> = names().filter(|n| !there.contains(n)).map(Into::into).collect();
        if !absent.is_empty() {
            return Err(Error::MissingColumns { names: absent });
        }
        let target = target.map(|name| Target::new(schema, name)).transpose()?;
        check_width(wanted.iter().filter_map(|name| rule(name)))?;
        let input = |column: String| {
            // A name that the caller passed is public.
            let from_header = features.is_none() && !rules.contains_key(column.as_str());
            let mut rule = rule(&column).expect("a rule for every name").clone();
            if let Rule::Range { missing, .. } = &mut rule {
                missing.get_or_insert(schema.missing);
            }
            Input { column, rule, from_header }
        };
        let inputs = wanted.into_iter().map(input).collect();
        let mut encoding = Encoding::from_inputs(inputs, target)?;
        let used: HashSet<&str> = encoding.columns().collect();
        encoding.ignored = columns.iter().filter(|c| !used.contains(c.as_str())).count();
        encoding.notation = schema.notation;
        Ok(encoding)
    }

    fn from_inputs(inputs: Vec<Input>, target: Option<Target>) -> Result<Self, Error> {
        check_width(inputs.iter().map(|input| &input.rule))?;
        // By position: the name may come from a table's first line.
        let names = inputs.iter().map(|input| &input.column).chain(target.iter().map(|t| &t.name));
        let problem = |(k, name): (usize, &String)| {
            Some(format!("column {}: its name {}", k + 1, name_problem(name)?))
        };
        let problems: Vec<String> = names.enumerate().filter_map(problem).collect();
        if !problems.is_empty() {
            return Err(Error::Schema { problems });
        }
        let features: Vec<Feature> = inputs.iter().flat_map(Input::features).collect();
        if features.is_empty() {
            let problem = "expected at least one column with a range, or with two values";
            return Err(Error::NoFeatures { problem });
        }
        let notation = Notation::default();
        Ok(Encoding { inputs, target, features, ignored: 0, nulls: NullRows::Drop, notation })
    }

    /// The same encoding for prediction. No target is read and no row is dropped, so that row i of
    /// the result is row i of the file. An undeclared value counts as the baseline, or as `other`
    /// where that is declared. A missing number is replaced by the number that the schema gives, or
    /// by the middle of the range.
    #[must_use]
    pub fn predicting(&self) -> Self {
        Encoding { nulls: NullRows::Fill, ..self.clone() }
    }

    /// Whether this encoding is for prediction.
    pub fn is_predicting(&self) -> bool {
        self.nulls == NullRows::Fill
    }

    /// The same encoding for algorithms that use the position of a row. A null row keeps its
    /// position, as a row of zeros whose target is NaN. Neither the number of rows nor the position
    /// of a row then depends on any cell.
    #[must_use]
    pub fn keeping_null_rows(&self) -> Self {
        Encoding { nulls: NullRows::Keep, ..self.clone() }
    }

    /// The same encoding with every range [lo, hi] that contains 0 widened to [-m, m], where m is
    /// the greater of |lo| and |hi|. So 0 is encoded as 0, and sparse rows stay sparse. A missing
    /// number is still replaced by the middle of the old range, where the schema says so.
    #[must_use]
    pub fn with_symmetric_ranges(&self) -> Self {
        let inputs = self.inputs.iter().map(Input::symmetric).collect();
        let features = Encoding::from_inputs(inputs, None).expect("as many as before");
        let (target, notation) = (self.target.clone(), self.notation);
        Encoding { target, ignored: self.ignored, nulls: self.nulls, notation, ..features }
    }

    pub(crate) fn nulls(&self) -> NullRows {
        self.nulls
    }

    /// The features of an encoded row.
    pub fn features(&self) -> &[Feature] {
        &self.features
    }

    /// The number of features.
    pub fn width(&self) -> usize {
        self.features.len()
    }

    /// The first value of a category, which has no feature of its own: all features of the column
    /// are 0 in its rows.
    pub fn baseline(&self, column: &str) -> Option<&Value> {
        let input = self.inputs.iter().find(|input| input.column == column)?;
        match &input.rule {
            Rule::Values { values, .. } => values.first(),
            Rule::Range { .. } => None,
        }
    }

    /// The target.
    pub fn target(&self) -> Option<&Target> {
        self.target.as_ref()
    }

    /// The number of columns of the file that are not used. Their names are not stored, because only
    /// the file contains them.
    pub fn ignored(&self) -> usize {
        self.ignored
    }

    /// Whether names of features come from the table's first line, because the schema uses `*`.
    pub fn names_from_header(&self) -> bool {
        self.inputs.iter().any(|input| input.from_header)
    }

    /// How numbers are written as text.
    pub fn notation(&self) -> Notation {
        self.notation
    }

    /// The columns that are read: those of the features and, unless predicting, the target.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        let target =
            self.target.as_ref().filter(|_| !self.is_predicting()).map(|t| t.name.as_str());
        self.inputs.iter().map(|i| i.column.as_str()).chain(target)
    }

    pub(crate) fn inputs(&self) -> &[Input] {
        &self.inputs
    }
}

/// The number of features of a column.
fn width(rule: &Rule) -> usize {
    match rule {
        Rule::Range { .. } => 1,
        Rule::Values { values, other } => values.len().saturating_sub(1) + usize::from(*other),
    }
}

/// Refuses too many features before they are allocated: a `*` with many values may make billions.
fn check_width<'a>(rules: impl Iterator<Item = &'a Rule>) -> Result<(), Error> {
    if rules.fold(0_usize, |sum, rule| sum.saturating_add(width(rule))) <= MAX_COLUMNS {
        return Ok(());
    }
    let problem = "the columns have more than a million features".into();
    Err(Error::Schema { problems: vec![problem] })
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

impl Input {
    /// The number of its features.
    pub(crate) fn width(&self) -> usize {
        width(&self.rule)
    }

    /// The same column with a symmetric range, if the range contains 0.
    fn symmetric(&self) -> Self {
        let mut input = self.clone();
        if let Rule::Range { lo, hi, missing } = &mut input.rule
            && *lo <= 0.0
            && *hi >= 0.0
        {
            let middle = (*lo + *hi) / 2.0;
            if matches!(missing, None | Some(Missing::Middle)) && middle != 0.0 {
                *missing = Some(Missing::Number(middle));
            }
            *hi = hi.max(-*lo);
            *lo = -*hi;
        }
        input
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
        let Encoding { inputs, target, notation, .. } = encoding;
        Stored { inputs, target, notation }
    }
}

impl TryFrom<Stored> for Encoding {
    type Error = Error;

    fn try_from(stored: Stored) -> Result<Self, Error> {
        let mut problems = Vec::new();
        for Input { column, rule, .. } in &stored.inputs {
            problems.extend(rule.check().err().map(|p| format!("column {column:?}: {p}")));
        }
        if let Some(target) = &stored.target {
            problems.extend(target.check().err().map(|p| format!("column {:?}: {p}", target.name)));
        }
        problems.extend(stored.notation.check().err());
        if !problems.is_empty() {
            return Err(Error::Schema { problems });
        }
        let encoding = Encoding::from_inputs(stored.inputs, stored.target)?;
        Ok(Encoding { notation: stored.notation, ..encoding })
    }
}

impl Missing {
    /// The number that replaces a missing one, if any does.
    pub(crate) fn fill(self, lo: f64, hi: f64) -> Option<f64> {
        match self {
            Missing::Middle => Some((lo + hi) / 2.0),
            Missing::Drop => None,
            Missing::Number(m) => Some(m),
        }
    }
}
