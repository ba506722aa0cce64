//! Pairs of one-dimensional normal mixtures: Gaussian noise on a sum over a sample.
//! Rényi moments of the same are in `renyi/sampled.rs`.
//!
//! # Proof: dominating pairs of sampled Gaussians
//!
//! *Statement.* Each pair dominates the mechanism in its row. N(m) has standard deviation `sigma`,
//! and the gap is one.
//!
//! | pair | P | Q | what it dominates |
//! | --- | --- | --- | --- |
//! | `Gaussian` | N(1) | N(0) | a Gaussian release; equal to its reverse |
//! | `Removed` | (1-q)N(0) + qN(1) | N(0) | Poisson sampling at rate q, unit present against absent |
//! | `Added` | N(0) | (1-q)N(0) + qN(-1) | the same, absent against present, mirrored |
//! | `ReplaceOne` | (1-q)N(0) + qN(1) | (1-q)N(0) + qN(-1) | Poisson sampling, replace-one; equal to its reverse |
//! | `Symmetrised` | (1-q)N(0) + qN(1), losses ≤ 0 mirrored | N(0) | fixed-size sampling, gap one = two clipping norms |
//!
//! 1. `Removed`, `Added`: Zhu, Dong and Wang, *Optimal Accounting of Differential Privacy via
//!    Characteristic Function*, 2022, Theorem 11.
//! 2. `ReplaceOne`: for an event of probability m under N(0), Neyman and Pearson give P(E) ≤
//!    (1-q)m + qΦ(Φ⁻¹(m) + 1/σ) and Q(E) ≥ (1-q)m + qΦ(Φ⁻¹(m) - 1/σ). One half-line attains both.
//! 3. `Symmetrised`: given which other unit would take the place, compare (1-q)N(g') + qN(g) with
//!    (1-q)N(g') + qN(g″), all within gap one. Advanced joint convexity gives H_α ≤ H_α(Removed)
//!    for α ≥ 1. Replace-one is symmetric, so H_α = 1 - α + αH_{1/α} extends it below one. The
//!    result is convex, hence a pair, hence it composes.
//!
//! In each pair the loss increases with x. So a cell of losses is an interval of x, and its P- and
//! Q-masses are differences of normal tails.
//!
//! *Rounding.* Each mass has an error bound (`slack`), from [`tail_error`] and the rounding of its
//! factors.
use crate::{
    normal::{U, positive, upper_quantile, upper_tail},
    pld_grid::{Cell, LossCells, Side},
    ratio_distribution::{RatioDistribution, Spacing},
};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Gaussian,
    Removed,
    Added,
    ReplaceOne,
    Symmetrised,
}

/// A pair from the table above.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mixture {
    pub(crate) kind: Kind,
    pub(crate) rate: f64,
    pub(crate) sigma: f64,
}

/// Outcomes partitioned at increasing losses.
#[derive(Default)]
struct Cut {
    cells: Vec<Cell>,
    /// P- and Q-mass of losses below the first.
    under: (f64, f64),
    over_excess: f64,
    over_rest: f64,
}

/// One normal component: its centre, its weights in P and in Q, and their exact difference.
struct Component {
    centre: f64,
    p: f64,
    q: f64,
    p_less_q: f64,
}

impl Component {
    /// p - e^l·q and the size of its terms. Near l = 0 it is computed from p - q, so that a small
    /// rate is not lost next to one.
    fn excess(&self, loss: f64) -> (f64, f64) {
        if loss.abs() < 0.5 {
            let growth = loss.exp_m1();
            (self.p_less_q - growth * self.q, self.p_less_q.abs() + growth.abs() * self.q)
        } else {
            let level = loss.exp();
            (self.p - level * self.q, self.p + level * self.q)
        }
    }
}

