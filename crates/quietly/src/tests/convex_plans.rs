//! Plans: rows are divided without loss, and what cannot work is refused before any row is read.
use quietly_accounting::Neighbours;
use quietly_core::budget::Budget;
use quietly_engine::error::Error;
use quietly_glm::{
    Growth, Loss, Set,
    localisation::{
        epoch_dp_sgd, iterated_phased_sgd, phase::Phase, phased_erm, phased_sgd, psa, psa_ii,
    },
    problem::ProblemParameters,
};

use crate::{
    methods::Method,
    plan::{Convex, Plan, PlanRecord},
};

const DISC: Set = Set::L2 { radius: 1.0 };

fn budget() -> Budget {
    Budget::new(1.0, 1e-5).unwrap().under(Neighbours::ReplaceOne)
}

fn plan(convex: &Convex) -> Result<Plan, Error> {
    convex.plan(10_000, 4, budget())
}

fn parameters(ridge: f64) -> ProblemParameters {
    let convex = Convex::new(Loss::Logistic).within(DISC).ridge(ridge);
    let plan = plan(&convex).unwrap();
    plan.problem().parameters(4, 1.0, 0.3).unwrap()
}

/// Every partition of n rows.
fn partitions(parameters: &ProblemParameters, n: usize) -> Vec<(&'static str, Vec<Phase>)> {
    let growth = Growth { theta: 2.0, rate: 0.05 };
    let mut all = vec![
        ("phased-sgd", phased_sgd::phases(parameters, n, 1.0)),
        ("phased-erm", phased_erm::phases(parameters, n)),
        ("psa", psa::phases(parameters, n)),
        (
            "sc",
            iterated_phased_sgd::phases(
                parameters,
                n,
                iterated_phased_sgd::count_sc(n),
                Some(growth),
                0.0,
            ),
        ),
        ("epoch", epoch_dp_sgd::phases(parameters, n, epoch_dp_sgd::count(parameters, n, 1.0))),
    ];
    // As many stages as there are at most, and few.
    for rate in [0.05, 1e9] {
        let stages = psa_ii::stages(parameters, n, Growth { theta: 2.0, rate });
        all.push(("psa-ii", psa_ii::phases(parameters, n, stages)));
    }
    for theta in [1.01, 1.5, 2.0, 3.0, 40.0] {
        let phases = iterated_phased_sgd::phases(
            parameters,
            n,
            iterated_phased_sgd::count(n, theta),
            None,
            0.0,
        );
        all.push(("iterated", phases));
    }
    if n >= 8 {
        all.push((
            "faster",
            epoch_dp_sgd::faster(parameters, n, epoch_dp_sgd::count(parameters, n - n / 2, 1.0)),
        ));
    }
    all
}

#[test]
fn every_row_is_in_one_phase() {
    let parameters = parameters(0.5);
    for n in (4..=5000).chain([10_000, 99_999, 100_000, 1_000_000, 1 << 20, 10_000_000]) {
        for (name, phases) in partitions(&parameters, n) {
            assert_eq!(phases.iter().map(|p| p.rows).sum::<usize>(), n, "{name} {n}");
            let good = |phase: &Phase| phase.is_sound() && phase.suits(&parameters);
            assert!(phases.iter().all(good), "{name} {n}: {phases:?}");
        }
    }
}

/// The published sizes: of Phased-SGD-SC, ⌊2^(i-2)·n/log2 n⌋, and of Iterated Phased-SGD, ⌊2^(i-1)·n/(log2 n)^κ⌋, κ = 1/log2 θ̄.
fn published(n: f64, parts: u32, first: f64) -> Vec<usize> {
    (0..parts).map(|i| (f64::from(1 << i) * n / first) as usize).collect()
}

