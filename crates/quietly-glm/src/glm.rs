//! A loss whose derivative is clipped, so that the bounds that privacy rests on hold for every score.
//!
//! Derivatives are held to ±`derivative_bound`. A derivative that never decreases, held to an interval, never decreases: what is minimised is
//! the loss continued by straight lines, convex and as smooth as before (docs/spec/convex.md#2.7). No row
//! and no weights can make a
//! gradient longer than `derivative_bound` times the row.
use super::{double_double::Double, loss::Loss};

/// A loss, bounded in derivative and in bend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Glm {
    pub loss: Loss,
    /// What no derivative exceeds; for several outputs, no vector of derivatives.
    pub derivative_bound: f64,
    /// What no second derivative exceeds.
    pub smoothness: f64,
}

impl Glm {
    /// How many scores a row has.
    pub fn outputs(&self) -> usize {
        self.loss.outputs()
    }

    /// Turns scores into derivatives.
    #[inline(always)]
    pub fn derivatives(&self, scores: &mut [f64], y: f64) {
        match (self.loss, &mut *scores) {
            (Loss::Softmax { .. }, scores) => {
                let given = scores.to_vec();
                self.loss.derivatives_of(&given, y as usize, scores);
            }
            (loss, [u]) => *u = self.clipped(loss.derivative(*u, y)),
            _ => unreachable!("one score"),
        }
    }

    /// The same for some rows, one after the other.
    #[inline(always)]
    pub fn derivatives_of_rows(&self, scores: &mut [f64], targets: &[f64]) {
        if let Loss::Softmax { classes } = self.loss {
            let rows = scores.chunks_exact_mut(classes).zip(targets);
            return rows
                .filter(|(_, y)| !y.is_nan())
                .for_each(|(row, y)| self.derivatives(row, *y));
        }
        let rows = scores.iter_mut().zip(targets);
        match self.loss {
            // On its own, so that rows are worked on side by side.
            Loss::Logistic => {
                for (u, y) in rows {
                    *u = self.clipped(Loss::Logistic.derivative(*u, *y));
                }
            }
            loss => {
                for (u, y) in rows {
                    *u = self.clipped(loss.derivative(*u, *y));
                }
            }
        }
    }

    #[inline(always)]
    fn clipped(&self, derivative: f64) -> f64 {
        derivative.max(-self.derivative_bound).min(self.derivative_bound)
    }

    /// The second derivative in the scores, row by row: for speed alone, so that corners do not matter.
    pub fn second_derivatives(&self, scores: &[f64], y: f64, out: &mut [f64]) {
        match (self.loss, scores) {
            (Loss::Softmax { classes }, scores) => {
                let mut p = vec![0.0; classes];
                self.loss.derivatives_of(scores, y as usize, &mut p);
                p[y as usize] += 1.0;
                for (k, out) in out.iter_mut().enumerate() {
                    let (a, b) = (k / classes, k % classes);
                    *out = if a == b { p[a] } else { 0.0 } - p[a] * p[b];
                }
            }
            (loss, [u]) if loss.derivative(*u, y).abs() < self.derivative_bound => {
                out[0] = loss.second_derivative(*u, y)
            }
            _ => out[0] = 0.0,
        }
    }

    /// Turns scores into derivatives, good to 2⁻⁸⁰ of `derivative_bound`.
    pub fn derivatives_in_double(&self, scores: &mut [Double], y: f64) {
        if let Loss::Softmax { .. } = self.loss {
            return softmax(scores, y as usize);
        }
        let derivative = self.loss.derivative_in_double(scores[0], y);
        scores[0] = derivative.clamp(-self.derivative_bound, self.derivative_bound);
    }
}

fn softmax(scores: &mut [Double], class: usize) {
    let top = scores.iter().fold(f64::NEG_INFINITY, |top, u| top.max(u.hi));
    for u in scores.iter_mut() {
        let below = *u - top.into();
        *u = if below.hi < -600.0 { Double::default() } else { below.exp() };
    }
    let total = scores.iter().fold(Double::default(), |sum, u| sum + *u).recip();
    scores.iter_mut().for_each(|u| *u = *u * total);
    scores[class] = scores[class] - 1.0.into();
}