impl Mixture {
    fn components(&self) -> Vec<Component> {
        let r = self.rate;
        let part = |centre, p, q, p_less_q| Component { centre, p, q, p_less_q };
        match self.kind {
            Kind::Gaussian => vec![part(0.0, 0.0, 1.0, -1.0), part(1.0, 1.0, 0.0, 1.0)],
            Kind::Removed | Kind::Symmetrised => {
                vec![part(0.0, 1.0 - r, 1.0, -r), part(1.0, r, 0.0, r)]
            }
            Kind::Added => vec![part(-1.0, 0.0, r, -r), part(0.0, 1.0, 1.0 - r, r)],
            Kind::ReplaceOne => {
                vec![part(-1.0, 0.0, r, -r), part(0.0, 1.0 - r, 1.0 - r, 0.0), part(1.0, r, 0.0, r)]
            }
        }
    }

    /// The x at which the loss is `loss`; infinite if no x has it.
    fn threshold(&self, loss: f64) -> f64 {
        let (r, s2) = (self.rate, self.sigma * self.sigma);
        // The solution of ln(1 - r + r·exp((2x-1)/2s²)) = l: 1/2 + s²·ln(1 + (e^l - 1)/r), for
        // large l after taking e^l/r out.
        let one_sided = |l: f64| {
            if l > 30.0 {
                return 0.5 + s2 * (l - r.ln() + ((r - 1.0) * (-l).exp()).ln_1p());
            }
            let inner = l.exp_m1() / r;
            if inner <= -1.0 { f64::NEG_INFINITY } else { 0.5 + s2 * inner.ln_1p() }
        };
        match self.kind {
            Kind::Gaussian => 0.5 + s2 * loss,
            Kind::Removed | Kind::Symmetrised => one_sided(loss),
            Kind::Added => -one_sided(-loss),
            Kind::ReplaceOne => {
                // With y = e^(x/s²), c = e^(-1/2s²): rc·y² - (1-r)(e^l - 1)·y - rc·e^l = 0, scaled
                // by e^(-l/2)/rc. y·e^(-l/2) = t + √(t² + 1), t = (1-r)·sinh(l/2)/rc, and asinh(t)
                // is its logarithm.
                let log_t = ((1.0 - r) / r).ln() + 0.5 / s2 + log_sinh(0.5 * loss.abs());
                let asinh =
                    if log_t > 20.0 { log_t + std::f64::consts::LN_2 } else { log_t.exp().asinh() };
                s2 * (0.5 * loss + asinh.copysign(loss))
            }
        }
    }

    /// The loss at x.
    fn loss(&self, x: f64) -> f64 {
        let (r, s2) = (self.rate, self.sigma * self.sigma);
        let one_sided = |x: f64| {
            let t = (x - 0.5) / s2;
            // ln(1 + r(e^t - 1)), or for large t the same after taking e^t out.
            if t < 30.0 { (r * t.exp_m1()).ln_1p() } else { t + (r + (1.0 - r) * (-t).exp()).ln() }
        };
        match self.kind {
            Kind::Gaussian => (x - 0.5) / s2,
            Kind::Removed | Kind::Symmetrised => one_sided(x),
            Kind::Added => -one_sided(-x),
            Kind::ReplaceOne => one_sided(x) - one_sided(-x),
        }
    }

    /// Losses between which all of P lies but a mass of `tail` on either side.
    pub(crate) fn span(&self, tail: f64) -> (f64, f64) {
        let z = self.sigma * upper_quantile(tail);
        let (low, high) = match self.kind {
            Kind::Gaussian => (1.0 - z, 1.0 + z),
            Kind::Removed | Kind::Symmetrised => (-z, 1.0 + z),
            Kind::ReplaceOne => (-1.0 - z, 1.0 + z),
            Kind::Added => (-z, z),
        };
        // Ratios are limited to e^±600. Larger ones count as infinite, smaller ones as the least.
        let (low, high) =
            (self.loss(low).clamp(-600.0, 590.0), self.loss(high).clamp(-590.0, 600.0));
        if self.kind == Kind::Symmetrised { (-high, high) } else { (low, high) }
    }

    /// The loss on a grid with step `step`, except for a mass of `tail` on either side.
    pub(crate) fn cells(&self, step: f64, tail: f64) -> LossCells {
        let (low, high) = self.span(tail);
        match self.kind {
            Kind::Symmetrised => self.doubled(step, ((high / step).ceil() as i64).max(1)),
            Kind::Gaussian | Kind::ReplaceOne => {
                let (first, last) = ((low / step).floor() as i64, (high / step).ceil() as i64);
                self.between(step, 0.0, first, last.max(first + 1))
            }
            Kind::Removed | Kind::Added => self.one_sided(step, low, high),
        }
    }

