//! Runs with correlated noise: which sums a unit enters, how noise depends on earlier steps, and what
//! that costs.
//!
//! # Proof: correlated noise has a dominating pair
//!
//! T noisy sums are released with noise κ·C⁻¹z, C lower triangular with unit diagonal. Knowing them
//! is the same as knowing C·(sums) + κz. With record indicators y ∈ {0,1}^T the pair is dominated
//! by N(|C|y, κ²I) against N(0, κ²I), mixed over y's law where y is random and independent of the
//! other records (monotone dominance; adaptive sums are allowed because C is lower triangular:
//! Denisov et al., *Improved Differential Privacy for SGD via Optimal Private Linear Operators on
//! Adaptive Streams*, 2022).
use crate::error::Error;

pub(crate) use bounds::sampled;

mod bounds;

/// The matrix C by which noise is correlated; the noise added is κ·C⁻¹z.
#[derive(Clone, Debug, PartialEq)]
pub enum Strategy {
    /// C = λ^(i-j): the noise added in step t is κ(z_t - λz_(t-1)). λ = 0 is independent noise.
    Lambda(f64),
    /// C = c_(i-j): a lower-triangular Toeplitz matrix with these first coefficients, zero beyond;
    /// c₀ = 1.
    Banded(Vec<f64>),
    /// Any lower-triangular matrix with unit diagonal, row by row (row i has i + 1 entries).
    Matrix(Vec<Vec<f64>>),
}

/// In which steps a record takes part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Participation {
    /// In every step.
    FullBatch,
    /// In every `period`-th step, at a place fixed in advance.
    Cyclic {
        /// Steps from one participation to the next.
        period: u64,
    },
    /// At most `most` times, at least `separation` steps apart.
    Separated {
        /// Least number of steps from one participation to the next.
        separation: u64,
        /// Most participations.
        most: u64,
    },
    /// In each step with probability `rate`, on its own.
    Poisson {
        /// The probability.
        rate: f64,
    },
    /// In every `bins`-th step from a first that each record draws uniformly, once ("balls and
    /// bins").
    BallsAndBins {
        /// Steps per epoch.
        bins: u64,
    },
    /// In batches of fixed size that hold this share of the records.
    FixedSize {
        /// Batch size over number of records.
        share: f64,
    },
    /// In every `period`-th step, at a place fixed in advance, with probability `rate` each time.
    CyclicPoisson {
        /// Steps from one opportunity to the next.
        period: u64,
        /// Probability of taking each.
        rate: f64,
    },
}

/// A run of `steps` sums with correlated noise.
///
/// ```
/// use quietly_accounting::{CorrelatedGaussian, Event, Neighbours, Participation, Strategy, epsilon};
///
/// let run = CorrelatedGaussian::new(Strategy::Lambda(0.9), Participation::Poisson { rate: 0.1 }, 1000, 118.0)?;
/// let cost = epsilon(&Event::correlated(run), Neighbours::AddRemove, 1e-5)?;
/// assert!(cost.upper < 1.02);
/// # Ok::<(), quietly_accounting::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CorrelatedGaussian {
    strategy: Strategy,
    participation: Participation,
    steps: u64,
    noise: f64,
}

/// Work allowed for one deterministic bound, in elementary operations.
const WORK: u64 = 300_000_000;

