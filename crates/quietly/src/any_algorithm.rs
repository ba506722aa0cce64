//! The closed list of algorithms, and the one `match` over it.
use quietly_core::{
    budget::Budget,
    mechanism::{Sampler, Stage},
    privacy_plan::PrivacyPlan,
};
use quietly_engine::{
    algorithm::{Access, Algorithm, Planned, Run, Shape},
    error::Error,
    expansion::Expansion,
    link::Link,
};
use quietly_glm::{
    Classes, ConvexFit, Localisation, Minimiser, NoisyGradients, ObjectivePerturbation,
    OutputPerturbation, Problem, Weights,
};
use quietly_kan::{KanConfig, KanModel};
use quietly_linear::{
    additive::Additive,
    earlier::{EarlierFullBatch, EarlierOnePass},
    full_batch::FullBatch,
    least_squares::LeastSquares,
    linear_fit::LinearFit,
    one_pass::OnePass,
    papers::{AdaSsp, BoostedAdaSsp, Recipe, TukeyEm, check_width, tukey_em_warning},
};
use serde::{Deserialize, Serialize};

use crate::{methods::Method, plan::Plan};

/// An algorithm with its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case")]
#[non_exhaustive]
#[expect(clippy::large_enum_variant, reason = "a plan has one")]
pub enum AnyAlgorithm {
    /// The default regression.
    #[serde(rename = "full-batch-2")]
    FullBatch(FullBatch),
    /// The same first, then bends of columns and pairs.
    Additive(Additive),
    /// That of earlier versions, whose plans are read but not run.
    #[serde(rename = "full-batch")]
    EarlierFullBatch(EarlierFullBatch),
    /// One pass by random allocation.
    #[serde(rename = "one-pass-2")]
    OnePass(OnePass),
    /// That of earlier versions, whose plans are read but not run.
    #[serde(rename = "one-pass")]
    EarlierOnePass(EarlierOnePass),
    /// Least squares without noise.
    LeastSquares(LeastSquares),
    /// A descent of the papers.
    Recipe(Recipe),
    /// Noisy sufficient statistics.
    #[serde(rename = "adassp")]
    AdaSsp(AdaSsp),
    /// The same, boosted.
    #[serde(rename = "boosted-adassp")]
    BoostedAdaSsp(BoostedAdaSsp),
    /// A deep point among many least-squares fits.
    TukeyEm(TukeyEm),
    /// Two or more classes, by the default rules.
    Classes(Classes),
    /// The minimiser of a perturbed objective.
    ObjectivePerturbation(ConvexFit<ObjectivePerturbation>),
    /// Descent along noisy gradients of a convex loss.
    NoisyGradients(ConvexFit<NoisyGradients>),
    /// A descent whose last point is released.
    OutputPerturbation(ConvexFit<OutputPerturbation>),
    /// Phases, each of which is released.
    Localisation(ConvexFit<Localisation>),
    /// The minimiser of a convex problem, without noise.
    Minimiser(ConvexFit<Minimiser>),
    /// A Kolmogorov-Arnold network.
    Kan(KanConfig),
}

/// What a fit gives.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Fitted {
    /// Intercepts and weights.
    Weights(Weights),
    /// A regression of winsorised columns.
    Linear(LinearFit),
    /// A network.
    Network(KanModel),
}

impl From<(f64, Vec<f64>)> for Fitted {
    fn from(weights: (f64, Vec<f64>)) -> Self {
        Fitted::Weights(weights.into())
    }
}

impl From<Weights> for Fitted {
    fn from(weights: Weights) -> Self {
        Fitted::Weights(weights)
    }
}

impl From<LinearFit> for Fitted {
    fn from(fit: LinearFit) -> Self {
        Fitted::Linear(fit)
    }
}

impl From<KanModel> for Fitted {
    fn from(network: KanModel) -> Self {
        Fitted::Network(network)
    }
}

macro_rules! from {
    ($($variant:ident($type:ty)),* $(,)?) => {$(
        impl From<$type> for AnyAlgorithm {
            fn from(algorithm: $type) -> Self {
                AnyAlgorithm::$variant(algorithm)
            }
        }
    )*};
}

