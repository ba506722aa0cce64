//! Checkpoints: an interrupted run resumes without releasing anything twice.
//!
//! # Proof: a checkpoint costs nothing
//!
//! A run is a chain of queries: each is a function of what was released before it. What is released for one query is an
//! *entry*. An entry is on disk, flushed, before the next query is sent to a backend, and before a model is returned. So
//!
//! * a query whose entry is on disk was answered, and is never run again: its entry is read instead;
//! * a query whose entry is not on disk may have run, but nothing that was released for it has left the memory of a
//!   process that no longer exists: no later query ran, and no model was made.
//!
//! The output is therefore one release for every query, whose noise was drawn once: the entries, and what follows from
//! them. By induction over queries their joint law is that of one uninterrupted run, for any table, whatever the noise
//! of lost entries: that noise is independent of all noise that is drawn later, and nothing depends on it. No key is
//! kept, so none can be stolen; where a seed makes the noise repeatable, the model has the same bits as without an
//! interruption.
//!
//! A run has a random name, drawn when its checkpoint begins: what one run alone may use, such as the allocation of a
//! partitioned table, is marked with it. The first line also says what the run is about (the table and its allocation,
//! how it is read, its budget): a resumed run must be about the same.
//!
//! # Proof: an older file does not release an entry twice
//!
//! A checkpoint is a file, and files are copied, linked and restored from backups. So the progress of a run is recorded
//! in its *mark*, outside the checkpoint: in `LEDGER.runs/RUN` or, without a ledger, in `CHECKPOINT.head`. Each line has
//! the digest of the one before. The mark holds the newest entry, and is replaced and flushed before that entry is
//! written to the checkpoint. A checkpoint that resumes has all marked entries, or all but the newest, which is then
//! taken from the mark. Any other is refused.
//!
//! A finished run never resumes: the ledger says so, or `CHECKPOINT.done`. The end is written when the model is saved.
//! Until then a resumed run makes the same model from the same entries, and releases nothing.
//!
//! *Not covered.* Ledger, marks and checkpoint restored to an older state all together, as a snapshot of the machine
//! does. Without a ledger, these are `CHECKPOINT.head` and `CHECKPOINT.done`: with both restored or deleted, a finished
//! run resumes. Keep them where the table is: until the run is over they are as confidential as the table.
use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use self::mark::{Mark, Place, State};
use crate::{
    disk,
    error::Error,
    ledger::{self, Ledger, digest},
};

mod mark;

/// The file that records the releases of a run.
pub struct Checkpoint {
    path: PathBuf,
    file: File,
    header: Header,
    place: Place,
    /// Whether the file was created by this process. It is removed unless the run begins.
    new: bool,
    /// The progress of the run; `None` before it begins.
    mark: Option<Mark>,
    /// Locks the run against other processes, under any name of its checkpoint.
    lock: Option<File>,
    /// What was released before, query by query.
    before: std::vec::IntoIter<Vec<Release>>,
    /// The rest of the entry that is replayed, if the query ran before.
    reading: Option<std::vec::IntoIter<Release>>,
    /// What was released for the current query, if it is new.
    writing: Option<Vec<Release>>,
}

/// Something that was released.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Release {
    /// Numbers, and the standard deviation of their noise.
    Sum { purpose: String, values: Vec<f64>, noise: f64 },
    /// A choice.
    Choice { purpose: String, at: usize },
}

/// Identifies a plan, with the δ of its budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanDigest {
    /// The hash of the plan as JSON.
    pub sha256: String,
    /// The δ of the budget.
    pub delta: f64,
}

impl PlanDigest {
    /// Of a plan as it is written to a file.
    pub fn new(plan: &impl Serialize, delta: f64) -> Self {
        let text = serde_json::to_string(plan).expect("plain fields");
        PlanDigest { sha256: digest(&text), delta }
    }
}

/// The first line: what run this is.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct Header {
    quietly_checkpoint: u32,
    made_by: String,
    plan: PlanDigest,
    about: String,
    seed: Option<u64>,
    /// The ledger that it was charged to.
    ledger: Option<PathBuf>,
    /// The path of the checkpoint, if the run is in no ledger: a copy at another path is refused.
    place: Option<PathBuf>,
    run: String,
}

/// A line after the first.
#[derive(Serialize, Deserialize)]
struct Entry {
    prev: String,
    /// Its name in files.
    #[serde(rename = "page")]
    releases: Vec<Release>,
}

