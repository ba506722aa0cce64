//! `quietly prepare`: a table grouped by secret step, so that a run reads it once.
use std::{
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
    time::Instant,
};

use clap::Args;
use quietly::{Error, Order, Part, Prepared, Preparing};
use serde_json::json;

use crate::{
    elsewhere::Cluster,
    failure::Failure,
    number::Count,
    screen::{Progress, Screen},
    tables::{Files, key},
};

#[derive(Args, Debug)]
pub(crate) struct Prepare {
    #[command(flatten)]
    table: Files,
    /// How many steps the run will have
    #[arg(long, value_name = "T", default_value = "21")]
    steps: Count,
    /// The new folder for the prepared table; it is as secret as the table
    #[arg(long, value_name = "FOLDER")]
    output: PathBuf,
    #[command(flatten)]
    cluster: Cluster,
    /// A fixed seed, for tests: whoever knows it knows the steps
    #[arg(long, value_name = "N")]
    seed: Option<Count>,
}

/// Writes a table grouped by step.
pub(crate) fn run(asked: &Prepare, screen: &mut Screen) -> Result<(), Failure> {
    let started = Instant::now();
    let reading = &asked.table.reading;
    let source = reading.open(&asked.table.files, None)?;
    let steps = asked.steps.get("steps")?.min(1 << 20) as usize;
    let (key, threads) = (key(asked.seed)?, reading.threads()?);
    let fleet = asked.cluster.fleet()?;
    let (prepared, preparing, mut parts) = Prepared::begin(&source, steps, &asked.output, &key)?;
    for part in &mut parts {
        part.path = std::fs::canonicalize(&part.path).map_err(|e| Failure::file(&part.path, &e))?;
    }
    let progress = Progress::new("preparing");
    let sizes = match fleet {
        None => here(&preparing, &parts, threads, &progress),
        Some(mut fleet) => {
            progress.say("preparing on the cluster");
            let missing = || Error::Elsewhere {
                address: "this address".into(),
                why: "parts are missing".into(),
            };
            let done = fleet.done(Order::Prepare(preparing), &parts);
            done.and_then(|(work, done)| work.sizes(&done, steps).ok_or_else(missing))
        }
    };
    drop(progress);
    // What is not whole is not left behind.
    let sizes = sizes.inspect_err(|_| _ = std::fs::remove_dir_all(&asked.output))?;
    let prepared = prepared.finish(&asked.output, sizes)?;
    let seconds = started.elapsed().as_secs_f64();
    let (folder, allocation) = (asked.output.display(), &prepared.allocation);
    if reading.json {
        return Ok(screen.say_json(&json!({
            "prepared": folder.to_string(),
            "allocation": serde_json::to_value(allocation).expect("plain fields"),
            "seconds": seconds,
        }))?);
    }
    screen.say(&format!(
        "{folder} holds the table grouped by {steps} secret steps: allocation {}, in {seconds:.1} s",
        allocation.id
    ))?;
    screen.say("It is as secret as the table, and serves one run: delete it afterwards.")?;
    if allocation.test_only {
        screen.say("TEST ONLY: made with a fixed seed; do not release a model of it.")?;
    }
    Ok(screen.say(&format!(
        "\nnext: quietly fit linear {folder} --schema SCHEMA --target COLUMN --epsilon 1 --checkpoint run.journal"
    ))?)
}

/// The number of a part, and how many records of it are in each step.
type Written = (usize, Vec<u64>);

/// Writes all parts on this machine.
fn here(
    preparing: &Preparing,
    parts: &[Part],
    threads: usize,
    progress: &Progress,
) -> Result<Vec<Vec<u64>>, Error> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(part) = parts.get(number) else { return Ok(done) };
            progress.say(&format!("preparing part {} of {}", number + 1, parts.len()));
            done.push((number, preparing.write(number, part)?));
        }
    };
    let all: Result<Vec<Vec<Written>>, Error> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads.min(parts.len())).map(|_| scope.spawn(work)).collect();
        let join = |handle: std::thread::ScopedJoinHandle<'_, _>| {
            handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        handles.into_iter().map(join).collect()
    });
    let mut all: Vec<Written> = all?.into_iter().flatten().collect();
    all.sort();
    Ok(all.into_iter().map(|(_, sizes)| sizes).collect())
}
