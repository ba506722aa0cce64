//! Random words in sequence, and exact uniform choices made of them.
//!
//! For everything that is not a long vector of noise: sampling rows, shuffling, choosing a
//! candidate. All probabilities are exact, because only integers are compared.
use crate::{
    error::Error,
    exact_numbers::Ratio,
    key::Stream,
    stream_layout::{self, BLOCK, Cipher, Region, Words},
};

/// A generator of its own for one step of a stream, to be read in order.
pub struct Bits {
    cipher: Cipher,
    step: u64,
    /// The block after those in `words`; `None` when the counter has run out.
    block: Option<u64>,
    words: [u64; RUN],
    next: usize,
}

const RUN: usize = 16 * BLOCK;

impl Stream {
    /// The sequential words of `step`. They are independent of all noise of this stream.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if `step` ≥ 2⁶¹.
    pub fn bits(&self, step: u64) -> Result<Bits, Error> {
        stream_layout::check(step, 0, 0)?;
        let cipher = Cipher::new(self, step, Region::Sequential);
        Ok(Bits { cipher, step, block: Some(0), words: [0; RUN], next: RUN })
    }
}

impl Words for Bits {
    #[inline]
    fn word(&mut self) -> Result<u64, Error> {
        if self.next == RUN {
            let block = self.block.ok_or(Error::Exhausted { step: self.step, coordinate: 0 })?;
            self.cipher.words(block, &mut self.words);
            self.block = block.checked_add((RUN / BLOCK) as u64);
            self.next = 0;
        }
        self.next += 1;
        Ok(self.words[self.next - 1])
    }
}

impl Bits {
    /// 64 uniform bits.
    ///
    /// # Errors
    ///
    /// [`Error::Exhausted`] after 2⁶⁷ words.
    pub fn word(&mut self) -> Result<u64, Error> {
        Words::word(self)
    }

    /// The same words without the first so many of those that are left.
    #[must_use]
    pub fn skip(mut self, words: u64) -> Self {
        let left = (RUN - self.next) as u64;
        if words <= left {
            self.next += words as usize;
            return self;
        }
        let (runs, rest) = ((words - left) / RUN as u64, (words - left) % RUN as u64);
        let blocks = runs.checked_mul((RUN / BLOCK) as u64);
        self.block = self.block.zip(blocks).and_then(|(at, more)| at.checked_add(more));
        self.next = RUN;
        for _ in 0..rest {
            // A stream that has run out says so at the next word.
            let _ = Words::word(&mut self);
        }
        self
    }

    /// A uniform integer below `bound`.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if `bound` is zero; [`Error::Exhausted`] after 2⁶⁷ words.
    pub fn below(&mut self, bound: u64) -> Result<u64, Error> {
        Error::ensure(bound > 0, "bound", "positive", bound)?;
        Ok(below(bound.into(), self)? as u64)
    }

    /// True with probability n/d exactly; always, if n ≥ d.
    ///
    /// # Errors
    ///
    /// [`Error::Exhausted`] after 2⁶⁷ words.
    pub fn bernoulli(&mut self, ratio: Ratio) -> Result<bool, Error> {
        Ok(below(ratio.denominator().into(), self)? < ratio.numerator().into())
    }

    /// True with probability exp(-n/d) exactly. The time depends on n/d and the outcome, but not
    /// more than a few words in expectation, however large n/d is.
    ///
    /// # Errors
    ///
    /// [`Error::Exhausted`] after 2⁶⁷ words.
    pub fn bernoulli_exp(&mut self, ratio: Ratio) -> Result<bool, Error> {
        bernoulli_exp(ratio.numerator().into(), ratio.denominator().into(), self)
    }
}

impl std::fmt::Debug for Bits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bits").field("step", &self.step).finish_non_exhaustive()
    }
}

/// A uniform integer below `bound`, which is positive.
#[inline]
fn below(bound: u128, words: &mut impl Words) -> Result<u128, Error> {
    if bound >> 64 == 0 {
        // Lemire, *Fast random integer generation in an interval*, 2019: the high word of w·bound
        // is uniform once the 2⁶⁴ mod bound smallest low words are refused.
        loop {
            let product = u128::from(words.word()?) * bound;
            let low = product & u128::from(u64::MAX);
            if low >= bound || low >= (1 << 64) % bound {
                return Ok(product >> 64);
            }
        }
    }
    let shift = bound.leading_zeros();
    loop {
        let candidate = ((u128::from(words.word()?) << 64) | u128::from(words.word()?)) >> shift;
        if candidate < bound {
            return Ok(candidate);
        }
    }
}

/// True with probability exp(-n/d), for 0 < d ≤ 2⁹⁶.
///
/// Canonne, Kamath and Steinke, *The Discrete Gaussian for Differential Privacy*, NeurIPS 2020:
/// Algorithm 1. The integer part of n/d is a chain of exp(-1)s that breaks at the first failure,
/// so it is short however long it could be.
pub(crate) fn bernoulli_exp(n: u128, d: u128, words: &mut impl Words) -> Result<bool, Error> {
    let whole = n / d;
    let mut i = 0;
    while i < whole {
        if !bernoulli_exp_fraction(1, 1, words)? {
            return Ok(false);
        }
        i += 1;
    }
    bernoulli_exp_fraction(n % d, d, words)
}

