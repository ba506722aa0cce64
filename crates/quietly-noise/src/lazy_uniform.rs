//! Lazy uniform real numbers whose bits are drawn when they are needed.
//!
//! # Proof: bits drawn late are as good as bits drawn early
//!
//! A [`LazyUniform`] is a real number in [0, 1) of which some leading bits are known; more come
//! from the words of its coordinate. *Which* number is refined next may depend on bits already
//! seen, but every word is used once, as the next 64 bits of one number. Given all bits seen, the
//! next word is uniform, so the numbers have the joint law of independent uniforms whose bits were
//! all drawn beforehand. Every procedure below is a function of those real numbers: its law is
//! exact, and it ends once enough bits are known, with probability one.
use num_bigint::BigUint;

use crate::{error::Error, stream_layout::Words};

/// A number in [0, 1), known to lie in [U, U + 1)/2^bits.
#[derive(Clone, Debug)]
pub(crate) struct LazyUniform {
    /// The first bits, at the top of the word; the rest of it is zero.
    pub(crate) head: u64,
    head_bits: u32,
    rest: Vec<u64>,
}

impl LazyUniform {
    /// The number that starts with the top `bits` of `word`.
    #[inline]
    pub(crate) fn starting(word: u64, bits: u32) -> Self {
        Self { head: word >> (64 - bits) << (64 - bits), head_bits: bits, rest: Vec::new() }
    }

    /// A fresh number, 64 bits of it.
    #[inline]
    pub(crate) fn draw(words: &mut impl Words) -> Result<Self, Error> {
        Ok(Self { head: words.word()?, head_bits: 64, rest: Vec::new() })
    }

    /// Learns 64 more bits.
    pub(crate) fn refine(&mut self, words: &mut impl Words) -> Result<(), Error> {
        self.rest.push(words.word()?);
        Ok(())
    }

    /// How many bits are known.
    pub(crate) fn bits(&self) -> u64 {
        u64::from(self.head_bits) + 64 * self.rest.len() as u64
    }

    /// U: the known bits as an integer.
    pub(crate) fn integer(&self) -> BigUint {
        let head = BigUint::from(self.head >> (64 - self.head_bits));
        self.rest.iter().fold(head, |u, word| (u << 64) | BigUint::from(*word))
    }

    /// Whether this number is below `numerator/denominator`; both are below 2¹²⁷.
    ///
    /// Long division writes the ratio in binary until its bits differ from those of this number.
    pub(crate) fn below(
        &mut self,
        numerator: u128,
        denominator: u128,
        words: &mut impl Words,
    ) -> Result<bool, Error> {
        debug_assert!(numerator >> 127 == 0 && denominator >> 127 == 0);
        if numerator >= denominator {
            return Ok(true);
        }
        let mut remainder = numerator;
        let (mut word, mut bits, mut next) = (self.head, self.head_bits, 0);
        loop {
            for i in 0..bits {
                remainder <<= 1;
                let ratio_bit = remainder >= denominator;
                if ratio_bit {
                    remainder -= denominator;
                }
                if ratio_bit != ((word << i) >> 63 == 1) {
                    return Ok(ratio_bit);
                }
            }
            if remainder == 0 {
                // The ratio ends here, and this number goes on: not below.
                return Ok(false);
            }
            if self.rest.len() == next {
                self.refine(words)?;
            }
            (word, bits) = (self.rest[next], 64);
            next += 1;
        }
    }

    /// Whether this number is below `other`. Both start with whole words.
    #[inline]
    fn less(&mut self, other: &mut Self, words: &mut impl Words) -> Result<bool, Error> {
        if self.head != other.head {
            return Ok(self.head < other.head);
        }
        self.less_late(other, words)
    }

    #[cold]
    fn less_late(&mut self, other: &mut Self, words: &mut impl Words) -> Result<bool, Error> {
        for i in 0.. {
            for number in [&mut *self, &mut *other] {
                if number.rest.len() == i {
                    number.refine(words)?;
                }
            }
            if self.rest[i] != other.rest[i] {
                return Ok(self.rest[i] < other.rest[i]);
            }
        }
        unreachable!("the words end first")
    }
}

