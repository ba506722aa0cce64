//! P5: units, offsets, the order of columns and the names of categories change nothing: the same bits where numbers are the same after
//! encoding, and the same distribution of R² otherwise.
//!
//! Two samples of 30 from one distribution are more than 0.5 apart by Kolmogorov and Smirnov once in 1200 times.
use crate::{
    fitting::{LINEAR, LOGISTIC, ONE_PASS, Prepared, RELU, Way, budget},
    report::{Report, all},
    statistics::distance,
    tables::{self, Cells, Made},
};

const EPSILON: f64 = 1.0;
const SEEDS: u64 = 30;
const APART: f64 = 0.5;

type Make = fn(&str, (usize, usize), u64) -> Made;

const CASES: [(Way, Make, &str); 7] = [
    (LINEAR, tables::numbers, "categories"),
    (LOGISTIC, tables::classes, "two classes"),
    (LINEAR, tables::numbers, "skewed columns, linear"),
    (RELU, tables::numbers, "rectified"),
    (ONE_PASS, tables::numbers, "normal"),
    (LOGISTIC, tables::classes, "four classes"),
    (LOGISTIC, tables::classes, "heavy columns, classes"),
];

/// Numbers in other units, and their ranges with them.
fn scaled(made: Made, which: impl Fn(&str) -> bool, (by, offset): (f64, f64)) -> Made {
    let moved = move |x: f64| by * x + offset;
    made.with(which, moved, |(low, high)| {
        (moved(low).min(moved(high)), moved(low).max(moved(high)))
    })
}

fn is_feature(name: &str) -> bool {
    name != "y"
}

fn renamed(mut made: Made) -> Made {
    for (_, cells) in &mut made.columns {
        if let Cells::Categories { names, .. } = cells {
            names.iter_mut().for_each(|name| *name = format!("the {name}"));
        }
    }
    made
}

/// Columns in another order: the target stays the last.
fn permuted(mut made: Made) -> Made {
    let last = made.columns.len() - 1;
    made.columns[..last].reverse();
    made
}

/// The share of the constant's error that a fit explains, for each of some seeds.
fn explained(made: &Made, way: Way, first: u64) -> Vec<f64> {
    let prepared = Prepared::new(made);
    let plan = prepared.plan(way, budget(EPSILON));
    let base = prepared.error_of_constant();
    (first..first + SEEDS)
        .map(|seed| 1.0 - prepared.error(&prepared.fit(&plan, seed)) / base)
        .collect()
}

#[test]
fn units_orders_and_names_change_nothing() {
    let mut report = Report::new("P5");
    let cases = if all() { &CASES[..] } else { &CASES[..2] };
    for (way, make, name) in cases {
        let case = format!("{}, {name}", way.name);
        let made = make(name, (1000, 6), 3);
        let relu = way.name == "relu";
        let same = explained(&made, *way, 0);
        // Scaled by a power of two, and by nothing else, every encoded number is the same; so is the law of the errors, over those of the constant.
        let exact = [
            ("features eight times as large", scaled(made.clone(), is_feature, (8.0, 0.0))),
            ("target a quarter as large", scaled(made.clone(), |name| name == "y", (0.25, 0.0))),
            ("other names", renamed(made.clone())),
        ];
        for (change, made) in exact {
            let found = explained(&made, *way, 0);
            // A target in other units has errors in other units: their quotients round.
            let off = found.iter().zip(&same).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            report.at_most(&format!("{case}, {change}"), off, 1e-12);
        }
        // A target of max(u, 0) cannot be moved.
        let target = if relu { (3.7, 0.0) } else { (3.7, -41.0) };
        let alike = [
            ("features in other units", scaled(made.clone(), is_feature, (-0.3, 17.0))),
            ("target in other units", scaled(made.clone(), |name| name == "y", target)),
            ("columns in another order", permuted(made.clone())),
        ];
        for (change, made) in alike {
            let apart = distance(&explained(&made, *way, 1000), &same);
            report.at_most(&format!("{case}, {change}"), apart, APART);
        }
    }
    report.done();
}

/// The control: ranges that stay where they were are found out.
#[test]
fn ranges_that_stay_are_found_out() {
    let made = tables::numbers("normal", (1000, 6), 3);
    let moved = made.clone().with(is_feature, |x| 3.0 * x + 2.0, |range| range);
    assert!(distance(&explained(&moved, LINEAR, 1000), &explained(&made, LINEAR, 0)) > APART);
}
