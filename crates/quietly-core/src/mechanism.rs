//! Mechanisms, and the releases that a plan makes with them: how each is priced.
//!
//! A [`PlannedRelease`] is both: the releaser takes its noise from it and the accountant its price, so that
//! what is charged is what runs.
use quietly_accounting::{DerivativeBound, Event, Neighbours, Participation};
use serde::{Deserialize, Serialize};

use self::pure::up;
pub use self::{branches::noise_of_steps, correlation::Correlation, sampler::Sampler};
pub use self::{pure::pure_epsilon, validity::goes_with};
use crate::{budget::Budget, error::Error};

mod branches;
mod correlation;
mod pure;
mod sampler;
mod validity;

/// A mechanism with its noise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "mechanism", rename_all = "kebab-case")]
pub enum Mechanism {
    /// A sum with Gaussian noise: its standard deviation over what one row can add.
    Gaussian {
        /// The noise multiplier.
        #[serde(rename = "noise_multiplier")]
        noise: f64,
    },
    /// Sums with Gaussian noise that is correlated between steps.
    CorrelatedGaussian {
        /// The noise multiplier κ.
        #[serde(rename = "noise_multiplier")]
        noise: f64,
        /// The correlation of its noise.
        #[serde(flatten)]
        correlation: Correlation,
    },
    /// A sum with exact discrete Laplace noise: its scale over what one row can add in the 1-norm.
    Laplace {
        /// The scale.
        scale: f64,
    },
    /// A choice by the exponential mechanism: its ε under either relation.
    Exponential {
        /// ε when a row is added or removed.
        add_remove: f64,
        /// ε when a row is replaced.
        replace_one: f64,
    },
    /// The minimiser of an objective with a Gaussian tilt.
    ObjectivePerturbation {
        /// The tilt's standard deviation over the longest gradient of one row.
        #[serde(rename = "noise_multiplier")]
        noise: f64,
        /// The largest second derivative of one row over the objective's strong convexity.
        #[serde(rename = "smoothness")]
        smoothness: f64,
        /// What is known of derivatives.
        #[serde(flatten)]
        derivative: DerivativeBound,
    },
    /// A mechanism that is proven to be (ε, δ)-differentially private, under either relation.
    ApproximateDp {
        /// Its ε.
        epsilon: f64,
        /// Its δ.
        delta: f64,
    },
}

/// A release of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedRelease {
    /// Its name. Distinct within a plan, as it names a stream of randomness.
    #[serde(rename = "id")]
    pub purpose: String,
    /// Its mechanism.
    #[serde(flatten)]
    pub mechanism: Mechanism,
    /// How often in each step of its stage, at most.
    pub times: u64,
}

impl PlannedRelease {
    /// A sum released once in each step, with the noise multiplier `noise`.
    pub fn sum(purpose: &str, noise: f64) -> Self {
        PlannedRelease {
            purpose: purpose.into(),
            mechanism: Mechanism::Gaussian { noise },
            times: 1,
        }
    }

    /// The same with noise that is correlated between steps.
    pub fn correlated_sum(purpose: &str, noise: f64, correlation: Correlation) -> Self {
        let mechanism = Mechanism::CorrelatedGaussian { noise, correlation };
        PlannedRelease { purpose: purpose.into(), mechanism, times: 1 }
    }

    /// A quantile released once in each step, which takes μ of the budget under `neighbours`.
    pub fn quantile(purpose: &str, level: f64, mu: f64, neighbours: Neighbours) -> Self {
        let mechanism = quantile(level, mu, neighbours);
        PlannedRelease { purpose: purpose.into(), mechanism, times: 1 }
    }

    /// The minimiser of a perturbed objective, released once.
    pub fn objective(
        purpose: &str,
        noise: f64,
        smoothness: f64,
        derivative: DerivativeBound,
    ) -> Self {
        let mechanism = Mechanism::ObjectivePerturbation { noise, smoothness, derivative };
        PlannedRelease { purpose: purpose.into(), mechanism, times: 1 }
    }

    /// A single release of a mechanism that is proven to be (ε, δ)-differentially private.
    pub fn approximate_dp(purpose: &str, epsilon: f64, delta: f64) -> Self {
        let mechanism = Mechanism::ApproximateDp { epsilon, delta };
        PlannedRelease { purpose: purpose.into(), mechanism, times: 1 }
    }

    /// The noise multiplier of a sum.
    ///
    /// # Panics
    ///
    /// If it is none.
    pub fn multiplier(&self) -> f64 {
        match self.mechanism {
            Mechanism::Gaussian { noise } | Mechanism::CorrelatedGaussian { noise, .. } => noise,
            _ => panic!("{} is not planned as a sum", self.purpose),
        }
    }

