//! Planning regressions: every error is raised here, before any row is read.
use quietly_accounting::Neighbours;
use quietly_core::budget::Budget;
use quietly_engine::{
    algorithm::{Algorithm, Planned, Shape},
    error::Error,
    link::Link,
    whitening::WIDEST,
};
use quietly_linear::{
    budget_split::{Design, Learnable, TREES, Wanted},
    full_batch::{FullBatch, check_numbers},
    least_squares::LeastSquares,
    one_pass::{self, OnePass},
    papers::{self, Paper, Parameters},
};

use super::Plan;
use crate::{any_algorithm::AnyAlgorithm, methods::Method};

/// Tables that would take more than this are streamed, unless one asks otherwise.
const IN_MEMORY: f64 = 8e9;

/// The rows that each step of one pass has for each feature, at least.
const ROWS_PER_FEATURE: u64 = 5;

/// A regression to be planned.
///
/// ```
/// use quietly::{Budget, Link, Regression};
///
/// let plan = Regression::new(Link::Linear).plan(20_000, 10, Budget::new(1.0, 1e-5)?)?;
/// assert!(plan.epsilon() <= 1.0);
/// println!("{plan}");
/// # Ok::<(), quietly::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Regression {
    link: Link,
    method: Method,
    parameters: Parameters,
    numbers: Numbers,
}

/// Which features are numeric columns that may be winsorised.
#[derive(Clone, Debug)]
enum Numbers {
    All,
    These(Vec<usize>),
}

impl Regression {
    /// A regression with this link.
    pub fn new(link: Link) -> Self {
        let (method, parameters) = (Method::Auto, Parameters::default());
        Regression { link, method, parameters, numbers: Numbers::All }
    }

    /// The same, fitted in another way.
    #[must_use]
    pub fn method(self, method: Method) -> Self {
        Regression { method, ..self }
    }

    /// The same in so many steps, where the method lets one choose.
    #[must_use]
    pub fn steps(self, steps: u64) -> Self {
        Regression { parameters: Parameters { steps: Some(steps), ..self.parameters }, ..self }
    }

    /// The same with this step size, in units where features have mean square one.
    #[must_use]
    pub fn step_size(self, step_size: f64) -> Self {
        Regression {
            parameters: Parameters { step_size: Some(step_size), ..self.parameters },
            ..self
        }
    }

    /// The same with weights held to this norm: of features within [-1, 1], for a target within [-1, 1].
    #[must_use]
    pub fn radius(self, radius: f64) -> Self {
        Regression { parameters: Parameters { radius: Some(radius), ..self.parameters }, ..self }
    }

    /// The same, where these features are numeric columns and the others categories: all are numeric by default. The default
    /// methods winsorise numeric columns where the budget allows it; with none of them, features are taken as they are.
    #[must_use]
    pub fn numeric(self, features: Vec<usize>) -> Self {
        Regression { numbers: Numbers::These(features), ..self }
    }

    /// The same with features as they are, whatever the budget: nothing is winsorised.
    #[must_use]
    pub fn raw(self) -> Self {
        self.numeric(Vec::new())
    }

    /// The same with thresholds from public rows, which [`Plan::fit`] is then given.
    #[must_use]
    pub fn with_public_rows(self) -> Self {
        Regression { parameters: Parameters { public: true, ..self.parameters }, ..self }
    }

    /// The plan for about `rows` rows of `width` features.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if there are no rows or no features or the link is none of least squares, [`Error::TooLarge`] if there are more than 1000 features for
    /// one pass, [`Error::Accounting`] if the budget cannot be met.
    pub fn plan(&self, rows: u64, width: usize, budget: Budget) -> Result<Plan, Error> {
        Plan::for_unit(budget, |budget| self.draft(rows, width, budget))
    }

    fn draft(&self, rows: u64, width: usize, budget: Budget) -> Result<Plan, Error> {
        let known = matches!(self.link, Link::Linear | Link::Relu);
        Error::ensure(known, "regression", "linear or relu", self.link.name())?;
        let convex = self.method.is_convex() && self.method != Method::DpSgd;
        let want = "one for regressions; Convex plans the others";
        Error::ensure(!convex, "method", want, self.method.name())?;
        let bytes = rows as f64 * (width + 1) as f64 * 12.0;
        let method = match self.method {
            _ if !budget.is_private() => Method::Exact,
            Method::Auto if bytes > IN_MEMORY && width <= WIDEST => Method::OnePass,
            Method::Auto | Method::Exact => Method::FullBatch,
            other => other,
        };
        if method == Method::Exact && width > 2 * WIDEST {
            return Err(Error::TooLarge {
                what: "least squares without noise",
                needed: format!("{:.0} MB", 8e-6 * 32.0 * (width as f64 + 1.0).powi(2)),
                instead: "take at most 2000 features",
            });
        }
        if method == Method::OnePass && width > WIDEST {
            let entries = 0.5 * (width as f64 + 1.0).powi(2);
            return Err(Error::TooLarge {
                what: "the second moment of one pass",
                needed: format!("{:.0} MB", 24e-6 * entries),
                instead: "take at most 1000 features, or full batch",
            });
        }
        let shape = Shape::new(rows, width)?;
        if method == Method::Exact {
            let exact = LeastSquares::new(self.link);
            let privacy = Algorithm::plan(&exact, shape, budget)?;
            return Ok(Planned::new(exact, shape, privacy).into());
        }
        budget.unless_pure()?;
        // What a Gaussian release could have at most; the exact number follows from the stages.
        let mu = quietly_accounting::gaussian_mu(budget.epsilon(), budget.delta())?
            / if budget.neighbours() == Neighbours::ReplaceOne { 2.0 } else { 1.0 };
        let want = match self.link {
            Link::Linear => "one for linear regression",
            _ => "one for relu regression",
        };
        let fine = method.about().links.contains(&self.link);
        Error::ensure(fine, "method", want, method.and_its_models())?;
        if let Some(paper) = Paper::named(method.name()) {
            let name = (paper, method.name());
            return Ok(papers::plan(name, self.link, shape, budget, &self.parameters)?.into());
        }
        self.parameters.none(method == Method::OnePass)?;
        match AnyAlgorithm::closed_form(method, shape, budget) {
            Some(plan) => plan,
            None => self.default(method, shape, budget, mu),
        }
    }

