//! The accountant on random events, over the whole domain of their parameters: what must hold for every answer.
use std::time::{Duration, Instant};

use quietly_accounting::{
    CorrelatedGaussian, DerivativeBound, Error, Event,
    Neighbours::{self, AddRemove, ReplaceOne},
    Participation, PrivacyBound, Strategy, calibrate, delta, epsilon,
};
use quietly_fuzz::arbitrary::{Result as Drawn, Unstructured};

/// An answer takes less than this in a build with optimisation on a machine that does nothing else. The driver's watchdog is for
/// machines that are busy: it ends what takes ten seconds.
const SOON: Duration = Duration::from_secs(1);
/// Ends of certified intervals of two questions are compared to this.
const ROUNDING: f64 = 1e-9;

/// Uniform in the logarithm.
fn between(bytes: &mut Unstructured<'_>, low: f64, high: f64) -> Drawn<f64> {
    let share = f64::from(bytes.arbitrary::<u16>()?) / f64::from(u16::MAX);
    Ok((low * (high / low).powf(share)).clamp(low, high))
}

fn count(bytes: &mut Unstructured<'_>, most: f64) -> Drawn<u64> {
    Ok(between(bytes, 1.0, most)? as u64)
}

/// What the same bytes are read with: the noise of all that has some, and how much likelier every sample is.
#[derive(Clone, Copy)]
struct Knobs {
    noise: f64,
    likelier: f64,
}

/// One mechanism.
fn leaf(
    bytes: &mut Unstructured<'_>,
    Knobs { noise, likelier }: Knobs,
) -> Drawn<Result<Event, Error>> {
    let rate = (between(bytes, 1e-9, 1.0)? * likelier).min(1.0);
    let steps = count(bytes, 300.0)?;
    let correlated = |strategy, participation, noise| {
        CorrelatedGaussian::new(strategy, participation, steps, noise).map(Event::correlated)
    };
    Ok(match bytes.int_in_range(0..=11_u8)? {
        0 => Event::gaussian(noise),
        1 => Event::laplace(noise),
        2 | 3 => Event::poisson(rate, noise),
        4 | 5 => Event::fixed_size(1_000_000, ((rate * 1e6) as u64).max(1), noise),
        6 => Event::random_allocation(steps, 1, noise),
        7 => Event::exponential(between(bytes, 1e-6, 100.0)?),
        8 => Event::approximate_dp(between(bytes, 1e-6, 100.0)?, between(bytes, 1e-14, 0.5)?),
        9 => Event::objective_perturbation(
            noise,
            between(bytes, 1e-6, 1.0)?,
            DerivativeBound::TwoSigns,
        ),
        10 => Event::shuffled(steps, noise),
        _ => {
            let lambda = Strategy::Lambda(0.99 * f64::from(bytes.arbitrary::<u8>()?) / 255.0);
            let participation = match bytes.int_in_range(0..=5_u8)? {
                0 => Participation::FullBatch,
                1 => Participation::Cyclic { period: steps.div_ceil(3) },
                2 => Participation::FixedSize { share: rate },
                3 => Participation::Poisson { rate },
                4 => Participation::BallsAndBins { bins: steps.div_ceil(3) },
                _ => Participation::Separated { separation: 1, most: steps.div_ceil(2) },
            };
            correlated(lambda, participation, noise)
        }
    })
}

/// A tree of events of depth at most three. An error is that of a parameter, and no finding.
fn tree(bytes: &mut Unstructured<'_>, knobs: Knobs, depth: u8) -> Drawn<Result<Event, Error>> {
    if depth == 0 || bytes.ratio(1, 2)? {
        return leaf(bytes, knobs);
    }
    let first = tree(bytes, knobs, depth - 1)?;
    Ok(match bytes.int_in_range(0..=3_u8)? {
        0 | 1 => {
            let times = count(bytes, 1e4)?;
            first.and_then(|event| event.repeat(times))
        }
        2 => {
            let second = tree(bytes, knobs, depth - 1)?;
            first.and_then(|event| Ok(event.then(second?)))
        }
        _ => {
            let second = tree(bytes, knobs, depth - 1)?;
            first.and_then(|event| Event::disjoint(vec![event, second?]))
        }
    })
}

/// A question, timed.
fn ask(
    what: &str,
    question: impl FnOnce() -> Result<PrivacyBound, Error>,
) -> Result<Option<PrivacyBound>, String> {
    let began = Instant::now();
    if std::env::var_os("QUIETLY_FUZZ_INPUT").is_some() {
        eprintln!("{what}");
    }
    let answer = question();
    let took = began.elapsed();
    if took > SOON && !cfg!(debug_assertions) {
        return Err(format!("{what} took {took:?}"));
    }
    match answer {
        Ok(found) if found.lower.is_nan() || found.upper.is_nan() => {
            Err(format!("{what} is not a number: {found:?}"))
        }
        Ok(found) if found.lower < 0.0 || found.lower > found.upper => {
            Err(format!("{what} is no interval: {found:?}"))
        }
        Ok(found) => Ok(Some(found)),
        // No theorem, or too large: refused by name.
        Err(_) => Ok(None),
    }
}

