//! What is left of the noise of all steps, for every λ: noise drawn, no data.
use quietly::{
    Key,
    svg::{Axis, Chart, Point, Series},
};
use quietly_cli::error::Failure;
use quietly_noise::{CorrelatedNoise, Dyadic};

use super::contest::LAMBDAS;
use crate::reproduce::{
    Draw, Size,
    claim::{Check, Claim},
};

/// Lattice units of κ = 1.
const SCALE: f64 = 1000.0;

/// The root mean square of Σ ξ_s over coordinates, in units of κ, by λ and step.
pub(super) struct Walk(Vec<(f64, Vec<f64>)>);

impl Walk {
    pub(super) fn measure(draw: Draw) -> Result<Walk, Failure> {
        let (steps, width) = if draw.size == Size::Tiny { (20, 256) } else { (200, 4096) };
        let mut all = vec![];
        for (k, lambda) in LAMBDAS.into_iter().enumerate() {
            let noise = CorrelatedNoise::lambda(SCALE, Dyadic::nearest(lambda, 10)?)?;
            let stream = Key::from_seed(draw.seed).stream(&format!("walk {k}"));
            let mut sums = vec![0_i64; width];
            let mut lengths = vec![];
            for step in 0..steps {
                noise.add(&stream, step, &mut sums)?;
                let squares: f64 = sums.iter().map(|s| (*s as f64 / SCALE).powi(2)).sum();
                lengths.push((squares / width as f64).sqrt());
            }
            all.push((lambda, lengths));
        }
        Ok(Walk(all))
    }

    /// At the same κ the variance grows by (1 - λ)² a step.
    pub(super) fn claim(&self) -> Claim {
        let check = |(lambda, lengths): &(f64, Vec<f64>)| {
            let last = lengths.len() as f64;
            let wanted = 1.0 + (1.0 - lambda).powi(2) * (last - 1.0);
            let found = lengths.last().map(|l| l * l / wanted);
            Check::within(
                format!("lambda {lambda}: variance over 1 + (1 - lambda)^2 (T - 1)"),
                found,
                0.9,
                1.1,
            )
        };
        Claim::new(
            "before calibration, the noise of all steps grows by (1 - lambda)^2 a step",
            "the paper, Figure 1 (right)",
            self.0.iter().map(check).collect(),
        )
    }

    pub(super) fn picture(&self) -> (String, String, String) {
        let series = |(lambda, lengths): &(f64, Vec<f64>)| {
            let at = |(t, y): (usize, &f64)| Point { x: (t + 1) as f64, y: *y, low: *y, high: *y };
            let points = lengths.iter().enumerate().step_by(9).map(at).collect();
            Series { name: format!("lambda {lambda}"), points, reference: false }
        };
        let plain = |label: &str| Axis { log: false, ..Axis::log(label) };
        let title = "noise of all steps so far, at equal kappa".to_string();
        let (x, y) = (plain("step"), plain("standard deviation, in kappa"));
        let series = self.0.iter().map(series).collect();
        ("noise.svg".into(), title.clone(), Chart { title, x, y, series }.svg())
    }
}
