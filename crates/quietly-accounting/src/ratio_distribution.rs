//! Distributions of likelihood ratios, bounded from above and below by a few atoms.
//!
//! # Proof: bounds on ratio distributions
//!
//! *Statement.* For [`Side::Above`] (below), the δ of a [`RatioDistribution`] is at least (at most)
//! that of the composition or average it stands for, in both directions and at every ε.
//!
//! *Notation.* For a pair (P, Q), S = P/Q is a positive variable of mean one under Q. Its
//! distribution determines both directions: δ(P ‖ Q) = E(S - e^ε)₊ and δ(Q ‖ P) = E(1 - e^ε S)₊.
//!
//! 1. Independent mechanisms multiply their ratios. Random allocation averages them.
//! 2. Both expectations are convex in S, and in each factor (or summand) for fixed others.
//! 3. So a distribution on a few atoms gives an upper bound if the mass was spread out at equal
//!    mean, and a lower bound if it was merged to its mean, **for any grid**. The grid only decides
//!    how close the bounds are.
//!
//! *Method.* Two distributions are combined pair by pair on a grid fitted to the result. All terms
//! are positive, so every tail keeps its relative accuracy. Repeated doubling gives t-fold
//! combinations. Spreading onto a grid of spacing g adds at most g²/4 to a variance, so n points
//! cost a relative 1/n², and a few hundred suffice.
//!
//! *Rounding.* A mass is a sum of at most 2n positive products, so one doubling adds less than 2n +
//! 4 units relative to twice the earlier error. For t copies that is below t·(2n + 4)·U, taken with
//! n ≤ 4000 as `MASS`·t. A position gains 4 units per doubling (and doubles them in a product):
//! below t·`POSITION`. Both are charged on the safe side.
use std::cmp::Ordering;

use crate::{
    normal::positive,
    pld_grid::{LossCells, Side},
};

/// Atoms at increasing positions.
#[derive(Clone, Debug)]
pub(crate) struct RatioDistribution {
    position: Vec<f64>,
    mass: Vec<f64>,
    /// P-mass that was truncated at the top and has infinite loss.
    truncated: f64,
    /// The number of single distributions that were combined.
    times: f64,
}

const MASS: f64 = 1e-12;
const POSITION: f64 = 4e-15;
/// No position lies above: Q(S > CEILING) ≤ 1/CEILING, and what P loses by moving it down is added
/// to `truncated`.
pub(crate) const CEILING: f64 = 1e150;
/// The least position besides zero, so that no product of two underflows. A smaller one moves to
/// zero for a bound from above (which lowers S by a mean below FLOOR), and up to FLOOR for a bound
/// from below (which raises S by a mean below FLOOR).
pub(crate) const FLOOR: f64 = 1e-140;

/// How two ratios combine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Sum,
    Product,
}

impl Operation {
    #[inline(always)]
    fn of(self, x: f64, y: f64) -> f64 {
        match self {
            Operation::Sum => x + y,
            Operation::Product => x * y,
        }
    }
}

impl RatioDistribution {
    pub(crate) fn new(position: Vec<f64>, mass: Vec<f64>, truncated: f64) -> RatioDistribution {
        RatioDistribution { position, mass, truncated, times: 1.0 }
    }

    /// The distribution of `times` independent copies combined.
    pub(crate) fn repeat(
        &self,
        times: u64,
        operation: Operation,
        points: usize,
        delta: f64,
        side: Side,
    ) -> RatioDistribution {
        let mut all = self.clone();
        let mut left = combinations(times);
        for bit in (0..times.ilog2()).rev() {
            // The mass beyond the fine part of a grid counts once for every use of the
            // distribution.
            let uses = match operation {
                Operation::Sum => 1.0,
                Operation::Product => (times >> bit) as f64 / times as f64,
            };
            left -= 1;
            all = combine(&all, &all, operation, points, delta * uses * beyond(left), side);
            if times >> bit & 1 == 1 {
                left -= 1;
                all = combine(&all, self, operation, points, delta * uses * beyond(left), side);
            }
        }
        all
    }

