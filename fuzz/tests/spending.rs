//! Ledger and checkpoint as a state machine: whatever is crashed, copied, linked, put back or deleted, nothing is released twice or
//! beside the ledger.
//!
//! Real files in a folder of their own; the program ends, or the disk is full, at any byte of any write. A model in memory
//! knows every charge that was acknowledged and every question that each run put to its rows. A question follows from
//! all that was released before it: two different questions at one place of one run mean that a page was released twice.
use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use quietly::{
    BatchDraw, Budget, Charge, Checkpoint, Encoding, Error, FitInput, FitOptions, Key, Ledger,
    Link, Method, Plan, Private, Regression, Run, Schema,
    backend::{Backend, Batch},
    disk::{Fault, break_disk},
    query::{Query, QuerySum},
};
use quietly_fuzz::arbitrary::{Result as Parsed, Unstructured};

const LIMIT: f64 = 3.0;
const JOURNALS: [&str; 4] = ["j", "k", "d/j", "d/k"];

/// A plan and its encoding: the same for all inputs.
fn planned() -> &'static (Plan, Encoding) {
    static PLANNED: OnceLock<(Plan, Encoding)> = OnceLock::new();
    PLANNED.get_or_init(|| {
        let budget = Budget::new(0.5, 1e-6).unwrap();
        let regression = Regression::new(Link::Linear).method(Method::FullBatch);
        let plan = regression.plan(100_000, 1, budget).unwrap();
        let rules = "a = { range = [0, 1] }\ny = { range = [0, 1] }";
        let schema = Schema::parse(&format!("rows = 100000\n[columns]\n{rules}")).unwrap();
        let columns = ["a", "y"].map(String::from);
        (plan, Encoding::new(&schema, &columns, None, Some("y")).unwrap())
    })
}

/// What is known in memory.
struct World {
    folder: PathBuf,
    charged: bool,
    /// Charges that were acknowledged.
    acknowledged: usize,
    /// Every question of every run, and what came out.
    asked: HashMap<String, Vec<Vec<u8>>>,
    models: HashMap<String, String>,
    finished: Vec<String>,
    backups: Vec<Vec<u8>>,
}

/// No rows, summed until so many queries were run.
struct Rows<'a> {
    asked: &'a mut Vec<Vec<u8>>,
    at: usize,
    left: usize,
    trouble: Option<String>,
}

impl Backend for Rows<'_> {
    fn begin(&mut self, _: &BatchDraw) -> Result<(), Error> {
        Ok(())
    }

    fn count(&mut self) -> Result<Private<u64>, Error> {
        Ok(Private::new(0))
    }

    fn sum(&mut self, _: &Batch, query: &dyn Query) -> Result<QuerySum, Error> {
        if self.left == 0 {
            return Err(Error::Interrupted);
        }
        self.left -= 1;
        let bytes = query.encode();
        match self.asked.get(self.at) {
            Some(before) if *before != bytes => {
                self.trouble = Some(format!("query {} was run in another way", self.at));
            }
            Some(_) => {}
            None if self.at == self.asked.len() => self.asked.push(bytes),
            None => self.trouble = Some(format!("query {} came too early", self.at)),
        }
        self.at += 1;
        Ok(QuerySum::zero(query))
    }
}

impl World {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn ledger(&self) -> Option<Ledger> {
        self.charged.then(|| Ledger::open(&self.path("L"), None).expect("checked before"))
    }

    /// Begins or resumes a run, as far as `left` queries and the disk let it.
    fn run(&mut self, name: &str, left: usize, fault: Option<Fault>) -> Result<(), String> {
        let before = files(&self.folder);
        let (plan, encoding) = planned();
        let path = self.path(name);
        let mut ledger = self.ledger();
        let mut checkpoint =
            match Checkpoint::open(&path, &plan.identity(), "table", None, ledger.as_ref()) {
                Ok(checkpoint) => checkpoint,
                Err(_) if before == files(&self.folder) => return Ok(()),
                Err(error) => return Err(format!("a refusal changed a file: {error}")),
            };
        let run = checkpoint.run().to_string();
        if self.finished.contains(&run) {
            return Err("a finished run resumes".into());
        }
        let key = Key::from_os().unwrap();
        break_disk(fault);
        let charge = match (&mut ledger, checkpoint.is_begun()) {
            (_, true) => Charge::resumed(plan.budget(), key),
            (None, false) => Charge::without_ledger(key),
            (Some(ledger), false) => {
                let begun = Run { name: run.clone(), ..Run::new("a fit").unwrap() };
                let Ok(charge) = ledger.pay(&begun, plan.budget(), key) else { return Ok(()) };
                self.acknowledged += 1;
                charge
            }
        };
        if checkpoint.begin().is_err() {
            return Ok(());
        }
        let at = checkpoint.answered();
        let asked = self.asked.entry(run.clone()).or_default();
        let mut rows = Rows { asked, at, left, trouble: None };
        let options = FitOptions::new(charge).threads(1).checkpoint(checkpoint);
        let fit = plan.fit(FitInput::backend(&mut rows, encoding), options);
        let fit = fit.map(|mut fit| (fit.checkpoint.take(), fit.model("row")));
        if let Some(trouble) = rows.trouble {
            return Err(trouble);
        }
        let Ok((checkpoint, Ok(model))) = fit else { return Ok(()) };
        let text = format!("{:?}", (model.intercept, &model.weights));
        if self.models.entry(run.clone()).or_insert_with(|| text.clone()) != &text {
            return Err("two models of one run".into());
        }
        if checkpoint.is_some_and(|checkpoint| checkpoint.finish().is_ok()) {
            self.finished.push(run);
        }
        Ok(())
    }

