//! Planning a network: every error is raised here, before any row is read.
use quietly_accounting::{Neighbours, calibrate};

use super::{
    choice::{self, Candidate},
    network::Network,
    shape::{LastLayer, NetworkLoss, NetworkShape},
    train::GRADIENT,
    training::{Average, NetworkNoise, Training},
};
use crate::{
    budget::Budget,
    charge::{self, Charge, Stage},
    error::Error,
    method::Method,
    model::Link,
    plan::Plan,
    recipes::depth,
};

/// A Kolmogorov–Arnold network to be planned.
///
/// ```
/// use quietly::{Budget, kan::{Input, Kan, NetworkLoss, NetworkShape, Sampling}};
///
/// let shape = NetworkShape::new(vec![Input::Spline; 10], NetworkLoss::Logistic);
/// let plan = Kan::new(shape).sampling(Sampling::Full).plan(4000, Budget::new(4.0, 1e-5)?)?;
/// assert!(plan.epsilon <= 4.0);
/// # Ok::<(), quietly::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Kan {
    shape: NetworkShape,
    sampling: Option<Sampling>,
    batches: Option<u64>,
    passes: Option<u64>,
    noise: Option<NetworkNoise>,
    clip: Clip,
    step_size: Option<f64>,
    momentum: Option<f64>,
    ball: Option<f64>,
    average: Average,
    seed: u64,
}

/// How rows come to steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sampling {
    /// All of them in every step.
    Full,
    /// Each by a coin of its own.
    Poisson,
    /// Each in one step of every pass, drawn once in secret.
    Bins,
    /// The same, without counting on the secret.
    Cyclic,
    /// So many in every step, drawn anew.
    FixedSize,
}

/// Where gradients are cut.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Clip {
    /// Where experience says.
    Usual,
    /// At this norm.
    At(f64),
    /// Where no gradient can reach: the theory's choice, at a price in noise. For two layers of which the last is fixed.
    Never,
}

impl Sampling {
    /// The word for it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Sampling::Full => "full",
            Sampling::Poisson => "poisson",
            Sampling::Bins => "bins",
            Sampling::Cyclic => "cyclic",
            Sampling::FixedSize => "fixed-size",
        }
    }
}

impl Kan {
    /// A network of this shape.
    pub fn new(shape: NetworkShape) -> Self {
        Kan {
            shape,
            sampling: None,
            batches: None,
            passes: None,
            noise: None,
            clip: Clip::Usual,
            step_size: None,
            momentum: None,
            ball: None,
            average: Average::Last,
            seed: 1,
        }
    }

    /// The same with rows that come to steps in this way.
    #[must_use]
    pub fn sampling(self, sampling: Sampling) -> Self {
        Kan { sampling: Some(sampling), ..self }
    }

    /// The same with so many batches to a pass.
    #[must_use]
    pub fn batches(self, batches: u64) -> Self {
        Kan { batches: Some(batches), ..self }
    }

    /// The same with so many passes.
    #[must_use]
    pub fn passes(self, passes: u64) -> Self {
        Kan { passes: Some(passes), ..self }
    }

    /// The same with this noise from step to step.
    #[must_use]
    pub fn noise(self, noise: NetworkNoise) -> Self {
        Kan { noise: Some(noise), ..self }
    }

    /// The same with gradients cut there.
    #[must_use]
    pub fn clip(self, clip: Clip) -> Self {
        Kan { clip, ..self }
    }

    /// The same with steps of this length, for a mean gradient that has the norm of the cut.
    #[must_use]
    pub fn step_size(self, step_size: f64) -> Self {
        Kan { step_size: Some(step_size), ..self }
    }

    /// The same with so much of every direction taken from the steps before.
    #[must_use]
    pub fn momentum(self, momentum: f64) -> Self {
        Kan { momentum: Some(momentum), ..self }
    }

    /// The same with weights that stay within `radius` of where they start.
    #[must_use]
    pub fn within(self, radius: f64) -> Self {
        Kan { ball: Some(radius), ..self }
    }

    /// The same with these weights handed out.
    #[must_use]
    pub fn average(self, average: Average) -> Self {
        Kan { average, ..self }
    }

