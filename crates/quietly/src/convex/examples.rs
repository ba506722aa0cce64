//! Rows in memory as the convex methods see them: bounded in norm, with a constant of their own, dense or sparse.
//!
//! A row is z = s·(x, c): features x, a constant c, and s = min(1, A/‖(x, c)‖₁, R/‖(x, c)‖₂), taken a little lower so that rounding
//! leaves ‖z‖₂ ≤ R. The null record is z = 0.
use std::{
    ops::Range,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use super::{
    double::{Double, two_sum},
    glm::Glm,
};

mod clipped;

/// Rows that are added up plainly before their sum is kept in two words: the depth of a sum.
pub(super) const RUN: usize = 32;
/// A sum is made of at most so many parts, in one order whatever the number of threads.
const PARTS: usize = 64;
/// Half an ulp of one.
const U: f64 = f64::EPSILON / 2.0;

/// Rows, bounded by a radius.
pub(crate) struct Examples<'a> {
    width: usize,
    features: Features<'a>,
    constant: f64,
    /// What the bound in the 1-norm leaves of a row.
    cuts: Vec<f64>,
    /// The Euclidean norm of that; not below.
    norms: Vec<f64>,
    scales: Vec<f64>,
    radius: f64,
    target: Vec<f64>,
    /// The places of records that were left out.
    nulls: Vec<usize>,
    threads: usize,
}

/// How features lie in memory; which of the two follows from the format of the file.
#[derive(Clone, Copy)]
pub(crate) enum Features<'a> {
    /// Row after row.
    Dense(&'a [f64]),
    /// What is not zero: the entries of row i are `starts[i]..starts[i + 1]`.
    Sparse { starts: &'a [usize], index: &'a [u32], values: &'a [f64] },
}

/// What every row of a table has, and how long it may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Features, without the constant.
    pub(crate) width: usize,
    /// The constant feature; zero for none.
    pub(crate) constant: f64,
    /// What no row's 1-norm exceeds, its constant included.
    pub(crate) l1: Option<f64>,
    /// What no row's Euclidean norm exceeds.
    pub(crate) radius: f64,
}

/// The features of one row.
#[derive(Clone, Copy)]
pub(crate) enum Row<'a> {
    Dense(&'a [f64]),
    Sparse(&'a [u32], &'a [f64]),
}

impl Row<'_> {
    /// ⟨w, x⟩: any order of d products errs by at most d·u·‖w‖·‖x‖.
    #[inline(always)]
    pub(crate) fn dot(self, w: &[f64]) -> f64 {
        match self {
            Row::Dense(x) => {
                let (mut lanes, (xs, x_rest), (ws, w_rest)) =
                    ([0.0; 4], x.as_chunks::<4>(), w[..x.len()].as_chunks::<4>());
                for (x, w) in xs.iter().zip(ws) {
                    for lane in 0..4 {
                        lanes[lane] += x[lane] * w[lane];
                    }
                }
                let rest: f64 = x_rest.iter().zip(w_rest).map(|(x, w)| x * w).sum();
                (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]) + rest
            }
            Row::Sparse(index, values) => {
                index.iter().zip(values).map(|(&j, x)| w[j as usize] * x).sum()
            }
        }
    }

    /// sum += c·x
    #[inline(always)]
    pub(crate) fn add_to(self, c: f64, sum: &mut [f64]) {
        match self {
            Row::Dense(x) => sum.iter_mut().zip(x).for_each(|(s, x)| *s += c * x),
            Row::Sparse(index, values) => {
                index.iter().zip(values).for_each(|(&j, x)| sum[j as usize] += c * x);
            }
        }
    }

    /// Every entry that may be other than zero.
    pub(crate) fn entries(self) -> impl Iterator<Item = (usize, f64)> {
        let (dense, sparse) = match self {
            Row::Dense(x) => (Some(x), None),
            Row::Sparse(index, values) => (None, Some(index.iter().zip(values))),
        };
        let dense = dense.into_iter().flat_map(|x| x.iter().copied().enumerate());
        dense.chain(sparse.into_iter().flatten().map(|(&j, &x)| (j as usize, x)))
    }
}

