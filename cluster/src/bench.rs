//! `quietly-cluster bench`: what a cluster costs and carries, beside one machine, in one run.
use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use quietly::{
    BatchDraw, Budget, Charge, Encoding, Error, Family, FitInput, FitOptions, Key, ModelSpec,
    Private, Schema, Source, TablePart,
    backend::{Backend, Batch, ParquetParts},
    query::{Query, QuerySum},
    remote::{Job, JobSpec, Task, split},
    to_bytes,
};
use tokio::runtime::Handle;

use crate::{Bench, relay::Engine};

/// Gradient steps of a measured fit; there is one query more.
const STEPS: u64 = 3;

/// Rows on the cluster, summed from this process.
struct Rows {
    engine: Engine,
    handle: Handle,
    parts: ParquetParts,
    tasks: usize,
}

impl Backend for Rows {
    fn begin(&mut self, draw: &BatchDraw) -> Result<(), Error> {
        self.parts.begin(draw)
    }

    fn count(&mut self) -> Result<Private<u64>, Error> {
        self.parts.count()
    }

    fn sum(&mut self, batch: &Batch, query: &dyn Query) -> Result<QuerySum, Error> {
        let (parts, sample) = self.parts.batch(batch);
        let job = Job::Sum(Task::new(self.parts.read(), query, sample));
        let work = JobSpec { job, tasks: split(&parts, self.tasks) };
        let address = self.engine.address();
        let bytes = to_bytes(&work);
        let done = tokio::task::block_in_place(|| self.handle.block_on(self.engine.done(bytes)));
        let sum = done.and_then(|done| work.sum(query, &done).map_err(|e| e.to_string()));
        sum.map_err(|why| Error::Remote { address, why })
    }
}

/// Times every query, and forwards it.
struct Timed<'a> {
    rows: &'a mut dyn Backend,
    times: Vec<Duration>,
}

impl Backend for Timed<'_> {
    fn begin(&mut self, draw: &BatchDraw) -> Result<(), Error> {
        self.rows.begin(draw)
    }

    fn count(&mut self) -> Result<Private<u64>, Error> {
        self.rows.count()
    }

    fn sum(&mut self, batch: &Batch, query: &dyn Query) -> Result<QuerySum, Error> {
        let started = Instant::now();
        let sum = self.rows.sum(batch, query);
        self.times.push(started.elapsed());
        sum
    }
}

pub(crate) async fn run(asked: &Bench) -> Result<(), String> {
    let address = asked.scheduler.as_str();
    let whole = Source::open([&asked.folder], &Default::default()).map_err(|e| e.to_string())?;
    let mut parts = whole.parts().map_err(|e| e.to_string())?;
    for part in &mut parts {
        part.path = fs::canonicalize(&part.path).map_err(|e| e.to_string())?;
    }
    let rows: u64 = parts.iter().map(TablePart::rows).sum();
    let bytes: u64 = parts.iter().map(TablePart::bytes).sum();
    println!("{rows} rows, {:.2} GB of Parquet, {} row groups", bytes as f64 / 1e9, parts.len());
    let (encoding, plan) = planned(&asked.folder, &whole, STEPS)?;
    let reading = plan.reading(&encoding);
    let engine = || Engine::new(address);
    let mut best = [f64::INFINITY; 2];
    let mut models = Vec::new();
    for _ in 0..asked.times {
        let in_parts = |threads| ParquetParts::new(vec![parts.clone()], reading.clone(), threads);
        let mut here = in_parts(asked.threads);
        let tasks = (bytes / (64 << 20) + 1).max(2) as usize;
        let (engine, handle) = (engine()?, Handle::current());
        let mut there = Rows { engine, handle, parts: in_parts(1), tasks };
        for (k, rows) in [&mut here as &mut dyn Backend, &mut there].into_iter().enumerate() {
            let (model, times) = fitted(&plan, &encoding, rows)?;
            // The first query connects; all but it read the same.
            let gradients = &times[times.len() - STEPS as usize..];
            let mean = gradients.iter().map(Duration::as_secs_f64).sum::<f64>() / STEPS as f64;
            best[k] = best[k].min(mean);
            models.push(model);
        }
    }
    let speed = best.map(|seconds| rows as f64 / seconds / 1e6);
    println!(
        "one machine, {} threads  {:8.3} s a step  {:6.1} million rows a second",
        asked.threads, best[0], speed[0]
    );
    println!(
        "the cluster            {:8.3} s a step  {:6.1} million rows a second",
        best[1], speed[1]
    );
    println!("ratio {:.2} (at least 0.6 wanted)", speed[1] / speed[0]);
    println!(
        "models {}",
        if models.iter().all(|m| *m == models[0]) { "have the same bits" } else { "DIFFER" }
    );

    // One small row group: what a step costs beside its rows.
    let small = vec![parts.iter().min_by_key(|part| part.rows()).expect("a part").clone()];
    let (encoding, plan) = planned(&asked.folder, &whole, 50)?;
    let in_parts = || ParquetParts::new(vec![small.clone()], plan.reading(&encoding), 1);
    let alone = fitted(&plan, &encoding, &mut in_parts())?;
    let (engine, handle) = (engine()?, Handle::current());
    let mut there = Rows { engine, handle, parts: in_parts(), tasks: 1 };
    let there = fitted(&plan, &encoding, &mut there)?;
    let middle = |mut times: Vec<Duration>| {
        times.sort();
        times[times.len() / 2].as_secs_f64() * 1e3
    };
    let (alone, there) = (middle(alone.1), middle(there.1));
    println!(
        "a step of one row group: {there:.1} ms on the cluster, {alone:.1} ms here: {:.1} ms more (at most 100 wanted)",
        there - alone
    );
    Ok(())
}

/// A plan of noisy descent for the made-up table.
fn planned(
    folder: &Path,
    source: &Source,
    steps: u64,
) -> Result<(Encoding, quietly::Plan), String> {
    let schema = Schema::read(folder.with_extension("schema.toml")).map_err(|e| e.to_string())?;
    let columns = source.columns();
    let features: Vec<String> = columns.iter().filter(|c| c.starts_with('x')).cloned().collect();
    let encoding = Encoding::new(&schema, columns, Some(&features), Some("sick"))
        .map_err(|e| e.to_string())?;
    let mut spec = ModelSpec::new(Family::Logistic);
    (spec.method, spec.steps) = (Some("dp-gd".into()), Some(steps));
    let budget = Budget::new(1.0, 1e-9).map_err(|e| e.to_string())?;
    let plan = spec.plan(&encoding, schema.rows, budget).map_err(|e| e.to_string())?;
    Ok((encoding, plan))
}

fn fitted(
    plan: &quietly::Plan,
    encoding: &Encoding,
    rows: &mut dyn Backend,
) -> Result<(String, Vec<Duration>), String> {
    let mut timed = Timed { rows, times: Vec::new() };
    let options = FitOptions::new(Charge::without_ledger(Key::from_seed(1))).threads(2);
    let fit = plan.fit(FitInput::backend(&mut timed, encoding), options);
    let model = fit.and_then(|fit| fit.model("row")).map_err(|e| e.to_string())?;
    Ok((model.to_json(), timed.times))
}
