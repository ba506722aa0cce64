//! The Releaser: takes private sums, adds noise, and returns public values.
//!
//! One file adds noise and releases: this one, which alone calls `Private::declassify`. Two send sums to it, from workers on other
//! machines, by `Private::sent_to_driver`. A test looks for others in the whole workspace. Every release is looked up
//! among the plan's charges first, takes its noise from there, and is counted; a release that was
//! not planned is a bug and panics before any value is touched.
use std::num::NonZero;

use quietly_accounting::Neighbours;
use quietly_noise::{
    CorrelatedNoise, DiscreteLaplace, ExponentialMechanism, Key, Ratio, RoundedGaussian, Stream,
};
use quietly_private::Private;

use crate::{
    batch_sampling::BatchDraw,
    checkpoint::{Checkpoint, Release},
    error::Error,
    mechanism::{Mechanism, Sampler, Stage},
    rows_used::RowsUsed,
};

mod replay;
mod tree_aggregation;

use self::tree_aggregation::TreeAggregation;
pub use self::tree_aggregation::depth;

/// Levels of quantiles are multiples of 2^-LEVEL_BITS, so that scores are integers.
pub const LEVEL_BITS: u32 = 10;

/// The stream that batches are drawn from.
pub const STEPS: &str = "which rows belong to which step";

/// A norm of vectors of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Norm {
    /// The sum of absolute values.
    L1,
    /// The Euclidean norm.
    L2,
    /// That of a symmetric matrix of this size, of which the sum holds the upper triangle, row by row.
    Frobenius {
        /// How many rows the matrix has.
        size: usize,
    },
}

/// What one unit of privacy can add to a sum of integers, and what these are worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sensitivity {
    /// The most that the vector of one unit of privacy measures, in steps of the lattice.
    pub bound: f64,
    /// What one step of the lattice is worth.
    pub unit: f64,
    /// In which norm it is measured.
    pub norm: Norm,
}

impl Sensitivity {
    /// A bound in the Euclidean norm.
    pub fn l2(bound: f64, unit: f64) -> Self {
        Sensitivity { bound, unit, norm: Norm::L2 }
    }

    /// A bound in the 1-norm.
    pub fn l1(bound: f64, unit: f64) -> Self {
        Sensitivity { bound, unit, norm: Norm::L1 }
    }

    /// A bound in the Frobenius norm, of symmetric matrices of this size.
    pub fn frobenius(bound: f64, unit: f64, size: usize) -> Self {
        Sensitivity { bound, unit, norm: Norm::Frobenius { size } }
    }
}

/// The bound to declare where a unit adds one count to each of so many histograms.
///
/// A unit that joins or leaves moves them by √h. One that is replaced moves each by at most √2, all by √(2h); as a replaced unit is
/// priced at twice the bound, half of that is declared. Steps that see a sample of the units are priced for a unit that is there or not,
/// under either relation: they take [`Neighbours::AddRemove`].
pub fn one_in_each(histograms: usize, neighbours: Neighbours) -> f64 {
    let squares = match neighbours {
        Neighbours::AddRemove => histograms as f64,
        Neighbours::ReplaceOne => 0.5 * histograms as f64,
    };
    squares.sqrt().next_up()
}

/// An exact sum of integer vectors, one for every unit of privacy, together with its sensitivity.
///
/// The sensitivity is public. It stands outside of [`Private`], so that it cannot be computed from rows.
#[must_use = "a private sum is of no use until it is released"]
pub struct BoundedSum {
    values: Private<Vec<i64>>,
    sensitivity: Sensitivity,
}

impl BoundedSum {
    /// The sum, for what else is computed from it: it stays private.
    pub fn values(&self) -> Private<&Vec<i64>> {
        self.values.as_ref()
    }

    pub fn new(values: Private<Vec<i64>>, sensitivity: Sensitivity) -> Self {
        BoundedSum { values, sensitivity }
    }
}

/// How many units of privacy fall into each bin: each of them into one.
#[must_use = "private counts are of no use until something about them is released"]
pub struct Histogram(Private<Vec<u64>>);

impl Histogram {
    pub fn new(counts: Private<Vec<u64>>) -> Self {
        Histogram(counts)
    }

