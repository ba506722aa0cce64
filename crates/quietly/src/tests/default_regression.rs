//! What the default regressions release, between neighbours: every question that a plan of theirs can have, under both relations
//! (P9 of docs/spec/default.md#1; with QUIETLY_PROPERTIES=all for 10,000 pairs).
use std::{collections::HashMap, ops::ControlFlow};

use quietly_accounting::Neighbours;
use quietly_core::{
    budget::Budget,
    random::Random,
    release::{Releaser, Witnessed},
};
use quietly_data::{Private, Table};
use quietly_engine::link::Link;
use quietly_linear::{
    additive::{BENT_MOMENT, BENT_NORMS, FIRST_BENDS, GAIN, LAST_BENDS, LINEAR_MOMENT},
    full_batch::{
        CENTRES, CHEAP, COLUMNS, FIRST, GATE, LAST, MEAN, MOMENT, NORM, NORMS, ROBUST, TARGET,
        THRESHOLD,
    },
    one_pass::FIRST_NORMS,
};
use quietly_noise::Key;

use crate::{
    any_algorithm::AnyAlgorithm,
    methods::Method,
    plan::{Plan, Regression, plan_auto_number},
};

/// Links, declared rows, features and ε.
type Case = (Link, u64, usize, f64);

/// Such that each question is asked by one of the plans.
const CASES: [Case; 6] = [
    (Link::Linear, 5000, 3, 2.0),
    (Link::Linear, 300, 3, 1.0),
    (Link::Relu, 5000, 3, 2.0),
    (Link::Linear, 100, 3, 0.3),
    (Link::Linear, 1000, 200, 20.0),
    (Link::Linear, 3000, 400, 1.0),
];

/// The same for one pass: with a map of columns and without.
const ONE_PASS: [Case; 3] =
    [(Link::Linear, 20_000, 3, 2.0), (Link::Relu, 50_000, 3, 4.0), (Link::Linear, 4_000, 3, 1.0)];

/// Declared rows and ε of additive regressions, of three features that are two numbers and a category: with bends of columns alone, and
/// of pairs.
const ADDITIVE: [(u64, f64); 2] = [(2500, 3.0), (20_000, 4.0)];

const RELEASES: [&str; 19] = [
    COLUMNS,
    TARGET,
    MEAN,
    NORM,
    CENTRES,
    MOMENT,
    NORMS,
    FIRST,
    THRESHOLD,
    ROBUST,
    CHEAP,
    LAST,
    GATE,
    LINEAR_MOMENT,
    BENT_MOMENT,
    BENT_NORMS,
    FIRST_BENDS,
    LAST_BENDS,
    GAIN,
];

/// Plans under this relation that ask every question between them.
fn plans(neighbours: Neighbours) -> Vec<Plan> {
    let budget = |epsilon| Budget::new(epsilon, 1e-5).unwrap().under(neighbours);
    let regression = |(link, rows, width, epsilon)| {
        Regression::new(link).plan(rows, width, budget(epsilon)).unwrap()
    };
    let additive = |(rows, epsilon)| {
        let plan = plan_auto_number(vec![0, 2], rows, 3, budget(epsilon)).unwrap();
        assert!(matches!(plan.algorithm(), AnyAlgorithm::Additive(_)), "{:?}", plan.why);
        plan
    };
    CASES.into_iter().map(regression).chain(ADDITIVE.into_iter().map(additive)).collect()
}

type Row = (Vec<f64>, f64);

fn row(random: &mut Random, width: usize) -> Row {
    let mut number = || match random.word() % 4 {
        0 => 1.0,
        1 => -1.0,
        _ => random.number(),
    };
    let features = (0..width).map(|_| number()).collect();
    // Some targets lie outside of their public range.
    (
        features,
        if random.word().is_multiple_of(8) { 7.0 * random.number() } else { random.number() },
    )
}

/// How many pairs of neighbours a plan meets: with `make properties`, 10,000 meet the plans of few features.
fn pairs(width: usize) -> u64 {
    let all = std::env::var("QUIETLY_PROPERTIES").is_ok_and(|value| value == "all");
    if all && width < 100 { 2500 } else { 8 }
}

