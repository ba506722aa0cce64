//! A cache of calibrations: many fits with one budget search for their noise once.
//!
//! A cost is a function of the releases, of the neighbouring relation and of δ, and of nothing else. A cached value is used only where
//! all of that is the same, number by number: a memory that were wrong would cost time, and no privacy.
use std::sync::Mutex;

use quietly_accounting::{Calibration, Neighbours, PrivacyBound, calibrate};

use crate::{
    error::Error,
    mechanism::{self, Sampler, Stage, accounting},
};

/// What was found for what, the latest last.
struct Memory<K, V>(Mutex<Vec<(K, V)>>);

/// How much is remembered of each kind.
const MOST: usize = 64;

impl<K: PartialEq, V: Clone> Memory<K, V> {
    const fn new() -> Self {
        Memory(Mutex::new(Vec::new()))
    }

    fn get(&self, key: &K) -> Option<V> {
        let all = self.0.lock().ok()?;
        all.iter().find(|(known, _)| known == key).map(|(_, value)| value.clone())
    }

    fn put(&self, key: K, value: V) {
        if let Ok(mut all) = self.0.lock() {
            all.retain(|(known, _)| *known != key);
            if all.len() == MOST {
                all.remove(0);
            }
            all.push((key, value));
        }
    }
}

/// A budget, and the sampler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    pub sampler: Sampler,
    pub neighbours: Neighbours,
    pub epsilon: f64,
    pub delta: f64,
}

/// The result of a search: a noise, the releases at that noise, and their cost.
type Found = (f64, Vec<Stage>, PrivacyBound);

/// Keyed by the releases at the noise where searches begin.
static FOUND: Memory<(Search, Vec<Stage>), Found> = Memory::new();

impl Search {
    /// The releases with the least noise that stays within the budget, and their cost.
    pub fn run(
        self,
        stages: impl Fn(f64) -> Vec<Stage>,
    ) -> Result<(Vec<Stage>, PrivacyBound), quietly_accounting::Error> {
        let key = (self, stages(1.0));
        if let Some((noise, before, price)) = FOUND.get(&key)
            && stages(noise) == before
        {
            return Ok((before, price));
        }
        let event = |noise| mechanism::event(self.sampler, &stages(noise)).map_err(accounting);
        let found = calibrate(event, self.neighbours, self.epsilon, self.delta)?;
        let Calibration { noise_multiplier: noise, epsilon: price, .. } = found;
        let stages = stages(noise);
        FOUND.put(key, (noise, stages.clone(), price));
        Ok((stages, price))
    }
}

/// (δ, ε) of the releases.
type Curve = Vec<(f64, f64)>;

static CURVES: Memory<(Sampler, Vec<Stage>, Neighbours), Curve> = Memory::new();

/// The whole privacy curve of these releases.
pub fn curve(sampler: Sampler, stages: &[Stage], neighbours: Neighbours) -> Result<Curve, Error> {
    let key = (sampler, stages.to_vec(), neighbours);
    if let Some(curve) = CURVES.get(&key) {
        return Ok(curve);
    }
    let curve = quietly_accounting::curve(&mechanism::event(sampler, stages)?, neighbours)?;
    CURVES.put(key, curve.clone());
    Ok(curve)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mechanism::PlannedRelease;

    fn search(epsilon: f64) -> Search {
        let neighbours = Neighbours::AddRemove;
        Search { sampler: Sampler::FullBatch, neighbours, epsilon, delta: 1e-6 }
    }

    /// Three sums with some power of the noise: alike where it is one.
    fn sums(power: f64) -> impl Fn(f64) -> Vec<Stage> {
        move |noise| vec![Stage::new("a", 3, vec![PlannedRelease::sum("a", noise.powf(power))])]
    }

    #[test]
    fn what_is_remembered_is_what_was_found() {
        let calls = std::cell::Cell::new(0);
        let counted = |noise| {
            calls.set(calls.get() + 1);
            sums(1.0)(noise)
        };
        let first = search(1.25).run(counted).unwrap();
        assert!(calls.replace(0) > 4, "it was searched for");
        assert_eq!(search(1.25).run(counted).unwrap(), first);
        assert_eq!(calls.get(), 2, "it was not searched for again");
        // Another budget, or another relation, is another search.
        let multiplier = |found: &(Vec<Stage>, PrivacyBound)| found.0[0].releases[0].multiplier();
        let other = search(1.26).run(counted).unwrap();
        assert!(multiplier(&other) < multiplier(&first));
        let replaced = Search { neighbours: Neighbours::ReplaceOne, ..search(1.25) };
        assert!(multiplier(&replaced.run(counted).unwrap()) > 1.9 * multiplier(&first));
    }

    #[test]
    fn a_wrong_memory_is_refused() {
        let right = search(0.75).run(sums(1.0)).unwrap();
        for power in [0.5, 2.0] {
            let (stages, price) = search(0.75).run(sums(power)).unwrap();
            assert!(price.upper <= 0.75 && price.upper > 0.749, "{price:?}");
            let ratio = stages[0].releases[0].multiplier() / right.0[0].releases[0].multiplier();
            assert!((ratio - 1.0).abs() < 0.002, "{ratio}");
        }
    }
}
