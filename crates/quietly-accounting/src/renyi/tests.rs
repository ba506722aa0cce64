use Neighbours::{AddRemove, ReplaceOne};

use super::*;
use crate::correlated::{CorrelatedGaussian, Participation, Strategy};

/// Draws that need no crate: a fixed stream of uniform numbers.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 ^ (self.0 >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed >> 11) as f64 / (1u64 << 53) as f64
    }

    fn log_between(&mut self, low: f64, high: f64) -> f64 {
        (low.ln() + self.next() * (high / low).ln()).exp().clamp(low, high)
    }
}

/// dp-accounting 0.6.0, RDP with its own list of orders, and its PLD's upper end: q, σ, T, δ, RDP,
/// PLD.
const POISSON: [(f64, f64, u64, f64, f64, f64); 12] = [
    (0.01, 1.0, 1000, 1e-5, 2.1014, 1.8282),
    (0.01, 1.0, 1000, 1e-6, 2.4367, 2.1245),
    (0.001, 0.8, 10_000, 1e-5, 1.3838, 0.7825),
    (0.001, 0.8, 10_000, 1e-6, 1.7036, 0.9473),
    (0.004, 1.1, 15_000, 1e-5, 2.5029, 2.2955),
    (0.004, 1.1, 15_000, 1e-6, 2.8003, 2.6004),
    (0.05, 2.0, 500, 1e-5, 2.7686, 2.5320),
    (0.05, 2.0, 500, 1e-6, 3.1019, 2.8726),
    (0.2, 4.0, 100, 1e-5, 2.2982, 2.1021),
    (0.2, 4.0, 100, 1e-6, 2.5787, 2.3891),
    (0.0001, 0.6, 100_000, 1e-5, 1.8196, 0.6093),
    (0.0001, 0.6, 100_000, 1e-6, 2.2674, 0.9638),
];

#[test]
fn poisson_is_no_worse_than_a_list_of_orders_and_no_better_than_the_loss_itself() {
    for (rate, sigma, steps, delta, listed, sharp) in POISSON {
        let run = Event::poisson(rate, sigma).unwrap().repeat(steps).unwrap();
        let got = epsilon(&run, AddRemove, delta).unwrap();
        let main = crate::epsilon(&run, AddRemove, delta).unwrap();
        assert!(got <= listed + 1e-3 && got > 0.97 * listed, "{got} {listed}");
        assert!(got >= main.upper && got >= sharp, "{got} {main:?}");
    }
}

/// dp-accounting 0.6.0, whose σ is noise over what *replacing* a record changes: n, batch, σ, T, δ,
/// ε.
const FIXED: [(u64, u64, f64, u64, f64, f64); 12] = [
    (60_000, 600, 1.0, 1000, 1e-5, 3.5761),
    (60_000, 600, 1.0, 1000, 1e-6, 4.0212),
    (60_000, 60, 0.8, 10_000, 1e-5, 1.6503),
    (60_000, 60, 0.8, 10_000, 1e-6, 1.9792),
    (50_000, 200, 1.1, 15_000, 1e-5, 5.0526),
    (50_000, 200, 1.1, 15_000, 1e-6, 5.6063),
    (10_000, 500, 2.0, 500, 1e-5, 6.0389),
    (10_000, 500, 2.0, 500, 1e-6, 6.6146),
    (1000, 200, 4.0, 100, 1e-5, 4.9598),
    (1000, 200, 4.0, 100, 1e-6, 5.4945),
    (50_000, 512, 2.0, 5000, 1e-5, 3.5799),
    (50_000, 512, 2.0, 5000, 1e-6, 3.9636),
];

