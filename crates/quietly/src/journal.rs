//! A run that can be broken off and goes on later, without asking anything twice.
//!
//! # Why it costs no more
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
//! A run has a name of its own, drawn when its journal begins: whatever may be used by one run alone, such as the steps of a prepared
//! table, is marked with it. What the run is about (the table and its allocation, how it is read, what is charged for it) is in the first
//! line, too: a run that goes on is about the same.
//!
//! This counts on there being one journal, which only grows. A lock keeps out a second run, and a copy under another inode is refused. But
//! whoever puts an older state of it back in its place (a copy over it, a snapshot of the machine) and goes on has the later steps released
//! once more: that is another run, and to be paid for. A page that was being written when the machine stopped is cut off. Keep the
//! journal where the table is, until the run is over.
use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use quietly_noise::Key;
use serde::{Deserialize, Serialize};

use crate::{error::Error, plan::Plan};

/// Where the releases of a run are written down.
pub struct Journal {
    path: PathBuf,
    file: File,
    header: Header,
    /// Whether the first line is there.
    begun: bool,
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
pub(crate) enum Release {
    /// Numbers, and the standard deviation of their noise.
    Sum { purpose: String, values: Vec<f64>, noise: f64 },
    /// A choice.
    Choice { purpose: String, at: usize },
}

/// The first line: what run this is.
#[derive(PartialEq, Serialize, Deserialize)]
struct Header {
    quietly_journal: u32,
    made_by: String,
    plan: Plan,
    about: String,
    seed: Option<u64>,
    inode: String,
    run: String,
}

impl Journal {
    /// Opens the journal of a run of this plan, or makes one ready. `about` tells all else that makes a run what it is: the table and
    /// its allocation, how it is read, where it is charged. `seed` is that of the noise, if it has one.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if that cannot be done, another run has it open, or it is a copy or that of another run.
    pub fn open(path: &Path, plan: &Plan, about: &str, seed: Option<u64>) -> Result<Self, Error> {
        let told = |why: &dyn std::fmt::Display| told(path, why);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path).map_err(|e| told(&e))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(told(&BUSY)),
            Err(TryLockError::Error(error)) => return Err(told(&error)),
        }
        let inode = inode(&file.metadata().map_err(|e| told(&e))?);
        // A run that has just finished deletes its journal: what is locked may be no longer what is there.
        if fs::metadata(path).map_or(true, |there| self::inode(&there) != inode) {
            return Err(told(&BUSY));
        }
        let name = Key::from_os()?.stream("the name of a run").bits(0)?.word()?;
        let mut header = Header {
            quietly_journal: 2,
            made_by: concat!("quietly ", env!("CARGO_PKG_VERSION")).into(),
            plan: plan.clone(),
            about: about.into(),
            seed,
            inode,
            run: format!("run {name:016x}"),
        };
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(|e| told(&e))?;
        // A line without its end was not finished.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let mut lines = text[..whole].lines();
        match lines.next() {
            None if text.is_empty() || text.starts_with("{\"quietly_journal\"") => {}
            None => return Err(told(&"this is not the journal of a run; name another file")),
            Some(line) => {
                let there: Header = serde_json::from_str(line)
                    .map_err(|_| told(&"this is not the journal of a run of this version"))?;
                if there.inode != header.inode {
                    return Err(told(&COPY));
                }
                header.run.clone_from(&there.run);
                if there != header {
                    return Err(told(&OTHER));
                }
            }
        }
        let pages: Result<Vec<Vec<Release>>, Error> =
            lines.map(|line| serde_json::from_str(line).map_err(|_| told(&CHANGED))).collect();
        file.set_len(whole as u64).map_err(|e| told(&e))?;
        file.seek(SeekFrom::End(0)).map_err(|e| told(&e))?;
        Ok(Journal {
            path: path.into(),
            file,
            header,
            begun: whole > 0,
            before: pages?.into_iter(),
            reading: None,
            writing: None,
        })
    }

    /// Whether a run was begun: what it costs was charged then.
    pub fn is_begun(&self) -> bool {
        self.begun
    }

    /// Begins a run, if it is not begun: to be called after it was charged, and before anything is asked.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if that cannot be written.
    pub fn begin(&mut self) -> Result<(), Error> {
        if !self.begun {
            let line = serde_json::to_string(&self.header).expect("plain fields");
            self.line(line)?;
            flush_name(&self.path).map_err(|e| told(&self.path, &e))?;
            self.begun = true;
        }
        Ok(())
    }

    /// Whether it is that of a run of this plan.
    pub(crate) fn is_of(&self, plan: &Plan) -> bool {
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
    pub(crate) fn turn(&mut self) -> Result<bool, Error> {
        self.flush()?;
        self.reading = self.before.next().map(Vec::into_iter);
        let new = self.reading.is_none();
        self.writing = new.then(Vec::new);
        Ok(new)
    }

    /// The next release of the page that is read, if the question is an old one.
    pub(crate) fn told(&mut self, purpose: &str) -> Result<Option<Release>, Error> {
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
    pub(crate) fn was_changed(&self) -> Error {
        told(&self.path, &CHANGED)
    }

    pub(crate) fn write(&mut self, release: Release) {
        if let Some(page) = &mut self.writing {
            page.push(release);
        }
    }

    /// The last page is on the disk when this returns.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        match self.writing.take() {
            Some(page) => self.line(serde_json::to_string(&page).expect("plain fields")),
            None => Ok(()),
        }
    }

    fn line(&mut self, mut line: String) -> Result<(), Error> {
        line.push('\n');
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_all());
        written.map_err(|e| told(&self.path, &e))
    }

    /// Deletes the journal: to be called when the model is safe.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if it is still there.
    pub fn finish(self) -> Result<(), Error> {
        fs::remove_file(&self.path).map_err(|e| told(&self.path, &e))
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // What was never begun leaves nothing behind.
        if !self.begun {
            let _ = fs::remove_file(&self.path);
        }
    }
}

const BUSY: &str = "another run is at work here";
const COPY: &str = "this journal was copied from another place: two runs that go on from it would release a step twice; \
                    go on with the first one, or delete this one and begin anew";
const OTHER: &str = "this is the journal of another run: another plan, another table, another ledger, another seed or another version; \
                     name another file, or delete this one to begin anew, and count what it released";
const CHANGED: &str = "this journal was changed, or is not of this run; delete it to begin anew, and count what it released";

fn told(path: &Path, why: &dyn std::fmt::Display) -> Error {
    Error::File { path: path.display().to_string(), why: why.to_string() }
}

/// What tells a file from its copies, where there is such a thing.
fn inode(file: &fs::Metadata) -> String {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        format!("{}:{}", file.dev(), file.ino())
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        String::new()
    }
}

/// The name itself must be on the disk too, where folders can be flushed.
pub(crate) fn flush_name(path: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}
