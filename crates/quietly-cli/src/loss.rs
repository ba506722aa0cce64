//! Which model is fitted, and what its weights are held to.
use clap::{Args, ValueEnum};
use quietly::{Asked, Family};

use crate::number::Number;

/// What can be fitted.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum Model {
    /// The target is a weighted sum of the features
    Linear,
    /// The target is a weighted sum of the features, or 0 where that is negative
    Relu,
    /// Classes with probabilities
    Logistic,
    /// Two classes, told apart by a margin
    Svm,
    /// A weighted sum that far-off targets hardly move
    Robust,
    /// A weighted sum that a given share of targets lies below
    Quantile,
    /// A Kolmogorov-Arnold network: classes or a number, from functions of the features that are learnt
    Kan,
    /// One of these, by what is public alone
    Auto,
}

impl Model {
    /// The word on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Model::Linear => "linear",
            Model::Relu => "relu",
            Model::Logistic => "logistic",
            Model::Svm => "svm",
            Model::Robust => "robust",
            Model::Quantile => "quantile",
            Model::Kan => "kan",
            Model::Auto => "auto",
        }
    }

    /// The same for the planner.
    pub(crate) fn family(self) -> Family {
        match self {
            Model::Linear | Model::Auto => Family::Linear,
            Model::Relu => Family::Relu,
            Model::Logistic => Family::Logistic,
            Model::Svm => Family::Svm,
            Model::Robust => Family::Robust,
            Model::Quantile => Family::Quantile,
            Model::Kan => Family::Kan,
        }
    }
}

/// What a loss and its weights are held to.
#[derive(Args, Debug)]
pub(crate) struct Shape {
    /// Where weights must stay: l1, l2, linf or simplex, of size --radius
    #[arg(long, value_name = "SET")]
    constraint: Option<String>,
    /// Adds X/2 times the squared weights to the loss of every row
    #[arg(long, value_name = "X", hide_short_help = true)]
    ridge: Option<Number>,
    /// Adds X times the size of all weights to the loss of every row
    #[arg(long, value_name = "X", hide_short_help = true)]
    lasso: Option<Number>,
    /// Which quantile, for `fit quantile`
    #[arg(long, value_name = "Q", hide_short_help = true)]
    level: Option<Number>,
    /// How the objective grows around its minimum, for methods from papers: theta
    #[arg(long, value_name = "T", hide_short_help = true, requires = "rate")]
    theta: Option<Number>,
    /// The factor of that growth
    #[arg(long, value_name = "X", hide_short_help = true, requires = "theta")]
    rate: Option<Number>,
}

impl Shape {
    /// The flags, to be typed again.
    pub(crate) fn typed(&self) -> String {
        let mut flags = String::new();
        if let Some(set) = &self.constraint {
            flags += &format!(" --constraint {set}");
        }
        let numbers = [
            ("ridge", self.ridge),
            ("lasso", self.lasso),
            ("level", self.level),
            ("theta", self.theta),
            ("rate", self.rate),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                flags += &format!(" --{name} {}", number.0);
            }
        }
        flags
    }

    /// Puts them into words that the planner takes.
    pub(crate) fn ask(&self, asked: &mut Asked) {
        let number = |given: Option<Number>| given.map(|number| number.0);
        asked.constraint.clone_from(&self.constraint);
        (asked.ridge, asked.lasso) = (number(self.ridge), number(self.lasso));
        asked.level = number(self.level);
        asked.growth = number(self.theta).zip(number(self.rate));
    }
}
