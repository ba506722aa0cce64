//! Ranges of columns: estimated privately, or taken from a public file.
use std::ops::ControlFlow;

use quietly_accounting::Neighbours;
use quietly_core::{
    budget::Budget,
    charge::Charge,
    mechanism::{Mechanism, PlannedRelease, Stage},
    release::{BoundedSum, Histogram, Releaser, Sensitivity},
};
use quietly_data::{Block, Encoding, Private, Rule, Schema, Source};
use quietly_engine::{
    backend::{Backend, Batch, ReadSpec, run_query},
    error::Error,
    query::ValueHistogram,
};
use quietly_noise::Key;

/// Values beyond ±2^REACH count as that.
const REACH: i32 = 200;
/// Thresholds run over ±2^(k/2) for these k, and 0.
const FIRST: i32 = -40;
const LAST: i32 = 120;
/// The share of ε that a count of the column's numbers takes.
const NUMBERS: f64 = 0.1;

/// A private range for one column: from about the lowest hundredth to about the highest, rounded outwards to half powers
/// of two.
///
/// Two choices by the exponential mechanism and a count of the numbers with discrete Laplace noise share ε, without
/// any δ: pure ε-differential privacy for one row added or removed, or for the rows of one unit
/// ([`Budget::for_units_of`]). `rows`, about how many rows there are, is public;
/// the fewer there are, the farther from the ends the levels lie, so that the choice stands on enough rows.
///
/// None if the count says that fewer than a tenth of the rows hold a number: a range of the rest would be noise. Where there
/// are that many it says so less than once in a hundred columns, as Laplace noise exceeds 4 scales that seldom.
///
/// # Errors
///
/// [`Error::Data`] if the table cannot be read, [`Error::Parameter`] unless the budget is pure, under add-remove, and leaves
/// one row an ε in [0.001, 100].
pub fn private_range(
    source: &Source,
    column: &str,
    rows: u64,
    budget: Budget,
    charge: Charge,
    threads: usize,
) -> Result<Option<(f64, f64)>, Error> {
    let epsilon = epsilon_of_one_row(budget)?;
    let key = charge.spend(budget)?;
    let counts = counts(source, column, threads, &grid())?;
    Choice::new(column, rows, epsilon, key, threads).range(Histogram::new(counts))
}

/// The same for the rows of a backend, read as [`range_reading`] says.
///
/// # Errors
///
/// As [`private_range`], and whatever the backend fails with.
pub fn private_range_on(
    backend: &mut dyn Backend,
    column: &str,
    rows: u64,
    budget: Budget,
    charge: Charge,
) -> Result<Option<(f64, f64)>, Error> {
    let epsilon = epsilon_of_one_row(budget)?;
    let key = charge.spend(budget)?;
    let mut choice = Choice::new(column, rows, epsilon, key, 1);
    let query = ValueHistogram { scale: 2.0_f64.powi(REACH), thresholds: grid() };
    let counts = run_query(backend, &mut choice.releaser, &Batch::All, &query)?.histogram();
    choice.range(counts)
}

/// How rows are read for the range of one of these columns.
///
/// # Errors
///
/// [`Error::Data`] if there is no such column.
pub fn range_reading(columns: &[String], column: &str) -> Result<ReadSpec, Error> {
    Ok(ReadSpec { encoding: encoding(columns, column)?, places: false, expansion: None })
}

/// What one row may pay. Refuses a budget before a row is read.
fn epsilon_of_one_row(budget: Budget) -> Result<f64, Error> {
    let epsilon = budget.of_one_row()?.epsilon();
    let want = "from 0.001 to 100 for one row";
    Error::ensure((1e-3..=100.0).contains(&epsilon), "epsilon", want, epsilon)?;
    Error::ensure(budget.is_pure(), "delta", "0 for a range", budget.delta())?;
    let (own, other) = (Neighbours::AddRemove, budget.neighbours());
    Error::ensure(own == other, "neighbours", "add-remove for a range", other.name())?;
    Ok(epsilon)
}

/// The release of a range, and its releaser.
struct Choice {
    releaser: Releaser,
    rows: u64,
    level: f64,
    /// The names of the releases: lower end, upper end, count.
    names: [String; 3],
}

