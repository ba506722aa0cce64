//! Rounded Gaussian noise: exact draws of round(σZ), independent for every coordinate.
//!
//! # Proof: rounded normal noise is exact
//!
//! *Statement.* If the words of a stream are independent and uniform, the noise of different (step,
//! coordinate) is independent and each has exactly the distribution of round(s·Z), Z standard
//! normal, round(t) = ⌊t + ½⌋.
//!
//! *Proof.* Different coordinates read different words (`stream_layout.rs`), which gives
//! independence. For one coordinate: `LazyNormal::draw` is a function of its words whose result is
//! a real number with the standard normal distribution (`ziggurat.rs`: a uniform point of an exact
//! cover, kept if and only if it lies below the density; `lazy_normal.rs`: every decision is that
//! of the real numbers; `lazy_uniform.rs`: bits drawn late are as good as bits drawn beforehand).
//! `Grid::round_real` is its exact rounding (`round.rs`). The loop in `run` does the same for words
//! that are kept at once and do not straddle: the layer, sign and `coarse` are computed by the same
//! functions, and every other word is handed to `LazyNormal::draw` from the start. ∎
//!
//! *Not covered.* A coordinate owns 2¹⁹ late words. Whatever was read so far, the next 16
//! words end the draw with probability above ¼: a descending run ends within 3 more words with
//! probability at least 5/6; a new trial of the exponential succeeds with its first two words
//! with probability ½; a comparison stays open after its next word with probability below 2⁻³⁰
//! (`rejection.rs`); and if the point is refused, the next word is kept at once with probability
//! above 0.99. So the words run out with probability below (¾)^(2¹⁵) < 2⁻¹³⁰⁰⁰, and then there is
//! an error and no noise.
//!
//! *Size.* A failed trial of the exponential reads three words or more, so r < |Z| in the tail is
//! at most r + 2¹⁹/(3r) + 1/r < 2¹⁷, and |N| < 2⁶² for every s ≤ 2⁴⁵.
use std::num::NonZeroUsize;

use crate::{
    error::Error,
    exact_numbers::Scale,
    fill::{RUN, add_clamped, first_words, or_zero, spread},
    key::Stream,
    lazy_normal::{LazyNormal, multiply_high, parse},
    round::Grid,
    stream_layout::{self, Late, Region},
    ziggurat::TABLE,
};

/// The distribution of round(s·Z): Z standard normal, round(t) = ⌊t + ½⌋, s the scale in lattice
/// units.
///
/// An integer sum X plus this noise is round(X + s·Z), a function of the ideal Gaussian
/// mechanism: whatever is proven for that holds here, with nothing to add for rounding. The law
/// is exact given uniform bits; the proof is at the head of this type's source file.
///
/// Noise is a function of (stream, step, coordinate). Never use the same three twice for
/// different data. How long a draw takes depends on the noise and not on the data.
#[derive(Clone, Copy, Debug)]
pub struct RoundedGaussian {
    grid: Grid,
}

impl RoundedGaussian {
    /// Noise of standard deviation `scale` lattice units, taken as the exact value of the `f64`.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] unless `scale` is from 1/4 to 2⁴⁵.
    pub fn new(scale: f64) -> Result<Self, Error> {
        Ok(Self { grid: Grid::new(Scale::new(scale)?) })
    }

    /// The scale.
    pub fn scale(&self) -> f64 {
        self.grid.scale.value
    }

    /// Fills `out` with the noise of `step`, coordinates 0, 1, ….
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if `step` ≥ 2⁶¹ or there are more than 2⁴⁸ coordinates;
    /// [`Error::Exhausted`] if the generator is broken. `out` is then zero.
    pub fn fill(&self, stream: &Stream, step: u64, out: &mut [i64]) -> Result<(), Error> {
        self.fill_from(stream, step, 0, out)
    }

