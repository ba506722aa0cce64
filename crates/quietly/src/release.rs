//! The one door: private values go in, noise is added, public values come out.
//!
//! This is the only file that calls `Private::declassify` (a test looks). Every release is looked up
//! among the plan's charges first, takes its noise from there, and is counted; a release that was
//! not planned is a bug and panics before any value is touched.
use std::num::NonZero;

use quietly_data::Private;
use quietly_noise::{ExponentialMechanism, Key, Ratio, RoundedNormal, Source, Stream};

use crate::{
    charge::{Mechanism, Stage},
    error::Error,
};

/// Levels of quantiles are multiples of 2^-LEVEL_BITS, so that scores are integers.
pub(crate) const LEVEL_BITS: u32 = 10;

/// A sum of integer vectors to each of which one row contributes a bounded one.
pub(crate) struct LatticeSum {
    /// The exact sum.
    pub(crate) sum: Private<Vec<i64>>,
    /// The most that one row's vector can measure, in the Euclidean norm.
    pub(crate) bound: f64,
    /// What one unit of the integers is worth.
    pub(crate) unit: f64,
}

/// What a mechanism with a proof of its own is to keep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Promise {
    pub(crate) epsilon: f64,
    pub(crate) delta: f64,
}

/// The largest noise that can be drawn, in lattice units, with room to spare.
const MOST_NOISE: f64 = (1_u64 << 44) as f64;

/// Puts a sum on a coarser lattice if `noise` would be too large for its own, as it is for ε below about 0.005; returns
/// the bound and the unit there.
///
/// Dividing by 2^k and rounding down moves the difference of two sums by less than one in every entry. `corner` is what a
/// vector of ones measures, so that a row still adds at most bound/2^k + corner.
fn coarsened(sum: &mut [i64], bound: f64, unit: f64, noise: f64, corner: f64) -> (f64, f64) {
    let coarse = |bits: i32| bound / 2.0_f64.powi(bits) + corner;
    if noise * bound <= MOST_NOISE {
        return (bound, unit);
    }
    // If that is not enough, the noise is refused when it is drawn.
    let bits = (1..40).find(|&bits| noise * coarse(bits) <= MOST_NOISE).unwrap_or(40);
    sum.iter_mut().for_each(|s| *s >>= bits);
    (coarse(bits), unit * 2.0_f64.powi(bits))
}

/// Releases what a plan allows, and no more.
pub(crate) struct Door {
    key: Key,
    open: Vec<Open>,
    threads: NonZero<usize>,
    /// For tests of sensitivity: what was to be released, instead of which nothing but noise is.
    #[cfg(test)]
    pub(crate) witness: Option<Vec<Witnessed>>,
}

/// A question as a test sees it.
#[cfg(test)]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Witnessed {
    pub(crate) purpose: String,
    pub(crate) values: Vec<i64>,
    /// What one row may add to a sum; none for counts.
    pub(crate) bound: Option<f64>,
}

struct Open {
    purpose: String,
    mechanism: Mechanism,
    stream: Stream,
    left: u64,
    used: u64,
}

impl Door {
    /// A door for the questions of these stages.
    ///
    /// # Panics
    ///
    /// If two questions have one name: they would share their noise.
    pub(crate) fn new(key: Key, stages: &[Stage], threads: usize) -> Self {
        let mut open: Vec<Open> = Vec::new();
        for stage in stages {
            for charge in &stage.charges {
                let purpose = charge.purpose.clone();
                assert!(open.iter().all(|o| o.purpose != purpose), "{purpose} is planned twice");
                let (stream, left) = (key.stream(&purpose), charge.times * stage.steps);
                open.push(Open { purpose, mechanism: charge.mechanism, stream, left, used: 0 });
            }
        }
        Door {
            key,
            open,
            threads: NonZero::new(threads).unwrap_or(NonZero::<usize>::MIN),
            #[cfg(test)]
            witness: None,
        }
    }

