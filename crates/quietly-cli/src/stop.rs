//! Ctrl-C: what was being written is removed, and the process ends at once.
//!
//! A run that waits for a slow disk cannot be asked to stop at its next step, so nobody asks. Rows that a fit keeps on
//! disk are in files without a name, which end with the process.
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::failure::Failure;

/// The exit code of whoever was interrupted.
pub(crate) const EXIT: u8 = 130;

/// The file, or folder, that is not complete yet.
static PARTIAL: Mutex<Option<PathBuf>> = Mutex::new(None);

fn partial() -> MutexGuard<'static, Option<PathBuf>> {
    PARTIAL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on `file` is removed if the process is told to end.
pub(crate) fn guard(file: &Path) {
    *partial() = Some(file.into());
    // The second call fails, as there is a handler. Without one ctrl-C ends the process, which is no worse.
    let _ = ctrlc::set_handler(|| {
        // Held until the end: nobody renames the file any more.
        let partial = partial();
        partial.iter().for_each(|file| wipe(file));
        let code = Failure::from(quietly::Error::Stopped).report(crate::wants_json());
        std::process::exit(code.into());
    });
}

/// Gives a complete file its name.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let mut partial = partial();
    fs::rename(from, to)?;
    *partial = None;
    Ok(())
}

/// Removes a file that never became complete.
pub(crate) fn remove(file: &Path) {
    let mut partial = partial();
    if partial.as_deref() == Some(file) {
        wipe(file);
        *partial = None;
    }
}

fn wipe(path: &Path) {
    let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}
