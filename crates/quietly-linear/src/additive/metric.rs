//! The metric of bends: linear features whitened by themselves, bends at the size that is expected of their weights, and both in a
//! basis in which their second moment is about the identity. All of it is post-processing of released moments.
//!
//! docs/spec/default.md#5.4
use std::ops::Range;

use quietly_engine::{
    bends::{Bends, BlockOf},
    linalg::{Square, dot, eigen},
};

use super::steps::NoiseOfStep;
use crate::ladder::Rung;

/// Of the mean eigenvalue, what any of them is taken to have at least.
const LEAST_EIGENVALUE: f64 = 0.05;
/// A block is shrunk by itself if its noise is worth so many directions: docs/spec/default.md#2.2
const DIRECTIONS: f64 = 4.0;
/// Multiplications that find the largest eigenvalue of a block's noise.
const POWERS: usize = 60;

/// The matrix that whitens the features of the row, from their noisy second moment: directions that are lost in noise stay small.
pub(super) fn whitened(moment: &Square, std: f64, rows: f64) -> Square {
    let size = moment.size;
    let (values, vectors) = eigen(&moment.entries, size);
    let floor = (std * (size as f64).sqrt() / rows).max(f64::MIN_POSITIVE);
    let length: Vec<f64> = values.iter().map(|e| (e.max(0.0) / rows + floor).sqrt()).collect();
    Square::new(size, |k, j| vectors[k * size + j] / length[k])
}

/// From the bent row to scaled features: the first are whitened, the others multiplied by their scales. Rows of the matrix follow
/// each other.
pub(super) fn features(bends: &Bends, own: &Square) -> Vec<f64> {
    let (width, inputs) = (bends.width(), bends.inputs());
    let mut matrix = super::alone(bends, own);
    for (k, scale) in bends.scales().into_iter().enumerate().skip(inputs) {
        let start = matrix.len();
        matrix.resize(start + width, 0.0);
        matrix[start + k] = scale;
    }
    matrix
}

/// The weights of the bent row, from those of scaled features.
pub(super) fn of_rows(features: &[f64], theta: &[f64]) -> Vec<f64> {
    let mut weights = vec![0.0; theta.len()];
    for (row, theta) in features.chunks_exact(theta.len()).zip(theta) {
        weights.iter_mut().zip(row).for_each(|(w, x)| *w += theta * x);
    }
    weights
}

/// What the squared norm of scaled features is expected to be, the constant counted as in docs/spec/default.md#6.
pub(super) fn squared_norm(rung: Rung, bends: &Bends) -> f64 {
    let blocks = bends.blocks();
    let columns = blocks.iter().filter(|block| matches!(block.of, BlockOf::Column(_))).count();
    rung.squared_norm(bends.inputs() + 1, columns, bends.pairs.len() as f64)
}

/// A basis of scaled features in which gradients are clipped and steps taken.
pub(super) struct Metric {
    /// Columns are directions, in order of eigenvalues.
    basis: Square,
    /// The same, turned so that none of its columns reaches above the diagonal: rows come through this one, for half of the work.
    /// Norms and noise that is alike in all directions do not change.
    half: Square,
    /// The inverse of `half`.
    back: Square,
    /// The second moment along the directions, at most one, as well as it is known.
    curvature: Vec<f64>,
    /// That of scaled features.
    moment: Square,
}

impl Metric {
    /// From the noisy second moment of about so many rows, with noise `std` on its diagonal. The effective number of features is held
    /// to `most`, so that bends add little noise.
    pub(super) fn new(moment: &Square, std: f64, rows: f64, most: f64) -> Self {
        let size = moment.size;
        let (sums, vectors) = eigen(&moment.entries, size);
        let values: Vec<f64> = sums.iter().map(|e| e / rows).collect();
        let vectors = Square { size, entries: vectors };
        let std = std / rows;
        // Noise spreads eigenvalues: they are drawn back to their mean by as much as it does.
        let mean = values.iter().sum::<f64>() / size as f64;
        let variance = values.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / size as f64;
        let real = (1.0 - 0.5 * std * std * size as f64 / variance.max(1e-300)).max(0.0).sqrt();
        let likely = |e: f64| (mean + real * (e - mean)).max(LEAST_EIGENVALUE * mean.abs());
        let curvature = |floor: f64| -> Vec<f64> {
            values.iter().map(|e| (likely(*e) / (e.max(0.0) + floor)).min(1.0)).collect()
        };
        let mut floor = (std * (size as f64).sqrt()).max(1e-12);
        while curvature(floor).iter().sum::<f64>() > most {
            floor *= 1.02;
        }
        let curvature = curvature(floor);
        let length: Vec<f64> = values.iter().map(|e| (e.max(0.0) + floor).sqrt()).collect();
        let basis = Square::new(size, |row, k| vectors.at(k, row) / length[k]);
        let mut back = Square::new(size, |k, column| vectors.at(k, column) * length[k]);
        let mut half = basis.clone();
        half.lower(size, Some(&mut back));
        let roots: Vec<f64> = curvature.iter().zip(&length).map(|(h, l)| h.sqrt() * l).collect();
        let root = Square::new(size, |row, k| vectors.at(k, row) * roots[k]);
        let moment = root.times(&root.transposed());
        Metric { basis, half, back, curvature, moment }
    }

