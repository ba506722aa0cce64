//! Work for processes on other machines: sum a query over some parts of a table, or group their records by step.
//!
//! Workers read rows; the process that adds noise does not. What travels to it are sums, which are as private as the rows: wire
//! and workers belong to the trust boundary. A worker decodes the query that it is sent. Only the crate that knows all queries
//! can do that, so that it hands its [`Decode`] in.
use quietly_data::{Private, Source, TablePart};
use serde::{Deserialize, Serialize};

use crate::{
    backend::{Accumulator, Sample, sum_parts},
    error::Error,
    partitioned::Partitioning,
    query::{Decode, Query, QuerySum},
    wire::{Foreign, opened, sealed},
};

pub use crate::backend::ReadSpec;

/// How rows are read, what is summed over them, and over which of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    read: ReadSpec,
    /// Encoded.
    query: Vec<u8>,
    /// All rows without one.
    sample: Option<Sample>,
}

impl Task {
    /// A query over rows that are read like this: over all, or over a sample.
    pub fn new(read: &ReadSpec, query: &dyn Query, sample: Option<Sample>) -> Self {
        Task { read: read.clone(), query: query.encode(), sample }
    }

    /// The query; none if `decode` does not know it.
    fn query(&self, decode: Decode) -> Result<Box<dyn Query>, Error> {
        let unknown = || Error::Parameter {
            name: "query",
            want: "one that this build knows",
            got: "another".into(),
        };
        decode(&self.query).ok_or_else(unknown)
    }
}

/// Does a task with some rows after others, which an engine brings.
pub struct Worker {
    query: Box<dyn Query>,
    rows: Accumulator,
}

impl Worker {
    /// Before the first row.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if the query is unknown, or rows are expanded in a way that makes no sense.
    pub fn new(task: &Task, decode: Decode) -> Result<Self, Error> {
        let query = task.query(decode)?;
        let rows = Accumulator::new(&task.read, &*query, task.sample.as_ref())?;
        Ok(Worker { query, rows })
    }

    /// Adds all rows of a source.
    ///
    /// # Errors
    ///
    /// [`Error::Data`] if it cannot be read; no row can cause an error.
    pub fn add(&mut self, source: &Source) -> Result<(), Error> {
        self.rows.add(source, &*self.query)
    }

    /// The sum over all of them, as a message: **private**.
    pub fn message(self) -> Private<Vec<u8>> {
        self.rows.sum(&*self.query).encode().map(|bytes| sealed(&bytes))
    }
}

/// What workers do, each with some parts of a table.
#[expect(clippy::large_enum_variant, reason = "there is one for a task")]
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Job {
    /// Nothing: it tells whether all processes are of one build, before anything is charged.
    Check,
    /// Sum a query.
    Sum(Task),
    /// Group the records of every part by step, and tell how many each has.
    Prepare(Partitioning),
}

/// A part of a table, and its number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskPart {
    /// The number.
    pub number: usize,
    /// The part.
    pub part: TablePart,
}

/// What all workers are sent: a job, and the parts of every task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobSpec {
    /// What is done.
    pub job: Job,
    /// With what: each task is done by one worker, or by another if that fails.
    pub tasks: Vec<Vec<TaskPart>>,
}

