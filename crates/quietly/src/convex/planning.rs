//! Planning a convex fit: every error is raised here, before any row is read.
use quietly_accounting::{Neighbours, gaussian_mu};

use super::{
    bolt_on, descent, epoch, iterated,
    loss::Loss,
    phased_erm, phased_sgd,
    phases::{Ground, Phase},
    program::{Growth, Program},
    psa, psa_two, questions,
    regulariser::Regulariser,
    scaling,
    set::Set,
};
use crate::{budget::Budget, charge::Sampler, error::Error, method::Method, plan::Plan};

mod small;

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
        if let Some(descent) = self.for_small_table(rows, budget) {
            return descent.draft(rows, width, budget);
        }
        let mut program = self.program(width)?;
        let mut plan = Plan::empty(program.link(), self.method, rows, width, budget)?;
        if !budget.is_private() {
            plan.method = Method::Exact;
            program.minimisable(width, program.set != Set::Everything)?;
            // Nothing is asked of the rows but the minimiser itself.
            plan.convex = Some(Program { finds_radius: false, ..program });
            return Ok(plan);
        }
        let scalable = self.can_scale(width) && !budget.is_pure();
        plan.method = match self.method {
            Method::Auto | Method::Exact if scalable => Method::ScaledAmp,
            Method::Auto | Method::Exact => Method::Amp,
            other => other,
        };
        if plan.method == Method::ScaledAmp {
            let want =
                "everywhere, with a constant, no bound of their own and a delta, for scaled rows";
            Error::unless(scalable, "weights and rows", want, "otherwise")?;
            let mu = gaussian_mu(budget.epsilon(), budget.delta())?;
            program.scale(scaling::is_calm(rows, width, mu));
        }
        let links = plan.method.about().links;
        let fine = links.contains(&plan.link);
        Error::unless(fine, "method", "one for this model", plan.method.name())?;
        plan.convex = Some(program);
        self.unused(plan.method)?;
        let mu = plan.mu();
        match plan.method {
            Method::Amp | Method::ScaledAmp => plan.perturb()?,
            Method::DpGd | Method::DpSgd | Method::FrankWolfe => descent::plan(&mut plan, mu)?,
            Method::ScPsgd | Method::GdOp => bolt_on::plan(&mut plan)?,
            _ => plan.phase(mu)?,
        }
        let shape = plan.clone();
        if budget.is_pure() {
            plan.settle(questions::pure_stages(&shape));
            return Ok(plan);
        }
        plan.calibrate(|noise| questions::stages(&shape, mu, noise))?;
        Ok(plan)
    }

    /// Refuses options that the method does not have.
    fn unused(&self, method: Method) -> Result<(), Error> {
        let sums = matches!(method, Method::DpGd | Method::DpSgd | Method::FrankWolfe);
        let points = matches!(method, Method::ScPsgd | Method::GdOp);
        let want = "left out: this method has none";
        let fine = self.clip.is_none() || sums;
        Error::unless(fine, "clip", want, self.clip.unwrap_or(0.0))?;
        let fine = self.steps.is_none() || sums || points;
        Error::unless(fine, "steps", want, self.steps.unwrap_or(0))?;
        let fine = self.step_size.is_none() || (sums || points) && method != Method::FrankWolfe;
        Error::unless(fine, "step size", want, self.step_size.unwrap_or(0.0))?;
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
            scales: false,
            cut: 1.0,
            clip: self.clip,
            steps: self.steps,
            step_size: self.step_size,
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

    /// The μ that the whole budget is worth.
    pub(crate) fn mu(&self) -> f64 {
        let (budget, size) = (self.budget, self.program().size(self.width) as f64);
        match budget.is_pure() {
            // What a Gaussian with the noise of a Laplace release would be worth.
            true => budget.epsilon() / (2.0 * size).sqrt(),
            // A budget that is none is refused elsewhere.
            false => {
                quietly_accounting::gaussian_mu(budget.epsilon(), budget.delta()).unwrap_or(1.0)
            }
        }
    }

    /// Looks whether an objective can be perturbed.
    pub(super) fn perturb(&self) -> Result<(), Error> {
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