fn witnessed(plan: &Plan, rows: &[Row], seed: u64) -> Vec<Witnessed> {
    let mut releaser = Releaser::new(Key::from_seed(seed), plan.stages(), 1);
    releaser.witness = Some(Vec::new());
    let features = rows.iter().flat_map(|row| row.0.clone()).collect();
    let targets = rows.iter().map(|row| row.1).collect();
    let table = Private::new(Table::new(plan.width(), features, targets));
    let quiet = &mut |_| ControlFlow::Continue(());
    plan.through(&mut releaser, &table, None, (-1.0, 1.0), quiet).unwrap();
    releaser.witness.unwrap()
}

/// The farthest that a release of each name is apart between two tables, over what one row may add.
fn farthest(before: &[Witnessed], after: &[Witnessed]) -> HashMap<String, f64> {
    assert_eq!(before.len(), after.len(), "no row decides what is asked");
    let mut found = HashMap::new();
    for (a, b) in before.iter().zip(after) {
        assert_eq!((&a.purpose, a.bound), (&b.purpose, b.bound), "no row decides a bound");
        let apart = a.values.iter().zip(&b.values).map(|(a, b)| (a - b) as f64);
        let far = match a.bound {
            Some(bound) => apart.map(|x| x * x).sum::<f64>().sqrt() / bound,
            // A row is in one bin.
            None => apart.map(f64::abs).sum::<f64>(),
        };
        let most = found.entry(a.purpose.clone()).or_insert(0.0_f64);
        *most = most.max(far);
    }
    found
}

/// The farthest over all cases and some seeds, where `change` makes the neighbour.
fn attack(neighbours: Neighbours, change: impl Fn(&mut Vec<Row>, Row)) -> HashMap<String, f64> {
    let mut found = HashMap::new();
    for plan in plans(neighbours) {
        compare(&plan, pairs(plan.width()), &change, |before, after| {
            for (purpose, far) in farthest(before, after) {
                let most = found.entry(purpose).or_insert(0.0_f64);
                *most = most.max(far);
            }
        });
    }
    found
}

/// Shows `see` what was released of neighbouring tables under one history.
fn compare(
    plan: &Plan,
    pairs: u64,
    change: &impl Fn(&mut Vec<Row>, Row),
    mut see: impl FnMut(&[Witnessed], &[Witnessed]),
) {
    let width = plan.width();
    for seed in 0..pairs {
        let mut random = Random(500 + seed);
        let mut rows: Vec<Row> = (0..40).map(|_| row(&mut random, width)).collect();
        let before = witnessed(plan, &rows, seed);
        change(&mut rows, row(&mut random, width));
        see(&before, &witnessed(plan, &rows, seed));
    }
}

/// A plan of one pass.
fn one_pass((link, rows, width, epsilon): Case, neighbours: Neighbours) -> Plan {
    let budget = Budget::new(epsilon, 1e-5).unwrap().under(neighbours);
    let plan = Regression::new(link).method(Method::OnePass).plan(rows, width, budget).unwrap();
    assert_eq!(plan.method(), Method::OnePass);
    plan
}

#[test]
fn no_row_moves_a_release_by_more_than_is_charged() {
    let joined = |rows: &mut Vec<Row>, _| _ = rows.pop();
    let replaced = |rows: &mut Vec<Row>, row| rows[39] = row;
    let all = [
        (attack(Neighbours::AddRemove, joined), 1.0),
        (attack(Neighbours::ReplaceOne, replaced), 2.0),
    ];
    let mut moved: HashMap<&str, f64> = HashMap::new();
    for (found, most) in all {
        for release in RELEASES {
            let far = found.get(release).copied().unwrap_or(0.0);
            assert!(far <= most, "{release}: {far} of {most} bounds");
            *moved.entry(release).or_insert(0.0) += far;
        }
        // Trees and gradients meet their bound.
        for release in [COLUMNS, TARGET, NORMS, CHEAP, BENT_NORMS, FIRST_BENDS] {
            assert!(found[release] > 0.9 * most, "{release}: {}", found[release]);
        }
    }
    assert!(moved.values().all(|far| *far > 0.0), "{moved:?}");
}