    /// Keeps what a test wants to see, and leaves zeros: what is released then does not depend on the data, so that two
    /// tables can be compared question by question under one history.
    #[cfg(test)]
    fn see(&mut self, purpose: &str, values: &mut [i64], bound: Option<f64>) {
        if let Some(witness) = &mut self.witness {
            witness.push(Witnessed { purpose: purpose.into(), values: values.to_vec(), bound });
            values.fill(0);
        }
    }

    /// How many threads may work.
    pub(crate) fn threads(&self) -> usize {
        self.threads.get()
    }

    /// Where the randomness comes from.
    pub(crate) fn source(&self) -> Source {
        self.key.source()
    }

    /// The planned noise of a sum, over what one row can add.
    pub(crate) fn noise(&self, purpose: &str) -> f64 {
        let open = self.open.iter().find(|o| o.purpose == purpose);
        match open.unwrap_or_else(|| panic!("{purpose} is not in the plan")).mechanism {
            Mechanism::Gaussian { noise } => noise,
            _ => panic!("{purpose} is not planned as a sum"),
        }
    }

    /// Something computed without any noise: for plans that promise nothing, and for no other.
    ///
    /// # Panics
    ///
    /// If the plan has questions: then the answer is to go through them.
    pub(crate) fn plain<T, U>(&self, value: Private<T>, compute: impl FnOnce(T) -> U) -> U {
        assert!(self.open.is_empty(), "only a plan that promises nothing is answered plainly");
        compute(value.declassify())
    }

    /// A stream for sampling, apart from all noise.
    pub(crate) fn sampling(&self) -> Stream {
        self.key.stream("which rows belong to which step")
    }

    /// A noisy sum, and the standard deviation of its noise, both in real units.
    pub(crate) fn sum(
        &mut self,
        purpose: &str,
        what: LatticeSum,
    ) -> Result<(Vec<f64>, f64), Error> {
        let threads = self.threads;
        let mut sum = what.sum.declassify();
        #[cfg(test)]
        self.see(purpose, &mut sum, Some(what.bound));
        let (noise, stream, step) = self.gaussian(purpose);
        let corner = (sum.len() as f64).sqrt();
        let (bound, unit) = coarsened(&mut sum, what.bound, what.unit, noise, corner);
        let scale = above(noise * bound);
        RoundedNormal::new(scale)?.add_threads(stream, step, &mut sum, threads)?;
        Ok((sum.iter().map(|&s| s as f64 * unit).collect(), scale * unit))
    }

    /// A noisy sum of symmetric matrices, given and returned as upper triangles, row by row.
    ///
    /// `bound` is the most that one row's matrix measures in the Frobenius norm. The noise is
    /// N(0, s²) on the diagonal and N(0, s²/2) beside it: with off-diagonal entries counted
    /// √2-fold the vector's norm is the Frobenius norm, the noise is N(0, s²) on every entry, and
    /// dividing by √2 again is post-processing.
    pub(crate) fn matrix(
        &mut self,
        purpose: &str,
        size: usize,
        what: LatticeSum,
    ) -> Result<(Vec<f64>, f64), Error> {
        let threads = self.threads;
        let mut sum = what.sum.declassify();
        #[cfg(test)]
        self.see(purpose, &mut sum, Some(what.bound));
        let (noise, stream, step) = self.gaussian(purpose);
        assert_eq!(sum.len(), size * (size + 1) / 2, "an upper triangle");
        // In the Frobenius norm a matrix of ones measures its size.
        let (bound, unit) = coarsened(&mut sum, what.bound, what.unit, noise, size as f64);
        let scale = above(noise * bound);
        let place = |row: usize| row * size - row * (row + 1) / 2 + row;
        let mut diagonal: Vec<i64> = (0..size).map(|row| sum[place(row)]).collect();
        // Two steps of one stream: no coordinate shares its noise with another.
        RoundedNormal::new(scale)?.add_threads(stream, 2 * step, &mut diagonal, threads)?;
        let beside = above(scale * std::f64::consts::FRAC_1_SQRT_2);
        RoundedNormal::new(beside)?.add_threads(stream, 2 * step + 1, &mut sum, threads)?;
        for (row, value) in diagonal.into_iter().enumerate() {
            sum[place(row)] = value;
        }
        Ok((sum.iter().map(|&s| s as f64 * unit).collect(), scale * unit))
    }