    pub(crate) fn scale(&mut self, factor: f64) {
        self.position.iter_mut().for_each(|x| *x *= factor);
    }

    /// The values below which `tail` of the mass lies, and above which `tail` of the mean lies.
    fn range(&self, tail: f64) -> (f64, f64) {
        let (mut mass, mut mean) = (0.0, 0.0);
        let whole: f64 = self.position.iter().zip(&self.mass).map(|(x, p)| x * p).sum();
        let low = self.position.iter().zip(&self.mass).find(|(_, p)| {
            mass += **p;
            mass > tail
        });
        let high = self.position.iter().zip(&self.mass).rev().find(|(x, p)| {
            mean += **x * **p;
            mean > tail * whole
        });
        (low.map_or(0.0, |l| *l.0), high.map_or(f64::MAX, |h| *h.0))
    }

    /// δ(ε) of the unit's presence against its absence.
    pub(crate) fn delta_removed(&self, epsilon: f64, side: Side) -> f64 {
        let level = epsilon.exp();
        let truncated = if side == Side::Above { self.truncated } else { 0.0 };
        self.expect(side, 1.0, |x| x - level) + truncated
    }

    /// δ(ε) of the unit's absence against its presence.
    pub(crate) fn delta_added(&self, epsilon: f64, side: Side) -> f64 {
        // The cap keeps 0·∞ from occurring; no position but zero is that small.
        let level = epsilon.exp().min(1e300);
        self.expect(side, -1.0, |x| 1.0 - level * x)
    }

    /// Σ mass·(value)₊, with positions and masses rounded to the safe side.
    fn expect(&self, side: Side, sign: f64, value: impl Fn(f64) -> f64) -> f64 {
        let out = if side == Side::Above { 1.0 } else { -1.0 };
        let shift = 1.0 + out * sign * POSITION * self.times;
        let terms =
            self.position.iter().zip(&self.mass).map(|(x, p)| p * positive(value(x * shift)));
        terms.sum::<f64>() * (1.0 + out * MASS * self.times)
    }

    /// The loss on a grid, in one direction. The largest losses, up to a mass of `tail`, count as
    /// infinite: they may be the far ends of spread masses and would mislead the tilt.
    ///
    /// `None` if no loss is finite (the ratios are above [`CEILING`]) or if one is NaN: then there
    /// is no bound.
    pub(crate) fn cells(
        &self,
        removed: bool,
        side: Side,
        step: f64,
        tail: f64,
    ) -> Option<LossCells> {
        let sign = if side == Side::Above { self.times } else { -self.times };
        let (shift, scale) = (sign * POSITION, 1.0 + sign * MASS);
        let loss = |(x, p): (&f64, &f64)| match removed {
            true => (x.ln() + shift, p * x * scale),
            false => (-x.ln() + shift, p * scale),
        };
        let pairs = self.position.iter().zip(&self.mass).filter(|(_, p)| **p != 0.0);
        let mut atoms: Vec<(f64, f64)> = pairs.map(loss).filter(|(_, m)| *m != 0.0).collect();
        if atoms.iter().any(|(loss, mass)| loss.is_nan() || mass.is_nan()) {
            return None;
        }
        // Increasing losses. Zero, an atom of spread distributions, has an infinite loss in one
        // direction and no weight in the other.
        if !removed {
            atoms.reverse();
        }
        let mut infinite = if removed { self.truncated } else { 0.0 };
        while let Some(&(l, m)) = atoms.last() {
            if l == f64::INFINITY || (atoms.len() > 1 && infinite + m <= tail) {
                infinite += m;
                atoms.pop();
            } else {
                break;
            }
        }
        let (low, high) = (atoms.first()?.0, atoms.last()?.0);
        let first = (low / step).floor() as i64 - 1;
        let count = ((high / step).ceil() as i64 + 1 - first) as usize;
        let mut cells = LossCells::empty(step, first, count);
        for (loss, mass) in atoms {
            cells.add_atom(loss, mass);
        }
        cells.over_excess = if side == Side::Above { infinite } else { 0.0 };
        cells.meet = cells.heaviest();
        Some(cells)
    }
}

