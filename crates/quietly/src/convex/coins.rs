//! Which records a step sees, where each is drawn on its own.
use std::fmt;

use quietly_noise::{Source, Stream};
use serde::{Deserialize, Serialize};

/// The coins of one step: 32 bits for every record, by its place. They are **secret**: that a record was in a step is not
/// to be known. Whoever works for the run is given them, and nobody else; they are never printed.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Coins {
    secret: Vec<u8>,
    step: u64,
    /// In units of 2⁻³².
    chance: u64,
}

impl Coins {
    pub(crate) fn new(stream: &Stream, step: u64, chance: u64) -> Self {
        Coins { secret: stream.secret().to_vec(), step, chance }
    }

    /// The places of those that are chosen of so many records from `first` on, counted from there.
    ///
    /// # Panics
    ///
    /// If these are not coins.
    pub(crate) fn places(&self, first: u64, records: usize) -> Vec<usize> {
        // What it is called and where it came from matters to nobody here.
        let stream = Stream::from_secret(&self.secret, "coins", Source::Seed(0)).expect("coins");
        let mut bits = stream.bits(self.step).expect("a step").skip(first / 2);
        let odd = (first % 2) as usize;
        let mut chosen = Vec::new();
        for pair in (0..records + odd).step_by(2) {
            let word = bits.word().expect("a step has fewer words than a stream");
            let draws = [word & 0xffff_ffff, word >> 32];
            let both = (pair..(records + odd).min(pair + 2)).zip(draws);
            let both = both.filter(|(at, draw)| *at >= odd && *draw < self.chance);
            chosen.extend(both.map(|(at, _)| at - odd));
        }
        chosen
    }
}

impl fmt::Debug for Coins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Coins(..)")
    }
}

impl Drop for Coins {
    fn drop(&mut self) {
        self.secret.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use quietly_noise::Key;

    use super::*;

    /// Wherever a table is cut, each record has the coins that it has in the whole.
    #[test]
    fn coins_go_by_the_place() {
        let coins = Coins::new(&Key::from_seed(5).stream("test"), 3, 1 << 31);
        let whole = coins.places(0, 5000);
        assert!((2300..2700).contains(&whole.len()));
        for cut in [0, 1, 2, 777, 1024, 4999, 5000] {
            let mut parts = coins.places(0, cut);
            parts.extend(coins.places(cut as u64, 5000 - cut).iter().map(|at| at + cut));
            assert_eq!(parts, whole, "{cut}");
        }
        assert_eq!(format!("{coins:?}"), "Coins(..)");
    }
}
