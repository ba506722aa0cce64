//! Running a plan on rows that somebody else keeps: in parts, on other machines, or both.
use quietly_accounting::Neighbours;
use quietly_data::Encoding;

use super::Plan;
use crate::{
    charge::Sampler, convex, errand::Reading, error::Error, expand::Expansion, journal::Journal,
    keeper::Keeper, method::Method, model::Model, paid::Paid, prepared::Allocation,
    progress::Watch, release::Door,
};

/// Rows that somebody else keeps, and what is known about them.
pub struct Elsewhere<'a> {
    /// Who answers for them.
    pub rows: &'a mut dyn Keeper,
    /// How many records there are. It is private, unless the plan's relation makes it public.
    pub records: u64,
    /// How records came to their steps, where each is in one.
    pub allocation: Option<&'a Allocation>,
    /// Where what is released is written down, so that a run which is broken off can go on.
    pub journal: Option<Journal>,
}

impl Plan {
    /// How rows are to be read for this plan.
    pub fn reading(&self, encoding: &Encoding) -> Reading {
        let (encoding, expansion) = (encoding.clone(), self.expansion.clone());
        let places = self.convex.is_some() && convex::run::keeps_places(self);
        Reading { encoding, places, expansion }
    }

    /// Whether all that this plan asks are sums over rows, so that it does not matter where these are.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if it asks for something else; it says what to take instead.
    pub fn asks_for_sums(&self) -> Result<(), Error> {
        let want = "one whose steps are sums over rows: full-batch or one-pass for linear and relu; dp-gd, dp-sgd or \
                    frank-wolfe for other losses";
        Error::unless(self.are_sums(), "method", want, self.method.name())?;
        self.expands_alike()
    }

    fn are_sums(&self) -> bool {
        match self.method {
            Method::OnePass | Method::FullBatch => true,
            _ => self.convex.is_some() && convex::run::asks_for_sums(self),
        }
    }

    fn expands_alike(&self) -> Result<(), Error> {
        // A cosine has not the same bits on every machine.
        let waves = matches!(self.expansion, Some(Expansion::Waves { .. }));
        Error::unless(!waves, "expansion", "splines, where several machines work", "waves")
    }

    /// Whether all rows are asked in every step, so that rows need no places: they may come in any order, and in another one each time.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if steps have rows of their own, or all that this plan asks are not sums.
    pub fn asks_every_row(&self) -> Result<(), Error> {
        let want = "one that asks every row in every step, as the rows of this table have no places: full-batch for linear and relu, \
                    dp-gd or frank-wolfe for other losses";
        let every = self.are_sums() && self.sampler == Sampler::Full;
        Error::unless(every, "method", want, self.method.name())?;
        self.expands_alike()
    }

    /// Whether a table that was prepared like this, or not at all, has as many steps as are planned.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if it has not.
    pub fn suits(&self, allocation: Option<&Allocation>) -> Result<(), Error> {
        if let Sampler::Allocation { steps } = self.sampler {
            let there = allocation.map_or(0, |allocation| allocation.steps);
            let want =
                "prepared for as many steps as are planned: `quietly prepare TABLE --steps T`";
            let got = match there {
                0 => format!("not prepared, and {steps} steps are planned"),
                there => format!("prepared for {there} steps, and {steps} are planned"),
            };
            Error::unless(there == steps, "table", want, got)?;
        }
        Ok(())
    }

    /// Fits rows that somebody else keeps, and writes its certificate. The journal is left behind, with all that was released.
    ///
    /// # Errors
    ///
    /// As [`asks_for_sums`](Self::asks_for_sums); [`Error::Parameter`] if rows are not in as many steps as planned; whatever the
    /// keeper of the rows fails with; [`Error::Stopped`] if `watch` says so.
    pub fn fit_elsewhere(
        &self,
        from: &mut Elsewhere<'_>,
        encoding: &Encoding,
        unit_of_privacy: &str,
        paid: Paid,
        threads: usize,
        watch: &mut Watch<'_>,
    ) -> Result<Model, Error> {
        self.check()?;
        self.asks_for_sums()?;
        assert_eq!(encoding.width(), self.inputs(), "the planned number of features");
        self.suits(from.allocation)?;
        if let Some(journal) = &mut from.journal {
            let want = "that of a run of this plan";
            Error::unless(journal.is_of(self), "journal", want, "that of another")?;
            journal.begin()?;
        }
        let (target, range) = self.target(encoding)?;
        let key = paid.spend(self.asked())?;
        let origin = Some(key.source());
        let mut door = Door::new(key, &self.stages, threads).with_journal(from.journal.take());
        // What was released in answer to a question that is broken off has gone nowhere, and is forgotten.
        let weights = if self.convex.is_some() {
            let public = self.budget.neighbours() == Neighbours::ReplaceOne;
            let records = public.then_some(from.records);
            convex::run::fit_kept(self, from.rows, records, range, &mut door, watch)?
        } else {
            self.ask(from.rows, range, &mut door, watch)?.into()
        };
        let rows_used = door.rows_used;
        // The last page is on the disk before anybody has the model.
        from.journal = door.close()?;
        let mut certificate = self.certificate(unit_of_privacy, origin)?;
        certificate.rows_used = rows_used;
        if let (Sampler::Allocation { .. }, Some(allocation)) = (self.sampler, from.allocation) {
            certificate.record(allocation);
        }
        Ok(Model::new(self.clone(), target.name, encoding.clone(), weights, certificate))
    }
}
