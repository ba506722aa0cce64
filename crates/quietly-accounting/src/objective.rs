//! The loss of a perturbed objective: the minimiser of Σ q(⟨w, x_i⟩, y_i) + Λ/2·‖w‖² + ⟨b, w⟩ + r(w) with b ~ N(0, σ²I), r convex.
//!
//! Kifer, Smith, Thakurta, *Private Convex Empirical Risk Minimization and High-dimensional Regression*, COLT 2012. The law of the loss, its
//! coupling of slope and curvature, and its composition are worked out here.
//!
//! b ↦ w is one to one. At the point that b leads to, the ratio of the minimiser's densities under two neighbouring tables is
//! exp((‖b + v‖² - ‖b‖²)/2σ²)·det H/det H', where v is the difference of the tables' gradients there and H, H' are their Hessians.
//!
//! *Determinants.* H and H' are some M ⪰ ΛI, plus what one record adds: at most κ along the record, κ/Λ ≤ `bend`. So the ratio is at most
//! 1 + `bend`; of K classes a record adds (diag p - ppᵀ) ⊗ xxᵀ, of rank K - 1 and trace at most (1 - 1/K)‖x‖², and `bend` is ‖x‖²/2Λ:
//! at most (1 + 2·`bend`/K)^(K-1).
//!
//! *Corners.* v is affine in the record's slopes at w. They are unknown, but lie in a polytope that the record fixes, and ‖b + v‖² is
//! convex: it is largest at a corner, where v is one fixed vector and the first factor is that of a Gaussian shifted by ‖v‖. So the
//! loss is at most ln of the second factor plus the largest of those at the corners, and the chance that it exceeds t at most the sum
//! of theirs. In units of the longest gradient of one record the corners measure
//!
//! | slopes | a record is there or not | a record is replaced |
//! |---|---|---|
//! | of one sign, [0, 1] or [-1, 0] | 0, 1 | 0, 1, 1, at most 2 |
//! | in [-1, 1] | 1, 1 | ±p ± p': two of a, two of b, a² + b² ≤ 4 |
//! | p - e_y of K classes (times √2) | 0, and K - 1 of 1 | 0, 2(K - 1) of 1, (K - 1)² of at most 2 |
//!
//! *Logistic slopes* are s times a sign, 0 ≤ s ≤ τ, with a curvature of at most s(1 - s): they know of each other. For a record that is
//! there or not, with m = ‖x‖/σ and c = ‖x‖²/Λ, the loss is at most f(s) for the s that it is,
//!
//! f(s) = s·z + s²m²/2 + ln(1 + s(1 - s)c),    z ~ N(0, m²),
//!
//! (where Q has the record the third term is left out), hence at most U(z) = max over s in [0, τ] of f(s) ≥ 0.
//!
//! In both cases δ(ε) ≤ E(1 - e^(ε - U))₊ for every ε of either sign, which is all that composition asks of a loss. A set of weights, or
//! an r that is rough, is a limit of smooth penalties, and minimisers converge for every b. Where q'' jumps, mollify.
//!
//! *Shorter records.* Corners only come nearer. For logistic slopes take z = mξ, ξ normal: for ξ ≥ 0, f grows with ‖x‖. For ξ < 0 it is
//! -αr + βr² + ln(1 + γr²) in r = ‖x‖; as long as γr² = s(1 - s)c ≤ 1 this is convex in r and zero at 0, so that where it is positive it
//! grows. Hence max(0, f), and U with it, is largest for the longest record if c ≤ 4.
//!
//! *The law of U.* U ≤ t iff z ≤ z(t) = min over s of (t - s²m²/2 - ln(1 + s(1 - s)c))/s. Between two s of a grid the numerator is at least
//! what its terms are at their largest there, so that z(t) is bounded from below, and U from above.
use serde::{Deserialize, Serialize};

use crate::{cells::Cells, event::Neighbours, normal::upper_tail};

/// What is known of a record's slopes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "slopes", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Slopes {
    /// Those of the logistic loss of two classes, cut at `most` of the steepest.
    Logistic {
        /// Above 0 and at most 1.
        most: f64,
    },
    /// Of one sign that the record fixes, such as those of the hinge.
    OneSign,
    /// Of either sign.
    TwoSigns,
    /// Those of the logistic loss of several classes.
    Classes {
        /// How many.
        count: u64,
    },
}

