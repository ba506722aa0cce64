//! What is planned, what is refused, and edited plans.

use quietly_accounting::Neighbours;
use quietly_core::{
    budget::Budget,
    mechanism::{Correlation, Mechanism, Sampler},
};
use quietly_data::{Private, Table};
use quietly_engine::error::Error;
use quietly_kan::{
    Average, Clip, Input, Kan, LastLayer, NetworkLoss, NetworkNoise, NetworkSampler, NetworkShape,
};

use super::kan_training::{
    RELATIONS, all, budget, goes_together, kan, lambda, name, plans, rows, shape, table,
};
use crate::plan::{FitInput, test_support::options};
use crate::plan::{Plan, PlanRecord};

fn train(plan: &Plan) -> Result<quietly_kan::KanModel, Error> {
    plan.fit(FitInput::table(&table(&rows(30, 2)), (0.0, 1.0)), options(1, 2))?.network()
}

#[test]
fn what_goes_together_is_trained_within_the_budget_and_nothing_else_is_planned() {
    let mut refused = 0;
    for neighbours in RELATIONS {
        for (sampling, noise) in all() {
            let plan = Plan::kan(&kan(sampling, noise), 30, budget(neighbours));
            let what = format!("{sampling:?} {noise:?} {neighbours:?}");
            if !goes_together(sampling, noise, neighbours) {
                let error = plan.expect_err(&what).to_string();
                assert!(
                    error.contains("privacy bound") || error.contains("tree"),
                    "{what}: {error}"
                );
                refused += 1;
                continue;
            }
            let plan = plan.unwrap_or_else(|e| panic!("{what}: {e}"));
            train(&plan).unwrap();
            let certificate = plan.certificate("row", None).unwrap();
            assert!(certificate.epsilon <= 2.0 && certificate.epsilon > 1.5, "{what}");
            assert!(plan.epsilon() <= 2.0, "{what}");
        }
    }
    assert_eq!(refused, 13);
}

fn refusal(kan: Kan, rows: u64, budget: Budget) -> String {
    Plan::kan(&kan, rows, budget).expect_err("refused").to_string()
}

#[test]
fn what_cannot_be_is_refused_before_any_row_is_read_and_says_why() {
    let (join, replace) = (budget(Neighbours::AddRemove), budget(Neighbours::ReplaceOne));
    let plain = || Kan::new(shape());
    let with = |change: fn(&mut NetworkShape)| {
        let mut shape = shape();
        change(&mut shape);
        Kan::new(shape)
    };
    let mixed = |sampling| plain().sampler(sampling).noise(lambda(0.5));
    let wide = NetworkShape::new(vec![Input::Spline; 3], NetworkLoss::Softmax { classes: 1 });
    let endless = plain().sampler(NetworkSampler::BallsAndBins).batches(2000).passes(1000);
    let fixed = || plain().sampler(NetworkSampler::FixedSize);
    let cases = [
        (with(|s| s.basis = 3), 100, join, "spline_basis must be more than the degree"),
        (with(|s| s.degree = 0), 100, join, "spline_degree must be from 1 to 5"),
        (with(|s| s.hidden.clear()), 100, join, "hidden_layer_sizes must be at least one layer"),
        (Kan::new(wide), 100, join, "classes must be from 2"),
        (plain().clip(Clip::At(0.0)), 100, join, "clipping_norm must be from 1e-6"),
        (plain().clip(Clip::At(f64::NAN)), 100, join, "clipping_norm must be from 1e-6"),
        (plain().step_size(0.0), 100, join, "step size must be above 0"),
        (plain().momentum(1.0), 100, join, "momentum must be at least 0 and below 1"),
        (plain().momentum(f64::NAN), 100, join, "momentum must be at least 0 and below 1"),
        (plain().within(-1.0), 100, join, "radius must be above 0"),
        (plain(), 0, join, "rows must be from 1 to 1e15"),
        (
            plain().batches(200),
            100,
            join,
            "batches_per_epoch must be at least 2, and no more than rows",
        ),
        (plain().batches(1), 100, join, "batches_per_epoch must be at least 2"),
        (plain().passes(0), 100, join, "epochs must be from 1"),
        (endless, 10_000, join, "fewer batches or epochs"),
        (fixed(), 100, join, "fixed-size needs `neighbours` replace-one"),
        (
            mixed(NetworkSampler::Poisson),
            100,
            replace,
            "poisson with correlated noise needs `neighbours` add-remove",
        ),
        (
            plain().sampler(NetworkSampler::Poisson).noise(NetworkNoise::Tree),
            100,
            join,
            "where each row is in one batch",
        ),
        (
            with(|s| s.last = LastLayer::Trainable).clip(Clip::Never),
            100,
            join,
            "clipping_norm must be a number",
        ),
        (
            with(|s| s.hidden = vec![4, 4]).clip(Clip::Never),
            100,
            join,
            "clipping_norm must be a number",
        ),
        (plain(), 100, Budget::pure(1.0).unwrap(), "delta"),
    ];
    for (kan, rows, budget, words) in cases {
        let error = refusal(kan, rows, budget);
        assert!(error.contains(words), "{words}: {error}");
    }
    for bad in [1.0, 1.5, -0.1, f64::NAN] {
        let error = Correlation::lambda(bad).unwrap_err().to_string();
        assert!(error.contains("lambda must be at least 0 and below 1"), "{error}");
    }
}

