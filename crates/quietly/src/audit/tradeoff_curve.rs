//! The trade-off curve of a claim: the largest true positive rate for every false positive rate.
use quietly_accounting::{Event, Neighbours};
use quietly_core::mechanism;
use quietly_engine::error::Error;

use crate::plan::Plan;

/// A proven trade-off between true and false positives, for an attacker who guesses whether one row was there.
///
/// Each (ε, δ) of the certified curve bounds every test: with false alarms α it hits with chance at most
/// min(e^ε α + δ, 1 - e^-ε (1 - δ - α)).
///
/// ```
/// use quietly::{Budget, Link, Neighbours, Regression, audit::Claim};
///
/// let plan = Regression::new(Link::Linear).plan(2000, 5, Budget::new(1.0, 1e-5)?)?;
/// let claim = Claim::of_plan(&plan, Neighbours::AddRemove)?;
/// assert!(claim.epsilon <= 1.0);
/// assert!(claim.hits(0.01) <= 0.01 * 1.0_f64.exp() + 1e-5);
/// # Ok::<(), quietly::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Claim {
    /// The certified ε at `delta`.
    pub epsilon: f64,
    /// The δ at which ε is claimed and measured.
    pub delta: f64,
    /// How the two tables differ that are to be told apart.
    pub neighbours: Neighbours,
    /// (ε, δ) along the curve.
    points: Vec<(f64, f64)>,
}

/// On how many lines a curve is drawn; each is valid on its own.
const LINES: u32 = 24;

impl Claim {
    /// What is proven about an event.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`] where there is no theorem.
    pub fn of_event(event: &Event, neighbours: Neighbours, delta: f64) -> Result<Self, Error> {
        let epsilon = quietly_accounting::epsilon(event, neighbours, delta)?.upper;
        let mut points = vec![(epsilon, delta)];
        if epsilon.is_finite() {
            // Beyond this ε no experiment sees anything: δ is below what was asked.
            for k in 0..LINES {
                let at = (epsilon * f64::from(k) / f64::from(LINES)).clamp(1e-3, 1e3);
                let found = quietly_accounting::delta(event, neighbours, at)?.upper;
                points.push((at, found.min(1.0)));
            }
        }
        Ok(Claim { epsilon, delta, neighbours, points })
    }

    /// What is proven about a plan, perhaps under another relation than it was made for.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`] where there is no theorem.
    pub fn of_plan(plan: &Plan, neighbours: Neighbours) -> Result<Self, Error> {
        let delta = plan.budget().delta();
        if !plan.budget().is_private() {
            return Ok(Claim::nothing(neighbours, delta));
        }
        if plan.stages().is_empty() {
            // Nothing is asked, so nothing can be seen.
            return Ok(Claim { epsilon: 0.0, delta, neighbours, points: vec![(0.0, 0.0)] });
        }
        Claim::of_event(&mechanism::event(plan.sampler(), plan.stages())?, neighbours, delta)
    }

    /// No promise at all: what a fit without noise claims.
    pub fn nothing(neighbours: Neighbours, delta: f64) -> Self {
        Claim { epsilon: f64::INFINITY, delta, neighbours, points: vec![] }
    }

    /// The most hits, as a chance, of any test with this chance of a false alarm.
    pub fn hits(&self, false_alarms: f64) -> f64 {
        let line = |&(epsilon, delta): &(f64, f64)| {
            let growing = epsilon.exp() * false_alarms + delta;
            growing.min(1.0 - (-epsilon).exp() * (1.0 - delta - false_alarms))
        };
        self.points.iter().map(line).fold(1.0, f64::min)
    }

    /// The most area under the curve of hits over false alarms, of scores pooled over many models.
    pub fn area(&self) -> f64 {
        // The curve is concave, so that the midpoint rule is above its integral.
        let cells = 4096;
        let middle = |k: i32| (f64::from(k) + 0.5) / f64::from(cells);
        (0..cells).map(|k| self.hits(middle(k))).sum::<f64>() / f64::from(cells)
    }

    /// The most often that, of a member and a stranger looked at with the same model, the member scores higher.
    ///
    /// Replace the member by the stranger, and the two change roles: what was a hit with chance p is a false alarm with
    /// chance 1 - p. So p is at most hits(1 - p), which is less than the area. The relation must be replace-one.
    pub fn pairs(&self) -> f64 {
        let (mut low, mut high) = (0.5, 1.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if middle <= self.hits(1.0 - middle) { low = middle } else { high = middle }
        }
        high
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::confidence::quantile;

    fn phi(x: f64) -> f64 {
        0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
    }

    /// docs/spec/regression.md#12: for μ-GDP hits are at most Φ(Φ⁻¹(α) + μ) and the area Φ(μ/√2); pairs of
    /// one model Φ(μ/2). The claim may
    /// be above by what 24 lines cost, and never below.
    #[test]
    fn a_gaussian_claim_has_the_ceilings_of_its_mu() {
        for noise in [0.7, 2.0, 3.73, 30.0] {
            let mu = 1.0 / noise;
            let event = Event::gaussian(noise).unwrap();
            let claim = Claim::of_event(&event, Neighbours::AddRemove, 1e-5).unwrap();
            let near = |found: f64, exact: f64, slack: f64| {
                assert!(found >= exact && found <= exact + slack, "{noise}: {found} {exact}");
            };
            for alpha in [0.001, 0.01, 0.1, 0.5, 0.9] {
                near(claim.hits(alpha), phi(quantile(alpha) + mu), 0.004 * mu);
            }
            near(claim.area(), phi(mu / std::f64::consts::SQRT_2), 0.004 * mu);
            near(claim.pairs(), phi(0.5 * mu), 0.004 * mu);
        }
    }

    #[test]
    fn no_claim_has_no_ceiling_and_an_empty_plan_the_lowest() {
        let none = Claim::nothing(Neighbours::ReplaceOne, 1e-5);
        assert_eq!((none.hits(0.0), none.area()), (1.0, 1.0));
        let budget = quietly_core::budget::Budget::new(0.001, 1e-5).unwrap();
        let plan = crate::plan::Regression::new(quietly_engine::link::Link::Linear)
            .plan(20, 2, budget)
            .unwrap();
        let claim = Claim::of_plan(&plan, Neighbours::ReplaceOne).unwrap();
        assert!((claim.area() - 0.5).abs() < 1e-9 && (claim.pairs() - 0.5).abs() < 1e-9);
    }
}
