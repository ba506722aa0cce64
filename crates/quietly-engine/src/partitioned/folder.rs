//! The folder that a table is prepared in: its owner's alone, and one run's at a time.
use std::{
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
};

use quietly_data::{Source, is_temporary_name};

use super::{MANIFEST, told};
use crate::error::Error;

/// A folder that is ready to be written to.
pub(super) struct Opened {
    pub(super) folder: PathBuf,
    /// None where folders cannot be locked.
    pub(super) lock: Option<File>,
    pub(super) removed: usize,
}

/// Makes the folder, or takes one that is empty. Files that an interrupted run has left there are removed, unless they are among the
/// files of the table.
pub(super) fn open<'a>(
    folder: &Path,
    mut table: impl Iterator<Item = &'a Path>,
) -> Result<Opened, Error> {
    let failed = |e: std::io::Error| told(folder, &e);
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    // It tells the steps of all rows.
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(failed)?;
    check_private(folder)?;
    let path = fs::canonicalize(folder).map_err(failed)?;
    let lock = File::open(&path).ok();
    // The lock is on the folder itself: a file for it would be left behind. Some file systems have no such lock.
    if let Some(Err(TryLockError::WouldBlock)) = lock.as_ref().map(File::try_lock) {
        return Err(told(folder, &"another `quietly partition` is writing to this folder"));
    }
    let entries = fs::read_dir(&path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let files: Vec<PathBuf> = entries.map_err(failed)?.iter().map(fs::DirEntry::path).collect();
    let inside = |file: &Path| fs::canonicalize(file).is_ok_and(|file| file.starts_with(&path));
    if !files.iter().all(|file| is_left_over(file)) || table.any(inside) {
        return Err(told(folder, &"this folder is not empty; name one that is new or empty"));
    }
    for file in &files {
        fs::remove_file(file).map_err(|e| told(file, &e))?;
    }
    Ok(Opened { folder: path, lock, removed: files.len() })
}

/// Whether others may not enter the folder.
fn check_private(folder: &Path) -> Result<(), Error> {
    #[cfg(unix)]
    {
        let there = fs::metadata(folder).map_err(|e| told(folder, &e))?;
        let mode = std::os::unix::fs::PermissionsExt::mode(&there.permissions()) & 0o777;
        let want = "a folder that only its owner may enter (chmod 700)";
        Error::ensure(mode & 0o077 == 0, "output", want, format!("open to others: mode {mode:o}"))?;
    }
    Ok(())
}

/// Whether a file is what a run leaves that was killed before its end: a part that we wrote, or a file that is not complete. A finished
/// run has a manifest as well, which is neither.
fn is_left_over(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let is_part = |name: &str| {
        let number = name.strip_prefix("part-").and_then(|rest| rest.strip_suffix(".parquet"));
        number.is_some_and(|n| n.len() >= 6 && n.bytes().all(|b| b.is_ascii_digit()))
    };
    let of = name.strip_prefix('.').and_then(|rest| rest.rsplit_once('.')).map_or("", |(of, _)| of);
    let is_hidden = (is_part(of) || of == MANIFEST) && is_temporary_name(&name, of);
    let is_file = file.symlink_metadata().is_ok_and(|file| file.is_file());
    is_file && (is_hidden || (is_part(&name) && Source::is_regrouped(file)))
}
