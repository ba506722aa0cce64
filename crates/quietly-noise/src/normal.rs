//! Independent noise: the continuous normal law, rounded to the integers.
//!
//! # Theorem
//!
//! If the words of a stream are independent and uniform, the noise of different (step,
//! coordinate) is independent and each has exactly the law of round(s·Z), Z standard normal,
//! round(t) = ⌊t + ½⌋.
//!
//! *Proof.* Different coordinates read different words (`layout.rs`), which gives independence.
//! For one coordinate: `Real::draw` is a function of its words whose result is a real number with
//! the standard normal law (`table.rs`: a uniform point of an exact cover, kept if and only if it
//! lies below the density; `real.rs`: every decision is that of the real numbers; `uniform.rs`:
//! bits drawn late are as good as bits drawn beforehand). `Grid::round_real` is its exact
//! rounding (`round.rs`). The loop in `run` does the same for words that are kept at once and do
//! not straddle: the layer, sign and `coarse` are computed by the same functions, and every other
//! word is handed to `Real::draw` from the start. ∎
//!
//! *The one reservation.* A coordinate owns 2¹⁹ late words. Whatever was read so far, the next 16
//! words end the draw with probability above ¼: a descending run ends within 3 more words with
//! probability at least 5/6; a new trial of the exponential succeeds with its first two words
//! with probability ½; a comparison stays open after its next word with probability below 2⁻³⁰
//! (`accept.rs`); and if the point is refused, the next word is kept at once with probability
//! above 0.99. So the words run out with probability below (¾)^(2¹⁵) < 2⁻¹³⁰⁰⁰, and then there is
//! an error and no noise.
//!
//! *Size.* A failed trial of the exponential reads three words or more, so r < |Z| in the tail is at
//! most r + 2¹⁹/(3r) + 1/r < 2¹⁷, and |N| < 2⁶² for every s ≤ 2⁴⁵.
use std::num::NonZeroUsize;

use crate::{
    error::Error,
    fill::{RUN, add_cut, first_words, or_zero, spread},
    key::Stream,
    layout::{self, Late, Region},
    real::{Real, multiply_high, parse},
    round::Grid,
    scale::Scale,
    table::TABLE,
};

/// The law of round(s·Z): Z standard normal, round(t) = ⌊t + ½⌋, s the scale in lattice units.
///
/// An integer sum X plus this noise is round(X + s·Z), a function of the ideal Gaussian
/// mechanism: whatever is proven for that holds here, with nothing to add for rounding. The law
/// is exact given uniform bits; the proof is at the head of this type's source file.
///
/// Noise is a function of (stream, step, coordinate). Never use the same three twice for
/// different data. How long a draw takes depends on the noise and not on the data.
#[derive(Clone, Copy, Debug)]
pub struct RoundedNormal {
    grid: Grid,
}

impl RoundedNormal {
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
            layout::check(step, first, out.len())?;
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
            layout::check(step, 0, out.len())?;
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
            layout::check(step, 0, sums.len())?;
            spread(sums, threads, |first, sums| self.runs(stream, step, first, sums, add_cut))
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
            out[j] = grid.round_real(Real::draw(words[j], late)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        correlated::regenerate,
        key::Key,
        round::round_wide,
        stats::{chi_square, normal_mass, rounded_mass},
    };

    fn draws(s: f64, count: usize, step: u64) -> Vec<i64> {
        let mut out = vec![0; count];
        let stream = Key::from_seed(2).stream("normal");
        RoundedNormal::new(s).unwrap().fill(&stream, step, &mut out).unwrap();
        out
    }

