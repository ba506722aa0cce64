//! The parameters of a model, declared once: the command line makes its flags of this list, the
//! Python package its arguments.
use std::fmt::Write as _;

use quietly_engine::error::Error;

use super::Family;

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
trait Value: Sized {
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

/// Declares the fields of [`ModelSpec`], [`PARAMETERS`], [`ModelSpec::set`] and [`ModelSpec::given`].
macro_rules! parameters {
    ($($(#[doc = $help:literal])+ $name:ident: $kind:ident($type:ty), $value:literal, $group:ident;)+) => {
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
                help: concat!($($help),+),
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

parameters! {
    /// auto, full-batch, one-pass, or a name that `quietly methods` lists
    method: Word(String), "NAME", Linear;
    /// How many steps, for methods from papers
    steps: Count(u64), "T", Linear;
    /// Step size, for methods from papers: for a mean gradient, with features of mean square one
    step_size: Number(f64), "X", Every;
    /// The largest norm of the weights, for features and a target within [-1, 1]: for dp-pgd, and the
    /// size of `constraint`, 1 by default. For a network, the largest distance of weights from their start
    radius: Number(f64), "W", Every;
    /// Basis expansion of the features: splines[=P] of every number, or fourier[=COUNT] random
    /// Fourier features of all
    expand: Word(String), "HOW", Linear;
    /// The set that weights stay in: l1, l2, linf or simplex, of size `radius`
    constraint: Word(String), "SET", Convex;
    /// Adds X/2 times the squared norm of the weights to the loss of every row
    ridge: Number(f64), "X", Convex;
    /// Adds X times the 1-norm of the weights to the loss of every row
    lasso: Number(f64), "X", Convex;
    /// Which quantile of the target, between 0 and 1: for quantile regression
    quantile: Number(f64), "Q", Convex;
    /// How fast the objective grows around its minimum, for methods from papers: the exponent theta
    growth_exponent: Number(f64), "T", Convex;
    /// The factor of that growth
    growth_constant: Number(f64), "X", Convex;
    /// Units of every hidden layer, such as 32 or 32,16
    hidden_layer_sizes: Counts(Vec<usize>), "M,..", Network;
    /// Spline functions for every input
    spline_basis: Count(u64), "P", Network;
    /// The degree of the splines
    spline_degree: Count(u64), "O", Network;
    /// Whether the last layer is trained: fixed or trainable
    last_layer: Word(String), "HOW", Network;
    /// Which rows a step sees: full-batch, poisson, balls-and-bins, cyclic or fixed-size
    sampler: Word(String), "HOW", Network;
    /// Batches per epoch
    batches_per_epoch: Count(u64), "B", Network;
    /// Epochs: passes over the table
    epochs: Count(u64), "K", Network;
    /// How noise is correlated from step to step: independent, tree, lambda=L or banded=J
    noise_correlation: Word(String), "HOW", Network;
    /// The norm that the gradient of a row is clipped to, or none
    clipping_norm: Word(String), "C", Network;
    /// The share of a step's direction that comes from the steps before: 0 for plain steps
    momentum: Number(f64), "B", Network;
    /// Which iterates to average: last, last-half, all or random
    average: Word(String), "WHICH", Network;
    /// The public seed of the first weights
    network_seed: Count(u64), "N", Network;
}

/// Names of earlier versions, and what they are called now.
pub const RENAMED: &[(&str, &str)] = &[
    ("basis", "spline_basis"),
    ("batches", "batches_per_epoch"),
    ("clip", "clipping_norm"),
    ("degree", "spline_degree"),
    ("hidden", "hidden_layer_sizes"),
    ("level", "quantile"),
    ("noise", "noise_correlation"),
    ("passes", "epochs"),
    ("rate", "growth_constant"),
    ("sampling", "sampler"),
    ("theta", "growth_exponent"),
];

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

    /// A name that is free to be used again would hide the sentence that names the new one.
    #[test]
    fn old_names_are_no_parameters_and_new_ones_are() {
        let is = |name: &str| PARAMETERS.iter().any(|info| info.name == name);
        for (old, new) in RENAMED {
            assert!(!is(old) && is(new), "{old} {new}");
        }
    }
}
