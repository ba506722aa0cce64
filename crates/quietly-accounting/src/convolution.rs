//! Composition by convolution: the distribution of a sum of independent losses, by one Fourier
//! transform.
//!
//! # Proof: composition with the error of the transform
//!
//! *Statement.* [`Curve::delta`] is at least (for [`Side::Above`]) or at most (below) the δ(ε) of
//! the composition of the given grids, at every ε.
//!
//! *Notation.* The masses p at losses l are first tilted: p·e^(θl - ln M(θ)), with θ near the
//! saddle point of the result. Then the part of the sum that decides δ has mass of order one, and
//! an absolute error of the transform is a relative error of δ, at any δ. (Without a tilt the
//! transform has absolute noise of 1e-16 per step, which is fatal at δ = 1e-12.) K = Σ tᵢ ln Mᵢ(θ),
//! c is the tilted distribution of the sum S, and E_c is its expectation.
//!
//! δ(ε) = P(S = ∞) + e^(K - θε)·E_c[e^(-θ(S-ε))(1 - e^(-(S-ε)))₊].
//!
//! *Rounding.* Five errors are added for a bound from above and subtracted for a bound from below:
//!
//! 1. *Window.* The transform is cyclic over [low, high). Mass above it adds at most P(S ≥ high) ≤
//!    e^(K(θ+t) - (θ+t)high) to δ. Mass that wraps is counted too much, never too little: mass from
//!    below `low` (tilted, at most `TAIL` by Chernoff's bound at θ-t) and mass from above high +
//!    ε - low, each with a weight of at most e^(K - θε).
//! 2. *Tilt.* The weights are exponentials, each accurate to 256 units, so each coefficient has at
//!    most that error.
//! 3. *Forward transform.* ‖computed - exact‖₂ ≤ γ‖exact‖₂ with γ = 8·log₂(n)·U (Higham, *Accuracy
//!    and Stability of Numerical Algorithms*, Theorem 24.2, whose constant is below 7 for twiddle
//!    factors accurate to one unit). So each coefficient has an error of at most e = γ√n‖p‖₂.
//! 4. *Power.* |z^t - ẑ^t| ≤ t·e·(|ẑ| + e)^(t-1), plus 4(t+1)U relative for the multiplications.
//! 5. *Inverse transform.* γ again. The two-norm E of all these bounds the error of δ by e^(K -
//!    θε)·‖w‖₂·E with ‖w‖₂² ≤ min(n, 1/(1 - e^(-2θh))), since the weights e^(-θ(S-ε)) are below
//!    one.
use crate::{
    normal::{U, positive},
    pld_grid::{PldGrid, Side},
};
use quietly_fft::{Complex64, forward, inverse};

/// Tilted mass outside the window, on either side.
const TAIL: f64 = 1e-10;
/// The longest transform: 8 MiB per buffer.
const LONGEST: usize = 1 << 20;

/// The given quantity: δ (find ε) or ε (find δ). It decides the tilt and nothing else.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    Delta(f64),
    Epsilon(f64),
}

/// A grid and its number of repetitions.
pub(crate) type Term = (PldGrid, u64);

/// The cumulant function of the sum and its first two derivatives at θ, over the finite losses.
#[derive(Clone, Copy, Debug)]
struct Cumulant {
    value: f64,
    mean: f64,
    variance: f64,
}

/// Logarithms of the masses, so that no tilt overflows.
struct Logs {
    step: f64,
    offset: f64,
    first: i64,
    log_mass: Vec<f64>,
    times: f64,
}

impl Logs {
    fn new((grid, times): &Term) -> Logs {
        let log_mass = grid.mass.iter().map(|m| m.ln()).collect();
        Logs {
            step: grid.step,
            offset: grid.offset,
            first: grid.first,
            log_mass,
            times: *times as f64,
        }
    }

    fn loss(&self, j: usize) -> f64 {
        self.offset + (self.first + j as i64) as f64 * self.step
    }

