//! Noisy gradient descent on all pictures, with a price that is exact.
//!
//! Every step releases one sum of clipped gradients with Gaussian noise, so that T steps are √T/noise-GDP for one picture that
//! is there or not, and twice that for one that is replaced: Gaussian privacy composes exactly, also when each step depends
//! on those before.
use std::fmt;

use quietly::{Private, diagnose::Setup};
use quietly_accounting::{Event, Neighbours, gaussian_mu};
use quietly_core::{
    budget::Budget,
    certificate::Certificate,
    lattice::Lattice,
    mechanism::{PlannedRelease, Sampler, Stage},
    progress::{ProgressCallback, report},
    release::{BoundedSum, Releaser},
};
use quietly_engine::error::Error;
use quietly_noise::Key;
use serde::Serialize;

use super::{gradient, network::Network, patches::Images};

/// The one question.
pub(crate) const PURPOSE: &str = "gradients, each clipped";

/// How the network is trained.
///
/// ```
/// use quietly::{Budget, Key, Private};
/// use quietly_lab::feature_learning::{Descent, World};
/// use std::ops::ControlFlow;
///
/// let plan = Descent { steps: 20, ..Descent::default() }.plan(50, 100, Budget::new(1.0, 1e-5)?)?;
/// assert!(plan.epsilon() <= 1.0 && plan.epsilon() > 0.999);
///
/// let pictures = Private::new(World::new(100, 1.0, &Key::from_seed(1))?.draw(0, 50)?);
/// let quiet = &mut |_| ControlFlow::Continue(());
/// let (network, certificate) = plan.run(&pictures, "picture", Key::from_os()?, 2, quiet)?;
/// assert_eq!(network.weights().len(), 2 * 10 * 100);
/// println!("{certificate}");
/// # Ok::<(), quietly::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Descent {
    /// How many filters each label has: m.
    pub filters: usize,
    /// The power of the ReLU, above 2: q.
    pub power: f64,
    /// How many steps: T.
    pub steps: u64,
    /// How far a step goes along the mean gradient: η.
    pub step_size: f64,
    /// The standard deviation of the weights at the start: σ₀.
    pub start: f64,
    /// Longer gradients are cut to this length: C.
    pub clip: f64,
}

impl Default for Descent {
    /// The paper's experiment, and a clip that works for it.
    fn default() -> Self {
        Descent { filters: 10, power: 3.0, steps: 500, step_size: 0.01, start: 0.001, clip: 0.1 }
    }
}

impl Descent {
    /// The plan for about `rows` pictures with patches of `dimension` numbers. It sees no picture.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if a setting makes no sense or no privacy is asked for, [`Error::Accounting`] if the budget cannot be met.
    pub fn plan(self, rows: u64, dimension: usize, budget: Budget) -> Result<PatchPlan, Error> {
        self.check()?;
        Error::ensure(rows > 0, "rows", "at least 1", rows)?;
        let width = dimension.saturating_mul(2 * self.filters);
        let fine = dimension > 0 && width < 1 << 24;
        Error::ensure(fine, "weights", "from 1 to 16 million in all", width)?;
        let private = budget.is_private() && !budget.is_pure();
        let want = "finite, and delta above 0: the noise is Gaussian";
        Error::ensure(private, "epsilon", want, budget.epsilon())?;
        let stages = |noise| {
            vec![Stage::new("descent", self.steps, vec![PlannedRelease::sum(PURPOSE, noise)])]
        };
        let run = |noise| Event::gaussian(noise)?.repeat(self.steps);
        // (4.2), and a little for rounding; the accountant has the last word.
        let apart = sensitivity(budget.neighbours());
        let mu = gaussian_mu(budget.epsilon(), budget.delta())?;
        let mut noise = apart * (self.steps as f64).sqrt() / mu * (1.0 + 1e-9);
        let price =
            |noise| quietly_accounting::epsilon(&run(noise)?, budget.neighbours(), budget.delta());
        let mut epsilon = price(noise)?.upper;
        if epsilon > budget.epsilon() {
            let (neighbours, delta) = (budget.neighbours(), budget.delta());
            let found = quietly_accounting::calibrate(run, neighbours, budget.epsilon(), delta)?;
            (noise, epsilon) = (found.noise_multiplier, found.epsilon.upper);
        }
        Ok(PatchPlan { descent: self, rows, dimension, budget, stages: stages(noise), epsilon })
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let filters = (1..=10_000).contains(&self.filters);
        Error::ensure(filters, "filters", "from 1 to 10000", self.filters)?;
        let power = self.power > 2.0 && self.power <= 9.0;
        Error::ensure(power, "power", "above 2, up to 9", self.power)?;
        let steps = (1..=10_000_000).contains(&self.steps);
        Error::ensure(steps, "steps", "from 1 to ten million", self.steps)?;
        for (name, x) in [("step size", self.step_size), ("start", self.start), ("clip", self.clip)]
        {
            Error::ensure((1e-12..=1e12).contains(&x), name, "from 1e-12 to 1e12", x)?;
        }
        Ok(())
    }

