//! Signals to end (INT, TERM, HUP): unfinished files are removed, and the process ends at once with exit code 130.
//!
//! A run that waits for a slow disk cannot be asked to stop at its next step, so the process ends where it is. Rows that a fit or
//! `prepare` keeps on disk are in files without a name, which end with the process.
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    thread::sleep,
    time::Duration,
};

use crate::error::Failure;

/// The exit code of a command that was interrupted.
pub(crate) const EXIT: u8 = 130;
/// How long a command whose result is complete may take to say so, if a signal comes just then.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What there is on the disk.
enum Written {
    Nothing,
    /// A file or folder that is not complete yet.
    Partial(PathBuf),
    /// A file or folder that is complete, and none that is not.
    Complete,
}

static WRITTEN: Mutex<Written> = Mutex::new(Written::Nothing);

fn written() -> MutexGuard<'static, Written> {
    WRITTEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on a signal ends the process in order. To be called at the start of every command.
pub(crate) fn listen() {
    // Without a handler a signal ends the process at once, which is no worse.
    #[cfg(unix)]
    {
        use signal_hook::{
            consts::{SIGHUP, SIGINT, SIGTERM},
            iterator::Signals,
        };
        // What `nohup` started continues when its terminal is closed.
        let hangup = (!is_ignored(SIGHUP)).then_some(SIGHUP);
        if let Ok(mut signals) = Signals::new([SIGINT, SIGTERM].into_iter().chain(hangup)) {
            std::thread::spawn(move || {
                if signals.forever().next().is_some() {
                    end();
                }
            });
        }
    }
    #[cfg(not(unix))]
    let _ = ctrlc::set_handler(|| end());
}

/// Ends the process in order.
fn end() -> ! {
    if matches!(*written(), Written::Complete) {
        // It is about to end by itself, with what it has to say about the result.
        sleep(LAST_WORDS);
    }
    // Held until the end: nothing is renamed any more.
    let written = written();
    if let Written::Partial(path) = &*written {
        wipe(path);
    }
    let code = Failure::from(quietly::Error::Interrupted).report(crate::program::wants_json());
    std::process::exit(code.into());
}

/// Whether a signal is ignored, as the system says where it does.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

/// From now on a file or folder is removed if the process is told to end.
pub(crate) fn guard(path: &Path) {
    *written() = Written::Partial(path.into());
}

/// Makes a file and guards it. A signal that comes meanwhile waits.
pub(crate) fn guard_new<T>(
    file: &Path,
    make: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut written = written();
    let made = make()?;
    *written = Written::Partial(file.into());
    Ok(made)
}

/// Completes what is guarded. Signals wait meanwhile.
pub(crate) fn complete<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let mut written = written();
    let done = work()?;
    *written = Written::Complete;
    Ok(done)
}

/// Gives a complete file its name.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    complete(|| fs::rename(from, to))
}

/// Removes a file or folder that never became complete.
pub(crate) fn remove(path: &Path) {
    let mut written = written();
    if matches!(&*written, Written::Partial(partial) if partial == path) {
        wipe(path);
        *written = Written::Nothing;
    }
}

fn wipe(path: &Path) {
    let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}