    fn cumulant(&self, theta: f64) -> Cumulant {
        let mut top = f64::NEG_INFINITY;
        for (j, log_mass) in self.log_mass.iter().enumerate() {
            top = top.max(log_mass + theta * self.loss(j));
        }
        let (mut sum, mut first, mut second) = (0.0, 0.0, 0.0);
        for (j, log_mass) in self.log_mass.iter().enumerate() {
            let loss = self.loss(j);
            let exponent = log_mass + theta * loss - top;
            if exponent > -60.0 {
                let weight = exponent.exp();
                sum += weight;
                first += weight * loss;
                second += weight * loss * loss;
            }
        }
        let mean = first / sum;
        Cumulant {
            value: self.times * (top + sum.ln()),
            mean: self.times * mean,
            variance: self.times * (second / sum - mean * mean).max(0.0),
        }
    }
}

fn cumulant(logs: &[Logs], theta: f64) -> Cumulant {
    let zero = Cumulant { value: 0.0, mean: 0.0, variance: 0.0 };
    logs.iter().map(|l| l.cumulant(theta)).fold(zero, |sum, c| Cumulant {
        value: sum.value + c.value,
        mean: sum.mean + c.mean,
        variance: sum.variance + c.variance,
    })
}

/// A tilt half-way to the saddle point, where the Chernoff bound for the target is least.
/// Any θ ≥ 0 is valid. At half the saddle point the bound is at most a few thousand times larger,
/// which the accuracy of the transform allows. The tilted distribution then has much lighter tails,
/// hence a much shorter window.
pub(crate) fn tilt(terms: &[Term], target: Target) -> f64 {
    let logs: Vec<Logs> = terms.iter().map(Logs::new).collect();
    // Both functions increase with θ; their root is the best θ.
    let rises = |theta: f64| {
        let k = cumulant(&logs, theta);
        match target {
            Target::Delta(delta) => (theta * k.mean - k.value + delta.ln(), theta * k.variance),
            Target::Epsilon(epsilon) => (k.mean - epsilon, k.variance),
        }
    };
    let (at_zero, _) = rises(0.0);
    if at_zero >= 0.0 {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, f64::INFINITY);
    let mut theta = 1.0;
    for _ in 0..40 {
        let (value, derivative) = rises(theta);
        if value < 0.0 {
            low = theta
        } else {
            high = theta
        }
        // Where a loss has a largest value, a strong tilt leaves only that value.
        let frozen = cumulant(&logs, theta).variance < terms[0].0.step.powi(2);
        if frozen || value.abs() < 0.3 || high - low < 0.01 * low || theta > 1e9 {
            break;
        }
        let newton = theta - value / derivative;
        theta = if newton.is_finite() && newton > low && newton < high && newton < 8.0 * theta {
            newton
        } else if high.is_finite() {
            if low > 0.0 { (low * high).sqrt() } else { 0.25 * high }
        } else {
            4.0 * theta
        };
    }
    0.5 * theta
}

/// The curve δ(ε) of a composition, bounded from one side.
pub(crate) struct Curve {
    side: Side,
    step: f64,
    /// The loss at the window's first point.
    low: f64,
    theta: f64,
    /// K(θ).
    log_moment: f64,
    tails: Vec<Tail>,
    infinite: f64,
    /// Error relative to e^(K - θε).
    noise: f64,
    /// The largest δ that mass above the window can add.
    beyond: f64,
    /// Chernoff exponents (t, g): tilted mass of at most e^(g - tε) wraps from above to beyond ε.
    wrap: Vec<(f64, f64)>,
}

/// The part of the distribution from its point l_j up, relative to that point. No weight exceeds
/// one, for any ε.
///
/// With c the tilted distribution and x = l - l_j ≥ 0: for ε in (l_j - step, l_j],
/// E_c[e^(-θ(S-l_j))(1 - e^(-(S-ε)))₊] = gain + (1 - e^(ε-l_j))·rest, a sum of positive terms.
#[derive(Clone, Copy, Default)]
struct Tail {
    /// Σ c·e^(-θx)(1 - e^(-x)).
    gain: f64,
    /// Σ c·e^(-(θ+1)x).
    rest: f64,
}

