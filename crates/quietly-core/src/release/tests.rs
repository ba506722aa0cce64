use quietly_accounting::Neighbours;

use super::*;
use crate::mechanism::{self, PlannedRelease};

fn releaser(mechanism: Mechanism, times: u64, seed: u64) -> Releaser {
    let releases = vec![PlannedRelease { purpose: "test".into(), mechanism, times }];
    let stage = Stage::new("test", 1, releases);
    Releaser::new(Key::from_seed(seed), &[stage], 1)
}

/// docs/spec/regression.md#14, test 5: D for both relations, by brute force over small tables.
#[test]
fn one_row_moves_every_score_by_at_most_what_is_charged() {
    let bins = 4;
    let units = 1_i64 << LEVEL_BITS;
    let moved = |a: &[i64], b: &[i64]| {
        a.iter().zip(b).map(|(a, b)| (a - b).abs()).max().expect("there are thresholds")
    };
    for level in [1_u64, 512, 922, 1003, 1023] {
        let (mut joins, mut replaced) = (0, 0);
        let mut counts = vec![0_u64; bins];
        loop {
            let here = scores(&counts, level);
            for bin in 0..bins {
                let mut more = counts.clone();
                more[bin] += 1;
                joins = joins.max(moved(&here, &scores(&more, level)));
                for other in 0..bins {
                    let mut instead = counts.clone();
                    instead[other] += 1;
                    let apart = moved(&scores(&more, level), &scores(&instead, level));
                    replaced = replaced.max(apart);
                }
            }
            // The next table: up to three values in each bin.
            let Some(place) = (0..bins).find(|&b| counts[b] < 3) else { break };
            counts[..place].fill(0);
            counts[place] += 1;
        }
        let level = level as i64;
        assert_eq!(joins, level.max(units - level), "{level}");
        assert_eq!(replaced, units, "{level}");
    }
}

/// docs/spec/regression.md#14, test 5: odds between neighbouring tables stay within e^ε. 40,000 draws from a
/// fixed seed; the
/// slack is five standard errors of a log odds ratio, so that a fresh seed would fail once in a
/// million times, and the control with four times the rate must fail.
#[test]
fn odds_between_neighbours_stay_within_epsilon() {
    let worst = |epsilon: f64, allowed: f64| {
        let mechanism = Mechanism::Exponential { add_remove: epsilon, replace_one: 2.0 * epsilon };
        let draws = 40_000;
        let tally = |counts: &[u64], seed: u64| {
            let mut releaser = releaser(mechanism, draws, seed);
            let mut hits = vec![0.0_f64; counts.len() - 1];
            for _ in 0..draws {
                let counts = Private::new(counts.to_vec());
                hits[releaser.quantile("test", 0.5, Histogram::new(counts)).unwrap()] += 1.0;
            }
            hits
        };
        let (a, b) = (tally(&[3, 1, 1, 4], 1), tally(&[3, 1, 1, 5], 2));
        let ratio = |k: usize| (a[k] / b[k]).ln().abs();
        let slack = |k: usize| 5.0 * (1.0 / a[k] + 1.0 / b[k]).sqrt();
        (0..3).map(|k| ratio(k) - slack(k) - allowed).fold(f64::MIN, f64::max)
    };
    assert!(worst(0.5, 0.5) <= 0.0);
    assert!(worst(4.0, 0.5) > 0.0);
}

#[test]
fn a_quantile_is_near_the_level_it_was_asked_for() {
    let mechanism = mechanism::quantile(0.5, 0.3, Neighbours::AddRemove);
    let mut releaser = releaser(mechanism, 1, 3);
    let counts: Vec<u64> = (0..=20).map(|_| 1000).collect();
    let found = releaser.quantile("test", 0.5, Histogram::new(Private::new(counts))).unwrap();
    assert!((8..=12).contains(&found), "{found}");
}

