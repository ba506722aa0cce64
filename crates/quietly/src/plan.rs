//! Plans: the releases of a fit and their cost, before any row is read.
use quietly_core::{
    budget::Budget,
    certificate::Certificate,
    checkpoint::PlanDigest,
    mechanism::{Sampler, Stage},
    privacy_plan::{PrivacyPlan, UncheckedPlan},
};
use quietly_engine::{
    algorithm::{Algorithm, Planned, Shape},
    error::Error,
    expansion::Expansion,
    link::Link,
};
use quietly_linear::{budget_split::Learnable, papers::Clip};
use serde::{Deserialize, Serialize};

use crate::{
    any_algorithm::AnyAlgorithm,
    methods::Method,
    model::{unique::Unique, v3},
};

pub(crate) use self::{auto::plan_auto_number, fit::watching};
pub use self::{
    convex::{Convex, plan_auto_classes},
    fit::{FitInput, FitOptions, FitOutput},
    regression::Regression,
};

mod auto;
mod backend;
mod convex;
mod display;
mod expansion;
mod fit;
mod kan;
mod regression;
mod run;
mod source;
#[cfg(test)]
pub(crate) mod test_support;

/// A planned fit: printable, comparable, and complete.
///
/// A `Plan` has been priced, and cannot be changed. What a file holds is a [`PlanRecord`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan<P = PrivacyPlan> {
    link: Link,
    method: Method,
    #[serde(flatten)]
    shape: Shape,
    #[serde(flatten)]
    privacy: P,
    algorithm: AnyAlgorithm,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expansion: Option<Expansion>,
    /// What noise is expected to add to the mean squared error, as a share of what least squares leaves; infinite
    /// where there is no saying.
    #[serde(with = "quietly_core::budget::endless")]
    pub expected_loss: f64,
    /// What the planner wants to be known.
    pub warnings: Vec<String>,
    /// Why this model, in a sentence, where the planner chose it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A plan as a file holds it: not priced.
pub type PlanRecord = Plan<UncheckedPlan>;

impl<A: Into<AnyAlgorithm>> From<Planned<A>> for Plan {
    fn from(planned: Planned<A>) -> Self {
        let Planned { algorithm, shape, privacy, expected_loss, warnings } = planned;
        let algorithm = algorithm.into();
        Plan {
            link: algorithm.link(),
            method: algorithm.method(privacy.budget),
            shape,
            privacy,
            algorithm,
            expansion: None,
            expected_loss,
            warnings,
            why: None,
        }
    }
}

impl<P: AsRef<UncheckedPlan>> Plan<P> {
    /// How a prediction follows from the weighted sum.
    pub fn link(&self) -> Link {
        self.link
    }

    /// The method, by its name.
    pub fn method(&self) -> Method {
        self.method
    }

    /// What is public about the table.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// About how many rows there are; public.
    pub fn rows(&self) -> u64 {
        self.shape.rows
    }

    /// How many features a row has, without the constant; where rows are expanded, after that.
    pub fn width(&self) -> usize {
        self.shape.width
    }

    /// Releases and their cost.
    pub fn privacy(&self) -> &P {
        &self.privacy
    }

    /// What may be spent on one row.
    pub fn budget(&self) -> Budget {
        self.privacy.as_ref().budget
    }

    /// Which rows each step sees.
    pub fn sampler(&self) -> Sampler {
        self.privacy.as_ref().sampler
    }

    /// Every release, stage by stage.
    pub fn stages(&self) -> &[Stage] {
        &self.privacy.as_ref().stages
    }

    /// What they cost: a certified upper bound on ε at the budget's δ.
    pub fn epsilon(&self) -> f64 {
        self.privacy.as_ref().epsilon
    }

    /// The budget that was requested: of a unit, if units have several rows.
    pub fn unit_budget(&self) -> Budget {
        self.privacy.as_ref().unit_budget()
    }

    /// What a unit costs: ε at the δ of [`unit_budget`](Self::unit_budget), not below.
    pub fn unit_epsilon(&self) -> f64 {
        self.privacy.as_ref().unit_epsilon()
    }

    /// What tells this plan from others: a checkpoint is of one plan.
    pub fn identity(&self) -> PlanDigest
    where
        P: Serialize,
    {
        PlanDigest::new(self, self.unit_budget().delta())
    }

    /// The algorithm with its parameters.
    pub fn algorithm(&self) -> &AnyAlgorithm {
        &self.algorithm
    }

    /// What is made of the features of a row before anything else.
    pub fn expansion(&self) -> Option<&Expansion> {
        self.expansion.as_ref()
    }

    /// How much can be learnt at all.
    pub fn reach(&self) -> Learnable {
        match &self.algorithm {
            AnyAlgorithm::FullBatch(full_batch) => full_batch.design.reach,
            AnyAlgorithm::EarlierFullBatch(full_batch) => full_batch.design.reach,
            _ => Learnable::Weights,
        }
    }

