//! Model specs: the parameters a user gives, and the plan for them. Parameters have one name in every front end.
use quietly_core::budget::Budget;
use quietly_data::{Encoding, Feature, Kind};
use quietly_engine::{error::Error, expansion::Expansion, link::Link};
use quietly_glm::{Loss, Set};

use crate::{
    methods::Method,
    plan::{Convex, Plan, Regression},
};

pub use self::{
    declare::{ParameterGroup, ParameterInfo, ParameterKind, ParameterValue},
    parameters::{ModelSpec, PARAMETERS, RENAMED},
};

mod auto;
mod declare;
mod network;
mod parameters;

/// Corners are rounded over this part of half the target's range, or of a margin.
const CORNER: f64 = 0.05;
/// Residuals count in full up to this part of half the target's range.
const ROBUST: f64 = 0.1;
/// Splines of every number.
const SPLINES: usize = 6;
/// Random Fourier features of all features.
const FOURIER: usize = 256;

/// What can be fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// The target is a weighted sum of the features.
    Linear,
    /// The target is a weighted sum of the features, or 0 where that is negative.
    Relu,
    /// Classes with probabilities.
    Logistic,
    /// Two classes, separated by a margin.
    Svm,
    /// A weighted sum that outliers hardly move.
    Robust,
    /// A weighted sum that a given share of targets lies below.
    Quantile,
    /// A Kolmogorov–Arnold network.
    Kan,
    /// The one that public numbers suggest: an additive regression, linear regression or logistic regression.
    Auto,
}

impl Family {
    /// All of them.
    pub const ALL: [Family; 8] = [
        Family::Linear,
        Family::Relu,
        Family::Logistic,
        Family::Svm,
        Family::Robust,
        Family::Quantile,
        Family::Kan,
        Family::Auto,
    ];

    /// The keyword.
    pub fn name(self) -> &'static str {
        match self {
            Family::Linear => "linear",
            Family::Relu => "relu",
            Family::Logistic => "logistic",
            Family::Svm => "svm",
            Family::Robust => "robust",
            Family::Quantile => "quantile",
            Family::Kan => "kan",
            Family::Auto => "auto",
        }
    }

    /// What it is, as help says it.
    pub fn help(self) -> &'static str {
        match self {
            Family::Linear => "The target is a weighted sum of the features",
            Family::Relu => {
                "The target is a weighted sum of the features, or 0 where that is negative"
            }
            Family::Logistic => "Classes with probabilities",
            Family::Svm => "Two classes, separated by a margin",
            Family::Robust => "A weighted sum that outliers hardly move",
            Family::Quantile => "A weighted sum that a given share of targets lies below",
            Family::Kan => {
                "A Kolmogorov-Arnold network: classes or a number, from learnt functions of the features"
            }
            Family::Auto => "A number or classes, by a model chosen from public information alone",
        }
    }

    /// The family of this keyword.
    pub fn named(name: &str) -> Option<Self> {
        Family::ALL.into_iter().find(|family| family.name() == name)
    }
}

impl ModelSpec {
    /// The plan for about `rows` rows of this encoding.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] for unknown keywords and for parameters that do not go together, [`Error::Data`] if the target is
    /// of the wrong kind, and as the planners.
    pub fn plan(&self, encoding: &Encoding, rows: u64, budget: Budget) -> Result<Plan, Error> {
        let mut plan = self.planned(encoding, rows, budget)?;
        if budget.delta() * rows as f64 > 1.0 && budget.epsilon().is_finite() {
            plan.warnings.push(format!(
                "delta {:e} is more than one over {rows} rows: publishing one row in full, drawn at random, would \
                 satisfy such a guarantee. Use a smaller delta, or leave it out.",
                budget.delta()
            ));
        }
        Ok(plan)
    }

    fn planned(&self, encoding: &Encoding, rows: u64, budget: Budget) -> Result<Plan, Error> {
        let name = self.method.as_deref().unwrap_or(Method::Auto.name());
        let want = "auto or a name that `quietly methods` lists";
        let method = Method::named(name).ok_or_else(|| unknown("method", want, name))?;
        let wrong = self.quantile.is_some() && self.family != Family::Quantile;
        let want = "left out: only quantile regression has it";
        Error::ensure(!wrong, "quantile", want, self.quantile.unwrap_or_default())?;
        let radius = self.radius.unwrap_or(1.0);
        let fine = radius > 0.0 && radius <= 1e100;
        Error::ensure(fine, "radius", "above 0 and at most 1e100", radius)?;
        let network = self.family == Family::Kan;
        let foreign = self.foreign(|group| match group {
            ParameterGroup::Every => true,
            ParameterGroup::Linear | ParameterGroup::Convex => !network,
            ParameterGroup::Network => network,
        });
        let want = match network {
            true => "those of networks, such as epochs and sampler",
            false => "those of this model: only networks have the ones given",
        };
        Error::ensure(foreign.is_empty(), "parameters", want, foreign)?;
        if self.family == Family::Auto {
            return self.auto(encoding, rows, budget);
        }
        if network {
            return self.network(encoding, rows, budget);
        }
        let expansion = match &self.expand {
            Some(how) => Some(expansion(how, encoding)?),
            None => None,
        };
        let plan = match self.family {
            Family::Linear if self.is_plain() && is_regression(method) => {
                self.regression(Link::Linear, method, (encoding, expansion.as_ref()), rows, budget)
            }
            Family::Relu => {
                self.regression(Link::Relu, method, (encoding, expansion.as_ref()), rows, budget)
            }
            _ => self.convex(method, (encoding, expansion.as_ref()), rows, budget),
        }?;
        match expansion {
            Some(expansion) => plan.expanding(expansion),
            None => Ok(plan),
        }
    }

