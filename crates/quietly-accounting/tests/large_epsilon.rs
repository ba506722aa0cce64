//! Against an exact lower bound, up to ε = 1e5, far beyond where e^ε overflows.
//!
//! Let the record be in n of T samples, y says which, and w = q^n (1-q)^(T-n) be the chance of y.
//! The outputs' law with the record is at least w·P_y for each y, so that the loss is at least ln w
//! plus that of a Gaussian release of parameter m = c√n/σ:
//!
//! δ(ε) ≥ Σ_n Binomial(T, q)(n)·[Φ(m/2 - a/m) - e^a Φ(-m/2 - a/m)], a = ε - n ln q - (T-n) ln(1-q).
//!
//! c is 1 where a record is there or not, and 2 where the others fill its place with the opposite
//! (a batch of fixed size, replace-one). A replaced record may be replaced by one that adds
//! nothing, which is an instance of c = 1.
mod common;
use common::*;
use quietly_accounting::{Event, Neighbours, delta, epsilon};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use rand_distr::{Distribution, StandardUniform};
use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// exp(x²)·erfc(x) for x ≥ 0.
fn erfcx(x: f64) -> f64 {
    if x < 20.0 {
        let square = x * x;
        return square.exp() * (1.0 + x.mul_add(x, -square)) * libm::erfc(x);
    }
    let t = 0.5 / (x * x);
    let series = (1..12).rev().fold(1.0, |sum, k| 1.0 - f64::from(2 * k - 1) * t * sum);
    series / (x * PI.sqrt())
}

/// ln of a Gaussian's δ at `a`, any real number: both terms carry exp(-z²/2), which is taken out.
fn log_gaussian(m: f64, a: f64) -> f64 {
    let (z, far) = (a / m - 0.5 * m, a / m + 0.5 * m);
    match z >= 0.0 {
        true => {
            let both = erfcx(z * FRAC_1_SQRT_2) - erfcx(far * FRAC_1_SQRT_2);
            (0.5 * both).ln() - 0.5 * z * z
        }
        // Where `far` is negative, so is a.
        false => {
            let rest = match far >= 0.0 {
                true => 0.5 * (-0.5 * z * z).exp() * erfcx(far * FRAC_1_SQRT_2),
                false => a.exp() * upper_tail(far),
            };
            (upper_tail(z) - rest).ln()
        }
    }
}

/// A scheme whose bound is known: `times` independent uses, each of which holds the record with
/// probability `rate`.
#[derive(Debug)]
struct Scheme {
    rate: f64,
    times: u64,
    /// σ/c.
    noise: f64,
    /// μ² of Gaussian releases beside it.
    beside: f64,
    /// In how many places of a use the record may be, all alike.
    places: f64,
}

impl Scheme {
    fn least_delta(&self, epsilon: f64) -> f64 {
        let (t, log_in, log_out) = (self.times as f64, self.rate.ln(), (-self.rate).ln_1p());
        let choose =
            |n: f64| libm::lgamma(t + 1.0) - libm::lgamma(n + 1.0) - libm::lgamma(t - n + 1.0);
        let term = |n: u64| {
            let n = n as f64;
            // A rate of one leaves no other chance.
            let out = if n < t { (t - n) * log_out } else { 0.0 };
            let (log_chance, places) = (n * log_in + out, n * self.places.ln());
            let m = (n / self.noise.powi(2) + self.beside).sqrt();
            choose(n) + log_chance + log_gaussian(m, epsilon - (log_chance - places))
        };
        let first = u64::from(self.beside == 0.0);
        let logs: Vec<f64> = (first..=self.times).map(term).filter(|l| l.is_finite()).collect();
        logs.into_iter().map(f64::exp).sum()
    }
}

struct Draws(ChaCha8Rng);

impl Draws {
    fn between(&mut self, low: f64, high: f64) -> f64 {
        let u: f64 = StandardUniform.sample(&mut self.0);
        low * (high / low).powf(u)
    }
}

/// A family: rate, steps and noise to an event, a relation and the scheme that is its instance.
type Family = fn(f64, u64, f64) -> (Event, Neighbours, Scheme);

