//! Random allocation: each unit takes part in one uniformly random step of t ("balls and bins").
//!
//! # Proof: random allocation
//!
//! *Statement.* Let each of t steps be 1/σ-GDP given the earlier results, and let each unit take
//! part in one step, drawn uniformly at random and independently. Then the run is dominated by the
//! pair with likelihood ratio S = (Y₁ + … + Y_t)/t, where the Y are independent log-normal
//! variables of mean one, ln Y ~ N(-1/2σ², 1/σ²). So
//!
//! δ(with ‖ without) = E(S - e^ε)₊  and  δ(without ‖ with) = E(1 - e^ε S)₊.
//!
//! *Conditions.* Add-remove neighbours. The steps may be adaptive.
//!
//! 1. For each history, one kernel maps (N(1, σ²), N(0, σ²)) to the step with and without the unit
//!    (Blackwell).
//! 2. Run the kernels in sequence on a draw of (1/t)Σ N(e_j, σ²I) and on a draw of N(0, σ²I). They
//!    give the two transcripts.
//! 3. The likelihood ratio of the two inputs is S.
//!
//! *Rounding.* The distribution of S is a sum in [`RatioDistribution`], whose file counts its
//! errors.
//!
//! *Not covered.* Replacing a unit: the accountant composes removal and addition
//! ([`Composition::through_absence`](crate::composition::Composition::through_absence)).
//!
//! Feldman and Shenfeld, *Privacy amplification by random allocation*, 2025, and *Efficient privacy
//! loss accounting for subsampling and random allocation*, 2026. Specification:
//! `docs/spec/accounting.md`.
use crate::{
    normal::{cdf, upper_quantile, upper_tail},
    pld_grid::Side,
    ratio_distribution::{self, CEILING, FLOOR, Operation, RatioDistribution},
};

/// The distribution of S for `steps` steps at noise multiplier `sigma`, on about `points` atoms,
/// accurate for δ of about `delta`.
pub(crate) fn ratio(
    steps: u64,
    sigma: f64,
    points: usize,
    delta: f64,
    side: Side,
) -> RatioDistribution {
    let base = lognormal(
        sigma,
        points,
        delta * ratio_distribution::truncation_share(steps, Operation::Sum),
        side,
    );
    let mut sum = base.repeat(steps, Operation::Sum, points, delta, side);
    sum.scale(1.0 / steps as f64);
    sum
}

/// The distribution of one Y.
fn lognormal(sigma: f64, points: usize, tail: f64, side: Side) -> RatioDistribution {
    // In standard deviations, between the far tails of N(-1/2σ, 1) and N(1/2σ, 1): the
    // distributions of σ·ln Y under Q and under P. Ratios outside [FLOOR, CEILING] are truncated on
    // the safe side.
    let reach = 0.5 / sigma + upper_quantile(tail);
    let (low, high) = ((-reach).max(FLOOR.ln() * sigma), reach.min(CEILING.ln() * sigma));
    let edge = |i: usize| low + (high - low) * i as f64 / points as f64;
    let value = |v: f64| (v / sigma).exp();
    // Mass and mean of Y between two edges: normal masses about -1/2σ and +1/2σ.
    let between = |centre: f64, from: f64, to: f64| {
        let (a, b) = (from - centre, to - centre);
        if a > 0.0 { upper_tail(a) - upper_tail(b) } else { cdf(b) - cdf(a) }
    };
    let mut edges = vec![f64::NEG_INFINITY];
    edges.extend((0..=points).map(edge));
    edges.push(f64::INFINITY);
    let mut position: Vec<f64> = Vec::with_capacity(points + 3);
    let mut mass = Vec::with_capacity(points + 3);
    let mut cut = 0.0;
    match side {
        Side::Below => {
            for pair in edges.windows(2) {
                let m0 = between(-0.5 / sigma, pair[0], pair[1]);
                let m1 = between(0.5 / sigma, pair[0], pair[1]);
                if m0 > 0.0 {
                    // Rounding must not move a mean out of its cell.
                    position.push((m1 / m0).clamp(value(pair[0]), value(pair[1])));
                    mass.push(m0);
                }
            }
        }
        Side::Above => {
            position.push(0.0);
            position.extend((0..=points).map(|i| value(edge(i))));
            mass.resize(points + 2, 0.0);
            for (i, pair) in edges.windows(2).enumerate().take(points + 1) {
                let m0 = between(-0.5 / sigma, pair[0], pair[1]);
                let m1 = between(0.5 / sigma, pair[0], pair[1]);
                let share =
                    ((m1 - m0 * position[i]) / (position[i + 1] - position[i])).clamp(0.0, m0);
                mass[i] += m0 - share;
                mass[i + 1] += share;
            }
            // Y above the last point is moved down to it. The mean that this removes is an infinite
            // loss.
            mass[points + 1] += between(-0.5 / sigma, high, f64::INFINITY);
            cut = between(0.5 / sigma, high, f64::INFINITY);
        }
    }
    RatioDistribution::new(position, mass, cut)
}
