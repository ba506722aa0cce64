//! Progress of a run, and its interruption.
use std::{fmt, ops::ControlFlow};

use crate::error::Error;

/// How far a fit has come.
#[derive(Clone, Copy, Debug)]
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
            // The number of passes depends on the rows, so that it is not reported.
            "minimising" => write!(f, "minimising"),
            doing => write!(f, "{doing}: {} of {}", self.done, self.of),
        }
    }
}

/// Receives progress, and may interrupt the run.
pub type ProgressCallback<'a> = dyn FnMut(Progress) -> ControlFlow<()> + 'a;

/// Tells of progress.
pub fn report(
    watch: &mut ProgressCallback<'_>,
    doing: &'static str,
    done: u64,
    of: u64,
) -> Result<(), Error> {
    match watch(Progress { doing, done, of }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Interrupted),
    }
}
