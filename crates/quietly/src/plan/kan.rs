//! Planning networks.
use quietly_core::budget::Budget;
use quietly_engine::error::Error;
use quietly_kan::Kan;

use super::Plan;

impl Plan {
    /// The plan of a network for about `rows` rows.
    ///
    /// ```
    /// use quietly::{Budget, Charge, FitInput, FitOptions, Key, Plan, Private, Table};
    /// use quietly::kan::{Input, Kan, NetworkLoss, NetworkShape};
    ///
    /// let shape = NetworkShape::new(vec![Input::Spline; 2], NetworkLoss::Logistic);
    /// let plan = Plan::kan(&Kan::new(shape), 50, Budget::new(1.0, 1e-5)?)?;
    /// let rows = Private::new(Table::new(2, vec![0.5, -0.5, 0.1, 0.9], vec![0.0, 1.0]));
    /// let charge = Charge::without_ledger(Key::from_seed(1));
    /// let fit = plan.fit(FitInput::table(&rows, (0.0, 1.0)), FitOptions::new(charge))?;
    /// let trained = fit.network()?;
    /// let curve: Vec<f64> = [-1.0, 0.0, 1.0].map(|x| trained.function(0, 5, x)).into();
    /// assert!(curve.iter().all(|y| y.is_finite()));
    /// # Ok::<(), quietly::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] for anything that does not go together, [`Error::TooLarge`] for networks that do not fit,
    /// [`Error::Accounting`] if the budget cannot be met.
    pub fn kan(network: &Kan, rows: u64, budget: Budget) -> Result<Plan, Error> {
        Plan::for_unit(budget, |budget| Ok(network.draft(rows, budget)?.into()))
    }
}