    /// The same counts, for a second release about them.
    pub fn copy(&self) -> Self {
        Histogram(self.0.as_ref().map(Vec::clone))
    }

    /// How many units are in bins after this one.
    pub fn above(&self, bin: usize) -> Private<u64> {
        self.0.as_ref().map(|counts| counts[bin + 1..].iter().sum())
    }

    /// The counts as a sum, for noise on each of them. Each unit is in one bin at most.
    ///
    /// They are put on a lattice finer than the integers, so that little noise is not rounded away.
    pub fn into_sum(self, neighbours: Neighbours) -> BoundedSum {
        const UNIT: i64 = 1 << 10;
        let bound = (one_in_each(1, neighbours) * UNIT as f64).next_up();
        let fine = |counts: Vec<u64>| counts.into_iter().map(|c| c as i64 * UNIT).collect();
        BoundedSum::new(self.0.map(fine), Sensitivity::l2(bound, 1.0 / UNIT as f64))
    }

    /// How many units there are in all bins.
    pub fn total(&self) -> Private<u64> {
        self.0.as_ref().map(|counts| counts.iter().sum())
    }
}

/// A noisy sum as a descent sees it: the sum, not the mean.
#[derive(Clone, Debug, PartialEq)]
pub struct Released {
    pub values: Vec<f64>,
    /// The standard deviation of the noise of one release; where noise is correlated, before that.
    pub std: f64,
    /// The noisy sum of all steps so far, where tree aggregation knows it better than the sum of `values`.
    pub prefix: Option<Vec<f64>>,
}

/// What a mechanism with a proof of its own is to keep.
#[derive(Clone, Copy, Debug)]
pub struct ApproximateDp {
    pub epsilon: f64,
    pub delta: f64,
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
pub struct Releaser {
    key: Key,
    pending: Vec<PendingRelease>,
    threads: NonZero<usize>,
    checkpoint: Option<Checkpoint>,
    /// Stages of which one may run instead of the other, until that is chosen.
    undecided: Vec<Branches>,
    /// Of stages of which one ran instead of the other, those that ran.
    pub ran: Vec<String>,
    /// What was released of the number of rows.
    pub rows_used: Option<RowsUsed>,
    /// For tests of sensitivity: what was to be released, instead of which nothing but noise is.
    #[cfg(any(test, feature = "witness"))]
    pub witness: Option<Vec<Witnessed>>,
}

/// A release as a test sees it.
#[cfg(any(test, feature = "witness"))]
#[derive(Clone, Debug, PartialEq)]
pub struct Witnessed {
    pub purpose: String,
    pub values: Vec<i64>,
    /// What one row may add to a sum; none for counts.
    pub bound: Option<f64>,
}

/// Two stages, of which one may run instead of the other: their names, and those of their releases.
struct Branches {
    first: (String, Vec<String>),
    instead: (String, Vec<String>),
}

impl Branches {
    /// Those of a plan.
    fn of(stages: &[Stage]) -> Vec<Self> {
        let of = |stage: &Stage| {
            let releases = stage.releases.iter().map(|charge| charge.purpose.clone());
            (stage.name.clone(), releases.collect())
        };
        let first = |name: &String| stages.iter().find(|stage| stage.name == *name);
        let branches = stages.iter().filter_map(|instead| {
            let first = first(instead.instead_of.as_ref()?).expect("a stage of the plan");
            Some(Branches { first: of(first), instead: of(instead) })
        });
        branches.collect()
    }

    fn has(&self, purpose: &str) -> bool {
        self.first.1.iter().chain(&self.instead.1).any(|p| p == purpose)
    }
}

struct PendingRelease {
    purpose: String,
    mechanism: Mechanism,
    stream: Stream,
    left: u64,
    used: u64,
    /// The nodes so far, where sums are released by a tree.
    tree: Option<TreeAggregation>,
}

impl Releaser {
    /// A releaser for the planned releases of these stages.
    ///
    /// # Panics
    ///
    /// If two releases have one name: they would share their noise.
    pub fn new(key: Key, stages: &[Stage], threads: usize) -> Self {
        let mut pending: Vec<PendingRelease> = Vec::new();
        for stage in stages {
            for charge in &stage.releases {
                let purpose = charge.purpose.clone();
                assert!(pending.iter().all(|o| o.purpose != purpose), "{purpose} is planned twice");
                let (stream, left) = (key.stream(&purpose), charge.times * stage.steps);
                pending.push(PendingRelease {
                    purpose,
                    mechanism: charge.mechanism,
                    stream,
                    left,
                    used: 0,
                    tree: None,
                });
            }
        }
        Releaser {
            key,
            pending,
            threads: NonZero::new(threads).unwrap_or(NonZero::<usize>::MIN),
            checkpoint: None,
            undecided: Branches::of(stages),
            ran: Vec::new(),
            rows_used: None,
            #[cfg(any(test, feature = "witness"))]
            witness: None,
        }
    }

