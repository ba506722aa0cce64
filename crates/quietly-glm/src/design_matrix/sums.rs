//! Sums of gradients.
use std::ops::Range;

use quietly_engine::kernels::{SimdBlock, dispatch};

use super::{Examples, RUN, Row, U, in_parts};
use crate::{
    double_double::{Double, two_sum},
    glm::Glm,
};

/// By how much rounding may move [`Examples::gradient`] of so many rows at weights of this norm, in the Euclidean norm.
///
/// A score of `size` products errs by (size + 4)u·‖w‖R and moves the derivative by `smoothness` times that; the derivative itself and its
/// products err by at most 12u of it; a run of rows by RUN·u of all that is added, and the rest is kept in two words.
pub fn rounding(glm: Glm, radius: f64, size: usize, rows: f64, weights: f64) -> f64 {
    let derivative = glm.derivative_bound * (RUN as f64 + 16.0);
    let score = glm.smoothness * (size as f64 + 8.0) * weights * radius;
    1.01 * U * rows * radius * (derivative + score)
}

/// The derivatives of rows. Not a closure, see [`SimdBlock`].
pub trait Derivatives: Sync {
    /// How many there are of a row.
    fn outputs(&self) -> usize {
        1
    }

    /// Those of some rows, which have these scales, row by row. Must be `#[inline(always)]`.
    fn write(&self, rows: Range<usize>, scales: &[f64], into: &mut [f64]);
}

/// Those of a loss at weights `w`.
struct At<'a> {
    examples: &'a Examples<'a>,
    glm: Glm,
    w: &'a [f64],
}

impl Derivatives for At<'_> {
    fn outputs(&self) -> usize {
        self.glm.outputs()
    }

    #[inline(always)]
    fn write(&self, rows: Range<usize>, scales: &[f64], into: &mut [f64]) {
        let At { examples, glm, w } = self;
        let (outputs, size) = (self.outputs(), examples.size());
        for (k, (i, scale)) in rows.clone().zip(scales).enumerate() {
            for output in 0..outputs {
                let w = &w[output * size..][..size];
                into[k * outputs + output] = examples.scaled_score(i, *scale, w);
            }
        }
        glm.derivatives_of_rows(into, &examples.target[rows]);
    }
}

/// Some rows of a sum.
struct Part<'a, S> {
    examples: &'a Examples<'a>,
    rows: Range<usize>,
    derivatives: &'a S,
    total: &'a mut [Double],
}

impl<S: Derivatives> SimdBlock for Part<'_, S> {
    #[inline(always)]
    fn run(self) {
        let Part { examples, rows, derivatives, total } = self;
        let (outputs, size) = (derivatives.outputs(), examples.size());
        let (mut run, mut scales, mut written) =
            (vec![0.0; total.len()], [0.0; RUN], vec![0.0; RUN * outputs]);
        for start in rows.clone().step_by(RUN) {
            let some = start..rows.end.min(start + RUN);
            let scales = &mut scales[..some.len()];
            let written = &mut written[..some.len() * outputs];
            for (scale, i) in scales.iter_mut().zip(some.clone()) {
                *scale = examples.scale(i);
            }
            derivatives.write(some.clone(), scales, written);
            for (k, (i, scale)) in some.zip(scales).enumerate() {
                // Whatever a null record holds, it adds nothing.
                if *scale == 0.0 {
                    continue;
                }
                for output in 0..outputs {
                    let run = &mut run[output * size..][..size];
                    examples.add_scaled(i, written[k * outputs + output] * *scale, run);
                }
            }
            for (total, run) in total.iter_mut().zip(&mut run) {
                let (hi, lo) = two_sum(total.hi, std::mem::take(run));
                *total = Double { hi, lo: total.lo + lo };
            }
        }
    }
}

