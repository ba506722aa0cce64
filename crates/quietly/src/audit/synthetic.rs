//! Synthetic tables for audits.
use quietly_data::Table;
use quietly_engine::{error::Error, link::Link};
use quietly_noise::{Bits, Key, Stream};

use crate::plan::Plan;

/// Features are normal, and public knowledge says that they lie within this of zero.
const REACH: f64 = 6.0;
/// The same for the target.
const RANGE: f64 = 8.0;

/// x ~ N(0, I), and y = <x, w> + z or max(<x, w>, 0) + z with z ~ N(0, 1) and |w| = 1.
pub(super) struct World {
    link: Link,
    /// w, for features in units of their range.
    pub(super) truth: Vec<f64>,
    rows: Stream,
}

/// Who is drawn.
#[derive(Clone, Copy)]
pub(super) enum Group {
    Members,
    Strangers,
    Public,
}

/// Rows, in units of their ranges.
#[derive(Clone, Default)]
pub(super) struct Rows {
    width: usize,
    pub(super) features: Vec<f64>,
    pub(super) target: Vec<f64>,
}

impl World {
    pub(super) fn new(plan: &Plan, key: &Key) -> Result<Self, Error> {
        let mut bits = key.stream("true weights").bits(0)?;
        let mut truth: Vec<f64> =
            (0..plan.width()).map(|_| normal(&mut bits)).collect::<Result<_, _>>()?;
        let length = truth.iter().map(|w| w * w).sum::<f64>().sqrt();
        truth.iter_mut().for_each(|w| *w *= REACH / length);
        Ok(World { link: plan.link(), truth, rows: key.stream("rows") })
    }

    /// So many people, others for each group and time.
    pub(super) fn draw(&self, group: Group, time: u64, rows: u64) -> Result<Rows, Error> {
        let mut bits = self.rows.bits(3 * time + group as u64)?;
        let width = self.truth.len();
        let mut all = Rows { width, ..Rows::default() };
        for _ in 0..rows {
            for _ in 0..width {
                let x = (normal(&mut bits)? / REACH).clamp(-1.0, 1.0);
                all.features.push(x);
            }
            let start = all.features.len() - width;
            let target = self.mean(&all.features[start..]) + normal(&mut bits)?;
            all.target.push(target);
        }
        Ok(all)
    }

    /// <x, w>.
    fn linear(&self, x: &[f64]) -> f64 {
        x.iter().zip(&self.truth).map(|(x, w)| x * w).sum()
    }

    fn mean(&self, x: &[f64]) -> f64 {
        match self.link {
            Link::Linear => self.linear(x),
            Link::Relu => self.linear(x).max(0.0),
            other => other.not_least_squares(),
        }
    }

    /// The public range of the target.
    pub(super) fn range(&self) -> (f64, f64) {
        (-RANGE, RANGE)
    }

    /// (y - f(<x, w>)) f'(<x, w>) <x, ŵ - w>: how much a row agrees with the model's error. Members score high.
    pub(super) fn scores(&self, rows: &Rows, intercept: f64, weights: &[f64]) -> Vec<f64> {
        let score = |(x, y): (&[f64], &f64)| {
            let inactive = self.link == Link::Relu && self.linear(x) <= 0.0;
            let error = intercept
                + x.iter()
                    .zip(weights)
                    .zip(&self.truth)
                    .map(|((x, a), w)| x * (a - w))
                    .sum::<f64>();
            if inactive { 0.0 } else { (y - self.mean(x)) * error }
        };
        rows.features.chunks(rows.width).zip(&rows.target).map(score).collect()
    }

    /// A row whose first feature is at an end of its range, and the others in the middle of theirs.
    pub(super) fn row_at_the_bound(&self, side: f64) -> Vec<f64> {
        let mut row = vec![0.0; self.truth.len()];
        row[0] = side;
        row
    }

    /// A target at an end of its range.
    pub(super) fn target_at_the_bound(&self, side: f64) -> f64 {
        side * RANGE
    }
}

impl Rows {
    pub(super) fn push(&mut self, features: &[f64], target: f64) {
        self.features.extend_from_slice(features);
        self.target.push(target);
    }

    pub(super) fn into_table(self) -> Table {
        Table::new(self.width, self.features, self.target)
    }
}

/// Box and Muller's: made-up people need no exact law.
fn normal(bits: &mut Bits) -> Result<f64, Error> {
    let mut uniform = || bits.word().map(|w| (w >> 11) as f64 / (1_u64 << 53) as f64);
    let (u, v) = (1.0 - uniform()?, uniform()?);
    Ok((-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos())
}