#[test]
fn fixed_size_is_no_worse_than_a_list_of_orders() {
    for (records, batch, sigma, steps, delta, listed) in FIXED {
        let run = Event::fixed_size(records, batch, 2.0 * sigma).unwrap().repeat(steps).unwrap();
        let got = epsilon(&run, ReplaceOne, delta).unwrap();
        let main = crate::epsilon(&run, ReplaceOne, delta).unwrap();
        assert!(got <= listed + 1e-3 && got > 0.97 * listed, "{got} {listed}");
        assert!(got >= main.lower, "{got} {main:?}");
    }
}

/// dp-accounting 0.6.0 at T = 100 and δ = 1e-5.
#[test]
fn laplace_is_no_worse_than_a_list_of_orders() {
    for (scale, listed) in [(0.5, 164.7972), (1.0, 70.7779), (2.0, 29.9701), (10.0, 4.5327)] {
        let run = Event::laplace(scale).unwrap().repeat(100).unwrap();
        let got = epsilon(&run, AddRemove, 1e-5).unwrap();
        let main = crate::epsilon(&run, AddRemove, 1e-5).unwrap();
        assert!(got <= listed && got > 0.97 * listed && got >= main.upper, "{got} {listed}");
        // One release is never above its largest loss.
        let one = epsilon(&Event::laplace(scale).unwrap(), AddRemove, 1e-12).unwrap();
        assert!(one <= (1.0 + 1e-11) / scale, "{one}");
    }
}

#[test]
fn it_costs_a_few_percent_over_the_exact_gaussian() {
    for rho in [1e-4_f64, 1e-3, 1e-2, 0.1, 1.0, 10.0] {
        let event = Event::gaussian((0.5 / rho).sqrt()).unwrap();
        let got = epsilon(&event, AddRemove, 1e-5).unwrap();
        let exact = crate::epsilon(&event, AddRemove, 1e-5).unwrap().upper;
        assert!((1.04..1.14).contains(&(got / exact)), "{rho} {got} {exact}");
    }
}

/// E_Q R^α and E_P R^(-α) by the trapezoidal rule, whose error for such integrands is far below
/// rounding.
fn quadrature(rate: f64, sigma: f64, alpha: f64, removed: bool) -> f64 {
    let (low, high) = (-12.0 * sigma - alpha, 12.0 * sigma + alpha);
    let count = 200_000;
    let step = (high - low) / count as f64;
    let mut logs = Vec::with_capacity(count + 1);
    for i in 0..=count {
        let z = low + step * i as f64;
        let log_q = -0.5 * (z / sigma).powi(2);
        let shift = (z - 0.5) / (sigma * sigma);
        let log_ratio = if shift > 0.0 {
            shift + (rate + (1.0 - rate) * (-shift).exp()).ln()
        } else {
            (1.0 - rate + rate * shift.exp()).ln()
        };
        logs.push(log_q + if removed { alpha } else { 1.0 - alpha } * log_ratio);
    }
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logs.iter().map(|l| (l - most).exp()).sum();
    (most + (sum * step / (sigma * std::f64::consts::TAU.sqrt())).ln()) / (alpha - 1.0)
}

#[test]
fn poisson_divergence_is_the_integral_in_its_worse_direction() {
    let mut loosest: f64 = 0.0;
    for (rate, sigma) in [(0.01, 1.0), (0.2, 4.0), (0.5, 0.7), (0.001, 0.5), (0.9, 2.0)] {
        let event = Event::poisson(rate, sigma).unwrap();
        for alpha in [1.05, 1.5, 1.9, 2.0, 2.5, 3.0, 4.3, 8.0, 12.7, 30.0, 45.5] {
            let got = divergence(&event, AddRemove, alpha).unwrap();
            let (removed, added) =
                (quadrature(rate, sigma, alpha, true), quadrature(rate, sigma, alpha, false));
            assert!(
                added <= removed * (1.0 + 1e-9) + 1e-13,
                "{rate} {sigma} {alpha} {added} {removed}"
            );
            assert!(
                got >= removed * (1.0 - 1e-11) - 1e-14,
                "{rate} {sigma} {alpha} {got} {removed}"
            );
            if alpha == alpha.floor() {
                assert!(
                    (got / removed - 1.0).abs() < 1e-8,
                    "{rate} {sigma} {alpha} {got} {removed}"
                );
            }
            loosest = loosest.max(got / removed);
        }
    }
    // Rounding is all that is lost.
    assert!(loosest < 1.0 + 1e-6, "{loosest}");
}

