//! The mechanisms an account is made of, each as a dominating pair whose loss can be put on a grid.
use crate::{
    allocation,
    cells::{Cells, Side},
    laplace,
    law::{self, Law, Operation},
    mixture::{Kind, Mixture},
    objective::Objective,
};

/// One mechanism. Noise is measured in what one record can add; for `Replaced` and `Doubled`, in what one can change.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    /// Gaussian noise on a Poisson sample, add or remove.
    Poisson { rate: f64, sigma: f64 },
    /// Gaussian noise on a Poisson sample, replace one: `sigma` is noise over clip norm.
    Replaced { rate: f64, sigma: f64 },
    /// Gaussian noise on a sample of fixed size, whose pair has twice the clip norm as its gap: `sigma` is noise over that.
    Doubled { rate: f64, sigma: f64 },
    /// Gaussian noise on everything.
    Gaussian { sigma: f64 },
    /// Gaussian noise, the participation revealed: a mixture of (probability, μ).
    Known { laws: Vec<(f64, f64)> },
    /// Laplace noise.
    Laplace { scale: f64 },
    /// Anything ε-DP.
    Pure { epsilon: f64 },
    /// Anything (ε, δ)-DP.
    Promise { epsilon: f64, delta: f64 },
    /// The minimiser of a perturbed objective.
    Objective(Objective),
    /// One pass of random allocation.
    Allocation { steps: u64, sigma: f64 },
    /// Very many Poisson samples, as one.
    Many { sampled: Box<Part>, times: u64 },
}

/// Which of the two neighbouring tables is P.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// P has the record.
    Removed,
    /// Q has it.
    Added,
}

/// How finely to compute.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resolution {
    /// Step of the loss grid.
    pub(crate) step: f64,
    /// Atoms of a law of sums.
    pub(crate) points: usize,
    /// Mass that may be cut off at either end of one part's loss.
    pub(crate) tail: f64,
    /// The δ of interest.
    pub(crate) delta: f64,
}

/// A part made ready for one side; holds what both directions share.
pub(crate) enum Ready<'a> {
    Pair(&'a Part),
    Law(Law),
}

impl Part {
    /// Whether both directions have the same loss.
    pub(crate) fn is_symmetric(&self) -> bool {
        match self {
            Part::Poisson { .. } | Part::Allocation { .. } => false,
            Part::Many { sampled, .. } => sampled.is_symmetric(),
            _ => true,
        }
    }

    pub(crate) fn ready(&self, side: Side, resolution: Resolution) -> Ready<'_> {
        match self {
            Part::Allocation { steps, sigma } => Ready::Law(allocation::ratio(
                *steps,
                *sigma,
                resolution.points,
                resolution.delta,
                side,
            )),
            Part::Many { sampled, times } => {
                let (kind, rate, sigma) = match **sampled {
                    Part::Poisson { rate, sigma } => (Kind::Removed, rate, sigma),
                    Part::Replaced { rate, sigma } => (Kind::Replaced, rate, sigma),
                    _ => unreachable!("only Poisson samples are gathered"),
                };
                let Resolution { points, delta, .. } = resolution;
                let tail = delta * law::cut_share(*times, Operation::Product);
                let one = Mixture { kind, rate, sigma }.law(points, tail, side);
                Ready::Law(one.repeat(*times, Operation::Product, points, delta, side))
            }
            _ => Ready::Pair(self),
        }
    }

    /// Whether a step fine enough for this many repetitions needs more than a short grid: then the law is doubled up
    /// instead of transformed, unless single ratios are so large that products would soon pass its ceiling.
    pub(crate) fn is_fine(&self, times: u64, tail: f64) -> bool {
        let sampled = matches!(self, Part::Poisson { .. } | Part::Replaced { .. });
        let length = self.length(tail);
        sampled && times > 1 && length < 250.0 && length / (0.1 * self.spread()) > 60_000.0
    }

    /// The one pair of normal mixtures in a direction, for a closed form.
    pub(crate) fn mixture(&self, direction: Direction) -> Option<Mixture> {
        let (kind, rate, sigma) = match *self {
            Part::Poisson { rate, sigma } if direction == Direction::Removed => {
                (Kind::Removed, rate, sigma)
            }
            Part::Poisson { rate, sigma } => (Kind::Added, rate, sigma),
            Part::Replaced { rate, sigma } => (Kind::Replaced, rate, sigma),
            // Its positive losses are those of `Removed`.
            Part::Doubled { rate, sigma } => (Kind::Removed, rate, sigma),
            _ => return None,
        };
        Some(Mixture { kind, rate, sigma })
    }

    /// About the standard deviation of the loss, to choose a first step from.
    pub(crate) fn spread(&self) -> f64 {
        // Beyond 1/σ² = 4 rare large losses, not the variance, decide.
        let sampled =
            |rate: f64, sigma: f64| rate * (1.0 / (sigma * sigma)).min(4.0).exp_m1().sqrt();
        match self {
            Part::Poisson { rate, sigma } | Part::Doubled { rate, sigma } => {
                sampled(*rate, *sigma).max(0.02 * rate / sigma)
            }
            Part::Replaced { rate, sigma } => 2.0 * sampled(*rate, *sigma),
            Part::Gaussian { sigma } => 1.0 / sigma,
            Part::Known { laws } => laws.iter().map(|(p, mu)| p * mu * mu).sum::<f64>().sqrt(),
            Part::Laplace { scale } => 0.5 / scale,
            Part::Pure { epsilon } | Part::Promise { epsilon, .. } => *epsilon,
            Part::Objective(o) => o.least(),
            Part::Allocation { steps, sigma } => {
                ((1.0 / (sigma * sigma)).min(4.0).exp_m1() / *steps as f64).sqrt()
            }
            Part::Many { sampled, times } => sampled.spread() * (*times as f64).sqrt(),
        }
    }

    /// How many atoms a law of sums or products should have at first: its error is about combinations/points².
    pub(crate) fn points(&self) -> usize {
        let times = match self {
            Part::Allocation { steps, .. } => *steps,
            Part::Many { times, .. } => *times,
            _ => return 0,
        };
        ((150.0 * f64::from(law::combinations(times) + 1).sqrt()) as usize).max(300)
    }

    /// The length that the step should divide, where the loss has atoms.
    pub(crate) fn unit(&self) -> Option<f64> {
        match self {
            Part::Laplace { scale } => Some(1.0 / scale),
            Part::Pure { epsilon } | Part::Promise { epsilon, .. } => Some(*epsilon),
            _ => None,
        }
    }

    /// About how long the loss's range is.
    pub(crate) fn length(&self, tail: f64) -> f64 {
        let of = |kind, rate, sigma| {
            let (low, high) = Mixture { kind, rate, sigma }.span(tail);
            high - low
        };
        match *self {
            Part::Poisson { rate, sigma } => of(Kind::Removed, rate, sigma),
            Part::Replaced { rate, sigma } => of(Kind::Replaced, rate, sigma),
            Part::Doubled { rate, sigma } => of(Kind::Doubled, rate, sigma),
            Part::Gaussian { sigma } => of(Kind::Gaussian, 1.0, sigma),
            Part::Known { ref laws } => {
                let mu = laws.iter().map(|l| l.1).fold(1e-9, f64::max);
                of(Kind::Gaussian, 1.0, 1.0 / mu)
            }
            Part::Laplace { scale } => 2.0 / scale,
            Part::Pure { epsilon } | Part::Promise { epsilon, .. } => 2.0 * epsilon,
            Part::Objective(ref o) => o.top(tail),
            Part::Allocation { sigma, .. } => of(Kind::Gaussian, 1.0, sigma),
            Part::Many { ref sampled, .. } => sampled.length(tail) + 16.0 * self.spread(),
        }
    }
}

