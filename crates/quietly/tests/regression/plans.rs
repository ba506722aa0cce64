//! Plans keep their budget, and certificates say what plans do.
use std::collections::HashMap;

use quietly::{
    Budget, Error, FitInput, Learnable, Link, Mechanism, Method, Neighbours, Plan, PlanRecord,
    Regression, Sampler,
};
use quietly_accounting::{Event, epsilon};
use serde_json::{Value, json as of_json};

use crate::common::{METHODS, RELATIONS, alike, budget, gaussian, json, options, plan};

/// What a plan's stages cost, from the accountant and nothing else. Sampled steps are priced by their most expensive, with
/// choices as Gaussians by a bisection of its own: Φ(μ/2) = 1/(1 + e^(-ε/2)).
pub(crate) fn price(sampler: Sampler, stages: &[quietly::Stage], budget: Budget) -> f64 {
    let gaussian = |range: f64| {
        let tail = |x: f64| 0.5 * libm_erfc(x / std::f64::consts::SQRT_2);
        let (mut low, mut high) = (0.0, 80.0);
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            let above = tail(0.5 * middle) > 1.0 / (1.0 + (0.5 * range).exp());
            if above { low = middle } else { high = middle }
        }
        high
    };
    let composed = |stage: &quietly::Stage, steps: u64| {
        let once = |c: &quietly::PlannedRelease| {
            let once = match c.mechanism {
                Mechanism::Gaussian { noise } => Event::gaussian(noise),
                Mechanism::Exponential { add_remove, replace_one } => {
                    Event::exponential_with(add_remove, replace_one)
                }
                _ => panic!("a new mechanism"),
            };
            once.unwrap().repeat(steps * c.times).unwrap()
        };
        stage.releases.iter().map(once).reduce(Event::then).unwrap()
    };
    let square = |c: &quietly::PlannedRelease| match c.mechanism {
        Mechanism::Gaussian { noise } => c.times as f64 / (noise * noise),
        Mechanism::Exponential { add_remove, .. } => c.times as f64 * gaussian(add_remove).powi(2),
        _ => panic!("a new mechanism"),
    };
    let mu = |s: &&quietly::Stage| s.releases.iter().map(square).sum::<f64>().sqrt();
    let every = |s: &&quietly::Stage| s.all_rows || sampler == Sampler::FullBatch;
    let (all, some): (Vec<_>, Vec<_>) = stages.iter().partition(every);
    let (count, most) =
        (some.iter().map(|s| s.steps).sum::<u64>(), some.iter().map(mu).fold(0.0, f64::max));
    let mut events: Vec<Event> = all.iter().map(|s| composed(s, s.steps)).collect();
    match sampler {
        Sampler::FullBatch => {}
        Sampler::RandomAllocation { steps } => {
            assert_eq!(count, steps);
            events.push(Event::random_allocation(steps, 1, 1.0 / most).unwrap());
        }
        Sampler::Poisson { steps, rate } => {
            assert_eq!(count, steps);
            events.push(Event::poisson(rate, 1.0 / most).unwrap().repeat(steps).unwrap());
        }
        Sampler::Partition { steps } => {
            assert_eq!(count, steps);
            let parts = some.iter().map(|s| composed(s, 1)).collect();
            events.push(Event::disjoint(parts).unwrap());
        }
        _ => panic!("a new sampler"),
    }
    let event = events.into_iter().reduce(Event::then).unwrap();
    epsilon(&event, budget.neighbours(), budget.delta()).unwrap().upper
}

/// erfc, by its continued fraction where x is above 2 and by the series of erf below.
fn libm_erfc(x: f64) -> f64 {
    assert!(x >= 0.0);
    if x < 2.0 {
        let (mut term, mut sum) = (x, x);
        for n in 1..200 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        return 1.0 - sum * std::f64::consts::FRAC_2_SQRT_PI;
    }
    let fraction = (1..=400).rev().fold(x, |below, k| x + 0.5 * f64::from(k) / below);
    (-x * x).exp() / fraction / std::f64::consts::PI.sqrt()
}