impl Checkpoint {
    /// Opens the checkpoint of a run of this plan, or prepares one. `about` identifies the run: the table and
    /// its allocation, how it is read. `seed` is that of the noise, if it has one; `ledger` is what the run is charged to.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if that cannot be done, another run has it open, it is that of another run or of one that has ended, or it
    /// is older than what the run has released.
    pub fn open(
        path: &Path,
        plan: &PlanDigest,
        about: &str,
        seed: Option<u64>,
        ledger: Option<&Ledger>,
    ) -> Result<Self, Error> {
        let failed = |why: &dyn std::fmt::Display| file_error(path, why);
        disk::is_a_file(path).map_err(|e| failed(&e))?;
        let there = path.exists();
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = disk::private(&mut options, path).map_err(|e| failed(&e))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(failed(&BUSY)),
            Err(TryLockError::Error(error)) => return Err(failed(&error)),
        }
        // A run that has just finished deletes its checkpoint: what is locked may be no longer what is there.
        if !disk::names(path, &file).map_err(|e| failed(&e))? {
            return Err(failed(&BUSY));
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(|_| failed(&NONE))?;
        // A line without its end was not finished.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let lines: Vec<&str> = text[..whole].lines().collect();
        let here = fs::canonicalize(path).map_err(|e| failed(&e))?;
        let charged = match ledger {
            Some(ledger) => Some(fs::canonicalize(ledger.path()).map_err(|e| failed(&e))?),
            None => None,
        };
        let header = Header {
            quietly_checkpoint: 5,
            made_by: concat!("quietly ", env!("CARGO_PKG_VERSION")).into(),
            plan: plan.clone(),
            about: about.into(),
            seed,
            place: charged.is_none().then(|| here.clone()),
            ledger: charged.clone(),
            run: ledger::name()?,
        };
        let place = charged.map_or(Place::Checkpoint(here), Place::Ledger);
        let mut checkpoint = Checkpoint {
            path: path.into(),
            file,
            header,
            place,
            new: !there,
            mark: None,
            lock: None,
            before: Vec::new().into_iter(),
            reading: None,
            writing: None,
        };
        match lines.split_first() {
            None if text.is_empty() || text.starts_with("{\"quietly_checkpoint\"") => {}
            None => return Err(failed(&NONE)),
            Some((first, entries)) => {
                let there: Header = serde_json::from_str(first)
                    .map_err(|_| failed(&"this is not a checkpoint of this version"))?;
                checkpoint.header.run.clone_from(&there.run);
                checkpoint.resume(&there, first, entries)?;
            }
        }
        if !lines.is_empty() || !text.is_empty() {
            let kept = if lines.is_empty() { 0 } else { whole as u64 };
            disk::cut(&checkpoint.file, kept).map_err(|e| failed(&e))?;
            checkpoint.file.seek(SeekFrom::End(0)).map_err(|e| failed(&e))?;
            checkpoint.restore(lines.len())?;
        }
        Ok(checkpoint)
    }

    /// Checks what is there against what is known outside, and reads the entries.
    fn resume(&mut self, there: &Header, first: &str, entries: &[&str]) -> Result<(), Error> {
        let mut last = first.to_string();
        let failed = |why: &dyn std::fmt::Display| file_error(&self.path, why);
        if there.place != self.header.place && there.ledger == self.header.ledger {
            return Err(failed(&COPY));
        }
        if *there != self.header {
            return Err(failed(&OTHER));
        }
        let may_go_on = || match self.place.state(&there.run)? {
            State::Finished => Err(failed(&DONE)),
            State::Unknown => Err(failed(&UNCHARGED)),
            State::Begun => Ok(()),
        };
        may_go_on()?;
        let lock = self.place.lock(&there.run)?;
        // Before it was locked another process may have ended it.
        may_go_on()?;
        let mark = self.place.read(&there.run).ok_or_else(|| failed(&UNMARKED))?;
        let mut read = Vec::new();
        let marked = (entries.len() + 1 == mark.pages).then_some(mark.last.as_str());
        for line in entries.iter().copied().chain(marked) {
            let entry: Entry = serde_json::from_str(line).map_err(|_| failed(&CHANGED))?;
            if entry.prev != digest(&last) {
                return Err(failed(&CHANGED));
            }
            read.push(entry.releases);
            last = line.to_string();
        }
        if read.len() != mark.pages || digest(&last) != mark.head() {
            return Err(if read.len() < mark.pages { failed(&OLD) } else { failed(&CHANGED) });
        }
        (self.mark, self.lock) = (Some(mark), lock);
        self.before = read.into_iter();
        Ok(())
    }

    /// Writes the entry that the mark has and the checkpoint lacks.
    fn restore(&mut self, lines: usize) -> Result<(), Error> {
        match &self.mark {
            Some(mark) if mark.pages == lines => {
                let line = mark.last.clone() + "\n";
                disk::append(&mut self.file, line.as_bytes())
                    .map_err(|e| file_error(&self.path, &e))
            }
            _ => Ok(()),
        }
    }

    /// The δ of the budget when the plan of a checkpoint was made: a resumed run has the same.
    pub fn delta(path: &Path) -> Option<f64> {
        let text = fs::read_to_string(path).ok()?;
        let header: Header = serde_json::from_str(text.lines().next()?).ok()?;
        Some(header.plan.delta)
    }

    /// Whether a run was begun: what it costs was charged then.
    pub fn is_begun(&self) -> bool {
        self.mark.is_some()
    }

