//! Localisation: phases of rows, after each of which a point is released. One file for each algorithm; [`phase`] runs a
//! phase, and has the proofs.
use quietly_accounting::Neighbours;
use quietly_core::{
    budget::Budget,
    mechanism::{PlannedRelease, Sampler, Stage},
};
use quietly_data::Private;
use quietly_engine::{algorithm::Shape, error::Error};
use serde::{Deserialize, Serialize};

use self::phase::{PHASE, Phase};
use crate::{
    design_matrix::Examples,
    fit::{ConvexMethod, check_not_scaled},
    problem::{Problem, ProblemParameters},
    run::Fitting,
};

pub mod epoch_dp_sgd;
pub mod iterated_phased_sgd;
pub mod phase;
pub mod phased_erm;
pub mod phased_sgd;
pub mod psa;
pub mod psa_ii;

/// The methods of phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "method", rename_all = "kebab-case")]
#[expect(missing_docs, reason = "each has a file of its own")]
pub enum Localisation {
    PhasedSgd,
    Psa,
    PhasedSgdSc,
    PsaIi,
    IteratedPhasedSgd,
    PhasedErm,
    EpochDpSgd,
    FasterDpsgdSc,
}

/// τ of Epoch-DP-SGD.
const TAU: f64 = 1.0;

impl Localisation {
    /// All of them.
    pub const ALL: [Localisation; 8] = [
        Localisation::PhasedSgd,
        Localisation::Psa,
        Localisation::PhasedSgdSc,
        Localisation::PsaIi,
        Localisation::IteratedPhasedSgd,
        Localisation::PhasedErm,
        Localisation::EpochDpSgd,
        Localisation::FasterDpsgdSc,
    ];

    /// The method of this name.
    pub fn named(name: &str) -> Option<Self> {
        Localisation::ALL.into_iter().find(|method| method.name() == name)
    }

    /// The name that people type.
    pub fn name(self) -> &'static str {
        match self {
            Localisation::PhasedSgd => "phased-sgd",
            Localisation::Psa => "psa",
            Localisation::PhasedSgdSc => "phased-sgd-sc",
            Localisation::PsaIi => "psa-ii",
            Localisation::IteratedPhasedSgd => "iterated-phased-sgd",
            Localisation::PhasedErm => "phased-erm",
            Localisation::EpochDpSgd => "epoch-dp-sgd",
            Localisation::FasterDpsgdSc => "faster-dpsgd-sc",
        }
    }

    /// The phases of a problem.
    pub fn phases(
        self,
        problem: &Problem,
        shape: Shape,
        parameters: &ProblemParameters,
    ) -> Vec<Phase> {
        let (rows, stages) = (shape.rows as usize, problem.stages.unwrap_or(1));
        let theta = problem.growth.map_or(2.0, |g| g.theta);
        match self {
            Localisation::PhasedSgd => phased_sgd::phases(parameters, rows, parameters.distance),
            Localisation::Psa => psa::phases(parameters, rows),
            Localisation::PhasedSgdSc => iterated_phased_sgd::phases(
                parameters,
                rows,
                iterated_phased_sgd::count_sc(rows),
                problem.growth,
                0.0,
            ),
            Localisation::PsaIi => psa_ii::phases(parameters, rows, stages),
            Localisation::IteratedPhasedSgd => iterated_phased_sgd::phases(
                parameters,
                rows,
                iterated_phased_sgd::count(rows, theta),
                None,
                0.0,
            ),
            Localisation::PhasedErm => phased_erm::phases(parameters, rows),
            Localisation::EpochDpSgd => epoch_dp_sgd::phases(parameters, rows, stages),
            Localisation::FasterDpsgdSc => epoch_dp_sgd::faster(parameters, rows, stages),
        }
    }

    /// Sizes the phases: all that can be wrong with them is found here. Returns warnings.
    pub fn plan(
        self,
        problem: &mut Problem,
        shape: Shape,
        budget: Budget,
        mu: f64,
    ) -> Result<Vec<String>, Error> {
        let mut warnings = Vec::new();
        let want = "replace-one: phases use rows by their place, which an added or removed row would shift";
        let relation = budget.neighbours();
        Error::ensure(relation == Neighbours::ReplaceOne, "neighbours", want, relation.name())?;
        let parameters = problem.parameters(shape.width, problem.longest, mu)?;
        let want = "bounded: `constraint` l2 with a `radius`, or l1";
        Error::ensure(parameters.distance.is_finite(), "set of weights", want, "everything")?;
        let smooth = parameters.smoothness.is_finite() || self == Localisation::PhasedErm;
        let want = "smooth (phased-erm fits nonsmooth losses)";
        Error::ensure(smooth, "loss", want, "nonsmooth")?;
        let strong = parameters.strong_convexity > 0.0;
        let needs = matches!(
            self,
            Localisation::EpochDpSgd | Localisation::FasterDpsgdSc | Localisation::PhasedSgdSc
        );
        let want = "above 0: this method needs strong convexity row by row";
        Error::ensure(strong || !needs, "ridge", want, problem.regulariser.ridge)?;
        let want = "given as `growth_exponent` and `growth_constant`";
        let needs = self == Localisation::PsaIi;
        Error::ensure(!needs || problem.growth.is_some(), "growth", want, "missing")?;
        let fine = parameters.smoothness.is_finite() || problem.has_no_bowl();
        Error::ensure(fine, "power", "2 for a loss with a corner", "above")?;
        let (least, want) = match self {
            Localisation::FasterDpsgdSc => (8, "enough for the phases: at least 8"),
            _ => (4, "enough for the phases: at least 4"),
        };
        Error::ensure(shape.rows >= least, "rows", want, shape.rows)?;
        let rows = shape.rows as usize;
        let stages = match self {
            Localisation::PsaIi => {
                psa_ii::stages(&parameters, rows, problem.growth.expect("was looked at"))
            }
            Localisation::EpochDpSgd => epoch_dp_sgd::count(&parameters, rows, TAU),
            Localisation::FasterDpsgdSc => epoch_dp_sgd::count(&parameters, rows - rows / 2, TAU),
            _ => 1,
        };
        let short = match self {
            Localisation::EpochDpSgd => !epoch_dp_sgd::fits(&parameters, rows, TAU),
            Localisation::FasterDpsgdSc => !epoch_dp_sgd::fits(&parameters, rows - rows / 2, TAU),
            _ => false,
        };
        if short {
            let warning = "there are too few rows for the first epoch of the theorem: one epoch uses all of them.";
            warnings.push(warning.into());
        }
        warnings.push(format!(
            "{} takes exactly the {} declared rows: rows beyond are left out, rows that are missing count as empty. It is here \
             for research; --method auto is more accurate.",
            self.name(),
            shape.rows
        ));
        problem.stages = Some(stages);
        let phases = self.phases(problem, shape, &parameters);
        if self == Localisation::PhasedErm && !problem.loss.is_smooth() {
            let mut work = 0.0;
            for phase in &phases {
                let nonsmooth = phase.nonsmooth_sum(problem, &parameters);
                work += nonsmooth.check(parameters.constants.diameter)?;
            }
            warnings.push(format!(
                "the loss is nonsmooth: its minimisers need at most {work:.0e} products, and usually a hundredth of that."
            ));
        }
        let sound = phases.iter().all(|phase| phase.is_sound());
        Error::ensure(sound, "rows", "enough for every phase to have one", shape.rows)?;
        Ok(warnings)
    }
}

