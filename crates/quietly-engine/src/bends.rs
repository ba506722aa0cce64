//! Bends: what is made of the numbers of a row so that a weighted sum can bend, in the ranks of each column.
//!
//! With u = F(x) the rank of a number in its column, φ_k = √2·cos(πk·u) for k = 1, 2, … is an orthonormal system: few
//! functions bend a column wherever its values lie, and no second moment is needed to bring them to one size. Products
//! φ_k(u)·φ_l(v) bend a pair of columns. What lies beyond the interval that a column is cut to is a feature of its own, so
//! that the cut takes nothing from the span of the column.
//!
//! F is piecewise linear on cells of equal width ([`MappedColumn::ranks`]). Here cos(πF) is stored at the ends of the cells
//! and is linear between them; the other cosines are Chebyshev polynomials of it. So a row costs one look-up for each
//! column, no function of the C library is called for it, and every machine computes the same bits.
//!
//! A map of bends depends on released values alone. It is no expansion of the schema: a fit releases it first.
//!
//! docs/spec/default.md#5.3
use std::{ops::Range, sync::OnceLock};

use serde::{Deserialize, Serialize};

pub use self::base::Base;
use crate::column_map::{ColumnMap, MappedColumn};

mod base;

/// The most cosines of a column.
pub const MOST_FUNCTIONS: usize = 16;
/// The most features of a row with bends.
pub const MOST_FEATURES: usize = 1 << 14;

/// What is made of a row: its features as the map of columns leaves them, tails and cosines of columns, products of pairs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bends {
    /// How each feature of the row comes in: those without a map come in as they are, and do not bend.
    pub map: ColumnMap,
    /// K: how many cosines a column has.
    pub functions: usize,
    /// The features whose products are taken, each pair once.
    pub pairs: Vec<(usize, usize)>,
    /// Which cosines of a pair are multiplied: (k, l) is φ_k of the first times φ_l of the second.
    pub products: Vec<(usize, usize)>,
}

/// Features of a bent row that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// What they are made of.
    pub of: BlockOf,
    /// Which features they are.
    pub range: Range<usize>,
}

/// What a block of features is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockOf {
    /// All features of the row, cut, centred and scaled.
    Linear,
    /// Tails and cosines of this feature.
    Column(usize),
    /// Products of these two.
    Pair(usize, usize),
}

impl Bends {
    /// The bends of all columns of a map that are not constant.
    pub fn new(
        map: ColumnMap,
        functions: usize,
        pairs: Vec<(usize, usize)>,
        products: Vec<(usize, usize)>,
    ) -> Self {
        let bent = |j: &usize| map.columns[*j].as_ref().is_some_and(|column| !column.constant);
        let pairs = pairs.into_iter().filter(|(i, j)| bent(i) && bent(j)).collect();
        Bends { map, functions, pairs, products }
    }

    /// How many features a row has before.
    pub fn inputs(&self) -> usize {
        self.map.columns.len()
    }

    /// How many features a row has after.
    pub fn width(&self) -> usize {
        self.blocks().last().map_or(0, |block| block.range.end)
    }

    /// A feature that bends.
    fn bent(&self, feature: usize) -> Option<&MappedColumn> {
        self.map.columns[feature].as_ref().filter(|column| !column.constant)
    }

    /// All features, in order: those of the row, then each column, then each pair.
    pub fn blocks(&self) -> Vec<Block> {
        let mut blocks = vec![Block { of: BlockOf::Linear, range: 0..self.inputs() }];
        let mut from = self.inputs();
        let mut add = |of: BlockOf, count: usize| {
            blocks.push(Block { of, range: from..from + count });
            from += count;
        };
        for feature in 0..self.inputs() {
            if let Some(column) = self.bent(feature) {
                add(BlockOf::Column(feature), tails(column) + self.functions);
            }
        }
        for &(i, j) in &self.pairs {
            add(BlockOf::Pair(i, j), self.products.len());
        }
        blocks
    }

    /// How large the weight of each feature is expected to be beside that of the linear ones: 1/k for φ_k, 1/(2kl) for
    /// φ_k·φ_l, one for tails.
    pub fn scales(&self) -> Vec<f64> {
        let mut scales = vec![1.0; self.inputs()];
        for feature in 0..self.inputs() {
            if let Some(column) = self.bent(feature) {
                scales.extend((0..tails(column)).map(|_| 1.0));
                scales.extend((1..=self.functions).map(|k| 1.0 / k as f64));
            }
        }
        for _ in &self.pairs {
            scales.extend(self.products.iter().map(|(k, l)| 0.5 / (k * l) as f64));
        }
        scales
    }

