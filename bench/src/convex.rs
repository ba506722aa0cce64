//! Classifiers beside those of others, passes beside reading, projections.
use std::hint::black_box;

use quietly::{
    Budget, Convex, FitInput, Loss, Method, Neighbours, Plan, Private, Set, Sparse, Table,
};

use crate::{
    Line, best,
    regression::{Numbers, THREADS, options},
    rival::{Rival, find},
};

/// Tables of classes: rows and features.
const SHAPES: [(usize, usize); 2] = [(1_000_000, 20), (32_561, 123)];

/// Entries of a sparse row, as in a9a.
const ENTRIES: usize = 14;
/// Those that take one pass.
const METHODS: [Method; 2] = [Method::PhasedSgd, Method::ScPsgd];

pub(crate) fn lines(rivals: &[Rival]) -> Vec<Line> {
    let mut lines = vec![projection()];
    for shape in SHAPES {
        lines.extend(default(shape, rivals));
    }
    lines.extend(passes((500_000, 123)));
    lines.extend(sparse_passes((2_000_000, 123)));
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
        let fit = plan.fit(FitInput::table(table, (0.0, 1.0)), options(THREADS));
        black_box(fit.expect("no row can cause an error"));
    })
}

/// The default logistic regression beside those of others.
fn default(shape: (usize, usize), rivals: &[Rival]) -> Vec<Line> {
    let (rows, width) = shape;
    let (_, table) = table(shape);
    let budget = Budget::new(1.0, 1e-6).expect("a budget");
    let plan = Convex::new(Loss::Logistic).plan(rows as u64, width, budget).expect("a plan");
    let ours = learn(&plan, &table);
    println!("{rows} x {width}: the default logistic fit takes {ours:.3} s");
    let beside = |(scheme, name): (&str, &str)| match find(rivals, scheme, shape) {
        Some(rival) => {
            let name = format!("{rows} x {width}: logistic fit / {name}");
            Some(Line::at_most(name, ours / rival.seconds, 1.0, "x"))
        }
        None => {
            println!("{rows} x {width}: left out beside {name}, which `make bench` measures");
            None
        }
    };
    [("logistic", "scikit-learn"), ("private logistic", "diffprivlib")]
        .into_iter()
        .filter_map(beside)
        .collect()
}

/// One pass of phases, and one of bolt-on steps, beside reading all numbers and adding them up.
fn passes(shape: (usize, usize)) -> Vec<Line> {
    let (numbers, table) = table(shape);
    let floor = reading("dense", shape, &numbers.features, &[]);
    METHODS.map(|method| pass("dense", method, shape, floor, |plan| learn(plan, &table))).into()
}

/// The same for sparse rows.
fn sparse_passes(shape: (usize, usize)) -> Vec<Line> {
    let (rows, width) = shape;
    let numbers = Numbers::new(rows, ENTRIES);
    let mut sparse = Sparse::empty(width);
    for (x, y) in numbers.features.chunks_exact(ENTRIES).zip(&numbers.target) {
        let spread = x.iter().enumerate().map(|(j, x)| ((j * width / ENTRIES) as u32, *x));
        sparse.push(spread, f64::from(*y > 0.0));
    }
    let floor = reading("sparse", shape, &sparse.values, &sparse.index);
    let sparse = Private::new(sparse);
    let learn = |plan: &Plan| {
        best(5, || {
            let fit = plan.fit(FitInput::sparse(&sparse, (0.0, 1.0)), options(THREADS));
            black_box(fit.expect("no row can cause an error"));
        })
    };
    METHODS.map(|method| pass("sparse", method, shape, floor, learn)).into()
}

/// Seconds to read all numbers, and where they stand, and to add them up.
fn reading(kind: &str, (rows, width): (usize, usize), numbers: &[f64], index: &[u32]) -> f64 {
    let sum = |numbers: &[f64], index: &[u32]| {
        let places: u64 = index.iter().map(|&j| u64::from(j)).sum();
        numbers.iter().sum::<f64>() + places as f64
    };
    let (numbers, index) = (numbers.split_at(numbers.len() / 2), index.split_at(index.len() / 2));
    let floor = best(9, || {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| sum(numbers.0, index.0));
            black_box(sum(numbers.1, index.1) + other.join().expect("no panic"));
        });
    });
    println!("{rows} x {width} {kind}: reading and adding up takes {:.1} ms", 1e3 * floor);
    floor
}

fn pass(
    kind: &str,
    method: Method,
    (rows, width): (usize, usize),
    floor: f64,
    learn: impl Fn(&Plan) -> f64,
) -> Line {
    let budget = Budget::new(1.0, 1e-6).expect("a budget").under(Neighbours::ReplaceOne);
    let convex = Convex::new(Loss::Logistic).within(Set::L2 { radius: 1.0 }).known_radius();
    let convex = if method == Method::ScPsgd { convex.steps(1) } else { convex };
    let plan = convex.method(method).plan(rows as u64, width, budget).expect("a plan");
    let name = format!("{rows} x {width} {kind}: a pass of {} / reading", method.name());
    Line::at_most(name, learn(&plan) / floor, 2.0, "x")
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