impl Job {
    /// Does a task with these parts, and returns what [`JobSpec::sum`] or [`JobSpec::sizes`] takes. It is the same for any worker,
    /// and however often it is done. It is **private**.
    ///
    /// # Errors
    ///
    /// [`Error::Data`] or [`Error::File`] if a part cannot be read or written; [`Error::Parameter`] if the query is unknown. No
    /// row can cause an error.
    pub fn run(&self, parts: &[TaskPart], decode: Decode) -> Result<Private<Vec<u8>>, Error> {
        match self {
            Job::Check => Ok(Private::new(sealed(&[]))),
            Job::Sum(task) => {
                let parts: Vec<TablePart> = parts.iter().map(|each| each.part.clone()).collect();
                let (query, sample) = (task.query(decode)?, task.sample.as_ref());
                let sum = sum_parts(&task.read, &*query, sample, &parts, 1)?;
                Ok(sum.encode().map(|bytes| sealed(&bytes)))
            }
            Job::Prepare(preparing) => {
                let write = |each: &TaskPart| preparing.group(each.number, &each.part)?.name();
                let sizes = parts.iter().map(write).collect::<Result<Vec<_>, _>>()?;
                let bytes = sizes.iter().flatten().flat_map(|size| size.to_le_bytes());
                Ok(Private::new(sealed(&bytes.collect::<Vec<u8>>())))
            }
        }
    }
}

impl JobSpec {
    /// Whether the workers that did the tasks are of this build.
    ///
    /// # Errors
    ///
    /// [`Foreign`] if not, or if something is missing.
    pub fn check(&self, done: &[Vec<u8>]) -> Result<(), Foreign> {
        self.bodies(done).map(|_| ())
    }

    /// The sum of `query`, which the job is about, over all tasks.
    ///
    /// # Errors
    ///
    /// [`Foreign`] if another build sent it, if it is the sum of another query, or if something is missing.
    pub fn sum(&self, query: &dyn Query, done: &[Vec<u8>]) -> Result<QuerySum, Foreign> {
        add_up(query, self.bodies(done)?)
    }

    /// How many records of every part are in each of `steps` steps, in the order of their numbers.
    ///
    /// # Errors
    ///
    /// [`Foreign`] if another build sent it, or if something is missing.
    pub fn sizes(&self, done: &[Vec<u8>], steps: usize) -> Result<Vec<Vec<u64>>, Foreign> {
        let mut all: Vec<(usize, Vec<u64>)> = Vec::new();
        for (parts, bytes) in self.tasks.iter().zip(self.bodies(done)?) {
            let (sizes, rest) = bytes.as_chunks::<8>();
            if !rest.is_empty() || sizes.len() != parts.len() * steps {
                return Err(Foreign::Bytes);
            }
            let sizes: Vec<u64> = sizes.iter().map(|size| u64::from_le_bytes(*size)).collect();
            let each = parts.iter().zip(sizes.chunks(steps));
            all.extend(each.map(|(part, sizes)| (part.number, sizes.to_vec())));
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

/// The sum of a query over the rows of some workers, from the messages that [`Worker::message`] made.
///
/// # Errors
///
/// [`Foreign`] if another build sent one, or it is the sum of another query.
pub fn add_messages(query: &dyn Query, messages: &[Vec<u8>]) -> Result<QuerySum, Foreign> {
    let bodies = messages.iter().map(|bytes| opened(bytes)).collect::<Result<_, _>>()?;
    add_up(query, bodies)
}

fn add_up(query: &dyn Query, bodies: Vec<&[u8]>) -> Result<QuerySum, Foreign> {
    let mut all = QuerySum::zero(query);
    for bytes in bodies {
        all = all.plus(QuerySum::decode(bytes, query).ok_or(Foreign::Bytes)?);
    }
    Ok(all)
}

/// Parts in so many tasks, of about as many bytes each.
pub fn split(parts: &[TablePart], tasks: usize) -> Vec<Vec<TaskPart>> {
    let all: u64 = parts.iter().map(TablePart::bytes).sum();
    let share = (all / tasks.max(1) as u64).max(1);
    let (mut done, mut split): (u64, Vec<Vec<TaskPart>>) = (0, Vec::new());
    for (number, part) in parts.iter().enumerate() {
        let each = TaskPart { number, part: part.clone() };
        // By where its middle lies.
        let at = ((done + part.bytes() / 2) / share) as usize;
        if split.last().is_none() || at >= split.len() {
            split.push(Vec::new());
        }
        split.last_mut().expect("just made").push(each);
        done += part.bytes();
    }
    split
}