/// By how much rounding may move [`Examples::gradient`] of so many rows at weights of this norm, in the Euclidean norm.
///
/// A score of `size` products errs by (size + 4)u·‖w‖R and moves the slope by `bend` times that; the slope itself and its
/// products err by at most 12u of it; a run of rows by RUN·u of all that is added, and the rest is kept in two words.
pub(crate) fn rounding(glm: Glm, radius: f64, size: usize, rows: f64, weights: f64) -> f64 {
    let slope = glm.steepest * (RUN as f64 + 16.0);
    let score = glm.bend * (size as f64 + 8.0) * weights * radius;
    1.01 * U * rows * radius * (slope + score)
}

/// Works on consecutive ranges of rows; the ranges follow from the number of rows alone.
pub(crate) fn in_parts<T: Send>(
    threads: usize,
    all: Range<usize>,
    work: impl Fn(Range<usize>) -> T + Sync,
) -> Vec<T> {
    let (start, rows) = (all.start, all.len());
    let part = rows.div_ceil(PARTS).next_multiple_of(RUN).max(16 * RUN);
    let parts = rows.div_ceil(part);
    let next = AtomicUsize::new(0);
    let run = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= parts {
                return done;
            }
            let end = rows.min((at + 1) * part);
            done.push((at, work(start + at * part..start + end)));
        }
    };
    let mut all: Vec<(usize, T)> = thread::scope(|scope| {
        let others = threads.min(parts).saturating_sub(1);
        let handles: Vec<_> = (0..others).map(|_| scope.spawn(run)).collect();
        let mut all = run();
        for handle in handles {
            all.extend(handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        all
    });
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, part)| part).collect()
}

impl<'a> Features<'a> {
    /// Row i of `width` features.
    #[inline(always)]
    pub(crate) fn row(self, i: usize, width: usize) -> Row<'a> {
        match self {
            Features::Dense(all) => Row::Dense(&all[i * width..][..width]),
            Features::Sparse { starts, index, values } => {
                let range = starts[i]..starts[i + 1];
                Row::Sparse(&index[range.clone()], &values[range])
            }
        }
    }
}

impl<'a> Examples<'a> {
    /// Rows of this shape. A target that is not a number makes a row the null record.
    pub(crate) fn new(
        shape: Shape,
        features: Features<'a>,
        target: Vec<f64>,
        threads: usize,
    ) -> Self {
        let Shape { width, constant, l1, radius } = shape;
        let mut examples = Examples {
            width,
            features,
            constant,
            cuts: Vec::new(),
            norms: Vec::new(),
            scales: Vec::new(),
            radius,
            target,
            nulls: Vec::new(),
            threads,
        };
        // d squares and a root err by less than (d/2 + 4)·u of the norm.
        let margin = 1.0 + (width as f64 + 32.0) * f64::EPSILON;
        let cut = |i: usize| {
            let sum: f64 = examples.row(i).entries().map(|(_, x)| x.abs()).sum();
            let most = l1.unwrap_or(f64::INFINITY);
            (most / ((sum + constant) * margin)).min(1.0)
        };
        examples.cuts = (0..examples.rows()).map(cut).collect();
        let norm = |i: usize| {
            let squares: f64 = examples.row(i).entries().map(|(_, x)| x * x).sum();
            examples.cuts[i] * (squares + constant * constant).sqrt() * margin
        };
        examples.norms = (0..examples.rows()).map(norm).collect();
        examples.bounded_by(radius)
    }

    /// The same rows, bounded by another radius.
    pub(crate) fn bounded_by(mut self, radius: f64) -> Self {
        let scale = |((norm, cut), y): ((&f64, &f64), &f64)| match y.is_nan() {
            true => 0.0,
            // A quotient and its products with features err by at most 4u.
            false if *norm > radius => cut * (radius / norm) * (1.0 - 4.0 * f64::EPSILON),
            false => *cut,
        };
        self.scales = self.norms.iter().zip(&self.cuts).zip(&self.target).map(scale).collect();
        self.radius = radius;
        self
    }

