//! Boosted AdaSSP: the residuals of one AdaSSP model are fitted by the next, all with one noisy second moment.
//!
//! Tang, Aydore, Kearns, Rho, Roth, Wang, Wang and Wu, *Improved differentially private regression via gradient boosting*,
//! 2023, [arXiv:2303.03451], Algorithm 1: w ← w + (ẐᵀẐ + λI)⁻¹(Zᵀ clip(y - Zw) + noise), a hundred times. A third of μ² each to
//! the second moment, to its least eigenvalue and to all rounds together, after the two bounds of [`adassp`](super::adassp).
//!
//! # Privacy
//!
//! As for AdaSSP: given the w that was released, a round is a sum over rows of z times a residual held to ±Y/10, on
//! the lattice of the clip R·Y/10, whose bound needs nothing of the residual. Rounds compose adaptively.
//!
//! [arXiv:2303.03451]: https://arxiv.org/abs/2303.03451
use super::{
    Run,
    adassp::{Gram, bound_share, parted, statistics},
};
use crate::{
    charge::{Charge, Stage},
    error::Error,
    plan::Plan,
    progress::{Watch, tell},
};

const RESIDUALS: &str = "products with the residuals";

/// How many rounds there are.
const ROUNDS: u64 = 100;

/// Residuals are held to this share of Y. What remains of the noise of all rounds is about that of the last, ten times as large
/// as AdaSSP's at the same clip; a tenth of the clip makes up for it, and a hundred rounds still go ten times as far.
const CLIP: f64 = 0.1;

/// The questions, where noise is `noise` for a share of one of μ².
pub(crate) fn stages(plan: &Plan, mu: f64, noise: f64) -> Vec<Stage> {
    let each = (1.0 - 2.0 * bound_share(plan, mu)) / 3.0;
    let mut stages = statistics(plan, mu, noise, each);
    let charge = Charge::sum(RESIDUALS, noise / (each / ROUNDS as f64).sqrt());
    stages.push(Stage::new("rounds", ROUNDS, vec![charge]));
    stages
}

/// The intercept and the weights, in units of the target's range.
pub(crate) fn fit(run: &mut Run<'_>, watch: &mut Watch<'_>) -> Result<(f64, Vec<f64>), Error> {
    let gram = Gram::release(run)?;
    let mut w = vec![0.0; run.plan.width + 1];
    for round in 0..ROUNDS {
        tell(watch, "round", round + 1, ROUNDS)?;
        let products = gram.products(run, RESIDUALS, &w, CLIP)?;
        w.iter_mut().zip(gram.solve(&products)).for_each(|(w, x)| *w += x);
    }
    Ok(parted(w))
}

#[cfg(test)]
mod tests {
    use quietly_accounting::Neighbours;

    use super::{super::trial, *};

    /// Least squares explains 0.80 of this target; the same rows with ε = 0.003 must not be explained, or the noise is missing.
    #[test]
    fn a_gaussian_table_is_learnt_and_little_budget_teaches_little() {
        for neighbours in [Neighbours::AddRemove, Neighbours::ReplaceOne] {
            let plan = trial::calibrated(trial::plan(20_000, 10, 3.0, neighbours), stages);
            let found = trial::r2(&plan, 1, fit);
            assert!(found > 0.78, "{found}");
        }
        let plan = trial::plan(20_000, 10, 0.003, Neighbours::AddRemove);
        let found = trial::r2(&trial::calibrated(plan, stages), 1, fit);
        assert!(found < 0.5, "{found}");
    }
}
