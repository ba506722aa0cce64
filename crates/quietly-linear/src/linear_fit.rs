//! What a regression of winsorised columns gives.
use quietly_engine::{
    bends::{Bends, CachedBender, MOST_FEATURES, MOST_FUNCTIONS},
    column_map::{ColumnMap, Tail},
    linalg::dot,
    link::Link,
    target_scaling::TargetScaling,
};
use serde::{Deserialize, Serialize};

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
    /// What is added to the held prediction of the linear model, and then held again.
    pub bends: Option<FittedBends>,
}

/// Bends of columns and pairs with their weights, beside a map of columns that has ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FittedBends {
    /// How many cosines a column has.
    pub functions: usize,
    /// The features whose products are taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<(usize, usize)>,
    /// Which cosines of a pair are multiplied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub products: Vec<(usize, usize)>,
    /// One for every feature of a bent row.
    pub weights: Vec<f64>,
    /// t, what the gate multiplies them with.
    pub kept: f64,
    #[serde(skip)]
    prepared: CachedBender,
}

impl FittedBends {
    pub(crate) fn new(bends: Bends, weights: Vec<f64>, kept: f64) -> Self {
        let Bends { functions, pairs, products, .. } = bends;
        let prepared = CachedBender::default();
        FittedBends { functions, pairs, products, weights, kept, prepared }
    }

    /// The bends of a map of columns.
    pub fn of(&self, map: &ColumnMap) -> Bends {
        let (pairs, products) = (self.pairs.clone(), self.products.clone());
        Bends::new(map.clone(), self.functions, pairs, products)
    }

    /// What they add to the prediction for an encoded row.
    pub fn predict(&self, map: &ColumnMap, row: &[f64]) -> f64 {
        let bender = self.prepared.get(|| self.of(map));
        self.kept * dot(&self.weights, &bender.apply(row))
    }

    /// Whether they may stand in a file beside this map of rows with so many features.
    pub fn fits(&self, map: &ColumnMap, width: usize) -> bool {
        let few = self.functions <= MOST_FUNCTIONS && self.pairs.len() <= MOST_FEATURES;
        if !few || map.columns.len() != width {
            return false;
        }
        let inside = |&(i, j): &(usize, usize)| i < width && j < width;
        if !self.pairs.iter().all(inside) {
            return false;
        }
        let bends = self.of(map);
        bends.fits(width)
            && bends.pairs.len() == self.pairs.len()
            && bends.width() == self.weights.len()
            && self.weights.iter().all(|w| w.is_finite())
            && self.kept > 0.0
            && self.kept <= 1.0
    }
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
            bends: None,
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
        let held = |said: f64| self.range.map_or(said, |(low, high)| said.clamp(low, high));
        let said = held(self.link.apply(self.intercept + sum));
        match (&self.bends, &self.map) {
            (Some(bends), Some(map)) => held(said + bends.predict(map, row)),
            _ => said,
        }
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
            bends: self.bends.map(|bends| FittedBends {
                weights: bends.weights.iter().map(|w| w * scale).collect(),
                ..bends
            }),
            ..self
        }
    }
}
