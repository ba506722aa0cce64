//! The few ways in which ledgers and checkpoints change files, and a switch that makes them fail.
//!
//! Every write of a ledger, a checkpoint or a mark goes through here, so that a test can stop the
//! program at any byte of any of them. In production the switch is off.
use std::{
    cell::Cell,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

/// What a test does to the disk.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// The process ends after so many bytes: nothing is written, cut or deleted afterwards.
    Crash(u64),
    /// The disk is full after so many bytes; cutting and deleting still work.
    Full(u64),
}

thread_local! {
    static FAULT: Cell<Option<Fault>> = const { Cell::new(None) };
}

/// Makes the disk of this thread fail, for tests; `None` repairs it.
#[doc(hidden)]
pub fn break_disk(fault: Option<Fault>) {
    FAULT.set(fault);
}

/// How many of `bytes` are still written.
fn room(bytes: usize) -> usize {
    let (left, rest): (u64, fn(u64) -> Fault) = match FAULT.get() {
        None => return bytes,
        Some(Fault::Crash(left)) => (left, Fault::Crash),
        Some(Fault::Full(left)) => (left, Fault::Full),
    };
    let written = left.min(bytes as u64);
    FAULT.set(Some(rest(left - written)));
    written as usize
}

/// One change that is not a write: it counts as one byte, and is done or not.
fn change() -> io::Result<()> {
    match FAULT.get() {
        Some(Fault::Crash(0)) => Err(failed()),
        Some(Fault::Crash(left)) => {
            FAULT.set(Some(Fault::Crash(left - 1)));
            Ok(())
        }
        _ => Ok(()),
    }
}

fn failed() -> io::Error {
    io::Error::new(io::ErrorKind::StorageFull, "no space left on device")
}

/// Writes at the end of a file and flushes it. A failure leaves the file as it was, unless the
/// process ends before it can be cut back.
pub fn append(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    let before = file.metadata()?.len();
    let written = put(file, bytes).and_then(|()| file.sync_all());
    if written.is_err() {
        // Whoever else may have written here does not lose it: the file is locked, and its length
        // is within what this call can have added.
        let now = file.metadata()?.len();
        if now > before && now <= before + bytes.len() as u64 {
            cut(file, before)?;
        }
    }
    written
}

fn put(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    let room = room(bytes.len());
    file.write_all(&bytes[..room])?;
    if room < bytes.len() { Err(failed()) } else { Ok(()) }
}

/// Cuts a file to a length and flushes it.
pub fn cut(file: &File, length: u64) -> io::Result<()> {
    change()?;
    file.set_len(length)?;
    file.sync_all()
}

/// Puts a whole file in the place of another, or leaves the other.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (partial, mut file) = create_beside(path)?;
    let written = put(&mut file, bytes)
        .and_then(|()| file.sync_all())
        .and_then(|()| change())
        .and_then(|()| fs::rename(&partial, path));
    if let Err(error) = written {
        let _ = remove(&partial);
        return Err(error);
    }
    flush_name(path)
}

/// A new file beside another. No file is taken that is there, and no link is followed.
fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut number = std::process::id();
    loop {
        let partial = path.with_file_name(format!(".{name}.{number}.new"));
        match private(OpenOptions::new().write(true).create_new(true), &partial) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                number = number.wrapping_add(1);
            }
            opened => return opened.map(|file| (partial, file)),
        }
    }
}

/// Deletes a file, if it is there.
pub fn remove(path: &Path) -> io::Result<()> {
    change()?;
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Refuses a device, a pipe or a folder, which can neither be replaced nor deleted as a file is.
pub fn is_a_file(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(there) if !there.is_file() => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "this is not a file; name another"))
        }
        _ => Ok(()),
    }
}

/// Opens a file that no other user may read if it is new.
pub fn private(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options.open(path)
}

/// Whether `path` still names the open file: it may have been deleted or replaced meanwhile.
pub fn names(path: &Path, file: &File) -> io::Result<bool> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let open = file.metadata()?;
        Ok(fs::metadata(path).is_ok_and(|m| (m.dev(), m.ino()) == (open.dev(), open.ino())))
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        Ok(path.exists())
    }
}

/// The name itself must be on the disk too, where folders can be flushed.
pub fn flush_name(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

/// `path` with something after its name: `j.head`.
pub fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
