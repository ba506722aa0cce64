//! P7: a column that is odd costs no more than an ordinary column that is of no use, under the same plan: at most 0.005 of R².
use crate::{
    fitting::{LINEAR, ONE_PASS, Prepared, RELU, Way, budget},
    report::{Report, all, seeds},
    statistics::median,
    tables,
};

const ODD: [&str; 6] = [
    "constant",
    "duplicate",
    "one nonzero row",
    "sum of others",
    "variance 1e-9",
    "99 % one value",
];
const EPSILONS: [f64; 3] = [1.0, 0.1, 8.0];
const LOST: f64 = 0.005;
const ROWS: usize = 20_000;

/// What the first table of a pair explains less than the second, in the median over pairs.
fn lost(pair: impl Fn(u64) -> (tables::Made, tables::Made), way: Way, epsilon: f64) -> f64 {
    let r2 = |made: &tables::Made, seed| {
        let prepared = Prepared::new(made);
        prepared.r2(prepared.error(&prepared.fit(&prepared.plan(way, budget(epsilon)), seed)))
    };
    let each = seeds(20, 3).map(|seed| {
        let (odd, ordinary) = pair(seed);
        r2(&ordinary, seed) - r2(&odd, seed)
    });
    median(&each.collect::<Vec<_>>())
}

#[test]
fn odd_columns_cost_nothing() {
    let mut report = Report::new("P7");
    for (j, way) in [LINEAR, RELU, ONE_PASS].iter().enumerate() {
        for (k, name) in ODD.iter().enumerate() {
            for (i, epsilon) in EPSILONS.iter().enumerate() {
                // One pass at a small budget learns no more than the mean.
                let of_use = *way != ONE_PASS || *epsilon >= 1.0;
                if of_use && (all() || j == 0 && k < 2 && i == 0) {
                    let found = lost(|seed| tables::odd_column(name, ROWS, seed), *way, *epsilon);
                    let what = format!("{}, {name}, epsilon {epsilon}", way.name);
                    report.at_most(&what, found, LOST);
                }
            }
        }
    }
    report.done();
}

/// The control: a column that is of use, and missing, is found out.
#[test]
fn a_useful_column_is_missed() {
    let pair = |seed| {
        let made = tables::numbers("normal", (ROWS, 6), seed);
        (made.clone().with(|name| name == "x0", |_| 0.0, |range| range), made)
    };
    assert!(lost(pair, LINEAR, 1.0) > LOST);
}
