//! What gradients can be at most: constants that depend on public bounds alone, rounded up.
use std::f64::consts::SQRT_2;

use quietly_engine::error::Error;

use super::{
    gradient_diameter::Rows,
    loss::{Loss, logistic},
};

/// What is public about a row. Rows beyond it were cut to it, each on its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Domain {
    /// Bound on the L1 norm of the features, if there is one.
    pub l1: Option<f64>,
    /// Bound on the L2 norm of the features.
    pub l2: f64,
    /// Bound on the target's absolute value. Labels need none.
    pub target: f64,
}

/// The largest norms of weights in a set. Infinite where there is no bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Norms {
    pub l1: f64,
    pub l2: f64,
    pub linf: f64,
}

/// Bounds on the gradients of the data term, for all weights in a set and all rows of a domain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constants {
    /// L: the longest gradient. What one record adds to a sum, if it may be blanked out.
    pub lipschitz: f64,
    /// G ≤ 2L: the longest difference of two gradients. What replacing a record changes.
    pub diameter: f64,
    /// β: how fast gradients change with the weights, if there is a bound.
    pub smooth: Option<f64>,
}

impl Domain {
    /// # Errors
    ///
    /// [`Error::Parameter`] unless all bounds are positive and finite (the target's may be zero).
    pub fn check(&self) -> Result<(), Error> {
        let fits = |x: f64| x > 0.0 && x.is_finite();
        let l1 = self.l1.unwrap_or(self.l2);
        Error::ensure(fits(self.l2), "the bound on the features' L2 norm", "positive", self.l2)?;
        Error::ensure(fits(l1), "the bound on the features' L1 norm", "positive", l1)?;
        let good = self.target >= 0.0 && self.target.is_finite();
        Error::ensure(good, "the bound on the target", "zero or more", self.target)
    }

    /// The L1 bound, or infinity.
    fn sum(&self) -> f64 {
        self.l1.unwrap_or(f64::INFINITY)
    }

    /// The longest row. No entry is larger, either.
    pub fn longest(&self) -> f64 {
        self.l2.min(self.sum())
    }
}

impl Norms {
    /// The largest |⟨w, x⟩|, by Hölder's inequality in three ways.
    pub fn reach(&self, domain: &Domain) -> f64 {
        let longest = domain.longest();
        // 0 · ∞ is NaN, which `min` leaves out.
        up((self.l1 * longest).min(self.l2 * longest).min(self.linf * domain.sum()))
    }
}

/// The constants of a loss for rows of `domain` and weights of norms up to `weights`.
///
/// # Errors
///
/// [`Error::Parameter`] if a parameter is outside its domain, or gradients have no bound.
pub fn constants(loss: Loss, domain: &Domain, weights: &Norms) -> Result<Constants, Error> {
    loss.check()?;
    domain.check()?;
    bounds(loss, domain, weights).finite()
}

impl Constants {
    fn finite(self) -> Result<Self, Error> {
        let want = "finite, and without a bound on the weights this loss has none: \
                    give a constraint and its radius, such as l2 and 1";
        Error::ensure(self.lipschitz.is_finite(), "the longest gradient", want, self.lipschitz)?;
        Ok(Constants { smooth: self.smooth.filter(|s| s.is_finite()), ..self })
    }
}

fn bounds(loss: Loss, domain: &Domain, weights: &Norms) -> Constants {
    let (row, reach) = (domain.longest(), weights.reach(domain));
    let smooth =
        loss.is_smooth().then(|| up(loss.smoothness_bound(domain.target, reach) * row * row));
    if let Loss::Softmax { classes } = loss {
        let lipschitz = up(SQRT_2 * row * most_wrong(classes, domain, weights));
        return Constants { lipschitz, diameter: 2.0 * lipschitz, smooth };
    }
    let push = |u: f64| loss.derivative_bound(domain.target, u);
    let lipschitz = up(push(reach) * row);
    let mut diameter = 2.0 * lipschitz;
    // If rows across the weights are pushed as hard as any, two opposite ones differ by 2L.
    if lipschitz.is_finite() && push(0.0) < push(reach) {
        let round = Rows { l1: f64::INFINITY, l2: row };
        let pointed = Rows { l1: domain.sum(), l2: domain.l2 };
        if weights.l2.is_finite() {
            diameter = diameter.min(up(round.spread(push, weights.l2)));
        }
        if weights.l1.is_finite() && matches!(loss, Loss::Squared | Loss::Fourth) {
            diameter = diameter.min(up(pointed.spread(push, weights.l1)));
        }
    }
    Constants { lipschitz, diameter, smooth }
}

