//! A bound on the gradient norm of any row.
//!
//! # Proof: the longest gradient of a row
//!
//! With two layers, δ_j = m^{-1/2} (1 - v²) Σ_κ r_κ G'_{jκ}(v) at v = tanh(a_j), whatever the row.
//! The functions G are public, so the greatest value of every (1 - v²) G'(v) is known, and with it
//! a bound on the norm of δ: no clipping at that norm ever acts.
use quietly_engine::splines::{Basis, Locals, MAX_DEGREE};

use super::{network::Network, quantized_rows::ONE};

/// Coefficients of (1 - v²) G'(v): one degree more than G.
type Product = [f64; MAX_DEGREE + 2];

/// How often an interval is halved: the bound is then above the maximum by less than a thousandth.
const HALVINGS: u32 = 5;

/// What single precision may add to a gradient, as a share of the longest.
const SLACK: f64 = 1e-4;

impl Network {
    /// G(c): the gradient of no row is longer. There is none for more than two layers.
    ///
    /// If the last layer learns, it holds for the weights as they are now.
    pub fn longest_gradient(&self) -> Option<f64> {
        let [first, last] = self.layers.as_slice() else { return None };
        let weights: Vec<f64> = last.get().map(f64::from).collect();
        let (functions, outputs) = (self.basis.size(), last.shape.outputs);
        let mut squares = 0.0;
        for unit in weights.chunks_exact(functions * outputs) {
            for output in 0..outputs {
                let c: Vec<f64> = unit.iter().skip(output).step_by(outputs).copied().collect();
                squares += steepest(self.basis, &c).powi(2);
            }
        }
        // Rounding to bytes moves each of the splines that are not zero by half a unit at most.
        let (_, longest) = self.basis.square_range();
        let splines = longest.sqrt() + 0.5 * (self.basis.active() as f64).sqrt() / ONE;
        let features = first.splines.len() as f64 * splines.powi(2) + first.plain.len() as f64;
        let mut gradient =
            squares / last.shape.inputs as f64 * features / first.shape.inputs as f64;
        if last.shape.trainable {
            gradient += splines.powi(2);
        }
        Some(gradient.sqrt() * self.shape.loss.steepest() * (1.0 + SLACK))
    }
}

/// An upper bound on |(1 - v²) G'(v)| over [-1, 1], where G = Σ c_k b_k.
fn steepest(basis: Basis, c: &[f64]) -> f64 {
    let width = 1.0 / basis.density();
    let of = |(interval, g): (usize, &Locals)| {
        // 1 - v² for v = start + width·u.
        let start = interval as f64 * width - 1.0;
        let factor = [1.0 - start * start, -2.0 * start * width, -width * width];
        let mut product = Product::default();
        for power in 1..=basis.degree {
            let slope = power as f64 * g[power] * basis.density();
            for (more, factor) in factor.iter().enumerate() {
                product[power - 1 + more] += slope * factor;
            }
        }
        highest(bernstein(product), HALVINGS)
    };
    basis.polynomials(c).iter().enumerate().map(of).fold(0.0, f64::max)
}

/// A polynomial on [0, 1] in Bernstein's form: it is a mean of these numbers at every point.
fn bernstein(powers: Product) -> Product {
    let choose = |n: usize, k: usize| (0..k).fold(1.0, |c, i| c * (n - i) as f64 / (i + 1) as f64);
    let n = powers.len() - 1;
    let of = |i: usize| (0..=i).map(|k| choose(i, k) / choose(n, k) * powers[k]).sum();
    std::array::from_fn(of)
}

/// An upper bound on the size of a polynomial in Bernstein's form, after so many halvings.
fn highest(form: Product, halvings: u32) -> f64 {
    if halvings == 0 {
        return form.iter().fold(0.0, |most, x| x.abs().max(most));
    }
    let (mut left, mut right) = (form, form);
    let n = form.len();
    for (step, left) in left.iter_mut().enumerate() {
        *left = right[0];
        for i in 0..n - 1 - step {
            right[i] = (right[i] + right[i + 1]) / 2.0;
        }
    }
    // What is left of `right` is de Casteljau's triangle's last diagonal.
    highest(left, halvings - 1).max(highest(right, halvings - 1))
}

#[cfg(test)]
mod tests {
    use quietly_core::random::Random;

    use super::*;

    #[test]
    fn the_bound_is_just_above_the_steepest_point() {
        let mut random = Random(5);
        for (size, degree) in [(8, 3), (5, 3), (12, 5), (4, 2), (3, 1), (40, 3)] {
            let basis = Basis::new(size, degree);
            for _ in 0..20 {
                let c: Vec<f64> = (0..size).map(|_| random.number()).collect();
                let bound = steepest(basis, &c);
                let mut seen = 0f64;
                for i in -20_000..=20_000 {
                    let v = f64::from(i) / 2e4;
                    let point = basis.at(v);
                    let slope: f64 =
                        (0..=degree).map(|k| point.slopes[k] * c[point.interval + k]).sum();
                    seen = seen.max(((1.0 - v * v) * slope).abs());
                }
                assert!(seen <= bound * (1.0 + 1e-12) && bound < 1.003 * seen, "{seen} {bound}");
            }
        }
    }
}
