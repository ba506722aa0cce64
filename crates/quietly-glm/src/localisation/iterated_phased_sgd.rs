//! Iterated Phased-SGD (Algorithm 5, Theorem 14): Phased-SGD on parts that double. `phase.rs` runs a phase.
//!
//! Su, Hu, Wang 2024, Algorithm 5 and Theorem 14 (growth); with θ̄ = 2 and a pull to a centre, Algorithm 3 (Phased-SGD-SC).
//!
//! Corrected: logarithms are to base 2, and all rows are used (the published parts leave out a quarter to a half). Steps
//! follow a distance that stays, as printed, or falls as a growth condition allows; the fast rate is proven for the latter.
use super::{
    phase::Phase,
    phased_sgd::{self, BOLDNESS},
};
use crate::problem::{Growth, ProblemParameters};

/// How many parts there are for θ̄: ⌊log2 log2 n / log2 θ̄⌋, as long as the first has two rows.
pub fn count(rows: usize, theta: f64) -> u32 {
    let n = rows.max(4) as f64;
    let wanted = (n.log2().log2() / theta.log2()).floor().max(1.0);
    wanted.min((0.5 * n + 1.0).log2().floor()) as u32
}

/// How many parts Phased-SGD-SC has: ⌈log2 log2 n⌉.
pub fn count_sc(rows: usize) -> u32 {
    let n = rows.max(4) as f64;
    (n.log2().log2().ceil() as u32).clamp(1, (0.5 * n + 1.0).log2().floor() as u32)
}

/// The phases for `rows` rows in so many parts, each twice the one before.
pub fn phases(
    parameters: &ProblemParameters,
    rows: usize,
    parts: u32,
    growth: Option<Growth>,
    pull: f64,
) -> Vec<Phase> {
    let mut all = Vec::new();
    let (mut left, mut distance) = (rows, parameters.distance);
    for i in 0..parts {
        let part = (rows as f64 * f64::from(1_u32 << i) / (2f64.powi(parts as i32) - 1.0)) as usize;
        let part = if i + 1 < parts { part } else { left };
        left -= part;
        let step = BOLDNESS * parameters.step(part as f64, distance);
        let phases = phased_sgd::with_step(parameters, part, step, pull);
        // One centre for all parts.
        all.extend(
            phases.into_iter().map(|p| Phase { moves_centre: p.moves_centre && i == 0, ..p }),
        );
        if let Some(Growth { theta, rate }) = growth {
            let excess = parameters.excess(part as f64, distance);
            distance = distance.min((excess / rate).powf(1.0 / theta));
        }
    }
    all
}
