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
    run,
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

    /// The plan for about `rows` rows of `width` features.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] for anything that does not go together, [`Error::Accounting`] if the budget cannot be met.
    pub fn plan(&self, rows: u64, width: usize, budget: Budget) -> Result<Plan, Error> {
        let program = self.program(width)?;
        let mut plan = Plan::empty(self.link, self.method, rows, width, budget)?;
        if !budget.is_private() {
            plan.method = Method::Exact;
            program.minimisable(width, program.set != Set::Everything)?;
            // Nothing is asked of the rows but the minimiser itself.
            plan.convex = Some(Program { finds_radius: false, ..program });
            return Ok(plan.sealed());
        }
        plan.method = match self.method {
            Method::Auto | Method::Exact => Method::Amp,
            other => other,
        };
        let links = plan.method.about().links;
        let fine = links.contains(&plan.link);
        Error::unless(fine, "method", "one for this model", plan.method.name())?;
        plan.convex = Some(program);
        let mu = quietly_accounting::gaussian_mu(budget.epsilon(), budget.delta())?;
        if plan.method != Method::Amp {
            plan.phase(mu)?;
        } else {
            plan.perturb()?;
        }
        let shape = plan.clone();
        plan.calibrate(|noise| stages(&shape, mu, noise))?;
        Ok(plan.sealed())
    }

    fn program(&self, width: usize) -> Result<Program, Error> {
        // Features lie within [-1, 1].
        let most = (width as f64 + self.constant * self.constant).sqrt();
        let longest = self.longest.unwrap_or(most).min(most).min(self.l1.unwrap_or(most));
        let program = Program {
            loss: self.loss,
            set: self.set.clone(),
            regulariser: self.regulariser,
            constant: self.constant,
            l1: self.l1,
            longest,
            finds_radius: self.finds_radius,
            stages: None,
            growth: self.growth,
        };
        program.check(width)?;
        Ok(program)
    }
}

impl Plan {
    pub(crate) fn program(&self) -> &Program {
        self.convex.as_ref().expect("a convex plan has a program")
    }

    /// Looks whether an objective can be perturbed.
    fn perturb(&self) -> Result<(), Error> {
        let public = self.budget.neighbours() == Neighbours::ReplaceOne;
        let program = self.program();
        program.minimisable(self.width, public && program.set != Set::Everything)
    }

    /// Plans phases: all that can be wrong with them is found here.
    fn phase(&mut self, mu: f64) -> Result<(), Error> {
        let want = "replace-one: phases take rows by their place, which a row that joins or leaves would shift";
        let relation = self.budget.neighbours();
        Error::unless(relation == Neighbours::ReplaceOne, "neighbours", want, relation.name())?;
        let (method, program) = (self.method, self.program());
        let ground = program.ground(self.width, program.longest, mu)?;
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
        let fine = ground.smooth.is_finite() || program.has_no_bowl();
        Error::unless(fine, "power", "2 for a loss with a corner", "above")?;
        let (least, want) = match method {
            Method::FasterDpsgdSc => (8, "enough for the phases: at least 8"),
            _ => (4, "enough for the phases: at least 4"),
        };
        Error::unless(self.rows >= least, "rows", want, self.rows)?;
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
        let phases = phases(self, &ground)?;
        if method == Method::PhasedErm && !self.program().loss.is_smooth() {
            let mut work = 0.0;
            for phase in &phases {
                let corner = phase.corner(self.program(), &ground);
                work += corner.check(ground.constants.diameter)?;
            }
            self.warnings.push(format!(
                "the loss has a corner: its minimisers take {work:.0e} products at worst, and usually a hundredth of that."
            ));
        }
        let sound = phases.iter().all(|phase| phase.is_sound());
        Error::unless(sound, "rows", "enough for every phase to have one", self.rows)?;
        self.sampler = Sampler::Places { steps: phases.len() as u64 };
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
    if plan.program().finds_radius {
        stages.push(run::radius_stage(RADIUS_SHARE.sqrt() * mu, budget.neighbours()));
    }
    match plan.sampler {
        Sampler::Places { steps } => {
            stages.push(Stage::new("phases", steps, vec![Charge::sum(PHASE, noise)]));
        }
        _ => stages.extend(perturb::stages(budget.delta(), mu, noise)),
    }
    stages
}

/// The questions of a plan, whatever their noise; none if it does not go together.
pub(crate) fn questions(plan: &Plan) -> Option<Vec<Stage>> {
    let program = plan.convex.as_ref()?;
    program.check(plan.width).ok()?;
    let right = match (plan.method, plan.sampler) {
        (Method::Amp, Sampler::Full) => plan.perturb().is_ok(),
        (_, Sampler::Places { steps }) if plan.budget.neighbours() == Neighbours::ReplaceOne => {
            let ground = program.ground(plan.width, program.longest, 1.0).ok()?;
            let phases = phases(plan, &ground).ok()?;
            ground.distance.is_finite()
                && phases.len() as u64 == steps
                && phases.iter().all(|phase| phase.is_sound() && phase.suits(&ground))
        }
        _ => false,
    };
    right.then(|| stages(plan, 1.0, 1.0))
}
