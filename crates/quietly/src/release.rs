//! The one door: private values go in, noise is added, public values come out.
//!
//! One file adds noise and releases: this one, which alone calls `Private::declassify`. Two send sums to it, from workers on other
//! machines, by `Private::sent_to_driver`. A test looks for others in the whole workspace. Every release is looked up
//! among the plan's charges first, takes its noise from there, and is counted; a release that was
//! not planned is a bug and panics before any value is touched.
use std::num::NonZero;

use quietly_accounting::Neighbours;
use quietly_data::Private;
use quietly_noise::{
    Correlated, DiscreteLaplace, ExponentialMechanism, Key, Ratio, RoundedNormal, Source, Stream,
};

use crate::{
    charge::{Mechanism, Stage},
    error::Error,
    journal::{Journal, Release},
    rows_used::RowsUsed,
};

mod replay;

/// Levels of quantiles are multiples of 2^-LEVEL_BITS, so that scores are integers.
pub(crate) const LEVEL_BITS: u32 = 10;

/// A sum of integer vectors to each of which one row contributes a bounded one.
pub(crate) struct LatticeSum {
    /// The exact sum.
    pub(crate) sum: Private<Vec<i64>>,
    /// The most that one row's vector can measure: in the Euclidean norm, and in the 1-norm for Laplace noise.
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
    journal: Option<Journal>,
    /// What was released of the number of rows.
    pub(crate) rows_used: Option<RowsUsed>,
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
            journal: None,
            rows_used: None,
            #[cfg(test)]
            witness: None,
        }
    }

    /// The same for a run that goes on: the first `steps` answers were given before, and their noise is not used again.
    ///
    /// # Panics
    ///
    /// If it is not in the plan so often.
    pub(crate) fn after(mut self, purpose: &str, steps: u64) -> Self {
        for _ in 0..steps {
            self.enter(purpose);
        }
        self
    }

    /// A key for these private parts alone: see [`Key::bound_to`].
    ///
    /// What leaves is a key. To whoever does not hold the one it is made from it is as random as that, whatever the parts.
    pub(crate) fn bound(
        key: &Key,
        public: &[u8],
        parts: Private<impl Iterator<Item = Vec<u8>>>,
    ) -> Key {
        let all = |parts| key.bound_to(std::iter::once(public.to_vec()).chain(parts));
        parts.map(all).declassify()
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

    /// The number of rows, if the relation makes it public.
    pub(crate) fn public_rows(
        &self,
        neighbours: Neighbours,
        rows: Private<usize>,
    ) -> Option<usize> {
        (neighbours == Neighbours::ReplaceOne).then(|| rows.declassify())
    }

    /// The planned noise of a sum, over what one row can add.
    pub(crate) fn noise(&self, purpose: &str) -> f64 {
        match self.planned(purpose) {
            Mechanism::Gaussian { noise } => noise,
            _ => panic!("{purpose} is not planned as a sum"),
        }
    }

    /// How a question is planned to be answered.
    pub(crate) fn planned(&self, purpose: &str) -> Mechanism {
        self.planned_for(purpose).unwrap_or_else(|| panic!("{purpose} is not in the plan"))
    }

    /// The same, if it is planned at all.
    pub(crate) fn planned_for(&self, purpose: &str) -> Option<Mechanism> {
        self.open.iter().find(|o| o.purpose == purpose).map(|open| open.mechanism)
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

    /// The same for a sum, of as many numbers as is asked for now.
    fn told_sum(
        &mut self,
        purpose: &str,
        what: &LatticeSum,
    ) -> Result<Option<(Vec<f64>, f64)>, Error> {
        let length = what.sum.as_ref().map(Vec::len).declassify();
        match self.told(purpose)? {
            Some(Release::Sum { values, noise, .. }) if values.len() == length => {
                Ok(Some((values, noise)))
            }
            Some(_) => Err(self.journal.as_ref().expect("it told").was_changed()),
            None => Ok(None),
        }
    }

    /// A noisy sum, and the standard deviation of its noise, both in real units.
    pub(crate) fn sum(
        &mut self,
        purpose: &str,
        what: LatticeSum,
    ) -> Result<(Vec<f64>, f64), Error> {
        if let Some(told) = self.told_sum(purpose, &what)? {
            return Ok(told);
        }
        let threads = self.threads;
        let mut sum = what.sum.declassify();
        #[cfg(test)]
        self.see(purpose, &mut sum, Some(what.bound));
        let (noise, stream, step) = self.gaussian(purpose);
        let corner = (sum.len() as f64).sqrt();
        let (bound, unit) = coarsened(&mut sum, what.bound, what.unit, noise, corner);
        let scale = above(noise * bound);
        RoundedNormal::new(scale)?.add_threads(stream, step, &mut sum, threads)?;
        Ok(self.released(purpose, &sum, unit, scale * unit))
    }

    /// The noisy sum of the next step, where noise is mixed from step to step.
    ///
    /// The finished noise of a step is rounded once: what leaves is round(sum + noise), a function of the ideal release. All steps
    /// are on one lattice, as their noises are made of the same numbers.
    ///
    /// # Panics
    ///
    /// If the noise is too large for the lattice: planners of networks choose one that has room.
    pub(crate) fn mixed_sum(&mut self, purpose: &str, what: LatticeSum) -> Result<Vec<f64>, Error> {
        let threads = self.threads;
        let mut sum = what.sum.declassify();
        #[cfg(test)]
        self.see(purpose, &mut sum, Some(what.bound));
        let (mechanism, stream, step) = self.enter(purpose);
        let Mechanism::Mixed { noise, mixing } = mechanism else {
            panic!("{purpose} is not planned with mixed noise");
        };
        let scale = above(noise * what.bound);
        assert!(scale <= MOST_NOISE, "a lattice with room for the noise");
        let noise = Correlated::toeplitz(scale, &mixing.coefficients()?)?;
        noise.add_threads(stream, step, &mut sum, threads)?;
        Ok(sum.iter().map(|&s| s as f64 * what.unit).collect())
    }

    /// A sum with discrete Laplace noise in every coordinate, and the scale of it, both in real units.
    pub(crate) fn laplace(
        &mut self,
        purpose: &str,
        what: LatticeSum,
    ) -> Result<(Vec<f64>, f64), Error> {
        let mut sum = what.sum.declassify();
        #[cfg(test)]
        self.see(purpose, &mut sum, Some(what.bound));
        let (mechanism, stream, step) = self.enter(purpose);
        let Mechanism::Laplace { scale } = mechanism else {
            panic!("{purpose} is not planned with Laplace noise");
        };
        // A vector of ones measures its length in the 1-norm.
        let corner = sum.len() as f64;
        let (bound, unit) = coarsened(&mut sum, what.bound, what.unit, scale, corner);
        let scale = ratio_above(above(scale * bound))?;
        DiscreteLaplace::new(scale)?.add(stream, step, &mut sum)?;
        Ok((sum.iter().map(|&s| s as f64 * unit).collect(), scale.value() * unit))
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
        if let Some(told) = self.told_sum(purpose, &what)? {
            return Ok(told);
        }
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
        Ok(self.released(purpose, &sum, unit, scale * unit))
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
        // The last bin has no threshold.
        let choices = counts.as_ref().map(|counts| counts.len() - 1).declassify();
        match self.told(purpose)? {
            Some(Release::Choice { at, .. }) if at < choices => return Ok(at),
            Some(_) => return Err(self.journal.as_ref().expect("it told").was_changed()),
            None => {}
        }
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
        assert!(rate > 0.0 && rate.is_finite(), "{purpose} is planned at a price");
        let denominator = 1_u64 << 40;
        let rate = Ratio::new((rate * denominator as f64).floor() as u64, denominator)?;
        let scores = counts.map(|counts| scores(&counts, level));
        let mut bits = stream.bits(step)?;
        // Only the index leaves; the scores do not.
        let choose = |scores: Vec<i64>| {
            ExponentialMechanism::new(rate, LEVEL_BITS)?.choose(&scores, &mut bits)
        };
        let at = scores.map(choose).declassify()?;
        self.write(|| Release::Choice { purpose: purpose.into(), at });
        Ok(at)
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

    /// Works with a tilted objective, once: what comes out is private still, as it is only near the minimiser, whose law the
    /// plan's charge is for.
    pub(crate) fn objective<T, U>(
        &mut self,
        purpose: &str,
        value: Private<T>,
        work: impl FnOnce(T, &Stream, u64) -> Result<U, Error>,
    ) -> Result<Private<U>, Error> {
        let (planned, stream, step) = self.enter(purpose);
        let proven = matches!(planned, Mechanism::Objective { .. } | Mechanism::Promise { .. });
        assert!(proven, "{purpose} is planned otherwise");
        value.map(|value| work(value, stream, step)).transpose()
    }

    /// Private work that may have been asked to stop, and cannot fail otherwise.
    pub(crate) fn unless_stopped<T>(work: Private<Result<T, Error>>) -> Result<Private<T>, Error> {
        // Whatever it says, no more than this leaves.
        work.transpose().map_err(|_| Error::Stopped)
    }

    /// Private work that may have run out of random bits, which no row decides, and cannot fail otherwise.
    pub(crate) fn unless_exhausted<T>(
        work: Private<Result<T, Error>>,
    ) -> Result<Private<T>, Error> {
        // Whatever it says, no more than this leaves.
        let exhausted = quietly_noise::Error::Exhausted { step: 0, coordinate: 0 };
        work.transpose().map_err(|_| exhausted.into())
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

/// A ratio not below x > 0 and hardly above it, with terms of at most 2⁴⁴: what exact Laplace noise takes.
///
/// # Errors
///
/// [`Error::Noise`] if x is above 2⁴⁴, when the noise is made.
pub(crate) fn ratio_above(x: f64) -> Result<Ratio, Error> {
    let bits = (43 - x.log2().ceil() as i32).clamp(0, 44);
    // Powers of two are exact.
    Ok(Ratio::new((x * 2f64.powi(bits)).ceil() as u64, 1 << bits)?)
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
mod tests;
