//! Every method attacked with neighbouring tables, question by question.
//!
//! A witness releaser hands out noise alone, so that two tables see one history; what would have been released is compared.
use std::{collections::HashMap, ops::ControlFlow};

use quietly_accounting::Neighbours;
use quietly_core::{
    budget::Budget,
    mechanism::Sampler,
    random::Random,
    release::{Releaser, Witnessed},
};
use quietly_data::{Private, Table};
use quietly_noise::Key;

use crate::plan::{FitInput, test_support::options};
use crate::{
    any_algorithm::AnyAlgorithm,
    methods::Method,
    plan::{Plan, PlanRecord, Regression},
};

const WIDTH: usize = 3;

/// Every method on every model it is for.
fn plans(neighbours: Neighbours, rows: u64, epsilon: f64) -> Vec<Plan> {
    let mut plans = Vec::new();
    // TukeyEM is no sum: `deep/tests.rs` has its exact law on small tables.
    let other = [Method::Auto, Method::TukeyEm];
    // Nor are the methods for convex losses here, but for DP-SGD, which is both.
    let regression = |m: &Method| {
        *m == Method::DpSgd || !m.about().links.contains(&quietly_engine::link::Link::Logistic)
    };
    let fine = |m: &Method| !other.contains(m) && regression(m);
    for method in Method::ALL.into_iter().filter(fine) {
        let links = method.about().links.iter();
        for link in links.filter(|l| {
            matches!(l, quietly_engine::link::Link::Linear | quietly_engine::link::Link::Relu)
        }) {
            let budget = Budget::new(epsilon, 1e-5).unwrap().under(neighbours);
            let mut regression = Regression::new(*link).method(method);
            if method == Method::DpPgd {
                regression = regression.radius(2.0);
            }
            if method == Method::DpSsgd || method.wants_public_rows() {
                regression = regression.steps(40);
            }
            if method.wants_public_rows() {
                regression = regression.with_public_rows();
            }
            plans.push(regression.plan(rows, WIDTH, budget).unwrap());
        }
    }
    plans
}

fn random_row(random: &mut Random) -> ([f64; WIDTH], f64) {
    // Rows at the corners of what is possible are the worst ones.
    let mut number = || match random.word() % 4 {
        0 => 1.0,
        1 => -1.0,
        _ => random.number(),
    };
    (std::array::from_fn(|_| number()), number())
}

fn table(rows: &[([f64; WIDTH], f64)]) -> Table {
    let x = rows.iter().flat_map(|r| r.0).collect();
    Table::new(WIDTH, x, rows.iter().map(|r| r.1).collect())
}

/// What a plan would have released of these rows.
fn witnessed(plan: &Plan, rows: &[([f64; WIDTH], f64)], seed: u64) -> Vec<Witnessed> {
    let mut releaser = Releaser::new(Key::from_seed(seed), plan.stages(), 1);
    releaser.witness = Some(Vec::new());
    let public = table(&rows[..4]);
    let quiet = &mut |_| ControlFlow::Continue(());
    let public = Some(&public);
    plan.through(&mut releaser, &Private::new(table(rows)), public, (-1.0, 1.0), quiet).unwrap();
    releaser.witness.unwrap()
}

fn distance(a: &[i64], b: &[i64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) as f64).map(|x| x * x).sum::<f64>().sqrt()
}

/// Compares two tables: how far apart each question is, in units of what one row may add, and how often a question of each
/// name was moved at all.
fn compare(a: &[Witnessed], b: &[Witnessed]) -> (f64, HashMap<String, u64>) {
    assert_eq!(a.len(), b.len(), "no row decides what is asked");
    let (mut most, mut moved) = (0.0_f64, HashMap::new());
    for (a, b) in a.iter().zip(b) {
        assert_eq!((&a.purpose, a.values.len()), (&b.purpose, b.values.len()));
        assert_eq!(a.bound, b.bound, "no row decides a bound");
        let far = match a.bound {
            // A product of a row with itself is charged in the Frobenius norm: at most √2 times the triangle's.
            Some(bound) => distance(&a.values, &b.values) / bound,
            // A row is in one bin.
            None => a.values.iter().zip(&b.values).map(|(a, b)| (a - b).abs()).sum::<i64>() as f64,
        };
        most = most.max(far);
        if a.values != b.values {
            *moved.entry(a.purpose.clone()).or_insert(0) += 1;
        }
    }
    (most, moved)
}

