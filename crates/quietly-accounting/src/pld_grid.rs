//! Privacy losses on a grid, rounded up and rounded down.
//!
//! # Proof: losses on a grid
//!
//! *Statement.* [`LossCells::grid`] with [`Side::Above`] returns a loss on a grid whose δ(ε) is at
//! least that of the dominating pair, alone and in any composition, at every ε. With
//! [`Side::Below`] it is at most that.
//!
//! *Notation.* L = ln P/Q is the privacy loss of a pair (P, Q), and x = e^-L.
//!
//! 1. An accountant needs E_P g(x) for functions g that are convex and decreasing. In a
//!    composition, g(x₁) = E(1 - e^ε x₁x₂⋯)₊ is convex and decreasing in x₁ for fixed other
//!    factors.
//! 2. So every such expectation grows if x is spread out at equal mean, or lowered. This gives a
//!    bound **from above**. It shrinks if x is merged to its mean, or raised. This gives a bound
//!    **from below**.
//! 3. Partition the outcomes into cells whose losses lie in [εᵢ, εᵢ₊₁], εᵢ = offset + i·h. Two
//!    non-negative numbers describe a cell: Aᵢ = P(cell) - e^εᵢ Q(cell) and
//!    Bᵢ = e^εᵢ₊₁ Q(cell) - P(cell).
//! 4. *Above*: each cell moves to its two ends, with P(cell) and Q(cell) unchanged: Aᵢ/(1 - e^-h)
//!    to the upper end and Bᵢ/(e^h - 1) to the lower end. This is *connect the dots* (Doroshenko,
//!    Ghazi, Kamath, Kumar, Manurangsi, 2022, arXiv:2207.04380).
//! 5. *Below*: the atom at εᵢ is a share βᵢ₋₁ of the cell below it and a share 1 - βᵢ of the cell
//!    above it. Their merged loss is at least εᵢ if and only if (1 - βᵢ)Aᵢ ≥ βᵢ₋₁Bᵢ₋₁. Then it may
//!    be lowered to εᵢ. With equality nothing is lowered, and the error is of second order in h.
//! 6. Equality is a recursion that is stable towards larger masses. It runs from both ends to the
//!    grid point `meet`, the only one where a little is lost. Where most of the mass is at one edge
//!    (sampling at a small rate), `offset` places the grid so that nothing is lost there either.
//!
//! *Rounding.* Computed A and B have an error bound `slack`, which is added or subtracted on the
//! safe side. Masses may sum to slightly more (less) than one: every expectation above is monotone
//! in the masses.
use crate::normal::positive;

/// The privacy loss of a mechanism by cells of a grid with step `step`. The first cell has index
/// `first`.
#[derive(Clone, Debug)]
pub(crate) struct LossCells {
    pub(crate) step: f64,
    pub(crate) offset: f64,
    pub(crate) first: i64,
    /// The grid point, counted from `first`, where the recursions from both ends meet.
    pub(crate) meet: usize,
    pub(crate) cells: Vec<Cell>,
    /// P-mass of losses below the first cell.
    pub(crate) under: f64,
    /// P(over) - e^top Q(over), where `over` is the set of losses above the last cell and `top` its
    /// upper end.
    pub(crate) over_excess: f64,
    /// e^top Q(over).
    pub(crate) over_rest: f64,
    /// P-mass of infinite losses.
    pub(crate) infinite: f64,
}

/// One cell: its P-mass, A and B (see the proof), and the error bound of all three.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cell {
    pub(crate) mass: f64,
    pub(crate) a: f64,
    pub(crate) b: f64,
    pub(crate) slack: f64,
}

/// Masses on a grid: `mass[j]` at loss offset + (first + j)·step, and `infinite` at +∞.
#[derive(Clone, Debug)]
pub(crate) struct PldGrid {
    pub(crate) step: f64,
    pub(crate) offset: f64,
    pub(crate) first: i64,
    pub(crate) mass: Vec<f64>,
    pub(crate) infinite: f64,
}

/// The side of the true value on which a bound lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Above,
    Below,
}

/// A bound on the relative rounding of the few products below.
const ROUNDING: f64 = 1e-14;

impl LossCells {
    pub(crate) fn grid(&self, side: Side) -> PldGrid {
        let mass = match side {
            Side::Above => self.above(),
            Side::Below => self.below(),
        };
        let infinite = match side {
            Side::Above => self.over_excess + self.infinite * (1.0 + ROUNDING),
            Side::Below => self.infinite * (1.0 - ROUNDING),
        };
        PldGrid { step: self.step, offset: self.offset, first: self.first, mass, infinite }
    }

    fn above(&self) -> Vec<f64> {
        let up = (1.0 + ROUNDING) / -(-self.step).exp_m1();
        let down = (1.0 + ROUNDING) / self.step.exp_m1();
        let mut mass = vec![0.0; self.cells.len() + 1];
        for (i, cell) in self.cells.iter().enumerate() {
            mass[i + 1] += (positive(cell.a) + cell.slack) * up;
            mass[i] += (positive(cell.b) + cell.slack) * down;
        }
        mass[0] += self.under;
        *mass.last_mut().expect("a grid has at least one point") += self.over_rest;
        mass
    }

    fn below(&self) -> Vec<f64> {
        let n = self.cells.len();
        let share = self.shares();
        let mut mass = vec![0.0; n + 1];
        for (i, cell) in self.cells.iter().enumerate() {
            let certain = (cell.mass - cell.slack).max(0.0) * (1.0 - ROUNDING);
            mass[i] += (1.0 - share[i]) * certain;
            mass[i + 1] += share[i] * certain;
        }
        // Losses above the window are omitted: only an upper bound of their mass is known.
        mass
    }

