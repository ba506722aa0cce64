//! Noise that was found before: whoever fits many models with one budget searches for it once.
//!
//! Only the search is saved. What is remembered is priced again for the plan at hand, and refused unless it meets the budget, closely: a memory
//! that were wrong would cost time, and no privacy.
use std::sync::Mutex;

use quietly_accounting::{Answer, Calibration, Event, Neighbours, calibrate, epsilon};

use crate::charge::{Sampler, Stage};

/// What is asked with how much noise, and within which budget.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Search {
    pub(super) sampler: Sampler,
    /// The questions at two noises, which tell searches apart.
    pub(super) stages: [Vec<Stage>; 2],
    pub(super) neighbours: Neighbours,
    pub(super) epsilon: f64,
    pub(super) delta: f64,
}

/// How many searches are remembered.
const MOST: usize = 64;

/// A search finds its noise to one part in a thousand; what is farther from the budget was found for another.
const CLOSE: f64 = 1.002;

/// The latest last.
static FOUND: Mutex<Vec<(Search, f64)>> = Mutex::new(Vec::new());

impl Search {
    /// The least noise for which `event` stays within the budget, and its price.
    pub(super) fn run(
        self,
        event: impl Fn(f64) -> Result<Event, quietly_accounting::Error>,
    ) -> Result<(f64, Answer), quietly_accounting::Error> {
        let before = |found: &Vec<(Search, f64)>| {
            found.iter().find(|(search, _)| *search == self).map(|(_, noise)| *noise)
        };
        if let Some(noise) = FOUND.lock().ok().as_deref().and_then(before)
            && let Some(price) = self.price(&event, noise)?
        {
            return Ok((noise, price));
        }
        let found = calibrate(&event, self.neighbours, self.epsilon, self.delta)?;
        let Calibration { noise_multiplier: noise, epsilon: price, .. } = found;
        if let Ok(mut found) = FOUND.lock() {
            if found.len() == MOST {
                found.remove(0);
            }
            found.push((self, noise));
        }
        Ok((noise, price))
    }

    /// The price of this noise, if it is within the budget and close to it.
    fn price(
        &self,
        event: impl Fn(f64) -> Result<Event, quietly_accounting::Error>,
        noise: f64,
    ) -> Result<Option<Answer>, quietly_accounting::Error> {
        let price = epsilon(&event(noise)?, self.neighbours, self.delta)?;
        let is_close = price.upper <= self.epsilon && price.upper * CLOSE >= self.epsilon;
        Ok(is_close.then_some(price))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::charge::Charge;

    fn search(epsilon: f64, noise: f64) -> (Search, impl Fn(f64) -> Event) {
        let stages =
            [1.0, 2.0].map(|x| vec![Stage::new("a", 3, vec![Charge::sum("a", noise * x)])]);
        let sampler = Sampler::Full;
        let neighbours = Neighbours::AddRemove;
        let search = Search { sampler, stages, neighbours, epsilon, delta: 1e-6 };
        (search, move |x| Event::gaussian(noise * x).unwrap().repeat(3).unwrap())
    }

    #[test]
    fn what_is_remembered_is_what_was_found() {
        let (one, event) = search(1.25, 1.0);
        let calls = std::cell::Cell::new(0);
        let counted = |x| {
            calls.set(calls.get() + 1);
            Ok(event(x))
        };
        let first = one.clone().run(counted).unwrap();
        assert!(calls.replace(0) > 3);
        assert_eq!(one.clone().run(counted).unwrap(), first);
        assert_eq!(calls.get(), 1);
        // Another budget is another search.
        let (other, event) = search(1.26, 1.0);
        assert!(other.run(|x| Ok(event(x))).unwrap().0 < first.0);
    }

    #[test]
    fn a_wrong_memory_is_refused() {
        let (one, event) = search(0.75, 1.0);
        let right = one.clone().run(|x| Ok(event(x))).unwrap();
        // The same questions by name, but dearer ones, and then cheaper ones.
        for factor in [0.9, 1.1] {
            let (_, other) = search(0.75, factor);
            let (noise, price) = one.clone().run(|x| Ok(other(x))).unwrap();
            assert!(price.upper <= 0.75 && price.upper * CLOSE > 0.75, "{price:?}");
            assert!((noise * factor / right.0 - 1.0).abs() < 0.002, "{noise} {right:?}");
        }
    }
}