    /// Whether there are such bends of rows with so many features: for what comes from files.
    pub fn fits(&self, inputs: usize) -> bool {
        let known = |&(k, l): &(usize, usize)| {
            (1..=self.functions).contains(&k) && (1..=self.functions).contains(&l)
        };
        let bends = |j: usize| j < inputs && self.bent(j).is_some();
        let ranked = |column: &MappedColumn| !column.ranks.is_empty();
        self.map.fits(inputs)
            && self.map.columns.iter().flatten().all(ranked)
            && self.functions <= MOST_FUNCTIONS
            && self.pairs.len().saturating_mul(self.products.len().max(1)) <= MOST_FEATURES
            && self.products.iter().all(known)
            && self.pairs.iter().all(|&(i, j)| i != j && bends(i) && bends(j))
    }
}

/// How many tails a column has.
fn tails(column: &MappedColumn) -> usize {
    let (below, above) = column.has_tails();
    usize::from(below) + usize::from(above)
}

/// Bends at work: the cosines of cells are computed.
#[derive(Clone, Debug)]
pub struct Bender {
    bends: Bends,
    /// cos(πF) at the ends of the cells of every feature that bends.
    cosines: Vec<Option<Vec<f64>>>,
    width: usize,
}

impl Bender {
    pub fn new(bends: &Bends) -> Self {
        let cosines = |feature: usize| {
            let column = bends.bent(feature)?;
            let cosine = |u: &f64| libm::cos(std::f64::consts::PI * u);
            Some(column.ranks.iter().map(cosine).collect())
        };
        Bender {
            cosines: (0..bends.inputs()).map(cosines).collect(),
            width: bends.width(),
            bends: bends.clone(),
        }
    }

    /// How many features a row has before.
    pub fn inputs(&self) -> usize {
        self.cosines.len()
    }

    /// How many it has after.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Writes the features of a bent row.
    ///
    /// # Panics
    ///
    /// If a length does not fit.
    pub fn fill(&self, row: &[f64], into: &mut [f64]) {
        assert_eq!((row.len(), into.len()), (self.inputs(), self.width), "room for every feature");
        let Bends { map, functions, pairs, products } = &self.bends;
        let mut at = row.len();
        // Where the cosines of a feature begin.
        let mut first = vec![0; row.len()];
        for (j, (&x, column)) in row.iter().zip(&map.columns).enumerate() {
            let Some(column) = column else {
                into[j] = x;
                continue;
            };
            into[j] = column.standardise(x);
            let Some(cosines) = &self.cosines[j] else { continue };
            let (there, tails) = (column.has_tails(), column.tails(x));
            for (is_there, tail) in [(there.0, tails.0), (there.1, tails.1)] {
                if is_there {
                    into[at] = tail;
                    at += 1;
                }
            }
            first[j] = at;
            chebyshev(between(cosines, x), &mut into[at..at + functions]);
            at += functions;
        }
        for &(i, j) in pairs {
            for &(k, l) in products {
                into[at] = into[first[i] + k - 1] * into[first[j] + l - 1];
                at += 1;
            }
        }
    }

    /// The features of a bent row.
    pub fn apply(&self, row: &[f64]) -> Vec<f64> {
        let mut bent = vec![0.0; self.width];
        self.fill(row, &mut bent);
        bent
    }
}

/// The value at x of a function that is linear between the ends of equal cells of [-1, 1]. A number beyond them counts as
/// the nearer end.
fn between(ends: &[f64], x: f64) -> f64 {
    let cells = ends.len() - 1;
    // As a cast: what is not a number is the first cell, at its beginning.
    let at = ((x + 1.0) * 0.5 * cells as f64).clamp(0.0, cells as f64);
    let cell = (at as usize).min(cells - 1);
    let part = if at.is_nan() { 0.0 } else { at - cell as f64 };
    ends[cell] + part * (ends[cell + 1] - ends[cell])
}

/// √2·T_k(c) for k = 1, 2, …, where T_k(cos a) = cos(k·a).
fn chebyshev(c: f64, into: &mut [f64]) {
    let (mut before, mut here) = (1.0, c);
    for into in into {
        *into = std::f64::consts::SQRT_2 * here;
        (before, here) = (here, 2.0 * c * here - before);
    }
}

/// A bender that is made when it is first needed. Whatever holds one is compared without it.
#[derive(Clone, Debug, Default)]
pub struct CachedBender(OnceLock<Bender>);

impl CachedBender {
    /// The bender of the bends that `make` gives, always the same ones.
    pub fn get(&self, make: impl FnOnce() -> Bends) -> &Bender {
        self.0.get_or_init(|| Bender::new(&make()))
    }
}

impl PartialEq for CachedBender {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::column_tree::CELLS;

    /// A column whose rank is u = ((x + 1)/2)^power, cut to these ends.
    fn column(power: f64, low: f64, high: f64) -> MappedColumn {
        let rank = |k: usize| (k as f64 / CELLS as f64).powf(power);
        let ranks = (0..=CELLS).map(rank).collect();
        MappedColumn { low, high, centre: 0.1, sd: 0.5, ranks, constant: false }
    }

