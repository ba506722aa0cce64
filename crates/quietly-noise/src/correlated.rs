//! Correlated noise, rounded once: ξ_t = Σ_j A_{t,t-j}·s·Z_{t-j}, released as round(ξ_t).
//!
//! # Proof: correlated noise rounded once
//!
//! *Statement.* X_t + round(ξ_t) is a function of the ideal matrix mechanism, and round(ξ_t) is
//! computed exactly.
//!
//! *Why once.* The ideal matrix mechanism publishes Y_t = X_t + ξ_t. X_t is an integer, so
//! X_t + round(ξ_t) = round(Y_t): a function of the ideal release, coordinate by coordinate and
//! step by step. Every guarantee of the ideal holds. Rounding the Z's first and combining
//! afterwards is *not* such a function: X_t + N_t - λN_{t-1} with integer N publishes λX₁ mod 1
//! without any noise, and round(sZ_t) - round(λsZ_{t-1}) exceeds the ideal's divergence. So this
//! type returns the finished integers of a step and nothing they are made of.
//! (`tests/rounding_leaks.rs` shows that the two others leak.)
//!
//! *Exactness.* Every Z(step, coordinate) is one fixed real number (see `lazy_normal.rs`):
//! regenerated in a later step it is the same number, down to bits that have not been read yet. With
//! coefficients a_j/2ᵏ and 2^f·s·Z_j in [q_j, q_j + WIDTH],
//!
//! ```text
//! 2^(f+k)·ξ  lies in  [L, L + WIDTH·Σ|a_j|],    L = Σ a_j·q_j + WIDTH·Σ_{a_j<0} a_j.
//! ```
//!
//! If both ends plus 2^(f+k-1) have the same floor after division by 2^(f+k), that is round(ξ).
//! Otherwise `round_wide` learns late bits of all terms until an exact enclosure rounds one way;
//! that ends unless ξ + ½ is an integer, which has probability zero because A_tt = 1 and Z_t has
//! a density. **No slack.**
//!
//! Noise is not stored. A step costs one regeneration per coefficient of its row.
use std::num::NonZeroUsize;

use crate::{
    error::Error,
    exact_numbers::{Dyadic, Scale},
    fill::{OFF_GRID, add_clamped, fill_grid, or_zero, spread},
    key::Stream,
    lazy_normal::LazyNormal,
    round::{Grid, WIDTH, round_wide},
    stream_layout::{self, BLOCK, Cipher, Late, Region},
};

/// Noise of one mechanism over all its steps, correlated between steps and independent between
/// coordinates.
///
/// It is made of the same Z's that [`RoundedGaussian`](crate::RoundedGaussian) rounds: give each its
/// own stream.
///
/// ```
/// use quietly_noise::{CorrelatedNoise, Dyadic, Key};
///
/// let stream = Key::from_seed(1).stream("noise");
/// let noise = CorrelatedNoise::lambda(1000.0, Dyadic::new(3, 2)?)?; // λ = 3/4
/// let mut sums = [5, -3, 0];
/// noise.add(&stream, 0, &mut sums)?;
/// # Ok::<(), quietly_noise::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct CorrelatedNoise {
    grid: Grid,
    row: Row,
}

/// a_0 = 2ᵏ, a_1, … over the common denominator 2ᵏ.
#[derive(Clone, Debug)]
struct Row {
    numerators: Vec<i128>,
    log2_denominator: u32,
}

impl Row {
    fn new(coefficients: &[Dyadic], scale: &Scale) -> Result<Self, Error> {
        let unit = coefficients.first().is_some_and(|a| a.value() == 1.0);
        let first = coefficients.first().map_or("missing".into(), |a| a.value().to_string());
        Error::ensure(unit, "diagonal coefficient", "one", first)?;
        let log2_denominator = coefficients.iter().map(|a| a.log2_denominator()).max().unwrap_or(0);
        let numerators: Vec<_> = coefficients.iter().map(|a| a.over(log2_denominator)).collect();
        let row = Self { numerators, log2_denominator };
        // 2⁶⁰·2⁶⁴ fits an i128, and what comes out fits an i64.
        let sum = row.sum();
        Error::ensure(sum <= 1 << 60, "coefficients", "of numerators at most 2^60 in sum", sum)?;
        let total = sum as f64 / (1u64 << log2_denominator) as f64 * scale.value;
        Error::ensure(total <= Scale::MAX, "scale times the row's sum", "at most 2^45", total)?;
        Ok(row)
    }

    /// Σ|a_j|.
    fn sum(&self) -> i128 {
        self.numerators.iter().map(|a| a.abs()).sum()
    }
}

/// Coordinates handled at a time.
const RUN: usize = 1024;

