use serde::{Deserialize, Serialize};

use crate::{Encoding, Error, Rule, Schema, Value};

/// The column to predict, and what is publicly known about it: a range, or classes.
///
/// Classes are encoded as 0, 1, 2, … in the order of the schema, so that `lo` is 0 and `hi` is the
/// number of the last class.
///
/// ```
/// use quietly_data::{Encoding, Schema};
///
/// let schema = Schema::parse(
///     r#"
///     rows = 100
///     [columns]
///     age   = { range = [0, 100] }
///     label = { values = [-1, 1] }
///     "#,
/// )?;
/// let columns = ["age", "label"].map(String::from);
/// let encoding = Encoding::new(&schema, &columns, None, Some("label"))?;
/// let target = encoding.expect_classes()?;
/// assert_eq!(target.class_names(), ["-1", "1"]);
/// assert_eq!((target.lo, target.hi), (0.0, 1.0));
/// assert!(encoding.expect_range().is_err());
/// # Ok::<(), quietly_data::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// The name of the column.
    pub name: String,
    /// The least value.
    pub lo: f64,
    /// The greatest value.
    pub hi: f64,
    /// The declared classes, in order. Empty if the target is a number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<Value>,
    /// Whether all other labels, and missing ones, are one more class, the last.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub other: bool,
}

impl Target {
    pub(crate) fn new(schema: &Schema, name: &str) -> Result<Self, Error> {
        let name = name.to_string();
        match schema.rule(&name) {
            Some(Rule::Values { values, other }) => {
                let (classes, other) = (values.clone(), *other);
                let hi = classes.len() as f64 - if other { 0.0 } else { 1.0 };
                if hi < 1.0 {
                    return Err(Error::Target { name, problem: ONE_CLASS });
                }
                Ok(Target { name, lo: 0.0, hi, classes, other })
            }
            Some(Rule::Range { lo, hi, .. }) => {
                Ok(Target { name, lo: *lo, hi: *hi, classes: Vec::new(), other: false })
            }
            None => Err(Error::Target { name, problem: "the schema does not describe it" }),
        }
    }

    /// Whether the target is a class, not a number.
    pub fn is_classes(&self) -> bool {
        !self.classes.is_empty()
    }

    /// The number of classes, `other` included. 0 if the target is a number.
    pub fn class_count(&self) -> usize {
        self.classes.len() + usize::from(self.other)
    }

    /// The classes as they are written, in order.
    pub fn class_names(&self) -> Vec<String> {
        let other = self.other.then(|| "other".to_string());
        self.classes.iter().map(Value::to_string).chain(other).collect()
    }

    /// Refuses invalid targets. A model file may contain them, because it can be edited.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Target { lo, hi, classes, other, .. } = self;
        if classes.is_empty() && !other {
            return Rule::Range { lo: *lo, hi: *hi, missing: None }.check();
        }
        Rule::Values { values: classes.clone(), other: *other }.check()?;
        let last = self.class_count() as f64 - 1.0;
        if last < 1.0 {
            return Err(ONE_CLASS.into());
        }
        if (*lo, *hi) != (0.0, last) {
            return Err(format!("{} classes must be numbered from 0 to {last}", last + 1.0));
        }
        Ok(())
    }
}

const ONE_CLASS: &str = "expected at least two classes, got one; declare all labels, such as \
                         label = { values = [-1, 1] }";

impl Encoding {
    /// The target, which is a number with a public range: what a regression needs.
    ///
    /// # Errors
    ///
    /// [`Error::Target`] if the target has values, [`Error::NoTarget`] if there is none.
    pub fn expect_range(&self) -> Result<&Target, Error> {
        let target = self.target().ok_or(Error::NoTarget)?;
        let problem = "a regression predicts a number, so the target needs a range, but this \
                       column has values; declare a range, such as pay = { range = [0, 1e5] }, or \
                       fit a classifier, such as logistic regression";
        if target.is_classes() {
            Err(Error::Target { name: target.name.clone(), problem })
        } else {
            Ok(target)
        }
    }

    /// The target, which is one of at least two public classes: what a classifier needs.
    ///
    /// # Errors
    ///
    /// [`Error::Target`] if the target has a range, [`Error::NoTarget`] if there is none.
    pub fn expect_classes(&self) -> Result<&Target, Error> {
        let target = self.target().ok_or(Error::NoTarget)?;
        let problem = "a classifier predicts one of several classes, so the target needs values, \
                       but this column has a range; declare its labels, such as label = { values = \
                       [-1, 1] }, or fit a regression, such as linear regression";
        if target.is_classes() {
            Ok(target)
        } else {
            Err(Error::Target { name: target.name.clone(), problem })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(rule: &str) -> Result<Encoding, Error> {
        let text = format!("rows = 9\n[columns]\na = {{ range = [0, 1] }}\ny = {rule}");
        let columns = ["a", "y"].map(String::from);
        Encoding::new(&Schema::parse(&text).unwrap(), &columns, None, Some("y"))
    }

    #[test]
    fn each_kind_of_model_needs_its_kind_of_target() {
        let range = target("{ range = [0, 2] }").unwrap();
        assert_eq!(range.expect_range().unwrap().hi, 2.0);
        let problem = range.expect_classes().unwrap_err().to_string();
        assert!(
            problem.contains("needs values") && problem.contains("linear regression"),
            "{problem}"
        );
        let classes = target("{ values = [\"no\", \"yes\"], other = true }").unwrap();
        assert_eq!(classes.expect_classes().unwrap().class_names(), ["no", "yes", "other"]);
        assert_eq!(classes.expect_classes().unwrap().hi, 2.0);
        let problem = classes.expect_range().unwrap_err().to_string();
        assert!(problem.contains("the target needs a range"), "{problem}");
        assert!(target("{ values = [1], other = true }").is_ok());
        let problem = target("{ values = [1] }").unwrap_err().to_string();
        assert!(problem.contains("at least two classes, got one"), "{problem}");
    }

    #[test]
    fn targets_are_stored_in_the_old_format() {
        let stored = serde_json::to_value(target("{ range = [0, 2] }").unwrap()).unwrap();
        assert_eq!(stored["target"], serde_json::json!({ "name": "y", "lo": 0.0, "hi": 2.0 }));
        let encoding = target("{ values = [-1, true, \"a\"], other = true }").unwrap();
        let stored = serde_json::to_value(&encoding).unwrap();
        let read = |v: &serde_json::Value| serde_json::from_value::<Encoding>(v.clone());
        assert_eq!(read(&stored).unwrap().target(), encoding.target());
        for (field, bad) in [
            ("hi", serde_json::json!(1.0)),
            ("classes", serde_json::json!([])),
            ("classes", serde_json::json!([1, 1.0, 2])),
            ("other", serde_json::json!(false)),
        ] {
            let mut broken = stored.clone();
            broken["target"][field] = bad;
            assert!(read(&broken).is_err(), "{field}");
        }
    }
}