/// The default asks for nothing that has no price, whatever the relation and the budget.
#[test]
fn the_default_is_planned_for_tables_of_all_sizes() {
    for neighbours in RELATIONS {
        for (rows, epsilon) in [(1, 1.0), (3, 0.1), (50, 8.0), (4000, 1.0), (3_000_000, 4.0)] {
            let budget = Budget::new(epsilon, 1e-6).unwrap().under(neighbours);
            let plan = Plan::kan(&Kan::new(shape()), rows, budget).unwrap();
            assert!(plan.epsilon() <= epsilon, "{rows} {epsilon}");
            // A plan says what else was weighed, and nothing of it was better.
            assert!(plan.training().rejected.iter().all(|other| other.noise >= 1.0));
        }
    }
    let free =
        Plan::kan(&Kan::new(shape()), 100, Budget::new(f64::INFINITY, 1e-5).unwrap()).unwrap();
    assert!(free.stages().is_empty() && free.epsilon().is_infinite());
}

fn less_noise(plan: &mut PlanRecord) {
    match &mut plan.parts().0.stages[0].releases[0].mechanism {
        Mechanism::Gaussian { noise } | Mechanism::CorrelatedGaussian { noise, .. } => {
            *noise *= 0.9
        }
        other => panic!("{other:?}"),
    }
}

fn remixed(plan: &mut PlanRecord, charged: bool, run: bool) {
    let other = Correlation::lambda(0.25).unwrap();
    if let Mechanism::CorrelatedGaussian { correlation, .. } =
        &mut plan.parts().0.stages[0].releases[0].mechanism
        && charged
    {
        *correlation = other;
    }
    if let NetworkNoise::Mixed { correlation } = &mut plan.training_mut().noise
        && run
    {
        *correlation = other;
    }
}

/// Fewer rows in a step, or in fewer steps.
fn amplified(plan: &mut PlanRecord) {
    let sampler = match plan.sampler() {
        Sampler::Cyclic { period, passes } => Sampler::BallsAndBins { bins: period, passes },
        Sampler::BallsAndBins { bins, passes } => {
            Sampler::BallsAndBins { bins: bins * passes, passes: 1 }
        }
        Sampler::Poisson { steps, rate } => Sampler::Poisson { steps, rate: 0.5 * rate },
        Sampler::FixedSize { steps, batch, rows } => {
            Sampler::FixedSize { steps, batch, rows: 100 * rows }
        }
        Sampler::FullBatch => Sampler::Poisson { steps: plan.training_mut().steps, rate: 0.01 },
        Sampler::Partition { steps } => Sampler::BallsAndBins { bins: steps, passes: 1 },
        other => panic!("{other:?}"),
    };
    resample(plan, sampler);
}