    /// Whether a linear model does without the convex planner.
    fn is_plain(&self) -> bool {
        self.constraint.is_none() && self.ridge.is_none() && self.lasso.is_none()
    }

    fn regression(
        &self,
        link: Link,
        method: Method,
        (encoding, expansion): (&Encoding, Option<&Expansion>),
        rows: u64,
        budget: Budget,
    ) -> Result<Plan, Error> {
        encoding.expect_range()?;
        let mut regression = self.given_to_regression(Regression::new(link).method(method));
        if self.public_rows {
            regression = regression.with_public_rows();
        }
        let width = expansion.map_or(encoding.width(), Expansion::width);
        // Expanded features are within bounds of their own, and made to be as they are.
        let numbers = match expansion {
            Some(_) => Vec::new(),
            None => numeric_features(encoding),
        };
        regression.numeric(numbers).plan(rows, width, budget)
    }

    fn convex(
        &self,
        method: Method,
        (encoding, expansion): (&Encoding, Option<&Expansion>),
        rows: u64,
        budget: Budget,
    ) -> Result<Plan, Error> {
        let (width, longest) = match expansion {
            Some(expansion) => (expansion.width(), expansion.longest(encoding).hypot(1.0)),
            None => (encoding.width(), longest(encoding)),
        };
        let loss = self.loss(method, encoding)?;
        let convex = Convex::new(loss).method(method).rows_within(longest);
        self.given_to_convex(convex)?.plan(rows, width, budget)
    }

    fn loss(&self, method: Method, encoding: &Encoding) -> Result<Loss, Error> {
        if !matches!(self.family, Family::Logistic | Family::Svm) {
            encoding.expect_range()?;
        }
        let level = self.quantile.unwrap_or(0.5);
        Ok(match self.family {
            Family::Logistic => match encoding.expect_classes()?.class_count() {
                2 => Loss::Logistic,
                classes => Loss::Softmax { classes },
            },
            Family::Svm => {
                let count = encoding.expect_classes()?.class_count();
                let name = "classes of a support vector machine";
                Error::ensure(count == 2, name, "two; take logistic regression for more", count)?;
                match method {
                    Method::PhasedErm => Loss::Hinge,
                    _ => Loss::SmoothHinge { width: 0.5 },
                }
            }
            Family::Robust => Loss::Huber { width: ROBUST },
            Family::Quantile if method == Method::PhasedErm => Loss::Quantile { level },
            Family::Quantile => Loss::SmoothQuantile { level, width: CORNER },
            Family::Linear | Family::Relu | Family::Kan | Family::Auto => Loss::Squared,
        })
    }
}

/// The features that are numeric columns.
pub(crate) fn numeric_features(encoding: &Encoding) -> Vec<usize> {
    let features = encoding.features().iter().enumerate();
    let number =
        |(k, feature): (usize, &Feature)| matches!(feature.kind, Kind::Number { .. }).then_some(k);
    features.filter_map(number).collect()
}

/// Whether it fits squares in a way of its own.
fn is_regression(method: Method) -> bool {
    !method.is_convex() || method == Method::DpSgd
}

/// What these words make of the features.
fn expansion(how: &str, encoding: &Encoding) -> Result<Expansion, Error> {
    let wrong = || unknown("expand", "splines, splines=P, fourier or fourier=COUNT", how);
    let (word, count) = match how.trim().split_once('=') {
        Some((word, count)) => (word, Some(count.parse().map_err(|_| wrong())?)),
        None => (how.trim(), None),
    };
    let expansion = match word {
        "splines" => Expansion::splines(encoding, count.unwrap_or(SPLINES)),
        "fourier" => Expansion::waves(encoding, count.unwrap_or(FOURIER)),
        _ => return Err(wrong()),
    };
    expansion.check()?;
    Ok(expansion)
}

/// The set of this name and size.
fn set(name: &str, size: f64) -> Result<Set, Error> {
    match name {
        "l1" => Ok(Set::L1 { radius: size }),
        "l2" => Ok(Set::L2 { radius: size }),
        "linf" => Ok(Set::Linf { radius: size }),
        "simplex" => Ok(Set::Simplex { total: size }),
        _ => Err(unknown("constraint", "l1, l2, linf or simplex", name)),
    }
}

/// What no row's norm exceeds, with its constant: a column gives at most 1, in however many features.
pub(crate) fn longest(encoding: &Encoding) -> f64 {
    let mut columns: Vec<&str> = encoding.features().iter().map(|f| f.column.as_str()).collect();
    columns.dedup();
    (columns.len() as f64 + 1.0).sqrt()
}

/// An unknown keyword.
fn unknown(name: &'static str, want: &'static str, got: &str) -> Error {
    Error::Parameter { name, want, got: format!("{got:?}") }
}
