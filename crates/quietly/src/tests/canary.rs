use quietly_core::{
    mechanism::{self, Mechanism, PlannedRelease, Stage},
    release::{BoundedSum, Releaser, Sensitivity},
};
use quietly_data::Private;
use quietly_noise::Key;

/// The empirical μ of a test between two laws of one number, from how often each is above the middle of `shift`.
fn empirical_mu(without: &[f64], with: &[f64], shift: f64) -> f64 {
    let above =
        |all: &[f64]| all.iter().filter(|x| **x > 0.5 * shift).count() as f64 / all.len() as f64;
    let (false_alarms, hits) = (above(without), above(with));
    assert!(false_alarms < 0.5 && hits > 0.5, "{false_alarms} {hits}");
    mechanism::normal_quantile(hits) + mechanism::normal_quantile(1.0 - false_alarms)
}

/// A plan with this charge alone, often, as the plan prices it but for `factor`.
fn audited(purpose: &str, factor: f64, releases: u64) -> (Releaser, f64) {
    let budget = quietly_core::budget::Budget::new(60.0, 1e-6).unwrap();
    let plan = crate::plan::Regression::new(quietly_engine::link::Link::Linear)
        .plan(20_000, 2, budget)
        .unwrap();
    let charge = plan.stages().iter().flat_map(|s| &s.releases).find(|c| c.purpose == purpose);
    let Mechanism::Gaussian { noise } = charge.unwrap().mechanism else { panic!("a sum") };
    let mechanism = Mechanism::Gaussian { noise: factor * noise };
    let releases = vec![PlannedRelease { purpose: purpose.into(), mechanism, times: releases }];
    let stage = Stage::new("audit", 1, releases);
    (Releaser::new(Key::from_seed(77), &[stage], 1), 1.0 / noise)
}

/// docs/spec/regression.md#12, the canary: one record beyond the clip, there or not, and the best test
/// between the two. The estimate
/// has a standard error of about 1.8/√R, chosen here to be 0.4 % of μ: with a fresh seed the upper limit
/// would fail once in three million times. The lower one shows that no noise is wasted. The
/// control is half of the noise.
#[test]
fn a_canary_is_seen_as_well_as_the_plan_says_and_no_better() {
    use quietly_core::lattice::Lattice;
    use quietly_engine::kernels::{Affine, LinearQuery, Rows, second_moment};
    use quietly_linear::full_batch::{LAST, MOMENT};
    let table = quietly_data::Table::new(2, vec![1.0, -1.0], vec![1e6]);
    let map = Affine::identity(2, 0.5);
    let rows = Rows::all(&table, &map);

    // A gradient, along itself.
    let lattice = Lattice::for_sums(0.3, 3);
    let query =
        LinearQuery { weights: &[0.0; 3], residual: |_, y| y, clip: Some(&lattice), grid: None };
    let canary = rows.pass(&query, 1).sum;
    let bound = lattice.bound() as f64;
    let gradient = |factor: f64| {
        let (_, mu) = audited(LAST, factor, 1);
        let releases = (200_000.0 / (mu * mu)) as u64;
        let (mut releaser, mu) = audited(LAST, factor, 2 * releases);
        let length = canary.iter().map(|&c| (c as f64).powi(2)).sum::<f64>().sqrt();
        let mut ask = |sum: &[i64]| {
            let what = BoundedSum::new(Private::new(sum.to_vec()), Sensitivity::l2(bound, 1.0));
            let (seen, _) = releaser.sum(LAST, what).unwrap();
            seen.iter().zip(&canary).map(|(s, c)| s * *c as f64).sum::<f64>() / length
        };
        let without: Vec<f64> = (0..releases).map(|_| ask(&[0; 3])).collect();
        let with: Vec<f64> = (0..releases).map(|_| ask(&canary)).collect();
        empirical_mu(&without, &with, length) / mu
    };
    // A second moment, in the Frobenius inner product with itself.
    let lattice = Lattice::for_products(1.0, 3);
    let canary = second_moment(&rows, &lattice, 1);
    let twice = [1.0, 2.0, 2.0, 1.0, 2.0, 1.0];
    let inner = |seen: &[f64]| {
        seen.iter().zip(&canary).zip(twice).map(|((s, c), t)| s * *c as f64 * t).sum::<f64>()
    };
    let length = inner(&canary.iter().map(|&c| c as f64).collect::<Vec<_>>()).sqrt();
    let bound = (lattice.bound() as f64).powi(2);
    let matrix = |factor: f64| {
        let (_, mu) = audited(MOMENT, factor, 1);
        let releases = (200_000.0 / (mu * mu)) as u64;
        let (mut releaser, mu) = audited(MOMENT, factor, 2 * releases);
        let mut ask = |sum: &[i64]| {
            let sensitivity = Sensitivity::frobenius(bound, 1.0, 3);
            let what = BoundedSum::new(Private::new(sum.to_vec()), sensitivity);
            inner(&releaser.sum(MOMENT, what).unwrap().0) / length
        };
        let without: Vec<f64> = (0..releases).map(|_| ask(&[0; 6])).collect();
        let with: Vec<f64> = (0..releases).map(|_| ask(&canary)).collect();
        empirical_mu(&without, &with, length) / mu
    };
    for (name, seen, control) in
        [("gradient", gradient(1.0), gradient(0.5)), ("matrix", matrix(1.0), matrix(0.5))]
    {
        println!("{name}: {seen} of the claimed mu, {control} with half the noise");
        assert!((0.8..=1.02).contains(&seen), "{name} {seen}");
        assert!(control > 1.02, "{name} {control}");
    }
}