/// docs/spec/regression.md#14, test 2, through the releaser: the release is the exact sum plus noise that does
/// not depend on it.
#[test]
fn noise_does_not_depend_on_the_sum() {
    let release = |sum: Vec<i64>| {
        let mut releaser = releaser(Mechanism::Gaussian { noise: 3.0 }, 1, 9);
        let what = BoundedSum::new(Private::new(sum), Sensitivity::l2(1000.0, 1.0));
        releaser.sum("test", what).unwrap().0
    };
    let (zero, some) = (release(vec![0, 0, 0]), release(vec![5, -7, 1 << 40]));
    let apart: Vec<f64> = some.iter().zip(&zero).map(|(a, b)| a - b).collect();
    assert_eq!(apart, [5.0, -7.0, (1_u64 << 40) as f64]);
    assert!(zero.iter().all(|z| z.abs() > 1.0 && z.abs() < 20_000.0));
}

#[test]
fn the_diagonal_and_the_rest_have_their_own_noise() {
    let size = 60;
    let mut releaser = releaser(Mechanism::Gaussian { noise: 1.0 }, 1, 4);
    let sum = Private::new(vec![0; size * (size + 1) / 2]);
    let what = BoundedSum::new(sum, Sensitivity::frobenius(1e6, 1e-6, size));
    let (found, std) = releaser.sum("test", what).unwrap();
    assert!((std - 1.0).abs() < 1e-9);
    let mut at = 0;
    let (mut on, mut off) = (0.0, 0.0);
    for row in 0..size {
        for column in row..size {
            if row == column {
                on += found[at] * found[at]
            } else {
                off += found[at] * found[at]
            }
            at += 1;
        }
    }
    // Five standard errors of a variance of 60 and of 1770 draws.
    assert!((on / 60.0 - 1.0).abs() < 5.0 * (2.0 / 60.0_f64).sqrt(), "{on}");
    assert!((off / 1770.0 - 0.5).abs() < 5.0 * 0.5 * (2.0 / 1770.0_f64).sqrt(), "{off}");
}

/// On a coarser lattice one row still adds no more than the bound there, and the answer is the same.
#[test]
fn a_coarser_lattice_keeps_its_bound() {
    let mut random = crate::random::Random(3);
    let (bound, noise) = (2.0_f64.powi(31), 3e5);
    let mut tight = 0;
    for _ in 0..2000 {
        let mut draw = || (random.word() as i64) >> 20;
        let sum: Vec<i64> = (0..4).map(|_| draw()).collect();
        let step: Vec<f64> = (0..4).map(|_| draw() as f64).collect();
        let length = step.iter().map(|s| s * s).sum::<f64>().sqrt();
        let step = step.iter().map(|s| (s / length * bound).trunc() as i64);
        let mut one = sum.clone();
        let mut other: Vec<i64> = sum.iter().zip(step).map(|(a, b)| a + b).collect();
        let (coarse, unit) = coarsened(&mut one, bound, 1.0, noise, 2.0);
        assert_eq!(coarsened(&mut other, bound, 1.0, noise, 2.0), (coarse, unit));
        assert!(unit > 1.0 && noise * coarse <= MOST_NOISE);
        let apart = one.iter().zip(&other).map(|(a, b)| ((a - b) as f64).powi(2)).sum::<f64>();
        assert!(apart.sqrt() <= coarse, "{apart} {coarse}");
        assert!((one[0] as f64 * unit - sum[0] as f64).abs() <= unit);
        tight += usize::from(apart.sqrt() > 0.999 * coarse);
    }
    assert!(tight > 1000, "{tight}");
    // The control: what needs no coarser lattice keeps its own.
    let mut sum = vec![12345, -1];
    assert_eq!(coarsened(&mut sum, bound, 1.0, 10.0, 2.0), (bound, 1.0));
    assert_eq!(sum, [12345, -1]);
}

