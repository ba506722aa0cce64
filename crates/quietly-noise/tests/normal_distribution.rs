//! The distribution of `RoundedGaussian`: χ² tests against the exact probabilities, each with a
//! control that must be rejected.
mod common;
use common::{chi_square, normal_mass, rounded_mass};
use quietly_noise::{Key, RoundedGaussian};

fn draws(s: f64, count: usize, step: u64) -> Vec<i64> {
    let mut out = vec![0; count];
    let stream = Key::from_seed(2).stream("normal");
    RoundedGaussian::new(s).unwrap().fill(&stream, step, &mut out).unwrap();
    out
}

/// Counts of the cells `..=c[0], c[0]+1..=c[1], …, c[last]+1..` and their exact probabilities.
fn cells(draws: &[i64], cuts: &[i64], s: f64) -> (Vec<f64>, Vec<f64>) {
    let mut counts = vec![0.0; cuts.len() + 1];
    for n in draws {
        counts[cuts.partition_point(|c| c < n)] += 1.0;
    }
    let edge = |i: usize| cuts.get(i).map_or(f64::INFINITY, |c| *c as f64 + 0.5);
    let law = (0..=cuts.len())
        .map(|i| normal_mass(if i == 0 { f64::NEG_INFINITY } else { edge(i - 1) }, edge(i), s))
        .collect();
    (counts, law)
}

/// Fixed seed. Fresh seeds would fail once in a million per line for a correct sampler; the
/// control is a scale off by 1 %.
#[test]
fn draws_follow_the_exact_law() {
    for (step, s, cuts) in [
        (0, 0.25, vec![-1, 0]),
        (1, 1.0, (-4..4).collect()),
        (2, 3.0, (-12..12).collect()),
        (3, 1000.0, (-40..40).map(|c| 100 * c + 3).collect()),
        (4, 2f64.powi(30), (-64..64).map(|c| c << 26).collect()),
        (5, 2f64.powi(45) - 1.0, (-64..64).map(|c| c << 41).collect()),
    ] {
        let draws = draws(s, 3_000_000, step);
        let of = |s: f64| {
            let (counts, law) = cells(&draws, &cuts, s);
            chi_square(&counts, &law)
        };
        assert!(of(s) < 1.0, "{s} {}", of(s));
        assert!(of(s * 1.01) > 1.0 && of(s / 1.01) > 1.0, "{s} {}", of(s * 1.01));
    }
}

/// As above for residues. Where the scale hardly changes them, the control is noise whose
/// last bit was dropped.
#[test]
fn residues_follow_the_exact_law() {
    for (step, s, m) in
        [(10, 0.25, 2), (11, 1.0, 3), (12, 3.0, 7), (13, 1000.0, 64), (14, 2f64.powi(30), 256)]
    {
        let draws = draws(s, 3_000_000, step);
        let count = |map: fn(i64) -> i64| {
            let mut counts = vec![0.0; m as usize];
            draws.iter().for_each(|n| counts[map(*n).rem_euclid(m) as usize] += 1.0);
            counts
        };
        let law = |s: f64| -> Vec<f64> {
            if s > 500.0 {
                return vec![1.0 / m as f64; m as usize]; // to 1e-1000
            }
            let reach = (10.0 * s) as i64 + 20;
            let residue = |r| (-reach..=reach).filter(move |n: &i64| n.rem_euclid(m) == r);
            (0..m).map(|r| residue(r).map(|n| rounded_mass(n, s)).sum()).collect()
        };
        let right = chi_square(&count(|n| n), &law(s));
        assert!(right < 1.0, "{s} {right}");
        let dropped = chi_square(&count(|n| n & !1), &law(s));
        assert!(dropped > 1.0, "{s} {dropped}");
        if s < 2.0 {
            assert!(chi_square(&count(|n| n), &law(s * 1.01)) > 1.0);
        }
    }
}

/// Beyond r = 4.04 draws come from the tail. The control is the envelope, from which they
/// would come if nothing were refused there.
#[test]
fn the_tail_follows_the_exact_law() {
    let (s, r) = (1000.0, 4040);
    let edges = [4040, 4080, 4130, 4200, 4300, 4450, 4700, i64::MAX];
    let mut counts = vec![0.0; 7];
    let mut all = 0.0;
    for step in 100..220 {
        for n in draws(s, 1_000_000, step) {
            if n.abs() > r {
                all += 1.0;
                counts[edges[1..].partition_point(|e| *e < n.abs())] += 1.0;
            }
        }
    }
    let tail = |x: i64| 2.0 * normal_mass(x as f64 + 0.5, f64::INFINITY, s);
    let share = |survive: &dyn Fn(i64) -> f64| -> Vec<f64> {
        edges.windows(2).map(|e| (survive(e[0]) - survive(e[1])) / survive(r)).collect()
    };
    let right = chi_square(&counts, &share(&tail));
    assert!(right < 1.0, "{right}");
    let wrong = chi_square(&counts, &share(&|x| (-4.03964 * (x as f64 / s)).exp()));
    assert!(wrong > 1.0, "{wrong}");
    // How many there are: 5 standard deviations, false-positive rate 6e-7.
    let expected = 1.2e8 * tail(r);
    assert!((all - expected).abs() < 5.0 * expected.sqrt(), "{all} {expected}");
}

/// χ² of pairs in 5 × 5 cells at s = 1: neighbouring coordinates, coordinates a block apart,
/// steps, streams. The control copies every fiftieth draw to its neighbour.
#[test]
fn pairs_are_independent() {
    const N: usize = 1_000_000;
    let here = draws(1.0, N + 8, 50);
    let mut elsewhere = vec![0; N];
    let other = Key::from_seed(2).stream("other");
    RoundedGaussian::new(1.0).unwrap().fill(&other, 50, &mut elsewhere).unwrap();
    let copied: Vec<i64> =
        (0..N).map(|i| if i % 50 == 0 { here[i] } else { here[i + 1] }).collect();
    let of = |second: &[i64]| {
        let cell = |n: i64| (n.clamp(-2, 2) + 2) as usize;
        let mut counts = vec![0.0; 25];
        here.iter().zip(&second[..N]).for_each(|(a, b)| counts[5 * cell(*a) + cell(*b)] += 1.0);
        let outer = normal_mass(1.5, f64::INFINITY, 1.0);
        let p = [outer, rounded_mass(1, 1.0), rounded_mass(0, 1.0), rounded_mass(1, 1.0), outer];
        let law: Vec<f64> = (0..25).map(|i| p[i / 5] * p[i % 5]).collect();
        chi_square(&counts, &law)
    };
    for second in [&here[1..], &here[8..], &draws(1.0, N, 51), &elsewhere] {
        assert!(of(second) < 1.0, "{}", of(second));
    }
    assert!(of(&copied) > 1.0, "{}", of(&copied));
}
