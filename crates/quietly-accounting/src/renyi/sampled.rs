//! Gaussian noise on samples: moments at integer orders, and what lies between them.
//!
//! With R = P/Q, everything is kept as ln(E_Q R^n - 1): the sums below have only positive terms, so
//! that nothing cancels however small the rate.
use super::{
    fractional_order,
    log_space::{Sum, log_1p_exp, log_add, log_binomial, log_exp_m1},
};

/// A sampled Gaussian. Its moments are asked for at integer orders only.
pub(super) struct Sampled {
    rate: f64,
    /// (gap/σ)² between what the record and its replacement add, for what holds without
    /// amplification.
    square: f64,
    moments: Moments,
}

enum Moments {
    /// P = (1-q)N(0, σ²) + qN(1, σ²), Q = N(0, σ²): binomial.
    Poisson { sigma: f64 },
    /// ln of bounds on m_j = E_Q|R - 1|^j / q^j for even j, by j; and for every j, m_j ≤
    /// 2·e^(j(j-1)s/2)·c^(j-1).
    Central { even: Vec<f64>, s: f64, log_c: f64 },
}

/// Central moments kept: beyond them a geometric series must do.
const CENTRAL: usize = 256;
/// Binomial terms that one order may take.
const TERMS: u32 = 50_000;

impl Sampled {
    /// Add-remove on a Poisson sample, in the direction of removal, which dominates.
    pub(super) fn poisson(rate: f64, noise: f64) -> Sampled {
        Sampled { rate, square: noise.powi(-2), moments: Moments::Poisson { sigma: noise } }
    }

    /// A sample of fixed size: Theorem 27. Any two of (with the record, with its replacement, with
    /// another in its place) are two clip norms apart, and a ternary moment is at most four binary
    /// ones.
    pub(super) fn fixed_size(rate: f64, noise: f64) -> Sampled {
        let square = (2.0 / noise).powi(2);
        let even = central(square).into_iter().map(|x| x + 4.0_f64.ln()).collect();
        // |P₁ - Q₁|^j ≤ P₁^j + Q₁^j.
        Sampled { rate, square, moments: Moments::Central { even, s: square, log_c: 0.0 } }
    }

    /// Replace-one on a Poisson sample: P - Q = q(P₁ - Q₁) and Q = (1-q)Q₀ + qQ₁, so that E_Q|R -
    /// 1|^j is q^j times ∫|P₁ - Q₁|^j/Q^(j-1). That is at most (1-q)^(1-j)·M, since Q ≥ (1-q)Q₀,
    /// and by convexity at most (1-q)M + qN; where N is a binary moment at two clip norms, and M =
    /// ∫|P₁ - Q₁|^j/Q₀^(j-1), by Minkowski, 2^j times one at a single.
    pub(super) fn replaced(rate: f64, noise: f64) -> Sampled {
        let square = (2.0 / noise).powi(2);
        let log_p = (-rate).ln_1p();
        let (near, far) = (central(0.25 * square), central(square));
        let join = |(j, (near, far)): (usize, (f64, f64))| {
            let m = j as f64 * 2.0_f64.ln() + near;
            log_add(log_p + m, rate.ln() + far).min(m - (j as f64 - 1.0) * log_p) + 1e-14 * j as f64
        };
        let even = near.into_iter().zip(far).enumerate().map(join).collect();
        let (s, log_c) = if rate < 0.5 { (0.25 * square, -log_p) } else { (square, 0.0) };
        Sampled { rate, square, moments: Moments::Central { even, s, log_c } }
    }

    /// D_α for α = 1 + `excess`.
    pub(super) fn at(&self, excess: f64) -> f64 {
        if excess.is_infinite() {
            return f64::INFINITY;
        }
        let alpha = 1.0 + excess;
        // E_Q R^α is jointly convex in P and Q: at most (1-q)·1 + q·(that of the Gaussian).
        let plain = 0.5 * excess * alpha * self.square;
        let unsampled = self.rate.ln() + log_exp_m1(plain);
        let whole = alpha.floor();
        let log = log_1p_exp(unsampled)
            .min(self.interpolate(whole, if whole == 1.0 { excess } else { alpha - whole }));
        log / excess
    }

