//! A convex problem: loss, regulariser, constraint set and public bounds. Part of the plan.
use quietly_engine::{error::Error, link::Link};
use serde::{Deserialize, Serialize};

use super::{
    constants::{Constants, Domain, constants},
    glm::Glm,
    loss::Loss,
    objective_perturbation,
    regulariser::{PowerTerm, Regulariser},
    set::Set,
};

/// A convex problem: everything public about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Problem {
    /// What a score costs.
    #[serde(flatten)]
    pub loss: Loss,
    /// Where weights must stay.
    pub set: Set,
    /// What is added to the loss of every row.
    pub regulariser: Regulariser,
    /// The constant feature beside those of the table; 0 for none.
    pub constant: f64,
    /// Rows are cut to this 1-norm, each on its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l1: Option<f64>,
    /// No row is longer, as far as the schema says.
    pub longest: f64,
    /// Whether a tighter bound on rows is found privately first.
    pub finds_radius: bool,
    /// Whether rows are centred, scaled and bounded privately first; then the constant is in units of their radius.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scales: bool,
    /// Derivatives of the logistic loss are cut here; 1 cuts none, and hardly a scaled row.
    pub cut: f64,
    /// Gradients are cut to this norm by methods that add them up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip: Option<f64>,
    /// How many steps there are, for methods that choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// How long a step is, where one asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_size: Option<f64>,
    /// How many stages or epochs there are, where that hangs on more than the number of rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stages: Option<u32>,
    /// What is known of the objective's growth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growth: Option<Growth>,
}

/// F(w) - F(w*) ≥ rate·‖w - w*‖^θ, as the user claims: accuracy rests on it, privacy does not.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Growth {
    /// θ, above 1.
    pub theta: f64,
    /// The factor.
    pub rate: f64,
}

/// The parameters of a convex problem, as the papers name them: what steps and noise are chosen by. Public.
#[derive(Clone, Copy, Debug)]
pub struct ProblemParameters {
    pub constants: Constants,
    /// No row is longer.
    pub radius: f64,
    /// How many weights there are.
    pub size: usize,
    /// The μ of a release, under replace-one.
    pub mu: f64,
    /// How far the minimiser may be from the start.
    pub distance: f64,
    /// λ of the regulariser.
    pub strong_convexity: f64,
    /// β of a row with the regulariser; infinite if the loss is not smooth.
    pub smoothness: f64,
}

impl Problem {
    /// What a fit of this loss predicts.
    pub fn link(&self) -> Link {
        self.loss.link()
    }

    /// The same on rows that are centred and scaled. Where noise is next to nothing (`calm`), neither derivatives nor rows are
    /// cut: that would be the larger error.
    pub fn scale(&mut self, calm: bool) {
        (self.scales, self.finds_radius) = (true, false);
        (self.cut, self.constant) = (if calm { 1.0 } else { objective_perturbation::CUT }, 0.3);
    }

    /// Refuses what no proof covers: plans are files, and files can be changed.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] for anything outside its domain.
    pub fn check(&self, width: usize) -> Result<(), Error> {
        self.loss.check()?;
        self.set.check(self.size(width))?;
        self.regulariser.check()?;
        if let Some(Growth { theta, rate }) = self.growth {
            Error::ensure(
                theta > 1.0 && theta < 100.0,
                "growth_exponent",
                "above 1 and below 100",
                theta,
            )?;
            Error::ensure(rate > 0.0 && rate.is_finite(), "growth_constant", "above 0", rate)?;
        }
        let fine = self.constant >= 0.0 && self.constant <= 1e3;
        Error::ensure(fine, "constant", "from 0 to 1000", self.constant)?;
        let fits = |x: f64| x > 0.0 && x.is_finite();
        let fine = self.cut > 0.0 && self.cut <= 1.0;
        Error::ensure(fine, "cut of derivatives", "above 0 and at most 1", self.cut)?;
        let fine = !self.scales || self.constant > 0.0;
        Error::ensure(fine, "constant", "above 0 where rows are scaled", self.constant)?;
        let step = self.step_size.unwrap_or(1.0);
        Error::ensure(step > 0.0 && step < 1e9, "step size", "above 0 and below 1e9", step)?;
        let clip = self.clip.unwrap_or(1.0);
        Error::ensure((1e-9..=1e9).contains(&clip), "clip", "from 1e-9 to 1e9", clip)?;
        let steps = self.steps.unwrap_or(1);
        Error::ensure((1..=100_000).contains(&steps), "steps", "from 1 to 100000", steps)?;
        let stages = self.stages.unwrap_or(1);
        Error::ensure((1..=64).contains(&stages), "stages", "from 1 to 64", stages)?;
        let l1 = self.l1.unwrap_or(1.0);
        Error::ensure(fits(l1), "bound on rows in the 1-norm", "above 0", l1)?;
        let right = fits(self.longest) && self.longest <= self.l1.unwrap_or(self.longest);
        Error::ensure(right, "bound on rows", "above 0, and not above the 1-norm's", self.longest)
    }