    /// Counts of the cells `..=c[0], c[0]+1..=c[1], …, c[last]+1..` and their exact probabilities.
    fn cells(draws: &[i64], cuts: &[i64], s: f64) -> (Vec<f64>, Vec<f64>) {
        let mut counts = vec![0.0; cuts.len() + 1];
        for n in draws {
            counts[cuts.partition_point(|c| c < n)] += 1.0;
        }
        let edge = |i: usize| cuts.get(i).map_or(f64::INFINITY, |c| *c as f64 + 0.5);
        let law = (0..=cuts.len())
            .map(|i| normal_mass(if i == 0 { f64::NEG_INFINITY } else { edge(i - 1) }, edge(i), s))
            .collect();
        (counts, law)
    }

    /// Fixed seed. Fresh seeds would fail once in a million per line for a correct sampler; the
    /// control is a scale off by 1 %.
    #[test]
    fn draws_follow_the_exact_law() {
        for (step, s, cuts) in [
            (0, 0.25, vec![-1, 0]),
            (1, 1.0, (-4..4).collect()),
            (2, 3.0, (-12..12).collect()),
            (3, 1000.0, (-40..40).map(|c| 100 * c + 3).collect()),
            (4, 2f64.powi(30), (-64..64).map(|c| c << 26).collect()),
            (5, 2f64.powi(45) - 1.0, (-64..64).map(|c| c << 41).collect()),
        ] {
            let draws = draws(s, 3_000_000, step);
            let of = |s: f64| {
                let (counts, law) = cells(&draws, &cuts, s);
                chi_square(&counts, &law)
            };
            assert!(of(s) < 1.0, "{s} {}", of(s));
            assert!(of(s * 1.01) > 1.0 && of(s / 1.01) > 1.0, "{s} {}", of(s * 1.01));
        }
    }

    /// As above for residues. Where the scale hardly changes them, the control is noise whose
    /// last bit was dropped.
    #[test]
    fn residues_follow_the_exact_law() {
        for (step, s, m) in
            [(10, 0.25, 2), (11, 1.0, 3), (12, 3.0, 7), (13, 1000.0, 64), (14, 2f64.powi(30), 256)]
        {
            let draws = draws(s, 3_000_000, step);
            let count = |map: fn(i64) -> i64| {
                let mut counts = vec![0.0; m as usize];
                draws.iter().for_each(|n| counts[map(*n).rem_euclid(m) as usize] += 1.0);
                counts
            };
            let law = |s: f64| -> Vec<f64> {
                if s > 500.0 {
                    return vec![1.0 / m as f64; m as usize]; // to 1e-1000
                }
                let reach = (10.0 * s) as i64 + 20;
                let residue = |r| (-reach..=reach).filter(move |n: &i64| n.rem_euclid(m) == r);
                (0..m).map(|r| residue(r).map(|n| rounded_mass(n, s)).sum()).collect()
            };
            let right = chi_square(&count(|n| n), &law(s));
            assert!(right < 1.0, "{s} {right}");
            let dropped = chi_square(&count(|n| n & !1), &law(s));
            assert!(dropped > 1.0, "{s} {dropped}");
            if s < 2.0 {
                assert!(chi_square(&count(|n| n), &law(s * 1.01)) > 1.0);
            }
        }
    }

    /// Beyond r = 4.04 draws come from the tail. The control is the envelope, from which they
    /// would come if nothing were refused there.
    #[test]
    fn the_tail_follows_the_exact_law() {
        let (s, r) = (1000.0, 4040);
        let edges = [4040, 4080, 4130, 4200, 4300, 4450, 4700, i64::MAX];
        let mut counts = vec![0.0; 7];
        let mut all = 0.0;
        for step in 100..220 {
            for n in draws(s, 1_000_000, step) {
                if n.abs() > r {
                    all += 1.0;
                    counts[edges[1..].partition_point(|e| *e < n.abs())] += 1.0;
                }
            }
        }
        let tail = |x: i64| 2.0 * normal_mass(x as f64 + 0.5, f64::INFINITY, s);
        let share = |survive: &dyn Fn(i64) -> f64| -> Vec<f64> {
            edges.windows(2).map(|e| (survive(e[0]) - survive(e[1])) / survive(r)).collect()
        };
        let right = chi_square(&counts, &share(&tail));
        assert!(right < 1.0, "{right}");
        let wrong = chi_square(&counts, &share(&|x| (-4.03964 * (x as f64 / s)).exp()));
        assert!(wrong > 1.0, "{wrong}");
        // How many there are: 5 standard deviations, false-positive rate 6e-7.
        let expected = 1.2e8 * tail(r);
        assert!((all - expected).abs() < 5.0 * expected.sqrt(), "{all} {expected}");
    }

