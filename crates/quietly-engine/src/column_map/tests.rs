use quietly_core::random::Random;
use quietly_data::Table;

use super::*;
use crate::{
    query::{Cache, Dataset, Query, Rows},
    transform::RowTransform,
};

/// The exact counts of a column.
fn counts(values: &[f64]) -> Vec<f64> {
    let columns = TreeColumns::Features(vec![0]);
    let query = ColumnTree { columns, neighbours: Neighbours::AddRemove };
    let table = Table::new(1, values.to_vec(), vec![0.0; values.len()]);
    let mut totals = vec![0; NODES];
    query.add(&Rows::all(Dataset::Dense(&table), 0, 1), &mut Cache::once(), &mut totals);
    totals.iter().map(|count| *count as f64 / 1024.0).collect()
}

/// Without noise F is right at every end of a cell, and the interval and moments follow.
#[test]
fn a_map_without_noise_is_that_of_the_column() {
    let mut random = Random(1);
    // A sum of uniforms, about normal, with a long tail at the upper end.
    let mut number = || (0..4).map(|_| random.number()).sum::<f64>() * 0.1;
    let values: Vec<f64> =
        (0..20_000).map(|i| if i % 500 == 0 { 0.9 } else { number() - 0.3 }).collect();
    let column = MappedColumn::from_tree(&counts(&values), 0.0, LEAST_CUT);
    for k in (0..=CELLS).step_by(97) {
        let end = -1.0 + CELL * k as f64;
        let below = values.iter().filter(|x| **x < end).count() as f64 / values.len() as f64;
        assert!(
            (column.ranks[k] - below).abs() < 1e-12 && (column.rank(end) - below).abs() < 1e-12
        );
    }
    let mut sorted = values.clone();
    sorted.sort_by(f64::total_cmp);
    for p in [0.02, 0.25, 0.5, 0.98] {
        let exact = sorted[(p * values.len() as f64) as usize];
        assert!((column.quantile(p) - exact).abs() < 2.0 * CELL, "{p}");
    }
    let (first, third) = (column.quantile(0.25), column.quantile(0.75));
    assert!((column.low - (first - 3.0 * (third - first))).abs() < 1e-12);
    assert!(column.high < 0.9 && column.has_tails() == (true, true));
    let held: Vec<f64> = values.iter().map(|x| column.winsorise(*x)).collect();
    let n = held.len() as f64;
    let mean = held.iter().sum::<f64>() / n;
    let sd = (held.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
    assert!((column.centre - mean).abs() < CELL && (column.sd - sd).abs() < CELL);
    let (below, above) = column.tails(0.9);
    assert!(below == 0.0 && (above - (0.9 - column.high) / (1.0 - column.high)).abs() < 1e-12);
    assert_eq!(column.tails(mean), (0.0, 0.0));
    assert_eq!((column.tails(1.0).1, column.tails(-5.0).0), (1.0, -1.0));
}

/// Released counts with noise: ranks are off by about what is said, five standard deviations at most over all cells of forty columns, and
/// a column of one value stays in one place.
#[test]
fn ranks_are_as_near_as_is_said() {
    let rows = 5000.0;
    let mut random = Random(5);
    let mut normal = move || {
        let (a, b) = (random.number().abs().max(1e-300), random.number());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::PI * b).cos()
    };
    let (mut farthest, mut squares, mut all) = (0.0_f64, 0.0, 0.0);
    let sd = 40.0;
    let values: Vec<f64> = (0..5000).map(|i| 0.0002 * f64::from(i) - 0.5).collect();
    let exact = MappedColumn::from_tree(&counts(&values), 0.0, LEAST_CUT);
    for _ in 0..40 {
        let noisy: Vec<f64> = counts(&values).iter().map(|c| c + sd * normal()).collect();
        let column = MappedColumn::from_tree(&noisy, sd, cut(rank_noise(sd, rows)));
        assert!(column.ranks.is_sorted() && column.ranks[CELLS] == 1.0);
        for (a, b) in column.ranks.iter().zip(&exact.ranks) {
            farthest = farthest.max((a - b).abs());
            squares += (a - b).powi(2);
            all += 1.0;
        }
    }
    let said = rank_noise(sd, rows);
    assert!(farthest < 5.0 * said && (squares / all).sqrt() < said, "{farthest} {said}");

    let spike: Vec<f64> = counts(&vec![0.25; 5000]).iter().map(|c| c + sd * normal()).collect();
    let column = MappedColumn::from_tree(&spike, sd, cut(said));
    assert!((column.centre - 0.25).abs() < 0.01 && column.high - column.low < 0.05);
    assert!(MappedColumn::from_tree(&counts(&vec![0.25; 50]), 0.0, LEAST_CUT).constant);
}

