//! One line per target: what was measured, what was asked, ok or short.
//!
//! `make bench` runs it with the other libraries beside it; alone (`cargo run --release -p quietly-bench`) it measures what needs
//! no other library and says what it left out.
mod accounting;
mod noise;

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

/// Seconds of the fastest of several runs.
fn best(runs: usize, mut work: impl FnMut()) -> f64 {
    let once = |_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    };
    (0..runs).map(once).fold(f64::INFINITY, f64::min)
}

fn main() -> ExitCode {
    let rivals = std::env::args().nth(1);
    let mut lines = noise::lines();
    lines.extend(accounting::lines(rivals.as_deref()));
    lines.iter().for_each(Line::print);
    let short = lines.iter().filter(|l| !l.ok()).count();
    println!("{} targets, {short} short", lines.len());
    ExitCode::SUCCESS
}
