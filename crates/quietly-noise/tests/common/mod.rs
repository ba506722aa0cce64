//! Normal probabilities and the χ² test that the statistical tests share.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

/// Φ.
pub fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
}

/// P(a < s·Z < b), without cancellation in the tails.
pub fn normal_mass(a: f64, b: f64, s: f64) -> f64 {
    if a > 0.0 {
        normal_cdf(-a / s) - normal_cdf(-b / s)
    } else {
        normal_cdf(b / s) - normal_cdf(a / s)
    }
}

/// P(round(s·Z) = n).
pub fn rounded_mass(n: i64, s: f64) -> f64 {
    normal_mass(n as f64 - 0.5, n as f64 + 0.5, s)
}

/// χ² of `counts` over cells of probability `law`, relative to its critical value: above one is
/// refused.
///
/// The critical value is Wilson and Hilferty's for a false-positive rate of one in a million (z =
/// 4.7534); for few degrees of freedom it is larger than the exact one. Every cell must expect
/// ten or more.
pub fn chi_square(counts: &[f64], law: &[f64]) -> f64 {
    let n: f64 = counts.iter().sum();
    let total: f64 = law.iter().sum();
    assert!((total - 1.0).abs() < 1e-9, "{total}");
    let chi: f64 = counts
        .iter()
        .zip(law)
        .map(|(count, p)| {
            assert!(n * p >= 10.0, "a cell expects only {}", n * p);
            (count - n * p).powi(2) / (n * p)
        })
        .sum();
    let k = (counts.len() - 1) as f64;
    let spread = 2.0 / (9.0 * k);
    chi / (k * (1.0 - spread + 4.7534 * spread.sqrt()).powi(3))
}
