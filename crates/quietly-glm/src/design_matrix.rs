//! Rows in memory as the convex methods see them: bounded in norm, with a constant of their own, dense or sparse.
//!
//! A row is z = s·(x, c): features x, a constant c, and s = min(1, A/‖(x, c)‖₁, R/‖(x, c)‖₂), taken a little lower so that rounding
//! leaves ‖z‖₂ ≤ R. The null record is z = 0.
use std::ops::Range;

use quietly_engine::kernels::{SimdBlock, dispatch};

pub use self::{
    parts::in_parts,
    row::Row,
    sums::{Derivatives, rounding},
};

mod clipped_gradient_sum;
mod parts;
mod row;
mod sums;

/// Rows that are added up plainly before their sum is kept in two words: the depth of a sum.
pub(super) const RUN: usize = 32;
/// Fewer numbers than this are read before another thread has started.
const WORTH_A_THREAD: usize = 1 << 17;
/// Half an ulp of one.
const U: f64 = f64::EPSILON / 2.0;

/// Rows, bounded by a radius.
pub struct Examples<'a> {
    width: usize,
    features: Features<'a>,
    constant: f64,
    l1: f64,
    radius: f64,
    /// How every row measures, if that is kept.
    measures: Vec<Measure>,
    /// s of every row, if that is kept.
    scales: Vec<f64>,
    target: Vec<f64>,
    /// The places of records that were left out.
    nulls: Vec<usize>,
    threads: usize,
}

/// How features lie in memory; which of the two follows from the format of the file.
#[derive(Clone, Copy)]
pub enum Features<'a> {
    /// Row after row.
    Dense(&'a [f64]),
    /// What is not zero: the entries of row i are `starts[i]..starts[i + 1]`.
    Sparse { starts: &'a [usize], index: &'a [u32], values: &'a [f64] },
}

/// How a row measures before it is bounded by the radius.
#[derive(Clone, Copy)]
pub struct Measure {
    /// What the bound in the 1-norm leaves of it.
    cut: f64,
    /// The Euclidean norm of that; not below.
    pub norm: f64,
}

/// What rows are measured for once: targets as the loss wants them, how rows measure, and where null records were left out.
pub struct Measured {
    measures: Vec<Measure>,
    scales: Vec<f64>,
    /// What the scales hold rows to.
    radius: f64,
    target: Vec<f64>,
    nulls: Vec<usize>,
}

/// What every row of a table has, and how long it may be.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Features, without the constant.
    pub width: usize,
    /// The constant feature; zero for none.
    pub constant: f64,
    /// What no row's 1-norm exceeds, its constant included.
    pub l1: Option<f64>,
    /// What no row's Euclidean norm exceeds.
    pub radius: f64,
}

impl<'a> Examples<'a> {
    /// Rows of this shape. A target that is not a number makes a row the null record.
    pub fn new(shape: Shape, features: Features<'a>, target: Vec<f64>, threads: usize) -> Self {
        let mut examples = Examples::for_one_pass(shape, features, target, threads);
        let measures = in_parts(threads, 0..examples.rows(), |rows| {
            let mut measures = Vec::with_capacity(rows.len());
            dispatch(Measures { examples: &examples, rows, into: &mut measures });
            measures
        });
        examples.measures = measures.concat();
        examples.bounded_by(shape.radius)
    }

    /// The same for rows that are looked at once: they are measured as they come.
    pub fn for_one_pass(
        shape: Shape,
        features: Features<'a>,
        target: Vec<f64>,
        threads: usize,
    ) -> Self {
        let Shape { width, constant, l1, radius } = shape;
        let (measures, scales, nulls) = (Vec::new(), Vec::new(), Vec::new());
        let l1 = l1.unwrap_or(f64::INFINITY);
        Examples { width, features, constant, l1, radius, measures, scales, target, nulls, threads }
    }

    /// Rows of this shape that were measured before.
    ///
    /// # Panics
    ///
    /// If there are not as many.
    pub fn again(
        shape: Shape,
        features: Features<'a>,
        Measured { measures, scales, radius, target, nulls }: Measured,
        threads: usize,
    ) -> Self {
        let examples = Examples::for_one_pass(shape, features, target, threads);
        assert_eq!(measures.len(), examples.rows(), "every row was measured");
        Examples { measures, scales, radius, nulls, ..examples }
    }

    /// What was measured, for the next time.
    pub fn measured(self) -> Measured {
        let Examples { measures, scales, radius, target, nulls, .. } = self;
        Measured { measures, scales, radius, target, nulls }
    }

    /// The target of every row.
    pub fn targets(&self) -> impl Iterator<Item = &f64> {
        self.target.iter()
    }

    /// The same rows, held to a radius: measured before, or as they come.
    pub fn held_to(mut self, radius: f64) -> Self {
        if self.measures.is_empty() {
            self.radius = radius;
        }
        if self.radius == radius { self } else { self.bounded_by(radius) }
    }

    /// The same rows, bounded by another radius.
    pub fn bounded_by(mut self, radius: f64) -> Self {
        self.radius = radius;
        let scale = |(m, y): (&Measure, &f64)| scale(*m, *y, radius);
        self.scales = self.measures.iter().zip(&self.target).map(scale).collect();
        self
    }