    /// The index of a threshold below which about `level` of all values lie.
    ///
    /// `counts[k]` says how many values lie above threshold k-1 and not above threshold k; the last
    /// one, how many lie above all thresholds. The bin that holds the quantile scores highest: see
    /// [`scores`].
    pub(crate) fn quantile(
        &mut self,
        purpose: &str,
        level: f64,
        counts: Private<Vec<u64>>,
    ) -> Result<usize, Error> {
        #[cfg(test)]
        let counts = {
            let mut values: Vec<i64> = counts.declassify().iter().map(|&c| c as i64).collect();
            self.see(purpose, &mut values, None);
            Private::new(values.iter().map(|&c| c as u64).collect::<Vec<u64>>())
        };
        let (mechanism, stream, step) = self.enter(purpose);
        let Mechanism::Selection { add_remove, replace_one } = mechanism else {
            panic!("{purpose} is not planned as a choice");
        };
        let units = 1_u64 << LEVEL_BITS;
        let level = (level * units as f64).round() as u64;
        assert!(0 < level && level < units, "a level inside (0, 1)");
        let apart = level.max(units - level) as f64 / units as f64;
        // ε/2Δ under either relation, whichever is less, rounded down to a ratio.
        let rate = (0.5 * add_remove / apart).min(0.5 * replace_one);
        let denominator = 1_u64 << 40;
        let rate = Ratio::new((rate * denominator as f64).floor() as u64, denominator)?;
        let scores = counts.map(|counts| scores(&counts, level));
        let mut bits = stream.bits(step)?;
        // Only the index leaves; the scores do not.
        let choose = |scores: Vec<i64>| {
            ExponentialMechanism::new(rate, LEVEL_BITS)?.choose(&scores, &mut bits)
        };
        Ok(scores.map(choose).declassify()?)
    }

    /// The answer of a mechanism that comes with a proof of its own: for neighbouring values it must be
    /// (ε, δ)-indistinguishable, with the planned ε and δ, which it is given together with randomness that nothing else uses.
    ///
    /// Nothing here adds noise: the proof stands where the mechanism does, and what it returns is public.
    pub(crate) fn promised<T, U>(
        &mut self,
        purpose: &str,
        value: Private<T>,
        mechanism: impl FnOnce(T, Promise, &Stream, u64) -> Result<U, Error>,
    ) -> Result<U, Error> {
        let (planned, stream, step) = self.enter(purpose);
        let Mechanism::Promise { epsilon, delta } = planned else {
            panic!("{purpose} is not planned as a promise");
        };
        mechanism(value.declassify(), Promise { epsilon, delta }, stream, step)
    }

    fn gaussian(&mut self, purpose: &str) -> (f64, &Stream, u64) {
        let (mechanism, stream, step) = self.enter(purpose);
        let Mechanism::Gaussian { noise } = mechanism else {
            panic!("{purpose} is not planned as a sum");
        };
        (noise, stream, step)
    }

    fn enter(&mut self, purpose: &str) -> (Mechanism, &Stream, u64) {
        let open = self.open.iter_mut().find(|o| o.purpose == purpose);
        let open = open.unwrap_or_else(|| panic!("{purpose} is not in the plan"));
        assert!(open.left > 0, "{purpose} is used up");
        (open.left, open.used) = (open.left - 1, open.used + 1);
        (open.mechanism, &open.stream, open.used - 1)
    }
}

/// A number not below `x`, and hardly above it.
fn above(x: f64) -> f64 {
    x * (1.0 + 4.0 * f64::EPSILON)
}

