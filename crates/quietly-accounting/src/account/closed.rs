//! Closed forms: a single release, and simple composition.
use super::{Account, crossing, exceeds};
use crate::{
    compose::Target,
    gaussian,
    interval::Interval,
    part::{Direction, Part},
};

impl Account {
    /// A single release has a closed form.
    pub(super) fn single(&self, target: Target) -> Option<Interval> {
        let [(part, 1)] = &self.parts[..] else { return None };
        if self.mu_squared > 0.0 {
            return None;
        }
        if part.mixture(Direction::Removed).is_some() {
            let pairs = [Direction::Removed, Direction::Added]
                .map(|d| part.mixture(d).expect("so has the other"));
            let delta = |e: f64| {
                pairs
                    .map(|p| p.delta(e))
                    .into_iter()
                    .fold((0.0, 0.0), |a, b| (b.0.max(a.0), b.1.max(a.1)))
            };
            return Some(match target {
                Target::Epsilon(e) => Interval::new(delta(e).0, delta(e).1.min(1.0)),
                Target::Delta(d) => Interval::new(
                    crossing(|e| delta(e).0 > d).0,
                    crossing(|e| exceeds(delta(e).1, d)).1,
                ),
            });
        }
        if let Part::Promise { epsilon, delta } = *part {
            return Some(promised(epsilon, delta, target));
        }
        // δ = 1 - e^((ε - 1/b)/2) for Laplace, (1 - e^(ε-ε₀))/(1 + e^-ε₀) for a pure pair, and their inverses. A few units of ε
        // are lost in ε₀ - ε.
        let (value, top) = match (part, target) {
            (Part::Laplace { scale }, Target::Delta(d)) => {
                (1.0 / scale + 2.0 * (-d).ln_1p(), 1.0 / scale)
            }
            (Part::Laplace { scale }, Target::Epsilon(e)) => {
                (-(0.5 * (e - 1.0 / scale)).exp_m1(), 1.0 / scale)
            }
            (Part::Pure { epsilon }, Target::Delta(d)) => {
                let share = (d * (1.0 + (-epsilon).exp())).min(1.0);
                (epsilon + (-share).ln_1p(), *epsilon)
            }
            (Part::Pure { epsilon }, Target::Epsilon(e)) => {
                (-(e - epsilon).exp_m1() / (1.0 + (-epsilon).exp()), *epsilon)
            }
            _ => return None,
        };
        let slack = 16.0 * f64::EPSILON * (1.0 + top);
        let value = value.max(0.0);
        let most = if matches!(target, Target::Delta(_)) { top } else { 1.0 };
        Some(Interval::new(
            value * (1.0 - 1e-12) - slack,
            (value * (1.0 + 1e-12) + slack).min(most * (1.0 + 1e-12)),
        ))
    }

    /// A bound by simple composition, each part at its own share of δ and without amplification: finite where a ratio or a
    /// window is too large to compute with. Promises take the δ they need, pure parts none, and the others equal shares.
    pub(super) fn simple(&self, target: Target) -> f64 {
        let Target::Delta(delta) = target else { return 1.0 };
        let promised = |(part, times): &(Part, u64)| match part {
            Part::Promise { delta, .. } => *times as f64 * delta * (1.0 + 1e-12),
            _ => 0.0,
        };
        let takes_share = |(part, _): &&(Part, u64)| {
            !matches!(part, Part::Laplace { .. } | Part::Pure { .. } | Part::Promise { .. })
        };
        let others = self.parts.iter().filter(takes_share).count();
        let others = others + usize::from(self.mu_squared > 0.0);
        // The difference has the rounding of its terms.
        let left = delta * (1.0 - 1e-15) - self.parts.iter().map(promised).sum::<f64>();
        if left < 0.0 || (others > 0 && left == 0.0) {
            return f64::INFINITY;
        }
        let share = left / others.max(1) as f64;
        let gaussian = |mu: f64| gaussian::epsilon(mu * (1.0 + 1e-12), share).upper;
        let one = |(part, times): &(Part, u64)| {
            let t = *times as f64;
            match part {
                Part::Laplace { scale } => t / scale * (1.0 + 1e-12),
                Part::Pure { epsilon } | Part::Promise { epsilon, .. } => {
                    t * epsilon * (1.0 + 1e-12)
                }
                Part::Objective(_) => f64::INFINITY,
                Part::Replaced { sigma, .. } => gaussian(2.0 * t.sqrt() / sigma),
                Part::Poisson { sigma, .. }
                | Part::Doubled { sigma, .. }
                | Part::Gaussian { sigma }
                | Part::Allocation { sigma, .. } => gaussian(t.sqrt() / sigma),
                Part::Known { laws } => {
                    gaussian(t.sqrt() * laws.iter().map(|l| l.1).fold(0.0, f64::max))
                }
                Part::Many { sampled, times } => {
                    let inner = Account {
                        mu_squared: 0.0,
                        parts: vec![((**sampled).clone(), *times)],
                        large: false,
                    };
                    inner.simple(Target::Delta(share))
                }
            }
        };
        let exact = match self.mu_squared.sqrt() {
            0.0 => 0.0,
            mu => gaussian(mu),
        };
        exact + self.parts.iter().map(one).sum::<f64>()
    }
}

/// One promise: δ(e) = δ + (1 - δ)·pure(e), where pure is the curve of ε alone, and its inverse.
fn promised(epsilon: f64, delta: f64, target: Target) -> Interval {
    let pure = |target| Account::part(Part::Pure { epsilon }).single(target).expect("it has one");
    match target {
        Target::Epsilon(e) => {
            let found = pure(Target::Epsilon(e));
            let with = |d: f64| (delta + (1.0 - delta) * d).min(1.0);
            Interval::new(
                with(found.lower) * (1.0 - 1e-12),
                (with(found.upper) * (1.0 + 1e-12)).min(1.0),
            )
        }
        Target::Delta(d) if d < delta => Interval::new(f64::INFINITY, f64::INFINITY),
        // A little less δ above, a little more below: the difference has the rounding of its terms.
        Target::Delta(d) => {
            let left = |slack: f64| ((d - delta) / (1.0 - delta) + slack * d).max(0.0);
            Interval::new(
                pure(Target::Delta(left(1e-15))).lower,
                pure(Target::Delta(left(-1e-15))).upper,
            )
        }
    }
}
