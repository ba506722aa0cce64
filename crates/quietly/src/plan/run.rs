//! Running a plan: from a table to weights, from a file to a model.
use std::ops::ControlFlow;

use quietly_core::{
    charge::Charge,
    progress::{Progress, ProgressCallback, report},
    release::Releaser,
};
use quietly_data::{Encoding, Private, Source, Sparse, Table, Target};
use quietly_engine::{
    algorithm::{Algorithm, Run},
    backend::{Backend, Borrowed, InMemory, Spilled},
    error::Error,
};
use quietly_glm::Weights;
use quietly_kan::KanModel;
use quietly_noise::Key;

use super::Plan;
use crate::{
    any_algorithm::{AnyAlgorithm, Fitted},
    model::Model,
};

/// Bytes of a table in memory that may be copied: what a reader holds of a file at one time.
const SMALL: f64 = 24e6;

/// What a fit reads.
#[derive(Clone, Copy)]
pub struct FitInput<'a> {
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
    /// [`Error::Interrupted`] if `watch` says so; [`Error::Noise`] if there is no randomness; [`Error::Parameter`] if the plan is
    /// not of a regression. No row can cause an error.
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
        watch: &mut ProgressCallback<'_>,
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
        watch: &mut ProgressCallback<'_>,
    ) -> Result<(f64, Vec<f64>), Error> {
        let want = "one of a regression; use Plan::learn for others";
        Error::ensure(self.is_regression(), "plan", want, self.link().name())?;
        let releaser = &mut Releaser::new(key, self.stages(), threads);
        let learnt = self.fit_table(releaser, table, public, range, watch)?.weights();
        Ok(learnt.outputs.into_iter().next().expect("a regression has one output"))
    }

    /// Fits a table in memory with a plan that [`Convex`](crate::plan::Convex) made. Targets are the numbers of classes, or lie in
    /// `range`.
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
        watch: &mut ProgressCallback<'_>,
    ) -> Result<Weights, Error> {
        self.check_convex()?;
        let releaser = &mut Releaser::new(key, self.stages(), threads);
        let learnt = self.fit_table(releaser, table, None, range, watch)?.weights();
        Ok(Weights { expander: self.expander()?, ..learnt })
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
        watch: &mut ProgressCallback<'_>,
    ) -> Result<Weights, Error> {
        self.check_convex()?;
        let want = "left out for sparse rows, whose zeros it would fill";
        Error::ensure(self.expansion.is_none(), "expand", want, "given")?;
        let releaser = &mut Releaser::new(key, self.stages(), threads);
        Ok(self.fit_sparse(releaser, rows, range, watch)?.weights())
    }

    /// Trains a network on a table in memory with a plan that [`Kan`](quietly_kan::Kan) made. Targets are the numbers of
    /// classes, or lie in `range`.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run), and [`Error::Parameter`] if the plan is another's, or batches have one size and the public
    /// number of rows is not the planned one.
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
        watch: &mut ProgressCallback<'_>,
    ) -> Result<KanModel, Error> {
        let releaser = &mut Releaser::new(key, self.stages(), threads);
        match self.fit_table(releaser, table, None, range, watch)? {
            Fitted::Network(network) => Ok(network),
            Fitted::Weights(_) => {
                let want = "one that Kan::plan made";
                Err(Error::Parameter { name: "plan", want, got: self.link().name().into() })
            }
        }
    }

    fn check_convex(&self) -> Result<(), Error> {
        let want = "one that Convex::plan made; use Plan::run for others";
        Error::ensure(self.algorithm.problem().is_some(), "plan", want, self.link().name())
    }

    fn is_regression(&self) -> bool {
        self.algorithm.problem().is_none() && !matches!(self.algorithm, AnyAlgorithm::Kan(_))
    }

    /// Fits the rows of a backend, beside a public table: the one way to run an algorithm.
    pub(crate) fn fit_backend(
        &self,
        releaser: &mut Releaser,
        backend: &mut dyn Backend,
        public: Option<&Table>,
        range: (f64, f64),
        watch: &mut ProgressCallback<'_>,
    ) -> Result<Fitted, Error> {
        let (plan, shape) = (&self.privacy, self.shape);
        self.algorithm.fit(Run { plan, shape, range, backend, public, releaser, watch })
    }

    /// Fits a table in memory, whose rows are expanded first where that is planned.
    pub(crate) fn fit_table(
        &self,
        releaser: &mut Releaser,
        table: &Private<Table>,
        public: Option<&Table>,
        range: (f64, f64),
        watch: &mut ProgressCallback<'_>,
    ) -> Result<Fitted, Error> {
        let threads = releaser.threads();
        let expander = self.expander()?;
        let expanded = expander.as_ref().map(|expander| expander.table(table, threads));
        let table = expanded.as_ref().unwrap_or(table);
        let public_rows = |table: &Table| expander.as_ref().map(|e| e.public_table(table, threads));
        let expanded = public.and_then(public_rows);
        _ = table.as_ref().map(|table| {
            assert_eq!(table.width(), self.shape.width, "the planned number of features");
        });
        let backend = &mut InMemory::new(table, threads);
        self.fit_backend(releaser, backend, expanded.as_ref().or(public), range, watch)
    }

    fn fit_sparse(
        &self,
        releaser: &mut Releaser,
        rows: &Private<Sparse>,
        range: (f64, f64),
        watch: &mut ProgressCallback<'_>,
    ) -> Result<Fitted, Error> {
        _ = rows.as_ref().map(|rows| {
            assert_eq!(rows.width, self.shape.width, "the planned number of features");
        });
        let backend = &mut InMemory::sparse(rows, releaser.threads());
        self.fit_backend(releaser, backend, None, range, watch)
    }

    /// The rows of a public table, expanded where that is planned.
    pub(super) fn public_rows(
        &self,
        public: &Source,
        encoding: &Encoding,
        threads: usize,
    ) -> Result<Table, Error> {
        let rows = rows_of_public(public, encoding, threads)?;
        Ok(match self.expander()? {
            Some(expander) => expander.public_table(&rows, threads),
            None => rows,
        })
    }

    /// Whether a table in memory is read where it is, query by query, rather than copied: a copy is faster, and what is
    /// small may be copied.
    fn borrows(&self) -> bool {
        let bytes = self.rows() as f64 * (self.width() + 1) as f64 * 13.0;
        matches!(self.algorithm, AnyAlgorithm::FullBatch(_))
            && self.expansion.is_none()
            && bytes > SMALL
    }

    /// What is predicted, and its public range.
    pub(super) fn target(&self, encoding: &Encoding) -> Result<(Target, (f64, f64)), Error> {
        let classes = self.link().is_classifier();
        let target = if classes { encoding.expect_classes()? } else { encoding.expect_range()? };
        Ok((target.clone(), (target.lo, target.hi)))
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
        charge: Charge,
        threads: usize,
        watch: &mut ProgressCallback<'_>,
    ) -> Result<Model, Error> {
        let reads = FitInput { source, public: None, encoding };
        self.fit_from(reads, unit_of_privacy, charge, threads, watch)
    }

    /// The same, beside a public table.
    ///
    /// # Errors
    ///
    /// As [`fit`](Self::fit).
    pub fn fit_from(
        &self,
        reads: FitInput<'_>,
        unit_of_privacy: &str,
        charge: Charge,
        threads: usize,
        watch: &mut ProgressCallback<'_>,
    ) -> Result<Model, Error> {
        let FitInput { source, encoding, .. } = reads;
        assert_eq!(encoding.width(), self.inputs(), "the planned number of features");
        self.check_dense(source)?;
        let (target, range) = self.target(encoding)?;
        let key = charge.spend(self.unit_budget())?;
        let origin = self.budget().is_private().then_some(key.source());
        let mut releaser = Releaser::new(key, self.stages(), threads);
        let fitted = self.read(reads, &mut releaser, range, watch)?;
        let mut certificate = self.certificate(unit_of_privacy, origin)?;
        certificate.rows_used = releaser.rows_used;
        Ok(Model::new(self.record(), target.name, encoding.clone(), fitted, certificate))
    }

    /// Reads a table in the way that the algorithm needs it, and fits it.
    fn read(
        &self,
        FitInput { source, public, encoding }: FitInput<'_>,
        releaser: &mut Releaser,
        range: (f64, f64),
        watch: &mut ProgressCallback<'_>,
    ) -> Result<Fitted, Error> {
        let threads = releaser.threads();
        if let AnyAlgorithm::OnePass(_) = &self.algorithm {
            let bytes = source.bytes();
            let mut on = |at: u64| watch(Progress { doing: "reading", done: at, of: bytes });
            let mut backend: Box<dyn Backend + '_> = match source.gather(encoding)? {
                Some(picks) => Box::new(Borrowed::new(picks, threads)),
                None => {
                    let draw = releaser.draw(self.sampler());
                    Box::new(Spilled::new(source, encoding, &draw, threads, &mut on)?)
                }
            };
            return self.fit_backend(releaser, &mut *backend, None, range, watch);
        }
        if let (true, Some(picks)) = (self.borrows(), source.gather(encoding)?) {
            let mut backend = Borrowed::new(picks, threads);
            return self.fit_backend(releaser, &mut backend, None, range, watch);
        }
        report(watch, "reading", 0, source.bytes())?;
        let kept = self.algorithm.keeps_places(&self.privacy).then(|| encoding.keeping_null_rows());
        let placed = kept.as_ref().unwrap_or(encoding);
        if source.is_sparse() && self.algorithm.problem().is_some() {
            let rows = source.read_sparse(placed, threads)?;
            return self.fit_sparse(releaser, &rows, range, watch);
        }
        let table = source.read(placed, threads)?;
        let public = match public {
            Some(public) if self.is_regression() => {
                Some(rows_of_public(public, encoding, threads)?)
            }
            _ => None,
        };
        self.fit_table(releaser, &table, public.as_ref(), range, watch)
    }
}

impl Fitted {
    /// Intercepts and weights.
    ///
    /// # Panics
    ///
    /// If it is a network.
    fn weights(self) -> Weights {
        match self {
            Fitted::Weights(weights) => weights,
            Fitted::Network(_) => panic!("a network has no weights of features"),
        }
    }
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
