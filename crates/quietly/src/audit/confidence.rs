//! Confidence limits: how far an experiment of finite length can be trusted.
use quietly_core::mechanism::upper_quantile;

/// Φ⁻¹, for p in (0, 1).
pub(crate) fn quantile(p: f64) -> f64 {
    if p <= 0.5 { -upper_quantile(p) } else { upper_quantile(1.0 - p) }
}

/// A chance that is below the true one but for `error`, after `hits` of `of` trials (Clopper and Pearson 1934).
pub(crate) fn chance_below(hits: u64, of: u64, error: f64) -> f64 {
    if hits == 0 {
        return 0.0;
    }
    let (a, b) = (hits as f64, (of - hits) as f64 + 1.0);
    largest(|p| beta(a, b, p) <= error)
}

/// A chance that is above the true one but for `error`.
pub(crate) fn chance_above(hits: u64, of: u64, error: f64) -> f64 {
    1.0 - chance_below(of - hits, of, error)
}

/// A value that is below the mean of these numbers' law but for `error`, by Student's law: exact for normal numbers.
///
/// # Panics
///
/// If there are fewer than two.
pub(crate) fn mean_below(values: &[f64], error: f64) -> f64 {
    let (mean, deviation) = moments(values);
    let n = values.len() as f64;
    mean - student(n - 1.0, error) * deviation / n.sqrt()
}

/// Mean and standard deviation.
pub(crate) fn moments(values: &[f64]) -> (f64, f64) {
    assert!(values.len() > 1, "a deviation needs two numbers");
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let square = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0);
    (mean, square.sqrt())
}

/// The t with P(T > t) = `error` < 1/2 for Student's law with `freedom` degrees.
fn student(freedom: f64, error: f64) -> f64 {
    // With x = ν/(ν + t²), P(T > t) is half of I_x(ν/2, 1/2), which grows with x.
    let x = largest(|x| 0.5 * beta(0.5 * freedom, 0.5, x) <= error);
    (freedom * (1.0 - x) / x).sqrt()
}

/// The largest number in [0, 1] up to which `holds` holds, to rounding.
fn largest(holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if holds(middle) { low = middle } else { high = middle }
    }
    low
}

/// The regularised incomplete beta function I_x(a, b): Lentz's continued fraction, DLMF 8.17.22.
fn beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges fast on this side of the mean only.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta(b, a, 1.0 - x);
    }
    let front = a * x.ln() + b * (-x).ln_1p() + libm::lgamma(a + b)
        - libm::lgamma(a)
        - libm::lgamma(b)
        - a.ln();
    let away = |v: f64| if v.abs() < 1e-300 { 1e-300 } else { v };
    let (mut c, mut d) = (1.0, 1.0 / away(1.0 - (a + b) * x / (a + 1.0)));
    let mut product = d;
    for m in 1..100_000 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut last = 1.0;
        for term in [even, odd] {
            d = 1.0 / away(1.0 + term * d);
            c = away(1.0 + term / c);
            last = d * c;
            product *= last;
        }
        if (last - 1.0).abs() < 1e-15 {
            break;
        }
    }
    (front.exp() * product).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Limits in closed form: no hit, only hits, one trial; and a binomial tail summed term by term.
    #[test]
    fn limits_of_chances_are_those_of_the_binomial_law() {
        assert_eq!((chance_below(0, 50, 0.01), chance_above(50, 50, 0.01)), (0.0, 1.0));
        let all = chance_below(50, 50, 0.01);
        assert!((all - 0.01_f64.powf(0.02)).abs() < 1e-12, "{all}");
        assert!((chance_above(0, 50, 0.01) - (1.0 - all)).abs() < 1e-12);
        for (hits, of, error) in [(3_u64, 20_u64, 0.05), (180, 1000, 5e-4), (40, 100_000, 2.5e-4)] {
            let p = chance_below(hits, of, error);
            // P(at least `hits`) under p is the error allowed: one minus the terms before.
            let (mut term, mut below) = ((of as f64 * (-p).ln_1p()).exp(), 0.0);
            for k in 0..hits {
                below += term;
                term *= (of - k) as f64 / (k + 1) as f64 * p / (1.0 - p);
            }
            assert!((1.0 - below - error).abs() < 1e-9, "{hits} of {of}: {}", 1.0 - below);
            assert!(chance_above(hits, of, error) > hits as f64 / of as f64);
        }
    }

    /// Student's law with one degree is Cauchy's, with two it has a closed form, with many it is normal.
    #[test]
    fn quantiles_of_student_s_law() {
        let cauchy = (std::f64::consts::PI * (0.5 - 0.001)).tan();
        assert!((student(1.0, 0.001) / cauchy - 1.0).abs() < 1e-8);
        let p: f64 = 0.999;
        let two = (2.0 * p - 1.0) / (2.0 * p * (1.0 - p)).sqrt();
        assert!((student(2.0, 0.001) / two - 1.0).abs() < 1e-9);
        assert!((student(1e7, 0.001) - quantile(0.999)).abs() < 1e-5);
        // Printed tables: 3.579 for 19 degrees.
        assert!((student(19.0, 0.001) - 3.579).abs() < 1e-3);
    }
}
