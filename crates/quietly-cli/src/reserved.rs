//! Reserves the name and the disk space of a model file before the budget for it is spent.
use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
};

use crate::{error::Failure, interrupt, output};

/// The place of a file that is written later. Nothing is left of it if it never is.
pub(crate) struct Reserved {
    path: PathBuf,
    /// The file that will bear the name; `None` for a device or a pipe.
    partial: Option<(PathBuf, File)>,
    force: bool,
}

impl Reserved {
    /// Reserves `path` and `bytes` of disk space: another process that reserves the same name meanwhile is refused.
    ///
    /// The reservation is a locked file beside the place. One that a killed process left behind is not locked, and is
    /// taken over.
    pub(crate) fn new(
        path: &Path,
        inputs: &[PathBuf],
        bytes: u64,
        force: bool,
    ) -> Result<Reserved, Failure> {
        output::keep_inputs(path, inputs)?;
        // A name that ends in a slash is that of a folder.
        if path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            let error = io::Error::new(io::ErrorKind::IsADirectory, "it is a folder");
            return Err(Failure::file(path, &error));
        }
        if output::is_special(path) {
            return Ok(Reserved { path: path.into(), partial: None, force });
        }
        // Behind a link stands the file that is meant.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.into());
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let partial = target.with_file_name(format!(".{name}.partial"));
        let file = interrupt::guard_new(&partial, || lock(&partial, path))?;
        let mut reserved = Reserved { path: target, partial: Some((partial, file)), force };
        if reserved.path.exists() && !force {
            return Err(Failure::Exists(path.display().to_string()));
        }
        reserved.fill(bytes).map_err(|e| Failure::file(path, &e))?;
        Ok(reserved)
    }

    /// Takes the room that the file will need: a full disk is found out now.
    fn fill(&mut self, bytes: u64) -> io::Result<()> {
        let Some((_, file)) = &mut self.partial else { return Ok(()) };
        file.set_len(0)?;
        let blank = vec![0; 1 << 16];
        let mut left = bytes;
        while left > 0 {
            let some = left.min(blank.len() as u64);
            file.write_all(&blank[..some as usize])?;
            left -= some;
        }
        file.sync_all()
    }

    /// Writes the file and gives it its name. A model that was there is kept under another one.
    ///
    /// What was paid for is not thrown away: where that fails, it goes to the folder for temporary files, or to stdout.
    pub(crate) fn save(mut self, bytes: &[u8]) -> Result<(), Failure> {
        let error = match self.put(bytes) {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        let name = self.path.file_name().unwrap_or_default();
        let elsewhere = free(&std::env::temp_dir().join(name));
        let saved = File::create_new(&elsewhere)
            .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()));
        let place = match saved {
            Ok(()) => elsewhere.display().to_string(),
            Err(_) => {
                let _ = fs::remove_file(&elsewhere);
                let mut out = io::stdout().lock();
                out.write_all(bytes).and_then(|()| out.flush())?;
                "the output on stdout".into()
            }
        };
        let why = format!("{error}; the model is not lost: it was saved as {place}");
        Err(Failure::File { path: self.path.display().to_string(), why })
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some((partial, file)) = &mut self.partial else {
            return File::options().write(true).open(&self.path)?.write_all(bytes);
        };
        file.rewind()?;
        file.write_all(bytes)?;
        file.set_len(bytes.len() as u64)?;
        file.sync_all()?;
        if self.path.exists() {
            if !self.force {
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it exists already"));
            }
            fs::rename(&self.path, free(&self.path))?;
        }
        interrupt::rename(partial, &self.path)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        // Renamed if it was written, otherwise not needed.
        if let Some((partial, _)) = &self.partial {
            interrupt::remove(partial);
        }
    }
}

/// The first of NAME.1, NAME.2, ... that is not there.
fn free(path: &Path) -> PathBuf {
    let numbered = |n: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{n}"));
        PathBuf::from(name)
    };
    (1..).map(numbered).find(|name| !name.exists()).expect("there are enough numbers")
}