    /// So many of these on the same rows.
    fn event(&self, steps: u64) -> Result<Event, Error> {
        let once = match self.mechanism {
            Mechanism::Gaussian { noise } => Event::gaussian(noise)?,
            // Asked for once a step.
            Mechanism::CorrelatedGaussian { noise, correlation } => {
                return correlation.event(Participation::FullBatch, steps, noise);
            }
            // Under the relation that costs more. Not as the continuous law: between lattice points the discrete one leaks a little more.
            Mechanism::Laplace { scale } => Event::approximate_dp(up(2.0 / scale), 0.0)?,
            Mechanism::Exponential { add_remove, replace_one } => {
                Event::exponential_with(add_remove, replace_one)?
            }
            Mechanism::ApproximateDp { epsilon, delta } => Event::approximate_dp(epsilon, delta)?,
            Mechanism::ObjectivePerturbation { noise, smoothness, derivative } => {
                Event::objective_perturbation(noise, smoothness, derivative)?
            }
        };
        Ok(once.repeat(self.times)?.repeat(steps)?)
    }
}

/// Steps that make the same releases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// What these steps are for.
    pub name: String,
    /// How many there are.
    pub steps: u64,
    /// The releases of each step.
    pub releases: Vec<PlannedRelease>,
    /// Every row takes part in each step, whatever the sampler.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all_rows: bool,
    /// The stage that this one may run instead of: a released answer chooses between the two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<String>,
}

/// What a plan's stages amount to under its sampler.
///
/// Stages over all rows compose. Those of a sampler are one event, composed with the others:
///
/// * [`Sampler::FullBatch`]: all releases of all steps compose.
/// * [`Sampler::RandomAllocation`]: every step is 1/noise-GDP for a row that is there or not (Gaussian releases are
///   1/noise-GDP, choices as in [`selection_mu`], squares add, and the most expensive step counts), which is what the
///   theorem of random allocation asks of a step.
/// * [`Sampler::Poisson`]: the same, for sums only: several sums of one sample are one longer sum.
/// * [`Sampler::Partition`]: a row takes part in the releases of one part only, drawn before any data is read
///   (docs/spec/regression.md#0.5, G3).
/// * [`Sampler::BallsAndBins`], [`Sampler::Cyclic`], [`Sampler::FixedSize`], and correlated noise under any sampler: one sum in every step, and
///   all of them one event.
/// * [`Sampler::OrderedPartition`]: the same, and a replaced row keeps its place. One that joins or leaves moves all after it: plans
///   under that relation are refused before they come here.
///
/// A stage that runs instead of another is covered by that one's price ([`branches`]).
///
/// # Errors
///
/// If no planner makes such stages for the sampler, or no theorem covers them.
pub fn event(sampler: Sampler, stages: &[Stage]) -> Result<Event, Error> {
    let full = |stage: &Stage| stage.all_rows || sampler == Sampler::FullBatch;
    validity::check_stages(sampler, stages)?;
    let charged = stages.iter().filter(|stage| stage.instead_of.is_none());
    let (every, some): (Vec<&Stage>, Vec<&Stage>) = charged.partition(|stage| full(stage));
    let sampled = sampler.event(&some)?;
    let mut events: Vec<Event> =
        every.iter().map(|stage| stage.event(stage.steps)).collect::<Result<_, _>>()?;
    events.extend(sampled);
    Ok(events.into_iter().reduce(Event::then).expect("a plan asks something"))
}

/// A descent that releases one sum in every step, already checked.
fn descent(sampler: Sampler, stages: &[&Stage]) -> Result<Event, Error> {
    let [Stage { steps, releases, .. }] = stages else { panic!("a descent has one stage") };
    let [PlannedRelease { mechanism, times: 1, .. }] = releases[..] else {
        panic!("one sum a step")
    };
    match (mechanism, sampler) {
        (Mechanism::Gaussian { noise }, Sampler::FixedSize { batch, rows, .. }) => {
            Ok(Event::fixed_size(rows, batch, noise)?.repeat(*steps)?)
        }
        (Mechanism::Gaussian { .. } | Mechanism::CorrelatedGaussian { .. }, _) => {
            let (noise, correlation) = match mechanism {
                Mechanism::CorrelatedGaussian { noise, correlation } => (noise, correlation),
                Mechanism::Gaussian { noise } => (noise, Correlation::Lambda { lambda: 0.0 }),
                _ => unreachable!("sums only"),
            };
            let participation = sampler.participation().expect("a sampler of descents");
            correlation.event(participation, *steps, noise)
        }
        _ => panic!("a descent asks for sums"),
    }
}