/// Runs and charges another sampler.
fn resample(plan: &mut PlanRecord, sampler: Sampler) {
    plan.training_mut().sampler = sampler;
    plan.parts().0.sampler = sampler;
}

/// A plan that runs otherwise than it is charged, or costs more than it says, is refused; one that was only written and read
/// again is not.
#[test]
fn changed_plans_are_refused() {
    type Change = (&'static str, fn(&mut PlanRecord));
    let changes: [Change; 15] = [
        ("less noise", less_noise),
        ("a lower claim", |plan| plan.parts().0.epsilon *= 0.9),
        ("a lower budget", |plan| {
            let neighbours = plan.budget().neighbours();
            plan.parts().0.budget = Budget::new(1.0, 1e-5).unwrap().under(neighbours);
        }),
        ("another correlation charged", |plan| remixed(plan, true, false)),
        ("another correlation run", |plan| remixed(plan, false, true)),
        ("a network that runs more steps", |plan| plan.training_mut().steps += 1),
        ("more steps all over", |plan| {
            plan.training_mut().steps += 1;
            plan.parts().0.stages[0].steps += 1;
        }),
        ("twice a step", |plan| plan.parts().0.stages[0].releases[0].times += 1),
        ("another question", |plan| plan.parts().0.stages[0].releases[0].purpose = "x".into()),
        ("all rows", |plan| plan.parts().0.stages[0].all_rows = true),
        ("no questions", |plan| plan.parts().0.stages.clear()),
        ("no cut", |plan| plan.training_mut().clip = 0.0),
        ("an endless cut", |plan| plan.training_mut().clip = f64::INFINITY),
        ("another network", |plan| plan.training_mut().shape.inputs.truncate(2)),
        ("no network", |plan| *plan.parts().1 = quietly_linear::papers::TukeyEm {}.into()),
    ];
    for plan in plans() {
        let name = name(&plan);
        let text = serde_json::to_string(&plan).unwrap();
        let read: PlanRecord = serde_json::from_str(&text).unwrap();
        train(&read.check().unwrap()).expect("written and read");
        for (what, change) in changes {
            let mut other = plan.record();
            change(&mut other);
            if other == plan.record() {
                continue;
            }
            let error = other.check().err();
            let refused = matches!(error, Some(Error::Parameter { name: "plan", .. }));
            assert!(refused, "{name}: {what}: {error:?}");
        }
    }
}

/// With another sampler a plan is another one. If that costs more or has no theorem, it is refused; if it is cheaper, then the rows
/// are drawn by it, as the sampler that is charged is the one that runs.
#[test]
fn a_changed_sampler_is_the_one_that_runs_or_is_refused() {
    let mut refused = 0;
    for plan in plans() {
        let mut other = plan.record();
        amplified(&mut other);
        let sampler = other.sampler();
        match other.check().and_then(|other| train(&other).map(|_| other)) {
            Err(Error::Parameter { name: "plan" | "stages" | "number of rows", .. }) => {
                refused += 1
            }
            Err(error) => panic!("{}: {error}", name(&plan)),
            Ok(other) => {
                let certificate = other.certificate("row", None).unwrap();
                assert_eq!(certificate.sampler, sampler);
            }
        }
        // A row in every step, at the price of a few.
        let mut full = plan.record();
        resample(&mut full, Sampler::FullBatch);
        if full != plan.record() {
            match full.check().and_then(|full| train(&full).map(|_| full)) {
                Err(Error::Parameter { name: "plan" | "stages", .. }) => refused += 1,
                Err(error) => panic!("{}: {error}", name(&plan)),
                // Bands on batches of one size are charged as if every row were in all of them.
                Ok(full) => {
                    let certificate = full.certificate("row", None).unwrap();
                    assert!(
                        certificate.epsilon <= plan.epsilon() * (1.0 + 1e-9),
                        "{}",
                        name(&plan)
                    );
                    assert!(matches!(plan.sampler(), Sampler::FixedSize { .. }), "{}", name(&plan));
                }
            }
        }
    }
    assert!(refused >= 25, "{refused}");
}

/// More noise than the lattice has room for is an error, and no bug.
#[test]
fn noise_beyond_the_lattice_is_refused() {
    const WIDE: usize = 5000;
    let shape = NetworkShape::new(vec![Input::Spline; WIDE], NetworkLoss::Logistic);
    let kan = Kan::new(NetworkShape { hidden: vec![1], ..shape }).passes(3);
    for noise in [NetworkNoise::Independent, lambda(0.5)] {
        let kan = kan.clone().sampler(NetworkSampler::FullBatch).noise(noise);
        let plan = Plan::kan(&kan, 30, budget(Neighbours::AddRemove)).unwrap();
        let empty = Private::new(Table::new(WIDE, Vec::new(), Vec::new()));
        let run =
            |plan: &Plan| plan.fit(FitInput::table(&empty, (0.0, 1.0)), options(1, 1)).map(drop);
        run(&plan).unwrap();
        let mut louder = plan.record();
        match &mut louder.parts().0.stages[0].releases[0].mechanism {
            Mechanism::Gaussian { noise } | Mechanism::CorrelatedGaussian { noise, .. } => {
                *noise = 9.9e4
            }
            other => panic!("{other:?}"),
        }
        let error = run(&louder.check().unwrap()).unwrap_err().to_string();
        assert!(error.contains("fits the lattice"), "{error}");
    }
}

/// Another cut is no other price: what is charged is noise over the cut, and noise is drawn for the cut that runs.
#[test]
fn noise_follows_the_cut() {
    let kan = |clip: f64| {
        let kan =
            kan(NetworkSampler::FullBatch, lambda(0.5)).clip(Clip::At(clip)).average(Average::Last);
        kan.step_size(1.0).momentum(0.0)
    };
    let plan = |clip| Plan::kan(&kan(clip), 30, budget(Neighbours::AddRemove)).unwrap();
    let (low, mut changed) = (plan(0.01), plan(0.01).record());
    changed.training_mut().clip = 0.5;
    assert_eq!(low.stages(), plan(0.5).stages());
    assert!(train(&changed.check().unwrap()).unwrap() == train(&plan(0.5)).unwrap());
}

/// Steps that settle as they are have no momentum; longer ones have as much as they need, and are held where nothing would do.
#[test]
fn momentum_comes_with_steps_that_would_not_settle() {
    let shape = NetworkShape::new(vec![Input::Spline; 10], NetworkLoss::Logistic);
    let training = |rows: u64, epsilon: f64| {
        let budget = Budget::new(epsilon, 1e-5).unwrap();
        let plan = Plan::kan(&Kan::new(shape.clone()), rows, budget).unwrap();
        plan.training().clone()
    };
    let (little, some, much) = (training(4000, 1.0), training(4000, 4.0), training(60_000, 8.0));
    assert_eq!((little.momentum, little.steps), (0.0, 150));
    assert!(some.momentum > 0.1 && some.momentum < 0.3, "{}", some.momentum);
    assert_eq!((much.momentum, much.steps), (0.9, 333));
    let longest = |t: &quietly_kan::KanConfig| 2.0 * t.clip / (0.1 * 0.25 * (1.0 - t.momentum));
    assert!(little.step_size < longest(&little));
    assert!((some.step_size / longest(&some) - 1.0).abs() < 1e-12);
    assert!((much.step_size / longest(&much) - 1.0).abs() < 1e-12);
}