/// The largest probability that softmax can give to the wrong classes together. Times √2 it bounds
/// the derivatives' norm: (1 - p)² for the right class, and at most as much for all others.
///
/// No score is further above another than `gap`: ‖wₖ - wⱼ‖ is at most the L1 norm of all weights,
/// √2 times their L2 norm and twice their largest.
fn most_wrong(classes: usize, domain: &Domain, weights: &Norms) -> f64 {
    let longest = domain.longest();
    let gap = (weights.l1 * longest)
        .min(SQRT_2 * weights.l2 * longest)
        .min(2.0 * weights.linf * domain.sum());
    logistic(up(gap) + ((classes - 1) as f64).ln())
}

/// A little more than `x` ≥ 0: covers the rounding of a thousand operations.
fn up(x: f64) -> f64 {
    x * (1.0 + 2f64.powi(-40))
}

#[cfg(test)]
mod tests {
    use quietly_core::random::Random;
    use quietly_engine::linalg::dot;

    use super::*;
    use crate::set::Set;

    const L1: Set = Set::L1 { radius: 1.0 };
    const L2: Set = Set::L2 { radius: 1.0 };
    const ROUND: Domain = Domain { l1: None, l2: 1.0, target: 1.0 };
    const POINTED: Domain = Domain { l1: Some(1.0), l2: 1.0, target: 1.0 };
    const HALF: Domain = Domain { l1: Some(1.0), l2: 0.5, target: 1.0 };

    fn of(loss: Loss, domain: &Domain, set: &Set) -> Constants {
        constants(loss, domain, &set.norms(3)).unwrap()
    }

    /// From below, the values that plain grids find (no proof); from above, a thousandth more. The
    /// diameters 5.1962 = √27, and of the logistic loss max 2σ(B cos t) sin t, are closed forms.
    #[test]
    fn diameters_are_those_of_the_table() {
        let ball = |radius: f64| Set::L2 { radius };
        for (loss, domain, set, lipschitz, smooth, least, most) in [
            (Loss::Squared, POINTED, L1, 4.0, 2.0, 4.53753, 4.5416),
            (Loss::Squared, ROUND, L2, 4.0, 2.0, 27f64.sqrt(), 5.2),
            (Loss::Fourth, POINTED, L1, 32.0, 48.0, 32.4515, 32.484),
            (Loss::Logistic, ROUND, ball(1.0), 0.73106, 0.25, 1.09909, 1.1),
            (Loss::Logistic, ROUND, ball(2.0), 0.88080, 0.25, 1.26984, 1.271),
            (Loss::Logistic, ROUND, ball(4.0), 0.98201, 0.25, 1.53270, 1.534),
            (Loss::Logistic, ROUND, ball(8.0), 0.99966, 0.25, 1.76675, 1.768),
            (Loss::Hinge, ROUND, L2, 1.0, f64::NAN, 2.0, 2.0001),
            (Loss::SmoothHinge { width: 0.5 }, ROUND, L2, 1.0, 1.0, 2.0, 2.0001),
            (Loss::Margin, ROUND, L2, 1.0, 0.0, 2.0, 2.0001),
        ] {
            let found = of(loss, &domain, &set);
            assert!((found.lipschitz - lipschitz).abs() < 1e-5, "{loss:?} {found:?}");
            assert!(found.lipschitz >= lipschitz - 5e-6 && found.diameter >= least, "{found:?}");
            assert!(found.diameter <= most, "{loss:?} {found:?}");
            let smooth = Some(smooth).filter(|s| !s.is_nan());
            assert_eq!(found.smooth.map(|s| (1e9 * s).round() / 1e9), smooth, "{loss:?}");
        }
    }

