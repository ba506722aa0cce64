//! Which model is fitted, and by which planner.
use clap::{Args, ValueEnum};
use quietly::{Budget, Convex, Encoding, Expansion, Loss, Method, Plan, Set};

use crate::{
    failure::Failure,
    number::{Count, Number},
};

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

/// Corners are rounded over this part of half the target's range, or of a margin.
const CORNER: f64 = 0.05;
/// Residuals count in full up to this part of half the target's range.
const ROBUST: f64 = 0.1;

impl Shape {
    /// Whether a linear model needs the convex planner.
    pub(crate) fn is_plain(&self) -> bool {
        self.constraint.is_none() && self.ridge.is_none() && self.lasso.is_none()
    }

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

    /// The plan of a convex model.
    pub(crate) fn plan(
        &self,
        model: Model,
        method: Method,
        (radius, steps, step_size): (Option<Number>, Option<Count>, Option<Number>),
        (encoding, expansion): (&Encoding, Option<&Expansion>),
        (rows, budget): (u64, Budget),
    ) -> Result<Plan, Failure> {
        let loss = self.loss(model, method, encoding)?;
        let (width, longest) = match expansion {
            Some(expansion) => (expansion.width(), expansion.longest(encoding).hypot(1.0)),
            None => (encoding.width(), longest(encoding)),
        };
        let mut convex = Convex::new(loss).method(method).rows_within(longest);
        if let Some(name) = &self.constraint {
            convex = convex.within(set(name, radius.map_or(1.0, |r| r.0))?);
        }
        if let Some(steps) = steps {
            convex = convex.steps(steps.get("steps")?);
        }
        if let Some(size) = step_size {
            convex = convex.step_size(size.0);
        }
        if let Some(ridge) = self.ridge {
            convex = convex.ridge(ridge.0);
        }
        if let Some(lasso) = self.lasso {
            convex = convex.lasso(lasso.0);
        }
        if let (Some(theta), Some(rate)) = (self.theta, self.rate) {
            convex = convex.growing(theta.0, rate.0);
        }
        Ok(convex.plan(rows, width, budget)?)
    }

    fn loss(&self, model: Model, method: Method, encoding: &Encoding) -> Result<Loss, Failure> {
        let classes = || encoding.expect_classes().map_err(quietly::Error::from);
        if !matches!(model, Model::Logistic | Model::Svm) {
            encoding.expect_range().map_err(quietly::Error::from)?;
        }
        let level = self.level.map_or(0.5, |l| l.0);
        Ok(match model {
            Model::Logistic => match classes()?.class_count() {
                2 => Loss::Logistic,
                classes => Loss::Softmax { classes },
            },
            Model::Svm => {
                let count = classes()?.class_count();
                if count != 2 {
                    let (name, want) = (
                        "classes of a support vector machine",
                        "two; take `fit logistic` for more",
                    );
                    return Err(
                        quietly::Error::Parameter { name, want, got: count.to_string() }.into()
                    );
                }
                if method == Method::PhasedErm {
                    Loss::Hinge
                } else {
                    Loss::SmoothHinge { width: 0.5 }
                }
            }
            Model::Robust => Loss::Huber { width: ROBUST },
            Model::Quantile if method == Method::PhasedErm => Loss::Quantile { level },
            Model::Quantile => Loss::SmoothQuantile { level, width: CORNER },
            Model::Linear | Model::Relu | Model::Kan | Model::Auto => Loss::Squared,
        })
    }
}

/// The set of this name and size.
fn set(name: &str, size: f64) -> Result<Set, Failure> {
    match name {
        "l1" => Ok(Set::L1 { radius: size }),
        "l2" => Ok(Set::L2 { radius: size }),
        "linf" => Ok(Set::Linf { radius: size }),
        "simplex" => Ok(Set::Simplex { total: size }),
        _ => Err(Failure::Unreadable {
            flag: "--constraint".into(),
            typed: name.into(),
            wanted: "l1, l2, linf or simplex".into(),
        }),
    }
}

/// What no row's norm exceeds, with its constant: a column gives at most 1, in however many features.
fn longest(encoding: &Encoding) -> f64 {
    let mut columns: Vec<&str> = encoding.features().iter().map(|f| f.column.as_str()).collect();
    columns.dedup();
    (columns.len() as f64 + 1.0).sqrt()
}