/// The number of combinations for `times` copies.
pub(crate) fn combinations(times: u64) -> u32 {
    times.ilog2() + times.count_ones() - 1
}

/// The share of δ that may lie beyond the fine part of a grid when `left` combinations follow. It
/// at most doubles with each, so a factor of three keeps it below the share of the next grid.
fn beyond(left: u32) -> f64 {
    1e-6 * 3.0_f64.powi(-(left as i32))
}

/// The share of δ that may be truncated from a single distribution of which `times` are combined.
pub(crate) fn truncation_share(times: u64, operation: Operation) -> f64 {
    let uses = if operation == Operation::Product { times as f64 } else { 1.0 };
    beyond(combinations(times) + 1) / uses
}

/// The distribution of the combination of two independent ratios.
fn combine(
    a: &RatioDistribution,
    b: &RatioDistribution,
    operation: Operation,
    points: usize,
    tail: f64,
    side: Side,
) -> RatioDistribution {
    let least = if side == Side::Above { 0.0 } else { FLOOR };
    let grid = fitted_grid(a, b, operation, points, tail, least);
    let last = grid.len() - 2;
    let inverse: Vec<f64> = grid.windows(2).map(|w| 1.0 / (w[1] - w[0])).collect();
    let (cells, above) = match operation {
        Operation::Sum => gather(a, b, &grid, least, |x, y| x + y),
        Operation::Product => gather(a, b, &grid, least, |x, y| x * y),
    };
    let times = a.times + b.times;
    // A mean of truncated distributions has lost the mean of what they lost; a product, at most the
    // sum.
    let truncated = match operation {
        Operation::Sum => a.truncated.max(b.truncated) + above / times,
        Operation::Product => a.truncated + b.truncated + above,
    };
    match side {
        Side::Above => {
            let mut mass = vec![0.0; grid.len()];
            for k in 0..=last {
                let (m, mut up) = (cells[k].0, (cells[k].1 * inverse[k]).clamp(0.0, cells[k].0));
                // A mass at the upper end must leave no rounding error at the lower end, which may
                // be zero.
                if m - up < 8.0 * f64::EPSILON * m {
                    up = m;
                }
                mass[k] += m - up;
                mass[k + 1] += up;
            }
            RatioDistribution { position: grid, mass, truncated, times }
        }
        Side::Below => {
            let filled = (0..=last).filter(|&k| cells[k].0 > 0.0);
            let (position, mass) =
                filled.map(|k| (grid[k] + cells[k].1 / cells[k].0, cells[k].0)).unzip();
            RatioDistribution { position, mass, truncated, times }
        }
    }
}

/// Rows that [`gather`] walks side by side. Each walk depends on its own last step only, so the
/// processor overlaps them.
const ROWS: usize = 4;

/// Assigns all pairs of atoms to grid cells: per cell the mass, and the distance of the mean from
/// the cell's lower end; and the mean of what was above [`CEILING`]. For a fixed atom of `a` the
/// combinations increase with the atom of `b`, so the cell is found by walking upwards.
fn gather(
    a: &RatioDistribution,
    b: &RatioDistribution,
    grid: &[f64],
    least: f64,
    of: impl Fn(f64, f64) -> f64 + Sync,
) -> (Vec<(f64, f64)>, f64) {
    // Always the same two parts of about equal work, so that the sums do not depend on the machine.
    let n = a.mass.len();
    let share = if std::ptr::eq(a, b) { 0.3 } else { 0.5 };
    let middle = (n as f64 * share) as usize / ROWS * ROWS;
    let walk = |rows| walk(a, b, grid, least, &of, rows);
    let (left, right) = if n < 256 {
        (walk(0..middle), walk(middle..n))
    } else {
        std::thread::scope(|scope| {
            let right = scope.spawn(|| walk(middle..n));
            (walk(0..middle), right.join().expect("accounting does not panic"))
        })
    };
    let sum = |(l, r): (&(f64, f64), &(f64, f64))| (l.0 + r.0, l.1 + r.1);
    (left.0.iter().zip(&right.0).map(sum).collect(), left.1 + right.1)
}