impl Stage {
    /// Steps that make the same releases about a sampler's rows.
    pub fn new(name: &str, steps: u64, releases: Vec<PlannedRelease>) -> Self {
        Stage { name: name.into(), steps, releases, all_rows: false, instead_of: None }
    }

    /// The same about all rows.
    pub fn of_all_rows(self) -> Self {
        Stage { all_rows: true, ..self }
    }

    /// The same, which a released answer may choose instead of the stage of this name.
    pub fn instead_of(self, stage: &str) -> Self {
        Stage { instead_of: Some(stage.into()), ..self }
    }

    /// Which rows a release is about, where it is not the sampler's once a step.
    pub fn whom(&self, charge: &PlannedRelease) -> String {
        if let Some(stage) = &self.instead_of {
            return format!(", or this instead of the {stage}");
        }
        match (self.all_rows, charge.times) {
            (true, 1) => ", over all rows".into(),
            (true, times) => format!(", {times} times, over all rows"),
            (false, 1) => String::new(),
            (false, times) => format!(", in which a row may take part {times} times"),
        }
    }

    /// Whether all of it is sums with Gaussian noise of their own.
    fn is_gaussian(&self) -> bool {
        self.releases.iter().all(|c| matches!(c.mechanism, Mechanism::Gaussian { .. }))
    }

    /// So many of these steps on the same rows.
    fn event(&self, steps: u64) -> Result<Event, Error> {
        let mut total: Option<Event> = None;
        for charge in &self.releases {
            let next = charge.event(steps)?;
            total = Some(total.map_or(next.clone(), |all| all.then(next)));
        }
        Ok(total.expect("a stage asks something"))
    }

    /// The μ for which one of these steps is μ-GDP for a row that is there or not.
    fn mu(&self) -> f64 {
        let square = |charge: &PlannedRelease| {
            let once = match charge.mechanism {
                Mechanism::Gaussian { noise } => 1.0 / noise,
                // A replaced row is removed and added.
                Mechanism::Exponential { add_remove, replace_one } => {
                    selection_mu(add_remove.max(0.5 * replace_one))
                }
                // No Gaussian covers an infinite loss, however rare: a step with an approximate DP mechanism is priced beyond any budget.
                Mechanism::ApproximateDp { .. }
                | Mechanism::CorrelatedGaussian { .. }
                | Mechanism::ObjectivePerturbation { .. }
                | Mechanism::Laplace { .. } => f64::INFINITY,
            };
            charge.times as f64 * once * once
        };
        self.releases.iter().map(square).sum::<f64>().sqrt()
    }
}

/// A plan's stages ask for valid events only, so that nothing but the accountant refuses.
pub fn accounting(error: Error) -> quietly_accounting::Error {
    match error {
        Error::Accounting(error) => error,
        other => panic!("planning cannot fail otherwise: {other}"),
    }
}

/// One sum over all rows, with all of the budget.
pub fn one_sum(purpose: &str, budget: Budget) -> Result<Vec<Stage>, Error> {
    let found = quietly_accounting::calibrate(
        Event::gaussian,
        budget.neighbours(),
        budget.epsilon(),
        budget.delta(),
    )?;
    let mechanism = Mechanism::Gaussian { noise: found.noise_multiplier };
    let releases = vec![PlannedRelease { purpose: purpose.into(), mechanism, times: 1 }];
    Ok(vec![Stage::new("evaluation", 1, releases)])
}

/// The μ for which a choice with parameter ε is μ-GDP: 2·Φ⁻¹(1/(1 + e^(-ε/2))), not below.
///
/// The exponential mechanism has bounded range ε: logit P(S) - logit Q(S) ≤ ε for every event S. Of all
/// pairs of probabilities that far apart the symmetric one is farthest apart in Φ⁻¹. Above 100 it is not computed, and any
/// budget is too small.
pub fn selection_mu(epsilon: f64) -> f64 {
    if !(0.0..=validity::MOST_EPSILON).contains(&epsilon) {
        return f64::INFINITY;
    }
    // By the upper tail: 1/(1 + e^(-ε/2)) itself rounds to one where ε is above 73.
    2.0 * upper_quantile(1.0 / (1.0 + (0.5 * epsilon).exp())) * (1.0 + 1e-9)
}

