//! What a linear model gains over a constant, in two sums over rows.
//!
//! # Proof: one row in a gain
//!
//! With D = f - b, what the model f says beyond the constant b, and r = y - b, a row adds the two integers
//! round(clip(r·D, ±c)/h) and round(min(D², c)/h), where h = c/2³⁰. So |first| ≤ 2³⁰ and 0 ≤ second ≤ 2³⁰, whatever the row
//! holds: division by a number and rounding to the nearest are monotone, and c/h = 2³⁰ exactly, as h is c times a power of two.
//! What is not a number counts as 0.
//!
//! 1. *Add-remove.* The row's vector has norm at most √2·2³⁰.
//! 2. *Replace-one.* The first number moves by at most 2·2³⁰, the second by at most 2³⁰: √5·2³⁰ together. As a replaced row
//!    is priced at twice the bound, half of that is declared.
//! 3. *Sums* of 2³³ rows and more fit into 128 bits, and are held to ±2⁶² in the end, which moves no two of them apart.
use quietly_accounting::Neighbours;
use serde::{Deserialize, Serialize};

use super::{Cache, Output, Query, Rows, Sensitivity, clipped_gradients::transformed, encoded};
use crate::{link::Link, target_scaling::TargetScaling, transform::RowTransform};

/// log2 of how many steps the largest number is worth.
const BITS: i32 = 30;

/// Σ clip(r·D, ±c) and Σ min(D², c) over rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelGain {
    pub transform: RowTransform,
    pub weights: Vec<f64>,
    /// What is added to the weighted sum.
    pub intercept: f64,
    pub link: Link,
    /// Predictions are held to this, in units of the target.
    pub range: (f64, f64),
    pub unit: TargetScaling,
    /// b, in these units.
    pub base: f64,
    /// c.
    pub clip: f64,
    #[serde(with = "quietly_core::budget::relation")]
    pub neighbours: Neighbours,
}

impl ModelGain {
    pub const KIND: &str = "model-gain";

    /// h, what one step of the lattice is worth.
    fn step(&self) -> f64 {
        self.clip * 2f64.powi(-BITS)
    }

    /// The two integers of a row with this weighted sum and target.
    fn numbers(&self, score: f64, target: f64) -> [i64; 2] {
        let model = self.link.apply(self.intercept + score).clamp(self.range.0, self.range.1);
        let (beyond, rest) = (model - self.base, self.unit.encode(target) - self.base);
        let integer = |x: f64| {
            // As a cast: what is not a number gives 0.
            (x.clamp(-self.clip, self.clip) / self.step()).round() as i64
        };
        [integer(rest * beyond), integer(beyond * beyond)]
    }
}

impl Query for ModelGain {
    fn outputs(&self) -> Vec<Output> {
        let squares: f64 = match self.neighbours {
            Neighbours::AddRemove => 2.0,
            Neighbours::ReplaceOne => 1.25,
        };
        let bound = (squares.sqrt() * 2f64.powi(BITS)).next_up();
        vec![Output::Sum { len: 2, sensitivity: Sensitivity::l2(bound, self.step()) }]
    }

    fn add(&self, rows: &Rows<'_>, cache: &mut Cache, totals: &mut [i128]) {
        assert!(rows.members.is_none(), "gains over all rows");
        let cached = transformed(rows, cache, &self.transform);
        let add = |sums: &mut [i128; 2], score: f64, target: f64| {
            let numbers = self.numbers(score, target);
            sums.iter_mut().zip(numbers).for_each(|(sum, x)| *sum += i128::from(x));
        };
        for sums in cached.fold_scores(&self.weights, rows.threads, || [0; 2], add) {
            totals.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
        }
    }

    fn encode(&self) -> Vec<u8> {
        encoded(Self::KIND, self)
    }
}

#[cfg(test)]
mod tests {
    use quietly_core::random::Random;

    use super::*;

    /// Any two rows, the null record of zeros among them, under either relation; rows that meet the bound are tried, too.
    #[test]
    fn no_row_moves_a_gain_by_more_than_is_declared() {
        for (neighbours, factor) in [(Neighbours::AddRemove, 1.0), (Neighbours::ReplaceOne, 2.0)] {
            for clip in [1e-9, 0.03, 0.4, 7e30] {
                let gain = ModelGain {
                    transform: RowTransform::scaled(1, 1.0, 1.0),
                    weights: vec![0.0; 2],
                    intercept: 0.1,
                    link: Link::Linear,
                    range: (-1.0, 1.0),
                    unit: TargetScaling::ITSELF,
                    base: -0.2,
                    clip,
                    neighbours,
                };
                let [Output::Sum { sensitivity, .. }] = gain.outputs()[..] else { panic!() };
                let mut random = Random(4);
                let mut most = 0.0_f64;
                let wild = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1.0, 1.0];
                for _ in 0..20_000 {
                    let mut number = || match random.word() % 3 {
                        0 => wild[(random.word() % 6) as usize],
                        _ => 2.0 * random.number(),
                    };
                    let [a, b] =
                        [gain.numbers(number(), number()), gain.numbers(number(), number())];
                    let other = if factor == 1.0 { [0, 0] } else { b };
                    let apart = a.iter().zip(other).map(|(a, b)| ((a - b) as f64).powi(2));
                    most = most.max(apart.sum::<f64>().sqrt());
                }
                let bound = factor * sensitivity.bound;
                assert!(most <= bound, "{clip} {most} {bound}");
                assert!(clip > 1.0 || most > 0.89 * bound, "{clip} {most} {bound}");
            }
        }
    }
}
