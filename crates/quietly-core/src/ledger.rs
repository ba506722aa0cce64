//! The ledger: what has been spent on one table, in a file. [`Ledger::charge`] refuses a spend beyond the limit.
//!
//! # Proof: the ledger never counts too little
//!
//! A charge is on the disk before the first row is read, and stays there if the run then fails: what is written is never less than what was
//! spent. Charges add up, ε with ε and δ with δ, in exact decimal. Plain addition holds even if a later run is planned with sight of
//! what earlier ones released, its budget included (Rogers, Roth, Ullman, Vadhan, *Privacy Odometers and Filters*, 2016). Finer
//! filters exist (Feldman and Zrnic 2021; Smith and Thakurta 2022); this file does not use them.
//!
//! # What the file survives
//!
//! A line is written under a lock, in one call, and flushed before the table may be read. A write that fails is cut
//! back. A process that ends in the middle leaves a last line without its end: its run has read nothing. Cutting a line is
//! also how a charge would be hidden, or lost when a file is copied in part, so that nothing is cut unasked:
//! [`Ledger::repair`] does, and says so in the file.
use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek},
    path::{Path, PathBuf},
    time::SystemTime,
};

use quietly_noise::Key;
use serde::Serialize;

use self::{
    decimal::Decimal,
    lines::{FORMAT, Head, Kind, Line, plain, read, written},
};
use crate::{budget::Budget, charge::Charge, disk, error::Error, group::Group};

pub use self::lines::digest;

mod decimal;
mod display;
mod lines;
#[cfg(test)]
mod tests;

/// One charge.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LedgerEntry {
    /// Seconds since 1970.
    pub when: u64,
    /// On what.
    pub what: String,
    /// ε, not below.
    pub epsilon: f64,
    /// The δ at which it holds.
    pub delta: f64,
    /// The largest number of rows of a unit: the cost is for all of them.
    pub rows_per_unit: u64,
    /// The run that may use it; older ledgers do not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Whether that run is finished: its result is saved, and it never resumes.
    pub finished: bool,
    #[serde(skip)]
    allocation: Option<String>,
}

/// A run that is about to be charged.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Its identifier: 128 random bits.
    pub name: String,
    /// What it makes, in words.
    pub what: String,
    /// The allocation whose steps it uses, which no other run may.
    pub allocation: Option<String>,
}

impl Run {
    /// A new run.
    ///
    /// # Errors
    ///
    /// [`Error::Noise`] if there is no randomness.
    pub fn new(what: &str) -> Result<Self, Error> {
        Ok(Run { name: name()?, what: what.into(), allocation: None })
    }
}

/// The name of a new run.
pub fn name() -> Result<String, Error> {
    let mut bits = Key::from_os()?.stream("the name of a run").bits(0)?;
    Ok(format!("{:016x}{:016x}", bits.word()?, bits.word()?))
}

/// A file that says what may be spent on one table, and what was.
#[derive(Clone, Debug, PartialEq)]
pub struct Ledger {
    path: PathBuf,
    limit: Budget,
    spent: Vec<LedgerEntry>,
    /// The digest of the last line.
    head: String,
    /// Whether a line had the digest of the one before it: then all that follow have.
    chained: bool,
}

impl Ledger {
    /// Opens the ledger at `path`, or begins one with `limit`.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if the limit is not finite, or is another than the ledger has; [`Error::File`] if there is no ledger
    /// and no limit, if it cannot be read or written, or if it is damaged.
    pub fn open(path: &Path, limit: Option<Budget>) -> Result<Self, Error> {
        if let Some(limit) = limit {
            Error::ensure(limit.is_private(), "limit", "finite", limit.epsilon())?;
        }
        disk::is_a_file(path).map_err(|e| file_error(path, &e))?;
        let there = shared(path);
        match (there, limit) {
            (Ok(bytes), limit) if !(limit.is_some() && is_unborn(&bytes)) => {
                let ledger = Ledger::read(path, &bytes)?;
                let same = limit.is_none_or(|limit| limit == ledger.limit);
                let got = "different";
                Error::ensure(same, "limit", "left out, or equal to the ledger's limit", got)?;
                Ok(ledger)
            }
            (Err(error), None) if error.kind() == io::ErrorKind::NotFound => {
                Err(file_error(path, &"this ledger does not exist; pass `limit` to create it"))
            }
            (Err(error), _) if error.kind() != io::ErrorKind::NotFound => {
                Err(file_error(path, &error))
            }
            (_, limit) => Ledger::begin(path, limit.expect("both cases without one are above")),
        }
    }

