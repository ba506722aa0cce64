//! Boosted AdaSSP: the residuals of one AdaSSP model are fitted by the next, all with one noisy second moment.
//!
//! Tang, Aydore, Kearns, Rho, Roth, Wang, Wang and Wu, *Improved differentially private regression via gradient boosting*,
//! 2023, [arXiv:2303.03451], Algorithm 1: w ← w + (ẐᵀẐ + λI)⁻¹(Zᵀ clip(y - Zw) + noise), a hundred times. A third of μ² each to
//! the second moment, to its least eigenvalue and to all rounds together, after the two bounds of [`adassp`](super::adassp).
//!
//! # Proof: boosted AdaSSP
//!
//! As for AdaSSP: given the w that was released, a round is a sum over rows of z times a residual held to ±Y/10, on
//! the lattice of the clip R·Y/10, whose bound needs nothing of the residual. Rounds compose adaptively.
//!
//! [arXiv:2303.03451]: https://arxiv.org/abs/2303.03451
use quietly_core::{
    budget::Budget,
    mechanism::{PlannedRelease, Sampler, Stage},
    progress::{ProgressCallback, report},
};
use quietly_engine::{
    algorithm::{self, Access, Algorithm, Shape, mu},
    error::Error,
    link::Link,
};
use serde::{Deserialize, Serialize};

use super::{
    Run,
    adassp::{Gram, bound_share, parted, statistics},
    check_width, in_units,
};

const RESIDUALS: &str = "products with the residuals";

/// How many rounds there are.
const ROUNDS: u64 = 100;

/// Residuals are held to this share of Y. What remains of the noise of all rounds is about that of the last, ten times as large
/// as AdaSSP's at the same clip; a tenth of the clip makes up for it, and a hundred rounds still go ten times as far.
const CLIP: f64 = 0.1;

/// Boosted AdaSSP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoostedAdaSsp {}

impl Algorithm for BoostedAdaSsp {
    type Fitted = (f64, Vec<f64>);

    fn sampler(&self, _: Shape) -> Sampler {
        Sampler::FullBatch
    }

    /// Noise is `noise` for a share of one of μ².
    fn stages(&self, shape: Shape, budget: Budget, noise: f64) -> Vec<Stage> {
        let mu = mu(budget);
        let each = (1.0 - 2.0 * bound_share(shape, mu)) / 3.0;
        let mut stages = statistics(shape, budget, (mu, noise), each);
        let charge = PlannedRelease::sum(RESIDUALS, noise / (each / ROUNDS as f64).sqrt());
        stages.push(Stage::new("rounds", ROUNDS, vec![charge]));
        stages
    }

    fn check(&self, shape: Shape, budget: Budget) -> Result<(), Error> {
        check_width(shape)?;
        Ok(budget.unless_pure()?)
    }

    fn access(&self) -> Access {
        Access::Sums
    }

    fn fit(&self, run: algorithm::Run<'_, '_>) -> Result<(f64, Vec<f64>), Error> {
        in_units(run, Link::Linear, fit)
    }
}

/// The intercept and the weights, in units of the target's range.
fn fit(run: &mut Run<'_>, watch: &mut ProgressCallback<'_>) -> Result<(f64, Vec<f64>), Error> {
    let gram = Gram::release(run)?;
    let mut w = vec![0.0; run.shape.width + 1];
    for round in 0..ROUNDS {
        report(watch, "round", round + 1, ROUNDS)?;
        let products = gram.products(run, RESIDUALS, &w, CLIP)?;
        w.iter_mut().zip(gram.solve(&products)).for_each(|(w, x)| *w += x);
    }
    Ok(parted(w))
}

#[cfg(test)]
mod tests {
    use quietly_accounting::Neighbours;

    use super::{super::test_support, *};

    /// Least squares explains 0.80 of this target; the same rows with ε = 0.003 must not be explained, or the noise is missing.
    #[test]
    fn a_gaussian_table_is_learnt_and_little_budget_teaches_little() {
        for neighbours in [Neighbours::AddRemove, Neighbours::ReplaceOne] {
            let plan = test_support::plan(BoostedAdaSsp {}, (20_000, 10), 3.0, neighbours);
            let found = test_support::r2(&plan, 1);
            assert!(found > 0.78, "{found}");
        }
        let plan = test_support::plan(BoostedAdaSsp {}, (20_000, 10), 0.003, Neighbours::AddRemove);
        let found = test_support::r2(&plan, 1);
        assert!(found < 0.5, "{found}");
    }
}
