//! Real, public tables: the protocol that private regressions are compared with.
//!
//! Splits of 80 and 20 by seed; features standardised by the training part and clamped to [-3, 3]; δ = 1e-5, add-remove.
use std::path::Path;

use quietly::{Budget, Charge, FitInput, FitOptions, Key, Link, Method, Plan};
use quietly_cli::{
    error::Failure,
    terminal::Progress,
    trial::{self, Entrant, Spread},
};

use crate::reproduce::{
    Size,
    claim::{Check, Claim},
    known::{Real, load, losses},
    report::{Entry, Grid, Report},
};

const DELTA: f64 = 1e-5;

/// What a method came to on one table at one ε: loss of R² on test rows, test loss, training loss.
struct Outcome {
    name: String,
    own: bool,
    epsilon: f64,
    values: Vec<[f64; 3]>,
}

impl Outcome {
    fn median(&self, which: usize) -> Option<f64> {
        let column: Vec<f64> = self.values.iter().map(|v| v[which]).collect();
        (!column.is_empty()).then(|| Spread::of(&column).median)
    }
}

/// Adds tables, claims and remarks for every real table in `data`.
pub(crate) fn run(
    data: &Path,
    link: Link,
    size: Size,
    seed: u64,
    threads: usize,
    progress: &Progress,
    report: &mut Report,
) -> Result<(), Failure> {
    let (tables, missing) = load(data, link)?;
    report.about.extend(missing);
    let seeds = match size {
        Size::Full => 10,
        Size::Quick => 3,
        Size::Tiny => 1,
    };
    let (methods, epsilons): (&[Method], &[f64]) = match (link, size) {
        (Link::Relu, _) => (
            &[Method::DpSgd, Method::DpGlmtron, Method::DpMbglmtron, Method::FullBatch],
            &[0.05, 0.2, 0.5],
        ),
        (Link::Linear, Size::Full) => (&LINEAR, &[0.1, 0.5, 1.0, 3.0]),
        _ => (&LINEAR, &[0.1, 1.0]),
    };
    report.about.push(format!(
        "Real tables: {seeds} splits of 80/20, features standardised by the training part and clamped to [-3, 3], the target in \
         units of its standard deviation, delta {DELTA:e}, add-remove."
    ));
    for table in &tables {
        progress.say(table.name);
        let results = measure(table, link, methods, epsilons, seeds, seed, threads)?;
        report.tables.push(grid(table.name, link, &results));
        report.claims.push(claim(table.name, link, &results, epsilons));
    }
    Ok(())
}

const LINEAR: [Method; 7] = [
    Method::FullBatch,
    Method::OnePass,
    Method::AdaptiveGd,
    Method::DpAmbssgd,
    Method::AdaSsp,
    Method::BoostedAdaSsp,
    Method::TukeyEm,
];

fn measure(
    table: &Real,
    link: Link,
    methods: &[Method],
    epsilons: &[f64],
    seeds: u64,
    seed: u64,
    threads: usize,
) -> Result<Vec<Outcome>, Failure> {
    let rows = (table.target.len() * 4 / 5) as u64;
    let mut plans = vec![];
    let mut results = vec![];
    let plain = Entrant::plain();
    let plain = plain.plan(link, rows, table.width, Budget::new(f64::INFINITY, DELTA)?)?;
    for entrant in methods.iter().map(|m| Entrant::new(*m)) {
        for &epsilon in epsilons {
            let plan = entrant.plan(link, rows, table.width, Budget::new(epsilon, DELTA)?);
            let own = plan.as_ref().is_ok_and(|plan| entrant.stand_in(plan).is_none());
            results.push(Outcome { name: entrant.name.clone(), own, epsilon, values: vec![] });
            plans.push((entrant.clone(), plan));
        }
    }
    let turns: Vec<u64> = (0..seeds).collect();
    let range = if link == Link::Linear { (-10.0, 10.0) } else { (-12.0, 12.0) };
    let found = trial::all(&turns, threads, &|_| (), |turn| {
        let split = table.split(link, seed.wrapping_mul(1_000_003) + turn)?;
        let fit = |plan: &Plan, public, seed| {
            let charge = Charge::without_ledger(Key::from_seed(seed));
            let options = FitOptions::new(charge).threads(1).public(public);
            plan.fit(FitInput::table(&split.private, range), options)?.linear()
        };
        let least = fit(&plain, None, 0)?;
        let best = losses(&split.test, &least).1;
        let mut values = vec![];
        for (i, (entrant, plan)) in plans.iter().enumerate() {
            let Ok(plan) = plan else { continue };
            let public = entrant.needs_public_rows().then_some(&split.public);
            let Ok(found) = fit(plan, public, (seed << 40) + (turn << 20) + i as u64) else {
                continue;
            };
            let (loss, r2) = losses(&split.test, &found);
            values.push((i, [best - r2, loss, losses(&split.train, &found).0]));
        }
        Ok::<_, Failure>(values)
    });
    for turn in found {
        turn?.into_iter().for_each(|(i, value)| results[i].values.push(value));
    }
    Ok(results)
}

