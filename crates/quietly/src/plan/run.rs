//! Running a plan: from rows, wherever they are, to released parameters.
use quietly_core::{
    checkpoint::Checkpoint,
    progress::{Progress, ProgressCallback, report},
    release::Releaser,
};
use quietly_data::{Encoding, Table, Target};
use quietly_engine::{
    algorithm::{Algorithm, Run},
    backend::{Backend, Borrowed, InMemory, Spilled},
    error::Error,
};

use super::{
    Plan,
    fit::{FitInput, FitOptions, FitOutput, InputRows, watching},
};
use crate::any_algorithm::{AnyAlgorithm, Fitted};

/// Bytes of a table in memory that may be copied: what a reader holds of a file at one time.
const SMALL: f64 = 24e6;

impl Plan {
    /// Fits rows, wherever they are, within what was charged. The one way to run a plan.
    ///
    /// ```
    /// use quietly::{Budget, Charge, FitInput, FitOptions, Key, Link, Private};
    /// use quietly::{Regression, Table};
    ///
    /// let table = Private::new(Table::new(1, vec![0.5, -0.5], vec![1.0, -1.0]));
    /// let plan = Regression::new(Link::Linear).plan(2, 1, Budget::new(1.0, 1e-5)?)?;
    /// let charge = Charge::without_ledger(Key::from_os()?);
    /// let fit = plan.fit(FitInput::table(&table, (-1.0, 1.0)), FitOptions::new(charge))?;
    /// println!("{}", fit.certificate("person")?);
    /// let (intercept, weights) = fit.coefficients()?;
    /// # assert!(intercept.is_finite() && weights.len() == 1);
    /// # Ok::<(), quietly::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Interrupted`] if `watch` says so; [`Error::Noise`] if there is no randomness; [`Error::Data`] if a file cannot
    /// be read; whatever a backend fails with; [`Error::Parameter`] if the plan costs more than was charged, or rows, public rows
    /// or checkpoint do not go with it. No row can cause an error.
    ///
    /// # Panics
    ///
    /// If rows do not have the planned number of features, before any expansion.
    pub fn fit<'a>(
        &'a self,
        input: FitInput<'a>,
        options: FitOptions<'_>,
    ) -> Result<FitOutput<'a>, Error> {
        let FitOptions { charge, threads, watch, public, mut checkpoint } = options;
        let range = self.check_input(&input)?;
        if let Some(checkpoint) = &mut checkpoint {
            self.begin(checkpoint, &input)?;
        }
        let key = charge.spend(self.unit_budget())?;
        let randomness = self.budget().is_private().then_some(key.source());
        let expander = self.expander()?;
        let expanded =
            expander.zip(public).map(|(expander, table)| expander.public_table(table, threads));
        let public = expanded.as_ref().or(public);
        let mut releaser = Releaser::new(key, self.stages(), threads).with_checkpoint(checkpoint);
        let (encoding, allocation) = (input.encoding(), input.allocation);
        let fitted = self.run(input.rows, public, &mut releaser, range, &mut watching(watch))?;
        let (rows_used, ran) = (releaser.rows_used, releaser.ran.clone());
        // The last page is on the disk before the caller has the model.
        let checkpoint = releaser.close()?;
        let plan = self;
        Ok(FitOutput { plan, fitted, encoding, allocation, randomness, rows_used, ran, checkpoint })
    }

    /// Whether the rows go with the plan; gives the public range of the target. No row is read.
    fn check_input(&self, input: &FitInput<'_>) -> Result<(f64, f64), Error> {
        let expect = |width: usize| {
            assert_eq!(width, self.inputs(), "the planned number of features");
        };
        // The rows of other inputs come to their steps by the draw of this run.
        let grouped = input.allocation.is_none() || matches!(input.rows, InputRows::Backend(..));
        Error::ensure(grouped, "allocation", "left out for rows that are not grouped", "given")?;
        match &input.rows {
            InputRows::Source(source, encoding) => {
                expect(encoding.width());
                self.check_dense(source)?;
                Ok(self.target(encoding)?.1)
            }
            InputRows::Backend(backend, encoding) => {
                self.check_sums()?;
                expect(encoding.width());
                self.suits(input.allocation)?;
                self.check_groups(backend.groups(), input.allocation)?;
                Ok(self.target(encoding)?.1)
            }
            InputRows::Table(table, range) => {
                _ = table.as_ref().map(|table| expect(table.width()));
                Ok(*range)
            }
            InputRows::Sparse(rows, range) => {
                let want = "one of a convex loss, as rows are sparse";
                let convex = self.algorithm.problem().is_some();
                Error::ensure(convex, "plan", want, self.method().name())?;
                let want = "left out for sparse rows, whose zeros it would fill";
                Error::ensure(self.expansion.is_none(), "expand", want, "given")?;
                _ = rows.as_ref().map(|rows| expect(rows.width));
                Ok(*range)
            }
        }
    }

    /// Begins a run with a checkpoint, or goes on with it.
    fn begin(&self, checkpoint: &mut Checkpoint, input: &FitInput<'_>) -> Result<(), Error> {
        self.check_sums()?;
        self.check_resumable(input.allocation)?;
        let (want, got) = ("that of a run of this plan", "that of another plan");
        Error::ensure(checkpoint.is_of(&self.identity()), "checkpoint", want, got)?;
        Ok(checkpoint.begin()?)
    }

    /// Runs the algorithm through a releaser. Public rows are expanded already.
    pub(crate) fn run(
        &self,
        rows: InputRows<'_>,
        public: Option<&Table>,
        releaser: &mut Releaser,
        range: (f64, f64),
        watch: &mut ProgressCallback<'_>,
    ) -> Result<Fitted, Error> {
        let threads = releaser.threads();
        let on = |backend: &mut dyn Backend,
                  releaser: &mut Releaser,
                  watch: &mut ProgressCallback<'_>| {
            let (plan, shape) = (&self.privacy, self.shape);
            self.algorithm.fit(Run { plan, shape, range, backend, public, releaser, watch })
        };
        match rows {
            InputRows::Backend(backend, _) => on(backend, releaser, watch),
            InputRows::Sparse(rows, _) => on(&mut InMemory::sparse(rows, threads), releaser, watch),
            InputRows::Table(table, _) => {
                let expanded = self.expander()?.map(|expander| expander.table(table, threads));
                let table = expanded.as_ref().unwrap_or(table);
                on(&mut InMemory::new(table, threads), releaser, watch)
            }
            InputRows::Source(source, encoding) => {
                if self.reads_in_place()
                    && let Some(columns) = source.gather(encoding)?
                {
                    return on(&mut Borrowed::new(columns, threads), releaser, watch);
                }
                if let AnyAlgorithm::OnePass(_) = &self.algorithm {
                    let bytes = source.bytes();
                    let mut reading =
                        |at: u64| watch(Progress { doing: "reading", done: at, of: bytes });
                    let draw = releaser.draw(self.sampler());
                    let mut backend = Spilled::new(source, encoding, &draw, threads, &mut reading)?;
                    return on(&mut backend, releaser, watch);
                }
                report(watch, "reading", 0, source.bytes())?;
                let placed = self.algorithm.keeps_places(&self.privacy);
                let placed = placed.then(|| encoding.keeping_null_rows());
                let encoding = placed.as_ref().unwrap_or(encoding);
                if source.is_sparse() && self.algorithm.problem().is_some() {
                    let rows = &source.read_sparse(encoding, threads)?;
                    return self.run(
                        InputRows::Sparse(rows, range),
                        public,
                        releaser,
                        range,
                        watch,
                    );
                }
                let table = &source.read(encoding, threads)?;
                self.run(InputRows::Table(table, range), public, releaser, range, watch)
            }
        }
    }

    /// Whether a table in memory is read in place, query by query, rather than copied: a copy is faster, and a small table
    /// may be copied.
    fn reads_in_place(&self) -> bool {
        let bytes = self.rows() as f64 * (self.width() + 1) as f64 * 13.0;
        match self.algorithm {
            AnyAlgorithm::OnePass(_) => true,
            AnyAlgorithm::FullBatch(_) | AnyAlgorithm::Additive(_) => {
                self.expansion.is_none() && bytes > SMALL
            }
            _ => false,
        }
    }

    /// What is predicted, and its public range.
    pub(super) fn target(&self, encoding: &Encoding) -> Result<(Target, (f64, f64)), Error> {
        let classes = self.link().is_classifier();
        let target = if classes { encoding.expect_classes()? } else { encoding.expect_range()? };
        Ok((target.clone(), (target.lo, target.hi)))
    }
}
