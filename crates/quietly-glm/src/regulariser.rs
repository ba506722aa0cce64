//! The regulariser: ridge, lasso and power terms, independent of data.
//!
//! It is the same for all records, so it cancels in the difference of two gradients and enters no
//! sensitivity; step sizes alone know it.
use quietly_engine::error::Error;
use serde::{Deserialize, Serialize};

#[cfg(test)]
use super::projection::sum_of_sizes;
use super::{ball_intersection::BallIntersection, projection::norm, set::Set};

/// n·weight/θ·‖w‖^θ with θ > 2, as a part of an objective within a set.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PowerTerm {
    theta: f64,
    weight: f64,
    /// What its second derivative does not exceed in the set.
    pub smoothness: f64,
}

impl PowerTerm {
    /// Adds its gradient to `gradient`.
    pub fn add_gradient(&self, w: &[f64], gradient: &mut [f64]) {
        if self.weight > 0.0 {
            let factor = self.weight * norm(w).powf(self.theta - 2.0);
            gradient.iter_mut().zip(w).for_each(|(g, w)| *g += factor * w);
        }
    }
}

/// r(w) = ridge/2 · ‖w‖₂² + lasso · ‖w‖₁ + weight/θ · ‖w‖₂^θ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Regulariser {
    /// Weight of ‖w‖²/2: strongly convex.
    #[serde(default)]
    pub ridge: f64,
    /// Weight of ‖w‖₁. Not smooth, so it takes part in the projection and not in the gradient.
    #[serde(default)]
    pub lasso: f64,
    /// θ ≥ 2 and the weight of ‖w‖^θ/θ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<(f64, f64)>,
}

impl Regulariser {
    /// # Errors
    ///
    /// [`Error::Parameter`] for weights below zero, or a power below two.
    pub fn check(&self) -> Result<(), Error> {
        // Larger ones overflow in squares.
        let fits = |x: f64| (0.0..=1e100).contains(&x);
        let (theta, weight) = self.power.unwrap_or((2.0, 0.0));
        let good = theta >= 2.0 && theta.is_finite();
        Error::ensure(fits(self.ridge), "ridge", "from 0 to 1e100", self.ridge)?;
        Error::ensure(fits(self.lasso), "lasso", "from 0 to 1e100", self.lasso)?;
        Error::ensure(good, "the regulariser's power", "two or more", theta)?;
        Error::ensure(fits(weight), "the power's weight", "from 0 to 1e100", weight)
    }

    #[cfg(test)]
    pub fn value(&self, w: &[f64]) -> f64 {
        let norm = norm(w);
        let power = self.power.map_or(0.0, |(theta, weight)| weight / theta * norm.powf(theta));
        0.5 * self.ridge * norm * norm + self.lasso * sum_of_sizes(w) + power
    }

    /// Adds the gradient of all but the lasso to `gradient`.
    pub fn add_gradient(&self, w: &[f64], gradient: &mut [f64]) {
        let power = self.power.map_or(0.0, |(theta, weight)| weight * norm(w).powf(theta - 2.0));
        let factor = self.ridge + power;
        gradient.iter_mut().zip(w).for_each(|(g, w)| *g += factor * w);
    }

    /// The end of a gradient step of length `step`: the lasso's proximal map within the set,
    /// exactly. Returns the bound on the error that [`BallIntersection::project`] returns.
    pub fn prox(&self, step: f64, set: &BallIntersection, v: &mut [f64]) -> f64 {
        set.shrink(step * self.lasso, v)
    }

    /// The same in a set without a ball.
    pub fn prox_in(&self, step: f64, set: &Set, v: &mut [f64]) {
        set.shrink(step * self.lasso, v);
    }

    /// How fast the smooth part's gradient changes, at most, for weights no longer than `reach`.
    ///
    /// The Hessian of ‖w‖^θ/θ is ‖w‖^(θ-2) (I + (θ-2) ŵŵᵀ).
    pub fn smooth(&self, reach: f64) -> f64 {
        let power = |(theta, weight): (f64, f64)| {
            // ∞⁰ = 1, so a square needs no bound on the weights; nor does what has no weight.
            if weight == 0.0 { 0.0 } else { weight * (theta - 1.0) * reach.powf(theta - 2.0) }
        };
        self.ridge + self.power.map_or(0.0, power)
    }

    /// The power of `rows` rows within weights no longer than `reach`, unless [`strong`](Self::strong) has it.
    pub fn power_term(&self, rows: f64, reach: f64) -> PowerTerm {
        match self.power {
            Some((theta, weight)) if theta > 2.0 && weight > 0.0 => {
                let smoothness = rows * weight * (theta - 1.0) * reach.powf(theta - 2.0);
                PowerTerm { theta, weight: rows * weight, smoothness }
            }
            _ => PowerTerm::default(),
        }
    }

    /// How strongly convex it is, whatever the weights. Powers above two are flat at zero.
    pub fn strong(&self) -> f64 {
        self.ridge
            + self.power.map_or(0.0, |(theta, weight)| if theta == 2.0 { weight } else { 0.0 })
    }
}

