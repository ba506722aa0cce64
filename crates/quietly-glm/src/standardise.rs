//! Rows that are privately centred, scaled and bounded, so that one radius fits all directions.
//!
//! # Proof: standardisation
//!
//! Four questions, each of a sum or a count to which one row adds a bounded vector:
//!
//! 1. R₀, a norm that most rows do not exceed: a private quantile. Rows are cut to it.
//! 2. The sum of (x, x∘x, ±R₀/2, R₀/2): as |x_j| ≤ 1, ‖x∘x‖ ≤ ‖x‖ ≤ R₀, and the vector measures at most √2.5·R₀. It gives the count, the
//!    mean of every feature (shrunk as James and Stein do), its spread, and the share of the last class. Where classes are counted by
//!    a question of their own, the sum is of (x, x∘x), which measures at most √2·R₀, and the count is the declared one.
//! 3. The sum of squared norms of P(x - m), cut at 1.5·R₀: at most (1.5·R₀)².
//!
//! The rest is post-processing: which radius is taken, too. Rows become z = P(x - m)·min(1, R/‖P(x - m)‖), with P down to the spread of a feature, and R below the
//! norm of most: nearly all rows lie on a sphere, where a radius buys the most. Predictions see rows through the same map.
use quietly_core::{
    lattice::Lattice,
    mechanism::{PlannedRelease, Stage},
    release::{BoundedSum, Histogram, Releaser},
};
use quietly_data::Private;
use quietly_engine::{
    error::Error,
    histogram::{geometric_bins, tally},
    kernels::Bins,
};
use serde::{Deserialize, Serialize};

use super::{
    classes::LEAST_NOISE,
    design_matrix::{Features, Row, in_parts},
    run::RADIUS,
};

const MOMENTS: &str = "means and squares of the features";
const SIZE: &str = "squared norms of the scaled rows";

/// Shares of μ for the three questions.
const SHARES: [f64; 3] = [0.07, 0.2, 0.1];
/// The same where classes are counted apart.
const SHARES_OF_CLASSES: [f64; 3] = [0.07, 0.25, 0.1];
/// How many rows R₀ is to leave alone, about.
const LEVEL: f64 = 0.8;
/// No spread counts as less than this part of the mean one.
const LEAST_SPREAD: f64 = 0.3;
/// The radius, in root mean squares of the rows' norms.
const RADIUS_OF_RMS: f64 = 0.7;
/// The same where noise is next to nothing, and clipped rows would be the larger error.
const RADIUS_WHEN_CALM: f64 = 3.0;
/// The noise of a mean in units of the rows' norm, times the features: noise is next to nothing up to here.
const CALM: f64 = 1e-4;

/// Whether noise is next to nothing: public numbers alone decide. A row adds at most √2.5·R₀ to the sum of the features.
pub fn is_calm(rows: u64, width: usize, mu: f64) -> bool {
    2.5_f64.sqrt() / SHARES[1] * width as f64 <= CALM * rows as f64 * mu
}

/// How a row of features becomes one of bounded norm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowMap {
    /// Rows are cut to this norm first.
    pub cut: f64,
    /// What is taken from every feature.
    pub centre: Vec<f64>,
    /// What every feature is multiplied by then.
    pub scale: Vec<f64>,
    /// What features are held to then, each on its own; nothing holds them if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<f64>,
    /// And what the result is cut to.
    pub radius: f64,
}

impl RowMap {
    /// The row as the model sees it.
    pub fn apply(&self, features: &[f64]) -> Vec<f64> {
        let norm = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
        let first = (self.cut / norm(features)).min(1.0);
        let moved = features.iter().zip(&self.centre).zip(&self.scale);
        let mut z: Vec<f64> = moved.map(|((x, m), p)| self.hold((first * x - m) * p)).collect();
        let second = (self.radius / norm(&z)).min(1.0);
        z.iter_mut().for_each(|z| *z *= second);
        z
    }

    /// Whether a row is neither cut nor held nor clipped.
    pub fn keeps(&self, row: &[f64]) -> bool {
        let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
        let mut z = vec![0.0; row.len()];
        let within = norm <= self.cut && self.moved(row, &mut z).sqrt() <= self.radius;
        within && self.held.is_none_or(|most| z.iter().all(|z| z.abs() < most))
    }

