//! TukeyEM: many small least-squares fits, and a private point of high Tukey depth among them.
//!
//! Amin, Joseph, Ribero and Vassilvitskii, *Easy differentially private linear regression*, ICLR 2023, [arXiv:2208.07353].
//! No clip, no scale, no bound on weights is asked for: about 1000 models are fitted to as many groups of rows, and one point
//! is drawn by the exponential mechanism among those with at least a quarter of the models on either side of every
//! coordinate, after a test that this set is stable. What fails the test is answered by a model that has
//! nothing of the data in it: no weights, and the middle of the target's range.
//!
//! # Proof: TukeyEM
//!
//! (ε, δ) under add-remove **and** under replace-one. Each row draws its group uniformly and on its own. Hold the draws of all
//! other rows, which have one law in both tables: a row that joins, leaves or is replaced (its copy in the same group)
//! changes the rows of one group and so **one model**; a model is a function of its group's rows alone, whatever
//! arithmetic made it. [`deep`](super::deep) proves that its answer is (ε, δ)-indistinguishable where one of m integer models
//! is exchanged, and m is public. A mixture over draws with a common law keeps (ε, δ).
//!
//! The paper cuts a shuffled table into groups of equal size; there a row that joins may move others between groups, and
//! its statement is for replace-one only. Its volumes are products of floating-point lengths and its models real
//! numbers; here models are points of a public integer lattice, so that no low bits of a model can leak.
//!
//! [arXiv:2208.07353]: https://arxiv.org/abs/2208.07353
use quietly_accounting::Neighbours;
use quietly_core::{
    batch_sampling::BatchDraw,
    budget::Budget,
    lattice::Lattice,
    mechanism::{Mechanism, PlannedRelease, Sampler, Stage},
    privacy_plan::PrivacyPlan,
    progress::{ProgressCallback, report},
    release::ApproximateDp,
    rows_used,
};
use quietly_data::Table;
use quietly_engine::{
    algorithm::{self, Access, Algorithm, Planned, Shape, rows_used},
    error::Error,
    kernels::{Affine, LinearQuery, Rows, allocate, second_moment},
    linalg::{Square, solve},
    link::Link,
    target_scaling::TargetScaling,
};
use serde::{Deserialize, Serialize};

use super::{
    Run, adassp, check_width, in_units,
    tukey_depth::{self, EDGE},
};
use crate::full_batch::CONSTANT;

const DEEP: &str = "point of high Tukey depth among the models";

/// As many models as the paper takes, where rows allow; more where ε is below one, as the test needs m·ε of them.
const MODELS: f64 = 1000.0;

/// A coordinate's lattice: weights from -1024 to 1024 in steps of 2⁻³⁰, for features and targets within [-1, 1].
const STEP: f64 = 1.0 / (1 << 30) as f64;

/// Added to the second moment of a group, so that one with too few rows has a model too.
const RIDGE: f64 = 1e-4;

/// TukeyEM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TukeyEm {}

/// No accountant knows of mechanisms beyond this ε.
const MOST_EPSILON: f64 = 100.0;

impl Algorithm for TukeyEm {
    type Fitted = (f64, Vec<f64>);

    fn sampler(&self, _: Shape) -> Sampler {
        Sampler::FullBatch
    }

    /// One release: nearly the whole budget.
    fn stages(&self, _: Shape, budget: Budget, _: f64) -> Vec<Stage> {
        let (epsilon, delta) = (budget.epsilon().min(MOST_EPSILON), budget.delta());
        // Beside the number of rows, with room for the accountant's rounding.
        let charge = PlannedRelease::approximate_dp(DEEP, 0.985 * epsilon, 0.99 * delta);
        vec![Stage::new("models", 1, vec![charge])]
    }