/// Checks `count` schemes with parameters uniform in their logarithms.
fn holds(seed: u64, count: u32, family: Family) {
    let mut rng = Draws(ChaCha8Rng::seed_from_u64(seed));
    let (mut done, mut large) = (0, 0);
    while done < count {
        let (rate, steps) = (rng.between(0.01, 0.9), rng.between(1.0, 2000.0) as u64);
        let (noise, target) = (rng.between(0.1, 1.0), rng.between(1e-12, 0.5));
        let (event, neighbours, scheme) = family(rate, steps, noise);
        let loss = scheme.times as f64 * scheme.rate / scheme.noise.powi(2);
        if loss > 1e5 {
            continue;
        }
        let what = format!("{scheme:?} at δ {target} under {neighbours:?}");
        let found = epsilon(&event, neighbours, target).unwrap();
        assert!(found.lower <= found.upper && found.upper.is_finite(), "{what}: {found:?}");
        let least = scheme.least_delta(found.upper);
        assert!(least <= target * (1.0 + 1e-9), "{what}: {found:?}, but δ is at least {least}");
        // The other question, where it may be asked.
        if done % 4 == 0 && (1e-3..1e3).contains(&found.upper) {
            let back = delta(&event, neighbours, found.upper).unwrap();
            assert!(back.lower <= target * (1.0 + 1e-9), "{what}: {found:?} {back:?}");
            let least = scheme.least_delta(found.upper);
            assert!(least <= back.upper * (1.0 + 1e-9), "{what}: {back:?} {least}");
        }
        done += 1;
        large += u32::from(found.upper > 709.0);
    }
    assert!(large > count / 30, "only {large} of {count} are above 709");
}

fn scheme(rate: f64, times: u64, noise: f64) -> Scheme {
    Scheme { rate, times, noise, beside: 0.0, places: 1.0 }
}

/// Ten million records, so that any rate is a share of them.
fn batch(rate: f64, noise: f64) -> (Event, f64) {
    let batch = ((rate * 1e7) as u64).max(1);
    (Event::fixed_size(10_000_000, batch, noise).unwrap(), batch as f64 / 1e7)
}

#[test]
fn poisson_samples_cost_no_less_than_the_exact_bound() {
    holds(1, 200, |rate, steps, noise| {
        let event = Event::poisson(rate, noise).unwrap().repeat(steps).unwrap();
        (event, AddRemove, scheme(rate, steps, noise))
    });
}

#[test]
fn replaced_poisson_samples_cost_no_less_than_the_exact_bound() {
    holds(2, 60, |rate, steps, noise| {
        let event = Event::poisson(rate, noise).unwrap().repeat(steps).unwrap();
        (event, ReplaceOne, scheme(rate, steps, noise))
    });
}

#[test]
fn batches_of_fixed_size_cost_no_less_than_the_exact_bound() {
    holds(3, 200, |rate, steps, noise| {
        let (event, rate) = batch(rate, noise);
        (event.repeat(steps).unwrap(), ReplaceOne, scheme(rate, steps, 0.5 * noise))
    });
}

#[test]
fn batches_without_a_record_cost_no_less_than_the_exact_bound() {
    holds(4, 60, |rate, steps, noise| {
        let (event, rate) = batch(rate, noise);
        (event.repeat(steps).unwrap(), AddRemove, scheme(rate, steps, noise))
    });
}

/// One step of `1/rate` for each of `steps` passes: every choice of steps has the chance
/// rate^steps.
#[test]
fn allocations_cost_no_less_than_the_exact_bound() {
    holds(5, 60, |rate, steps, noise| {
        let (bins, passes) = ((1.0 / rate) as u64 + 1, 1 + steps / 10);
        let event = Event::random_allocation(bins, 1, noise).unwrap().repeat(passes).unwrap();
        (event, AddRemove, Scheme { places: bins as f64, ..scheme(1.0, passes, noise) })
    });
}

#[test]
fn samples_beside_gaussian_sums_cost_no_less_than_the_exact_bound() {
    holds(6, 60, |rate, steps, noise| {
        let samples = Event::poisson(rate, noise).unwrap().repeat(steps).unwrap();
        let event = samples.then(Event::gaussian(2.0 * noise).unwrap());
        let beside = 0.25 / noise.powi(2);
        (event, AddRemove, Scheme { beside, ..scheme(rate, steps, noise) })
    });
}

/// The control: what was claimed while e^(ε-centre) overflowed, ε above 709 from there. The bound
/// refutes each.
#[test]
fn claims_that_were_too_small_are_refuted() {
    for (scheme, claimed, target) in [
        (scheme(0.01, 1000, 0.1), 1631.576, 1e-12),
        (scheme(0.5, 1000, 0.1), 26552.2, 1e-3),
        (scheme(0.5, 1000, 0.1), 28092.5, 1e-12),
        (scheme(0.01, 10, 0.05), 972.184, 1e-12),
        (scheme(0.001, 100, 0.05), 867.316, 1e-9),
    ] {
        let least = scheme.least_delta(claimed);
        assert!(least > 3.0 * target, "{scheme:?} {least}");
    }
    // 40 digits (mpmath).
    let beside = Scheme {
        beside: 16.61578217764256,
        ..scheme(0.02175781253615024, 230, 0.12266187788710295)
    };
    let found = beside.least_delta(793.02);
    assert!((found / 1.793_473_084_103e-11 - 1.0).abs() < 1e-10, "{found}");
    // 2.06e-10, 3.19e-3, 2.19e-6, 1.30e-8 and 9.77e-8.
    let first = scheme(0.01, 1000, 0.1).least_delta(1631.576);
    assert!((first / 2.06e-10 - 1.0).abs() < 0.01, "{first}");
}
