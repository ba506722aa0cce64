//! Correlated noise against enumeration of all participations, with explicit gradients of either
//! sign.
mod common;
use common::*;
use quietly_accounting::{CorrelatedGaussian, Event, Neighbours, Participation, Strategy, epsilon};

type Matrix = Vec<Vec<f64>>;

fn lambda(lambda: f64, steps: usize) -> Matrix {
    (0..steps).map(|i| (0..=i).map(|j| lambda.powi((i - j) as i32)).collect()).collect()
}

/// C·(signs∘y).
fn mean(c: &Matrix, y: usize, signs: usize) -> Vec<f64> {
    let entry = |j: usize| match (y >> j & 1, signs >> j & 1) {
        (0, _) => 0.0,
        (_, 0) => 1.0,
        _ => -1.0,
    };
    c.iter().map(|row| row.iter().enumerate().map(|(j, x)| x * entry(j)).sum()).collect()
}

fn energy(c: &Matrix, y: usize, signs: usize) -> f64 {
    mean(c, y, signs).iter().map(|x| x * x).sum()
}

fn event(strategy: Strategy, participation: Participation, steps: usize, noise: f64) -> Event {
    Event::correlated(
        CorrelatedGaussian::new(strategy, participation, steps as u64, noise).unwrap(),
    )
}

/// ε of one Gaussian whose squared sensitivity is `energy`.
fn gaussian(energy: f64, noise: f64, neighbours: Neighbours) -> f64 {
    epsilon(&Event::gaussian(noise / energy.sqrt()).unwrap(), neighbours, 1e-5).unwrap().upper
}

#[test]
fn fixed_patterns_cost_the_worst_of_all_patterns() {
    let steps = 10;
    let strategies = [
        (Strategy::Lambda(0.7), lambda(0.7, steps)),
        (Strategy::Matrix(lambda(0.4, steps)), lambda(0.4, steps)),
    ];
    for (strategy, c) in strategies {
        for relation in [AddRemove, ReplaceOne] {
            let check = |participation, allowed: &dyn Fn(usize) -> bool| {
                let worst = (0..1 << steps)
                    .filter(|y| allowed(*y))
                    .map(|y| energy(&c, y, 0))
                    .fold(0.0, f64::max);
                let run = event(strategy.clone(), participation, steps, 3.0);
                let answer = epsilon(&run, relation, 1e-5).unwrap();
                let wanted = gaussian(worst, 3.0, relation);
                assert!(
                    (answer.upper / wanted - 1.0).abs() < 1e-9,
                    "{participation:?} {answer:?} {wanted}"
                );
                assert!(
                    (answer.lower / wanted - 1.0).abs() < 1e-9,
                    "{participation:?} {answer:?} {wanted}"
                );
            };
            check(Participation::FullBatch, &|_| true);
            let cyclic =
                |y: usize| (0..3).any(|s| (0..steps).all(|t| (y >> t & 1 == 1) == (t % 3 == s)));
            check(Participation::Cyclic { period: 3 }, &cyclic);
            if strategy == Strategy::Lambda(0.7) {
                for (separation, most) in [(1, 3), (2, 3), (3, 2), (4, 10), (10, 1)] {
                    let far = |y: usize| {
                        (1..separation).all(|d| y & (y >> d) == 0) && y.count_ones() <= most
                    };
                    let both = Participation::Separated { separation, most: u64::from(most) };
                    check(both, &far);
                }
            }
        }
    }
}

/// Entries of either sign: gradients of either sign may line up with them, and no pattern may
/// exceed the charge.
#[test]
fn negative_entries_are_charged_for_gradients_that_line_up() {
    let (steps, mut lined_up) = (6, 0);
    let bands = [1.0, -0.8, 0.5, -0.2];
    let toeplitz: Matrix = (0..steps)
        .map(|i| (0..=i).map(|j| bands.get(i - j).copied().unwrap_or(0.0)).collect())
        .collect();
    let rows: Matrix = (0..steps)
        .map(|i| {
            (0..=i)
                .map(|j| if i == j { 1.0 } else { ((7 * i + 3 * j) % 5) as f64 / 2.0 - 1.0 })
                .collect()
        })
        .collect();
    for (strategy, c) in
        [(Strategy::Banded(bands.to_vec()), toeplitz), (Strategy::Matrix(rows.clone()), rows)]
    {
        for (participation, allowed) in [
            (Participation::FullBatch, 0b11_1111_usize),
            (Participation::Cyclic { period: 2 }, 0b01_0101),
        ] {
            let worst = (0..1 << steps).map(|s| energy(&c, allowed, s)).fold(0.0, f64::max);
            let run = event(strategy.clone(), participation, steps, 2.0);
            for relation in [AddRemove, ReplaceOne] {
                let answer = epsilon(&run, relation, 1e-5).unwrap();
                let wanted = gaussian(worst, 2.0, relation);
                assert!(
                    answer.upper >= wanted * (1.0 - 1e-9),
                    "{participation:?} {answer:?} {wanted}"
                );
                assert!(
                    answer.lower <= wanted * (1.0 + 1e-9),
                    "{participation:?} {answer:?} {wanted}"
                );
                lined_up += usize::from(energy(&c, allowed, 0) < 0.9 * worst);
            }
        }
    }
    // Mostly the plain sign pattern is not the worst, so that a sum without |·| would be caught.
    assert!(lined_up > 3, "{lined_up}");
}