/// What the loss of a perturbed objective is at most, for one relation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Objective {
    /// Logistic slopes: m, c and τ of the longest record.
    Coupled { mu: f64, bend: f64, most: f64 },
    /// One of several Gaussian losses, plus a constant. Of several cases, each a list of (μ, how many), the worst counts.
    Corners { cases: Vec<Vec<(f64, f64)>>, extra: f64 },
}

impl Objective {
    /// Noise and bend as in [`Event::objective`](crate::Event::objective).
    pub(crate) fn new(noise: f64, bend: f64, slopes: Slopes, neighbours: Neighbours) -> Objective {
        let (mu, replace) = (1.0 / noise, neighbours == Neighbours::ReplaceOne);
        let others = match slopes {
            Slopes::Logistic { most } if !replace => {
                return Objective::Coupled { mu, bend: 4.0 * bend, most };
            }
            Slopes::Classes { count } => count as f64 - 1.0,
            _ => 1.0,
        };
        let most = if let Slopes::Logistic { most } = slopes { most } else { 1.0 };
        let cases = match (slopes, replace) {
            (Slopes::TwoSigns, false) => vec![vec![(1.0, 2.0)]],
            // Angles in steps; between two of them neither norm exceeds its larger end.
            (Slopes::TwoSigns, true) => (0..64_u8)
                .map(|k| {
                    let angle = |k: u8| f64::from(k) / 64.0 * std::f64::consts::FRAC_PI_4;
                    vec![(2.0 * angle(k).cos(), 2.0), (2.0 * angle(k + 1).sin(), 2.0)]
                })
                .collect(),
            (_, false) => vec![vec![(1.0, others)]],
            (_, true) => vec![vec![(2.0, others * others), (1.0, 2.0 * others)]],
        };
        let scaled =
            |case: Vec<(f64, f64)>| case.into_iter().map(|(n, k)| (n * most * mu, k)).collect();
        let extra = match slopes {
            Slopes::Classes { count } => others * (2.0 * bend / count as f64).ln_1p(),
            _ => bend.ln_1p(),
        };
        let cases = cases.into_iter().map(scaled).collect();
        Objective::Corners { cases, extra: extra * (1.0 + 1e-14) }
    }

    /// An instance: a record whose slopes stay at their steepest.
    pub(crate) fn least(&self) -> f64 {
        match self {
            Objective::Coupled { mu, most, .. } => mu * most,
            Objective::Corners { cases, .. } => cases[0].iter().map(|c| c.0).fold(0.0, f64::max),
        }
    }

    /// The chance that the loss exceeds t, not below: for t from 0 on.
    fn tail(&self) -> impl Fn(f64) -> f64 {
        let (pieces, mu) = match self {
            Objective::Coupled { mu, bend, most } => (pieces(*mu, *bend, *most), *mu),
            Objective::Corners { .. } => (Vec::new(), 0.0),
        };
        move |t: f64| match self {
            Objective::Coupled { .. } => upper_tail(reach(&pieces, t) / mu) * (1.0 + 1e-12),
            Objective::Corners { extra, .. } if t < *extra => 1.0,
            Objective::Corners { cases, extra } => {
                let corner = |&(mu, times): &(f64, f64)| {
                    times * upper_tail((t - extra) / mu * (1.0 - 1e-14) - 0.5 * mu)
                };
                let worst = cases.iter().map(|case| case.iter().map(corner).sum::<f64>());
                (worst.fold(0.0, f64::max) * (1.0 + 1e-12)).min(1.0)
            }
        }
    }

    /// A loss that is exceeded with no more than this probability.
    pub(crate) fn top(&self, least: f64) -> f64 {
        let tail = self.tail();
        let mut top = match self {
            Objective::Coupled { mu, bend, .. } => 4.0 * mu + bend,
            Objective::Corners { extra, .. } => 4.0 * self.least() + extra,
        };
        while tail(top) > least && top < 1e5 {
            top *= 1.2;
        }
        top
    }

    /// The loss on a grid: every value is moved up to the next point of it.
    pub(crate) fn cells(&self, step: f64, least: f64) -> Cells {
        let tail = self.tail();
        let count = ((self.top(least) / step).ceil() as i64).max(1);
        let mut cells = Cells::empty(step, -1, count as usize + 2);
        let mut above = 1.0;
        for k in 0..=count {
            let t = k as f64 * step;
            let over = tail(t);
            cells.add_atom(t, f64::max(above - over, 0.0));
            above = over.min(above);
        }
        cells.over_excess = above;
        cells
    }
}

