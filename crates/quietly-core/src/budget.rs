//! A privacy budget: ε, δ, the neighbouring relation and the rows of a unit.
use quietly_accounting::Neighbours;
use serde::{Deserialize, Serialize};

use crate::{error::Error, group::Group};

/// What a release may cost: (ε, δ) and the neighbouring relation.
///
/// ```
/// use quietly_accounting::Neighbours;
/// use quietly_core::budget::Budget;
///
/// let budget = Budget::new(1.0, 1e-5)?;
/// assert_eq!(budget.neighbours(), Neighbours::AddRemove);
/// assert!(Budget::new(0.0, 1e-5).is_err());
/// # Ok::<(), quietly_core::error::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    #[serde(with = "endless")]
    epsilon: f64,
    delta: f64,
    #[serde(with = "relation")]
    neighbours: Neighbours,
    #[serde(rename = "rows_per_unit", default, skip_serializing_if = "Group::is_one_row")]
    group: Group,
}

impl Budget {
    /// (ε, δ), where δ = 0 is pure and no δ is the usual one for so many rows: the largest power of ten that is at most
    /// 1 / (10 rows), within what can be accounted for.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new) and [`pure`](Self::pure).
    pub fn usual(epsilon: f64, delta: Option<f64>, rows: u64) -> Result<Self, Error> {
        let digits = (rows.max(1) as f64 * 10.0).log10().ceil() as i32;
        match delta.unwrap_or_else(|| 10.0_f64.powi(-digits.clamp(5, 12))) {
            0.0 if epsilon.is_finite() => Budget::pure(epsilon),
            delta => Budget::new(epsilon, delta),
        }
    }

    /// (ε, δ) for one row added or removed.
    ///
    /// ε = ∞ requests no privacy: the exact model, for comparison.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`] unless ε is in [0.001, 1000] (or infinite) and δ in [1e-12, 0.5].
    pub fn new(epsilon: f64, delta: f64) -> Result<Self, Error> {
        let asked = if epsilon == f64::INFINITY { 1.0 } else { epsilon };
        // The accountant knows its own range.
        quietly_accounting::gaussian_mu(asked, delta)?;
        Ok(Budget { epsilon, delta, neighbours: Neighbours::AddRemove, group: Group::default() })
    }

    /// ε for one row added or removed, and δ = 0: whatever is seen, no table makes it e^ε times likelier than its neighbour.
    ///
    /// The methods that have it are `amp`, `sc-psgd`, `gd-op` and those of phases.
    ///
    /// ```
    /// use quietly_core::budget::Budget;
    ///
    /// assert_eq!(Budget::pure(1.0)?.delta(), 0.0);
    /// # Ok::<(), quietly_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] unless ε is in [0.001, 1000].
    pub fn pure(epsilon: f64) -> Result<Self, Error> {
        let fine = (0.001..=1000.0).contains(&epsilon);
        Error::ensure(fine, "epsilon", "from 0.001 to 1000", epsilon)?;
        let neighbours = Neighbours::AddRemove;
        Ok(Budget { epsilon, delta: 0.0, neighbours, group: Group::default() })
    }

    /// The same under another neighbouring relation.
    #[must_use]
    pub fn under(self, neighbours: Neighbours) -> Self {
        Budget { neighbours, ..self }
    }

    /// ε.
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// δ.
    pub fn delta(&self) -> f64 {
        self.delta
    }

    /// How two tables that must look alike may differ.
    pub fn neighbours(&self) -> Neighbours {
        self.neighbours
    }

    /// How many rows a unit has, at most: (ε, δ) is for all of them together.
    pub fn rows_per_unit(&self) -> u64 {
        self.group.rows()
    }

    pub fn group(&self) -> Group {
        self.group
    }

    pub fn with_group(self, group: Group) -> Self {
        Budget { group, ..self }
    }

    /// Whether δ is 0.
    pub fn is_pure(&self) -> bool {
        self.delta == 0.0
    }

    /// Refuses δ = 0 for methods that have no such guarantee.
    pub fn unless_pure(&self) -> Result<(), Error> {
        let want = "above 0 for this method; amp, sc-psgd, gd-op, phased-erm and the other methods of phases have delta 0";
        Error::ensure(!self.is_pure(), "delta", want, self.delta)
    }

    /// Refuses a budget for algorithms that add no noise.
    pub fn check_not_private(&self) -> Result<(), Error> {
        let got = "one that claims privacy without noise, or none with it";
        Error::ensure(!self.is_private(), "plan", "as it was planned", got)
    }

    /// δ, as it is printed.
    pub fn delta_in_words(&self) -> String {
        if self.is_pure() { "0".into() } else { format!("{:e}", self.delta) }
    }

    /// Whether any privacy is requested.
    pub fn is_private(&self) -> bool {
        self.epsilon.is_finite()
    }
}

/// JSON has no infinity: it is written as a word.
pub mod endless {
    use serde::{Deserialize, Deserializer, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Number(f64),
        Word(String),
    }

    pub fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        if value.is_finite() { to.serialize_f64(*value) } else { to.serialize_str("infinity") }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        match Written::deserialize(from)? {
            Written::Number(value) => Ok(value),
            Written::Word(word) if word == "infinity" => Ok(f64::INFINITY),
            Written::Word(_) => Err(serde::de::Error::custom("a number or \"infinity\"")),
        }
    }
}

/// The relation, by its name.
/// A relation by its name, for fields of files and messages.
pub mod relation {
    use quietly_accounting::Neighbours;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(value: &Neighbours, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(value.name())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Neighbours, D::Error> {
        let name = String::deserialize(from)?;
        [Neighbours::AddRemove, Neighbours::ReplaceOne]
            .into_iter()
            .find(|n| n.name() == name)
            .ok_or_else(|| serde::de::Error::custom("add-remove or replace-one"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_survives_being_written() {
        let private = |epsilon| Budget::new(epsilon, 1e-5).unwrap().under(Neighbours::ReplaceOne);
        for budget in [private(1.0), private(f64::INFINITY), Budget::pure(0.3).unwrap()] {
            let text = serde_json::to_string(&budget).unwrap();
            assert_eq!(serde_json::from_str::<Budget>(&text).unwrap(), budget, "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for (epsilon, delta) in
            [(0.0, 1e-5), (-1.0, 1e-5), (f64::NAN, 1e-5), (1.0, 0.0), (1.0, 1.0), (1.0, f64::NAN)]
        {
            assert!(Budget::new(epsilon, delta).is_err(), "{epsilon} {delta}");
        }
        for epsilon in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Budget::pure(epsilon).is_err(), "{epsilon}");
        }
    }
}
