use std::{collections::HashSet, path::Path};

use serde::{Deserialize, Serialize};

use crate::{
    Error, Notation, Value,
    error::nearest,
    name::{name_problem, value_problem},
    schema_toml::{
        count, in_text, key_in_toml, missing_in_toml, notation_in_toml, read_notation, read_rule,
        rule_in_toml, text_in_toml, unfinished,
    },
};

/// The most columns, and the most features.
pub(crate) const MAX_COLUMNS: usize = 1_000_000;

/// What is publicly known about a table, written down before it is read.
///
/// ```
/// use quietly_data::{Missing, Rule, Schema};
///
/// let schema = Schema::parse(
///     r#"
///     rows = 3e4
///     [columns]
///     age  = { range = [0, 100] }
///     city = { values = ["A", "B"], other = true }
///     "*"  = { range = [0, 1] }      # every other column of the file
///     "#,
/// )?;
/// assert_eq!((schema.rows, schema.unit.as_str(), schema.missing), (30_000, "row", Missing::Middle));
/// assert_eq!(schema.rule("age"), Some(&Rule::Range { lo: 0.0, hi: 100.0, missing: None }));
/// assert_eq!(schema.rule("x7"), schema.rule("*"));
/// assert_eq!(Schema::parse(&schema.to_toml())?, schema);
/// # Ok::<(), quietly_data::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// The approximate number of rows.
    pub rows: u64,
    /// The name of the unit of privacy, such as "person".
    pub unit: String,
    /// The most rows of a unit.
    pub rows_per_unit: u64,
    /// What replaces a missing number in a column without a rule of its own.
    pub missing: Missing,
    /// The number of features of libsvm text.
    pub features: Option<usize>,
    /// Whether the first line of CSV is a header even if its names look like data: 2020, 2021.
    pub header: bool,
    /// How numbers are written as text.
    pub notation: Notation,
    /// The ledger of all releases from this table: a path relative to the schema file.
    pub ledger: Option<String>,
    /// Columns with a range whose numbers are written as text in files that have types.
    pub numbers_in_text: Vec<String>,
    /// The columns, in order. `*` matches every column of the file that is not named.
    pub columns: Vec<(String, Rule)>,
}

/// The most rows of a unit.
pub(crate) const MAX_ROWS_PER_UNIT: u64 = 1_000_000;

/// What is publicly known about a column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// A number. Values outside the range are clamped.
    Range {
        /// The least value.
        lo: f64,
        /// The greatest value.
        hi: f64,
        /// What replaces a missing number, if the column has a rule of its own.
        missing: Option<Missing>,
    },
    /// One of a few values.
    Values {
        /// The values. The first is the baseline, which has no feature of its own.
        values: Vec<Value>,
        /// Whether all other values, and missing ones, count as one more value.
        other: bool,
    },
}

/// What replaces a missing number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Missing {
    /// The middle of the range.
    Middle,
    /// Nothing: the row is a null row.
    Drop,
    /// This number.
    Number(f64),
}

impl Default for Schema {
    /// A schema of one row without columns.
    fn default() -> Self {
        Schema {
            rows: 1,
            unit: "row".into(),
            rows_per_unit: 1,
            missing: Missing::Middle,
            features: None,
            header: false,
            notation: Notation::default(),
            ledger: None,
            numbers_in_text: Vec::new(),
            columns: Vec::new(),
        }
    }
}

