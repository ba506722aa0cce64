//! The claim about one row, attacked; and estimates against the truth.
use quietly_core::random::Random;
use quietly_noise::Key;

use super::*;

fn moved(a: &[i128], b: &[i128]) -> f64 {
    (a.iter().zip(b).map(|(a, b)| (a - b).pow(2)).sum::<i128>() as f64).sqrt() / UNITS
}

/// Rows of every length, at the corners and inside, of both classes; neighbours are turned round, shortened or moved.
fn rows(width: usize, random: &mut Random) -> [(Vec<f64>, usize); 2] {
    let mut one = |other: Option<&Vec<f64>>| {
        let size = [0.0, 1e-9, 0.5, 1.0, 1.0][random.word() as usize % 5];
        let corner = random.word().is_multiple_of(2);
        let entry = |at: usize| match other {
            Some(other) if corner => -other[at] * size,
            _ if corner => size * if random.word().is_multiple_of(2) { 1.0 } else { -1.0 },
            _ => size * random.number(),
        };
        let row: Vec<f64> = (0..width).map(entry).collect();
        (row, random.word() as usize % 2)
    };
    let first = one(None);
    let second = one(Some(&first.0));
    [first, second]
}

/// The largest step that one row makes the sums take, by brute force: there or not, and replaced.
fn largest(layout: &Layout, width: usize, rounds: usize) -> (f64, f64) {
    let mut random = Random(21);
    let (mut joins, mut replaced) = (0.0_f64, 0.0_f64);
    for _ in 0..rounds {
        let [first, second] = rows(width, &mut random);
        let sums = |row: &(Vec<f64>, usize)| {
            let mut sums = layout.sums();
            layout.add(&mut sums, &row.0, row.1);
            sums
        };
        let (none, a, b) = (layout.sums(), sums(&first), sums(&second));
        joins = joins.max(moved(&a, &none)).max(moved(&b, &none));
        replaced = replaced.max(moved(&a, &b));
    }
    (joins, replaced)
}

#[test]
fn one_row_moves_the_sums_by_root_three_or_two() {
    for (width, projected) in [(1, false), (2, false), (17, false), (200, true)] {
        let layout = Layout::new(width, projected).unwrap();
        let (joins, replaced) = largest(&layout, width, 4000);
        assert!(joins <= bound(Neighbours::AddRemove) / UNITS, "{width}: {joins}");
        assert!(replaced <= 2.0 * bound(Neighbours::ReplaceOne) / UNITS, "{width}: {replaced}");
        // The same attack must break smaller claims: √2, as if only one of x, ‖x‖² and the count moved with another, and √3
        // for a replaced row.
        assert!(joins > 0.999 * 3.0_f64.sqrt(), "{width}: {joins}");
        assert!(replaced > 1.999, "{width}: {replaced}");
    }
}

/// Golden by a grid over both lengths and classes, without a lattice: the two bounds are the largest values, not only upper ones.
#[test]
fn the_bounds_are_the_largest_values_on_a_grid() {
    let (mut joins, mut same, mut other) = (0.0_f64, 0.0_f64, 0.0_f64);
    for i in 0..=200 {
        for k in 0..=200 {
            let (s, r) = (f64::from(i) / 200.0, f64::from(k) / 200.0);
            joins = joins.max(s * s + s.powi(4) + 1.0);
            same = same.max((s + r).powi(2) + (s * s - r * r).powi(2));
            other = other.max(s * s + r * r + (s * s - r * r).powi(2) + 2.0);
        }
    }
    assert_eq!((joins, same, other), (3.0, 4.0, 4.0));
}

/// Rows of two classes, apart by 2·`apart` in the first feature; the others are even within ±1/2.
fn table(width: usize, count: usize, apart: f64, seed: u64) -> Vec<(Vec<f64>, usize)> {
    let mut random = Random(seed);
    let row = |i: usize, random: &mut Random| {
        let class = i % 2;
        let mut row: Vec<f64> = (0..width).map(|_| 0.5 * random.number()).collect();
        row[0] += if class == 1 { apart } else { -apart };
        (row, class)
    };
    (0..count).map(|i| row(i, &mut random)).collect()
}

fn estimate(rows: &[(Vec<f64>, usize)], budget: Budget, seed: u64) -> (Separation, bool) {
    let width = rows[0].0.len();
    let plan = Release::plan(width, rows.len() as u64, budget).unwrap();
    let mut sums = plan.layout.sums();
    rows.iter().for_each(|(row, class)| plan.layout.add(&mut sums, row, *class));
    let mut releaser = Releaser::new(Key::from_seed(seed), &plan.stages, 1);
    let separation = plan.run(Private::new(sums), &mut releaser).unwrap();
    (separation, plan.layout.directions.is_some())
}

/// ‖v‖ = 0.3 and a variance of 1/12 in each of 20 features.
#[test]
fn a_private_estimate_is_near_the_truth() {
    let truth = 0.3 / (20.0_f64 / 12.0).sqrt();
    for neighbours in [Neighbours::AddRemove, Neighbours::ReplaceOne] {
        let budget = Budget::new(1.0, 1e-5).unwrap().under(neighbours);
        let rows = table(20, 20_000, 0.3, 31);
        for seed in 0..5 {
            let (found, projected) = estimate(&rows, budget, seed);
            assert!(!projected && (found.snr / truth - 1.0).abs() < 0.1, "{found:?} {truth}");
            assert!(found.low <= truth && truth <= found.high, "{found:?}");
            assert!((found.rows / 20_000.0 - 1.0).abs() < 0.01);
        }
    }
}

/// Where there is no signal the noise is taken off: estimates of ‖v‖² are even about 0, where they would all be large without it.
#[test]
fn noise_is_not_taken_for_a_signal() {
    let budget = Budget::new(0.1, 1e-5).unwrap();
    let rows = table(40, 3000, 0.0, 32);
    let all: Vec<Separation> = (0..40).map(|seed| estimate(&rows, budget, seed).0).collect();
    let zero = all.iter().filter(|s| s.snr == 0.0).count();
    assert!((8..=32).contains(&zero), "{zero}");
    let seen = all.iter().filter(|s| s.stands_out()).count();
    assert!(seen <= 4, "{seen}");
    // What is taken off is not small: without it every estimate would be above this.
    let tau = all[0].noise.unwrap() * 8.0_f64.sqrt() / 3000.0;
    assert!(0.25 * 40.0 * tau * tau > 0.01, "{tau}");
}

/// 2000 features and a tenth of the rows that they would need: without directions there is nothing to see.
#[test]
fn a_wide_table_is_projected() {
    let rows = table(2000, 1000, 0.0, 33);
    let shifted: Vec<(Vec<f64>, usize)> = rows
        .into_iter()
        .map(|(row, class)| {
            let by = if class == 1 { 0.4 } else { -0.4 };
            (row.into_iter().map(|x| x + by).collect(), class)
        })
        .collect();
    let truth = 0.4 * 12.0_f64.sqrt();
    let (found, projected) = estimate(&shifted, Budget::new(0.2, 1e-5).unwrap(), 1);
    assert!(projected && found.directions == Some(64));
    assert!(found.low <= truth && truth <= found.high && found.stands_out(), "{found:?} {truth}");
}