    /// The same for a resumed run: the first `steps` releases were made before, and their noise is not used again.
    ///
    /// # Panics
    ///
    /// If it is not in the plan so often.
    pub fn after(mut self, purpose: &str, steps: u64) -> Self {
        for _ in 0..steps {
            self.next_use(purpose);
        }
        self
    }

    /// A key for these private parts alone: see [`Key::bound_to`].
    ///
    /// The result is a key. Without the key that it is derived from, it is as random as that one, whatever the parts.
    pub fn bound(key: &Key, public: &[u8], parts: Private<impl Iterator<Item = Vec<u8>>>) -> Key {
        let all = |parts| key.bound_to(std::iter::once(public.to_vec()).chain(parts));
        parts.map(all).declassify()
    }

    /// Records the values for a test, and replaces them by zeros: releases then do not depend on the data, so that two
    /// tables can be compared release by release under one history.
    #[cfg(any(test, feature = "witness"))]
    fn see(&mut self, purpose: &str, values: &mut [i64], bound: Option<f64>) {
        if let Some(witness) = &mut self.witness {
            witness.push(Witnessed { purpose: purpose.into(), values: values.to_vec(), bound });
            values.fill(0);
        }
    }

    /// The same for a sum.
    #[cfg(any(test, feature = "witness"))]
    fn seen(&mut self, purpose: &str, mut sum: Vec<i64>, bound: f64) -> Vec<i64> {
        self.see(purpose, &mut sum, Some(bound));
        sum
    }

    /// How many threads may work.
    pub fn threads(&self) -> usize {
        self.threads.get()
    }

    /// The number of rows, if the relation makes it public.
    pub fn public_rows(&self, neighbours: Neighbours, rows: Private<usize>) -> Option<usize> {
        (neighbours == Neighbours::ReplaceOne).then(|| rows.declassify())
    }

    /// The planned noise of a sum, over what one row can add.
    pub fn noise(&self, purpose: &str) -> f64 {
        match self.planned(purpose) {
            Mechanism::Gaussian { noise } => noise,
            _ => panic!("{purpose} is not planned as a sum"),
        }
    }

    /// The planned mechanism of a release.
    pub fn planned(&self, purpose: &str) -> Mechanism {
        self.planned_for(purpose).unwrap_or_else(|| panic!("{purpose} is not in the plan"))
    }

    /// The same, if it is planned at all.
    pub fn planned_for(&self, purpose: &str) -> Option<Mechanism> {
        self.pending.iter().find(|o| o.purpose == purpose).map(|open| open.mechanism)
    }

    /// Chooses between a stage of this name and the one planned instead of it, as what was released says; the other one is closed.
    ///
    /// # Panics
    ///
    /// If there is no such choice, or it was made.
    pub fn choose(&mut self, stage: &str, instead: bool) {
        let at = self.undecided.iter().position(|branches| branches.first.0 == stage);
        let Branches { first, instead: other } =
            self.undecided.swap_remove(at.unwrap_or_else(|| panic!("{stage} is to be chosen")));
        let (ran, closed) = if instead { (other, first) } else { (first, other) };
        self.pending.retain(|open| !closed.1.contains(&open.purpose));
        self.ran.push(ran.0);
    }

    /// Whether another stage is planned instead of the one of this name.
    pub fn is_undecided(&self, stage: &str) -> bool {
        self.undecided.iter().any(|branches| branches.first.0 == stage)
    }

