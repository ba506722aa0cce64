//! What a run with correlated noise costs, by several theorems.
use super::{CorrelatedGaussian, Participation, Strategy, WORK};
use crate::{
    composition::Composition, dominating_pair::DominatingPair, error::Error, event::Neighbours,
};

impl CorrelatedGaussian {
    /// Bounds from above, any of which holds, and from below, each of which is attained by some
    /// neighbours.
    pub(crate) fn bounds(&self, neighbours: Neighbours) -> Result<Bounds, Error> {
        let gap = if neighbours == Neighbours::ReplaceOne { 2.0 } else { 1.0 };
        let gaussian =
            |energy: f64| Composition::gaussian(gap * energy.sqrt() * (1.0 + 1e-12) / self.noise);
        let exact = |energy: f64| {
            let lower = if self.is_tight() { vec![gaussian(energy)] } else { vec![] };
            Bounds { upper: vec![(gaussian(energy), "Gaussian, worst participation")], lower }
        };
        match self.participation {
            Participation::FullBatch => Ok(exact(self.cyclic_energy(1))),
            Participation::Cyclic { period } => Ok(exact(self.cyclic_energy(period))),
            Participation::Separated { separation, most } => {
                // For a non-negative, non-increasing column the worst pattern starts first and is
                // as tight as allowed (Kalinin and Lampert, *Banded Square Root Matrix
                // Factorization*, 2024, Theorem 2).
                let falls = |c: &Vec<f64>| c.windows(2).all(|w| w[1] <= w[0]);
                if !self.column().is_some_and(|c| falls(&c)) {
                    return Err(Error::Unsupported {
                        event: "separated participation with a strategy whose columns do not fall off",
                        relation: neighbours.name(),
                        instead: "use cyclic participation, or a strategy with falling coefficients",
                    });
                }
                Ok(exact(self.energy(0, separation, most)))
            }
            Participation::Poisson { rate } => Ok(self.poisson(rate, neighbours)),
            Participation::BallsAndBins { bins } => Ok(self.allocated(bins, neighbours)),
            Participation::FixedSize { share } => {
                let known = self.known_participation(share, gap);
                let full = gaussian(self.cyclic_energy(1));
                let upper = [
                    known.map(|a| (a, "known participation")),
                    Some((full, "Gaussian, full participation")),
                ];
                Ok(Bounds { upper: upper.into_iter().flatten().collect(), lower: vec![] })
            }
            Participation::CyclicPoisson { period, rate } => {
                // Contributions `period` steps apart do not overlap: exactly ⌈T/period⌉ independent
                // samples, each with the norm of one column (Choquette-Choo et al., *(Amplified)
                // Banded Matrix Factorization*, 2023).
                let column = self.column().unwrap_or_default();
                let norm = column.iter().map(|c| c * c).sum::<f64>().sqrt();
                let sigma = self.noise / (norm * (1.0 + 1e-12));
                let times = self.steps.div_ceil(period);
                let account = sampled(rate, sigma, times, neighbours);
                let lower = if self.is_tight() { vec![account.clone()] } else { vec![] };
                Ok(Bounds { upper: vec![(account, "banded, cyclic Poisson")], lower })
            }
        }
    }

    /// The largest singular value of |C|, from above: ‖C‖₂² ≤ ‖C‖₁‖C‖_∞, for a Toeplitz matrix the
    /// sum of its column.
    ///
    /// The noise's covariance κ²C⁻¹C⁻ᵀ is at least κ²/‖C‖²·I: it is independent noise of that size
    /// plus more that is independent of it. By post-processing any account for independent noise
    /// holds (the spectral floor).
    fn norm(&self) -> f64 {
        let matrix = |rows: &Vec<Vec<f64>>| {
            let row =
                rows.iter().map(|r| r.iter().map(|x| x.abs()).sum::<f64>()).fold(0.0, f64::max);
            let mut columns = vec![0.0; rows.len()];
            rows.iter().for_each(|r| r.iter().zip(&mut columns).for_each(|(x, c)| *c += x.abs()));
            (row * columns.into_iter().fold(0.0, f64::max)).sqrt()
        };
        let norm = match &self.strategy {
            Strategy::Matrix(rows) => matrix(rows),
            _ => self.column().unwrap_or_default().iter().sum(),
        };
        norm * (1.0 + 1e-12)
    }