    /// The loss of `Removed` is at least ln(1 - q), and most of its mass is just above; `Added` is
    /// the mirror image. The grid is placed so that the two recursions of [`LossCells::grid`] agree
    /// where they meet and nothing is lost there.
    fn one_sided(&self, step: f64, low: f64, high: f64) -> LossCells {
        let removed = self.kind == Kind::Removed;
        let sign = if removed { 1.0 } else { -1.0 };
        let edge = -sign * -(-self.rate).ln_1p();
        // Many steps away from the edge the placement does not matter.
        let nearest = if removed { low - edge } else { edge - high };
        if nearest > 60.0 * step {
            let (first, last) = ((low / step).floor() as i64, (high / step).ceil() as i64);
            let cells = self.between(step, 0.0, first, last.max(first + 1));
            return LossCells { meet: cells.heaviest(), ..cells };
        }
        // `place` is the distance of the meeting point from the edge, in steps. The first cells
        // from the edge show where the mass is heaviest and by how much the recursions disagree.
        let split = |place: f64| (edge + sign * place.fract() * step, place as usize + 1);
        let meeting = |cells: LossCells, from_edge: usize| {
            let meet = if removed { from_edge } else { cells.cells.len() - from_edge };
            LossCells { meet, ..cells }
        };
        let near = |place: f64| {
            let (offset, from_edge) = split(place);
            let (first, last) = if removed { (-1, 100) } else { (-100, 1) };
            meeting(self.between(step, offset, first, last), from_edge)
        };
        let probe = near(0.0);
        let heaviest =
            if removed { probe.heaviest() } else { probe.cells.len() - 1 - probe.heaviest() };
        let heaviest = heaviest.min(80);
        // The loss there decreases as the meeting point moves away from the edge. Just before it is
        // zero, all is feasible.
        let (mut low_place, mut high_place) =
            (heaviest.saturating_sub(3) as f64, heaviest as f64 + 4.0);
        for _ in 0..24 {
            let mid = 0.5 * (low_place + high_place);
            if near(mid).disagreement() * sign > 0.0 { low_place = mid } else { high_place = mid }
        }
        let (offset, from_edge) = split(if removed { low_place } else { high_place });
        let (first, last) = if removed {
            (-1, (((high - offset) / step).ceil() as i64).max(from_edge as i64 + 1))
        } else {
            ((((low - offset) / step).floor() as i64).min(-1 - from_edge as i64), 1)
        };
        meeting(self.between(step, offset, first, last), from_edge)
    }

    /// δ(ε) for ε ≥ 0, in closed form: the excess of all losses above ε.
    pub(crate) fn delta(&self, epsilon: f64) -> (f64, f64) {
        let x = self.threshold(epsilon);
        let (mut value, mut error) = (0.0, 0.0);
        if epsilon > 600.0 {
            // e^ε·Q is out of range, and P alone is a bound.
            let p =
                |c: &Component| c.p * upper_tail(((x - c.centre) / self.sigma).clamp(-60.0, 60.0));
            return (0.0, self.components().iter().map(p).sum::<f64>() * (1.0 + 1e-9));
        }
        for component in self.components() {
            let z = ((x - component.centre) / self.sigma).clamp(-60.0, 60.0);
            let tail = upper_tail(z);
            let (excess, size) = component.excess(epsilon);
            value += excess * tail;
            error += size * tail * (tail_error(z) + 8.0 * U);
        }
        // NaN is no bound.
        match (value + error).is_finite() {
            true => ((value - error).max(0.0), positive(value) + error),
            false => (0.0, 1.0),
        }
    }

