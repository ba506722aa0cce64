//! The right to one release: randomness for noise, and what was charged for its use.
use quietly_noise::Key;

use crate::{budget::Budget, error::Error};

/// The right to one release from a table.
///
/// Whatever reads a table and adds noise takes one of these by value, in place of a bare key: that a release was charged
/// to a [`Ledger`](crate::ledger::Ledger), or deliberately was not, is said wherever one is made.
///
/// ```
/// use quietly_core::paid::Paid;
/// use quietly_noise::Key;
///
/// // Nothing adds this release to what was spent on the table before.
/// let paid = Paid::without_ledger(Key::from_os()?);
/// # Ok::<(), quietly_noise::Error>(())
/// ```
#[must_use = "a release was paid for, and is not made"]
pub struct Paid {
    key: Key,
    /// What was charged; `None` without a ledger.
    charged: Option<Budget>,
}

impl Paid {
    /// A release that no ledger counts: for public tables and experiments, or where the caller adds up.
    pub fn without_ledger(key: Key) -> Self {
        Paid { key, charged: None }
    }

    /// A release that a ledger was charged with.
    pub fn charged(budget: Budget, key: Key) -> Self {
        Paid { key, charged: Some(budget) }
    }

    /// The right to go on with a run that was charged when it began.
    ///
    /// The [`Checkpoint`](crate::checkpoint::Checkpoint) of the run sees to it that nothing is released twice.
    pub fn resumed(budget: Budget, key: Key) -> Self {
        Paid { key, charged: Some(budget) }
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
        (0..releases).map(|_| Ok(Paid { key: key()?, charged })).collect()
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
        let paid = || Paid::charged(budget(1.0, 1e-6), Key::from_seed(1));
        for fine in [budget(1.0, 1e-6), budget(0.5, 1e-7), Budget::pure(1.0).unwrap()] {
            assert!(paid().spend(fine).is_ok());
        }
        let other = budget(1.0, 1e-6).under(Neighbours::ReplaceOne);
        let endless = budget(f64::INFINITY, 1e-6);
        // What a unit of four rows paid does not cover a row at the same price.
        let visits = budget(1.0, 1e-6).for_units_of(4).unwrap();
        for more in [budget(1.1, 1e-6), budget(1.0, 1e-5), other, endless, visits] {
            assert!(paid().spend(more).is_err(), "{more:?}");
            assert!(Paid::without_ledger(Key::from_seed(1)).spend(more).is_ok());
        }
        let shares = Paid::charged(visits, Key::from_seed(1)).shared(4, || Ok(Key::from_seed(2)));
        let quarter = budget(0.25, 2.5e-7);
        for share in shares.unwrap() {
            assert!(share.spend(quarter.for_units_of(4).unwrap()).is_ok());
        }
        let shares = paid().shared(4, || Ok(Key::from_seed(2))).unwrap();
        assert_eq!(shares.len(), 4);
        for share in shares {
            assert!(share.spend(budget(0.26, 1e-7)).is_err());
        }
    }
}
