//! Means and standard deviations of columns, privately.
//!
//! # Proof: sensitivity √(1 + 5d/4)
//!
//! One release: with every number moved to x in [-1, 1] by its public range, a row adds (1, x_1, x_1² - ½, x_2, x_2² - ½, …). For each
//! column x² + (x² - ½)² = x⁴ + ¼ ≤ 5/4, so that with d columns no row's vector is longer than √(1 + 5d/4). (Squares without
//! their ½ would make that √(1 + 2d).)
use quietly_core::{
    budget::Budget,
    certificate::Certificate,
    charge::Charge,
    mechanism::Sampler,
    progress::{Progress, ProgressCallback},
    release::Sensitivity,
};
use quietly_data::{Encoding, Kind, Source};
use quietly_engine::error::Error;
use serde::{Deserialize, Serialize};

use crate::{
    evaluate::UNITS,
    one_sum::{OneSum, blocks},
};

const PURPOSE: &str = "sums and sums of squares";

/// The mean and the standard deviation of a column, with noise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Moments {
    /// The column.
    pub column: String,
    /// Its public range: whatever lies beyond counts as its end.
    pub range: (f64, f64),
    /// About the mean.
    pub mean: f64,
    /// About the standard deviation, and never so small that it would be noise.
    pub deviation: f64,
    /// The standard deviation of the noise in the mean.
    pub noise: f64,
}

impl Moments {
    /// The moments of all features of `encoding`, within `budget`, and what they cost.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if a feature is not a number, [`Error::Accounting`] if the budget is refused, [`Error::Data`] if the
    /// table cannot be read, [`Error::Interrupted`] if `watch` said so.
    pub fn of(
        source: &Source,
        encoding: &Encoding,
        unit_of_privacy: &str,
        budget: Budget,
        charge: Charge,
        threads: usize,
        watch: &mut ProgressCallback<'_>,
    ) -> Result<(Vec<Self>, Certificate), Error> {
        let ranges = ranges(encoding)?;
        let public = vec!["the schema".into(), "the names of the columns".into()];
        let plan = OneSum::plan_or_plain(PURPOSE, budget)?;
        let (bytes, key) = (source.bytes(), charge.spend(budget)?);
        if !budget.is_private() {
            let mut sums = vec![0.0; 1 + 2 * ranges.len()];
            read(source, encoding, threads, bytes, watch, &mut |row| add(&mut sums, row, |x| x))?;
            let nothing =
                Certificate::new(budget, Sampler::FullBatch, &[], public, unit_of_privacy, None);
            return Ok((moments(encoding, &ranges, &sums, 0.0), nothing?));
        }
        let mut sums = vec![0_i128; 1 + 2 * ranges.len()];
        // Cut towards zero, so that none exceeds its bound.
        let whole = |x: f64| (x * UNITS) as i128;
        read(source, encoding, threads, bytes, watch, &mut |row| add(&mut sums, row, whole))?;
        let sensitivity = Sensitivity::l2(bound(ranges.len()), 1.0 / UNITS);
        let (noisy, noise, certificate) =
            plan.release(sums, sensitivity, (key, threads), public, unit_of_privacy)?;
        Ok((moments(encoding, &ranges, &noisy, noise), certificate))
    }
}

/// What no row's vector measures more than, in lattice units.
fn bound(columns: usize) -> f64 {
    (1.0 + 1.25 * columns as f64).sqrt() * UNITS
}

/// The range of every feature.
fn ranges(encoding: &Encoding) -> Result<Vec<(f64, f64)>, Error> {
    let range = |feature: &quietly_data::Feature| match feature.kind {
        Kind::Number { centre, half_width } => Ok((centre, half_width)),
        _ => {
            let want = "numbers with a range: values of a category have no mean";
            Err(Error::Parameter { name: "columns", want, got: format!("{:?}", feature.column) })
        }
    };
    encoding.features().iter().map(range).collect()
}

fn read(
    source: &Source,
    encoding: &Encoding,
    threads: usize,
    bytes: u64,
    watch: &mut ProgressCallback<'_>,
    each: &mut dyn FnMut(&[f64]),
) -> Result<(), Error> {
    blocks(source, encoding, threads, &mut |block| {
        block.features.chunks_exact(block.width.max(1)).for_each(&mut *each);
        watch(Progress { doing: "reading", done: block.position, of: bytes })
    })
}

/// Adds a row.
fn add<T: std::ops::AddAssign>(sums: &mut [T], row: &[f64], number: impl Fn(f64) -> T) {
    sums[0] += number(1.0);
    for (pair, x) in sums[1..].chunks_exact_mut(2).zip(row) {
        pair[0] += number(*x);
        pair[1] += number(x * x - 0.5);
    }
}

