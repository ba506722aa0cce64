//! The units that targets are learnt in.
use serde::{Deserialize, Serialize};

use crate::link::Link;

/// The target in units of its public range: moved to its middle for linear models, about [-1, 1].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unit {
    middle: f64,
    scale: f64,
}

impl Unit {
    /// The target as it is.
    pub const ITSELF: Unit = Unit { middle: 0.0, scale: 1.0 };

    pub fn new(link: Link, (lo, hi): (f64, f64)) -> Self {
        match link {
            Link::Linear | Link::Robust | Link::Quantile => {
                Unit { middle: 0.5 * (lo + hi), scale: 0.5 * (hi - lo) }
            }
            // max(u, 0) cannot be moved.
            Link::Relu => Unit { middle: 0.0, scale: lo.abs().max(hi.abs()) },
            // Classes are numbered.
            Link::Logistic | Link::Svm | Link::Softmax => Unit { middle: 0.0, scale: 1.0 },
        }
    }

    /// A target in these units.
    #[inline]
    pub fn of(&self, y: f64) -> f64 {
        (y - self.middle) / self.scale
    }

    /// Weights for the target itself, from those for its units.
    pub fn back(&self, intercept: f64, weights: Vec<f64>) -> (f64, Vec<f64>) {
        let weights = weights.into_iter().map(|w| w * self.scale).collect();
        (self.middle + intercept * self.scale, weights)
    }
}
