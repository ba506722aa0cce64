//! What unit tests see of a plan.
use quietly_core::{
    charge::Charge, privacy_plan::UncheckedPlan, progress::ProgressCallback, release::Releaser,
};
use quietly_data::{Private, Table};
use quietly_engine::{error::Error, expansion::Expansion};
use quietly_glm::Problem;
use quietly_kan::KanConfig;
use quietly_noise::Key;

use super::{FitOptions, Plan, PlanRecord, fit::InputRows};
use crate::any_algorithm::{AnyAlgorithm, Fitted};

/// A fit with a fixed seed.
pub(crate) fn options<'a>(seed: u64, threads: usize) -> FitOptions<'a> {
    FitOptions::new(Charge::without_ledger(Key::from_seed(seed))).threads(threads)
}

impl Plan {
    pub(crate) fn problem(&self) -> &Problem {
        self.algorithm.problem().expect("a convex plan")
    }

    pub(crate) fn training(&self) -> &KanConfig {
        match &self.algorithm {
            AnyAlgorithm::Kan(training) => training,
            other => panic!("{other:?} is no network"),
        }
    }

    /// Fits a table through this releaser.
    pub(crate) fn through(
        &self,
        releaser: &mut Releaser,
        table: &Private<Table>,
        public: Option<&Table>,
        range: (f64, f64),
        watch: &mut ProgressCallback<'_>,
    ) -> Result<Fitted, Error> {
        self.run(InputRows::Table(table, range), public, releaser, range, watch)
    }
}

impl PlanRecord {
    /// What a file could change.
    pub(crate) fn parts(&mut self) -> (&mut UncheckedPlan, &mut AnyAlgorithm) {
        (&mut self.privacy, &mut self.algorithm)
    }

    pub(crate) fn set_expansion(&mut self, expansion: Expansion) {
        self.expansion = Some(expansion);
    }

    /// The training, to be changed.
    pub(crate) fn training_mut(&mut self) -> &mut KanConfig {
        match &mut self.algorithm {
            AnyAlgorithm::Kan(training) => training,
            other => panic!("{other:?} is no network"),
        }
    }

    /// The convex problem, to be changed.
    pub(crate) fn program_mut(&mut self) -> &mut Problem {
        match &mut self.algorithm {
            AnyAlgorithm::ObjectivePerturbation(fit) => &mut fit.problem,
            AnyAlgorithm::NoisyGradients(fit) => &mut fit.problem,
            AnyAlgorithm::OutputPerturbation(fit) => &mut fit.problem,
            AnyAlgorithm::Localisation(fit) => &mut fit.problem,
            other => panic!("{other:?} has no convex problem"),
        }
    }
}