    /// ln E_Q R^(n + share), from above, from its values at n and n + 1.
    ///
    /// Three bounds. It is convex, so that its chord is above it. And (E_Q R^α - 1)/α(α-1) = E_Q ∫
    /// |R - t| t^(α-2) dt over t between 1 and R is a mixture of powers, hence convex in its
    /// logarithm too, Kullback and Leibler's divergence being its value at one; this is nearly
    /// straight where the chord is not, and keeps its digits at the smallest rates. For Poisson
    /// samples there is also a series.
    fn interpolate(&self, n: f64, share: f64) -> f64 {
        if share == 0.0 && n > 1.0 {
            return log_1p_exp(self.log_excess(n));
        }
        let (low, high) = (
            if n > 1.0 { self.log_excess(n) } else { f64::NEG_INFINITY },
            self.log_excess(n + 1.0),
        );
        if high == f64::INFINITY || low == f64::INFINITY {
            return f64::INFINITY;
        }
        let chord = (1.0 - share) * log_1p_exp(low) + share * log_1p_exp(high);
        let scaled = |log: f64, n: f64| log - n.ln() - (n - 1.0).ln();
        let left = if n > 1.0 { scaled(low, n) } else { self.log_divergence(high) };
        let straight = (1.0 - share) * left + share * scaled(high, n + 1.0);
        let excess = if n > 1.0 { n + share - 1.0 } else { share };
        let bound = chord.min(log_1p_exp(straight + excess.ln() + excess.ln_1p()));
        match self.moments {
            Moments::Poisson { sigma } => {
                // Nearer to one, 1 + excess has lost too many of its digits; the chord from there
                // is above.
                let far = excess.max(1e-3);
                bound.min(
                    fractional_order::log_moment(1.0 + far, self.rate, sigma, bound) * excess / far,
                )
            }
            Moments::Central { .. } => bound,
        }
    }

    /// ln of a bound on Kullback and Leibler's divergence, given ln χ².
    fn log_divergence(&self, square: f64) -> f64 {
        // At most ln(1 + χ²), and by convexity the rate times the Gaussian's.
        let bound = log_1p_exp(square).ln().min((0.5 * self.rate * self.square).ln());
        match self.moments {
            // R ≥ 1 - q, and (r ln r - r + 1)/(r - 1)² falls in r: at most χ² times its value
            // there.
            Moments::Poisson { .. } => {
                let q = self.rate;
                // ((1-q)ln(1-q) + q)/q² = Σ q^k/((k+1)(k+2)).
                let most = match q < 0.1 {
                    true => {
                        (0..16).rev().fold(0.0, |sum, k| sum * q + 1.0 / ((k + 1) * (k + 2)) as f64)
                    }
                    false => ((1.0 - q) * (-q).ln_1p() + q) / (q * q),
                };
                bound.min(square + most.ln() + 1e-13)
            }
            Moments::Central { .. } => bound,
        }
    }

    /// ln(E_Q R^n - 1) for an integer n ≥ 2, from above; infinity where the sum is too long.
    fn log_excess(&self, n: f64) -> f64 {
        match &self.moments {
            Moments::Poisson { .. } => poisson(n, self.rate, self.square),
            Moments::Central { even, s, log_c } => expansion(n, self.rate, *s, *log_c, even),
        }
    }
}

/// Σ C(n,k) q^k (1-q)^(n-k) (e^(k(k-1)s/2) - 1) for s = 1/σ²: Mironov, Talwar and Zhang, Section
/// 3.3, less its ones.
///
/// Summed from below the binomial's mode; what is left out on either side is at most a geometric
/// series.
fn poisson(n: f64, q: f64, s: f64) -> f64 {
    let mean = n * q;
    let first = (mean - 12.0 * (mean * (1.0 - q)).sqrt() - 30.0).floor().max(2.0);
    let term = |k: f64| log_binomial(n, k, q) + log_exp_m1(0.5 * k * (k - 1.0) * s) * (1.0 + 1e-15);
    // Logarithm of a bound on each ratio of successive terms from k on. (e^(x+d) - 1)/(e^x - 1) ≤
    // e^d(1 + d/x) with d/x = 2/(k-1); with n - k held at its first value the bound is convex in k,
    // so that one of its ends is the largest.
    let odds = (q / (1.0 - q)).ln();
    let ratio = |from: f64, k: f64| ((n - from) / (k - 1.0)).ln() + odds + k * s;
    if n > f64::from(TERMS) && ratio(mean * 2.0 + 100.0, n - 1.0) > 0.0 {
        return f64::INFINITY;
    }
    let mut sum = Sum::new();
    let mut k = first;
    for _ in 0..TERMS {
        let log = term(k);
        sum.add(log);
        let largest = ratio(k, k).max(ratio(k, n - 1.0));
        if k >= n || (largest < -0.1 && log - (-largest.exp()).ln_1p() < sum.log() - 34.0) {
            let above =
                if k >= n { f64::NEG_INFINITY } else { log + largest - (-largest.exp()).ln_1p() };
            // Below the first term the ratios are at least the binomial's, which grow downward.
            let down = -(((n - first + 1.0) / first).ln() + odds);
            let below = if first == 2.0 {
                f64::NEG_INFINITY
            } else {
                term(first) + down - (-down.exp()).ln_1p()
            };
            sum.add(above);
            sum.add(below);
            return sum.log() + 1e-12;
        }
        k += 1.0;
    }
    f64::INFINITY
}

