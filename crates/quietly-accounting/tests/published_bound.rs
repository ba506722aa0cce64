//! A published closed form that must never set the noise of anything.
//!
//! Theorem D.9 of *Population Risk Bounds for Kolmogorov–Arnold Networks Trained by DP-SGD with
//! CorrelatedGaussian Noise*, for T batches of exactly B of n records and independent noise. That
//! Theorem F.8 of the same paper is false for such batches is shown in `sampled.rs`:
//! `poissons_price_would_be_false_for_a_fixed_size`.
mod common;
use common::*;
use quietly_accounting::{Event, epsilon};

const DELTA: f64 = 1e-5;

/// κ² = 16B²T/(n²ε) + 32B²T·ln(1/δ)/(n²ε²).
fn noise(records: u64, batch: u64, steps: u64, epsilon: f64) -> f64 {
    let share = batch as f64 / records as f64;
    let scale = share * share * steps as f64;
    (16.0 * scale / epsilon + 32.0 * scale * (1.0 / DELTA).ln() / epsilon.powi(2)).sqrt()
}

/// Lower ends belong to explicit neighbours: no analysis can make them smaller.
#[test]
fn a_published_noise_delivers_far_more_than_was_asked_for() {
    for (batch, asked, sized, sampled) in [(60, 1.0, 15.0, Some(1.19)), (60, 0.5, 1.2, None)] {
        let noise = noise(60_000, batch, 1000, asked);
        let run = Event::fixed_size(60_000, batch, noise).unwrap().repeat(1000).unwrap();
        let found = epsilon(&run, ReplaceOne, DELTA).unwrap();
        assert!(found.lower > sized && sized > asked, "{asked}: {found:?}");
        // Not even for samples by coins, which are the cheaper ones.
        let run = Event::poisson(batch as f64 / 60_000.0, noise).unwrap().repeat(1000).unwrap();
        let found = epsilon(&run, AddRemove, DELTA).unwrap();
        assert!(sampled.is_none_or(|least| found.lower > least), "{asked}: {found:?}");
    }
}

/// The same formula is safe, and wasteful, where batches are a large part of the table: the test
/// above is about the formula.
#[test]
fn the_same_formula_wastes_where_batches_are_large() {
    for (records, batch, steps, asked) in [(60_000, 600, 1000, 1.0), (10_000, 500, 400, 8.0)] {
        let noise = noise(records, batch, steps, asked);
        let run = Event::fixed_size(records, batch, noise).unwrap().repeat(steps).unwrap();
        let found = epsilon(&run, ReplaceOne, DELTA).unwrap();
        assert!(found.upper < 0.6 * asked, "{asked}: {found:?}");
    }
}
