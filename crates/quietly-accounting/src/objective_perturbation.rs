//! Objective perturbation: the privacy loss of the minimiser of
//! Σ q(⟨w, x_i⟩, y_i) + Λ/2·‖w‖² + ⟨b, w⟩ + r(w) with b ~ N(0, σ²I) and r convex.
//!
//! # Proof: objective perturbation
//!
//! *Statement.* In both cases below, the loss is at most U with δ(ε) ≤ E(1 - e^(ε - U))₊ for every
//! ε of either sign. That is what composition needs of a loss.
//!
//! *Conditions.* The exact minimiser is released. `smoothness` is κ/Λ ≤ 1, where κ bounds the
//! second derivative of one unit's loss along the unit.
//!
//! 1. *Density.* b ↦ w is one to one. At the point to which b leads, the ratio of the minimiser's
//!    densities under two neighbouring tables is exp((‖b + v‖² - ‖b‖²)/2σ²)·det H/det H', where v
//!    is the difference of the tables' gradients there and H, H' are their Hessians.
//! 2. *Determinants.* H and H' are some M ⪰ ΛI, plus what one unit adds: at most κ along the unit.
//!    So the ratio is at most 1 + `smoothness`. Of K classes, a unit adds (diag p - ppᵀ) ⊗ xxᵀ, of
//!    rank K - 1 and trace at most (1 - 1/K)‖x‖², and `smoothness` is ‖x‖²/2Λ. The ratio is at most
//!    (1 + 2·`smoothness`/K)^(K-1).
//! 3. *Corners.* v is affine in the unit's derivatives at w. They are unknown, but lie in a
//!    polytope that the unit fixes, and ‖b + v‖² is convex. It is largest at a corner, where v is a
//!    fixed vector and the first factor is that of a Gaussian shifted by ‖v‖. So the loss is at
//!    most ln of the second factor plus the largest of those at the corners, and the probability
//!    that it exceeds t is at most the sum of theirs. In units of the largest gradient norm of one
//!    unit, the corners have these norms:
//!
//! | derivatives | a unit is added or removed | a unit is replaced |
//! |---|---|---|
//! | of one sign, [0, 1] or [-1, 0] | 0, 1 | 0, 1, 1, at most 2 |
//! | in [-1, 1] | 1, 1 | ±p ± p': two of a, two of b, a² + b² ≤ 4 |
//! | p - e_y of K classes (times √2) | 0, and K - 1 of 1 | 0, 2(K - 1) of 1, (K - 1)² of at most 2 |
//!
//! 4. *Logistic derivatives* are s times a sign, 0 ≤ s ≤ τ, with a second derivative of at most
//!    s(1 - s): the two are coupled. For a unit that is added or removed, with m = ‖x‖/σ and c =
//!    ‖x‖²/Λ, the loss is at most f(s) for the actual s,
//!
//!    f(s) = s·z + s²m²/2 + ln(1 + s(1 - s)c),    z ~ N(0, m²),
//!
//!    (where Q has the unit, the third term is omitted), hence at most
//!    U(z) = max over s in [0, τ] of f(s) ≥ 0.
//! 5. *Constraints.* A constraint set for the weights, or a nonsmooth r, is a limit of smooth
//!    penalties, and minimisers converge for every b. Where q'' jumps, mollify.
//! 6. *Shorter units.* Corners only come nearer. For logistic derivatives take z = mξ, ξ normal.
//!    For ξ ≥ 0, f increases with ‖x‖. For ξ < 0 it is -αr + βr² + ln(1 + γr²) in r = ‖x‖. While
//!    γr² = s(1 - s)c ≤ 1 this is convex in r and zero at 0, so it increases where it is positive.
//!    Hence max(0, f), and U with it, is largest for the longest unit if c ≤ 4.
//!
//! # Proof: a Gaussian release instead of a minimiser
//!
//! *Statement.* Let R be `noise` over `clip`, or `noise` where derivatives have no clip. Gaussian
//! sums whose multipliers σ_t satisfy Σ 1/σ_t² ≤ 1/R² have δ(ε) ≤ E(1 - e^(ε - U))₊, with the U of
//! the proof above, for every ε of either sign, in both directions, under either relation. So a
//! released answer may choose between the minimiser and these sums: whatever was released, the next
//! mechanism is dominated by U, which is what adaptive composition asks, and U alone is charged.
//!
//! 1. The sums together are μ-GDP with μ² = Σ 1/σ_t² for a unit that is added or removed, and with
//!    twice that μ for a replaced one. Their loss is G = μξ + μ²/2, ξ normal, in both directions.
//! 2. Coupled derivatives: s = τ gives U ≥ f(τ) ≥ τz + τ²m²/2 with z = mξ, as the third term is not
//!    negative. With τm = clip/`noise` ≥ μ that is a Gaussian loss no smaller than G in law: U ≥ G.
//! 3. Corners: the tail of U is 1 up to a constant c ≥ 0 and, beyond it, at least that of c plus the
//!    Gaussian loss of the longest corner, which measures clip/`noise` for a unit that is added or
//!    removed and twice that for a replaced one: not less than μ. So U is not less than G in law.
//! 4. E(1 - e^(ε - L))₊ increases with L, and so does its mean over what was released before.
//!
//! *Rounding.* U ≤ t if and only if z ≤ z(t) = min over s of (t - s²m²/2 - ln(1 + s(1 - s)c))/s.
//! Between two s of a grid the numerator is at least its value with each term at its largest there.
//! So z(t) is bounded from below, and U from above.
//!
//! *Not covered.* An approximate minimiser: its caller must account for the distance to the exact
//! one.
//!
//! Kifer, Smith and Thakurta, *Private Convex Empirical Risk Minimization and High-dimensional
//! Regression*, COLT 2012. The distribution of the loss, the coupling of first and second
//! derivative, and the composition are worked out here.
use serde::{Deserialize, Serialize};

