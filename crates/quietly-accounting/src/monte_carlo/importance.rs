//! Laws to draw from: tilts with what they certify, and mixtures of them.
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardUniform};

/// A law R to draw from, with ln dR/dT ≥ slope·ℓ - offset at every output. The slope is not
/// negative.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tilt {
    pub(super) slope: f64,
    pub(super) offset: f64,
}

impl Tilt {
    /// ln of the bound M(ε) that this tilt alone gives: (1 - e^(-v))e^(-sv) is greatest at e^(-v) =
    /// s/(s + 1).
    pub(super) fn log_bound(&self, epsilon: f64) -> f64 {
        let s = self.slope;
        let most = if s > 0.0 { s * (s / (s + 1.0)).ln() - (s + 1.0).ln() } else { 0.0 };
        most + self.offset - s * epsilon
    }
}

/// A draw from tilt `from`, to be compared with `tilts` if its ℓ is not below `above`.
#[derive(Clone, Copy)]
pub(super) struct Draw<'a> {
    pub(super) from: usize,
    pub(super) tilts: &'a [usize],
    pub(super) above: f64,
}

/// One direction of a pair of laws, and tilts of the law T that is drawn for.
pub(super) trait Pair {
    fn tilts(&self) -> &[Tilt];
    /// Returns ℓ and, where it is above what is asked, writes ln dR_k/dT for each k of the tilts.
    fn draw(&mut self, draw: Draw<'_>, rng: &mut ChaCha8Rng, out: &mut [f64]) -> f64;
    /// Elementary operations of a draw that is compared with so many tilts.
    fn cost(&self, tilts: usize) -> f64;
}

/// The mixture drawn from: indices of tilts with their weights.
#[derive(Clone, Debug)]
pub(super) struct Mixture {
    pub(super) tilts: Vec<usize>,
    pub(super) weights: Vec<f64>,
}

impl Mixture {
    pub(super) fn of(a: usize, b: usize, weight: f64) -> Mixture {
        match a == b {
            true => Mixture { tilts: vec![a], weights: vec![1.0] },
            false => Mixture { tilts: vec![a, b], weights: vec![weight, 1.0 - weight] },
        }
    }

    /// M(ε), from above: on a cell of v the numerator is largest at its end, the denominator least
    /// at its start.
    pub(super) fn bound(&self, tilts: &[Tilt], epsilon: f64) -> f64 {
        let below = |v: f64| -> f64 {
            let term = |(k, w): (&usize, &f64)| {
                w * (tilts[*k].slope * (epsilon + v) - tilts[*k].offset).exp()
            };
            self.tilts.iter().zip(&self.weights).map(term).sum()
        };
        let (mut start, mut end, mut most) = (0.0, 1e-4, 0.0_f64);
        loop {
            let least = below(start);
            if least.is_nan() {
                return f64::INFINITY;
            }
            most = most.max(-f64::exp_m1(-end) / least);
            // From here on 1/`least` is all that can be reached, and it falls.
            if 1.0 / least <= most || end > 60.0 {
                return most.max(1.0 / below(end).max(least)) * (1.0 + 1e-9);
            }
            (start, end) = (end, end * 1.02);
        }
    }

    /// A tilt, with its weight.
    pub(super) fn pick(&self, rng: &mut ChaCha8Rng) -> usize {
        let mut left: f64 = StandardUniform.sample(rng);
        for (k, w) in self.tilts.iter().zip(&self.weights) {
            left -= w;
            if left < 0.0 {
                return *k;
            }
        }
        self.tilts[0]
    }

    /// ln Σ w_k e^(r_k).
    pub(super) fn log_sum(&self, ratios: &[f64]) -> f64 {
        let top = ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = ratios.iter().zip(&self.weights).map(|(r, w)| w * (r - top).exp()).sum();
        top + sum.ln()
    }
}

/// The c that give the least bound at some ε up to `known`, or that raise one contribution of
/// energy `single` and probability `share` to where it alone makes the loss; P itself (c = 1) too.
pub(super) fn useful_powers(
    known: f64,
    offset: impl Fn(f64) -> f64,
    single: f64,
    share: f64,
) -> Vec<f64> {
    let ladder: Vec<f64> = (0..20).map(|i| 1.0 + 0.2 * 1.5_f64.powi(i)).collect();
    let offsets: Vec<f64> = ladder.iter().map(|c| offset(*c)).collect();
    let mut powers = vec![1.0];
    for k in 0..5 {
        let e = known * 2.0_f64.powf(-0.7 * k as f64);
        let bound = |i: usize| Tilt { slope: ladder[i] - 1.0, offset: offsets[i] }.log_bound(e);
        let best = (0..ladder.len()).min_by(|a, b| bound(*a).total_cmp(&bound(*b))).unwrap_or(0);
        powers.push(ladder[best]);
        let raised = (e.exp_m1() / share).ln_1p() / single + 0.5;
        let above = ladder.partition_point(|c| *c < raised).min(ladder.len() - 1);
        if k % 2 == 1 && bound(above) < 5.0 {
            powers.push(ladder[above]);
        }
    }
    powers.sort_by(f64::total_cmp);
    powers.dedup();
    powers
}

/// How far to tilt towards the record's absence: h with the least bound at some ε up to `known`;
/// none first.
pub(super) fn useful_shifts(known: f64, floor: f64, mu_squared: f64) -> Vec<f64> {
    let best =
        |k: i32| ((known * 2.0_f64.powf(-0.75 * k as f64) - floor) / mu_squared).clamp(0.0, 1e4);
    let natural = (4.0 / mu_squared.sqrt()).min(1e4);
    let mut shifts: Vec<f64> = (0..5).map(best).chain([0.0, 0.5 * natural, natural]).collect();
    shifts.sort_by(f64::total_cmp);
    shifts.dedup_by(|a, b| *a - *b < 0.05 * *a);
    shifts
}

/// e^x for x ≤ 0, zero below -700. Relative error below 1e-15; no branch, so that loops over it are
/// vectorised.
pub(super) fn exp(x: f64) -> f64 {
    const MAGIC: f64 = 6_755_399_441_055_744.0;
    // ln 2 in two pieces, the first short enough for exact multiples.
    const HIGH: f64 = 0.693_147_180_369_123_8;
    const LOW: f64 = 1.908_214_929_270_587_7e-10;
    let y = x.max(-700.0);
    let shifted = y * std::f64::consts::LOG2_E + MAGIC;
    let k = shifted - MAGIC;
    let r = (y - k * HIGH) - k * LOW;
    let mut sum = 1.0 / 6_227_020_800.0;
    for d in [
        479_001_600.0,
        39_916_800.0,
        3_628_800.0,
        362_880.0,
        40_320.0,
        5_040.0,
        720.0,
        120.0,
        24.0,
        6.0,
        2.0,
        1.0,
        1.0_f64,
    ] {
        sum = sum * r + 1.0 / d;
    }
    let scale = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    if x < -700.0 { 0.0 } else { sum * scale }
}