/// Pieces that [0, τ] is cut into, finest near τ, where the tail is decided.
const PIECES: u32 = 300;

/// One piece: its ends, and what is taken from t on it at most.
struct Piece {
    from: f64,
    to: f64,
    taken: f64,
}

fn pieces(mu: f64, bend: f64, most: f64) -> Vec<Piece> {
    let end = |k: u32| {
        let left = 1.0 - f64::from(k) / f64::from(PIECES);
        most * (1.0 - left * left)
    };
    let piece = |k: u32| {
        let (from, to) = (end(k), end(k + 1));
        let bump = |s: f64| s * (1.0 - s);
        let highest = if from < 0.5 && 0.5 < to { 0.25 } else { bump(from).max(bump(to)) };
        let taken = 0.5 * (to * mu).powi(2) + (highest * bend).ln_1p();
        Piece { from, to, taken: taken * (1.0 + 1e-14) }
    };
    (0..PIECES).map(piece).collect()
}

/// z(t), not above.
fn reach(pieces: &[Piece], t: f64) -> f64 {
    let least = |p: &Piece| {
        let left = t - p.taken;
        if left >= 0.0 { left / p.to } else { left / p.from }
    };
    let z = pieces.iter().map(least).fold(f64::INFINITY, f64::min);
    z - 1e-13 * z.abs()
}

#[cfg(test)]
mod tests {
    use crate::{Event, Neighbours, Slopes, delta, epsilon, gaussian_mu};

    /// With c ≤ ε a record's determinant costs nothing: s·a + s(1 - s)c ≤ max(a, ε) for every s, where a is the loss at s = 1.
    #[test]
    fn enough_curvature_makes_it_a_gaussian() {
        for target in [0.1, 0.5, 1.0, 3.0] {
            let mu = gaussian_mu(target, 1e-5).unwrap();
            let price = |bend: f64, most: f64| {
                let event =
                    Event::objective(1.0 / mu, 0.25 * bend, Slopes::Logistic { most }).unwrap();
                epsilon(&event, Neighbours::AddRemove, 1e-5).unwrap()
            };
            let found = price(target, 1.0);
            assert!(
                found.upper >= target * (1.0 - 1e-9) && found.upper < 1.004 * target,
                "{found:?}"
            );
            assert!(found.lower > 0.99 * target);
            // Four times the curvature costs something, cut slopes cost less.
            let dearer = price((4.0 * target).min(4.0), 1.0).upper;
            assert!(dearer > found.upper * 1.002, "{target} {dearer}");
            assert!(price(target, 0.75).upper < 0.99 * found.upper);
        }
    }