impl CorrelatedNoise {
    /// ξ_t = s(Z_t - λZ_{t-1}), and ξ_0 = sZ_0.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] unless 0 ≤ λ < 1, and as [`CorrelatedNoise::toeplitz`].
    pub fn lambda(scale: f64, lambda: Dyadic) -> Result<Self, Error> {
        let good = (0.0..1.0).contains(&lambda.value());
        Error::ensure(good, "lambda", "at least 0 and below 1", lambda.value())?;
        if lambda.value() == 0.0 {
            return Self::toeplitz(scale, &[Dyadic::ONE]);
        }
        Self::toeplitz(scale, &[Dyadic::ONE, -lambda])
    }

    /// ξ_t = s·Σ_{j ≤ t} a_j·Z_{t-j} with the coefficients a_0 = 1, a_1, …, and zero beyond.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] unless a_0 = 1, the scale is at least 1/4, and the scale times Σ|a_j|
    /// at most 2⁴⁵.
    pub fn toeplitz(scale: f64, coefficients: &[Dyadic]) -> Result<Self, Error> {
        let scale = Scale::new(scale)?;
        let row = Row::new(coefficients, &scale)?;
        Ok(Self { grid: Grid::new(scale), row })
    }

    /// The scale s.
    pub fn scale(&self) -> f64 {
        self.grid.scale.value
    }

    /// Fills `out` with round(ξ) of `step`.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if `step` ≥ 2⁶¹, or there are more than 2⁴⁸ coordinates;
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
        self.each_run(stream, step, out, threads, |noise, out| out.copy_from_slice(noise))
    }

    /// Adds round(ξ) of `step` to `sums`, cut to ±2⁶² as in
    /// [`RoundedGaussian::add`](crate::RoundedGaussian::add).
    ///
    /// # Errors
    ///
    /// As [`fill`](Self::fill); `sums` are then zero.
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
        self.each_run(stream, step, sums, threads, add_clamped)
    }

    fn each_run(
        &self,
        stream: &Stream,
        step: u64,
        out: &mut [i64],
        threads: NonZeroUsize,
        put: impl Fn(&[i64], &mut [i64]) + Sync,
    ) -> Result<(), Error> {
        or_zero(out, |out| {
            stream_layout::check(step, 0, out.len())?;
            spread(out, threads, |first, out| {
                let mut noise = [0; RUN];
                for (i, out) in out.chunks_mut(RUN).enumerate() {
                    let noise = &mut noise[..out.len()];
                    self.run(stream, step, first + (i * RUN) as u64, noise)?;
                    put(noise, out);
                }
                Ok(())
            })
        })
    }

    /// round(ξ) of the coordinates from `first` on.
    fn run(&self, stream: &Stream, step: u64, first: u64, out: &mut [i64]) -> Result<(), Error> {
        let row = &self.row;
        let mut low = [Low::default(); RUN];
        let mut z = [0; RUN];
        let mut width = 0;
        for (earlier, &a) in (0..=step).rev().zip(&row.numerators).filter(|(_, a)| **a != 0) {
            let z = &mut z[..out.len()];
            fill_grid(&self.grid, stream, earlier, first, z)?;
            low.iter_mut().zip(&*z).for_each(|(low, &q)| low.add(a, q));
            width += a.abs() * i128::from(WIDTH);
        }
        let bits = self.grid.bits + row.log2_denominator;
        for (j, n) in out.iter_mut().enumerate() {
            *n = match low[j].settled(width, bits) {
                Some(n) => n,
                None => self.straddle(row, stream, step, first + j as u64)?,
            };
        }
        Ok(())
    }

    /// round(ξ) of one coordinate, with as many late bits as it takes.
    #[cold]
    fn straddle(
        &self,
        row: &Row,
        stream: &Stream,
        step: u64,
        coordinate: u64,
    ) -> Result<i64, Error> {
        let mut terms = Vec::new();
        for (earlier, &a) in (0..=step).rev().zip(&row.numerators).filter(|(_, a)| **a != 0) {
            terms.push((a, regenerate(stream, earlier, coordinate)?));
        }
        let mut terms: Vec<_> = terms.iter_mut().map(|(a, z)| (*a, z)).collect();
        round_wide(&self.grid.scale, &mut terms, row.log2_denominator)
    }
}

/// L of the module's head, the terms so far: below 2¹²⁵ in size, or near [`Low::NOWHERE`] once a
/// term did not fit the grid.
#[derive(Clone, Copy, Default)]
struct Low(i128);

impl Low {
    const NOWHERE: i128 = -(1 << 126);

