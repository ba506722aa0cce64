//! The gradient diameter: a certified upper bound on the difference of two gradients at one point.
//!
//! # Proof: gradient diameter
//!
//! For one score every gradient is a multiple of the row, and all of them lie in the convex hull of
//! {φ(⟨w, v⟩) v}, with v a row or its negative and φ ≥ 0 never decreasing ([`push`]): targets
//! between the ends of their range give multiples between those of the ends, and a multiple that
//! points the wrong way is a shorter one of -v. A hull is as wide as what it is the hull of.
//!
//! **Into the plane.** Let e be the direction in which the gradients of v and v' differ most, and
//! p = ⟨e, v⟩, p' = -⟨e, v'⟩. Where p or p' is negative, a zero row does better; so let both be
//! positive and maximise p φ(⟨w, v⟩) + p' φ(⟨w, v'⟩).
//!
//! * *Weights in the L2 ball of radius B, any φ.* With p and p' kept, both scores grow when the
//!   parts of v, v' and w across e are turned to one side and lengthened to the balls' surfaces. So
//!   v and v' lie in a plane with w, ‖w‖ = B, at height r(a) = √(R² - a²) on either side of w where
//!   a is the part along w.
//! * *Weights in the L1 ball of radius B, convex φ.* The sum is convex in w, so w = ±B eₖ. With
//!   a = ±vₖ kept, the rest of v is no longer than r(a) = min(R₁ - |a|, √(R² - a²)), and the
//!   difference is longest if the rests of v and v' are opposite.
//!
//! Either way, the difference is no longer than the largest Σ of two supports
//!
//! ```text
//! H(ψ) + H(π - ψ),   H(ψ) = max over |a| ≤ R of φ(Ba) (a cos ψ + r(a) sin ψ),   0 ≤ ψ ≤ π/2.
//! ```
//!
//! **On a grid.** That sum is the support function of a plane body (one curve plus its mirror
//! image), hence sublinear: between two directions at angle h it is at most the larger of its two
//! values over cos(h/2). Each H is bounded by splitting the range of a until the bound on every
//! cell, φ at its upper end times the largest of the linear part, is no longer above what was found.
use std::f64::consts::FRAC_PI_2;

/// Directions between along and across the weights: 1/cos costs 8e-5.
const DIRECTIONS: usize = 64;
/// Cells are split until they cannot hold more than this above the best value found.
const SLACK: f64 = 1.0 / 16384.0;
/// After this many cells the bound stays what it is: still a bound, only not as tight.
const CELLS: usize = 2000;

/// Rows, as far as the weights' direction matters.
pub(super) struct Rows {
    /// Bound on the rows' L1 norm, if only the weights are in an L1 ball too; else infinite.
    pub(super) l1: f64,
    /// Bound on the rows' L2 norm.
    pub(super) l2: f64,
}

impl Rows {
    /// The length that remains for the other parts of a row.
    fn rest(&self, along: f64) -> f64 {
        let round = ((self.l2 - along) * (self.l2 + along)).max(0.0).sqrt();
        round.min((self.l1 - along.abs()).max(0.0))
    }

    /// At least the longest difference of two gradients, for weights in a ball of radius `weights`.
    pub(super) fn spread(&self, push: impl Fn(f64) -> f64 + Copy, weights: f64) -> f64 {
        let push = |along: f64| push(weights * along);
        let step = FRAC_PI_2 / DIRECTIONS as f64;
        let sum = |at: usize| {
            let (sin, cos) = (at as f64 * step).sin_cos();
            self.support(push, cos, sin) + self.support(push, -cos, sin)
        };
        (0..=DIRECTIONS).map(sum).fold(0.0, f64::max) / (step / 2.0).cos()
    }

    /// At least H.
    fn support(&self, push: impl Fn(f64) -> f64, cos: f64, sin: f64) -> f64 {
        let line = |along: f64, rest: f64| (along * cos + rest * sin).max(0.0);
        let end = self.l1.min(self.l2);
        let all = Cell { from: -end, to: end, push: push(end), bound: f64::INFINITY };
        let (mut cells, mut best, mut seen) = (vec![all], 0f64, 0);
        while !cells.is_empty() && seen < CELLS {
            let mut next = Vec::with_capacity(2 * cells.len());
            for cell in cells {
                let middle = 0.5 * (cell.from + cell.to);
                let pushed = push(middle);
                best = best.max(pushed * line(middle, self.rest(middle)));
                for (from, to, push) in [(cell.from, middle, pushed), (middle, cell.to, cell.push)]
                {
                    // The rest is longest nearest to zero.
                    let nearest = 0f64.max(from).min(to);
                    let along = if cos > 0.0 { to } else { from };
                    let bound = push * line(along, self.rest(nearest));
                    next.push(Cell { from, to, push, bound });
                }
            }
            seen += next.len();
            next.retain(|cell| cell.bound > best * (1.0 + SLACK));
            cells = next;
        }
        cells.iter().fold(best * (1.0 + SLACK), |most, cell| most.max(cell.bound))
    }
}

/// A range of parts along the weights, the push at its upper end, and what it cannot exceed.
struct Cell {
    from: f64,
    to: f64,
    push: f64,
    bound: f64,
}