    /// The mechanism leaves no δ beside it: the count has Laplace noise, priced under the costlier relation.
    fn count_stage(&self, budget: Budget, sampler: Sampler) -> Result<Option<Stage>, Error> {
        let share = rows_used::PURE_SHARE * budget.epsilon().min(MOST_EPSILON);
        Ok(Some(rows_used::pure_stage(share, Neighbours::ReplaceOne, sampler)))
    }

    fn plan(&self, shape: Shape, budget: Budget) -> Result<PrivacyPlan, Error> {
        let sampler = self.sampler(shape);
        let mut stages = self.stages(shape, budget, 1.0);
        stages.extend(self.count_stage(budget, sampler)?);
        Ok(PrivacyPlan::fixed(budget, sampler, stages)?)
    }

    fn check(&self, shape: Shape, budget: Budget) -> Result<(), Error> {
        check_width(shape)?;
        Ok(budget.unless_pure()?)
    }

    fn access(&self) -> Access {
        Access::Rows
    }

    fn fit(&self, run: algorithm::Run<'_, '_>) -> Result<(f64, Vec<f64>), Error> {
        in_units(run, Link::Linear, fit)
    }
}

/// How many models there are: public. A third more rows than weights in each: with fewer, models are wild; with more, there
/// are too few of them for the test.
fn groups(shape: Shape, budget: Budget) -> usize {
    let most = MODELS * (1.0 / budget.epsilon()).clamp(1.0, 30.0);
    (3 * shape.rows / (4 * (shape.width as u64 + 1))).clamp(1, most as u64) as usize
}

/// What to expect of the test if models lie as normal ones would: it depends on public numbers only.
pub fn warning(plan: &Planned<TukeyEm>) -> Option<String> {
    let Planned { shape, privacy: plan, .. } = plan;
    let groups = groups(*shape, plan.budget);
    let Mechanism::ApproximateDp { epsilon, delta } = plan.stages[0].releases[0].mechanism else {
        return None;
    };
    let likely = tukey_depth::likely(groups, shape.width + 1, ApproximateDp { epsilon, delta });
    (!likely).then(|| {
        format!(
            "{groups} models of {} weights are too few for epsilon {}: expect the test to fail and the model to predict the middle of \
             the target's range. More rows, fewer features or a larger epsilon would help.",
            shape.width + 1,
            plan.budget.epsilon()
        )
    })
}

/// The intercept and the weights, in units of the target's range.
fn fit(run: &mut Run<'_>, watch: &mut ProgressCallback<'_>) -> Result<(f64, Vec<f64>), Error> {
    report(watch, "step", 1, 1)?;
    let steps = groups(run.shape, run.plan.budget) as u64;
    let groups = run.releaser.draw(Sampler::Partition { steps });
    let (unit, threads) = (run.unit, run.releaser.threads());
    let table = run.backend.rows()?.map(|rows| rows.dense());
    run.releaser.count_rows(run.plan, run.shape.rows, table.as_ref().map(|t| rows_used(t)))?;
    let models = table.map(|table| models(table, unit, &groups, threads));
    let found = run.releaser.approximate_dp(DEEP, models, tukey_depth::point)?;
    let safe = vec![0.0; run.shape.width + 1];
    let real = |point: Vec<i64>| point.iter().map(|&w| w as f64 * STEP).collect();
    Ok(adassp::parted(found.map_or(safe, real)))
}

/// A model for every group, on the lattice.
fn models(
    table: &Table,
    unit: &TargetScaling,
    groups: &BatchDraw,
    threads: usize,
) -> Vec<Vec<i64>> {
    let (map, d) = (Affine::identity(table.width(), CONSTANT), table.width() + 1);
    let buckets = allocate(table, groups, threads);
    buckets.iter().map(|b| model(&Rows::these(table, &map, b), d, unit, threads)).collect()
}

