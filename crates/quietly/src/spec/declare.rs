//! What a parameter of a model is, and the macro that declares them all: the command line makes its
//! flags of the list, the Python package its arguments.
use std::fmt::Write as _;

use super::ModelSpec;

/// What kind of value a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// A number.
    Number,
    /// A whole number, at least 0.
    Count,
    /// Whole numbers, such as 32,16.
    Counts,
    /// A keyword.
    Word,
}

/// Which models have a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterGroup {
    /// All of them.
    Every,
    /// All but networks.
    Linear,
    /// Those with a convex loss.
    Convex,
    /// Networks alone.
    Network,
}

/// A parameter of a model, as front ends show it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParameterInfo {
    /// Its name, in snake case.
    pub name: &'static str,
    /// What it takes.
    pub kind: ParameterKind,
    /// What stands for the value in help.
    pub value: &'static str,
    /// Which models have it.
    pub group: ParameterGroup,
    /// What it means. Names of other parameters stand in backquotes.
    pub help: &'static str,
}

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum ParameterValue {
    /// A number.
    Number(f64),
    /// A whole number.
    Count(u64),
    /// Whole numbers.
    Counts(Vec<usize>),
    /// A keyword.
    Word(String),
}

/// A Rust type that holds the value of a parameter.
pub(super) trait Value: Sized {
    fn read(value: ParameterValue) -> Result<Self, &'static str>;
    fn write(&self) -> String;
}

impl Value for f64 {
    fn read(value: ParameterValue) -> Result<Self, &'static str> {
        match value {
            ParameterValue::Number(number) => Ok(number),
            ParameterValue::Count(count) => Ok(count as f64),
            _ => Err("a number"),
        }
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

impl Value for u64 {
    fn read(value: ParameterValue) -> Result<Self, &'static str> {
        match value {
            ParameterValue::Count(count) => Ok(count),
            _ => Err("a whole number"),
        }
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

impl Value for Vec<usize> {
    fn read(value: ParameterValue) -> Result<Self, &'static str> {
        match value {
            ParameterValue::Counts(counts) => Ok(counts),
            ParameterValue::Count(count) => usize::try_from(count).map(|c| vec![c]).or(Err("less")),
            _ => Err("whole numbers, such as 32,16"),
        }
    }

    fn write(&self) -> String {
        self.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    }
}

impl Value for String {
    fn read(value: ParameterValue) -> Result<Self, &'static str> {
        match value {
            ParameterValue::Word(word) => Ok(word),
            ParameterValue::Number(number) => Ok(number.to_string()),
            _ => Err("a keyword"),
        }
    }

    fn write(&self) -> String {
        self.clone()
    }
}

/// The help of a parameter, which may end with a list of keywords that is defined beside what they mean.
macro_rules! help {
    ($text:expr) => {
        $text
    };
    ($text:expr, $words:expr) => {{
        const JOINED: [u8; $text.len() + 2 + $words.len()] =
            $crate::spec::declare::joined($text, $words);
        match std::str::from_utf8(&JOINED) {
            Ok(help) => help,
            Err(_) => unreachable!(),
        }
    }};
}

pub(super) use help;

/// `text: words`, as a constant.
pub(super) const fn joined<const N: usize>(text: &str, words: &str) -> [u8; N] {
    let (mut joined, mut at) = ([b' '; N], 0);
    while at < text.len() {
        joined[at] = text.as_bytes()[at];
        at += 1;
    }
    joined[at] = b':';
    while at + 2 < N {
        joined[at + 2] = words.as_bytes()[at - text.len()];
        at += 1;
    }
    joined
}

