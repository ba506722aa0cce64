//! Files that are whole or not there.
use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use crate::failure::Failure;

/// A file under a name of its own until it is complete; removed if it never is.
pub(crate) struct Output {
    path: PathBuf,
    partial: PathBuf,
    file: Option<BufWriter<File>>,
}

impl Output {
    /// Opens the file next to where it will stand.
    pub(crate) fn create(path: &Path) -> Result<Output, Failure> {
        if path.is_dir() {
            let error = io::Error::new(io::ErrorKind::IsADirectory, "it is a folder");
            return Err(Failure::file(path, &error));
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let partial = path.with_file_name(format!(".{name}.{}.partial", std::process::id()));
        let file = File::create(&partial).map_err(|e| Failure::file(path, &e))?;
        Ok(Output { path: path.into(), partial, file: Some(BufWriter::new(file)) })
    }

    /// Writes everything there is, and gives the file its name.
    pub(crate) fn write_and_finish(mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.write_all(bytes).map_err(|e| Failure::file(&self.path, &e))?;
        self.finish()
    }

    /// Gives the complete file its name.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        let file = self.file.take().expect("finished once");
        let done = file
            .into_inner()
            .map_err(io::IntoInnerError::into_error)
            .and_then(|file| file.sync_all())
            .and_then(|()| fs::rename(&self.partial, &self.path));
        done.map_err(|e| Failure::file(&self.path, &e))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_mut().expect("not finished").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().expect("not finished").flush()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // Renamed if it was finished; otherwise nobody wants it.
        self.file = None;
        let _ = fs::remove_file(&self.partial);
    }
}

/// Whether a file could be written there. Nothing stays behind.
pub(crate) fn probe(path: &Path) -> Result<(), Failure> {
    Output::create(path).map(drop)
}

/// Writes a whole file, or nothing.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    Output::create(path)?.write_and_finish(bytes)
}
