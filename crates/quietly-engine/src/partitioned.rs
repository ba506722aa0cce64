//! Tables that were grouped by secret step beforehand, so that a run reads them once.
//!
//! # Proof: steps from a key are a random allocation
//!
//! Random allocation is proven for records that are each in one of T steps, uniformly and on their own, unknown to anyone who sees
//! the model. Here the step of the i-th record of the table is a function of (key, i): ChaCha20 under a key of its own makes the words, from which
//! steps are drawn with exact odds ([`BatchDraw`]). The files of the table are named in order, and with their sizes, when it is prepared:
//! a record's number does not change meanwhile. A worker that is asked twice writes the same bytes under the same name, so
//! that no record is lost or doubled, whichever process fails. To an adversary that cannot tell ChaCha20 from random words the steps are independent and
//! uniform; that the promise is then a computational one, the certificate says.
//!
//! The key is drawn from the operating system, given to workers, never written down and forgotten when all parts are written. The
//! prepared table itself tells the steps: it is as secret as the table and more.
//!
//! # Proof: one run for one partition
//!
//! Two runs over one allocation are not two independent draws: their prices do not add up as the theorem wants. The first run leaves
//! its mark before it reads a row, and no other run is let in; once its model is safe, neither is that run. A copy of the folder that was
//! made before has no mark: a ledger refuses the second run, as it knows the allocation; without one the owner has to see to it. (An allocation from a seed promises nothing, and may be used again.)
use std::{
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use quietly_core::{
    allocation::Allocation,
    batch_sampling::BatchDraw,
    disk::{self, flush_name},
    mechanism::Sampler,
    release,
};
use quietly_data::{AtomicFile, Source, TablePart};
use quietly_noise::Key;
use serde::{Deserialize, Serialize};

use crate::error::Error;

mod folder;

/// The file that tells what a folder holds.
const MANIFEST: &str = "prepared.json";
/// The file that tells which run has used it.
const USED: &str = "used";
/// How many steps one pass may have.
const STEPS: std::ops::RangeInclusive<u64> = 10..=1000;
/// About how many bytes of a table are grouped at a time.
const GROUPED: u64 = 256 << 20;

/// A table that was prepared.
#[derive(Clone, Serialize, Deserialize)]
pub struct PartitionedTable {
    quietly_prepared: u32,
    /// How records came to their steps.
    pub allocation: Allocation,
    /// The files that it was made of.
    pub from: Vec<PathBuf>,
    /// For every file, how many records each step has: **private**.
    parts: Vec<Vec<u64>>,
    /// How many files of an interrupted run were removed from the folder.
    #[serde(skip)]
    pub removed: usize,
    /// Held until this is finished, so that no other run writes there.
    #[serde(skip)]
    _lock: Option<Arc<File>>,
}

/// What a worker needs to prepare a part. **It holds the secret of all steps**, which is never printed.
#[derive(Clone, Serialize, Deserialize)]
pub struct Partitioning {
    draw: BatchDraw,
    folder: PathBuf,
}

impl fmt::Debug for Partitioning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Partitioning").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// A part that is written, in a file without a name.
#[must_use = "without a name the file is lost"]
pub struct Grouped {
    sizes: Vec<u64>,
    path: PathBuf,
    /// None if it has its name.
    file: Option<AtomicFile>,
}

impl Grouped {
    /// Gives the file its name now, which closes it.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if that cannot be done.
    pub fn closed(mut self) -> Result<Self, Error> {
        let named = self.file.take().map_or(Ok(()), AtomicFile::commit);
        named.map_err(|e| told(&self.path, &e)).map(|()| self)
    }

    /// Gives the file its name. Returns how many records each step has there: **private**.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if that cannot be done.
    pub fn name(self) -> Result<Vec<u64>, Error> {
        Ok(self.closed()?.sizes)
    }
}

impl Partitioning {
    /// Writes one part, by its number, to a file without a name. If the process ends, so does the file.
    ///
    /// # Errors
    ///
    /// [`Error::Data`] if the part cannot be read, [`Error::File`] if its copy cannot be written.
    ///
    /// # Panics
    ///
    /// If this was not made by [`PartitionedTable::begin`].
    pub fn group(&self, number: usize, part: &TablePart) -> Result<Grouped, Error> {
        let groups = self.draw.groups().expect("each row is in one step") as usize;
        let mut steps = self.draw.assignments(part.first_row());
        let mut next = || steps.next().expect("there is always one");
        let path = self.folder.join(file(number));
        let written = Source::regroup(part, &path, groups, &mut next);
        let (sizes, file) = written.map_err(|error| match error {
            quietly_data::Error::Unreadable { path: at, problem } if at == path => {
                told(&path, &format!("this cannot be written: {problem}"))
            }
            error => error.into(),
        })?;
        Ok(Grouped { sizes, path, file: Some(file) })
    }

    /// The folder that parts are written to.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

fn file(number: usize) -> String {
    format!("part-{number:06}.parquet")
}

impl PartitionedTable {
    /// Begins to prepare a table in a new folder: what every worker needs, and the parts in order.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] for a number of steps that cannot be, or for a folder that others may enter; [`Error::Data`] if the table
    /// is not Parquet; [`Error::File`] if the folder is there and not empty. Files that an interrupted run has left there are removed.
    pub fn begin(
        source: &Source,
        steps: usize,
        folder: &Path,
        key: &Key,
    ) -> Result<(Self, Partitioning, Vec<TablePart>), Error> {
        Error::ensure(
            STEPS.contains(&(steps as u64)),
            "steps",
            "from 10 to 1000 for one pass",
            steps,
        )?;
        let parts = joined(source.parts()?.into_iter().filter(|part| part.rows() > 0).collect());
        let folder::Opened { folder, lock, removed } = folder::open(folder, source.files())?;
        let draw =
            Sampler::RandomAllocation { steps: steps as u64 }.draw(key.stream(release::STEPS));
        let id = key.stream("the name of an allocation").bits(0)?.word()?;
        let allocation = Allocation {
            id: format!("{id:016x}"),
            steps: steps as u64,
            randomness: key.source().to_string(),
            test_only: !key.source().is_private(),
        };
        let preparing = Partitioning { draw, folder };
        let from = source.files().map(Into::into).collect();
        let (parts_of, _lock) = (Vec::new(), lock.map(Arc::new));
        let prepared = PartitionedTable {
            quietly_prepared: 2,
            allocation,
            from,
            parts: parts_of,
            removed,
            _lock,
        };
        Ok((prepared, preparing, parts))
    }

    /// Ends it: `sizes` are what [`Grouped::name`] said of every part, in order.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if that cannot be written.
    pub fn finish(mut self, folder: &Path, sizes: Vec<Vec<u64>>) -> Result<Self, Error> {
        self.parts = sizes;
        let path = folder.join(MANIFEST);
        let text = serde_json::to_string(&self).expect("plain fields");
        let write = || -> io::Result<()> {
            let mut file = AtomicFile::create(&path)?;
            file.write_all(text.as_bytes())?;
            file.commit()?;
            flush_name(&path)
        };
        write().map_err(|e| told(&path, &e))?;
        self._lock = None;
        Ok(self)
    }

    /// The table that was prepared in a folder; none if it is no such folder.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if it was not finished, or is of another version.
    pub fn read(folder: &Path) -> Result<Option<Self>, Error> {
        let path = folder.join(MANIFEST);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e)
                if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
            {
                let begun = folder.is_dir() && folder.join(file(0)).exists();
                let why = "this table was not partitioned completely; delete the folder and partition the table again";
                return if begun { Err(told(folder, &why)) } else { Ok(None) };
            }
            Err(error) => return Err(told(&path, &error)),
        };
        let other = || {
            told(
                &path,
                &"this is not a partitioned table that this version can read; partition the table again",
            )
        };
        let prepared: PartitionedTable = serde_json::from_str(&text).map_err(|_| other())?;
        let steps = prepared.allocation.steps;
        let fits = |part: &Vec<u64>| part.len() as u64 == steps;
        if prepared.quietly_prepared != 2
            || !STEPS.contains(&steps)
            || !prepared.parts.iter().all(fits)
        {
            return Err(other());
        }
        Ok(Some(prepared))
    }

    /// The parts of every step.
    ///
    /// # Errors
    ///
    /// [`Error::Data`] if they are not there, or have other sizes.
    pub fn steps(&self, folder: &Path) -> Result<Vec<Vec<TablePart>>, Error> {
        let mut steps = vec![Vec::new(); self.allocation.steps as usize];
        let folder = fs::canonicalize(folder).map_err(|e| told(folder, &e))?;
        for (number, sizes) in self.parts.iter().enumerate() {
            let path = folder.join(file(number));
            // A step without records in a part has no row group there.
            let there = sizes.iter().enumerate().filter(|(_, records)| **records > 0);
            let groups = Source::open([&path], &Default::default())?.parts()?;
            let there: Vec<(usize, u64)> = there.map(|(step, records)| (step, *records)).collect();
            let fits = groups.len() == there.len()
                && groups.iter().zip(&there).all(|(group, (_, records))| group.rows() == *records);
            if !fits {
                return Err(told(
                    &path,
                    &"this file changed after the table was partitioned; partition the table again",
                ));
            }
            groups.into_iter().zip(there).for_each(|(group, (step, _))| steps[step].push(group));
        }
        Ok(steps)
    }

    /// Marks the table as used by a run, before its first row is read. A resumed run has the name that it had before.
    ///
    /// # Errors
    ///
    /// As [`check_unused`](Self::check_unused).
    pub fn claim(&self, folder: &Path, run: &str) -> Result<(), Error> {
        if self.allocation.test_only {
            return Ok(());
        }
        let path = folder.join(USED);
        match write_new(&path, run.as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // A run that has ended has left more than its name.
                let same = fs::read_to_string(&path).is_ok_and(|there| there == run);
                if same { Ok(()) } else { self.check_unused(folder) }
            }
            done => done.map_err(|e| told(&path, &e)),
        }
    }

    /// Marks the run that used the table as ended: to be called when its model is safe. It does not come back.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if that cannot be written.
    pub fn close(&self, folder: &Path, run: &str) -> Result<(), Error> {
        if self.allocation.test_only {
            return Ok(());
        }
        let path = folder.join(USED);
        disk::replace(&path, format!("{run} finished\n").as_bytes()).map_err(|e| told(&path, &e))
    }

    /// Whether no run has used the table.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if one has; [`Error::File`] if that cannot be told.
    pub fn check_unused(&self, folder: &Path) -> Result<(), Error> {
        let there = folder.join(USED).try_exists().map_err(|e| told(folder, &e))?;
        let want = "partitioned again, as the guarantee covers one run per partition";
        Error::ensure(
            !there || self.allocation.test_only,
            "table",
            want,
            "already used by another run",
        )
    }
}

/// Consecutive row groups of a file, joined to parts of some size.
fn joined(groups: Vec<TablePart>) -> Vec<TablePart> {
    let mut parts: Vec<TablePart> = Vec::new();
    for group in groups {
        match parts.last_mut() {
            Some(last) if last.path == group.path && last.bytes() + group.bytes() <= GROUPED => {
                last.join(group);
            }
            _ => parts.push(group),
        }
    }
    parts
}

/// Writes a file that is not there yet, whole and flushed.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    flush_name(path)
}

fn told(path: &Path, why: &dyn fmt::Display) -> Error {
    Error::File { path: path.display().to_string(), why: why.to_string() }
}
