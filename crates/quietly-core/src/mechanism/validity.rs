//! Refuses stages and releases that no planner makes, before they are priced.
//!
//! Plans and certificates are files, and a file may say anything. A release that no planner makes is an error: it must not
//! be priced at ε = 0.
use quietly_accounting::Neighbours;

use super::{Mechanism, PlannedRelease, Sampler, Stage, branches};
use crate::error::Error;

/// No run is longer; products and sums of counts stay well within 64 bits.
const MOST: u64 = 1_000_000_000_000;
/// The largest ε of an exponential mechanism that the accountant prices.
pub(super) const MOST_EPSILON: f64 = 100.0;

/// Refuses stages that no planner could have made for `sampler`.
pub(super) fn check_stages(sampler: Sampler, stages: &[Stage]) -> Result<(), Error> {
    let require =
        |good: bool, got: &str| Error::ensure(good, "stages", "as they were planned", got);
    let counts = |count: u64| (1..=MOST).contains(&count);
    require(branches::are_covered(sampler, stages), "a stage that another one does not cover")?;
    require(!stages.is_empty() && stages.len() as u64 <= MOST, "no releases")?;
    for stage in stages {
        require(counts(stage.steps), "a stage without steps")?;
        require(!stage.releases.is_empty(), "a stage without releases")?;
        require(stage.releases.iter().all(|c| counts(c.times)), "a release that is never made")?;
        require(
            stage.releases.iter().all(PlannedRelease::is_sound),
            "a release that no planner makes",
        )?;
    }
    let sampled = || stages.iter().filter(|s| !s.all_rows && sampler != Sampler::FullBatch);
    let steps = sampled().try_fold(0_u64, |sum, s| sum.checked_add(s.steps));
    let planned = if sampler == Sampler::FullBatch { Some(0) } else { sampler.steps() };
    require(steps == planned, "other steps than the sampler's")?;
    let mixed = |s: &Stage| {
        s.releases.iter().any(|c| matches!(c.mechanism, Mechanism::CorrelatedGaussian { .. }))
    };
    let descends = sampler.is_descent(&sampled().collect::<Vec<_>>());
    let one = |s: &Stage| s.releases.len() == 1 && s.releases[0].times == 1;
    let sum = |s: &Stage| s.is_gaussian() || mixed(s);
    let a_descent = sampled().count() == 1 && sampled().all(|s| one(s) && sum(s));
    require(!descends || a_descent, "several releases where a step has one sum")?;
    // One part of a partition does not see all steps that its noise is correlated with.
    require(
        !(sampler.is_partition() && sampled().any(mixed)),
        "noise that is correlated across parts",
    )?;
    let alone = stages.iter().filter(|s| mixed(s)).all(one);
    require(alone, "sums with mixed noise beside others")
}

/// Whether rows can be read like this under the relation: where places or the number of rows decide who is in a step, a row that joins or
/// leaves moves others.
pub fn goes_with(sampler: Sampler, neighbours: Neighbours) -> bool {
    match sampler {
        Sampler::OrderedPartition { .. } | Sampler::FixedSize { .. } => {
            neighbours == Neighbours::ReplaceOne
        }
        _ => true,
    }
}

