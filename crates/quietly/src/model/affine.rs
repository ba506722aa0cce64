//! The weighted sum of a model in other coordinates: of features as the schema encodes them, and of columns in their own units.
//!
//! Some models see rows through a [`RowMap`](quietly_glm::RowMap): x becomes z = P(x - m), and is clipped to a radius where it is farther out. For rows
//! that are not clipped, w·z + b = (wP)·x + (b - wP·m), which is what stands here. Rows that are clipped are predicted as if they were nearer.
use quietly_data::Kind;

use super::{ColumnMap, Link, Model, sum};

/// A weighted sum and its constant.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Affine {
    /// The constant.
    pub intercept: f64,
    /// One weight for every feature.
    pub weights: Vec<f64>,
}

impl Model {
    /// The weights as the file has them, one sum for every output: of features that were centred and scaled where there is a map
    /// ([`rows`](Self::rows)). None of a network.
    pub fn scaled(&self) -> Vec<Affine> {
        let intercepts = match self.link {
            _ if self.network.is_some() => &[],
            Link::Softmax => &self.intercepts[..],
            _ => std::slice::from_ref(&self.intercept),
        };
        let each = self.weights.len() / intercepts.len().max(1);
        let part = |(k, intercept): (usize, &f64)| Affine {
            intercept: *intercept,
            weights: self.weights[k * each..(k + 1) * each].to_vec(),
        };
        intercepts.iter().enumerate().map(part).collect()
    }

    /// The same for features as the schema encodes them, within [-1, 1], or as they are expanded: for rows that are not clipped,
    /// the score is the intercept and the weighted sum of these, and that of splines, if there are some ([`splines`](Self::splines)).
    pub fn affine(&self) -> Vec<Affine> {
        let mut outputs = self.scaled();
        let Some(map) = &self.rows else { return outputs };
        for Affine { intercept, weights } in &mut outputs {
            for ((w, scale), centre) in weights.iter_mut().zip(&map.scale).zip(&map.centre) {
                *w *= scale;
                *intercept -= *w * centre;
            }
        }
        outputs
    }

    /// The same for columns in their own units, categories as 0 and 1. None where features are expanded, as they are no sum of columns.
    pub fn natural(&self) -> Option<Vec<Affine>> {
        if self.expansion.is_some() || self.splines.is_some() {
            return None;
        }
        let mut outputs = self.affine();
        for Affine { intercept, weights } in &mut outputs {
            for (w, feature) in weights.iter_mut().zip(self.encoding.features()) {
                if let Kind::Number { centre, half_width } = feature.kind {
                    *w /= half_width;
                    *intercept -= *w * centre;
                }
            }
        }
        Some(outputs)
    }

    /// Whether [`affine`](Self::affine) is the whole of the prediction for a row of encoded features: the row is not clipped, no column
    /// of it winsorised, and the prediction not held to the range of the target.
    pub fn is_affine_at(&self, features: &[f64]) -> bool {
        let expanded = self.expansion.as_ref().map(|e| self.prepared.of(e).apply(features));
        let row = expanded.as_deref().unwrap_or(features);
        let inside = |map: &ColumnMap| {
            let columns = map.columns.iter().zip(features);
            columns
                .filter_map(|(c, x)| Some((c.as_ref()?, x)))
                .all(|(column, x)| (column.low..=column.high).contains(x))
        };
        let held = || {
            let said = self.link.apply(sum(&self.weights, features, self.intercept));
            self.held(said) != said
        };
        self.splines.is_none()
            && self.rows.as_ref().is_none_or(|map| map.keeps(row))
            && self.columns.as_ref().is_none_or(inside)
            && !(self.clamped && held())
    }
}
