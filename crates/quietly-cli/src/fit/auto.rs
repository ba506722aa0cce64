//! `quietly fit auto`: which model, by what is public alone.
use quietly::{
    Budget, Encoding, Family,
    kan::{ENOUGH_ROWS, rows_for_each_feature},
};
use serde_json::{Value, json};

use super::args::Model;

/// A model that was chosen, and why.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) model: Model,
    /// One sentence; none if the user chose.
    pub(crate) why: Option<String>,
}

impl Chosen {
    /// What the user asked for.
    pub(crate) fn by_name(model: Model) -> Self {
        Chosen { model, why: None }
    }

    /// What the schema and the budget suggest. A network is out of the question where flags are given that it does not have
    /// (`others`).
    pub(crate) fn by_numbers(
        encoding: &Encoding,
        (rows, budget): (u64, Budget),
        others: bool,
    ) -> Self {
        let classes = encoding.target().map_or(0, |target| target.class_count());
        let (plain, kind) = match classes {
            0 => (Model::Of(Family::Linear), "the target is a number".to_string()),
            classes => (Model::Of(Family::Logistic), format!("the target has {classes} classes")),
        };
        let features = encoding.width();
        let each = rows_for_each_feature(rows, features, budget);
        let (epsilon, delta) = (budget.epsilon(), budget.delta());
        let given =
            format!("{rows} rows and {features} features at epsilon {epsilon}, delta {delta:e}");
        let (model, because) = match each {
            // On the one table that was tried, the example's clinic, a network of numbers did far worse than least squares.
            _ if classes == 0 => (plain, "networks are used for classes only".into()),
            _ if others => (plain, "a network does not have the given flags".to_string()),
            // There is nothing to weigh rows against.
            f64::INFINITY => (plain, "without noise the plain model is the default".into()),
            _ if budget.is_pure() => (plain, "a network needs a delta above 0".into()),
            each if each >= ENOUGH_ROWS => (
                Model::Of(Family::Kan),
                format!(
                    "{given} are {each:.0} rows per feature relative to the noise: enough for a network, which needs {ENOUGH_ROWS}"
                ),
            ),
            each => (
                plain,
                format!(
                    "{given} are {each:.0} rows per feature relative to the noise: too few for a network, which needs {ENOUGH_ROWS}"
                ),
            ),
        };
        let why = format!("auto uses {}: {kind}, and {because}.", model.name());
        Chosen { model, why: Some(why) }
    }

    /// The same for programs.
    pub(crate) fn json(&self) -> Option<Value> {
        let why = self.why.as_ref()?;
        Some(json!({ "model": self.model.name(), "why": why }))
    }
}
