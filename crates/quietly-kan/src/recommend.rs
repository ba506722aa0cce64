//! Whether a network is likely to beat its convex twin, by public numbers alone.
use quietly_accounting::{Neighbours, gaussian_mu};
use quietly_core::budget::Budget;

/// How many rows there are for each feature, in units of the noise that the budget asks for: rows·μ/features.
///
/// μ is what a row that is there or not may be worth in Gaussian noise. Without a δ there is no μ and the answer is 0; without
/// privacy it is infinite.
pub fn rows_for_each_feature(rows: u64, features: usize, budget: Budget) -> f64 {
    if !budget.is_private() {
        return f64::INFINITY;
    }
    if budget.is_pure() {
        return 0.0;
    }
    // A replaced row moves sums twice as far.
    let twice = if budget.neighbours() == Neighbours::ReplaceOne { 2.0 } else { 1.0 };
    let mu = gaussian_mu(budget.epsilon(), budget.delta()).unwrap_or(0.0) / twice;
    rows as f64 * mu / features.max(1) as f64
}

/// From so many [`rows_for_each_feature`] on, a network is the first thing to try for classes.
///
/// Below, it lost to a model of weighted sums or was no better, on tables of 426 rows and 30 features and of 1347 rows and 64
/// features at ε from 1 to 8; above, it won where the target is no sum of functions of one feature each: 4000 rows, 10 features,
/// ε = 1. Nothing private is compared, so the rule may be wrong for a table and costs nothing.
pub const ENOUGH_ROWS: f64 = 50.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// The tables that the rule comes from, δ = 1e-5.
    #[test]
    fn the_rule_is_right_about_the_tables_it_comes_from() {
        let of = |rows, features, epsilon| {
            rows_for_each_feature(rows, features, Budget::new(epsilon, 1e-5).unwrap())
        };
        for epsilon in [1.0, 4.0, 8.0] {
            assert!(of(4000, 10, epsilon) >= ENOUGH_ROWS, "product, {epsilon}");
            assert!(of(426, 30, epsilon) < ENOUGH_ROWS, "breast cancer, {epsilon}");
            assert!(of(1347, 64, epsilon) < ENOUGH_ROWS, "digits, {epsilon}");
        }
    }

    #[test]
    fn it_counts_rows_in_units_of_noise() {
        let budget = Budget::new(1.0, 1e-5).unwrap();
        let one = rows_for_each_feature(1000, 10, budget);
        let mu = gaussian_mu(1.0, 1e-5).unwrap();
        assert!((one - 100.0 * mu).abs() < 1e-9);
        let replaced = budget.under(Neighbours::ReplaceOne);
        assert!((rows_for_each_feature(1000, 10, replaced) - 0.5 * one).abs() < 1e-9);
        assert_eq!(rows_for_each_feature(1000, 10, Budget::pure(1.0).unwrap()), 0.0);
        let endless = Budget::new(f64::INFINITY, 1e-5).unwrap();
        assert_eq!(rows_for_each_feature(1000, 10, endless), f64::INFINITY);
    }
}
