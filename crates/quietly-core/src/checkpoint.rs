//! A run that can be broken off and goes on later, without asking anything twice.
//!
//! # Proof: a checkpoint costs nothing
//!
//! A run is a chain of questions: each is a function of what was released before it. What is released in answer to one question is a *page*.
//! A page is on the disk, flushed, before the next question is put to anybody, and before a model is handed out. So
//!
//! * a question whose page is there was answered, and is never asked again: its page is read instead;
//! * a question whose page is not there may have been asked, but nothing that was released in answer to it has left the memory of a
//!   process that is gone: no later question was asked, and no model was made.
//!
//! Whatever has left is therefore one release for every question, whose noise was drawn once: the pages, and what follows from
//! them. By induction over questions their joint law is that of one unbroken run, for any table, whatever the noise of the answers that
//! were lost: that noise is independent of all noise that is drawn later, and nothing depends on it. No key is kept, so none can be stolen; where
//! a seed makes the noise repeatable, the model has the same bits as without a break.
//!
//! A run has a name of its own, drawn when its checkpoint begins: whatever may be used by one run alone, such as the steps of a prepared
//! table, is marked with it. What the run is about (the table and its allocation, how it is read, what is charged for it) is in the first
//! line, too: a run that goes on is about the same.
//!
//! # Proof: an older file does not release an entry twice
//!
//! A checkpoint is a file, and files are copied, linked and restored from backups. So that does not count: how far a run came is
//! in its *mark*, outside the checkpoint, in `LEDGER.runs/RUN` or, without a ledger, in `JOURNAL.head`. Each line has the digest
//! of the one before. The mark holds the newest page, and is replaced and flushed before that page is written to the checkpoint.
//! A checkpoint that goes on has all marked pages, or all but the newest, which is then taken from the mark. Any other is refused.
//!
//! A run that has ended never goes on: the ledger says so, or `JOURNAL.done`. The end is written when the model is safe.
//! Until then a run that goes on makes the same model from the same pages, and releases nothing.
//!
//! This does not see ledger, marks and checkpoint put back to an older state all together, as a snapshot of the machine does.
//! Without a ledger, these are `JOURNAL.head` and `JOURNAL.done`: with both put back or deleted, a run that has ended goes on.
//! Keep them where the table is: until the run is over they are as secret as the table.
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

/// Where the releases of a run are written down.
pub struct Checkpoint {
    path: PathBuf,
    file: File,
    header: Header,
    place: Place,
    /// Whether the file was made here, and is of no use unless the run begins.
    new: bool,
    /// How far the run came; `None` before it is begun.
    mark: Option<Mark>,
    /// Keeps other processes out of the run, whatever they call its checkpoint.
    lock: Option<File>,
    /// What was released before, question by question.
    before: std::vec::IntoIter<Vec<Release>>,
    /// What is left of the page that is read, if the question is an old one.
    reading: Option<std::vec::IntoIter<Release>>,
    /// What was released in answer to the last question, if it is a new one.
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

/// What tells a plan from others, and the δ that it was made for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanDigest {
    /// The hash of all that the plan says.
    pub sha256: String,
    /// The δ that was asked for.
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
    /// Where the checkpoint is, if no ledger knows the run: a copy elsewhere is refused.
    place: Option<PathBuf>,
    run: String,
}

/// A line after the first.
#[derive(Serialize, Deserialize)]
struct Page {
    prev: String,
    page: Vec<Release>,
}