impl Schema {
    /// Reads a schema from a TOML file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, and as [`parse`](Self::parse).
    pub fn read(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|e| Error::unreadable(path, &e))?;
        Schema::parse(&text).map_err(|error| match error {
            // A file with another ending may be a table: its lines are not quoted.
            Error::Syntax { problem } if path.extension().is_none_or(|e| e != "toml") => {
                let quoted = |line: &&str| !line.trim_end().ends_with('|') && !line.contains(" | ");
                let unquoted: Vec<&str> = problem.lines().filter(quoted).collect();
                Error::Syntax { problem: unquoted.join(": ") }
            }
            error => error,
        })
    }

    /// Reads a schema from TOML text.
    ///
    /// # Errors
    ///
    /// [`Error::Syntax`], [`Error::Unfinished`] or [`Error::Schema`]. The last two list all
    /// problems.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let table: toml::Table = text
            .trim_start_matches('\u{feff}')
            .parse()
            .map_err(|e: toml::de::Error| Error::Syntax { problem: e.to_string().trim().into() })?;
        let unfinished = unfinished(&table);
        if !unfinished.is_empty() {
            return Err(Error::Unfinished { names: unfinished });
        }
        let mut problems = Vec::new();
        let schema = Schema::from_table(&table, &mut problems);
        match schema {
            Some(schema) if problems.is_empty() => Ok(schema),
            _ => Err(Error::Schema { problems }),
        }
    }

    fn from_table(table: &toml::Table, problems: &mut Vec<String>) -> Option<Self> {
        let known = [
            "rows",
            "unit",
            "rows_per_unit",
            "missing",
            "features",
            "header",
            "decimal",
            "thousands",
            "ledger",
            "columns",
        ];
        for key in table.keys().filter(|k| !known.contains(&k.as_str())) {
            let mut problem = format!("{key:?} is not a key");
            match nearest(key, known) {
                Some(near) => problem += &format!("; did you mean {near:?}?"),
                None if table[key].is_table() => problem += "; columns belong under [columns]",
                None => problem += &format!("; the keys are {}", known.join(", ")),
            }
            problems.push(problem);
        }
        let rows = table.get("rows").map(count);
        if !matches!(rows, Some(Some(_))) {
            problems.push("rows must be the approximate number of rows, such as 30000".into());
        }
        let features = table.get("features").map(count);
        if features.is_some_and(|n| n.is_none_or(|n| n > MAX_COLUMNS as u64)) {
            problems.push(
                "features must be a count, the highest index in the libsvm text, of at most a million"
                    .into(),
            );
        }
        let header = table.get("header").map_or(Some(false), toml::Value::as_bool);
        if header.is_none() {
            problems.push("header must be true or false".into());
        }
        let notation = read_notation(table);
        problems.extend(notation.as_ref().err().cloned());
        let unit = table.get("unit").map_or(Some("row"), |u| u.as_str());
        if unit.is_none() {
            problems.push("unit must be a word for what one row is, such as \"person\"".into());
        }
        if let Some(problem) = unit.and_then(name_problem) {
            problems.push(format!("unit {problem}"));
        }
        let rows_per_unit = table.get("rows_per_unit").map_or(Some(1), count);
        let rows_per_unit = rows_per_unit.filter(|k| *k <= MAX_ROWS_PER_UNIT);
        if rows_per_unit.is_none() {
            problems.push("rows_per_unit must be a count from 1 to a million".into());
        }
        let missing = table.get("missing").map_or(Some(Missing::Middle), |m| match m.as_str() {
            Some("middle") => Some(Missing::Middle),
            Some("drop") => Some(Missing::Drop),
            _ => None,
        });
        if missing.is_none() {
            problems.push(
                "missing must be \"middle\" or \"drop\"; a number goes into a column's rule".into(),
            );
        }
        let ledger = table.get("ledger").map(|l| l.as_str().filter(|path| !path.is_empty()));
        if ledger == Some(None) {
            problems.push("ledger must be the path of a ledger, such as \"people.ledger\"".into());
        }
        let mut columns = Vec::new();
        let mut numbers_in_text = Vec::new();
        match table.get("columns") {
            Some(toml::Value::Table(rules)) if rules.len() > MAX_COLUMNS => {
                problems.push("there are more than a million columns".into());
            }
            Some(toml::Value::Table(rules)) if !rules.is_empty() => {
                for (name, rule) in rules {
                    if let Some(problem) = name_problem(name) {
                        problems.push(format!("column {name:?}: its name {problem}"));
                    }
                    numbers_in_text.extend(in_text(rule).then(|| name.clone()));
                    columns.extend(read_rule(name, rule, problems).map(|r| (name.clone(), r)));
                }
            }
            _ => problems.push(
                "there are no columns: expected [columns] and lines such as age = { range = [0, 100] }"
                    .into(),
            ),
        }
        let features = features.flatten().map(|n| n as usize);
        let (rows, unit, missing, rows_per_unit) = (rows??, unit?.into(), missing?, rows_per_unit?);
        let (header, notation) = (header?, notation.ok()?);
        let ledger = ledger.flatten().map(String::from);
        Some(Schema {
            rows,
            unit,
            rows_per_unit,
            missing,
            features,
            header,
            notation,
            ledger,
            numbers_in_text,
            columns,
        })
    }

    /// The rule for a column: its own, or that of `*`.
    pub fn rule(&self, column: &str) -> Option<&Rule> {
        let find = |name: &str| self.columns.iter().find(|(n, _)| n == name).map(|(_, rule)| rule);
        find(column).or_else(|| find("*"))
    }

    /// The schema as TOML; [`parse`](Self::parse) reads it back.
    pub fn to_toml(&self) -> String {
        let mut text = format!("rows = {}\nunit = {}\n", self.rows, text_in_toml(&self.unit));
        if self.rows_per_unit != 1 {
            text += &format!("rows_per_unit = {}\n", self.rows_per_unit);
        }
        text += &format!("missing = {}\n", missing_in_toml(self.missing));
        if let Some(features) = self.features {
            text += &format!("features = {features}\n");
        }
        if self.header {
            text += "header = true\n";
        }
        text += &notation_in_toml(&self.notation);
        if let Some(ledger) = &self.ledger {
            text += &format!("ledger = {}\n", text_in_toml(ledger));
        }
        text += "\n[columns]\n";
        for (name, rule) in &self.columns {
            let in_text = self.numbers_in_text.contains(name);
            text += &format!("{} = {}\n", key_in_toml(name), rule_in_toml(rule, in_text));
        }
        text
    }

    /// A schema to be completed: the rule of every column is a question mark.
    ///
    /// ```
    /// use quietly_data::{Error, Schema};
    ///
    /// let text = Schema::template(&["age".to_string(), "home town".to_string()]);
    /// assert!(text.contains("\nage = \"?\"\n\"home town\" = \"?\"\n"));
    /// let names = ["rows", "age", "home town"].map(String::from).to_vec();
    /// assert_eq!(Schema::parse(&text), Err(Error::Unfinished { names }));
    /// ```
    pub fn template(columns: &[String]) -> String {
        let mut text = String::from(TEMPLATE);
        for name in columns {
            text += &format!("{} = \"?\"\n", key_in_toml(name));
        }
        text
    }
}

