//! Files that have no name until they are complete.
//!
//! On Linux such a file is opened with `O_TMPFILE`: the kernel frees it when the process ends, even by `kill -9`. Where the file
//! system has no such files, it has a hidden name instead, which is removed unless the file is completed. Either way only its owner
//! may read it.
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

/// A file that is being written. It is gone when this is dropped, unless [`name`](Self::name) was called.
#[must_use = "without a name the file is lost"]
pub struct Unnamed {
    file: File,
    to: PathBuf,
    /// Its name meanwhile, where a file must have one.
    hidden: Option<PathBuf>,
}

impl Unnamed {
    /// Opens a file that will be called `to`.
    ///
    /// # Errors
    ///
    /// If nothing can be written to that folder.
    pub fn create(to: &Path) -> io::Result<Self> {
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(file) = without_name(folder.unwrap_or(Path::new("."))) {
            return Ok(Unnamed { file, to: to.into(), hidden: None });
        }
        let hidden = hidden(to);
        let file = private().write(true).create_new(true).open(&hidden)?;
        Ok(Unnamed { file, to: to.into(), hidden: Some(hidden) })
    }

    /// Flushes the complete file to the disk and gives it its name. A file of that name is replaced.
    ///
    /// # Errors
    ///
    /// If that cannot be done. Then the file is gone.
    pub fn name(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        if self.hidden.is_none() {
            match link(&self.file, &self.to) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    // A link replaces nothing, so the file is renamed over the other one.
                    let beside = hidden(&self.to);
                    link(&self.file, &beside)?;
                    self.hidden = Some(beside);
                }
                done => return done,
            }
        }
        let hidden = self.hidden.as_ref().expect("a hidden name");
        fs::rename(hidden, &self.to)?;
        self.hidden = None;
        Ok(())
    }
}

impl Write for Unnamed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Unnamed {
    fn drop(&mut self) {
        if let Some(hidden) = &self.hidden {
            let _ = fs::remove_file(hidden);
        }
    }
}

/// Whether a name is one of those that files with the name `of` have until they are complete.
pub fn is_hidden_name(name: &str, of: &str) -> bool {
    name.strip_prefix('.').and_then(|rest| rest.strip_prefix(of)).is_some_and(|rest| {
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let parts = rest.strip_prefix('.').and_then(|rest| rest.split_once('-'));
        parts.is_some_and(|(process, at)| digits(process) && digits(at))
    })
}

/// A name beside `to` that no other process has chosen.
fn hidden(to: &Path) -> PathBuf {
    let name = to.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_nanos());
    to.with_file_name(format!(".{name}.{}-{now}", std::process::id()))
}

/// Files that only their owner may read.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// A file in a folder that has no name; none where that is not possible.
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

/// Gives a file without a name this one.
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
    fn a_file_is_whole_under_its_name_or_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let (count, to) =
            (|| fs::read_dir(folder.path()).unwrap().count(), folder.path().join("a"));
        let mut file = Unnamed::create(&to).unwrap();
        file.write_all(b"lost").unwrap();
        #[cfg(target_os = "linux")]
        assert_eq!(count(), 0, "it has no name");
        drop(file);
        assert_eq!(count(), 0);
        for text in ["one", "two"] {
            let mut file = Unnamed::create(&to).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            file.name().unwrap();
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
    fn a_hidden_file_is_removed_or_renamed() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("a");
        let make = || {
            let hidden = hidden(&to);
            let file = private().write(true).create_new(true).open(&hidden).unwrap();
            Unnamed { file, to: to.clone(), hidden: Some(hidden) }
        };
        let names = || -> Vec<String> {
            let name = |e: io::Result<fs::DirEntry>| e.unwrap().file_name().into_string().unwrap();
            fs::read_dir(folder.path()).unwrap().map(name).collect()
        };
        let file = make();
        assert!(names().iter().all(|name| is_hidden_name(name, "a")) && names().len() == 1);
        drop(file);
        assert!(names().is_empty());
        make().name().unwrap();
        assert_eq!(names(), ["a"]);
    }

    #[test]
    fn only_our_hidden_names_are_known() {
        assert!(is_hidden_name(".a.parquet.17-4711", "a.parquet"));
        for other in
            ["a.parquet.17-4711", ".a.parquet", ".a.parquet.x-1", ".a.parquet.1-", ".b.1-2"]
        {
            assert!(!is_hidden_name(other, "a.parquet"), "{other}");
        }
    }
}