/// A cell of a grid and its contents: per row the mass, and the distance of the mean from the lower
/// end.
#[derive(Clone, Copy)]
struct Cell {
    low: f64,
    high: f64,
    rows: [[f64; 2]; ROWS],
}

/// [`gather`] for some of the atoms of `a`.
fn walk(
    a: &RatioDistribution,
    b: &RatioDistribution,
    grid: &[f64],
    least: f64,
    of: &(impl Fn(f64, f64) -> f64 + Sync),
    rows: std::ops::Range<usize>,
) -> (Vec<(f64, f64)>, f64) {
    let cell = |w: &[f64]| Cell { low: w[0], high: w[1], rows: [[0.0; 2]; ROWS] };
    let mut cells: Vec<Cell> = grid.windows(2).map(cell).collect();
    // Nothing lies above the last cell.
    cells[grid.len() - 2].high = f64::INFINITY;
    let same = std::ptr::eq(a, b);
    let (mut start, mut above) = (0, 0.0);
    for first in rows.clone().step_by(ROWS) {
        let count = ROWS.min(rows.end - first);
        let from = if same { first } else { 0 };
        while cells[start].high < of(a.position[first], b.position[from]) {
            start += 1;
        }
        let mut x = [0.0; ROWS];
        let mut weight = [0.0; ROWS];
        x[..count].copy_from_slice(&a.position[first..first + count]);
        weight[..count].copy_from_slice(&a.mass[first..first + count]);
        let mut places = [start; ROWS];
        // A distribution with itself: each pair of different atoms counts twice, from the lower one
        // only.
        let diagonal = if same { first + ROWS } else { 0 };
        let twice = weight.map(|w| if same { 2.0 * w } else { w });
        for (j, (position, mass)) in b.position.iter().zip(&b.mass).enumerate().skip(from) {
            let w: [f64; ROWS] = match j < diagonal {
                true => std::array::from_fn(|row| match j.cmp(&(first + row)) {
                    Ordering::Less => 0.0,
                    Ordering::Equal => weight[row] * mass,
                    Ordering::Greater => twice[row] * mass,
                }),
                false => twice.map(|w| w * mass),
            };
            let mut y = x.map(|x| of(x, *position));
            if y[count - 1] > CEILING {
                above += (0..ROWS).map(|r| w[r] * positive(y[r] - CEILING)).sum::<f64>();
                y = y.map(|y| y.min(CEILING));
            }
            for row in 0..ROWS {
                let y = if y[row] < FLOOR { least } else { y[row] };
                let mut k = places[row];
                k += (cells[k].high < y) as usize;
                while cells[k].high < y {
                    k += 1;
                }
                places[row] = k;
                let cell = &mut cells[k];
                cell.rows[row][0] += w[row];
                cell.rows[row][1] += w[row] * (y - cell.low);
            }
        }
    }
    let sum = |cell: &Cell| cell.rows.iter().fold((0.0, 0.0), |s, l| (s.0 + l[0], s.1 + l[1]));
    (cells.iter().map(sum).collect(), above)
}