/// Composes `terms`, which share one step, at tilt `theta`. `None` if the window does not fit
/// [`LONGEST`].
pub(crate) fn compose(terms: &[Term], theta: f64, side: Side) -> Option<Curve> {
    let logs: Vec<Logs> = terms.iter().map(Logs::new).collect();
    let step = terms[0].0.step;
    let k = cumulant(&logs, theta);
    let reach = k.variance.sqrt().max(step);
    let growth = |t: f64| (t, cumulant(&logs, theta + t).value - k.value);
    let up = [7.0, 2.5, 0.8, 0.2].map(|t| growth(t / reach));
    let down = [7.0, 2.5].map(|t| growth(-(t / reach).min(theta + 7.0 / reach)));
    let offset: f64 = logs.iter().map(|l| l.times * l.offset).sum();
    let low = down.iter().map(|(t, g)| (g - TAIL.ln()) / t).fold(f64::NEG_INFINITY, f64::max);
    // So high that the mass above is negligible with its weight in δ, and that mass which wraps
    // from above lands below the centre, where it is not counted.
    let negligible = |(t, g): &(f64, f64)| (g + theta * k.mean + 20.0) / (theta + t);
    let unwrapped = |(t, g): &(f64, f64)| (g - TAIL.ln()) / t - (k.mean - low);
    let least = |f: &dyn Fn(&(f64, f64)) -> f64| up.iter().map(f).fold(f64::INFINITY, f64::min);
    let high = least(&negligible).max(least(&unwrapped)).max(k.mean + 2.0 * reach);
    let count = ((high - low) / step).ceil() + 4.0;
    let fits = count <= LONGEST as f64 && (low - offset).abs() / step < 1e15;
    if !fits {
        return None;
    }
    let first = ((low - offset) / step).floor() as i64 - 1;
    let length = (count as usize).next_power_of_two().max(16);
    let (law, error) = transform(terms, &logs, theta, length, first);
    let low = offset + first as f64 * step;
    let top = low + length as f64 * step;

    let mut tails = vec![Tail::default(); length + 1];
    let (tilted, both) = ((-theta * step).exp(), (-(theta + 1.0) * step).exp());
    let lost = -(-step).exp_m1();
    for j in (0..length).rev() {
        let next = tails[j + 1];
        let gain = tilted * (next.gain + lost * next.rest);
        // A rounding error may make a mass negative.
        tails[j] = Tail { gain, rest: positive(law[j]) + both * next.rest };
    }
    let weights = (length as f64).min(1.0 / -(-2.0 * theta * step).exp_m1()).sqrt();
    let infinite =
        terms.iter().map(|(g, t)| *t as f64 * (-g.infinite.min(1.0)).ln_1p()).sum::<f64>();
    let beyond = up.iter().map(|(t, g)| k.value + g - (theta + t) * top).fold(0.0, f64::min);
    Some(Curve {
        side,
        step,
        low,
        theta,
        log_moment: k.value,
        tails,
        infinite: -infinite.exp_m1(),
        noise: weights * error + TAIL,
        beyond: beyond.exp(),
        wrap: up.map(|(t, g)| (t, g - t * (top - low))).to_vec(),
    })
}

/// The tilted distribution of the sum on `length` points from index `first`, and a bound on the
/// two-norm of its error.
fn transform(
    terms: &[Term],
    logs: &[Logs],
    theta: f64,
    length: usize,
    first: i64,
) -> (Vec<f64>, f64) {
    let gamma = 8.0 * (length as f64).log2() * U;
    let half = length / 2 + 1;
    let mut product = vec![Complex64::new(1.0, 0.0); half];
    let mut size = vec![0.0_f64; half]; // ln Π (|z| + e)^t
    let mut relative = vec![0.0_f64; half]; // Σ t·e/(|z| + e) and the rounding of powers
    for ((grid, times), log) in terms.iter().zip(logs) {
        let value = log.cumulant(theta).value / log.times;
        let mut buffer = vec![0.0; length];
        let mut square = 0.0;
        for (j, log_mass) in log.log_mass.iter().enumerate() {
            let weight = (log_mass + theta * log.loss(j) - value).exp();
            let place = (grid.first + j as i64).rem_euclid(length as i64) as usize;
            buffer[place] += weight;
        }
        for weight in &buffer {
            square += weight * weight;
        }
        let spectrum = forward(&mut buffer);
        // The tilted weights are exponentials of sums of a few hundred at most: accurate to 256
        // units.
        let e = gamma * (length as f64 * square).sqrt() + 256.0 * U;
        let t = *times as f64;
        for k in 0..half {
            let z = spectrum[k];
            let radius = z.norm() + e;
            size[k] += t * radius.ln();
            relative[k] += t * e / radius + 4.0 * (t + 1.0) * U;
            // A coefficient below e^-60 is omitted, and its bound counts as error.
            product[k] =
                if size[k] < -60.0 { Complex64::default() } else { product[k] * power(z, *times) };
        }
    }
    let (mut error, mut total) = (0.0, 0.0);
    for k in 0..half {
        let both = if k == 0 || k == half - 1 { 1.0 } else { 2.0 };
        let bound = size[k].exp();
        let wrong = bound * if size[k] < -60.0 { 1.0 } else { relative[k].min(1.0) };
        error += both * wrong * wrong;
        total += both * bound * bound;
        // Back to the window: index `first` moves to place zero.
        let turn = (k as i64).wrapping_mul(first).rem_euclid(length as i64) as f64;
        product[k] *= Complex64::cis(std::f64::consts::TAU * turn / length as f64);
    }
    product[0].im = 0.0;
    product[half - 1].im = 0.0;
    let mut law = inverse(&mut product, length);
    law.iter_mut().for_each(|c| *c /= length as f64);
    let n = length as f64;
    (law, ((error / n).sqrt() + (gamma + 4.0 * U) * (total / n).sqrt()) * (1.0 + 1e-9))
}