    /// Writes the first line of a new ledger. A file whose first line was not finished has no charges.
    fn begin(path: &Path, limit: Budget) -> Result<Self, Error> {
        let failed = |e: io::Error| file_error(path, &e);
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        let mut file = options.open(path).map_err(failed)?;
        file.lock().map_err(failed)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        if !is_unborn(&bytes) {
            // Another process was faster.
            drop(file);
            return Ledger::open(path, Some(limit));
        }
        let line = written(&Head { format: FORMAT.into(), version: 1, limit });
        disk::cut(&file, 0)
            .and_then(|()| disk::append(&mut file, line.as_bytes()))
            .and_then(|()| disk::flush_name(path))
            .map_err(failed)?;
        Ledger::read(path, line.as_bytes())
    }

    fn read(path: &Path, bytes: &[u8]) -> Result<Self, Error> {
        let damaged = || file_error(path, &"this is not a ledger, or it is damaged");
        let text = std::str::from_utf8(bytes).map_err(|_| damaged())?;
        let Some(whole) = text.strip_suffix('\n') else {
            let torn = text.lines().next().and_then(read::<Head>).is_some() && text.contains('\n');
            return Err(if torn { file_error(path, &TORN) } else { damaged() });
        };
        let mut lines = whole.split('\n');
        let first = lines.next().unwrap_or_default();
        let head: Head = read(first).ok_or_else(damaged)?;
        if head.format != FORMAT || head.version != 1 || !head.limit.is_private() {
            return Err(damaged());
        }
        let (path, limit) = (path.to_path_buf(), head.limit);
        let mut ledger =
            Ledger { path, limit, spent: Vec::new(), head: digest(first), chained: false };
        for (number, text) in lines.enumerate() {
            ledger.take(text).map_err(|why| {
                file_error(
                    &ledger.path,
                    &format!("line {} {why}; nothing can be charged", number + 2),
                )
            })?;
        }
        Ok(ledger)
    }

