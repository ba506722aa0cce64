//! White-box audits of mechanisms: one row at the clipping norm, present or not, and every noisy sum visible.
//!
//! The sums are integers on a lattice and the noise is the one that every fit adds. What is claimed comes from the
//! accountant; what is done can be broken on purpose, to see that an audit notices.
use quietly_accounting::{Event, Neighbours, calibrate};
use quietly_core::budget::Budget;
use quietly_engine::error::Error;
use quietly_noise::{Key, Ratio, RoundedGaussian, Stream};

use super::Claim;

/// Which sums the row is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scheme {
    /// All of them.
    Full,
    /// One, drawn uniformly.
    Allocation,
    /// Each with chance one over their number.
    Poisson,
}

/// A mistake that a mechanism can make on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Broken {
    /// The noise has half of the standard deviation that is charged.
    HalfNoise,
    /// A shuffled table is cut into blocks of one size, and charged as the scheme that it is not. All other rows pull the
    /// other way, so that the block which holds the canary lacks one of them.
    Shuffled,
}

/// A mechanism with a canary.
pub struct Mechanism {
    scheme: Scheme,
    steps: u64,
    broken: Option<Broken>,
    /// What is charged, over what one row can add.
    noise: f64,
    drawn: RoundedGaussian,
    claim: Claim,
    sampling: [Stream; 2],
    noises: [Stream; 2],
}

/// A gradient in its lattice: its norm is the clip bound, exactly.
const GRADIENT: [i64; 2] = [3 << 19, 4 << 19];
const BOUND: f64 = (5_u64 << 19) as f64;
/// How many rows a block has, for shuffled tables.
const BLOCK: i64 = 10;

impl Mechanism {
    /// The mechanism with the least noise for a budget, broken or not.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`] if no noise meets the budget; [`Error::Parameter`] if a shuffled table is to be audited under
    /// add-remove, where its blocks would have no fixed size.
    pub fn new(
        scheme: Scheme,
        steps: u64,
        budget: Budget,
        broken: Option<Broken>,
        key: &Key,
    ) -> Result<Self, Error> {
        let neighbours = budget.neighbours();
        let shuffled = broken == Some(Broken::Shuffled);
        Error::ensure(
            !shuffled || neighbours == Neighbours::ReplaceOne,
            "neighbours",
            "replace-one for shuffled blocks, whose size is fixed",
            neighbours.name(),
        )?;
        Error::ensure(
            !shuffled || scheme != Scheme::Full,
            "mechanism",
            "poisson or allocation for shuffled blocks to be charged as",
            "gaussian",
        )?;
        Error::ensure((1..=1000).contains(&steps), "steps", "from 1 to 1000", steps)?;
        let event = |noise: f64| match scheme {
            Scheme::Full => Event::gaussian(noise)?.repeat(steps),
            Scheme::Allocation => Event::random_allocation(steps, 1, noise),
            Scheme::Poisson => Event::poisson(1.0 / steps as f64, noise)?.repeat(steps),
        };
        let found = calibrate(event, neighbours, budget.epsilon(), budget.delta())?;
        let noise = found.noise_multiplier;
        let claim = Claim::of_event(&event(noise)?, neighbours, budget.delta())?;
        let factor = if broken == Some(Broken::HalfNoise) { 0.5 } else { 1.0 };
        let drawn = RoundedGaussian::new(factor * noise * BOUND)?;
        let stream = |what: &str| {
            [key.stream(&format!("{what} without")), key.stream(&format!("{what} with"))]
        };
        let (sampling, noises) = (stream("sampling"), stream("noise"));
        Ok(Mechanism { scheme, steps, broken, noise, drawn, claim, sampling, noises })
    }

    /// What its accountant proves, or would prove if it were not broken.
    pub fn claim(&self) -> &Claim {
        &self.claim
    }

    /// The noise that is charged, over what one row can add.
    pub fn noise(&self) -> f64 {
        self.noise
    }

    /// One run, and what the best attacker makes of it: the logarithm of how much likelier the released sums are with the
    /// canary than without.
    ///
    /// # Errors
    ///
    /// [`Error::Noise`] if `run` is beyond 2⁵⁰.
    pub fn release(&self, with: bool, run: u64) -> Result<f64, Error> {
        let mut bits = self.sampling[usize::from(with)].bits(run)?;
        // In these steps the row takes part.
        let one = bits.below(self.steps)?;
        let rate = Ratio::new(1, self.steps)?;
        // Shuffled blocks hold one row in a random place, as an allocation does.
        let full = self.scheme == Scheme::Full;
        let coin = self.scheme == Scheme::Poisson && self.broken != Some(Broken::Shuffled);
        // A row that is replaced pulls the other way.
        let replaced = self.claim.neighbours == Neighbours::ReplaceOne;
        let row = if with { 1 } else { -i64::from(replaced) };
        let (mut up, mut down) = (Ratios::new(self), Ratios::new(self));
        for step in 0..self.steps {
            let takes_part = if coin { bits.bernoulli(rate)? } else { full || step == one };
            let mut sum = [0; GRADIENT.len()];
            if takes_part {
                sum = GRADIENT.map(|g| g * row);
            }
            if self.broken == Some(Broken::Shuffled) {
                let others = BLOCK - i64::from(takes_part);
                sum.iter_mut().zip(GRADIENT).for_each(|(s, g)| *s -= g * others);
            }
            let place = run * self.steps + step;
            self.drawn.add(&self.noises[usize::from(with)], place, &mut sum)?;
            // Along the gradient, in units of the clip bound.
            let seen: f64 = sum.iter().zip(GRADIENT).map(|(&s, g)| s as f64 * g as f64).sum();
            let seen = seen / (BOUND * BOUND);
            if self.broken == Some(Broken::Shuffled) {
                up.see(seen + BLOCK as f64, 2.0);
            } else {
                up.see(seen, 1.0);
                down.see(seen, if replaced { -1.0 } else { 0.0 });
            }
        }
        Ok(up.log() - down.log())
    }
}

/// The likelihood of released sums with a row, over that without any.
struct Ratios {
    scheme: Scheme,
    steps: f64,
    variance: f64,
    /// A logarithm, or a mean of ratios for allocation.
    so_far: f64,
}

impl Ratios {
    fn new(mechanism: &Mechanism) -> Self {
        let scheme = match mechanism.broken {
            Some(Broken::Shuffled) => Scheme::Allocation,
            _ => mechanism.scheme,
        };
        let real = mechanism.drawn.scale() / BOUND;
        let so_far = if scheme == Scheme::Allocation { f64::NEG_INFINITY } else { 0.0 };
        Ratios { scheme, steps: mechanism.steps as f64, variance: real * real, so_far }
    }

    /// A sum, which the row would move by `shift` if it took part.
    fn see(&mut self, seen: f64, shift: f64) {
        let log = (seen * shift - 0.5 * shift * shift) / self.variance;
        match self.scheme {
            Scheme::Full => self.so_far += log,
            Scheme::Poisson => {
                self.so_far += ((1.0 - 1.0 / self.steps) + log.exp() / self.steps).ln();
            }
            Scheme::Allocation => {
                // log(e^a + e^b), without overflow.
                let (low, high) = (self.so_far.min(log), self.so_far.max(log));
                self.so_far = high + (low - high).exp().ln_1p();
            }
        }
    }

    fn log(&self) -> f64 {
        match self.scheme {
            Scheme::Allocation if self.so_far == f64::NEG_INFINITY => 0.0,
            Scheme::Allocation => self.so_far - self.steps.ln(),
            _ => self.so_far,
        }
    }
}
