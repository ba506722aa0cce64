//! Private training on pictures: what it asks, what it costs, and how it runs.
use std::fmt;

use quietly::Private;
use quietly_accounting::{Neighbours, calibrate};
use quietly_core::{
    budget::Budget,
    certificate::Certificate,
    lattice::Lattice,
    mechanism::{self, PlannedRelease, Sampler, Stage},
    progress::{ProgressCallback, report},
    release::{BoundedSum, Releaser},
};
use quietly_engine::error::Error;
use quietly_noise::Key;
use serde::Serialize;

use super::{
    dataset::Pictures,
    gradient,
    network::{ConvNet, ConvShape},
    resume::{Notebook, Page},
};

/// The one question.
const PURPOSE: &str = "gradients of pictures, each clipped";

/// What the accountant allows at least, and a little for rounding.
const LEAST_NOISE: f64 = 0.1 * (1.0 + 1e-9);

/// How a network is trained on pictures: DP-SGD with samples of which every picture is part by a coin of its own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ImageTraining {
    /// How the network looks.
    pub shape: ConvShape,
    /// How many steps: T.
    pub steps: u64,
    /// About how many pictures a step sees.
    pub batch: u64,
    /// How far the first step goes along a mean gradient that has the norm of the clip. Later ones go less far, the last nearly
    /// nowhere.
    pub step_size: f64,
    /// How much of a step is taken again in the next.
    pub momentum: f64,
    /// Longer gradients are cut to this length: C.
    pub clip: f64,
    /// Where the first weights come from; public.
    pub seed: u64,
}

impl Default for ImageTraining {
    fn default() -> Self {
        let shape = ConvShape::default();
        ImageTraining {
            shape,
            steps: 300,
            batch: 500,
            step_size: 0.5,
            momentum: 0.9,
            clip: 1.0,
            seed: 1,
        }
    }
}

impl ImageTraining {
    /// The plan for about `rows` pictures. It sees none.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if a setting makes no sense, [`Error::Accounting`] if the budget cannot be met.
    pub fn plan(self, rows: u64, budget: Budget) -> Result<ImagePlan, Error> {
        self.shape.check()?;
        let steps = (1..=1_000_000).contains(&self.steps);
        Error::ensure(steps, "steps", "from 1 to a million", self.steps)?;
        let batch = (1..rows).contains(&self.batch) && rows < 1 << 31;
        Error::ensure(batch, "batch", "from 1 to less than all pictures", self.batch)?;
        for (name, x) in [("step size", self.step_size), ("clip", self.clip)] {
            Error::ensure((1e-12..=1e12).contains(&x), name, "from 1e-12 to 1e12", x)?;
        }
        let momentum = (0.0..1.0).contains(&self.momentum);
        Error::ensure(momentum, "momentum", "from 0 to below 1", self.momentum)?;
        // What is charged is what is drawn: a multiple of 2⁻³², not above what was asked.
        let whole = 2f64.powi(32);
        let rate = (self.batch as f64 / rows as f64 * whole).floor() / whole;
        let sampler = Sampler::Poisson { steps: self.steps, rate };
        let mut plan = ImagePlan {
            training: self,
            rows,
            budget,
            sampler,
            stages: vec![],
            epsilon: f64::INFINITY,
        };
        if !budget.is_private() {
            return Ok(plan);
        }
        budget.unless_pure()?;
        let neighbours = budget.neighbours();
        let want = "add-remove: that is what these samples are priced for";
        Error::ensure(neighbours == Neighbours::AddRemove, "neighbours", want, neighbours.name())?;
        let stages = |noise: f64| {
            let charge = PlannedRelease::sum(PURPOSE, noise.max(LEAST_NOISE));
            vec![Stage::new("training", self.steps, vec![charge])]
        };
        let event =
            |noise: f64| mechanism::event(sampler, &stages(noise)).map_err(mechanism::accounting);
        let found = calibrate(event, neighbours, budget.epsilon(), budget.delta())?;
        plan.stages = stages(found.noise_multiplier);
        plan.epsilon = found.epsilon.upper;
        Ok(plan)
    }
}

/// A planned training: what it will ask and cost, before any picture is seen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ImagePlan {
    training: ImageTraining,
    rows: u64,
    budget: Budget,
    #[serde(flatten)]
    sampler: Sampler,
    stages: Vec<Stage>,
    #[serde(with = "quietly_core::budget::endless")]
    epsilon: f64,
}

impl ImagePlan {
    /// What it costs: a certified upper bound on ε at the budget's δ.
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// The noise over what one picture can add; none if there is none.
    pub fn noise(&self) -> Option<f64> {
        self.stages.first().map(|stage| stage.releases[0].multiplier())
    }

    /// Trains a network and signs it.
    ///
    /// Sums are divided by the planned number of pictures of a step, never by how many there are.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupted`] if `watch` says so, [`Error::Noise`] if there is no randomness. No picture can cause an error.
    ///
    /// # Panics
    ///
    /// If pictures do not have the planned size.
    pub fn run(
        &self,
        pictures: &Private<Pictures>,
        unit: &str,
        key: Key,
        threads: usize,
        watch: &mut ProgressCallback<'_>,
    ) -> Result<(ConvNet, Certificate), Error> {
        self.train(pictures, unit, key, None, threads, watch)
    }