    /// LossCells first..last by their masses. Aᵢ = Σ (p - q - q·(e^εᵢ - 1))·M over the masses M of
    /// the components, written so that nothing cancels at a small sampling rate. Each M is a
    /// difference of tails on the component's own side. The x of a cell's edge is rounded. Both
    /// masses use the same x, so only the tightness suffers: by the mass between x and the true
    /// edge times the change of loss there, of the order of U², far inside the slack.
    fn between(&self, step: f64, offset: f64, first: i64, last: i64) -> LossCells {
        let edges: Vec<f64> = (first..=last).map(|i| offset + i as f64 * step).collect();
        let cut = self.cut(&edges);
        let mut cells = LossCells::empty(step, first, 1);
        cells.offset = offset;
        cells.meet = (-first).clamp(0, cut.cells.len() as i64 - 1) as usize;
        cells.cells = cut.cells;
        cells.under = cut.under.0;
        cells.over_excess = cut.over_excess;
        cells.over_rest = cut.over_rest;
        cells
    }

    /// The masses between increasing losses, and on both sides of them.
    fn cut(&self, edges: &[f64]) -> Cut {
        let mut cut = Cut { cells: vec![Cell::default(); edges.len() - 1], ..Cut::default() };
        let edges: Vec<(f64, f64)> = edges.iter().map(|&l| (self.threshold(l), l)).collect();
        for component in self.components() {
            let Component { centre, p, q, .. } = component;
            let at = |x: f64| {
                // Beyond 60 deviations a tail is zero, and its error with it.
                let z = ((x - centre) / self.sigma).clamp(-60.0, 60.0);
                let tail = upper_tail(z.abs());
                (z, tail, tail * tail_error(z))
            };
            let (mut z, mut tail, mut noise) = at(edges[0].0);
            let left = if z < 0.0 { tail } else { 1.0 - tail } + noise;
            cut.under.0 += p * left;
            cut.under.1 += q * left;
            let (mut excess, mut size) = component.excess(edges[0].1);
            for (cell, &(next_x, next_loss)) in cut.cells.iter_mut().zip(&edges[1..]) {
                let (next_z, next_tail, next_noise) = at(next_x);
                let (next_excess, next_size) = component.excess(next_loss);
                let between = if z >= 0.0 {
                    tail - next_tail
                } else if next_z < 0.0 {
                    next_tail - tail
                } else {
                    1.0 - tail - next_tail
                };
                cell.mass += p * between;
                cell.a += excess * between;
                cell.b -= next_excess * between;
                // The losses of the grid are rounded, too: by a few units, relative.
                let grid =
                    next_loss.abs() * if next_loss.abs() < 0.5 { p + 2.0 * q } else { next_size };
                let size_here = size.max(next_size);
                cell.slack +=
                    size_here * (noise + next_noise) + 4.0 * U * (size_here + grid) * between.abs();
                (z, tail, noise) = (next_z, next_tail, next_noise);
                (excess, size) = (next_excess, next_size);
            }
            let over = if z >= 0.0 { tail } else { 1.0 - tail };
            cut.over_excess += excess * over + size * 2.0 * (noise + 4.0 * U * over);
            cut.over_rest += edges[edges.len() - 1].1.exp() * q * (over + noise);
        }
        cut.over_excess = positive(cut.over_excess);
        cut
    }