/// True with probability exp(-n/d) for n ≤ d: the first k with a failure of probability n/(dk) is
/// odd with probability 1 - x + x²/2! - …
#[inline]
fn bernoulli_exp_fraction(n: u128, d: u128, words: &mut impl Words) -> Result<bool, Error> {
    let mut k = 1;
    // The chance to reach k is below 1/(k-1)!, so d·k stays far below 2¹²⁸.
    while below(d * k, words)? < n {
        k += 1;
    }
    Ok(k % 2 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{key::Key, stream_layout::Script};

    /// The critical values are 5 standard deviations, false-positive rate 6e-7 per ratio; the
    /// control is a probability off by 6 %.
    #[test]
    fn odds_are_those_asked_for() {
        let mut bits = Key::from_seed(21).stream("odds").bits(0).unwrap();
        let n = 200_000;
        for (a, b) in [(0, 7), (1, 3), (1, 1), (5, 2), (u64::MAX / 9 * 2, u64::MAX / 9 * 7)] {
            let ratio = Ratio::new(a, b).unwrap();
            let mut count = |draw: fn(&mut Bits, Ratio) -> Result<bool, Error>| {
                (0..n).filter(|_| draw(&mut bits, ratio).unwrap()).count() as f64
            };
            for (hits, p) in [
                (count(Bits::bernoulli), ratio.value().min(1.0)),
                (count(Bits::bernoulli_exp), (-ratio.value()).exp()),
            ] {
                let far = |p: f64| {
                    (hits - n as f64 * p).abs() > 5.0 * (n as f64 * p * (1.0 - p)).sqrt() + 1e-9
                };
                assert!(!far(p), "{ratio:?} {hits}");
                assert!(p == 0.0 || p == 1.0 || far(p * 1.06) && far(p / 1.06), "{ratio:?} {hits}");
            }
        }
    }

    #[test]
    fn skipped_words_are_those_that_would_have_come() {
        let bits = || Key::from_seed(3).stream("skip").bits(7).unwrap();
        let mut one = bits();
        let words: Vec<u64> = (0..2000).map(|_| one.word().unwrap()).collect();
        for first in [0, 1, 100, 128, 300] {
            for skip in [0, 1, 27, 28, 127, 128, 129, 500, 1024] {
                let mut other = bits();
                (0..first).for_each(|_| _ = other.word().unwrap());
                let mut other = other.skip(skip as u64);
                assert_eq!(other.word().unwrap(), words[first + skip], "{first} {skip}");
            }
        }
    }

    /// χ² over 30 values: 85.0 is the 1 - 2e-7 quantile with 29 degrees of freedom. 3·2⁶² makes
    /// one word in four be refused, and the two-word path is taken above 2⁶⁴.
    #[test]
    fn integers_are_uniform() {
        let mut bits = Key::from_seed(22).stream("below").bits(0).unwrap();
        for bound in [30u128, 3 << 62, 15 << 70, (1 << 96) - 1] {
            let mut counts = [0f64; 30];
            for _ in 0..60_000 {
                let draw = below(bound, &mut bits).unwrap();
                assert!(draw < bound);
                counts[(draw * 30 / bound) as usize] += 1.0;
            }
            let chi: f64 = counts.iter().map(|c| (c - 2000.0).powi(2) / 2000.0).sum();
            assert!(chi < 85.0, "{bound} {chi}");
        }
    }

    /// Words that would make the law uneven are refused: 2⁶⁴ mod 3 = 1 low word of 3·w.
    #[test]
    fn uneven_words_are_refused() {
        let mut words = Script::new(&[0, 1]);
        assert_eq!(below(3, &mut words), Ok(0));
        assert!(words.0.is_empty());
        assert_eq!(below(4, &mut Script::new(&[0])), Ok(0));
        // 2⁶⁴ + 1: 65 bits are read, and the bound itself is refused.
        let mut words = Script::new(&[1 << 63, 1 << 63, 1 << 63, 0]);
        assert_eq!(below((1 << 64) + 1, &mut words), Ok(1 << 64));
        assert!(words.0.is_empty());
    }

    #[test]
    fn a_huge_exponent_is_quick_and_false() {
        let mut words = Script::new(&[u64::MAX / 3; 8]);
        assert_eq!(bernoulli_exp(u128::MAX, 1, &mut words), Ok(false));
    }

    #[test]
    fn limits_are_errors() {
        let stream = Key::from_seed(1).stream("limits");
        assert!(stream.bits(1 << 61).is_err());
        let mut bits = stream.bits(0).unwrap();
        assert!(bits.below(0).is_err());
        bits.block = Some(u64::MAX - 15);
        for _ in 0..RUN {
            bits.word().unwrap();
        }
        assert_eq!(bits.word(), Err(Error::Exhausted { step: 0, coordinate: 0 }));
    }
}