impl Examples<'_> {
    /// Σ derivative·z over some rows at weights `w`, one derivative for every output, in one order.
    pub fn gradient(&self, glm: Glm, w: &[f64], rows: Range<usize>) -> Vec<f64> {
        self.weighted(rows, &At { examples: self, glm, w })
    }

    /// Σ derivative·z over some rows, in one order. Null records are left out.
    pub fn weighted(&self, rows: Range<usize>, derivatives: &impl Derivatives) -> Vec<f64> {
        let size = derivatives.outputs() * self.size();
        let parts = self.in_parts(rows, |rows| {
            let mut total = vec![Double::default(); size];
            dispatch(Part { examples: self, rows, derivatives, total: &mut total });
            total
        });
        let mut parts = parts.into_iter();
        let mut total = parts.next().unwrap_or_else(|| vec![Double::default(); size]);
        for part in parts {
            total.iter_mut().zip(part).for_each(|(total, part)| *total = *total + part);
        }
        total.iter().map(|x| x.hi + x.lo).collect()
    }

    /// The same in two words: every error is below 2⁻⁸⁰ of what it was.
    pub fn gradient_in_double(
        &self,
        glm: Glm,
        w: &[Double],
        rows: Range<usize>,
    ) -> (Vec<Double>, f64) {
        let (outputs, size) = (glm.outputs(), self.size());
        let count = rows.len() as f64;
        let parts = self.in_parts(rows, |range| {
            let mut total = vec![Double::default(); outputs * size];
            let mut derivatives = vec![Double::default(); outputs];
            for i in range.filter(|&i| !self.is_null(i)) {
                let scale = Double::from(self.scale(i));
                let entries = || {
                    let constant = (self.constant != 0.0).then_some((self.width, self.constant));
                    self.row(i).entries().chain(constant)
                };
                for (derivative, w) in derivatives.iter_mut().zip(w.chunks_exact(size)) {
                    let dot = entries().fold(Double::default(), |s, (j, x)| s + w[j] * x.into());
                    *derivative = dot * scale;
                }
                glm.derivatives_in_double(&mut derivatives, self.target[i]);
                for (derivative, total) in derivatives.iter().zip(total.chunks_exact_mut(size)) {
                    let c = *derivative * scale;
                    for (j, x) in entries() {
                        total[j] = total[j] + c * x.into();
                    }
                }
            }
            total
        });
        let mut total = vec![Double::default(); outputs * size];
        for part in parts {
            total.iter_mut().zip(part).for_each(|(total, part)| *total = *total + part);
        }
        let norm = w.iter().map(|w| w.hi * w.hi).sum::<f64>().sqrt();
        // A running sum of so many rows; derivatives are good to 2⁻⁸⁰.
        let derivative = glm.derivative_bound * (count * 2f64.powi(-96) + 2f64.powi(-80));
        let score = glm.smoothness * (size as f64 + 8.0) * norm * self.radius * 2f64.powi(-96);
        (total, count * self.radius * (derivative + score))
    }

    /// About the second derivative of the sum at `w`, from at most `most` rows spread evenly; row by row, symmetric.
    ///
    /// Nothing depends on its being right but speed.
    pub fn curvature(&self, glm: Glm, w: &[f64], rows: Range<usize>, most: usize) -> Vec<f64> {
        let (outputs, size) = (glm.outputs(), self.size());
        let (all, count) = (outputs * size, rows.len());
        let taken = count.min(most);
        let parts = in_parts(self.threads, 0..taken, |range| {
            let mut matrix = vec![0.0; all * all];
            let (mut scores, mut curvatures) = (vec![0.0; outputs], vec![0.0; outputs * outputs]);
            let mut z: Vec<(usize, f64)> = Vec::new();
            for i in range.map(|k| rows.start + k * count / taken) {
                let scale = self.scale(i);
                if scale == 0.0 {
                    continue;
                }
                for (score, w) in scores.iter_mut().zip(w.chunks_exact(size)) {
                    *score = self.scaled_score(i, scale, w);
                }
                glm.second_derivatives(&scores, self.target[i], &mut curvatures);
                // Most rows of a loss with corners are on its straight lines.
                if curvatures.iter().all(|c| *c == 0.0) {
                    continue;
                }
                z.clear();
                z.extend(self.row(i).entries().filter(|(_, x)| *x != 0.0));
                if self.constant != 0.0 {
                    z.push((self.width, self.constant));
                }
                let square = scale * scale * count as f64 / taken as f64;
                for (a, b) in (0..outputs).flat_map(|a| (0..outputs).map(move |b| (a, b))) {
                    let curvature = square * curvatures[a * outputs + b];
                    for &(j, x) in &z {
                        let line = &mut matrix[(a * size + j) * all + b * size..][..size];
                        let factor = curvature * x;
                        match self.row(i) {
                            Row::Dense(others) => {
                                line.iter_mut().zip(others).for_each(|(m, x)| *m += factor * x);
                                if self.constant != 0.0 {
                                    line[self.width] += factor * self.constant;
                                }
                            }
                            Row::Sparse(..) => {
                                z.iter().for_each(|&(k, other)| line[k] += factor * other);
                            }
                        }
                    }
                }
            }
            matrix
        });
        let mut matrix = vec![0.0; all * all];
        for part in parts {
            matrix.iter_mut().zip(part).for_each(|(m, p)| *m += p);
        }
        matrix
    }
}