    /// The distribution of P/Q under Q on about `points` atoms. For add-remove use `Removed`: its
    /// distribution determines both directions.
    pub(crate) fn ratio_distribution(
        &self,
        points: usize,
        tail: f64,
        side: Side,
    ) -> RatioDistribution {
        let (low, high) = self.span(tail);
        let low = if self.kind == Kind::Removed { (-self.rate).ln_1p() } else { low };
        // Spaced as in `ratio_distribution::fitted_grid`: even where most of the mass is, relative
        // beyond.
        let at = |z: f64| self.loss(z * self.sigma);
        let centre = at(0.0).clamp(low, high);
        let spread = ((at(0.674) - at(-0.674)) / 1.35).clamp(1e-12, 1.0);
        let spacing = Spacing::new(centre, spread);
        let (from, to) = (spacing.encode(low), spacing.encode(high));
        let edge = |i: usize| spacing.decode(from + (to - from) * i as f64 / points as f64);
        let mut edges: Vec<f64> = (0..=points).map(edge).collect();
        edges[0] = low;
        edges.dedup_by(|next, last| next <= last);
        let cut = self.cut(&edges);
        let value: Vec<f64> = edges.iter().map(|l| l.exp()).collect();
        let n = cut.cells.len();
        if side == Side::Below {
            let mut atoms: Vec<(f64, f64)> = Vec::with_capacity(n + 2);
            if cut.under.1 > 0.0 {
                atoms.push(((cut.under.0 / cut.under.1).min(value[0]), cut.under.1));
            }
            for (i, cell) in cut.cells.iter().enumerate() {
                let width = value[i] * (edges[i + 1] - edges[i]).exp_m1();
                let q = (cell.a.max(0.0) + cell.b.max(0.0)) / width;
                if q > 0.0 {
                    atoms.push((value[i] + (cell.a.max(0.0) / q).min(width), q));
                }
            }
            let q = cut.over_rest / value[n];
            if q > 0.0 {
                atoms.push((value[n] + cut.over_excess / q, q));
            }
            let (position, mass) = atoms.into_iter().unzip();
            return RatioDistribution::new(position, mass, 0.0);
        }
        let mut position = vec![0.0];
        position.extend(&value);
        let mut mass = vec![0.0; n + 2];
        mass[1] += cut.under.0 / value[0];
        mass[0] += positive(cut.under.1 - cut.under.0 / value[0]);
        for (i, cell) in cut.cells.iter().enumerate() {
            let width = value[i] * (edges[i + 1] - edges[i]).exp_m1();
            mass[i + 2] += (positive(cell.a) + cell.slack) / width;
            mass[i + 1] += (positive(cell.b) + cell.slack) / width;
        }
        mass[n + 1] += cut.over_rest / value[n];
        if mass[0] == 0.0 {
            position.remove(0);
            mass.remove(0);
        }
        RatioDistribution::new(position, mass, cut.over_excess)
    }

    /// The positive losses of `Removed`, their mirror images, and the rest at zero.
    fn doubled(&self, step: f64, last: i64) -> LossCells {
        let right = Mixture { kind: Kind::Removed, ..*self }.between(step, 0.0, 0, last);
        let count = right.cells.len();
        let mut cells = LossCells::empty(step, -last, 2 * count);
        let mut beside = right.over_excess + right.over_rest * (1.0 + (-last as f64 * step).exp());
        for (i, cell) in right.cells.iter().enumerate() {
            // Under Q the cell [l, l+h] has mass (a + b)/(e^(l+h) - e^l); mirrored, that is its
            // P-mass, and a and b swap roles: A' = Q - e^-(l+h)P, B' = e^-l·P - Q.
            let (low, high) = (i as f64 * step, (i + 1) as f64 * step);
            let q = (cell.a + cell.b) / (low.exp() * step.exp_m1());
            let mirrored = Cell {
                mass: q,
                a: cell.b * (-high).exp(),
                b: cell.a * (-low).exp(),
                slack: cell.slack * (-low).exp(),
            };
            cells.cells[count + i] = *cell;
            cells.cells[count - 1 - i] = mirrored;
            beside += cell.mass + q;
        }
        cells.over_excess = right.over_excess;
        cells.over_rest = right.over_rest;
        // Mirrored from beyond the grid: mass Q(over) at losses under -top.
        cells.under = right.over_rest * (-last as f64 * step).exp();
        // At loss zero: A = 0 and B = mass·(e^h - 1) in the cell [0, h].
        let rest = positive(1.0 - beside);
        let middle = &mut cells.cells[count];
        middle.mass += rest;
        middle.b += rest * step.exp_m1();
        // The rest is one minus a long sum.
        middle.slack += 4.0 * U * count as f64 * step;
        cells
    }
}

/// The relative error of a normal tail at z, including that of z itself (three roundings).
fn tail_error(z: f64) -> f64 {
    (6.0 + 8.0 * z * z) * U
}

fn log_sinh(x: f64) -> f64 {
    if x > 1.0 { x + (-(-2.0 * x).exp()).ln_1p() - std::f64::consts::LN_2 } else { x.sinh().ln() }
}
