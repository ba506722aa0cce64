//! Newton's method with a line search, for the non-private minimiser of a sum over rows.
//!
//! J is convex, so the derivative along a direction never falls: its root is found by bracketing, and every step goes down. Where J is made of
//! parabolas (rounded corners, Huber's loss), the steps end at the minimiser after finitely many.
use quietly_engine::linalg::{Factor, dot, norm};

use super::minimiser::{Objective, WIDEST};

/// Steps, and looks along one of them.
const STEPS: u64 = 200;
const LOOKS: usize = 80;
/// The mean loss of a row that a step must promise to be taken.
const PROMISE: f64 = 1e-13;

impl Objective<'_> {
    /// The minimiser, from `start`, as nearly as 53 bits show. `keep_on` is told of every step, and may end it all.
    pub(super) fn settle<E>(
        &self,
        start: Vec<f64>,
        keep_on: &mut dyn FnMut(u64) -> Result<(), E>,
    ) -> Result<Vec<f64>, E> {
        let mut w = start;
        if w.len() > WIDEST {
            // Too wide for a matrix.
            return Ok(self.descend_from(w, 0.0, keep_on)?.0.point);
        }
        let enough = PROMISE * self.rows.len() as f64;
        let (mut g, mut error) = self.gradient(&w);
        for step in 1..=STEPS {
            keep_on(step)?;
            if norm(&g) <= 2.0 * error {
                break;
            }
            let Some(factor) = self.bent(&w) else { break };
            let mut direction: Vec<f64> = g.iter().map(|g| -g).collect();
            factor.solve(&mut direction);
            let derivative = dot(&g, &direction);
            // A step that is not a number ends the search.
            if derivative.is_nan() || derivative >= -enough {
                break;
            }
            let t = self.along(&w, &direction, derivative);
            w.iter_mut().zip(&direction).for_each(|(w, d)| *w += t * d);
            (g, error) = self.gradient(&w);
        }
        Ok(w)
    }

    /// About where along a direction the derivative is zero, given its value at 0.
    fn along(&self, w: &[f64], direction: &[f64], start: f64) -> f64 {
        let derivative = |t: f64| {
            let at: Vec<f64> = w.iter().zip(direction).map(|(w, d)| w + t * d).collect();
            dot(&self.gradient(&at).0, direction)
        };
        let (mut low, mut high) = ((0.0, start), None);
        let mut t = 1.0;
        for look in 0..LOOKS {
            let now = derivative(t);
            if now.abs() <= 0.05 * start.abs() {
                return t;
            }
            if now > 0.0 {
                high = Some((t, now));
            } else {
                low = (t, now);
            }
            t = match high {
                None => 4.0 * t,
                // Where no row bends, a step may be too long by orders of magnitude.
                Some((end, _)) if low.0 == 0.0 => 0.1 * end,
                // Interpolation alone creeps where one end is far steeper than the other.
                Some((end, _)) if look % 2 == 0 => 0.5 * (low.0 + end),
                Some((end, rises)) => {
                    let share = -low.1 / (rises - low.1);
                    low.0 + share.clamp(0.1, 0.9) * (end - low.0)
                }
            };
        }
        low.0
    }

    /// The curvature of all rows at w; a little more where that is not positive.
    fn bent(&self, w: &[f64]) -> Option<Factor> {
        let size = w.len();
        let count = self.rows.len();
        let matrix = self.examples.curvature(self.terms.glm, w, self.rows.clone(), count);
        let most = (0..size).map(|j| matrix[j * size + j]).fold(self.terms.strong, f64::max);
        let with = |ridge: f64| {
            let mut matrix = matrix.clone();
            (0..size).for_each(|j| matrix[j * size + j] += ridge);
            Factor::new(matrix, size)
        };
        let ridges = [self.terms.strong, self.terms.strong + 1e-10 * most, 1e-6 * most];
        ridges.into_iter().find_map(with)
    }
}