    /// Begins a run, if it is not begun: to be called after it was charged, and before any query runs.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if that cannot be written, or the run was not charged to the checkpoint's ledger.
    pub fn begin(&mut self) -> Result<(), Error> {
        if self.mark.is_some() {
            return Ok(());
        }
        let run = self.header.run.clone();
        if self.place.state(&run)? != State::Begun {
            return Err(file_error(&self.path, &UNCHARGED));
        }
        let lock = self.place.lock(&run)?;
        let last = serde_json::to_string(&self.header).expect("plain fields");
        let mark = Mark { run, pages: 0, last };
        self.place.write(None, &mark)?;
        self.line(&mark.last)?;
        disk::flush_name(&self.path).map_err(|e| file_error(&self.path, &e))?;
        (self.mark, self.lock) = (Some(mark), lock);
        Ok(())
    }

    /// Whether it is that of a run of this plan.
    pub fn is_of(&self, plan: &PlanDigest) -> bool {
        self.header.plan == *plan
    }

    /// The name of the run, the same after every interruption.
    pub fn run(&self) -> &str {
        &self.header.run
    }

    /// How many queries were answered before.
    pub fn answered(&self) -> usize {
        self.before.len()
    }

    /// Called before the next query runs: whether it is new.
    ///
    /// What was released for the last query is on disk when this returns.
    pub fn turn(&mut self) -> Result<bool, Error> {
        self.flush()?;
        self.reading = self.before.next().map(Vec::into_iter);
        let new = self.reading.is_none();
        self.writing = new.then(Vec::new);
        Ok(new)
    }

    /// The next release of the entry that is replayed, if the query ran before.
    pub fn replayed(&mut self, purpose: &str) -> Result<Option<Release>, Error> {
        let Some(entry) = &mut self.reading else { return Ok(None) };
        let fits = |release: &Release| match release {
            Release::Sum { purpose: p, .. } | Release::Choice { purpose: p, .. } => p == purpose,
        };
        match entry.next().filter(fits) {
            Some(release) => Ok(Some(release)),
            None => Err(self.was_changed()),
        }
    }

    /// Its content does not fit the query.
    pub fn was_changed(&self) -> Error {
        file_error(&self.path, &CHANGED)
    }

    pub fn write(&mut self, release: Release) {
        if let Some(entry) = &mut self.writing {
            entry.push(release);
        }
    }

    /// The last entry is on the disk when this returns: in the mark first, then in the checkpoint.
    pub fn flush(&mut self) -> Result<(), Error> {
        let Some(releases) = self.writing.take() else { return Ok(()) };
        let known = self.mark.clone().ok_or_else(|| file_error(&self.path, &UNCHARGED))?;
        let entry = Entry { prev: known.head(), releases };
        let mark = Mark {
            run: known.run.clone(),
            pages: known.pages + 1,
            last: serde_json::to_string(&entry).expect("plain fields"),
        };
        self.place.write(Some(&known), &mark)?;
        self.line(&mark.last)?;
        self.mark = Some(mark);
        Ok(())
    }

    fn line(&mut self, line: &str) -> Result<(), Error> {
        let line = format!("{line}\n");
        disk::append(&mut self.file, line.as_bytes()).map_err(|e| file_error(&self.path, &e))
    }

    /// Ends the run, and deletes its checkpoint: to be called when the model is saved. It never resumes afterwards.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if the end cannot be written, or the checkpoint is still there.
    pub fn finish(self) -> Result<(), Error> {
        self.place.finish(&self.header.run)?;
        let removed = disk::remove(&self.path).and_then(|()| self.place.clear(&self.header.run));
        removed.map_err(|e| file_error(&self.path, &e))
    }
}

impl Drop for Checkpoint {
    fn drop(&mut self) {
        // A run that never began leaves no file.
        if self.new && self.mark.is_none() {
            let _ = disk::remove(&self.path);
        }
    }
}

const BUSY: &str = "another run is using this checkpoint";
const NONE: &str = "this is not a checkpoint; name another file";
const COPY: &str = "this checkpoint was copied or moved: two runs that resume from it would release a step twice; \
                    resume the original, or delete this copy and start a new run";
const OTHER: &str = "this checkpoint belongs to another run: another plan, another table, another ledger, another seed or another version; \
                     name another file, or delete this one to start a new run (what it released stays spent)";
const CHANGED: &str = "this checkpoint was changed, or belongs to another run; delete it to start a new run (what it released stays spent)";
const OLD: &str = "this checkpoint is older than what its run released: resuming would release steps twice; \
                   restore the newest one, or delete it to start a new run at its full cost";
const DONE: &str = "the run of this checkpoint is complete; delete the checkpoint to start a new run at its full cost";
const UNCHARGED: &str = "the run of this checkpoint is not in its ledger; delete the checkpoint to start a new run at its full cost";
const UNMARKED: &str = "the record of this checkpoint's progress is missing: the checkpoint was copied, or the file beside it \
                        was deleted; delete the checkpoint to start a new run at its full cost";

fn file_error(path: &Path, why: &dyn std::fmt::Display) -> Error {
    Error::File { path: path.display().to_string(), why: why.to_string() }
}