    /// One more line of the file.
    fn take(&mut self, text: &str) -> Result<(), &'static str> {
        let line: Line = read(text).filter(Line::is_sound).ok_or("cannot be read")?;
        // Versions before this one wrote no digests: lines without may only stand at the beginning.
        if line.prev.as_ref().map_or(self.chained, |prev| *prev != self.head) {
            return Err("does not follow the line before it: a line was changed, moved or deleted");
        }
        self.chained |= line.prev.is_some();
        self.head = digest(text);
        let Line { when, what, epsilon, delta, group, kind, run, allocation, .. } = line;
        let rows_per_unit = group.rows();
        let begun = self.spent.iter_mut().find(|s| run.is_some() && s.run == run);
        match (kind, begun) {
            (Kind::Begin, _) => {
                let finished = false;
                self.spent.push(LedgerEntry {
                    when,
                    what,
                    epsilon,
                    delta,
                    rows_per_unit,
                    run,
                    finished,
                    allocation,
                });
            }
            (Kind::Finish, Some(spending)) => spending.finished = true,
            (Kind::Finish, None) => return Err("ends a run that was never charged"),
            (Kind::Repair, _) => {}
        }
        Ok(())
    }

    /// The file as it is now, locked until the returned handle is dropped.
    fn locked(&mut self) -> Result<(File, Vec<u8>), Error> {
        let failed = |e: io::Error| file_error(&self.path, &e);
        loop {
            let open = OpenOptions::new().read(true).append(true).open(&self.path);
            let mut file = open.map_err(failed)?;
            file.lock().map_err(failed)?;
            if !disk::names(&self.path, &file).map_err(failed)? {
                continue;
            }
            file.rewind().map_err(failed)?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(failed)?;
            return Ok((file, bytes));
        }
    }

    /// Reads the file again and locks it.
    fn again(&mut self) -> Result<File, Error> {
        let (file, bytes) = self.locked()?;
        let limit = self.limit;
        *self = Ledger::read(&self.path, &bytes)?;
        if self.limit != limit {
            return Err(file_error(
                &self.path,
                &"this is no longer the ledger that was opened; open it again",
            ));
        }
        Ok(file)
    }

    fn append(&mut self, file: &mut File, line: Line) -> Result<(), Error> {
        let text = written(&Line { prev: Some(self.head.clone()), ..line });
        disk::append(file, text.as_bytes()).map_err(|e| file_error(&self.path, &e))?;
        self.take(text.trim_end()).map_err(|why| file_error(&self.path, &why))
    }

    /// Writes down that `budget` is spent on `what`, or refuses: to be called before the table is read. Says which run may use it.
    ///
    /// Other processes may write to the same ledger: it is locked, and read again.
    ///
    /// # Errors
    ///
    /// As [`charge_run`](Self::charge_run).
    pub fn charge(&mut self, what: &str, budget: Budget) -> Result<String, Error> {
        let run = Run::new(what)?;
        self.charge_run(&run, budget)?;
        Ok(run.name)
    }

    /// The same for a run that has a name already.
    ///
    /// # Errors
    ///
    /// [`Error::BudgetExceeded`] if not so much is left, [`Error::Parameter`] if the relation is not the ledger's, or if another run
    /// has that name or that allocation; [`Error::File`] if it cannot be written.
    pub fn charge_run(&mut self, run: &Run, budget: Budget) -> Result<(), Error> {
        let mut file = self.again()?;
        let (own, other) = (self.limit.neighbours(), budget.neighbours());
        // A replaced unit is removed and added: twice ε, and (1 + e^ε) times δ. Nothing follows the other way round.
        let want =
            "those of the ledger: costs under different neighbouring relations do not add up";
        Error::ensure(own == other, "neighbours", want, other.name())?;
        // k rows of a unit cost k times what one row does.
        let (own, other) = (self.rows_per_unit(), budget.rows_per_unit());
        let want = "the same as for the other runs in this ledger: costs for units of different sizes do not add up";
        Error::ensure(own.is_none_or(|own| own == other), "rows_per_unit", want, other)?;
        let same = |a: &Option<String>, b: Option<&String>| a.is_some() && a.as_ref() == b;
        let used = |s: &LedgerEntry| same(&s.allocation, run.allocation.as_ref());
        let want = "partitioned again, as the guarantee covers one run per partition";
        Error::ensure(!self.spent.iter().any(used), "table", want, "already used by another run")?;
        let known = |s: &LedgerEntry| same(&s.run, Some(&run.name));
        let want = "a new one, as each run is charged once";
        Error::ensure(!self.spent.iter().any(known), "run", want, "in the ledger already")?;
        let (epsilon, delta) = self.exactly_left();
        let fits = budget.is_private()
            && Decimal::above(budget.epsilon()) <= epsilon
            && Decimal::above(budget.delta()) <= delta;
        if !fits {
            return Err(Error::BudgetExceeded {
                requested: display::pair(budget.epsilon(), budget.delta()),
                left: display::pair(epsilon.down(), delta.down()),
                limit: display::pair(self.limit.epsilon(), self.limit.delta()),
            });
        }
        let line = Line {
            when: now(),
            what: plain(&run.what),
            epsilon: budget.epsilon(),
            delta: budget.delta(),
            group: budget.group(),
            kind: Kind::Begin,
            run: Some(run.name.clone()),
            allocation: run.allocation.clone(),
            prev: None,
        };
        self.append(&mut file, line)
    }

    /// Charges a run, and gives the right to one release with the noise of `key`.
    ///
    /// # Errors
    ///
    /// As [`charge_run`](Self::charge_run).
    pub fn pay(&mut self, run: &Run, budget: Budget, key: Key) -> Result<Charge, Error> {
        self.charge_run(run, budget)?;
        Ok(Charge::charged(budget, key))
    }

    /// Writes down that a run has ended: to be called when its result is safe.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if it cannot be written, or the run was never charged here.
    pub fn finish(&mut self, run: &str) -> Result<(), Error> {
        let mut file = self.again()?;
        match self.run(run) {
            None => Err(file_error(&self.path, &"this run was not charged to this ledger")),
            Some(LedgerEntry { finished: true, .. }) => Ok(()),
            Some(spending) => {
                let (what, run) = (spending.what.clone(), Some(run.into()));
                self.append(&mut file, note(Kind::Finish, what, run))
            }
        }
    }

    /// Repairs a ledger whose last line was not finished, and says what was done; nothing if there is nothing to repair.
    ///
    /// A line that only lacks its end counts. Any other is cut off, and a line says how much that was.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if it is damaged elsewhere, or cannot be written.
    pub fn repair(path: &Path) -> Result<Option<String>, Error> {
        let failed = |e: io::Error| file_error(path, &e);
        let bytes = std::fs::read(path).map_err(failed)?;
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let mut ledger = Ledger::read(path, &bytes[..end])?;
        let (mut file, bytes) = ledger.locked()?;
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        ledger = Ledger::read(path, &bytes[..end])?;
        let torn = &bytes[end..];
        if torn.is_empty() {
            return Ok(None);
        }
        let line = std::str::from_utf8(torn).ok().filter(|text| ledger.clone().take(text).is_ok());
        let done = match line {
            Some(line) => {
                disk::append(&mut file, b"\n").map_err(failed)?;
                ledger.take(line).map_err(|why| file_error(path, &why))?;
                "the last line had no line break; it counts".to_string()
            }
            None => {
                disk::cut(&file, end as u64).map_err(failed)?;
                let of = digest(&String::from_utf8_lossy(torn));
                format!("{} bytes of an incomplete last line were removed, {of}", torn.len())
            }
        };
        ledger.append(&mut file, note(Kind::Repair, done.clone(), None))?;
        Ok(Some(done))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What may be spent in all.
    pub fn limit(&self) -> Budget {
        self.limit
    }

    /// How many rows a unit has in all charges; none if there is no charge, and the limit does not say.
    pub fn rows_per_unit(&self) -> Option<u64> {
        let limit = self.limit.rows_per_unit();
        self.spent.first().map(|first| first.rows_per_unit).or((limit > 1).then_some(limit))
    }

    /// All that was spent, the first first.
    pub fn entries(&self) -> &[LedgerEntry] {
        &self.spent
    }

    /// The charge of a run, if it is there.
    pub fn run(&self, name: &str) -> Option<&LedgerEntry> {
        self.spent.iter().find(|spending| spending.run.as_deref() == Some(name))
    }

    /// (ε, δ) of all that was spent, not below.
    pub fn spent(&self) -> (f64, f64) {
        let (epsilon, delta) = self.exactly_spent();
        (epsilon.up(), delta.up())
    }

    /// (ε, δ) that may still be spent, not above.
    pub fn left(&self) -> (f64, f64) {
        let (epsilon, delta) = self.exactly_left();
        (epsilon.down(), delta.down())
    }

    /// The δ of a run that names none: `usual`, or a tenth of what is left if that is less, as a power of ten.
    pub fn usual_delta(&self, usual: f64) -> f64 {
        let most = 0.1 * self.left().1;
        let fits = |delta: &f64| *delta <= most * (1.0 + 1e-9);
        let powers = (0..=12).map(|digits| 10.0_f64.powi(-digits)).filter(|d| *d <= usual);
        if fits(&usual) { usual } else { powers.clone().find(fits).unwrap_or(1e-12) }
    }

    fn exactly_spent(&self) -> (Decimal, Decimal) {
        let add = |(e, d): (Decimal, Decimal), s: &LedgerEntry| {
            (e.plus(Decimal::above(s.epsilon)), d.plus(Decimal::above(s.delta)))
        };
        self.spent.iter().fold(Default::default(), add)
    }

    fn exactly_left(&self) -> (Decimal, Decimal) {
        let (epsilon, delta) = self.exactly_spent();
        let of = |limit: f64, spent| Decimal::below(limit).minus(spent);
        (of(self.limit.epsilon(), epsilon), of(self.limit.delta(), delta))
    }
}

const TORN: &str =
    "its last line is incomplete (a full disk, or a crash); run quietly budget LEDGER --repair";

/// A line that charges nothing.
fn note(kind: Kind, what: String, run: Option<String>) -> Line {
    let (epsilon, delta, group, allocation, prev) = (0.0, 0.0, Group::default(), None, None);
    Line { when: now(), what, epsilon, delta, group, kind, run, allocation, prev }
}

/// Whether a file is a ledger whose first line was not finished: nothing was ever charged to it.
fn is_unborn(bytes: &[u8]) -> bool {
    let start = br#"{"format":"quietly ledger""#;
    let len = bytes.len().min(start.len());
    !bytes.contains(&b'\n') && bytes[..len] == start[..len]
}

/// What a file holds while no other process writes to it.
fn shared(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    // Without locks a line that is being written may be read in part; then it is refused.
    let _ = file.lock_shared();
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |time| time.as_secs())
}

fn file_error(path: &Path, why: &dyn std::fmt::Display) -> Error {
    Error::File { path: path.display().to_string(), why: why.to_string() }
}