    /// Full batch, or one pass.
    fn default(
        &self,
        method: Method,
        shape: Shape,
        budget: Budget,
        mu: f64,
    ) -> Result<Plan, Error> {
        let Shape { rows, width } = shape;
        // A step of one pass sees its part of the rows only. Where that teaches nothing, there are few rows, and all of
        // them can be asked at once.
        let steps = self.parameters.steps.filter(|_| method == Method::OnePass);
        let numbers = match &self.numbers {
            Numbers::All => (0..width).collect(),
            Numbers::These(these) => these.clone(),
        };
        check_numbers(&numbers, shape)?;
        let one_pass = OnePass::new(self.link, numbers.clone(), steps, (shape, budget))?;
        let efficiency = one_pass::efficiency(one_pass.steps);
        let wanted = Wanted {
            link: self.link,
            rows,
            width,
            numbers: numbers.len(),
            mu,
            neighbours: budget.neighbours(),
            trees: TREES,
            tails: true,
        };
        let part = Design::new(Wanted { mu: efficiency * mu, ..wanted });
        // A second moment of a handful of rows is no metric, whatever the noise.
        let enough = rows >= ROWS_PER_FEATURE * one_pass.steps * (width as u64 + 1);
        if method == Method::OnePass && part.reach == Learnable::Weights && enough {
            let privacy = Algorithm::plan(&one_pass, shape, budget)?;
            let outlook = Outlook::new(self.link, shape, budget, mu, 2.0);
            return Ok(outlook.of(part.reach, Planned::new(one_pass, shape, privacy)).into());
        }
        let design = Design::new(wanted);
        let reach = design.reach;
        let full_batch = FullBatch { link: self.link, numbers, design };
        let privacy = Algorithm::plan(&full_batch, shape, budget)?;
        let outlook = Outlook::new(self.link, shape, budget, mu, 1.0);
        Ok(outlook.of(reach, Planned::new(full_batch, shape, privacy)).into())
    }
}

/// What to expect of the default regressions: public numbers alone.
struct Outlook {
    shape: Shape,
    budget: Budget,
    mu: f64,
    /// How many noise units a feature needs.
    least_per_feature: f64,
    expected_loss: f64,
}

impl Outlook {
    fn new(link: Link, shape: Shape, budget: Budget, mu: f64, factor: f64) -> Self {
        let (units, d) = (mu * shape.rows as f64, (shape.width + 1) as f64);
        // Gradients take about half of the budget. At a clip of three residuals on a row of norm √d noise adds so much; a
        // high clip may add up to fifty times that, but no more than 0.5 %.
        let low = 9.0 * d * d / (0.5 * units * units);
        let expected_loss = factor * low.max((50.0 * low).min(0.005));
        let least_per_feature = if link == Link::Relu { 12.0 } else { 6.0 };
        Outlook { shape, budget, mu, least_per_feature, expected_loss }
    }

    /// The plan with what is expected of it.
    fn of<A>(&self, reach: Learnable, planned: Planned<A>) -> Planned<A> {
        let (epsilon, Shape { rows, width }) = (self.budget.epsilon(), self.shape);
        let (d, mu, expected_loss) = ((width + 1) as f64, self.mu, self.expected_loss);
        let warning = match reach {
            Learnable::Nothing => Some(format!(
                "epsilon {epsilon} is too small for about {rows} rows: nothing can be learnt, and the model will predict the \
                 middle of the target's range. Learning a mean needs about {:.0} rows.",
                30.0 / mu
            )),
            Learnable::Centre => Some(format!(
                "epsilon {epsilon} is too small for {width} features and about {rows} rows: only the mean of the target will \
                 be learnt. Use about {:.0} rows, or fewer features.",
                (self.least_per_feature * d / mu).max(5.0 * self.least_per_feature / mu)
            )),
            Learnable::Weights if expected_loss > 0.1 => Some(format!(
                "expect noise to add about {:.0} % to the squared error: epsilon {epsilon} is small for {width} features and \
                 about {rows} rows. More rows, a larger epsilon or fewer features would help.",
                100.0 * expected_loss.min(1.0)
            )),
            Learnable::Weights => None,
        };
        Planned { expected_loss, warnings: warning.into_iter().collect(), ..planned }
    }
}
