//! What an additive regression makes of one column, and of two: curves and maps in the columns' own units.
//!
//! Before it is held to the range of the target, a prediction is a sum: one function of every column, one of every pair, and a
//! constant. All of it is in the model file, and no table is read. Functions of a column have mean 0 over its released ranks.
use quietly_data::Kind;
use quietly_engine::{
    bends::{Bender, Bends, BlockOf},
    column_map::{MappedColumn, Tail},
    linalg::dot,
};

use super::Model;

/// What a column adds to the prediction.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Curve {
    /// The number of the encoded feature.
    pub feature: usize,
    /// Values over the interval that the column is cut to and a tenth beyond, within its public range, in its own units.
    pub at: Vec<f64>,
    /// What each adds, in units of the target.
    pub adds: Vec<f64>,
    /// What the linear part of that adds: a straight line between the ends of the column's interval.
    pub linear: Vec<f64>,
}

/// What two columns add together, beside what each adds by itself.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PairMap {
    /// The numbers of the encoded features.
    pub features: (usize, usize),
    /// Values of the first, as in a [`Curve`].
    pub first: Vec<f64>,
    /// Values of the second.
    pub second: Vec<f64>,
    /// What they add: for the first value of the first with every value of the second, and so on.
    pub adds: Vec<f64>,
}

/// How much of the variance of predictions each part has: shares that add up to one.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct VarianceShares {
    /// Of each encoded feature that bends.
    pub columns: Vec<(usize, f64)>,
    /// Of each pair, beside those of its columns.
    pub pairs: Vec<((usize, usize), f64)>,
}

/// The functions that a prediction is a sum of.
struct Parts<'a> {
    model: &'a Model,
    bends: Bends,
    bender: Bender,
    weights: Vec<f64>,
}

impl Model {
    /// The encoded features that bend: none in a model without bends.
    pub fn bent_features(&self) -> Vec<usize> {
        let of_column = |of| match of {
            BlockOf::Column(feature) => Some(feature),
            _ => None,
        };
        self.parts().map_or_else(Vec::new, |parts| {
            parts.bends.blocks().into_iter().filter_map(|block| of_column(block.of)).collect()
        })
    }

    /// The pairs of encoded features that bend together.
    pub fn bent_pairs(&self) -> Vec<(usize, usize)> {
        self.bends.as_ref().map_or_else(Vec::new, |bends| bends.pairs.clone())
    }

    /// What a column that bends adds to the prediction, at `points` places. None of other features.
    pub fn curve(&self, feature: usize, points: usize) -> Option<Curve> {
        let parts = self.parts()?;
        let column = parts.column(feature)?;
        let at = grid(column, points);
        let centred = |adds: &dyn Fn(f64) -> f64| -> Vec<f64> {
            let mean = mean_square(column, adds).0;
            at.iter().map(|x| adds(*x) - mean).collect()
        };
        let adds = centred(&|x| parts.of_column(feature, x));
        let linear = centred(&|x| parts.linear(feature, x));
        Some(Curve { feature, at: self.natural_values(feature, &at), adds, linear })
    }

    /// What a pair adds beside the curves of its columns, at `points` times `points` places. None of other pairs.
    pub fn pair_map(&self, (i, j): (usize, usize), points: usize) -> Option<PairMap> {
        let parts = self.parts()?;
        let pair = parts.bends.pairs.iter().find(|pair| **pair == (i, j) || **pair == (j, i))?;
        let places = |feature| Some(grid(parts.column(feature)?, points));
        let (first, second) = (places(i)?, places(j)?);
        let both = first.iter().flat_map(|x| second.iter().map(move |z| (*x, *z)));
        let adds = both.map(|(x, z)| parts.of_pair(*pair, ((i, x), (j, z)))).collect();
        let (first, second) = (self.natural_values(i, &first), self.natural_values(j, &second));
        Some(PairMap { features: (i, j), first, second, adds })
    }

