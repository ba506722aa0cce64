//! `quietly partition`: groups a table by random step, so that a run reads it once.
use std::{
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
    time::Instant,
};

use clap::Args;
use quietly::{
    Error, Grouped, PartitionedTable, Partitioning, TablePart,
    remote::{Job, JobSpec},
};
use serde_json::json;

use crate::{
    error::Failure,
    format, interrupt,
    parse::Count,
    remote::Cluster,
    tables::{Files, files_read, key, with_features},
    terminal::{Progress, Screen, WIDTH},
};

#[derive(Args, Debug)]
pub(crate) struct Partition {
    #[command(flatten)]
    table: Files,
    /// Number of steps of the run
    #[arg(long, value_name = "T", default_value = "21")]
    steps: Count,
    /// The new folder for the partitioned table. Keep it as confidential as the table
    #[arg(long, value_name = "FOLDER")]
    output: PathBuf,
    #[command(flatten)]
    cluster: Cluster,
    /// A fixed seed, for tests: anyone who knows the seed knows the steps
    #[arg(long, value_name = "N")]
    seed: Option<Count>,
}

/// Writes a table grouped by step.
pub(crate) fn run(asked: &Partition, screen: &mut Screen) -> Result<(), Failure> {
    let started = Instant::now();
    let reading = &asked.table.reading;
    let source = reading.open(&asked.table.files, with_features(None))?;
    if !reading.json {
        screen.say(&format::wrap(&files_read(&source), "", WIDTH))?;
    }
    let steps = asked.steps.get("steps")?.min(1 << 20) as usize;
    let (key, threads) = (key(asked.seed)?, reading.threads()?);
    let fleet = asked.cluster.fleet()?;
    let (prepared, preparing, mut parts) =
        PartitionedTable::begin(&source, steps, &asked.output, &key)?;
    let output =
        std::fs::canonicalize(&asked.output).map_err(|e| Failure::file(&asked.output, &e))?;
    interrupt::guard(&output);
    if prepared.removed > 0 && !reading.json {
        let (removed, folder) = (prepared.removed, asked.output.display());
        screen.say(&format!("removed {removed} files that an interrupted run left in {folder}"))?;
    }
    let removed = prepared.removed;
    for part in &mut parts {
        part.path = std::fs::canonicalize(&part.path).map_err(|e| Failure::file(&part.path, &e))?;
    }
    let progress = Progress::new("partitioning");
    let written = match fleet {
        None => here(&preparing, &parts, threads, &progress).map(Written::Here),
        Some(mut fleet) => {
            progress.say("partitioning on the cluster");
            let address = fleet.address().to_string();
            let done = fleet.done(Job::Prepare(preparing), &parts);
            let sizes = |(work, done): (JobSpec, Vec<_>)| {
                work.sizes(&done, steps)
                    .map_err(|other| Error::Remote { address, why: other.to_string() })
            };
            done.and_then(sizes).map(Written::There)
        }
    };
    drop(progress);
    let finished = written
        .and_then(|written| interrupt::complete(|| prepared.finish(&output, written.sizes()?)));
    // What is not whole is not left behind.
    let prepared = finished.inspect_err(|_| interrupt::remove(&output))?;
    let seconds = started.elapsed().as_secs_f64();
    let (folder, allocation) = (asked.output.display(), &prepared.allocation);
    if reading.json {
        return Ok(screen.say_json(&json!({
            "prepared": folder.to_string(),
            "allocation": serde_json::to_value(allocation).expect("plain fields"),
            "removed_leftovers": removed,
            "seconds": seconds,
        }))?);
    }
    screen.say(&format!(
        "{folder}: the table partitioned by {steps} random steps, allocation {}, in {seconds:.1} s",
        allocation.id
    ))?;
    screen.say("Keep it as confidential as the table: it reveals each row's step. One run may use it; delete it afterwards.")?;
    if allocation.test_only {
        screen.say("TEST ONLY: made with a fixed seed; do not release a model of it.")?;
    }
    Ok(screen.say(&format!(
        "\nnext: quietly fit linear {folder} --schema SCHEMA --target COLUMN --epsilon 1 --checkpoint run.checkpoint"
    ))?)
}

/// What came of the parts.
enum Written {
    /// Files without a name, all of which get theirs at the end.
    Here(Vec<Grouped>),
    /// How many records each step has, of every part.
    There(Vec<Vec<u64>>),
}

impl Written {
    fn sizes(self) -> Result<Vec<Vec<u64>>, Error> {
        match self {
            Written::Here(parts) => parts.into_iter().map(Grouped::name).collect(),
            Written::There(sizes) => Ok(sizes),
        }
    }
}

/// How many files are open at a time. Those of larger tables (128 GB) get their names one by one.
const OPEN: usize = 500;

/// Writes all parts on this machine.
fn here(
    preparing: &Partitioning,
    parts: &[TablePart],
    threads: usize,
    progress: &Progress,
) -> Result<Vec<Grouped>, Error> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(part) = parts.get(number) else { return Ok(done) };
            progress.say(&format!("partitioning part {} of {}", number + 1, parts.len()));
            let part = preparing.group(number, part)?;
            done.push((number, if parts.len() > OPEN { part.closed()? } else { part }));
        }
    };
    let all: Result<Vec<Vec<(usize, Grouped)>>, Error> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads.min(parts.len())).map(|_| scope.spawn(work)).collect();
        let join = |handle: std::thread::ScopedJoinHandle<'_, _>| {
            handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        handles.into_iter().map(join).collect()
    });
    let mut all: Vec<(usize, Grouped)> = all?.into_iter().flatten().collect();
    all.sort_by_key(|(number, _)| *number);
    Ok(all.into_iter().map(|(_, part)| part).collect())
}
