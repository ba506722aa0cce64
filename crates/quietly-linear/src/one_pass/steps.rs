//! The steps of one pass: gradients in scaled columns, clips from histograms, and Newton's directions for noisy sums.
use std::{cell::Cell, ops::Range};

use quietly_accounting::Neighbours;
use quietly_core::release::{Histogram, Released, Releaser, one_in_each};
use quietly_engine::{
    backend::{Backend, Batch, run_query},
    descent::{At, ClipRule, ClippedGradient, StepSize, StepSum, Update},
    error::Error,
    link::Link,
    norm_histogram::NormHistogram,
    query::ClippedGradients,
    residual::Residual,
    target_scaling::TargetScaling,
};

use super::{FIRST_NORMS, NORMS, space::Space};

/// Sums of clipped gradients over the rows of a step, and the counts of their norms.
pub(super) struct Gradients<'a> {
    pub(super) backend: &'a mut dyn Backend,
    pub(super) space: &'a Space,
    pub(super) link: Link,
    pub(super) unit: TargetScaling,
    pub(super) centre: f64,
    /// From this step on the gradient is that of least squares itself.
    pub(super) polished: u64,
}

/// The residual of a step.
fn residual(link: Link, polished: bool) -> Residual {
    if polished { Residual::polishing(link) } else { Residual::approaching(link) }
}

impl Gradients<'_> {
    fn query(&self, at: &At<'_>, residual: Residual) -> ClippedGradients {
        ClippedGradients {
            transform: self.space.transform.clone(),
            weights: at.weights.to_vec(),
            residual: Some(residual),
            unit: self.unit,
            centre: self.centre,
            clip: None,
            lattice_clip: None,
            thresholds: at.bins.map(<[f64]>::to_vec),
        }
    }
}

impl ClippedGradient for Gradients<'_> {
    fn sum(&mut self, at: &At<'_>, releaser: &mut Releaser) -> Result<StepSum, Error> {
        let residual = residual(self.link, at.step >= self.polished);
        let query = ClippedGradients { clip: Some(at.clip), ..self.query(at, residual) };
        let sum = run_query(self.backend, releaser, &Batch::step(at.step), &query)?;
        let (sums, counts) = sum.split();
        let gradient = sums.into_iter().next().expect("one sum");
        Ok(StepSum { gradient, norms: counts.into_iter().next() })
    }

    /// Those of the step before, which has no gradient.
    fn norms(&mut self, at: &At<'_>, releaser: &mut Releaser) -> Result<Histogram, Error> {
        let query = self.query(at, Residual::approaching(self.link));
        Ok(run_query(self.backend, releaser, &Batch::step(at.step - 1), &query)?.histogram())
    }
}

/// Clips from histograms of norms: one of its own before the first step, then one in each robust step for the next.
pub(super) struct Clips<'a> {
    pub(super) robust: Range<u64>,
    /// About how many rows a step sees.
    pub(super) rows: f64,
    /// What a clip of one adds to the error of predictions, in a robust step and in a last one.
    pub(super) noise: [f64; 2],
    pub(super) last_steps: f64,
    pub(super) width: usize,
    /// Whether the present step counts norms.
    pub(super) counts: bool,
    /// The latest histogram.
    pub(super) norms: Option<NormHistogram>,
    pub(super) left: &'a Cell<f64>,
}

impl Clips<'_> {
    fn ends(&self) -> Vec<f64> {
        NormHistogram::ends(self.rows as u64, self.width)
    }

    fn learn(
        &mut self,
        purpose: &str,
        norms: Histogram,
        releaser: &mut Releaser,
    ) -> Result<(), Error> {
        // Steps are priced for a row that is there or not, under either relation.
        let (counts, _) = releaser.sum(purpose, norms.into_sum(Neighbours::AddRemove))?;
        let sd = releaser.noise(purpose) * one_in_each(1, Neighbours::AddRemove);
        self.norms = Some(NormHistogram::new(self.ends(), &counts, sd, (self.rows, self.width)));
        Ok(())
    }
}

impl ClipRule for Clips<'_> {
    fn clip(
        &mut self,
        step: u64,
        weights: &[f64],
        gradient: &mut dyn ClippedGradient,
        releaser: &mut Releaser,
    ) -> Result<f64, Error> {
        if step == self.robust.start {
            let ends = self.ends();
            let at = At { step, weights, clip: 1.0, bins: Some(&ends) };
            let norms = gradient.norms(&at, releaser)?;
            self.learn(FIRST_NORMS, norms, releaser)?;
        }
        let [robust, last] = self.noise;
        self.counts = self.robust.contains(&step);
        let noise = if self.counts { robust } else { last / self.last_steps.sqrt() };
        let best = self.norms.as_ref().expect("learnt before the first step").best_clip(noise);
        self.left.set(best.left);
        Ok(best.clip)
    }

    fn bins(&self) -> Option<Vec<f64>> {
        self.counts.then(|| self.ends())
    }

    fn after(&mut self, norms: Histogram, releaser: &mut Releaser) -> Result<(), Error> {
        self.learn(NORMS, norms, releaser)
    }
}

/// Newton's steps by the inverse of a noisy second moment.
pub(super) struct Newton<'a> {
    space: &'a Space,
    link: Link,
    rows: f64,
    left: &'a Cell<f64>,
    pub(super) polished: u64,
    stepping: StepSize,
    /// The noise of the latest step.
    pub(super) noise: f64,
}

impl<'a> Newton<'a> {
    pub(super) fn new(
        space: &'a Space,
        link: Link,
        (rows, polished): (f64, u64),
        left: &'a Cell<f64>,
    ) -> Self {
        let stepping = StepSize::new(vec![1.0; space.width()]);
        Newton { space, link, rows, left, polished, stepping, noise: 0.0 }
    }
}

impl Update for Newton<'_> {
    fn step(&mut self, step: u64, w: &mut [f64], released: &Released) {
        let far = 1.0 / self.left.get() / self.rows;
        let residual = residual(self.link, step >= self.polished);
        let gradient: Vec<f64> = released.values.iter().map(|g| g * far).collect();
        let plain = self.space.solve(&gradient);
        let direction = residual.newton(w, &gradient, plain, self.space.size(w));
        self.noise = self.space.noise(released.std * far * residual.stretch());
        self.stepping.go(w, direction, self.noise, 0.0);
    }
}
