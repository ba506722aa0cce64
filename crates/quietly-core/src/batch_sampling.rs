//! Batch sampling: draws which units are in which step. Poisson samples, fixed sizes, allocations and bins are drawn here
//! and nowhere else.
//!
//! [`Sampler`] says how, and is what the accountant prices; [`Sampler::draw`] makes a [`BatchDraw`] of it. A draw knows
//! nothing of tables. It maps *places* to steps: the place of a unit of privacy is its number in the table, from 0. Today
//! a unit is a row, so that a place is the number of a row. Where a person has many rows, the table numbers persons, and
//! all rows of a person are in the steps of that one place: drawing rows and charging persons would be wrong.
//!
//! * [`BatchDraw::members`]: the units of one step among some places.
//! * [`BatchDraw::assignments`]: the groups of units that come one after the other, as a file is read.
//! * [`BatchDraw::batches`]: step after step, for units in memory.
//!
//! Membership is secret: privacy amplification needs it. A draw is sent to workers of the run alone,
//! is never printed, and its key is wiped from memory when it is dropped.
//!
//! # Proof: draws have their law
//!
//! *Statement.* If the words of the stream are independent and uniform on 0..2⁶⁴, then
//!
//! 1. [`Sampler::Poisson`]: all pairs (step, unit) are drawn independently, each with probability exactly `rate`;
//! 2. [`Sampler::RandomAllocation`], [`Sampler::Partition`]: each unit is in one of `steps` groups, uniformly and independently;
//!    [`Sampler::BallsAndBins`], [`Sampler::Cyclic`]: the same for the steps of an epoch, and every epoch has the same groups;
//! 3. [`Sampler::FixedSize`]: each step is a uniform subset of min(`batch`, units) units, independent of all other steps.
//!
//! In 1 and 2 the steps of a unit are a function of the stream and its place, whatever the number and the content of the
//! other units: any split of a table gives the same members.
//!
//! *Conditions.* A stream is used by one draw and its copies, and by nothing else ([`Releaser::draw`] sees to it). `rate` is a
//! multiple of 2⁻³², as all planners choose it; any other rate is rounded down, and costs no more than what was
//! charged: H_α((1-q)P + qQ ‖ P), and the same with sides exchanged, grow with q from 0, as they are convex in q and 0 at
//! q = 0. Which unit has which place does not depend on the stream.
//!
//! *Steps.*
//!
//! 1. Unit i reads half i mod 2 of word ⌊i/2⌋ of its step, 32 uniform bits that no other pair reads, and is a member if
//!    they are below rate·2³². The product of a double with 2³² is exact, and so is its integer part.
//! 2. A word w makes m group numbers below s, the digits of v = ⌊w·sᵐ/2⁶⁴⌋ in base s, unless w·sᵐ mod 2⁶⁴ < 2⁶⁴ mod sᵐ,
//!    when the next word is taken. v is then uniform on 0..sᵐ (Lemire, *Fast random integer generation in an interval*,
//!    ACM TOMACS 2019), and the digits of a uniform number below sᵐ are independent and uniform. The low word after m
//!    multiplications by s is w·sᵐ mod 2⁶⁴, and their high words are the digits of v, the first one first. Each block of
//!    [`BLOCK`] places reads words of its own, so that a place is reached without drawing more than its block.
//! 3. Given the order of all units before a step, a function of earlier words, `batch` exchanges of place k with a uniform
//!    one of k.. give a uniform ordered choice of the first `batch` places (Fisher and Yates). It is uniform given
//!    every past, and so independent of it.
//!
//! *Replaced, added and removed units.* In 1 and 2 the draws of all other units have one law in both tables. A unit that
//! joins or leaves may move others to other places; their draws are independent and alike, so that their joint law stays.
//! In 3 the number of units decides: such plans are for replace-one only.
//!
//! *Not covered.* ChaCha20 makes the words: independent and uniform to an adversary that cannot tell it from
//! a random function.
//! [`Sampler::OrderedPartition`] is not drawn at all: its parts are by place, and anyone who knows the table knows them.
//!
//! [`Releaser::draw`]: crate::release::Releaser::draw
use std::{fmt, ops::Range, sync::Arc};

use quietly_noise::{Bits, Source, Stream};
use serde::{Deserialize, Serialize};

use crate::mechanism::Sampler;

/// Places that share one run of random words. Seeded results depend on it: do not change.
pub const BLOCK: usize = 8192;

/// Which units are in which step. **Secret**: see the module.
#[derive(Clone, Serialize, Deserialize)]
#[serde(into = "Wire", try_from = "Wire")]
pub struct BatchDraw {
    sampler: Sampler,
    stream: Arc<Stream>,
}

