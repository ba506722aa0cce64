//! Discrete Laplace noise for pure differential privacy.
//!
//! # Proof: discrete Laplace noise is exact
//!
//! P(k) ∝ exp(-|k|/t) over the integers. For an exponential variable E, ⌊tE⌋ ≥ k with probability
//! exp(-k/t): it is geometric. A fair sign is put on it and (negative, 0) is refused, or zero
//! would be drawn twice too often. E is von Neumann's, whose fraction is a real number with late
//! bits, and t = n/d a ratio of integers, so ⌊n(w + u)/d⌋ is decided exactly: by the first 64
//! bits of u, or where two integers remain by comparing u with a ratio.
use std::num::NonZeroUsize;

use crate::{
    error::Error,
    exact_numbers::Ratio,
    fill::{add_clamped, or_zero, spread},
    key::Stream,
    lazy_uniform::exponential,
    stream_layout::{self, BLOCK, Cipher, Late, Region, Words},
};

/// The distribution P(k) ∝ exp(-|k|/t) over the integers.
///
/// Added to an integer vector of ℓ1 sensitivity Δ with t = Δ/ε it is ε-differentially private,
/// exactly. A function of (stream, step, coordinate), independent of the normal noise there. How
/// long a draw takes depends on the noise and not on the data.
#[derive(Clone, Copy, Debug)]
pub struct DiscreteLaplace {
    scale: Ratio,
}

const LIMIT: u64 = 1 << 44;
/// Coordinates handled at a time.
const RUN: usize = 64;

impl DiscreteLaplace {
    /// Noise of scale t.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] unless numerator and denominator are from 1 to 2⁴⁴.
    pub fn new(scale: Ratio) -> Result<Self, Error> {
        let (n, d) = (scale.numerator(), scale.denominator());
        Error::ensure((1..=LIMIT).contains(&n), "numerator of the scale", "from 1 to 2^44", n)?;
        Error::ensure((1..=LIMIT).contains(&d), "denominator of the scale", "from 1 to 2^44", d)?;
        Ok(Self { scale })
    }

    /// The scale t.
    pub fn scale(&self) -> Ratio {
        self.scale
    }

    /// Fills `out` with the noise of `step`, coordinates 0, 1, ….
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if `step` ≥ 2⁶¹ or there are more than 2⁴⁸ coordinates;
    /// [`Error::Exhausted`] if the generator is broken. `out` is then zero.
    pub fn fill(&self, stream: &Stream, step: u64, out: &mut [i64]) -> Result<(), Error> {
        self.fill_threads(stream, step, out, NonZeroUsize::MIN)
    }

    /// As [`fill`](Self::fill) with `threads` threads. The bits do not depend on their number.
    ///
    /// # Errors
    ///
    /// As [`fill`](Self::fill).
    pub fn fill_threads(
        &self,
        stream: &Stream,
        step: u64,
        out: &mut [i64],
        threads: NonZeroUsize,
    ) -> Result<(), Error> {
        or_zero(out, |out| {
            stream_layout::check(step, 0, out.len())?;
            spread(out, threads, |first, out| {
                self.runs(stream, step, first, out, |noise, out| out.copy_from_slice(noise))
            })
        })
    }

    /// The noise of one coordinate.
    ///
    /// # Errors
    ///
    /// As [`fill`](Self::fill).
    pub fn at(&self, stream: &Stream, step: u64, coordinate: u64) -> Result<i64, Error> {
        stream_layout::check(step, coordinate, 1)?;
        let mut out = [0];
        self.runs(stream, step, coordinate, &mut out, |noise, out| out.copy_from_slice(noise))?;
        Ok(out[0])
    }

    /// Adds the noise of `step` to `sums`, cut to ±2⁶² as in
    /// [`RoundedGaussian::add`](crate::RoundedGaussian::add).
    ///
    /// # Errors
    ///
    /// As [`fill`](Self::fill); `sums` are then zero, so that no sum leaves without noise.
    pub fn add(&self, stream: &Stream, step: u64, sums: &mut [i64]) -> Result<(), Error> {
        or_zero(sums, |sums| {
            stream_layout::check(step, 0, sums.len())?;
            self.runs(stream, step, 0, sums, add_clamped)
        })
    }

    fn runs(
        &self,
        stream: &Stream,
        step: u64,
        first: u64,
        out: &mut [i64],
        put: impl Fn(&[i64], &mut [i64]),
    ) -> Result<(), Error> {
        let mut cipher = Cipher::new(stream, step, Region::LaplaceFirst);
        let mut words = [0; RUN * BLOCK];
        let mut noise = [0; RUN];
        for (i, out) in out.chunks_mut(RUN).enumerate() {
            let first = first + (i * RUN) as u64;
            let noise = &mut noise[..out.len()];
            cipher.words(first, &mut words[..BLOCK * noise.len()]);
            for ((c, n), words) in (first..).zip(&mut *noise).zip(words.as_chunks().0) {
                let late = Late::new(stream, step, Region::LaplaceLate, c);
                *n = self.draw(&mut Head { words, next: 0, late })?;
            }
            put(noise, out);
        }
        Ok(())
    }

