//! A private point of high Tukey depth among many: propose, test, and release by a restricted exponential mechanism.
//!
//! After Amin et al. (see [`tukey_em`](super::tukey_em)) and Brown, Gaboardi, Smith, Ullman and Zakynthinou, *Covariance-aware
//! private mean estimation without private covariance estimation*, 2021, [arXiv:2106.13329], with a shorter proof and
//! a better constant (no factor 4e^ε before δ), for points of an integer lattice.
//!
//! # The mechanism
//!
//! D is m points with d integer coordinates within ±[`EDGE`]. The depth q(y) of a lattice point y is the least, over coordinates
//! j, of how many have w_j ≤ y_j and how many have w_j ≥ y_j, but at most h = ⌊m/2⌋. Exchanging one point moves each
//! count, and so q, by at most one. The set A_i = {q ≥ i} is a box: [w_(i), w_(m+1-i)] in every coordinate, w_(1) ≤ w_(2) ≤ …
//! sorted; for i ≤ h it holds at least one point, and A_i for i ≤ 0 is the whole lattice. V_i is its number of points, zero for
//! i > h. If D' is D with one point exchanged, A_(i+1)(D) ⊆ A_i(D') ⊆ A_(i-1)(D).
//!
//! Let t = ⌊m/4⌋ and E(D) the law on A_t with weights e^(ε₁q(y)/2). With C_k(D): "there is a g ≥ 1 with
//! V_(t-k-1) ≤ δ₁·e^(ε₁g/2)·V_(t+k+g+1)", let the distance be the number of k ≥ 0 for which C_0, …, C_k hold. Draw discrete Laplace
//! noise Z of scale 1/ε₂. If distance + Z ≥ T, where P(Z ≥ T) ≤ δ, draw from E(D); otherwise give no point.
//!
//! # Proof: a deep point is (ε₁ + ε₂, δ)-DP, for δ₁ = δ
//!
//! *1. The distance moves by at most one.* C_(k+1)(D) implies C_k(D') with the same g, as V_(t-k-1)(D') ≤ V_(t-k-2)(D) and
//! V_(t+k+g+1)(D') ≥ V_(t+k+g+2)(D).
//!
//! *2. If C_0(D), then E(D) and E(D') are (ε₁, δ₁)-indistinguishable, both ways.* Let W, W' be the total weights and q, q' the depths.
//! Write a, b for V_(t-1) - V_t and V_t - V_(t+1), over e^(ε₁g/2)·V_(t+g+1), all of D: a + b ≤ δ₁. Points of A_(t+g+1)(D) have q' ≥ t+g, so
//! W ≥ V_(t+g+1)·e^(ε₁(t+g+1)/2) and W' ≥ V_(t+g+1)·e^(ε₁(t+g)/2). Points in one support only have depth t there and t-1 in the other.
//!
//! * *Lost*: those with q = t, q' = t-1 are at most V_t - V_(t+1) many, with probability η ≤ b·e^(-ε₁/2) ≤ b under E(D).
//! * *New*: those with q = t-1, q' = t are at most V_(t-1) - V_t many, with probability at most a under E(D').
//! * *E(D) against E(D')*: W' ≤ e^(ε₁/2)W + (V_(t-1) - V_t)e^(ε₁t/2) ≤ e^(ε₁/2)W(1 + ρ) with ρ = a·e^(-ε₁), so on common points the ratio
//!   of probabilities is at most e^(ε₁/2)·W'/W ≤ e^ε₁(1 + ρ), and P(S) ≤ e^ε₁(1 + ρ)P'(S) + η for every S.
//! * *E(D') against E(D)*: W ≤ e^(ε₁/2)W' + ηW, so W/W' ≤ e^(ε₁/2)/(1 - η), and P'(S) ≤ e^ε₁(1 + r)P(S) + a with 1 + r = 1/(1 - η).
//! * *A factor is a summand*: if e^ε₁(1 + r)P ≤ 1, then e^ε₁·r·P ≤ r/(1 + r); otherwise e^ε₁P + r/(1 + r) > 1. So in both cases
//!   min(1, e^ε₁(1 + r)P) ≤ e^ε₁P + r/(1 + r). This gives η + ρ ≤ a + b ≤ δ₁ one way and a + η ≤ a + b ≤ δ₁ the other.
//!
//! *3. Together.* The test is ε₂-DP by (1). If C_0 holds for D or for D', (2) applies to the pair and
//! P(M(D) ∈ S) ≤ e^ε₂·P(no point from D')·[none ∈ S] + P(test of D)·(e^ε₁P'(S) + δ₁) ≤ e^(ε₁+ε₂)P(M(D') ∈ S) + δ₁. If it holds for neither, both
//! distances are zero, a point is given with probability at most δ by either, and P(M(D) ∈ S) ≤ e^ε₂P(M(D') ∈ S) + δ. A row pays
//! the larger of the two δ, not their sum.
//!
//! # Arithmetic
//!
//! Everything is in integers; logarithms are in units of 2⁻³², ⌊·⌋ of [`log`], which never falls as its argument grows. So (1) holds exactly
//! for the *computed* conditions. [`log`] is at most 1.01 units low, a sum over coordinates 1.01d units: C_k is asked to hold with
//! 3d units to spare, 1.01d for this and the rest for δ₁ = δe^-κ, κ = 1.01d·2⁻³². The law drawn from has weights between
//! e^-κ and 1 times those of E(D), hence probabilities within e^±κ: (ε₁ + 2κ, e^κδ₁). ε₁ + ε₂ leaves 3d units for 2κ.
//! The choice by weights ([`ExponentialMechanism`]), the noise and the point within a box are exact.
//!
//! [arXiv:2106.13329]: https://arxiv.org/abs/2106.13329
use quietly_core::{error::Error, mechanism::normal_quantile, release::ApproximateDp};
use quietly_noise::{Bits, DiscreteLaplace, ExponentialMechanism, Ratio, Stream};

