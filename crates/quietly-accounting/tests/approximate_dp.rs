//! Promises of (ε, δ) against their worst pair, alone and among other releases.
mod common;
use common::*;
use quietly_accounting::{Event, delta, epsilon, renyi};

/// The pair that is (ε, δ)-DP and no better: an outcome of its own for either table, and randomised
/// response.
fn worst(epsilon: f64, delta: f64) -> Table {
    let (high, low) = (1.0 / (1.0 + (-epsilon).exp()), 1.0 / (1.0 + epsilon.exp()));
    let rest = 1.0 - delta;
    Table(vec![(delta, 0.0), (rest * high, rest * low), (rest * low, rest * high), (0.0, delta)])
}

/// So many of them, outcome by outcome.
fn product(one: &Table, times: usize) -> Table {
    let mut all = vec![(1.0, 1.0)];
    for _ in 0..times {
        all =
            all.iter().flat_map(|(p, q)| one.0.iter().map(move |(a, b)| (p * a, q * b))).collect();
    }
    Table(all)
}

#[test]
fn a_promise_alone_is_kept_exactly() {
    for (eps, del) in [(0.1, 1e-9), (1.0, 1e-6), (3.0, 1e-3), (8.0, 0.1)] {
        let event = Event::approximate_dp(eps, del).unwrap();
        for share in [0.1, 0.5, 0.99, 1.0, 1.5] {
            for neighbours in [AddRemove, ReplaceOne] {
                let found = asked(&event, neighbours, share * eps);
                let truth = worst(eps, del).delta(share * eps);
                holds(&format!("{eps} {del} {share}"), found, truth, 1e-9);
                assert!(found.relative_width() < 1e-5, "{found:?}");
            }
        }
        // At its own δ its own ε, and below it nothing.
        let kept = epsilon(&event, AddRemove, del).unwrap();
        assert!(kept.upper >= eps * (1.0 - 1e-12) && kept.upper <= eps * (1.0 + 1e-11), "{kept:?}");
        if del > 1e-12 {
            assert_eq!(epsilon(&event, AddRemove, 0.99 * del).unwrap().upper, f64::INFINITY);
        }
    }
}

#[test]
fn promises_compose_with_themselves_and_with_gaussians_as_quadrature_says() {
    for (eps, del) in [(0.3, 1e-6), (1.0, 1e-4), (2.0, 1e-8)] {
        for times in [1_usize, 2, 4] {
            let own = product(&worst(eps, del), times);
            let promises = Event::approximate_dp(eps, del).unwrap().repeat(times as u64).unwrap();
            for share in [0.3, 0.8, 0.999] {
                let e = share * eps * times as f64;
                let found = asked(&promises, ReplaceOne, e);
                holds(&format!("{eps} {del} {times} {e}"), found, own.delta(e), 1e-6);
                for sigma in [0.8, 5.0] {
                    let run = promises.clone().then(Event::gaussian(sigma).unwrap());
                    for (neighbours, gap) in [(AddRemove, 1.0), (ReplaceOne, 2.0)] {
                        let pair = Normals::gaussian(sigma / gap);
                        let truth = composed(&[&pair, &own], e, 4001);
                        let found = asked(&run, neighbours, e);
                        holds(&format!("{eps} {del} {times} {sigma} {e}"), found, truth, 1e-4);
                        assert!(found.relative_width() < 0.06, "{found:?} {truth}");
                    }
                }
            }
        }
    }
}

/// The control: a promise of half the δ is not enough for the same pair.
#[test]
fn a_smaller_promise_would_be_seen() {
    let truth = worst(1.0, 1e-4).delta(1.5);
    let run = Event::approximate_dp(1.0, 0.5e-4).unwrap();
    assert!(delta(&run, AddRemove, 1.5).unwrap().upper < truth);
}

#[test]
fn every_relation_and_sampler_bears_a_promise() {
    let promise = Event::approximate_dp(0.5, 1e-7).unwrap();
    let others = [
        Event::exponential(0.2).unwrap(),
        Event::laplace(4.0).unwrap(),
        Event::poisson(0.01, 1.0).unwrap().repeat(100).unwrap(),
        Event::random_allocation(20, 1, 2.0).unwrap(),
    ];
    for other in others {
        for neighbours in [AddRemove, ReplaceOne] {
            let alone = epsilon(&other, neighbours, 1e-5).unwrap();
            let both = epsilon(&promise.clone().then(other.clone()), neighbours, 1e-5).unwrap();
            // No more than simple composition at δ - 1e-7, and no less than the other alone.
            let rest = epsilon(&other, neighbours, 1e-5 - 1e-7).unwrap();
            // As removal and addition it is paid for twice.
            let paid = if both.method.contains("removal and addition") { 1.0 } else { 0.5 };
            assert!(both.upper <= paid + rest.upper * 1.02 + 1e-9, "{both:?} {rest:?}");
            assert!(both.upper >= alone.lower, "{both:?} {alone:?}");
        }
    }
    assert!(renyi::epsilon(&promise, AddRemove, 1e-5).is_err());
    for (eps, del) in [(0.0, 0.1), (-1.0, 0.1), (f64::NAN, 0.1), (1e3, 0.1), (1.0, -1e-9)] {
        assert!(Event::approximate_dp(eps, del).is_err());
    }
    assert!(
        Event::approximate_dp(1.0, 0.6).is_err() && Event::approximate_dp(1.0, f64::NAN).is_err()
    );
    assert!(Event::approximate_dp(1.0, 0.0).is_ok());
}