    /// Adds the term a·[q, q + WIDTH].
    #[inline(always)]
    fn add(&mut self, a: i128, q: i64) {
        let sum = self.0 + a * i128::from(q) + a.min(0) * i128::from(WIDTH);
        self.0 = if q == OFF_GRID { Self::NOWHERE } else { sum };
    }

    /// The integer that everything in [L, L + width]/2^bits rounds to, if there is one.
    #[inline(always)]
    fn settled(self, width: i128, bits: u32) -> Option<i64> {
        let low = self.0 + (1 << (bits - 1));
        let one = low >> bits == (low + width) >> bits;
        (one && self.0 > Self::NOWHERE / 2).then_some((low >> bits) as i64)
    }
}

/// The real number Z(step, coordinate).
pub(crate) fn regenerate(
    stream: &Stream,
    step: u64,
    coordinate: u64,
) -> Result<LazyNormal<Late<'_>>, Error> {
    let mut words = [0; BLOCK];
    let block = coordinate / BLOCK as u64;
    Cipher::new(stream, step, Region::NormalFirst).block(block, &mut words);
    let late = Late::new(stream, step, Region::NormalLate, coordinate);
    LazyNormal::draw(words[coordinate as usize % BLOCK], late)
}

#[cfg(test)]
mod tests {
    use num_bigint::{BigInt, BigUint};

    use super::*;
    use crate::{key::Key, rounded_gaussian::RoundedGaussian};

    fn dyadic(a: i64, k: u32) -> Dyadic {
        Dyadic::new(a, k).unwrap()
    }

    fn stream() -> Stream {
        Key::from_seed(8).stream("correlated")
    }

    fn steps(noise: &CorrelatedNoise, count: u64, width: usize) -> Vec<Vec<i64>> {
        (0..count)
            .map(|t| {
                let mut out = vec![0; width];
                noise.fill(&stream(), t, &mut out).unwrap();
                out
            })
            .collect()
    }

    /// ξ in exact rationals: Z to 53 + 64·4 bits, rounded by its lower end.
    fn oracle(coefficients: &[(i64, u32)], s: u64, step: u64, coordinate: u64) -> i64 {
        let stream = stream();
        let mut sum = BigInt::ZERO;
        for (u, (a, k)) in (0..=step).rev().zip(coefficients) {
            let mut z = regenerate(&stream, u, coordinate).unwrap();
            for _ in 0..4 {
                z.refine().unwrap();
            }
            let (low, _, denominator) = z.enclose();
            let scaled: BigUint = (low << 250u32) * s / denominator;
            let a = if z.negative { -a } else { *a };
            sum += (BigInt::from(scaled) * a) << (32 - k);
        }
        let half = BigInt::from(1) << 281u32;
        i64::try_from((sum + half) >> 282u32).unwrap()
    }

