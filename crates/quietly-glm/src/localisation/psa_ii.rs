//! PSA-II: Phased-SGD-SC around centres that follow, with a pull that doubles.
//!
//! Su, Hu, Wang 2024, Algorithm 4, for objectives that grow like ‖w - w*‖^θ.
//!
//! Corrected: the printed parameters do not agree with the proof; these do, with exact noise in place of its bound. The
//! proof's constant 3200 leaves nothing moving; 32 is taken. The last point is returned: the theorem bounds the best of all,
//! which cannot be picked without data.
use super::{iterated_phased_sgd, phase::Phase};
use crate::problem::{Growth, ProblemParameters};

const CONSTANT: f64 = 32.0;
const MOST: u32 = 6;
/// Rows that a stage has at least.
const LEAST: usize = 4;

/// a(n): the variance of a gradient and of the noise, in units of L².
fn variance(parameters: &ProblemParameters, rows: f64) -> f64 {
    let noise =
        parameters.constants.diameter / (4.0 * parameters.constants.lipschitz * parameters.mu);
    1.0 / rows + parameters.size as f64 * noise * noise / (rows * rows)
}

/// How far the objective may be above its minimum at the start.
fn height(parameters: &ProblemParameters) -> f64 {
    parameters.constants.lipschitz * parameters.distance
}

/// How many stages there are.
pub fn stages(parameters: &ProblemParameters, rows: usize, Growth { theta, rate }: Growth) -> u32 {
    let lipschitz = parameters.constants.lipschitz;
    let inner = 8.0 * CONSTANT * lipschitz * lipschitz * variance(parameters, rows as f64)
        / rate.powf(2.0 / theta);
    let floor = inner.powf(theta / (2.0 * (theta - 1.0)));
    let wanted = ((height(parameters) / floor).log2().ceil().max(1.0) as u32).min(MOST);
    // A stage without rows would release nothing.
    wanted.min((rows / LEAST) as u32).max(1)
}

/// The phases for `rows` rows in so many stages.
pub fn phases(parameters: &ProblemParameters, rows: usize, stages: u32) -> Vec<Phase> {
    let part = rows / stages as usize;
    let lipschitz = parameters.constants.lipschitz;
    let spread = 2.0 * CONSTANT * lipschitz * lipschitz * variance(parameters, part as f64);
    let mut all = Vec::new();
    for k in 1..=stages {
        let rows = if k < stages { part } else { rows - part * (stages as usize - 1) };
        let gamma = height(parameters) / spread * 0.5_f64.powi(k as i32);
        all.extend(iterated_phased_sgd::phases(
            parameters,
            rows,
            iterated_phased_sgd::count_sc(rows),
            None,
            1.0 / gamma,
        ));
    }
    all
}