/// `less` cannot cost more than `more` does: each end against the other's other end.
fn ordered(
    what: &str,
    less: Option<PrivacyBound>,
    more: Option<PrivacyBound>,
) -> Result<(), String> {
    match (less, more) {
        (Some(less), Some(more)) if less.lower > more.upper * (1.0 + ROUNDING) + 1e-12 => {
            Err(format!("{what}: {less:?} above {more:?}"))
        }
        _ => Ok(()),
    }
}

fn check(mut bytes: Unstructured<'_>) -> Drawn<Result<(), String>> {
    let (target, noise) = (between(&mut bytes, 1e-12, 0.5)?, between(&mut bytes, 0.1, 1e5)?);
    let neighbours = if bytes.arbitrary()? { AddRemove } else { ReplaceOne };
    let mode = bytes.int_in_range(0..=8_u8)?;
    // The rest says what the event is: the same bytes make the same event at other noise.
    let rest = bytes.take_rest();
    let tree = |noise, likelier| tree(&mut Unstructured::new(rest), Knobs { noise, likelier }, 3);
    let event = |noise| tree(noise, 1.0);
    let Ok(one) = event(noise)? else { return Ok(Ok(())) };
    // The same with more of the noise, or with larger samples.
    let other = match mode {
        2 => event((1.5 * noise).min(1e5))?.ok(),
        _ => tree(noise, 1.5)?.ok(),
    };
    Ok(properties(&one, other, neighbours, target, mode).and_then(|()| match mode {
        0 => calibrated(
            |noise| event(noise).unwrap_or_else(|_| Event::gaussian(noise)),
            neighbours,
            target,
        ),
        _ => Ok(()),
    }))
}

