//! Accountants: width, agreement and speed beside the libraries people use.
use crate::{Line, best, rival::Rival};
use quietly_accounting::{Error, Event, Neighbours, calibrate, epsilon};
use std::hint::black_box;

const DELTA: f64 = 1e-5;

fn event(rival: &Rival, noise: f64) -> Result<Event, Error> {
    let p = &rival.parameters;
    match rival.scheme.as_str() {
        "poisson" => Event::poisson(p[0], noise)?.repeat(p[2] as u64),
        _ => Event::random_allocation(p[0] as u64, 1, noise),
    }
}

pub(crate) fn lines(rivals: &[Rival]) -> Vec<Line> {
    let rivals = || rivals.iter().filter(|r| r.lower.is_some());
    if rivals().next().is_none() {
        println!("left out: accountants (run `make bench`)");
    }
    rivals().flat_map(compare).collect()
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
    let (lower, upper) = (rival.lower.unwrap_or(0.0), rival.upper.unwrap_or(f64::INFINITY));
    let apart = (lower - answer.upper).max(answer.lower - upper).max(0.0) / answer.upper;
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