    /// The same with other first weights, drawn from a public seed.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Kan { seed, ..self }
    }

    /// The plan for about `rows` rows.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] for anything that does not go together, [`Error::TooLarge`] for networks that do not fit,
    /// [`Error::Accounting`] if the budget cannot be met.
    pub fn plan(&self, rows: u64, budget: Budget) -> Result<Plan, Error> {
        Plan::for_unit(budget, |budget| self.draft(rows, budget))
    }

    fn draft(&self, rows: u64, budget: Budget) -> Result<Plan, Error> {
        self.shape.check()?;
        let width = self.shape.inputs.len();
        let mut plan = Plan::empty(link(self.shape.loss), Method::Kan, rows, width, budget)?;
        let clip = self.clip_norm()?;
        let mut training = Training {
            shape: self.shape.clone(),
            clip,
            step_size: 1.0,
            momentum: 0.0,
            steps: 1,
            noise: NetworkNoise::Independent,
            ball: self.ball,
            average: self.average,
            seed: self.seed,
            rejected: Vec::new(),
        };
        // Steps are sized by these.
        training.momentum = self.momentum.unwrap_or(0.0);
        training.check()?;
        let longest_step = choice::longest_step(&self.shape, clip);
        if !budget.is_private() {
            plan.method = Method::Exact;
            training.steps = self.passes.unwrap_or(choice::PLAIN_STEPS);
            self.size_steps(&mut training, longest_step, f64::INFINITY);
            training.check()?;
            plan.network = Some(training);
            return Ok(plan);
        }
        budget.unless_pure()?;
        let wishes = choice::Wishes {
            sampling: self.sampling,
            batches: self.batches,
            passes: self.passes,
            noise: self.noise,
            longest_step,
        };
        let (taken, rejected) = choice::choose(&wishes, rows, budget)?;
        let Candidate { sampler, noise, steps } = taken;
        (plan.sampler, training.noise, training.steps) = (sampler, noise, steps);
        training.rejected = rejected;
        self.size_steps(&mut training, longest_step, choice::reach(rows, &plan.budget));
        training.check()?;
        let network = Network::new(training.shape.clone(), training.seed)?;
        plan.network = Some(training);
        plan.calibrate(|noise| vec![stage(&taken, noise)])?;
        plan.fits_the_lattice(&network)?;
        Ok(plan)
    }

    /// Steps that go so far together, as long as they settle.
    fn size_steps(&self, training: &mut Training, longest: f64, reach: f64) {
        let wanted = self.step_size.unwrap_or(reach / training.steps as f64);
        training.momentum = self.momentum.unwrap_or_else(|| choice::momentum(longest, wanted));
        let held = wanted.min(longest / (1.0 - training.momentum));
        training.step_size = self.step_size.unwrap_or(held);
    }

    fn clip_norm(&self) -> Result<f64, Error> {
        match self.clip {
            Clip::At(clip) => Ok(clip),
            Clip::Usual if self.shape.loss.outputs() > 1 => Ok(0.25),
            Clip::Usual => Ok(0.3),
            Clip::Never => {
                let want =
                    "a number for networks of more than two layers, or whose last one learns";
                let fixed = self.shape.last == LastLayer::Fixed;
                let network = Network::new(self.shape.clone(), self.seed)?;
                let longest = network.longest_gradient().filter(|_| fixed);
                longest.ok_or(Error::Parameter { name: "clip", want, got: "never".into() })
            }
        }
    }
}

/// How a prediction follows from the scores.
fn link(loss: NetworkLoss) -> Link {
    match loss {
        NetworkLoss::Logistic => Link::Logistic,
        NetworkLoss::Softmax { .. } => Link::Softmax,
        NetworkLoss::Huber { .. } => Link::Robust,
    }
}

/// The questions of a run.
pub(super) fn stage(candidate: &Candidate, noise: f64) -> Stage {
    let charge = match candidate.noise {
        NetworkNoise::Independent => Charge::sum(GRADIENT, noise),
        NetworkNoise::Mixed { mixing } => Charge::mixed(GRADIENT, noise, mixing),
        NetworkNoise::Tree => {
            let depth = depth(candidate.steps);
            let charge = Charge::sum(GRADIENT, noise * (depth as f64).sqrt());
            Charge { times: depth, ..charge }
        }
    };
    Stage::new("training", candidate.steps, vec![charge])
}

/// The least noise for which a candidate stays within the budget.
pub(super) fn noise(candidate: &Candidate, budget: &Budget) -> Result<f64, Error> {
    let event = |noise: f64| {
        let stages = [stage(candidate, noise.max(choice::LEAST_NOISE))];
        charge::event(candidate.sampler, &stages).map_err(crate::plan::accounting)
    };
    let found = calibrate(event, budget.neighbours(), budget.epsilon(), budget.delta())?;
    Ok(found.noise_multiplier.max(choice::LEAST_NOISE))
}

/// The questions of a plan, whatever their noise; none if it does not go together.
pub(crate) fn questions(plan: &Plan) -> Option<Vec<Stage>> {
    let training = plan.network.as_ref()?;
    training.check().ok()?;
    let candidate =
        Candidate { sampler: plan.sampler, noise: training.noise, steps: training.steps };
    let replaced = plan.budget.neighbours() == Neighbours::ReplaceOne;
    let right = candidate.goes_together(replaced)
        && plan.method == Method::Kan
        && !plan.budget.is_pure()
        && training.shape.inputs.len() == plan.width
        && link(training.shape.loss) == plan.link;
    right.then(|| vec![stage(&candidate, 1.0)])
}

impl Plan {
    /// J: the noise that the last weights of a network hold in a direction, over what all steps can learn along a gradient that all
    /// rows agree on, times the number of rows and over the cut. Plans of one network are the better the less it is. None for other
    /// models, and without a budget.
    pub fn noise_over_signal(&self) -> Option<f64> {
        let training = self.network.as_ref()?;
        let charge = self.stages.first()?.charges.first()?;
        let candidate =
            Candidate { sampler: self.sampler, noise: training.noise, steps: training.steps };
        // On a tree every node has the noise of its depth.
        let noise = charge.multiplier() / (charge.times as f64).sqrt();
        candidate.cost_of(noise).ok()
    }

    /// Refuses noise beyond the lattice, which could not be drawn.
    pub(super) fn fits_the_lattice(&self, network: &Network) -> Result<(), Error> {
        let bound = network.sensitivity(self.training().clip).bound;
        let most = self.stages[0].charges[0].multiplier() * bound;
        let want = "enough for noise that still fits the lattice: raise epsilon or delta";
        Error::unless(most < 2f64.powi(43), "budget", want, self.budget.epsilon())
    }

    pub(crate) fn training(&self) -> &Training {
        self.network.as_ref().expect("a network's plan has its training")
    }
}