    fn bends() -> Bends {
        let columns = vec![Some(column(1.0, -1.0, 1.0)), None, Some(column(2.0, -0.5, 0.75))];
        Bends::new(ColumnMap { columns }, 3, vec![(0, 2)], vec![(1, 1), (2, 1)])
    }

    /// Against the definition, number by number.
    #[test]
    fn a_bent_row_is_what_the_specification_says() {
        let bends = bends();
        assert!(bends.fits(3) && !bends.fits(2));
        assert_eq!(bends.width(), 3 + 3 + (2 + 3) + 2);
        let bender = Bender::new(&bends);
        let phi = |k: f64, u: f64| 2f64.sqrt() * (std::f64::consts::PI * k * u).cos();
        for (x, z) in [(0.3, 0.9), (-1.0, -1.0), (1.0, 1.0), (0.11, -0.77), (7.0, -7.0)] {
            let (u, v) = (rank(1.0, x), rank(2.0, z));
            let cut = |x: f64, low: f64, high: f64| (x.clamp(low, high) - 0.1) / 0.5;
            let held = z.clamp(-1.0, 1.0);
            let below = (held.min(-0.5) + 0.5) / 0.5;
            let above = (held.max(0.75) - 0.75) / 0.25;
            let want = [
                cut(x, -1.0, 1.0),
                0.25,
                cut(z, -0.5, 0.75),
                phi(1.0, u),
                phi(2.0, u),
                phi(3.0, u),
                below,
                above,
                phi(1.0, v),
                phi(2.0, v),
                phi(3.0, v),
                phi(1.0, u) * phi(1.0, v),
                phi(2.0, u) * phi(1.0, v),
            ];
            for (got, want) in bender.apply(&[x, 0.25, z]).iter().zip(want) {
                // A chord of a cell of 1/4096 is off by its curvature: (9π²·2)/8·4096⁻².
                assert!((got - want).abs() < 1e-5, "{x} {z}: {got} {want}");
            }
        }
        assert_eq!(bender.apply(&[f64::NAN; 3])[3], 2f64.sqrt());
    }

    fn rank(power: f64, x: f64) -> f64 {
        (0.5 * (x.clamp(-1.0, 1.0) + 1.0)).powf(power)
    }

    /// In ranks, φ are orthonormal and have mean 0: the reason for this choice.
    #[test]
    fn bends_are_orthonormal_over_ranks() {
        let columns = vec![Some(column(1.0, -1.0, 1.0))];
        let bender = Bender::new(&Bends::new(ColumnMap { columns }, 8, vec![], vec![]));
        let points = 20_000;
        let mut gram = vec![0.0; 81];
        for i in 0..points {
            let x = 2.0 * (i as f64 + 0.5) / points as f64 - 1.0;
            let mut z = bender.apply(&[x]);
            z[0] = 1.0;
            for (k, a) in z.iter().enumerate() {
                z.iter().enumerate().for_each(|(l, b)| gram[9 * k + l] += a * b / points as f64);
            }
        }
        for (at, g) in gram.iter().enumerate() {
            let want = if at / 9 == at % 9 { 1.0 } else { 0.0 };
            assert!((g - want).abs() < 1e-5, "{at}: {g}");
        }
    }

    #[test]
    fn scales_and_blocks_go_with_features() {
        let bends = bends();
        let blocks = bends.blocks();
        let of: Vec<BlockOf> = blocks.iter().map(|block| block.of).collect();
        let want = [BlockOf::Linear, BlockOf::Column(0), BlockOf::Column(2), BlockOf::Pair(0, 2)];
        assert_eq!(of, want);
        assert!(blocks.windows(2).all(|two| two[0].range.end == two[1].range.start));
        let scales = bends.scales();
        assert_eq!(scales.len(), bends.width());
        assert_eq!(&scales[3..], &[1.0, 0.5, 1. / 3., 1.0, 1.0, 1.0, 0.5, 1. / 3., 0.5, 0.25]);
        // A constant column stays in the linear part alone, and its pairs go.
        let mut map = bends.map.clone();
        map.columns[0].as_mut().unwrap().constant = true;
        let fewer = Bends::new(map, 3, vec![(0, 2)], vec![(1, 1)]);
        assert_eq!((fewer.width(), fewer.pairs.len()), (3 + 5, 0));
    }

    #[test]
    fn what_files_could_break_is_refused() {
        let good = bends();
        let broken: [fn(&mut Bends); 6] = [
            |b| b.pairs.push((0, 1)),
            |b| b.pairs.push((0, 3)),
            |b| b.products.push((4, 1)),
            |b| b.products.push((0, 1)),
            |b| b.functions = 1 << 20,
            |b| b.map.columns[0].as_mut().unwrap().sd = 0.0,
        ];
        for change in broken {
            let mut bad = good.clone();
            change(&mut bad);
            assert!(!bad.fits(3));
        }
    }
}
