//! P4: `auto` is no worse than the linear model that it contains: at most 0.005 of R², or 0.002 of log loss, in the median.
use crate::{
    fitting::{LINEAR, LOGISTIC, Prepared, Way, auto, budget},
    report::{Report, all, seeds},
    statistics::median,
    tables::{self, Made},
};

const EPSILONS: [f64; 6] = [0.1, 0.4, 1.6, 6.4, 25.0, 100.0];

type Make = fn(&str, (usize, usize), u64) -> Made;

const CASES: [(Make, &str, (usize, usize)); 14] = [
    (tables::numbers, "normal", (4000, 6)),
    (tables::classes, "two classes", (4000, 6)),
    (tables::numbers, "lognormal columns", (4000, 6)),
    (tables::numbers, "skewed columns, linear", (4000, 6)),
    (tables::numbers, "counts", (4000, 6)),
    (tables::numbers, "spike", (4000, 6)),
    (tables::numbers, "t2 residuals", (4000, 6)),
    (tables::numbers, "units", (1000, 20)),
    (tables::numbers, "categories", (4000, 6)),
    (tables::numbers, "normal", (300, 40)),
    (tables::classes, "rare class", (4000, 6)),
    (tables::classes, "four classes", (4000, 6)),
    (tables::classes, "one feature, classes", (4000, 1)),
    (tables::classes, "heavy columns, classes", (1000, 20)),
];

/// By how much the first way is worse than the second: in R², or in log loss.
fn worse(ways: [Way; 2], make: impl Fn(u64) -> Made, epsilon: f64) -> f64 {
    let one = |seed| {
        let prepared = Prepared::new(&make(seed));
        let score = |way| {
            let model = prepared.fit(&prepared.plan(way, budget(epsilon)), seed);
            let error = prepared.error(&model);
            if prepared.classes() > 0 { error } else { 1.0 - prepared.r2(error) }
        };
        ways.map(score)
    };
    let scores: Vec<[f64; 2]> = seeds(20, 5).map(one).collect();
    let of = |k: usize| median(&scores.iter().map(|pair| pair[k]).collect::<Vec<_>>());
    of(0) - of(1)
}

#[test]
fn auto_is_no_worse_than_the_model_that_it_contains() {
    let Some(auto) = auto() else {
        println!("P4: no family is called auto yet, so there is nothing to compare");
        return;
    };
    let mut report = Report::new("P4");
    for (k, (make, name, shape)) in CASES.iter().enumerate() {
        let classes = make(name, (10, shape.1), 0).has_classes();
        let (inner, most) = if classes { (LOGISTIC, 0.002) } else { (LINEAR, 0.005) };
        for (i, epsilon) in EPSILONS.iter().enumerate() {
            if all() || k < 2 && i == 2 {
                let lost = worse([auto, inner], |seed| make(name, *shape, seed), *epsilon);
                report.at_most(&format!("{name}, {shape:?}, epsilon {epsilon}"), lost, most);
            }
        }
    }
    report.done();
}

/// The control: what is worse is found out. ReLU predicts no number below 0.
#[test]
fn a_worse_model_is_found_out() {
    let relu = crate::fitting::RELU;
    assert!(worse([relu, LINEAR], |seed| tables::numbers("normal", (1000, 6), seed), 1.6) > 0.005);
}
