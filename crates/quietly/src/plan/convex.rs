//! Planning convex losses: every error is raised here, before any row is read.
use quietly_accounting::gaussian_mu;
use quietly_core::budget::Budget;
use quietly_engine::{
    algorithm::{Planned, Shape},
    error::Error,
};
use quietly_glm::{
    self, ConvexMethod, Growth, Localisation, Loss, Minimiser, NoisyGradients,
    ObjectivePerturbation, OutputPerturbation, Problem, Regulariser, Set, dp_gd, mu,
    output_perturbation, planned, standardise,
};

use super::Plan;
use crate::methods::Method;

pub use self::classes::plan_auto_classes;

mod classes;
mod small;

/// A classifier or a regression with a loss of its own, to be planned.
///
/// ```
/// use quietly::{Budget, Convex, Loss};
///
/// let plan = Convex::new(Loss::Logistic).plan(20_000, 10, Budget::new(1.0, 1e-5)?)?;
/// assert!(plan.epsilon() <= 1.0);
/// # Ok::<(), quietly::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Convex {
    method: Method,
    loss: Loss,
    set: Set,
    regulariser: Regulariser,
    constant: f64,
    l1: Option<f64>,
    longest: Option<f64>,
    finds_radius: bool,
    growth: Option<Growth>,
    clip: Option<f64>,
    steps: Option<u64>,
    step_size: Option<f64>,
}

impl Convex {
    /// A fit of this loss: of all weights, with a constant.
    pub fn new(loss: Loss) -> Self {
        Convex {
            method: Method::Auto,
            loss,
            set: Set::Everything,
            regulariser: Regulariser::default(),
            constant: 1.0,
            l1: None,
            longest: None,
            finds_radius: true,
            growth: None,
            clip: None,
            steps: None,
            step_size: None,
        }
    }

    /// The same by another method.
    #[must_use]
    pub fn method(self, method: Method) -> Self {
        Convex { method, ..self }
    }

    /// The same with weights in a set.
    #[must_use]
    pub fn within(self, set: Set) -> Self {
        Convex { set, ..self }
    }

    /// The same with λ/2·‖w‖² added to the loss of every row.
    #[must_use]
    pub fn ridge(self, ridge: f64) -> Self {
        Convex { regulariser: Regulariser { ridge, ..self.regulariser }, ..self }
    }

    /// The same with λ·‖w‖₁ added to the loss of every row.
    #[must_use]
    pub fn lasso(self, lasso: f64) -> Self {
        Convex { regulariser: Regulariser { lasso, ..self.regulariser }, ..self }
    }

    /// The same with weight/θ·‖w‖^θ added to the loss of every row, θ ≥ 2.
    #[must_use]
    pub fn power(self, theta: f64, weight: f64) -> Self {
        let power = Some((theta, weight));
        Convex { regulariser: Regulariser { power, ..self.regulariser }, ..self }
    }

    /// The same for an objective that grows like `rate`·‖w - w*‖^θ around its minimum; for Iterated Phased-SGD θ is its θ̄.
    #[must_use]
    pub fn growing(self, theta: f64, rate: f64) -> Self {
        Convex { growth: Some(Growth { theta, rate }), ..self }
    }

    /// The same with this constant feature; 0 for none.
    #[must_use]
    pub fn constant(self, constant: f64) -> Self {
        Convex { constant, ..self }
    }

    /// The same with rows cut to a 1-norm of at most `l1`, each on its own.
    #[must_use]
    pub fn rows_within_l1(self, l1: f64) -> Self {
        Convex { l1: Some(l1), ..self }
    }

    /// The same with rows cut to a norm of at most `longest`, each on its own: what the schema knows.
    #[must_use]
    pub fn rows_within(self, longest: f64) -> Self {
        Convex { longest: Some(longest), ..self }
    }

    /// The same without asking for a tighter bound on rows.
    #[must_use]
    pub fn known_radius(self) -> Self {
        Convex { finds_radius: false, ..self }
    }

    /// The same in so many steps, for `dp-gd`, `dp-sgd`, `frank-wolfe` and `gd-op`, or passes, for `sc-psgd`.
    #[must_use]
    pub fn steps(self, steps: u64) -> Self {
        Convex { steps: Some(steps), ..self }
    }

    /// The same with steps of this length down the mean gradient, for `dp-gd`, `dp-sgd`, `sc-psgd` and `gd-op`.
    #[must_use]
    pub fn step_size(self, step_size: f64) -> Self {
        Convex { step_size: Some(step_size), ..self }
    }

    /// The same with every row's gradient cut to this norm, for `dp-gd`, `dp-sgd` and `frank-wolfe`.
    #[must_use]
    pub fn clip(self, clip: f64) -> Self {
        Convex { clip: Some(clip), ..self }
    }

    /// The plan for about `rows` rows of `width` features.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] for anything that does not go together, [`Error::Accounting`] if the budget cannot be met.
    pub fn plan(&self, rows: u64, width: usize, budget: Budget) -> Result<Plan, Error> {
        Plan::for_unit(budget, |budget| self.draft(rows, width, budget))
    }