/// For every threshold but the end: how far level·n is from [F_(k-1), F_k], the ranks in its bin, times -2^b, exactly
/// (saturated far beyond any table).
///
/// A score is minus the largest of 0, F_(k-1) - level·n and level·n - F_k. One row moves each of the latter two by at most
/// max(level, 1 - level) when it joins or leaves, and by at most 1 when it is replaced, and so their maximum.
fn scores(counts: &[u64], level: u64) -> Vec<i64> {
    let n: u128 = counts.iter().map(|&c| u128::from(c)).sum();
    let target = n * u128::from(level);
    let mut below = 0_u128;
    let thresholds = &counts[..counts.len() - 1];
    let score = |&count: &u64| {
        let before = below << LEVEL_BITS;
        below += u128::from(count);
        let after = below << LEVEL_BITS;
        let apart = before.saturating_sub(target).max(target.saturating_sub(after));
        -i64::try_from(apart).unwrap_or(i64::MAX)
    };
    thresholds.iter().map(score).collect()
}

#[cfg(test)]
mod tests {
    use quietly_accounting::Neighbours;

    use super::*;
    use crate::charge::{self, Charge};

    fn door(mechanism: Mechanism, times: u64, seed: u64) -> Door {
        let charges = vec![Charge { purpose: "test".into(), mechanism, times }];
        let stage = Stage::new("test", 1, charges);
        Door::new(Key::from_seed(seed), &[stage], 1)
    }

    /// Spec 14.5: D for both relations, by brute force over small tables.
    #[test]
    fn one_row_moves_every_score_by_at_most_what_is_charged() {
        let bins = 4;
        let units = 1_i64 << LEVEL_BITS;
        let moved = |a: &[i64], b: &[i64]| {
            a.iter().zip(b).map(|(a, b)| (a - b).abs()).max().expect("there are thresholds")
        };
        for level in [1_u64, 512, 922, 1003, 1023] {
            let (mut joins, mut replaced) = (0, 0);
            let mut counts = vec![0_u64; bins];
            loop {
                let here = scores(&counts, level);
                for bin in 0..bins {
                    let mut more = counts.clone();
                    more[bin] += 1;
                    joins = joins.max(moved(&here, &scores(&more, level)));
                    for other in 0..bins {
                        let mut instead = counts.clone();
                        instead[other] += 1;
                        let apart = moved(&scores(&more, level), &scores(&instead, level));
                        replaced = replaced.max(apart);
                    }
                }
                // The next table: up to three values in each bin.
                let Some(place) = (0..bins).find(|&b| counts[b] < 3) else { break };
                counts[..place].fill(0);
                counts[place] += 1;
            }
            let level = level as i64;
            assert_eq!(joins, level.max(units - level), "{level}");
            assert_eq!(replaced, units, "{level}");
        }
    }

    /// Spec 14.5: odds between neighbouring tables stay within e^ε. 40,000 draws from a fixed seed; the
    /// slack is five standard errors of a log odds ratio, so that a fresh seed would fail once in a
    /// million times, and the control with four times the rate must fail.
    #[test]
    fn odds_between_neighbours_stay_within_epsilon() {
        let worst = |epsilon: f64, allowed: f64| {
            let mechanism =
                Mechanism::Selection { add_remove: epsilon, replace_one: 2.0 * epsilon };
            let draws = 40_000;
            let tally = |counts: &[u64], seed: u64| {
                let mut door = door(mechanism, draws, seed);
                let mut hits = vec![0.0_f64; counts.len() - 1];
                for _ in 0..draws {
                    let counts = Private::new(counts.to_vec());
                    hits[door.quantile("test", 0.5, counts).unwrap()] += 1.0;
                }
                hits
            };
            let (a, b) = (tally(&[3, 1, 1, 4], 1), tally(&[3, 1, 1, 5], 2));
            let ratio = |k: usize| (a[k] / b[k]).ln().abs();
            let slack = |k: usize| 5.0 * (1.0 / a[k] + 1.0 / b[k]).sqrt();
            (0..3).map(|k| ratio(k) - slack(k) - allowed).fold(f64::MIN, f64::max)
        };
        assert!(worst(0.5, 0.5) <= 0.0);
        assert!(worst(4.0, 0.5) > 0.0);
    }