/// Densities of Σ_y P(y) N(C(signs∘y), κ²I) at x, for each of `signs`.
fn mixture<const D: usize>(c: &Matrix, signs: usize, weights: &[f64]) -> Vec<(f64, Vec<f64>)> {
    weights
        .iter()
        .enumerate()
        .filter(|(_, w)| **w > 0.0)
        .map(|(y, w)| (*w, mean(c, y, signs)))
        .collect()
}

fn at<const D: usize>(mixture: &[(f64, Vec<f64>)], x: &[f64; D], noise: f64) -> f64 {
    mixture.iter().map(|(w, m)| w * bump(x, m, noise)).sum()
}

fn poisson_weights(rate: f64, steps: usize) -> Vec<f64> {
    (0..1_usize << steps)
        .map(|y| {
            rate.powi(y.count_ones() as i32)
                * (1.0 - rate).powi((steps - y.count_ones() as usize) as i32)
        })
        .collect()
}

/// Both directions of add-remove and the ± pair of replace-one, by a sum over R^D.
fn brute<const D: usize>(
    c: &Matrix,
    weights: &[f64],
    noise: f64,
    cells: usize,
    eps: f64,
) -> (f64, f64) {
    let (plus, minus) = (mixture::<D>(c, 0, weights), mixture::<D>(c, (1 << D) - 1, weights));
    let largest = c.iter().map(|r| r.iter().map(|x| x.abs()).sum::<f64>()).fold(0.0, f64::max);
    let reach = largest + 7.0 * noise;
    let nothing = |x: &[f64; D]| bump(x, &[0.0; D], noise);
    let removed = grid::<D>(reach, cells, eps, |x| (at(&plus, x, noise), nothing(x)));
    let added = grid::<D>(reach, cells, eps, |x| (nothing(x), at(&plus, x, noise)));
    let replaced = grid::<D>(reach, cells, eps, |x| (at(&plus, x, noise), at(&minus, x, noise)));
    (removed.max(added), replaced)
}

/// The interval must hold the enumerated add-remove pair, and its upper end the ± pair; the lower
/// end under replace-one must not exceed what the best of the two explicit pairs leaks.
#[test]
fn poisson_participation_is_bracketed_by_enumeration() {
    for (l, rate, noise) in [
        (0.5, 0.5, 1.0),
        (0.5, 0.9, 0.5),
        (0.9, 0.3, 2.0),
        (0.9, 0.9, 1.0),
        (0.0, 0.5, 1.0),
        (0.99, 0.05, 1.0),
    ] {
        let run = event(Strategy::Lambda(l), Participation::Poisson { rate }, 2, noise);
        for eps in [0.05, 0.5, 2.0] {
            let (truth, replaced) =
                brute::<2>(&lambda(l, 2), &poisson_weights(rate, 2), noise, 500, eps);
            let what = format!("{l} {rate} {noise} {eps}");
            holds(&what, asked(&run, AddRemove, eps), truth, 1e-3);
            holds(
                &format!("replaced {what}"),
                asked(&run, ReplaceOne, eps),
                replaced.max(truth),
                1e-3,
            );
        }
    }
    for (l, rate, noise) in [(0.5, 0.6, 1.0), (0.9, 0.2, 1.5)] {
        let run = event(Strategy::Lambda(l), Participation::Poisson { rate }, 3, noise);
        for eps in [0.3, 1.5] {
            let (truth, replaced) =
                brute::<3>(&lambda(l, 3), &poisson_weights(rate, 3), noise, 60, eps);
            let what = format!("three steps {l} {rate} {noise} {eps}");
            holds(&what, asked(&run, AddRemove, eps), truth, 5e-3);
            holds(
                &format!("replaced {what}"),
                asked(&run, ReplaceOne, eps),
                replaced.max(truth),
                5e-3,
            );
        }
    }
}

