//! Calibration: the least noise that meets a budget.
use crate::{
    accountant::{PrivacyBound, epsilon},
    convolution::Target,
    error::Error,
    event::{Event, Neighbours},
    gaussian, renyi,
    theorems::{Branch, branches},
};

/// The largest μ for which μ-GDP is (`epsilon`, `delta`)-DP, rounded down.
///
/// A Gaussian release with noise multiplier 1/μ is μ-GDP.
///
/// ```
/// // Noise multiplier 3.7306 for one Gaussian release at epsilon 1 and delta 1e-5.
/// let mu = quietly_accounting::gaussian_mu(1.0, 1e-5)?;
/// assert!((1.0 / mu - 3.730_631_635).abs() < 1e-8);
/// # Ok::<(), quietly_accounting::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Parameter`] outside the range of ε and δ.
pub fn gaussian_mu(epsilon: f64, delta: f64) -> Result<f64, Error> {
    Ok(gaussian::mu(Error::epsilon(epsilon)?, Error::delta(delta)?))
}

/// A noise multiplier and its cost.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Calibration {
    /// The standard deviation of the noise over the sensitivity.
    pub noise_multiplier: f64,
    /// The cost at the given δ. `epsilon.upper` is at most the target.
    pub epsilon: PrivacyBound,
}

/// The least noise multiplier for which `event(noise)` costs at most `target_epsilon` at `delta`,
/// to one percent of the target.
///
/// The cost of the returned noise has been computed and is at most the target. It is not
/// extrapolated.
///
/// ```
/// use quietly_accounting::{Event, Neighbours, calibrate};
///
/// let run = |noise| Event::poisson(0.01, noise)?.repeat(1000);
/// let found = calibrate(run, Neighbours::AddRemove, 1.0, 1e-5)?;
/// assert!(found.epsilon.upper <= 1.0 && found.epsilon.upper > 0.99);
/// # Ok::<(), quietly_accounting::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Unreachable`] if no noise multiplier in [0.1, 100000] meets the target, and the errors
/// of `event`.
pub fn calibrate(
    event: impl Fn(f64) -> Result<Event, Error>,
    neighbours: Neighbours,
    target_epsilon: f64,
    delta: f64,
) -> Result<Calibration, Error> {
    let goal = Error::epsilon(target_epsilon)?;
    let target = Target::Delta(Error::delta(delta)?);
    let cost = |noise: f64, coarser: f64| -> Result<f64, Error> {
        let run = event(noise)?;
        let upper = |b: &Branch| b.upper(neighbours, target, coarser);
        let upper = branches(&run, neighbours)?.iter().map(upper).fold(0.0, f64::max);
        // As in `epsilon`: Rényi divergences give a smaller cost for repeated exponential
        // mechanisms.
        let other =
            if run.has_exponential() { renyi::epsilon(&run, neighbours, delta).ok() } else { None };
        Ok(other.map_or(upper, |o| upper.min(o)))
    };
    let unreachable = Error::Unreachable {
        least: LEAST,
        most: MOST,
        epsilon: goal,
        delta,
        instead: "take fewer steps, sample less, or allow a larger epsilon",
    };
    // A coarse search first: each evaluation takes a tenth of the time. It also estimates how
    // steeply ε decreases.
    let coarse = |noise: f64| cost(noise, 3.0);
    let (about, found) = least_noise(coarse, goal, 1.0, 1.0, 1.005)?.ok_or(unreachable.clone())?;
    let steepness = (found / coarse((1.02 * about).min(MOST))?).ln() / 1.02_f64.ln();
    let steepness = if steepness.is_finite() { steepness.clamp(1.0, 50.0) } else { 1.0 };
    let fine = least_noise(|noise| cost(noise, 1.0), goal, about, steepness, 1.001)?;
    let (noise, _) = fine.ok_or(unreachable)?;
    let answer = |noise: f64| epsilon(&event(noise)?, neighbours, delta);
    let found = Calibration { noise_multiplier: noise, epsilon: answer(noise)? };
    let upper = found.epsilon.upper;
    if upper > 0.99 * goal || noise <= LEAST {
        return Ok(found);
    }
    // A single composition is loose for this event. Search with `epsilon`, which refines its grid.
    let start = (noise * (upper.max(1e-9) / goal).powf(1.0 / steepness)).clamp(LEAST, noise);
    let cost = |noise: f64| answer(noise).map(|answer| answer.upper);
    let refined = least_noise(cost, goal, start, steepness, 1.005)?;
    let refined = refined.map(|(noise, _)| noise).filter(|refined| *refined < noise);
    let Some(noise_multiplier) = refined else { return Ok(found) };
    Ok(Calibration { noise_multiplier, epsilon: answer(noise_multiplier)? })
}

/// The range of noise multipliers.
const LEAST: f64 = 0.1;
const MOST: f64 = 1e5;

/// The least noise whose `cost` is at most `goal`, to a factor of `precision`, and its cost. The
/// search begins at `start`.
///
/// Only noise whose cost was computed is returned. ε decreases about as a power of the noise, so
/// the next guess interpolates logarithms.
fn least_noise(
    cost: impl Fn(f64) -> Result<f64, Error>,
    goal: f64,
    start: f64,
    steepness: f64,
    precision: f64,
) -> Result<Option<(f64, f64)>, Error> {
    let mut noise = start;
    let mut short: Option<(f64, f64)> = None;
    let mut enough: Option<(f64, f64)> = None;
    // Aim a little to the safe side.
    let aim = goal * (1.0 - 0.3 * (precision - 1.0));
    for round in 0..60 {
        let found = cost(noise)?;
        if found <= goal {
            enough = Some((noise, found.max(1e-9)))
        } else {
            short = Some((noise, found.min(1e6)))
        }
        noise = match (short, enough) {
            (None, Some((n, _))) if n <= LEAST => break,
            (Some((n, _)), None) if n >= MOST => return Ok(None),
            (_, Some((_, found))) if found * precision > goal => break,
            (Some((s, _)), Some((n, _))) if n < s * precision => break,
            (Some((s, e)), Some((n, found))) => {
                let slope = (e / found).ln() / (n / s).ln();
                // Stay away from the ends, and bisect now and then in case the power law fails.
                let share = ((e / aim).ln() / slope / (n / s).ln()).clamp(0.02, 0.98);
                s * (n / s).powf(if round % 6 == 5 || !share.is_finite() { 0.5 } else { share })
            }
            (Some((s, e)), None) => {
                (s * (e / aim).powf(1.0 / steepness).clamp(1.0002, 8.0)).min(MOST)
            }
            (None, Some((n, found))) => {
                (n * (found / aim).powf(0.9 / steepness).clamp(0.125, 0.9999)).max(LEAST)
            }
            (None, None) => unreachable!("one of them was just set"),
        };
    }
    Ok(enough)
}
