//! Planning a network: every error is raised here, before any row is read.
use quietly_accounting::{Neighbours, calibrate};
use quietly_core::{
    budget::Budget,
    mechanism::{self, PlannedRelease, Sampler, Stage},
    privacy_plan::{PrivacyPlan, UncheckedPlan},
    release::depth,
};
use quietly_engine::{
    algorithm::{Algorithm, Planned, Shape},
    error::Error,
    link::Link,
};

use super::{
    architecture::{LastLayer, NetworkLoss, NetworkShape},
    auto_config::{self, Candidate, NetworkSampler},
    config::{Average, KanConfig, NetworkNoise},
    network::Network,
    train::GRADIENT,
};

/// A Kolmogorov–Arnold network to be planned.
#[derive(Clone, Debug)]
pub struct Kan {
    shape: NetworkShape,
    sampling: Option<NetworkSampler>,
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

/// Where gradients are cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Clip {
    /// Where experience says.
    Usual,
    /// At this norm.
    At(f64),
    /// Where no gradient can reach: the theory's choice, at a price in noise. For two layers of which the last is fixed.
    Never,
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
    pub fn sampler(self, sampler: NetworkSampler) -> Self {
        Kan { sampling: Some(sampler), ..self }
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

    /// The planned training for about `rows` rows.
    pub fn draft(&self, rows: u64, budget: Budget) -> Result<Planned<KanConfig>, Error> {
        self.shape.check()?;
        let shape = Shape::new(rows, self.shape.inputs.len())?;
        let clip = self.clip_norm()?;
        let mut training = KanConfig {
            shape: self.shape.clone(),
            clip,
            step_size: 1.0,
            momentum: 0.0,
            steps: 1,
            sampler: Sampler::FullBatch,
            noise: NetworkNoise::Independent,
            ball: self.ball,
            average: self.average,
            seed: self.seed,
            rejected: Vec::new(),
        };
        // Steps are sized by these.
        training.momentum = self.momentum.unwrap_or(0.0);
        training.check()?;
        let longest_step = auto_config::longest_step(&self.shape, clip);
        if !budget.is_private() {
            training.steps = self.passes.unwrap_or(auto_config::PLAIN_STEPS);
            self.size_steps(&mut training, longest_step, f64::INFINITY);
            training.check()?;
            let privacy = Algorithm::plan(&training, shape, budget)?;
            return Ok(Planned::new(training, shape, privacy));
        }
        budget.unless_pure()?;
        let requested = auto_config::Requested {
            sampling: self.sampling,
            batches: self.batches,
            passes: self.passes,
            noise: self.noise,
            longest_step,
        };
        let (taken, rejected) = auto_config::choose(&requested, rows, budget)?;
        let Candidate { sampler, noise, steps } = taken;
        (training.sampler, training.noise, training.steps) = (sampler, noise, steps);
        training.rejected = rejected;
        self.size_steps(&mut training, longest_step, auto_config::reach(rows, &budget));
        training.check()?;
        let network = Network::new(training.shape.clone(), training.seed)?;
        let privacy = Algorithm::plan(&training, shape, budget)?;
        training.fits_the_lattice(&network, &privacy)?;
        Ok(Planned::new(training, shape, privacy))
    }

    /// Steps that go so far together, as long as they settle.
    fn size_steps(&self, training: &mut KanConfig, longest: f64, reach: f64) {
        let wanted = self.step_size.unwrap_or(reach / training.steps as f64);
        training.momentum = self.momentum.unwrap_or_else(|| auto_config::momentum(longest, wanted));
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
                longest.ok_or(Error::Parameter { name: "clipping_norm", want, got: "none".into() })
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
        NetworkNoise::Independent => PlannedRelease::sum(GRADIENT, noise),
        NetworkNoise::Mixed { correlation } => {
            PlannedRelease::correlated_sum(GRADIENT, noise, correlation)
        }
        NetworkNoise::Tree => {
            let depth = depth(candidate.steps);
            let charge = PlannedRelease::sum(GRADIENT, noise * (depth as f64).sqrt());
            PlannedRelease { times: depth, ..charge }
        }
    };
    Stage::new("training", candidate.steps, vec![charge])
}

/// The least noise for which a candidate stays within the budget.
pub(super) fn noise(candidate: &Candidate, budget: &Budget) -> Result<f64, Error> {
    let event = |noise: f64| {
        let stages = [stage(candidate, noise.max(auto_config::LEAST_NOISE))];
        mechanism::event(candidate.sampler, &stages).map_err(mechanism::accounting)
    };
    let found = calibrate(event, budget.neighbours(), budget.epsilon(), budget.delta())?;
    Ok(found.noise_multiplier.max(auto_config::LEAST_NOISE))
}

impl KanConfig {
    /// How a prediction follows from the scores.
    pub fn link(&self) -> Link {
        link(self.shape.loss)
    }

    pub(super) fn candidate(&self) -> Candidate {
        Candidate { sampler: self.sampler, noise: self.noise, steps: self.steps }
    }

    /// Refuses what no theorem covers.
    pub(super) fn check_plan(&self, shape: Shape, budget: Budget) -> Result<(), Error> {
        self.check()?;
        let replaced = budget.neighbours() == Neighbours::ReplaceOne;
        let fits = !budget.is_private() || self.candidate().goes_together(replaced);
        let right = fits && !budget.is_pure() && self.shape.inputs.len() == shape.width;
        let got = "a network whose parts do not go together";
        Error::ensure(right, "plan", "as it was planned", got)
    }

    /// J: see `Plan::noise_over_signal` of quietly.
    pub fn noise_over_signal(&self, plan: &UncheckedPlan) -> Option<f64> {
        let charge = plan.stages.first()?.releases.first()?;
        // On a tree every node has the noise of its depth.
        let noise = charge.multiplier() / (charge.times as f64).sqrt();
        self.candidate().cost_of(noise).ok()
    }

    /// Refuses noise beyond the lattice, which could not be drawn.
    pub(super) fn fits_the_lattice(
        &self,
        network: &Network,
        plan: &PrivacyPlan,
    ) -> Result<(), Error> {
        let bound = network.sensitivity(self.clip).bound;
        let most = plan.stages[0].releases[0].multiplier() * bound;
        let want = "enough for noise that still fits the lattice: raise epsilon or delta";
        Error::ensure(most < 2f64.powi(43), "budget", want, plan.budget.epsilon())
    }
}