    /// A value computed without noise: for plans without privacy (ε = ∞), and for no others.
    ///
    /// # Panics
    ///
    /// If the plan has releases: a private plan must use them.
    pub fn non_private<T, U>(&self, value: Private<T>, compute: impl FnOnce(T) -> U) -> U {
        assert!(self.pending.is_empty(), "only a plan that promises nothing is answered plainly");
        compute(value.declassify())
    }

    /// Draws who is in which step, from a stream that no noise is drawn from. A run has one such draw.
    pub fn draw(&self, sampler: Sampler) -> BatchDraw {
        sampler.draw(self.key.stream(STEPS))
    }

    /// What was released of this sum before the interruption, of the same length.
    fn replayed_sum(
        &mut self,
        purpose: &str,
        what: &BoundedSum,
    ) -> Result<Option<(Vec<f64>, f64)>, Error> {
        let length = what.values.as_ref().map(Vec::len).declassify();
        match self.replayed(purpose)? {
            Some(Release::Sum { values, noise, .. }) if values.len() == length => {
                Ok(Some((values, noise)))
            }
            Some(_) => Err(self.checkpoint.as_ref().expect("it was read").was_changed()),
            None => Ok(None),
        }
    }

    /// Releases the sums of this name by tree aggregation: the plan has noise and count for it.
    pub fn aggregate_by_tree(&mut self, purpose: &str) {
        self.open_mut(purpose).tree = Some(TreeAggregation::default());
    }

    /// The noisy sum of the next step, with the noise that is planned: independent, correlated or by a tree.
    pub fn release(&mut self, purpose: &str, what: BoundedSum) -> Result<Released, Error> {
        if let Some(mut tree) = self.open_mut(purpose).tree.take() {
            let released = tree.add(self, purpose, what);
            self.open_mut(purpose).tree = Some(tree);
            return released;
        }
        let (values, std) = match self.planned(purpose) {
            Mechanism::CorrelatedGaussian { .. } => self.add_correlated_noise(purpose, what)?,
            _ => self.sum(purpose, what)?,
        };
        Ok(Released { values, std, prefix: None })
    }

    /// A sum with the planned noise, and the size of that noise, both in real units: the standard deviation of Gaussian
    /// noise, on the diagonal of a matrix, or the scale of discrete Laplace noise.
    ///
    /// # Panics
    ///
    /// If it is not planned as a sum, or with noise for another norm.
    pub fn sum(&mut self, purpose: &str, what: BoundedSum) -> Result<(Vec<f64>, f64), Error> {
        if let Some(replayed) = self.replayed_sum(purpose, &what)? {
            return Ok(replayed);
        }
        let BoundedSum { values, sensitivity } = what;
        let sum = values.declassify();
        #[cfg(any(test, feature = "witness"))]
        let sum = self.seen(purpose, sum, sensitivity.bound);
        match (self.planned(purpose), sensitivity.norm) {
            (Mechanism::Laplace { .. }, norm) => {
                // All norms of one number are equal.
                assert!(norm == Norm::L1 || sum.len() == 1, "{purpose} is bounded in the 1-norm");
                self.add_laplace_noise(purpose, sum, sensitivity)
            }
            (_, Norm::Frobenius { size }) => {
                self.add_gaussian_noise_to_matrix(purpose, size, sum, sensitivity)
            }
            // The Euclidean norm is at most the 1-norm.
            (_, Norm::L1 | Norm::L2) => self.add_gaussian_noise(purpose, sum, sensitivity),
        }
    }

    /// Gaussian noise in every coordinate.
    fn add_gaussian_noise(
        &mut self,
        purpose: &str,
        mut sum: Vec<i64>,
        Sensitivity { bound, unit, .. }: Sensitivity,
    ) -> Result<(Vec<f64>, f64), Error> {
        let threads = self.threads;
        let (noise, stream, step) = self.next_gaussian(purpose);
        let corner = (sum.len() as f64).sqrt();
        let (bound, unit) = coarsened(&mut sum, bound, unit, noise, corner);
        let scale = above(noise * bound);
        RoundedGaussian::new(scale)?.add_threads(stream, step, &mut sum, threads)?;
        Ok(self.released(purpose, &sum, unit, scale * unit))
    }