from!(
    FullBatch(FullBatch),
    Additive(Additive),
    EarlierFullBatch(EarlierFullBatch),
    OnePass(OnePass),
    EarlierOnePass(EarlierOnePass),
    LeastSquares(LeastSquares),
    Recipe(Recipe),
    AdaSsp(AdaSsp),
    BoostedAdaSsp(BoostedAdaSsp),
    TukeyEm(TukeyEm),
    Classes(Classes),
    ObjectivePerturbation(ConvexFit<ObjectivePerturbation>),
    NoisyGradients(ConvexFit<NoisyGradients>),
    OutputPerturbation(ConvexFit<OutputPerturbation>),
    Localisation(ConvexFit<Localisation>),
    Minimiser(ConvexFit<Minimiser>),
    Kan(KanConfig),
);

/// The one `match`: the same for every algorithm.
macro_rules! each {
    ($any:expr, $algorithm:ident => $work:expr) => {
        match $any {
            AnyAlgorithm::FullBatch($algorithm) => $work,
            AnyAlgorithm::Additive($algorithm) => $work,
            AnyAlgorithm::EarlierFullBatch($algorithm) => $work,
            AnyAlgorithm::OnePass($algorithm) => $work,
            AnyAlgorithm::EarlierOnePass($algorithm) => $work,
            AnyAlgorithm::LeastSquares($algorithm) => $work,
            AnyAlgorithm::Recipe($algorithm) => $work,
            AnyAlgorithm::AdaSsp($algorithm) => $work,
            AnyAlgorithm::BoostedAdaSsp($algorithm) => $work,
            AnyAlgorithm::TukeyEm($algorithm) => $work,
            AnyAlgorithm::Classes($algorithm) => $work,
            AnyAlgorithm::ObjectivePerturbation($algorithm) => $work,
            AnyAlgorithm::NoisyGradients($algorithm) => $work,
            AnyAlgorithm::OutputPerturbation($algorithm) => $work,
            AnyAlgorithm::Localisation($algorithm) => $work,
            AnyAlgorithm::Minimiser($algorithm) => $work,
            AnyAlgorithm::Kan($algorithm) => $work,
        }
    };
}

impl Algorithm for AnyAlgorithm {
    type Fitted = Fitted;

    fn sampler(&self, shape: Shape) -> Sampler {
        each!(self, algorithm => Algorithm::sampler(algorithm, shape))
    }

    fn stages(&self, shape: Shape, budget: Budget, noise: f64) -> Vec<Stage> {
        each!(self, algorithm => algorithm.stages(shape, budget, noise))
    }

    fn count_stage(&self, budget: Budget, sampler: Sampler) -> Result<Option<Stage>, Error> {
        each!(self, algorithm => algorithm.count_stage(budget, sampler))
    }

    fn plan(&self, shape: Shape, budget: Budget) -> Result<PrivacyPlan, Error> {
        each!(self, algorithm => Algorithm::plan(algorithm, shape, budget))
    }

    fn check(&self, shape: Shape, budget: Budget) -> Result<(), Error> {
        each!(self, algorithm => Algorithm::check(algorithm, shape, budget))
    }

    fn access(&self) -> Access {
        each!(self, algorithm => Algorithm::access(algorithm))
    }

    fn keeps_places(&self, plan: &PrivacyPlan) -> bool {
        each!(self, algorithm => algorithm.keeps_places(plan))
    }

    fn fit(&self, run: Run<'_, '_>) -> Result<Fitted, Error> {
        each!(self, algorithm => Ok(Algorithm::fit(algorithm, run)?.into()))
    }
}

impl AnyAlgorithm {
    /// How a prediction follows from the weighted sum.
    pub fn link(&self) -> Link {
        match self {
            AnyAlgorithm::FullBatch(full_batch) => full_batch.link,
            AnyAlgorithm::Additive(additive) => additive.linear.link,
            AnyAlgorithm::EarlierFullBatch(full_batch) => full_batch.link,
            AnyAlgorithm::OnePass(one_pass) => one_pass.link,
            AnyAlgorithm::EarlierOnePass(one_pass) => one_pass.link,
            AnyAlgorithm::LeastSquares(exact) => exact.link,
            AnyAlgorithm::Recipe(recipe) => recipe.link(),
            AnyAlgorithm::AdaSsp(_) | AnyAlgorithm::BoostedAdaSsp(_) | AnyAlgorithm::TukeyEm(_) => {
                Link::Linear
            }
            AnyAlgorithm::Kan(training) => training.link(),
            _ => self.problem().expect("all others are convex").link(),
        }
    }

