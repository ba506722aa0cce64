//! One line per target: what was measured, what was asked, ok or short.
//!
//! `make bench` runs it with the other libraries beside it; alone (`cargo run --release -p quietly-bench`) it measures what needs
//! no other library and says what it left out.
//!
//! usage: quietly-bench [--rivals FILE] [noise|accounting|regression|convex|kan|recipe|breakdown|memory]
mod accounting;
mod convex;
mod kan;
mod kan_speed;
mod memory;
mod noise;
mod recipe;
mod regression;
mod rival;

use std::{process::ExitCode, time::Instant};

/// A target and what was measured.
struct Line {
    name: String,
    measured: f64,
    target: f64,
    /// Whether more is better.
    more: bool,
    unit: &'static str,
}

impl Line {
    fn at_least(name: impl Into<String>, measured: f64, target: f64, unit: &'static str) -> Line {
        Line { name: name.into(), measured, target, more: true, unit }
    }

    fn at_most(name: impl Into<String>, measured: f64, target: f64, unit: &'static str) -> Line {
        Line { name: name.into(), measured, target, more: false, unit }
    }

    fn ok(&self) -> bool {
        if self.more { self.measured >= self.target } else { self.measured <= self.target }
    }

    fn print(&self) {
        let Line { name, measured, target, unit, .. } = self;
        let sign = if self.more { ">=" } else { "<=" };
        let verdict = if self.ok() { "ok" } else { "SHORT" };
        println!("{name:<58} {measured:>10.3}{unit}  target {sign} {target}{unit}  {verdict}");
    }
}

/// Seconds that some work takes.
fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

/// Seconds of the fastest of several runs.
fn best(runs: usize, mut work: impl FnMut()) -> f64 {
    (0..runs).map(|_| seconds(&mut work)).fold(f64::INFINITY, f64::min)
}

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let mut rivals = vec![];
    if words.first().is_some_and(|word| word == "--rivals") && words.len() > 1 {
        rivals = rival::read(&words[1]);
        words.drain(..2);
    }
    let groups: &[&str] = match words.first().map(String::as_str) {
        None => &["noise", "accounting", "regression", "convex", "kan"],
        Some(_) => &words.iter().map(String::as_str).collect::<Vec<_>>(),
    };
    let mut lines = vec![];
    for group in groups {
        lines.extend(match *group {
            "noise" => noise::lines(),
            "accounting" => accounting::lines(&rivals),
            "regression" => regression::lines(&rivals),
            "convex" => convex::lines(&rivals),
            "kan" => kan::lines(&rivals),
            "recipe" => recipe::lines(),
            "breakdown" => regression::breakdown(),
            "memory" => memory::lines(),
            other => {
                eprintln!(
                    "{other}: wanted noise, accounting, regression, convex, kan, recipe, breakdown or memory"
                );
                return ExitCode::FAILURE;
            }
        });
    }
    lines.iter().for_each(Line::print);
    let short = lines.iter().filter(|l| !l.ok()).count();
    println!("{} targets, {short} short", lines.len());
    ExitCode::SUCCESS
}
