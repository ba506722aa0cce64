//! Running a plan: from a table to weights, from a file to a model.
use std::ops::ControlFlow;

use quietly_data::{Encoding, Private, Source, Sparse, Table, Target};
use quietly_noise::Key;

use super::Plan;
use crate::{
    charge::Sampler,
    convex::{self, Weights},
    design::Reach,
    error::Error,
    exact, full_batch,
    kan::{self, Trained},
    keeper::{Borrowed, Held, Keeper},
    method::Method,
    model::Model,
    one_pass,
    paid::Paid,
    progress::{Progress, Watch, tell},
    recipes,
    release::Door,
    unit::Unit,
};

/// Bytes of a table in memory that may be copied: what a reader holds of a file at one time.
const SMALL: f64 = 24e6;

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

impl Plan {
    /// Fits a table in memory. Its targets are moved by `range`, the public range of the target.
    ///
    /// Returns the intercept and the weights: of the features as the table has them, or as the plan expands them.
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`] if `watch` says so; [`Error::Noise`] if there is no randomness; [`Error::Parameter`] if the plan was
    /// changed. No row can cause an error.
    ///
    /// # Panics
    ///
    /// If the table does not have the planned number of features, before any expansion.
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
        self.expanded_through(
            &mut Door::new(key, &self.stages, threads),
            table,
            public,
            range,
            watch,
        )
    }

    /// The same through a door that is there.
    fn expanded_through(
        &self,
        door: &mut Door,
        table: &Private<Table>,
        public: Option<&Table>,
        range: (f64, f64),
        watch: &mut Watch<'_>,
    ) -> Result<(f64, Vec<f64>), Error> {
        let Some(expander) = self.expander()? else {
            return self.through(door, table, public, range, watch);
        };
        let threads = door.threads();
        let table = expander.table(table, threads);
        let public = public.map(|public| expander.public_table(public, threads));
        self.through(door, &table, public.as_ref(), range, watch)
    }

    /// Fits a table in memory with a plan that [`Convex`](crate::Convex) made. Targets are the numbers of classes, or lie in `range`.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run), and [`Error::Parameter`] if the plan is another's.
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    pub fn learn(
        &self,
        table: &Private<Table>,
        range: (f64, f64),
        key: Key,
        threads: usize,
        watch: &mut Watch<'_>,
    ) -> Result<Weights, Error> {
        self.check_convex()?;
        let mut door = Door::new(key, &self.stages, threads);
        let Some(expander) = self.expander()? else {
            return self.learn_through(&mut door, table, range, watch);
        };
        let table = expander.table(table, threads);
        let learnt = self.learn_through(&mut door, &table, range, watch)?;
        Ok(Weights { expander: Some(expander), ..learnt })
    }

    /// The same for sparse rows, which stay sparse wherever the method does not turn them.
    ///
    /// # Errors
    ///
    /// As [`learn`](Self::learn), and [`Error::Parameter`] if the plan expands rows.
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    pub fn learn_sparse(
        &self,
        rows: &Private<Sparse>,
        range: (f64, f64),
        key: Key,
        threads: usize,
        watch: &mut Watch<'_>,
    ) -> Result<Weights, Error> {
        self.check_convex()?;
        let want = "none for sparse rows, whose zeros it would fill";
        Error::unless(self.expansion.is_none(), "expansion", want, "one")?;
        let mut door = Door::new(key, &self.stages, threads);
        let nulls = Private::new(Vec::new());
        let rows = rows.as_ref().map(|rows| {
            assert_eq!(rows.width, self.width, "the planned number of features");
            (convex::Features::from(rows), &rows.target[..])
        });
        convex::run::fit(self, rows, nulls, range, &mut door, watch)
    }

    /// Trains a network on a table in memory with a plan that [`Kan`](crate::kan::Kan) made. Targets are the numbers of classes,
    /// or lie in `range`.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run), and [`Error::Parameter`] if the plan is another's, or batches have one size and the public number of
    /// rows is not the planned one.
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    pub fn train(
        &self,
        table: &Private<Table>,
        range: (f64, f64),
        key: Key,
        threads: usize,
        watch: &mut Watch<'_>,
    ) -> Result<Trained, Error> {
        self.check()?;
        let want = "one that Kan::plan made";
        Error::unless(self.network.is_some(), "plan", want, self.link.name())?;
        let mut door = Door::new(key, &self.stages, threads);
        kan::fit(self, table, range, &mut door, watch)
    }

    fn check_convex(&self) -> Result<(), Error> {
        self.check()?;
        let want = "one that Convex::plan made; take Plan::run for others";
        Error::unless(self.convex.is_some(), "plan", want, self.link.name())
    }

    /// The same, through a door that is there.
    pub(crate) fn learn_through(
        &self,
        door: &mut Door,
        table: &Private<Table>,
        range: (f64, f64),
        watch: &mut Watch<'_>,
    ) -> Result<Weights, Error> {
        let rows = table.as_ref().map(|table| {
            assert_eq!(table.width(), self.width, "the planned number of features");
            (convex::Features::Dense(table.features()), table.target())
        });
        let nulls = table.as_ref().map(|table| table.nulls().to_vec());
        convex::run::fit(self, rows, nulls, range, door, watch)
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
        let want = "one of a regression; take Plan::learn for others";
        Error::unless(self.convex.is_none(), "plan", want, self.link.name())?;
        match self.method {
            Method::Exact => {
                door.count_rows(self, rows(table))?;
                Ok(door.plain(table.as_ref(), |table| exact::fit(table, self.link, threads)))
            }
            Method::OnePass => {
                let steps = self.steps();
                let mut rows = one_pass::Steps::memory(table, steps, &door.sampling(), threads)?;
                self.ask(&mut rows, range, door, watch)
            }
            Method::Auto | Method::FullBatch => {
                self.ask(&mut Held::new(table, threads), range, door, watch)
            }
            _ => {
                door.count_rows(self, rows(table))?;
                let unit = Unit::new(self.link, range);
                let mut run =
                    recipes::Run { plan: self, table, public, unit: &unit, door, threads };
                let (intercept, weights) = run.fit(watch)?;
                Ok(unit.back(intercept, weights))
            }
        }
    }

    /// Whether a table in memory is asked where it is, question by question, rather than copied: a copy is faster, and what is
    /// small may be copied.
    fn borrows(&self) -> bool {
        let bytes = self.rows as f64 * (self.width + 1) as f64 * 13.0;
        self.method == Method::FullBatch && self.expansion.is_none() && bytes > SMALL
    }

    /// One pass or full batch, whoever keeps the rows.
    pub(super) fn ask(
        &self,
        rows: &mut dyn Keeper,
        range: (f64, f64),
        door: &mut Door,
        watch: &mut Watch<'_>,
    ) -> Result<(f64, Vec<f64>), Error> {
        if self.reach() == Reach::Nothing {
            return Ok((0.5 * range.0 + 0.5 * range.1, vec![0.0; self.width]));
        }
        let unit = Unit::new(self.link, range);
        let (intercept, weights) = match self.method {
            Method::OnePass => one_pass::fit(self, rows, &unit, door, watch)?,
            _ => full_batch::fit(self, rows, &unit, door, watch)?,
        };
        Ok(unit.back(intercept, weights))
    }

    /// What is predicted, and its public range.
    pub(super) fn target(&self, encoding: &Encoding) -> Result<(Target, (f64, f64)), Error> {
        let classes = self.link.is_classifier();
        let target = if classes { encoding.expect_classes()? } else { encoding.expect_range()? };
        Ok((target.clone(), (target.lo, target.hi)))
    }

    fn steps(&self) -> usize {
        match self.sampler {
            Sampler::Allocation { steps } => steps as usize,
            _ => 1,
        }
    }

    /// Reads a table, fits it and writes its certificate.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run), and [`Error::Data`] if the table cannot be read.
    pub fn fit(
        &self,
        source: &Source,
        encoding: &Encoding,
        unit_of_privacy: &str,
        paid: Paid,
        threads: usize,
        watch: &mut Watch<'_>,
    ) -> Result<Model, Error> {
        let reads = Reads { source, public: None, encoding };
        self.fit_from(reads, unit_of_privacy, paid, threads, watch)
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
        paid: Paid,
        threads: usize,
        watch: &mut Watch<'_>,
    ) -> Result<Model, Error> {
        self.check()?;
        assert_eq!(encoding.width(), self.inputs(), "the planned number of features");
        self.check_dense(source)?;
        let (target, range) = self.target(encoding)?;
        let key = paid.spend(self.asked())?;
        let origin = self.budget.is_private().then_some(key.source());
        let mut door = Door::new(key, &self.stages, threads);
        if self.network.is_some() {
            tell(watch, "reading", 0, source.bytes())?;
            let network = kan::read(self, source, encoding, range, &mut door, watch)?;
            let mut certificate = self.certificate(unit_of_privacy, origin)?;
            certificate.rows_used = door.rows_used;
            let (plan, encoding) = (self.clone(), encoding.clone());
            return Ok(Model::of_network(plan, target.name, encoding, network, certificate));
        }
        let weights = if self.convex.is_some() {
            tell(watch, "reading", 0, source.bytes())?;
            convex::run::read(self, source, encoding, range, &mut door, watch)?
        } else if self.method == Method::OnePass {
            let bytes = source.bytes();
            let mut on = |at: u64| watch(Progress { doing: "reading", done: at, of: bytes });
            let (steps, sampling) = (self.steps(), door.sampling());
            let mut rows =
                one_pass::Steps::read(source, encoding, steps, &sampling, threads, &mut on)?;
            self.ask(&mut rows, range, &mut door, watch)?.into()
        } else if let (true, Some(picks)) = (self.borrows(), source.picks(encoding)?) {
            let mut rows = Borrowed::new(picks, threads);
            self.ask(&mut rows, range, &mut door, watch)?.into()
        } else {
            tell(watch, "reading", 0, source.bytes())?;
            let table = source.read(encoding, threads)?;
            let public = match public {
                Some(public) => Some(rows_of_public(public, encoding, threads)?),
                None => None,
            };
            self.expanded_through(&mut door, &table, public.as_ref(), range, watch)?.into()
        };
        let mut certificate = self.certificate(unit_of_privacy, origin)?;
        certificate.rows_used = door.rows_used;
        Ok(Model::new(self.clone(), target.name, encoding.clone(), weights, certificate))
    }
}

/// How many rows of a table are not null records.
fn rows(table: &Private<Table>) -> Private<u64> {
    let used = |table: &Table| table.target().iter().filter(|y| !y.is_nan()).count() as u64;
    table.as_ref().map(used)
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
