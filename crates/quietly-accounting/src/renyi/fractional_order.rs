//! Poisson samples at orders between integers.
//!
//! Mironov, Talwar and Zhang, [arXiv:1908.10530], Section 3.3: E_Q R^α, cut where both components
//! of the mixture are equally likely, so that on either side a generalised binomial series
//! converges. Past i = α its terms alternate and shrink (the coefficients and the powers both do),
//! so that a sum which ends on a positive term is above the whole.
//!
//! [arXiv:1908.10530]: https://arxiv.org/abs/1908.10530
use crate::normal::{erfcx, upper_tail};
use std::f64::consts::FRAC_1_SQRT_2;

/// The largest order worth it: further up, integers are close enough.
const MOST: f64 = 256.0;
/// Terms after the last that is sure to be positive.
const AFTER: f64 = 400.0;

/// ln E_Q R^α, from above, given some bound on it to scale by.
pub(super) fn log_moment(alpha: f64, rate: f64, sigma: f64, bound: f64) -> f64 {
    if alpha > MOST || bound.is_infinite() {
        return f64::INFINITY;
    }
    let one = Series { alpha, log_q: rate.ln(), log_p: (-rate).ln_1p(), sigma, bound };
    let cut = sigma * sigma * (one.log_p - one.log_q) + 0.5;
    let total = one.side(cut, false) + one.side(cut, true);
    bound + total.ln()
}

struct Series {
    alpha: f64,
    log_q: f64,
    log_p: f64,
    sigma: f64,
    /// Every term is divided by its exponential.
    bound: f64,
}

impl Series {
    /// Σ C(α,i) ∫ of q^j (1-q)^(α-j) L^j over the side of the cut where the power i = j (below) or
    /// i = α - j (above) is of a number less than one. Rounding is added term by term.
    fn side(&self, cut: f64, above: bool) -> f64 {
        let (mut sum, mut choose, mut i) = (0.0, 1.0, 0.0);
        loop {
            let j = if above { self.alpha - i } else { i };
            // How far the component's mean is beyond the cut, in standard deviations.
            let far = if above { cut - j } else { j - cut } / self.sigma;
            let (log, size) = if far > 0.0 {
                // e^(j(j-1)/2σ²)·(q/(1-q))^j and the tail's own exponential make up the same number
                // for every j.
                let (ends, tail) = (self.alpha * self.log_p, -0.5 * (cut / self.sigma).powi(2));
                let odds = self.alpha * (self.log_p - self.log_q).abs();
                (
                    ends + tail + (0.5 * erfcx(far * FRAC_1_SQRT_2)).ln(),
                    ends.abs() + tail.abs() * 4.0 + odds,
                )
            } else {
                let (a, b) = (j * self.log_q, (self.alpha - j) * self.log_p);
                let c = 0.5 * j * (j - 1.0) / (self.sigma * self.sigma);
                (a + b + c + (-upper_tail(-far)).ln_1p(), a.abs() + b.abs() + c.abs() * 4.0)
            };
            let term = choose * (log - self.bound).exp();
            let slack = 4.0 * f64::EPSILON * (8.0 + i + size + self.bound.abs());
            sum += term + term.abs() * slack;
            if i > self.alpha && term >= 0.0 && (term <= 1e-18 * sum || i > self.alpha + AFTER) {
                return sum;
            }
            choose *= (self.alpha - i) / (i + 1.0);
            i += 1.0;
        }
    }
}