    pub(super) fn width(&self) -> usize {
        self.basis.size
    }

    /// The effective number of features: the sum of all curvatures.
    pub(super) fn effective_width(&self) -> f64 {
        self.curvature.iter().sum()
    }

    /// What bent rows are multiplied by.
    pub(super) fn matrix(&self, features: &[f64]) -> Vec<f64> {
        let size = self.width();
        let features = Square { size, entries: features.to_vec() };
        self.half.transposed().times(&features).entries
    }

    /// The weights of the rows that come through, from those of scaled features.
    pub(super) fn turned(&self, theta: &[f64]) -> Vec<f64> {
        self.back.apply(theta)
    }

    /// The mean square of predictions under these weights of scaled features, about.
    pub(super) fn energy(&self, theta: &[f64]) -> f64 {
        dot(theta, &self.moment.apply(theta))
    }

    /// The weights of scaled features, from those of the rows that come through, each block drawn to zero by what is known of its
    /// noise. Blocks of few directions are shrunk together with the next.
    pub(super) fn shrunk(
        &self,
        w: &[f64],
        noises: &[NoiseOfStep],
        blocks: &[Range<usize>],
    ) -> Vec<f64> {
        let size = self.width();
        let mut theta = self.half.apply(w);
        let spread: Vec<f64> =
            self.curvature.iter().map(|h| NoiseOfStep::variance(noises, *h).sqrt()).collect();
        let root = Square::new(size, |row, k| self.basis.at(row, k) * spread[k]);
        let covariance = root.times(&root.transposed());
        let mut pools: Vec<(Range<usize>, f64)> = Vec::new();
        let mut from = 0;
        for block in blocks {
            let pool = from..block.end;
            let (total, largest) = self.noise(&covariance, &pool);
            if total >= DIRECTIONS * largest {
                from = block.end;
                pools.push((pool, total));
            }
        }
        if from < size {
            let from = pools.pop().map_or(0, |(pool, _)| pool.start);
            let total = self.noise(&covariance, &(from..size)).0;
            pools.push((from..size, total));
        }
        for (pool, noise) in pools {
            let part = &theta[pool.clone()];
            let square: f64 =
                pool.clone().zip(part).map(|(j, x)| x * self.line(j, &pool, part)).sum();
            let kept =
                if square > noise && square.is_finite() { 1.0 - noise / square } else { 0.0 };
            theta[pool].iter_mut().for_each(|x| *x *= kept);
        }
        theta
    }

    /// Row j of the second moment of some features, times x.
    fn line(&self, j: usize, pool: &Range<usize>, x: &[f64]) -> f64 {
        dot(&self.moment.row(j)[pool.clone()], x)
    }

    /// The variance of predictions from noise in the weights of some features with this covariance: in all, and along the worst
    /// direction.
    fn noise(&self, covariance: &Square, pool: &Range<usize>) -> (f64, f64) {
        let times = |matrix: &Square, x: &[f64]| -> Vec<f64> {
            pool.clone().map(|j| dot(&matrix.row(j)[pool.clone()], x)).collect()
        };
        let total: f64 = pool
            .clone()
            .map(|j| dot(&self.moment.row(j)[pool.clone()], &covariance.row(j)[pool.clone()]))
            .sum();
        // The power method, from a start that is orthogonal to no direction but by chance.
        let mut x: Vec<f64> = (0..pool.len()).map(|k| 1.0 + 1.0 / (k + 1) as f64).collect();
        let mut largest = 0.0;
        for _ in 0..POWERS {
            let y = times(covariance, &times(&self.moment, &x));
            let length = dot(&y, &y).sqrt();
            if !(length.is_finite() && length > 0.0) {
                break;
            }
            let before = dot(&x, &x).sqrt();
            largest = length / before;
            x = y.into_iter().map(|y| y / length).collect();
        }
        (total, largest)
    }
}
