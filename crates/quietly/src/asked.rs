//! A model in the words that people type, and the plan for it. The same words mean the same in every front end.
use quietly_data::Encoding;

use crate::{
    budget::Budget,
    convex::{Convex, Loss, Set},
    error::Error,
    expand::Expansion,
    method::Method,
    model::Link,
    plan::{Plan, Regression},
};

pub use self::network::Network;

mod network;

/// Corners are rounded over this part of half the target's range, or of a margin.
const CORNER: f64 = 0.05;
/// Residuals count in full up to this part of half the target's range.
const ROBUST: f64 = 0.1;
/// Splines of every number.
const SPLINES: usize = 6;
/// Waves of all features.
const WAVES: usize = 256;

/// What can be fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// The target is a weighted sum of the features.
    Linear,
    /// The target is a weighted sum of the features, or 0 where that is negative.
    Relu,
    /// Classes with probabilities.
    Logistic,
    /// Two classes, told apart by a margin.
    Svm,
    /// A weighted sum that far-off targets hardly move.
    Robust,
    /// A weighted sum that a given share of targets lies below.
    Quantile,
    /// A Kolmogorov–Arnold network.
    Kan,
}

/// A model to be planned, as it is asked for: everything that is `None` is left to the planner.
///
/// ```
/// use quietly::{Asked, Budget, Encoding, Family, Schema};
///
/// let schema = "rows = 5000\n[columns]\nage = { range = [0, 100] }\nsick = { values = [0, 1] }";
/// let columns = ["age", "sick"].map(String::from);
/// let encoding = Encoding::new(&Schema::parse(schema)?, &columns, None, Some("sick"))?;
///
/// let asked = Asked { expand: Some("splines=5".into()), ..Asked::new(Family::Logistic) };
/// let plan = asked.plan(&encoding, 5000, Budget::usual(1.0, None, 5000)?)?;
/// assert_eq!((plan.width, plan.budget.delta()), (5, 1e-5));
/// # Ok::<(), quietly::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// What is fitted.
    pub family: Family,
    /// A name of a [`Method`].
    pub method: String,
    /// How many steps.
    pub steps: Option<u64>,
    /// How far a step goes.
    pub step_size: Option<f64>,
    /// The most that weights may measure.
    pub radius: Option<f64>,
    /// `splines`, `splines=P`, `waves` or `waves=COUNT`.
    pub expand: Option<String>,
    /// Where weights must stay: `l1`, `l2`, `linf` or `simplex`, of size `radius`.
    pub constraint: Option<String>,
    /// Adds so much times half the squared weights to the loss of every row.
    pub ridge: Option<f64>,
    /// Adds so much times the size of all weights to the loss of every row.
    pub lasso: Option<f64>,
    /// Which quantile.
    pub level: Option<f64>,
    /// How the objective grows around its minimum, for methods from papers: θ and its factor.
    pub growth: Option<(f64, f64)>,
    /// Whether there is a public table to take thresholds from.
    pub public_rows: bool,
    /// How a network looks and learns.
    pub network: Network,
}

impl Asked {
    /// Such a model, with all else left to the planner.
    pub fn new(family: Family) -> Self {
        Asked {
            family,
            method: Method::Auto.name().into(),
            steps: None,
            step_size: None,
            radius: None,
            expand: None,
            constraint: None,
            ridge: None,
            lasso: None,
            level: None,
            growth: None,
            public_rows: false,
            network: Network::default(),
        }
    }

    /// The plan for about `rows` rows of this encoding.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] for words that are none and for wishes that do not go together, [`Error::Data`] if the target is
    /// of the wrong kind, and as the planners.
    pub fn plan(&self, encoding: &Encoding, rows: u64, budget: Budget) -> Result<Plan, Error> {
        let mut plan = self.planned(encoding, rows, budget)?;
        if budget.delta() * rows as f64 > 1.0 && budget.epsilon().is_finite() {
            plan.warnings.push(format!(
                "delta {:e} is more than one over {rows} rows: to publish somebody's whole row, drawn by lot, would keep such a promise. Take \
                 less, or leave it out.",
                budget.delta()
            ));
        }
        Ok(plan)
    }

