//! Rows on other machines: `--cluster`, by way of `quietly-cluster relay`.
use std::{
    env,
    io::{self, Read, Write},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use quietly::{
    BatchDraw, Error, Private, TablePart,
    backend::{Backend, Batch, ParquetParts},
    query::{Query, QuerySum},
    remote::{Job, JobSpec, Task, split},
    to_bytes,
};

/// The program that is started, beside this one or on the PATH.
const PROGRAM: &str = "quietly-cluster";
/// About how many bytes of a table a task has, unless one says how many tasks there are.
const TASK: u64 = 64 << 20;

/// Workers of a cluster, by way of a process of ours.
pub(crate) struct Fleet {
    relay: Child,
    to: Option<ChildStdin>,
    from: ChildStdout,
    address: String,
    tasks: Option<usize>,
}

impl Fleet {
    /// Starts that process.
    pub(crate) fn reached(address: &str, tasks: Option<usize>) -> Result<Self, Error> {
        let here = env::current_exe().ok().map(|path| path.with_file_name(PROGRAM));
        let program = here.filter(|path| path.exists()).unwrap_or_else(|| PathBuf::from(PROGRAM));
        let started = Command::new(&program)
            .args(["relay", address])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut relay = started.map_err(|e| Error::Remote {
            address: address.into(),
            why: format!("{PROGRAM} cannot be started: {e}; build it with `make cluster` and put it on the PATH"),
        })?;
        let (to, from) = (relay.stdin.take(), relay.stdout.take().expect("a pipe"));
        let mut fleet = Fleet { relay, to, from, address: address.into(), tasks };
        fleet.check()?;
        Ok(fleet)
    }

    /// The scheduler.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Whether all parts are of one build. One task goes all the way to an executor and back, and reads nothing.
    fn check(&mut self) -> Result<(), Error> {
        let work = JobSpec { job: Job::Check, tasks: vec![vec![]] };
        let done = self.sent(&work)?;
        work.check(&done).map_err(|other| self.told(other.to_string()))
    }

    fn told(&self, why: String) -> Error {
        Error::Remote { address: self.address.clone(), why }
    }

    /// How many tasks parts are worth.
    fn tasks(&self, parts: &[TablePart]) -> usize {
        let bytes: u64 = parts.iter().map(TablePart::bytes).sum();
        self.tasks.unwrap_or((bytes / TASK + 1).clamp(2, 4096) as usize)
    }

    /// Has work done: what every task came to.
    pub(crate) fn done(
        &mut self,
        job: Job,
        parts: &[TablePart],
    ) -> Result<(JobSpec, Vec<Vec<u8>>), Error> {
        let work = JobSpec { job, tasks: split(parts, self.tasks(parts)) };
        if work.tasks.is_empty() {
            return Ok((work, Vec::new()));
        }
        let done = self.sent(&work)?;
        Ok((work, done))
    }

    /// Sends work, and waits for what every task came to.
    fn sent(&mut self, work: &JobSpec) -> Result<Vec<Vec<u8>>, Error> {
        let address = self.address.clone();
        let told = |why: String| Error::Remote { address, why };
        let lost = |e: io::Error| Error::Remote {
            address: self.address.clone(),
            why: format!("{PROGRAM} has ended: {e}"),
        };
        let bytes = to_bytes(work);
        let to = self.to.as_mut().expect("open until this is dropped");
        let sent = to.write_all(&(bytes.len() as u32).to_le_bytes());
        sent.and_then(|()| to.write_all(&bytes)).and_then(|()| to.flush()).map_err(lost)?;
        let mut length = [0; 4];
        self.from.read_exact(&mut length).map_err(lost)?;
        let mut reply = vec![0; u32::from_le_bytes(length) as usize];
        self.from.read_exact(&mut reply).map_err(lost)?;
        match reply.split_first() {
            Some((0, rest)) => match split_reply(rest) {
                Some(done) => Ok(done),
                None => Err(told("it answered something else".into())),
            },
            Some((_, why)) => Err(told(String::from_utf8_lossy(why).into_owned())),
            None => Err(told("it answered nothing".into())),
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // It ends when there is no more work.
        drop(self.to.take());
        let _ = self.relay.wait();
    }
}

/// What every task came to, each behind its length.
fn split_reply(mut bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let (one, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        all.push(one.to_vec());
        bytes = rest;
    }
    bytes.is_empty().then_some(all)
}

/// A Parquet table in parts that the workers of a cluster read.
pub(crate) struct OnCluster {
    pub(crate) fleet: Fleet,
    pub(crate) parts: ParquetParts,
}

impl Backend for OnCluster {
    fn begin(&mut self, draw: &BatchDraw) -> Result<(), Error> {
        self.parts.begin(draw)
    }

    fn groups(&self) -> Option<u64> {
        self.parts.groups()
    }

    fn sum(&mut self, batch: &Batch, query: &dyn Query) -> Result<QuerySum, Error> {
        let (parts, sample) = self.parts.batch(batch);
        let task = Task::new(self.parts.read(), query, sample);
        let (work, done) = self.fleet.done(Job::Sum(task), &parts)?;
        work.sum(query, &done).map_err(|other| self.fleet.told(other.to_string()))
    }

    fn count(&mut self) -> Result<Private<u64>, Error> {
        self.parts.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_split_where_they_end() {
        assert_eq!(split_reply(&[]), Some(vec![]));
        let two = [1, 0, 0, 0, 7, 0, 0, 0, 0];
        assert_eq!(split_reply(&two), Some(vec![vec![7], vec![]]));
        for bad in [&two[..3], &two[..6], &[9, 0, 0, 0, 1]] {
            assert_eq!(split_reply(bad), None);
        }
    }
}