    /// The fast loop gives what exact arithmetic gives for the same real numbers, at scales where
    /// straddles are rare, common, and in between.
    #[test]
    fn the_fast_loop_agrees_with_exact_arithmetic() {
        let stream = Key::from_seed(3).stream("exact");
        for s in [0.25, 0.7, 3.0, 1e6 + 0.1, 2f64.powi(44) + 0.5, 2f64.powi(45)] {
            let normal = RoundedNormal::new(s).unwrap();
            let mut out = vec![0; 4000];
            normal.fill(&stream, 1, &mut out).unwrap();
            for (c, n) in out.iter().enumerate() {
                let mut z = regenerate(&stream, 1, c as u64).unwrap();
                assert_eq!(*n, round_wide(&normal.grid.scale, &mut [(1, &mut z)], 0).unwrap());
            }
        }
    }

    /// χ² of pairs in 5 × 5 cells at s = 1: neighbouring coordinates, coordinates a block apart,
    /// steps, streams. The control copies every fiftieth draw to its neighbour.
    #[test]
    fn pairs_are_independent() {
        const N: usize = 1_000_000;
        let here = draws(1.0, N + 8, 50);
        let mut elsewhere = vec![0; N];
        let other = Key::from_seed(2).stream("other");
        RoundedNormal::new(1.0).unwrap().fill(&other, 50, &mut elsewhere).unwrap();
        let copied: Vec<i64> =
            (0..N).map(|i| if i % 50 == 0 { here[i] } else { here[i + 1] }).collect();
        let of = |second: &[i64]| {
            let cell = |n: i64| (n.clamp(-2, 2) + 2) as usize;
            let mut counts = vec![0.0; 25];
            here.iter().zip(&second[..N]).for_each(|(a, b)| counts[5 * cell(*a) + cell(*b)] += 1.0);
            let outer = normal_mass(1.5, f64::INFINITY, 1.0);
            let p =
                [outer, rounded_mass(1, 1.0), rounded_mass(0, 1.0), rounded_mass(1, 1.0), outer];
            let law: Vec<f64> = (0..25).map(|i| p[i / 5] * p[i % 5]).collect();
            chi_square(&counts, &law)
        };
        for second in [&here[1..], &here[8..], &draws(1.0, N, 51), &elsewhere] {
            assert!(of(second) < 1.0, "{}", of(second));
        }
        assert!(of(&copied) > 1.0, "{}", of(&copied));
    }

    #[test]
    fn same_bits_for_any_threads_and_order() {
        let stream = Key::from_seed(5).stream("threads");
        let normal = RoundedNormal::new(2f64.powi(40)).unwrap();
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
        let normal = RoundedNormal::new(2f64.powi(45)).unwrap();
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
            assert!(RoundedNormal::new(s).is_err());
        }
    }

    /// Golden numbers of this crate, version 0.1: a seed must give the same noise for ever and on
    /// every machine.
    #[test]
    fn a_seed_gives_the_same_noise_for_ever() {
        let stream = Key::from_seed(0).stream("golden");
        let mut out = [0; 4];
        RoundedNormal::new(1e6).unwrap().fill(&stream, 0, &mut out).unwrap();
        assert_eq!(out, GOLDEN);
    }

    const GOLDEN: [i64; 4] = [-390_343, 310_277, 466_441, -534_839];
}