fn grid(name: &str, link: Link, results: &[Outcome]) -> Grid {
    let mut columns = vec!["method".to_string()];
    let mut rows: Vec<Vec<Entry>> = vec![];
    for result in results {
        if rows.last().is_none_or(|row| row[0] != Entry::Word(result.name.clone())) {
            rows.push(vec![Entry::Word(result.name.clone())]);
        }
        let row = rows.last_mut().expect("pushed");
        let wanted: &[(usize, &str)] = if link == Link::Linear {
            &[(0, "loss of R2")]
        } else {
            &[(1, "test loss"), (2, "training loss")]
        };
        for (which, what) in wanted {
            let title = format!("{what}, eps {}", result.epsilon);
            if !columns.contains(&title) {
                columns.push(title);
            }
            row.push(match (result.median(*which), result.own) {
                (Some(value), false) => Entry::Marked(value, "†"),
                (value, _) => Entry::of(value),
            });
        }
    }
    let note = match link {
        Link::Relu => {
            "Median of (1/2) the mean squared error, on test and training rows. † another method was planned."
        }
        _ => {
            "Median loss of test R2 against least squares on the same split. † another method was planned."
        }
    };
    Grid { title: name.into(), note: note.into(), columns, rows }
}

fn claim(table: &str, link: Link, results: &[Outcome], epsilons: &[f64]) -> Claim {
    let get = |name: &str, e: f64, which| {
        let found = results.iter().find(|r| r.name == name && r.epsilon == e && r.own);
        found.and_then(|r| r.median(which))
    };
    if link == Link::Relu {
        let check = |(worse, better): (&str, &str), e: f64| {
            let ratio = get(worse, e, 1).zip(get(better, e, 1)).map(|(a, b)| a / b);
            Check::above(format!("eps {e}, {worse} over {better}:"), ratio, 1.0)
        };
        let pairs = [("dp-sgd", "dp-glmtron"), ("dp-glmtron", "dp-mbglmtron")];
        let checks = epsilons.iter().flat_map(|e| pairs.map(|pair| check(pair, *e)));
        let says = format!("{table}: test loss falls from DP-SGD over DP-GLMtron to DP-MBGLMtron");
        return Claim::new(says, "DLW, real data", checks.collect());
    }
    let check = |e: &f64| {
        let rivals = ["adassp", "boosted-adassp", "tukey-em"];
        let best = rivals.iter().filter_map(|name| get(name, *e, 0)).reduce(f64::min);
        let behind = get("full-batch", *e, 0).zip(best).map(|(ours, best)| ours - best);
        Check::below(format!("eps {e}: loss beyond the best rival's"), behind, 0.005)
    };
    let says = format!(
        "{table}: the default loses no more R2 than AdaSSP, boosted AdaSSP and TukeyEM (within 0.005)"
    );
    Claim::new(says, "this library", epsilons.iter().map(check).collect())
}