    fn poisson(&self, rate: f64, neighbours: Neighbours) -> Bounds {
        let gap = if neighbours == Neighbours::ReplaceOne { 2.0 } else { 1.0 };
        let floor = sampled(rate, self.noise / self.norm(), self.steps, neighbours);
        let full =
            Composition::gaussian(gap * self.cyclic_energy(1).sqrt() * (1.0 + 1e-12) / self.noise);
        let mut upper = vec![(floor, "spectral floor"), (full, "Gaussian, full participation")];
        if let Some(known) = self.known_participation(rate, gap) {
            upper.push((known, "known participation"));
        }
        let mut lower = vec![];
        if self.is_tight() {
            // Larger overlaps leak more (Kahane's inequality), and C's overlaps are at least those
            // of independent noise. A record replaced by one that adds nothing is an instance of
            // replace-one.
            lower.push(sampled(rate, self.noise, self.steps, Neighbours::AddRemove));
            lower.extend(self.slow_mode(rate));
        }
        Bounds { upper, lower }
    }

    /// What the plain sum of C·(sums) alone gives away: Σ w_t y_t against noise κ√T, w the columns'
    /// sums.
    ///
    /// Over all but the last steps w is at least `weight`, and the count of participations there is
    /// binomial: at least m with probability at least p = 1 - e^(-n·KL), Chernoff's bound. A
    /// smaller shift moves P towards Q, so that a shift of m·weight with probability p leaks less.
    /// Any m will do; the best of a few is taken.
    fn slow_mode(&self, rate: f64) -> Vec<Composition> {
        let Some(column) = self.column() else { return vec![] };
        let steps = self.steps as usize;
        let skip = column.len().min(steps / 20).max(1);
        let weight: f64 = column.iter().take(skip).sum();
        let n = (steps - skip + 1) as f64;
        let (mean, spread) = (rate * n, (rate * (1.0 - rate) * n).sqrt());
        let level = |away: f64| {
            let m = (mean - away * spread).floor();
            let short = (m - 1.0) / n;
            if m < 2.0 || short >= rate || rate == 1.0 {
                return None;
            }
            let divergence =
                short * (short / rate).ln() + (1.0 - short) * ((1.0 - short) / (1.0 - rate)).ln();
            let chance = -(-n * divergence * (1.0 - 1e-9)).exp_m1();
            let sigma = self.noise * (steps as f64).sqrt() / (m * weight);
            Some(Composition::of(DominatingPair::Poisson { rate: chance.min(1.0 - 1e-12), sigma }))
        };
        [1.5, 2.5, 3.5].into_iter().filter_map(level).collect()
    }

