//! What a fit will release, and what that costs: the part of a plan that decides privacy.
//!
//! A [`PrivacyPlan`] has been priced: only the accountant makes one, and its fields cannot be changed. What a
//! file holds is an [`UncheckedPlan`] until [`check`](UncheckedPlan::check) has priced it again.
use std::{mem::discriminant, ops::Deref};

use serde::{Deserialize, Serialize};

use crate::{
    budget::Budget,
    calibration_cache::Search,
    error::Error,
    mechanism::{self, Mechanism, PlannedRelease, Sampler, Stage},
    rows_used,
};

/// The least noise of a sampled step: what the accountant allows, and a little for rounding.
const LEAST: f64 = 0.1 * (1.0 + 1e-9);

/// The theorem of a plan that releases nothing, or adds no noise.
const NONE: &str = "none";
/// The theorem of a plan with δ = 0.
const PURE: &str = "pure composition";

/// Which releases a fit makes under which sampler, and a certified upper bound on their cost.
///
/// It reads like an [`UncheckedPlan`] and cannot be changed like one.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct PrivacyPlan {
    terms: UncheckedPlan,
    #[serde(skip)]
    theorem: &'static str,
}

/// The same as a file holds it: not priced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UncheckedPlan {
    /// What may be spent on one row.
    pub budget: Budget,
    /// What may be spent on a unit of several rows, if units have them: group privacy leaves `budget` of
    /// it for each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<Budget>,
    /// Which rows each step sees.
    #[serde(flatten)]
    pub sampler: Sampler,
    /// Every release, stage by stage.
    pub stages: Vec<Stage>,
    /// What they cost: a certified upper bound on ε at the budget's δ.
    #[serde(with = "crate::budget::endless")]
    pub epsilon: f64,
}

impl Deref for PrivacyPlan {
    type Target = UncheckedPlan;

    fn deref(&self) -> &UncheckedPlan {
        &self.terms
    }
}

impl AsRef<UncheckedPlan> for PrivacyPlan {
    fn as_ref(&self) -> &UncheckedPlan {
        &self.terms
    }
}

impl AsRef<UncheckedPlan> for UncheckedPlan {
    fn as_ref(&self) -> &UncheckedPlan {
        self
    }
}

impl PrivacyPlan {
    /// The least noise multiplier for which all releases together stay within the budget.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`] if the budget cannot be met.
    pub fn calibrate(
        budget: Budget,
        sampler: Sampler,
        stages: impl Fn(f64) -> Vec<Stage>,
    ) -> Result<Self, Error> {
        let least = if sampler == Sampler::FullBatch { 0.0 } else { LEAST };
        let search = Search {
            sampler,
            neighbours: budget.neighbours(),
            epsilon: budget.epsilon(),
            delta: budget.delta(),
        };
        let (stages, price) = search.run(|noise| stages(noise.max(least)))?;
        let terms = UncheckedPlan { budget, unit: None, sampler, stages, epsilon: price.upper };
        Ok(PrivacyPlan { terms, theorem: price.method })
    }

    /// Releases whose noise is given: pure ε, mechanisms with a proof of their own, or none at all.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`] if no theorem covers them, [`Error::Parameter`] if they cost more than the budget.
    pub fn fixed(budget: Budget, sampler: Sampler, stages: Vec<Stage>) -> Result<Self, Error> {
        let epsilon = f64::INFINITY;
        UncheckedPlan { budget, unit: None, sampler, stages, epsilon }.priced()
    }

    /// The same, charged to a unit that has this budget for all of its rows.
    pub fn for_unit(mut self, unit: Budget) -> Self {
        self.terms.unit = (unit.rows_per_unit() > 1).then_some(unit);
        self
    }

    /// The theorem behind ε.
    pub fn theorem(&self) -> &'static str {
        self.theorem
    }
}

impl UncheckedPlan {
    /// The budget that was requested: of a unit, if units have several rows.
    pub fn unit_budget(&self) -> Budget {
        self.unit.unwrap_or(self.budget)
    }

    /// What a unit costs: ε at the δ of [`unit_budget`](Self::unit_budget), not below.
    pub fn unit_epsilon(&self) -> f64 {
        self.unit_budget().group().epsilon(self.epsilon)
    }