    /// Refuses what one minimiser of all rows cannot take, where it is sought `inside` a bounded set or anywhere.
    ///
    /// # Errors
    ///
    /// As [`glm`](Self::glm), and if nothing bends the objective or a part of it would be forgotten.
    pub fn minimisable(&self, width: usize, inside: bool) -> Result<(), Error> {
        let glm = self.glm(width, self.longest)?;
        // A straight loss bends nothing, and a minimiser would run away.
        let curved = glm.smoothness > 0.0 || self.regulariser.strong() > 0.0;
        Error::ensure(curved, "ridge", "above 0 for a loss that is straight", 0)?;
        let want = "2, or within a bounded set under replace-one";
        Error::ensure(inside || self.has_no_bowl(), "power", want, "above")?;
        let (lasso, want) =
            (self.regulariser.lasso, "0, or within a bounded set under replace-one");
        Error::ensure(inside || lasso == 0.0, "lasso", want, lasso)
    }

    /// Whether its regulariser has no power beyond two.
    pub fn has_no_bowl(&self) -> bool {
        self.regulariser.power_term(1.0, 1.0) == PowerTerm::default()
    }

    /// How many weights there are for `width` features.
    pub fn size(&self, width: usize) -> usize {
        self.loss.outputs() * (width + usize::from(self.constant != 0.0))
    }

    /// The constants for rows of `width` features no longer than `radius`.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if gradients have no bound.
    pub fn constants(&self, width: usize, radius: f64) -> Result<Constants, Error> {
        // Targets are learnt in units of their range.
        let domain = Domain { l1: self.l1, l2: radius, target: 1.0 };
        constants(self.loss, &domain, &self.set.norms(self.size(width)))
    }

    /// The loss with its bounds, for rows no longer than `radius`.
    ///
    /// # Errors
    ///
    /// As [`constants`](Self::constants), and if the loss has a corner.
    pub fn glm(&self, width: usize, radius: f64) -> Result<Glm, Error> {
        let glm = self.derivatives(width, radius)?;
        let want = "smooth (phased-erm fits nonsmooth losses)";
        Error::ensure(glm.smoothness.is_finite(), "the loss", want, "nonsmooth")?;
        Ok(glm)
    }

    /// The same for losses that may have a corner, where `smoothness` is infinite.
    ///
    /// # Errors
    ///
    /// As [`constants`](Self::constants).
    pub fn derivatives(&self, width: usize, radius: f64) -> Result<Glm, Error> {
        let Constants { lipschitz, smooth, .. } = self.constants(width, radius)?;
        let smoothness = smooth.map_or(f64::INFINITY, |smooth| smooth / (radius * radius));
        // A derivative that is cut never decreases: what is minimised is convex, and as smooth.
        let cut = if self.loss == Loss::Logistic { self.cut } else { f64::INFINITY };
        Ok(Glm { loss: self.loss, derivative_bound: (lipschitz / radius).min(cut), smoothness })
    }

    /// What phases are planned by, for rows no longer than `radius` and releases worth `mu`.
    ///
    /// # Errors
    ///
    /// As [`constants`](Self::constants).
    pub fn parameters(
        &self,
        width: usize,
        radius: f64,
        mu: f64,
    ) -> Result<ProblemParameters, Error> {
        let constants = self.constants(width, radius)?;
        let size = self.size(width);
        let distance = self.set.radius_from(&self.set.center(size));
        let reach = self.set.norms(size).l2;
        let smoothness =
            constants.smooth.map_or(f64::INFINITY, |s| s + self.regulariser.smooth(reach));
        Ok(ProblemParameters {
            constants,
            radius,
            size,
            mu,
            distance,
            strong_convexity: self.regulariser.strong(),
            smoothness,
        })
    }
}

impl ProblemParameters {
    /// η of docs/spec/convex.md#5.1: what the bound 4D²/(ηn) + η(L²/6 + 4d(G/μ)²/n) is least at, for so many rows.
    pub fn step(&self, rows: f64, distance: f64) -> f64 {
        let Constants { lipschitz, diameter, .. } = self.constants;
        let noise = self.size as f64 * (diameter / self.mu).powi(2);
        distance / (rows * lipschitz * lipschitz / 24.0 + noise).sqrt()
    }

    /// The bound itself there: D(1.64·L/√n + 8√d·G/(nμ)).
    pub fn excess(&self, rows: f64, distance: f64) -> f64 {
        let Constants { lipschitz, diameter, .. } = self.constants;
        let noise = 8.0 * (self.size as f64).sqrt() * diameter / (rows * self.mu);
        distance * (1.64 * lipschitz / rows.sqrt() + noise)
    }
}