    #[inline(always)]
    fn measure(&self, i: usize) -> Measure {
        // d squares and a root err by less than (d/2 + 4)·u of the norm.
        let margin = 1.0 + (self.width as f64 + 32.0) * f64::EPSILON;
        let (row, squares) = (self.row(i), self.row(i).square());
        let cut = match self.l1 {
            f64::INFINITY => 1.0,
            most => (most / ((row.size() + self.constant) * margin)).min(1.0),
        };
        Measure { cut, norm: cut * (squares + self.constant * self.constant).sqrt() * margin }
    }

    /// s of row i; zero for the null record.
    #[inline(always)]
    fn scale(&self, i: usize) -> f64 {
        match self.scales.get(i) {
            Some(scale) => *scale,
            None => scale(self.measure(i), self.target[i], self.radius),
        }
    }

    /// The same rows, beside null records that were left out at these places among all.
    pub fn without(mut self, nulls: Vec<usize>) -> Self {
        self.nulls = nulls;
        self
    }

    /// How many rows there are, but for null records that were left out.
    pub fn rows(&self) -> usize {
        self.target.len()
    }

    /// The rows at these places among all records. Places beyond the last record have none.
    ///
    /// Whatever becomes of one record, all others keep their place.
    pub fn at(&self, places: Range<usize>) -> Range<usize> {
        let upto = |place| {
            (place - self.nulls.partition_point(|&null| null < place).min(place)).min(self.rows())
        };
        upto(places.start)..upto(places.end)
    }

    /// How many numbers a row has, its constant among them.
    pub fn size(&self) -> usize {
        self.width + usize::from(self.constant != 0.0)
    }

    /// The target of row i.
    pub fn target(&self, i: usize) -> f64 {
        self.target[i]
    }

    /// Whether row i has no data term.
    pub fn is_null(&self, i: usize) -> bool {
        self.scale(i) == 0.0
    }

    /// About ‖z‖² of row i.
    pub fn square(&self, i: usize) -> f64 {
        let (scale, squares) = (self.scale(i), self.row(i).square());
        scale * scale * (squares + self.constant * self.constant)
    }

    /// How every row measures before it is bounded, with its constant.
    pub fn measures(&self) -> &[Measure] {
        &self.measures
    }

    /// Works on consecutive ranges of rows; the ranges follow from the number of rows alone.
    pub(super) fn in_parts<T: Send>(
        &self,
        rows: Range<usize>,
        work: impl Fn(Range<usize>) -> T + Sync,
    ) -> Vec<T> {
        let threads = if rows.len() * self.width < WORTH_A_THREAD { 1 } else { self.threads };
        in_parts(threads, rows, work)
    }

    #[inline(always)]
    fn row(&self, i: usize) -> Row<'_> {
        self.features.row(i, self.width)
    }

    /// ⟨w, z⟩ of row i; the weight of the constant is the last.
    #[inline(always)]
    pub fn score(&self, i: usize, w: &[f64]) -> f64 {
        self.scaled_score(i, self.scale(i), w)
    }

    #[inline(always)]
    fn scaled_score(&self, i: usize, scale: f64, w: &[f64]) -> f64 {
        let constant = if self.constant == 0.0 { 0.0 } else { self.constant * w[self.width] };
        scale * (self.row(i).dot(w) + constant)
    }

    /// y - u of every row that is no null record, with the score u of the row as it came: what predictions see.
    pub fn residuals(&self, w: &[f64]) -> Vec<f64> {
        let parts = self.in_parts(0..self.rows(), |rows| {
            let there = rows.filter(|&i| !self.is_null(i));
            there.map(|i| self.target[i] - self.scaled_score(i, 1.0, w)).collect::<Vec<f64>>()
        });
        parts.concat()
    }

    /// sum += c·z
    pub fn add_to(&self, i: usize, c: f64, sum: &mut [f64]) {
        self.add_scaled(i, c * self.scale(i), sum);
    }

    /// sum += c·(x, constant)
    #[inline(always)]
    fn add_scaled(&self, i: usize, c: f64, sum: &mut [f64]) {
        self.row(i).add_to(c, sum);
        if self.constant != 0.0 {
            sum[self.width] += c * self.constant;
        }
    }
}

/// s of a row: what brings it within the radius, and makes it the null record if its target is no number.
#[inline(always)]
fn scale(measure: Measure, target: f64, radius: f64) -> f64 {
    let Measure { cut, norm } = measure;
    match target.is_nan() {
        true => 0.0,
        // A quotient and its products with features err by at most 4u.
        false if norm > radius => cut * (radius / norm) * (1.0 - 4.0 * f64::EPSILON),
        false => cut,
    }
}

/// The measures of some rows.
struct Measures<'a> {
    examples: &'a Examples<'a>,
    rows: Range<usize>,
    into: &'a mut Vec<Measure>,
}

impl SimdBlock for Measures<'_> {
    #[inline(always)]
    fn run(self) {
        self.into.extend(self.rows.map(|i| self.examples.measure(i)));
    }
}