/// Σ C(n,j) q^j m_j, j from 2: the binomial expansion of E_Q(1 + (R-1))^n. Odd moments by Cauchy
/// and Schwarz.
///
/// The coarse bound m_j ≤ 2·e^(j(j-1)s/2)·c^(j-1) serves where it is smaller, and for the tail.
fn expansion(n: f64, q: f64, s: f64, log_c: f64, even: &[f64]) -> f64 {
    let mut sum = Sum::new();
    let mut choose = n.ln() + q.ln();
    let last = n.min(CENTRAL as f64 - 1.0);
    let coarse = |j: f64| 2.0_f64.ln() + (0.5 * j * s + log_c) * (j - 1.0) * (1.0 + 1e-15);
    let mut j = 2.0;
    while j <= last {
        choose += ((n - j + 1.0) / j * q).ln();
        let i = j as usize;
        let moment = if i.is_multiple_of(2) { even[i] } else { 0.5 * (even[i - 1] + even[i + 1]) };
        sum.add(choose + moment.min(coarse(j)));
        j += 1.0;
    }
    if n > last {
        // Ratios of successive terms, convex in j when n - j is held at its first value.
        let ratio = |j: f64| ((n - last) / (j + 1.0) * q).ln() + j * s + log_c;
        let largest = ratio(last).max(ratio(n - 1.0));
        if largest > -0.1 {
            return f64::INFINITY;
        }
        sum.add(choose + coarse(last) + largest - (-largest.exp()).ln_1p());
    }
    // Up to 256 logarithms of at most 40 each went into `choose`.
    sum.log() + 1e-11
}

/// ln E(R - 1)^j for j up to [`CENTRAL`], R = e^(uz - u²/2) with z normal and u² = s.
///
/// E R^i = e^(s·i(i-1)/2) counts the graphs on i vertices, each edge weighing w = e^s - 1; so E(R -
/// 1)^j counts those that leave no vertex alone. Take away the last vertex: m of the others still
/// have company, the rest had only it. Hence N_j = N_(j-1)((1+w)^(j-1) - 1) + Σ_(m<j-1) C(j-1, m)
/// N_m (1+w)^m w^(j-1-m), in which nothing is subtracted, whereas the theorem's forward differences
/// lose all digits at large σ.
fn central(s: f64) -> Vec<f64> {
    let log_w = log_exp_m1(s);
    let factorial: Vec<f64> = (0..=CENTRAL).map(|i| libm::lgamma(i as f64 + 1.0)).collect();
    let mut logs = vec![0.0, f64::NEG_INFINITY];
    for j in 2..=CENTRAL {
        let l = j - 1;
        let mut sum = Sum::new();
        sum.add(logs[l] + log_exp_m1(l as f64 * s));
        for m in (0..l).filter(|&m| m != 1) {
            let choose = factorial[l] - factorial[m] - factorial[l - m];
            sum.add(choose + logs[m] + m as f64 * s + (l - m) as f64 * log_w);
        }
        let log = sum.log();
        // Rounding: of the logarithms (below 2e3 for the factorials), of the largest product, and
        // of the sum.
        logs.push(log + 2e-12 + 4.0 * f64::EPSILON * (log.abs() + j as f64 * (s + log_w.abs())));
    }
    logs
}