/// Opens the file of a reservation, and locks it. Another file of that name is left alone.
fn lock(partial: &Path, path: &Path) -> Result<File, Failure> {
    let told = |e: &io::Error| Failure::file(path, e);
    let foreign = || Failure::Exists(partial.display().to_string());
    loop {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let mut file = match options.clone().create_new(true).open(partial) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                match fs::symlink_metadata(partial) {
                    Ok(there) if !there.is_file() => return Err(foreign()),
                    _ => {}
                }
                match options.open(partial) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    open => open.map_err(|e| told(&e))?,
                }
            }
            open => open.map_err(|e| told(&e))?,
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Failure::Busy(path.display().to_string()));
            }
            Err(TryLockError::Error(error)) => return Err(told(&error)),
        }
        // Meanwhile its process may have renamed it (then it is a model), or a link stands there.
        if !is_named(partial, &file).map_err(|e| told(&e))? {
            continue;
        }
        return if is_reservation(&mut file).map_err(|e| told(&e))? {
            Ok(file)
        } else {
            Err(foreign())
        };
    }
}

/// Whether a file is what a killed process left: nothing, room, or the beginning of a model.
fn is_reservation(file: &mut File) -> io::Result<bool> {
    const MODEL: &[u8] = b"{\n  \"format\": \"quietly model\"";
    let mut start = Vec::new();
    file.take(MODEL.len() as u64).read_to_end(&mut start)?;
    file.rewind()?;
    let room = start.iter().all(|byte| *byte == 0);
    Ok(room || MODEL.starts_with(&start))
}

/// Whether a file still has this name.
fn is_named(path: &Path, file: &File) -> io::Result<bool> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let open = file.metadata()?;
        let there = fs::symlink_metadata(path);
        Ok(there.is_ok_and(|m| (m.dev(), m.ino()) == (open.dev(), open.ino())))
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        Ok(path.exists())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reservation follows no link, and takes the place of no file that is not one.
    #[cfg(unix)]
    #[test]
    fn a_reservation_takes_no_other_file() {
        let folder = std::env::temp_dir().join(format!("quietly-links-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let (path, partial) = (folder.join("z.quietly"), folder.join(".z.quietly.partial"));
        let precious = folder.join("precious.txt");
        fs::write(&precious, "precious").unwrap();
        std::os::unix::fs::symlink(&precious, &partial).unwrap();
        assert_eq!(Reserved::new(&path, &[], 100, false).err().unwrap().code(), "C10");
        fs::remove_file(&partial).unwrap();
        fs::write(&partial, "precious").unwrap();
        assert_eq!(Reserved::new(&path, &[], 100, false).err().unwrap().code(), "C10");
        for kept in [&precious, &partial] {
            assert_eq!(fs::read(kept).unwrap(), b"precious");
        }
        // What a killed process left is taken over.
        for left in [&b""[..], &[0; 50], b"{\n  \"format\": \"quietly model\",\n  \"ver"] {
            fs::write(&partial, left).unwrap();
            drop(Reserved::new(&path, &[], 100, false).unwrap());
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    /// A released model outlives a folder that goes away.
    #[test]
    fn a_model_that_cannot_be_saved_goes_elsewhere() {
        let folder = std::env::temp_dir().join(format!("quietly-gone-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let name = format!("gone-{}.quietly", std::process::id());
        let reserved = Reserved::new(&folder.join(&name), &[], 100, false).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        let failure = reserved.save(b"a model").unwrap_err();
        let saved = std::env::temp_dir().join(format!("{name}.1"));
        assert_eq!(fs::read(&saved).unwrap(), b"a model");
        fs::remove_file(&saved).unwrap();
        assert_eq!(failure.code(), "C09");
        assert!(failure.message().contains(&format!("{name}.1")), "{}", failure.message());
    }
}
