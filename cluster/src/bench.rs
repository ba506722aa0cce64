//! `quietly-cluster bench`: what a cluster costs and carries, beside one machine, in one run.
use std::{
    fs,
    ops::ControlFlow,
    path::Path,
    time::{Duration, Instant},
};

use quietly::{
    Answer, Asked, Budget, Elsewhere, Encoding, Errand, Error, Family, Keeper, Key, Order, Paid,
    Part, Parts, Private, Question, Reading, Schema, Source, Work, in_tasks, to_bytes,
};
use tokio::runtime::Handle;

use crate::{Bench, relay::Engine};

/// Gradient steps of a measured fit; there is one question more.
const STEPS: u64 = 3;

/// Rows on the cluster, asked from this process.
struct Rows {
    engine: Engine,
    handle: Handle,
    parts: Vec<Part>,
    reading: Reading,
    tasks: usize,
}

impl Keeper for Rows {
    fn ask(&mut self, _: usize, question: &Question) -> Result<Private<Answer>, Error> {
        let errand = Errand { reading: self.reading.clone(), question: question.clone() };
        let tasks = in_tasks(&self.parts, self.tasks);
        let work = Work { order: Order::Ask(errand), tasks };
        let address = self.engine.address();
        let bytes = to_bytes(&work);
        let done = tokio::task::block_in_place(|| self.handle.block_on(self.engine.done(bytes)));
        let answer = done.and_then(|done| work.answer(&done).map_err(|e| e.to_string()));
        answer.map_err(|why| Error::Elsewhere { address, why })
    }
}

/// Times every question, and forwards it.
struct Timed<'a> {
    rows: &'a mut dyn Keeper,
    times: Vec<Duration>,
}

impl Keeper for Timed<'_> {
    fn ask(&mut self, step: usize, question: &Question) -> Result<Private<Answer>, Error> {
        let started = Instant::now();
        let answer = self.rows.ask(step, question);
        self.times.push(started.elapsed());
        answer
    }
}

pub(crate) async fn run(asked: &Bench) -> Result<(), String> {
    let address = asked.scheduler.as_str();
    let whole = Source::open([&asked.folder], &Default::default()).map_err(|e| e.to_string())?;
    let mut parts = whole.parts().map_err(|e| e.to_string())?;
    for part in &mut parts {
        part.path = fs::canonicalize(&part.path).map_err(|e| e.to_string())?;
    }
    let rows: u64 = parts.iter().map(Part::records).sum();
    let bytes: u64 = parts.iter().map(Part::bytes).sum();
    println!("{rows} rows, {:.2} GB of Parquet, {} row groups", bytes as f64 / 1e9, parts.len());
    let (encoding, plan) = planned(&asked.folder, &whole, STEPS)?;
    let reading = plan.reading(&encoding);
    let engine = || Engine::new(address);
    let mut best = [f64::INFINITY; 2];
    let mut models = Vec::new();
    for _ in 0..asked.times {
        let mut here = Parts::new(vec![parts.clone()], reading.clone(), asked.threads);
        let tasks = (bytes / (64 << 20) + 1).max(2) as usize;
        let (engine, handle, parts, reading) =
            (engine()?, Handle::current(), parts.clone(), reading.clone());
        let mut there = Rows { engine, handle, parts, reading, tasks };
        for (k, rows) in [&mut here as &mut dyn Keeper, &mut there].into_iter().enumerate() {
            let (model, times) = fitted(&plan, &encoding, rows)?;
            // The first question connects; all but it read the same.
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
    let small = vec![parts.iter().min_by_key(|part| part.records()).expect("a part").clone()];
    let (encoding, plan) = planned(&asked.folder, &whole, 50)?;
    let alone =
        fitted(&plan, &encoding, &mut Parts::new(vec![small.clone()], plan.reading(&encoding), 1))?;
    let (handle, reading) = (Handle::current(), plan.reading(&encoding));
    let mut there = Rows { engine: engine()?, handle, parts: small, reading, tasks: 1 };
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
    let mut asked = Asked::new(Family::Logistic);
    (asked.method, asked.steps) = ("dp-gd".into(), Some(steps));
    let budget = Budget::new(1.0, 1e-9).map_err(|e| e.to_string())?;
    let plan = asked.plan(&encoding, schema.rows, budget).map_err(|e| e.to_string())?;
    Ok((encoding, plan))
}

fn fitted(
    plan: &quietly::Plan,
    encoding: &Encoding,
    rows: &mut dyn Keeper,
) -> Result<(String, Vec<Duration>), String> {
    let mut timed = Timed { rows, times: Vec::new() };
    let mut from = Elsewhere { rows: &mut timed, records: 0, allocation: None, journal: None };
    let quiet = &mut |_| ControlFlow::Continue(());
    let model = plan.fit_elsewhere(
        &mut from,
        encoding,
        "row",
        Paid::without_ledger(Key::from_seed(1)),
        2,
        quiet,
    );
    Ok((model.map_err(|e| e.to_string())?.to_json(), timed.times))
}