    /// The longest difference of gradients that climbing from many random places finds.
    fn climb(loss: Loss, domain: &Domain, set: &Set, random: &mut Random) -> f64 {
        let row = |x: &mut [f64]| {
            Set::L2 { radius: domain.l2 }.project(x);
            let sum = x.iter().map(|x| x.abs()).sum::<f64>() / domain.sum();
            x.iter_mut().for_each(|x| *x /= sum.max(1.0));
        };
        let targets = |y: f64| match loss.needs_labels() {
            true => y.signum(),
            false => y.clamp(-domain.target, domain.target),
        };
        let mut most = 0f64;
        for _ in 0..12 {
            let mut here: Vec<f64> = (0..11).map(|_| 1.5 * random.number()).collect();
            let mut best = 0.0;
            for step in 0..1500 {
                let size = 0.8 * f64::powf(1e-3, f64::from(step) / 1500.0);
                let mut next: Vec<f64> = here.iter().map(|x| x + size * random.number()).collect();
                set.project(&mut next[..3]);
                row(&mut next[3..6]);
                row(&mut next[6..9]);
                next[9..].iter_mut().for_each(|y| *y = targets(*y));
                let (w, x, z) = (&next[..3], &next[3..6], &next[6..9]);
                let derivatives =
                    [loss.derivative(dot(w, x), next[9]), loss.derivative(dot(w, z), next[10])];
                let apart = x.iter().zip(z).map(|(x, z)| derivatives[0] * x - derivatives[1] * z);
                let apart = apart.map(|d| d * d).sum::<f64>().sqrt();
                if apart >= best {
                    (here, best) = (next, apart);
                }
            }
            most = most.max(best);
        }
        most
    }

    /// Searches find nothing above the diameter. Where the proof loses nothing they come within
    /// two parts in a hundred, so a diameter that were too small by that much would be caught.
    #[test]
    fn no_pair_of_gradients_is_further_apart_than_the_diameter() {
        let mut random = Random(5);
        let wide = |radius: f64| Set::L2 { radius };
        let cube = Set::Linf { radius: 0.4 };
        let shifted = Set::Box { lo: vec![-0.2, 0.1, -1.0], hi: vec![0.5, 0.3, 0.0] };
        let far = Domain { target: 0.3, ..ROUND };
        for (loss, domain, set, tight) in [
            (Loss::Squared, ROUND, wide(1.0), true),
            (Loss::Squared, POINTED, L1, true),
            (Loss::Squared, HALF, L1, true),
            (Loss::Squared, POINTED, Set::Simplex { total: 1.0 }, true),
            (Loss::Squared, far, wide(2.0), true),
            (Loss::Squared, POINTED, cube.clone(), false),
            (Loss::Squared, ROUND, shifted.clone(), false),
            (Loss::Fourth, ROUND, wide(1.0), true),
            (Loss::Fourth, POINTED, L1, true),
            (Loss::Fourth, HALF, L1, true),
            (Loss::Fourth, far, wide(2.0), true),
            (Loss::Logistic, ROUND, wide(1.0), true),
            (Loss::Logistic, ROUND, wide(8.0), true),
            (Loss::Logistic, POINTED, L1, false),
            (Loss::Logistic, ROUND, shifted, false),
            (Loss::Hinge, ROUND, wide(1.0), true),
            (Loss::SmoothHinge { width: 3.0 }, ROUND, wide(2.0), true),
            (Loss::Huber { width: 1.2 }, ROUND, wide(1.0), true),
            (Loss::Huber { width: 1.2 }, POINTED, L1, false),
            (Loss::Quantile { level: 0.8 }, ROUND, wide(1.0), true),
            (Loss::SmoothQuantile { level: 0.8, width: 1.5 }, ROUND, wide(1.0), false),
            (Loss::Margin, POINTED, cube, true),
        ] {
            let Constants { lipschitz, diameter, .. } = of(loss, &domain, &set);
            assert!(diameter >= lipschitz && diameter <= 2.0 * lipschitz);
            let found = climb(loss, &domain, &set, &mut random);
            assert!(found <= diameter, "{loss:?} {set:?}: {found} > {diameter}");
            if tight {
                assert!(found > 0.98 * diameter, "{loss:?} {set:?}: {found} of {diameter}");
            }
        }
    }

