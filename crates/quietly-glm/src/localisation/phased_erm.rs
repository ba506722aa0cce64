//! Phased-ERM: each phase minimises, near where the one before ended.
//!
//! Su, Hu, Wang 2024, Algorithm 6 (Feldman, Koren, Talwar 2020, Algorithm 3).
//!
//! Corrected: what is found is certified to lie near the minimiser for every table, and the noise covers that; the
//! published noise covers a third of what its tolerance allows. Δ is half of Phased-SGD's at the same step: so is G in it.
use super::{
    phase::Phase,
    phased_sgd::{BOLDNESS, count, sizes},
};
use crate::{constants::Constants, problem::ProblemParameters};

/// The phases for `rows` rows.
pub fn phases(parameters: &ProblemParameters, rows: usize) -> Vec<Phase> {
    let Constants { diameter, .. } = parameters.constants;
    let half = Constants { diameter: 0.5 * diameter, ..parameters.constants };
    let step = BOLDNESS
        * ProblemParameters { constants: half, ..*parameters }
            .step(rows as f64, parameters.distance);
    let phase = |(i, rows): (usize, usize)| Phase {
        rows,
        step: step * 0.25_f64.powi(i as i32 + 1),
        batch: None,
        pull: 0.0,
        ball: None,
        moves_centre: true,
    };
    sizes(rows, count(rows)).into_iter().enumerate().map(phase).collect()
}
