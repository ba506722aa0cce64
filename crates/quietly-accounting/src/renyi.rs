//! The Rényi accountant, independent of the first: closed forms, no grid, no Fourier transform.
//!
//! Shares nothing but the normal distribution with [`epsilon`](crate::epsilon), so that each can be
//! held against the other. Its answers are upper bounds too, a few percent to several times larger;
//! they take microseconds and add up order by order.
//!
//! ```
//! use quietly_accounting::{Event, Neighbours, epsilon, renyi};
//!
//! let run = Event::poisson(0.01, 1.0)?.repeat(1000)?;
//! let quick = renyi::epsilon(&run, Neighbours::AddRemove, 1e-5)?;
//! let sharp = epsilon(&run, Neighbours::AddRemove, 1e-5)?;
//! assert!(sharp.upper < quick && quick < 2.11);
//! # Ok::<(), quietly_accounting::Error>(())
//! ```
//!
//! | event | theorem |
//! | --- | --- |
//! | Gaussian | D = α/2σ², both directions (Mironov 2017, [arXiv:1702.07476], Corollary 3) |
//! | Laplace | exact, both directions (same, Corollary 2) |
//! | selection | exact for its bounded range, both directions; at most αε²/8 (Cesar and Rogers, [arXiv:2004.07223]) |
//! | Poisson, add-remove | exact; removing dominates adding (Mironov, Talwar and Zhang, [arXiv:1908.10530], Theorem 5) |
//! | fixed size | Wang, Balle and Kasiviswanathan, [arXiv:1808.00087], Theorem 27, both directions |
//! | Poisson, replace-one | the same expansion with the pair's own moments, both directions |
//! | correlated, fixed participation | one Gaussian |
//!
//! The rest has no closed form here and is refused by name. Orders between integers: see
//! `interpolate` in the source.
//!
//! [arXiv:1702.07476]: https://arxiv.org/abs/1702.07476
//! [arXiv:2004.07223]: https://arxiv.org/abs/2004.07223
//! [arXiv:1908.10530]: https://arxiv.org/abs/1908.10530
//! [arXiv:1808.00087]: https://arxiv.org/abs/1808.00087
use closed_form::{exponential, laplace};
use sampled::Sampled;

use crate::{
    error::Error,
    event::{Event, Kind, Neighbours},
};

mod closed_form;
mod fractional_order;
mod log_space;
mod sampled;
#[cfg(test)]
mod tests;

/// Added to every answer, relative to it and to what cancels in it: well above the rounding of a
/// few thousand operations.
const OUTWARD: f64 = 1e-12;

/// The Rényi divergence of order `alpha` between neighbours, from above, in the worse direction.
///
/// # Errors
///
/// [`Error::Parameter`] unless `alpha` is above 1 and at most 1e9; [`Error::Unsupported`] where
/// there is no closed form.
pub fn divergence(event: &Event, neighbours: Neighbours, alpha: f64) -> Result<f64, Error> {
    let want = "above 1 and at most 1000000000";
    let alpha = Error::within("alpha", want, alpha, alpha > 1.0 && alpha <= 1e9)?;
    Ok(Cost::of(event, neighbours)?.at(alpha - 1.0))
}

/// The ε that `event` costs at `delta`, from above: the best over all real orders.
///
/// # Errors
///
/// [`Error::Parameter`] unless `delta` is in [1e-12, 0.5]; [`Error::Unsupported`] where there is no
/// closed form.
pub fn epsilon(event: &Event, neighbours: Neighbours, delta: f64) -> Result<f64, Error> {
    let delta = Error::delta(delta)?;
    Ok(convert(&Cost::of(event, neighbours)?, delta))
}

/// What an error calls the divergence of an event without a closed form. A new event needs no arm.
fn without_closed_form(event: &Kind) -> &'static str {
    match event {
        Kind::ApproximateDp { .. } => {
            "the Rényi divergence of approximate DP, which may be infinite"
        }
        Kind::ObjectivePerturbation { .. } => "the Rényi divergence of a perturbed objective",
        Kind::RandomAllocation { .. } => "the Rényi divergence of random allocation",
        _ => "the Rényi divergence of this event",
    }
}

/// An event made ready: what does not depend on the order is done once.
enum Cost {
    /// D_α ≤ ρα.
    Concentrated {
        rho: f64,
    },
    /// Laplace noise against a shift of `shift` scales.
    Laplace {
        shift: f64,
    },
    /// A choice whose losses lie in an interval of length `range`.
    Exponential {
        range: f64,
    },
    Sampled(Sampled),
    Repeated(f64, Box<Cost>),
    Sum(Vec<Cost>),
    Worst(Vec<Cost>),
}

