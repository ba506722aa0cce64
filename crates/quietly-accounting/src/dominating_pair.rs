//! Mechanisms as dominating pairs (P, Q), whose privacy losses can be put on a grid.
//!
//! (P, Q) dominates a mechanism if its δ(ε) is at least that of the mechanism for every pair of
//! neighbours and every ε. Dominating pairs compose: Zhu, Dong and Wang, *Optimal Accounting of
//! Differential Privacy via Characteristic Function*, 2022, Theorem 10.
use crate::{
    laplace,
    objective_perturbation::ObjectivePerturbation,
    pld_grid::{LossCells, Side},
    random_allocation,
    ratio_distribution::{self, Operation, RatioDistribution},
    sampled_gaussian::{Kind, Mixture},
};

/// One mechanism. `sigma` is the noise over the sensitivity, unless said otherwise.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DominatingPair {
    /// Gaussian noise on a Poisson sample, add-remove.
    Poisson { rate: f64, sigma: f64 },
    /// Gaussian noise on a Poisson sample, replace-one. `sigma` is the noise over the clipping
    /// norm.
    PoissonReplaceOne { rate: f64, sigma: f64 },
    /// Gaussian noise on a sample of fixed size. Its pair is two clipping norms apart, and `sigma`
    /// is the noise over that distance.
    FixedSize { rate: f64, sigma: f64 },
    /// Gaussian noise on the full batch.
    Gaussian { sigma: f64 },
    /// Gaussian noise with the participation revealed: a mixture of (probability, μ).
    KnownParticipation { components: Vec<(f64, f64)> },
    /// Laplace noise.
    Laplace { scale: f64 },
    /// Any ε-DP mechanism.
    PureDp { epsilon: f64 },
    /// Any (ε, δ)-DP mechanism.
    ApproximateDp { epsilon: f64, delta: f64 },
    /// Objective perturbation.
    ObjectivePerturbation(ObjectivePerturbation),
    /// One epoch of random allocation.
    RandomAllocation { steps: u64, sigma: f64 },
    /// Very many Poisson samples, composed into one distribution of likelihood ratios.
    RepeatedPoisson { sampled: Box<DominatingPair>, times: u64 },
}

/// The direction of a pair: which of the two neighbouring tables is P.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// P has the unit, Q does not.
    Removed,
    /// Q has the unit, P does not.
    Added,
}

/// The resolution of a computation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resolution {
    /// Step of the loss grid.
    pub(crate) step: f64,
    /// Atoms of a [`RatioDistribution`].
    pub(crate) points: usize,
    /// Mass that may be truncated at either end of one loss.
    pub(crate) tail: f64,
    /// The δ of interest.
    pub(crate) delta: f64,
}

/// A pair prepared for one side. Holds what both directions share.
pub(crate) enum PreparedPair<'a> {
    Pair(&'a DominatingPair),
    Ratio(RatioDistribution),
}

impl DominatingPair {
    /// Whether both directions have the same loss.
    pub(crate) fn is_symmetric(&self) -> bool {
        match self {
            DominatingPair::Poisson { .. } | DominatingPair::RandomAllocation { .. } => false,
            DominatingPair::RepeatedPoisson { sampled, .. } => sampled.is_symmetric(),
            _ => true,
        }
    }