    /// The noisy sum of the next step, where noise is correlated between steps.
    ///
    /// The noise of a step is rounded once: the release is round(sum + noise), a function of the ideal release. All steps
    /// are on one lattice, as their noises are made of the same numbers.
    ///
    /// # Panics
    ///
    /// If the noise is too large for the lattice: planners of networks choose one that has room.
    fn add_correlated_noise(
        &mut self,
        purpose: &str,
        what: BoundedSum,
    ) -> Result<(Vec<f64>, f64), Error> {
        let threads = self.threads;
        let BoundedSum { values, sensitivity: Sensitivity { bound, unit, .. } } = what;
        let mut sum = values.declassify();
        #[cfg(any(test, feature = "witness"))]
        self.see(purpose, &mut sum, Some(bound));
        let (mechanism, stream, step) = self.next_use(purpose);
        let Mechanism::CorrelatedGaussian { noise, correlation } = mechanism else {
            panic!("{purpose} is not planned with mixed noise");
        };
        let scale = above(noise * bound);
        assert!(scale <= MOST_NOISE, "a lattice with room for the noise");
        let noise = CorrelatedNoise::toeplitz(scale, &correlation.coefficients()?)?;
        noise.add_threads(stream, step, &mut sum, threads)?;
        Ok((sum.iter().map(|&s| s as f64 * unit).collect(), scale * unit))
    }

    /// Discrete Laplace noise in every coordinate.
    fn add_laplace_noise(
        &mut self,
        purpose: &str,
        mut sum: Vec<i64>,
        Sensitivity { bound, unit, .. }: Sensitivity,
    ) -> Result<(Vec<f64>, f64), Error> {
        let (mechanism, stream, step) = self.next_use(purpose);
        let Mechanism::Laplace { scale } = mechanism else {
            panic!("{purpose} is not planned with Laplace noise");
        };
        // A vector of ones measures its length in the 1-norm.
        let corner = sum.len() as f64;
        let (bound, unit) = coarsened(&mut sum, bound, unit, scale, corner);
        let scale = ratio_above(above(scale * bound))?;
        DiscreteLaplace::new(scale)?.add(stream, step, &mut sum)?;
        Ok(self.released(purpose, &sum, unit, scale.value() * unit))
    }

    /// Gaussian noise for symmetric matrices, given and returned as upper triangles, row by row.
    ///
    /// The bound is the most that the matrix of one unit measures in the Frobenius norm. The noise is
    /// N(0, s²) on the diagonal and N(0, s²/2) beside it: with off-diagonal entries counted
    /// √2-fold the vector's norm is the Frobenius norm, the noise is N(0, s²) on every entry, and
    /// dividing by √2 again is post-processing.
    fn add_gaussian_noise_to_matrix(
        &mut self,
        purpose: &str,
        size: usize,
        mut sum: Vec<i64>,
        Sensitivity { bound, unit, .. }: Sensitivity,
    ) -> Result<(Vec<f64>, f64), Error> {
        let threads = self.threads;
        let (noise, stream, step) = self.next_gaussian(purpose);
        assert_eq!(sum.len(), size * (size + 1) / 2, "an upper triangle");
        // In the Frobenius norm a matrix of ones measures its size.
        let (bound, unit) = coarsened(&mut sum, bound, unit, noise, size as f64);
        let scale = above(noise * bound);
        let place = |row: usize| row * size - row * (row + 1) / 2 + row;
        let mut diagonal: Vec<i64> = (0..size).map(|row| sum[place(row)]).collect();
        // Two steps of one stream: no coordinate shares its noise with another.
        RoundedGaussian::new(scale)?.add_threads(stream, 2 * step, &mut diagonal, threads)?;
        let beside = above(scale * std::f64::consts::FRAC_1_SQRT_2);
        RoundedGaussian::new(beside)?.add_threads(stream, 2 * step + 1, &mut sum, threads)?;
        for (row, value) in diagonal.into_iter().enumerate() {
            sum[place(row)] = value;
        }
        Ok(self.released(purpose, &sum, unit, scale * unit))
    }