impl Choice {
    fn new(column: &str, rows: u64, epsilon: f64, key: Key, threads: usize) -> Self {
        let level = edge(rows, epsilon);
        let selection = |level: f64| {
            let each = 0.5 * (1.0 - NUMBERS) * epsilon;
            Mechanism::Exponential { add_remove: each, replace_one: each / level.max(1.0 - level) }
        };
        let charge = |purpose: &str, level| PlannedRelease {
            purpose: format!("{purpose} end of {column}"),
            mechanism: selection(level),
            times: 1,
        };
        let numbers = format!("numbers in {column}");
        let share = NUMBERS * epsilon * (1.0 - 1e-12);
        let count = PlannedRelease::laplace(&numbers, share, Neighbours::AddRemove);
        let releases = [charge("lower", level), charge("upper", 1.0 - level), count];
        let names = releases.each_ref().map(|charge| charge.purpose.clone());
        let releaser = Releaser::new(key, &[Stage::new("range", 1, releases.to_vec())], threads);
        Choice { releaser, rows, level, names }
    }

    /// The range, from how many values lie in each bin of the grid.
    fn range(mut self, counts: Histogram) -> Result<Option<(f64, f64)>, Error> {
        let (grid, releaser, [lower, upper, numbers]) = (grid(), &mut self.releaser, &self.names);
        let total = counts.total().map(|total| vec![total as i64]);
        let low = releaser.quantile(lower, self.level, counts.copy())?;
        let high = releaser.quantile(upper, 1.0 - self.level, counts)?;
        let what = BoundedSum::new(total, Sensitivity::l1(1.0, 1.0));
        let (count, scale) = releaser.sum(numbers, what)?;
        if count[0] + 4.0 * scale < 0.1 * self.rows as f64 {
            return Ok(None);
        }
        // A threshold is the upper end of its bin; the lower end of the range is one further down.
        let low = grid[low.saturating_sub(1)];
        let high = grid[high.max(1)];
        let (low, high) = (neat(low, f64::floor), neat(high, f64::ceil));
        Ok(Some(if low < high { (low, high) } else { (high.min(low) - 1.0, low.max(high) + 1.0) }))
    }
}

/// Two digits, rounded outwards.
fn neat(x: f64, round: fn(f64) -> f64) -> f64 {
    if x == 0.0 {
        return x;
    }
    let places = 1 - x.abs().log10().floor() as i32;
    let scale = 10.0_f64.powi(places.abs());
    if places >= 0 { round(x * scale) / scale } else { round(x / scale) * scale }
}

/// The least and the greatest number of a column of a **public** file.
///
/// # Errors
///
/// [`Error::Data`] if it cannot be read, [`Error::Parameter`] if it has no two different numbers.
pub fn public_range(source: &Source, column: &str, threads: usize) -> Result<(f64, f64), Error> {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    values(source, column, threads, &mut |x| {
        low = low.min(x);
        high = high.max(x);
    })?;
    Error::ensure(low < high, "column", "one with at least two different numbers", column)?;
    Ok((low, high))
}

/// How far from the ends a quantile is asked for: one in a hundred, or as many rows as the exponential mechanism needs
/// to tell 322 thresholds apart with a chance of failure of e^-6, but never beyond a quarter.
fn edge(rows: u64, epsilon: f64) -> f64 {
    let needed = 2.0 * 2.0 * (((LAST - FIRST + 1) as f64 * 2.0).ln() + 6.0) / epsilon;
    (needed / rows.max(1) as f64).clamp(0.01, 0.25)
}

fn grid() -> Vec<f64> {
    let powers: Vec<f64> = (FIRST..=LAST).map(|k| 2.0_f64.powf(0.5 * f64::from(k))).collect();
    powers.iter().rev().map(|p| -p).chain([0.0]).chain(powers.iter().copied()).collect()
}

fn counts(
    source: &Source,
    column: &str,
    threads: usize,
    grid: &[f64],
) -> Result<Private<Vec<u64>>, Error> {
    let mut counts = vec![0; grid.len() + 1];
    values(source, column, threads, &mut |x| counts[grid.partition_point(|&e| e < x)] += 1)?;
    Ok(Private::new(counts))
}

/// Every number of a column; what is missing is left out.
fn values(
    source: &Source,
    column: &str,
    threads: usize,
    each: &mut dyn FnMut(f64),
) -> Result<(), Error> {
    let (encoding, reach) = (encoding(source.columns(), column)?, 2.0_f64.powi(REACH));
    source.blocks(&encoding, threads, &mut |block: &Block| {
        block.features.iter().for_each(|x| each(x * reach));
        ControlFlow::Continue(())
    })?;
    Ok(())
}

/// One column in the widest range that scales by a power of two: encoding and decoding are exact.
fn encoding(columns: &[String], column: &str) -> Result<Encoding, Error> {
    let reach = 2.0_f64.powi(REACH);
    let rule = Rule::Range { lo: -reach, hi: reach, missing: Some(quietly_data::Missing::Drop) };
    let columns_read = vec![(column.into(), rule)];
    let missing = quietly_data::Missing::Drop;
    let schema = Schema { missing, columns: columns_read, ..Schema::default() };
    Ok(Encoding::new(&schema, columns, None, None)?)
}
