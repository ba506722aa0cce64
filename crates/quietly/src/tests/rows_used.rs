use std::ops::ControlFlow;

use quietly_accounting::{Neighbours, gaussian_mu};
use quietly_core::{
    budget::Budget,
    calibration_cache::Search,
    mechanism::{Mechanism, Sampler, Stage, event},
    release::Releaser,
    rows_used::*,
};
use quietly_data::{Private, Table};
use quietly_engine::{algorithm::Algorithm, link::Link};
use quietly_glm::{Loss, Set};
use quietly_kan::{Input, Kan, NetworkLoss, NetworkSampler, NetworkShape};
use quietly_linear::{earlier::EarlierOnePass, full_batch};
use quietly_noise::Key;

use crate::{
    any_algorithm::AnyAlgorithm,
    methods::Method,
    plan::{Convex, Plan, Regression},
};

/// The release in a plan.
fn planned(plan: &Plan) -> Mechanism {
    let mut releases = plan.stages().iter().flat_map(|stage| &stage.releases);
    let found = releases.find(|charge| charge.purpose == ROWS_USED);
    found.unwrap_or_else(|| panic!("{:?} does not count rows", plan.method())).mechanism
}

/// Every family, method, sampler and relation counts its rows, within the budget and for at most a
/// hundredth of it.
#[test]
fn every_plan_releases_the_number_of_rows() {
    use Neighbours::{AddRemove, ReplaceOne};
    let mut plans: Vec<(String, Plan)> = Vec::new();
    for neighbours in [AddRemove, ReplaceOne] {
        let budget = Budget::new(1.0, 1e-6).unwrap().under(neighbours);
        let pure = Budget::pure(1.0).unwrap().under(neighbours);
        let name = |what: &str| format!("{what} {}", neighbours.name());
        for method in Method::ALL {
            if let Ok(plan) = Regression::new(Link::Linear).method(method).plan(20_000, 5, budget) {
                plans.push((name(method.name()), plan));
            }
            for (loss, budget) in [(Loss::Logistic, budget), (Loss::Logistic, pure)] {
                let convex = Convex::new(loss).method(method).ridge(0.1);
                let convex = convex.within(Set::L2 { radius: 1.0 });
                if let Ok(plan) = convex.plan(20_000, 5, budget) {
                    plans.push((name(method.name()), plan));
                }
            }
            if let Ok(plan) = Convex::new(Loss::Logistic).method(method).plan(20_000, 5, budget) {
                plans.push((name(method.name()), plan));
            }
        }
        for sampling in [
            NetworkSampler::FullBatch,
            NetworkSampler::Poisson,
            NetworkSampler::BallsAndBins,
            NetworkSampler::Cyclic,
            NetworkSampler::FixedSize,
        ] {
            let shape = NetworkShape::new(vec![Input::Spline; 3], NetworkLoss::Logistic);
            if let Ok(plan) = Plan::kan(&Kan::new(shape).sampler(sampling), 20_000, budget) {
                plans.push((name("kan"), plan));
            }
        }
    }
    assert!(plans.len() > 60, "{}", plans.len());
    let mu = gaussian_mu(1.0, 1e-6).unwrap();
    for (name, plan) in &plans {
        assert!(plan.epsilon() <= 1.0 && plan.epsilon() > 0.98, "{name}: {}", plan.epsilon());
        plan.record().check().unwrap_or_else(|error| panic!("{name}: {error}"));
        let replaced = plan.budget().neighbours() == ReplaceOne;
        let moves = if replaced { 2.0 } else { 1.0 };
        let share = match planned(plan) {
            // In the first of several steps it shares that step's budget.
            Mechanism::Gaussian { .. } if plan.method() == Method::OnePass => continue,
            Mechanism::Gaussian { noise } => (moves / noise / mu).powi(2),
            Mechanism::Laplace { scale } => moves / scale,
            other => panic!("{name}: {other:?}"),
        };
        assert!(share <= 0.0101, "{name}: {share}");
    }
}

/// What the others pay: the accountant finds a quarter of a percent more noise.
#[test]
fn other_noise_grows_by_a_quarter_of_a_percent() {
    let budget = Budget::new(1.0, 1e-6).unwrap();
    let plan = Regression::new(Link::Linear).plan(20_000, 10, budget).unwrap();
    let AnyAlgorithm::FullBatch(full) = plan.algorithm() else { panic!("full batch") };
    let design = full.design.clone();
    let search = Search {
        sampler: Sampler::FullBatch,
        neighbours: Neighbours::AddRemove,
        epsilon: 1.0,
        delta: 1e-6,
    };
    let (without, _) = search.run(|noise| design.stages(Neighbours::AddRemove, noise)).unwrap();
    let last = |stages: &[Stage]| {
        let mut releases = stages.iter().flat_map(|stage| &stage.releases);
        releases.find(|charge| charge.purpose == full_batch::LAST).unwrap().multiplier()
    };
    let growth = last(plan.stages()) / last(&without);
    assert!((1.002..1.003).contains(&growth), "{growth}");
}