impl Checkpoint {
    /// Opens the checkpoint of a run of this plan, or makes one ready. `about` tells all else that makes a run what it is: the table and
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
        let told = |why: &dyn std::fmt::Display| told(path, why);
        disk::is_a_file(path).map_err(|e| told(&e))?;
        let there = path.exists();
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = disk::private(&mut options, path).map_err(|e| told(&e))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(told(&BUSY)),
            Err(TryLockError::Error(error)) => return Err(told(&error)),
        }
        // A run that has just finished deletes its checkpoint: what is locked may be no longer what is there.
        if !disk::names(path, &file).map_err(|e| told(&e))? {
            return Err(told(&BUSY));
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(|_| told(&NONE))?;
        // A line without its end was not finished.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let lines: Vec<&str> = text[..whole].lines().collect();
        let here = fs::canonicalize(path).map_err(|e| told(&e))?;
        let charged = match ledger {
            Some(ledger) => Some(fs::canonicalize(ledger.path()).map_err(|e| told(&e))?),
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
            None => return Err(told(&NONE)),
            Some((first, pages)) => {
                let there: Header = serde_json::from_str(first)
                    .map_err(|_| told(&"this is not a checkpoint of this version"))?;
                checkpoint.header.run.clone_from(&there.run);
                checkpoint.resume(&there, first, pages)?;
            }
        }
        if !lines.is_empty() || !text.is_empty() {
            let kept = if lines.is_empty() { 0 } else { whole as u64 };
            disk::cut(&checkpoint.file, kept).map_err(|e| told(&e))?;
            checkpoint.file.seek(SeekFrom::End(0)).map_err(|e| told(&e))?;
            checkpoint.restore(lines.len())?;
        }
        Ok(checkpoint)
    }

    /// Checks what is there against what is known outside, and reads the pages.
    fn resume(&mut self, there: &Header, first: &str, pages: &[&str]) -> Result<(), Error> {
        let mut last = first.to_string();
        let told = |why: &dyn std::fmt::Display| told(&self.path, why);
        if there.place != self.header.place && there.ledger == self.header.ledger {
            return Err(told(&COPY));
        }
        if *there != self.header {
            return Err(told(&OTHER));
        }
        let may_go_on = || match self.place.state(&there.run)? {
            State::Finished => Err(told(&DONE)),
            State::Unknown => Err(told(&UNCHARGED)),
            State::Begun => Ok(()),
        };
        may_go_on()?;
        let lock = self.place.lock(&there.run)?;
        // Before it was locked another process may have ended it.
        may_go_on()?;
        let mark = self.place.read(&there.run).ok_or_else(|| told(&UNMARKED))?;
        let mut read = Vec::new();
        let marked = (pages.len() + 1 == mark.pages).then_some(mark.last.as_str());
        for line in pages.iter().copied().chain(marked) {
            let page: Page = serde_json::from_str(line).map_err(|_| told(&CHANGED))?;
            if page.prev != digest(&last) {
                return Err(told(&CHANGED));
            }
            read.push(page.page);
            last = line.to_string();
        }
        if read.len() != mark.pages || digest(&last) != mark.head() {
            return Err(if read.len() < mark.pages { told(&OLD) } else { told(&CHANGED) });
        }
        (self.mark, self.lock) = (Some(mark), lock);
        self.before = read.into_iter();
        Ok(())
    }

    /// Writes the page that the mark has and the checkpoint lacks.
    fn restore(&mut self, lines: usize) -> Result<(), Error> {
        match &self.mark {
            Some(mark) if mark.pages == lines => {
                let line = mark.last.clone() + "\n";
                disk::append(&mut self.file, line.as_bytes()).map_err(|e| told(&self.path, &e))
            }
            _ => Ok(()),
        }
    }

    /// The δ that was asked for when the plan of a checkpoint was made: a run that goes on has the same.
    pub fn delta(path: &Path) -> Option<f64> {
        let text = fs::read_to_string(path).ok()?;
        let header: Header = serde_json::from_str(text.lines().next()?).ok()?;
        Some(header.plan.delta)
    }

    /// Whether a run was begun: what it costs was charged then.
    pub fn is_begun(&self) -> bool {
        self.mark.is_some()
    }

    /// Begins a run, if it is not begun: to be called after it was charged, and before anything is asked.
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
            return Err(told(&self.path, &UNCHARGED));
        }
        let lock = self.place.lock(&run)?;
        let last = serde_json::to_string(&self.header).expect("plain fields");
        let mark = Mark { run, pages: 0, last };
        self.place.write(None, &mark)?;
        self.line(&mark.last)?;
        disk::flush_name(&self.path).map_err(|e| told(&self.path, &e))?;
        (self.mark, self.lock) = (Some(mark), lock);
        Ok(())
    }

    /// Whether it is that of a run of this plan.
    pub fn is_of(&self, plan: &PlanDigest) -> bool {
        self.header.plan == *plan
    }

    /// What tells this run from others, however often it is broken off.
    pub fn run(&self) -> &str {
        &self.header.run
    }

    /// How many questions were answered before.
    pub fn answered(&self) -> usize {
        self.before.len()
    }

    /// The next question is about to be put: whether it is a new one.
    ///
    /// What was released in answer to the last one is on the disk when this returns.
    pub fn turn(&mut self) -> Result<bool, Error> {
        self.flush()?;
        self.reading = self.before.next().map(Vec::into_iter);
        let new = self.reading.is_none();
        self.writing = new.then(Vec::new);
        Ok(new)
    }

    /// The next release of the page that is read, if the question is an old one.
    pub fn told(&mut self, purpose: &str) -> Result<Option<Release>, Error> {
        let Some(page) = &mut self.reading else { return Ok(None) };
        let fits = |release: &Release| match release {
            Release::Sum { purpose: p, .. } | Release::Choice { purpose: p, .. } => p == purpose,
        };
        match page.next().filter(fits) {
            Some(release) => Ok(Some(release)),
            None => Err(self.was_changed()),
        }
    }

    /// What is in it does not fit what is asked.
    pub fn was_changed(&self) -> Error {
        told(&self.path, &CHANGED)
    }

    pub fn write(&mut self, release: Release) {
        if let Some(page) = &mut self.writing {
            page.push(release);
        }
    }

    /// The last page is on the disk when this returns: in the mark first, then in the checkpoint.
    pub fn flush(&mut self) -> Result<(), Error> {
        let Some(page) = self.writing.take() else { return Ok(()) };
        let known = self.mark.clone().ok_or_else(|| told(&self.path, &UNCHARGED))?;
        let page = Page { prev: known.head(), page };
        let mark = Mark {
            run: known.run.clone(),
            pages: known.pages + 1,
            last: serde_json::to_string(&page).expect("plain fields"),
        };
        self.place.write(Some(&known), &mark)?;
        self.line(&mark.last)?;
        self.mark = Some(mark);
        Ok(())
    }

    fn line(&mut self, line: &str) -> Result<(), Error> {
        let line = format!("{line}\n");
        disk::append(&mut self.file, line.as_bytes()).map_err(|e| told(&self.path, &e))
    }

    /// Ends the run, and deletes its checkpoint: to be called when the model is safe. It never goes on afterwards.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if the end cannot be written, or the checkpoint is still there.
    pub fn finish(self) -> Result<(), Error> {
        self.place.finish(&self.header.run)?;
        let removed = disk::remove(&self.path).and_then(|()| self.place.clear(&self.header.run));
        removed.map_err(|e| told(&self.path, &e))
    }
}

impl Drop for Checkpoint {
    fn drop(&mut self) {
        // What was never begun leaves nothing behind.
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

fn told(path: &Path, why: &dyn std::fmt::Display) -> Error {
    Error::File { path: path.display().to_string(), why: why.to_string() }
}
