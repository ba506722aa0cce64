//! What a worker is sent to do with some parts of a table: answer a question about their rows, or prepare them.
use std::{
    ops::ControlFlow,
    sync::atomic::{AtomicUsize, Ordering},
};

use quietly_data::{Encoding, Part, Private, Source, Table};
use serde::{Deserialize, Serialize};

use crate::{
    error::Error,
    expand::{Expander, Expansion},
    keeper::Keeper,
    prepared::Preparing,
    question::{Answer, Question},
    wire::{Foreign, opened, sealed},
};

/// How rows are read: all of it is public.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Reading {
    /// How a row becomes numbers.
    pub encoding: Encoding,
    /// Whether null records keep their places.
    pub places: bool,
    /// What is made of these numbers before anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expansion: Option<Expansion>,
}

/// How rows are read, and what is asked of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Errand {
    /// How.
    pub reading: Reading,
    /// What.
    pub question: Question,
}

impl Errand {
    /// The answer of some parts of a table. It is the same for any number of threads, and for any order of the parts.
    ///
    /// # Errors
    ///
    /// [`Error::Data`] if a file cannot be read; no row can cause an error.
    pub fn run(&self, parts: &[Part], threads: usize) -> Result<Private<Answer>, Error> {
        let next = AtomicUsize::new(0);
        let work = || -> Result<Private<Answer>, Error> {
            let mut worker = Worker::new(self.clone())?;
            while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
                worker.before = part.before();
                worker.ask(&Source::of_part(part)?)?;
            }
            Ok(worker.answer())
        };
        std::thread::scope(|scope| {
            let others = threads.min(parts.len()).saturating_sub(1);
            let handles: Vec<_> = (0..others).map(|_| scope.spawn(work)).collect();
            let mut all = work()?;
            for handle in handles {
                let more =
                    handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
                all = all.zip(more).map(|(mut all, more)| {
                    all.add(&more);
                    all
                });
            }
            Ok(all)
        })
    }
}

/// Somebody on an errand, who asks some rows after others and adds up what they say.
pub struct Worker {
    errand: Errand,
    expander: Option<Expander>,
    before: u64,
    all: Answer,
}

impl Worker {
    /// One who has not asked any row yet.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if the errand expands rows in a way that makes no sense.
    pub fn new(errand: Errand) -> Result<Self, Error> {
        let expander = match &errand.reading.expansion {
            Some(expansion) => Some(Expander::new(expansion)?),
            None => None,
        };
        let all = errand.question.nothing();
        Ok(Worker { errand, expander, before: 0, all })
    }

    /// Asks the next rows: all those of a source.
    ///
    /// # Errors
    ///
    /// [`Error::Data`] if it cannot be read; no row can cause an error.
    pub fn ask(&mut self, source: &Source) -> Result<(), Error> {
        let Worker { errand: Errand { reading, question }, expander, before, all } = self;
        let kept = reading.places.then(|| reading.encoding.keeping_places());
        source.scan(kept.as_ref().unwrap_or(&reading.encoding), &mut |table: &Table| {
            let expanded = expander.as_ref().map(|expander| expander.public_table(table, 1));
            let rows = expanded.as_ref().unwrap_or(table);
            all.add(&question.of_table(rows, *before));
            *before += (table.rows() + table.nulls().len()) as u64;
            ControlFlow::Continue(())
        })?;
        Ok(())
    }

    /// What all of them said.
    pub fn answer(self) -> Private<Answer> {
        Private::new(self.all)
    }
}

/// What workers are sent to do, each with some parts of a table.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Order {
    /// Do nothing, to find out whether all parts are of one build before anything is charged.
    Check,
    /// Answer a question.
    Ask(Errand),
    /// Group the records of every part by step, and tell how many each has.
    Prepare(Preparing),
}

/// A part of a table, and its number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// The number.
    pub number: usize,
    /// The part.
    pub part: Part,
}

/// What workers are sent, for all of them: an order, and the loads of every task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Work {
    /// What is to be done.
    pub order: Order,
    /// With what: each task is done by one worker, or by another if that fails.
    pub tasks: Vec<Vec<Load>>,
}