/// A standard exponential variable as its integer part and its fraction.
///
/// Von Neumann, *Various techniques used in connection with random digits*, 1951. Given U₁ = u,
/// the run U₁ > U₂ > … > U_n reaches length m with probability u^(m-1)/(m-1)!, so its length is
/// odd with probability 1 - u + u²/2 - … = e^-u. A trial succeeds with probability 1 - 1/e and
/// its U₁ then has density ∝ e^-u: the fraction of an exponential variable. The failures before
/// it are geometric with ratio 1/e: its integer part.
pub(crate) fn exponential(words: &mut impl Words) -> Result<(u64, LazyUniform), Error> {
    for whole in 0.. {
        let mut first = LazyUniform::draw(words)?;
        let mut next = LazyUniform::draw(words)?;
        let mut odd = true;
        if next.less(&mut first, words)? {
            odd = false;
            loop {
                let mut last = std::mem::replace(&mut next, LazyUniform::draw(words)?);
                if !next.less(&mut last, words)? {
                    break;
                }
                odd = !odd;
            }
        }
        if odd {
            return Ok((whole, first));
        }
    }
    unreachable!("the words end first")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        key::Key,
        stream_layout::{Late, Region, Script},
    };

    const HALF: u64 = 1 << 63;

    #[test]
    fn a_tie_is_broken_by_later_bits() {
        for (a, b) in [(3, 4), (4, 3)] {
            let mut words = Script::new(&[HALF, HALF, 7, 7, a, b]);
            let mut x = LazyUniform::draw(&mut words).unwrap();
            let mut y = LazyUniform::draw(&mut words).unwrap();
            assert_eq!(x.less(&mut y, &mut words), Ok(a < b));
            // What was learnt is kept, and nothing more was read.
            assert_eq!((x.bits(), y.bits(), words.0.len()), (192, 192, 0));
            assert_eq!(x.integer(), (BigUint::from(HALF) << 128) + (BigUint::from(7u8) << 64) + a);
        }
    }

    #[test]
    fn a_ratio_is_compared_with_all_the_bits_it_needs() {
        // 1/3 = 0x0.5555…: equal so far, then decided by the second word.
        let third = 0x5555_5555_5555_5555;
        for (word, below) in [(third - 1, true), (third + 1, false)] {
            let mut words = Script::new(&[word]);
            let mut x = LazyUniform::starting(third, 64);
            assert_eq!(x.below(1, 3, &mut words), Ok(below));
            assert!(words.0.is_empty());
        }
        // A half is decided at once, from either side.
        assert_eq!(LazyUniform::starting(HALF, 53).below(1, 2, &mut Script::new(&[])), Ok(false));
        assert_eq!(
            LazyUniform::starting(HALF - 1, 53).below(1, 2, &mut Script::new(&[])),
            Ok(true)
        );
    }

    #[test]
    fn von_neumann_counts_runs() {
        let run = |words: &[u64]| {
            let (whole, u) = exponential(&mut Script::new(words)).unwrap();
            (whole, u.head)
        };
        assert_eq!(run(&[5, 9]), (0, 5)); // length 1
        assert_eq!(run(&[5, 4, 3, 9]), (0, 5)); // length 3
        assert_eq!(run(&[5, 4, 9, 6, 7]), (1, 6)); // length 2, then 1
        assert_eq!(run(&[5, 4, 3, 2, 9, 6, 7]), (1, 6)); // length 4, then 1
    }

    /// χ² of the exponential in 20 cells of equal probability: 66.6 is the 1 - 1e-6 quantile of
    /// χ² with 19 degrees of freedom. The control scales the draws by 1.03.
    #[test]
    fn exponential_draws_follow_the_law() {
        let stream = Key::from_seed(11).stream("exponential");
        let draws: Vec<f64> = (0..40_000)
            .map(|c| {
                let mut words = Late::new(&stream, 0, Region::NormalLate, c);
                let (whole, u) = exponential(&mut words).unwrap();
                whole as f64 + u.head as f64 / 2f64.powi(64)
            })
            .collect();
        let chi_square = |scale: f64| {
            let mut counts = [0f64; 20];
            for e in &draws {
                counts[((-(-e * scale).exp_m1()) * 20.0) as usize] += 1.0;
            }
            counts.iter().map(|n| (n - 2000.0).powi(2) / 2000.0).sum::<f64>()
        };
        let right = chi_square(1.0);
        assert!(right < 66.6, "{right}");
        let wrong = chi_square(1.03);
        assert!(wrong > 66.6, "{wrong}");
    }
}
