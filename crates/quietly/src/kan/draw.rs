//! Which rows are in which step.
use quietly_noise::{Bits, Stream};

use crate::{charge::Sampler, error::Error};

/// Draws the rows of every step, as the sampler says, for a number of rows that may be secret.
///
/// Each row's part is drawn on its own, but for batches of one size.
pub(crate) struct Draw {
    sampler: Sampler,
    stream: Stream,
    /// The rows of each bin, for samplers that have bins.
    bins: Vec<Vec<u32>>,
    /// All rows, in an order that was drawn.
    all: Vec<u32>,
}

impl Draw {
    /// For so many rows.
    ///
    /// # Errors
    ///
    /// [`Error::Noise`] if there is no randomness.
    pub(crate) fn new(sampler: Sampler, stream: Stream, rows: usize) -> Result<Self, Error> {
        let mut bins = Vec::new();
        if let Some(count) = bin_count(sampler) {
            bins.resize(count as usize, Vec::new());
            // Steps draw from 1 on.
            let mut bits = stream.bits(0)?;
            for row in 0..rows as u32 {
                bins[bits.below(count)? as usize].push(row);
            }
        }
        Ok(Draw { sampler, stream, bins, all: (0..rows as u32).collect() })
    }

    /// The rows of step t, from 0.
    pub(crate) fn step(&mut self, t: u64) -> Result<&[u32], Error> {
        match self.sampler {
            Sampler::Poisson { rate, .. } => {
                let mut bits = self.stream.bits(t + 1)?;
                self.bins.resize(1, Vec::new());
                self.bins[0].clear();
                poisson(&mut bits, rate, self.all.len() as u32, &mut self.bins[0])?;
                Ok(&self.bins[0])
            }
            Sampler::FixedSize { batch, .. } => {
                let mut bits = self.stream.bits(t + 1)?;
                let (rows, batch) = (self.all.len(), (batch as usize).min(self.all.len()));
                // Whatever the order was, the first places are then a uniform choice.
                for place in 0..batch {
                    let other = place + bits.below((rows - place) as u64)? as usize;
                    self.all.swap(place, other);
                }
                Ok(&self.all[..batch])
            }
            _ => match self.bins.len() as u64 {
                0 => Ok(&self.all),
                bins => Ok(&self.bins[(t % bins) as usize]),
            },
        }
    }
}

/// How many bins rows are put into, where they are.
fn bin_count(sampler: Sampler) -> Option<u64> {
    match sampler {
        Sampler::Bins { bins, .. } => Some(bins),
        Sampler::Cyclic { period, .. } => Some(period),
        Sampler::Parts { steps } => Some(steps),
        _ => None,
    }
}

/// Each row by 32 bits of its own.
fn poisson(bits: &mut Bits, rate: f64, rows: u32, into: &mut Vec<u32>) -> Result<(), Error> {
    // A multiple of 2⁻³², so that the rate that is charged is the one that is drawn.
    let chance = (rate * 2f64.powi(32)) as u64;
    for first in (0..rows).step_by(2) {
        let word = bits.word()?;
        let draws = [word & 0xffff_ffff, word >> 32];
        let both = (first..rows.min(first.saturating_add(2))).zip(draws);
        into.extend(both.filter(|(_, draw)| *draw < chance).map(|(row, _)| row));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use quietly_noise::Key;

    use super::*;

    fn draw(sampler: Sampler, rows: usize) -> Draw {
        Draw::new(sampler, Key::from_seed(5).stream("test"), rows).unwrap()
    }

    /// Every row is in one step of every pass, always the same; bins are as even as they should be (five standard
    /// deviations: a fresh seed would fail once in ten thousand times).
    #[test]
    fn bins_hold_every_row_once() {
        for sampler in
            [Sampler::Bins { bins: 8, passes: 2 }, Sampler::Cyclic { period: 8, passes: 2 }]
        {
            let mut draw = draw(sampler, 8000);
            let steps: Vec<Vec<u32>> = (0..16).map(|t| draw.step(t).unwrap().to_vec()).collect();
            assert_eq!(steps[..8], steps[8..]);
            let mut all = steps[..8].concat();
            all.sort();
            assert!(all.into_iter().eq(0..8000));
            let spread = (8000.0_f64 / 8.0 * 7.0 / 8.0).sqrt();
            assert!(steps.iter().all(|s| (s.len() as f64 - 1000.0).abs() < 5.0 * spread));
        }
    }

    /// Batches have one size and no row twice; rows are in them as often as they should be, and anew in every step.
    #[test]
    fn batches_of_one_size_are_drawn_anew() {
        let mut draw = draw(Sampler::FixedSize { steps: 400, batch: 30, rows: 100 }, 100);
        let mut times = [0; 100];
        let mut last = Vec::new();
        for t in 0..400 {
            let mut step = draw.step(t).unwrap().to_vec();
            step.sort();
            step.dedup();
            assert_eq!(step.len(), 30);
            assert_ne!(step, last);
            step.iter().for_each(|row| times[*row as usize] += 1);
            last = step;
        }
        let spread = (400.0_f64 * 0.3 * 0.7).sqrt();
        assert!(times.iter().all(|n| (f64::from(*n) - 120.0).abs() < 5.0 * spread), "{times:?}");
    }

    /// A row's draws do not hang on how many come after it.
    #[test]
    fn samples_are_drawn_row_by_row() {
        let sampler = Sampler::Poisson { steps: 3, rate: 0.25 };
        let (mut more, mut less) = (draw(sampler, 9001), draw(sampler, 4000));
        for t in 0..3 {
            let all = more.step(t).unwrap().to_vec();
            let some = less.step(t).unwrap();
            assert_eq!(all[..some.len()], *some);
            assert!((all.len() as f64 / 9001.0 - 0.25).abs() < 5.0 * (0.1875_f64 / 9001.0).sqrt());
        }
    }
}