impl CorrelatedGaussian {
    /// Checks the parameters and puts them together. `noise` is κ over what one record can add.
    pub fn new(
        strategy: Strategy,
        participation: Participation,
        steps: u64,
        noise: f64,
    ) -> Result<CorrelatedGaussian, Error> {
        Error::count("steps", steps, 10_000_000)?;
        Error::within(
            "noise_multiplier",
            "from 0.1 to 10000000",
            noise,
            (0.1..=1e7).contains(&noise),
        )?;
        match &strategy {
            Strategy::Lambda(lambda) => {
                Error::within(
                    "lambda",
                    "from 0 up to but not 1",
                    *lambda,
                    (0.0..1.0).contains(lambda),
                )?;
            }
            Strategy::Banded(c) => {
                Error::count("bands", c.len() as u64, 1 << 20)?;
                Error::within("bands", "led by 1", c[0], c[0] == 1.0)?;
                if (c.len() as u64).saturating_mul(steps) > 10 * WORK {
                    let most = 10 * WORK / steps;
                    return Err(Error::TooLarge {
                        name: "bands",
                        most,
                        instead: "cut the strategy off earlier",
                    });
                }
                for &x in c {
                    Error::within("bands", "numbers between -1000 and 1000", x, x.abs() <= 1e3)?;
                }
            }
            Strategy::Matrix(rows) => {
                let fits = rows.len() as u64 == steps && steps <= 1024;
                Error::within("rows", "as many as steps, at most 1024", rows.len() as f64, fits)?;
                for (i, row) in rows.iter().enumerate() {
                    let fits = row.len() == i + 1;
                    Error::within(
                        "row length",
                        "one more than the row's index",
                        row.len() as f64,
                        fits,
                    )?;
                    Error::within("diagonal", "1", row[i], row[i] == 1.0)?;
                    for &x in row {
                        Error::within(
                            "matrix entries",
                            "between -1000 and 1000",
                            x,
                            x.abs() <= 1e3,
                        )?;
                    }
                }
            }
        }
        match participation {
            Participation::FullBatch => {}
            Participation::Cyclic { period } => {
                Error::count("period", period, steps)?;
            }
            Participation::Separated { separation, most } => {
                Error::count("separation", separation, steps)?;
                Error::count("participations", most, steps)?;
            }
            Participation::Poisson { rate } => {
                Error::rate(rate)?;
            }
            Participation::BallsAndBins { bins } => {
                Error::count("bins", bins, steps)?;
            }
            Participation::FixedSize { share } => {
                Error::rate(share)?;
            }
            Participation::CyclicPoisson { period, rate } => {
                Error::count("period", period, steps)?;
                Error::rate(rate)?;
                let bands = match &strategy {
                    Strategy::Banded(c) => c.len() as u64,
                    Strategy::Lambda(0.0) => 1,
                    _ => u64::MAX,
                };
                if period < bands {
                    return Err(Error::Unsupported {
                        event: "Poisson participation every few steps with noise correlated over more steps than that",
                        relation: "any relation",
                        instead: "cut the strategy off after `period` bands",
                    });
                }
            }
        }
        Ok(CorrelatedGaussian { strategy, participation, steps, noise })
    }

    /// The first column's absolute values, if C is Toeplitz.
    fn column(&self) -> Option<Vec<f64>> {
        let steps = self.steps as usize;
        match &self.strategy {
            Strategy::Lambda(lambda) => {
                let terms = std::iter::successors(Some(1.0), |c| Some(c * lambda));
                Some(terms.take(steps).take_while(|c| *c > 1e-300).collect())
            }
            Strategy::Banded(c) => Some(c.iter().take(steps).map(|x| x.abs()).collect()),
            Strategy::Matrix(_) => None,
        }
    }

    /// Whether no entry of C is negative: then the dominating pair is itself a pair of neighbours.
    fn is_tight(&self) -> bool {
        match &self.strategy {
            Strategy::Lambda(_) => true,
            Strategy::Banded(c) => c.iter().all(|x| *x >= 0.0),
            Strategy::Matrix(rows) => rows.iter().flatten().all(|x| *x >= 0.0),
        }
    }

    /// Whether replace-one is reached through the record's absence.
    pub(crate) fn is_allocated(&self) -> bool {
        matches!(self.participation, Participation::BallsAndBins { .. })
    }

    /// How noise is correlated.
    pub(crate) fn strategy(&self) -> &Strategy {
        &self.strategy
    }

    /// In which steps a record takes part.
    pub(crate) fn participation(&self) -> Participation {
        self.participation
    }

    /// T.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// κ.
    pub(crate) fn noise(&self) -> f64 {
        self.noise
    }

    /// |C|·y.
    pub(crate) fn apply(&self, y: &[f64]) -> Vec<f64> {
        match &self.strategy {
            Strategy::Lambda(lambda) => {
                let mut state = 0.0;
                y.iter()
                    .map(|y| {
                        state = lambda * state + y;
                        state
                    })
                    .collect()
            }
            Strategy::Banded(c) => (0..y.len())
                .map(|t| c.iter().take(t + 1).enumerate().map(|(k, c)| c.abs() * y[t - k]).sum())
                .collect(),
            Strategy::Matrix(rows) => {
                rows.iter().map(|row| row.iter().zip(y).map(|(c, y)| c.abs() * y).sum()).collect()
            }
        }
    }

    /// ‖|C|y‖² for participation at `start`, `start + period`, …, at most `most` times.
    fn energy(&self, start: u64, period: u64, most: u64) -> f64 {
        let mut y = vec![0.0; self.steps as usize];
        (start..self.steps)
            .step_by(period as usize)
            .take(most as usize)
            .for_each(|t| y[t as usize] = 1.0);
        self.apply(&y).iter().map(|x| x * x).sum()
    }

    /// The largest ‖|C|y‖² over the starts of a cycle.
    ///
    /// For a Toeplitz C a later start gives the first start's sequence, delayed and cut off: the
    /// first is the worst.
    fn cyclic_energy(&self, period: u64) -> f64 {
        let starts = if self.column().is_some() { 1 } else { period };
        (0..starts).map(|s| self.energy(s, period, u64::MAX)).fold(0.0, f64::max)
    }
}
