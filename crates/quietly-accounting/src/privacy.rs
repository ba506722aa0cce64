//! The questions: what does an event cost?
use crate::{
    branch::{Branch, branches},
    compose::Target,
    error::Error,
    event::{Event, Kind, Neighbours},
    interval::Interval,
    renyi, sampling,
};

/// A certified answer.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Answer {
    /// What some pair of neighbouring tables is known to leak: no accountant can promise less.
    pub lower: f64,
    /// What may be promised; `f64::INFINITY` if nothing finite can.
    pub upper: f64,
    /// The theorem behind the upper end.
    pub method: &'static str,
    /// The probability that the upper end, found by sampling with a fixed seed, is wrong; zero for all other methods. It is
    /// counted inside δ already.
    pub failure: f64,
    /// The neighbouring relation it holds for.
    pub neighbours: Neighbours,
}

impl Answer {
    /// (upper - lower) / upper.
    pub fn relative_width(&self) -> f64 {
        Interval { lower: self.lower, upper: self.upper }.relative_width()
    }
}

/// The ε that `event` costs at `delta`.
///
/// # Errors
///
/// [`Error::Parameter`] unless `delta` is in [1e-12, 0.5]; [`Error::Unsupported`] where there is no theorem.
pub fn epsilon(event: &Event, neighbours: Neighbours, delta: f64) -> Result<Answer, Error> {
    ask(event, neighbours, Target::Delta(Error::delta(delta)?))
}

/// The δ at which `event` is (`epsilon`, δ)-private.
///
/// # Errors
///
/// [`Error::Parameter`] unless `epsilon` is in [0.001, 1000]; [`Error::Unsupported`] where there is no theorem.
pub fn delta(event: &Event, neighbours: Neighbours, epsilon: f64) -> Result<Answer, Error> {
    ask(event, neighbours, Target::Epsilon(Error::epsilon(epsilon)?))
}

/// (δ, ε) at thirteen δ from 1e-12 to 0.5: the whole curve of certified upper ends, drawn quickly, a percent or so above what
/// [`epsilon`] gives.
pub fn curve(event: &Event, neighbours: Neighbours) -> Result<Vec<(f64, f64)>, Error> {
    let branches = branches(event, neighbours)?;
    let upper = |delta: f64| {
        let each = branches.iter().map(|b| b.upper(neighbours, Target::Delta(delta), 3.0));
        each.fold(0.0, f64::max)
    };
    let deltas: Vec<f64> = (1..=12).rev().map(|k| 10.0_f64.powi(-k)).chain([0.5]).collect();
    let part = |deltas: &[f64]| deltas.iter().map(|d| (*d, upper(*d))).collect::<Vec<_>>();
    let (first, last) = deltas.split_at(deltas.len() / 2);
    // Two threads: nobody waits for a curve as gladly as for a fit.
    Ok(std::thread::scope(|scope| {
        let first = scope.spawn(|| part(first));
        let last = part(last);
        [first.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), last].concat()
    }))
}
/// From which relative width on other theorems are tried, and the work that sampling may take: about half a second.
const WIDE: f64 = 0.05;
const SAMPLING: u64 = 300_000_000;

fn ask(event: &Event, neighbours: Neighbours, target: Target) -> Result<Answer, Error> {
    Ok(answer(event, &branches(event, neighbours)?, neighbours, target))
}

fn answer(event: &Event, branches: &[Branch], neighbours: Neighbours, target: Target) -> Answer {
    let mut worst = Answer { lower: 0.0, upper: 0.0, method: "none", failure: 0.0, neighbours };
    for branch in branches {
        let answer = branch.answer(neighbours, target);
        if answer.upper > worst.upper || worst.method == "none" {
            (worst.upper, worst.method) = (answer.upper, answer.method);
        }
        worst.lower = worst.lower.max(answer.lower);
    }
    if worst.relative_width() > WIDE || event.has_selection() {
        worst.improve(event, target);
    }
    worst.lower = worst.lower.min(worst.upper);
    worst
}

impl Answer {
    /// Other theorems, tried where the bracket is wide: Rényi divergences, which suit selections, and the exact likelihood ratio
    /// by sampling, for correlated noise with random participation.
    fn improve(&mut self, event: &Event, target: Target) {
        let Target::Delta(delta) = target else { return };
        if let Ok(upper) = renyi::epsilon(event, self.neighbours, delta)
            && upper < self.upper
        {
            (self.upper, self.method) = (upper, "Rényi divergence");
        }
        let Kind::Correlated(run) = &event.kind else { return };
        if self.neighbours == Neighbours::AddRemove
            && let Some(found) = sampling::epsilon(run, delta, self.upper, SAMPLING)
            && found.epsilon < self.upper
        {
            (self.upper, self.method) = (found.epsilon, "exact likelihood ratio, sampled");
            self.failure = found.failure;
        }
    }
}