    /// Fills `out` with the noise of `step`, coordinates `first`, `first + 1`, …: the same
    /// numbers that [`fill`](Self::fill) gives them.
    ///
    /// # Errors
    ///
    /// As [`fill`](Self::fill).
    pub fn fill_from(
        &self,
        stream: &Stream,
        step: u64,
        first: u64,
        out: &mut [i64],
    ) -> Result<(), Error> {
        or_zero(out, |out| {
            stream_layout::check(step, first, out.len())?;
            self.runs(stream, step, first, out, |noise, out| out.copy_from_slice(noise))
        })
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
            spread(out, threads, |first, out| self.fill_from(stream, step, first, out))
        })
    }

    /// The noise of one coordinate.
    ///
    /// # Errors
    ///
    /// As [`fill`](Self::fill).
    pub fn at(&self, stream: &Stream, step: u64, coordinate: u64) -> Result<i64, Error> {
        let mut out = [0];
        self.fill_from(stream, step, coordinate, &mut out)?;
        Ok(out[0])
    }

    /// Adds the noise of `step` to `sums`.
    ///
    /// Nothing can overflow, whatever the data: sums are first cut to ±2⁶², which changes none
    /// that keeps the promise |X| ≤ 2⁶² and cannot raise the sensitivity of one that does not,
    /// because cutting brings no two numbers further apart. The noise is below 2⁶² by its own
    /// limits.
    ///
    /// # Errors
    ///
    /// As [`fill`](Self::fill); `sums` are then zero, so that no sum leaves without noise.
    pub fn add(&self, stream: &Stream, step: u64, sums: &mut [i64]) -> Result<(), Error> {
        self.add_threads(stream, step, sums, NonZeroUsize::MIN)
    }

    /// As [`add`](Self::add) with `threads` threads. The bits do not depend on their number.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn add_threads(
        &self,
        stream: &Stream,
        step: u64,
        sums: &mut [i64],
        threads: NonZeroUsize,
    ) -> Result<(), Error> {
        or_zero(sums, |sums| {
            stream_layout::check(step, 0, sums.len())?;
            spread(sums, threads, |first, sums| self.runs(stream, step, first, sums, add_clamped))
        })
    }

    /// Hands the noise of `out`'s coordinates to `put`, run by run.
    fn runs(
        &self,
        stream: &Stream,
        step: u64,
        first: u64,
        out: &mut [i64],
        put: impl Fn(&[i64], &mut [i64]),
    ) -> Result<(), Error> {
        let mut noise = [0; RUN];
        first_words(stream, step, first, out, |first, words, out| {
            let noise = &mut noise[..words.len()];
            self.run(stream, step, first, words, noise)?;
            put(noise, out);
            Ok(())
        })
    }

    /// The noise that starts with `words`. The loop is free of branches; what it cannot settle,
    /// about one in 200, is listed and drawn again in full.
    fn run(
        &self,
        stream: &Stream,
        step: u64,
        first: u64,
        words: &[u64],
        out: &mut [i64],
    ) -> Result<(), Error> {
        let grid = self.grid;
        let mut open = [0u16; RUN];
        let mut count = 0;
        for (j, (&word, n)) in words.iter().zip(out.iter_mut()).enumerate() {
            let (layer, negative, head) = parse(word);
            let layer = &TABLE.layers[layer];
            let (size, straddles) = grid.round(grid.cut(multiply_high(head, layer.width)));
            let sign = -i64::from(negative);
            *n = (size as i64 ^ sign) - sign;
            open[count] = j as u16;
            count += usize::from((word >= layer.keep) | straddles);
        }
        for &j in &open[..count] {
            let j = usize::from(j);
            let late = Late::new(stream, step, Region::NormalLate, first + j as u64);
            out[j] = grid.round_real(LazyNormal::draw(words[j], late)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{correlated::regenerate, key::Key, round::round_wide};

    /// The fast loop gives what exact arithmetic gives for the same real numbers, at scales where
    /// straddles are rare, common, and in between.
    #[test]
    fn the_fast_loop_agrees_with_exact_arithmetic() {
        let stream = Key::from_seed(3).stream("exact");
        for s in [0.25, 0.7, 3.0, 1e6 + 0.1, 2f64.powi(44) + 0.5, 2f64.powi(45)] {
            let normal = RoundedGaussian::new(s).unwrap();
            let mut out = vec![0; 4000];
            normal.fill(&stream, 1, &mut out).unwrap();
            for (c, n) in out.iter().enumerate() {
                let mut z = regenerate(&stream, 1, c as u64).unwrap();
                assert_eq!(*n, round_wide(&normal.grid.scale, &mut [(1, &mut z)], 0).unwrap());
            }
        }
    }

    #[test]
    fn same_bits_for_any_threads_and_order() {
        let stream = Key::from_seed(5).stream("threads");
        let normal = RoundedGaussian::new(2f64.powi(40)).unwrap();
        let mut one = vec![0; 10_007];
        normal.fill(&stream, 9, &mut one).unwrap();
        for threads in [1, 2, 7] {
            let mut many = vec![0; one.len()];
            normal
                .fill_threads(&stream, 9, &mut many, NonZeroUsize::new(threads).unwrap())
                .unwrap();
            assert_eq!(one, many);
        }
        // Blocks of odd sizes, last first.
        let mut pieces = vec![0; one.len()];
        for (i, piece) in pieces.chunks_mut(777).enumerate().rev() {
            normal.fill_from(&stream, 9, 777 * i as u64, piece).unwrap();
        }
        assert_eq!(one, pieces);
        for c in [0, 1, 7, 8, 511, 512, 10_006] {
            assert_eq!(normal.at(&stream, 9, c).unwrap(), one[c as usize]);
        }
        let mut next = vec![0; one.len()];
        normal.fill(&stream, 10, &mut next).unwrap();
        assert!(one.iter().zip(&next).all(|(a, b)| a != b));
    }

    #[test]
    fn adding_cannot_overflow_and_errors_leave_nothing() {
        let stream = Key::from_seed(6).stream("add");
        let normal = RoundedGaussian::new(2f64.powi(45)).unwrap();
        let mut noise = [0; 4];
        normal.fill(&stream, 0, &mut noise).unwrap();
        let mut sums = [i64::MAX, i64::MIN, 1 << 62, 17];
        normal.add(&stream, 0, &mut sums).unwrap();
        let cut = [1 << 62, -1 << 62, 1 << 62, 17];
        assert!((0..4).all(|i| sums[i] == cut[i] + noise[i]));

        let mut sums = [17; 3];
        assert!(normal.add(&stream, 1 << 61, &mut sums).is_err());
        assert_eq!(sums, [0; 3]);
        let mut noise = [17; 3];
        assert!(normal.fill(&stream, 1 << 61, &mut noise).is_err());
        assert_eq!(noise, [0; 3]);
        assert!(normal.at(&stream, 0, 1 << 48).is_err());
        for s in [f64::NAN, -1.0, 0.0, 0.2, f64::INFINITY, 1e14] {
            assert!(RoundedGaussian::new(s).is_err());
        }
    }

    /// Golden numbers of this crate, version 0.1: a seed must give the same noise for ever and on
    /// every machine.
    #[test]
    fn a_seed_gives_the_same_noise_for_ever() {
        let stream = Key::from_seed(0).stream("golden");
        let mut out = [0; 4];
        RoundedGaussian::new(1e6).unwrap().fill(&stream, 0, &mut out).unwrap();
        assert_eq!(out, GOLDEN);
    }

    const GOLDEN: [i64; 4] = [-390_343, 310_277, 466_441, -534_839];
}
