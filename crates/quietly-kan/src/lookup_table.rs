//! A last layer with one score: every unit is a function of one number, tabulated.
//!
//! On each interval the function of a unit is a polynomial in the place u within it. Lanes of
//! units pick their interval by comparison, which is quicker than fetching from memory for as few
//! intervals as there are, and evaluate by Horner's rule.
use quietly_engine::splines::Basis;

use super::activation::{LANES, Lanes, across};

#[derive(Clone, Debug)]
pub(super) struct Tables {
    basis: Basis,
    /// [chunk of units][interval][power of u].
    coefficients: Vec<Lanes>,
}

impl Tables {
    /// The functions of units whose coefficients are `weights` [unit][function]; units are filled up with zeros.
    pub(super) fn new(basis: Basis, weights: &[f64], chunks: usize) -> Self {
        let active = basis.active();
        let mut coefficients = vec![[0.0; LANES]; chunks * basis.intervals * active];
        for (unit, weights) in weights.chunks_exact(basis.size()).enumerate() {
            for (interval, powers) in basis.polynomials(weights).iter().enumerate() {
                for (power, c) in powers[..active].iter().enumerate() {
                    let chunk = (unit / LANES) * basis.intervals + interval;
                    coefficients[chunk * active + power][unit % LANES] = *c as f32;
                }
            }
        }
        Self { basis, coefficients }
    }

    /// Σ_j G_j(v_j); the derivatives G_j'(v_j) are written beside.
    #[inline(always)]
    pub(super) fn at<const Q: usize>(&self, values: &[Lanes], slopes: &mut [Lanes]) -> f32 {
        let density = self.basis.density() as f32;
        let last = (self.basis.intervals - 1) as f32;
        let tables = self.coefficients.chunks_exact(self.basis.intervals * Q);
        let mut sum = [0.0; LANES];
        for ((v, slope), table) in values.iter().zip(slopes).zip(tables) {
            let (mut u, mut interval) = ([0.0; LANES], [0.0; LANES]);
            for lane in 0..LANES {
                let t = (v[lane] + 1.0) * density;
                interval[lane] = t.floor().min(last);
                u[lane] = t - interval[lane];
            }
            let mut c = [[0.0; LANES]; Q];
            for (i, table) in table.as_chunks::<Q>().0.iter().enumerate() {
                for (c, table) in c.iter_mut().zip(table) {
                    for lane in 0..LANES {
                        c[lane] = if interval[lane] == i as f32 { table[lane] } else { c[lane] };
                    }
                }
            }
            let (mut g, mut rise) = (c[Q - 1], [0.0; LANES]);
            for k in (0..Q - 1).rev() {
                for lane in 0..LANES {
                    rise[lane] = rise[lane] * u[lane] + g[lane];
                    g[lane] = g[lane] * u[lane] + c[k][lane];
                }
            }
            for lane in 0..LANES {
                sum[lane] += g[lane];
                slope[lane] = rise[lane] * density;
            }
        }
        across(sum)
    }
}
