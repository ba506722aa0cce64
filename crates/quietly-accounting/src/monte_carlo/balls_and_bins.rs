//! One bin for all passes, drawn uniformly: P = (1/b) Σ_j N(m_j, κ²I) against Q = N(0, κ²I).
//!
//! # Proof: tilts for balls and bins
//!
//! Everything depends on a_j = ⟨m_j, x⟩/κ², which are jointly normal with covariance G = Gram/κ²
//! and mean Gθ if x has mean Σ θ_j m_j. With z_j = a_j - G_jj/2 the ratio is e^L = mean_j e^(z_j).
//!
//! **Removed** (draws for P, ℓ = L). The tilt by c ≥ 1 draws bin j with probability ∝ exp((c -
//! 1)G_jj/2), then x around c·m_j. With N = mean exp((c - 1)G_jj/2) and q_j = exp(-(c - 1)²G_jj/2),
//! dR_c/dQ = mean_j[q_j e^(c·z_j)]/N ≥ e^(cL)/N^c by Hölder's inequality, as in
//! [`super::poisson_chain`]. So ln dR_c/dP ≥ (c - 1)L - c·ln N. (With equal G_jj = g: (c - 1)(L -
//! cg/2), which is Jensen's.)
//!
//! **Added** (draws for Q, ℓ = -L). With p_j ∝ exp(-G_jj/2), e^L = e^(-K) Σ p_j e^(a_j) for K = -ln
//! mean e^(-G_jj/2), so by Jensen L ≥ pᵀa - K. The tilt by h ≥ 0 draws x around -h Σ p_j m_j: ln
//! dR_h/dQ = -h·pᵀa - h²μ²/2 ≥ h(-L) - hK - h²μ²/2, μ² = pᵀGp.
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal, StandardUniform};

use super::importance::{Draw, Pair, Tilt, exp, useful_powers, useful_shifts};
use crate::correlated::CorrelatedGaussian;

pub(super) struct Bins {
    b: usize,
    gram: Vec<f64>,
    /// Lower-triangular factor of `gram`, row by row.
    factor: Vec<f64>,
}

impl Bins {
    /// `None` if the Gram matrix is too much work.
    pub(super) fn new(run: &CorrelatedGaussian, bins: u64, work: u64) -> Option<Bins> {
        if bins.saturating_pow(3) > work {
            return None;
        }
        let b = bins as usize;
        let mut gram = run.gram(bins)?;
        // By Kahane's inequality both divergences grow with every entry: raising all of them a
        // little, the diagonal a little more, is safe and makes the matrix definite, so that the
        // factor's rounding stays below what was added.
        let most = (0..b).map(|i| gram[i * b + i]).fold(0.0, f64::max);
        let scale = run.noise().powi(-2);
        gram.iter_mut().for_each(|g| *g *= scale * (1.0 + 1e-10));
        (0..b).for_each(|i| gram[i * b + i] += 1e-9 * most * scale);
        let factor = cholesky(&gram, b)?;
        Some(Bins { b, gram, factor })
    }

    fn half_diagonal(&self) -> Vec<f64> {
        (0..self.b).map(|i| 0.5 * self.gram[i * self.b + i]).collect()
    }

    pub(super) fn removed(&self, known: f64) -> Removed<'_> {
        let half = self.half_diagonal();
        let energy = |c: f64| half.iter().map(|h| (c - 1.0) * h).collect::<Vec<f64>>();
        let log = |c: f64| log_mean(&energy(c));
        let mean = 2.0 * half.iter().sum::<f64>() / self.b as f64;
        let powers = useful_powers(known, |c| c * log(c), mean, 1.0 / self.b as f64);
        let tilt = |c: &f64| Tilt { slope: c - 1.0, offset: c * log(*c) };
        let tilts = powers.iter().map(tilt).collect();
        let logs = powers.iter().map(|c| log(*c)).collect();
        let sums = powers.iter().map(|c| cumulative(&energy(*c))).collect();
        let buffers = [vec![0.0; self.b], vec![0.0; self.b]];
        Removed { bins: self, half, powers, logs, tilts, sums, buffers }
    }

    pub(super) fn added(&self, known: f64) -> Added<'_> {
        let half = self.half_diagonal();
        let minus: Vec<f64> = half.iter().map(|h| -h).collect();
        let floor = -log_mean(&minus);
        let share: Vec<f64> = minus.iter().map(|m| (m + floor).exp() / self.b as f64).collect();
        let dot = |row: &[f64]| row.iter().zip(&share).map(|(g, p)| g * p).sum::<f64>();
        let mean: Vec<f64> = self.gram.chunks(self.b).map(dot).collect();
        let mu_squared = dot(&mean);
        let shifts = useful_shifts(known, floor, mu_squared);
        let tilt = |h: &f64| Tilt { slope: *h, offset: h * floor + 0.5 * h * h * mu_squared };
        let tilts = shifts.iter().map(tilt).collect();
        let buffers = [vec![0.0; self.b], vec![0.0; self.b]];
        Added { bins: self, half, share, mean, mu_squared, shifts, tilts, buffers }
    }

    /// a += R·ζ.
    fn add_noise(&self, a: &mut [f64], normals: &mut [f64], rng: &mut ChaCha8Rng) {
        normals.iter_mut().for_each(|z| *z = StandardNormal.sample(rng));
        let mut start = 0;
        for (i, a) in a.iter_mut().enumerate() {
            let row = &self.factor[start..start + i + 1];
            *a += dot(row, &normals[..=i]);
            start += i + 1;
        }
    }
}

