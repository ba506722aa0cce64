//! Private selection: how a model was chosen among candidates, as its certificate records it.
use quietly_accounting::{Event, TrialCount};
use serde::{Deserialize, Serialize};

use crate::{budget::Budget, certificate::Certificate, error::Error};

/// How a model was chosen: part of its certificate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrivateSelection {
    /// How many candidates there were.
    pub candidates: usize,
    /// How many trials there are in the mean. The number that ran is not released.
    pub trials: f64,
    /// ε of one trial, not below.
    pub epsilon: f64,
    /// The δ at which it holds.
    pub delta: f64,
    /// ε of putting trials in order.
    pub order: f64,
    /// The noise of a score over what one row can add; none if scores are of public rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score_noise: Option<f64>,
}

impl PrivateSelection {
    /// Whether a certificate's ε is that of the whole, for a unit of its rows.
    pub fn is_total(&self, certificate: &Certificate) -> bool {
        let law = TrialCount::with_mean(self.trials);
        let total = law.map(|law| certificate.budget.group().epsilon(self.total(law)));
        total.is_ok_and(|total| (total - certificate.epsilon).abs() <= 1e-6 * total)
    }

    /// ε of the whole.
    pub fn total(&self, law: TrialCount) -> f64 {
        law.total_cost(self.epsilon, self.delta, self.order).0
    }

    pub fn score_event(&self) -> Result<Option<Event>, Error> {
        match self.score_noise {
            Some(noise) => Ok(Some(Event::gaussian(noise)?)),
            None => Ok(None),
        }
    }

    /// ε of the whole at `asked`'s δ if the chosen plan's `event` and the score keep what is said of a trial.
    pub fn price(&self, event: Option<Event>, asked: &Budget) -> Option<f64> {
        let law = TrialCount::with_mean(self.trials).ok()?;
        let near = 1.0 + 1e-6;
        for event in event.into_iter().chain(self.score_event().ok()?) {
            let once = quietly_accounting::epsilon(&event, asked.neighbours(), self.delta).ok()?;
            let ordered = law
                .selection_epsilon_at_most(&event, asked.neighbours(), self.order * near)
                .ok()?;
            if once.upper > self.epsilon * near || !ordered {
                return None;
            }
        }
        let (epsilon, delta) = law.total_cost(self.epsilon, self.delta, self.order);
        (delta <= asked.delta() * near).then_some(epsilon)
    }
}
