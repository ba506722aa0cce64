//! Whether a plan may run.
//!
//! A plan can be written, read and changed: its fields are public. One that [`Regression::plan`](crate::Regression::plan)
//! made and nobody touched bears its seal. Any other must ask the very questions that its method asks, stage by stage, under
//! the sampler it runs with, and must cost no more than it says.
use std::{
    hash::{DefaultHasher, Hash, Hasher},
    mem::discriminant,
};

use super::{MOST_FEATURES, MOST_ROWS, Plan};
use crate::{
    charge::{self, Sampler, Stage},
    convex,
    design::Reach,
    error::Error,
    kan,
    method::Method,
    model::Link,
    one_pass::OnePass,
    recipes,
    rows_used::{self, ROWS_USED},
};

/// What a plan looked like when it was made. Plans are compared without it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seal {
    digest: Option<u64>,
    /// The theorem that its price is by.
    pub(super) theorem: Option<&'static str>,
}

impl PartialEq for Seal {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Plan {
    fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        serde_json::to_string(self).expect("plain fields").hash(&mut hasher);
        hasher.finish()
    }

    /// The same plan, known to be as it was made.
    pub(crate) fn sealed(mut self) -> Self {
        self.seal.digest = Some(self.digest());
        self
    }

    /// Its ε and the theorem that says so, if it is known to be as it was made.
    pub(super) fn priced(&self) -> Option<(f64, &'static str)> {
        let intact = self.seal.digest == Some(self.digest());
        self.seal.theorem.filter(|_| intact).map(|theorem| (self.epsilon, theorem))
    }

    /// Refuses a plan that would run otherwise than it is charged, or costs more than it says.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.seal.digest == Some(self.digest()) {
            return Ok(());
        }
        self.check_questions()?;
        self.check_price()
    }

    /// Refuses a plan that lists other questions than its method asks. Prices nothing.
    pub(crate) fn check_questions(&self) -> Result<(), Error> {
        let want = "as it was planned";
        let size =
            (1..=MOST_FEATURES).contains(&self.width) && (1..=MOST_ROWS).contains(&self.rows);
        Error::unless(size, "plan", want, "one for an absurd number of rows or features")?;
        self.check_expansion()?;
        self.check_unit()?;
        let known = match (&self.convex, &self.network) {
            (None, None) => matches!(self.link, Link::Linear | Link::Relu),
            (Some(program), None) => program.link() == self.link,
            (None, Some(training)) => training.check().is_ok(),
            _ => false,
        };
        Error::unless(known, "plan", want, "one for another link")?;
        let refused = |got: &str| Error::unless(false, "plan", want, got);
        if self.method == Method::Exact || !self.budget.is_private() {
            let sound = self.method == Method::Exact && !self.budget.is_private();
            let got = "one that claims privacy without noise, or none with it";
            return Error::unless(sound, "plan", want, got);
        }
        let Some(questions) = self.questions() else {
            return refused("read in another way than it is accounted for");
        };
        let alike = |(a, b): (&Stage, &Stage)| {
            let same = a.steps == b.steps && a.all_rows == b.all_rows && a.name == b.name;
            let charge = |(a, b): (&charge::Charge, &charge::Charge)| {
                let kind = |c: &charge::Charge| discriminant(&c.mechanism);
                // What slopes are like is the loss's business, and how noise is mixed the network's.
                let like = |c: &charge::Charge| match c.mechanism {
                    charge::Mechanism::Objective { slopes, .. } => (Some(slopes), None),
                    charge::Mechanism::Mixed { mixing, .. } => (None, Some(mixing)),
                    _ => (None, None),
                };
                let same = kind(a) == kind(b) && like(a) == like(b);
                same && a.purpose == b.purpose && a.times == b.times
            };
            same && a.charges.len() == b.charges.len()
                && a.charges.iter().zip(&b.charges).all(charge)
        };
        let stages = rows_used::without(&self.stages);
        if stages.len() != questions.len() || !stages.iter().zip(&questions).all(alike) {
            return refused("one with other questions than its method asks");
        }
        Ok(())
    }

    /// Refuses a plan that costs more than it says.
    fn check_price(&self) -> Result<(), Error> {
        if !self.budget.is_private() || rows_used::without(&self.stages).is_empty() {
            return Ok(());
        }
        let (neighbours, delta) = (self.budget.neighbours(), self.budget.delta());
        let price = if self.budget.is_pure() {
            let price = charge::pure_epsilon(self.sampler, &self.stages, neighbours);
            price.unwrap_or(f64::INFINITY)
        } else {
            let event = charge::event(self.sampler, &self.stages)?;
            quietly_accounting::epsilon(&event, neighbours, delta)?.upper
        };
        // A number that was written and read again may differ in its last digit.
        if price <= self.budget.epsilon().min(self.epsilon * (1.0 + 1e-9)) {
            return Ok(());
        }
        Error::unless(false, "plan", "as it was planned", "one that costs more than it says")
    }

    /// Refuses a plan that gives one row more than the unit's budget leaves for it.
    pub(crate) fn check_unit(&self) -> Result<(), Error> {
        let sound = match self.unit {
            None => self.budget.rows_per_unit() == 1,
            Some(unit) => unit.rows_per_unit() > 1 && unit.of_one_row()? == self.budget,
        };
        let got = "one with another budget for one row than its unit leaves";
        Error::unless(sound, "plan", "as it was planned", got)
    }

    /// The questions of this plan's method under its sampler, whatever their noise; none if they do not go together.
    fn questions(&self) -> Option<Vec<Stage>> {
        let neighbours = self.budget.neighbours();
        let counted = |stages: Vec<Stage>| {
            let steps: u64 = stages.iter().filter(|s| !s.all_rows).map(|s| s.steps).sum();
            (steps == self.sampler.steps().unwrap_or(steps)).then_some(stages)
        };
        match (self.method, self.sampler) {
            (Method::FullBatch, Sampler::Full) => match &self.design {
                Some(design) if design.reach == Reach::Nothing => Some(Vec::new()),
                Some(design) => Some(design.stages(neighbours, 1.0)),
                None => None,
            },
            (Method::OnePass, Sampler::Allocation { steps }) => {
                // Plans of earlier versions do not count rows.
                let first = self.stages.first()?;
                let counts = first.charges.iter().any(|charge| charge.purpose == ROWS_USED);
                counted(OnePass::new(Some(steps)).ok()?.stages(1.0, counts))
            }
            (Method::Auto | Method::FullBatch | Method::OnePass | Method::Exact, _) => None,
            _ if self.network.is_some() => kan::questions(self).and_then(counted),
            _ if self.convex.is_some() => convex::questions::questions(self).and_then(counted),
            _ => recipes::questions(self).and_then(counted),
        }
    }
}
