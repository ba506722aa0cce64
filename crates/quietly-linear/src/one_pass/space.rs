//! The space that one pass descends in: the table's own columns, centred and scaled.
use quietly_engine::{
    column_map::Standardise,
    linalg::{Square, add, dot, inverse, regular},
    transform::RowTransform,
};

use crate::full_batch::CONSTANT;

/// Columns centred and scaled, and the inverse of their noisy second moment.
pub(super) struct Space {
    pub(super) transform: RowTransform,
    shift: Vec<f64>,
    scale: Vec<f64>,
    columns: Option<Standardise>,
    /// The regularised second moment in the space, over the rows of a step, and its inverse.
    moment: Square,
    inverse: Square,
}

impl Space {
    /// From a noisy second moment over about `rows` rows, standardised first if that is said, with noise `std` on its diagonal.
    pub(super) fn new(moment: &Square, std: f64, rows: f64, columns: Option<Standardise>) -> Self {
        let d = moment.size;
        let p = d - 1;
        let floor = 0.7 * std * (2.0 * d as f64).sqrt();
        let count = (moment.at(p, p) / CONSTANT / CONSTANT).clamp(0.1 * rows, 10.0 * rows);
        let shift: Vec<f64> =
            (0..p).map(|j| (moment.at(j, p) / CONSTANT / count).clamp(-1.0, 1.0)).collect();
        let spread = |j: usize| {
            let variance = moment.at(j, j) / count - shift[j] * shift[j];
            1.0 / variance.max(floor / count).max(1e-12).sqrt()
        };
        let scale: Vec<f64> = (0..p).map(spread).collect();
        // The same second moment in the new columns, whose constant is 1.
        let centred = |j: usize, k: usize| {
            let (a, b) = (shift.get(j), shift.get(k));
            match (a, b) {
                (Some(a), Some(b)) => (moment.at(j, k) / count - a * b) * scale[j] * scale[k],
                (None, None) => 1.0,
                _ => 0.0,
            }
        };
        let inside = Square::new(d, centred);
        // Noise on an entry is `std` over the count, times the scales of its columns.
        let mean = dot(&scale, &scale) / p.max(1) as f64;
        let blur = (floor / count * mean).clamp(1e-9, 1.0);
        let moment = regular(&inside, blur);
        // Its eigenvalues are at least `blur`, so that only overflow could make this fail.
        let inverse = inverse(&moment).unwrap_or_else(|| Square::identity(d));
        let transform =
            RowTransform::shifted(shift.clone(), scale.clone(), 1.0).after(columns.clone());
        Space { transform, shift, scale, columns, moment, inverse }
    }

    /// Newton's direction for a gradient.
    pub(super) fn solve(&self, gradient: &[f64]) -> Vec<f64> {
        let mut x = vec![0.0; gradient.len()];
        for (k, g) in gradient.iter().enumerate() {
            add(&mut x, self.inverse.row(k), *g);
        }
        x
    }

    /// The noise of a Newton step, root mean square over coordinates, where the gradient's is `std`.
    pub(super) fn noise(&self, std: f64) -> f64 {
        std * (self.squares() / self.inverse.size as f64).sqrt()
    }

    /// The sum of the inverse's squared eigenvalues.
    pub(super) fn squares(&self) -> f64 {
        dot(&self.inverse.entries, &self.inverse.entries)
    }

    /// The sum of its eigenvalues.
    pub(super) fn trace(&self) -> f64 {
        (0..self.inverse.size).map(|k| self.inverse.at(k, k)).sum()
    }

    /// The standard deviation of the scores of rows under these weights, without the constant's.
    pub(super) fn size(&self, w: &[f64]) -> f64 {
        let p = w.len() - 1;
        let part = |j: usize| w[j] * dot(&self.moment.row(j)[..p], &w[..p]);
        (0..p).map(part).sum::<f64>().max(0.0).sqrt()
    }

    /// How many weights there are, the constant's among them.
    pub(super) fn width(&self) -> usize {
        self.inverse.size
    }

    /// James and Stein's factor, in predictions, for all weights but the constant's.
    pub(super) fn shrink(&self, mut w: Vec<f64>, noise: f64) -> Vec<f64> {
        let p = w.len() - 1;
        let total = dot(&w, &self.moment.apply(&w)) - w[p] * w[p];
        let noise = noise * noise * self.inverse.size as f64 / self.squares() * self.trace();
        let kept = if total > 0.0 { (1.0 - noise / total).max(0.0) } else { 0.0 };
        w[..p].iter_mut().for_each(|w| *w *= kept);
        w
    }

    /// The intercept and the weights of features as they are, winsorised if rows were.
    pub(super) fn unmap(&self, w: &[f64], centre: f64) -> (f64, Vec<f64>) {
        let weights: Vec<f64> = w.iter().zip(&self.scale).map(|(w, s)| w * s).collect();
        let intercept = centre + w[self.shift.len()] - dot(&weights, &self.shift);
        match &self.columns {
            None => (intercept, weights),
            Some(columns) => {
                let (weights, moved) = columns.unmap(weights);
                (intercept + moved, weights)
            }
        }
    }
}