/// The greatest coordinate.
pub(super) const EDGE: i64 = 1 << 40;

/// Logarithms are in units of 2^-LOG_BITS.
const LOG_BITS: u32 = 32;
const ONE: f64 = (1_u64 << LOG_BITS) as f64;

/// A point deep among `models`, or none if they are not stable enough: kept to `promise` where one model is exchanged.
pub(super) fn point(
    models: Vec<Vec<i64>>,
    promise: ApproximateDp,
    stream: &Stream,
    step: u64,
) -> Result<Option<Vec<i64>>, Error> {
    let Some(terms) = Terms::new(promise, models[0].len()) else { return Ok(None) };
    let deep = Deep::new(&models, EDGE);
    let mut noise = [0];
    let scale = Ratio::new(1 << LOG_BITS, terms.test)?;
    DiscreteLaplace::new(scale)?.fill(stream, step, &mut noise)?;
    if deep.distance(&terms).saturating_add(noise[0]) < terms.enough {
        return Ok(None);
    }
    Ok(Some(deep.draw(&terms, &mut stream.bits(step)?)?))
}

/// Whether `m` models whose weights lie as normal ones do would pass the test, were it not for its noise.
pub(super) fn likely(m: usize, d: usize, promise: ApproximateDp) -> bool {
    let Some(terms) = Terms::new(promise, d) else { return false };
    let place = |k: usize| {
        let level = (k as f64 + 0.5) / m as f64;
        let size = normal_quantile(level.max(1.0 - level)) * (1_u64 << 24) as f64;
        if level < 0.5 { -size as i64 } else { size as i64 }
    };
    let models: Vec<Vec<i64>> = (0..m).map(|k| vec![place(k); d]).collect();
    Deep::new(&models, EDGE).distance(&terms) >= terms.enough
}

/// The numbers of a promise.
struct Terms {
    /// ε₁/2, in units: what a depth of one is worth.
    depth: i64,
    /// ε₂, in units.
    test: u64,
    /// T.
    enough: i64,
    /// ln δ₁ less the slack of logarithms, in units.
    log_delta: i64,
}

impl Terms {
    /// None if the promise is so small that rounding would take it up.
    fn new(promise: ApproximateDp, d: usize) -> Option<Self> {
        let (half, slack) = (0.5 * promise.epsilon * ONE, 3 * d as i64);
        let depth = (half as i64 - slack) / 2;
        let test = half as u64;
        let small = depth < 1 || promise.delta <= 0.0 || test > 1 << 44;
        if small {
            return None;
        }
        // P(Z ≥ T) = r^T/(1 + r) for T ≥ 1, r = e^-ε₂. What is added is far above the rounding of the quotient.
        let epsilon = test as f64 / ONE;
        let enough = -(promise.delta * (1.0 + (-epsilon).exp())).ln() / epsilon;
        let enough = (enough * (1.0 + 1e-9) + 1e-9).ceil().max(1.0) as i64;
        let log_delta = (promise.delta.ln() * ONE).floor() as i64 - 2 - slack;
        Some(Terms { depth, test, enough, log_delta })
    }
}

/// The boxes A_0 ⊇ A_1 ⊇ … ⊇ A_h.
struct Deep {
    /// For every level, the ends of every coordinate.
    boxes: Vec<Vec<(i64, i64)>>,
    /// t.
    least: usize,
}

/// Part of a shell A_i \ A_(i+1): coordinates before `place` are in A_(i+1), those after it in A_i, and `place` itself in A_i only.
/// These parts are disjoint and make up the shell; the innermost box is one part.
struct Piece {
    level: usize,
    place: usize,
}

