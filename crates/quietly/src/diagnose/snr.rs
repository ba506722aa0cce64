//! How strong the signal in a table is: SNR, the half distance of two class means over the spread within a class.
//!
//! # Proof: sensitivity of the class moments
//!
//! One release of five sums: Σ x over each class, Σ ‖x‖², and the number of rows of each class, for rows with ‖x‖ ≤ 1. A row
//! adds (x, 0, ‖x‖², 1, 0) or (0, x, ‖x‖², 0, 1). Let a = ‖x‖².
//!
//! * *It is there or not.* Its square is a + a² + 1 ≤ 3: the sums move by at most **√3**.
//! * *It is replaced* by another of its class, with ‖x'‖ = r ≤ s = ‖x‖: the square is at most
//!   (s + r)² + (s² - r²)² = (s + r)² (1 + (s - r)²). For given r it grows with s up to s = 1, where it is
//!   (1 + r)² (1 + (1 - r)²), which has derivative 2(1 + r)(2r² - 2r + 1) > 0 in r (the discriminant is 4 - 8): at most 4.
//! * *It is replaced* by one of the other class: a + a' + (a - a')² + 2, convex in both, so largest at a corner, where it is 2, 4
//!   or 4. It becomes a null record, or comes from one: at most 3. So the sums move by at most **2**, and half of that is what a row
//!   is charged with under replace-one, where two rows count.
//!
//! Both counts are released, though one would do if the number of rows were public: the second is free.
//!
//! On the lattice of 2⁻³⁰ entries of x are cut towards zero, and ‖x‖² is made of the integers and cut again. So the first bound holds
//! as it stands; in the second a square that was cut may be 2⁻³⁰ away, which moves 4 to at most 4 + 3·2⁻³⁰, and one unit more than
//! half of 2 pays for it.
use std::ops::ControlFlow;

use quietly_accounting::{Event, Neighbours};
use quietly_core::{
    budget::Budget,
    certificate::Certificate,
    charge::Charge,
    mechanism::{PlannedRelease, Sampler, Stage},
    release::{BoundedSum, Releaser, Sensitivity},
};
use quietly_data::{Block, Encoding, Private, Source};
use quietly_engine::{
    error::Error,
    linalg::{add, dot, dot_in_eight},
    normals::normals,
};
use serde::Serialize;

/// The one question.
const PURPOSE: &str = "class means, counts and squares";
/// Lattice units in 1.
const UNITS: f64 = (1_u64 << 30) as f64;
/// How many directions a wide table is projected to.
const DIRECTIONS: usize = 64;

/// How strong the signal is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Separation {
    /// The estimate.
    pub snr: f64,
    /// Two standard deviations below, counting noise, chance and projection.
    pub low: f64,
    /// Two standard deviations above.
    pub high: f64,
    /// How many classes there are.
    pub classes: usize,
    /// The number of rows: exact for a public table, noisy for a private one.
    pub rows: f64,
    /// To how many random directions rows were projected, if they were.
    pub directions: Option<usize>,
    /// The standard deviation of the noise of every sum; none for a public table.
    pub noise: Option<f64>,
}

/// SNR of a **public** table: its rows are used as they are. For more than two classes it is the square root of the traces of
/// the scatter between and within them.
///
/// # Errors
///
/// [`Error::Data`] if the table cannot be read or the target has no classes, [`Error::Parameter`] if a class has no rows.
pub fn public_separation(
    source: &Source,
    encoding: &Encoding,
    threads: usize,
) -> Result<Separation, Error> {
    let (width, classes) = (encoding.width(), encoding.expect_classes()?.class_count());
    let (mut sums, mut counts) = (vec![0.0; classes * width], vec![0.0; classes]);
    let mut squares = 0.0;
    each_row(source, encoding, threads, &mut |row, class| {
        add(&mut sums[class * width..][..width], row, 1.0);
        counts[class] += 1.0;
        squares += dot(row, row);
    })?;
    let n: f64 = counts.iter().sum();
    let seen = counts.iter().all(|c| *c > 0.0) && n > classes as f64;
    Error::ensure(seen, "rows of the table", "at least one of every class, and one more", n)?;
    if classes == 2 {
        let (first, last) = sums.split_at(width);
        let told =
            Told { sums: [first, last], squares, counts: [counts[0], counts[1]], noise: 0.0 };
        return Ok(Separation { noise: None, ..told.separation(None) });
    }
    let mean: Vec<f64> =
        (0..width).map(|k| sums.iter().skip(k).step_by(width).sum::<f64>() / n).collect();
    let (mut between, mut explained) = (0.0, 0.0);
    for (sum, count) in sums.chunks_exact(width).zip(&counts) {
        explained += dot(sum, sum) / count;
        between +=
            sum.iter().zip(&mean).map(|(s, m)| (s / count - m).powi(2)).sum::<f64>() * count / n;
    }
    let k = classes as f64;
    let spread = ((squares - explained) / (n - k)).max(1e-12);
    let signal = between - (k - 1.0) / n * spread;
    let chance = spread / (n * width as f64);
    let doubt =
        (4.0 * signal.max(0.0) * chance + 2.0 * (k - 1.0) * width as f64 * chance * chance).sqrt();
    Ok(Separation::of(signal, spread, doubt, Separation { classes, rows: n, ..EMPTY }))
}

