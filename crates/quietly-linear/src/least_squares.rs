//! Least squares without privacy: what ε = ∞ gives, and what a private model is compared with.
//!
//! Linear: ordinary least squares with an intercept. ReLU: least squares through max(u, 0), started
//! by GLMtron. Sums are floating-point here, but taken in a fixed order, so that the same table gives
//! the same bits for any number of threads.
use std::sync::atomic::{AtomicUsize, Ordering};

use quietly_core::{
    budget::Budget,
    mechanism::{Sampler, Stage},
};
use quietly_data::Table;
use quietly_engine::{
    algorithm::{Access, Algorithm, Run, Shape, rows_used},
    error::Error,
    linalg::eigen,
    link::Link,
};
use serde::{Deserialize, Serialize};

/// Rows are summed in at most so many blocks, fixed by their number, so that the order of all additions is.
const BLOCKS: usize = 32;

/// Least squares without noise: what ε = ∞ asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeastSquares {
    /// Linear or ReLU.
    pub link: Link,
}

impl LeastSquares {
    pub fn new(link: Link) -> Self {
        LeastSquares { link }
    }
}

impl Algorithm for LeastSquares {
    type Fitted = (f64, Vec<f64>);

    fn sampler(&self, _: Shape) -> Sampler {
        Sampler::FullBatch
    }

    fn stages(&self, _: Shape, _: Budget, _: f64) -> Vec<Stage> {
        Vec::new()
    }

    fn check(&self, _: Shape, budget: Budget) -> Result<(), Error> {
        self.link.check_least_squares()?;
        Ok(budget.check_not_private()?)
    }

    fn access(&self) -> Access {
        Access::Rows
    }

    fn fit(&self, run: Run<'_, '_>) -> Result<(f64, Vec<f64>), Error> {
        let table = run.backend.rows()?.map(|rows| rows.dense());
        run.releaser.count_rows(run.plan, run.shape.rows, table.as_ref().map(|t| rows_used(t)))?;
        let threads = run.releaser.threads();
        Ok(run.releaser.non_private(table, |table| fit(table, self.link, threads)))
    }
}

/// (intercept, weights) of the least-squares fit. Where columns are constant or repeat each other, the
/// smallest weights that fit best.
pub fn fit(table: &Table, link: Link, threads: usize) -> (f64, Vec<f64>) {
    let problem = Problem::new(table, threads);
    let mut w = vec![0.0; problem.size()];
    let all = problem.solver(&w, |_| true);
    match link {
        Link::Linear => {
            // Each round repairs what rounding left over of the one before.
            for _ in 0..4 {
                let step = all.solve(&problem.gradient(&w, |u, y| y - u));
                add(&mut w, &step, 1.0);
            }
        }
        Link::Relu => relu(&problem, &all, &mut w),
        other => other.not_least_squares(),
    }
    problem.unscale(&w)
}

/// GLMtron until it hardly moves, then Newton's method on the active rows, which is exact where
/// their set no longer changes; a step that does not help is halved.
fn relu(problem: &Problem, all: &Solver, w: &mut Vec<f64>) {
    for _ in 0..200 {
        // The pseudo-gradient's curvature is that of all rows where all are active, and half of it for symmetric
        // features: 3/2 contracts at least twofold in either case, where 2 would swing for ever in the first.
        let step = all.solve(&problem.gradient(w, |u, y| y - u.max(0.0)));
        add(w, &step, 1.5);
        if norm(&step) <= 1e-6 * (1.0 + norm(w)) {
            break;
        }
    }
    let mut loss = problem.loss(w);
    for _ in 0..100 {
        let active = problem.solver(w, |u| u > 0.0);
        let gradient = problem.gradient(w, |u, y| if u > 0.0 { y - u } else { 0.0 });
        let step = active.solve(&gradient);
        let mut share = 1.0;
        let (next, lower) = loop {
            let mut next = w.clone();
            add(&mut next, &step, share);
            let lower = problem.loss(&next);
            if lower <= loss || share < 1e-6 {
                break (next, lower);
            }
            share *= 0.5;
        };
        if lower > loss {
            break;
        }
        let done = share * norm(&step) <= 1e-13 * (1.0 + norm(w));
        (*w, loss) = (next, lower);
        if done {
            break;
        }
    }
}

/// The table with columns centred and scaled, for the sake of rounding, and a constant.
struct Problem<'a> {
    table: &'a Table,
    threads: usize,
    centre: Vec<f64>,
    scale: Vec<f64>,
}

/// The pseudo-inverse of a second moment.
struct Solver {
    size: usize,
    values: Vec<f64>,
    vectors: Vec<f64>,
}

