//! Features winsorised, centred and scaled, with tails behind them: what rows go through before a public map.
use serde::{Deserialize, Serialize};

use super::ColumnMap;
use crate::kernels::{Affine, Map};

/// What a category is multiplied with, and what a standard deviation of a number becomes.
const HALF: f64 = 0.5;

/// x becomes (clip(x, low, high) - shift)·scale, feature by feature. Tails follow, with the scale of their features: over the length of
/// their part of a wide range they would drown in the noise of a second moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Standardise {
    pub low: Vec<f64>,
    pub high: Vec<f64>,
    pub shift: Vec<f64>,
    pub scale: Vec<f64>,
    pub tails: Vec<Tail>,
}

/// What a feature has beyond one end of its winsor interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tail {
    pub feature: usize,
    pub above: bool,
}

impl ColumnMap {
    /// The map of rows: numbers have about standard deviation ½, categories stay. With tails, those of all numbers that have any.
    pub fn standardise(&self, tails: bool) -> Standardise {
        let width = self.columns.len();
        let mut made = Standardise {
            low: vec![-1.0; width],
            high: vec![1.0; width],
            shift: vec![0.0; width],
            scale: vec![1.0; width],
            tails: Vec::new(),
        };
        for (feature, column) in self.columns.iter().enumerate() {
            let Some(column) = column else { continue };
            (made.low[feature], made.high[feature]) = (column.low, column.high);
            (made.shift[feature], made.scale[feature]) = (column.centre, HALF / column.sd);
            let (below, above) = column.has_tails();
            let there = [(below, false), (above, true)].into_iter().filter(|t| tails && t.0);
            made.tails.extend(there.map(|(_, above)| Tail { feature, above }));
        }
        made
    }

    /// The features of a row, winsorised but not scaled, and then these tails, over the public length of their parts of the range.
    pub fn winsorised(&self, row: &[f64], tails: &[Tail]) -> Vec<f64> {
        let held = |(x, column): (&f64, &Option<super::MappedColumn>)| {
            column.as_ref().map_or(*x, |column| column.winsorise(*x))
        };
        let mut made: Vec<f64> = row.iter().zip(&self.columns).map(held).collect();
        made.extend(tails.iter().map(|tail| {
            let (below, above) = self.columns[tail.feature]
                .as_ref()
                .map_or((0.0, 0.0), |c| c.tails(row[tail.feature]));
            if tail.above { above } else { below }
        }));
        made
    }
}

impl Standardise {
    /// Rows of so many features as they are.
    pub fn nothing(width: usize) -> Self {
        let ends = |end: f64| vec![end; width];
        let (low, high, shift, scale) = (ends(-1.0), ends(1.0), ends(0.0), ends(1.0));
        Standardise { low, high, shift, scale, tails: Vec::new() }
    }

    /// The same less this mean of what comes out of it. Tails stay.
    #[must_use]
    pub fn centred(mut self, mean: &[f64]) -> Self {
        for ((shift, scale), mean) in self.shift.iter_mut().zip(&self.scale).zip(mean) {
            *shift = (*shift + mean / scale).clamp(-1.0, 1.0);
        }
        self
    }

    /// How many features a row has after it.
    pub fn width(&self) -> usize {
        self.low.len() + self.tails.len()
    }

    /// Weights of winsorised features and tails as they are, from those of standardised ones, and what that adds to the intercept.
    pub fn unmap(&self, mut weights: Vec<f64>) -> (Vec<f64>, f64) {
        let mut constant = 0.0;
        for ((w, shift), scale) in weights.iter_mut().zip(&self.shift).zip(&self.scale) {
            *w *= scale;
            constant -= *w * shift;
        }
        for (w, tail) in weights[self.low.len()..].iter_mut().zip(&self.tails) {
            *w *= self.tail_scale(*tail) * self.length(*tail);
        }
        (weights, constant)
    }

    /// The public length of the part of the range that a tail has.
    fn length(&self, tail: Tail) -> f64 {
        let (low, high) = (self.low[tail.feature], self.high[tail.feature]);
        if tail.above { 1.0 - high } else { low + 1.0 }
    }

    /// What a tail is multiplied with: as its feature, so that it does not drown in the noise of a second moment, but no tail is
    /// longer than a usual row: where long rows are cut, the second moment would hide how steep they are.
    fn tail_scale(&self, tail: Tail) -> f64 {
        let usual = HALF * (self.low.len() as f64).sqrt();
        self.scale[tail.feature].min(usual / self.length(tail))
    }

    /// This, and then another map.
    pub(crate) fn then<M: Map>(&self, map: M) -> Then<'_, M> {
        assert_eq!(map.table_width(), self.width(), "a map for these features");
        Then { first: self, map }
    }

    /// This and then an affine map in one, which has no room for tails.
    pub(crate) fn affine(&self, shift: &[f64], scale: &[f64], constant: f64) -> Affine {
        assert!(self.tails.is_empty(), "rows with tails are cached");
        let shift = |j: usize| self.shift[j] + shift[j] / self.scale[j];
        let scale = |j: usize| self.scale[j] * scale[j];
        let columns = 0..self.low.len();
        let shifts: Vec<f64> = columns.clone().map(shift).collect();
        let scales: Vec<f64> = columns.map(scale).collect();
        Affine::new(&shifts, &scales, constant).within(&self.low, &self.high)
    }

    fn apply(&self, row: &[f64], into: &mut [f64]) {
        let (columns, tails) = into.split_at_mut(row.len());
        for (j, into) in columns.iter_mut().enumerate() {
            *into = (row[j].max(self.low[j]).min(self.high[j]) - self.shift[j]) * self.scale[j];
        }
        for (tail, into) in self.tails.iter().zip(tails) {
            let (x, low, high) =
                (row[tail.feature], self.low[tail.feature], self.high[tail.feature]);
            let beyond = match tail.above {
                true => (x.min(1.0) - high).max(0.0),
                false => (x.max(-1.0) - low).min(0.0),
            };
            *into = beyond * self.tail_scale(*tail);
        }
    }
}

/// Standardised rows under a map.
pub(crate) struct Then<'a, M> {
    first: &'a Standardise,
    map: M,
}

impl<M: Map> Map for Then<'_, M> {
    fn table_width(&self) -> usize {
        self.first.low.len()
    }

    fn width(&self) -> usize {
        self.map.width()
    }

    #[inline(always)]
    fn fill(&self, rows: &[f64], into: &mut [[f32; 4]], stride: usize) {
        let (before, after) = (self.first.low.len(), self.first.width());
        let count = into.len() / stride;
        let mut standardised = vec![0.0; count * after];
        for (row, into) in rows.chunks_exact(before).zip(standardised.chunks_exact_mut(after)) {
            self.first.apply(row, into);
        }
        self.map.fill(&standardised, into, stride);
    }
}