const EMPTY: Separation = Separation {
    snr: 0.0,
    low: 0.0,
    high: 0.0,
    classes: 2,
    rows: 0.0,
    directions: None,
    noise: None,
};

/// SNR of a private table with two classes, by one release within `budget`.
///
/// Rows are divided by the root of their width, so that their norm is at most 1. `rows`, about how many there are, is public: it
/// decides with the budget whether so many features would drown in noise, and are projected to 64 random directions first.
/// A projected row that is longer than 1 is cut.
///
/// # Errors
///
/// [`Error::Accounting`] if the budget is refused, [`Error::Data`] if the table cannot be read or the target has no classes,
/// [`Error::Parameter`] if it has more than two. No row can cause an error.
pub fn private_separation(
    source: &Source,
    encoding: &Encoding,
    rows: u64,
    unit: &str,
    budget: Budget,
    charge: Charge,
    threads: usize,
) -> Result<(Separation, Certificate), Error> {
    let classes = encoding.expect_classes()?.class_count();
    let want = "2 for a private estimate; public tables may have more";
    Error::ensure(classes == 2, "number of classes", want, classes)?;
    let plan = Release::plan(encoding.width(), rows, budget.of_one_row()?)?;
    let key = charge.spend(budget)?;
    let mut sums = plan.layout.sums();
    each_row(source, encoding, threads, &mut |row, class| plan.layout.add(&mut sums, row, class))?;
    let origin = key.source();
    let mut releaser = Releaser::new(key, &plan.stages, threads);
    let separation = plan.run(Private::new(sums), &mut releaser)?;
    let mut public = vec![
        "the schema: names, ranges and values of the columns".into(),
        format!("that there are about {rows} rows"),
    ];
    if plan.layout.directions.is_some() {
        public.push(format!("{DIRECTIONS} random directions that do not depend on the table"));
    }
    let certificate =
        Certificate::new(budget, Sampler::FullBatch, &plan.stages, public, unit, Some(origin))?;
    Ok((separation, certificate))
}

/// Hands every row and its class to `each`.
fn each_row(
    source: &Source,
    encoding: &Encoding,
    threads: usize,
    each: &mut dyn FnMut(&[f64], usize),
) -> Result<(), Error> {
    source.blocks(encoding, threads, &mut |block: &Block| {
        let rows = block.features.chunks_exact(block.width.max(1)).zip(&block.target);
        rows.for_each(|(row, class)| each(row, *class as usize));
        ControlFlow::Continue(())
    })?;
    Ok(())
}

/// What will be asked.
pub(crate) struct Release {
    pub(crate) layout: Layout,
    pub(crate) stages: Vec<Stage>,
    neighbours: Neighbours,
}

impl Release {
    pub(crate) fn plan(width: usize, rows: u64, budget: Budget) -> Result<Release, Error> {
        budget.unless_pure()?;
        let (neighbours, epsilon, delta) = (budget.neighbours(), budget.epsilon(), budget.delta());
        let found = quietly_accounting::calibrate(Event::gaussian, neighbours, epsilon, delta)?;
        let noise = found.noise_multiplier;
        let stages = vec![Stage::new("signal", 1, vec![PlannedRelease::sum(PURPOSE, noise)])];
        // Noise alone has ‖v‖² off by √(D/8)·τ²; projected, ‖v‖² is off by a fifth of itself. The latter is better where the former
        // is larger than a fifth of a middling signal.
        let tau = noise * bound(neighbours) / UNITS * 8.0_f64.sqrt() / rows.max(1) as f64;
        let drowned = (width as f64 / 8.0).sqrt() * tau * tau > 0.01;
        let layout = Layout::new(width, drowned && width > 2 * DIRECTIONS)?;
        Ok(Release { layout, stages, neighbours })
    }

    /// The release, and what follows from it.
    pub(crate) fn run(
        &self,
        sums: Private<Vec<i128>>,
        releaser: &mut Releaser,
    ) -> Result<Separation, Error> {
        let sum = sums.map(|sums| sums.into_iter().map(quietly_core::lattice::clamped).collect());
        let what = BoundedSum::new(sum, Sensitivity::l2(bound(self.neighbours), 1.0 / UNITS));
        let (noisy, noise) = releaser.sum(PURPOSE, what)?;
        let (means, rest) = noisy.split_at(2 * self.layout.size());
        let (first, last) = means.split_at(self.layout.size());
        let told =
            Told { sums: [first, last], squares: rest[0], counts: [rest[1], rest[2]], noise };
        Ok(told.separation(self.layout.directions.as_ref().map(|_| DIRECTIONS)))
    }
}

