//! The mark of a run, outside its checkpoint: its progress, and whether it is finished.
use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    disk,
    error::Error,
    ledger::{Ledger, digest},
};

/// How far a run came. It is replaced, whole and flushed, before a page is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Mark {
    pub(super) run: String,
    pub(super) pages: usize,
    /// The newest line of the checkpoint.
    pub(super) last: String,
}

impl Mark {
    /// The digest of the newest line.
    pub(super) fn head(&self) -> String {
        digest(&self.last)
    }
}

/// Where marks are: in `LEDGER.runs` if the run is charged to a ledger, else beside the checkpoint.
pub(super) enum Place {
    Ledger(PathBuf),
    Checkpoint(PathBuf),
}

/// What is known about the end of a run.
#[derive(PartialEq)]
pub(super) enum State {
    /// It was never charged.
    Unknown,
    /// It may resume.
    Begun,
    /// It has ended.
    Finished,
}

impl Place {
    fn mark(&self, run: &str) -> PathBuf {
        match self {
            Place::Ledger(ledger) => disk::beside(ledger, ".runs").join(run),
            Place::Checkpoint(checkpoint) => disk::beside(checkpoint, ".head"),
        }
    }

    /// The runs that ended here, where no ledger says it.
    fn done(checkpoint: &Path) -> PathBuf {
        disk::beside(checkpoint, ".done")
    }

    pub(super) fn state(&self, run: &str) -> Result<State, Error> {
        match self {
            Place::Ledger(ledger) => Ok(match Ledger::open(ledger, None)?.run(run) {
                None => State::Unknown,
                Some(spending) if spending.finished => State::Finished,
                Some(_) => State::Begun,
            }),
            Place::Checkpoint(checkpoint) => {
                let done = match fs::read_to_string(Self::done(checkpoint)) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
                    done => done.map_err(|e| super::file_error(&Self::done(checkpoint), &e))?,
                };
                let ended = done.lines().any(|name| name == run);
                Ok(if ended { State::Finished } else { State::Begun })
            }
        }
    }

    /// Keeps all other processes out of a run, whatever its checkpoint is called. Beside a checkpoint its own lock does that.
    pub(super) fn lock(&self, run: &str) -> Result<Option<File>, Error> {
        let Place::Ledger(_) = self else { return Ok(None) };
        let path = disk::beside(&self.mark(run), ".lock");
        let failed = |e: &dyn std::fmt::Display| super::file_error(&path, e);
        let folder = path.parent().expect("it is in LEDGER.runs");
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder).map_err(|e| failed(&e))?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = disk::private(&mut options, &path).map_err(|e| failed(&e))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Err(failed(&super::BUSY)),
            Err(TryLockError::Error(error)) => Err(failed(&error)),
        }
    }

    /// The mark of a run, if there is one that can be read.
    pub(super) fn read(&self, run: &str) -> Option<Mark> {
        let text = fs::read_to_string(self.mark(run)).ok()?;
        serde_json::from_str(&text).ok().filter(|mark: &Mark| mark.run == run)
    }

    /// Replaces the mark. `known` is what this process wrote last: another one means that another process is at work.
    pub(super) fn write(&self, known: Option<&Mark>, mark: &Mark) -> Result<(), Error> {
        let path = self.mark(&mark.run);
        if let Some(known) = known
            && self.read(&mark.run).as_ref() != Some(known)
        {
            return Err(super::file_error(&path, &super::BUSY));
        }
        let text = serde_json::to_string(mark).expect("plain fields");
        disk::replace(&path, text.as_bytes()).map_err(|e| super::file_error(&path, &e))
    }

    /// Records that a run is finished: from then on it never resumes.
    pub(super) fn finish(&self, run: &str) -> Result<(), Error> {
        match self {
            Place::Ledger(ledger) => Ledger::open(ledger, None)?.finish(run),
            Place::Checkpoint(checkpoint) => {
                let path = Self::done(checkpoint);
                let mut options = OpenOptions::new();
                let file = disk::private(options.create(true).append(true), &path);
                // A line that was not finished names no run; the next one begins anew.
                let line = format!("\n{run}\n");
                file.and_then(|mut file| disk::append(&mut file, line.as_bytes()))
                    .and_then(|()| disk::flush_name(&path))
                    .map_err(|e| super::file_error(&path, &e))
            }
        }
    }

    /// Deletes what a run that has ended needs no more.
    pub(super) fn clear(&self, run: &str) -> io::Result<()> {
        disk::remove(&self.mark(run))?;
        match self {
            Place::Ledger(_) => disk::remove(&disk::beside(&self.mark(run), ".lock")),
            Place::Checkpoint(_) => Ok(()),
        }
    }
}