fn properties(
    one: &Event,
    other: Option<Event>,
    neighbours: Neighbours,
    target: f64,
    mode: u8,
) -> Result<(), String> {
    let at = |event: &Event, neighbours, target| {
        ask(&format!("{event:?} at {target:e}"), || epsilon(event, neighbours, target))
    };
    let Some(found) = at(one, neighbours, target)? else { return Ok(()) };
    let what = format!("{one:?} under {neighbours:?} at {target:e}");
    match mode {
        1 => {
            let more = at(one, neighbours, (2.0 * target).min(0.5))?;
            ordered(&format!("more delta, {what}"), more, Some(found))
        }
        2 => {
            let louder = other.map_or(Ok(None), |louder| at(&louder, neighbours, target))?;
            ordered(&format!("more noise, {what}"), louder, Some(found))
        }
        8 => {
            let larger = other.map_or(Ok(None), |larger| at(&larger, neighbours, target))?;
            ordered(&format!("larger samples, {what}"), Some(found), larger)
        }
        3 => match one.clone().repeat(2) {
            Ok(twice) => {
                ordered(&format!("twice, {what}"), Some(found), at(&twice, neighbours, target)?)
            }
            Err(_) => Ok(()),
        },
        4 => {
            let beside = Event::gaussian(3.0).map_err(|e| e.to_string())?;
            let both = one.clone().then(beside);
            ordered(&format!("composed, {what}"), Some(found), at(&both, neighbours, target)?)
        }
        5 => {
            let (less, more) = (at(one, AddRemove, target)?, at(one, ReplaceOne, target)?);
            ordered(&format!("replace-one, {what}"), less, more)
        }
        // The other question, at the answer of this one.
        _ if (1e-3..=1e3).contains(&found.upper) => {
            let question = || delta(one, neighbours, found.upper);
            match ask(&format!("delta of {what}"), question)? {
                Some(back) if back.lower > target * (1.0 + ROUNDING) => {
                    Err(format!("delta at epsilon, {what}: {found:?} {back:?}"))
                }
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Calibrated noise costs no more than the budget, and no noise that is one percent less would do.
fn calibrated(
    event: impl Fn(f64) -> Result<Event, Error>,
    neighbours: Neighbours,
    target: f64,
) -> Result<(), String> {
    for goal in [0.5, 300.0] {
        let Ok(found) = calibrate(&event, neighbours, goal, target) else { continue };
        if found.epsilon.upper > goal {
            return Err(format!("calibrated to {goal} at {target:e}: {found:?}"));
        }
        let run = event(found.noise_multiplier).map_err(|e| e.to_string())?;
        let again = epsilon(&run, neighbours, target).map_err(|e| e.to_string())?;
        if again.upper > goal {
            return Err(format!("calibrated to {goal} at {target:e}: {found:?}, again {again:?}"));
        }
        let less = event(found.noise_multiplier / 1.01);
        let tight = again.upper >= 0.99 * goal || found.noise_multiplier <= 0.1;
        let enough = |run: Event| epsilon(&run, neighbours, target).is_ok_and(|e| e.upper <= goal);
        if !tight && less.is_ok_and(enough) {
            return Err(format!("calibrated to {goal} at {target:e}: {found:?} is too much noise"));
        }
    }
    Ok(())
}

/// Poisson samples and batches against the lower bound in closed form: δ(ε) ≥ Σ Bin(n)·P(loss of n shifts above ε + 1)·(1 - 1/e).
fn exact(bytes: &mut Unstructured<'_>) -> Drawn<Result<(), String>> {
    let (rate, noise) = (between(bytes, 1e-3, 0.9)?, between(bytes, 0.1, 3.0)?);
    let (steps, target) = (count(bytes, 2000.0)?, between(bytes, 1e-12, 0.5)?);
    let fixed: bool = bytes.arbitrary()?;
    let batch = ((rate * 1e6) as u64).max(1);
    let (event, rate, gap, neighbours) = match fixed {
        true => (Event::fixed_size(1_000_000, batch, noise), batch as f64 / 1e6, 2.0, ReplaceOne),
        false => (Event::poisson(rate, noise), rate, 1.0, AddRemove),
    };
    let Ok(event) = event.and_then(|e| e.repeat(steps)) else { return Ok(Ok(())) };
    let what = format!("{event:?} at {target:e}");
    let found = match ask(&what, || epsilon(&event, neighbours, target)) {
        Ok(Some(found)) if found.upper.is_finite() => found,
        Ok(_) => return Ok(Ok(())),
        Err(why) => return Ok(Err(why)),
    };
    let t = steps as f64;
    let term = |n: f64| {
        let chance = n * rate.ln() + (t - n) * (-rate).ln_1p();
        let ways = log_gamma(t + 1.0) - log_gamma(n + 1.0) - log_gamma(t - n + 1.0);
        let m = gap * n.sqrt() / noise;
        // A loss above ε + 1 counts at least 1 - 1/e.
        let z = (found.upper + 1.0 - chance) / m - 0.5 * m;
        (ways + chance).exp() * tail(z) * (1.0 - (-1.0_f64).exp())
    };
    let least: f64 = (1..=steps).map(|n| term(n as f64)).sum();
    Ok(match least <= target * (1.0 + 1e-9) {
        true => Ok(()),
        false => Err(format!("{what}: {found:?}, but delta is at least {least:e}")),
    })
}

/// P(Z > z), not above: z/(1 + z²)·φ(z) for z > 0 (Gordon, 1941), and one half at 0 and below.
fn tail(z: f64) -> f64 {
    if z <= 0.0 {
        return 0.5;
    }
    z / (1.0 + z * z) * (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt()
}

/// ln Γ(x) for x ≥ 1 by Stirling's series, good to 1e-10.
fn log_gamma(mut x: f64) -> f64 {
    let mut product = 1.0;
    while x < 10.0 {
        product *= x;
        x += 1.0;
    }
    let r = 1.0 / (x * x);
    let series = (1.0 / 12.0 - r * (1.0 / 360.0 - r * (1.0 / 1260.0 - r / 1680.0))) / x;
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series - f64::ln(product)
}

#[test]
fn accountant() {
    quietly_fuzz::check("accountant", 120, |bytes| {
        let Some((first, rest)) = bytes.split_first() else { return Ok(()) };
        let mut bytes = Unstructured::new(rest);
        let property = if first % 4 == 0 { exact(&mut bytes) } else { check(bytes) };
        // Too few bytes describe no event.
        property.unwrap_or(Ok(()))
    });
}

/// The control: the bound refutes what was claimed while e^ε overflowed.
#[test]
fn the_bound_can_tell() {
    let (rate, steps, claimed): (f64, f64, f64) = (0.5, 1000.0, 28092.5);
    let term = |n: f64| {
        let chance = steps * rate.ln();
        let ways = log_gamma(steps + 1.0) - log_gamma(n + 1.0) - log_gamma(steps - n + 1.0);
        let m = n.sqrt() / 0.1;
        (ways + chance).exp() * tail((claimed + 1.0 - chance) / m - 0.5 * m)
    };
    assert!((1..=1000).map(|n| term(f64::from(n))).sum::<f64>() > 1e-7);
    assert!((log_gamma(5.0) - 24.0_f64.ln()).abs() < 1e-9);
}
