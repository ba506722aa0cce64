//! A charge: the right to one release, with its budget and the key of its noise.
use quietly_noise::Key;

use crate::{budget::Budget, error::Error};

/// The right to one release from a table.
///
/// Every function that reads a table and adds noise takes a charge by value, in place of a bare key. So the code that
/// makes one says whether the release was charged to a [`Ledger`](crate::ledger::Ledger), or deliberately was not.
///
/// ```
/// use quietly_core::charge::Charge;
/// use quietly_noise::Key;
///
/// // Nothing adds this release to what was spent on the table before.
/// let charge = Charge::without_ledger(Key::from_os()?);
/// # Ok::<(), quietly_noise::Error>(())
/// ```
#[must_use = "the release was charged for, but is not made"]
pub struct Charge {
    key: Key,
    /// What was charged; `None` without a ledger.
    charged: Option<Budget>,
}

impl Charge {
    /// A release that no ledger counts: for public tables and experiments, or where the caller adds up.
    pub fn without_ledger(key: Key) -> Self {
        Charge { key, charged: None }
    }

    /// A release that was charged to a ledger.
    pub fn charged(budget: Budget, key: Key) -> Self {
        Charge { key, charged: Some(budget) }
    }

    /// The right to resume a run that was charged when it began.
    ///
    /// The [`Checkpoint`](crate::checkpoint::Checkpoint) of the run sees to it that nothing is released twice.
    pub fn resumed(budget: Budget, key: Key) -> Self {
        Charge { key, charged: Some(budget) }
    }

    /// The same right for so many releases, each at an equal share of ε and δ; `key` makes the randomness of each.
    ///
    /// # Errors
    ///
    /// Those of `key`, and [`Error::Accounting`] if a share is too small.
    pub fn shared(
        self,
        releases: usize,
        mut key: impl FnMut() -> Result<Key, Error>,
    ) -> Result<Vec<Self>, Error> {
        let share = |budget: Budget| {
            let (epsilon, delta) = (budget.epsilon() / releases as f64, budget.delta());
            let share = match budget.is_pure() {
                true => Budget::pure(epsilon)?,
                false => Budget::new(epsilon, delta / releases as f64)?,
            };
            Ok::<_, Error>(share.under(budget.neighbours()).with_group(budget.group()))
        };
        let charged = match self.charged {
            Some(budget) => Some(share(budget)?),
            None => None,
        };
        (0..releases).map(|_| Ok(Charge { key: key()?, charged })).collect()
    }

    /// The key, for a release within `budget`.
    pub fn spend(self, budget: Budget) -> Result<Key, Error> {
        let covers = self.charged.is_none_or(|charged| {
            charged.neighbours() == budget.neighbours()
                && charged.group() == budget.group()
                && budget.epsilon() <= charged.epsilon()
                && budget.delta() <= charged.delta()
        });
        let want = "no more than was charged for it";
        Error::ensure(covers, "budget of a release", want, budget.epsilon())?;
        Ok(self.key)
    }
}

#[cfg(test)]
mod tests {
    use quietly_accounting::Neighbours;

    use super::*;

    #[test]
    fn no_more_is_spent_than_was_charged() {
        let budget = |epsilon, delta| Budget::new(epsilon, delta).unwrap();
        let charge = || Charge::charged(budget(1.0, 1e-6), Key::from_seed(1));
        for fine in [budget(1.0, 1e-6), budget(0.5, 1e-7), Budget::pure(1.0).unwrap()] {
            assert!(charge().spend(fine).is_ok());
        }
        let other = budget(1.0, 1e-6).under(Neighbours::ReplaceOne);
        let endless = budget(f64::INFINITY, 1e-6);
        // A charge for a unit of four rows does not cover one row at the same ε.
        let visits = budget(1.0, 1e-6).for_units_of(4).unwrap();
        for more in [budget(1.1, 1e-6), budget(1.0, 1e-5), other, endless, visits] {
            assert!(charge().spend(more).is_err(), "{more:?}");
            assert!(Charge::without_ledger(Key::from_seed(1)).spend(more).is_ok());
        }
        let shares = Charge::charged(visits, Key::from_seed(1)).shared(4, || Ok(Key::from_seed(2)));
        let quarter = budget(0.25, 2.5e-7);
        for share in shares.unwrap() {
            assert!(share.spend(quarter.for_units_of(4).unwrap()).is_ok());
        }
        let shares = charge().shared(4, || Ok(Key::from_seed(2))).unwrap();
        assert_eq!(shares.len(), 4);
        for share in shares {
            assert!(share.spend(budget(0.26, 1e-7)).is_err());
        }
    }
}