    fn hold(&self, z: f64) -> f64 {
        self.held.map_or(z, |most| z.clamp(-most, most))
    }

    /// Whether it goes with so many features.
    pub fn fits(&self, width: usize) -> bool {
        let good = |x: &f64| x.is_finite();
        self.centre.len() == width
            && self.scale.len() == width
            && self.centre.iter().chain(&self.scale).all(good)
            && [self.cut, self.radius, self.held.unwrap_or(1.0)]
                .iter()
                .all(|r| *r > 0.0 && r.is_finite())
    }
}

/// What was found about the rows.
pub struct Found {
    pub map: RowMap,
    /// The share of the last class.
    pub share: f64,
}

/// The questions, where the whole budget is worth `mu` for a row that is there or not.
pub fn stages(mu: f64, neighbours: quietly_accounting::Neighbours) -> Vec<Stage> {
    stages_of("", SHARES, mu, neighbours)
}

/// The same where classes are counted apart, under names that begin with `arm`; the last question is for a radius.
pub fn stages_of_classes(
    arm: &str,
    mu: f64,
    neighbours: quietly_accounting::Neighbours,
) -> Vec<Stage> {
    stages_of(arm, SHARES_OF_CLASSES, mu, neighbours)
}

fn stages_of(
    arm: &str,
    shares: [f64; 3],
    mu: f64,
    neighbours: quietly_accounting::Neighbours,
) -> Vec<Stage> {
    let [radius, moments, size] = shares.map(|share| share * mu);
    let named = |name: &str| format!("{arm}{name}");
    let one = |name: &str, charge| Stage::new(&named(name), 1, vec![charge]);
    vec![
        one("rows", PlannedRelease::quantile(&named(RADIUS), LEVEL, radius, neighbours)),
        one("features", PlannedRelease::sum(&named(MOMENTS), (1.0 / moments).max(LEAST_NOISE))),
        one("size", PlannedRelease::sum(&named(SIZE), (1.0 / size).max(LEAST_NOISE))),
    ]
}

/// Asks them. `rows` is about how many there are; `calm` is said by [`is_calm`].
pub fn find(
    releaser: &mut Releaser,
    features: &Private<Features<'_>>,
    target: &Private<Vec<f64>>,
    (width, longest, rows): (usize, f64, f64),
    calm: bool,
) -> Result<Found, Error> {
    let asked = Asked { arm: "", features, target, width, longest, rows, sides: true };
    let moments = Moments::ask(releaser, &asked)?;
    let mut map = moments.map();
    let rms = moments.size(releaser, &asked, &map)?;
    if calm {
        (map.cut, map.radius) = (longest, RADIUS_WHEN_CALM * rms);
    } else {
        map.radius = RADIUS_OF_RMS * rms;
    }
    Ok(Found { map, share: moments.share })
}

/// The rows that are asked about, and what is public of them.
pub struct Asked<'a, 'b> {
    /// What the names of the questions begin with.
    pub arm: &'static str,
    pub features: &'a Private<Features<'b>>,
    pub target: &'a Private<Vec<f64>>,
    pub width: usize,
    pub longest: f64,
    pub rows: f64,
    /// Whether question 2 is of the number of rows and the class as well.
    pub sides: bool,
}

/// Means and squares of the features, as they were released.
pub struct Moments {
    cut: f64,
    /// The number of rows, as far as that is known.
    count: f64,
    /// The noise of a mean.
    noise: f64,
    centre: Vec<f64>,
    spread: Vec<f64>,
    /// The share of the last of two classes.
    pub share: f64,
}

