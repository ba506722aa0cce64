//! The checkpoint of a Releaser: a resumed run reads what it released before.
use super::Releaser;
use crate::{
    checkpoint::{Checkpoint, Release},
    error::Error,
};

impl Releaser {
    /// The next query is about to be run: false if what was released of its sum is in the checkpoint, so that no row is needed.
    ///
    /// What was released of the sum before is on the disk when this returns.
    pub fn next_query(&mut self) -> Result<bool, Error> {
        self.checkpoint.as_mut().map_or(Ok(true), Checkpoint::turn)
    }

    /// What an interrupted run released before. It counts, and its noise is not used again.
    pub(super) fn replayed(&mut self, purpose: &str) -> Result<Option<Release>, Error> {
        let replayed = match &mut self.checkpoint {
            Some(checkpoint) => checkpoint.replayed(purpose)?,
            None => None,
        };
        if replayed.is_some() {
            self.next_use(purpose);
        }
        Ok(replayed)
    }

    pub(super) fn write(&mut self, release: impl FnOnce() -> Release) {
        if let Some(checkpoint) = &mut self.checkpoint {
            checkpoint.write(release());
        }
    }

    /// The same releaser, with a checkpoint of all that it releases.
    pub fn with_checkpoint(self, checkpoint: Option<Checkpoint>) -> Self {
        Releaser { checkpoint, ..self }
    }

    /// The checkpoint, with all that has left.
    pub fn close(self) -> Result<Option<Checkpoint>, Error> {
        let mut checkpoint = self.checkpoint;
        if let Some(checkpoint) = &mut checkpoint {
            checkpoint.flush()?;
        }
        Ok(checkpoint)
    }

    /// The released values in real units, also written to the checkpoint.
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
