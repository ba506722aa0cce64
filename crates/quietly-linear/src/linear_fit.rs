//! What a regression of winsorised columns gives.
use quietly_engine::{
    column_map::{ColumnMap, Tail},
    linalg::dot,
    link::Link,
    target_scaling::TargetScaling,
};

/// A linear or ReLU model of features as they are encoded, winsorised by a map if there is one.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearFit {
    pub link: Link,
    /// The weighted sum where all features are zero, in the target's own units.
    pub intercept: f64,
    /// One weight for every feature.
    pub weights: Vec<f64>,
    /// How features are winsorised first.
    pub map: Option<ColumnMap>,
    /// What lies beyond winsor intervals, with weights of its own.
    pub tails: Vec<Tail>,
    pub tail_weights: Vec<f64>,
    /// Predictions are held to this: the public range of the target.
    pub range: Option<(f64, f64)>,
    /// The released centre of the target.
    pub centre: f64,
    /// About the standard deviation of what the model leaves over; released. None where only a constant was learnt.
    pub residual_scale: Option<f64>,
}

impl LinearFit {
    /// A model without a map, as papers give it.
    pub fn plain(link: Link, (intercept, weights): (f64, Vec<f64>)) -> Self {
        LinearFit {
            link,
            intercept,
            weights,
            map: None,
            tails: Vec::new(),
            tail_weights: Vec::new(),
            range: None,
            centre: intercept,
            residual_scale: None,
        }
    }

    /// The prediction for an encoded row.
    pub fn predict(&self, row: &[f64]) -> f64 {
        let sum = match &self.map {
            None => dot(&self.weights, row),
            Some(map) => {
                let row = map.winsorised(row, &self.tails);
                let (columns, tails) = row.split_at(self.weights.len());
                dot(&self.weights, columns) + dot(&self.tail_weights, tails)
            }
        };
        let said = self.link.apply(self.intercept + sum);
        self.range.map_or(said, |(low, high)| said.clamp(low, high))
    }

    /// The same model in the target's own units, where this one is in units of its range.
    pub(crate) fn in_units(self, unit: &TargetScaling, range: (f64, f64)) -> Self {
        let (intercept, weights) = unit.decode(self.intercept, self.weights);
        let (centre, tail_weights) = unit.decode(self.centre, self.tail_weights);
        let scale = unit.decode(0.0, vec![1.0]).1[0];
        LinearFit {
            intercept,
            weights,
            tail_weights,
            centre,
            range: Some(range),
            residual_scale: self.residual_scale.map(|sd| sd * scale),
            ..self
        }
    }
}