/// A grid for the combination of two ratios, from its least to its greatest value, with nearly all
/// points where the mass is. In u = ln x the spacing is proportional to min(1, s + |u - c|), with c
/// the median and s the spread of a coarse version of the combination: even in the bulk, relative
/// in heavy tails.
fn fitted_grid(
    a: &RatioDistribution,
    b: &RatioDistribution,
    operation: Operation,
    points: usize,
    tail: f64,
    least: f64,
) -> Vec<f64> {
    let (ca, cb) = (coarse(a), coarse(b));
    let mut sums: Vec<(f64, f64)> = Vec::with_capacity(ca.len() * cb.len());
    for (x, p) in &ca {
        sums.extend(cb.iter().map(|(y, q)| (operation.of(*x, *y), p * q)));
    }
    sums.sort_unstable_by(|l, r| l.0.total_cmp(&r.0));
    let total: f64 = sums.iter().map(|s| s.1).sum();
    let at = |share: f64| {
        let mut left = share * total;
        let found = sums.iter().find(|s| {
            left -= s.1;
            left <= 0.0
        });
        found.or(sums.last()).map_or(1.0, |s| s.0.max(FLOOR))
    };
    // If the result is below that of two quantiles, one of its arguments is below its own quantile.
    let (a_low, a_high) = a.range(tail);
    let (b_low, b_high) = b.range(tail);
    let top = |ratio: &RatioDistribution| ratio.position[ratio.position.len() - 1];
    let bottom = operation.of(a.position[0], b.position[0]);
    let min = if bottom < FLOOR { least } else { bottom };
    let max = operation.of(top(a), top(b)).min(CEILING);
    let (low, high) = (operation.of(a_low, b_low).max(min), operation.of(a_high, b_high).min(max));
    let (c, s) = (at(0.5).ln(), ((at(0.75).ln() - at(0.25).ln()) / 1.35).clamp(1e-12, 1.0));
    let spacing = Spacing::new(c, s);
    let (from, to) = (spacing.encode(low.max(FLOOR).ln()), spacing.encode(high.ln()));
    let mut grid = vec![min];
    // A spread distribution has an atom at zero. Only sums with it may be spread back to it.
    let second = |ratio: &RatioDistribution| ratio.position[1.min(ratio.position.len() - 1)];
    let above_zero = operation.of(second(a), second(b));
    if min == 0.0 && above_zero > FLOOR && above_zero < low {
        grid.push(above_zero);
    }
    for i in 0..=points {
        let x = spacing.decode(from + (to - from) * i as f64 / points as f64).exp();
        if x > FLOOR && x > grid[grid.len() - 1] && x < max {
            grid.push(x);
        }
    }
    // A distribution may have shrunk to a point, but a cell needs a width.
    grid.push(max.max(grid[grid.len() - 1] * (1.0 + 1e-9)));
    grid
}

/// At most 32 atoms: adjacent ones are merged.
fn coarse(ratio: &RatioDistribution) -> Vec<(f64, f64)> {
    let chunk = ratio.mass.len().div_ceil(32);
    let pairs = ratio.position.chunks(chunk).zip(ratio.mass.chunks(chunk));
    let merged = pairs.map(|(x, p)| {
        let mass: f64 = p.iter().sum();
        let moment: f64 = x.iter().zip(p).map(|(x, p)| x * p).sum();
        if mass > 0.0 { (moment / mass, mass) } else { (x[0], 0.0) }
    });
    merged.collect()
}

/// A change of variable u → w in which the spacing min(cap, s + |u - c|) becomes even.
/// The cap is one, the resolution that a wide distribution needs in its tails. The far tails of a
/// narrow one need less.
pub(crate) struct Spacing {
    centre: f64,
    spread: f64,
    cap: f64,
    /// Where the spacing reaches the cap.
    knee: f64,
}

impl Spacing {
    /// `spread` in (0, 1].
    pub(crate) fn new(centre: f64, spread: f64) -> Spacing {
        let cap = (0.1 / spread).clamp(1.0, 8.0);
        Spacing { centre, spread, cap, knee: (cap / spread).ln() }
    }

    pub(crate) fn encode(&self, u: f64) -> f64 {
        let Spacing { centre, spread, cap, knee } = *self;
        let d = (u - centre).abs();
        let w =
            if d < cap - spread { (d / spread).ln_1p() } else { knee + (d - (cap - spread)) / cap };
        w.copysign(u - centre)
    }

    pub(crate) fn decode(&self, w: f64) -> f64 {
        let Spacing { centre, spread, cap, knee } = *self;
        let d = if w.abs() < knee {
            spread * w.abs().exp_m1()
        } else {
            cap - spread + (w.abs() - knee) * cap
        };
        centre + d.copysign(w)
    }
}