use crate::{event::Neighbours, normal::upper_tail, pld_grid::LossCells};

/// What is known of the derivative of one unit's loss.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "slopes", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DerivativeBound {
    /// The derivative of the logistic loss of two classes, clipped at `clip` times its largest
    /// value.
    Logistic {
        /// Above 0 and at most 1.
        #[serde(rename = "most")]
        clip: f64,
    },
    /// Of one sign, which the unit fixes, as for the hinge loss.
    OneSign,
    /// Of either sign.
    TwoSigns,
    /// The gradient of the logistic loss of several classes.
    #[serde(rename = "classes")]
    Softmax {
        /// The number of classes.
        #[serde(rename = "count")]
        classes: u64,
    },
}

impl DerivativeBound {
    /// The least noise multiplier of a Gaussian sum that may be released instead of a minimiser
    /// with this noise, at the minimiser's cost. Several sums: add up 1/σ².
    pub fn instead(self, noise: f64) -> f64 {
        match self {
            DerivativeBound::Logistic { clip } => noise / clip,
            _ => noise,
        }
    }
}

/// An upper bound on the privacy loss, under one relation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ObjectivePerturbation {
    /// Logistic derivatives: m, c and τ of the longest unit.
    Coupled { mu: f64, smoothness: f64, clip: f64 },
    /// One of several Gaussian losses, plus a constant. Each case is a list of (μ, count), and the
    /// worst case counts.
    Corners { cases: Vec<Vec<(f64, f64)>>, extra: f64 },
}