/// The pair of replace-one on a Poisson sample, N(0) mixed with N(±1), by the same rule.
#[test]
fn replaced_poisson_divergence_is_above_the_integral() {
    for (rate, sigma) in [(0.01, 1.0), (0.2, 4.0), (0.5, 0.7), (0.001, 2.0), (0.9, 2.0)] {
        let event = Event::poisson(rate, sigma).unwrap();
        for alpha in [1.05, 1.5, 2.0, 3.0, 4.3, 8.0, 12.7] {
            let (low, step) = (-12.0 * sigma - 2.0 * alpha, 24.0 * sigma + 4.0 * alpha);
            let step = step / 200_000.0;
            let sum: f64 = (0..=200_000)
                .map(|i| {
                    let z = low + step * i as f64;
                    let mixed =
                        |s: f64| (1.0 - rate + rate * ((s * z - 0.5) / (sigma * sigma)).exp()).ln();
                    (-0.5 * (z / sigma).powi(2) + alpha * mixed(1.0) + (1.0 - alpha) * mixed(-1.0))
                        .exp()
                })
                .sum();
            let want = (sum * step / (sigma * std::f64::consts::TAU.sqrt())).ln() / (alpha - 1.0);
            let got = divergence(&event, ReplaceOne, alpha).unwrap();
            assert!(got >= want * (1.0 - 1e-10) - 1e-13, "{rate} {sigma} {alpha} {got} {want}");
        }
    }
}

fn leaf(draws: &mut Draws) -> Event {
    let noise = draws.log_between(0.3, 30.0);
    let rate = draws.log_between(1e-4, 1.0);
    match (draws.next() * 6.0) as u32 {
        0 => Event::gaussian(noise),
        1 => Event::laplace(noise),
        2 => Event::exponential(draws.log_between(0.01, 8.0)),
        3 | 4 => Event::poisson(rate, noise),
        _ => {
            let batch = draws.log_between(1.0, 1e4) as u64;
            Event::fixed_size(10_000, batch, noise)
        }
    }
    .unwrap()
}

/// Two accountants that share only the normal distribution. What some neighbours really leak is
/// below both.
#[test]
fn no_answer_is_below_what_the_main_accountant_shows_to_leak() {
    let mut draws = Draws(20_260_901);
    let mut close = 0;
    for case in 0..120 {
        let mut event = leaf(&mut draws).repeat(draws.log_between(1.0, 3000.0) as u64).unwrap();
        if draws.next() < 0.3 {
            event =
                event.then(leaf(&mut draws).repeat(draws.log_between(1.0, 30.0) as u64).unwrap());
        }
        if draws.next() < 0.2 {
            event = Event::disjoint(vec![event, leaf(&mut draws)]).unwrap();
        }
        let delta = draws.log_between(1e-10, 0.1);
        for neighbours in [AddRemove, ReplaceOne] {
            let got = epsilon(&event, neighbours, delta).unwrap();
            let main = crate::epsilon(&event, neighbours, delta).unwrap();
            assert!(
                got >= main.lower,
                "case {case} {event:?} {neighbours:?} {delta:e}: {got} {main:?}"
            );
            close += usize::from(got < 1.2 * main.lower);
        }
    }
    // A bound that was far above would prove nothing.
    assert!(close > 80, "{close}");
}

