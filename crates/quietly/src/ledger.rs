//! What has been spent on one table, in a file that outlives the process.
//!
//! A charge is on the disk before the first row is read, and stays there if the run then fails: what is written is never less than what was
//! spent. Charges simply add up, ε with ε and δ with δ. That is the one rule that also holds if a later run is planned with sight of
//! what earlier ones released, its budget included (Rogers, Roth, Ullman, Vadhan, *Privacy Odometers and Filters*, 2016); finer
//! ones need all budgets to be fixed before the first run.
use std::{
    fmt,
    fs::{File, OpenOptions},
    io::{Read, Seek, Write},
    path::{Path, PathBuf},
    time::SystemTime,
};

use serde::{Deserialize, Serialize};

use crate::{budget::Budget, error::Error};

/// What the first line says.
const FORMAT: &str = "quietly ledger";

/// The first line: what may be spent in all.
#[derive(Serialize, Deserialize)]
struct Head {
    format: String,
    version: u64,
    limit: Budget,
}

/// One line: what was spent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Spending {
    /// Seconds since 1970.
    pub when: u64,
    /// On what.
    pub what: String,
    /// ε, not below.
    pub epsilon: f64,
    /// The δ at which it holds.
    pub delta: f64,
}

/// A file that says what may be spent on one table, and what was.
#[derive(Clone, Debug, PartialEq)]
pub struct Ledger {
    path: PathBuf,
    limit: Budget,
    spent: Vec<Spending>,
}

impl Ledger {
    /// Opens the ledger at `path`, or begins one with `limit`.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if there is none and no limit, if the limit is not finite, or if it is another than the ledger has;
    /// [`Error::File`] if it cannot be read or written, or is damaged.
    pub fn open(path: &Path, limit: Option<Budget>) -> Result<Self, Error> {
        if let Some(limit) = limit {
            Error::unless(limit.is_private(), "limit", "finite", limit.epsilon())?;
        }
        match (OpenOptions::new().read(true).open(path), limit) {
            (Ok(mut file), _) => {
                let ledger = Ledger::read(path, &mut file)?;
                let same = limit.is_none_or(|limit| limit == ledger.limit);
                let got = "another than it was begun with";
                Error::unless(same, "limit", "left out, or as the ledger has it", got)?;
                Ok(ledger)
            }
            (Err(error), Some(limit)) if error.kind() == std::io::ErrorKind::NotFound => {
                let head = Head { format: FORMAT.into(), version: 1, limit };
                let line = serde_json::to_string(&head).expect("plain fields") + "\n";
                let new = OpenOptions::new().write(true).create_new(true).open(path);
                let mut file = new.map_err(|e| told(path, &e))?;
                file.write_all(line.as_bytes()).map_err(|e| told(path, &e))?;
                file.sync_all().map_err(|e| told(path, &e))?;
                Ok(Ledger { path: path.into(), limit, spent: Vec::new() })
            }
            (Err(error), None) if error.kind() == std::io::ErrorKind::NotFound => {
                let want = "given: there is no such ledger yet, and a new one has a limit";
                Err(Error::Parameter { name: "limit", want, got: "left out".into() })
            }
            (Err(error), _) => Err(told(path, &error)),
        }
    }

    fn read(path: &Path, file: &mut File) -> Result<Self, Error> {
        let damaged = || told(path, &"this is not a ledger, or it is damaged");
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(|_| damaged())?;
        // A line that was not finished is a charge that cannot be read.
        let whole = text.strip_suffix('\n').ok_or_else(damaged)?;
        let mut lines = whole.split('\n');
        let head: Head = lines.next().and_then(read_line).ok_or_else(damaged)?;
        let known = head.format == FORMAT && head.version == 1 && head.limit.is_private();
        let spent = lines.map(|line| read_line(line).filter(Spending::is_sound));
        let spent = spent.collect::<Option<Vec<_>>>().filter(|_| known).ok_or_else(damaged)?;
        Ok(Ledger { path: path.into(), limit: head.limit, spent })
    }