    fn planned(&self, encoding: &Encoding, rows: u64, budget: Budget) -> Result<Plan, Error> {
        let method = Method::named(&self.method).ok_or_else(|| {
            unread("method", "auto or a name that `quietly methods` lists", &self.method)
        })?;
        let wrong = self.level.is_some() && self.family != Family::Quantile;
        let want = "left out: only a quantile has a level";
        Error::unless(!wrong, "level", want, self.level.unwrap_or_default())?;
        let radius = self.radius.unwrap_or(1.0);
        let fine = radius > 0.0 && radius <= 1e100;
        Error::unless(fine, "radius", "above 0 and at most 1e100", radius)?;
        let network = self.family == Family::Kan;
        let stray = "left out: only networks have it";
        let fine = network || self.network == Network::default();
        Error::unless(fine, "hidden, basis, passes and the like", stray, "given")?;
        if network {
            let want = "left out: networks take passes, sampling and the like";
            let fine = method == Method::Auto && self.steps.is_none() && self.expand.is_none();
            Error::unless(fine, "method, steps or expand", want, "given")?;
            Error::unless(self.is_plain(), "constraint, ridge or lasso", want, "given")?;
            return self.network.plan(encoding, (rows, budget), (self.radius, self.step_size));
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
        let mut regression = Regression::new(link).method(method);
        if let Some(steps) = self.steps {
            regression = regression.steps(steps);
        }
        if let Some(size) = self.step_size {
            regression = regression.step_size(size);
        }
        if let Some(radius) = self.radius {
            regression = regression.radius(radius);
        }
        if self.public_rows {
            regression = regression.with_public_rows();
        }
        let width = expansion.map_or(encoding.width(), Expansion::width);
        regression.plan(rows, width, budget)
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
        let mut convex = Convex::new(loss).method(method).rows_within(longest);
        if let Some(name) = &self.constraint {
            convex = convex.within(set(name, self.radius.unwrap_or(1.0))?);
        }
        if let Some(steps) = self.steps {
            convex = convex.steps(steps);
        }
        if let Some(size) = self.step_size {
            convex = convex.step_size(size);
        }
        if let Some(ridge) = self.ridge {
            convex = convex.ridge(ridge);
        }
        if let Some(lasso) = self.lasso {
            convex = convex.lasso(lasso);
        }
        if let Some((theta, rate)) = self.growth {
            convex = convex.growing(theta, rate);
        }
        convex.plan(rows, width, budget)
    }

    fn loss(&self, method: Method, encoding: &Encoding) -> Result<Loss, Error> {
        if !matches!(self.family, Family::Logistic | Family::Svm) {
            encoding.expect_range()?;
        }
        let level = self.level.unwrap_or(0.5);
        Ok(match self.family {
            Family::Logistic => match encoding.expect_classes()?.class_count() {
                2 => Loss::Logistic,
                classes => Loss::Softmax { classes },
            },
            Family::Svm => {
                let count = encoding.expect_classes()?.class_count();
                let name = "classes of a support vector machine";
                Error::unless(count == 2, name, "two; take logistic regression for more", count)?;
                match method {
                    Method::PhasedErm => Loss::Hinge,
                    _ => Loss::SmoothHinge { width: 0.5 },
                }
            }
            Family::Robust => Loss::Huber { width: ROBUST },
            Family::Quantile if method == Method::PhasedErm => Loss::Quantile { level },
            Family::Quantile => Loss::SmoothQuantile { level, width: CORNER },
            Family::Linear | Family::Relu | Family::Kan => Loss::Squared,
        })
    }
}

impl Budget {
    /// (ε, δ), where δ = 0 is pure and no δ is the usual one for so many rows: the largest power of ten that is at most
    /// 1 / (10 rows), within what can be accounted for.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new) and [`pure`](Self::pure).
    pub fn usual(epsilon: f64, delta: Option<f64>, rows: u64) -> Result<Self, Error> {
        let digits = (rows.max(1) as f64 * 10.0).log10().ceil() as i32;
        match delta.unwrap_or_else(|| 10.0_f64.powi(-digits.clamp(5, 12))) {
            0.0 if epsilon.is_finite() => Budget::pure(epsilon),
            delta => Budget::new(epsilon, delta),
        }
    }
}

/// Whether it fits squares in a way of its own.
fn is_regression(method: Method) -> bool {
    !method.is_convex() || method == Method::DpSgd
}

/// What these words make of the features.
fn expansion(how: &str, encoding: &Encoding) -> Result<Expansion, Error> {
    let wrong = || unread("expand", "splines, splines=P, waves or waves=COUNT", how);
    let (word, count) = match how.trim().split_once('=') {
        Some((word, count)) => (word, Some(count.parse().map_err(|_| wrong())?)),
        None => (how.trim(), None),
    };
    let expansion = match word {
        "splines" => Expansion::splines(encoding, count.unwrap_or(SPLINES)),
        "waves" => Expansion::waves(encoding, count.unwrap_or(WAVES)),
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
        _ => Err(unread("constraint", "l1, l2, linf or simplex", name)),
    }
}

/// What no row's norm exceeds, with its constant: a column gives at most 1, in however many features.
fn longest(encoding: &Encoding) -> f64 {
    let mut columns: Vec<&str> = encoding.features().iter().map(|f| f.column.as_str()).collect();
    columns.dedup();
    (columns.len() as f64 + 1.0).sqrt()
}

/// A word that is none.
fn unread(name: &'static str, want: &'static str, got: &str) -> Error {
    Error::Parameter { name, want, got: format!("{got:?}") }
}