#[test]
fn published_sizes_are_those_of_the_paper_and_leave_rows_out() {
    let n = 1e4_f64;
    let two = published(n, iterated_phased_sgd::count(10_000, 2.0), n.log2());
    assert_eq!(two, [752, 1505, 3010]);
    let kappa = 1.0 / 1.5_f64.log2();
    let slow = published(n, iterated_phased_sgd::count(10_000, 1.5), n.log2().powf(kappa));
    assert_eq!((slow.len(), slow[0], slow[5]), (6, 120, 3842));
    let sc = published(n, iterated_phased_sgd::count_sc(10_000), 2.0 * n.log2());
    let used = |sizes: &[usize]| sizes.iter().sum::<usize>() as f64 / n;
    assert_eq!((sc.len(), (100.0 * used(&sc)).round()), (4, 56.0));
    assert_eq!(((100.0 * used(&two)).round(), (100.0 * used(&slow)).round()), (53.0, 76.0));
    // Ours, which leave none out, start with two rows or more however many parts θ̄ asks for.
    let ours = iterated_phased_sgd::phases(
        &parameters(0.0),
        10_000,
        iterated_phased_sgd::count(10_000, 1.01),
        None,
        0.0,
    );
    assert!(ours[0].rows >= 1 && iterated_phased_sgd::count(10_000, 1.01) == 12);
    assert_eq!(iterated_phased_sgd::count(10_000, 40.0), 1);
    let counts = [2, 3, 4, 1023, 1024, 5000, 10_000_000].map(phased_sgd::count);
    assert_eq!(counts, [1, 1, 2, 9, 10, 12, 12]);
    assert_eq!(phased_sgd::sizes(13, 3), [6 + 3, 3, 1]);
    assert_eq!([43, 256, 10_000, 1_000_000].map(psa::stages), [1, 2, 4, 7]);
}

#[test]
fn steps_are_held_to_what_contracts() {
    let parameters = parameters(0.0);
    let bold = phased_sgd::with_step(&parameters, 1000, 1e6, 3.0);
    assert!(
        bold.iter().all(|p| p.suits(&parameters) && p.step <= 2.0 / (parameters.smoothness + 6.0))
    );
    assert_eq!(bold[0].batch, Some(1));
    let timid = phased_sgd::with_step(&parameters, 1000, 1e-9, 0.0);
    assert_eq!(timid[0].batch, Some(timid[0].rows / 8));
}

#[test]
fn what_cannot_work_is_refused_by_name() {
    let logistic = || Convex::new(Loss::Logistic).within(DISC);
    let phased = |method| logistic().method(method);
    for (convex, name) in [
        (Convex::new(Loss::Logistic).method(Method::PhasedSgd), "set of weights"),
        (Convex::new(Loss::Squared).method(Method::Psa), "the longest gradient"),
        (Convex::new(Loss::Hinge).within(DISC).method(Method::PhasedSgd), "loss"),
        (Convex::new(Loss::Quantile { level: 0.5 }).within(DISC), "loss"),
        (Convex::new(Loss::Hinge).within(DISC).power(3.0, 1.0).method(Method::PhasedErm), "power"),
        (phased(Method::EpochDpSgd), "ridge"),
        (phased(Method::FasterDpsgdSc), "ridge"),
        (phased(Method::PhasedSgdSc), "ridge"),
        (phased(Method::PsaTwo), "growth"),
        (phased(Method::IteratedPhasedSgd).growing(1.0, 1.0), "growth_exponent"),
        (phased(Method::PsaTwo).growing(2.0, 0.0), "growth_constant"),
        (phased(Method::PhasedSgd).power(1.5, 1.0), "power"),
        (phased(Method::PhasedSgd).ridge(-1.0), "ridge"),
        (phased(Method::PhasedSgd).rows_within(0.0), "bound on rows"),
        (phased(Method::PhasedSgd).rows_within_l1(-1.0), "1-norm"),
        (logistic().within(Set::L2 { radius: 0.0 }), "radius"),
        (Convex::new(Loss::Margin).within(DISC).constant(0.0), "ridge"),
        (Convex::new(Loss::Logistic).power(3.0, 1.0), "power"),
        (Convex::new(Loss::Logistic).lasso(0.1), "lasso"),
        (phased(Method::AdaSsp), "method"),
    ] {
        let error = plan(&convex).unwrap_err();
        let parameter = matches!(error, Error::Parameter { .. });
        assert!(parameter && error.to_string().contains(name), "{name}: {error}");
    }
    let phased = phased(Method::PhasedSgd);
    let join = Budget::new(1.0, 1e-5).unwrap().under(Neighbours::AddRemove);
    let shifts = phased.plan(1000, 4, join).unwrap_err();
    assert!(shifts.to_string().contains("place"), "{shifts}");
    assert!(phased.plan(3, 4, budget()).unwrap_err().to_string().contains("rows"));
    let hinge = Convex::new(Loss::Hinge).within(DISC).method(Method::PhasedErm);
    assert!(hinge.plan(1000, 4, budget()).unwrap().warnings.iter().any(|w| w.contains("products")));
    assert!(matches!(hinge.plan(10_000_000, 400, budget()), Err(Error::TooLarge { .. })));
}