/// The x with 1 - Φ(x) = q, for q in (1e-300, 1/2]: Newton on the logarithm, which is concave.
pub fn upper_quantile(q: f64) -> f64 {
    let mut x = 0.0_f64;
    for _ in 0..100 {
        let tail = 0.5 * libm::erfc(x / std::f64::consts::SQRT_2);
        let density = (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
        let step = (tail / q).ln() * tail / density;
        x += step.clamp(-1.0, 1.0);
        if step.abs() < 1e-15 * x.abs() {
            break;
        }
    }
    x
}

/// The ε for which a choice is μ-GDP: 2·logit(Φ(μ/2)), not above.
pub fn selection_epsilon(mu: f64) -> f64 {
    // Invert selection_mu, so that one is on the safe side of the other: near the closed form, if it is there, else anywhere.
    let half = 0.5 * mu / std::f64::consts::SQRT_2;
    let near = 2.0 * (libm::erfc(-half) / libm::erfc(half)).ln();
    let (mut low, mut high) = (near * (1.0 - 1e-8), near);
    let is_between = low > 0.0
        && high < validity::MOST_EPSILON
        && selection_mu(low) <= mu
        && selection_mu(high) > mu;
    if !is_between {
        (low, high) = (0.0, validity::MOST_EPSILON);
    }
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return low;
        }
        if selection_mu(middle) <= mu { low = middle } else { high = middle }
    }
}

/// The mechanism of a quantile at level `level` that takes μ of the budget under `neighbours`.
///
/// Its scores -|F - level·n| move by max(level, 1 - level) when a row joins or leaves, and by at
/// most 1 when it is replaced.
pub fn quantile(level: f64, mu: f64, neighbours: Neighbours) -> Mechanism {
    choice(level, selection_epsilon(mu), neighbours)
}

/// The mechanism of a quantile at level `level` with parameter ε under `neighbours`.
fn choice(level: f64, epsilon: f64, neighbours: Neighbours) -> Mechanism {
    let apart = level.max(1.0 - level);
    match neighbours {
        Neighbours::AddRemove => {
            Mechanism::Exponential { add_remove: epsilon, replace_one: epsilon / apart }
        }
        Neighbours::ReplaceOne => {
            Mechanism::Exponential { add_remove: epsilon * apart, replace_one: epsilon }
        }
    }
}

/// Φ⁻¹ for p in [1/2, 1): Newton on Φ.
pub fn normal_quantile(p: f64) -> f64 {
    let mut x = 0.0_f64;
    for _ in 0..100 {
        let phi = 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2);
        let density = (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
        let step = (phi - p) / density.max(1e-300);
        x -= step.clamp(-1.0, 1.0);
        if step.abs() < 1e-15 {
            break;
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selections_and_gaussians_are_exchanged_at_the_published_rate() {
        // docs/spec/regression.md#0.5 (G4): mu is about 0.627 of a small epsilon.
        assert!((selection_mu(0.01) / 0.01 - 0.6267).abs() < 1e-3, "{}", selection_mu(0.01));
        for mu in [1e-4, 0.01, 0.3, 2.0] {
            let back = selection_mu(selection_epsilon(mu));
            assert!(back <= mu && back > mu * (1.0 - 1e-6), "{mu} {back}");
        }
    }

    /// Golden: 2·Φ⁻¹(1 - 1/(1 + e^(ε/2))) from mpmath with 50 digits. Taken by Φ⁻¹ of a number next to one, μ was too small
    /// at ε = 73 and above; no plan got there, as the accountant allows a step of an allocation no less noise than 0.1.
    #[test]
    fn large_choices_are_priced_as_well_as_small_ones() {
        let golden = [
            (1.0, 0.6238925920985082),
            (40.0, 11.758418713653101),
            (60.0, 14.715333630017525),
            (73.0, 16.362107509317524),
            (80.0, 17.185351436947544),
            (100.0, 19.349650567224713),
        ];
        for (epsilon, mu) in golden {
            let found = selection_mu(epsilon) / mu;
            assert!((1.0..1.0 + 2e-9).contains(&found), "{epsilon}: {found}");
        }
    }

    /// A selection is at least as private as the Gaussian it is charged as: the exact curve of
    /// randomised response with bounded range, the worst pair, lies below.
    #[test]
    fn the_worst_bounded_range_pair_is_within_the_gaussian() {
        for epsilon in [0.05_f64, 0.5, 2.0] {
            let mu = selection_mu(epsilon);
            let q = 1.0 / (1.0 + (0.5 * epsilon).exp());
            let p = 1.0 - q;
            for e in [0.0, 0.1 * epsilon, 0.3 * epsilon, 0.45 * epsilon] {
                let pair = (p - f64::exp(e) * q).max(0.0);
                let phi = |x: f64| 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2);
                let gaussian = phi(-e / mu + mu / 2.0) - e.exp() * phi(-e / mu - mu / 2.0);
                assert!(pair <= gaussian + 1e-12, "{epsilon} {e}: {pair} {gaussian}");
            }
            // At e = 0 they touch: a smaller mu would not cover it.
            let phi = |x: f64| 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2);
            let short = 2.0 * phi(0.99 * mu / 2.0) - 1.0;
            assert!(p - q > short, "{epsilon}");
        }
    }
}
