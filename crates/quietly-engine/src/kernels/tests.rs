//! The passes against a plain scalar reference, bit for bit.
use quietly_core::{
    lattice::{Lattice, norm},
    mechanism::Sampler,
    random::Random,
};
use quietly_data::Table;
use quietly_noise::Key;

use super::{cached::upward, *};

const THREADS: [usize; 4] = [1, 2, 3, 64];

fn glmtron(u: f64, y: f64) -> f64 {
    u.max(0.0) - y
}

fn table(rows: usize, width: usize, random: &mut Random) -> Table {
    let features = (0..rows * width).map(|_| random.number()).collect();
    let target = (0..rows).map(|i| if i % 50 == 7 { 1e308 } else { random.number() }).collect();
    Table::new(width, features, target)
}

fn bucket(table: &Table, rows: Vec<u32>) -> Bucket {
    let targets = rows.iter().map(|&i| table.target()[i as usize]).collect();
    Bucket { rows, targets }
}

fn map(width: usize, random: &mut Random) -> Affine {
    let shift: Vec<f64> = (0..width).map(|_| 0.1 * random.number()).collect();
    let scale: Vec<f64> = (0..width).map(|_| 1.0 + random.number()).collect();
    Affine::new(&shift, &scale, 0.7)
}

fn matrix(width: usize, out: usize, random: &mut Random) -> Vec<f64> {
    (0..out * (width + 1)).map(|_| random.number()).collect()
}

/// Transformed rows with the constant last, number by number.
fn plain_affine(table: &Table, map: &Affine) -> Vec<Vec<f64>> {
    let width = table.width();
    (0..table.rows())
        .map(|i| {
            let row = &table.features()[i * width..][..width];
            let shifted = row.iter().zip(map.columns.iter().flat_map(|c| c.shift));
            let scale = map.columns.iter().flat_map(|c| c.scale);
            let scaled = shifted.zip(scale).map(|((x, m), s)| (x - m) * s);
            scaled.chain([map.constant]).collect()
        })
        .collect()
}

/// Four sums abreast, written as four loops.
fn lanes(products: &[f64]) -> f64 {
    let lane = |l: usize| products.iter().skip(l).step_by(4).fold(0.0, |sum, x| sum + x);
    (lane(0) + lane(1)) + (lane(2) + lane(3))
}

fn products(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a * b).collect()
}

/// Score and norm of a row whose constant is added after the lanes, as [`Rows`] does it.
fn plain_score(z: &[f64], weights: &[f64]) -> (f64, f64) {
    let (constant, z) = z.split_last().unwrap();
    let (weight, weights) = weights.split_last().unwrap();
    let score = lanes(&products(z, weights)) + weight * constant;
    (score, norm(lanes(&products(z, z)) + constant * constant))
}

/// Integers of rows (z, score, norm, target), added in `i128`; and the norms before clipping.
fn plain_pass<'a>(
    rows: impl Iterator<Item = (&'a Vec<f64>, (f64, f64), f64)>,
    clip: &Lattice,
) -> (Vec<i64>, Vec<f64>) {
    let (mut sum, mut norms) = (Vec::new(), Vec::new());
    for (z, (score, norm), y) in rows {
        let residual = glmtron(score, y);
        norms.push(residual.abs() * norm);
        let a = clip.clipped_coefficient(residual, norm);
        sum.resize(z.len(), 0i128);
        for (sum, z) in sum.iter_mut().zip(z) {
            *sum += (a * z).round_ties_even() as i128;
        }
    }
    (sum.into_iter().map(|sum| i64::try_from(sum).unwrap()).collect(), norms)
}

fn plain_counts(values: &[f64], grid: &[f64]) -> Vec<u64> {
    let mut counts = vec![0; grid.len() + 1];
    for v in values {
        counts[grid.iter().filter(|&e| v > e).count()] += 1;
    }
    counts
}