    /// The convex problem, if it solves one.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            AnyAlgorithm::Classes(classes) => Some(&classes.problem),
            AnyAlgorithm::ObjectivePerturbation(fit) => Some(&fit.problem),
            AnyAlgorithm::NoisyGradients(fit) => Some(&fit.problem),
            AnyAlgorithm::OutputPerturbation(fit) => Some(&fit.problem),
            AnyAlgorithm::Localisation(fit) => Some(&fit.problem),
            AnyAlgorithm::Minimiser(fit) => Some(&fit.problem),
            _ => None,
        }
    }

    /// What expands the rows of a second part, if there is one.
    pub(crate) fn splines(&self) -> Option<&Expansion> {
        match self {
            AnyAlgorithm::Classes(classes) => classes.splines.as_ref().map(|s| &s.expansion),
            _ => None,
        }
    }

    /// The plan of a method that solves for its weights in closed form; none for other methods.
    pub(crate) fn closed_form(
        method: Method,
        shape: Shape,
        budget: Budget,
    ) -> Option<Result<Plan, Error>> {
        Some(match method {
            Method::AdaSsp => closed_form(AdaSsp {}, shape, budget).map(Into::into),
            Method::BoostedAdaSsp => closed_form(BoostedAdaSsp {}, shape, budget).map(Into::into),
            Method::TukeyEm => closed_form(TukeyEm {}, shape, budget).map(|mut planned| {
                planned.warnings.extend(tukey_em_warning(&planned));
                planned.into()
            }),
            _ => return None,
        })
    }

    /// Its name as people type it, under a budget.
    pub fn method(&self, budget: Budget) -> Method {
        match self {
            AnyAlgorithm::FullBatch(_) | AnyAlgorithm::EarlierFullBatch(_) => Method::FullBatch,
            AnyAlgorithm::Additive(_) => Method::Additive,
            AnyAlgorithm::OnePass(_) | AnyAlgorithm::EarlierOnePass(_) => Method::OnePass,
            AnyAlgorithm::LeastSquares(_) | AnyAlgorithm::Minimiser(_) => Method::Exact,
            AnyAlgorithm::Recipe(recipe) => Method::of(recipe.method.name()),
            AnyAlgorithm::AdaSsp(_) => Method::AdaSsp,
            AnyAlgorithm::BoostedAdaSsp(_) => Method::BoostedAdaSsp,
            AnyAlgorithm::TukeyEm(_) => Method::TukeyEm,
            AnyAlgorithm::Classes(_) => Method::ScaledAmp,
            AnyAlgorithm::ObjectivePerturbation(fit) if fit.problem.scales => Method::ScaledAmp,
            AnyAlgorithm::ObjectivePerturbation(_) => Method::Amp,
            AnyAlgorithm::NoisyGradients(fit) => match fit.method {
                NoisyGradients::DpGd => Method::DpGd,
                NoisyGradients::DpSgd { .. } => Method::DpSgd,
                NoisyGradients::FrankWolfe => Method::FrankWolfe,
            },
            AnyAlgorithm::OutputPerturbation(fit) => match fit.method {
                OutputPerturbation::ScPsgd => Method::ScPsgd,
                OutputPerturbation::GdOp => Method::GdOp,
            },
            AnyAlgorithm::Localisation(fit) => Method::of(fit.method.name()),
            AnyAlgorithm::Kan(_) if !budget.is_private() => Method::Exact,
            AnyAlgorithm::Kan(_) => Method::Kan,
        }
    }
}

/// Plans an algorithm whose accuracy nothing is said of.
fn closed_form<A: Algorithm>(
    algorithm: A,
    shape: Shape,
    budget: Budget,
) -> Result<Planned<A>, Error> {
    check_width(shape)?;
    let privacy = algorithm.plan(shape, budget)?;
    let planned = Planned::new(algorithm, shape, privacy);
    Ok(Planned { expected_loss: f64::INFINITY, ..planned })
}