/// Nothing but noise: the map is that of some distribution on the range, whatever comes.
#[test]
fn noise_alone_makes_a_map() {
    for (level, cut) in [(0.0, 0.02), (-5.0, 0.02), (1e9, 0.3), (-1e9, 0.05)] {
        let counts: Vec<f64> = (0..NODES).map(|k| level * (1.0 + (k % 7) as f64)).collect();
        let column = MappedColumn::from_tree(&counts, 3.0, cut);
        assert!(ColumnMap { columns: vec![Some(column)] }.fits(1));
    }
}

#[test]
fn a_map_survives_being_written() {
    let values: Vec<f64> = (0..300).map(|i| (f64::from(i) * 0.7).sin()).collect();
    let column = MappedColumn::from_tree(&counts(&values), 0.0, LEAST_CUT);
    let map = ColumnMap { columns: vec![Some(column), None] };
    let text = serde_json::to_string(&map).unwrap();
    assert_eq!(serde_json::from_str::<ColumnMap>(&text).unwrap(), map);
    let short = map.without_ranks();
    let text = serde_json::to_string(&short).unwrap();
    assert!(!text.contains("ranks"));
    assert_eq!(serde_json::from_str::<ColumnMap>(&text).unwrap(), short);
}

/// Rows through a map with tails are those that a prediction makes, whichever kernel maps them.
#[test]
fn kernels_map_rows_as_predictions_do() {
    let column = |low, high| MappedColumn {
        low,
        high,
        centre: 0.1,
        sd: 0.3,
        ranks: Vec::new(),
        constant: false,
    };
    let map = ColumnMap { columns: vec![Some(column(-0.4, 0.5)), None, Some(column(-1.0, 0.2))] };
    let first = map.standardise(true);
    assert_eq!((first.width(), first.tails.len()), (6, 3));
    let weights = vec![0.5, -1.0, 2.0, 3.0, -0.7, 1.1];
    let (plain, constant) = first.unmap(weights.clone());
    let mut random = Random(9);
    let features: Vec<f64> = (0..3 * 2000).map(|_| random.number()).collect();
    let table = Table::new(3, features.clone(), vec![0.0; 2000]);
    // One weighted sum as a matrix of one row.
    let matrix = weights.iter().copied().chain([0.25]).collect();
    let transform = RowTransform::linear(matrix, 6).after(Some(first));
    let rows = transform.cached(None, &table, 2);
    let query = |clip: &quietly_core::lattice::Lattice, i: usize| {
        let one = rows.at(&[i as u32]);
        let query = crate::kernels::LinearQuery {
            weights: &[0.0],
            residual: |_, _| 1.0,
            clip: Some(clip),
            grid: None,
        };
        one.pass(&query, 1).sum[0] as f64 * clip.step()
    };
    let lattice = quietly_core::lattice::Lattice::for_sums(100.0, 1);
    let tails = map.standardise(true).tails;
    for (i, row) in features.chunks_exact(3).enumerate().take(200) {
        let made = map.winsorised(row, &tails);
        let said = 0.25 + constant + made.iter().zip(&plain).map(|(x, w)| x * w).sum::<f64>();
        assert!((query(&lattice, i) - said).abs() < 1e-5, "row {i}");
    }
}