    /// The same with a [`Notebook`]: an interrupted run resumes where the notebook ends, and gives the
    /// same bits as one that was not. It costs no more; the notebook says why.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run), and [`Error::File`] if the notebook cannot be read or written, or is that of another run.
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    pub fn run_with(
        &self,
        notebook: &Notebook,
        pictures: &Private<Pictures>,
        unit: &str,
        threads: usize,
        watch: &mut ProgressCallback<'_>,
    ) -> Result<(ConvNet, Certificate), Error> {
        let public = format!(
            "{} {}",
            env!("CARGO_PKG_VERSION"),
            serde_json::to_string(self).expect("a plan can be written")
        );
        let parts = pictures.as_ref().map(|all| (0..all.len()).map(move |at| all.bytes(at)));
        let key = Releaser::bound(notebook.key(), public.as_bytes(), parts);
        self.train(pictures, unit, key, Some(notebook), threads, watch)
    }

    fn train(
        &self,
        pictures: &Private<Pictures>,
        unit: &str,
        key: Key,
        notebook: Option<&Notebook>,
        threads: usize,
        watch: &mut ProgressCallback<'_>,
    ) -> Result<(ConvNet, Certificate), Error> {
        let ImageTraining { shape, steps, .. } = self.training;
        let network = ConvNet::new(shape, self.training.seed)?;
        let bound = key.bound_to(["pages"]);
        let page = match notebook {
            Some(notebook) => notebook.read(&bound, network.weights().len())?,
            None => None,
        };
        let start = page.unwrap_or_else(|| Page::first(&network));
        let source = key.source();
        let mut walk = Walk { plan: self, network, page: start };
        walk.network.set_weights(&walk.page.weights);
        let mut releaser = Releaser::new(key, &self.stages, threads);
        if self.noise().is_some() {
            releaser = releaser.after(PURPOSE, walk.page.step);
        }
        let checked = pictures.as_ref().map(|pictures| {
            assert_eq!(pictures.size(), (shape.side, shape.channels), "the planned size");
            pictures
        });
        let draw = releaser.draw(self.sampler);
        let mut batches = checked.as_ref().map(|pictures| draw.batches(pictures.len()));
        let lattice = Lattice::for_sums(self.training.clip, shape.weights());
        while walk.page.step < steps {
            let step = walk.page.step;
            report(watch, "step", step, steps)?;
            let sum = batches.as_mut().zip(checked.as_ref()).map(|(batches, pictures)| {
                let which = batches.step(step);
                gradient::clipped(&walk.network, pictures, which, &lattice, threads)
            });
            let unit = lattice.step();
            let released = match self.noise() {
                Some(_) => releaser.sum(PURPOSE, BoundedSum::new(sum, lattice.sensitivity()))?.0,
                None => {
                    releaser.non_private(sum, |sum| sum.iter().map(|s| *s as f64 * unit).collect())
                }
            };
            walk.descend(&released);
            if let Some(notebook) = notebook.filter(|n| n.is_due(walk.page.step)) {
                notebook.write(&bound, &walk.page)?;
            }
        }
        let public = vec![
            format!("that there are about {} pictures, and their size", self.rows),
            "how the network looks and is trained".into(),
        ];
        let certificate =
            Certificate::new(self.budget, self.sampler, &self.stages, public, unit, Some(source))?;
        Ok((walk.network, certificate))
    }
}

/// A training on its way: public, as all that moves it is.
struct Walk<'a> {
    plan: &'a ImagePlan,
    network: ConvNet,
    page: Page,
}

impl Walk<'_> {
    /// One step against a released sum.
    fn descend(&mut self, released: &[f64]) {
        let ImageTraining { steps, batch, step_size, momentum, clip, .. } = self.plan.training;
        let whole = batch as f64 * clip;
        let size = step_size * (1.0 - self.page.step as f64 / steps as f64);
        let Page { weights, velocity, step } = &mut self.page;
        for ((w, v), g) in weights.iter_mut().zip(velocity).zip(released) {
            *v = momentum * *v + g / whole;
            *w = (f64::from(*w) - size * *v) as f32;
        }
        *step += 1;
        self.network.set_weights(weights);
    }
}

impl fmt::Display for ImagePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ImageTraining { shape, steps, batch, clip, .. } = self.training;
        writeln!(f, "{} weights; {steps} steps of about {batch} pictures", shape.weights())?;
        match self.noise() {
            Some(noise) => {
                writeln!(f, "  {steps} x {PURPOSE} at {clip}, noise {noise:.3} times one picture")?;
            }
            None => return write!(f, "NO PRIVACY: no noise is added"),
        }
        let epsilon = (self.epsilon * 1e4).ceil() / 1e4;
        let (asked, delta) = (self.budget.epsilon(), self.budget.delta_in_words());
        write!(
            f,
            "epsilon {epsilon:.4} of {asked} at delta {delta} ({})",
            self.budget.neighbours().name()
        )
    }
}