    /// Each record draws one bin for all passes. P and Q depend only on the Gram matrix of the
    /// bins' means.
    ///
    /// By Kahane's inequality both divergences grow with every entry of it. So g = largest entry
    /// off the diagonal and d = largest on it less g give an upper bound: a Gaussian of μ = √g/κ
    /// and an ordinary allocation of noise κ/√d. The smallest entries give a lower bound in the
    /// same way.
    fn allocated(&self, bins: u64, neighbours: Neighbours) -> Bounds {
        let unamplified = self.cyclic_energy(bins);
        let gap = if neighbours == Neighbours::ReplaceOne { 2.0 } else { 1.0 };
        let worst = Composition::gaussian(gap * unamplified.sqrt() * (1.0 + 1e-12) / self.noise);
        let mut bounds = Bounds { upper: vec![(worst, "Gaussian, worst bin")], lower: vec![] };
        let Some(gram) = self.gram(bins) else { return bounds };
        let b = bins as usize;
        let (mut off, mut on) = ((f64::INFINITY, 0.0_f64), (f64::INFINITY, 0.0_f64));
        for i in 0..b {
            for j in 0..b {
                let into = if i == j { &mut on } else { &mut off };
                *into = (into.0.min(gram[i * b + j]), into.1.max(gram[i * b + j]));
            }
        }
        if b == 1 {
            off = (0.0, 0.0);
        }
        let split = |g: f64, d: f64, out: f64| {
            let mut account = Composition::gaussian(g.max(0.0).sqrt() * (1.0 + out) / self.noise);
            if d > 0.0 {
                let sigma = self.noise / (d.sqrt() * (1.0 + out));
                account.join(&Composition::of(DominatingPair::RandomAllocation {
                    steps: bins,
                    sigma,
                }));
            }
            account
        };
        let above = split(off.1, on.1 - off.1, 1e-12);
        if neighbours == Neighbours::AddRemove {
            bounds.upper.push((above, "Gram bound"));
        }
        if self.is_tight() {
            bounds.lower.push(split(off.0, (on.0 - off.0).max(0.0), -1e-12));
        }
        bounds
    }

    /// The Gram matrix of the bins' means, if it is not too much work.
    pub(crate) fn gram(&self, bins: u64) -> Option<Vec<f64>> {
        let per_apply = match &self.strategy {
            Strategy::Lambda(_) => self.steps,
            Strategy::Banded(c) => self.steps * c.len() as u64,
            Strategy::Matrix(_) => self.steps * self.steps / 2,
        };
        if bins.saturating_mul(per_apply) > WORK || bins.pow(2).saturating_mul(self.steps) > WORK {
            return None;
        }
        let mean = |start: u64| {
            let mut y = vec![0.0; self.steps as usize];
            (start..self.steps).step_by(bins as usize).for_each(|t| y[t as usize] = 1.0);
            self.apply(&y)
        };
        let means: Vec<Vec<f64>> = (0..bins).map(mean).collect();
        let mut gram = Vec::with_capacity((bins * bins) as usize);
        for a in &means {
            gram.extend(means.iter().map(|b| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>()));
        }
        Some(gram)
    }

    /// The participation revealed: δ(ε) ≤ E_y δ_G(ε; ‖|C|y‖/κ) by joint convexity. No
    /// amplification.
    ///
    /// The law of A = ‖|C|y‖² is bounded from above in the stochastic order by Chernoff's bound,
    /// P(A ≥ a) ≤ E e^(θA)·e^(-θa), with the moment exact on a grid for the filter's state s_t =
    /// λs_(t-1) + y_t that only ever rounds up. The grid is geometric with ratio λ^(-1/j), so that
    /// decay is exact and only a new participation is rounded.
    fn known_participation(&self, rate: f64, gap: f64) -> Option<Composition> {
        let Strategy::Lambda(lambda) = self.strategy else { return None };
        let moments = filter_moments(lambda, rate, self.steps)?;
        let worst = self.cyclic_energy(1);
        let bound = |a: f64| moments.iter().map(|(t, m)| m - t * a).fold(0.0, f64::min).exp();
        // Levels a₀ < a₁ < …; the mass between two of them is put at the upper one.
        let first = moments.iter().map(|(t, m)| m / t).fold(worst, f64::min).max(1e-6);
        let levels: Vec<f64> =
            (0..96).map(|i| first * (worst / first).powf(i as f64 / 96.0)).collect();
        let mut components = Vec::with_capacity(levels.len());
        let mut above = 1.0;
        for level in levels {
            let next = bound(level);
            components.push((above - next, level));
            above = next;
        }
        // All that is left is at the most there can be.
        components.push((above, worst));
        components.iter_mut().for_each(|(_, a)| *a = gap * a.sqrt() * (1.0 + 1e-12) / self.noise);
        debug_assert!((components.iter().map(|c| c.0).sum::<f64>() - 1.0).abs() < 1e-12);
        components.retain(|(p, _)| *p > 0.0);
        Some(Composition::of(DominatingPair::KnownParticipation { components }))
    }
}

