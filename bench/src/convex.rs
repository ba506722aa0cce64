//! Classifiers beside scikit-learn, passes beside reading, projections.
use std::{hint::black_box, ops::ControlFlow};

use quietly::{Budget, Convex, Key, Loss, Method, Neighbours, Plan, Private, Set, Table};

use crate::{
    Line, best,
    regression::{Numbers, THREADS},
    rival::{Rival, find},
};

/// Tables of classes: rows and features.
const SHAPES: [(usize, usize); 2] = [(1_000_000, 20), (32_561, 123)];

pub(crate) fn lines(rivals: &[Rival]) -> Vec<Line> {
    let mut lines = vec![projection()];
    for shape in SHAPES {
        lines.extend(default(shape, rivals));
    }
    lines.extend(passes((200_000, 123)));
    lines
}

/// The numbers of a regression, with the sign of its target for a class.
fn table((rows, width): (usize, usize)) -> (Numbers, Private<Table>) {
    let numbers = Numbers::new(rows, width);
    let classes = numbers.target.iter().map(|y| f64::from(*y > 0.0)).collect();
    let table = Private::new(Table::new(width, numbers.features.clone(), classes));
    (numbers, table)
}

fn learn(plan: &Plan, table: &Private<Table>) -> f64 {
    best(3, || {
        let quiet = &mut |_| ControlFlow::Continue(());
        let found = plan.learn(table, (0.0, 1.0), Key::from_seed(1), THREADS, quiet);
        black_box(found.expect("no row can cause an error"));
    })
}

/// The default logistic regression beside scikit-learn's.
fn default(shape: (usize, usize), rivals: &[Rival]) -> Vec<Line> {
    let (rows, width) = shape;
    let (_, table) = table(shape);
    let budget = Budget::new(1.0, 1e-6).expect("a budget");
    let plan = Convex::new(Loss::Logistic).plan(rows as u64, width, budget).expect("a plan");
    let ours = learn(&plan, &table);
    println!("{rows} x {width}: the default logistic fit takes {ours:.3} s");
    match find(rivals, "logistic", shape) {
        Some(rival) => {
            let name = format!("{rows} x {width}: logistic fit / scikit-learn");
            vec![Line::at_most(name, ours / rival.seconds, 1.0, "x")]
        }
        None => {
            println!("{rows} x {width}: left out beside scikit-learn, which `make bench` measures");
            vec![]
        }
    }
}

/// One pass of phases, and one of bolt-on steps, beside reading all numbers and adding them up.
fn passes(shape: (usize, usize)) -> Vec<Line> {
    let (rows, width) = shape;
    let (numbers, table) = table(shape);
    let floor = best(9, || {
        let sum = |part: &[f64]| part.iter().sum::<f64>();
        let half = numbers.features.len() / 2;
        std::thread::scope(|scope| {
            let other = scope.spawn(|| sum(&numbers.features[..half]));
            black_box(sum(&numbers.features[half..]) + other.join().expect("no panic"));
        });
    });
    println!("{rows} x {width}: reading and adding up takes {:.1} ms", 1e3 * floor);
    let budget = Budget::new(1.0, 1e-6).expect("a budget").under(Neighbours::ReplaceOne);
    let of = |method: Method| {
        let convex = Convex::new(Loss::Logistic).within(Set::L2 { radius: 1.0 }).known_radius();
        let convex = if method == Method::ScPsgd { convex.steps(1) } else { convex };
        let plan = convex.method(method).plan(rows as u64, width, budget).expect("a plan");
        let name = format!("{rows} x {width}: a pass of {} / reading", method.name());
        Line::at_most(name, learn(&plan, &table) / floor, 2.0, "x")
    };
    vec![of(Method::PhasedSgd), of(Method::ScPsgd)]
}

/// A million weights onto an L1 ball.
fn projection() -> Line {
    let numbers = Numbers::new(1_000_000, 1);
    let set = Set::L1 { radius: 100.0 };
    let mut spare = numbers.features.clone();
    let seconds = best(5, || {
        spare.copy_from_slice(&numbers.features);
        set.project(black_box(&mut spare));
    });
    Line::at_most("a million weights onto an l1 ball", 1e3 * seconds, 50.0, " ms")
}
