//! Where an executor keeps sums until they are fetched: a folder that only its owner can read, and that is removed.
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::Duration,
};

use tempfile::TempDir;

const NAME: &str = "quietly-executor-";

/// A folder of an executor's own. What executors that were killed have left behind is removed with it.
pub(crate) struct Scratch {
    folder: TempDir,
    /// Held for as long as the executor lives.
    _lock: File,
}

impl Scratch {
    pub(crate) fn new(inside: Option<&Path>) -> Result<Self, String> {
        let inside = inside.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let told = |e: std::io::Error| format!("no scratch folder in {}: {e}", inside.display());
        fs::create_dir_all(&inside).map_err(told)?;
        remove_left_behind(&inside);
        let mut builder = tempfile::Builder::new();
        builder.prefix(NAME);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = builder.tempdir_in(&inside).map_err(told)?;
        let lock = File::create(lock_of(folder.path())).map_err(told)?;
        lock.try_lock().map_err(|e| told(e.into()))?;
        Ok(Scratch { folder, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(lock_of(self.path()));
    }
}

/// Beside the folder, which the engine tidies up.
fn lock_of(folder: &Path) -> PathBuf {
    folder.with_extension("lock")
}

/// Removes the folders of executors that are no more.
fn remove_left_behind(inside: &Path) {
    let Ok(entries) = fs::read_dir(inside) else { return };
    for folder in entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()) {
        let ours = folder.file_name().is_some_and(|n| n.to_string_lossy().starts_with(NAME));
        if !ours {
            continue;
        }
        // A live process holds its lock, or is about to take it.
        let old = |lock: &File| {
            let age = lock.metadata().and_then(|file| file.modified()).map(|at| at.elapsed());
            matches!(age, Ok(Ok(age)) if age > Duration::from_secs(10))
        };
        if let Ok(lock) = File::open(lock_of(&folder))
            && old(&lock)
            && lock.try_lock().is_ok()
        {
            let _ = fs::remove_dir_all(&folder);
            let _ = fs::remove_file(lock_of(&folder));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_dead_left_is_removed_and_what_the_living_have_stays() {
        let place = tempfile::tempdir().unwrap();
        let living = Scratch::new(Some(place.path())).unwrap();
        let dead = place.path().join("quietly-executor-dead");
        fs::create_dir(&dead).unwrap();
        fs::write(dead.join("sum"), "7").unwrap();
        let lock = File::create(lock_of(&dead)).unwrap();
        lock.set_modified(std::time::SystemTime::now() - Duration::from_secs(60)).unwrap();
        drop(lock);
        let other = place.path().join("something-else");
        fs::create_dir(&other).unwrap();
        let next = Scratch::new(Some(place.path())).unwrap();
        assert!(!dead.exists() && other.exists());
        assert!(living.path().exists() && next.path().exists());
        let (one, two) = (living.path().to_path_buf(), next.path().to_path_buf());
        #[cfg(unix)]
        {
            let mode =
                std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&one).unwrap().permissions());
            assert_eq!(mode & 0o777, 0o700);
        }
        drop((living, next));
        assert!(!one.exists() && !two.exists());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }
}
