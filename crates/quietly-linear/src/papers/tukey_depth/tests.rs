use std::collections::HashMap;

use quietly_noise::Key;

use super::*;

/// How many points are on the thinner side of `y`, by counting.
fn depth(models: &[Vec<i64>], y: &[i64]) -> i64 {
    let sides = (0..y.len()).flat_map(|j| {
        let below = models.iter().filter(|w| w[j] <= y[j]).count();
        let above = models.iter().filter(|w| w[j] >= y[j]).count();
        [below, above]
    });
    sides.min().expect("there are coordinates").min(models.len() / 2) as i64
}

/// All points of a lattice of `d` coordinates within ±`edge`.
fn lattice(d: usize, edge: i64) -> Vec<Vec<i64>> {
    let mut points = vec![vec![]];
    for _ in 0..d {
        let grown = |p: &Vec<i64>| {
            let p = p.clone();
            (-edge..=edge).map(move |x| [&p[..], &[x]].concat())
        };
        points = points.iter().flat_map(grown).collect();
    }
    points
}

/// All ways to choose m of `kinds` things where the order does not matter, as sorted indices.
fn choices(kinds: usize, m: usize) -> Vec<Vec<u8>> {
    let mut all = vec![vec![]];
    for _ in 0..m {
        let grown = |c: &Vec<u8>| {
            let c = c.clone();
            (c.last().copied().unwrap_or(0)..kinds as u8).map(move |k| [&c[..], &[k]].concat())
        };
        all = all.iter().flat_map(grown).collect();
    }
    all
}

/// The probability of every lattice point, given that there is one.
fn law(deep: &Deep, terms: &Terms, points: &[Vec<i64>]) -> Vec<f64> {
    let (pieces, scores) = deep.pieces(terms);
    let top = *scores.iter().max().expect("there is a piece");
    let weight = |s: i64| ((s - top) as f64 / ONE).exp();
    let total: f64 = scores.iter().map(|&s| weight(s)).sum();
    let inside = |y: &[i64], level: usize| {
        let ends = deep.boxes.get(level);
        ends.is_some_and(|ends| y.iter().zip(ends).all(|(y, (l, h))| (l..=h).contains(&y)))
    };
    let owner = |y: &[i64]| {
        let level = (deep.least..deep.boxes.len()).rfind(|&i| inside(y, i))?;
        let out = |j: &usize| {
            deep.boxes.get(level + 1).is_some_and(|b| !(b[*j].0..=b[*j].1).contains(&y[*j]))
        };
        let place = (0..y.len()).find(out).unwrap_or(y.len());
        pieces.iter().position(|p| p.level == level && p.place == place)
    };
    let owners: Vec<Option<usize>> = points.iter().map(|y| owner(y)).collect();
    let share = |k: usize| owners.iter().filter(|o| **o == Some(k)).count() as f64;
    let each = |o: &Option<usize>| o.map_or(0.0, |k| weight(scores[k]) / total / share(k));
    owners.iter().map(each).collect()
}

/// P(distance + Z ≥ T) for discrete Laplace noise.
fn passes(distance: i64, terms: &Terms) -> f64 {
    let (r, short) = ((-(terms.test as f64) / ONE).exp(), terms.enough - distance);
    let tail = |k: i64| r.powi(k as i32) / (1.0 + r);
    if short > 0 { tail(short) } else { 1.0 - tail(1 - short) }
}

/// What brute force finds over all tables of m models from some places, and all their neighbours.
#[derive(Debug, Default)]
struct Found {
    /// The largest hockey-stick divergence at ε.
    delta: f64,
    /// The same if every table passed the test.
    untested: f64,
    /// How far one model moves the distance, and the depth of a point.
    distance: i64,
    depth: i64,
    /// The largest distance, and the largest chance of a point.
    farthest: i64,
    passing: f64,
}