#[test]
fn a_pass_over_a_table_is_the_plain_sum() {
    let mut random = Random(3);
    for (rows, width) in [(1, 1), (3, 2), (4, 3), (1027, 4), (2500, 7), (1030, 20), (300, 201)] {
        let table = table(rows, width, &mut random);
        let map = map(width, &mut random);
        let weights: Vec<f64> = (0..width + 1).map(|_| random.number()).collect();
        let clip = Lattice::for_sums(0.8, width + 1);
        let plain = plain_affine(&table, &map);
        let row = |i: usize| (&plain[i], plain_score(&plain[i], &weights), table.target()[i]);
        let (sum, norms) = plain_pass((0..rows).map(row), &clip);
        // Some thresholds are values themselves.
        let mut grid: Vec<f64> =
            norms.iter().step_by(17).copied().filter(|n| n.is_finite()).collect();
        grid.sort_by(f64::total_cmp);
        grid.dedup();
        let thresholds = Bins::new(grid.clone());
        let query = LinearQuery {
            weights: &weights,
            residual: glmtron,
            clip: Some(&clip),
            grid: Some(&thresholds),
        };
        let whole = Totals { sum, counts: plain_counts(&norms, &grid) };
        for threads in THREADS {
            assert_eq!(Rows::all(&table, &map).pass(&query, threads), whole);
            let only = LinearQuery { clip: None, ..query };
            let counts = Totals { sum: vec![], counts: whole.counts.clone() };
            assert_eq!(Rows::all(&table, &map).pass(&only, threads), counts);
        }
        // Any order, and any split into parts, gives the same.
        let mut order: Vec<u32> = (0..rows as u32).collect();
        for i in (1..rows).rev() {
            order.swap(i, random.word() as usize % (i + 1));
        }
        let order = bucket(&table, order);
        assert_eq!(Rows::these(&table, &map, &order).pass(&query, 2), whole);
        let cut = rows / 3;
        let parts = [0..cut, cut..rows].map(|part| Rows::range(&table, &map, part).pass(&query, 2));
        let added = |a: &[i64], b: &[i64]| a.iter().zip(b).map(|(a, b)| a + b).collect::<Vec<_>>();
        assert_eq!(added(&parts[0].sum, &parts[1].sum), whole.sum);
        let draw = Sampler::RandomAllocation { steps: 5 }.draw(Key::from_seed(1).stream("test"));
        let buckets = allocate(&table, &draw, 2);
        let steps = buckets.iter().map(|rows| Rows::these(&table, &map, rows).pass(&query, 3).sum);
        assert_eq!(steps.reduce(|a, b| added(&a, &b)).unwrap(), whole.sum);
    }
}

#[test]
fn a_pass_over_cached_rows_is_the_plain_sum() {
    let mut random = Random(4);
    for (rows, width, out) in [(1, 1, 1), (5, 2, 3), (1100, 3, 9), (2049, 20, 21), (130, 33, 40)] {
        let table = table(rows, width, &mut random);
        let matrix = matrix(width, out, &mut random);
        let plain: Vec<Vec<f64>> = (0..rows)
            .map(|i| {
                let row = &table.features()[i * width..][..width];
                let product = |(x, p): (&f64, &f64)| *x as f32 * *p as f32;
                let z =
                    |p| row.iter().chain([&1.0]).zip(p).map(product).fold(0.0, |sum, x| sum + x);
                matrix.chunks(width + 1).map(|p| f64::from(z(p))).collect()
            })
            .collect();
        let weights: Vec<f64> = (0..out).map(|_| random.number()).collect();
        let clip = Lattice::for_sums(2.5, out);
        let row = |i: usize| {
            let z = &plain[i];
            let norm = f64::from(upward(norm(lanes(&products(z, z)))));
            (z, (lanes(&products(z, &weights)), norm), table.target()[i])
        };
        let (sum, norms) = plain_pass((0..rows).map(row), &clip);
        let mut grid: Vec<f64> =
            norms.iter().step_by(13).copied().filter(|n| n.is_finite()).collect();
        grid.sort_by(f64::total_cmp);
        grid.dedup();
        let thresholds = Bins::new(grid.clone());
        let query = LinearQuery {
            weights: &weights,
            residual: glmtron,
            clip: Some(&clip),
            grid: Some(&thresholds),
        };
        let whole = Totals { sum, counts: plain_counts(&norms, &grid) };
        for threads in THREADS {
            let cached = WhitenedRows::new(&table, &Linear::new(width, &matrix), threads);
            assert_eq!(cached.pass(&query, threads), whole, "{rows} {width} {out} {threads}");
        }
    }
}

#[test]
fn an_affine_map_is_a_diagonal_matrix() {
    let mut random = Random(9);
    for width in [1, 3, 4, 11] {
        let table = table(70, width, &mut random);
        // Powers of two: products in single and in double precision are alike.
        let scale: Vec<f64> = (0..width).map(|j| 2f64.powi(j as i32 - 5)).collect();
        let mut matrix = vec![0.0; (width + 1) * (width + 1)];
        for (j, s) in scale.iter().chain([&0.7]).enumerate() {
            matrix[j * (width + 2)] = *s;
        }
        let one = WhitenedRows::new(&table, &Affine::new(&vec![0.0; width], &scale, 0.7), 2);
        let other = WhitenedRows::new(&table, &Linear::new(width, &matrix), 2);
        assert_eq!((one.chunks, one.norms), (other.chunks, other.norms));
    }
}

/// Numbers of every size, those that singles hold badly among them: a plain cast would fail here.
#[test]
fn norms_are_rounded_upward() {
    let mut random = Random(12);
    let mut below = 0;
    for trial in 0..200_000 {
        let x = match trial % 3 {
            0 => random.size().clamp(1e-300, 1e300),
            1 => (1.0 + random.number().abs()) * 2f64.powi(-150 + trial % 40),
            _ => (1.0 + random.number().abs()) * 2f64.powi(trial % 130),
        };
        let up = f64::from(upward(x));
        assert!(up >= x && (up <= x * (1.0 + 1e-6) + 2e-38 || up == f64::INFINITY), "{x:e} {up:e}");
        below += usize::from(f64::from(x as f32) < x);
    }
    assert!(below > 50_000, "{below}");
    assert!(upward(0.0) > 0.0);
}

