//! The cost of releases under pure differential privacy, δ = 0.
use quietly_accounting::Neighbours;

use super::{Mechanism, PlannedRelease, Sampler, Stage, choice, validity::check_stages};

impl PlannedRelease {
    /// A sum released once in each step with Laplace noise, which costs a row `epsilon` under `neighbours`.
    pub fn laplace(purpose: &str, epsilon: f64, neighbours: Neighbours) -> Self {
        // Not below: a larger scale is the safe side.
        let scale = moves(neighbours) / epsilon * (1.0 + f64::EPSILON);
        PlannedRelease {
            purpose: purpose.into(),
            mechanism: Mechanism::Laplace { scale },
            times: 1,
        }
    }

    /// A quantile released once in each step, which takes `epsilon` of the budget under `neighbours`.
    pub fn pure_quantile(purpose: &str, level: f64, epsilon: f64, neighbours: Neighbours) -> Self {
        let mechanism = choice(level, epsilon, neighbours);
        PlannedRelease { purpose: purpose.into(), mechanism, times: 1 }
    }

    /// The ε for which this release alone is ε-differentially private; `None` if it has a δ.
    ///
    /// A plan may be a file, and a file may say anything: what is not above 0 and finite has no cost.
    fn pure_epsilon(&self, neighbours: Neighbours) -> Option<f64> {
        let price = match (self.mechanism, neighbours) {
            // P(k) ∝ e^(-|k|/t): ratios are at most e^(‖a - b‖₁/t), and t is no less than scale times one row.
            (Mechanism::Laplace { scale }, _) => Some(up(moves(neighbours) / scale)),
            (Mechanism::Exponential { add_remove, .. }, Neighbours::AddRemove) => Some(add_remove),
            (Mechanism::Exponential { replace_one, .. }, Neighbours::ReplaceOne) => {
                Some(replace_one)
            }
            (Mechanism::ApproximateDp { epsilon, delta: 0.0 }, _) => Some(epsilon),
            (
                Mechanism::ApproximateDp { .. }
                | Mechanism::Gaussian { .. }
                | Mechanism::CorrelatedGaussian { .. }
                | Mechanism::ObjectivePerturbation { .. },
                _,
            ) => None,
        };
        price.filter(|e| *e > 0.0 && e.is_finite())
    }
}

/// The distance of neighbouring sums, over what one row can add.
fn moves(neighbours: Neighbours) -> f64 {
    match neighbours {
        Neighbours::AddRemove => 1.0,
        Neighbours::ReplaceOne => 2.0,
    }
}

/// Not below x ≥ 0, which is the result of one operation.
pub(super) fn up(x: f64) -> f64 {
    x * (1.0 + 2.0 * f64::EPSILON)
}

/// The ε for which a plan's stages are ε-differentially private, δ being 0, not below; none if no theorem here says so.
///
/// Pure ε's add up over releases and steps. Where each row is in one part, it meets one step of one stage and
/// the largest ε counts: neighbours agree on all other parts (for [`Sampler::Partition`] given the draw of the parts). There is no
/// price here for secret samples.
pub fn pure_epsilon(sampler: Sampler, stages: &[Stage], neighbours: Neighbours) -> Option<f64> {
    let apart = match sampler {
        Sampler::FullBatch => false,
        Sampler::Partition { .. } | Sampler::OrderedPartition { .. } => true,
        _ => return None,
    };
    check_stages(sampler, stages).ok()?;
    let (mut sum, mut largest) = (0.0, 0.0_f64);
    for stage in stages {
        let mut step = 0.0;
        for charge in &stage.releases {
            step = up(step + up(charge.pure_epsilon(neighbours)? * charge.times as f64));
        }
        if apart && !stage.all_rows {
            largest = largest.max(step);
        } else {
            sum = up(sum + up(step * stage.steps as f64));
        }
    }
    Some(up(sum + largest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: a stage over all rows is added, of parts the largest ε counts, and what is not pure has no price.
    #[test]
    fn pure_epsilons_add_up_and_parts_do_not() {
        use Neighbours::{AddRemove, ReplaceOne};
        let charge = |purpose: &str, epsilon| PlannedRelease::laplace(purpose, epsilon, ReplaceOne);
        let stages = [
            Stage::new("all", 2, vec![PlannedRelease::approximate_dp("a", 0.25, 0.0)])
                .of_all_rows(),
            Stage::new("parts", 3, vec![charge("b", 0.125), charge("c", 0.5)]),
            Stage::new("more", 1, vec![charge("d", 0.25)]),
        ];
        let price = |sampler, neighbours| pure_epsilon(sampler, &stages, neighbours);
        let near = |found: Option<f64>, right: f64| {
            let found = found.unwrap();
            assert!(found >= right && found < right * (1.0 + 1e-13), "{found} {right}");
        };
        near(price(Sampler::OrderedPartition { steps: 4 }, ReplaceOne), 0.5 + 0.625);
        near(price(Sampler::FullBatch, ReplaceOne), 0.5 + 3.0 * 0.625 + 0.25);
        // A row that joins or leaves moves a sum half as far.
        near(price(Sampler::FullBatch, AddRemove), 0.5 + 0.5 * (3.0 * 0.625 + 0.25));
        assert_eq!(price(Sampler::Poisson { steps: 4, rate: 0.5 }, AddRemove), None);
        for charge in
            [PlannedRelease::sum("g", 1.0), PlannedRelease::approximate_dp("p", 1.0, 1e-9)]
        {
            let stages = [Stage::new("one", 1, vec![charge])];
            assert_eq!(pure_epsilon(Sampler::FullBatch, &stages, AddRemove), None);
        }
    }
}
