//! P6: public ranges that are too wide cost little. All of them five times too wide: at most 0.01 of R² from ε = 1 on, and 0.05 at ε = 0.1; twenty times: 0.02
//! from ε = 1 on. For classes the same of the share of the constant's log loss that is explained.
use quietly::{Link, Regression};

use crate::{
    fitting::{LINEAR, LOGISTIC, Prepared, Way, budget},
    report::{Report, all, seeds},
    statistics::median,
    tables::{self, Made},
};

type Make = fn(&str, (usize, usize), u64) -> Made;

const CASES: [(Way, Make, &str, (usize, usize)); 7] = [
    (LINEAR, tables::numbers, "skewed columns, linear", (16_000, 8)),
    (LOGISTIC, tables::classes, "two classes", (4000, 6)),
    (LINEAR, tables::numbers, "normal", (16_000, 8)),
    (LINEAR, tables::numbers, "t3 columns", (16_000, 8)),
    (LINEAR, tables::numbers, "units", (4000, 11)),
    (LINEAR, tables::numbers, "spike", (16_000, 8)),
    (LOGISTIC, tables::classes, "heavy columns, classes", (4000, 6)),
];

/// How many times too wide ranges are, ε, and what that may cost.
const LIMITS: [(f64, f64, f64); 5] =
    [(5.0, 1.0, 0.01), (5.0, 0.1, 0.05), (20.0, 1.0, 0.02), (5.0, 8.0, 0.01), (20.0, 8.0, 0.02)];

/// The share of the constant's error that is explained, in the median.
fn explained(make: impl Fn(u64) -> Made, fit: impl Fn(&Prepared, u64) -> f64) -> f64 {
    let one = |seed| {
        let prepared = Prepared::new(&make(seed));
        1.0 - fit(&prepared, seed) / prepared.error_of_constant()
    };
    median(&seeds(20, 3).map(one).collect::<Vec<_>>())
}

#[test]
fn wide_ranges_cost_little() {
    let mut report = Report::new("P6");
    for (k, (way, make, name, shape)) in CASES.iter().enumerate() {
        for (times, epsilon, most) in LIMITS {
            if !all() && (k > 1 || epsilon != 1.0) {
                continue;
            }
            let fit = |prepared: &Prepared, seed| {
                prepared.error(&prepared.fit(&prepared.plan(*way, budget(epsilon)), seed))
            };
            let lost = explained(|seed| make(name, *shape, seed), fit)
                - explained(|seed| make(name, *shape, seed).wider(times), fit);
            let what = format!("{}, {name}, {shape:?}, {times} times, epsilon {epsilon}", way.name);
            report.at_most(&what, lost, most);
        }
    }
    report.done();
}

/// The control: the same without the map of columns is found out.
#[test]
fn without_a_map_wide_ranges_cost_much() {
    let raw = |prepared: &Prepared, seed| {
        let raw = Regression::new(Link::Linear).raw();
        let plan = raw.plan(prepared.rows(), prepared.width(), budget(0.1)).unwrap();
        prepared.error(&prepared.fit(&plan, seed))
    };
    let make = |seed| tables::numbers("skewed columns, linear", (4000, 8), seed);
    assert!(explained(make, raw) - explained(|seed| make(seed).wider(20.0), raw) > 0.05);
}