impl<'a> Problem<'a> {
    fn new(table: &'a Table, threads: usize) -> Self {
        let width = table.width();
        let mut problem =
            Problem { table, threads, centre: vec![0.0; width], scale: vec![1.0; width] };
        let n = (table.rows() as f64).max(1.0);
        let sums = problem.fold(width, |row, _, sums| {
            sums.iter_mut().zip(row).for_each(|(s, x)| *s += x);
        });
        problem.centre = sums.iter().map(|s| s / n).collect();
        let squares = problem.fold(width, |row, _, sums| {
            sums.iter_mut().zip(row).for_each(|(s, x)| *s += x * x);
        });
        // A column that does not vary (beyond rounding) is left out: the constant stands for it.
        let scale = |s: &f64| {
            let spread = (s / n).sqrt();
            if spread > 1e-12 { 1.0 / spread } else { 0.0 }
        };
        problem.scale = squares.iter().map(scale).collect();
        problem
    }

    fn size(&self) -> usize {
        self.table.width() + 1
    }

    /// Sums over rows, block by block in order; rows come centred and scaled.
    fn fold(&self, size: usize, add: impl Fn(&[f64], f64, &mut [f64]) + Sync) -> Vec<f64> {
        let width = self.table.width();
        let length = self.table.rows().div_ceil(BLOCKS).max(1);
        let blocks = self.table.rows().div_ceil(length);
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            let mut row = vec![0.0; width];
            loop {
                let block = next.fetch_add(1, Ordering::Relaxed);
                if block >= blocks {
                    return done;
                }
                let mut sums = vec![0.0; size];
                for i in block * length..((block + 1) * length).min(self.table.rows()) {
                    let raw = &self.table.features()[i * width..(i + 1) * width];
                    for (j, x) in raw.iter().enumerate() {
                        row[j] = (x - self.centre[j]) * self.scale[j];
                    }
                    add(&row, self.table.target()[i], &mut sums);
                }
                done.push((block, sums));
            }
        };
        let mut parts = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..self.threads.max(1)).map(|_| scope.spawn(work)).collect();
            workers
                .into_iter()
                .flat_map(|w| w.join().expect("sums do not panic"))
                .collect::<Vec<_>>()
        });
        parts.sort_by_key(|(block, _)| *block);
        let mut total = vec![0.0; size];
        for (_, sums) in parts {
            add_to(&mut total, &sums);
        }
        total
    }

    /// Σ c(u, y)·(x, 1).
    fn gradient(&self, w: &[f64], c: impl Fn(f64, f64) -> f64 + Sync) -> Vec<f64> {
        let width = self.table.width();
        self.fold(width + 1, |row, y, sums| {
            let c = c(dot(row, w) + w[width], y);
            sums.iter_mut().zip(row).for_each(|(s, x)| *s += c * x);
            sums[width] += c;
        })
    }

    fn loss(&self, w: &[f64]) -> f64 {
        let width = self.table.width();
        self.fold(1, |row, y, sums| sums[0] += ((dot(row, w) + w[width]).max(0.0) - y).powi(2))[0]
    }

    /// The pseudo-inverse of Σ (x, 1)(x, 1)ᵀ over rows whose weighted sum is `counted`.
    fn solver(&self, w: &[f64], counted: impl Fn(f64) -> bool + Sync) -> Solver {
        let (width, size) = (self.table.width(), self.size());
        let mut matrix = self.fold(size * size, |row, _, sums| {
            if counted(dot(row, w) + w[width]) {
                for (j, x) in row.iter().enumerate() {
                    let line = &mut sums[j * size..(j + 1) * size];
                    line[j..width].iter_mut().zip(&row[j..]).for_each(|(s, z)| *s += x * z);
                    line[width] += x;
                }
                sums[size * size - 1] += 1.0;
            }
        });
        for j in 0..size {
            for k in 0..j {
                matrix[j * size + k] = matrix[k * size + j];
            }
        }
        let (values, vectors) = eigen(&matrix, size);
        Solver { size, values, vectors }
    }

    /// The weights for the table's own columns.
    fn unscale(&self, w: &[f64]) -> (f64, Vec<f64>) {
        let weights: Vec<f64> = w.iter().zip(&self.scale).map(|(w, s)| w * s).collect();
        (w[self.table.width()] - dot(&weights, &self.centre), weights)
    }
}

impl Solver {
    fn solve(&self, b: &[f64]) -> Vec<f64> {
        let most = self.values.iter().copied().fold(0.0, f64::max);
        let mut x = vec![0.0; self.size];
        for (value, vector) in self.values.iter().zip(self.vectors.chunks_exact(self.size)) {
            if *value > most * 1e-13 * self.size as f64 {
                add(&mut x, vector, dot(vector, b) / value);
            }
        }
        x
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

fn add(w: &mut [f64], step: &[f64], share: f64) {
    w.iter_mut().zip(step).for_each(|(w, s)| *w += share * s);
}

fn add_to(total: &mut [f64], part: &[f64]) {
    add(total, part, 1.0);
}
