//! The residual of a row under a linear or ReLU model, and what normal residuals have in common.
use serde::{Deserialize, Serialize};

use crate::link::Link;

/// What a row's gradient is multiplied with: the model, as a descent sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Residual {
    /// y - u: least squares.
    Squared,
    /// y - max(u, 0), also where u is negative: GLMtron, the gradient of the convex matching loss
    /// max(u, 0)²/2 - y·u.
    Glmtron,
    /// The same for max(y, 0): no max(u, 0) is nearer to a target below nought than to nought, and GLMtron, which takes such targets
    /// as they are, would follow them without end.
    GlmtronAboveZero,
    /// y - u where u is positive, otherwise 0: the gradient of least squares through max(u, 0).
    Relu,
}

impl Residual {
    /// How a model with this link is approached.
    pub fn approaching(link: Link) -> Self {
        match link {
            Link::Linear => Residual::Squared,
            Link::Relu => Residual::GlmtronAboveZero,
            other => other.not_least_squares(),
        }
    }

    /// How its last steps are taken.
    pub fn polishing(link: Link) -> Self {
        match link {
            Link::Linear => Residual::Squared,
            Link::Relu => Residual::Relu,
            other => other.not_least_squares(),
        }
    }

    /// What thresholds are quantiles of. Where max(u, 0) is flat, or both u and the target are below zero, a row has no gradient, but it
    /// has a distance: half of all norms would be zero, and their median no scale of the others.
    pub fn distance(self) -> Self {
        match self {
            Residual::Relu | Residual::GlmtronAboveZero => Residual::Glmtron,
            other => other,
        }
    }

    /// The factor for a row with score u and target y.
    #[inline(always)]
    pub fn of(self, u: f64, y: f64) -> f64 {
        match self {
            Residual::Squared => y - u,
            Residual::Glmtron => y - u.max(0.0),
            Residual::GlmtronAboveZero => y.max(0.0) - u.max(0.0),
            Residual::Relu => {
                if u > 0.0 {
                    y - u
                } else {
                    0.0
                }
            }
        }
    }

    /// Newton's step for this residual, from `plain`, the one that least squares would take along `gradient`.
    ///
    /// `size` is the standard deviation of the score u without its constant, which is the last coordinate of all and has
    /// feature 1. Through max(u, 0) only rows with u > 0 curve. Taking u for normal, with mean b (the constant's weight)
    /// and a = b/size, their share of the second moment is Φ(a) in all directions, except along the weights and the
    /// constant: there it is the 2×2 matrix of E[t²; t > -a], E[t; t > -a] and P(t > -a) for a normal t. Nothing here is
    /// assumed for privacy; a bad guess costs steps.
    pub fn newton(
        self,
        weights: &[f64],
        gradient: &[f64],
        mut plain: Vec<f64>,
        size: f64,
    ) -> Vec<f64> {
        if self == Residual::Squared {
            return plain;
        }
        let p = weights.len() - 1;
        let a = if size > 0.0 { (weights[p] / size).clamp(-0.5, 3.0) } else { 0.0 };
        let density = (-0.5 * a * a).exp() / (2.0 * std::f64::consts::PI).sqrt();
        let (active, first, second) = (normal(a), density, normal(a) - a * density + 0.05);
        let constant = active + 0.05;
        plain.iter_mut().for_each(|x| *x /= active);
        if size > 0.0 {
            let along: f64 =
                weights[..p].iter().zip(gradient).map(|(w, g)| w * g).sum::<f64>() / size;
            let determinant = second * constant - first * first;
            let turned = (constant * along - first * gradient[p]) / determinant;
            plain[p] = (second * gradient[p] - first * along) / determinant;
            let more = (turned - along / active) / size;
            plain.iter_mut().zip(&weights[..p]).for_each(|(x, w)| *x += more * w);
        }
        plain
    }

    /// About how much longer its steps, and their noise, are than those of least squares.
    pub fn stretch(self) -> f64 {
        if self == Residual::Squared { 1.0 } else { 2.0 }
    }
}

/// Φ.
pub fn normal(x: f64) -> f64 {
    0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
}

/// The median of |Z| for a standard normal Z.
pub const MEDIAN: f64 = 0.6745;

/// Scales are taken from this quantile rather than from the median, which is zero where half of the rows have one and the
/// same target.
pub const LEVEL: f64 = 0.75;

/// What a median would be for normal residuals, over that quantile.
pub const TO_MEDIAN: f64 = 0.58634;

/// The share of normal residuals that a clip at `factor` times their median leaves alone.
pub fn unclipped(factor: f64) -> f64 {
    2.0 * normal(MEDIAN * factor) - 1.0
}

#[cfg(test)]
mod tests {
    use quietly_core::random::Random;

    use super::*;

    /// docs/spec/regression.md#14, test 8: for symmetric x, GLMtron's pseudo-gradient has mean
    /// H(w - w*)/2 for every w. 200,000 rows from a fixed seed; four standard errors in three
    /// coordinates fail once in 5000 seeds. The gradient of least squares is the control: it has
    /// another mean.
    #[test]
    fn glmtron_is_linear_regression_with_half_the_curvature() {
        let mut random = Random(77);
        let mut normal = || {
            let (a, b) = (random.number().abs().max(1e-300), random.number());
            (-2.0 * a.ln()).sqrt() * (std::f64::consts::PI * b).cos()
        };
        let (w, truth) = ([0.5, -1.0, 2.0], [1.5, 0.3, -0.7]);
        let rows = 200_000;
        let mut off = |residual: Residual| {
            let (mut sum, mut squares) = ([0.0; 3], [0.0; 3]);
            for _ in 0..rows {
                let x: [f64; 3] = std::array::from_fn(|_| normal());
                let score = |w: &[f64; 3]| x.iter().zip(w).map(|(x, w)| x * w).sum::<f64>();
                let r = -residual.of(score(&w), score(&truth).max(0.0) + 0.5 * normal());
                for j in 0..3 {
                    sum[j] += r * x[j];
                    squares[j] += (r * x[j]).powi(2);
                }
            }
            let n = f64::from(rows);
            let far = |j: usize| {
                let (mean, error) = (sum[j] / n, (squares[j] / n / n).sqrt());
                (mean - 0.5 * (w[j] - truth[j])).abs() / error
            };
            (0..3).map(far).fold(0.0, f64::max)
        };
        assert!(off(Residual::Glmtron) < 4.0);
        assert!(off(Residual::Relu) > 10.0);
    }
}