    /// The same rows, beside null records that were left out at these places among all.
    pub(crate) fn without(mut self, nulls: Vec<usize>) -> Self {
        self.nulls = nulls;
        self
    }

    /// How many rows there are, but for null records that were left out.
    pub(crate) fn rows(&self) -> usize {
        self.target.len()
    }

    /// The rows at these places among all records. Places beyond the last record have none.
    ///
    /// Whatever becomes of one record, all others keep their place.
    pub(crate) fn at(&self, places: Range<usize>) -> Range<usize> {
        let upto = |place| {
            (place - self.nulls.partition_point(|&null| null < place).min(place)).min(self.rows())
        };
        upto(places.start)..upto(places.end)
    }

    /// How many numbers a row has, its constant among them.
    pub(crate) fn size(&self) -> usize {
        self.width + usize::from(self.constant != 0.0)
    }

    /// The target of row i.
    pub(crate) fn target(&self, i: usize) -> f64 {
        self.target[i]
    }

    /// Whether row i has no data term.
    pub(crate) fn is_null(&self, i: usize) -> bool {
        self.scales[i] == 0.0
    }

    /// About ‖z‖² of row i.
    pub(crate) fn square(&self, i: usize) -> f64 {
        let squares: f64 = self.row(i).entries().map(|(_, x)| x * x).sum();
        self.scales[i] * self.scales[i] * (squares + self.constant * self.constant)
    }

    /// The norm of every row before it was bounded, with its constant; not below.
    pub(crate) fn norms(&self) -> &[f64] {
        &self.norms
    }

