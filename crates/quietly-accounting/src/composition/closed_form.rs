//! Closed forms: a single release, and basic composition.
use super::{Composition, crossing, exceeds};
use crate::{
    convolution::Target,
    dominating_pair::{Direction, DominatingPair},
    gaussian,
    interval::Interval,
};

impl Composition {
    /// The cost of a single release with a closed form.
    pub(super) fn single(&self, target: Target) -> Option<Interval> {
        let [(pair, 1)] = &self.pairs[..] else { return None };
        if self.mu_squared > 0.0 {
            return None;
        }
        if pair.mixture(Direction::Removed).is_some() {
            let pairs = [Direction::Removed, Direction::Added]
                .map(|d| pair.mixture(d).expect("both directions have one"));
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
        if let DominatingPair::ApproximateDp { epsilon, delta } = *pair {
            return Some(approximate_dp(epsilon, delta, target));
        }
        // δ = 1 - e^((ε - 1/b)/2) for Laplace noise, (1 - e^(ε-ε₀))/(1 + e^-ε₀) for pure DP, and
        // their inverses. The difference ε₀ - ε loses a few units.
        let (value, top) = match (pair, target) {
            (DominatingPair::Laplace { scale }, Target::Delta(d)) => {
                (1.0 / scale + 2.0 * (-d).ln_1p(), 1.0 / scale)
            }
            (DominatingPair::Laplace { scale }, Target::Epsilon(e)) => {
                (-(0.5 * (e - 1.0 / scale)).exp_m1(), 1.0 / scale)
            }
            (DominatingPair::PureDp { epsilon }, Target::Delta(d)) => {
                let share = (d * (1.0 + (-epsilon).exp())).min(1.0);
                (epsilon + (-share).ln_1p(), *epsilon)
            }
            (DominatingPair::PureDp { epsilon }, Target::Epsilon(e)) => {
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

    /// A bound by basic composition, without amplification. It is finite even where a ratio or a
    /// window is too large for the numerical methods. Approximate-DP mechanisms take the δ they
    /// need, pure ones take none, and the others take equal shares.
    pub(super) fn basic(&self, target: Target) -> f64 {
        let Target::Delta(delta) = target else { return 1.0 };
        let taken = |(pair, times): &(DominatingPair, u64)| match pair {
            DominatingPair::ApproximateDp { delta, .. } => *times as f64 * delta * (1.0 + 1e-12),
            _ => 0.0,
        };
        let takes_share = |(pair, _): &&(DominatingPair, u64)| {
            !matches!(
                pair,
                DominatingPair::Laplace { .. }
                    | DominatingPair::PureDp { .. }
                    | DominatingPair::ApproximateDp { .. }
            )
        };
        let others = self.pairs.iter().filter(takes_share).count();
        let others = others + usize::from(self.mu_squared > 0.0);
        // The slack covers the rounding of the difference.
        let left = delta * (1.0 - 1e-15) - self.pairs.iter().map(taken).sum::<f64>();
        if left < 0.0 || (others > 0 && left == 0.0) {
            return f64::INFINITY;
        }
        let share = left / others.max(1) as f64;
        let gaussian = |mu: f64| gaussian::epsilon(mu * (1.0 + 1e-12), share).upper;
        let one = |(pair, times): &(DominatingPair, u64)| {
            let t = *times as f64;
            match pair {
                DominatingPair::Laplace { scale } => t / scale * (1.0 + 1e-12),
                DominatingPair::PureDp { epsilon }
                | DominatingPair::ApproximateDp { epsilon, .. } => t * epsilon * (1.0 + 1e-12),
                DominatingPair::ObjectivePerturbation(_) => f64::INFINITY,
                DominatingPair::PoissonReplaceOne { sigma, .. } => gaussian(2.0 * t.sqrt() / sigma),
                DominatingPair::Poisson { sigma, .. }
                | DominatingPair::FixedSize { sigma, .. }
                | DominatingPair::Gaussian { sigma }
                | DominatingPair::RandomAllocation { sigma, .. } => gaussian(t.sqrt() / sigma),
                DominatingPair::KnownParticipation { components } => {
                    gaussian(t.sqrt() * components.iter().map(|c| c.1).fold(0.0, f64::max))
                }
                DominatingPair::RepeatedPoisson { sampled, times } => {
                    let inner = Composition {
                        mu_squared: 0.0,
                        pairs: vec![((**sampled).clone(), *times)],
                        large: false,
                    };
                    inner.basic(Target::Delta(share))
                }
            }
        };
        let exact = match self.mu_squared.sqrt() {
            0.0 => 0.0,
            mu => gaussian(mu),
        };
        exact + self.pairs.iter().map(one).sum::<f64>()
    }
}

/// One approximate-DP mechanism: δ(e) = δ + (1 - δ)·pure(e), where pure is the curve of ε alone,
/// and its inverse.
fn approximate_dp(epsilon: f64, delta: f64, target: Target) -> Interval {
    let pure = |target| {
        Composition::of(DominatingPair::PureDp { epsilon })
            .single(target)
            .expect("pure DP has a closed form")
    };
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
        // Slightly less δ above and slightly more below cover the rounding of the difference.
        Target::Delta(d) => {
            let left = |slack: f64| ((d - delta) / (1.0 - delta) + slack * d).max(0.0);
            Interval::new(
                pure(Target::Delta(left(1e-15))).lower,
                pure(Target::Delta(left(-1e-15))).upper,
            )
        }
    }
}
