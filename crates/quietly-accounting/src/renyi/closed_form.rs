//! Closed forms at every real order, without cancellation. Orders are given as α - 1.

/// Laplace noise against a shift of u scales: e^((α-1)D) = (α·e^((α-1)u) + (α-1)·e^(-αu)) / (2α-1).
///
/// The logarithm of a sum of exponentials of u is convex and zero at u = 0, so that D/u grows: no
/// way to split a shift between coordinates costs more than one coordinate.
pub(super) fn laplace(u: f64, excess: f64) -> f64 {
    if excess.is_infinite() {
        return u;
    }
    let alpha = 1.0 + excess;
    let both = alpha + excess;
    if excess * u > 1.0 {
        return u + ((alpha + excess * (-both * u).exp()) / both).ln() / excess;
    }
    // The linear terms of the two exponentials cancel; what is left of each is positive.
    let above = alpha * beyond_linear(excess * u) + excess * beyond_linear(-alpha * u);
    ((above / both).ln_1p() / excess).min(u)
}

/// e^x - 1 - x.
fn beyond_linear(x: f64) -> f64 {
    if x.abs() > 1.0 {
        return x.exp_m1() - x;
    }
    // x²/2·(1 + x/3·(1 + x/4·(…)))
    0.5 * x * x * (3..24).rev().fold(1.0, |sum, k| 1.0 + sum * x / k as f64)
}

/// The most that any pair with losses in [t - r, t], for some t, can have.
///
/// e^(αL) is convex in e^L, whose mean under Q is one: the worst law has only the two ends. With c
/// = (1 - e^(-αr))/(1 - e^-r) the moment c·e^((α-1)t) - e^(αt - r)(1 - e^(-(α-1)r))/(1 - e^-r) is
/// largest at e^t = e^r (α-1)(1 - e^(-αr)) / (α(1 - e^(-(α-1)r))), where it is c·e^((α-1)t)/α. It
/// is at most αr²/8 (Cesar and Rogers, Lemma 3.2), which takes over where the closed form cancels.
pub(super) fn exponential(r: f64, excess: f64) -> f64 {
    if excess.is_infinite() {
        return r;
    }
    let alpha = 1.0 + excess;
    let fall = |x: f64| (-(-x).exp_m1()).ln();
    let t = r - (1.0 / excess).ln_1p() + fall(alpha * r) - fall(excess * r);
    let rest = fall(alpha * r) - fall(r) - alpha.ln();
    let size = 1.0 + r + (1.0 / excess).ln_1p() - fall(r) + fall(excess * r).abs() + alpha.ln();
    let exact = t + rest / excess + 8.0 * f64::EPSILON * size * (1.0 + 1.0 / excess);
    exact.min(0.125 * alpha * r * r).min(r)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laplace_is_the_formula_and_has_its_limits() {
        let plain = |u: f64, a: f64| {
            let sum = a * ((a - 1.0) * u).exp() + (a - 1.0) * (-a * u).exp();
            (sum / (2.0 * a - 1.0)).ln() / (a - 1.0)
        };
        for u in [0.1, 0.5, 1.0, 3.0] {
            for a in [1.5, 2.0, 3.7, 20.0] {
                let (got, want) = (laplace(u, a - 1.0), plain(u, a));
                assert!((got / want - 1.0).abs() < 1e-12, "{u} {a} {got} {want}");
            }
            // Kullback-Leibler: u - 1 + e^-u. The largest loss: u.
            assert!((laplace(u, 1e-9) / (u - 1.0 + (-u).exp()) - 1.0).abs() < 1e-8);
            assert!(laplace(u, 1e9) <= u && laplace(u, 1e9) > u * (1.0 - 1e-7));
        }
        assert!((laplace(1e-5, 1.0) / 1e-10 - 1.0).abs() < 1e-5);
    }

    /// Against a search over t, and no pair below it may pass: two candidates with log-odds from
    /// -r/2 to r/2.
    #[test]
    fn exponential_is_the_worst_two_point_distribution() {
        for r in [0.01_f64, 0.3, 1.0, 4.0, 20.0] {
            for a in [1.01, 1.5, 2.0, 5.0, 30.0] {
                let moment = |t: f64| {
                    let p = ((-t).exp() - (-r).exp()) / (1.0 - (-r).exp());
                    (p * (a * t).exp() + (1.0 - p) * (a * (t - r)).exp()).ln() / (a - 1.0)
                };
                let searched =
                    (0..=20_000).map(|i| moment(r * i as f64 / 20_000.0)).fold(0.0, f64::max);
                let got = exponential(r, a - 1.0);
                assert!(
                    got >= searched * (1.0 - 1e-12) && got < searched * 1.001 + 1e-12,
                    "{r} {a} {got} {searched}"
                );
                let response = moment(0.5 * r);
                assert!(response <= got * (1.0 + 1e-9) + 1e-14, "{r} {a}");
            }
        }
    }
}