impl Order {
    /// Does a task with these parts, and returns what [`Work::answer`] or [`Work::sizes`] wants. It is the same whoever does it, and
    /// however often. It is **private**.
    ///
    /// # Errors
    ///
    /// [`Error::Data`] or [`Error::File`] if a part cannot be read or written; no row can cause an error.
    pub fn run(&self, loads: &[Load]) -> Result<Private<Vec<u8>>, Error> {
        match self {
            Order::Check => Ok(Private::new(sealed(&[]))),
            Order::Ask(errand) => {
                let parts: Vec<Part> = loads.iter().map(|load| load.part.clone()).collect();
                Ok(errand.run(&parts, 1)?.map(|answer| sealed(&answer.to_bytes())))
            }
            Order::Prepare(preparing) => {
                let write = |load: &Load| preparing.group(load.number, &load.part)?.name();
                let sizes = loads.iter().map(write).collect::<Result<Vec<_>, _>>()?;
                let bytes = sizes.iter().flatten().flat_map(|size| size.to_le_bytes());
                Ok(Private::new(sealed(&bytes.collect::<Vec<u8>>())))
            }
        }
    }
}

impl Work {
    /// Whether whoever did the tasks is of this build.
    ///
    /// # Errors
    ///
    /// [`Foreign`] if not, or if something is missing.
    pub fn check(&self, done: &[Vec<u8>]) -> Result<(), Foreign> {
        self.bodies(done).map(|_| ())
    }

    /// The answer of all tasks together.
    ///
    /// # Errors
    ///
    /// [`Foreign`] if another build answered, if it answers another question, or if something is missing.
    pub fn answer(&self, done: &[Vec<u8>]) -> Result<Private<Answer>, Foreign> {
        let Order::Ask(Errand { question, .. }) = &self.order else { return Err(Foreign::Bytes) };
        let mut all = question.nothing();
        for bytes in self.bodies(done)? {
            all.add(&Answer::from_bytes(bytes, question).ok_or(Foreign::Bytes)?);
        }
        Ok(Private::new(all))
    }

    /// How many records of every part are in each of `steps` steps, in the order of their numbers.
    ///
    /// # Errors
    ///
    /// [`Foreign`] if another build answered, or if something is missing.
    pub fn sizes(&self, done: &[Vec<u8>], steps: usize) -> Result<Vec<Vec<u64>>, Foreign> {
        let mut all: Vec<(usize, Vec<u64>)> = Vec::new();
        for (loads, bytes) in self.tasks.iter().zip(self.bodies(done)?) {
            let (sizes, rest) = bytes.as_chunks::<8>();
            if !rest.is_empty() || sizes.len() != loads.len() * steps {
                return Err(Foreign::Bytes);
            }
            let sizes: Vec<u64> = sizes.iter().map(|size| u64::from_le_bytes(*size)).collect();
            let parts = loads.iter().zip(sizes.chunks(steps));
            all.extend(parts.map(|(load, sizes)| (load.number, sizes.to_vec())));
        }
        all.sort();
        let whole = all.iter().enumerate().all(|(k, (number, _))| k == *number);
        let sizes = || all.into_iter().map(|(_, sizes)| sizes).collect();
        if whole { Ok(sizes()) } else { Err(Foreign::Bytes) }
    }

    /// What every task came to.
    fn bodies<'a>(&self, done: &'a [Vec<u8>]) -> Result<Vec<&'a [u8]>, Foreign> {
        let bodies: Vec<&[u8]> =
            done.iter().map(|bytes| opened(bytes)).collect::<Result<_, _>>()?;
        if bodies.len() == self.tasks.len() { Ok(bodies) } else { Err(Foreign::Bytes) }
    }
}

/// Parts in so many tasks, of about as many bytes each.
pub fn in_tasks(parts: &[Part], tasks: usize) -> Vec<Vec<Load>> {
    let all: u64 = parts.iter().map(Part::bytes).sum();
    let share = (all / tasks.max(1) as u64).max(1);
    let (mut done, mut loads): (u64, Vec<Vec<Load>>) = (0, Vec::new());
    for (number, part) in parts.iter().enumerate() {
        let load = Load { number, part: part.clone() };
        // By where its middle lies.
        let at = ((done + part.bytes() / 2) / share) as usize;
        if loads.last().is_none() || at >= loads.len() {
            loads.push(Vec::new());
        }
        loads.last_mut().expect("just made").push(load);
        done += part.bytes();
    }
    loads
}

/// A Parquet table that is read again for every question, in parts: every row, or those of a step.
pub struct Parts {
    steps: Vec<Vec<Part>>,
    reading: Reading,
    threads: usize,
}

impl Parts {
    /// The parts of every step: there is one step where every question is for all rows.
    pub fn new(steps: Vec<Vec<Part>>, reading: Reading, threads: usize) -> Self {
        Parts { steps, reading, threads }
    }
}

impl Keeper for Parts {
    fn ask(&mut self, step: usize, question: &Question) -> Result<Private<Answer>, Error> {
        let errand = Errand { reading: self.reading.clone(), question: question.clone() };
        errand.run(&self.steps[step], self.threads)
    }
}
