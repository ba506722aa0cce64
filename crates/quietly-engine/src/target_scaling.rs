//! The units that targets are learnt in.
use serde::{Deserialize, Serialize};

use crate::link::Link;

/// The target in units of its public range: moved to its middle for linear models, about [-1, 1].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetScaling {
    middle: f64,
    scale: f64,
}

impl TargetScaling {
    /// The target as it is.
    pub const ITSELF: TargetScaling = TargetScaling { middle: 0.0, scale: 1.0 };

    pub fn new(link: Link, (lo, hi): (f64, f64)) -> Self {
        match link {
            Link::Linear | Link::Robust | Link::Quantile => {
                TargetScaling { middle: 0.5 * (lo + hi), scale: 0.5 * (hi - lo) }
            }
            // max(u, 0) cannot be moved.
            Link::Relu => TargetScaling { middle: 0.0, scale: lo.abs().max(hi.abs()) },
            // Classes are numbered.
            Link::Logistic | Link::Svm | Link::Softmax => TargetScaling { middle: 0.0, scale: 1.0 },
        }
    }

    /// A target in these units.
    #[inline]
    pub fn encode(&self, y: f64) -> f64 {
        (y - self.middle) / self.scale
    }

    /// Weights for the target itself, from those for its units.
    pub fn decode(&self, intercept: f64, weights: Vec<f64>) -> (f64, Vec<f64>) {
        let weights = weights.into_iter().map(|w| w * self.scale).collect();
        (self.middle + intercept * self.scale, weights)
    }
}