    /// Writes down that `budget` is spent on `what`, or refuses: to be called before the table is read.
    ///
    /// Other processes may write to the same ledger: it is locked, and read again.
    ///
    /// # Errors
    ///
    /// [`Error::Spent`] if not so much is left, [`Error::Parameter`] if the relation is not the ledger's, [`Error::File`] if that
    /// cannot be written.
    pub fn charge(&mut self, what: &str, budget: Budget) -> Result<(), Error> {
        let open = OpenOptions::new().read(true).append(true).open(&self.path);
        let mut file = open.map_err(|e| told(&self.path, &e))?;
        file.lock().map_err(|e| told(&self.path, &e))?;
        file.rewind().map_err(|e| told(&self.path, &e))?;
        let limit = self.limit;
        *self = Ledger::read(&self.path, &mut file)?;
        if self.limit != limit {
            return Err(told(
                &self.path,
                &"another ledger stands there than the one that was opened",
            ));
        }
        let (own, other) = (self.limit.neighbours(), budget.neighbours());
        // Who is replaced leaves and joins: twice ε, and (1 + e^ε) times δ; the other way round nothing follows.
        let want = "the ledger's: prices under different relations do not add up";
        Error::unless(own == other, "neighbours", want, other.name())?;
        let (epsilon, delta) = self.left();
        let fits = budget.is_private() && budget.epsilon() <= epsilon && budget.delta() <= delta;
        if !fits {
            return Err(Error::Spent {
                asked: shown(budget.epsilon(), budget.delta()),
                left: shown(epsilon.max(0.0), delta.max(0.0)),
                limit: shown(self.limit.epsilon(), self.limit.delta()),
            });
        }
        let when = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let line = Spending {
            when: when.map_or(0, |time| time.as_secs()),
            what: what.chars().filter(|c| !c.is_control()).take(200).collect(),
            epsilon: budget.epsilon(),
            delta: budget.delta(),
        };
        let text = serde_json::to_string(&line).expect("plain fields") + "\n";
        file.write_all(text.as_bytes()).map_err(|e| told(&self.path, &e))?;
        file.sync_all().map_err(|e| told(&self.path, &e))?;
        self.spent.push(line);
        Ok(())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What may be spent in all.
    pub fn limit(&self) -> Budget {
        self.limit
    }

    /// All that was spent, the first first.
    pub fn entries(&self) -> &[Spending] {
        &self.spent
    }

    /// (ε, δ) of all that was spent, not below.
    pub fn spent(&self) -> (f64, f64) {
        let up = |sum: f64, x: f64| (sum + x) * (1.0 + f64::EPSILON);
        let add = |(e, d), s: &Spending| (up(e, s.epsilon), up(d, s.delta));
        self.spent.iter().fold((0.0, 0.0), add)
    }

    /// (ε, δ) that may still be spent, up to rounding; below 0 if a file says that more was spent than may be.
    pub fn left(&self) -> (f64, f64) {
        let (epsilon, delta) = self.spent();
        // Ten times 0.1 are 1, also where that is not so in binary.
        let less = |limit: f64, spent: f64| (limit - spent + 1e-12 * limit).min(limit);
        (less(self.limit.epsilon(), epsilon), less(self.limit.delta(), delta))
    }
}

impl Spending {
    fn is_sound(&self) -> bool {
        let fine = |x: f64| x >= 0.0 && x.is_finite();
        fine(self.epsilon) && fine(self.delta)
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = shown(self.limit.epsilon(), self.limit.delta());
        let relation = self.limit.neighbours().name();
        writeln!(f, "limit {limit} ({relation})")?;
        for spending in &self.spent {
            let Spending { what, epsilon, delta, .. } = spending;
            writeln!(f, "  {:<28} {}", what, shown(*epsilon, *delta))?;
        }
        let ((spent, s), (left, l)) = (self.spent(), self.left());
        write!(f, "spent {}, left {}", shown(spent, s), shown(left.max(0.0), l.max(0.0)))?;
        match self.spent.last() {
            Some(last) if left >= last.epsilon && l >= last.delta => {
                let by_delta = if last.delta > 0.0 { l / last.delta } else { f64::INFINITY };
                let more = (left / last.epsilon.max(1e-3)).min(by_delta).floor();
                write!(f, ": enough for {more} more like the last")
            }
            Some(_) => write!(f, ": too little for one more run like the last"),
            None => Ok(()),
        }
    }
}

/// "epsilon 1, delta 1e-6".
fn shown(epsilon: f64, delta: f64) -> String {
    let neat = |x: f64| (x * 1e6).round() / 1e6;
    format!("epsilon {}, delta {:e}", neat(epsilon), (delta * 1e15).round() / 1e15)
}

fn read_line<T: for<'a> Deserialize<'a>>(line: &str) -> Option<T> {
    serde_json::from_str(line).ok()
}

fn told(path: &Path, why: &dyn fmt::Display) -> Error {
    Error::File { path: path.display().to_string(), why: why.to_string() }
}

#[cfg(test)]
mod tests {
    use quietly_accounting::Neighbours;