impl PlannedRelease {
    /// Whether its parameters are valid.
    fn is_sound(&self) -> bool {
        let above = |x: f64| x > 0.0 && x.is_finite();
        match self.mechanism {
            Mechanism::Gaussian { noise } => above(noise),
            Mechanism::CorrelatedGaussian { noise, correlation } => {
                above(noise) && correlation.check().is_ok()
            }
            Mechanism::Laplace { scale } => above(scale),
            Mechanism::ObjectivePerturbation { noise, smoothness, .. } => {
                above(noise) && smoothness >= 0.0 && smoothness.is_finite()
            }
            Mechanism::ApproximateDp { epsilon, delta } => {
                above(epsilon) && (0.0..1.0).contains(&delta)
            }
            // A quantile's scores move by from 1/2 to 1 when a row joins or leaves, and by at most 1 when it is replaced.
            Mechanism::Exponential { add_remove, replace_one } => {
                let within = |e: f64| e > 0.0 && e <= 2.0 * MOST_EPSILON;
                within(add_remove) && within(replace_one)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use quietly_accounting::Neighbours::{AddRemove, ReplaceOne};

    use super::*;
    use crate::{
        budget::Budget,
        certificate::Certificate,
        mechanism::{Correlation, event, pure_epsilon},
    };

    fn choice(add_remove: f64, replace_one: f64, times: u64) -> PlannedRelease {
        let mechanism = Mechanism::Exponential { add_remove, replace_one };
        PlannedRelease { purpose: "choice".into(), mechanism, times }
    }

    /// The ε of a one-pass run with a choice in each step, if it has one.
    fn price(charge: PlannedRelease) -> Option<f64> {
        let stage = Stage::new("step", 40, vec![PlannedRelease::sum("sum", 8.0), charge]);
        let event = event(Sampler::RandomAllocation { steps: 40 }, &[stage]).ok()?;
        quietly_accounting::epsilon(&event, AddRemove, 1e-6).ok().map(|e| e.upper)
    }

    /// A choice of 1e6 once had a μ that was no number, which the largest of μ's passed over: it was free.
    #[test]
    fn a_choice_without_bounds_has_no_price() {
        let right = price(choice(0.1, 0.2, 1)).unwrap();
        for (add_remove, times) in
            [(1e6, 1), (1e300, 1), (f64::INFINITY, 1), (f64::NAN, 1), (-1.0, 1), (0.0, 1), (0.1, 0)]
        {
            let found = price(choice(add_remove, 0.2, times));
            assert_eq!(found, None, "{add_remove} {times}");
        }
        for larger in [1.0, 10.0, 99.0, 150.0] {
            let found = price(choice(larger, larger, 1));
            assert!(found.is_none_or(|e| e > right), "{larger} {found:?}");
        }
        // A bound for one relation is checked against the other: a replaced row is removed and added.
        let large = price(choice(0.1, 20.0, 1));
        assert!(large.is_none_or(|e| e > 2.0 * right), "{large:?} {right}");
    }

    #[test]
    fn what_no_planner_makes_is_refused_and_does_not_panic() {
        let sum = || vec![PlannedRelease::sum("sum", 1.0)];
        let mixed = |lambda| {
            vec![PlannedRelease::correlated_sum("sum", 1.0, Correlation::Lambda { lambda })]
        };
        let full = Sampler::FullBatch;
        let bins = Sampler::BallsAndBins { bins: 4, passes: 5 };
        let poisson = Sampler::Poisson { steps: 20, rate: 0.5 };
        let fixed = Sampler::FixedSize { steps: 20, batch: 5, rows: 10 };
        let two = || [sum(), sum()].concat();
        let cases = [
            (full, Stage::new("no questions", 3, vec![])),
            (full, Stage::new("no steps", 0, sum())),
            (full, Stage::new("too many steps", u64::MAX, sum())),
            (full, Stage::new("too many mixed steps", MOST, mixed(0.5))),
            (full, Stage::new("a lambda of one", 3, mixed(1.0))),
            (full, Stage::new("mixed beside", 3, [sum(), mixed(0.5)].concat())),
            (bins, Stage::new("other steps", 19, sum())),
            (bins, Stage::new("two sums", 20, two())),
            (bins, Stage::new("all rows", 20, sum()).of_all_rows()),
            (poisson, Stage::new("choices", 20, vec![choice(0.1, 0.2, 1)])),
            (poisson, Stage::new("other steps", 21, sum())),
            (fixed, Stage::new("choices", 20, vec![choice(0.1, 0.2, 1)])),
            (Sampler::Partition { steps: 3 }, Stage::new("other steps", 4, sum())),
            (Sampler::Partition { steps: 3 }, Stage::new("mixed across parts", 3, mixed(0.5))),
            (
                Sampler::OrderedPartition { steps: 3 },
                Stage::new("mixed across parts", 3, mixed(0.5)),
            ),
            (
                Sampler::RandomAllocation { steps: 3 },
                Stage::new("no noise", 3, vec![PlannedRelease::sum("s", -1.0)]),
            ),
            (
                Sampler::BallsAndBins { bins: u64::MAX, passes: 2 },
                Stage::new("huge", u64::MAX, sum()),
            ),
        ];
        for (sampler, stage) in cases {
            let name = stage.name.clone();
            let stages = [stage];
            let priced = event(sampler, &stages)
                .ok()
                .and_then(|e| quietly_accounting::epsilon(&e, AddRemove, 1e-6).ok());
            assert!(priced.is_none(), "{name}");
            assert_eq!(pure_epsilon(sampler, &stages, ReplaceOne), None, "{name}");
        }
        assert!(event(full, &[]).is_err());
        assert!(event(poisson, &[Stage::new("fine", 20, sum())]).is_ok());
        assert!(event(bins, &[Stage::new("fine", 20, mixed(0.5))]).is_ok());
    }

    /// Parts by position are the same for both tables only if no row changes its position: not if a row is added or removed.
    #[test]
    fn a_certificate_cannot_change_its_relation() {
        let asked = Budget::pure(1.0).unwrap();
        let stages =
            [Stage::new("parts", 3, vec![PlannedRelease::laplace("sum", 0.5, ReplaceOne)])];
        let sampler = Sampler::OrderedPartition { steps: 3 };
        let made = |asked| Certificate::new(asked, sampler, &stages, vec![], "row", None).unwrap();
        assert!(made(asked.under(ReplaceOne)).is_consistent());
        assert!(!made(asked).is_consistent());
    }

    #[test]
    fn a_pure_question_that_is_never_asked_has_no_price() {
        let laplace = || PlannedRelease::laplace("count", 0.5, AddRemove);
        let never = PlannedRelease { times: 0, ..laplace() };
        assert!(
            pure_epsilon(Sampler::FullBatch, &[Stage::new("a", 1, vec![laplace()])], AddRemove)
                .is_some()
        );
        for stage in [Stage::new("a", 1, vec![never]), Stage::new("a", 0, vec![laplace()])] {
            assert_eq!(pure_epsilon(Sampler::FullBatch, &[stage], AddRemove), None);
        }
    }
}