    #[test]
    fn a_quantile_is_near_the_level_it_was_asked_for() {
        let mechanism = charge::quantile(0.5, 0.3, Neighbours::AddRemove);
        let mut door = door(mechanism, 1, 3);
        let counts: Vec<u64> = (0..=20).map(|_| 1000).collect();
        let found = door.quantile("test", 0.5, Private::new(counts)).unwrap();
        assert!((8..=12).contains(&found), "{found}");
    }

    /// Spec 14.2, through the door: the release is the exact sum plus noise that does not depend on it.
    #[test]
    fn noise_does_not_depend_on_the_sum() {
        let release = |sum: Vec<i64>| {
            let mut door = door(Mechanism::Gaussian { noise: 3.0 }, 1, 9);
            let what = LatticeSum { sum: Private::new(sum), bound: 1000.0, unit: 1.0 };
            door.sum("test", what).unwrap().0
        };
        let (zero, some) = (release(vec![0, 0, 0]), release(vec![5, -7, 1 << 40]));
        let apart: Vec<f64> = some.iter().zip(&zero).map(|(a, b)| a - b).collect();
        assert_eq!(apart, [5.0, -7.0, (1_u64 << 40) as f64]);
        assert!(zero.iter().all(|z| z.abs() > 1.0 && z.abs() < 20_000.0));
    }

    #[test]
    fn the_diagonal_and_the_rest_have_their_own_noise() {
        let size = 60;
        let mut door = door(Mechanism::Gaussian { noise: 1.0 }, 1, 4);
        let sum = Private::new(vec![0; size * (size + 1) / 2]);
        let what = LatticeSum { sum, bound: 1e6, unit: 1e-6 };
        let (found, std) = door.matrix("test", size, what).unwrap();
        assert!((std - 1.0).abs() < 1e-9);
        let mut at = 0;
        let (mut on, mut off) = (0.0, 0.0);
        for row in 0..size {
            for column in row..size {
                if row == column {
                    on += found[at] * found[at]
                } else {
                    off += found[at] * found[at]
                }
                at += 1;
            }
        }
        // Five standard errors of a variance of 60 and of 1770 draws.
        assert!((on / 60.0 - 1.0).abs() < 5.0 * (2.0 / 60.0_f64).sqrt(), "{on}");
        assert!((off / 1770.0 - 0.5).abs() < 5.0 * 0.5 * (2.0 / 1770.0_f64).sqrt(), "{off}");
    }

    /// The empirical μ of a test between two laws of one number, from how often each is above the middle of `shift`.
    fn empirical_mu(without: &[f64], with: &[f64], shift: f64) -> f64 {
        let above = |all: &[f64]| {
            all.iter().filter(|x| **x > 0.5 * shift).count() as f64 / all.len() as f64
        };
        let (false_alarms, hits) = (above(without), above(with));
        assert!(false_alarms < 0.5 && hits > 0.5, "{false_alarms} {hits}");
        charge::normal_quantile(hits) + charge::normal_quantile(1.0 - false_alarms)
    }

    /// A plan with this charge alone, often, as the plan prices it but for `factor`.
    fn audited(purpose: &str, factor: f64, releases: u64) -> (Door, f64) {
        let budget = crate::Budget::new(60.0, 1e-6).unwrap();
        let plan = crate::Regression::new(crate::Link::Linear).plan(20_000, 2, budget).unwrap();
        let charge = plan.stages.iter().flat_map(|s| &s.charges).find(|c| c.purpose == purpose);
        let Mechanism::Gaussian { noise } = charge.unwrap().mechanism else { panic!("a sum") };
        let mechanism = Mechanism::Gaussian { noise: factor * noise };
        let charges = vec![Charge { purpose: purpose.into(), mechanism, times: releases }];
        let stage = Stage::new("audit", 1, charges);
        (Door::new(Key::from_seed(77), &[stage], 1), 1.0 / noise)
    }