/// The control: two rows that leave are caught in every question.
#[test]
fn the_attack_catches_a_second_row() {
    let found = attack(Neighbours::AddRemove, |rows, _| rows.truncate(38));
    let bends = [BENT_NORMS, FIRST_BENDS, LAST_BENDS, GAIN];
    for release in [COLUMNS, TARGET, NORM, NORMS, CHEAP, LAST, GATE].into_iter().chain(bends) {
        assert!(found[release] > 1.0, "{release}: {}", found[release]);
    }
}

/// What a pair of neighbours moved in one pass, over its bounds, or what it moved that it must not: a row is in one step, where it moves no
/// release by more than `most` bounds, and no release of another step at all.
fn moved_in_one_pass(
    before: &[Witnessed],
    after: &[Witnessed],
    most: f64,
) -> Result<HashMap<String, f64>, String> {
    let (mut moved, mut counts, mut steps) = (HashMap::new(), HashMap::new(), Vec::new());
    for (a, b) in before.iter().zip(after) {
        let nth = counts.entry(&a.purpose).or_insert(0);
        *nth += 1;
        let far = farthest(std::slice::from_ref(a), std::slice::from_ref(b))[&a.purpose];
        if far > most {
            return Err(format!("{}: {far} of {most} bounds", a.purpose));
        }
        if far > 0.0 {
            steps.push(match a.purpose.as_str() {
                ROBUST | NORMS => (ROBUST, *nth),
                alone @ (NORM | MOMENT | FIRST_NORMS | LAST) => (alone, *nth),
                _ => ("first", 1),
            });
        }
        let all = moved.entry(a.purpose.clone()).or_insert(0.0_f64);
        *all = all.max(far / most);
    }
    steps.dedup();
    match steps.len() {
        0 | 1 => Ok(moved),
        _ => Err(format!("a row is in one step, but moved {steps:?}")),
    }
}

/// Steps are priced for a row that is there or not: under replace-one two rows of one step are.
#[test]
fn no_row_moves_one_pass_by_more_than_is_charged() {
    let joined = |rows: &mut Vec<Row>, _| _ = rows.pop();
    let replaced = |rows: &mut Vec<Row>, row| rows[39] = row;
    let mut moved: HashMap<String, f64> = HashMap::new();
    for case in ONE_PASS {
        let mut see = |before: &[Witnessed], after: &[Witnessed], most: f64| {
            assert_eq!(before.len(), after.len(), "no row decides what is asked");
            for (purpose, far) in moved_in_one_pass(before, after, most).unwrap() {
                let all = moved.entry(purpose).or_insert(0.0);
                *all = all.max(far);
            }
        };
        let pairs = 8 * pairs(3);
        let [one, other] =
            [Neighbours::AddRemove, Neighbours::ReplaceOne].map(|how| one_pass(case, how));
        compare(&one, pairs, &joined, |a, b| see(a, b, 1.0));
        compare(&other, pairs, &replaced, |a, b| see(a, b, 2.0));
    }
    for release in [NORM, MOMENT, ROBUST, LAST] {
        assert!(moved[release] > 0.0, "{release} in {moved:?}");
    }
    for release in [COLUMNS, TARGET, FIRST_NORMS, NORMS] {
        assert!(moved[release] > 0.7, "{release} in {moved:?}");
    }
}

/// The control: two rows that leave are in one step and move it too far, or are in two steps.
#[test]
fn the_attack_on_one_pass_catches_a_second_row() {
    let change = |rows: &mut Vec<Row>, _: Row| rows.truncate(38);
    let mut caught = 0;
    compare(&one_pass(ONE_PASS[0], Neighbours::AddRemove), 64, &change, |a, b| {
        caught += usize::from(moved_in_one_pass(a, b, 1.0).is_err());
    });
    assert!(caught > 50, "{caught} of 64");
}