    fn draft(&self, rows: u64, width: usize, budget: Budget) -> Result<Plan, Error> {
        if self.has_classes(width, budget) {
            return self.classes(rows, width, budget);
        }
        if let Some(descent) = self.for_small_table(rows, budget) {
            return descent.draft(rows, width, budget);
        }
        let mut problem = self.problem(width)?;
        let shape = Shape::new(rows, width)?;
        if !budget.is_private() {
            problem.minimisable(width, problem.set != Set::Everything)?;
            // Nothing is released but the minimiser itself.
            problem.finds_radius = false;
            return Ok(planned(Minimiser {}, problem, shape, budget)?.into());
        }
        let scalable = self.can_scale(width) && !budget.is_pure();
        let method = match self.method {
            Method::Auto | Method::Exact if scalable => Method::ScaledAmp,
            Method::Auto | Method::Exact => Method::Amp,
            other => other,
        };
        if method == Method::ScaledAmp {
            let want =
                "everywhere, with a constant, no bound of their own and a delta, for scaled rows";
            Error::ensure(scalable, "weights and rows", want, "otherwise")?;
            let mu = gaussian_mu(budget.epsilon(), budget.delta())?;
            problem.scale(standardise::is_calm(rows, width, mu));
        }
        let fine = method.about().links.contains(&problem.link());
        Error::ensure(fine, "method", "one for this model", method.and_its_models())?;
        self.unused(method)?;
        let mu = mu(&problem, shape, budget);
        if let Some(gradients) = noisy_gradients(method) {
            let warnings = dp_gd::plan(gradients, &mut problem, shape, budget, mu)?;
            let planned = planned(gradients, problem, shape, budget)?;
            return Ok(Planned { warnings, ..planned }.into());
        }
        if let Some(localisation) = Localisation::named(method.name()) {
            let warnings = localisation.plan(&mut problem, shape, budget, mu)?;
            let planned = planned(localisation, problem, shape, budget)?;
            return Ok(Planned { warnings, ..planned }.into());
        }
        Ok(match method {
            Method::ScPsgd | Method::GdOp => {
                output_perturbation::check(&problem, shape, budget)?;
                let perturbation = match method {
                    Method::GdOp => OutputPerturbation::GdOp,
                    _ => OutputPerturbation::ScPsgd,
                };
                planned(perturbation, problem, shape, budget)?.into()
            }
            Method::Amp | Method::ScaledAmp => {
                let perturbation = ObjectivePerturbation {};
                ConvexMethod::check(&perturbation, &problem, shape, budget)?;
                planned(perturbation, problem, shape, budget)?.into()
            }
            _ => {
                let (want, got) = ("one for this model", method.and_its_models());
                return Err(Error::Parameter { name: "method", want, got });
            }
        })
    }

    /// Refuses options that the method does not have.
    fn unused(&self, method: Method) -> Result<(), Error> {
        let sums = matches!(method, Method::DpGd | Method::DpSgd | Method::FrankWolfe);
        let points = matches!(method, Method::ScPsgd | Method::GdOp);
        let want = "left out: this method has none";
        let fine = self.clip.is_none() || sums;
        Error::ensure(fine, "clip", want, self.clip.unwrap_or(0.0))?;
        let fine = self.steps.is_none() || sums || points;
        Error::ensure(fine, "steps", want, self.steps.unwrap_or(0))?;
        let fine = self.step_size.is_none() || (sums || points) && method != Method::FrankWolfe;
        Error::ensure(fine, "step size", want, self.step_size.unwrap_or(0.0))?;
        Ok(())
    }

    /// Whether rows may be centred and scaled: not where weights must stay in a set, or rows are bounded in a way of their own, or
    /// there are too many features for a copy of the rows without zeros.
    fn can_scale(&self, width: usize) -> bool {
        self.is_plain() && width <= 2000
    }

    /// Whether nothing was asked for but the loss: no set of weights, no bounds on rows, and a constant.
    fn is_plain(&self) -> bool {
        let anywhere = self.set == Set::Everything && self.l1.is_none() && self.finds_radius;
        let regular = self.regulariser == Regulariser::default() && self.constant != 0.0;
        anywhere && regular
    }

    fn problem(&self, width: usize) -> Result<Problem, Error> {
        // Features lie within [-1, 1].
        let most = (width as f64 + self.constant * self.constant).sqrt();
        let longest = self.longest.unwrap_or(most).min(most).min(self.l1.unwrap_or(most));
        let problem = Problem {
            loss: self.loss,
            set: self.set.clone(),
            regulariser: self.regulariser,
            constant: self.constant,
            l1: self.l1,
            longest,
            finds_radius: self.finds_radius,
            scales: false,
            cut: 1.0,
            clip: self.clip,
            steps: self.steps,
            step_size: self.step_size,
            stages: None,
            growth: self.growth,
        };
        problem.check(width)?;
        Ok(problem)
    }
}

/// The descent along noisy gradients of this name.
fn noisy_gradients(method: Method) -> Option<NoisyGradients> {
    Some(match method {
        Method::DpGd => NoisyGradients::DpGd,
        Method::DpSgd => NoisyGradients::DP_SGD,
        Method::FrankWolfe => NoisyGradients::FrankWolfe,
        _ => return None,
    })
}