fn search(places: &[Vec<i64>], edge: i64, m: usize, promise: ApproximateDp) -> Found {
    let d = places[0].len();
    let terms = Terms::new(promise, d).unwrap();
    let points = lattice(d, edge);
    let mut found = Found::default();
    let mut known = HashMap::new();
    for choice in choices(places.len(), m) {
        let models: Vec<Vec<i64>> =
            choice.iter().map(|&k| places[usize::from(k)].clone()).collect();
        let deep = Deep::new(&models, edge);
        let distance = deep.distance(&terms);
        let depths: Vec<i64> = points.iter().map(|y| depth(&models, y)).collect();
        let law = law(&deep, &terms, &points);
        assert!((law.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        // The boxes are the sets of points of some depth, and the law is that of the restricted exponential mechanism.
        let least = (m / 4) as i64;
        let weight =
            |q: i64| if q < least { 0.0 } else { (terms.depth as f64 / ONE * q as f64).exp() };
        let total: f64 = depths.iter().map(|&q| weight(q)).sum();
        for (p, &q) in law.iter().zip(&depths) {
            assert!((p - weight(q) / total).abs() < 1e-7, "{models:?}");
        }
        found.farthest = found.farthest.max(distance);
        found.passing = found.passing.max(passes(distance, &terms));
        known.insert(choice, (distance, law, depths));
    }
    let e = promise.epsilon.exp();
    for (choice, (distance, law, depths)) in &known {
        let pass = passes(*distance, &terms);
        for at in (0..m).filter(|&at| at == 0 || choice[at] != choice[at - 1]) {
            for other in 0..places.len() as u8 {
                let mut there = choice.clone();
                there[at] = other;
                there.sort_unstable();
                let (far, others, deeper) = &known[&there];
                found.distance = found.distance.max((far - distance).abs());
                let moved = depths.iter().zip(deeper).map(|(a, b)| (a - b).abs()).max();
                found.depth = found.depth.max(moved.expect("there are points"));
                let through = passes(*far, &terms);
                let stick = |p: f64, q: f64| {
                    law.iter().zip(others).map(|(a, b)| (p * a - e * q * b).max(0.0)).sum::<f64>()
                };
                let none = ((1.0 - pass) - e * (1.0 - through)).max(0.0);
                found.delta = found.delta.max(none + stick(pass, through));
                found.untested = found.untested.max(stick(1.0, 1.0));
            }
        }
    }
    found
}

/// The whole mechanism, exactly: its output law for every table of m models from some places on a lattice against every
/// neighbour, both ways. The control: without the test, δ is not kept. ε is large, as few models allow no less.
#[test]
fn every_pair_of_neighbours_is_within_epsilon_and_delta() {
    let line = |places: &[i64]| places.iter().map(|&x| vec![x]).collect::<Vec<_>>();
    let plane = |places: &[[i64; 2]]| places.iter().map(|&x| x.to_vec()).collect::<Vec<_>>();
    let cases = [
        (line(&[-1000, -1, 0, 1000]), 1000, 12, 12.0, 0.01),
        (line(&[-1000, 0, 3, 1000]), 1000, 20, 6.0, 0.05),
        (line(&[-300, -3, 0, 1, 300]), 300, 16, 9.0, 0.02),
        (plane(&[[-20, -20], [0, 0], [1, 0], [20, 20], [-20, 20]]), 20, 12, 14.0, 0.01),
    ];
    let mut worst = 0.0_f64;
    for (places, edge, m, epsilon, delta) in cases {
        let found = search(&places, edge, m, ApproximateDp { epsilon, delta });
        println!("{m} {epsilon} {delta} {found:?}");
        assert!(found.delta <= delta, "{found:?}");
        assert!(found.distance == 1 && found.depth == 1, "{found:?}");
        // Some tables are stable and likely to be answered, so that something was tried.
        assert!(found.farthest > 0 && found.passing > 0.3, "{found:?}");
        assert!(found.untested > 2.0 * delta, "{found:?}");
        worst = worst.max(found.delta / delta);
    }
    assert!(worst > 0.3, "{worst}");
}

/// Points follow the law. χ² over 49 points: 106 is the 1 - 1e-6 quantile with 48 degrees of freedom (105.9); some
/// have no chance and never come. The control: a depth worth a tenth more.
#[test]
fn points_follow_the_law() {
    let models: Vec<Vec<i64>> =
        [[-3, 0], [-2, 1], [-1, -3], [0, 0], [0, 2], [1, 1], [2, -1], [3, 3]].map(Vec::from).into();
    let deep = Deep::new(&models, 3);
    let mut terms = Terms::new(ApproximateDp { epsilon: 2.0, delta: 0.1 }, 2).unwrap();
    let points = lattice(2, 3);
    let mut bits = Key::from_seed(5).stream("deep").bits(0).unwrap();
    let mut counts: HashMap<Vec<i64>, f64> = HashMap::new();
    let draws = 200_000.0;
    for _ in 0..draws as usize {
        *counts.entry(deep.draw(&terms, &mut bits).unwrap()).or_default() += 1.0;
    }
    let chi = |terms: &Terms| -> f64 {
        let each = |(y, p): (&Vec<i64>, f64)| {
            let seen = counts.get(y).copied().unwrap_or(0.0);
            assert!(p > 0.0 || seen == 0.0, "{y:?}");
            if p > 0.0 { (seen - draws * p).powi(2) / (draws * p) } else { 0.0 }
        };
        points.iter().zip(law(&deep, terms, &points)).map(each).sum()
    };
    let right = chi(&terms);
    assert!(right < 106.0, "{right}");
    terms.depth += terms.depth / 10;
    let wrong = chi(&terms);
    assert!(wrong > 106.0, "{wrong}");
}

#[test]
fn logarithms_never_fall_and_are_hardly_too_low() {
    let near = |n: u64| [n.saturating_sub(1).max(1), n, n.saturating_add(1)];
    let mut numbers: Vec<u64> = (1..3000).chain((0..63).flat_map(|k| near(1 << k))).collect();
    numbers.extend((0..4000).map(|k| 1.0101_f64.powi(k).min(9e18) as u64));
    numbers.extend((1 << 40..).step_by(97).take(3000));
    numbers.sort_unstable();
    for pair in numbers.windows(2) {
        assert!(log(pair[0]) <= log(pair[1]), "{pair:?}");
    }
    for n in numbers {
        let low = (n as f64).ln() * ONE - log(n) as f64;
        // Double precision has an error of its own: 44·2³²·2⁻⁵².
        assert!((-1e-4..1.01).contains(&low), "{n} {low}");
    }
}

/// P(Z ≥ T) ≤ δ, and T - 1 would not do.
#[test]
fn an_unstable_table_is_answered_with_chance_delta_at_most() {
    for epsilon in [0.01, 0.5, 3.0, 20.0] {
        for delta in [1e-12, 1e-6, 1e-3, 0.2] {
            let terms = Terms::new(ApproximateDp { epsilon, delta }, 5).unwrap();
            assert!(passes(0, &terms) <= delta, "{epsilon} {delta}");
            assert!(terms.enough == 1 || passes(1, &terms) > delta, "{epsilon} {delta}");
            let spent = 2.0 * terms.depth as f64 + terms.test as f64 + 2.0 * 1.01 * 5.0;
            assert!(spent <= epsilon * ONE && spent > epsilon * ONE - 20.0, "{epsilon}");
        }
    }
    assert!(Terms::new(ApproximateDp { epsilon: 1e-9, delta: 0.1 }, 5).is_none());
    assert!(Terms::new(ApproximateDp { epsilon: 1.0, delta: 0.0 }, 5).is_none());
}