    #[test]
    fn softmax_gradients_stay_below_their_bounds() {
        let (mut random, loss) = (Random(6), Loss::Softmax { classes: 3 });
        let set = Set::L2 { radius: 1.5 };
        let bound = constants(loss, &ROUND, &set.norms(6)).unwrap();
        assert!(bound.lipschitz < 0.97 * SQRT_2 && bound.smooth.unwrap() < 0.5001);
        let gradient = |w: &[f64], x: &[f64], class: usize| {
            let scores: Vec<f64> = w.chunks(2).map(|w| dot(w, x)).collect();
            let mut derivatives = [0.0; 3];
            loss.derivatives_of(&scores, class, &mut derivatives);
            derivatives.iter().flat_map(|s| x.iter().map(move |x| s * x)).collect::<Vec<_>>()
        };
        let size = |v: &[f64]| dot(v, v).sqrt();
        let less = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>();
        let mut longest = 0f64;
        for _ in 0..20_000 {
            let mut draw = |set: &Set, width: usize| {
                let mut v: Vec<f64> = (0..width).map(|_| 3.0 * random.number()).collect();
                set.project(&mut v);
                v
            };
            let (w, v, x, z) = (draw(&set, 6), draw(&set, 6), draw(&L2, 2), draw(&L2, 2));
            let (g, h) = (gradient(&w, &x, 0), gradient(&w, &z, 1));
            longest = longest.max(size(&g));
            assert!(size(&g) <= bound.lipschitz && size(&less(&g, &h)) <= bound.diameter);
            let moved = size(&less(&g, &gradient(&v, &x, 0)));
            assert!(moved <= bound.smooth.unwrap() * size(&less(&w, &v)) + 1e-12);
        }
        assert!(longest > 0.85 * bound.lipschitz, "{longest} of {bound:?}");
    }

    #[test]
    fn gradients_without_a_bound_are_refused() {
        let everywhere = Set::Everything.norms(3);
        let error = constants(Loss::Fourth, &ROUND, &everywhere).unwrap_err().to_string();
        assert!(error.contains("give a constraint and its radius"), "{error}");
        // A loss of bounded derivative needs no bounded set.
        let open = constants(Loss::Logistic, &ROUND, &everywhere).unwrap();
        assert!((open.diameter - 2.0).abs() < 1e-9 && open.smooth == Some(up(0.25)));
        assert!(constants(Loss::Squared, &Domain { l2: f64::NAN, ..ROUND }, &L2.norms(3)).is_err());
        let huge = Norms { l1: 1e200, l2: 1e200, linf: 1e200 };
        assert!(constants(Loss::Fourth, &ROUND, &huge).is_err());
    }

    /// A radius that was just released needs new constants, so they must cost next to nothing: 1e5
    /// derivatives are about two milliseconds. Counted, because a clock depends on who else is there.
    #[test]
    fn constants_are_cheap_for_any_radius() {
        let calls = std::cell::Cell::new(0);
        for loss in [Loss::Squared, Loss::Fourth, Loss::Logistic, Loss::Huber { width: 1.0 }] {
            for radius in [1e-9, 1e-3, 1.0, 30.0, 1e6] {
                for l1 in [1.0, f64::INFINITY] {
                    calls.set(0);
                    let counted = |u: f64| {
                        calls.set(calls.get() + 1);
                        loss.derivative_bound(1.0, u)
                    };
                    let found = Rows { l1, l2: 1.0 }.spread(counted, radius);
                    assert!(found >= loss.derivative_bound(1.0, radius), "{loss:?} {radius}");
                    assert!(calls.get() < 100_000, "{loss:?} {radius} {l1} {}", calls.get());
                }
            }
        }
    }
}