    /// Every coordinate is round(ξ) of the same real numbers Z, where a few in a hundred straddle
    /// and where hardly any do: so a regenerated Z has the late bits it had before.
    #[test]
    fn every_step_is_the_rounded_combination() {
        let lambda = [(1, 0), (-3, 2)];
        let long = [(1, 0), (-1, 1), (0, 0), (5, 4), (-7, 3)];
        for s in [3, 1 << 30, 1 << 43] {
            for band in [&lambda[..], &long] {
                let coefficients: Vec<_> = band.iter().map(|(a, k)| dyadic(*a, *k)).collect();
                let noise = CorrelatedNoise::toeplitz(s as f64, &coefficients).unwrap();
                for (t, out) in (0..).zip(steps(&noise, 6, 700)) {
                    for (c, n) in (0..).zip(out) {
                        assert_eq!(n, oracle(band, s, t, c), "{s} {t} {c}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_forms_agree() {
        let a = CorrelatedNoise::lambda(1e9, dyadic(3, 2)).unwrap();
        let b = CorrelatedNoise::toeplitz(1e9, &[Dyadic::ONE, dyadic(-6, 3)]).unwrap();
        assert_eq!(steps(&a, 5, 3000), steps(&b, 5, 3000));

        // Without correlation it is the independent noise, bit for bit.
        let zero = steps(&CorrelatedNoise::lambda(1e9, dyadic(0, 0)).unwrap(), 2, 3000);
        let mut alone = vec![0; 3000];
        RoundedGaussian::new(1e9).unwrap().fill(&stream(), 1, &mut alone).unwrap();
        assert_eq!(zero[1], alone);

        for threads in [2, 7] {
            let mut out = vec![0; 3000];
            let threads = NonZeroUsize::new(threads).unwrap();
            a.fill_threads(&stream(), 4, &mut out, threads).unwrap();
            assert_eq!(out, steps(&a, 5, 3000)[4]);
        }
        let mut sums = vec![5; 3000];
        a.add(&stream(), 4, &mut sums).unwrap();
        assert!(sums.iter().zip(&steps(&a, 5, 3000)[4]).all(|(x, n)| *x == 5 + n));
    }

    /// Over n coordinates a sample moment of order two has relative standard error below
    /// √(2/n)·1.3; 5 of those: a false-positive rate of 6e-7 each. The control is λ off by 1/16.
    #[test]
    fn variance_and_covariance_are_those_of_the_ideal() {
        let (s, lambda, n) = (1000.0, 0.75, 400_000);
        let xi = steps(&CorrelatedNoise::lambda(s, dyadic(3, 2)).unwrap(), 4, n);
        let moment = |a: &[i64], b: &[i64]| {
            a.iter().zip(b).map(|(a, b)| (a * b) as f64).sum::<f64>() / (n as f64 * s * s)
        };
        let tolerance = 5.0 * 1.3 * (2.0 / n as f64).sqrt();
        let near = |got: f64, want: f64| (got - want).abs() < tolerance;
        for (l, right) in [(lambda, true), (lambda + 0.0625, false)] {
            assert_eq!(near(moment(&xi[2], &xi[2]), 1.0 + l * l), right);
            assert_eq!(near(moment(&xi[2], &xi[3]), -l), right);
        }
        assert!(near(moment(&xi[0], &xi[0]), 1.0));
        assert!(near(moment(&xi[1], &xi[3]), 0.0));
    }

    /// The enclosure of ξ has width (1 + λ)·WIDTH on a grid of 2^f, so that part of all
    /// coordinates straddles: 5 standard deviations, false-positive rate 6e-7. The control leaves
    /// λ out.
    #[test]
    fn straddles_are_as_frequent_as_the_widths_say() {
        let grid = Grid::new(Scale::new(2f64.powi(43)).unwrap());
        let n = 200_000;
        let mut z = [vec![0; n], vec![0; n]];
        for (t, z) in (3..).zip(&mut z) {
            fill_grid(&grid, &stream(), t, 0, z).unwrap();
        }
        let (bits, width) = (grid.bits + 2, i128::from(WIDTH) * 7);
        let straddles = (0..n)
            .filter(|&c| {
                let mut low = Low::default();
                low.add(4, z[1][c]);
                low.add(-3, z[0][c]);
                low.settled(width, bits).is_none()
            })
            .count() as f64;
        let far =
            |p: f64| (straddles - n as f64 * p).abs() > 5.0 * (n as f64 * p * (1.0 - p)).sqrt();
        let p = WIDTH as f64 / 2f64.powi(grid.bits as i32);
        assert!(!far(1.75 * p), "{straddles}");
        assert!(far(p), "{straddles}");
    }

    #[test]
    fn an_interval_is_settled_if_it_rounds_one_way() {
        let settled = |low, width| Low(low).settled(width, 4);
        // In units of 1/16, from -½ up to but not including ½.
        assert_eq!(settled(-8, 15), Some(0));
        assert_eq!(settled(-9, 15), None);
        assert_eq!(settled(-8, 16), None);
        assert_eq!(settled(8, 15), Some(1));
        assert_eq!(settled(-24, 15), Some(-1));

        // A draw off the grid is never settled by it, whatever is added.
        let mut low = Low::default();
        low.add(1, OFF_GRID);
        low.add(-(1 << 60), -i64::MAX);
        assert_eq!(low.settled(0, 4), None);
        low.add(1 << 60, OFF_GRID);
        assert_eq!(low.settled(0, 4), None);
    }

    #[test]
    fn bad_parameters_are_errors() {
        let one = Dyadic::ONE;
        for lambda in [dyadic(1, 0), dyadic(5, 2), dyadic(-1, 2)] {
            let text = CorrelatedNoise::lambda(1.0, lambda).unwrap_err().to_string();
            assert!(text.starts_with("lambda must be at least 0 and below 1, but is "), "{text}");
        }
        assert!(CorrelatedNoise::toeplitz(1.0, &[]).is_err());
        assert!(CorrelatedNoise::toeplitz(1.0, &[dyadic(1, 1)]).is_err());
        assert!(CorrelatedNoise::toeplitz(f64::NAN, &[one]).is_err());
        assert!(CorrelatedNoise::toeplitz(2f64.powi(44), &[one, one]).is_ok());
        assert!(CorrelatedNoise::toeplitz(2f64.powi(44), &[one, one, dyadic(1, 32)]).is_err());
        let noise = CorrelatedNoise::lambda(1.0, dyadic(1, 1)).unwrap();
        assert!(noise.fill(&stream(), 1 << 61, &mut [0]).is_err());
        let mut sums = [3];
        assert!(noise.add(&stream(), u64::MAX, &mut sums).is_err());
        assert_eq!(sums, [0]);
    }
}