impl ObjectivePerturbation {
    /// Noise and smoothness as in
    /// [`Event::objective_perturbation`](crate::Event::objective_perturbation).
    pub(crate) fn new(
        noise: f64,
        smoothness: f64,
        derivative: DerivativeBound,
        neighbours: Neighbours,
    ) -> ObjectivePerturbation {
        let (mu, replace) = (1.0 / noise, neighbours == Neighbours::ReplaceOne);
        let others = match derivative {
            DerivativeBound::Logistic { clip } if !replace => {
                return ObjectivePerturbation::Coupled { mu, smoothness: 4.0 * smoothness, clip };
            }
            DerivativeBound::Softmax { classes } => classes as f64 - 1.0,
            _ => 1.0,
        };
        let clip = if let DerivativeBound::Logistic { clip } = derivative { clip } else { 1.0 };
        let cases = match (derivative, replace) {
            (DerivativeBound::TwoSigns, false) => vec![vec![(1.0, 2.0)]],
            // A grid of angles. Between two of them neither norm exceeds its larger end.
            (DerivativeBound::TwoSigns, true) => (0..64_u8)
                .map(|k| {
                    let angle = |k: u8| f64::from(k) / 64.0 * std::f64::consts::FRAC_PI_4;
                    vec![(2.0 * angle(k).cos(), 2.0), (2.0 * angle(k + 1).sin(), 2.0)]
                })
                .collect(),
            (_, false) => vec![vec![(1.0, others)]],
            (_, true) => vec![vec![(2.0, others * others), (1.0, 2.0 * others)]],
        };
        let scaled =
            |case: Vec<(f64, f64)>| case.into_iter().map(|(n, k)| (n * clip * mu, k)).collect();
        let extra = match derivative {
            DerivativeBound::Softmax { classes } => {
                others * (2.0 * smoothness / classes as f64).ln_1p()
            }
            _ => smoothness.ln_1p(),
        };
        let cases = cases.into_iter().map(scaled).collect();
        ObjectivePerturbation::Corners { cases, extra: extra * (1.0 + 1e-14) }
    }

    /// The μ of an instance: a unit whose derivative stays at its largest.
    pub(crate) fn least(&self) -> f64 {
        match self {
            ObjectivePerturbation::Coupled { mu, clip, .. } => mu * clip,
            ObjectivePerturbation::Corners { cases, .. } => {
                cases[0].iter().map(|c| c.0).fold(0.0, f64::max)
            }
        }
    }

    /// An upper bound on the probability that the loss exceeds t, for t ≥ 0.
    fn tail(&self) -> impl Fn(f64) -> f64 {
        let (pieces, mu) = match self {
            ObjectivePerturbation::Coupled { mu, smoothness, clip } => {
                (pieces(*mu, *smoothness, *clip), *mu)
            }
            ObjectivePerturbation::Corners { .. } => (Vec::new(), 0.0),
        };
        move |t: f64| match self {
            ObjectivePerturbation::Coupled { .. } => {
                upper_tail(reach(&pieces, t) / mu) * (1.0 + 1e-12)
            }
            ObjectivePerturbation::Corners { extra, .. } if t < *extra => 1.0,
            ObjectivePerturbation::Corners { cases, extra } => {
                let corner = |&(mu, times): &(f64, f64)| {
                    times * upper_tail((t - extra) / mu * (1.0 - 1e-14) - 0.5 * mu)
                };
                let worst = cases.iter().map(|case| case.iter().map(corner).sum::<f64>());
                (worst.fold(0.0, f64::max) * (1.0 + 1e-12)).min(1.0)
            }
        }
    }

    /// A loss that is exceeded with at most this probability.
    pub(crate) fn top(&self, least: f64) -> f64 {
        let tail = self.tail();
        let mut top = match self {
            ObjectivePerturbation::Coupled { mu, smoothness, .. } => 4.0 * mu + smoothness,
            ObjectivePerturbation::Corners { extra, .. } => 4.0 * self.least() + extra,
        };
        while tail(top) > least && top < 1e5 {
            top *= 1.2;
        }
        top
    }