/// At high rates the law of the revealed participation must keep all of its mass up to full
/// participation.
#[test]
fn a_record_that_nearly_always_takes_part_is_charged_nearly_in_full() {
    for l in [0.1, 0.3, 0.5, 0.7, 0.9] {
        for steps in [2, 3, 5, 8, 20] {
            for rate in [0.9_f64, 0.99] {
                let noise = 2.0 / (1.0 - l);
                // δ is at least P(all steps)·δ(full) less the rest's e^ε: compare with full
                // participation at ε = 0.001.
                let full = asked(
                    &event(Strategy::Lambda(l), Participation::FullBatch, steps, noise),
                    AddRemove,
                    0.001,
                )
                .lower;
                let all = rate.powi(steps as i32);
                for participation in
                    [Participation::Poisson { rate }, Participation::FixedSize { share: rate }]
                {
                    let answer = asked(
                        &event(Strategy::Lambda(l), participation, steps, noise),
                        AddRemove,
                        0.001,
                    );
                    // The sum of C·(sums) is larger the more steps are taken, so its law dominates
                    // that of "all or nothing".
                    assert!(
                        answer.upper >= 0.9 * all * full,
                        "{participation:?} {l} {steps} {answer:?} {full}"
                    );
                }
            }
        }
    }
}

/// Two passes over b bins: P is a mixture of b Gaussians in R^T.
#[test]
fn balls_in_bins_are_bracketed_by_enumeration() {
    for (l, noise) in [(0.0, 1.0), (0.5, 1.5), (0.9, 2.0)] {
        let run = event(Strategy::Lambda(l), Participation::BallsAndBins { bins: 2 }, 4, noise);
        let c = lambda(l, 4);
        // In the plane of the two means only.
        let (a, b) = (mean(&c, 0b0101, 0), mean(&c, 0b1010, 0));
        let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
        let first = dot(&a, &a).sqrt();
        let along = dot(&a, &b) / first;
        let means = [vec![first, 0.0], vec![along, (dot(&b, &b) - along * along).max(0.0).sqrt()]];
        for eps in [0.1, 1.0, 3.0] {
            let plus = |x: &[f64; 2]| 0.5 * means.iter().map(|m| bump(x, m, noise)).sum::<f64>();
            let minus = |x: &[f64; 2]| plus(&[-x[0], -x[1]]);
            let nothing = |x: &[f64; 2]| bump(x, &[0.0, 0.0], noise);
            let reach = first + 7.0 * noise;
            let truth =
                grid(reach, 500, eps, |x| (plus(x), nothing(x)))
                    .max(grid(reach, 500, eps, |x| (nothing(x), plus(x))));
            let replaced = grid(reach, 500, eps, |x| (plus(x), minus(x)));
            holds(&format!("{l} {noise} {eps}"), asked(&run, AddRemove, eps), truth, 1e-3);
            holds(
                &format!("replaced {l} {noise} {eps}"),
                asked(&run, ReplaceOne, eps),
                replaced.max(truth),
                1e-3,
            );
        }
    }
}

/// Bands no longer than the period: exactly independent samples with the norm of a column.
#[test]
fn banded_cyclic_poisson_is_independent_samples() {
    for (rate, noise) in [(0.5, 1.0), (0.1, 0.7)] {
        let run = event(
            Strategy::Banded(vec![1.0, 0.6]),
            Participation::CyclicPoisson { period: 2, rate },
            4,
            noise,
        );
        let sigma = noise / 1.36_f64.sqrt();
        for eps in [0.2, 1.0] {
            let truth = |one: Normals| composed(&[&one, &one], eps, 4001);
            let both = truth(Normals::removed(rate, sigma)).max(truth(Normals::added(rate, sigma)));
            holds("banded", asked(&run, AddRemove, eps), both, 1e-6);
            holds(
                "banded, replaced",
                asked(&run, ReplaceOne, eps),
                truth(Normals::replaced(rate, sigma)),
                1e-6,
            );
        }
    }
}

/// A record sits in one leaf and hence in ⌈log₂ T⌉ + 1 nodes.
#[test]
fn a_tree_is_its_levels() {
    for (leaves, levels) in
        [(1, 1), (2, 2), (3, 3), (4, 3), (5, 4), (1000, 11), (1024, 11), (1025, 12)]
    {
        let tree = epsilon(&Event::tree(leaves, 5.0).unwrap(), AddRemove, 1e-5).unwrap();
        let plain =
            epsilon(&Event::gaussian(5.0).unwrap().repeat(levels).unwrap(), AddRemove, 1e-5)
                .unwrap();
        assert_eq!((tree.lower, tree.upper), (plain.lower, plain.upper), "{leaves}");
    }
}