    /// T_Γ: about how many steps the signal takes to be learnt without noise, for a signal of norm `length`.
    pub fn signal_time(&self, length: f64) -> f64 {
        let Descent { filters, power, step_size, start, .. } = *self;
        Setup { filters, power, step_size, start }.signal_time(length)
    }

    pub(crate) fn network(&self, dimension: usize, key: &Key) -> Result<Network, Error> {
        let stream = key.stream("weights at the start");
        Network::drawn(self.filters, self.power, dimension, self.start, &stream)
    }

    /// The lattice that all of its sums are on.
    pub(crate) fn lattice(&self, dimension: usize) -> Lattice {
        Lattice::for_sums(self.clip, 2 * self.filters * dimension)
    }
}

/// How many clips apart two neighbouring sums can be.
pub(crate) fn sensitivity(neighbours: Neighbours) -> f64 {
    match neighbours {
        Neighbours::AddRemove => 1.0,
        Neighbours::ReplaceOne => 2.0,
    }
}

/// A planned descent: what it will ask and cost, before any picture is seen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PatchPlan {
    pub(crate) descent: Descent,
    pub(crate) rows: u64,
    pub(crate) dimension: usize,
    budget: Budget,
    pub(crate) stages: Vec<Stage>,
    epsilon: f64,
}

impl PatchPlan {
    /// What it costs: a certified upper bound on ε at the budget's δ.
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// The standard deviation of the noise in every entry of a mean gradient: σ_z.
    pub fn noise(&self) -> f64 {
        self.multiplier() * self.descent.clip / self.rows as f64
    }

    /// The noise over what one picture can add.
    fn multiplier(&self) -> f64 {
        match self.stages[0].releases[0].mechanism {
            quietly_core::mechanism::Mechanism::Gaussian { noise } => noise,
            _ => unreachable!("a descent asks for sums"),
        }
    }

    /// Trains a network and signs it.
    ///
    /// Sums are divided by the planned number of pictures, never by how many there are.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupted`] if `watch` says so, [`Error::Noise`] if there is no randomness. No picture can cause an error.
    ///
    /// # Panics
    ///
    /// If patches do not have the planned dimension.
    pub fn run(
        &self,
        images: &Private<Images>,
        unit: &str,
        key: Key,
        threads: usize,
        watch: &mut ProgressCallback<'_>,
    ) -> Result<(Network, Certificate), Error> {
        let source = key.source();
        let mut network = self.descent.network(self.dimension, &key)?;
        let mut releaser = Releaser::new(key, &self.stages, threads);
        let lattice = self.descent.lattice(self.dimension);
        for step in 0..self.descent.steps {
            report(watch, "descending", step, self.descent.steps)?;
            let sum = images.as_ref().map(|images| {
                assert_eq!(images.dimension(), self.dimension, "the planned dimension");
                gradient::clipped(&network, images, &lattice, threads, false).sum
            });
            let released = self.release(&mut releaser, sum, &lattice)?;
            self.descend(&mut network, &released);
        }
        let public = vec![
            format!(
                "that there are about {} pictures, of patches with {} numbers",
                self.rows, self.dimension
            ),
            "how the network is made and trained".into(),
        ];
        let certificate = Certificate::new(
            self.budget,
            Sampler::FullBatch,
            &self.stages,
            public,
            unit,
            Some(source),
        )?;
        Ok((network, certificate))
    }

    /// One sum, through the releaser.
    pub(crate) fn release(
        &self,
        releaser: &mut Releaser,
        sum: Private<Vec<i64>>,
        lattice: &Lattice,
    ) -> Result<Vec<f64>, Error> {
        let what = BoundedSum::new(sum, lattice.sensitivity());
        Ok(releaser.sum(PURPOSE, what)?.0)
    }

    /// One step along a released sum.
    pub(crate) fn descend(&self, network: &mut Network, released: &[f64]) {
        let step = self.descent.step_size / self.rows as f64;
        quietly_engine::linalg::add(&mut network.weights, released, -step);
    }
}

impl fmt::Display for PatchPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Descent { filters, power, steps, step_size, clip, .. } = self.descent;
        writeln!(f, "{filters} filters for each label, power {power}; steps of {step_size}")?;
        writeln!(f, "  {steps} x {PURPOSE} at {clip}, noise multiplier {:.2}", self.multiplier())?;
        write!(
            f,
            "epsilon {:.4} of {} at delta {} ({})",
            (self.epsilon * 1e4).ceil() / 1e4,
            self.budget.epsilon(),
            self.budget.delta_in_words(),
            self.budget.neighbours().name()
        )
    }
}
