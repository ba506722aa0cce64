//! The exact privacy curve of a Gaussian release.
//!
//! Balle and Wang, *Improving the Gaussian Mechanism for Differential Privacy*, ICML 2018,
//! [arXiv:1805.06530], Theorem 8: noise of standard deviation Δ/μ on a query of sensitivity Δ
//! satisfies (ε, δ) iff δ ≥ Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ). Any adaptive sequence of such
//! releases is one release with μ² = Σ μᵢ² (Dong, Roth and Su, *Gaussian Differential Privacy*,
//! Corollary 3.3).
//!
//! Results are rounded outward by [`SLACK`]. The tests compare the formula with 40-digit values.
//!
//! [arXiv:1805.06530]: https://arxiv.org/abs/1805.06530
use crate::{
    interval::Interval,
    normal::{U, erfcx, upper_tail},
};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

/// Relative error allowed for in δ: (a² + 64) rounding units for the exponential and the two
/// `erfcx`, taken at |a| ≤ 60, beyond which δ underflows.
const SLACK: f64 = 3700.0 * 4.0 * U;

/// δ(ε) of one μ-GDP release.
pub(crate) fn delta(mu: f64, epsilon: f64) -> Interval {
    let value = delta_unrounded(mu, epsilon);
    // a = μ/2 - ε/μ has an error of a few units of its terms, and δ changes by a factor of at most
    // 1 + |a| times that.
    let terms = 0.5 * mu + epsilon.abs() / mu;
    let error = 4.0 * U * terms * (1.0 + (0.5 * mu - epsilon / mu).abs());
    let slack = if mu > 0.0 { SLACK + error } else { SLACK };
    // Where δ is large compared with μ, it is a difference of two numbers near one half.
    let lost = if epsilon < 0.5 * mu * mu { 8.0 * U } else { f64::MIN_POSITIVE };
    Interval::new(value * (1.0 - slack) - lost, (value * (1.0 + slack) + lost).min(1.0))
}

/// With a = μ/2 - ε/μ and b = -μ/2 - ε/μ one has ε - b²/2 = -a²/2, so both terms carry exp(-a²/2)
/// and nothing overflows.
fn delta_unrounded(mu: f64, epsilon: f64) -> f64 {
    if mu == 0.0 {
        return (-epsilon.exp_m1()).max(0.0);
    }
    let a = 0.5 * mu - epsilon / mu;
    let b = -0.5 * mu - epsilon / mu;
    if epsilon < 0.0 {
        // The curve of a symmetric pair: δ(-ε) = 1 - e^-ε + e^-ε δ(ε).
        return -epsilon.exp_m1() + epsilon.exp() * delta_unrounded(mu, -epsilon);
    }
    if a > 0.0 {
        return upper_tail(-a) - 0.5 * (-0.5 * a * a).exp() * erfcx(-b * FRAC_1_SQRT_2);
    }
    0.5 * (-0.5 * a * a).exp() * erfcx_drop(-a * FRAC_1_SQRT_2, mu * FRAC_1_SQRT_2)
}

/// erfcx(x) - erfcx(x + w), without cancellation for small w.
fn erfcx_drop(x: f64, w: f64) -> f64 {
    if w > 0.05 {
        return erfcx(x) - erfcx(x + w);
    }
    // Three-point Gauss-Legendre on -erfcx' = 2/√π - 2x·erfcx; its error is below w⁷/2e6.
    let derivative = |t: f64| {
        if t < 20.0 {
            return FRAC_2_SQRT_PI - 2.0 * t * erfcx(t);
        }
        let s = 0.5 / (t * t);
        FRAC_2_SQRT_PI * s * (1.0 - 3.0 * s * (1.0 - 5.0 * s * (1.0 - 7.0 * s * (1.0 - 9.0 * s))))
    };
    let (mid, reach) = (x + 0.5 * w, 0.5 * w * 0.6_f64.sqrt());
    w / 18.0
        * (5.0 * derivative(mid - reach) + 8.0 * derivative(mid) + 5.0 * derivative(mid + reach))
}

/// The ε for which μ-GDP gives (ε, δ).
pub(crate) fn epsilon(mu: f64, target: f64) -> Interval {
    let upper = |e: f64| delta(mu, e).upper <= target;
    let lower = |e: f64| delta(mu, e).lower <= target;
    Interval::new(least(lower).0, least(upper).1)
}

/// The largest μ whose release is (ε, δ)-DP, rounded down.
pub(crate) fn mu(epsilon: f64, target: f64) -> f64 {
    let (mut low, mut high) = (1e-12, 1e4);
    while high / low > 1.0 + 4.0 * U {
        let mid = f64::sqrt(low * high);
        if mid <= low || mid >= high {
            break;
        }
        if delta(mid, epsilon).upper <= target { low = mid } else { high = mid }
    }
    low
}

