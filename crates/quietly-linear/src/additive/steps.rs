//! The steps of bends: their gradients, and what is made of them.
use quietly_core::release::{Histogram, Released, Releaser};
use quietly_engine::{
    backend::{Backend, Batch, run_query},
    descent::{At, ClippedGradient, StepSum, Update},
    error::Error,
    linalg::{add, dot},
    query::ClippedGradients,
    residual::Residual,
    target_scaling::TargetScaling,
    transform::RowTransform,
};

use crate::full_batch::clip::Found;

/// A step that goes back on the one before is made so much shorter.
const SHORTER: f64 = 0.6;

/// Sums of clipped gradients over all rows; the targets of transformed rows are what the linear model leaves over.
pub(super) struct BendGradients<'a> {
    pub backend: &'a mut dyn Backend,
    pub transform: &'a RowTransform,
}

impl BendGradients<'_> {
    fn query(&self, weights: &[f64]) -> ClippedGradients {
        ClippedGradients {
            transform: self.transform.clone(),
            weights: weights.to_vec(),
            residual: Some(Residual::Squared),
            unit: TargetScaling::ITSELF,
            centre: 0.0,
            clip: None,
            lattice_clip: None,
            thresholds: None,
        }
    }
}

impl ClippedGradient for BendGradients<'_> {
    fn sum(&mut self, at: &At<'_>, releaser: &mut Releaser) -> Result<StepSum, Error> {
        let query = ClippedGradients { clip: Some(at.clip), ..self.query(at.weights) };
        let gradient = run_query(self.backend, releaser, &Batch::All, &query)?.sum();
        Ok(StepSum { gradient, norms: None })
    }

    fn norms(&mut self, at: &At<'_>, releaser: &mut Releaser) -> Result<Histogram, Error> {
        let thresholds = Some(at.bins.expect("norms are counted in bins").to_vec());
        let query = ClippedGradients { thresholds, ..self.query(at.weights) };
        Ok(run_query(self.backend, releaser, &Batch::All, &query)?.histogram())
    }
}

/// The noise of a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct NoiseOfStep {
    /// The standard deviation in the gradient.
    std: f64,
    size: f64,
    momentum: f64,
    /// Whether the iterate counts in the average.
    averaged: bool,
}

impl NoiseOfStep {
    /// The variance of the average along a direction of this curvature: to first order the noise of a step travels through the later
    /// ones by itself.
    pub(super) fn variance(noises: &[NoiseOfStep], curvature: f64) -> f64 {
        let last = noises.iter().filter(|step| step.averaged).count().max(1) as f64;
        let travel = |from: usize| {
            let first = &noises[from];
            let mut x = first.size * first.std;
            let (mut speed, mut total) = (x, if first.averaged { x } else { 0.0 });
            for step in &noises[from + 1..] {
                speed = step.momentum * speed - step.size * curvature * x;
                x += speed;
                total += if step.averaged { x } else { 0.0 };
            }
            (total / last).powi(2)
        };
        (0..noises.len()).map(travel).sum()
    }
}

/// Newton's steps in the metric of bends, with a guard against curvature that a noisy second moment hides.
pub(super) struct BendSteps<'a> {
    rows: f64,
    found: &'a Found,
    momentum: f64,
    averaged: bool,
    size: f64,
    speed: Vec<f64>,
    last: Option<(Vec<f64>, f64)>,
    /// Of each step so far.
    pub noises: Vec<NoiseOfStep>,
}

impl<'a> BendSteps<'a> {
    pub(super) fn new(rows: f64, found: &'a Found) -> Self {
        let (momentum, averaged, size) = (0.0, false, 1.0);
        let (speed, last, noises) = (Vec::new(), None, Vec::new());
        BendSteps { rows, found, momentum, averaged, size, speed, last, noises }
    }

    /// The next steps have this momentum, and their iterates count in the average or not.
    pub(super) fn begin(&mut self, momentum: f64, averaged: bool) {
        (self.momentum, self.averaged) = (momentum, averaged);
    }
}

impl Update for BendSteps<'_> {
    fn step(&mut self, _: u64, w: &mut [f64], released: &Released) {
        let far = self.rows * self.found.left.get();
        let gradient: Vec<f64> = released.values.iter().map(|g| g / far).collect();
        let std = released.std / far;
        let mut momentum = self.momentum;
        if let Some((before, noise)) = &self.last
            && swings((&gradient, std), (before, *noise))
        {
            self.size *= SHORTER;
            momentum = 0.0;
        }
        self.speed.resize(w.len(), 0.0);
        self.speed.iter_mut().for_each(|speed| *speed *= momentum);
        add(&mut self.speed, &gradient, self.size);
        add(w, &self.speed, 1.0);
        let (size, averaged) = (self.size, self.averaged);
        self.noises.push(NoiseOfStep { std, size, momentum, averaged });
        self.last = Some((gradient, std));
    }
}

/// Whether a gradient turns against the one before by more than their noise explains.
fn swings((a, noise): (&[f64], f64), (b, other): (&[f64], f64)) -> bool {
    let d = a.len() as f64;
    let length = |g: &[f64], noise: f64| (dot(g, g) - noise * noise * d).max(0.0).sqrt();
    dot(a, b) < -3.0 * noise * other * d.sqrt() - 0.1 * length(a, noise) * length(b, other)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Newton's step forgets all noise but its own; the mean of sixteen has a sixteenth of its variance.
    #[test]
    fn noise_travels_as_steps_do() {
        let step = |averaged| NoiseOfStep { std: 0.5, size: 1.0, momentum: 0.0, averaged };
        let noises: Vec<_> = (0..24).map(|k| step(k >= 8)).collect();
        assert!((NoiseOfStep::variance(&noises, 1.0) - 0.25 / 16.0).abs() < 1e-12);
        // Where nothing curves, noise adds up like a random walk.
        let flat = NoiseOfStep::variance(&noises[8..9], 0.0);
        assert_eq!(flat, 0.25);
        assert!(NoiseOfStep::variance(&noises, 0.0) > 8.0 * 0.25);
    }

    #[test]
    fn noise_alone_is_no_swing() {
        assert!(!swings((&[0.1, -0.1], 0.1), (&[-0.1, 0.1], 0.1)));
        assert!(swings((&[1.0, -1.0], 0.1), (&[-1.0, 1.0], 0.1)));
        assert!(!swings((&[1.0, -1.0], 0.1), (&[1.0, -1.0], 0.1)));
    }
}
