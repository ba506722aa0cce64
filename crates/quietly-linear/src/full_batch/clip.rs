//! How the default regressions find their clipping norms: from histograms of gradient norms, or from third quartiles of them.
//!
//! The engine clips by them, in `kernels.rs`.
use std::cell::Cell;

use quietly_accounting::Neighbours;
use quietly_core::release::{Releaser, one_in_each};
use quietly_engine::{
    descent::{At, ClipRule, ClippedGradient},
    error::Error,
    histogram::{bin_value, decreasing_bins, geometric_bins},
    norm_histogram::NormHistogram,
    residual::{LEVEL, MEDIAN, TO_MEDIAN, unclipped},
};

use super::{FIRST, THRESHOLD};

/// What the steps learn of their clip.
#[derive(Default)]
pub(crate) struct Found {
    /// The share of the curvature that the clip leaves.
    pub(crate) left: Cell<f64>,
    /// The root mean square of the norms of gradients, about.
    pub(crate) scale: Cell<f64>,
}

/// A histogram before the first step of each phase.
pub(crate) struct Histograms<'a> {
    pub release: &'static str,
    /// The first step of each phase, and the noise of predictions that a clip of one makes there.
    pub phases: Vec<(u64, f64)>,
    pub rows: u64,
    pub neighbours: Neighbours,
    pub clip: f64,
    pub found: &'a Found,
}

impl ClipRule for Histograms<'_> {
    fn clip(
        &mut self,
        step: u64,
        weights: &[f64],
        gradient: &mut dyn ClippedGradient,
        releaser: &mut Releaser,
    ) -> Result<f64, Error> {
        if let Some((_, noise)) = self.phases.iter().find(|(first, _)| *first == step) {
            let ends = NormHistogram::ends(self.rows, weights.len());
            let at = At { step, weights, clip: self.clip, bins: Some(&ends) };
            let counts = gradient.norms(&at, releaser)?.into_sum(self.neighbours);
            let (counts, _) = releaser.sum(self.release, counts)?;
            let sd = releaser.noise(self.release) * one_in_each(1, self.neighbours);
            let norms = NormHistogram::new(ends, &counts, sd, (self.rows as f64, weights.len()));
            let best = norms.best_clip(*noise);
            self.clip = best.clip;
            self.found.left.set(best.left);
            self.found.scale.set(norms.scale());
        }
        Ok(self.clip)
    }
}

/// The third quartile of norms, brought down to a median: asked anew before each robust step and once after them. From then on the
/// clip is so many times as high as noise allows.
pub(super) struct Quartiles<'a> {
    pub robust_steps: u64,
    /// How many medians the later clip is high.
    pub factor: f64,
    pub threshold: f64,
    pub found: &'a Found,
}

/// The thresholds that the first third quartile is looked for among, for rows of d features.
fn wide(d: usize) -> Vec<f64> {
    geometric_bins((d as f64).sqrt(), -80, 8)
}

/// By how many quarter powers of two the threshold may fall from one question to the next.
const DEPTH: i32 = 12;

impl ClipRule for Quartiles<'_> {
    fn clip(
        &mut self,
        step: u64,
        weights: &[f64],
        gradient: &mut dyn ClippedGradient,
        releaser: &mut Releaser,
    ) -> Result<f64, Error> {
        if step <= self.robust_steps {
            let (purpose, bins) = match step {
                0 => (FIRST, wide(weights.len())),
                _ => (THRESHOLD, decreasing_bins(self.threshold, DEPTH)),
            };
            let at = At { step, weights, clip: self.threshold, bins: Some(&bins) };
            let counts = gradient.norms(&at, releaser)?;
            self.threshold = bin_value(&bins, releaser.quantile(purpose, LEVEL, counts)?);
        }
        let factor = if step < self.robust_steps { 1.0 } else { self.factor };
        self.found.left.set(if factor > 1.0 { unclipped(factor) } else { 0.5 });
        self.found.scale.set(TO_MEDIAN * self.threshold / MEDIAN);
        Ok((TO_MEDIAN * self.threshold * factor).clamp(1e-250, 1e250))
    }
}
