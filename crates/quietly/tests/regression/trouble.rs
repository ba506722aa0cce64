//! Tables that are too small, too plain or too odd: numbers come out, and they are not wild.
use quietly::{AnyAlgorithm, Learnable, Link, Method, Neighbours};

use crate::common::{
    LINKS, METHODS, Plain, RELATIONS, Random, budget, gaussian, is_finite, plan, run,
};

/// docs/spec/regression.md#14, test 11: d = 50, n = 10,000, ε = 0.1, where nothing is learnt well. Squared
/// error over that of the mean.
fn hopeless(method: Method, seeds: std::ops::Range<u64>) -> Vec<f64> {
    let plan = plan(Link::Linear, method, 10_000, 50, budget(0.1).under(Neighbours::ReplaceOne));
    let mut ratios: Vec<f64> = seeds
        .map(|seed| {
            // The first 10,000 rows are for fitting, the rest to judge by.
            let all = gaussian(12_000, 50, 1.0, Link::Linear, 1000 + seed);
            let train =
                Plain { width: 50, x: all.x[..500_000].to_vec(), y: all.y[..10_000].to_vec() };
            let test =
                Plain { width: 50, x: all.x[500_000..].to_vec(), y: all.y[10_000..].to_vec() };
            let model = run(&plan, &train, (-20.0, 20.0), seed, 2);
            assert!(is_finite(&model), "{seed}");
            test.squared_error(Link::Linear, &model) / test.variance()
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    println!("{method:?}: median {} worst {}", ratios[ratios.len() / 2], ratios[ratios.len() - 1]);
    ratios
}

#[test]
fn too_little_budget_gives_little_model_rather_than_a_wild_one() {
    for method in METHODS {
        let ratios = hopeless(method, 0..20);
        assert!(ratios[10] < 1.5 && ratios[19] < 2.0, "{method:?} {ratios:?}");
    }
}

#[test]
#[ignore = "two hundred seeds; the test above has twenty"]
fn too_little_budget_gives_no_wild_model_in_two_hundred() {
    for method in METHODS {
        let ratios = hopeless(method, 0..200);
        assert!(ratios[100] < 1.5 && ratios[199] < 2.0, "{method:?} {ratios:?}");
    }
}

/// The squared error over that of the mean, on 2000 fresh rows, for tables of `n` rows; ascending.
fn few(link: Link, method: Method, n: usize, epsilon: f64, seeds: u64) -> (Learnable, Vec<f64>) {
    let plan = plan(link, method, (n as u64).max(1), 3, budget(epsilon));
    let one = |seed: u64| {
        let all = gaussian(n + 2000, 3, 0.5, link, 99 + (seed << 32));
        let (x, y) = (all.x.split_at(3 * n), all.y.split_at(n));
        let table = Plain { width: 3, x: x.0.to_vec(), y: y.0.to_vec() };
        let test = Plain { width: 3, x: x.1.to_vec(), y: y.1.to_vec() };
        let model = run(&plan, &table, (-4.0, 6.0), seed, 2);
        assert!(is_finite(&model));
        if plan.reach() == Learnable::Nothing {
            // The middle of the range, and nothing of the data.
            assert_eq!(model, (1.0, vec![0.0; 3]));
        }
        test.squared_error(link, &model) / test.variance()
    };
    let mut ratios: Vec<f64> = (0..seeds).map(one).collect();
    ratios.sort_by(f64::total_cmp);
    (plan.reach(), ratios)
}

/// What a private mean costs of R²: with all of μ the variance of its noise is (half the range/nμ)², and that of n rows 1/n; the range is
/// ±5 here, and the standard deviation of targets at least 1. Six of them are the 98 % point with what is not normal.
fn cost_of_a_mean(n: usize, epsilon: f64) -> f64 {
    let units = n.max(1) as f64 * quietly_accounting::gaussian_mu(epsilon, 1e-6).unwrap();
    (5.0 / units).powi(2) + 1.0 / n.max(1) as f64
}

/// Measured over 200 seeds where weights are learnt: linear median 0.22, worst 1.5; ReLU median 0.42.
#[test]
fn few_rows_give_the_middle_or_something_near_the_mean() {
    let mut learnt = 0;
    for link in LINKS {
        for method in METHODS {
            for n in [0, 1, 2, 10, 50, 300] {
                for epsilon in [0.1, 1.0, 10.0] {
                    let (reach, ratios) = few(link, method, n, epsilon, 10);
                    if reach != Learnable::Nothing {
                        learnt += 1;
                        let cost = cost_of_a_mean(n, epsilon);
                        let (median, most) = match reach {
                            Learnable::Centre => (1.1 + 2.0 * cost, 1.1 + 6.0 * cost),
                            _ => (1.0, 2.0),
                        };
                        let what = format!("{link:?} {method:?} {n} {epsilon} {ratios:?}");
                        assert!(ratios[5] < median && ratios[9] < most, "{what}");
                    }
                }
            }
        }
    }
    assert!(learnt >= 8, "{learnt}");
}

/// docs/spec/regression.md#14, test 11, for ReLU models of few rows.
#[test]
fn few_rows_give_no_wild_relu_model() {
    for (n, epsilon) in [(50, 10.0), (100, 5.0), (300, 1.0), (1000, 0.5)] {
        let (_, ratios) = few(Link::Relu, Method::FullBatch, n, epsilon, 200);
        let most = 2.0_f64.max(1.1 + 6.0 * cost_of_a_mean(n, epsilon));
        assert!(ratios[195] < most, "{n} {epsilon}: {:?}", &ratios[180..]);
    }
}

#[test]
fn odd_tables_give_numbers() {
    let mut random = Random(5);
    let mut number = |n: usize| (0..n).map(|_| 2.0 * random.uniform() - 1.0).collect::<Vec<_>>();
    let n = 600;
    let tables: Vec<(&str, Plain)> = vec![
        ("no rows", Plain { width: 3, x: vec![], y: vec![] }),
        ("one row", Plain { width: 3, x: number(3), y: vec![1.0] }),
        ("equal targets", Plain { width: 3, x: number(3 * n), y: vec![0.7; n] }),
        ("targets at the lower end", Plain { width: 3, x: number(3 * n), y: vec![-5.0; n] }),
        ("targets at the upper end", Plain { width: 3, x: number(3 * n), y: vec![5.0; n] }),
        ("targets in the middle", Plain { width: 3, x: number(3 * n), y: vec![0.0; n] }),
        ("targets far out", Plain { width: 3, x: number(3 * n), y: vec![1e308; n] }),
        ("zero features", Plain { width: 3, x: vec![0.0; 3 * n], y: number(n) }),
        ("constant features", Plain { width: 3, x: vec![1.0; 3 * n], y: number(n) }),
        ("one feature", Plain { width: 1, x: number(n), y: number(n) }),
        ("many more rows than planned", Plain { width: 2, x: number(200_000), y: number(100_000) }),
    ];
    for (name, table) in &tables {
        for link in LINKS {
            for method in METHODS {
                for (rows, epsilon) in
                    [(600, 0.5), (600, 50.0), (1_000_000, 0.01), (1_000_000, 1.0)]
                {
                    for neighbours in RELATIONS {
                        let budget = budget(epsilon).under(neighbours);
                        let plan = plan(link, method, rows, table.width, budget);
                        let model = run(&plan, table, (-5.0, 5.0), 1, 2);
                        assert!(
                            is_finite(&model),
                            "{name} {link:?} {method:?} {rows} {epsilon}: {model:?}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn wide_tables_are_fitted_without_a_second_moment() {
    let table = gaussian(2000, 1500, 0.1, Link::Linear, 3);
    let plan = plan(Link::Linear, Method::FullBatch, 2_000_000, 1500, budget(1.0));
    let AnyAlgorithm::FullBatch(full_batch) = plan.algorithm() else { panic!("full batch") };
    assert_eq!((full_batch.design.whitenings, plan.reach()), (0, Learnable::Weights));
    assert!(is_finite(&run(&plan, &table, (-5.0, 5.0), 1, 2)));
}

/// ε of a thousandth, the least there is, once asked for more noise than can be drawn, after the plan had been accepted.
#[test]
fn the_least_epsilon_can_be_planned_and_run() {
    let table = gaussian(500, 20, 0.1, Link::Linear, 1);
    for method in METHODS {
        for neighbours in RELATIONS {
            let plan = plan(Link::Linear, method, 100_000_000, 20, budget(0.001).under(neighbours));
            assert_eq!(plan.reach(), Learnable::Weights);
            assert!(is_finite(&run(&plan, &table, (-5.0, 5.0), 1, 2)), "{method:?} {neighbours:?}");
        }
    }
}

/// Without weights, a ReLU model predicts the middle of the target as a linear one does, and not zero.
#[test]
fn where_only_the_centre_can_be_learnt_it_is() {
    for link in LINKS {
        let plan = plan(link, Method::FullBatch, 400, 100, budget(3.0));
        assert_eq!(plan.reach(), Learnable::Centre);
        let mut table = gaussian(400, 100, 0.1, link, 1);
        table.y.iter_mut().for_each(|y| *y = 6.0 + 0.2 * *y);
        let (intercept, weights) = run(&plan, &table, (0.0, 10.0), 1, 2);
        assert!(weights.iter().all(|w| *w == 0.0));
        assert!((intercept - 6.0).abs() < 0.5, "{link:?} {intercept}");
    }
}