/// A sum of products in four lanes.
fn dot(x: &[f64], y: &[f64]) -> f64 {
    let mut lanes = [0.0; 4];
    let (x4, y4) = (x.chunks_exact(4), y.chunks_exact(4));
    let rest: f64 = x4.remainder().iter().zip(y4.remainder()).map(|(a, b)| a * b).sum();
    x4.zip(y4).for_each(|(a, b)| (0..4).for_each(|k| lanes[k] += a[k] * b[k]));
    lanes.iter().sum::<f64>() + rest
}

fn cholesky(gram: &[f64], b: usize) -> Option<Vec<f64>> {
    let mut factor: Vec<f64> = Vec::with_capacity(b * (b + 1) / 2);
    let row = |i: usize| i * (i + 1) / 2;
    for i in 0..b {
        for j in 0..=i {
            let known = dot(&factor[row(i)..row(i) + j], &factor[row(j)..row(j) + j]);
            let rest = gram[i * b + j] - known;
            let entry = if i == j { rest.sqrt() } else { rest / factor[row(j) + j] };
            if i == j && (entry.is_nan() || entry <= 0.0) {
                return None;
            }
            factor.push(entry);
        }
    }
    Some(factor)
}

/// ln mean e^x.
fn log_mean(x: &[f64]) -> f64 {
    let top = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    top + (x.iter().map(|x| (x - top).exp()).sum::<f64>() / x.len() as f64).ln()
}

/// Running sums of e^x, the last of them 1.
fn cumulative(x: &[f64]) -> Vec<f64> {
    let total = log_mean(x) + (x.len() as f64).ln();
    let mut sum = 0.0;
    let mut sums: Vec<f64> = x
        .iter()
        .map(|x| {
            sum += (x - total).exp();
            sum
        })
        .collect();
    sums.iter_mut().for_each(|s| *s /= sum);
    sums
}

/// ln mean_j exp(c·a_j - d·G_jj/2).
fn log_ratio(a: &[f64], half: &[f64], c: f64, d: f64, exponents: &mut [f64]) -> f64 {
    let each = exponents.iter_mut().zip(a).zip(half);
    each.for_each(|((e, a), h)| *e = c * a - d * h);
    let top = exponents.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = exponents.iter().map(|e| exp(e - top)).sum();
    top + (sum / a.len() as f64).ln()
}

pub(super) struct Removed<'a> {
    bins: &'a Bins,
    half: Vec<f64>,
    powers: Vec<f64>,
    /// ln N of each tilt.
    logs: Vec<f64>,
    tilts: Vec<Tilt>,
    /// For each tilt, the bins' cumulative probabilities.
    sums: Vec<Vec<f64>>,
    /// a, and the normals or exponentials.
    buffers: [Vec<f64>; 2],
}

impl Pair for Removed<'_> {
    fn tilts(&self) -> &[Tilt] {
        &self.tilts
    }

    fn draw(&mut self, from: Draw<'_>, rng: &mut ChaCha8Rng, out: &mut [f64]) -> f64 {
        let Draw { from, tilts, above } = from;
        let b = self.bins.b;
        let u: f64 = StandardUniform.sample(rng);
        let j = self.sums[from].partition_point(|s| *s <= u).min(b - 1);
        let [a, other] = &mut self.buffers;
        let c = self.powers[from];
        a.iter_mut().zip(&self.bins.gram[j * b..]).for_each(|(a, g)| *a = c * g);
        self.bins.add_noise(a, other, rng);
        let loss = log_ratio(a, &self.half, 1.0, 1.0, other);
        if loss <= above {
            return loss;
        }
        for (k, out) in tilts.iter().zip(out) {
            let c = self.powers[*k];
            let ratio = log_ratio(a, &self.half, c, c * c - c + 1.0, other);
            *out = ratio - self.logs[*k] - loss;
        }
        loss
    }

    fn cost(&self, tilts: usize) -> f64 {
        let b = self.bins.b as f64;
        100.0 + 0.5 * b * b + b * (20.0 + 6.0 * tilts as f64)
    }
}

pub(super) struct Added<'a> {
    bins: &'a Bins,
    half: Vec<f64>,
    /// p, Gp and pᵀGp.
    share: Vec<f64>,
    mean: Vec<f64>,
    mu_squared: f64,
    shifts: Vec<f64>,
    tilts: Vec<Tilt>,
    /// a, and the normals or exponentials.
    buffers: [Vec<f64>; 2],
}

impl Pair for Added<'_> {
    fn tilts(&self) -> &[Tilt] {
        &self.tilts
    }

    fn draw(&mut self, from: Draw<'_>, rng: &mut ChaCha8Rng, out: &mut [f64]) -> f64 {
        let Draw { from, tilts, .. } = from;
        let [a, other] = &mut self.buffers;
        let h = self.shifts[from];
        a.iter_mut().zip(&self.mean).for_each(|(a, m)| *a = -h * m);
        self.bins.add_noise(a, other, rng);
        let along = dot(a, &self.share);
        for (k, out) in tilts.iter().zip(out) {
            let h = self.shifts[*k];
            *out = -h * along - 0.5 * h * h * self.mu_squared;
        }
        -log_ratio(a, &self.half, 1.0, 1.0, other)
    }

    fn cost(&self, _: usize) -> f64 {
        let b = self.bins.b as f64;
        100.0 + 0.5 * b * b + b * 20.0
    }
}