/// One record at a time, with maps, weights, targets and clips of every size.
#[test]
fn no_record_moves_a_sum_by_more_than_the_bound() {
    let mut random = Random(6);
    let mut tight = 0;
    for trial in 0..20_000 {
        let width = 1 + trial % 9;
        let size = random.size().clamp(1e-99, 1e99);
        let scale = vec![size; width];
        let map = Affine::new(&vec![0.0; width], &scale, 0.5 * size);
        let target = if trial % 3 == 0 { random.size() } else { random.number() };
        let x = (0..width).map(|_| if trial % 2 == 0 { 0.9 } else { random.number() }).collect();
        let table = Table::new(width, x, vec![target]);
        let odd = [f64::NAN, f64::INFINITY, 1e308, 0.0, random.number() / size];
        let weights = vec![odd[trial % 5]; width + 1];
        let clip = [1e-300, 1e-3, 1.0, 1e300, random.size().clamp(1e-299, 1e299)][trial / 5 % 5];
        let sums = Lattice::for_sums(clip, width + 1);
        let query = LinearQuery {
            weights: &weights,
            residual: |u, y| u - y,
            clip: Some(&sums),
            grid: None,
        };
        let square = |sum: &[i64]| sum.iter().map(|&q| i128::from(q) * i128::from(q)).sum::<i128>();
        let cached = WhitenedRows::new(&table, &map, 1);
        for sum in [Rows::all(&table, &map).pass(&query, 1).sum, cached.pass(&query, 1).sum] {
            let most = i128::from(sums.bound()).pow(2);
            assert!(square(&sum) <= most, "{trial}");
            assert!(weights[0].is_finite() || square(&sum) == 0, "{trial}");
            tight += usize::from(square(&sum) as f64 > 0.999 * most as f64);
        }
        // The trace of q qᵀ is ‖q‖², and its Frobenius norm.
        let products = Lattice::for_products(clip, width + 1);
        let most = i128::from(products.bound()).pow(2);
        let all = Rows::all(&table, &map);
        for moment in [second_moment(&all, &products, 1), second_moment(&cached, &products, 1)] {
            let diagonal = (0..=width).map(|i| i * (2 * width + 3 - i) / 2);
            let trace: i128 = diagonal.map(|at| i128::from(moment[at])).sum();
            assert!(trace <= most, "{trial}");
            tight += usize::from(trace as f64 > 0.99 * most as f64);
        }
    }
    assert!(tight > 10_000, "{tight}");
}

#[test]
fn rows_too_large_for_single_precision_are_zero() {
    let table = Table::new(2, vec![1.0, 1e-60, 0.5, 0.0], vec![1.0, 1.0]);
    let map = Affine::new(&[0.0, 0.0], &[1e60, 1.0], 1.0);
    let cached = WhitenedRows::new(&table, &map, 1);
    assert!(cached.chunks.as_flattened().iter().all(|&z| z == 0.0));
    assert!(cached.norms.iter().all(|&n| n > 0.0));
}

#[test]
fn second_moments_are_plain_sums_of_products() {
    let mut random = Random(8);
    for (rows, width) in [(1, 1), (3, 7), (200, 8), (1000, 20), (300, 41)] {
        let table = table(rows, width, &mut random);
        let map = map(width, &mut random);
        let clip = Lattice::for_products(0.6 * (width as f64).sqrt(), width + 1);
        let cached = WhitenedRows::new(&table, &map, 2);
        let plain: Vec<Vec<f64>> = plain_affine(&table, &map);
        let stored: Vec<Vec<f64>> =
            plain.iter().map(|z| z.iter().map(|&z| f64::from(z as f32)).collect()).collect();
        let moment = |rows: &[Vec<f64>], norms: &[f64]| {
            let mut sum = vec![0i64; (width + 1) * (width + 2) / 2];
            for (z, &norm) in rows.iter().zip(norms) {
                let a = clip.clipped_coefficient(1.0, norm);
                let q: Vec<i64> = z.iter().map(|z| (a * z).round_ties_even() as i64).collect();
                let pairs = (0..=width).flat_map(|i| (i..=width).map(move |j| (i, j)));
                sum.iter_mut().zip(pairs).for_each(|(sum, (i, j))| *sum += q[i] * q[j]);
            }
            sum
        };
        let no_weights = vec![0.0; width + 1];
        let norms: Vec<f64> = plain.iter().map(|z| plain_score(z, &no_weights).1).collect();
        let stored_norms: Vec<f64> = cached.norms.iter().map(|&n| f64::from(n)).collect();
        let wants = [moment(&plain, &norms), moment(&stored, &stored_norms)];
        for threads in THREADS {
            assert_eq!(second_moment(&Rows::all(&table, &map), &clip, threads), wants[0]);
            assert_eq!(second_moment(&cached, &clip, threads), wants[1]);
        }
        let mut back: Vec<u32> = (0..rows as u32).rev().collect();
        back.rotate_left(rows / 2);
        let back = bucket(&table, back);
        assert_eq!(second_moment(&Rows::these(&table, &map, &back), &clip, 2), wants[0]);
    }
}