/// What a row is charged with, in lattice units: √3, or half of the 2 that two rows differ by.
pub(crate) fn bound(neighbours: Neighbours) -> f64 {
    match neighbours {
        Neighbours::AddRemove => 3.0_f64.sqrt() * (1.0 + f64::EPSILON) * UNITS,
        Neighbours::ReplaceOne => UNITS + 1.0,
    }
}

/// How a row becomes integers.
pub(crate) struct Layout {
    width: usize,
    /// Random directions, one after the other.
    directions: Option<Vec<f64>>,
}

impl Layout {
    pub(crate) fn new(width: usize, projected: bool) -> Result<Layout, Error> {
        let draw = || {
            // Public, and the same for every table.
            let stream = quietly_noise::Key::from_seed(64).stream("directions");
            let mut all = normals(&stream, 0, 32, DIRECTIONS * width)?;
            let scale = (DIRECTIONS as f64).sqrt();
            all.iter_mut().for_each(|x| *x /= scale);
            Ok::<_, Error>(all)
        };
        Ok(Layout { width, directions: if projected { Some(draw()?) } else { None } })
    }

    fn size(&self) -> usize {
        if self.directions.is_some() { DIRECTIONS } else { self.width }
    }

    pub(crate) fn sums(&self) -> Vec<i128> {
        vec![0; 2 * self.size() + 3]
    }

    /// Adds a row of features within [-1, 1].
    pub(crate) fn add(&self, sums: &mut [i128], row: &[f64], class: usize) {
        let size = self.size();
        let mut x: Vec<f64> = match &self.directions {
            Some(all) => {
                all.chunks_exact(self.width).map(|along| dot_in_eight(along, row)).collect()
            }
            None => row.to_vec(),
        };
        let root = (self.width as f64).sqrt();
        let norm = dot(&x, &x).sqrt() / root;
        // A sum of a million squares is right to 1e-10.
        let scale = UNITS / (root * norm.max(1.0) * (1.0 + 1e-9));
        x.iter_mut().for_each(|x| *x = (*x * scale).trunc());
        let square: i128 = x.iter().map(|x| (*x as i128).pow(2)).sum();
        let one = UNITS as i128;
        // Never so; but the proof does not have to trust floating point.
        if square > one * one {
            return;
        }
        let class = class.min(1);
        for (sum, x) in sums[class * size..].iter_mut().zip(&x) {
            *sum += *x as i128;
        }
        sums[2 * size] += square / one;
        sums[2 * size + 1 + class] += one;
    }
}

/// The five sums, noisy or not.
struct Told<'a> {
    sums: [&'a [f64]; 2],
    squares: f64,
    counts: [f64; 2],
    noise: f64,
}

impl Told<'_> {
    fn separation(&self, directions: Option<usize>) -> Separation {
        let [first, last] = self.sums;
        let [a, b] = self.counts.map(|count| count.max(1.0));
        let (d, variance) = (first.len() as f64, self.noise * self.noise);
        let apart: f64 = first.iter().zip(last).map(|(x, y)| (x / a - y / b).powi(2)).sum();
        let noise = variance * (1.0 / (a * a) + 1.0 / (b * b));
        // What a squared noisy sum is too long by is known.
        let explained =
            (dot(first, first) - d * variance) / a + (dot(last, last) - d * variance) / b;
        let spread = ((self.squares - explained) / (a + b - 2.0).max(1.0)).max(1e-12);
        // Means of a few rows are apart by chance.
        let chance = spread * (1.0 / a + 1.0 / b);
        let signal = 0.25 * (apart - d * noise - chance);
        let each = noise + chance / d;
        let mut doubt = signal.max(0.0) * each + 0.125 * d * each * each;
        if let Some(directions) = directions {
            doubt += 2.0 / directions as f64 * signal * signal;
        }
        let rows = self.counts.iter().sum();
        let about = Separation { rows, directions, noise: Some(self.noise), ..EMPTY };
        Separation::of(signal, spread, doubt.sqrt(), about)
    }
}

impl Separation {
    /// From ‖v‖² and the trace of the covariance within a class, and the standard deviation of the former.
    fn of(signal: f64, spread: f64, doubt: f64, about: Separation) -> Separation {
        let root = |square: f64| (square.max(0.0) / spread).sqrt().min(1e6);
        let (low, high) = (root(signal - 2.0 * doubt), root(signal + 2.0 * doubt));
        Separation { snr: root(signal), low, high, ..about }
    }

    /// Whether there is more than noise and chance could have made.
    pub fn stands_out(&self) -> bool {
        self.low > 0.0
    }
}

#[cfg(test)]
mod tests;
