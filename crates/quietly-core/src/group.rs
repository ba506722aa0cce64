//! Units of several rows: group privacy.
//!
//! A schema may declare that a unit (a person, say) has up to k rows, `rows_per_unit = k`. The requested budget is then the unit's, and
//! a run is planned, charged and proven for one row at a smaller budget.
//!
//! # Proof: what one row must cost so that k rows cost (ε, δ)
//!
//! Let M be (ε', δ')-differentially private for one row: P[M(A) ∈ S] ≤ e^ε' P[M(B) ∈ S] + δ' for all S and all A, B that differ by one row.
//!
//! 1. Two tables that differ by one unit are joined by a chain A = A₀, A₁, …, A_m = B with m ≤ k, in which neighbours differ by one row:
//!    * add-remove: the unit's rows leave (or join) one after the other;
//!    * replace-one: the unit's rows get their other values one after the other. Every table of the chain has as many rows as the others. How
//!      many rows the unit has is the same in A and B: it is not protected.
//! 2. By induction over the chain, P[M(A) ∈ S] ≤ e^(mε') P[M(B) ∈ S] + δ'·(1 + e^ε' + … + e^((m-1)ε')). Both terms grow with m, so that m = k
//!    is the worst case, and the sum is (e^(kε') - 1)/(e^ε' - 1).
//! 3. With ε' = ε/k and δ' = δ·(e^ε' - 1)/(e^ε - 1) this is (ε, δ)-differential privacy for the unit. A run that costs less than ε' at δ'
//!    costs the unit less than ε at δ, as the sum grows with ε'.
//!
//! Rounding: ε' is rounded down by 2⁻⁵⁰ and δ' by 10⁻⁹ of itself, which is more than a few operations and two exponentials are off; what is
//! told of the unit is rounded up. With δ = 0 nothing but ε' is needed.
//!
//! Not covered: units with more than k rows. Nothing checks that there are none.
use serde::{Deserialize, Serialize};

use crate::{budget::Budget, error::Error};

/// The most rows that a unit may have.
const MOST: u64 = 1_000_000;

/// How many rows a unit has, at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Group(u64);

impl Default for Group {
    fn default() -> Self {
        Group(1)
    }
}

impl Group {
    pub fn new(rows: u64) -> Result<Self, Error> {
        let fine = (1..=MOST).contains(&rows);
        Error::ensure(fine, "rows_per_unit", "from 1 to a million", rows)?;
        Ok(Group(rows))
    }

    pub fn rows(self) -> u64 {
        self.0
    }

    pub fn is_one_row(&self) -> bool {
        self.0 == 1
    }

    /// (ε', δ') for one row, not above what step 3 of the proof allows.
    fn of_one_row(self, epsilon: f64, delta: f64) -> (f64, f64) {
        let one = epsilon / self.0 as f64 * (1.0 - 2.0_f64.powi(-50));
        // (e^ε' - 1)/(e^ε - 1), which overflows in this form.
        let share = libm::exp(one - epsilon) * libm::expm1(-one) / libm::expm1(-epsilon);
        (one, delta * share * (1.0 - 1e-9))
    }

    /// What a unit costs if one row costs `epsilon`, not below.
    pub fn epsilon(self, epsilon: f64) -> f64 {
        if self.is_one_row() { epsilon } else { self.0 as f64 * epsilon * (1.0 + f64::EPSILON) }
    }

    /// A point of the unit's curve, from one of a row's.
    pub fn point(self, (delta, epsilon): (f64, f64)) -> (f64, f64) {
        if self.is_one_row() {
            return (delta, epsilon);
        }
        let (k, whole) = (self.0 as f64, self.epsilon(epsilon));
        // The sum of step 2; each of its terms is 1 where ε is 0.
        let sum = if epsilon > 0.0 { libm::expm1(whole) / libm::expm1(epsilon) } else { k };
        (delta * sum * (1.0 + 1e-9), whole)
    }
}

impl Budget {
    /// The same for units of up to so many rows each: the budget is then the unit's.
    ///
    /// ```
    /// use quietly_core::budget::Budget;
    ///
    /// let visits = Budget::new(1.0, 1e-6)?.for_units_of(8)?;
    /// let one = visits.of_one_row()?;
    /// assert!(one.epsilon() <= 0.125 && one.delta() < 1e-7);
    /// assert!(Budget::new(0.001, 1e-6)?.for_units_of(8).is_err());
    /// # Ok::<(), quietly_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] unless `rows` is from 1 to a million and small enough that one row has an ε of at least 0.001 and a δ of at least
    /// 1e-12.
    pub fn for_units_of(self, rows: u64) -> Result<Self, Error> {
        let budget = self.with_group(Group::new(rows)?);
        budget.of_one_row()?;
        Ok(budget)
    }

    /// The same for units of at least so many rows: never of fewer than were requested.
    ///
    /// # Errors
    ///
    /// As [`for_units_of`](Self::for_units_of).
    pub fn for_units_of_at_least(self, rows: u64) -> Result<Self, Error> {
        self.for_units_of(rows.max(self.rows_per_unit()))
    }

