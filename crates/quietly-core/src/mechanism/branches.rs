//! Two stages of which one runs, as a released answer says.
//!
//! # Proof: one of two stages
//!
//! A stage of Gaussian sums over all rows may run instead of one that releases a perturbed minimiser. Which of the two runs is a function
//! of public numbers and of what was released before: [`Releaser::choose`](crate::release::Releaser::choose) takes no private value. If the
//! sums have Σ 1/σ² ≤ 1/R², R being [`DerivativeBound::instead`](quietly_accounting::DerivativeBound::instead), each of the two stages is
//! dominated by the privacy loss that the minimiser is charged for, in both directions and at every ε
//! (quietly-accounting, objective_perturbation.rs). Given any history the next mechanism is one of them, so it is dominated as well, and
//! adaptive composition needs no more. The minimiser is charged, whichever runs; what the sums do not spend is not given back.
//!
//! Not covered: sampled steps, minimisers that run more than once, and a third branch. They are refused.
use super::{Mechanism, PlannedRelease, Sampler, Stage};

/// Whether every stage that runs instead of another one is covered by its price.
pub(super) fn are_covered(sampler: Sampler, stages: &[Stage]) -> bool {
    let branches = || stages.iter().filter_map(|s| Some((s, s.instead_of.as_ref()?)));
    branches().all(|(stage, name)| {
        let once = branches().filter(|(_, other)| *other == name).count() == 1;
        let mut named = stages.iter().filter(|s| s.name == *name);
        let (Some(other), None) = (named.next(), named.next()) else { return false };
        let full = sampler == Sampler::FullBatch;
        once && full && other.instead_of.is_none() && covers(other, stage)
    })
}

/// Whether the price of a stage covers that of this one.
fn covers(minimiser: &Stage, sums: &Stage) -> bool {
    let ([PlannedRelease { mechanism, times: 1, .. }], 1) =
        (&minimiser.releases[..], minimiser.steps)
    else {
        return false;
    };
    let Mechanism::ObjectivePerturbation { noise, derivative, .. } = *mechanism else {
        return false;
    };
    // NaN is not covered.
    sums.is_gaussian() && sums.mu() * (sums.steps as f64).sqrt() * derivative.instead(noise) <= 1.0
}

/// The noise of every one of so many steps that may run instead of a minimiser.
pub fn noise_of_steps(minimiser: &PlannedRelease, steps: u64) -> f64 {
    let Mechanism::ObjectivePerturbation { noise, derivative, .. } = minimiser.mechanism else {
        panic!("{} is not planned as a minimiser", minimiser.purpose);
    };
    derivative.instead(noise) * (steps as f64).sqrt() * (1.0 + 1e-12)
}

#[cfg(test)]
mod tests {
    use quietly_accounting::{DerivativeBound, Neighbours};

    use super::*;
    use crate::mechanism::event;

    fn stages(steps: u64, less: f64) -> Vec<Stage> {
        let derivative = DerivativeBound::Logistic { clip: 0.75 };
        let minimiser = PlannedRelease::objective("minimiser", 2.0, 0.05, derivative);
        let noise = less * noise_of_steps(&minimiser, steps);
        vec![
            Stage::new("counts", 1, vec![PlannedRelease::sum("counts", 9.0)]),
            Stage::new("minimiser", 1, vec![minimiser]),
            Stage::new("descent", steps, vec![PlannedRelease::sum("gradients", noise)])
                .instead_of("minimiser"),
        ]
    }

    #[test]
    fn the_minimiser_alone_is_charged() {
        let price = |stages: &[Stage]| {
            let event = event(Sampler::FullBatch, stages).ok()?;
            Some(quietly_accounting::epsilon(&event, Neighbours::AddRemove, 1e-5).ok()?.upper)
        };
        let both = stages(100, 1.0);
        assert_eq!(price(&both), price(&both[..2]));
        assert!(price(&both).is_some());
        // Anything that is not covered has no price.
        assert_eq!(price(&stages(100, 0.999)), None);
        let mut more = both.clone();
        more[2].steps = 101;
        let mut twice = both.clone();
        twice[1].steps = 2;
        let mut other = both.clone();
        other[2].instead_of = Some("counts".into());
        let mut nobody = both.clone();
        nobody[2].instead_of = Some("nobody".into());
        let mut circle = both.clone();
        circle[1].instead_of = Some("descent".into());
        let third = Stage { name: "third".into(), ..both[2].clone() };
        let third = both.iter().cloned().chain([third]).collect();
        for stages in [more, twice, other, nobody, circle, third] {
            assert_eq!(price(&stages), None, "{stages:?}");
        }
        let sampled = Sampler::Poisson { steps: 100, rate: 0.5 };
        assert!(event(sampled, &both).is_err());
    }
}
