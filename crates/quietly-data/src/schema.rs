use std::{collections::HashSet, path::Path};

use serde::{Deserialize, Serialize};

use crate::{
    Error, Value,
    error::nearest,
    notation::{
        count, key_in_toml, missing_in_toml, read_rule, rule_in_toml, text_in_toml, unfinished,
    },
};

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
    /// About how many rows there are.
    pub rows: u64,
    /// What one row is: the unit of privacy.
    pub unit: String,
    /// What becomes of a missing number in a column that does not say.
    pub missing: Missing,
    /// How many features libsvm text has.
    pub features: Option<usize>,
    /// The columns, in order. `*` stands for every column of the file that is not named.
    pub columns: Vec<(String, Rule)>,
}

/// What is publicly known about a column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// A number; values beyond are clamped.
    Range {
        /// The least value.
        lo: f64,
        /// The greatest value.
        hi: f64,
        /// What becomes of a missing number, if the column has a rule of its own.
        missing: Option<Missing>,
    },
    /// One of a few values.
    Values {
        /// The values; the first is the baseline, which has no feature of its own.
        values: Vec<Value>,
        /// Whether all other values, and missing ones, together make one more.
        other: bool,
    },
}

/// What becomes of a missing number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Missing {
    /// The middle of the range takes its place.
    Middle,
    /// The row becomes the null record, which is left out.
    Drop,
    /// This number takes its place.
    Number(f64),
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
            // A file of another name may be somebody's table: its lines are not quoted.
            Error::Syntax { problem } if path.extension().is_none_or(|e| e != "toml") => {
                let quoted = |line: &&str| !line.trim_end().ends_with('|') && !line.contains(" | ");
                let told: Vec<&str> = problem.lines().filter(quoted).collect();
                Error::Syntax { problem: told.join(": ") }
            }
            error => error,
        })
    }

    /// Reads a schema from TOML text.
    ///
    /// # Errors
    ///
    /// [`Error::Syntax`], [`Error::Unfinished`] or [`Error::Schema`]; the last two list everything
    /// that is wrong.
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
        let known = ["rows", "unit", "missing", "features", "columns"];
        for key in table.keys().filter(|k| !known.contains(&k.as_str())) {
            let mut problem = format!("{key:?} is not a key");
            match nearest(key, known) {
                Some(near) => problem += &format!("; did you mean {near:?}?"),
                None if table[key].is_table() => problem += "; columns go under [columns]",
                None => problem += &format!("; there are {}", known.join(", ")),
            }
            problems.push(problem);
        }
        let rows = table.get("rows").map(count);
        if !matches!(rows, Some(Some(_))) {
            problems.push("rows must say about how many rows there are, such as 30000".into());
        }
        let features = table.get("features").map(count);
        if features == Some(None) {
            problems.push("features must be a count, the highest index in the libsvm text".into());
        }
        let unit = table.get("unit").map_or(Some("row"), |u| u.as_str());
        if unit.is_none() {
            problems.push("unit must be a word for what one row is, such as \"person\"".into());
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
        let mut columns = Vec::new();
        match table.get("columns") {
            Some(toml::Value::Table(rules)) if !rules.is_empty() => {
                for (name, rule) in rules {
                    columns.extend(read_rule(name, rule, problems).map(|r| (name.clone(), r)));
                }
            }
            _ => problems.push(
                "there are no columns: wanted [columns] and lines such as age = { range = [0, 100] }"
                    .into(),
            ),
        }
        let features = features.flatten().map(|n| n as usize);
        Some(Schema { rows: rows??, unit: unit?.into(), missing: missing?, features, columns })
    }

    /// The rule for a column: its own, or that of `*`.
    pub fn rule(&self, column: &str) -> Option<&Rule> {
        let find = |name: &str| self.columns.iter().find(|(n, _)| n == name).map(|(_, rule)| rule);
        find(column).or_else(|| find("*"))
    }

    /// The schema as TOML; [`parse`](Self::parse) reads it back.
    pub fn to_toml(&self) -> String {
        let mut text = format!("rows = {}\nunit = {}\n", self.rows, text_in_toml(&self.unit));
        text += &format!("missing = {}\n", missing_in_toml(self.missing));
        if let Some(features) = self.features {
            text += &format!("features = {features}\n");
        }
        text += "\n[columns]\n";
        for (name, rule) in &self.columns {
            text += &format!("{} = {}\n", key_in_toml(name), rule_in_toml(rule));
        }
        text
    }

    /// A schema to fill in: every column is a question.
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
# fill it in from what anybody knows (a form, a law, common sense), never by looking at the rows.

rows = "?"            # about how many rows there are, such as 30000
unit = "row"          # what one row is, such as "person": this is what the privacy protects
missing = "middle"    # a missing number: "middle" of its range, or "drop" to leave the row out

# A number has a range, and values beyond it are clamped:   { range = [0, 100] }
# A missing number may have its own rule:                   { range = [0, 80], missing = 40 }
# A category has values, the first being the baseline:      { values = ["F", "M"] }
# All other values may make one more:                       { values = ["A", "B"], other = true }
# Delete the line of a column that is not to be used. "*" stands for every column not named.
[columns]
"#;

impl Rule {
    /// Whether the rule makes sense: also for a model file, which anybody may have edited.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self {
            Rule::Range { lo, hi, missing } => {
                // Squares of anything within 1e150 are finite.
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
                let mut seen = HashSet::new();
                match values.iter().find(|v| !seen.insert(v.to_string())) {
                    Some(twice) => Err(format!("the value {:?} is there twice", twice.to_string())),
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
        [columns]
        age   = { range = [0, 100] }
        hours = { range = [0, 80.5], missing = 40 }
        "home \"town\"\n" = { values = ["A", "B\u0000", 1, 2.5, true], other = true }
        "" = { range = [-1e150, 1e150], missing = "middle" }
        "*" = { range = [0, 1] }
    "#;

    #[test]
    fn a_schema_comes_back_from_its_toml() {
        let schema = Schema::parse(SCHEMA).unwrap();
        assert_eq!((schema.rows, schema.features, schema.columns.len()), (30_000, Some(123), 5));
        let names: Vec<&str> = schema.columns.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["age", "hours", "home \"town\"\n", "", "*"]);
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
            "#,
        );
        let all = found.join("\n");
        for name in "abcdefghijklm".chars() {
            assert!(all.contains(&format!("column \"{name}\"")), "{name}: {all}");
        }
        for text in [
            "did you mean \"rows\"?",
            "did you mean \"range\"?",
            "unit must",
            "rows must",
            "missing must be \"middle\" or \"drop\"",
            "features must",
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