    /// The cell with the most mass.
    pub(crate) fn heaviest(&self) -> usize {
        let heavier = |best: usize, i: usize| {
            if self.cells[i].mass > self.cells[best].mass { i } else { best }
        };
        (0..self.cells.len()).fold(0, heavier)
    }

    /// The shares βᵢ of the proof.
    fn shares(&self) -> Vec<f64> {
        let mut share = self.free_shares();
        let meet = self.meet.min(self.cells.len() - 1);
        if meet > 0 {
            let most = (1.0 - share[meet]) * self.a(meet) / self.b(meet - 1) * (1.0 - ROUNDING);
            share[meet - 1] = share[meet - 1].min(most);
        }
        share
    }

    /// The two recursions, before they are reconciled at `meet`.
    fn free_shares(&self) -> Vec<f64> {
        let n = self.cells.len();
        let meet = self.meet.min(n - 1);
        let mut share = vec![0.0; n];
        for i in (meet..n - 1).rev() {
            share[i] = ((1.0 - share[i + 1]) * self.a(i + 1) / self.b(i)).min(1.0 - ROUNDING);
        }
        for i in 0..meet {
            // At the bottom there is nothing to balance: the whole cell may move up.
            let need = if i == 0 { 0.0 } else { share[i - 1] * self.b(i - 1) };
            if need > self.a(i) {
                share[i - 1] = self.a(i) / self.b(i - 1) * (1.0 - ROUNDING);
            } else if self.a(i) > 0.0 {
                share[i] = (1.0 - need / self.a(i)) * (1.0 - ROUNDING);
            }
        }
        share
    }

    /// The mass lost at `meet`; if negative, the mass missing there.
    pub(crate) fn disagreement(&self) -> f64 {
        let (share, meet) = (self.free_shares(), self.meet.min(self.cells.len() - 1));
        let need = if meet > 0 { share[meet - 1] * self.b(meet - 1) } else { 0.0 };
        (1.0 - share[meet]) * self.a(meet) - need
    }

    fn a(&self, i: usize) -> f64 {
        (self.cells[i].a - self.cells[i].slack).max(0.0)
    }

    fn b(&self, i: usize) -> f64 {
        (self.cells[i].b + self.cells[i].slack).max(f64::MIN_POSITIVE)
    }

    /// Adds an atom of mass `mass` at the finite loss `loss`, which must be inside the grid.
    pub(crate) fn add_atom(&mut self, loss: f64, mass: f64) {
        let place = (loss - self.offset) / self.step;
        let index = ((place.floor() as i64 - self.first).max(0) as usize).min(self.cells.len() - 1);
        let low = self.offset + (self.first + index as i64) as f64 * self.step;
        let cell = &mut self.cells[index];
        cell.mass += mass;
        cell.a += mass * -(low - loss).exp_m1();
        cell.b += mass * (low + self.step - loss).exp_m1();
        // The loss has an error of a few units, and A and B change by as much.
        cell.slack += mass * 4.0 * f64::EPSILON * (1.0 + loss.abs());
    }

    /// Empty cells from index `first`.
    pub(crate) fn empty(step: f64, first: i64, count: usize) -> LossCells {
        let cells = vec![Cell::default(); count.max(1)];
        let meet = (-first).clamp(0, cells.len() as i64 - 1) as usize;
        LossCells {
            step,
            offset: 0.0,
            first,
            meet,
            cells,
            under: 0.0,
            over_excess: 0.0,
            over_rest: 0.0,
            infinite: 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampled_gaussian::{Kind, Mixture};

    fn delta(grid: &PldGrid, epsilon: f64) -> f64 {
        let terms = grid.mass.iter().enumerate().map(|(j, m)| {
            let loss = grid.offset + (grid.first + j as i64) as f64 * grid.step;
            m * (-(epsilon - loss).exp_m1()).max(0.0)
        });
        terms.sum::<f64>() + grid.infinite
    }

    /// The two grids enclose the exact curve of one release at every ε. The control: they
    /// distinguish it from the curve of a sigma that is off by one percent.
    #[test]
    fn grids_enclose_the_exact_curve() {
        let kinds = [Kind::Gaussian, Kind::Removed, Kind::Added, Kind::ReplaceOne];
        for kind in kinds {
            for (rate, sigma) in [(0.01, 1.0), (0.3, 0.5), (1e-4, 2.0)] {
                let rate = if kind == Kind::Gaussian { 1.0 } else { rate };
                let pair = Mixture { kind, rate, sigma };
                let off = Mixture { kind, rate, sigma: 1.01 * sigma };
                let cells = pair.cells(0.02 * rate / sigma, 1e-14);
                let (above, below) = (cells.grid(Side::Above), cells.grid(Side::Below));
                let mut distinguished = 0;
                for k in 0..200 {
                    let epsilon = 0.02 * k as f64 * (rate / sigma);
                    let (low, high) = pair.delta(epsilon);
                    assert!(delta(&above, epsilon) >= low, "{pair:?} {epsilon}");
                    assert!(delta(&below, epsilon) <= high + 1e-13, "{pair:?} {epsilon}");
                    distinguished += usize::from(delta(&below, epsilon) > off.delta(epsilon).1);
                }
                assert!(distinguished > 20, "{pair:?} {distinguished}");
            }
        }
    }
}