impl Deep {
    fn new(models: &[Vec<i64>], edge: i64) -> Self {
        let (m, d) = (models.len(), models[0].len());
        let mut boxes = vec![vec![(-edge, edge); d]; m / 2 + 1];
        for j in 0..d {
            let mut sorted: Vec<i64> = models.iter().map(|w| w[j]).collect();
            sorted.sort_unstable();
            for (level, ends) in boxes.iter_mut().enumerate().skip(1) {
                ends[j] = (sorted[level - 1], sorted[m - level]);
            }
        }
        Deep { boxes, least: m / 4 }
    }

    /// How many C_k hold in a row, from k = 0.
    fn distance(&self, terms: &Terms) -> i64 {
        let volume = |b: &Vec<(i64, i64)>| b.iter().map(|&ends| log(count(ends))).sum::<i64>();
        let volumes: Vec<i64> = self.boxes.iter().map(volume).collect();
        let holds = |k: &usize| {
            let outer = volumes[self.least.saturating_sub(k + 1)];
            let inner = volumes.iter().skip(self.least + k + 2).zip(1..);
            inner.into_iter().any(|(v, g)| outer - v <= terms.log_delta + terms.depth * g)
        };
        (0..).take_while(holds).count() as i64
    }

    /// The parts of all shells from level t on, with the logarithms of their weights.
    fn pieces(&self, terms: &Terms) -> (Vec<Piece>, Vec<i64>) {
        let (mut pieces, mut scores) = (Vec::new(), Vec::new());
        for level in self.least..self.boxes.len() {
            let outer = &self.boxes[level];
            let worth = terms.depth * level as i64;
            let mut rest: i64 = outer.iter().map(|&ends| log(count(ends))).sum();
            let Some(inner) = self.boxes.get(level + 1) else {
                pieces.push(Piece { level, place: outer.len() });
                scores.push(worth + rest);
                break;
            };
            let mut before = 0;
            for (place, (&out, &ins)) in outer.iter().zip(inner).enumerate() {
                rest -= log(count(out));
                let only = count(out) - count(ins);
                if only > 0 {
                    pieces.push(Piece { level, place });
                    scores.push(worth + before + log(only) + rest);
                }
                before += log(count(ins));
            }
        }
        (pieces, scores)
    }

    /// A point of the restricted exponential mechanism: a piece by its weight, then any of its points.
    fn draw(&self, terms: &Terms, bits: &mut Bits) -> Result<Vec<i64>, Error> {
        let (pieces, scores) = self.pieces(terms);
        let mechanism = ExponentialMechanism::new(Ratio::new(1, 1)?, LOG_BITS)?;
        let Piece { level, place } = pieces[mechanism.choose(&scores, bits)?];
        let outer = &self.boxes[level];
        let mut point = Vec::with_capacity(outer.len());
        for (j, &(low, high)) in outer.iter().enumerate() {
            let (from, until) = match self.boxes.get(level + 1) {
                Some(inner) if j <= place => inner[j],
                _ => (low, high),
            };
            if j != place {
                point.push(from + bits.below(count((from, until)))? as i64);
                continue;
            }
            // Below the inner box, or above it.
            let below = (from - low) as u64;
            let at = bits.below(below + (high - until) as u64)?;
            point.push(if at < below { low + at as i64 } else { until + 1 + (at - below) as i64 });
        }
        Ok(point)
    }
}

/// How many integers there are from one end to the other.
fn count((low, high): (i64, i64)) -> u64 {
    (high - low) as u64 + 1
}

/// 2³²·ln n, at most 1.01 too low and never too high; it never falls as n grows.
///
/// Digits of log₂ n by repeated squaring of x = n/2^⌊log₂ n⌋ in [1, 2), with 63 fractional bits, rounded down. *It never falls*:
/// rounded squares of a larger x are no smaller, so the first digit that differs is the larger one's. *How low*: squaring and
/// halving lose at most 2⁻⁶² of x in every step, in all less than 2⁻⁶⁰ of log₂ n; leaving out digits after the fortieth loses
/// 2⁻⁴⁰; ln 2 rounded down loses 2⁻⁵⁶; the last rounding loses less than one unit.
fn log(n: u64) -> i64 {
    const DIGITS: u32 = 40;
    // ⌊2⁶³·ln 2⌋
    const LN_2: u128 = 6_393_154_322_601_327_829;
    let whole = n.ilog2();
    let mut x = u128::from(n) << (63 - whole);
    let mut digits = u128::from(whole);
    for _ in 0..DIGITS {
        x = (x * x) >> 63;
        let digit = x >> 64;
        x >>= digit;
        digits = 2 * digits + digit;
    }
    ((digits * LN_2) >> (DIGITS + 63 - LOG_BITS)) as i64
}

#[cfg(test)]
mod tests;
