//! Progress callbacks into Python, and interrupts from it.
use std::{
    ops::ControlFlow,
    time::{Duration, Instant},
};

use pyo3::{exceptions::PyKeyboardInterrupt, prelude::*};
use quietly::{Progress, ProgressCallback};

use crate::errors::raise;

/// The shortest time between two reports: taking the interpreter lock costs other threads time.
const SELDOM: Duration = Duration::from_millis(200);

/// Works without the interpreter's lock, tells how far it has come, and lets ctrl-C through.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    tell: Option<Py<PyAny>>,
    work: impl FnOnce(&mut ProgressCallback<'_>) -> Result<T, quietly::Error> + Send,
) -> PyResult<T> {
    let mut watcher = Watcher { tell, told: Instant::now(), interrupted: None };
    let done = py.detach(|| work(&mut |progress| watcher.hear(progress)));
    match watcher.interrupted {
        Some(signal) => Err(signal),
        None => done.map_err(raise),
    }
}

/// Hears of progress, tells Python of it, and stops the fit when it is interrupted.
struct Watcher {
    tell: Option<Py<PyAny>>,
    told: Instant,
    interrupted: Option<PyErr>,
}

impl Watcher {
    fn hear(&mut self, progress: Progress) -> ControlFlow<()> {
        let tell = self.tell.as_ref().filter(|_| self.told.elapsed() >= SELDOM);
        let heard = Python::attach(|py| {
            py.check_signals()?;
            let Some(tell) = tell else { return Ok(()) };
            // A number of passes or of trials may depend on the rows, or is secret, and is not reported.
            let secret = matches!(progress.doing, "minimising" | "trying");
            let (done, of) = if secret { (0, 0) } else { (progress.done, progress.of) };
            self.told = Instant::now();
            match tell.call1(py, (progress.doing, done, of)) {
                Err(error) if error.is_instance_of::<PyKeyboardInterrupt>(py) => Err(error),
                // An exception in the progress callback does not stop the fit.
                _ => Ok(()),
            }
        });
        match heard {
            Ok(()) => ControlFlow::Continue(()),
            Err(signal) => {
                self.interrupted = Some(signal);
                ControlFlow::Break(())
            }
        }
    }
}
