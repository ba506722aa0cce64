//! The normal distribution to nearly full relative accuracy, in both tails.
use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Unit round-off of `f64`.
pub(crate) const U: f64 = f64::EPSILON / 2.0;

/// The positive part of x. NaN stays NaN, so a bound on it does not vanish (`f64::max` would return
/// zero).
pub(crate) fn positive(x: f64) -> f64 {
    if x < 0.0 { 0.0 } else { x }
}

/// P(Z > z). The relative error is at most (4 + 2z²)·[`U`] for |z| < 37: `erfc` is accurate to 2
/// units (measured by its authors and by us on [0, 26]), and a relative error of U in z moves the
/// tail by z²U.
pub(crate) fn upper_tail(z: f64) -> f64 {
    0.5 * libm::erfc(z * FRAC_1_SQRT_2)
}

/// P(Z ≤ z), with the accuracy of [`upper_tail`].
pub(crate) fn cdf(z: f64) -> f64 {
    upper_tail(-z)
}

/// exp(x²)·erfc(x).
///
/// The square is computed with its rounding error, so that a large exponent loses no accuracy.
pub(crate) fn erfcx(x: f64) -> f64 {
    if x < 25.0 {
        let square = x * x;
        let rest = x.mul_add(x, -square);
        return square.exp() * (1.0 + rest) * libm::erfc(x);
    }
    // Asymptotic series. The first omitted term is below 1e-17 here.
    let t = 0.5 / (x * x);
    let series = 1.0
        - t * (1.0
            - 3.0
                * t
                * (1.0
                    - 5.0
                        * t
                        * (1.0 - 7.0 * t * (1.0 - 9.0 * t * (1.0 - 11.0 * t * (1.0 - 13.0 * t))))));
    series / (x * PI.sqrt())
}

/// The z with P(Z > z) = p, for 0 < p < 1, rounded up: `upper_tail(z) <= p`, nearly equal.
pub(crate) fn upper_quantile(p: f64) -> f64 {
    // Bisection needs no special cases, and this is not on the hot path.
    let (mut low, mut high) = (-40.0, 40.0);
    while high - low > 1e-13 * (1.0 + f64::abs(high)) {
        let mid = 0.5 * (low + high);
        if upper_tail(mid) > p { low = mid } else { high = mid }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference values: mpmath 1.3, 40 digits.
    #[test]
    fn tails_and_erfcx_match_forty_digit_values() {
        let close = |got: f64, want: f64| assert!((got / want - 1.0).abs() < 1e-14, "{got} {want}");
        for (z, want) in [
            (1.0, 0.158_655_253_931_457_05),
            (3.0, 1.349_898_031_630_094_6e-3),
            (8.0, 6.220_960_574_271_784e-16),
            (20.0, 2.753_624_118_606_233_7e-89),
        ] {
            let error = upper_tail(z) / want - 1.0;
            assert!(error.abs() < (4.0 + 2.0 * z * z) * U, "{z} {error}");
            assert_eq!(upper_tail(z), cdf(-z));
        }
        close(erfcx(0.5), 0.615_690_344_192_925_9);
        close(erfcx(10.0), 0.056_140_992_743_822_59);
        close(erfcx(24.999), 0.022_550_473_014_042_08);
        close(erfcx(30.0), 0.018_795_888_861_416_75);
        close(erfcx(-2.0), 108.940_904_389_977_97);
    }

    #[test]
    fn quantile_inverts_the_tail_from_the_safe_side() {
        for p in [0.9, 0.5, 0.1, 1e-5, 1e-20] {
            let z = upper_quantile(p);
            assert!(upper_tail(z) <= p && upper_tail(z) > p * (1.0 - 1e-10), "{p}");
        }
    }
}