    /// Spec 12, the canary: one record beyond the clip, there or not, and the best test between the two. The estimate
    /// has a standard error of about 1.8/√R, chosen here to be 0.4 % of μ: with a fresh seed the upper limit
    /// would fail once in three million times. The lower one shows that no noise is wasted. The
    /// control is half of the noise.
    #[test]
    fn a_canary_is_seen_as_well_as_the_plan_says_and_no_better() {
        use crate::{
            full_batch::{LAST, MOMENT},
            lattice::Lattice,
            pass::{Affine, Query, Rows, second_moment},
        };
        let table = quietly_data::Table::new(2, vec![1.0, -1.0], vec![1e6]);
        let map = Affine::identity(2, 0.5);
        let rows = Rows::all(&table, &map);

        // A gradient, along itself.
        let lattice = Lattice::for_sums(0.3, 3);
        let query =
            Query { weights: &[0.0; 3], residual: |_, y| y, clip: Some(&lattice), grid: None };
        let canary = rows.pass(&query, 1).sum;
        let bound = lattice.bound() as f64;
        let gradient = |factor: f64| {
            let (_, mu) = audited(LAST, factor, 1);
            let releases = (200_000.0 / (mu * mu)) as u64;
            let (mut door, mu) = audited(LAST, factor, 2 * releases);
            let length = canary.iter().map(|&c| (c as f64).powi(2)).sum::<f64>().sqrt();
            let mut ask = |sum: &[i64]| {
                let what = LatticeSum { sum: Private::new(sum.to_vec()), bound, unit: 1.0 };
                let (seen, _) = door.sum(LAST, what).unwrap();
                seen.iter().zip(&canary).map(|(s, c)| s * *c as f64).sum::<f64>() / length
            };
            let without: Vec<f64> = (0..releases).map(|_| ask(&[0; 3])).collect();
            let with: Vec<f64> = (0..releases).map(|_| ask(&canary)).collect();
            empirical_mu(&without, &with, length) / mu
        };
        // A second moment, in the Frobenius inner product with itself.
        let lattice = Lattice::for_products(1.0, 3);
        let canary = second_moment(&rows, &lattice, 1);
        let twice = [1.0, 2.0, 2.0, 1.0, 2.0, 1.0];
        let inner = |seen: &[f64]| {
            seen.iter().zip(&canary).zip(twice).map(|((s, c), t)| s * *c as f64 * t).sum::<f64>()
        };
        let length = inner(&canary.iter().map(|&c| c as f64).collect::<Vec<_>>()).sqrt();
        let bound = (lattice.bound() as f64).powi(2);
        let matrix = |factor: f64| {
            let (_, mu) = audited(MOMENT, factor, 1);
            let releases = (200_000.0 / (mu * mu)) as u64;
            let (mut door, mu) = audited(MOMENT, factor, 2 * releases);
            let mut ask = |sum: &[i64]| {
                let what = LatticeSum { sum: Private::new(sum.to_vec()), bound, unit: 1.0 };
                inner(&door.matrix(MOMENT, 3, what).unwrap().0) / length
            };
            let without: Vec<f64> = (0..releases).map(|_| ask(&[0; 6])).collect();
            let with: Vec<f64> = (0..releases).map(|_| ask(&canary)).collect();
            empirical_mu(&without, &with, length) / mu
        };
        for (name, seen, control) in
            [("gradient", gradient(1.0), gradient(0.5)), ("matrix", matrix(1.0), matrix(0.5))]
        {
            println!("{name}: {seen} of the claimed mu, {control} with half the noise");
            assert!((0.8..=1.02).contains(&seen), "{name} {seen}");
            assert!(control > 1.02, "{name} {control}");
        }
    }

