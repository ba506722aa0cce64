//! What unit tests see of a plan.
use quietly_core::{privacy_plan::UncheckedPlan, progress::ProgressCallback, release::Releaser};
use quietly_data::{Private, Table};
use quietly_engine::{error::Error, expansion::Expansion};
use quietly_glm::{Problem, Weights};
use quietly_kan::KanConfig;

use super::{Plan, PlanRecord};
use crate::any_algorithm::{AnyAlgorithm, Fitted};

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
    ) -> Result<Weights, Error> {
        match self.fit_table(releaser, table, public, range, watch)? {
            Fitted::Weights(weights) => Ok(weights),
            Fitted::Network(_) => panic!("a network has no weights of features"),
        }
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
