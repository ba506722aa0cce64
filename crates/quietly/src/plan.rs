//! What a fit will do and cost, before any row is read.
use std::ops::ControlFlow;

use quietly_accounting::{Event, Neighbours, calibrate};
use quietly_data::{Encoding, Private, Source, Table};
use quietly_noise::Key;
use serde::{Deserialize, Serialize};

use crate::{
    budget::Budget,
    certificate::Certificate,
    charge::{self, Mechanism, Sampler, Stage},
    design::{Design, Reach, WIDEST},
    error::Error,
    exact, full_batch,
    method::Method,
    model::{Link, Model},
    one_pass::{self, OnePass},
    progress::{Progress, Watch, tell},
    recipes::{self, Clip, Recipe},
    release::Door,
    spill::Spill,
    unit::Unit,
};

mod display;

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
    /// How many features a row has, without the constant.
    pub width: usize,
    /// What may be spent.
    pub budget: Budget,
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
    /// What noise is expected to add to the mean squared error, as a share of what least squares leaves.
    #[serde(with = "crate::budget::endless")]
    pub expected_loss: f64,
    /// What the planner wants to be known.
    pub warnings: Vec<String>,
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
    /// [`Error::Parameter`] if there are no rows or no features, [`Error::TooLarge`] if there are more than 1000 features for
    /// one pass, [`Error::Accounting`] if the budget cannot be met.
    pub fn plan(&self, rows: u64, width: usize, budget: Budget) -> Result<Plan, Error> {
        Error::unless(rows > 0, "rows", "at least 1", rows)?;
        Error::unless(
            (1..1 << 20).contains(&width),
            "number of features",
            "from 1 to a million",
            width,
        )?;
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
        let mut plan = Plan {
            link: self.link,
            method,
            rows,
            width,
            budget,
            sampler: Sampler::Full,
            stages: Vec::new(),
            epsilon: f64::INFINITY,
            design: None,
            recipe: None,
            expected_loss: 0.0,
            warnings: Vec::new(),
        };
        if method == Method::Exact {
            return Ok(plan);
        }
        // What a Gaussian release could have at most; the exact number follows from the stages.
        let mu = quietly_accounting::gaussian_mu(budget.epsilon(), budget.delta())?
            / if budget.neighbours() == Neighbours::ReplaceOne { 2.0 } else { 1.0 };
        if recipes::plan(&mut plan, &self.wishes, mu)? {
            return Ok(plan);
        }
        plan.design = Some(Design::new(self.link, rows, width, mu));
        // A step of one pass sees its part of the rows only. Where that teaches nothing, there are few rows, and all of them
        // can be asked at once.
        let part = Design::new(self.link, rows, width, one_pass::EFFICIENCY * mu);
        if method == Method::OnePass && part.reach == Reach::Weights {
            plan.design = Some(part);
            plan.allocate(mu)?;
        } else {
            plan.method = Method::FullBatch;
            plan.divide()?;
        }
        plan.warn(mu);
        Ok(plan)
    }
}

impl Plan {
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
    fn allocate(&mut self, mu: f64) -> Result<(), Error> {
        let layout = OnePass::new(self.rows, self.width, mu);
        self.sampler = Sampler::Allocation { steps: layout.steps() };
        self.calibrate(|noise| layout.stages(noise))
    }

