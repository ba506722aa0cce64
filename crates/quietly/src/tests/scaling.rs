use std::ops::ControlFlow;

use quietly_accounting::Neighbours;
use quietly_core::{
    budget::Budget,
    random::Random,
    release::{Releaser, Witnessed},
};
use quietly_data::{Private, Table};
use quietly_glm::{Loss, design_matrix::Features, standardise::*};
use quietly_noise::Key;

use crate::plan::{FitInput, test_support::options};
use crate::{
    methods::Method,
    plan::{Convex, Plan},
};

const WIDTH: usize = 3;

type Record = ([f64; WIDTH], f64);

fn table(rows: &[Record]) -> Private<Table> {
    let x = rows.iter().flat_map(|r| r.0).collect();
    Private::new(Table::new(WIDTH, x, rows.iter().map(|r| r.1).collect()))
}

fn plan(loss: Loss, neighbours: Neighbours) -> Plan {
    let budget = Budget::new(1.0, 1e-5).unwrap().under(neighbours);
    Convex::new(loss).method(Method::ScaledAmp).plan(40, WIDTH, budget).unwrap()
}

fn witnessed(plan: &Plan, rows: &[Record], seed: u64) -> Vec<Witnessed> {
    let mut releaser = Releaser::new(Key::from_seed(seed), plan.stages(), 2);
    releaser.witness = Some(Vec::new());
    let quiet = &mut |_| ControlFlow::Continue(());
    plan.through(&mut releaser, &table(rows), None, (0.0, 1.0), quiet).unwrap();
    releaser.witness.unwrap()
}

/// Rows at the corners of what is possible, and some that are no rows.
fn row(random: &mut Random) -> Record {
    let x = std::array::from_fn(|_| match random.word() % 5 {
        0 => 1.0,
        1 => -1.0,
        2 => 0.0,
        _ => random.number(),
    });
    let y = match random.word() % 8 {
        0 => f64::NAN,
        1 => 7.0,
        w => (w % 4) as f64,
    };
    (x, y)
}

/// Every sum that is asked for moves by no more than one row's bound when a row joins, and twice that when one is replaced;
/// counts by one, and two. Somewhere more than half of it is met.
#[test]
fn no_row_moves_a_question_by_more_than_is_charged() {
    let losses = [Loss::SmoothHinge { width: 0.5 }, Loss::Huber { width: 0.1 }];
    let both = [Neighbours::AddRemove, Neighbours::ReplaceOne];
    for (loss, neighbours) in losses.into_iter().flat_map(|l| both.map(|n| (l, n))) {
        let plan = plan(loss, neighbours);
        let (mut random, mut most) = (Random(5), std::collections::BTreeMap::new());
        for seed in 0..60 {
            let mut rows: Vec<Record> = (0..12).map(|_| row(&mut random)).collect();
            let before = witnessed(&plan, &rows, seed);
            let times = match neighbours {
                Neighbours::AddRemove => {
                    rows.push(row(&mut random));
                    1.0
                }
                Neighbours::ReplaceOne => {
                    rows[(seed % 12) as usize] = row(&mut random);
                    2.0
                }
            };
            let after = witnessed(&plan, &rows, seed);
            assert_eq!(before.len(), after.len(), "no row decides what is asked");
            for (a, b) in before.iter().zip(&after).filter(|(a, _)| a.purpose != ROUNDED) {
                assert_eq!((&a.purpose, a.bound), (&b.purpose, b.bound));
                let apart = a.values.iter().zip(&b.values).map(|(a, b)| (a - b) as f64);
                let apart = match a.bound {
                    Some(bound) => apart.map(|x| x * x).sum::<f64>().sqrt() / bound / times,
                    None => apart.map(f64::abs).sum::<f64>() / times,
                };
                let so_far: &mut f64 = most.entry(a.purpose.clone()).or_default();
                *so_far = so_far.max(apart);
            }
        }
        assert_eq!(most.len(), 4, "{most:?}");
        assert!(most.values().all(|m| *m <= 1.0 && *m > 0.3), "{loss:?} {neighbours:?} {most:?}");
    }
}

const ROUNDED: &str = quietly_glm::objective_perturbation::ROUNDING;

/// The map that rows are trained through is the one that predictions see, and no row is longer than its radius.
#[test]
fn rows_and_predictions_go_through_one_map() {
    let (centre, scale) = (vec![0.1, -0.3, 0.0], vec![1.0, 2.0, 0.5]);
    let map = RowMap { cut: 1.2, centre, scale, held: None, radius: 0.7 };
    let mut random = Random(9);
    let rows: Vec<f64> = (0..30).map(|_| random.number()).collect();
    let all = map.rows(Features::Dense(&rows), 10, 3);
    for (row, z) in rows.chunks(3).zip(all.chunks(3)) {
        assert_eq!(map.apply(row), z);
        assert!(z.iter().map(|z| z * z).sum::<f64>().sqrt() <= 0.7 * (1.0 + 1e-12));
    }
    assert!(map.fits(3) && !map.fits(2));
    assert!(!RowMap { radius: f64::NAN, ..map }.fits(3));
    assert_eq!(
        RowMap { cut: 1.0, centre: vec![0.0], scale: vec![1.0], held: None, radius: 1.0 }
            .apply(&[0.0]),
        [0.0]
    );
}

/// Neither an empty table, nor one class, nor rows without features, nor far more rows than declared make a run fail.
#[test]
fn no_table_makes_a_run_fail() {
    let mut random = Random(3);
    let tables: [Vec<Record>; 6] = [
        vec![],
        vec![([0.0; 3], 1.0); 50],
        vec![([1.0; 3], 1.0)],
        vec![([1.0; 3], f64::NAN); 20],
        (0..4000).map(|_| row(&mut random)).collect(),
        vec![([1.0, -1.0, 1.0], 0.0); 300],
    ];
    let losses = [Loss::Huber { width: 0.1 }, Loss::SmoothHinge { width: 0.5 }];
    for (loss, rows) in losses.into_iter().flat_map(|l| tables.iter().map(move |t| (l, t))) {
        for neighbours in [Neighbours::AddRemove, Neighbours::ReplaceOne] {
            let plan = plan(loss, neighbours);
            let learn = |threads| {
                let table = table(rows);
                let fit = plan.fit(FitInput::table(&table, (0.0, 1.0)), options(1, threads));
                fit.unwrap().weights().unwrap()
            };
            let found = learn(1);
            assert!(
                found.outputs.iter().all(|(b, w)| b.is_finite() && w.iter().all(|w| w.is_finite()))
            );
            assert!(found.rows.as_ref().unwrap().fits(WIDTH));
            assert_eq!(found, learn(3));
        }
    }
}