    #[inline(always)]
    fn row(&self, i: usize) -> Row<'_> {
        self.features.row(i, self.width)
    }

    /// ⟨w, z⟩ of row i; the weight of the constant is the last.
    #[inline(always)]
    pub(crate) fn score(&self, i: usize, w: &[f64]) -> f64 {
        let constant = if self.constant == 0.0 { 0.0 } else { self.constant * w[self.width] };
        self.scales[i] * (self.row(i).dot(w) + constant)
    }

    /// sum += c·z
    #[inline(always)]
    pub(crate) fn add_to(&self, i: usize, c: f64, sum: &mut [f64]) {
        let c = c * self.scales[i];
        self.row(i).add_to(c, sum);
        if self.constant != 0.0 {
            sum[self.width] += c * self.constant;
        }
    }

    /// Σ slope·z over some rows at weights `w`, one slope for every output, in one order.
    pub(crate) fn gradient(&self, glm: Glm, w: &[f64], rows: Range<usize>) -> Vec<f64> {
        let size = self.size();
        self.weighted(glm.outputs(), rows, |i, slopes| {
            for (slope, w) in slopes.iter_mut().zip(w.chunks_exact(size)) {
                *slope = self.score(i, w);
            }
            glm.slopes(slopes, self.target[i]);
        })
    }

    /// Σ slope·z over some rows, for slopes that `slopes` writes, in one order. Null records are left out.
    #[inline(always)]
    pub(crate) fn weighted(
        &self,
        outputs: usize,
        rows: Range<usize>,
        write: impl Fn(usize, &mut [f64]) + Sync,
    ) -> Vec<f64> {
        let size = self.size();
        let parts = in_parts(self.threads, rows, |range| {
            let mut total = vec![Double::default(); outputs * size];
            let (mut run, mut slopes) = (vec![0.0; outputs * size], vec![0.0; outputs]);
            for start in range.clone().step_by(RUN) {
                for i in start..range.end.min(start + RUN) {
                    if self.is_null(i) {
                        continue;
                    }
                    write(i, &mut slopes);
                    for (slope, run) in slopes.iter().zip(run.chunks_exact_mut(size)) {
                        self.add_to(i, *slope, run);
                    }
                }
                for (total, run) in total.iter_mut().zip(&mut run) {
                    let (hi, lo) = two_sum(total.hi, std::mem::take(run));
                    *total = Double { hi, lo: total.lo + lo };
                }
            }
            total
        });
        let mut total = vec![Double::default(); outputs * size];
        for part in parts {
            total.iter_mut().zip(part).for_each(|(total, part)| *total = *total + part);
        }
        total.iter().map(|x| x.hi + x.lo).collect()
    }

    /// The same in two words: every error is below 2⁻⁸⁰ of what it was.
    pub(crate) fn gradient_in_double(
        &self,
        glm: Glm,
        w: &[Double],
        rows: Range<usize>,
    ) -> (Vec<Double>, f64) {
        let (outputs, size) = (glm.outputs(), self.size());
        let count = rows.len() as f64;
        let parts = in_parts(self.threads, rows, |range| {
            let mut total = vec![Double::default(); outputs * size];
            let mut slopes = vec![Double::default(); outputs];
            for i in range.filter(|&i| self.scales[i] != 0.0) {
                let scale = Double::from(self.scales[i]);
                let entries = || {
                    let constant = (self.constant != 0.0).then_some((self.width, self.constant));
                    self.row(i).entries().chain(constant)
                };
                for (slope, w) in slopes.iter_mut().zip(w.chunks_exact(size)) {
                    let dot = entries().fold(Double::default(), |s, (j, x)| s + w[j] * x.into());
                    *slope = dot * scale;
                }
                glm.slopes_in_double(&mut slopes, self.target[i]);
                for (slope, total) in slopes.iter().zip(total.chunks_exact_mut(size)) {
                    let c = *slope * scale;
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
        // A running sum of so many rows; slopes are good to 2⁻⁸⁰.
        let slope = glm.steepest * (count * 2f64.powi(-96) + 2f64.powi(-80));
        let score = glm.bend * (size as f64 + 8.0) * norm * self.radius * 2f64.powi(-96);
        (total, count * self.radius * (slope + score))
    }

    /// Works on consecutive ranges of rows; the ranges follow from the number of rows alone.
    pub(super) fn in_parts<T: Send>(
        &self,
        all: Range<usize>,
        work: impl Fn(Range<usize>) -> T + Sync,
    ) -> Vec<T> {
        in_parts(self.threads, all, work)
    }

    /// About the second derivative of the sum at `w`, from at most `most` rows spread evenly; row by row, symmetric.
    ///
    /// Nothing depends on its being right but speed.
    pub(crate) fn curvature(
        &self,
        glm: Glm,
        w: &[f64],
        rows: Range<usize>,
        most: usize,
    ) -> Vec<f64> {
        let (outputs, size) = (glm.outputs(), self.size());
        let (all, count) = (outputs * size, rows.len());
        let taken = count.min(most);
        let parts = in_parts(self.threads, 0..taken, |range| {
            let mut matrix = vec![0.0; all * all];
            let (mut scores, mut bends) = (vec![0.0; outputs], vec![0.0; outputs * outputs]);
            let mut z: Vec<(usize, f64)> = Vec::new();
            for i in range.map(|k| rows.start + k * count / taken) {
                if self.scales[i] == 0.0 {
                    continue;
                }
                for (score, w) in scores.iter_mut().zip(w.chunks_exact(size)) {
                    *score = self.score(i, w);
                }
                glm.bends(&scores, self.target[i], &mut bends);
                z.clear();
                z.extend(self.row(i).entries().filter(|(_, x)| *x != 0.0));
                if self.constant != 0.0 {
                    z.push((self.width, self.constant));
                }
                let square = self.scales[i] * self.scales[i] * count as f64 / taken as f64;
                for (a, b) in (0..outputs).flat_map(|a| (0..outputs).map(move |b| (a, b))) {
                    let bend = square * bends[a * outputs + b];
                    for &(j, x) in &z {
                        let line = &mut matrix[(a * size + j) * all + b * size..][..size];
                        let factor = bend * x;
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
