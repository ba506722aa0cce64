//! What a fit will do and cost, before any row is read.
use std::{fmt, ops::ControlFlow};

use quietly_accounting::{Event, Neighbours, calibrate};
use quietly_data::{Encoding, Private, Source, Table};
use quietly_noise::Key;
use serde::{Deserialize, Serialize};

use crate::{
    budget::Budget,
    certificate::Certificate,
    charge::{self, Charge, Mechanism, Sampler, Stage},
    descent::LEVEL,
    design::{Design, Reach, Shares, WIDEST},
    error::Error,
    exact, full_batch,
    model::{Link, Model},
    one_pass::{self, OnePass},
    release::Door,
    spill::Spill,
};

/// How often the table is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Method {
    /// Full batch where the table fits into memory, otherwise one pass.
    Auto,
    /// Every row in every step, from memory.
    FullBatch,
    /// Each row in one step drawn at random, streamed.
    OnePass,
    /// Least squares without noise: what ε = ∞ asks for.
    Exact,
}

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
    /// How the budget is divided.
    pub design: Design,
    /// What noise is expected to add to the mean squared error, as a share of what least squares leaves.
    #[serde(with = "crate::budget::endless")]
    pub expected_loss: f64,
    /// What the planner wants to be known.
    pub warnings: Vec<String>,
}

/// How far a fit has come.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// What is being done.
    pub doing: &'static str,
    /// How much of it is done.
    pub done: u64,
    /// Out of how much.
    pub of: u64,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.doing {
            "reading" => {
                write!(
                    f,
                    "reading: {} of {} MB",
                    self.done / 1_000_000,
                    self.of.div_ceil(1_000_000)
                )
            }
            doing => write!(f, "{doing}: {} of {}", self.done, self.of),
        }
    }
}

/// Is told of progress, and may end the run.
pub type Watch<'a> = dyn FnMut(Progress) -> ControlFlow<()> + 'a;

/// Tells of progress.
pub(crate) fn tell(
    watch: &mut Watch<'_>,
    doing: &'static str,
    done: u64,
    of: u64,
) -> Result<(), Error> {
    match watch(Progress { doing, done, of }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Stopped),
    }
}

impl Regression {
    /// A regression with this link.
    pub fn new(link: Link) -> Self {
        Regression { link, method: Method::Auto }
    }

    /// The same, read in another way.
    #[must_use]
    pub fn method(self, method: Method) -> Self {
        Regression { method, ..self }
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
            design: Design::new(self.link, rows, width, f64::INFINITY),
            expected_loss: 0.0,
            warnings: Vec::new(),
        };
        if method == Method::Exact {
            return Ok(plan);
        }
        // What a Gaussian release could have at most; the exact number follows from the stages.
        let mu = quietly_accounting::gaussian_mu(budget.epsilon(), budget.delta())?
            / if budget.neighbours() == Neighbours::ReplaceOne { 2.0 } else { 1.0 };
        plan.design = Design::new(self.link, rows, width, mu);
        // A step of one pass sees its part of the rows only. Where that teaches nothing, there are few rows, and all of them
        // can be asked at once.
        let part = Design::new(self.link, rows, width, one_pass::EFFICIENCY * mu);
        if method == Method::OnePass && part.reach == Reach::Weights {
            plan.design = part;
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
        if self.design.reach == Reach::Nothing {
            self.epsilon = 0.0;
            return Ok(());
        }
        let (design, neighbours) = (self.design.clone(), self.budget.neighbours());
        let event = |noise: f64| -> Result<Event, quietly_accounting::Error> {
            charge::event(Sampler::Full, &stages(&design, neighbours, noise)).map_err(accounting)
        };
        let found = calibrate(event, neighbours, self.budget.epsilon(), self.budget.delta())?;
        self.stages = stages(&design, neighbours, found.noise_multiplier);
        self.epsilon = found.epsilon.upper;
        Ok(())
    }