/// Brackets the least e ≥ 0 with `holds(e)`, for a `holds` that is true from some e on.
fn least(holds: impl Fn(f64) -> bool) -> (f64, f64) {
    if holds(0.0) {
        return (0.0, 0.0);
    }
    let mut high = 1e-3;
    while !holds(high) {
        high *= 2.0;
        if high > 1e12 {
            return (high, f64::INFINITY);
        }
    }
    let mut low = if high > 1e-3 { 0.5 * high } else { 0.0 };
    while high - low > 2.0 * f64::EPSILON * high {
        let mid = 0.5 * (low + high);
        if mid <= low || mid >= high {
            break;
        }
        if holds(mid) { high = mid } else { low = mid }
    }
    (low, high)
}

/// The μ for which an exponential mechanism of bounded range `range` is μ-GDP:
/// 2Φ⁻¹(1/(1 + e^(-range/2))), rounded up.
///
/// The log-odds of every event move by at most `range` (Dong, Durfee and Rogers, *Optimal
/// Differential Privacy Composition for Exponential Mechanisms*, ICML 2020). Φ⁻¹ of the logistic
/// function is steepest at zero, and its derivative decreases symmetrically to both sides. So of
/// all windows of that length, Φ⁻¹ moves most over the symmetric one.
pub(crate) fn exponential_mu(range: f64) -> f64 {
    // Φ(-μ/2) = 1/(1 + e^(range/2)). A smaller left side means a larger μ.
    let tail = 1.0 / (1.0 + (0.5 * range).exp());
    2.0 * crate::normal::upper_quantile(tail * (1.0 - 1e-13))
}

/// 2Φ(μ/2) - 1: δ at ε = 0, the total-variation distance.
#[cfg(test)]
fn total_variation(mu: f64) -> f64 {
    crate::normal::cdf(0.5 * mu) - upper_tail(0.5 * mu)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 40-digit values (mpmath) of ε at noise multiplier σ and δ.
    const EXACT: [(f64, f64, f64); 9] = [
        (0.5, 1e-5, 9.997_256_146),
        (1.0, 1e-5, 4.377_178_096),
        (2.0, 1e-6, 2.254_084_65),
        (5.0, 1e-8, 1.021_170_615),
        (10.0, 1e-5, 0.340_669_364_7),
        (50.0, 1e-6, 0.070_960_682_99),
        (50.0, 1e-8, 0.091_516_893_64),
        (0.5, 1e-8, 12.749_246_4),
        (2.0, 1e-5, 1.993_091_404),
    ];

    #[test]
    fn epsilon_brackets_the_exact_value() {
        for (sigma, target, want) in EXACT {
            let got = epsilon(1.0 / sigma, target);
            assert!((got.upper / want - 1.0).abs() < 1e-9, "{got:?} {want}");
            assert!(got.lower <= got.upper && got.upper - got.lower < 1e-11 * want, "{got:?}");
        }
    }

    #[test]
    fn mu_is_the_inverse_and_never_above() {
        for (eps, target, sigma) in [(1.0, 1e-5, 3.730_631_635), (0.05, 1e-8, 89.079_199_66)] {
            let got = mu(eps, target);
            assert!((got * sigma - 1.0_f64).abs() < 1e-9);
            assert!(delta(got, eps).upper <= target);
            assert!(delta(got * 1.000_001, eps).lower > target);
        }
    }

    #[test]
    fn curves_of_tiny_and_huge_mu_are_decreasing() {
        for mu in [1e-5, 1e-3, 0.07, 0.0708, 1.0, 30.0] {
            let tv = total_variation(mu);
            assert!((delta(mu, 0.0).upper / tv - 1.0).abs() < 1e-9, "{mu}");
            let mut last = 1.0;
            for step in 0..400 {
                let d = delta(mu, step as f64 * mu * 0.1);
                assert!(
                    d.lower >= 0.0 && d.lower <= d.upper && d.upper <= last + 1e-12,
                    "{mu} {step}"
                );
                last = d.upper;
            }
        }
    }

    /// A numerical check of the step in the proof of [`exponential_mu`] that is not algebra.
    #[test]
    fn no_window_of_log_odds_beats_the_symmetric_one() {
        let g = |x: f64| -crate::normal::upper_quantile(1.0 / (1.0 + (-x).exp()));
        for range in [0.01, 0.3, 1.0, 3.0, 8.0] {
            let best = exponential_mu(range);
            for i in 0..200 {
                let start = -10.0 + 0.1 * i as f64;
                assert!(g(start + range) - g(start) <= best + 1e-9, "{range} {start}");
            }
            let symmetric = g(0.5 * range) - g(-0.5 * range);
            assert!((best - symmetric).abs() < 1e-9);
        }
    }
}
