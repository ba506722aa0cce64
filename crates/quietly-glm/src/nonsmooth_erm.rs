//! The minimiser of a sum of losses with a corner, within a set, with a proof of how near it is.
//!
//! Hinge and pinball are q(u, y) = max s·(u - y) over the derivatives s in [lo, hi] that y allows, with hi - lo = 1. So, with ψ for a
//! lasso and the set, min J(w) = Σ q(⟨w, z_i⟩, y_i) + Λ/2·‖w‖² + ⟨b, w⟩ + ψ(w) is the maximum over derivatives of
//!
//! D(s) = min_w K(w, s), K(w, s) = Σ s_i·(⟨w, z_i⟩ - y_i) + Λ/2·‖w‖² + ⟨b, w⟩ + ψ(w),
//!
//! the w of which is w(s) = prox(-(Σ s_i·z_i + b)/Λ).
//!
//! # Proof: distance to a nonsmooth minimiser
//!
//! *How near.* K is Λ-strongly convex in w and least at w(s), so D(s) + Λ/2·‖w(s) - w*‖² ≤ K(w*, s) ≤ J(w*) = max D. Hence
//! ‖w(s) - w*‖² ≤ 2/Λ·(max D - D(s)), and J(w(s)) - D(s) = Σ max(lo·r, hi·r) - s·r, r = ⟨w(s), z⟩ - y, is no less than this gap.
//!
//! *Why it ends.* ∇D has the entries r, and moves by at most ℓ = nR²/Λ times what s moves by, as ‖Z‖² ≤ nR². Accelerated steps from
//! the middle, which is within √n/2 of the best s, with an error of at most e in every entry of ∇D, give
//! max D - D(s_T) ≤ 2ℓ/(T + 1)²·(√n/2 + T(T + 1)·√n·e/ℓ)² (Schmidt, Le Roux, Bach, *Convergence Rates of Inexact Proximal-Gradient Methods
//! for Convex Optimization*, NIPS 2011, Proposition 2). So w(s_T) is within nR/(Λ(T + 1)) + 2Te/R of w*: half of what a start in a
//! corner gives, and rounding. A cap on T follows from public numbers, and holds for every table.
//!
//! The way before that is coordinate ascent, which needs no proof and is usually certified soon.
use std::ops::Range;

use quietly_engine::error::Error;

use super::{
    design_matrix::{Derivatives, Examples, RUN},
    loss::Loss,
    minimiser::Near,
    set::Set,
};

/// How near, in parts of how far a replaced row moves the minimiser: two hundredths more noise.
const SHARE: f64 = 0.01;
/// Passes of coordinate ascent.
const TRIES: u64 = 300;
/// The certificate is looked at this often.
const LOOK: u64 = 16;
/// More products than this are not begun.
const MOST_WORK: f64 = 1e13;

/// What is public about J.
#[derive(Clone, Copy, Debug)]
pub struct NonsmoothSum {
    pub loss: Loss,
    /// R.
    pub radius: f64,
    /// How many weights there are.
    pub size: usize,
    /// Λ.
    pub strong: f64,
    /// n.
    pub rows: f64,
    /// No weights of the set are longer.
    pub far: f64,
}

/// How near what is found will be, and after how many steps at the latest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Learnable {
    pub near: f64,
    pub steps: u64,
}

/// J.
pub struct Dual<'a> {
    pub nonsmooth: NonsmoothSum,
    pub examples: &'a Examples<'a>,
    pub rows: Range<usize>,
    /// b.
    pub linear_term: &'a [f64],
    pub set: &'a Set,
    /// n times the lasso's weight.
    pub lasso: f64,
}

impl NonsmoothSum {
    /// By how much rounding may move w(s), ‖b‖ ≤ Λ·`far`, for derivatives up to 2: a sum of rows, a quotient and a projection.
    fn blur(&self) -> f64 {
        let (size, sum) = (self.size as f64, 2.0 * self.rows * self.radius / self.strong);
        f64::EPSILON * ((RUN as f64 + 16.0) * sum + (4.0 * size + 16.0) * (sum + self.far))
    }

    /// By how much an entry of ∇D may err: the score, w(s) in it, and the step that is taken with it.
    fn error(&self) -> f64 {
        let score = (self.size as f64 + 16.0) * (self.radius * self.far + 1.0);
        let step = 16.0 * self.rows * self.radius * self.radius / self.strong;
        self.radius * self.blur() + 4.0 * f64::EPSILON * (score + step)
    }

    /// How near the minimiser is asked for: 85 parts of a hundred for accelerated steps, the rest for rounding.
    ///
    /// `diameter` is G: the minimiser moves by G/Λ.
    pub fn reach(&self, diameter: f64) -> Learnable {
        let mut near = SHARE * diameter / self.strong;
        loop {
            let steps = (self.rows * self.radius / (0.85 * self.strong * near)).ceil();
            let lost = 2.0 * steps * self.error() / self.radius + self.blur();
            if lost <= 0.15 * near {
                return Learnable { near, steps: steps as u64 };
            }
            near *= 2.0;
        }
    }

    /// # Errors
    ///
    /// [`Error::TooLarge`] if the worst table would take too long, or rounding would cost too much noise.
    pub fn check(&self, diameter: f64) -> Result<f64, Error> {
        let Learnable { near, steps } = self.reach(diameter);
        let work = steps as f64 * self.rows * self.size as f64;
        if work <= MOST_WORK && near <= 10.0 * SHARE * diameter / self.strong {
            return Ok(work);
        }
        Err(Error::TooLarge {
            what: "a certified minimiser of a loss with a corner",
            needed: format!("{work:.0e} products at worst"),
            instead: "take a smooth loss, or fewer rows",
        })
    }
}