    /// How much of the variance of predictions each column and pair that bends has, by released ranks, as if columns were
    /// independent. Categories are left out.
    pub fn shares_of_variance(&self) -> VarianceShares {
        let Some(parts) = self.parts() else { return Default::default() };
        let VarianceShares { mut columns, mut pairs } = Default::default();
        for block in parts.bends.blocks() {
            match block.of {
                BlockOf::Linear => {}
                BlockOf::Column(feature) => {
                    let column = parts.column(feature).expect("it bends");
                    let (mean, square) = mean_square(column, &|x| parts.of_column(feature, x));
                    columns.push((feature, (square - mean * mean).max(0.0)));
                }
                // Products of orthonormal functions are orthonormal.
                BlockOf::Pair(i, j) => {
                    let weights = &parts.weights[block.range];
                    pairs.push(((i, j), dot(weights, weights)));
                }
            }
        }
        let each = columns.iter().map(|part| part.1).chain(pairs.iter().map(|part| part.1));
        let all = each.sum::<f64>().max(f64::MIN_POSITIVE);
        columns.iter_mut().for_each(|part| part.1 /= all);
        pairs.iter_mut().for_each(|part| part.1 /= all);
        VarianceShares { columns, pairs }
    }

    fn parts(&self) -> Option<Parts<'_>> {
        let (fitted, map) = (self.bends.as_ref()?, self.columns.as_ref()?);
        let bends = fitted.of(map);
        let weights = fitted.weights.iter().map(|w| fitted.kept * w).collect();
        Some(Parts { model: self, bender: Bender::new(&bends), bends, weights })
    }

    /// Values within [-1, 1] of an encoded feature, in the units of its column.
    fn natural_values(&self, feature: usize, at: &[f64]) -> Vec<f64> {
        match self.encoding.features()[feature].kind {
            Kind::Number { centre, half_width } => {
                at.iter().map(|x| centre + half_width * x).collect()
            }
            _ => at.to_vec(),
        }
    }
}

impl Parts<'_> {
    fn column(&self, feature: usize) -> Option<&MappedColumn> {
        self.bends.map.columns.get(feature)?.as_ref().filter(|column| !column.constant)
    }

    /// What a column at x adds, but for a constant.
    fn of_column(&self, feature: usize, x: f64) -> f64 {
        let mut row = vec![0.0; self.bends.inputs()];
        row[feature] = x;
        let bent = self.bender.apply(&row);
        let blocks = self.bends.blocks();
        let own = blocks.iter().find(|block| block.of == BlockOf::Column(feature));
        let own = own.expect("it bends").range.clone();
        let bend =
            self.weights[feature] * bent[feature] + dot(&self.weights[own.clone()], &bent[own]);
        self.linear(feature, x) + bend
    }

    /// What the linear model adds for a column at x.
    fn linear(&self, feature: usize, x: f64) -> f64 {
        let column = self.column(feature).expect("it bends");
        let tail = |(tail, w): (&Tail, &f64)| {
            let (below, above) = column.tails(x);
            if tail.feature == feature { w * if tail.above { above } else { below } } else { 0.0 }
        };
        let tails = self.model.tails.iter().zip(&self.model.tail_weights).map(tail);
        self.model.weights[feature] * column.winsorise(x) + tails.sum::<f64>()
    }

    /// What two columns at these values add together.
    fn of_pair(&self, pair: (usize, usize), values: ((usize, f64), (usize, f64))) -> f64 {
        let mut row = vec![0.0; self.bends.inputs()];
        for (feature, value) in [values.0, values.1] {
            row[feature] = value;
        }
        let bent = self.bender.apply(&row);
        let blocks = self.bends.blocks();
        let own = blocks.iter().find(|block| block.of == BlockOf::Pair(pair.0, pair.1));
        let own = own.expect("it bends").range.clone();
        dot(&self.weights[own.clone()], &bent[own])
    }
}

/// The mean and the mean square of what a column adds, over its released ranks.
fn mean_square(column: &MappedColumn, adds: &dyn Fn(f64) -> f64) -> (f64, f64) {
    let cells = column.ranks.len() - 1;
    let (mut mean, mut square) = (0.0, 0.0);
    for (k, ends) in column.ranks.windows(2).enumerate() {
        let mass = ends[1] - ends[0];
        if mass > 0.0 {
            let adds = adds(-1.0 + 2.0 * (k as f64 + 0.5) / cells as f64);
            mean += mass * adds;
            square += mass * adds * adds;
        }
    }
    (mean, square)
}

/// So many places over the interval of a column and a tenth of it beyond, within [-1, 1].
fn grid(column: &MappedColumn, points: usize) -> Vec<f64> {
    let beyond = 0.1 * (column.high - column.low);
    let (low, high) = ((column.low - beyond).max(-1.0), (column.high + beyond).min(1.0));
    let last = points.max(2) - 1;
    (0..=last).map(|k| low + (high - low) * k as f64 / last as f64).collect()
}