impl Sampler {
    /// Draws from a stream that nothing else reads.
    pub fn draw(self, stream: Stream) -> BatchDraw {
        BatchDraw { sampler: self, stream: Arc::new(stream) }
    }
}

impl BatchDraw {
    /// How units come to steps.
    pub fn sampler(&self) -> Sampler {
        self.sampler
    }

    /// How many groups there are, where each unit is in one of them.
    pub fn groups(&self) -> Option<u64> {
        self.sampler.groups()
    }

    /// The places of those units of step `step` that are among `units`, ascending.
    ///
    /// Where each unit is in one group, all groups at once ([`assignments`](Self::assignments)) cost no more than one. Steps
    /// of one size are drawn one after the other: take [`batches`](Self::batches) for more than one.
    ///
    /// # Panics
    ///
    /// For [`Sampler::OrderedPartition`], which is not drawn.
    pub fn members(&self, step: u64, units: Range<u64>) -> Vec<u64> {
        match self.sampler {
            Sampler::FullBatch => units.collect(),
            Sampler::Poisson { rate, .. } => {
                let mut members = Vec::new();
                self.poisson_batch(step, rate, units, |place| members.push(place));
                members
            }
            Sampler::FixedSize { rows, .. } => {
                let mut batches = self.batches(rows as usize);
                (0..step).for_each(|t| _ = batches.step(t));
                let all = batches.step(step).iter().map(|&place| u64::from(place));
                let mut members: Vec<u64> = all.filter(|place| units.contains(place)).collect();
                members.sort_unstable();
                members
            }
            _ => self.group_members(&(step..step + 1), units),
        }
    }

    /// The places of those units that are in the groups of these steps, ascending: all of them at the cost of one draw.
    ///
    /// # Panics
    ///
    /// Unless each unit is in one group, and no group is meant twice.
    pub fn group_members(&self, steps: &Range<u64>, units: Range<u64>) -> Vec<u64> {
        let count = self.groups().expect("each unit is in one group");
        assert!(steps.end - steps.start <= count, "no group twice");
        let meant = |group: usize| (group as u64 + count - steps.start % count) % count;
        let groups = self.assignments(units.start);
        let both = units.zip(groups).filter(|(_, g)| meant(*g) < steps.end - steps.start);
        both.map(|(place, _)| place).collect()
    }

    /// The groups of the units from place `first` on, one after the other, without end.
    ///
    /// # Panics
    ///
    /// Unless each unit is in one group, of at most 65536.
    pub fn assignments(&self, first: u64) -> Assignments {
        let (block, skip) = (first / BLOCK as u64, (first % BLOCK as u64) as usize);
        let mut drawn = vec![0; BLOCK];
        self.block(block, &mut drawn);
        Assignments { draw: self.clone(), block, drawn, next: skip }
    }

    /// The groups of the units from place `block`·[`BLOCK`] on: as many as there is room for, at most [`BLOCK`].
    ///
    /// # Panics
    ///
    /// As [`assignments`](Self::assignments).
    pub fn block(&self, block: u64, groups: &mut [u16]) {
        assert!(groups.len() <= BLOCK, "one block");
        let mut bits = self.bits(block);
        Digits::new(self.groups().expect("each unit is in one group"))
            .fill(|| word(&mut bits), groups);
    }

    /// The units of step after step, for so many of them in memory, at most 2³². Their number may be private.
    pub fn batches(&self, units: usize) -> Batches {
        assert!(units as u64 <= 1 << 32, "at most 2^32 units");
        let mut groups = Vec::new();
        if let Some(count) = self.groups() {
            groups.resize(count as usize, Vec::new());
            (0..units).zip(self.assignments(0)).for_each(|(at, g)| groups[g].push(at as u32));
        }
        let all = if groups.is_empty() { (0..units).map(|at| at as u32).collect() } else { vec![] };
        Batches { draw: self.clone(), groups, all }
    }

    fn poisson_batch(&self, step: u64, rate: f64, units: Range<u64>, mut found: impl FnMut(u64)) {
        // Exact: see the module.
        let chance = (rate * 2f64.powi(32)) as u64;
        let mut bits = self.bits(step).skip(units.start / 2);
        for place in (units.start / 2 * 2..units.end).step_by(2) {
            let word = word(&mut bits);
            for (place, half) in [(place, word & 0xffff_ffff), (place + 1, word >> 32)] {
                if half < chance && units.contains(&place) {
                    found(place);
                }
            }
        }
    }

    fn bits(&self, step: u64) -> Bits {
        self.stream.bits(step).expect("a sampler has fewer steps than a stream")
    }
}

