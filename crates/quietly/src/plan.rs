//! What a fit will do and cost, before any row is read.
use quietly_accounting::Neighbours;
use serde::{Deserialize, Serialize};

use crate::{
    budget::Budget,
    certificate::Certificate,
    charge::{self, Mechanism, Sampler, Stage},
    convex::Program,
    design::{Design, Reach, WIDEST},
    error::Error,
    expand::Expansion,
    kan::Training,
    method::Method,
    model::Link,
    one_pass::{self, OnePass},
    recipes::{self, Clip, Recipe},
    remembered::Search,
    rows_used,
};

pub use self::{elsewhere::Elsewhere, run::Reads};

mod check;
mod display;
mod elsewhere;
mod run;
mod source;

/// Tables that would take more than this are streamed, unless one asks otherwise.
const IN_MEMORY: f64 = 8e9;

/// The least noise of a step in one pass: what the accountant allows, and a little for rounding.
const LEAST: f64 = 0.1 * (1.0 + 1e-9);

/// A regression to be planned.
///
/// ```
/// use quietly::{Budget, Link, Regression};
///
/// let plan = Regression::new(Link::Linear).plan(20_000, 10, Budget::new(1.0, 1e-5)?)?;
/// assert!(plan.epsilon <= 1.0);
/// println!("{plan}");
/// # Ok::<(), quietly::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Regression {
    link: Link,
    method: Method,
    wishes: Wishes,
}

/// What a user may ask of a recipe beyond its defaults.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wishes {
    pub(crate) steps: Option<u64>,
    pub(crate) step_size: Option<f64>,
    pub(crate) radius: Option<f64>,
    pub(crate) public: bool,
}

/// A planned fit: printable, comparable, and complete.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Plan {
    /// What is fitted.
    pub link: Link,
    /// How the table is read.
    pub method: Method,
    /// About how many rows there are; public.
    pub rows: u64,
    /// How many features a row has, without the constant; where rows are expanded, after that.
    pub width: usize,
    /// What may be spent on one row.
    pub budget: Budget,
    /// What may be spent on a unit of several rows, if units have them: group privacy leaves `budget` of it for each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unit: Option<Budget>,
    /// Which rows each step sees.
    #[serde(flatten)]
    pub sampler: Sampler,
    /// Every question that will be put to the data.
    pub stages: Vec<Stage>,
    /// What they cost: a certified upper bound on ε at the budget's δ.
    #[serde(with = "crate::budget::endless")]
    pub epsilon: f64,
    /// How the budget is divided, for full batch and one pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub design: Option<Design>,
    /// The parts of the descent, for the methods of the papers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe: Option<Recipe>,
    /// The convex problem, for losses other than squares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub convex: Option<Program>,
    /// How a network is trained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Training>,
    /// What is made of the features of a row before anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expansion: Option<Expansion>,
    /// What noise is expected to add to the mean squared error, as a share of what least squares leaves; infinite where
    /// there is no saying.
    #[serde(with = "crate::budget::endless")]
    pub expected_loss: f64,
    /// What the planner wants to be known.
    pub warnings: Vec<String>,
    #[serde(skip)]
    seal: check::Seal,
}

impl Regression {
    /// A regression with this link.
    pub fn new(link: Link) -> Self {
        Regression { link, method: Method::Auto, wishes: Wishes::default() }
    }

    /// The same, fitted in another way.
    #[must_use]
    pub fn method(self, method: Method) -> Self {
        Regression { method, ..self }
    }

    /// The same in so many steps, where the method lets one choose.
    #[must_use]
    pub fn steps(self, steps: u64) -> Self {
        Regression { wishes: Wishes { steps: Some(steps), ..self.wishes }, ..self }
    }

    /// The same with this step size, in units where features have mean square one.
    #[must_use]
    pub fn step_size(self, step_size: f64) -> Self {
        Regression { wishes: Wishes { step_size: Some(step_size), ..self.wishes }, ..self }
    }

    /// The same with weights held to this norm: of features within [-1, 1], for a target within [-1, 1].
    #[must_use]
    pub fn radius(self, radius: f64) -> Self {
        Regression { wishes: Wishes { radius: Some(radius), ..self.wishes }, ..self }
    }