    /// Finds the least noise for which all questions together stay within the budget.
    pub(crate) fn calibrate(&mut self, stages: impl Fn(f64) -> Vec<Stage>) -> Result<(), Error> {
        let least = if self.sampler == Sampler::Full { 0.0 } else { LEAST };
        let event = |noise: f64| -> Result<Event, quietly_accounting::Error> {
            charge::event(self.sampler, &stages(noise.max(least))).map_err(accounting)
        };
        let budget = &self.budget;
        let found = calibrate(event, budget.neighbours(), budget.epsilon(), budget.delta())?;
        self.stages = stages(found.noise_multiplier.max(least));
        self.epsilon = found.epsilon.upper;
        Ok(())
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

    /// Fits a table in memory. Its targets are moved by `range`, the public range of the target.
    ///
    /// Returns the intercept and the weights.
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`] if `watch` says so; [`Error::Noise`] if there is no randomness; [`Error::Parameter`] if the plan was
    /// changed. No row can cause an error.
    ///
    /// # Panics
    ///
    /// If the table does not have the planned number of features.
    pub fn run(
        &self,
        table: &Private<Table>,
        range: (f64, f64),
        key: Key,
        threads: usize,
        watch: &mut Watch<'_>,
    ) -> Result<(f64, Vec<f64>), Error> {
        self.run_beside(table, None, range, key, threads, watch)
    }

    /// The same, beside a public table of the same columns.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run), and [`Error::Parameter`] if the plan takes thresholds from public rows and there are none.
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    pub fn run_beside(
        &self,
        table: &Private<Table>,
        public: Option<&Table>,
        range: (f64, f64),
        key: Key,
        threads: usize,
        watch: &mut Watch<'_>,
    ) -> Result<(f64, Vec<f64>), Error> {
        self.check()?;
        let mut door = Door::new(key, &self.stages, threads);
        self.through(&mut door, table, public, range, watch)
    }

    /// The same, through a door that is there.
    pub(crate) fn through(
        &self,
        door: &mut Door,
        table: &Private<Table>,
        public: Option<&Table>,
        range: (f64, f64),
        watch: &mut Watch<'_>,
    ) -> Result<(f64, Vec<f64>), Error> {
        let threads = door.threads();
        let unit = Unit::new(self.link, range);
        if self.reach() == Reach::Nothing && self.budget.is_private() {
            return Ok((0.5 * range.0 + 0.5 * range.1, vec![0.0; self.width]));
        }
        match self.method {
            Method::Exact => {
                Ok(door.plain(table.as_ref(), |table| exact::fit(table, self.link, threads)))
            }
            Method::OnePass => {
                let steps = self.steps();
                let rows = one_pass::Feed::memory(table, steps, &door.sampling(), threads)?;
                let (intercept, weights) = one_pass::fit(self, rows, &unit, door, threads, watch)?;
                Ok(unit.back(intercept, weights))
            }
            Method::Auto | Method::FullBatch => {
                let (intercept, weights) =
                    full_batch::fit(self, table, &unit, door, threads, watch)?;
                Ok(unit.back(intercept, weights))
            }
            _ => {
                let mut run =
                    recipes::Run { plan: self, table, public, unit: &unit, door: door, threads };
                let (intercept, weights) = run.fit(watch)?;
                Ok(unit.back(intercept, weights))
            }
        }
    }

    /// A plan can be written, read and changed. One that is read in another way than it is accounted for is refused: its
    /// certificate would be wrong.
    fn check(&self) -> Result<(), Error> {
        let sound = match (self.method, self.sampler) {
            (Method::Exact, _) => !self.budget.is_private(),
            (Method::FullBatch, Sampler::Full) => self.budget.is_private(),
            (Method::OnePass, Sampler::Allocation { .. }) => self.budget.is_private(),
            (Method::Auto | Method::FullBatch | Method::OnePass, _) => false,
            _ => recipes::sound(self),
        };
        let want = "as Regression::plan made it";
        Error::unless(sound, "plan", want, "read in another way than it is accounted for")
    }

    fn steps(&self) -> usize {
        match self.sampler {
            Sampler::Allocation { steps } => steps as usize,
            _ => 1,
        }
    }

    /// Reads a table, fits it and signs the result.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run), and [`Error::Data`] if the table cannot be read.
    pub fn fit(
        &self,
        source: &Source,
        encoding: &Encoding,
        unit_of_privacy: &str,
        key: Key,
        threads: usize,
        watch: &mut Watch<'_>,
    ) -> Result<Model, Error> {
        let reads = Reads { source, public: None, encoding };
        self.fit_from(reads, unit_of_privacy, key, threads, watch)
    }

    /// The same, beside a public table.
    ///
    /// # Errors
    ///
    /// As [`fit`](Self::fit).
    pub fn fit_from(
        &self,
        Reads { source, public, encoding }: Reads<'_>,
        unit_of_privacy: &str,
        key: Key,
        threads: usize,
        watch: &mut Watch<'_>,
    ) -> Result<Model, Error> {
        self.check()?;
        assert_eq!(encoding.width(), self.width, "the planned number of features");
        let target = encoding.target().expect("a regression has a target").clone();
        let range = (target.lo, target.hi);
        let origin = self.budget.is_private().then_some(key.source());
        let weights = if self.method == Method::OnePass {
            let mut door = Door::new(key, &self.stages, threads);
            let unit = Unit::new(self.link, range);
            let bytes = source.bytes();
            let mut on = |at: u64| watch(Progress { doing: "reading", done: at, of: bytes });
            let (steps, sampling) = (self.steps(), door.sampling());
            let spill = Spill::new(source, encoding, steps, &sampling, threads, &mut on)?;
            let rows = one_pass::Feed::Disk(spill);
            let (intercept, weights) = one_pass::fit(self, rows, &unit, &mut door, threads, watch)?;
            unit.back(intercept, weights)
        } else {
            tell(watch, "reading", 0, source.bytes())?;
            let table = source.read(encoding, threads)?;
            let public =
                public.map(|public| rows_of_public(public, encoding, threads)).transpose()?;
            self.run_beside(&table, public.as_ref(), range, key, threads, watch)?
        };
        let certificate = self.certificate(unit_of_privacy, origin)?;
        Ok(Model::new(self.clone(), target.name, encoding.clone(), weights, certificate))
    }

    /// The proof of what a run of this plan promises.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`], which [`Regression::plan`] would have met before.
    pub fn certificate(
        &self,
        unit: &str,
        origin: Option<quietly_noise::Source>,
    ) -> Result<Certificate, Error> {
        let mut public = vec![
            "the schema: names, ranges and values of the columns".into(),
            format!("that there are about {} rows", self.rows),
            "which file was read and when, and that this fit was made".into(),
        ];
        if self.recipe.as_ref().is_some_and(|r| matches!(r.clip, Clip::Public { .. })) {
            public.push("every row of the public table that thresholds were taken from".into());
        }
        Certificate::new(self.budget, self.sampler, &self.stages, public, unit, origin)
    }
}

/// What a fit reads.
#[derive(Clone, Copy)]
pub struct Reads<'a> {
    /// The private table.
    pub source: &'a Source,
    /// A public table of the same columns, for methods that take thresholds from one.
    pub public: Option<&'a Source>,
    /// How a row of either becomes numbers.
    pub encoding: &'a Encoding,
}

/// All rows of a **public** file.
fn rows_of_public(source: &Source, encoding: &Encoding, threads: usize) -> Result<Table, Error> {
    let (mut features, mut target) = (Vec::new(), Vec::new());
    source.blocks(encoding, threads, &mut |block| {
        features.extend_from_slice(&block.features);
        target.extend_from_slice(&block.target);
        ControlFlow::Continue(())
    })?;
    Ok(Table::new(encoding.width(), features, target))
}

/// A plan's stages ask for valid events only, so that nothing but the accountant refuses.
fn accounting(error: Error) -> quietly_accounting::Error {
    match error {
        Error::Accounting(error) => error,
        other => panic!("planning cannot fail otherwise: {other}"),
    }
}