/// Least squares on some rows, from exact integer sums that no row is too long for: the order of rows does not matter.
fn model(rows: &Rows<'_>, d: usize, unit: &TargetScaling, threads: usize) -> Vec<i64> {
    let longest = 1.01 * (d as f64).sqrt();
    let (products, sums) = (Lattice::for_products(longest, d), Lattice::for_sums(longest, d));
    let upper = second_moment(rows, &products, threads);
    let square = products.step() * products.step();
    let mut moment =
        Square::symmetric(d, &upper.iter().map(|&x| x as f64 * square).collect::<Vec<_>>());
    (0..d).for_each(|k| moment.entries[k * (d + 1)] += RIDGE);
    let residual = |_: f64, y: f64| unit.encode(y).clamp(-1.0, 1.0);
    let query = LinearQuery { weights: &vec![0.0; d], residual, clip: Some(&sums), grid: None };
    let right = rows.pass(&query, threads).sum;
    let right: Vec<f64> = right.iter().map(|&x| x as f64 * sums.step()).collect();
    let weights = solve(&moment, &right).unwrap_or_else(|| vec![0.0; d]);
    // As a cast: what is not a number becomes 0.
    weights.iter().map(|w| ((w / STEP).round() as i64).clamp(-EDGE, EDGE)).collect()
}

#[cfg(test)]
mod tests {
    use quietly_noise::Key;

    use super::{super::test_support, *};

    fn planned(rows: u64, epsilon: f64) -> Planned<TukeyEm> {
        test_support::plan(TukeyEm {}, (rows, 10), epsilon, Neighbours::AddRemove)
    }

    /// Least squares explains 0.80 of this target.
    #[test]
    fn a_gaussian_table_is_learnt() {
        let found = test_support::r2(&planned(20_000, 3.0), 1);
        assert!(found > 0.78, "{found}");
    }

    /// Far too few rows: the answer is the middle of the range, 2, and no error.
    #[test]
    fn what_fails_the_test_is_answered_by_the_safe_model() {
        for (rows, epsilon) in [(1, 3.0), (200, 3.0), (20_000, 0.01), (20_000, 0.001)] {
            let found = test_support::fit(&planned(rows, epsilon), 2);
            assert_eq!(found, (2.0, vec![0.0; 10]), "{rows} {epsilon}");
        }
    }

    #[test]
    fn one_row_changes_at_most_one_model() {
        let (rows, width, groups) = (400, 3, 20);
        let whole = test_support::table(rows + 1, width, 5);
        let draw = Sampler::Partition { steps: groups }.draw(Key::from_seed(3).stream("groups"));
        let unit = TargetScaling::new(Link::Linear, test_support::RANGE);
        let of = |features: &[f64], target: &[f64]| {
            let table = Table::new(width, features.to_vec(), target.to_vec());
            models(&table, &unit, &draw, 2)
        };
        let (features, target) = (&whole.features()[..rows * width], &whole.target()[..rows]);
        let here = of(features, target);
        let apart = |there: &[Vec<i64>]| here.iter().zip(there).filter(|(a, b)| a != b).count();
        // A row that joins in the last place: all others keep their groups.
        assert_eq!(apart(&of(whole.features(), whole.target())), 1);
        for row in 0..rows {
            let (mut features, mut target) = (features.to_vec(), target.to_vec());
            features[row * width..][..width].fill(1.0);
            target[row] = 1e9;
            assert_eq!(apart(&of(&features, &target)), 1, "{row}");
        }
    }

    #[test]
    fn nearly_the_whole_budget_is_promised_and_no_more() {
        let (plan, few) = (planned(20_000, 3.0), planned(2_200, 1.0));
        for neighbours in [Neighbours::AddRemove, Neighbours::ReplaceOne] {
            let event =
                quietly_core::mechanism::event(plan.privacy.sampler, &plan.privacy.stages).unwrap();
            let price = quietly_accounting::epsilon(&event, neighbours, 1e-5).unwrap().upper;
            assert!(price <= 3.0 && price > 2.95, "{price}");
        }
        assert_eq!(
            (groups(plan.shape, plan.privacy.budget), groups(few.shape, few.privacy.budget)),
            (1000, 150)
        );
    }
}