#[test]
fn a_short_table_has_one_epoch_and_says_so() {
    let convex = Convex::new(Loss::Logistic).within(DISC).ridge(1e-3).method(Method::EpochDpSgd);
    let plan = convex.plan(2000, 4, budget()).unwrap();
    assert!(plan.warnings.iter().any(|w| w.contains("too few rows")));
    assert_eq!(plan.problem().stages, Some(1));
}

/// A plan is a file, and files can be changed: what buys noise with nonsense is refused before a row is read.
#[test]
fn nonsense_in_a_plan_buys_nothing() {
    let edited = |plan: &Plan, edit: &dyn Fn(&mut serde_json::Value)| {
        let mut file = serde_json::to_value(plan).unwrap();
        edit(&mut file);
        serde_json::from_value::<PlanRecord>(file).unwrap().check()
    };
    let pure = Budget::pure(1.0).unwrap();
    let plan = Convex::new(Loss::Logistic).plan(500, 3, pure).unwrap();
    assert!(edited(&plan, &|_| {}).is_ok());
    // A choice of negative price would offset an expensive minimiser.
    let negative = |file: &mut serde_json::Value| {
        file["stages"][0]["releases"][0]["add_remove"] = (-90.0).into();
        file["stages"][0]["releases"][0]["replace_one"] = (-90.0).into();
        file["stages"][1]["releases"][0]["epsilon"] = 90.5.into();
    };
    assert!(edited(&plan, &negative).is_err());

    let budget = Budget::new(1.0, 1e-5).unwrap().under(Neighbours::ReplaceOne);
    let set = Set::L2 { radius: 1.0 };
    let walk = Convex::new(Loss::Logistic).within(set.clone()).method(Method::GdOp).step_size(0.01);
    let plan = walk.plan(500, 3, budget).unwrap();
    assert!(edited(&plan, &|_| {}).is_ok());
    for (field, value) in [("step_size", -0.01), ("step_size", 1e6), ("steps", 0.0)] {
        let edit = |file: &mut serde_json::Value| {
            file["algorithm"]["problem"][field] =
                if field == "steps" { (value as u64).into() } else { value.into() };
        };
        assert!(edited(&plan, &edit).is_err(), "{field} {value}");
    }
    for method in [Method::DpGd, Method::ScPsgd, Method::PhasedSgd] {
        let plan = Convex::new(Loss::Logistic).within(set.clone()).method(method);
        let plan = plan.plan(500, 3, budget).unwrap();
        assert!(edited(&plan, &|_| {}).is_ok());
        assert!(
            edited(&plan, &|file| file["algorithm"]["problem"]["scales"] = true.into()).is_err()
        );
        assert!(
            edited(&plan, &|file| file["algorithm"]["problem"]["clip"] = (-1.0).into()).is_err()
        );
        assert!(edited(&plan, &|file| file["algorithm"]["problem"]["stages"] = 0.into()).is_err());
    }
}
