//! How a prediction follows from weighted sums.
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// How a prediction follows from the weighted sum u of the features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Link {
    /// u itself: linear regression.
    Linear,
    /// max(u, 0): ReLU regression.
    Relu,
    /// u itself: linear regression that outliers hardly move.
    Robust,
    /// u itself: linear regression for a quantile of the target.
    Quantile,
    /// The last of two classes with probability 1/(1 + e^-u): logistic regression.
    Logistic,
    /// The last of two classes where u is positive: a support vector machine.
    Svm,
    /// One weighted sum for each class, whose probability is in proportion to e^u.
    Softmax,
}

impl Link {
    /// The word used on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Link::Linear => "linear",
            Link::Relu => "relu",
            Link::Robust => "robust",
            Link::Quantile => "quantile",
            Link::Logistic => "logistic",
            Link::Svm => "svm",
            Link::Softmax => "softmax",
        }
    }

    /// Whether classes are predicted, and no numbers.
    pub fn is_classifier(self) -> bool {
        matches!(self, Link::Logistic | Link::Svm | Link::Softmax)
    }

    /// The prediction for a weighted sum: a number, the probability of the last of two classes, or for the other classifiers
    /// the sum itself.
    pub fn apply(self, u: f64) -> f64 {
        match self {
            Link::Linear | Link::Robust | Link::Quantile | Link::Svm | Link::Softmax => u,
            Link::Relu => u.max(0.0),
            Link::Logistic => sigmoid(u),
        }
    }

    /// Refuses all but linear and ReLU regressions.
    pub fn check_least_squares(self) -> Result<(), Error> {
        let fine = matches!(self, Link::Linear | Link::Relu);
        Error::ensure(fine, "plan", "as it was planned", "one for another link")
    }

    /// Stops where only linear and ReLU regressions come: the planner has refused all others.
    pub fn not_least_squares(self) -> ! {
        unreachable!("{} is not fitted by least squares", self.name())
    }

    /// The first version of the file format that knows this link.
    pub fn version(self) -> u64 {
        match self {
            Link::Linear | Link::Relu => 1,
            Link::Robust | Link::Quantile | Link::Logistic | Link::Svm | Link::Softmax => 2,
        }
    }
}

/// 1/(1 + e^-u), which overflows nowhere.
pub fn sigmoid(u: f64) -> f64 {
    1.0 / (1.0 + (-u).exp())
}