    /// J: the noise that the last weights of a network hold in a direction, over what all steps can learn along a gradient
    /// that all rows agree on, times the number of rows and over the clip. Plans of one network are the better the less it
    /// is. None for other models, and without a budget.
    pub fn noise_over_signal(&self) -> Option<f64> {
        match &self.algorithm {
            AnyAlgorithm::Kan(training) => training.noise_over_signal(self.privacy.as_ref()),
            _ => None,
        }
    }

    /// What every fit takes to be public, first of all.
    pub(crate) fn always_public(&self) -> [String; 2] {
        let schema = "the schema: names, ranges and values of the columns".into();
        [schema, format!("that there are about {} rows", self.rows())]
    }

    /// As a file holds it.
    pub fn record(&self) -> PlanRecord {
        Plan {
            link: self.link,
            method: self.method,
            shape: self.shape,
            privacy: self.privacy.as_ref().clone(),
            algorithm: self.algorithm.clone(),
            expansion: self.expansion.clone(),
            expected_loss: self.expected_loss,
            warnings: self.warnings.clone(),
            why: self.why.clone(),
        }
    }
}

impl Plan {
    /// A plan for one row, by what `budget` leaves for it, that is charged to the unit.
    pub(crate) fn for_unit(
        budget: Budget,
        draft: impl FnOnce(Budget) -> Result<Plan, Error>,
    ) -> Result<Plan, Error> {
        let plan = draft(budget.of_one_row()?)?;
        Ok(Plan { privacy: plan.privacy.for_unit(budget), ..plan })
    }

    /// The proof of what a run of this plan promises.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`] if there is no curve of it.
    pub fn certificate(
        &self,
        unit: &str,
        origin: Option<quietly_noise::Source>,
    ) -> Result<Certificate, Error> {
        let [schema, rows] = self.always_public();
        let mut public =
            vec![schema, rows, "which table was read and when, and that this fit was made".into()];
        if let AnyAlgorithm::Recipe(recipe) = &self.algorithm
            && matches!(recipe.clip, Clip::Public { .. })
        {
            public.push("every row of the public table that thresholds were taken from".into());
        }
        let price = Some((self.epsilon(), self.privacy.theorem()));
        let (asked, sampler) = (self.unit_budget(), self.sampler());
        Ok(Certificate::priced(asked, sampler, self.stages(), price, public, unit, origin)?)
    }
}

impl PlanRecord {
    /// Reads a plan file of this version or of any before. It is not priced.
    ///
    /// # Errors
    ///
    /// [`Error::Model`] if it is no plan.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let wrong = |why: String| Error::Model { path: "the plan".into(), why };
        let Unique(mut value) = serde_json::from_str(text).map_err(|e| wrong(e.to_string()))?;
        v3::rewrite_plan(&mut value);
        serde_json::from_value(value).map_err(|e| wrong(e.to_string()))
    }

    /// Prices it again, and looks whether its releases are those of its algorithm.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if they are not, or cost more than it says.
    pub fn check(self) -> Result<Plan, Error> {
        self.agrees()?;
        let (sampler, stages) = self.expected();
        Ok(Plan {
            privacy: self.privacy.check(sampler, &stages)?,
            link: self.link,
            method: self.method,
            shape: self.shape,
            algorithm: self.algorithm,
            expansion: self.expansion,
            expected_loss: self.expected_loss,
            warnings: self.warnings,
            why: self.why,
        })
    }

    /// Whether it lists the releases of its algorithm, whatever their noise. Prices nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if it does not.
    pub(crate) fn agrees(&self) -> Result<(), Error> {
        let want = "as it was planned";
        let size = Shape::new(self.rows(), self.width()).is_ok();
        Error::ensure(size, "plan", want, "one with too many rows or features")?;
        self.check_expansion()?;
        let (algorithm, budget) = (&self.algorithm, self.budget());
        let named = algorithm.link() == self.link && algorithm.method(budget) == self.method;
        Error::ensure(named, "plan", want, "one for another link or of another method")?;
        let got = "one that claims privacy without noise, or none with it";
        let noisy = self.method != Method::Exact;
        Error::ensure(noisy == budget.is_private(), "plan", want, got)?;
        let sound = algorithm.check(self.shape, budget).is_ok();
        Error::ensure(sound, "plan", want, "one whose parameters no proof covers")?;
        let (sampler, stages) = self.expected();
        Ok(self.privacy.agrees(sampler, &stages)?)
    }

    /// The sampler and the releases of its algorithm.
    fn expected(&self) -> (Sampler, Vec<Stage>) {
        let sampler = Algorithm::sampler(&self.algorithm, self.shape);
        (sampler, self.algorithm.stages(self.shape, self.budget(), 1.0))
    }
}