#[cfg(test)]
mod tests {
    use quietly_core::random::Random;

    use super::*;
    use crate::ball_intersection::Ball;

    /// ½‖u - z‖² + by · ‖u‖₁ over a fine grid of the plane, refined around the best point.
    fn brute(within: &BallIntersection, z: &[f64], by: f64) -> (f64, [f64; 2]) {
        let cost = |u: &[f64]| {
            let far: f64 = u.iter().zip(z).map(|(u, z)| (u - z) * (u - z)).sum();
            0.5 * far + by * sum_of_sizes(u)
        };
        let allowed = |u: &[f64]| {
            let near =
                |ball: &Ball| norm(&[u[0] - ball.centre[0], u[1] - ball.centre[1]]) <= ball.radius;
            within.set.contains(u, 1e-9) && within.ball.as_ref().is_none_or(near)
        };
        let (mut best, mut at, mut size) = (f64::INFINITY, [0.0; 2], 2.0);
        for _ in 0..12 {
            let around = at;
            for k in 0..101 * 101 {
                let step = |k: i32| size * (f64::from(k) / 50.0 - 1.0);
                let u = [around[0] + step(k / 101), around[1] + step(k % 101)];
                if allowed(&u) && cost(&u) < best {
                    (best, at) = (cost(&u), u);
                }
            }
            size *= 0.3;
        }
        (best, at)
    }

    #[test]
    fn the_lasso_step_is_exact() {
        let mut random = Random(15);
        for round in 0..60 {
            let set = match round % 4 {
                0 => Set::L1 { radius: 0.8 },
                1 => Set::L2 { radius: 0.8 },
                2 => Set::Linf { radius: 0.5 },
                _ => Set::Box { lo: vec![0.1, -0.3], hi: vec![0.9, 0.2] },
            };
            let mut centre = vec![random.number(), random.number()];
            set.project(&mut centre);
            let ball = Ball { centre, radius: 0.3 };
            let within = BallIntersection { set, ball: (round % 8 > 3).then_some(ball) };
            let z = [1.5 * random.number(), 1.5 * random.number()];
            let regulariser = Regulariser { lasso: 0.8, ..Regulariser::default() };
            let mut u = z;
            regulariser.prox(0.25, &within, &mut u);
            let (least, at) = brute(&within, &z, 0.2);
            let cost =
                0.5 * ((u[0] - z[0]).powi(2) + (u[1] - z[1]).powi(2)) + 0.2 * sum_of_sizes(&u);
            assert!(cost <= least + 1e-8, "{within:?} {z:?} {cost} {least}");
            // Strong convexity: as good as the best is as near as this to it.
            let apart = norm(&[u[0] - at[0], u[1] - at[1]]);
            assert!(apart < 0.03, "{within:?} {apart}");
        }
    }

    #[test]
    fn on_the_simplex_a_lasso_changes_nothing() {
        let regulariser = Regulariser { lasso: 5.0, ..Regulariser::default() };
        let (mut a, mut b) = ([0.5, -0.5, 0.2], [0.5, -0.5, 0.2]);
        regulariser.prox_in(1.0, &Set::Simplex { total: 1.0 }, &mut a);
        Set::Simplex { total: 1.0 }.project(&mut b);
        assert_eq!(a, b);
    }

    #[test]
    fn gradients_are_derivatives_and_bends_stay_in_bounds() {
        let mut random = Random(16);
        let r = Regulariser { ridge: 0.3, lasso: 0.0, power: Some((3.5, 2.0)) };
        let gradient = |w: &[f64; 2]| {
            let mut g = [0.0; 2];
            r.add_gradient(w, &mut g);
            g
        };
        let mut derivative_bound = 0f64;
        for _ in 0..2000 {
            let mut w = [random.number(), random.number()];
            Set::L2 { radius: 1.0 }.project(&mut w);
            let (g, h) = (gradient(&w), 1e-6);
            for k in 0..2 {
                let (mut up, mut down) = (w, w);
                (up[k], down[k]) = (w[k] + h, w[k] - h);
                assert!(((r.value(&up) - r.value(&down)) / (2.0 * h) - g[k]).abs() < 1e-8);
            }
            let near = w.map(|w| w * 0.999);
            let moved = gradient(&near);
            let rate = norm(&[g[0] - moved[0], g[1] - moved[1]]) / (0.001 * norm(&w));
            assert!(rate <= r.smooth(1.0) && rate >= r.strong(), "{rate}");
            derivative_bound = derivative_bound.max(rate);
        }
        assert!(derivative_bound > 0.98 * r.smooth(1.0), "{derivative_bound}");
        assert_eq!((r.smooth(1.0), r.strong()), (5.3, 0.3));
        assert!(Regulariser { power: Some((1.5, 1.0)), ..r }.check().is_err());
        r.check().unwrap();
    }
}
