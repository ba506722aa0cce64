//! Correlated noise: how the noise of one step depends on that of earlier steps.
use std::fmt;

use quietly_accounting::{CorrelatedGaussian, Event, Participation, Strategy};
use quietly_noise::Dyadic;
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The noise of step t is κ(z_t + a_1·z_(t-1) + a_2·z_(t-2) + …), z being independent from step to step: what one step adds, the
/// next ones take back in part.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "correlation", rename_all = "kebab-case")]
pub enum Correlation {
    /// z_t - λ·z_(t-1): DP-λCGD.
    Lambda {
        /// From 0 up to but not 1, a multiple of 1/1024.
        lambda: f64,
    },
    /// The first terms of √(1 - x): the banded inverse square root of Kalinin, McKenna, Upadhyay, Lampert, *Back to Square Roots*, 2025.
    Banded {
        /// How many terms, at least 2.
        bands: u32,
    },
}

/// λ is a multiple of two to the minus this.
const LAMBDA_BITS: u32 = 10;
/// Terms of the square root are rounded to multiples of two to the minus this.
const BAND_BITS: u32 = 24;
/// More terms make a step slow, and gain little.
const MOST_BANDS: u32 = 64;

impl Correlation {
    /// The nearest λ that can be drawn exactly.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] unless it is at least 0 and below 1.
    pub fn lambda(lambda: f64) -> Result<Self, Error> {
        let units = f64::from(1 << LAMBDA_BITS);
        let correlation = Correlation::Lambda { lambda: (lambda * units).round() / units };
        correlation.check().map(|()| correlation)
    }

    /// So many terms of the square root.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] unless there are from 2 to 64.
    pub fn bands(bands: u32) -> Result<Self, Error> {
        let correlation = Correlation::Banded { bands };
        correlation.check().map(|()| correlation)
    }

    pub fn check(self) -> Result<(), Error> {
        match self {
            Correlation::Lambda { lambda } => {
                let units = lambda * f64::from(1 << LAMBDA_BITS);
                let fine = (0.0..1.0).contains(&lambda) && units == units.round();
                let want = "at least 0 and below 1: with 1 all noise would be taken back";
                Error::ensure(fine, "lambda", want, lambda)
            }
            Correlation::Banded { bands } => {
                Error::ensure((2..=MOST_BANDS).contains(&bands), "bands", "from 2 to 64", bands)
            }
        }
    }

    /// 1, a_1, a_2, …: what is drawn.
    pub fn coefficients(self) -> Result<Vec<Dyadic>, Error> {
        self.check()?;
        let values = match self {
            Correlation::Lambda { lambda } => vec![1.0, -lambda],
            Correlation::Banded { bands } => {
                let next =
                    |(a, j): (f64, f64)| Some((a * (2.0 * j - 1.0) / (2.0 * j + 2.0), j + 1.0));
                let terms = std::iter::successors(Some((1.0, 0.0)), |now| next(*now));
                terms.map(|(a, _)| a).take(bands as usize).collect()
            }
        };
        values.into_iter().map(|a| Ok(Dyadic::nearest(a, BAND_BITS)?)).collect()
    }

    /// What is charged: the inverse of what is drawn.
    ///
    /// All a_j are at most 0, so that every term of c_t = -Σ a_j·c_(t-j) is at least 0 and rounding errs by at most 2t(J + 1)u of c_t;
    /// taken higher by more than that, as higher entries are never cheaper (monotone dominance).
    fn strategy(self, steps: u64) -> Result<Strategy, Error> {
        if let Correlation::Lambda { lambda } = self {
            return Ok(Strategy::Lambda(lambda));
        }
        let a: Vec<f64> = self.coefficients()?.iter().map(|a| a.value()).collect();
        assert!(a[1..].iter().all(|a| *a <= 0.0), "what a step adds is taken back");
        let mut c = vec![1.0_f64];
        for t in 1..steps as usize {
            let back = (1..a.len().min(t + 1)).map(|j| -a[j] * c[t - j]).sum();
            c.push(back);
        }
        let margin = 1.0 + 1e-14 * (steps as f64 + 1.0) * a.len() as f64;
        c[1..].iter_mut().for_each(|c| *c *= margin);
        Ok(Strategy::Banded(c))
    }

    /// `steps` sums with noise of this correlation and the noise multiplier `noise`.
    pub(super) fn event(
        self,
        participation: Participation,
        steps: u64,
        noise: f64,
    ) -> Result<Event, Error> {
        let run = CorrelatedGaussian::new(self.strategy(steps)?, participation, steps, noise)?;
        Ok(Event::correlated(run))
    }
}

impl fmt::Display for Correlation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Correlation::Lambda { lambda } => {
                write!(f, "lambda={lambda:.3}")
            }
            Correlation::Banded { bands } => write!(f, "banded over {bands} steps"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The terms of √(1 - x) and of its inverse, which multiply to one.
    #[test]
    fn what_is_charged_inverts_what_is_drawn() {
        let correlation = Correlation::bands(4).unwrap();
        let a: Vec<f64> = correlation.coefficients().unwrap().iter().map(|a| a.value()).collect();
        assert_eq!(a, [1.0, -0.5, -0.125, -0.0625]);
        let Strategy::Banded(c) = correlation.strategy(50).unwrap() else { panic!("banded") };
        for t in 1..50 {
            let product: f64 = (0..a.len().min(t + 1)).map(|j| a[j] * c[t - j]).sum();
            assert!(product.abs() < 1e-10 && c[t] > 0.0, "{t} {product}");
        }
    }

    /// 1 - λx, and the powers of λ: the λ of the one is that of the other, to the last bit.
    #[test]
    fn the_lambda_that_is_charged_is_the_one_that_is_drawn() {
        for lambda in [0.0, 0.3, 0.625, 0.999] {
            let correlation = Correlation::lambda(lambda).unwrap();
            let drawn: Vec<f64> =
                correlation.coefficients().unwrap().iter().map(|a| a.value()).collect();
            let Strategy::Lambda(charged) = correlation.strategy(50).unwrap() else {
                panic!("lambda")
            };
            assert_eq!(drawn, [1.0, -charged]);
        }
    }

    #[test]
    fn what_cannot_be_drawn_is_refused() {
        for lambda in [-0.1, 1.0, f64::NAN, f64::INFINITY] {
            assert!(Correlation::lambda(lambda).is_err(), "{lambda}");
        }
        assert!(Correlation::Lambda { lambda: 0.3 }.check().is_err());
        assert_eq!(
            Correlation::lambda(0.3).unwrap(),
            Correlation::Lambda { lambda: 307.0 / 1024.0 }
        );
        assert!(Correlation::bands(1).is_err() && Correlation::bands(65).is_err());
    }
}
