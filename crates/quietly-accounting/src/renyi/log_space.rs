//! Numbers too large or too small to hold, by their logarithms.

/// ln of C(n,k) q^k (1-q)^(n-k), 2 ≤ k ≤ n, rounded up.
///
/// Loader, *Fast and Accurate Computation of Binomial Probabilities*, 2000: as a deviance from the
/// mode, so that the digits lost do not grow with n.
pub(super) fn log_binomial(n: f64, k: f64, q: f64) -> f64 {
    let log = if k >= n {
        n * q.ln()
    } else {
        let stirling = stirling_error(n) - stirling_error(k) - stirling_error(n - k);
        let deviance = deviance(k, n * q) + deviance(n - k, n * (1.0 - q));
        stirling - deviance + 0.5 * (n / (k * (n - k)) / std::f64::consts::TAU).ln()
    };
    log + 2e-14 * (1.0 + log.abs()) + f64::EPSILON * (k - n * q).abs()
}

/// ln n! less Stirling's formula.
fn stirling_error(n: f64) -> f64 {
    if n < 16.0 {
        return libm::lgamma(n + 1.0) - (n + 0.5) * n.ln() + n - 0.5 * std::f64::consts::TAU.ln();
    }
    let r = 1.0 / (n * n);
    (1.0 / 12.0 - r * (1.0 / 360.0 - r * (1.0 / 1260.0 - r * (1.0 / 1680.0 - r / 1188.0)))) / n
}

/// x ln(x/m) + m - x.
fn deviance(x: f64, m: f64) -> f64 {
    let v = (x - m) / (x + m);
    if v.abs() > 0.1 {
        return x * (x / m).ln() + m - x;
    }
    // With x/m = (1+v)/(1-v): (x-m)v + 2x(v³/3 + v⁵/5 + …).
    let series = (1..9).rev().fold(0.0, |sum, i| (sum + 1.0 / (2 * i + 1) as f64) * v * v);
    (x - m) * v + 2.0 * x * v * series
}

/// A sum of exponentials, by its logarithm.
pub(super) struct Sum {
    most: f64,
    sum: f64,
}

impl Sum {
    pub(super) fn new() -> Sum {
        Sum { most: f64::NEG_INFINITY, sum: 0.0 }
    }

    pub(super) fn add(&mut self, log: f64) {
        if log == f64::NEG_INFINITY {
            return;
        }
        if log > self.most {
            self.sum = self.sum * (self.most - log).exp() + 1.0;
            self.most = log;
        } else {
            self.sum += (log - self.most).exp();
        }
    }

    pub(super) fn log(&self) -> f64 {
        self.most + self.sum.ln()
    }
}

/// ln(e^a + e^b).
pub(super) fn log_add(a: f64, b: f64) -> f64 {
    let most = a.max(b);
    if most == f64::NEG_INFINITY { most } else { most + (-(a - b).abs()).exp().ln_1p() }
}

/// ln(1 + e^x).
pub(super) fn log_1p_exp(x: f64) -> f64 {
    if x > 40.0 { x } else { x.exp().ln_1p() }
}

/// ln(e^x - 1).
pub(super) fn log_exp_m1(x: f64) -> f64 {
    if x > 40.0 { x } else { x.exp_m1().ln() }
}