impl Ready<'_> {
    /// The loss on a grid; `None` if nothing is known of it.
    pub(crate) fn cells(
        &self,
        direction: Direction,
        side: Side,
        resolution: Resolution,
    ) -> Option<Cells> {
        let Resolution { step, tail, .. } = resolution;
        let mixture = |kind, rate, sigma| Mixture { kind, rate, sigma }.cells(step, tail);
        let part = match self {
            Ready::Law(law) => return law.cells(direction == Direction::Removed, side, step, tail),
            Ready::Pair(part) => part,
        };
        Some(match **part {
            Part::Poisson { rate, sigma } => match direction {
                Direction::Removed => mixture(Kind::Removed, rate, sigma),
                Direction::Added => mixture(Kind::Added, rate, sigma),
            },
            Part::Replaced { rate, sigma } => mixture(Kind::Replaced, rate, sigma),
            Part::Doubled { rate, sigma } => mixture(Kind::Doubled, rate, sigma),
            Part::Gaussian { sigma } => mixture(Kind::Gaussian, 1.0, sigma),
            Part::Known { ref laws } => known(laws, step, tail),
            Part::Laplace { scale } => laplace::laplace(scale, step),
            Part::Pure { epsilon } => laplace::promise(epsilon, 0.0, step),
            Part::Promise { epsilon, delta } => laplace::promise(epsilon, delta, step),
            // A record whose slope stays at its steepest is an instance: a Gaussian.
            Part::Objective(ref o) if side == Side::Below => {
                mixture(Kind::Gaussian, 1.0, 1.0 / o.least())
            }
            Part::Objective(ref o) => o.cells(step, tail),
            Part::Allocation { .. } | Part::Many { .. } => unreachable!("made ready as a law"),
        })
    }
}

/// A mixture of Gaussian losses whose component is known: the losses' laws average.
fn known(laws: &[(f64, f64)], step: f64, tail: f64) -> Cells {
    let parts: Vec<(f64, Cells)> = laws
        .iter()
        .filter(|(_, mu)| *mu > 0.0)
        .map(|&(p, mu)| {
            (p, Mixture { kind: Kind::Gaussian, rate: 1.0, sigma: 1.0 / mu }.cells(step, tail))
        })
        .collect();
    let first = parts.iter().map(|(_, c)| c.first).min().unwrap_or(0).min(-1);
    let last = parts.iter().map(|(_, c)| c.first + c.cells.len() as i64).max().unwrap_or(0).max(1);
    let mut sum = Cells::empty(step, first, (last - first) as usize);
    for (p, cells) in parts {
        for (j, cell) in cells.cells.iter().enumerate() {
            let into = &mut sum.cells[(cells.first - first) as usize + j];
            into.mass += p * cell.mass;
            into.a += p * cell.a;
            into.b += p * cell.b;
            into.slack += p * cell.slack;
        }
        sum.under += p * cells.under;
        // Moved up to the common top, which is safe from above; from below it is left out.
        sum.over_excess += p * (cells.over_excess + cells.over_rest);
    }
    let still: f64 = laws.iter().filter(|(_, mu)| *mu <= 0.0).map(|(p, _)| p).sum();
    if still > 0.0 {
        sum.add_atom(0.0, still);
    }
    sum
}
