//! A set and a ball around one of its points: the nearest point of both.
//!
//! # Proof: the nearest point of a set and a ball
//!
//! **Theorem.** Let c ∈ W, and u(t) the minimiser over W of ½‖u - (c + t(z - c))‖² + tλ‖u‖₁, for t in
//! [0, 1] (for λ = 0, the projection). Then g(t) = ‖u(t) - c‖ never decreases. If g(1) ≤ R, then
//! u(1) minimises ½‖u - z‖² + λ‖u‖₁ over W and the ball ‖u - c‖ ≤ R; else u(t) does for every t with
//! g(t) = R.
//!
//! *Proof.* c is inside the ball, so a multiplier ν ≥ 0 exists: the minimiser over both is the one
//! over W of ½‖u - z‖² + λ‖u‖₁ + (ν/2)‖u - c‖², and divided by 1 + ν that is u(t) for t = 1/(1 + ν); the
//! problem is convex, so this is sufficient too. A larger ν never gives a larger ‖u - c‖: the two
//! minimisers, each best for its own ν, exchange. ∎
//!
//! So one search for one number replaces Dykstra's endless alternation. The minimiser moves by no
//! more than its two arguments, ‖u(s) - u(t)‖ ≤ |s - t| (‖z - c‖ + λ√d): the length of the last
//! bracket bounds the error, whatever the data.
use super::{
    constants::Norms,
    projection::{distance, largest, norm},
    set::Set,
};

/// The points no further than a radius from a centre.
#[derive(Clone, Debug, PartialEq)]
pub struct Ball {
    pub centre: Vec<f64>,
    pub radius: f64,
}

/// The part of a set that lies in a ball around one of its points.
#[derive(Clone, Debug, PartialEq)]
pub struct BallIntersection {
    pub set: Set,
    pub ball: Option<Ball>,
}

/// The search stops at this error, relative to max(1, ‖z - c‖).
pub const ERROR: f64 = 1.0 / (1u64 << 48) as f64;
/// The bracket is halved at least every third step: 144 of these are enough without a lasso.
const STEPS: usize = 240;

impl BallIntersection {
    /// Moves `v` to the nearest point of both. Returns a bound on the error, before rounding, which
    /// never exceeds [`ERROR`] · max(1, ‖v - centre‖).
    pub fn project(&self, v: &mut [f64]) -> f64 {
        self.shrink(0.0, v)
    }

    /// Moves `v` to the u in both with least ½‖u - v‖² + by · ‖u‖₁. Returns a bound on the error, as
    /// [`project`](Self::project) does.
    pub fn shrink(&self, by: f64, v: &mut [f64]) -> f64 {
        let Some(ball) = &self.ball else {
            self.set.shrink(by, v);
            return 0.0;
        };
        let target = v.to_vec();
        self.set.shrink(by, v);
        if distance(v, &ball.centre) <= ball.radius {
            return 0.0;
        }
        if let Set::L2 { radius } = self.set
            && by == 0.0
            && let Some(error) = ball.lens(radius, &target, v)
        {
            return error;
        }
        self.search(ball, by, &target, v)
    }

    /// The general case, when the ball is in the way.
    pub(super) fn search(&self, ball: &Ball, by: f64, target: &[f64], v: &mut [f64]) -> f64 {
        let Ball { centre, radius } = ball;
        let apart = distance(target, centre);
        let span = apart + by * (v.len() as f64).sqrt();
        let excess = |t: f64, v: &mut [f64]| {
            for (u, (z, c)) in v.iter_mut().zip(target.iter().zip(centre)) {
                *u = c + t * (z - c);
            }
            self.set.shrink(t * by, v);
            distance(v, centre) - radius
        };
        // g(t) ≤ t · span, so the lower end is inside.
        let (mut lo, mut hi) = ((radius / span).min(1.0), 1.0);
        let (mut low, mut high) = (excess(lo, v).min(0.0), excess(hi, v));
        let enough = ERROR * apart.max(1.0) / span;
        let mut last = None;
        for step in 0..STEPS {
            if hi - lo <= enough {
                break;
            }
            // Regula falsi that never sits on one end (Illinois), and the middle every third time.
            let secant = lo - low * (hi - lo) / (high - low);
            let t = match step % 3 {
                2 => lo + (hi - lo) / 2.0,
                _ => secant.max(lo + enough / 2.0).min(hi - enough / 2.0),
            };
            let now = excess(t, v);
            let inside = now <= 0.0;
            let again = last == Some(inside);
            if inside {
                (lo, low) = (t, now);
                high *= if again { 0.5 } else { 1.0 };
            } else {
                (hi, high) = (t, now);
                low *= if again { 0.5 } else { 1.0 };
            }
            last = Some(inside);
        }
        excess(lo, v);
        ball.pull_in(v);
        (hi - lo) * span
    }

    /// Bounds on the norms of its points.
    pub fn norms(&self, width: usize) -> Norms {
        let all = self.set.norms(width);
        let Some(Ball { centre, radius }) = &self.ball else { return all };
        Norms {
            l1: all.l1,
            l2: all.l2.min(norm(centre) + radius),
            linf: all.linf.min(largest(centre) + radius),
        }
    }
}

impl Ball {
    /// Rounding may leave a point just outside. The way to the centre stays in any convex set.
    fn pull_in(&self, v: &mut [f64]) {
        let (mut away, mut slack) = (distance(v, &self.centre), f64::EPSILON);
        while away > self.radius {
            let keep = self.radius / away * (1.0 - slack).max(0.0);
            v.iter_mut().zip(&self.centre).for_each(|(u, c)| *u = c + keep * (*u - c));
            // Adding the centre rounds as well, by more if it is far out: then a little further,
            // and in the end to the centre itself.
            (away, slack) = (distance(v, &self.centre), 4.0 * slack);
        }
    }

    /// The ball ‖u‖ ≤ `outer` and this one, in closed form. None where it would lose digits.
    ///
    /// If the nearest point of this ball lies in the other, that is it. Else both surfaces are in
    /// the way, and the answer lies where they meet: x beyond the centre along c, and y across, on
    /// the target's side.
    fn lens(&self, outer: f64, target: &[f64], v: &mut [f64]) -> Option<f64> {
        let Ball { centre, radius } = self;
        let keep = radius / distance(target, centre);
        for (u, (z, c)) in v.iter_mut().zip(target.iter().zip(centre)) {
            *u = c + keep * (z - c);
        }
        if norm(v) <= outer {
            self.pull_in(v);
            return Some(0.0);
        }
        let far = norm(centre);
        let x = ((outer - far) * (outer + far) - radius * radius) / (2.0 * far);
        let y = ((radius - x) * (radius + x)).max(0.0).sqrt();
        let along = target.iter().zip(centre).map(|(z, c)| z * (c / far)).sum::<f64>();
        let across: Vec<f64> =
            target.iter().zip(centre).map(|(z, c)| z - along * (c / far)).collect();
        let height = norm(&across);
        // First order in the rounding of x, y and the direction across.
        let lost = (outer * outer + radius * radius) / far * (1.0 + x.abs() / y)
            + norm(target) / height * y
            + outer;
        let error = 8.0 * f64::EPSILON * lost;
        // Where a division by zero gave NaN, there is no closed form either.
        if error.is_nan() || error > ERROR * distance(target, centre).max(1.0) {
            return None;
        }
        for (u, (c, p)) in v.iter_mut().zip(centre.iter().zip(&across)) {
            *u = c + x * (c / far) + y * (p / height);
        }
        self.pull_in(v);
        Some(error)
    }
}