/// A stream has 2⁶⁷ words for a step, and a step reads fewer than one for each of 2⁶⁴ places.
fn word(bits: &mut Bits) -> u64 {
    bits.word().expect("a step reads fewer words than a stream has")
}

impl PartialEq for BatchDraw {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (self.stream.secret(), other.stream.secret());
        self.sampler == other.sampler && a == b
    }
}

impl fmt::Debug for BatchDraw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchDraw").field("sampler", &self.sampler).finish_non_exhaustive()
    }
}

/// The groups of units that come one after the other.
pub struct Assignments {
    draw: BatchDraw,
    block: u64,
    drawn: Vec<u16>,
    next: usize,
}

impl Iterator for Assignments {
    type Item = usize;

    /// The group of the next unit: there is always one.
    fn next(&mut self) -> Option<usize> {
        if self.next == BLOCK {
            (self.block, self.next) = (self.block + 1, 0);
            self.draw.block(self.block, &mut self.drawn);
        }
        self.next += 1;
        Some(usize::from(self.drawn[self.next - 1]))
    }
}

/// The units of step after step, in memory.
pub struct Batches {
    draw: BatchDraw,
    /// The units of each group, where there are groups; those of the last step for Poisson samples.
    groups: Vec<Vec<u32>>,
    /// All units where there are no groups, in an order that was drawn.
    all: Vec<u32>,
}

impl Batches {
    /// The units of step t, from 0. Steps of one size must be taken in order.
    pub fn step(&mut self, t: u64) -> &[u32] {
        match self.draw.sampler {
            Sampler::FullBatch => &self.all,
            Sampler::Poisson { rate, .. } => {
                self.groups.resize(1, Vec::new());
                let (members, units) = (&mut self.groups[0], 0..self.all.len() as u64);
                members.clear();
                self.draw.poisson_batch(t, rate, units, |place| members.push(place as u32));
                members
            }
            Sampler::FixedSize { batch, .. } => {
                let mut bits = self.draw.bits(t);
                let (units, batch) = (self.all.len(), (batch as usize).min(self.all.len()));
                for place in 0..batch {
                    let other = bits.below((units - place) as u64);
                    let other = other.expect("a step reads fewer words than a stream has");
                    self.all.swap(place, place + other as usize);
                }
                &self.all[..batch]
            }
            _ => &self.groups[(t % self.groups.len() as u64) as usize],
        }
    }
}

/// A draw as bytes for workers of the run. Whoever reads them has all of it.
#[derive(Serialize, Deserialize)]
struct Wire {
    sampler: Sampler,
    secret: Vec<u8>,
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.secret.fill(0);
    }
}

impl From<BatchDraw> for Wire {
    fn from(draw: BatchDraw) -> Self {
        let BatchDraw { sampler, stream } = draw;
        Wire { sampler, secret: stream.secret().to_vec() }
    }
}

impl TryFrom<Wire> for BatchDraw {
    type Error = &'static str;

    fn try_from(wire: Wire) -> Result<Self, Self::Error> {
        // Its name and its source do not matter to a worker.
        let stream = Stream::from_secret(&wire.secret, "draw", Source::Seed(0)).ok_or("a key")?;
        Ok(wire.sampler.draw(stream))
    }
}

/// Several uniform digits from one word: step 2 of the proof.
struct Digits {
    base: u64,
    /// How many: m.
    count: usize,
    /// 2⁶⁴ mod baseᵐ: words whose low word is below it are refused.
    refused: u64,
}

/// More digits would cost more words than they save.
const MOST: usize = 8;

impl Digits {
    /// # Panics
    ///
    /// Unless `base` is within 1 to 65536.
    fn new(base: u64) -> Self {
        assert!((1..=1 << 16).contains(&base), "from 1 to 65536 groups");
        let count = (1..=MOST as u32)
            .take_while(|&m| base.checked_pow(m).is_some_and(|all| all <= 1 << 32))
            .last()
            .expect("at most 2^16");
        let all = u128::from(base.pow(count));
        Self { base, count: count as usize, refused: ((1 << 64) % all) as u64 }
    }

    #[inline]
    fn fill(&self, mut word: impl FnMut() -> u64, digits: &mut [u16]) {
        for digits in digits.chunks_mut(self.count) {
            loop {
                let mut found = [0; MOST];
                let mut low = word();
                for digit in &mut found[..self.count] {
                    let product = u128::from(low) * u128::from(self.base);
                    (*digit, low) = ((product >> 64) as u16, product as u64);
                }
                if low >= self.refused {
                    digits.copy_from_slice(&found[..digits.len()]);
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