/// How often a row may meet a question of this name.
fn allowed(plan: &Plan, purpose: &str) -> u64 {
    let of = |s: &&quietly_core::mechanism::Stage| s.releases.iter().any(|c| c.purpose == purpose);
    let stage = plan.stages().iter().find(of).expect("asked as planned");
    let times = stage.releases.iter().find(|c| c.purpose == purpose).unwrap().times;
    let every =
        stage.all_rows || matches!(plan.sampler(), Sampler::FullBatch | Sampler::Poisson { .. });
    if every { times * stage.steps } else { times }
}

fn attack(neighbours: Neighbours) {
    for plan in plans(neighbours, 5000, 2.0) {
        for seed in 0..12 {
            let mut random = Random(1000 + seed);
            let mut rows: Vec<_> = (0..60).map(|_| random_row(&mut random)).collect();
            let before = witnessed(&plan, &rows, seed);
            // The last row leaves, so that all others keep their place in the draws of the sampler.
            let most = match neighbours {
                Neighbours::AddRemove => {
                    rows.pop();
                    1.0
                }
                Neighbours::ReplaceOne => {
                    *rows.last_mut().unwrap() = random_row(&mut random);
                    2.0
                }
            };
            let after = witnessed(&plan, &rows, seed);
            let (far, moved) = compare(&before, &after);
            let name = plan.method().name();
            assert!(far <= most, "{name} {neighbours:?}: a row moves an answer by {far} bounds");
            for (purpose, times) in &moved {
                let allowed = allowed(&plan, purpose);
                assert!(
                    *times <= allowed,
                    "{name}: {purpose} moved {times} times, {allowed} charged"
                );
            }
            // Under allocation and in parts, a row meets one step, whatever that asks.
            if matches!(
                plan.sampler(),
                Sampler::RandomAllocation { .. } | Sampler::Partition { .. }
            ) {
                let stage = |purpose: &String| {
                    let here = |s: &quietly_core::mechanism::Stage| {
                        s.releases.iter().any(|c| c.purpose == *purpose)
                    };
                    plan.stages().iter().position(here).unwrap()
                };
                let mut stages: Vec<usize> = moved.keys().map(stage).collect();
                stages.retain(|&s| !plan.stages()[s].all_rows);
                stages.dedup();
                stages.sort_unstable();
                stages.dedup();
                assert!(stages.len() <= 1, "{name}: a row is asked in stages {stages:?}");
            }
        }
    }
}

#[test]
fn no_row_that_joins_moves_more_than_is_charged() {
    attack(Neighbours::AddRemove);
}

#[test]
fn no_row_that_is_replaced_moves_more_than_is_charged() {
    attack(Neighbours::ReplaceOne);
}

/// The attack sees what it should: two rows that leave are caught.
#[test]
fn the_attack_catches_a_second_row() {
    let mut caught = 0;
    let plans = plans(Neighbours::AddRemove, 5000, 2.0);
    for plan in &plans {
        let worst = (0..60).any(|seed| {
            let mut random = Random(1000 + seed);
            let rows: Vec<_> = (0..60).map(|_| random_row(&mut random)).collect();
            let (before, after) =
                (witnessed(plan, &rows, seed), witnessed(plan, &rows[..58], seed));
            let (far, moved) = compare(&before, &after);
            far > 1.0 || moved.iter().any(|(purpose, times)| *times > allowed(plan, purpose))
        });
        caught += usize::from(worst);
    }
    assert_eq!(caught, plans.len());
}

