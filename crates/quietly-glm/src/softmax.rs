//! The logistic loss of several classes: ln Σ exp(uₖ) - u_class.
use super::loss::Loss;

impl Loss {
    /// The loss of `scores`, one for each class, where `class` is the truth.
    ///
    /// # Panics
    ///
    /// If `class` has no score.
    pub fn value_of(self, scores: &[f64], class: usize) -> f64 {
        let top = highest(scores);
        let first = scores.iter().position(|&u| within(u) == top);
        let rest = scores.iter().enumerate().filter(|(k, _)| Some(*k) != first);
        // The highest score gives exactly 1 to the sum; adding the rest to it would cost digits.
        let rest: f64 = rest.map(|(_, &u)| libm::exp(within(u) - top)).sum();
        libm::log1p(rest) + (top - within(scores[class]))
    }

    /// The derivative in every score: the class probabilities, less one for the truth.
    ///
    /// # Panics
    ///
    /// If `class` has no score or `out` is not as long as `scores`.
    pub fn derivatives_of(self, scores: &[f64], class: usize, out: &mut [f64]) {
        assert_eq!(scores.len(), out.len(), "one derivative for each score");
        let top = highest(scores);
        let mut total = 0.0;
        for (into, &u) in out.iter_mut().zip(scores) {
            *into = libm::exp(within(u) - top);
            total += *into;
        }
        out.iter_mut().for_each(|p| *p /= total);
        // Minus the sum of the others and not p - 1, which would lose the digits of a sure answer.
        out[class] = 0.0;
        out[class] = -out.iter().sum::<f64>();
    }
}

/// An infinite score counts as the largest number: infinities would cancel to NaN.
fn within(u: f64) -> f64 {
    u.clamp(-f64::MAX, f64::MAX)
}

fn highest(scores: &[f64]) -> f64 {
    scores.iter().fold(-f64::MAX, |top, &u| top.max(within(u)))
}

#[cfg(test)]
mod tests {
    use quietly_core::random::Random;

    use super::*;

    #[test]
    fn derivatives_are_derivatives_and_two_classes_are_logistic() {
        let (mut random, h) = (Random(3), 1e-5);
        let loss = Loss::Softmax { classes: 4 };
        for _ in 0..500 {
            let scores: Vec<f64> = (0..4).map(|_| 3.0 * random.number()).collect();
            let mut derivatives = [0.0; 4];
            loss.derivatives_of(&scores, 2, &mut derivatives);
            for k in 0..4 {
                let value = |by: f64| {
                    let mut moved = scores.clone();
                    moved[k] += by;
                    loss.value_of(&moved, 2)
                };
                assert!(((value(h) - value(-h)) / (2.0 * h) - derivatives[k]).abs() < 1e-8);
            }
            assert!(derivatives.iter().sum::<f64>().abs() < 1e-15);
            assert!(derivatives.iter().map(|s| s * s).sum::<f64>() <= 2.0);
            let two = loss.value_of(&scores[..2], 0);
            assert!((two - Loss::Logistic.value(scores[0] - scores[1], 1.0)).abs() < 1e-14);
        }
    }

    #[test]
    fn huge_scores_give_numbers() {
        let loss = Loss::Softmax { classes: 3 };
        let mut derivatives = [0.0; 3];
        for scores in [[1e308, -1e308, 0.0], [f64::INFINITY, 1.0, f64::INFINITY], [-1e300; 3]] {
            loss.derivatives_of(&scores, 1, &mut derivatives);
            assert!(derivatives.iter().all(|s| s.abs() <= 1.0), "{derivatives:?}");
            assert!(!loss.value_of(&scores, 1).is_nan());
        }
        loss.derivatives_of(&[700.0, 0.0, 0.0], 0, &mut derivatives);
        assert!((derivatives[0] / (-2.0 * (-700f64).exp()) - 1.0).abs() < 1e-12);
    }
}