    /// The same with thresholds from public rows, which [`Plan::run`] is then given.
    #[must_use]
    pub fn with_public_rows(self) -> Self {
        Regression { wishes: Wishes { public: true, ..self.wishes }, ..self }
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
        Error::unless(known, "regression", "linear or relu", self.link.name())?;
        let convex = self.method.is_convex() && self.method != Method::DpSgd;
        let want = "one for regressions; Convex plans the others";
        Error::unless(!convex, "method", want, self.method.name())?;
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
        let mut plan = Plan::empty(self.link, method, rows, width, budget)?;
        if method == Method::Exact {
            return Ok(plan);
        }
        budget.unless_pure()?;
        // What a Gaussian release could have at most; the exact number follows from the stages.
        let mu = quietly_accounting::gaussian_mu(budget.epsilon(), budget.delta())?
            / if budget.neighbours() == Neighbours::ReplaceOne { 2.0 } else { 1.0 };
        if recipes::plan(&mut plan, &self.wishes, mu)? {
            return Ok(plan);
        }
        plan.design = Some(Design::new(self.link, rows, width, mu));
        // A step of one pass sees its part of the rows only. Where that teaches nothing, there are few rows, and all of them
        // can be asked at once.
        let layout = OnePass::new(self.wishes.steps.filter(|_| method == Method::OnePass))?;
        let efficiency = one_pass::efficiency(layout.steps());
        let part = Design::new(self.link, rows, width, efficiency * mu);
        if method == Method::OnePass && part.reach == Reach::Weights {
            plan.design = Some(part);
            plan.allocate(&layout)?;
        } else {
            plan.method = Method::FullBatch;
            plan.divide()?;
        }
        plan.warn(mu);
        Ok(plan)
    }
}

/// No table is larger: more is a mistake, and numbers near the end of their range overflow.
pub(crate) const MOST_ROWS: u64 = 1_000_000_000_000_000;
pub(crate) const MOST_FEATURES: usize = (1 << 20) - 1;

impl Plan {
    /// A plan that asks nothing yet.
    pub(crate) fn empty(
        link: Link,
        method: Method,
        rows: u64,
        width: usize,
        budget: Budget,
    ) -> Result<Self, Error> {
        Error::unless((1..=MOST_ROWS).contains(&rows), "rows", "from 1 to 1e15", rows)?;
        let fine = (1..=MOST_FEATURES).contains(&width);
        Error::unless(fine, "number of features", "from 1 to a million", width)?;
        Ok(Plan {
            link,
            method,
            rows,
            width,
            budget,
            unit: None,
            sampler: Sampler::Full,
            stages: Vec::new(),
            epsilon: f64::INFINITY,
            design: None,
            recipe: None,
            convex: None,
            network: None,
            expansion: None,
            expected_loss: 0.0,
            warnings: Vec::new(),
            seal: check::Seal::default(),
        })
    }

    /// A plan for one row, by what `budget` leaves for it, that is charged to the unit.
    pub(crate) fn for_unit(
        budget: Budget,
        draft: impl FnOnce(Budget) -> Result<Plan, Error>,
    ) -> Result<Plan, Error> {
        let mut plan = draft(budget.of_one_row()?)?;
        plan.unit = (budget.rows_per_unit() > 1).then_some(budget);
        Ok(plan.sealed())
    }

    /// What was asked for: of a unit, if units have several rows.
    pub fn asked(&self) -> Budget {
        self.unit.unwrap_or(self.budget)
    }

    /// What a unit pays: ε at the δ of [`asked`](Self::asked), not below.
    pub fn unit_epsilon(&self) -> f64 {
        self.asked().group().epsilon(self.epsilon)
    }

    /// Full batch: the least noise for which all questions together stay within the budget.
    fn divide(&mut self) -> Result<(), Error> {
        if self.reach() == Reach::Nothing {
            self.epsilon = 0.0;
            return Ok(());
        }
        let (design, neighbours) = (self.design().clone(), self.budget.neighbours());
        self.calibrate(|noise| design.stages(neighbours, noise))
    }

    /// One pass: the least noise for which a step stays within what random allocation allows it.
    fn allocate(&mut self, layout: &OnePass) -> Result<(), Error> {
        self.sampler = Sampler::Allocation { steps: layout.steps() };
        self.calibrate(|noise| layout.stages(noise, true))
    }

    /// Finds the least noise for which all questions together stay within the budget.
    pub(crate) fn calibrate(&mut self, stages: impl Fn(f64) -> Vec<Stage>) -> Result<(), Error> {
        let least = if self.sampler == Sampler::Full { 0.0 } else { LEAST };
        let search = Search {
            sampler: self.sampler,
            neighbours: self.budget.neighbours(),
            epsilon: self.budget.epsilon(),
            delta: self.budget.delta(),
        };
        // One pass counts the rows of its first step, without a question of its own.
        let count = match self.method {
            Method::OnePass => None,
            _ => Some(rows_used::stage(self.budget, self.sampler)?),
        };
        let counted = |noise: f64| stages(noise.max(least)).into_iter().chain(count.clone());
        let (stages, price) = search.run(|noise| counted(noise).collect())?;
        self.stages = stages;
        (self.epsilon, self.seal.theorem) = (price.upper, Some(price.method));
        Ok(())
    }