impl Moments {
    /// Questions 1 and 2.
    pub fn ask(releaser: &mut Releaser, asked: &Asked<'_, '_>) -> Result<Moments, Error> {
        let Asked { arm, features, target, width, longest, rows, sides } = *asked;
        let named = |name: &str| format!("{arm}{name}");
        let threads = releaser.threads();
        let both = || features.as_ref().zip(target.as_ref());
        // 1. How long rows are.
        let radii = geometric_bins(longest, -24 - 2 * (width.max(1).ilog2() as i32), 0);
        let grid = Bins::new(radii.clone());
        let counts = both().map(|(features, target)| {
            let there = |i: &usize| !target[*i].is_nan();
            let norms: Vec<f64> =
                (0..target.len()).filter(there).map(|i| features.row(i, width).norm()).collect();
            tally(&norms, grid.bins(), |x| grid.bin(x), threads)
        });
        let cut = radii[releaser.quantile(&named(RADIUS), LEVEL, Histogram::new(counts))?];

        // 2. Means and squares.
        let size = 2 * width + if sides { 2 } else { 0 };
        let longest = if sides { 2.5_f64 } else { 2.0 }.sqrt() * cut;
        let lattice = Lattice::for_sums(longest, size);
        let sum = both().map(|(features, target)| {
            let parts = in_parts(threads, 0..target.len(), |range| {
                let mut sum = vec![0_i64; size];
                for i in range.filter(|&i| !target[i].is_nan()) {
                    let row = features.row(i, width);
                    let first = (cut / row.norm()).min(1.0);
                    let last = if sides { 0.5 * cut } else { 0.0 };
                    let squares = |(s, q): (f64, f64), (_, x): (usize, f64)| {
                        let x = first * x;
                        (s + x * x, q + x * x * x * x)
                    };
                    let (s, q) = row.entries().fold((0.0, 0.0), squares);
                    let norm = (s + q + 2.0 * last * last).sqrt()
                        * (1.0 + (width as f64 + 64.0) * f64::EPSILON);
                    let units = lattice.clipped_coefficient(1.0, norm);
                    for (j, x) in row.entries() {
                        let x = first * x;
                        sum[j] += (units * x).round() as i64;
                        sum[width + j] += (units * x * x).round() as i64;
                    }
                    if !sides {
                        continue;
                    }
                    // The number of a class may be any; what is added may not.
                    let side = target[i].clamp(-1.0, 1.0);
                    sum[2 * width] += (units * side * last).round() as i64;
                    sum[2 * width + 1] += (units * last).round() as i64;
                }
                sum
            });
            added(parts, size)
        });
        let (sums, noise) =
            releaser.sum(&named(MOMENTS), BoundedSum::new(sum, lattice.sensitivity()))?;
        // The count is known to its noise; what was declared keeps it from being absurd.
        let count = match sides {
            true => (2.0 * sums[2 * width + 1] / cut).clamp(0.25 * rows, 4.0 * rows),
            false => rows,
        };
        let noise = noise / count;
        let mut centre: Vec<f64> = sums[..width].iter().map(|s| s / count).collect();
        let square: f64 = centre.iter().map(|m| m * m).sum();
        let shrink = (1.0 - width as f64 * noise * noise / square.max(1e-300)).max(0.0);
        centre.iter_mut().for_each(|m| *m *= shrink);
        let spread = |j: usize| sums[width + j] / count - centre[j] * centre[j];
        let mut spread: Vec<f64> = (0..width).map(spread).collect();
        if !sides {
            shrink_to_mean(&mut spread, noise);
            return Ok(Moments { cut, count, noise, centre, spread, share: 0.5 });
        }
        // ±1 for the two classes: half the mean is the share's distance from one half.
        let away = (sums[2 * width] / (cut * count)).clamp(-0.5, 0.5);
        let doubt = 2.0 * noise / cut;
        let share = (0.5 + away * 0.09 / (0.09 + doubt * doubt)).clamp(0.002, 0.998);
        Ok(Moments { cut, count, noise, centre, spread, share })
    }

    /// Rows that are centred and scaled, and not clipped yet.
    pub fn map(&self) -> RowMap {
        let Moments { cut, noise, ref centre, ref spread, .. } = *self;
        let mean = (spread.iter().sum::<f64>() / spread.len() as f64).max(noise);
        let least = (LEAST_SPREAD * mean).max(2.0 * noise);
        let scale = spread.iter().map(|s| (s.max(least) / mean).sqrt().recip()).collect();
        RowMap { cut, centre: centre.clone(), scale, held: None, radius: f64::INFINITY }
    }