    /// The index of a threshold below which about `level` of all values lie.
    ///
    /// Bin k counts the values that lie above threshold k-1 and not above threshold k; the last
    /// one, how many lie above all thresholds. The bin that holds the quantile scores highest: see
    /// [`scores`].
    pub fn quantile(
        &mut self,
        purpose: &str,
        level: f64,
        Histogram(counts): Histogram,
    ) -> Result<usize, Error> {
        // The last bin has no threshold.
        let choices = counts.as_ref().map(|counts| counts.len() - 1).declassify();
        match self.replayed(purpose)? {
            Some(Release::Choice { at, .. }) if at < choices => return Ok(at),
            Some(_) => return Err(self.checkpoint.as_ref().expect("it was read").was_changed()),
            None => {}
        }
        #[cfg(any(test, feature = "witness"))]
        let counts = {
            let mut values: Vec<i64> = counts.declassify().iter().map(|&c| c as i64).collect();
            self.see(purpose, &mut values, None);
            Private::new(values.iter().map(|&c| c as u64).collect::<Vec<u64>>())
        };
        let (mechanism, stream, step) = self.next_use(purpose);
        let Mechanism::Exponential { add_remove, replace_one } = mechanism else {
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
        // Only the index is released; the scores are not.
        let choose = |scores: Vec<i64>| {
            ExponentialMechanism::new(rate, LEVEL_BITS)?.choose(&scores, &mut bits)
        };
        let at = scores.map(choose).declassify()?;
        self.write(|| Release::Choice { purpose: purpose.into(), at });
        Ok(at)
    }

    /// The output of a mechanism with its own proof of approximate DP: for neighbouring values it must be
    /// (ε, δ)-indistinguishable, with the planned ε and δ, which it is given together with randomness that nothing else uses.
    ///
    /// Nothing here adds noise: the proof stands where the mechanism does, and what it returns is public.
    pub fn approximate_dp<T, U>(
        &mut self,
        purpose: &str,
        value: Private<T>,
        mechanism: impl FnOnce(T, ApproximateDp, &Stream, u64) -> Result<U, Error>,
    ) -> Result<U, Error> {
        let (planned, stream, step) = self.next_use(purpose);
        let Mechanism::ApproximateDp { epsilon, delta } = planned else {
            panic!("{purpose} is not planned as a promise");
        };
        mechanism(value.declassify(), ApproximateDp { epsilon, delta }, stream, step)
    }

    /// Works with a tilted objective, once: what comes out is private still, as it is only near the minimiser, whose law the
    /// plan's charge is for.
    pub fn objective<T, U, E>(
        &mut self,
        purpose: &str,
        value: Private<T>,
        work: impl FnOnce(T, &Stream, u64) -> Result<U, E>,
    ) -> Result<Private<U>, E> {
        let (planned, stream, step) = self.next_use(purpose);
        let proven = matches!(
            planned,
            Mechanism::ObjectivePerturbation { .. } | Mechanism::ApproximateDp { .. }
        );
        assert!(proven, "{purpose} is planned otherwise");
        value.map(|value| work(value, stream, step)).transpose()
    }

    /// Private work that may have been interrupted, and cannot fail otherwise.
    pub fn unless_interrupted<T>(work: Private<Result<T, Error>>) -> Result<Private<T>, Error> {
        // The message is dropped: only the interruption itself is public.
        work.transpose().map_err(|_| Error::Interrupted)
    }

    fn next_gaussian(&mut self, purpose: &str) -> (f64, &Stream, u64) {
        let (mechanism, stream, step) = self.next_use(purpose);
        let Mechanism::Gaussian { noise } = mechanism else {
            panic!("{purpose} is not planned as a sum");
        };
        (noise, stream, step)
    }

    fn next_use(&mut self, purpose: &str) -> (Mechanism, &Stream, u64) {
        let undecided = self.undecided.iter().any(|branches| branches.has(purpose));
        assert!(!undecided, "{purpose} is one of two branches, and none was chosen");
        let open = self.open_mut(purpose);
        assert!(open.left > 0, "{purpose} is used up");
        (open.left, open.used) = (open.left - 1, open.used + 1);
        (open.mechanism, &open.stream, open.used - 1)
    }

    fn open_mut(&mut self, purpose: &str) -> &mut PendingRelease {
        let open = self.pending.iter_mut().find(|o| o.purpose == purpose);
        open.unwrap_or_else(|| panic!("{purpose} is not in the plan"))
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
pub fn ratio_above(x: f64) -> Result<Ratio, Error> {
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