    /// On a coarser lattice one row still adds no more than the bound there, and the answer is the same.
    #[test]
    fn a_coarser_lattice_keeps_its_bound() {
        let mut random = crate::pass::random::Random(3);
        let (bound, noise) = (2.0_f64.powi(31), 3e5);
        let mut tight = 0;
        for _ in 0..2000 {
            let mut draw = || (random.word() as i64) >> 20;
            let sum: Vec<i64> = (0..4).map(|_| draw()).collect();
            let step: Vec<f64> = (0..4).map(|_| draw() as f64).collect();
            let length = step.iter().map(|s| s * s).sum::<f64>().sqrt();
            let step = step.iter().map(|s| (s / length * bound).trunc() as i64);
            let mut one = sum.clone();
            let mut other: Vec<i64> = sum.iter().zip(step).map(|(a, b)| a + b).collect();
            let (coarse, unit) = coarsened(&mut one, bound, 1.0, noise, 2.0);
            assert_eq!(coarsened(&mut other, bound, 1.0, noise, 2.0), (coarse, unit));
            assert!(unit > 1.0 && noise * coarse <= MOST_NOISE);
            let apart = one.iter().zip(&other).map(|(a, b)| ((a - b) as f64).powi(2)).sum::<f64>();
            assert!(apart.sqrt() <= coarse, "{apart} {coarse}");
            assert!((one[0] as f64 * unit - sum[0] as f64).abs() <= unit);
            tight += usize::from(apart.sqrt() > 0.999 * coarse);
        }
        assert!(tight > 1000, "{tight}");
        // The control: what needs no coarser lattice keeps its own.
        let mut sum = vec![12345, -1];
        assert_eq!(coarsened(&mut sum, bound, 1.0, 10.0, 2.0), (bound, 1.0));
        assert_eq!(sum, [12345, -1]);
    }

    #[test]
    fn a_mechanism_with_a_proof_is_given_what_was_promised() {
        let mut door = door(Mechanism::Promise { epsilon: 0.5, delta: 1e-6 }, 1, 5);
        let found = door.promised("test", Private::new(3), |value, promise, stream, step| {
            assert_eq!((value, promise.epsilon, promise.delta, step), (3, 0.5, 1e-6, 0));
            Ok(stream.bits(step)?.below(1)?)
        });
        assert_eq!(found.unwrap(), 0);
    }

    #[test]
    #[should_panic(expected = "is not planned as a promise")]
    fn a_sum_is_no_promise() {
        let mut door = door(Mechanism::Gaussian { noise: 1.0 }, 1, 5);
        let _ = door.promised("test", Private::new(3), |_, _, _, _| Ok(()));
    }

    #[test]
    #[should_panic(expected = "is used up")]
    fn a_release_beyond_the_plan_is_stopped() {
        let mut door = door(Mechanism::Gaussian { noise: 1.0 }, 1, 5);
        for _ in 0..2 {
            let what = LatticeSum { sum: Private::new(vec![0]), bound: 1.0, unit: 1.0 };
            let _ = door.sum("test", what);
        }
    }

    #[test]
    #[should_panic(expected = "is not in the plan")]
    fn a_release_outside_the_plan_is_stopped() {
        let mut door = door(Mechanism::Gaussian { noise: 1.0 }, 1, 5);
        let what = LatticeSum { sum: Private::new(vec![0]), bound: 1.0, unit: 1.0 };
        let _ = door.sum("another", what);
    }

    /// The way out of `Private` is used in this file and nowhere else in the crate. `Private::transpose` would be another
    /// (an error may carry anything); it is used where a disk can fail, and nowhere else.
    #[test]
    fn there_is_one_door() {
        fn look(folder: &std::path::Path, what: &str, found: &mut Vec<String>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    look(&path, what, found);
                } else if std::fs::read_to_string(&path).unwrap().contains(what) {
                    found.push(path.file_name().unwrap().to_string_lossy().into());
                }
            }
        }
        let all = |what: &str| {
            let mut found = Vec::new();
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
            look(std::path::Path::new(folder), what, &mut found);
            found
        };
        assert_eq!(all(concat!("declassify", "(")), ["release.rs"]);
        assert_eq!(all(concat!(".transpose", "()")), ["spill.rs"]);
    }
}