const TEMPLATE: &str = r#"# What is publicly known about this table. Everything here is published with the model, so
# fill it in from what is publicly known (a form, a law, common sense), never from the rows.

rows = "?"            # about how many rows there are, such as 30000
unit = "row"          # what one row is, such as "visit", or what has several rows, such as "person"
rows_per_unit = 1     # how many rows a unit has at most: the privacy is for all of them together
missing = "middle"    # a missing number: "middle" of its range, or "drop" to leave the row out

# A number has a range, and values beyond it are clamped:   { range = [0, 100] }
# Numbers that a typed file has as texts:                   { range = [0, 9], numbers_in_text = true }
# A missing number may have its own rule:                   { range = [0, 80], missing = 40 }
# A category has values, the first being the baseline:      { values = ["F", "M"] }
# All other values may count as one more:                       { values = ["A", "B"], other = true }
# Delete the lines of columns that you do not use. "*" stands for every column not named.
[columns]
"#;

impl Rule {
    /// Refuses invalid rules. A model file may contain them, because it can be edited.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self {
            Rule::Range { lo, hi, missing } => {
                // Squares of such numbers are finite.
                if !(lo.abs() <= 1e150 && hi.abs() <= 1e150) {
                    return Err(format!("range [{lo}, {hi}] must lie within -1e150 and 1e150"));
                }
                if hi - lo < 1e-150 {
                    return Err(format!(
                        "range [{lo}, {hi}] must go from a lower to a higher number"
                    ));
                }
                match missing {
                    Some(Missing::Number(m)) if !(lo..=hi).contains(&m) => {
                        Err(format!("missing = {m} is outside the range [{lo}, {hi}]"))
                    }
                    _ => Ok(()),
                }
            }
            Rule::Values { values, .. } => {
                if values.is_empty() {
                    return Err("values must not be empty".into());
                }
                if let Some(problem) = values.iter().find_map(value_problem) {
                    return Err(problem);
                }
                let mut seen = HashSet::new();
                match values.iter().find(|v| !seen.insert(v.to_string())) {
                    Some(twice) => {
                        Err(format!("the value {:?} is listed twice", twice.to_string()))
                    }
                    None => Ok(()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"
        rows = 30000
        unit = "person"
        missing = "drop"
        features = 123
        header = true
        decimal = ","
        thousands = "."
        ledger = "people \"A\".ledger"
        [columns]
        age   = { range = [0, 100], numbers_in_text = true }
        hours = { range = [0, 80.5], missing = 40 }
        "home \"town\" \\" = { values = ["A", "B\"", 1, 2.5, true], other = true }
        "" = { range = [-1e150, 1e150], missing = "middle" }
        "*" = { range = [0, 1] }
    "#;

    #[test]
    fn a_schema_is_restored_from_its_toml() {
        let schema = Schema::parse(SCHEMA).unwrap();
        assert_eq!((schema.rows, schema.features, schema.columns.len()), (30_000, Some(123), 5));
        let names: Vec<&str> = schema.columns.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["age", "hours", "home \"town\" \\", "", "*"]);
        assert_eq!(Schema::parse(&schema.to_toml()), Ok(schema));
    }

    fn problems(text: &str) -> Vec<String> {
        match Schema::parse(text) {
            Err(Error::Schema { problems }) => problems,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn all_problems_are_listed_at_once() {
        let found = problems(
            r#"
            row = 5
            unit = 7
            missing = "mean"
            features = 1.5
            header = "yes"
            decimal = ";"
            ledger = ""
            [columns]
            a = { range = [1, 1] }
            b = { range = [0, inf] }
            c = { range = [0, 1e151] }
            d = { range = [0, 1], missing = 2 }
            e = { values = [] }
            f = { values = [1, 1.0] }
            g = { range = [0, 1], values = [1] }
            h = { rnge = [0, 1] }
            i = 5
            j = { values = ["x", "y"], missing = "drop" }
            k = { range = [0, 1], other = true }
            l = { range = [nan, 1] }
            m = { range = ["0", 1] }
            n = { range = [0, 1], numbers_in_text = 1 }
            o = { values = ["x"], numbers_in_text = true }
            "#,
        );
        let all = found.join("\n");
        for name in "abcdefghijklmno".chars() {
            assert!(all.contains(&format!("column \"{name}\"")), "{name}: {all}");
        }
        for text in [
            "did you mean \"rows\"?",
            "did you mean \"range\"?",
            "unit must",
            "rows must",
            "missing must be \"middle\" or \"drop\"",
            "features must",
            "header must",
            "decimal must",
            "ledger must",
        ] {
            assert!(all.contains(text), "{text}: {all}");
        }
    }

    #[test]
    fn rows_are_required_and_may_be_rounded() {
        let columns = "[columns]\na = { range = [0, 1] }";
        assert_eq!(Schema::parse(&format!("rows = 3e4\n{columns}")).unwrap().rows, 30_000);
        for rows in ["", "rows = 0", "rows = -1", "rows = 1.5", "rows = \"many\"", "rows = inf"] {
            assert_eq!(problems(&format!("{rows}\n{columns}")).len(), 1, "{rows}");
        }
        assert_eq!(Schema::parse("rows = ").unwrap_err().code(), "D07");
        assert_eq!(problems("rows = 1").len(), 1);
    }
}