    fn step(&mut self, bytes: &mut Unstructured<'_>) -> Parsed<Result<(), String>> {
        let name = *bytes.choose(&JOURNALS)?;
        let path = self.path(name);
        match bytes.int_in_range(0..=9)? {
            0..=4 => {
                let left = *bytes.choose(&[0, 1, 2, 3, 5, 1000])?;
                let size = bytes.int_in_range(0..=9000)?;
                let fault = match bytes.int_in_range(0..=5)? {
                    0 | 1 => Some(Fault::Crash(size)),
                    2 => Some(Fault::Full(size)),
                    _ => None,
                };
                let done = self.run(name, left, fault);
                break_disk(None);
                return Ok(done);
            }
            5 => self.backups.extend(fs::read(&path)),
            6 if !self.backups.is_empty() => {
                let _ = fs::write(&path, bytes.choose(&self.backups)?);
            }
            7 => {
                let from = self.path(bytes.choose(&JOURNALS)?);
                let _ = fs::hard_link(from, &path);
            }
            8 => {
                let _ = fs::remove_file(&path);
            }
            _ => {
                // A checkpoint that ends anywhere, as a copy that was cut short.
                if let Ok(text) = fs::read(&path) {
                    let end = bytes.int_in_range(0..=text.len())?;
                    let _ = fs::write(&path, &text[..end]);
                }
            }
        }
        Ok(Ok(()))
    }

    /// What holds at any time.
    fn check(&self) -> Result<(), String> {
        if !self.charged {
            return Ok(());
        }
        let path = self.path("L");
        let ledger = match Ledger::open(&path, None) {
            Ok(ledger) => ledger,
            Err(error) if error.to_string().contains("--repair") => {
                Ledger::repair(&path).map_err(|e| format!("it cannot be repaired: {e}"))?;
                Ledger::open(&path, None).map_err(|e| format!("nor read afterwards: {e}"))?
            }
            Err(error) => return Err(format!("the ledger does not open: {error}")),
        };
        if ledger.spent().0 > LIMIT {
            return Err(format!("{} of {LIMIT} was spent", ledger.spent().0));
        }
        if ledger.entries().len() < self.acknowledged {
            return Err("a charge was lost".into());
        }
        let charged = |run: &String| ledger.run(run).is_some();
        match self.asked.keys().find(|run| !charged(run)) {
            Some(run) => Err(format!("{run} was asked, and not charged")),
            None => Ok(()),
        }
    }
}

/// All files with their bytes, but for locks, which hold nothing.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_none_or(|e| e != "lock") {
            let bytes = fs::read(&path).unwrap();
            found.push((path, bytes));
        }
    }
    found.sort();
    found
}

fn property(bytes: &[u8]) -> Result<(), String> {
    let memory = Path::new("/dev/shm");
    let folder =
        if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    let mut bytes = Unstructured::new(bytes);
    let mut world = World {
        folder: folder.path().into(),
        charged: bytes.arbitrary().unwrap_or(true),
        acknowledged: 0,
        asked: HashMap::new(),
        models: HashMap::new(),
        finished: Vec::new(),
        backups: Vec::new(),
    };
    fs::create_dir(world.path("d")).unwrap();
    let limit = Budget::new(LIMIT, 1e-3).unwrap();
    Ledger::open(&world.path("L"), Some(limit)).unwrap();
    for _ in 0..40 {
        if bytes.is_empty() {
            break;
        }
        match world.step(&mut bytes) {
            Ok(done) => done?,
            Err(_) => break,
        }
        world.check()?;
    }
    Ok(())
}

#[test]
fn nothing_is_released_twice_or_beside_the_ledger() {
    quietly_fuzz::check("spending", 400, property);
}