    /// Takes questions without any δ, whose ε's add up to no more than the budget.
    ///
    /// # Panics
    ///
    /// If they do not: a bug of the planner.
    pub(crate) fn settle(&mut self, mut stages: Vec<Stage>) {
        let (epsilon, neighbours) = (self.budget.epsilon(), self.budget.neighbours());
        stages.push(rows_used::pure_stage(
            rows_used::PURE_SHARE * epsilon * (1.0 - 1e-12),
            neighbours,
            self.sampler,
        ));
        let price = charge::pure_epsilon(self.sampler, &stages, neighbours);
        self.epsilon = price.expect("questions without delta");
        assert!(self.epsilon <= self.budget.epsilon(), "a plan never costs more than was asked");
        self.stages = stages;
    }

    /// The planned noise of a sum, over what one row can add.
    pub(crate) fn noise(&self, purpose: &str) -> f64 {
        let mut charges = self.stages.iter().flat_map(|stage| &stage.charges);
        match charges.find(|charge| charge.purpose == purpose).map(|charge| charge.mechanism) {
            Some(Mechanism::Gaussian { noise }) => noise,
            _ => panic!("{purpose} is not planned as a sum"),
        }
    }

    /// How much can be learnt at all.
    pub fn reach(&self) -> Reach {
        self.design.as_ref().map_or(Reach::Weights, |design| design.reach)
    }

    /// The design of the default regressions.
    pub(crate) fn design(&self) -> &Design {
        self.design.as_ref().expect("full batch and one pass have a design")
    }

    fn warn(&mut self, mu: f64) {
        let (units, d) = (mu * self.rows as f64, (self.width + 1) as f64);
        // Gradients take about half of the budget. At a clip of three residuals on a row of norm √d noise adds so much; a
        // high clip may add up to fifty times that, but no more than 0.5 %.
        let low = 9.0 * d * d / (0.5 * units * units);
        self.expected_loss = low.max((50.0 * low).min(0.005));
        if self.method == Method::OnePass {
            self.expected_loss *= 2.0;
        }
        match self.reach() {
            Reach::Nothing => self.warnings.push(format!(
                "epsilon {} is too small for about {} rows: nothing can be learnt, and the model will predict the middle \
                 of the target's range. It takes about {:.0} rows to learn anything.",
                self.budget.epsilon(),
                self.rows,
                30.0 / mu
            )),
            Reach::Centre => self.warnings.push(format!(
                "epsilon {} is too small for {} features and about {} rows: only the middle of the target will be learnt. \
                 It takes about {:.0} rows, or fewer features.",
                self.budget.epsilon(),
                self.width,
                self.rows,
                (2.0 * d / mu).max(5.0 * d).max(60.0 / mu)
            )),
            Reach::Weights if self.expected_loss > 0.1 => self.warnings.push(format!(
                "expect noise to add about {:.0} % to the squared error: epsilon {} is small for {} features and about {} rows. \
                 More rows, a larger epsilon or fewer features would help.",
                100.0 * self.expected_loss.min(1.0),
                self.budget.epsilon(),
                self.width,
                self.rows
            )),
            Reach::Weights => {}
        }
    }

    /// What every fit takes to be public, first of all.
    pub(crate) fn always_public(&self) -> [String; 2] {
        let schema = "the schema: names, ranges and values of the columns".into();
        [schema, format!("that there are about {} rows", self.rows)]
    }

    /// The proof of what a run of this plan promises.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if the plan was changed and costs more than it says, or runs otherwise than it is charged.
    pub fn certificate(
        &self,
        unit: &str,
        origin: Option<quietly_noise::Source>,
    ) -> Result<Certificate, Error> {
        self.check()?;
        let [schema, rows] = self.always_public();
        let mut public =
            vec![schema, rows, "which table was read and when, and that this fit was made".into()];
        if self.recipe.as_ref().is_some_and(|r| matches!(r.clip, Clip::Public { .. })) {
            public.push("every row of the public table that thresholds were taken from".into());
        }
        let asked = self.asked();
        Certificate::priced(asked, self.sampler, &self.stages, self.priced(), public, unit, origin)
    }
}

/// A plan's stages ask for valid events only, so that nothing but the accountant refuses.
pub(crate) fn accounting(error: Error) -> quietly_accounting::Error {
    match error {
        Error::Accounting(error) => error,
        other => panic!("planning cannot fail otherwise: {other}"),
    }
}