/// Declares the fields of [`ModelSpec`], [`PARAMETERS`], [`ModelSpec::set`] and [`ModelSpec::given`].
macro_rules! parameters {
    ($($(#[doc = $help:literal])+ $name:ident: $kind:ident($type:ty), $value:literal, $group:ident $(, $words:expr)?;)+) => {
        /// A model to be planned, as a user asks for it: what is `None` is left to the planner.
        ///
        /// ```
        /// use quietly::{Budget, Encoding, Family, ModelSpec, Schema};
        ///
        /// let schema = "rows = 5000\n[columns]\nage = { range = [0, 100] }\nsick = { values = [0, 1] }";
        /// let columns = ["age", "sick"].map(String::from);
        /// let encoding = Encoding::new(&Schema::parse(schema)?, &columns, None, Some("sick"))?;
        ///
        /// let spec = ModelSpec { expand: Some("splines=5".into()), ..ModelSpec::new(Family::Logistic) };
        /// let plan = spec.plan(&encoding, 5000, Budget::usual(1.0, None, 5000)?)?;
        /// assert_eq!((plan.width(), plan.budget().delta()), (5, 1e-5));
        /// # Ok::<(), quietly::Error>(())
        /// ```
        #[derive(Clone, Debug, PartialEq)]
        pub struct ModelSpec {
            /// What is fitted.
            pub family: Family,
            /// Whether there is a public table to take thresholds from.
            pub public_rows: bool,
            $($(#[doc = $help])+ pub $name: Option<$type>,)+
        }

        /// All parameters of models.
        pub const PARAMETERS: &[ParameterInfo] = &[
            $(ParameterInfo {
                name: stringify!($name),
                kind: ParameterKind::$kind,
                value: $value,
                group: ParameterGroup::$group,
                help: help!(concat!($($help),+) $(, $words)?),
            },)+
        ];

        impl ModelSpec {
            /// A model of this family, with all else left to the planner.
            pub fn new(family: Family) -> Self {
                ModelSpec { family, public_rows: false, $($name: None,)+ }
            }

            /// Gives a parameter by its name.
            ///
            /// # Errors
            ///
            /// [`Error::Parameter`] if there is no such parameter, or the value is of another kind.
            pub fn set(&mut self, name: &str, value: ParameterValue) -> Result<(), Error> {
                let got = match &value {
                    ParameterValue::Number(number) => number.to_string(),
                    ParameterValue::Count(count) => count.to_string(),
                    ParameterValue::Counts(counts) => counts.write(),
                    ParameterValue::Word(word) => format!("{word:?}"),
                };
                match name {
                    $(stringify!($name) => {
                        let read = <$type as Value>::read(value);
                        let name = stringify!($name);
                        let wrong = |want| Error::Parameter { name, want, got };
                        self.$name = Some(read.map_err(wrong)?);
                    })+
                    _ => {
                        let want = "one that models have";
                        return Error::ensure(false, "parameter", want, format!("{name:?}"));
                    }
                }
                Ok(())
            }

            /// The parameters that are given, with their values as they are typed.
            pub fn given(&self) -> Vec<(&'static ParameterInfo, String)> {
                let values = [$(self.$name.as_ref().map(Value::write),)+];
                let given = PARAMETERS.iter().zip(values);
                given.filter_map(|(info, value)| value.map(|value| (info, value))).collect()
            }
        }
    };
}

pub(super) use parameters;

impl ModelSpec {
    /// The names of parameters that are given and that this family does not have, as a list.
    pub(super) fn foreign(&self, has: impl Fn(ParameterGroup) -> bool) -> String {
        let mut names = String::new();
        // The method that leaves the choice to the planner is one that every model has.
        let auto =
            |(info, value): &(&ParameterInfo, String)| info.name == "method" && value == "auto";
        let given = self.given();
        for (info, _) in given.iter().filter(|given| !has(given.0.group) && !auto(given)) {
            let comma = if names.is_empty() { "" } else { ", " };
            write!(names, "{comma}{}", info.name).expect("a string");
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Family, PARAMETERS};

    #[test]
    fn every_parameter_can_be_given_by_name_and_is_listed() {
        for info in PARAMETERS {
            let mut spec = ModelSpec::new(Family::Kan);
            let value = match info.kind {
                ParameterKind::Number => ParameterValue::Number(0.5),
                ParameterKind::Count => ParameterValue::Count(3),
                ParameterKind::Counts => ParameterValue::Counts(vec![3, 2]),
                ParameterKind::Word => ParameterValue::Word("a".into()),
            };
            spec.set(info.name, value).unwrap();
            let given = spec.given();
            assert_eq!(given.len(), 1);
            assert_eq!(given[0].0, info);
            assert_ne!(spec, ModelSpec::new(Family::Kan));
        }
        let mut spec = ModelSpec::new(Family::Kan);
        let error = spec.set("ridge", ParameterValue::Word("much".into())).unwrap_err();
        assert_eq!(error.to_string(), "ridge must be a number, but is \"much\"");
        assert!(spec.set("magic", ParameterValue::Count(1)).is_err());
    }
}
