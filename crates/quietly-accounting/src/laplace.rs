//! Privacy losses with atoms: Laplace noise, pure DP and approximate DP.
use crate::pld_grid::LossCells;

/// Laplace noise of scale `scale` times the sensitivity: P = Lap(0), Q = Lap(1). Both directions
/// have the same loss.
///
/// The loss (|x-1| - |x|)/b is 1/b with probability 1/2, -1/b with probability e^(-1/b)/2, and in
/// between has the density e^((l - 1/b)/2)/4. The step should divide 1/b, so that both atoms fall
/// on the grid.
pub(crate) fn laplace(scale: f64, step: f64) -> LossCells {
    let top = 1.0 / scale;
    let count = (top / step).round().max(1.0) as i64;
    let mut cells = LossCells::empty(step, -count - 1, 2 * count as usize + 2);
    let slack = 16.0 * f64::EPSILON;
    let density = 0.25 * (-0.5 * top).exp();
    for i in 0..2 * count as usize + 2 {
        let low = (cells.first + i as i64) as f64 * step;
        // The part of the cell where the loss has a density.
        let (from, to) = (low.max(-top), (low + step).min(top));
        if to <= from {
            continue;
        }
        // ∫ e^(l/2)(1 - e^(low - l)) dl and its mirror, as products of hyperbolic sines: nothing
        // cancels.
        let primitive = |from: f64, to: f64| 4.0 * ((0.5 * to).cosh() - (0.5 * from).cosh());
        let cell = &mut cells.cells[i];
        let mass = density * 2.0 * ((0.5 * to).exp() - (0.5 * from).exp());
        let whole = from == low && to == low + step;
        let (a, b) = if whole {
            let s = 8.0 * (0.25 * step).sinh().powi(2);
            ((0.5 * low).exp() * s, (0.5 * (low + step)).exp() * s)
        } else {
            let high = low + step;
            (
                (0.5 * low).exp() * primitive(from - low, to - low),
                (0.5 * high).exp() * primitive(high - to, high - from),
            )
        };
        cell.mass = mass;
        cell.a = density * a;
        cell.b = density * b;
        cell.slack = slack * if whole { cell.a + cell.b } else { mass };
    }
    cells.add_atom(top, 0.5);
    cells.add_atom(-top, 0.5 * (-top).exp());
    cells
}

/// The pair that dominates every (ε, δ)-DP mechanism: an infinite loss with probability δ,
/// otherwise +ε with probability 1/(1 + e^-ε) and -ε with the rest. Both directions have the same
/// loss.
///
/// Kairouz, Oh and Viswanath, *The Composition Theorem for Differential Privacy*, 2015, Theorem 3.1
/// and its proof.
pub(crate) fn approximate_dp(epsilon: f64, delta: f64, step: f64) -> LossCells {
    let count = (epsilon / step).round().max(1.0) as i64;
    let mut cells = LossCells::empty(step, -count - 1, 2 * count as usize + 2);
    cells.add_atom(epsilon, (1.0 - delta) / (1.0 + (-epsilon).exp()));
    cells.add_atom(-epsilon, (1.0 - delta) / (1.0 + epsilon.exp()));
    cells.infinite = delta;
    cells
}