#[test]
fn plans_stay_within_their_budget_and_certificates_agree() {
    let mut reached = HashMap::new();
    for method in METHODS {
        for neighbours in RELATIONS {
            for asked in [0.002, 0.1, 1.0, 8.0, 200.0] {
                for (rows, width) in [(300, 3), (20_000, 10), (3_000_000, 40)] {
                    let budget = Budget::new(asked, 1e-6).unwrap().under(neighbours);
                    let plan = plan(Link::Linear, method, rows, width, budget);
                    let what = format!("{method:?} {neighbours:?} {asked} {rows} {width}");
                    assert!(plan.epsilon() <= asked, "{what}: {}", plan.epsilon());
                    *reached.entry(format!("{:?}", plan.reach())).or_insert(0) += 1;
                    let text = serde_json::to_string(&plan).unwrap();
                    let back = serde_json::from_str::<PlanRecord>(&text).unwrap();
                    assert!(alike(&json(&back), &json(&plan)), "{what}");
                    if plan.reach() == Learnable::Nothing {
                        assert!(plan.epsilon() == 0.0 && plan.stages().is_empty(), "{what}");
                        continue;
                    }
                    // Nearly all of the budget is used: the property does not hold for want of trying.
                    assert!(
                        asked > 8.0 || plan.epsilon() > 0.97 * asked,
                        "{what}: {}",
                        plan.epsilon()
                    );
                    if rows == 20_000 {
                        let certificate = plan.certificate("row", None).unwrap();
                        let again = price(certificate.sampler, &certificate.stages, budget);
                        let off = (again / certificate.epsilon - 1.0).abs();
                        assert!(off < 1e-6, "{what}: {again} {}", certificate.epsilon);
                        assert!(certificate.epsilon <= asked, "{what}");
                    }
                }
            }
        }
    }
    assert_eq!(reached.len(), 3, "{reached:?}");
}

/// The noise of the average of the last steps, over one row's share.
fn last(plan: &Plan) -> f64 {
    let stage = plan.stages().iter().find(|s| s.name == "last steps").unwrap();
    match stage.releases[0].mechanism {
        Mechanism::Gaussian { noise } => noise / (stage.steps as f64).sqrt(),
        _ => panic!("a sum"),
    }
}

#[test]
fn a_larger_epsilon_gives_less_noise() {
    for method in METHODS {
        for neighbours in RELATIONS {
            let noise =
                |e: f64| last(&plan(Link::Linear, method, 200_000, 8, budget(e).under(neighbours)));
            let all: Vec<f64> =
                [0.05, 0.1, 0.3, 1.0, 2.0, 5.0, 20.0].into_iter().map(noise).collect();
            assert!(all.is_sorted_by(|a, b| a > b), "{method:?} {neighbours:?} {all:?}");
        }
    }
}

#[test]
fn replacing_a_row_costs_more_than_removing_it() {
    for method in METHODS {
        let noise =
            |n: Neighbours| last(&plan(Link::Linear, method, 50_000, 8, budget(1.0).under(n)));
        let ratio = noise(Neighbours::ReplaceOne) / noise(Neighbours::AddRemove);
        assert!(ratio > 1.3 && ratio < 2.2, "{method:?} {ratio}");
    }
}

/// A plan that is accounted for in one way and read in another would have a false certificate.
#[test]
fn a_plan_that_was_tampered_with_is_refused() {
    let table = gaussian(500, 2, 0.1, Link::Linear, 1);
    let good = plan(Link::Linear, Method::FullBatch, 5000, 2, budget(1.0));
    let one_pass = plan(Link::Linear, Method::OnePass, 5000, 2, budget(1.0));
    let edited = |plan: &Plan, edit: &dyn Fn(&mut Value)| {
        let mut file = serde_json::to_value(plan).unwrap();
        edit(&mut file);
        serde_json::from_value::<PlanRecord>(file).unwrap().check()
    };
    assert!(edited(&good, &|_| {}).is_ok() && edited(&one_pass, &|_| {}).is_ok());
    let steps: u64 = good.stages().iter().map(|s| s.steps).sum();
    let exact = edited(&good, &|file| {
        file["method"] = "exact".into();
        file["algorithm"] = of_json!({ "name": "least-squares", "link": "linear" });
        file["stages"] = of_json!([]);
    });
    let amplified = edited(&good, &|file| {
        file["sampler"] = serde_json::to_value(one_pass.sampler()).unwrap()["sampler"].clone();
        file["steps"] = steps.into();
    });
    let twice = edited(&one_pass, &|file| file["method"] = "full-batch".into());
    for result in [exact, amplified, twice] {
        assert!(matches!(result, Err(Error::Parameter { name: "plan", .. })), "{result:?}");
    }
    for plan in [good, one_pass] {
        let rows = table.private();
        assert!(plan.fit(FitInput::table(&rows, (-5.0, 5.0)), options(1, 1)).is_ok());
    }
}

#[test]
fn one_pass_refuses_tables_whose_second_moment_would_not_fit() {
    let wide =
        |method| Regression::new(Link::Linear).method(method).plan(100_000_000, 5000, budget(1.0));
    assert!(matches!(wide(Method::OnePass), Err(Error::TooLarge { .. })));
    assert_eq!(wide(Method::Auto).unwrap().method(), Method::FullBatch);
}

#[test]
fn what_is_not_fitted_by_least_squares_is_refused() {
    for link in [Link::Robust, Link::Quantile, Link::Logistic, Link::Svm, Link::Softmax] {
        for epsilon in [1.0, f64::INFINITY] {
            let refused = Regression::new(link).plan(5000, 3, budget(epsilon)).unwrap_err();
            assert!(refused.to_string().contains("linear or relu"), "{refused}");
        }
    }
}
