//! P1: with ε = 1000 the error is that of the plain model, the same map and features without noise and clips, to one part in a
//! hundred. For classes that part is of what the plain model gains over the shares of the classes.
use quietly::Method;

use crate::{
    fitting::{LINEAR, LOGISTIC, ONE_PASS, Prepared, RELU, Way, budget},
    report::{Report, all, seeds},
    statistics::median,
    tables::{self, Made},
};

const EPSILON: f64 = 1000.0;
const PART: f64 = 0.01;

const NUMBERS: [(&str, (usize, usize)); 16] = [
    ("t3 columns", (4000, 6)),
    ("spike", (4000, 6)),
    ("lognormal columns", (4000, 6)),
    ("normal", (4000, 6)),
    ("one feature", (4000, 1)),
    ("normal", (1000, 40)),
    ("t3 columns", (1000, 40)),
    ("skewed columns, linear", (4000, 6)),
    ("collinear", (4000, 6)),
    ("constant column", (4000, 6)),
    ("units", (4000, 6)),
    ("wide ranges", (4000, 6)),
    ("categories", (4000, 6)),
    ("counts", (4000, 6)),
    ("lognormal target", (4000, 6)),
    ("t2 residuals", (4000, 6)),
];

const RECTIFIED: [(&str, (usize, usize)); 5] = [
    ("rectified", (4000, 6)),
    ("counts", (4000, 6)),
    ("hurdle", (4000, 6)),
    ("lognormal target", (4000, 6)),
    ("rectified", (2000, 40)),
];

const CLASSES: [(&str, (usize, usize)); 8] = [
    ("one feature, classes", (4000, 1)),
    ("heavy columns, classes", (4000, 6)),
    ("four classes", (4000, 6)),
    ("two classes", (4000, 6)),
    ("two classes", (1000, 40)),
    ("rare class", (4000, 6)),
    ("separated", (4000, 6)),
    ("four classes", (2000, 40)),
];

/// The error that P1 allows, and the one that is.
fn errors(made: &Made, way: Way, seed: u64) -> (f64, f64) {
    let prepared = Prepared::new(made);
    let model = prepared.fit(&prepared.plan(way, budget(EPSILON)), seed);
    let (plain, base) = (prepared.plain(&model), prepared.error_of_constant());
    let more = if prepared.classes() > 0 { (base - plain).max(0.0) } else { plain };
    (plain + PART * more, prepared.error(&model))
}

fn check(
    ways: &[Way],
    tables: &[(&str, (usize, usize))],
    make: fn(&str, (usize, usize), u64) -> Made,
) {
    let mut report = Report::new("P1");
    for way in ways {
        for (name, shape) in tables {
            let each = seeds(20, 3).map(|seed| {
                let (most, is) = errors(&make(name, *shape, seed), *way, seed);
                is / most
            });
            let ratio = median(&each.collect::<Vec<_>>());
            report.at_most(&format!("{}, {name}, {shape:?}", way.name), ratio, 1.0);
        }
    }
    report.done();
}

fn some<T>(cases: &[T], few: usize) -> &[T] {
    if all() { cases } else { &cases[..few] }
}

#[test]
fn linear_models_are_those_of_no_noise() {
    check(&[LINEAR], some(&NUMBERS, 3), tables::numbers);
}

#[test]
fn one_pass_gives_the_model_of_no_noise() {
    check(&[ONE_PASS], some(&NUMBERS, 2), tables::numbers);
}

#[test]
fn relu_models_are_those_of_no_noise() {
    check(&[RELU], some(&RECTIFIED, 2), tables::numbers);
}

#[test]
fn classifiers_are_those_of_no_noise() {
    check(&[LOGISTIC], some(&CLASSES, 3), tables::classes);
}

/// The control: a descent whose clip stays low, whatever the budget, is found out.
#[test]
fn a_clip_that_is_held_low_is_found_out() {
    let low = Way { method: Method::DpSgd, ..LINEAR };
    let ratio = |seed| {
        let (most, is) = errors(&tables::numbers("lognormal target", (4000, 6), seed), low, seed);
        is / most
    };
    assert!(median(&[ratio(0), ratio(1), ratio(2)]) > 1.0);
}
