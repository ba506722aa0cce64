//! Output files and folders: written completely, or not at all.
use std::{
    fs::{self, File},
    io::{self, BufWriter, Read, Write},
    path::{Path, PathBuf},
};

use crate::{error::Failure, interrupt};

/// A file under a name of its own until it is complete; removed if it never is, also by ctrl-C.
pub(crate) struct Output {
    path: PathBuf,
    /// None for a device or a pipe, which is written to and stays what it is.
    partial: Option<PathBuf>,
    file: Option<BufWriter<File>>,
}

impl Output {
    /// Opens the file next to where it will stand.
    pub(crate) fn create(path: &Path) -> Result<Output, Failure> {
        if path.is_dir() {
            let error = io::Error::new(io::ErrorKind::IsADirectory, "it is a folder");
            return Err(Failure::file(path, &error));
        }
        let opened = |file| Some(BufWriter::new(file));
        if is_special(path) {
            let file = File::options().write(true).open(path);
            let file = opened(file.map_err(|e| Failure::file(path, &e))?);
            return Ok(Output { path: path.into(), partial: None, file });
        }
        // Behind a link stands the file that is meant.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.into());
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let partial = target.with_file_name(format!(".{name}.{}.partial", std::process::id()));
        interrupt::guard(&partial);
        let file = File::create(&partial).map_err(|e| Failure::file(path, &e))?;
        Ok(Output { path: target, partial: Some(partial), file: opened(file) })
    }

    /// Writes everything there is, and gives the file its name.
    pub(crate) fn write_and_finish(mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.write_all(bytes).map_err(|e| Failure::file(&self.path, &e))?;
        self.finish()
    }

    /// Gives the complete file its name.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        let file = self.file.take().expect("finished once");
        let done =
            file.into_inner().map_err(io::IntoInnerError::into_error).and_then(|file| match &self
                .partial
            {
                Some(partial) => {
                    file.sync_all().and_then(|()| interrupt::rename(partial, &self.path))
                }
                None => Ok(()),
            });
        let done = if self.partial.is_none() { had_enough(done, ()) } else { done };
        done.map_err(|e| Failure::file(&self.path, &e))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.as_mut().expect("not finished").write(bytes);
        match &self.partial {
            Some(_) => written,
            None => had_enough(written, bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().expect("not finished").flush()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // Renamed if it was finished, otherwise not needed.
        self.file = None;
        self.partial.iter().for_each(|partial| interrupt::remove(partial));
    }
}

/// Whether a file could be written there, without losing what was read. Nothing stays behind.
pub(crate) fn probe(path: &Path, inputs: &[PathBuf]) -> Result<(), Failure> {
    keep_inputs(path, inputs)?;
    if is_special(path) { Ok(()) } else { Output::create(path).map(drop) }
}

/// The same for a verb that replaces only what it wrote itself: a file that is there must be empty, look like its own
/// output by its first bytes, or be given up by --force.
pub(crate) fn probe_own(
    path: &Path,
    inputs: &[PathBuf],
    force: bool,
    own: impl Fn(&[u8]) -> bool,
) -> Result<(), Failure> {
    keep_inputs(path, inputs)?;
    if path.is_file() && !force {
        let mut start = Vec::new();
        let read = File::open(path).and_then(|file| file.take(4096).read_to_end(&mut start));
        if read.is_err() || !(start.is_empty() || own(&start)) {
            return Err(Failure::Exists(path.display().to_string()));
        }
    }
    probe(path, inputs)
}

/// Whether a file begins as our pictures do.
pub(crate) fn is_svg(start: &[u8]) -> bool {
    start.starts_with(b"<svg ")
}

/// Refuses to write over what is read.
pub(crate) fn keep_inputs(path: &Path, inputs: &[PathBuf]) -> Result<(), Failure> {
    if let Ok(target) = fs::canonicalize(path)
        && inputs.iter().any(|input| fs::canonicalize(input).is_ok_and(|i| i == target))
    {
        return Err(Failure::Input(path.display().to_string()));
    }
    Ok(())
}

/// Writes a complete file, or nothing at all.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    Output::create(path)?.write_and_finish(bytes)
}

/// Checks that a new folder can be created at `path`. Leaves nothing behind.
pub fn probe_folder(path: &Path) -> Result<(), Failure> {
    if path.exists() {
        return Err(Failure::Folder(path.display().to_string()));
    }
    let partial = partial_folder(path);
    fs::create_dir(&partial)
        .and_then(|()| fs::remove_dir(&partial))
        .map_err(|e| Failure::file(path, &e))
}

/// Writes a new folder with all of these files, or nothing at all.
pub fn write_folder(path: &Path, files: &[(&str, &[u8])]) -> Result<(), Failure> {
    let partial = partial_folder(path);
    interrupt::guard(&partial);
    let write = || -> io::Result<()> {
        fs::create_dir(&partial)?;
        for (name, bytes) in files {
            let mut file = File::create(partial.join(name))?;
            file.write_all(bytes)?;
            file.sync_all()?;
        }
        interrupt::rename(&partial, path)
    };
    let done = write();
    interrupt::remove(&partial);
    done.map_err(|e| Failure::file(path, &e))
}

fn partial_folder(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.partial", std::process::id()))
}

/// A pipe whose reader has had enough, as in `quietly ... | head`, is no error.
fn had_enough<T>(done: io::Result<T>, otherwise: T) -> io::Result<T> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(otherwise),
        done => done,
    }
}

/// Whether something is there that is neither a file nor a folder: /dev/stdout, or a pipe.
pub(crate) fn is_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|m| !m.is_file() && !m.is_dir())
}
