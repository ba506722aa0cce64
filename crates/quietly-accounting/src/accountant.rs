//! The accountant: the cost of an event as ε at a δ, δ at an ε, and the curve of both.
use crate::{
    convolution::Target,
    error::Error,
    event::{Event, Kind, Neighbours},
    interval::Interval,
    monte_carlo, renyi,
    theorems::{Branch, branches},
};

/// A certified interval for the ε or the δ of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct PrivacyBound {
    /// What some pair of neighbouring tables leaks. No valid accountant can report less.
    pub lower: f64,
    /// A certified upper bound; `f64::INFINITY` if there is no finite one.
    pub upper: f64,
    /// The theorem of the upper bound.
    pub method: &'static str,
    /// The failure probability of an upper bound found by Monte Carlo; zero for other methods. It
    /// is included in δ.
    pub failure: f64,
    /// The neighbouring relation.
    pub neighbours: Neighbours,
}

impl PrivacyBound {
    /// The width of the interval over its upper end.
    pub fn relative_width(&self) -> f64 {
        Interval { lower: self.lower, upper: self.upper }.relative_width()
    }
}

/// The ε that `event` costs at `delta`.
///
/// # Errors
///
/// [`Error::Parameter`] unless `delta` is in [1e-12, 0.5]; [`Error::Unsupported`] if no theorem
/// covers the event.
pub fn epsilon(event: &Event, neighbours: Neighbours, delta: f64) -> Result<PrivacyBound, Error> {
    bound(event, neighbours, Target::Delta(Error::delta(delta)?))
}

/// The δ at which `event` is (`epsilon`, δ)-private.
///
/// # Errors
///
/// [`Error::Parameter`] unless `epsilon` is in [0.001, 1000]; [`Error::Unsupported`] if no theorem
/// covers the event.
pub fn delta(event: &Event, neighbours: Neighbours, epsilon: f64) -> Result<PrivacyBound, Error> {
    bound(event, neighbours, Target::Epsilon(Error::epsilon(epsilon)?))
}

/// The δ of a curve, in groups. One composition serves a group and is tuned to its second δ.
const CURVE: [&[f64]; 4] =
    [&[1e-12, 1e-11, 1e-10], &[1e-9, 1e-8, 1e-7], &[1e-6, 1e-5, 1e-4], &[1e-3, 1e-2, 0.1, 0.5]];

/// Certified upper bounds (δ, ε) at thirteen δ from 1e-12 to 0.5.
///
/// They are computed quickly, and are about one percent above those of [`epsilon`].
///
/// # Errors
///
/// [`Error::Unsupported`] if no theorem covers the event.
pub fn curve(event: &Event, neighbours: Neighbours) -> Result<Vec<(f64, f64)>, Error> {
    let branches = branches(event, neighbours)?;
    let group = |deltas: &[f64]| {
        let targets: Vec<Target> = deltas.iter().map(|delta| Target::Delta(*delta)).collect();
        let mut worst = vec![0.0; deltas.len()];
        for branch in &branches {
            let uppers = branch.uppers(neighbours, targets[1], &targets, 3.0);
            worst.iter_mut().zip(uppers).for_each(|(worst, upper)| *worst = upper.max(*worst));
        }
        deltas.iter().copied().zip(worst).collect::<Vec<(f64, f64)>>()
    };
    // Two threads: the user waits for a curve.
    let (first, last) = CURVE.split_at(CURVE.len() / 2);
    let part = |groups: &[&[f64]]| groups.iter().flat_map(|deltas| group(deltas)).collect();
    let mut all: Vec<(f64, f64)> = std::thread::scope(|scope| {
        let first = scope.spawn(|| -> Vec<(f64, f64)> { part(first) });
        let last: Vec<(f64, f64)> = part(last);
        [first.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), last].concat()
    });
    // An ε that holds at a δ holds at every larger δ.
    let mut least = f64::INFINITY;
    for (_, epsilon) in &mut all {
        least = least.min(*epsilon);
        *epsilon = least;
    }
    Ok(all)
}

/// Above this relative width other theorems are tried. The second constant is the work that Monte
/// Carlo may take: about half a second.
const WIDE: f64 = 0.05;
const MONTE_CARLO_WORK: u64 = 300_000_000;

fn bound(event: &Event, neighbours: Neighbours, target: Target) -> Result<PrivacyBound, Error> {
    Ok(interval(event, &branches(event, neighbours)?, neighbours, target))
}

fn interval(
    event: &Event,
    branches: &[Branch],
    neighbours: Neighbours,
    target: Target,
) -> PrivacyBound {
    let mut worst =
        PrivacyBound { lower: 0.0, upper: 0.0, method: "none", failure: 0.0, neighbours };
    for branch in branches {
        let answer = branch.answer(neighbours, target);
        if answer.upper > worst.upper || worst.method == "none" {
            (worst.upper, worst.method) = (answer.upper, answer.method);
        }
        worst.lower = worst.lower.max(answer.lower);
    }
    if worst.relative_width() > WIDE || event.has_exponential() {
        worst.improve(event, target);
    }
    worst.lower = worst.lower.min(worst.upper);
    worst
}

impl PrivacyBound {
    /// Tries other theorems where the interval is wide: Rényi divergences, which suit exponential
    /// mechanisms, and Monte Carlo on the exact likelihood ratio, for correlated noise with random
    /// participation.
    fn improve(&mut self, event: &Event, target: Target) {
        let Target::Delta(delta) = target else { return };
        if let Ok(upper) = renyi::epsilon(event, self.neighbours, delta)
            && upper < self.upper
        {
            (self.upper, self.method) = (upper, "Rényi divergence");
        }
        let Kind::Correlated(run) = &event.kind else { return };
        if self.neighbours == Neighbours::AddRemove
            && let Some(found) = monte_carlo::epsilon(run, delta, self.upper, MONTE_CARLO_WORK)
            && found.epsilon < self.upper
        {
            (self.upper, self.method) = (found.epsilon, "exact likelihood ratio, Monte Carlo");
            self.failure = found.failure;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The curve is above the certified leak, at most a few percent above [`epsilon`], and
    /// decreasing.
    #[test]
    fn a_curve_is_close_above_epsilon() {
        let event = |kind: u32| -> Result<Event, Error> {
            match kind {
                0 => Event::gaussian(3.0),
                1 => Event::poisson(0.01, 1.0)?.repeat(1000),
                2 => Event::poisson(0.2, 30.0)?.repeat(100),
                3 => Event::random_allocation(20, 1, 2.0),
                4 => Event::laplace(40.0)?.repeat(100),
                _ => {
                    let run = Event::poisson(0.05, 2.0)?.repeat(300)?;
                    Ok(run.then(Event::laplace(5.0)?).then(Event::gaussian(8.0)?))
                }
            }
        };
        for kind in 0..6 {
            let event = event(kind).unwrap();
            for neighbours in [Neighbours::AddRemove, Neighbours::ReplaceOne] {
                let curve = curve(&event, neighbours).unwrap();
                assert_eq!(curve.len(), 13);
                assert!(curve.is_sorted_by(|a, b| a.0 < b.0 && a.1 >= b.1), "{kind}");
                for (delta, upper) in curve {
                    let fine = epsilon(&event, neighbours, delta).unwrap();
                    assert!(upper >= fine.lower, "{kind} {delta} {upper} {fine:?}");
                    let close = 1.04 * fine.upper + 0.002;
                    assert!(upper <= close, "{kind} {delta} {upper} {fine:?}");
                }
            }
        }
    }
}
