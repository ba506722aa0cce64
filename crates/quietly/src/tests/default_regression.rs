//! What the default regressions release, between neighbours: every question that a plan of theirs can have, under both relations.
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
};
use quietly_noise::Key;

use crate::{
    any_algorithm::AnyAlgorithm,
    plan::{Plan, Regression, plan_auto_number},
};

/// Links, declared rows, features and ε, such that each question is asked by one of the plans.
const CASES: [(Link, u64, usize, f64); 6] = [
    (Link::Linear, 5000, 3, 2.0),
    (Link::Linear, 300, 3, 1.0),
    (Link::Relu, 5000, 3, 2.0),
    (Link::Linear, 1000, 200, 20.0),
    (Link::Linear, 100, 3, 0.3),
    (Link::Linear, 3000, 400, 1.0),
];

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
    ((0..width).map(|_| number()).collect(), number())
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
        let width = plan.width();
        for seed in 0..8 {
            let mut random = Random(500 + seed);
            let mut rows: Vec<Row> = (0..40).map(|_| row(&mut random, width)).collect();
            let before = witnessed(&plan, &rows, seed);
            change(&mut rows, row(&mut random, width));
            for (purpose, far) in farthest(&before, &witnessed(&plan, &rows, seed)) {
                let most = found.entry(purpose).or_insert(0.0_f64);
                *most = most.max(far);
            }
        }
    }
    found
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