    /// What group privacy leaves for one row: all of it where a unit has one.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if that is too little.
    pub fn of_one_row(&self) -> Result<Self, Error> {
        let group = Group::new(self.rows_per_unit())?;
        if group.is_one_row() || !self.is_private() {
            return Ok(self.with_group(Group::default()));
        }
        let (epsilon, delta) = group.of_one_row(self.epsilon(), self.delta());
        let want = "below 1000 times epsilon, as one row needs an epsilon of at least 0.001";
        let got = || format!("{} at epsilon {}", group.rows(), self.epsilon());
        Error::ensure(epsilon >= 0.001, "rows_per_unit", want, got())?;
        if self.is_pure() {
            return Ok(Budget::pure(epsilon)?.under(self.neighbours()));
        }
        let want = "fewer, or delta larger, as group privacy leaves one row a delta below 1e-12";
        let got = || format!("{} at delta {:e}", got(), self.delta());
        Error::ensure(delta >= 1e-12, "rows_per_unit", want, got())?;
        Ok(Budget::new(epsilon, delta)?.under(self.neighbours()))
    }
}

#[cfg(test)]
mod tests {
    use quietly_accounting::Neighbours;

    use super::*;

    fn asked(epsilon: f64, delta: f64, rows: u64) -> Budget {
        Budget::new(epsilon, delta).unwrap().for_units_of(rows).unwrap()
    }

    /// Step 2 of the proof, term by term, from what one row is given: never more than what was asked, and nearly all of it.
    #[test]
    fn a_chain_of_rows_costs_what_was_asked_for_the_unit() {
        for (epsilon, delta) in [(0.1, 1e-3), (1.0, 1e-6), (8.0, 1e-5), (12.0, 1e-2)] {
            for rows in [2, 3, 8, 50] {
                let one = asked(epsilon, delta, rows).of_one_row().unwrap();
                let (mut whole, mut total) = (0.0, 0.0);
                for _ in 0..rows {
                    total += one.delta() * f64::exp(whole);
                    whole += one.epsilon();
                }
                // The loop itself rounds, a few units in the last place.
                let near = 1.0 + 1e-13;
                assert!(
                    whole <= epsilon * near && total <= delta * near,
                    "{epsilon} {delta} {rows}"
                );
                assert!(whole > 0.999 * epsilon && total > 0.999 * delta, "{rows}: {total}");
                let (d, e) = Group(rows).point((one.delta(), one.epsilon()));
                assert!(
                    e * near >= whole
                        && e <= epsilon * near
                        && d >= total
                        && d <= delta * (1.0 + 1e-8)
                );
            }
        }
    }

    /// Randomised response releases one bit of each row at ε', where all probabilities are known: k rows of a unit cost exactly kε'.
    #[test]
    fn randomised_response_of_k_rows_is_as_dear_as_promised() {
        for rows in [2_u64, 8] {
            let budget = Budget::pure(1.0).unwrap().for_units_of(rows).unwrap();
            let one = budget.of_one_row().unwrap().epsilon();
            let truth = one.exp() / (1.0 + one.exp());
            let ratio = (truth / (1.0 - truth)).powi(rows as i32);
            assert!(ratio.ln() <= 1.0 + 1e-12 && ratio.ln() > 0.999, "{rows} {}", ratio.ln());
            // The control: at the unit's own epsilon for every row it would cost k times as much.
            assert!(((1.0_f64.exp()).powi(rows as i32)).ln() > 1.9);
        }
    }

    #[test]
    fn one_row_changes_nothing_and_relations_stay() {
        let budget = Budget::new(1.0, 1e-6).unwrap().under(Neighbours::ReplaceOne);
        assert_eq!(budget.for_units_of(1).unwrap(), budget);
        assert_eq!(budget.of_one_row().unwrap(), budget);
        let one = budget.for_units_of(4).unwrap().of_one_row().unwrap();
        assert_eq!((one.neighbours(), one.rows_per_unit()), (Neighbours::ReplaceOne, 1));
        let infinite = Budget::new(f64::INFINITY, 1e-6).unwrap().for_units_of(8).unwrap();
        assert!(!infinite.of_one_row().unwrap().is_private());
        assert_eq!(Group(1).point((0.5, 0.1)), (0.5, 0.1));
    }

    #[test]
    fn too_many_rows_are_refused_with_the_numbers_that_were_asked() {
        for (epsilon, delta, rows, told) in [
            (1.0, 1e-6, 0, "from 1 to a million"),
            (1.0, 1e-6, 2_000_000, "from 1 to a million"),
            (1.0, 1e-6, 1001, "1001 at epsilon 1"),
            (50.0, 1e-6, 2, "2 at epsilon 50 at delta 1e-6"),
        ] {
            let error = Budget::new(epsilon, delta).unwrap().for_units_of(rows).unwrap_err();
            assert!(error.to_string().contains(told), "{error}");
        }
        assert!(Budget::new(1.0, 1e-6).unwrap().for_units_of(999).is_ok());
    }
}
