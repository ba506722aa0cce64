//! The minimiser of a strongly convex sum over rows within a set, with a proof of how near it is.
//!
//! # Proof: distance to a constrained minimiser
//!
//! Let w⁺ = Π(w - s∇J(w)). Then v = (w - w⁺)/s + ∇J(w⁺) - ∇J(w) is a subgradient at w⁺ of J plus the set's indicator, as (w - s∇J(w)) - w⁺
//! is normal to the set there. The sum is Λ-strongly convex, so ‖w⁺ - argmin‖ ≤ ‖v‖/Λ for any s > 0.
//!
//! Steps follow Barzilai and Borwein, which needs no proof. Where they do not help, s = 1/(nβ + Λ), and w must arrive: each such
//! step takes the distance to the minimiser down by the factor 1 - q at least, q = Λ/(nβ + Λ), and rounding adds no more than e, which
//! adds up to e/q. So after ln(4B/a)/q of them, from a distance of at most 2B, it is below a/2 + e/q, and a was asked for with room
//! for that: even where rounding hides it from the certificate, the loop ends, for every table.
use quietly_engine::linalg::{dot, norm};

use super::{
    minimiser::{Near, Objective, Terms},
    set::Set,
};

/// After so many steps without success, only steps that are proven are taken.
const TRIES: u64 = 3000;

/// By how much a projection of weights in a set of this radius may err.
fn rounding(size: usize, radius: f64) -> f64 {
    16.0 * (size as f64 + 16.0) * f64::EPSILON * radius
}

impl Terms {
    /// A distance that 53 bits can show within a set whose points are no longer than `radius`.
    pub fn least_distance_within(&self, rows: f64, radius: f64, linear_term: f64) -> f64 {
        let all = self.size * self.glm.outputs();
        let projection = 2.0 * self.derivative_bound(rows) * rounding(all, radius);
        2.0 * self.least_distance(rows, radius, linear_term) + 4.0 * projection / self.strong
    }
}

impl Objective<'_> {
    /// A point of the set within `near` of the minimiser of J + `lasso`·‖w‖₁ there, which is no less than
    /// [`Terms::least_distance_within`]. Π is then the lasso's proximal map within the set, and v a subgradient of that sum.
    pub fn minimise_within<E>(
        &self,
        set: &Set,
        lasso: f64,
        radius: f64,
        near: f64,
        keep_on: &mut dyn FnMut(u64) -> Result<(), E>,
    ) -> Result<Near, E> {
        let most = self.terms.derivative_bound(self.rows.len() as f64);
        let strong = self.terms.strong;
        let rounding = rounding(self.linear_term.len(), radius);
        let mut w = set.center(self.linear_term.len());
        let (mut g, mut error) = self.gradient(&w);
        let (mut step, mut passes) = (1.0 / most, 0);
        let enough = TRIES
            .saturating_add(((4.0 * radius / near).ln().max(1.0) * most / strong).ceil() as u64);
        loop {
            passes += 1;
            keep_on(passes)?;
            let mut next: Vec<f64> = w.iter().zip(&g).map(|(w, g)| w - step * g).collect();
            set.shrink(step * lasso, &mut next);
            let (next_g, next_error) = self.gradient(&next);
            let moved: Vec<f64> = next.iter().zip(&w).map(|(a, b)| a - b).collect();
            let turned: Vec<f64> = next_g.iter().zip(&g).map(|(a, b)| a - b).collect();
            let v: Vec<f64> = moved.iter().zip(&turned).map(|(m, t)| t - m / step).collect();
            // What is computed is w⁺ + e with ‖e‖ ≤ rounding: v moves by ‖e‖/s, and by as much as ∇J does over e.
            let slack = error + next_error + rounding * (1.0 / step + most);
            let distance = 1.000_001 * (norm(&v) + slack) / strong + rounding;
            if distance <= near || passes >= enough {
                return Ok(Near { point: next, distance: distance.min(near) });
            }
            let turn = dot(&moved, &turned);
            // The two steps of Barzilai and Borwein in turn: the short one keeps the long one in check.
            let spectral = match passes % 2 {
                0 => dot(&moved, &moved) / turn,
                _ => turn / dot(&turned, &turned),
            };
            let good =
                passes < TRIES && spectral.is_finite() && spectral > 0.0 && passes % 50 != 49;
            step = if good { spectral.clamp(1.0 / most, 1.0 / strong) } else { 1.0 / most };
            (w, g, error) = (next, next_g, next_error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        design_matrix::{Examples, Features},
        minimiser::tests::{SHAPE, SMOOTH, rows},
        regulariser::PowerTerm,
    };

    /// Against plain projected gradient steps, which must arrive.
    #[test]
    fn the_minimiser_in_a_set_is_found() {
        let sets = [
            Set::L1 { radius: 0.5 },
            Set::L2 { radius: 0.3 },
            Set::Linf { radius: 0.1 },
            Set::Simplex { total: 1.0 },
            Set::L2 { radius: 100.0 },
        ];
        for glm in &SMOOTH[..5] {
            let (x, y) = rows(300, 4, *glm, 7);
            let examples = Examples::new(SHAPE, Features::Dense(&x), y, 2);
            let terms = Terms {
                glm: *glm,
                radius: 2.0,
                size: 5,
                strong: 20.0,
                power_term: PowerTerm::default(),
            };
            let objective = Objective {
                terms,
                examples: &examples,
                rows: 0..300,
                linear_term: &[1.0, -30.0, 5.0, 0.0, 9.0],
            };
            for set in &sets {
                let near = terms.least_distance_within(300.0, 100.0, 100.0).max(1e-10);
                let found = objective
                    .minimise_within::<()>(set, 0.0, 100.0, near, &mut |_| Ok(()))
                    .unwrap();
                let mut w = set.center(5);
                let step = 1.0 / terms.derivative_bound(300.0);
                for _ in 0..3000 {
                    let (g, _) = objective.gradient(&w);
                    w.iter_mut().zip(g).for_each(|(w, g)| *w -= step * g);
                    set.project(&mut w);
                }
                let apart: Vec<f64> = found.point.iter().zip(&w).map(|(a, b)| a - b).collect();
                assert!(norm(&apart) <= near + 1e-11, "{glm:?} {set:?} {:e}", norm(&apart));
                assert!(set.contains(&found.point, 1e-9));
            }
        }
    }
}