impl Cost {
    fn of(event: &Event, neighbours: Neighbours) -> Result<Cost, Error> {
        let replace = neighbours == Neighbours::ReplaceOne;
        let gap = if replace { 2.0 } else { 1.0 };
        let gaussian = |noise: f64| Cost::Concentrated { rho: 0.5 * (gap / noise).powi(2) };
        let all = |events: &[Event]| {
            events.iter().map(|e| Cost::of(e, neighbours)).collect::<Result<Vec<_>, _>>()
        };
        let refuse = |event| {
            let instead = "use `epsilon`, which follows the whole privacy loss";
            Err(Error::Unsupported { event, relation: neighbours.name(), instead })
        };
        Ok(match &event.kind {
            Kind::Gaussian { noise } | Kind::Shuffled { noise, .. } => gaussian(*noise),
            Kind::Poisson { rate: 1.0, noise } | Kind::FixedSize { rate: 1.0, noise } => {
                gaussian(*noise)
            }
            Kind::Laplace { scale } => Cost::Laplace { shift: gap / scale },
            Kind::Exponential { add_remove, replace_one } => {
                Cost::Exponential { range: if replace { *replace_one } else { *add_remove } }
            }
            Kind::Poisson { rate, noise } if replace => {
                Cost::Sampled(Sampled::replaced(*rate, *noise))
            }
            Kind::Poisson { rate, noise } => Cost::Sampled(Sampled::poisson(*rate, *noise)),
            // Removing a record is replacing it by the null record; it still makes way for another
            // in the batch.
            Kind::FixedSize { rate, noise } => Cost::Sampled(Sampled::fixed_size(*rate, *noise)),
            Kind::Correlated(run) => {
                let upper = run.bounds(neighbours)?.upper;
                match &upper[..] {
                    [(one, _)] if one.pairs.is_empty() => {
                        Cost::Concentrated { rho: 0.5 * one.mu_squared }
                    }
                    _ => {
                        return refuse(
                            "the Rényi divergence of correlated noise with random participation",
                        );
                    }
                }
            }
            Kind::Repeated { times, event } => {
                Cost::Repeated(*times as f64, Box::new(Cost::of(event, neighbours)?))
            }
            Kind::Composed(events) => Cost::Sum(all(events)?),
            Kind::Disjoint(events) => Cost::Worst(all(events)?),
            other => return refuse(without_closed_form(other)),
        })
    }

    /// D_α for α = 1 + `excess`; at infinity the largest loss.
    ///
    /// The excess is what is passed on, because 1 + excess forgets a small one.
    fn at(&self, excess: f64) -> f64 {
        let value = match self {
            Cost::Concentrated { rho } => rho * (1.0 + excess),
            Cost::Laplace { shift } => laplace(*shift, excess),
            Cost::Exponential { range } => exponential(*range, excess),
            Cost::Sampled(sampled) => sampled.at(excess),
            // Mironov, Proposition 1: orders add up.
            Cost::Repeated(times, cost) => times * cost.at(excess),
            Cost::Sum(costs) => costs.iter().map(|c| c.at(excess)).sum(),
            // A record is in one of them.
            Cost::Worst(costs) => costs.iter().map(|c| c.at(excess)).fold(0.0, worst),
        };
        value * (1.0 + OUTWARD)
    }
}

/// The larger of two numbers, or what is not a number.
fn worst(a: f64, b: f64) -> f64 {
    if a > b || a.is_nan() { a } else { b }
}

/// The least ε over all orders.
///
/// Every order's bound holds (Canonne, Kamath and Steinke, [arXiv:2004.00010], Proposition 12), so
/// that the search may end anywhere; it only has to end near the least. It walks in ln(α - 1), in
/// which the bound falls and then rises.
///
/// [arXiv:2004.00010]: https://arxiv.org/abs/2004.00010
fn convert(cost: &Cost, delta: f64) -> f64 {
    const STEP: f64 = 0.5;
    const PATIENCE: usize = 3;
    const REACH: f64 = 20.5;
    // δ(0) is the total variation: at most √(D/2) (Pinsker) and √(1 - e^-D) (Bretagnolle and Huber)
    // for D above D₁.
    let least = cost.at(1e-9);
    if (0.5 * least).min(-(-least).exp_m1()).sqrt() * (1.0 + OUTWARD) <= delta {
        return 0.0;
    }
    let at = |x: f64| {
        let excess = x.exp();
        let alpha = 1.0 + excess;
        let (cost, share, rest) =
            (cost.at(excess), (1.0 / excess).ln_1p(), -(alpha.ln() + delta.ln()) / excess);
        cost - share + rest + OUTWARD * (share + rest.abs())
    };
    let start = 1.5;
    let mut best = (start, at(start));
    for step in [STEP, -STEP] {
        let (mut x, mut misses) = (start + step, 0);
        while misses < PATIENCE && x.abs() < REACH {
            let value = at(x);
            misses += 1;
            if value < best.1 {
                (best, misses) = ((x, value), 0);
            }
            x += step;
        }
    }
    let golden = 0.5 * (5.0_f64.sqrt() - 1.0);
    let (mut low, mut high) = (best.0 - STEP, best.0 + STEP);
    let (mut a, mut b) = (high - golden * (high - low), low + golden * (high - low));
    let (mut at_a, mut at_b) = (at(a), at(b));
    while high - low > 5e-4 {
        if at_a < at_b {
            (high, b, at_b) = (b, a, at_a);
            a = high - golden * (high - low);
            at_a = at(a);
        } else {
            (low, a, at_a) = (a, b, at_b);
            b = low + golden * (high - low);
            at_b = at(b);
        }
    }
    // A loss that is never above ε is (ε, 0). An order whose bound is not a number is left out.
    let all = [best.1, at_a, at_b, cost.at(f64::INFINITY)];
    all.into_iter().fold(f64::INFINITY, f64::min).max(0.0)
}