/// 4000 good rows and 1000 null records; the estimate lies within five of its standard deviations, which a
/// correct problem would miss with a fresh seed less than once in a million.
#[test]
fn the_estimate_is_near_the_truth_in_memory() {
    let target = |i: usize| if i.is_multiple_of(5) { f64::NAN } else { (i % 7) as f64 / 7.0 };
    let table = || {
        let features = (0..10_000).map(|i| (i % 13) as f64 / 13.0).collect();
        Private::new(Table::new(2, features, (0..5000).map(target).collect()))
    };
    let budget = Budget::new(2.0, 1e-5).unwrap();
    for method in [Method::FullBatch, Method::OnePass, Method::DpSgd, Method::TukeyEm] {
        let plan = Regression::new(Link::Linear).method(method).plan(5000, 2, budget).unwrap();
        let mut releaser = Releaser::new(Key::from_seed(3), plan.stages(), 1);
        let quiet = &mut |_: quietly_core::progress::Progress| ControlFlow::Continue(());
        plan.through(&mut releaser, &table(), None, (0.0, 1.0), quiet).unwrap();
        let found = releaser.rows_used.expect("every fit counts");
        let off = (found.about as f64 - 4000.0) / found.deviation;
        assert!(off.abs() < 5.0 && found.deviation < 800.0, "{method:?}: {found:?}");
    }
}

/// With all 5000 declared rows no seed warns (a correct problem would in less than one of 3e9 runs of this test); without
/// any row every seed does.
#[test]
fn a_warning_follows_the_rows() {
    let budget = Budget::new(1.0, 1e-5).unwrap();
    let plan = Regression::new(Link::Linear).plan(5000, 2, budget).unwrap();
    let warned = |rows: u64, seed: u64| {
        let mut releaser = Releaser::new(Key::from_seed(seed), plan.stages(), 1);
        releaser.count_rows(plan.privacy(), plan.rows(), Private::new(rows)).unwrap();
        releaser.rows_used.unwrap().warning()
    };
    for seed in 0..1000 {
        assert_eq!(warned(5000, seed), None, "{seed}");
        assert!(
            warned(0, seed).is_some_and(|text| text.contains("does not match the schema")),
            "{seed}"
        );
        assert!(warned(15_000, seed).is_some_and(|text| text.contains("correct `rows`")), "{seed}");
    }
}

#[test]
fn little_budget_gives_a_number_and_no_verdict() {
    let used = RowsUsed::new(-12.0, 30.0, 100, false);
    assert_eq!((used.about, used.warning()), (0, None));
    assert_eq!(used.to_string(), "about 0 of the declared 100 rows were used (± 59, 95 %)");
    // Laplace noise has heavier tails: 95 % of it lies within ln 20 scales, and 5 deviations are nothing special.
    let pure = RowsUsed::new(0.0, 20.0, 100, true);
    assert_eq!(pure.to_string(), "about 0 of the declared 100 rows were used (± 43, 95 %)");
    let at = |deviation, laplace| RowsUsed { deviation, laplace, ..pure }.warning().is_some();
    assert_eq!([at(10.0, true), at(10.0, false), at(6.0, true)], [false, true, true]);
    let exact = RowsUsed::new(1_234_567.0, 0.0, 20_000, false);
    assert_eq!(exact.to_string(), "1 234 567 of the declared 20 000 rows were used");
}

/// A plan of an earlier version has no such release: it is priced without, and counts nothing.
#[test]
fn older_plans_are_still_priced() {
    let budget = Budget::new(1.0, 1e-5).unwrap();
    for method in [Method::FullBatch, Method::OnePass] {
        let plan = Regression::new(Link::Linear).method(method).plan(50_000, 2, budget).unwrap();
        let (shape, mut plan) = (plan.shape(), plan.record());
        let (privacy, algorithm) = plan.parts();
        for stage in &mut privacy.stages {
            stage.releases.retain(|charge| charge.purpose != ROWS_USED);
        }
        privacy.stages.retain(|stage| !stage.releases.is_empty());
        if let AnyAlgorithm::OnePass(one_pass) = algorithm {
            let (link, steps) = (one_pass.link, one_pass.steps);
            let earlier = EarlierOnePass { link, steps, counts_rows: false };
            let last = privacy.stages.last().expect("the last steps").releases[0].multiplier();
            privacy.stages = earlier.stages(shape, budget, last);
            *algorithm = AnyAlgorithm::EarlierOnePass(earlier);
        }
        let price = event(plan.sampler(), plan.stages()).unwrap();
        assert!(
            quietly_accounting::epsilon(&price, Neighbours::AddRemove, 1e-5).unwrap().upper <= 1.0
        );
        let plan = plan.check().unwrap();
        let mut releaser = Releaser::new(Key::from_seed(1), plan.stages(), 1);
        releaser.count_rows(plan.privacy(), plan.rows(), Private::new(7)).unwrap();
        assert_eq!(releaser.rows_used, None);
    }
}