    /// The planned noise multiplier of a sum.
    ///
    /// # Panics
    ///
    /// If no sum of this name is planned.
    pub fn noise(&self, purpose: &str) -> f64 {
        let mut releases = self.stages.iter().flat_map(|stage| &stage.releases);
        match releases.find(|charge| charge.purpose == purpose).map(|charge| charge.mechanism) {
            Some(Mechanism::Gaussian { noise }) => noise,
            _ => panic!("{purpose} is not planned as a sum"),
        }
    }

    /// Prices it again. `sampler` and `expected` are what its algorithm says it will release, at any noise.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if it lists other releases, or costs more than it says.
    pub fn check(self, sampler: Sampler, expected: &[Stage]) -> Result<PrivacyPlan, Error> {
        self.agrees(sampler, expected)?;
        let (said, budget) = (self.epsilon, self.budget.epsilon());
        let got = "one that costs more than it says";
        let refused = |_| Error::ensure(false, "plan", WANT, got).expect_err("it is refused");
        let plan = self.priced().map_err(refused)?;
        // A number that was written and read again may differ in its last digit.
        let most = budget.min(said * (1.0 + 1e-9));
        Error::ensure(plan.epsilon <= most, "plan", WANT, got)?;
        Ok(plan)
    }

    /// Whether it lists the releases of its algorithm, whatever their noise. Prices nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if it does not.
    pub fn agrees(&self, sampler: Sampler, expected: &[Stage]) -> Result<(), Error> {
        self.check_unit()?;
        let got = "read in another way than it is accounted for";
        let steps: u64 = expected.iter().filter(|s| !s.all_rows).map(|s| s.steps).sum();
        let same = self.sampler == sampler && sampler.steps().is_none_or(|s| s == steps);
        let nothing = expected.is_empty() && self.sampler == sampler;
        Error::ensure(same || nothing, "plan", WANT, got)?;
        let stages = rows_used::without(&self.stages);
        let alike = |(a, b): (&Stage, &Stage)| {
            let same = a.steps == b.steps && a.all_rows == b.all_rows && a.name == b.name;
            let same = same && a.instead_of == b.instead_of;
            same && a.releases.len() == b.releases.len()
                && a.releases.iter().zip(&b.releases).all(|(a, b)| alike(a, b))
        };
        let same = stages.len() == expected.len() && stages.iter().zip(expected).all(alike);
        let got = "one with other releases than those of its method";
        Error::ensure(same, "plan", WANT, got)
    }

    /// Whether one row's budget is what the unit's budget leaves for it.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if it is not.
    pub fn check_unit(&self) -> Result<(), Error> {
        let sound = match self.unit {
            None => self.budget.rows_per_unit() == 1,
            Some(unit) => unit.rows_per_unit() > 1 && unit.of_one_row()? == self.budget,
        };
        let got = "one with another budget for one row than its unit leaves";
        Error::ensure(sound, "plan", WANT, got)
    }

    /// The same plan, priced.
    fn priced(mut self) -> Result<PrivacyPlan, Error> {
        let budget = self.budget;
        let (neighbours, delta) = (budget.neighbours(), budget.delta());
        let theorem;
        (self.epsilon, theorem) = if !budget.is_private() {
            (f64::INFINITY, NONE)
        } else if self.stages.is_empty() {
            (0.0, NONE)
        } else if budget.is_pure() {
            let price = mechanism::pure_epsilon(self.sampler, &self.stages, neighbours);
            (price.unwrap_or(f64::INFINITY), PURE)
        } else {
            let event = mechanism::event(self.sampler, &self.stages)?;
            let price = quietly_accounting::epsilon(&event, neighbours, delta)?;
            (price.upper, price.method)
        };
        let fits = self.epsilon <= budget.epsilon();
        Error::ensure(fits, "plan", "one within its budget", self.epsilon)?;
        Ok(PrivacyPlan { terms: self, theorem })
    }
}

/// What a plan of a file must be.
const WANT: &str = "as it was planned";

/// Whether two releases differ in their noise alone.
fn alike(a: &PlannedRelease, b: &PlannedRelease) -> bool {
    let kind = |c: &PlannedRelease| discriminant(&c.mechanism);
    // What is known of derivatives is the loss's business, and how noise is correlated the network's.
    let like = |c: &PlannedRelease| match c.mechanism {
        Mechanism::ObjectivePerturbation { derivative, .. } => (Some(derivative), None),
        Mechanism::CorrelatedGaussian { correlation, .. } => (None, Some(correlation)),
        _ => (None, None),
    };
    let same = kind(a) == kind(b) && like(a) == like(b);
    same && a.purpose == b.purpose && a.times == b.times
}