    use super::*;

    fn budget(epsilon: f64, delta: f64) -> Budget {
        Budget::new(epsilon, delta).unwrap()
    }

    #[test]
    fn what_is_spent_stays_spent_and_no_more_is_let_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("people.ledger");
        assert!(matches!(Ledger::open(&path, None), Err(Error::Parameter { .. })));
        let mut ledger = Ledger::open(&path, Some(budget(1.0, 1e-5))).unwrap();
        let mut other = ledger.clone();
        for _ in 0..5 {
            ledger.charge("a fit", budget(0.1, 1e-6)).unwrap();
            // Another process that opened it before.
            other.charge("another\nfit", budget(0.1, 1e-6)).unwrap();
        }
        let refused = ledger.charge("one too many", budget(0.001, 1e-6)).unwrap_err();
        assert!(matches!(refused, Error::Spent { .. }) && refused.is_refusal());
        assert!(refused.to_string().contains("epsilon 0, delta 0"), "{refused}");
        let again = Ledger::open(&path, Some(budget(1.0, 1e-5))).unwrap();
        assert_eq!(again.entries().len(), 10);
        let (epsilon, delta) = again.spent();
        assert!((1.0..1.0 + 1e-12).contains(&epsilon) && (1e-5..1.1e-5).contains(&delta));
        assert!(again.to_string().contains("too little"), "{again}");
        assert!(Ledger::open(&path, Some(budget(2.0, 1e-5))).is_err());
    }

    #[test]
    fn delta_counts_as_epsilon_does() {
        let folder = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::open(&folder.path().join("l"), Some(budget(10.0, 1e-6))).unwrap();
        ledger.charge("a", budget(1.0, 6e-7)).unwrap();
        assert!(ledger.charge("b", budget(1.0, 6e-7)).is_err());
        ledger.charge("pure", Budget::pure(1.0).unwrap()).unwrap();
        let endless = Budget::new(f64::INFINITY, 1e-7).unwrap();
        assert!(ledger.charge("no privacy", endless).is_err());
        let replaced = budget(1.0, 1e-7).under(Neighbours::ReplaceOne);
        assert!(matches!(ledger.charge("other", replaced), Err(Error::Parameter { .. })));
    }

    #[test]
    fn a_damaged_ledger_lets_nothing_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("l");
        let mut ledger = Ledger::open(&path, Some(budget(1.0, 1e-6))).unwrap();
        ledger.charge("a", budget(0.1, 1e-7)).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let line = r#"{"when":1,"what":"a","epsilon":-1.0,"delta":0.0}"#;
        for bad in [
            text[..text.len() - 5].to_string(),
            text.trim_end().to_string(),
            text.replace("quietly ledger", "a ledger"),
            format!("{text}\n"),
            format!("{text}{line}\n"),
            String::new(),
        ] {
            std::fs::write(&path, bad).unwrap();
            assert!(matches!(ledger.charge("b", budget(0.1, 1e-7)), Err(Error::File { .. })));
            assert!(Ledger::open(&path, None).is_err());
        }
    }
}