fn power(z: Complex64, times: u64) -> Complex64 {
    let (mut base, mut left, mut result) = (z, times, Complex64::new(1.0, 0.0));
    while left > 1 {
        if left % 2 == 1 {
            result *= base;
        }
        base *= base;
        left /= 2;
    }
    result * base
}

impl Curve {
    /// The bound on δ at ε; 1 from above and 0 from below where it cannot be computed.
    pub(crate) fn delta(&self, epsilon: f64) -> f64 {
        let above = self.side == Side::Above;
        let place = ((epsilon - self.low) / self.step).floor() + 1.0;
        if place < 0.0 && above {
            return 1.0;
        }
        let j = place.clamp(0.0, self.tails.len() as f64 - 1.0) as usize;
        let Tail { gain, rest } = self.tails[j];
        // Rounding may put ε just above its grid point.
        let next = self.low + j as f64 * self.step;
        let finite = gain + -(epsilon - next).min(0.0).exp_m1() * rest;
        // The product in logarithms: a factor may be out of range while the product is not.
        let finite = (finite.ln() + self.log_moment - self.theta * next).exp();
        let unit = (self.log_moment - self.theta * epsilon).exp();
        // The rounding of exponentials and of sums with positive terms, and of the exponents,
        // relative to their terms.
        let exponents = self.log_moment.abs() + self.theta * next.abs().max(epsilon.abs());
        let slack = 1e-9 + 16.0 * U * exponents;
        let bound = if above {
            (finite + self.noise * unit) * (1.0 + slack)
                + self.beyond
                + self.infinite * (1.0 + 1e-12)
        } else {
            let wrap = self.wrap.iter().map(|(t, g)| g - t * epsilon).fold(0.0, f64::min).exp();
            let certain = finite * (1.0 - slack) - (self.noise + wrap) * unit * (1.0 + slack);
            // Zero where the error is as large as the value.
            let certain = if certain > 0.0 { certain } else { 0.0 };
            certain + self.infinite * (1.0 - 1e-9)
        };
        match bound.is_finite() {
            true => bound.min(1.0),
            false if above => 1.0,
            false => 0.0,
        }
    }

    /// The ε at which the bound on δ decreases to `target`, rounded to the curve's side.
    pub(crate) fn epsilon(&self, target: f64) -> f64 {
        let top = self.low + self.tails.len() as f64 * self.step;
        let exceeds = |e: f64| self.delta(e) > target;
        // A bound from below need not be monotone far from the tilt: find its highest crossing.
        let start = (0..=512)
            .map(|i| top - (top - self.low.max(0.0)) * i as f64 / 512.0)
            .chain([0.0])
            .find(|&e| e >= 0.0 && exceeds(e));
        let Some(mut low) = start else { return 0.0 };
        let mut high = low + (top - self.low.max(0.0)) / 512.0;
        if top < 0.0 || exceeds(high) {
            return if self.side == Side::Above { f64::INFINITY } else { low };
        }
        while high - low > 1e-13 * high {
            let mid = 0.5 * (low + high);
            if mid <= low || mid >= high {
                break;
            }
            if exceeds(mid) { low = mid } else { high = mid }
        }
        if self.side == Side::Above { high } else { low }
    }
}