    /// Rows whose features are centred, in units of two standard deviations, and held to [-1, 1]: for gradients that are clipped
    /// one by one. Spreads here may be as small as the noise of their mean.
    pub fn held_map(&self, longest: f64) -> RowMap {
        let width = self.spread.len() as f64;
        let least = self.noise / width.sqrt();
        let mean = (self.spread.iter().sum::<f64>() / width).max(least);
        let least = (LEAST_SPREAD * mean).max(least);
        let scale = self.spread.iter().map(|s| 0.5 * s.max(least).sqrt().recip()).collect();
        let (centre, radius) = (self.centre.clone(), width.sqrt());
        RowMap { cut: longest, centre, scale, held: Some(1.0), radius }
    }

    /// Question 3: the root mean square of the rows' norms after `map`.
    pub fn size(
        &self,
        releaser: &mut Releaser,
        asked: &Asked<'_, '_>,
        map: &RowMap,
    ) -> Result<f64, Error> {
        let Asked { arm, features, target, width, .. } = *asked;
        let (cut, count, threads) = (self.cut, self.count, releaser.threads());
        let both = || features.as_ref().zip(target.as_ref());
        let most = 1.5 * cut;
        let lattice = Lattice::for_sums(most * most, 1);
        let sum = both().map(|(features, target)| {
            let parts = in_parts(threads, 0..target.len(), |range| {
                let (mut sum, mut row, mut z) = (0, vec![0.0; width], vec![0.0; width]);
                for i in range.filter(|&i| !target[i].is_nan()) {
                    features.row(i, width).fill(&mut row);
                    let square = map.moved(&row, &mut z).min(most * most);
                    sum += (lattice.clipped_coefficient(square, 1.0)).round() as i64;
                }
                vec![sum]
            });
            added(parts, 1)
        });
        let (squares, _) =
            releaser.sum(&format!("{arm}{SIZE}"), BoundedSum::new(sum, lattice.sensitivity()))?;
        Ok((squares[0] / count).clamp(most * most / 64.0, most * most).sqrt())
    }
}

/// Shrinks numbers with noise of this standard deviation towards their mean, as James and Stein do.
fn shrink_to_mean(numbers: &mut [f64], noise: f64) {
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let square: f64 = numbers.iter().map(|x| (x - mean).powi(2)).sum();
    let kept = (1.0 - count * noise * noise / square.max(1e-300)).max(0.0);
    numbers.iter_mut().for_each(|x| *x = mean + kept * (*x - mean));
}

/// Sums of parts, held to what the releaser takes.
fn added(parts: Vec<Vec<i64>>, size: usize) -> Vec<i64> {
    let total = |j: usize| parts.iter().map(|p| i128::from(p[j])).sum::<i128>();
    (0..size).map(|j| total(j).clamp(-(1 << 62), 1 << 62) as i64).collect()
}

impl RowMap {
    /// Writes P(x - m) to `z`; returns its squared norm.
    fn moved(&self, row: &[f64], z: &mut [f64]) -> f64 {
        let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
        let first = (self.cut / norm).min(1.0);
        let mut square = 0.0;
        for (((z, x), m), p) in z.iter_mut().zip(row).zip(&self.centre).zip(&self.scale) {
            *z = self.hold((first * x - m) * p);
            square += *z * *z;
        }
        square
    }

    /// All rows through the map, row after row.
    pub fn rows(&self, features: Features<'_>, rows: usize, threads: usize) -> Vec<f64> {
        let width = self.centre.len();
        let mut all = vec![0.0; rows * width];
        let share = rows.div_ceil(threads.max(1)).max(1);
        std::thread::scope(|scope| {
            for (part, into) in all.chunks_mut(share * width).enumerate() {
                scope.spawn(move || {
                    let mut row = vec![0.0; width];
                    for (k, z) in into.chunks_exact_mut(width).enumerate() {
                        features.row(part * share + k, width).fill(&mut row);
                        let norm = self.moved(&row, z).sqrt();
                        let second = (self.radius / norm).min(1.0);
                        z.iter_mut().for_each(|z| *z *= second);
                    }
                });
            }
        });
        all
    }
}

impl Row<'_> {
    fn norm(self) -> f64 {
        self.entries().map(|(_, x)| x * x).sum::<f64>().sqrt()
    }

    pub(super) fn fill(self, row: &mut [f64]) {
        row.fill(0.0);
        self.entries().for_each(|(j, x)| row[j] = x);
    }
}