    /// One draw. Its size is below 2⁶²: a coordinate's words, three for each unit of `whole`, end
    /// before that reaches 2¹⁷·⁵.
    fn draw(&self, words: &mut impl Words) -> Result<i64, Error> {
        let (n, d) = (u128::from(self.scale.numerator()), u128::from(self.scale.denominator()));
        loop {
            let negative = words.word()? >> 63 == 1;
            let (whole, mut u) = exponential(words)?;
            // 2⁶⁴n(w + u) lies in [low, low + n): at most 44 + 18 + 64 bits.
            let low = n * ((u128::from(whole) << 64) | u128::from(u.head));
            let divide = |x: u128| (x >> 64) as u64 / d as u64;
            let mut size = divide(low);
            if size != divide(low + n - 1) {
                // tE < size + 1 is u < ((size + 1)·d - w·n)/n.
                let threshold = u128::from(size + 1) * d - u128::from(whole) * n;
                size += u64::from(!u.below(threshold, n, words)?);
            }
            if !(negative && size == 0) {
                return Ok(if negative { -(size as i64) } else { size as i64 });
            }
        }
    }
}

/// The first words of a coordinate, then its late ones.
struct Head<'a> {
    words: &'a [u64; BLOCK],
    next: usize,
    late: Late<'a>,
}

impl Words for Head<'_> {
    #[inline]
    fn word(&mut self) -> Result<u64, Error> {
        if self.next < BLOCK {
            self.next += 1;
            Ok(self.words[self.next - 1])
        } else {
            self.late.word()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{key::Key, stream_layout::Script};

    fn laplace(n: u64, d: u64) -> DiscreteLaplace {
        DiscreteLaplace::new(Ratio::new(n, d).unwrap()).unwrap()
    }

    /// χ² against P(k) = tanh(1/2t)·exp(-|k|/t), cells with at least 20 expected. The critical
    /// value is the mean plus 6 standard deviations of χ²: a false-positive rate below 1e-5 for
    /// each t. The control is t off by 3 %.
    #[test]
    fn draws_follow_the_exact_law() {
        let stream = Key::from_seed(31).stream("laplace");
        for (n, d) in [(1, 2), (1, 1), (7, 3), (50, 1)] {
            let mut draws = vec![0; 400_000];
            laplace(n, d).fill(&stream, n, &mut draws).unwrap();
            let excess = |t: f64| {
                let p = |k: i64| (0.5 / t).tanh() * (-(k as f64).abs() / t).exp();
                let reach = (0..).take_while(|&k| p(k) * draws.len() as f64 > 20.0).last().unwrap();
                let mut counts = vec![0.0; 2 * reach as usize + 1];
                draws
                    .iter()
                    .filter(|k| k.abs() <= reach)
                    .for_each(|k| counts[(k + reach) as usize] += 1.0);
                let (mut chi, mut outside) = (0.0, draws.len() as f64);
                let mut expected_outside = draws.len() as f64;
                for (k, count) in (-reach..).zip(&counts) {
                    let expected = p(k) * draws.len() as f64;
                    chi += (count - expected).powi(2) / expected;
                    outside -= count;
                    expected_outside -= expected;
                }
                chi += (outside - expected_outside).powi(2) / expected_outside;
                let freedom = counts.len() as f64;
                (chi - freedom) / (2.0 * freedom).sqrt()
            };
            let t = n as f64 / d as f64;
            assert!(excess(t) < 6.0, "{t} {}", excess(t));
            assert!(excess(t * 1.03) > 6.0, "{t} {}", excess(t * 1.03));
        }
    }

    /// t = 3: u = 1/3 to 64 bits leaves ⌊3u⌋ open between 0 and 1, and the next word decides.
    #[test]
    fn late_bits_decide_between_two_integers() {
        let third = u64::MAX / 3;
        for (word, size) in [(third, 0), (third + 1, 1)] {
            // Sign; u and a larger one, so E = u; then late bits of u, equal to a third at first.
            let mut words = Script::new(&[0, third, u64::MAX, third, word]);
            let draw = laplace(3, 1).draw(&mut words);
            assert_eq!(
                draw,
                if word == third {
                    Err(Error::Exhausted { step: 0, coordinate: 0 })
                } else {
                    Ok(size)
                }
            );
        }
        let mut words = Script::new(&[0, third, u64::MAX, third - 1]);
        assert_eq!(laplace(3, 1).draw(&mut words), Ok(0));
        // A negative zero is drawn again.
        let mut words = Script::new(&[1 << 63, 5, 9, 1 << 63, 1 << 63, u64::MAX]);
        assert_eq!(laplace(4, 1).draw(&mut words), Ok(-2));
    }

    #[test]
    fn same_bits_for_any_number_of_threads() {
        let stream = Key::from_seed(32).stream("laplace");
        let mut one = vec![0; 5000];
        laplace(1 << 40, 3).fill(&stream, 8, &mut one).unwrap();
        for threads in [2, 7] {
            let mut many = vec![0; 5000];
            let threads = NonZeroUsize::new(threads).unwrap();
            laplace(1 << 40, 3).fill_threads(&stream, 8, &mut many, threads).unwrap();
            assert_eq!(one, many);
        }
        for c in [0, 63, 64, 4999] {
            assert_eq!(laplace(1 << 40, 3).at(&stream, 8, c).unwrap(), one[c as usize]);
        }
        let mut sums = vec![i64::MIN, i64::MAX, 10];
        laplace(1 << 40, 3).add(&stream, 8, &mut sums).unwrap();
        assert_eq!(sums[2], 10 + one[2]);
        assert_eq!(sums[0], -(1 << 62) + one[0]);
    }

    #[test]
    fn bad_scales_are_errors() {
        for (n, d) in [(0, 1), (LIMIT + 1, 1), (1, LIMIT + 1)] {
            assert!(DiscreteLaplace::new(Ratio::new(n, d).unwrap()).is_err());
        }
    }
}