/// Bounds on a run, as accounts of independent mechanisms.
pub(crate) struct Bounds {
    pub(crate) upper: Vec<(Composition, &'static str)>,
    pub(crate) lower: Vec<Composition>,
}

/// Independent Poisson samples under either relation.
pub(crate) fn sampled(rate: f64, sigma: f64, times: u64, neighbours: Neighbours) -> Composition {
    let part = match neighbours {
        _ if rate == 1.0 => {
            let gap = if neighbours == Neighbours::ReplaceOne { 2.0 } else { 1.0 };
            return Composition {
                mu_squared: times as f64 * (gap / sigma).powi(2),
                pairs: vec![],
                large: false,
            };
        }
        Neighbours::AddRemove => DominatingPair::Poisson { rate, sigma },
        Neighbours::ReplaceOne => DominatingPair::PoissonReplaceOne { rate, sigma },
    };
    Composition { mu_squared: 0.0, pairs: vec![(part, times)], large: false }
}

/// (θ, ln E e^(θA)) for a range of θ, from above.
fn filter_moments(lambda: f64, rate: f64, steps: u64) -> Option<Vec<(f64, f64)>> {
    const RATIO: f64 = 1.01;
    const LEAST: f64 = 1e-3;
    let most = if lambda > 0.0 { 1.0 / (1.0 - lambda) } else { 1.0 };
    // state[0] is zero; state[i] = LEAST·ratio^(i-1).
    let shift =
        if lambda > 0.0 { ((1.0 / lambda).ln() / RATIO.ln()).ceil().max(1.0) as usize } else { 0 };
    let ratio = if lambda > 0.0 { lambda.powf(-1.0 / shift as f64) } else { 1.0 / LEAST };
    let count = ((most / LEAST).ln() / ratio.ln() + 1e-9).ceil() as usize + 2;
    if (count as u64).saturating_mul(steps).saturating_mul(24) > WORK {
        return None;
    }
    let state: Vec<f64> = (0..count)
        .map(|i| if i == 0 { 0.0 } else { LEAST * ratio.powi(i as i32 - 1) * (1.0 + 1e-12) })
        .collect();
    let decayed = |i: usize| match i {
        0 => 0,
        _ if lambda == 0.0 => 0,
        _ => (i.saturating_sub(shift)).max(1),
    };
    let up = |s: f64| state.partition_point(|x| *x < s * (1.0 - 1e-13)).min(count - 1);
    let quiet: Vec<usize> = (0..count).map(decayed).collect();
    let joined: Vec<usize> = (0..count).map(|i| up(lambda * state[i] + 1.0)).collect();
    let scale = 1.0 / most.powi(2);
    let mut moments = vec![];
    for k in 0..24 {
        let theta = scale * 2.0_f64.powf(k as f64 - 16.0);
        let gain: Vec<f64> = state.iter().map(|s| (theta * s * s).exp()).collect();
        let mut mass = vec![0.0; count];
        mass[0] = 1.0;
        let mut log = 0.0;
        for _ in 0..steps {
            let mut next = vec![0.0; count];
            for i in 0..count {
                if mass[i] > 0.0 {
                    next[quiet[i]] += mass[i] * (1.0 - rate);
                    next[joined[i]] += mass[i] * rate;
                }
            }
            next.iter_mut().zip(&gain).filter(|(m, _)| **m > 0.0).for_each(|(m, g)| *m *= g);
            let total: f64 = next.iter().sum();
            next.iter_mut().for_each(|m| *m /= total);
            log += total.ln();
            mass = next;
        }
        if !log.is_finite() {
            break;
        }
        moments.push((theta, log * (1.0 + 1e-12) + 1e-12));
    }
    Some(moments)
}