/// A plan that runs otherwise than it is charged, or costs more than it says, is refused; one that was only written and
/// read again is not.
#[test]
fn changed_plans_are_refused() {
    let rows = Private::new(table(&[([0.0; WIDTH], 0.0); 20]));
    let public = table(&[([0.5; WIDTH], 0.5); 20]);
    let mut all = plans(Neighbours::AddRemove, 5000, 2.0);
    let budget = Budget::new(2.0, 1e-5).unwrap();
    let tukey = Regression::new(quietly_engine::link::Link::Linear).method(Method::TukeyEm);
    all.push(tukey.plan(5000, WIDTH, budget).unwrap());
    for plan in all {
        let name = plan.method().name();
        let text = serde_json::to_string(&plan).unwrap();
        let read: PlanRecord = serde_json::from_str(&text).unwrap();
        let options = options(1, 1).public(&public);
        let again = read.check().unwrap();
        let fit = again.fit(FitInput::table(&rows, (-1.0, 1.0)), options);
        assert!(fit.is_ok(), "{name}: written and read");
        let mut changed: Vec<(&str, PlanRecord)> = Vec::new();
        let mut change = |what: &'static str, edit: &dyn Fn(&mut PlanRecord)| {
            let mut other = plan.record();
            edit(&mut other);
            if other != plan.record() {
                changed.push((what, other));
            }
        };
        let sampled = |plan: &mut PlanRecord, more: u64| match &mut plan.parts().0.sampler {
            Sampler::RandomAllocation { steps } | Sampler::Partition { steps } => *steps += more,
            Sampler::Poisson { steps, .. } | Sampler::OrderedPartition { steps } => *steps += more,
            _ => {}
        };
        change("less noise", &|plan| {
            for charge in plan.parts().0.stages.iter_mut().flat_map(|s| &mut s.releases) {
                match &mut charge.mechanism {
                    quietly_core::mechanism::Mechanism::Gaussian { noise }
                    | quietly_core::mechanism::Mechanism::CorrelatedGaussian { noise, .. } => {
                        *noise *= 0.9
                    }
                    quietly_core::mechanism::Mechanism::Exponential { add_remove, replace_one } => {
                        (*add_remove, *replace_one) = (2.0 * *add_remove, 2.0 * *replace_one);
                    }
                    quietly_core::mechanism::Mechanism::ApproximateDp { epsilon, .. } => {
                        *epsilon *= 1.1
                    }
                    quietly_core::mechanism::Mechanism::Laplace { scale } => *scale *= 0.9,
                    quietly_core::mechanism::Mechanism::ObjectivePerturbation { noise, .. } => {
                        *noise *= 0.9
                    }
                }
            }
        });
        change("a lower claim", &|plan| plan.parts().0.epsilon *= 0.9);
        change("a lower budget", &|plan| {
            plan.parts().0.budget = Budget::new(1.0, 1e-5).unwrap();
        });
        change("an empty stage", &|plan| {
            plan.parts().0.stages.push(quietly_core::mechanism::Stage::new("x", 1980, Vec::new()));
            sampled(plan, 1980);
        });
        change("a stage split in two", &|plan| {
            let at = plan.stages().iter().position(|s| s.releases.len() > 1);
            if let Some(at) = at {
                let mut second = plan.stages()[at].clone();
                second.releases.remove(0);
                plan.parts().0.stages[at].releases.truncate(1);
                sampled(plan, second.steps);
                plan.parts().0.stages.insert(at + 1, second);
            }
        });
        change("more steps", &|plan| {
            if let AnyAlgorithm::Recipe(recipe) = plan.parts().1 {
                recipe.steps += 1;
            }
        });
        change("another kind of noise", &|plan| {
            if let AnyAlgorithm::Recipe(recipe) = plan.parts().1 {
                let tree = recipe.noise == quietly_linear::papers::Noise::Tree;
                recipe.noise = if tree {
                    quietly_linear::papers::Noise::Independent
                } else {
                    quietly_linear::papers::Noise::Tree
                };
            }
        });
        change("amplification", &|plan| {
            plan.parts().0.sampler = Sampler::RandomAllocation { steps: 1000 };
        });
        for (what, plan) in changed {
            let refused = matches!(
                plan.check(),
                Err(quietly_engine::error::Error::Parameter { name: "plan", .. })
            );
            assert!(refused, "{name}: {what}");
        }
    }
}

/// As many steps as one may ask for, with hardly any rows: nothing overflows.
#[test]
fn many_steps_end_well() {
    let mut random = Random(5);
    let rows: Vec<_> = (0..50).map(|_| random_row(&mut random)).collect();
    let budget = Budget::new(1.0, 1e-5).unwrap();
    for method in [Method::AdaptiveGd, Method::DpAmbssgd, Method::DpAmbssgdPublished] {
        let regression =
            Regression::new(quietly_engine::link::Link::Linear).method(method).steps(3000);
        let plan = regression.plan(5000, WIDTH, budget).unwrap();
        let rows = Private::new(table(&rows));
        let fit = plan.fit(FitInput::table(&rows, (-1.0, 1.0)), options(1, 1)).unwrap();
        let (_, w) = fit.coefficients().unwrap();
        assert!(w.iter().all(|w| w.is_finite()), "{}", method.name());
    }
    let published =
        Regression::new(quietly_engine::link::Link::Linear).method(Method::DpAmbssgdPublished);
    assert!(published.steps(5958).plan(5000, WIDTH, budget).is_err());
}