    /// The loss on a grid: every value is moved up to the next grid point.
    pub(crate) fn cells(&self, step: f64, least: f64) -> LossCells {
        let tail = self.tail();
        let count = ((self.top(least) / step).ceil() as i64).max(1);
        let mut cells = LossCells::empty(step, -1, count as usize + 2);
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

/// The number of pieces of [0, τ]. They are finest near τ, which decides the tail.
const PIECES: u32 = 300;

/// One piece: its ends, and the most that is subtracted from t on it.
struct Piece {
    from: f64,
    to: f64,
    taken: f64,
}

fn pieces(mu: f64, smoothness: f64, clip: f64) -> Vec<Piece> {
    let end = |k: u32| {
        let left = 1.0 - f64::from(k) / f64::from(PIECES);
        clip * (1.0 - left * left)
    };
    let piece = |k: u32| {
        let (from, to) = (end(k), end(k + 1));
        let bump = |s: f64| s * (1.0 - s);
        let highest = if from < 0.5 && 0.5 < to { 0.25 } else { bump(from).max(bump(to)) };
        let taken = 0.5 * (to * mu).powi(2) + (highest * smoothness).ln_1p();
        Piece { from, to, taken: taken * (1.0 + 1e-14) }
    };
    (0..PIECES).map(piece).collect()
}

/// A lower bound of z(t).
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
    use crate::{DerivativeBound, Event, Neighbours, delta, epsilon, gaussian_mu};

    /// With c ≤ ε the determinant costs nothing: s·a + s(1 - s)c ≤ max(a, ε) for every s, where a
    /// is the loss at s = 1.
    #[test]
    fn enough_curvature_makes_it_a_gaussian() {
        for target in [0.1, 0.5, 1.0, 3.0] {
            let mu = gaussian_mu(target, 1e-5).unwrap();
            let price = |smoothness: f64, clip: f64| {
                let event = Event::objective_perturbation(
                    1.0 / mu,
                    0.25 * smoothness,
                    DerivativeBound::Logistic { clip },
                )
                .unwrap();
                epsilon(&event, Neighbours::AddRemove, 1e-5).unwrap()
            };
            let found = price(target, 1.0);
            assert!(
                found.upper >= target * (1.0 - 1e-9) && found.upper < 1.004 * target,
                "{found:?}"
            );
            assert!(found.lower > 0.99 * target);
            // Four times the smoothness costs more, and clipped derivatives cost less.
            let larger = price((4.0 * target).min(4.0), 1.0).upper;
            assert!(larger > found.upper * 1.002, "{target} {larger}");
            assert!(price(target, 0.75).upper < 0.99 * found.upper);
        }
    }

    /// Beside an earlier release and alone; with a tenth less noise the sum costs more somewhere. A
    /// relation goes both ways, so that ε below zero follow from those above.
    #[test]
    fn a_gaussian_release_instead_costs_no_more() {
        let earlier = Event::gaussian(3.0).unwrap();
        for derivative in [
            DerivativeBound::Logistic { clip: 0.75 },
            DerivativeBound::Logistic { clip: 1.0 },
            DerivativeBound::OneSign,
            DerivativeBound::TwoSigns,
            DerivativeBound::Softmax { classes: 2 },
            DerivativeBound::Softmax { classes: 9 },
        ] {
            for neighbours in [Neighbours::AddRemove, Neighbours::ReplaceOne] {
                for (noise, smoothness) in [(0.5, 0.1), (2.0, 0.02), (8.0, 0.3)] {
                    let minimiser =
                        Event::objective_perturbation(noise, smoothness, derivative).unwrap();
                    let least = derivative.instead(noise);
                    // Four steps, as one.
                    let steps = Event::gaussian(2.0 * least).unwrap().repeat(4).unwrap();
                    for at in [0.01, 0.1, 0.5, 1.0, 3.0] {
                        let of = |event: &Event| {
                            [event.clone(), event.clone().then(earlier.clone())]
                                .map(|event| delta(&event, neighbours, at).unwrap())
                        };
                        for (sum, whole) in of(&steps).iter().zip(of(&minimiser)) {
                            assert!(
                                sum.lower <= whole.upper,
                                "{derivative:?} {neighbours:?} {noise} {at}"
                            );
                        }
                    }
                }
            }
        }
        // Where curvature costs next to nothing there is no room.
        for neighbours in [Neighbours::AddRemove, Neighbours::ReplaceOne] {
            let derivative = DerivativeBound::Logistic { clip: 0.75 };
            let minimiser = Event::objective_perturbation(2.0, 1e-3, derivative).unwrap();
            let less = Event::gaussian(0.9 * derivative.instead(2.0)).unwrap();
            let price = |event: &Event| epsilon(event, neighbours, 1e-5).unwrap();
            assert!(price(&less).lower > price(&minimiser).upper);
        }
    }

    /// Compares with the integral, by brute force over z and s, alone and after a Gaussian release.
    #[test]
    fn integrals_agree() {
        let (mu, smoothness, clip, earlier) = (0.4_f64, 0.9_f64, 0.8_f64, 0.1_f64);
        let loss = |z: f64| {
            let f = |k: u32| {
                let s = clip * f64::from(k) / 2000.0;
                s * z + 0.5 * (s * mu).powi(2) + (s * (1.0 - s) * smoothness).ln_1p()
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
        let event = Event::objective_perturbation(
            1.0 / mu,
            0.25 * smoothness,
            DerivativeBound::Logistic { clip },
        )
        .unwrap();
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

    /// The minimiser in one dimension, whose density is known, leaks at most the cost, where a unit
    /// is added, removed or replaced.
    #[test]
    fn the_minimiser_of_one_weight_leaks_at_most_its_cost() {
        let (strong, noise) = (1.5_f64, 3.0_f64);
        // log(1 + e^-yw): its first and second derivative.
        let row = |y: f64, w: f64| {
            let s = 1.0 / (1.0 + (y * w).exp());
            (-y * s, s * (1.0 - s))
        };
        let density = |y: Option<f64>, w: f64| {
            let (derivative, second) = y.map_or((0.0, 0.0), |y| row(y, w));
            // b = -(derivative + Λw), and its derivative in w.
            let b = derivative + strong * w;
            let normal =
                (-0.5 * (b / noise).powi(2)).exp() / (noise * (2.0 * std::f64::consts::PI).sqrt());
            normal * (strong + second)
        };
        let leak = |p: Option<f64>, q: Option<f64>, epsilon: f64| -> f64 {
            let width = 60.0 / 60_000.0;
            let at = |k: i32| -30.0 + width * (f64::from(k) + 0.5);
            let over = |w: f64| (density(p, w) - epsilon.exp() * density(q, w)).max(0.0);
            (0..60_000).map(|k| width * over(at(k))).sum()
        };
        let event = Event::objective_perturbation(
            noise,
            0.25 / strong,
            DerivativeBound::Logistic { clip: 1.0 },
        )
        .unwrap();
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
        // The control: too small a cost is exceeded.
        let cheap = Event::objective_perturbation(
            8.0 * noise,
            0.01,
            DerivativeBound::Logistic { clip: 1.0 },
        )
        .unwrap();
        let price = delta(&cheap, Neighbours::AddRemove, 0.05).unwrap().upper;
        assert!(leak(Some(1.0), None, 0.05) > price);
    }

    /// A shift that the unit fixes costs as much as a Gaussian, plus the determinants. Two signs
    /// cost a little more.
    #[test]
    fn corners_cost_as_much_as_their_gaussians() {
        let mu = gaussian_mu(1.0, 1e-5).unwrap();
        let price = |derivative, neighbours, noise: f64| {
            let event = Event::objective_perturbation(noise, 1e-4, derivative).unwrap();
            epsilon(&event, neighbours, 1e-5).unwrap().upper
        };
        use Neighbours::{AddRemove, ReplaceOne};
        let one = price(DerivativeBound::OneSign, AddRemove, 1.0 / mu);
        assert!((1.0..1.006).contains(&one), "{one}");
        let two = price(DerivativeBound::TwoSigns, AddRemove, 1.0 / mu);
        assert!((1.03..1.08).contains(&two), "{two}");
        let three = price(DerivativeBound::Softmax { classes: 3 }, AddRemove, 1.0 / mu);
        assert!((two - three).abs() < 0.01, "{three}");
        let one = price(DerivativeBound::OneSign, ReplaceOne, 2.0 / mu);
        assert!((1.0..1.006).contains(&one), "{one}");
        let two = price(DerivativeBound::TwoSigns, ReplaceOne, 2.0 / mu);
        assert!((1.03..1.08).contains(&two), "{two}");
    }

    #[test]
    fn parameters_outside_the_theorem_are_refused() {
        let logistic = |clip| DerivativeBound::Logistic { clip };
        assert!(Event::objective_perturbation(2.0, 1.1, logistic(1.0)).is_err());
        assert!(Event::objective_perturbation(2.0, 0.2, logistic(1.1)).is_err());
        assert!(
            Event::objective_perturbation(2.0, 0.2, DerivativeBound::Softmax { classes: 1 })
                .is_err()
        );
        assert!(Event::objective_perturbation(2.0, -0.2, DerivativeBound::OneSign).is_err());
    }
}