#[test]
fn corners_of_the_domain_are_finite_and_in_order() {
    for noise in [0.1, 1.0, 100.0, 1e5] {
        for rate in [1e-9, 1e-3, 0.5, 0.999, 1.0] {
            for steps in [1, 10_000_000] {
                for neighbours in [AddRemove, ReplaceOne] {
                    let run = Event::poisson(rate, noise).unwrap().repeat(steps).unwrap();
                    let whole = Event::gaussian(noise).unwrap().repeat(steps).unwrap();
                    let mut last = f64::INFINITY;
                    for delta in [1e-12, 1e-5, 0.5] {
                        let got = epsilon(&run, neighbours, delta).unwrap();
                        let plain = epsilon(&whole, neighbours, delta).unwrap();
                        assert!(
                            got.is_finite() && got >= 0.0 && got <= last,
                            "{noise} {rate} {steps} {got}"
                        );
                        assert!(
                            got <= plain * (1.0 + 1e-6) + 1e-7,
                            "{noise} {rate} {steps} {got} {plain}"
                        );
                        last = got;
                    }
                }
            }
        }
    }
}

/// Up to rounding, which is added relative to one and shows next to α = 1.
#[test]
fn divergence_grows_with_the_order() {
    let runs = [
        Event::poisson(0.01, 0.9).unwrap(),
        Event::fixed_size(1000, 7, 3.0).unwrap(),
        Event::laplace(0.7).unwrap(),
        Event::exponential(1.3).unwrap(),
    ];
    for run in runs {
        for neighbours in [AddRemove, ReplaceOne] {
            let mut last = 0.0;
            for i in 0..300 {
                let alpha = 1.0 + (-8.0 + 0.05 * i as f64).exp();
                let got = divergence(&run, neighbours, alpha).unwrap();
                assert!(
                    got.is_finite() && got > 0.0 && got >= last * (1.0 - 1e-8),
                    "{run:?} {alpha} {got} {last}"
                );
                last = got;
            }
        }
    }
}

#[test]
fn what_has_no_closed_form_is_refused_by_name() {
    let allocation = Event::random_allocation(100, 1, 1.0).unwrap();
    let error = epsilon(&allocation, AddRemove, 1e-5).unwrap_err();
    assert!(
        error.to_string().contains("random allocation") && error.to_string().contains("`epsilon`"),
        "{error}"
    );
    let run = |participation| {
        Event::correlated(
            CorrelatedGaussian::new(Strategy::Lambda(0.9), participation, 100, 20.0).unwrap(),
        )
    };
    for participation in
        [Participation::Poisson { rate: 0.1 }, Participation::BallsAndBins { bins: 10 }]
    {
        assert!(epsilon(&run(participation), AddRemove, 1e-5).is_err(), "{participation:?}");
    }
    for participation in [
        Participation::FullBatch,
        Participation::Cyclic { period: 10 },
        Participation::Separated { separation: 10, most: 4 },
    ] {
        let event = run(participation);
        let exact = crate::epsilon(&event, AddRemove, 1e-5).unwrap().upper;
        let got = epsilon(&event, AddRemove, 1e-5).unwrap();
        assert!((1.0..1.14).contains(&(got / exact)), "{got} {exact}");
    }
    for alpha in [1.0, 0.5, f64::NAN, f64::INFINITY] {
        assert!(divergence(&Event::gaussian(1.0).unwrap(), AddRemove, alpha).is_err());
    }
}

#[test]
fn composition_adds_repeats_and_takes_the_worse() {
    let (a, b) = (Event::poisson(0.1, 1.0).unwrap(), Event::laplace(2.0).unwrap());
    let at = |e: &Event| divergence(e, AddRemove, 3.5).unwrap();
    let close = |x: f64, y: f64| assert!((x / y - 1.0).abs() < 1e-11, "{x} {y}");
    close(at(&a.clone().repeat(7).unwrap()), 7.0 * at(&a));
    close(at(&a.clone().then(b.clone())), at(&a) + at(&b));
    close(at(&Event::disjoint(vec![a.clone(), b.clone()]).unwrap()), at(&a).max(at(&b)));
}