    /// One pass: the least noise for which a step stays within what random allocation allows it.
    fn allocate(&mut self, mu: f64) -> Result<(), Error> {
        let layout = OnePass::new(self.rows, self.width, mu);
        self.sampler = Sampler::Allocation { steps: layout.steps() };
        let (sampler, neighbours) = (self.sampler, self.budget.neighbours());
        let event = |noise: f64| -> Result<Event, quietly_accounting::Error> {
            charge::event(sampler, &layout.stages(noise.max(LEAST))).map_err(accounting)
        };
        let found = calibrate(event, neighbours, self.budget.epsilon(), self.budget.delta())?;
        self.stages = layout.stages(found.noise_multiplier.max(LEAST));
        self.epsilon = found.epsilon.upper;
        Ok(())
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
        match self.design.reach {
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
        self.check()?;
        let mut door = Door::new(key, &self.stages, threads);
        let unit = Unit::new(self.link, range);
        if self.design.reach == Reach::Nothing && self.budget.is_private() {
            return Ok((0.5 * range.0 + 0.5 * range.1, vec![0.0; self.width]));
        }
        match self.method {
            Method::Exact => {
                Ok(door.plain(table.as_ref(), |table| exact::fit(table, self.link, threads)))
            }
            Method::OnePass => {
                let steps = self.steps();
                let rows = one_pass::Feed::memory(table, steps, &door.sampling(), threads)?;
                let (intercept, weights) =
                    one_pass::fit(self, rows, &unit, &mut door, threads, watch)?;
                Ok(unit.back(intercept, weights))
            }
            _ => {
                let (intercept, weights) =
                    full_batch::fit(self, table, &unit, &mut door, threads, watch)?;
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
            _ => false,
        };
        let want = "as Regression::plan made it";
        Error::unless(sound, "plan", want, "read in another way than it is accounted for")
    }

    fn steps(&self) -> usize {
        match self.sampler {
            Sampler::Allocation { steps } => steps as usize,
            Sampler::Full => 1,
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
            self.run(&table, range, key, threads, watch)?
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
        let public = vec![
            "the schema: names, ranges and values of the columns".into(),
            format!("that there are about {} rows", self.rows),
            "which file was read and when, and that this fit was made".into(),
        ];
        Certificate::new(self.budget, self.sampler, &self.stages, public, unit, origin)
    }
}

/// The target in units of its public range: moved to its middle for linear models, about [-1, 1].
pub(crate) struct Unit {
    middle: f64,
    scale: f64,
}

impl Unit {
    fn new(link: Link, (lo, hi): (f64, f64)) -> Self {
        match link {
            Link::Linear => Unit { middle: 0.5 * (lo + hi), scale: 0.5 * (hi - lo) },
            // max(u, 0) cannot be moved.
            Link::Relu => Unit { middle: 0.0, scale: lo.abs().max(hi.abs()) },
        }
    }

    /// A target in these units.
    #[inline]
    pub(crate) fn of(&self, y: f64) -> f64 {
        (y - self.middle) / self.scale
    }

    fn back(&self, intercept: f64, weights: Vec<f64>) -> (f64, Vec<f64>) {
        let weights = weights.into_iter().map(|w| w * self.scale).collect();
        (self.middle + intercept * self.scale, weights)
    }
}

/// A plan's stages ask for valid events only, so that nothing but the accountant refuses.
fn accounting(error: Error) -> quietly_accounting::Error {
    match error {
        Error::Accounting(error) => error,
        other => panic!("planning cannot fail otherwise: {other}"),
    }
}

/// The questions of a full-batch fit whose noise is `noise` for a share of one.
fn stages(design: &Design, neighbours: Neighbours, noise: f64) -> Vec<Stage> {
    let Shares {
        target_scale,
        target_centre,
        row_norm,
        second_moment,
        first_threshold,
        thresholds,
        high_clip,
        robust,
        cheap,
        last,
    } = design.shares;
    let one = |purpose: &str, mechanism| Charge { purpose: purpose.into(), mechanism, times: 1 };
    let sum = |purpose: &str, share: f64| {
        one(purpose, Mechanism::Gaussian { noise: noise / share.sqrt() })
    };
    // A replaced row moves a Gaussian sum twice as far: the same share is worth twice the μ.
    let factor = if neighbours == Neighbours::ReplaceOne { 2.0 } else { 1.0 };
    let choice = |purpose: &str, level: f64, share: f64| {
        one(purpose, charge::quantile(level, factor * share.sqrt() / noise, neighbours))
    };
    let stage =
        |name: &str, steps: u64, charges: Vec<Charge>| Stage { name: name.into(), steps, charges };
    let mut stages = vec![stage(
        "target",
        1,
        vec![
            choice(full_batch::SCALE, LEVEL, target_scale),
            choice(full_batch::CENTRE, 0.5, target_centre),
        ],
    )];
    if design.reach != Reach::Weights {
        return stages;
    }
    stages.push(stage("rows", 1, vec![choice(full_batch::NORM, 0.5, row_norm)]));
    if design.whitenings > 0 {
        let rounds = u64::from(design.whitenings);
        let each = second_moment / rounds as f64;
        stages.push(stage("whitening", rounds, vec![sum(full_batch::MOMENT, each)]));
    }
    stages.push(stage("scale", 1, vec![choice(full_batch::FIRST, LEVEL, first_threshold)]));
    let steps = design.robust_steps;
    stages.push(stage(
        "robust steps",
        steps,
        vec![
            sum(full_batch::ROBUST, robust / steps as f64),
            choice(full_batch::THRESHOLD, LEVEL, thresholds / steps as f64),
        ],
    ));
    stages.push(stage("tail", 1, vec![choice(full_batch::TAIL, design.tail_level, high_clip)]));
    let (steps, each) = (design.cheap_steps, cheap / design.cheap_steps as f64);
    stages.push(stage("first steps", steps, vec![sum(full_batch::CHEAP, each)]));
    let (steps, each) = (design.final_steps, last / design.final_steps as f64);
    stages.push(stage("last steps", steps, vec![sum(full_batch::LAST, each)]));
    stages
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.budget.is_private() {
            return write!(f, "least squares without noise: NO PRIVACY");
        }
        match self.sampler {
            Sampler::Full => writeln!(f, "full batch: every row in every step")?,
            Sampler::Allocation { steps } => {
                writeln!(f, "one pass: each row in one of {steps} steps, drawn in secret")?;
            }
        }
        for stage in &self.stages {
            for charge in &stage.charges {
                let times = stage.steps * charge.times;
                let how = match charge.mechanism {
                    Mechanism::Gaussian { noise } => format!("noise {noise:.2} times one row"),
                    Mechanism::Selection { add_remove, .. } => {
                        format!("a choice at epsilon {add_remove:.4}")
                    }
                };
                writeln!(f, "  {times:>3} x {:<28} {how}", charge.purpose)?;
            }
        }
        if self.design.reach == Reach::Weights {
            writeln!(
                f,
                "expected: noise adds up to about {:.2} % to the squared error of least squares",
                100.0 * self.expected_loss
            )?;
        }
        write!(
            f,
            "epsilon {:.4} of {} at delta {:e} ({})",
            (self.epsilon * 1e4).ceil() / 1e4,
            self.budget.epsilon(),
            self.budget.delta(),
            self.budget.neighbours().name()
        )
    }
}