/// What follows from the sums.
fn moments(encoding: &Encoding, ranges: &[(f64, f64)], sums: &[f64], noise: f64) -> Vec<Moments> {
    let n = sums[0].max(1.0);
    let each = encoding.features().iter().zip(ranges).zip(sums[1..].chunks_exact(2));
    each.map(|((feature, (centre, half)), pair)| {
        let mean = (pair[0] / n).clamp(-1.0, 1.0);
        let square = (pair[1] / n + 0.5).clamp(0.0, 1.0);
        // A variance below twice its own noise is not known, and one of 0 would divide by 0.
        let least = (2.0 * noise / n).clamp(1e-12, 1.0);
        let deviation = (square - mean * mean).clamp(least, 1.0).sqrt();
        Moments {
            column: feature.column.clone(),
            range: (centre - half, centre + half),
            mean: centre + half * mean,
            deviation: half * deviation,
            noise: half * noise / n,
        }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use std::{ops::ControlFlow, sync::Arc};

    use arrow_array::{ArrayRef, Float64Array, RecordBatch};
    use arrow_schema::{DataType, Field, Schema as ArrowSchema};
    use quietly_data::Schema;

    use super::*;

    fn table(columns: &[Vec<f64>]) -> Source {
        let arrays: Vec<ArrayRef> =
            columns.iter().map(|c| Arc::new(Float64Array::from(c.clone())) as ArrayRef).collect();
        let names: Vec<String> = (0..columns.len()).map(|k| format!("x{k}")).collect();
        let fields: Vec<Field> =
            names.iter().map(|n| Field::new(n, DataType::Float64, true)).collect();
        let batch = RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), arrays).unwrap();
        Source::in_memory(names, vec![batch]).unwrap()
    }

    fn found(source: &Source, budget: Budget, seed: u64) -> (Vec<Moments>, Certificate) {
        let text = "rows = 5000\n[columns]\n\"*\" = { range = [0, 10] }";
        let encoding =
            Encoding::new(&Schema::parse(text).unwrap(), source.columns(), None, None).unwrap();
        let quiet = &mut |_| ControlFlow::Continue(());
        let charge = Charge::without_ledger(quietly_noise::Key::from_seed(seed));
        Moments::of(source, &encoding, "row", budget, charge, 2, quiet).unwrap()
    }

    fn columns() -> Vec<Vec<f64>> {
        let x = |k: u32| f64::from(k % 1000) / 100.0;
        let y = |k: u32| 3.0 + f64::from(k % 7) / 7.0;
        vec![(0..5000).map(x).collect(), (0..5000).map(y).collect(), vec![4.0; 5000]]
    }

    #[test]
    fn without_noise_they_are_the_plain_ones_and_with_noise_near_them() {
        let columns = columns();
        let plain = |x: &[f64]| {
            let n = x.len() as f64;
            let mean = x.iter().sum::<f64>() / n;
            (mean, (x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt())
        };
        let source = table(&columns);
        let exact = found(&source, Budget::new(f64::INFINITY, 1e-6).unwrap(), 1);
        let (noisy, certificate) = found(&source, Budget::new(1.0, 1e-6).unwrap(), 1);
        assert!(exact.1.test_only && certificate.is_consistent() && certificate.epsilon <= 1.0);
        for ((column, exact), noisy) in columns.iter().zip(&exact.0).zip(&noisy) {
            let (mean, deviation) = plain(column);
            assert!((exact.mean - mean).abs() < 1e-9);
            assert!((exact.deviation - deviation).abs() < 1e-5, "{exact:?}");
            // Five times the noise of the mean: once in a million draws, and the seed is fixed.
            assert!((noisy.mean - mean).abs() < 5.0 * noisy.noise && noisy.noise > 0.0);
            assert!(noisy.deviation > 0.0 && noisy.deviation.is_finite());
        }
    }

    /// The longest vector that one row can add, over a grid of three columns: within the bound, and close to it.
    #[test]
    fn no_row_adds_more_than_is_charged() {
        let mut most = 0.0_f64;
        for k in 0..21_u32.pow(3) {
            let at = |j: u32| f64::from(k / 21_u32.pow(j) % 21) / 10.0 - 1.0;
            let mut sums = vec![0_i128; 7];
            add(&mut sums, &[at(0), at(1), at(2)], |x| (x * UNITS) as i128);
            most = most.max(sums.iter().map(|s| (*s as f64).powi(2)).sum::<f64>().sqrt());
        }
        assert!(most <= bound(3) && most > 0.999_999 * bound(3), "{most} {}", bound(3));
    }

    /// No table, however odd, decides whether there is an answer.
    #[test]
    fn odd_tables_have_moments_too() {
        for odd in [vec![], vec![f64::NAN; 9], vec![f64::INFINITY, -1e300], vec![5.0]] {
            let source = table(&[odd]);
            let (moments, _) = found(&source, Budget::new(0.1, 1e-6).unwrap(), 3);
            assert!(moments[0].mean.is_finite() && moments[0].deviation > 0.0);
        }
    }
}