impl ConvexMethod for Localisation {
    /// How many phases there are does not depend on noise.
    fn sampler(&self, problem: &Problem, shape: Shape) -> Sampler {
        let parameters = problem.parameters(shape.width, problem.longest, 1.0);
        let phases =
            parameters.map_or(0, |parameters| self.phases(problem, shape, &parameters).len());
        Sampler::OrderedPartition { steps: phases as u64 }
    }

    fn stages(&self, problem: &Problem, shape: Shape, _: Budget, noise: f64) -> Vec<Stage> {
        let steps = self.sampler(problem, shape).steps().unwrap_or(0);
        vec![Stage::new("phases", steps, vec![PlannedRelease::sum(PHASE, noise)])]
    }

    fn pure_stages(
        &self,
        problem: &Problem,
        shape: Shape,
        budget: Budget,
        epsilon: f64,
    ) -> Vec<Stage> {
        let steps = self.sampler(problem, shape).steps().unwrap_or(0);
        let charge = PlannedRelease::laplace(PHASE, epsilon, budget.neighbours());
        vec![Stage::new("phases", steps, vec![charge])]
    }

    fn check(&self, problem: &Problem, shape: Shape, budget: Budget) -> Result<(), Error> {
        check_not_scaled(problem)?;
        let parameters = problem.parameters(shape.width, problem.longest, 1.0)?;
        let sound = |phase: &Phase| phase.is_sound() && phase.suits(&parameters);
        let right = budget.neighbours() == Neighbours::ReplaceOne
            && parameters.distance.is_finite()
            && self.phases(problem, shape, &parameters).iter().all(sound);
        let got = "one whose phases are not sound";
        Error::ensure(right, "plan", "as it was planned", got)
    }

    fn reads_once(&self, _: &Problem) -> bool {
        *self != Localisation::PhasedErm
    }

    fn solve(
        &self,
        run: &mut Fitting<'_, '_>,
        examples: Private<Examples<'_>>,
    ) -> Result<Vec<f64>, Error> {
        // A replaced row moves a point twice as far as noise is planned for.
        let mu = 2.0 / run.noise(PHASE);
        let parameters = run.problem.parameters(run.shape.width, run.radius, mu)?;
        let phases = self.phases(run.problem, run.shape, &parameters);
        phase::fit(run, &examples, &phases, &parameters)
    }
}