    pub(crate) fn prepare(&self, side: Side, resolution: Resolution) -> PreparedPair<'_> {
        match self {
            DominatingPair::RandomAllocation { steps, sigma } => PreparedPair::Ratio(
                random_allocation::ratio(*steps, *sigma, resolution.points, resolution.delta, side),
            ),
            DominatingPair::RepeatedPoisson { sampled, times } => {
                let (kind, rate, sigma) = match **sampled {
                    DominatingPair::Poisson { rate, sigma } => (Kind::Removed, rate, sigma),
                    DominatingPair::PoissonReplaceOne { rate, sigma } => {
                        (Kind::ReplaceOne, rate, sigma)
                    }
                    _ => unreachable!("only Poisson samples are repeated so"),
                };
                let Resolution { points, delta, .. } = resolution;
                let tail = delta * ratio_distribution::truncation_share(*times, Operation::Product);
                let one = Mixture { kind, rate, sigma }.ratio_distribution(points, tail, side);
                PreparedPair::Ratio(one.repeat(*times, Operation::Product, points, delta, side))
            }
            _ => PreparedPair::Pair(self),
        }
    }

    /// Whether the repetitions should be composed as a [`RatioDistribution`] and not by a Fourier
    /// transform: the step they need makes the grid long, and single ratios are not so large that
    /// products exceed the ceiling of a [`RatioDistribution`].
    pub(crate) fn is_fine(&self, times: u64, tail: f64) -> bool {
        let sampled = matches!(
            self,
            DominatingPair::Poisson { .. } | DominatingPair::PoissonReplaceOne { .. }
        );
        let length = self.length(tail);
        sampled && times > 1 && length < 250.0 && length / (0.1 * self.spread()) > 60_000.0
    }

    /// The pair of normal mixtures in a direction, if the δ of one release has a closed form.
    pub(crate) fn mixture(&self, direction: Direction) -> Option<Mixture> {
        let (kind, rate, sigma) = match *self {
            DominatingPair::Poisson { rate, sigma } if direction == Direction::Removed => {
                (Kind::Removed, rate, sigma)
            }
            DominatingPair::Poisson { rate, sigma } => (Kind::Added, rate, sigma),
            DominatingPair::PoissonReplaceOne { rate, sigma } => (Kind::ReplaceOne, rate, sigma),
            // Its positive losses are those of `Removed`.
            DominatingPair::FixedSize { rate, sigma } => (Kind::Removed, rate, sigma),
            _ => return None,
        };
        Some(Mixture { kind, rate, sigma })
    }

    /// About the standard deviation of the loss. The first step is chosen from it.
    pub(crate) fn spread(&self) -> f64 {
        // Beyond 1/σ² = 4 rare large losses matter, not the variance.
        let sampled =
            |rate: f64, sigma: f64| rate * (1.0 / (sigma * sigma)).min(4.0).exp_m1().sqrt();
        match self {
            DominatingPair::Poisson { rate, sigma } | DominatingPair::FixedSize { rate, sigma } => {
                sampled(*rate, *sigma).max(0.02 * rate / sigma)
            }
            DominatingPair::PoissonReplaceOne { rate, sigma } => 2.0 * sampled(*rate, *sigma),
            DominatingPair::Gaussian { sigma } => 1.0 / sigma,
            DominatingPair::KnownParticipation { components } => {
                components.iter().map(|(p, mu)| p * mu * mu).sum::<f64>().sqrt()
            }
            DominatingPair::Laplace { scale } => 0.5 / scale,
            DominatingPair::PureDp { epsilon } | DominatingPair::ApproximateDp { epsilon, .. } => {
                *epsilon
            }
            DominatingPair::ObjectivePerturbation(o) => o.least(),
            DominatingPair::RandomAllocation { steps, sigma } => {
                ((1.0 / (sigma * sigma)).min(4.0).exp_m1() / *steps as f64).sqrt()
            }
            DominatingPair::RepeatedPoisson { sampled, times } => {
                sampled.spread() * (*times as f64).sqrt()
            }
        }
    }

    /// The first number of atoms for a distribution of sums or products. Its error is about
    /// combinations/points².
    pub(crate) fn points(&self) -> usize {
        let times = match self {
            DominatingPair::RandomAllocation { steps, .. } => *steps,
            DominatingPair::RepeatedPoisson { times, .. } => *times,
            _ => return 0,
        };
        ((150.0 * f64::from(ratio_distribution::combinations(times) + 1).sqrt()) as usize).max(300)
    }

    /// The loss that the step should divide, where the loss has atoms.
    pub(crate) fn unit(&self) -> Option<f64> {
        match self {
            DominatingPair::Laplace { scale } => Some(1.0 / scale),
            DominatingPair::PureDp { epsilon } | DominatingPair::ApproximateDp { epsilon, .. } => {
                Some(*epsilon)
            }
            _ => None,
        }
    }

    /// About the length of the loss's range.
    pub(crate) fn length(&self, tail: f64) -> f64 {
        let of = |kind, rate, sigma| {
            let (low, high) = Mixture { kind, rate, sigma }.span(tail);
            high - low
        };
        match *self {
            DominatingPair::Poisson { rate, sigma } => of(Kind::Removed, rate, sigma),
            DominatingPair::PoissonReplaceOne { rate, sigma } => of(Kind::ReplaceOne, rate, sigma),
            DominatingPair::FixedSize { rate, sigma } => of(Kind::Symmetrised, rate, sigma),
            DominatingPair::Gaussian { sigma } => of(Kind::Gaussian, 1.0, sigma),
            DominatingPair::KnownParticipation { ref components } => {
                let mu = components.iter().map(|l| l.1).fold(1e-9, f64::max);
                of(Kind::Gaussian, 1.0, 1.0 / mu)
            }
            DominatingPair::Laplace { scale } => 2.0 / scale,
            DominatingPair::PureDp { epsilon } | DominatingPair::ApproximateDp { epsilon, .. } => {
                2.0 * epsilon
            }
            DominatingPair::ObjectivePerturbation(ref o) => o.top(tail),
            DominatingPair::RandomAllocation { sigma, .. } => of(Kind::Gaussian, 1.0, sigma),
            DominatingPair::RepeatedPoisson { ref sampled, .. } => {
                sampled.length(tail) + 16.0 * self.spread()
            }
        }
    }
}