#[test]
fn a_mechanism_with_a_proof_is_given_what_was_promised() {
    let mut releaser = releaser(Mechanism::ApproximateDp { epsilon: 0.5, delta: 1e-6 }, 1, 5);
    let found = releaser.approximate_dp("test", Private::new(3), |value, promise, stream, step| {
        assert_eq!((value, promise.epsilon, promise.delta, step), (3, 0.5, 1e-6, 0));
        Ok(stream.bits(step)?.below(1)?)
    });
    assert_eq!(found.unwrap(), 0);
}

#[test]
#[should_panic(expected = "is not planned as a promise")]
fn a_sum_is_no_promise() {
    let mut releaser = releaser(Mechanism::Gaussian { noise: 1.0 }, 1, 5);
    let _ = releaser.approximate_dp("test", Private::new(3), |_, _, _, _| Ok(()));
}

#[test]
#[should_panic(expected = "is used up")]
fn a_release_beyond_the_plan_is_stopped() {
    let mut releaser = releaser(Mechanism::Gaussian { noise: 1.0 }, 1, 5);
    for _ in 0..2 {
        let what = BoundedSum::new(Private::new(vec![0]), Sensitivity::l2(1.0, 1.0));
        let _ = releaser.sum("test", what);
    }
}

#[test]
#[should_panic(expected = "is not in the plan")]
fn a_release_outside_the_plan_is_stopped() {
    let mut releaser = releaser(Mechanism::Gaussian { noise: 1.0 }, 1, 5);
    let what = BoundedSum::new(Private::new(vec![0]), Sensitivity::l2(1.0, 1.0));
    let _ = releaser.sum("another", what);
}

/// The ways out of `Private` are used in three files of the whole workspace: one adds noise, and two send sums to it.
/// `Private::transpose` would be another way (an error may carry anything). It is used where a disk can fail, and nowhere else.
#[test]
fn only_the_releaser_declassifies() {
    let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut sources = Vec::new();
    let crates = std::fs::read_dir(root.join("crates")).unwrap().map(|e| e.unwrap().path());
    for package in crates.chain(["cluster", "bench", "fuzz"].map(|name| root.join(name))) {
        read_code(&package.join("src"), &mut sources);
    }
    let using = |what: &str| {
        let mut found: Vec<String> = Vec::new();
        for (path, code) in &sources {
            if code.contains(what) {
                let path = path.strip_prefix(root).unwrap();
                found.push(path.to_string_lossy().replace('\\', "/"));
            }
        }
        found.sort();
        found
    };
    let private = "crates/quietly-private/src/lib.rs";
    let release = "crates/quietly-core/src/release.rs";
    assert_eq!(using("declassify"), [release, private]);
    let sending = ["cluster/src/relay.rs", private, "crates/quietly-py/src/remote.rs"];
    assert_eq!(using("sent_to_driver"), sending);
    let own = using(".transpose()");
    // Where private values are computed with: in other files it is that of `Option` and `Result`.
    let computing = ["", "-core", "-engine", "-glm", "-kan", "-linear"];
    let computing = computing.map(|name| format!("crates/quietly{name}/src/"));
    let learning = ["cnn", "feature_learning"].map(|name| format!("crates/quietly-lab/src/{name}"));
    let places: Vec<String> = computing.into_iter().chain(learning).collect();
    let own: Vec<&String> = own
        .iter()
        .filter(|at| places.iter().any(|place| at.starts_with(place)) && !at.contains("/tests/"))
        .collect();
    assert_eq!(own, [release, "crates/quietly-engine/src/backend/spilled.rs"]);
    // What must not be there would be found.
    assert!(!using("Private<Vec<u8>>").is_empty() && !using("fn main()").is_empty());
}

/// The code below a folder, without comments and tests.
fn read_code(folder: &std::path::Path, found: &mut Vec<(std::path::PathBuf, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_code(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") && !path.ends_with("tests.rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap().lines();
            let code = code.filter(|line| !line.trim_start().starts_with("//"));
            found.push((path, code.collect::<Vec<_>>().join("\n")));
        }
    }
}