/// Derivatives that are known, from this row on.
struct Given<'a>(&'a [f64], usize);

impl Derivatives for Given<'_> {
    #[inline(always)]
    fn write(&self, rows: Range<usize>, _: &[f64], into: &mut [f64]) {
        into.copy_from_slice(&self.0[rows.start - self.1..rows.end - self.1]);
    }
}

impl Dual<'_> {
    /// A point of the set within `near` of the minimiser.
    ///
    /// `keep_on` is told of every pass, and may end it all.
    pub fn minimise<E>(
        &self,
        reach: Learnable,
        keep_on: &mut dyn FnMut(u64) -> Result<(), E>,
    ) -> Result<Near, E> {
        let range = self.range();
        let mut s = middle(&range);
        for pass in 1..=TRIES {
            keep_on(pass)?;
            let found = self.look(&s, &range);
            if found.distance <= reach.near {
                return Ok(found);
            }
            self.ascend(&mut s, &range);
        }
        self.accelerate(reach, LOOK, &mut |pass| keep_on(TRIES + pass))
    }

    /// The derivatives that every row allows.
    fn range(&self) -> Vec<(f64, f64)> {
        let derivatives = |i: usize| self.nonsmooth.loss.derivative_range(self.examples.target(i));
        self.rows.clone().map(derivatives).collect()
    }

    /// Accelerated steps: what must arrive, wherever the certificate is looked at.
    fn accelerate<E>(
        &self,
        Learnable { near, steps }: Learnable,
        look: u64,
        keep_on: &mut dyn FnMut(u64) -> Result<(), E>,
    ) -> Result<Near, E> {
        let range = self.range();
        let NonsmoothSum { radius, strong, .. } = self.nonsmooth;
        let step = strong / (self.rows.len() as f64 * radius * radius);
        let (mut s, mut ahead) = (middle(&range), middle(&range));
        for pass in 1..=steps {
            if pass % look == 0 {
                keep_on(pass)?;
                let found = self.look(&s, &range);
                if found.distance <= near {
                    return Ok(found);
                }
            }
            let r = self.residuals(&self.weights(&ahead));
            let momentum = (pass as f64 - 1.0) / (pass as f64 + 2.0);
            for (k, r) in r.into_iter().enumerate() {
                let next = (ahead[k] + step * r).max(range[k].0).min(range[k].1);
                ahead[k] = next + momentum * (next - s[k]);
                s[k] = next;
            }
        }
        // So the theorem says, whether the gap shows it or not.
        Ok(Near { point: self.weights(&s), distance: near })
    }

    /// w(s).
    fn weights(&self, s: &[f64]) -> Vec<f64> {
        let mut w = self.examples.weighted(self.rows.clone(), &Given(s, self.rows.start));
        self.settle(&mut w);
        w
    }

    /// From Σ s_i·z_i to w(s).
    fn settle(&self, v: &mut [f64]) {
        let strong = self.nonsmooth.strong;
        v.iter_mut().zip(self.linear_term).for_each(|(v, b)| *v = -(*v + b) / strong);
        self.set.shrink(self.lasso / strong, v);
    }

    /// ⟨w, z⟩ - y of every row; zero for null records.
    fn residuals(&self, w: &[f64]) -> Vec<f64> {
        let one = |i: usize| {
            let null = self.examples.is_null(i);
            if null { 0.0 } else { self.examples.score(i, w) - self.examples.target(i) }
        };
        let parts =
            self.examples.in_parts(self.rows.clone(), |rows| rows.map(one).collect::<Vec<_>>());
        parts.concat()
    }

    /// w(s), and how far the minimiser can be from it.
    fn look(&self, s: &[f64], range: &[(f64, f64)]) -> Near {
        let point = self.weights(s);
        let short = |((r, s), (lo, hi)): ((f64, &f64), &(f64, f64))| (lo * r).max(hi * r) - s * r;
        let r = self.residuals(&point).into_iter();
        let gap: f64 = r.zip(s).zip(range).map(short).sum();
        let slack = 4.0 * self.nonsmooth.rows * self.nonsmooth.error();
        let square = 2.0 / self.nonsmooth.strong * (gap.max(0.0) + slack);
        Near { point, distance: 1.000_001 * square.sqrt() + self.nonsmooth.blur() }
    }

    /// One pass over the rows, each moving its own derivative uphill: D bends by at most ‖z‖²/Λ along it.
    fn ascend(&self, s: &mut [f64], range: &[(f64, f64)]) {
        let start = self.rows.start;
        let mut v = self.examples.weighted(self.rows.clone(), &Given(s, start));
        let mut w = v.clone();
        self.settle(&mut w);
        for i in self.rows.clone().filter(|&i| !self.examples.is_null(i)) {
            let r = self.examples.score(i, &w) - self.examples.target(i);
            let (now, (lo, hi)) = (s[i - start], range[i - start]);
            let up = r * self.nonsmooth.strong / self.examples.square(i).max(f64::MIN_POSITIVE);
            let next = (now + up).max(lo).min(hi);
            if next != now {
                self.examples.add_to(i, next - now, &mut v);
                s[i - start] = next;
                w.copy_from_slice(&v);
                self.settle(&mut w);
            }
        }
    }
}

fn middle(range: &[(f64, f64)]) -> Vec<f64> {
    range.iter().map(|(lo, hi)| 0.5 * (lo + hi)).collect()
}

#[cfg(test)]
mod tests;
