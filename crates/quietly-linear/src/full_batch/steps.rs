//! The steps of the default regressions: their phases, their gradients and what is made of them.
use std::ops::Range;

use quietly_core::release::{Histogram, Released, Releaser};
use quietly_engine::{
    backend::{Backend, Batch, run_query},
    descent::{At, ClippedGradient, StepSize, StepSum, Update},
    error::Error,
    link::Link,
    query::ClippedGradients,
    residual::Residual,
    target_scaling::TargetScaling,
    transform::RowTransform,
    whitening::Preconditioner,
};

use super::{CHEAP, LAST, MOMENTUM, ROBUST, clip::Found};
use crate::budget_split::Design;

/// How long steps are where rows were not whitened, over Newton's.
const PACE: f64 = 0.5;

/// Some steps of one kind.
#[derive(Clone, Copy)]
pub(super) struct Phase {
    pub release: &'static str,
    pub steps: Bounds,
    pub residual: Residual,
    pub momentum: f64,
    /// Whether the mean of the iterates counts, and not the last one.
    pub averaged: bool,
}

/// The first step, and the one after the last.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    pub start: u64,
    pub end: u64,
}

impl Phase {
    /// The phases of a design, in order.
    pub(super) fn all(design: &Design, link: Link) -> [Phase; 3] {
        let (approach, polish) = (Residual::approaching(link), Residual::polishing(link));
        let first = design.robust_steps;
        let second = first + design.cheap_steps;
        let third = second + design.final_steps;
        let phase = |release, (start, end), residual, momentum, averaged| {
            let steps = Bounds { start, end };
            Phase { release, steps, residual, momentum, averaged }
        };
        [
            phase(ROBUST, (0, first), approach, 0.0, false),
            phase(CHEAP, (first, second), polish, MOMENTUM, false),
            phase(LAST, (second, third), polish, 0.0, true),
        ]
    }

    pub(super) fn range(&self) -> Range<u64> {
        self.steps.start..self.steps.end
    }
}

/// Sums of clipped gradients over all rows.
pub(super) struct Gradients<'a> {
    pub backend: &'a mut dyn Backend,
    pub preconditioner: &'a Preconditioner,
    pub transform: &'a RowTransform,
    pub residual: Residual,
    pub unit: TargetScaling,
    pub centre: f64,
}

impl Gradients<'_> {
    fn query(&self, weights: &[f64], residual: Residual) -> ClippedGradients {
        ClippedGradients {
            transform: self.transform.clone(),
            weights: self.preconditioner.forth(weights),
            residual: Some(residual),
            unit: self.unit,
            centre: self.centre,
            clip: None,
            lattice_clip: None,
            thresholds: None,
        }
    }
}

impl ClippedGradient for Gradients<'_> {
    fn sum(&mut self, at: &At<'_>, releaser: &mut Releaser) -> Result<StepSum, Error> {
        let query =
            ClippedGradients { clip: Some(at.clip), ..self.query(at.weights, self.residual) };
        let gradient = run_query(self.backend, releaser, &Batch::All, &query)?.sum();
        Ok(StepSum { gradient, norms: None })
    }

    fn norms(&mut self, at: &At<'_>, releaser: &mut Releaser) -> Result<Histogram, Error> {
        let thresholds = Some(at.bins.expect("norms are counted in bins").to_vec());
        let query =
            ClippedGradients { thresholds, ..self.query(at.weights, self.residual.distance()) };
        Ok(run_query(self.backend, releaser, &Batch::All, &query)?.histogram())
    }
}

/// Newton's steps in the metric, with the noise that each has made.
pub(super) struct Steps<'a> {
    preconditioner: &'a Preconditioner,
    rows: f64,
    found: &'a Found,
    pub phase: Phase,
    stepping: StepSize,
    /// Of each step: its noise, its momentum, and whether its iterate is averaged.
    noises: Vec<(f64, f64, bool)>,
}

impl<'a> Steps<'a> {
    pub(super) fn new(preconditioner: &'a Preconditioner, rows: f64, found: &'a Found) -> Self {
        // Where rows were not whitened nobody knows their curvature: with n rows of d independent features it goes up to (1 + √(d/n))².
        let pace = if preconditioner.is_whitened() { 1.0 } else { PACE };
        let gentle = |m: &f64| pace * m / (1.0 + 0.02 * (m - 1.0));
        let stepping = StepSize::new(preconditioner.multipliers.iter().map(gentle).collect());
        let steps = Bounds { start: 0, end: 0 };
        let residual = Residual::Squared;
        let phase = Phase { release: ROBUST, steps, residual, momentum: 0.0, averaged: false };
        Steps { preconditioner, rows, found, phase, stepping, noises: Vec::new() }
    }

    /// The weights without what noise is likely to have added.
    pub(super) fn shrink(&self, w: Vec<f64>) -> Vec<f64> {
        // Steps were divided by what clips leave of the curvature.
        self.preconditioner.shrink(w, &self.stepping.sizes, 1.0, &self.noises)
    }
}

impl Update for Steps<'_> {
    fn step(&mut self, _: u64, w: &mut [f64], released: &Released) {
        let far = self.rows * self.found.left.get();
        let mean = released.values.iter().map(|g| g / far).collect();
        let gradient = self.preconditioner.back(mean);
        let Phase { residual, momentum, averaged, .. } = self.phase;
        let mut direction = self.preconditioner.newton(residual, w, &gradient);
        let multipliers = &self.preconditioner.multipliers;
        direction.iter_mut().zip(multipliers).for_each(|(x, m)| *x /= m);
        let std = released.std / far * residual.stretch();
        self.stepping.go(w, direction, std, momentum);
        self.noises.push((std, momentum, averaged));
    }
}