impl PreparedPair<'_> {
    /// The loss on a grid; `None` if there is no bound on it.
    pub(crate) fn cells(
        &self,
        direction: Direction,
        side: Side,
        resolution: Resolution,
    ) -> Option<LossCells> {
        let Resolution { step, tail, .. } = resolution;
        let mixture = |kind, rate, sigma| Mixture { kind, rate, sigma }.cells(step, tail);
        let pair = match self {
            PreparedPair::Ratio(ratio) => {
                return ratio.cells(direction == Direction::Removed, side, step, tail);
            }
            PreparedPair::Pair(pair) => pair,
        };
        Some(match **pair {
            DominatingPair::Poisson { rate, sigma } => match direction {
                Direction::Removed => mixture(Kind::Removed, rate, sigma),
                Direction::Added => mixture(Kind::Added, rate, sigma),
            },
            DominatingPair::PoissonReplaceOne { rate, sigma } => {
                mixture(Kind::ReplaceOne, rate, sigma)
            }
            DominatingPair::FixedSize { rate, sigma } => mixture(Kind::Symmetrised, rate, sigma),
            DominatingPair::Gaussian { sigma } => mixture(Kind::Gaussian, 1.0, sigma),
            DominatingPair::KnownParticipation { ref components } => known(components, step, tail),
            DominatingPair::Laplace { scale } => laplace::laplace(scale, step),
            DominatingPair::PureDp { epsilon } => laplace::approximate_dp(epsilon, 0.0, step),
            DominatingPair::ApproximateDp { epsilon, delta } => {
                laplace::approximate_dp(epsilon, delta, step)
            }
            // A unit whose derivative stays at its largest is an instance: a Gaussian.
            DominatingPair::ObjectivePerturbation(ref o) if side == Side::Below => {
                mixture(Kind::Gaussian, 1.0, 1.0 / o.least())
            }
            DominatingPair::ObjectivePerturbation(ref o) => o.cells(step, tail),
            DominatingPair::RandomAllocation { .. } | DominatingPair::RepeatedPoisson { .. } => {
                unreachable!("prepared as a ratio distribution")
            }
        })
    }
}

/// A mixture of Gaussian losses whose component is revealed: the distributions of the losses
/// average.
fn known(components: &[(f64, f64)], step: f64, tail: f64) -> LossCells {
    let parts: Vec<(f64, LossCells)> = components
        .iter()
        .filter(|(_, mu)| *mu > 0.0)
        .map(|&(p, mu)| {
            (p, Mixture { kind: Kind::Gaussian, rate: 1.0, sigma: 1.0 / mu }.cells(step, tail))
        })
        .collect();
    let first = parts.iter().map(|(_, c)| c.first).min().unwrap_or(0).min(-1);
    let last = parts.iter().map(|(_, c)| c.first + c.cells.len() as i64).max().unwrap_or(0).max(1);
    let mut sum = LossCells::empty(step, first, (last - first) as usize);
    for (p, cells) in parts {
        for (j, cell) in cells.cells.iter().enumerate() {
            let into = &mut sum.cells[(cells.first - first) as usize + j];
            into.mass += p * cell.mass;
            into.a += p * cell.a;
            into.b += p * cell.b;
            into.slack += p * cell.slack;
        }
        sum.under += p * cells.under;
        // Moved up to the common top, which is safe from above; from below it is omitted.
        sum.over_excess += p * (cells.over_excess + cells.over_rest);
    }
    let still: f64 = components.iter().filter(|(_, mu)| *mu <= 0.0).map(|(p, _)| p).sum();
    if still > 0.0 {
        sum.add_atom(0.0, still);
    }
    sum
}
