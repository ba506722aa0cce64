//! Files that appear under their name only when they are complete.
//!
//! On Linux such a file is opened with `O_TMPFILE`: the kernel frees it when the process ends, even
//! by `kill -9`. Where the file system does not support this, the file has a temporary name, and is
//! removed unless it is committed. In both cases only its owner may read it.
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

/// A file that is being written. Dropping it removes the file, unless it was
/// [committed](Self::commit).
#[doc(alias = "Unnamed")]
#[must_use = "a file that is not committed is lost"]
pub struct AtomicFile {
    file: File,
    to: PathBuf,
    /// Its temporary name, where it needs one.
    temporary: Option<PathBuf>,
}

impl AtomicFile {
    /// Opens a file that will be named `to`.
    ///
    /// # Errors
    ///
    /// If no file can be created in that folder.
    pub fn create(to: &Path) -> io::Result<Self> {
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(file) = without_name(folder.unwrap_or(Path::new("."))) {
            return Ok(AtomicFile { file, to: to.into(), temporary: None });
        }
        let temporary = temporary_name(to);
        let file = private().write(true).create_new(true).open(&temporary)?;
        Ok(AtomicFile { file, to: to.into(), temporary: Some(temporary) })
    }

    /// Flushes the complete file to the disk and gives it its name. An existing file is replaced.
    ///
    /// # Errors
    ///
    /// If that fails. Then the file is removed.
    pub fn commit(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        if self.temporary.is_none() {
            match link(&self.file, &self.to) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    // A link cannot replace a file, so link it beside and rename it.
                    let beside = temporary_name(&self.to);
                    link(&self.file, &beside)?;
                    self.temporary = Some(beside);
                }
                done => return done,
            }
        }
        let temporary = self.temporary.as_ref().expect("a temporary name");
        fs::rename(temporary, &self.to)?;
        self.temporary = None;
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = fs::remove_file(temporary);
        }
    }
}

/// Whether `name` is a temporary name of a file that will be named `of`.
pub fn is_temporary_name(name: &str, of: &str) -> bool {
    name.strip_prefix('.').and_then(|rest| rest.strip_prefix(of)).is_some_and(|rest| {
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let parts = rest.strip_prefix('.').and_then(|rest| rest.split_once('-'));
        parts.is_some_and(|(process, at)| digits(process) && digits(at))
    })
}

/// A temporary name beside `to`, different from those of other processes.
fn temporary_name(to: &Path) -> PathBuf {
    let name = to.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_nanos());
    to.with_file_name(format!(".{name}.{}-{now}", std::process::id()))
}

/// Options for files that only their owner may read.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// A file without a name in a folder. `None` where the system does not support it.
#[cfg(target_os = "linux")]
fn without_name(folder: &Path) -> Option<File> {
    use std::os::unix::fs::OpenOptionsExt;

    let mut options = private();
    options.write(true).custom_flags(rustix::fs::OFlags::TMPFILE.bits() as i32);
    // The file gets its name by way of /proc.
    Path::new("/proc/self/fd").exists().then(|| options.open(folder).ok())?
}

#[cfg(not(target_os = "linux"))]
fn without_name(_: &Path) -> Option<File> {
    None
}

/// Gives a file without a name the name `to`.
#[cfg(target_os = "linux")]
fn link(file: &File, to: &Path) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    use rustix::fs::{AtFlags, CWD, linkat};

    let from = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, from, CWD, to, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(not(target_os = "linux"))]
fn link(_: &File, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_complete_or_absent() {
        let folder = tempfile::tempdir().unwrap();
        let (count, to) =
            (|| fs::read_dir(folder.path()).unwrap().count(), folder.path().join("a"));
        let mut file = AtomicFile::create(&to).unwrap();
        file.write_all(b"lost").unwrap();
        #[cfg(target_os = "linux")]
        assert_eq!(count(), 0, "it has no name");
        drop(file);
        assert_eq!(count(), 0);
        for text in ["one", "two"] {
            let mut file = AtomicFile::create(&to).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            file.commit().unwrap();
            assert_eq!((fs::read_to_string(&to).unwrap().as_str(), count()), (text, 1));
        }
        #[cfg(unix)]
        {
            let mode =
                std::os::unix::fs::PermissionsExt::mode(&to.metadata().unwrap().permissions());
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    /// As on a file system without `O_TMPFILE`.
    #[test]
    fn a_temporary_file_is_removed_or_renamed() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("a");
        let make = || {
            let temporary = temporary_name(&to);
            let file = private().write(true).create_new(true).open(&temporary).unwrap();
            AtomicFile { file, to: to.clone(), temporary: Some(temporary) }
        };
        let names = || -> Vec<String> {
            let name = |e: io::Result<fs::DirEntry>| e.unwrap().file_name().into_string().unwrap();
            fs::read_dir(folder.path()).unwrap().map(name).collect()
        };
        let file = make();
        assert!(names().iter().all(|name| is_temporary_name(name, "a")) && names().len() == 1);
        drop(file);
        assert!(names().is_empty());
        make().commit().unwrap();
        assert_eq!(names(), ["a"]);
    }

    #[test]
    fn only_temporary_names_are_recognised() {
        assert!(is_temporary_name(".a.parquet.17-4711", "a.parquet"));
        for other in
            ["a.parquet.17-4711", ".a.parquet", ".a.parquet.x-1", ".a.parquet.1-", ".b.1-2"]
        {
            assert!(!is_temporary_name(other, "a.parquet"), "{other}");
        }
    }
}
