//! Planning a convex fit: every error is raised here, before any row is read.
use quietly_accounting::Neighbours;

use super::{
    epoch, iterated,
    loss::Loss,
    perturb, phased_erm, phased_sgd,
    phases::{Ground, PHASE, Phase},
    program::{Growth, Program},
    psa, psa_two,
    regulariser::Regulariser,
    run, scaling,
    set::Set,
};
use crate::{
    budget::Budget,
    charge::{Charge, Sampler, Stage},
    error::Error,
    method::Method,
    model::Link,
    plan::Plan,
};

/// The share of μ² that a bound on the rows takes.
const RADIUS_SHARE: f64 = 0.002;

/// A classifier or a regression with a loss of its own, to be planned.
///
/// ```
/// use quietly::{Budget, Convex, Loss};
///
/// let plan = Convex::new(Loss::Logistic).plan(20_000, 10, Budget::new(1.0, 1e-5)?)?;
/// assert!(plan.epsilon <= 1.0);
/// # Ok::<(), quietly::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Convex {
    link: Link,
    method: Method,
    loss: Loss,
    set: Set,
    regulariser: Regulariser,
    constant: f64,
    l1: Option<f64>,
    longest: Option<f64>,
    finds_radius: bool,
    growth: Option<Growth>,
}

impl Convex {
    /// A fit of this loss: of all weights, with a constant.
    pub fn new(loss: Loss) -> Self {
        let link = match loss {
            Loss::Logistic => Link::Logistic,
            Loss::Softmax { .. } => Link::Softmax,
            Loss::Hinge | Loss::SmoothHinge { .. } | Loss::Margin => Link::Svm,
            Loss::Huber { .. } | Loss::Fourth => Link::Robust,
            Loss::Quantile { .. } | Loss::SmoothQuantile { .. } => Link::Quantile,
            Loss::Squared => Link::Linear,
        };
        Convex {
            link,
            method: Method::Auto,
            loss,
            set: Set::Everything,
            regulariser: Regulariser::default(),
            constant: 1.0,
            l1: None,
            longest: None,
            finds_radius: true,
            growth: None,
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

    /// The plan for about `rows` rows of `width` features.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] for anything that does not go together, [`Error::Accounting`] if the budget cannot be met.
    pub fn plan(&self, rows: u64, width: usize, budget: Budget) -> Result<Plan, Error> {
        let mut program = self.program(width)?;
        let mut plan = Plan::empty(self.link, self.method, rows, width, budget)?;
        if !budget.is_private() {
            plan.method = Method::Exact;
            plan.convex = Some(program);
            return Ok(plan.sealed());
        }
        plan.method = match self.method {
            Method::Auto | Method::Exact if self.can_scale(width) => Method::ScaledAmp,
            Method::Auto | Method::Exact => Method::Amp,
            other => other,
        };
        if plan.method == Method::ScaledAmp {
            let want = "everywhere, with a constant and no bound of their own, for scaled rows";
            Error::unless(self.can_scale(width), "weights and rows", want, "otherwise")?;
            program.scale();
        }
        let links = plan.method.about().links;
        let fine = links.contains(&plan.link);
        Error::unless(fine, "method", "one for this model", plan.method.name())?;
        plan.convex = Some(program);
        // What a row that is there or not may cost.
        let mu = plan.mu()?;
        if !matches!(plan.method, Method::Amp | Method::ScaledAmp) {
            plan.phase(mu)?;
        } else {
            plan.program().glm(width, plan.program().longest)?;
        }
        let shape = plan.clone();
        plan.calibrate(|noise| stages(&shape, mu, noise))?;
        Ok(plan.sealed())
    }

    /// Whether rows may be centred and scaled: not where weights must stay in a set, or rows are bounded in a way of their own, or
    /// there are too many features for a copy of the rows without zeros.
    fn can_scale(&self, width: usize) -> bool {
        let plain = self.set == Set::Everything && self.l1.is_none() && self.finds_radius;
        let regular = self.regulariser == Regulariser::default() && self.constant != 0.0;
        plain && regular && width <= 2000
    }

    fn program(&self, width: usize) -> Result<Program, Error> {
        self.loss.check()?;
        let size = width + usize::from(self.constant != 0.0);
        self.set.check(self.loss.outputs() * size)?;
        self.regulariser.check()?;
        if let Some(Growth { theta, rate }) = self.growth {
            Error::unless(theta > 1.0 && theta < 100.0, "theta", "above 1, as a growth", theta)?;
            Error::unless(rate > 0.0 && rate.is_finite(), "rate of growth", "above 0", rate)?;
        }
        let fine = self.constant >= 0.0 && self.constant <= 1e3;
        Error::unless(fine, "constant", "from 0 to 1000", self.constant)?;
        // Features lie within [-1, 1].
        let most = (width as f64 + self.constant * self.constant).sqrt();
        let longest = self.longest.unwrap_or(most).min(most).min(self.l1.unwrap_or(most));
        Error::unless(longest > 0.0, "bound on rows", "above 0", longest)?;
        Ok(Program {
            loss: self.loss,
            set: self.set.clone(),
            regulariser: self.regulariser,
            constant: self.constant,
            l1: self.l1,
            longest,
            finds_radius: self.finds_radius,
            scales: false,
            cut: 1.0,
            stages: None,
            growth: self.growth,
        })
    }
}

impl Plan {
    /// What the whole budget is worth in Gaussian noise, for a row that is there or not.
    fn mu(&self) -> Result<f64, Error> {
        let mu = quietly_accounting::gaussian_mu(self.budget.epsilon(), self.budget.delta())?;
        let replaced = self.budget.neighbours() == Neighbours::ReplaceOne;
        Ok(if replaced { 0.5 * mu } else { mu })
    }

    pub(crate) fn program(&self) -> &Program {
        self.convex.as_ref().expect("a convex plan has a program")
    }

    /// Plans phases: all that can be wrong with them is found here.
    fn phase(&mut self, mu: f64) -> Result<(), Error> {
        let want = "replace-one: phases take rows by their place, which a row that joins or leaves would shift";
        let relation = self.budget.neighbours();
        Error::unless(relation == Neighbours::ReplaceOne, "neighbours", want, relation.name())?;
        let (method, program) = (self.method, self.program());
        let ground = program.ground(self.width, program.longest, 2.0 * mu)?;
        let want = "bounded: --constraint l2 --radius B, or l1";
        Error::unless(ground.distance.is_finite(), "set of weights", want, "everything")?;
        let smooth = ground.smooth.is_finite() || method == Method::PhasedErm;
        let want = "smooth; take phased-erm, or a loss without a corner";
        Error::unless(smooth, "loss", want, "one with a corner")?;
        let strong = ground.strong > 0.0;
        let needs =
            matches!(method, Method::EpochDpSgd | Method::FasterDpsgdSc | Method::PhasedSgdSc);
        let want = "above 0: this method needs strong convexity row by row";
        Error::unless(strong || !needs, "ridge", want, program.regulariser.ridge)?;
        let want = "given: how the objective grows (theta and rate)";
        let needs = method == Method::PsaTwo;
        Error::unless(!needs || program.growth.is_some(), "growth", want, "missing")?;
        let least = if method == Method::FasterDpsgdSc { 8 } else { 4 };
        Error::unless(self.rows >= least, "rows", "enough for the phases: at least 8", self.rows)?;
        let rows = self.rows as usize;
        let stages = match method {
            Method::PsaTwo => {
                psa_two::stages(&ground, rows, program.growth.expect("was looked at"))
            }
            Method::EpochDpSgd => epoch::count(&ground, rows, TAU),
            Method::FasterDpsgdSc => epoch::count(&ground, rows - rows / 2, TAU),
            _ => 1,
        };
        let short = match method {
            Method::EpochDpSgd => !epoch::fits(&ground, rows, TAU),
            Method::FasterDpsgdSc => !epoch::fits(&ground, rows - rows / 2, TAU),
            _ => false,
        };
        if short {
            let warning = "there are too few rows for the first epoch that the theorem asks for: one epoch takes them all.";
            self.warnings.push(warning.into());
        }
        self.warnings.push(format!(
            "{} takes exactly the {} declared rows: rows beyond are left out, rows that are missing count as empty. It is here \
             for research; --method auto is more accurate.",
            method.name(),
            self.rows
        ));
        self.convex.as_mut().expect("a program").stages = Some(stages);
        let steps = phases(self, &ground)?.len() as u64;
        self.sampler = Sampler::Places { steps };
        Ok(())
    }
}

/// τ of Epoch-DP-SGD.
const TAU: f64 = 1.0;

/// The phases of a plan's method.
pub(crate) fn phases(plan: &Plan, ground: &Ground) -> Result<Vec<Phase>, Error> {
    let (program, rows) = (plan.program(), plan.rows as usize);
    let stages = program.stages.unwrap_or(1);
    let theta = program.growth.map_or(2.0, |g| g.theta);
    Ok(match plan.method {
        Method::PhasedSgd => phased_sgd::phases(ground, rows, ground.distance),
        Method::Psa => psa::phases(ground, rows),
        Method::PhasedSgdSc => {
            iterated::phases(ground, rows, iterated::count_sc(rows), program.growth, 0.0)
        }
        Method::PsaTwo => psa_two::phases(ground, rows, stages),
        Method::IteratedPhasedSgd => {
            iterated::phases(ground, rows, iterated::count(rows, theta), None, 0.0)
        }
        Method::PhasedErm => phased_erm::phases(ground, rows),
        Method::EpochDpSgd => epoch::phases(ground, rows, stages),
        Method::FasterDpsgdSc => epoch::faster(ground, rows, stages),
        other => {
            return Error::unless(false, "method", "one of phases", other.name()).map(|()| vec![]);
        }
    })
}

/// The questions of a method, where the whole budget is worth `mu`.
fn stages(plan: &Plan, mu: f64, noise: f64) -> Vec<Stage> {
    let (budget, mut stages) = (plan.budget, Vec::new());
    if plan.program().scales {
        stages.extend(scaling::stages(mu, budget.neighbours()));
    } else if plan.program().finds_radius {
        stages.push(run::radius_stage(RADIUS_SHARE.sqrt() * mu, budget.neighbours()));
    }
    match plan.sampler {
        Sampler::Places { steps } => {
            stages.push(Stage::new("phases", steps, vec![Charge::sum(PHASE, noise)]));
        }
        _ => stages.extend(perturb::stages(plan, mu, noise)),
    }
    stages
}

/// The questions of a plan, whatever their noise; none if it does not go together.
pub(crate) fn questions(plan: &Plan) -> Option<Vec<Stage>> {
    let program = plan.convex.as_ref()?;
    let right = match (plan.method, plan.sampler) {
        (Method::Amp, Sampler::Full) => !program.scales,
        (Method::ScaledAmp, Sampler::Full) => program.scales,
        (_, Sampler::Places { steps }) if plan.budget.neighbours() == Neighbours::ReplaceOne => {
            let ground = program.ground(plan.width, program.longest, 1.0).ok()?;
            phases(plan, &ground).ok()?.len() as u64 == steps
        }
        _ => false,
    };
    let mu = plan.mu().ok()?;
    right.then(|| stages(plan, mu, 1.0))
}
