//! Accountants: width, agreement and speed beside the libraries people use.
use crate::{Line, best};
use quietly_accounting::{Error, Event, Neighbours, calibrate, epsilon};
use serde::Deserialize;
use std::hint::black_box;

const DELTA: f64 = 1e-5;

/// A line that `rivals.py` printed.
#[derive(Deserialize)]
struct Rival {
    scheme: String,
    parameters: Vec<f64>,
    lower: f64,
    upper: f64,
    seconds: f64,
}

fn event(rival: &Rival, noise: f64) -> Result<Event, Error> {
    let p = &rival.parameters;
    match rival.scheme.as_str() {
        "poisson" => Event::poisson(p[0], noise)?.repeat(p[2] as u64),
        _ => Event::allocation(p[0] as u64, 1, noise),
    }
}

pub(crate) fn lines(rivals: Option<&str>) -> Vec<Line> {
    let Some(path) = rivals else {
        println!("left out: accountants (run `make bench`)");
        return vec![];
    };
    let text = std::fs::read_to_string(path).expect("the file that rivals.py wrote");
    let mut lines = vec![];
    for row in text.lines() {
        let rival: Rival = serde_json::from_str(row).expect("a line of rivals.py");
        lines.extend(compare(&rival));
    }
    lines
}

fn compare(rival: &Rival) -> Vec<Line> {
    let add_remove = Neighbours::AddRemove;
    let noise = rival.parameters[1];
    let name = format!("{} {:?}", rival.scheme, rival.parameters);
    let run = event(rival, noise).expect("valid parameters");
    let ask = || epsilon(&run, add_remove, DELTA).expect("a supported event");
    let answer = ask();
    let seconds = best(7, || {
        black_box(ask());
    });
    // Zero where the intervals meet, else how far they are apart.
    let apart =
        (rival.lower - answer.upper).max(answer.lower - rival.upper).max(0.0) / answer.upper;
    let mut lines = vec![
        Line::at_most(format!("{name}: relative width"), 100.0 * answer.relative_width(), 0.5, "%"),
        Line::at_most(format!("{name}: distance from theirs"), 100.0 * apart, 0.0, "%"),
        Line::at_least(format!("{name}: times faster"), rival.seconds / seconds, 20.0, "x"),
    ];
    if rival.scheme == "poisson" || noise == 1.0 || rival.parameters[0] == 10_000.0 {
        let seconds = best(3, || {
            black_box(calibrate(|n| event(rival, n), add_remove, 1.0, DELTA).expect("reachable"));
        });
        lines.push(Line::at_most(format!("{name}: calibration to epsilon 1"), seconds, 0.2, "s"));
    }
    lines
}