    /// Against the integral itself, by brute force over z and s, alone and after a Gaussian release.
    #[test]
    fn integrals_agree() {
        let (mu, bend, most, earlier) = (0.4_f64, 0.9_f64, 0.8_f64, 0.1_f64);
        let loss = |z: f64| {
            let f = |k: u32| {
                let s = most * f64::from(k) / 2000.0;
                s * z + 0.5 * (s * mu).powi(2) + (s * (1.0 - s) * bend).ln_1p()
            };
            (0..=2000).map(f).fold(0.0, f64::max)
        };
        let steps = 4000;
        let integral = |curve: &dyn Fn(f64) -> f64| -> f64 {
            let width = 20.0 / f64::from(steps);
            let density = |x: f64| (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
            let at = |k: i32| -10.0 + width * (f64::from(k) + 0.5);
            (0..steps).map(|k| width * density(at(k)) * curve(loss(mu * at(k)))).sum()
        };
        let event = Event::objective(1.0 / mu, 0.25 * bend, Slopes::Logistic { most }).unwrap();
        for target in [0.2, 0.6, 1.2] {
            let alone = integral(&|u| (1.0 - f64::exp(target - u)).max(0.0));
            let found = delta(&event, Neighbours::AddRemove, target).unwrap().upper;
            assert!(found >= alone * (1.0 - 1e-6) && found < 1.03 * alone, "{found} {alone}");
            let after = integral(&|u| crate::gaussian::delta(earlier, target - u).upper);
            let both = event.clone().then(Event::gaussian(1.0 / earlier).unwrap());
            let found = delta(&both, Neighbours::AddRemove, target).unwrap().upper;
            assert!(found >= after * (1.0 - 1e-6) && found < 1.03 * after, "{found} {after}");
        }
    }

    /// The minimiser itself in one dimension, whose density is known: no more than is charged, where a record is added, removed or
    /// replaced.
    #[test]
    fn the_minimiser_of_one_weight_leaks_no_more_than_is_charged() {
        let (strong, noise) = (1.5_f64, 3.0_f64);
        // log(1 + e^-yw): its slope and its curvature.
        let row = |y: f64, w: f64| {
            let s = 1.0 / (1.0 + (y * w).exp());
            (-y * s, s * (1.0 - s))
        };
        let density = |y: Option<f64>, w: f64| {
            let (slope, bend) = y.map_or((0.0, 0.0), |y| row(y, w));
            // b = -(slope + Λw), and how fast it moves with w.
            let b = slope + strong * w;
            let normal =
                (-0.5 * (b / noise).powi(2)).exp() / (noise * (2.0 * std::f64::consts::PI).sqrt());
            normal * (strong + bend)
        };
        let leak = |p: Option<f64>, q: Option<f64>, epsilon: f64| -> f64 {
            let width = 60.0 / 60_000.0;
            let at = |k: i32| -30.0 + width * (f64::from(k) + 0.5);
            let over = |w: f64| (density(p, w) - epsilon.exp() * density(q, w)).max(0.0);
            (0..60_000).map(|k| width * over(at(k))).sum()
        };
        let event = Event::objective(noise, 0.25 / strong, Slopes::Logistic { most: 1.0 }).unwrap();
        for (pairs, neighbours) in [
            (vec![(Some(1.0), None), (None, Some(1.0))], Neighbours::AddRemove),
            (vec![(Some(1.0), Some(-1.0))], Neighbours::ReplaceOne),
        ] {
            for target in [0.05, 0.2, 0.4] {
                let found = delta(&event, neighbours, target).unwrap().upper;
                let leaks = pairs.iter().map(|(p, q)| leak(*p, *q, target));
                let most = leaks.fold(0.0, f64::max);
                assert!(most <= found, "{neighbours:?} {target}: {most} above {found}");
                assert!(most > 0.0 && found < 1.0);
            }
        }
        // A record that is left out of the price would be seen.
        let cheap = Event::objective(8.0 * noise, 0.01, Slopes::Logistic { most: 1.0 }).unwrap();
        let price = delta(&cheap, Neighbours::AddRemove, 0.05).unwrap().upper;
        assert!(leak(Some(1.0), None, 0.05) > price);
    }

    /// A single shift that a record fixes costs what a Gaussian does, plus the determinants; two signs cost a little more.
    #[test]
    fn corners_cost_what_their_gaussians_do() {
        let mu = gaussian_mu(1.0, 1e-5).unwrap();
        let price = |slopes, neighbours, noise: f64| {
            let event = Event::objective(noise, 1e-4, slopes).unwrap();
            epsilon(&event, neighbours, 1e-5).unwrap().upper
        };
        use Neighbours::{AddRemove, ReplaceOne};
        let one = price(Slopes::OneSign, AddRemove, 1.0 / mu);
        assert!((1.0..1.006).contains(&one), "{one}");
        let two = price(Slopes::TwoSigns, AddRemove, 1.0 / mu);
        assert!((1.03..1.08).contains(&two), "{two}");
        let three = price(Slopes::Classes { count: 3 }, AddRemove, 1.0 / mu);
        assert!((two - three).abs() < 0.01, "{three}");
        let one = price(Slopes::OneSign, ReplaceOne, 2.0 / mu);
        assert!((1.0..1.006).contains(&one), "{one}");
        let two = price(Slopes::TwoSigns, ReplaceOne, 2.0 / mu);
        assert!((1.03..1.08).contains(&two), "{two}");
    }

    #[test]
    fn what_is_not_proven_is_refused() {
        let logistic = |most| Slopes::Logistic { most };
        assert!(Event::objective(2.0, 1.1, logistic(1.0)).is_err());
        assert!(Event::objective(2.0, 0.2, logistic(1.1)).is_err());
        assert!(Event::objective(2.0, 0.2, Slopes::Classes { count: 1 }).is_err());
        assert!(Event::objective(2.0, -0.2, Slopes::OneSign).is_err());
    }
}
