//! The journal of what leaves: a run that resumes reads what it released before.
use super::Releaser;
use crate::{
    checkpoint::{Checkpoint, Release},
    error::Error,
};

impl Releaser {
    /// The next query is about to be run: false if what was released of its sum is in the journal, so that no row is needed.
    ///
    /// What was released of the sum before is on the disk when this returns.
    pub fn next_query(&mut self) -> Result<bool, Error> {
        self.journal.as_mut().map_or(Ok(true), Checkpoint::turn)
    }

    /// What was released before, by a run that was broken off. It counts, and its noise is not used again.
    pub(super) fn told(&mut self, purpose: &str) -> Result<Option<Release>, Error> {
        let told = match &mut self.journal {
            Some(journal) => journal.told(purpose)?,
            None => None,
        };
        if told.is_some() {
            self.enter(purpose);
        }
        Ok(told)
    }

    pub(super) fn write(&mut self, release: impl FnOnce() -> Release) {
        if let Some(journal) = &mut self.journal {
            journal.write(release());
        }
    }

    /// The same releaser, with a journal of all that leaves by it.
    pub fn with_journal(self, journal: Option<Checkpoint>) -> Self {
        Releaser { journal, ..self }
    }

    /// The journal, with all that has left.
    pub fn close(self) -> Result<Option<Checkpoint>, Error> {
        let mut journal = self.journal;
        if let Some(journal) = &mut journal {
            journal.flush()?;
        }
        Ok(journal)
    }

    /// What leaves, in real units; it is written down.
    pub(super) fn released(
        &mut self,
        purpose: &str,
        sum: &[i64],
        unit: f64,
        noise: f64,
    ) -> (Vec<f64>, f64) {
        let values: Vec<f64> = sum.iter().map(|&s| s as f64 * unit).collect();
        let purpose = purpose.to_string();
        self.write(|| Release::Sum { purpose, values: values.clone(), noise });
        (values, noise)
    }
}
