//! A table to try recipes on.
use std::ops::ControlFlow;

use quietly_accounting::Neighbours;
use quietly_core::{budget::Budget, random::Random, release::Releaser};
use quietly_data::{Private, Table};
use quietly_engine::{
    algorithm::{self, Algorithm, Planned, Shape},
    backend::InMemory,
};
use quietly_noise::Key;

/// The public range of the target.
pub(super) const RANGE: (f64, f64) = (-3.0, 7.0);

/// About normal: the sum of twelve uniform numbers.
pub(super) fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| 0.5 * random.number()).sum()
}

/// Normal features with standard deviation 1/4, and a linear target around 2 of which four fifths are explained.
pub(super) fn table(rows: usize, width: usize, seed: u64) -> Table {
    let mut random = Random(seed);
    let (mut features, mut target) = (Vec::new(), Vec::new());
    for _ in 0..rows {
        let x: Vec<f64> = (0..width).map(|_| normal(&mut random)).collect();
        let sign = |j: usize| if j.is_multiple_of(3) { -1.0 } else { 1.0 };
        let u: f64 = x.iter().enumerate().map(|(j, x)| sign(j) * x).sum();
        let y = 2.0 + u / (width as f64).sqrt() + 0.5 * normal(&mut random);
        features.extend(x.iter().map(|x| 0.25 * x));
        target.push(y.clamp(RANGE.0, RANGE.1));
    }
    Table::new(width, features, target)
}

/// An algorithm, planned for a table of ours.
pub(super) fn plan<A: Algorithm>(
    algorithm: A,
    (rows, width): (u64, usize),
    epsilon: f64,
    neighbours: Neighbours,
) -> Planned<A> {
    let budget = Budget::new(epsilon, 1e-5).unwrap().under(neighbours);
    let shape = Shape::new(rows, width).unwrap();
    let privacy = algorithm.plan(shape, budget).unwrap();
    assert!(privacy.epsilon <= epsilon && privacy.epsilon > 0.95 * epsilon, "{}", privacy.epsilon);
    Planned::new(algorithm, shape, privacy)
}

/// The share of the variance that a fit explains on other rows.
pub(super) fn r2<A: Algorithm<Fitted = (f64, Vec<f64>)>>(planned: &Planned<A>, seed: u64) -> f64 {
    let (intercept, weights) = fit(planned, seed);
    let Shape { width, .. } = planned.shape;
    let other = self::table(5000, width, 7);
    let mean = other.target().iter().sum::<f64>() / 5000.0;
    let (mut left, mut all) = (0.0, 0.0);
    for (x, y) in other.features().chunks_exact(width).zip(other.target()) {
        let u = intercept + x.iter().zip(&weights).map(|(x, w)| x * w).sum::<f64>();
        left += (y - u).powi(2);
        all += (y - mean).powi(2);
    }
    1.0 - left / all
}

/// The intercept and the weights of a table of ours.
pub(super) fn fit<A: Algorithm<Fitted = (f64, Vec<f64>)>>(
    planned: &Planned<A>,
    seed: u64,
) -> (f64, Vec<f64>) {
    let Planned { algorithm, shape, privacy: plan, .. } = planned;
    let table = Private::new(table(shape.rows as usize, shape.width, 40 + seed));
    let releaser = &mut Releaser::new(Key::from_seed(seed), &plan.stages, 2);
    let (backend, public) = (&mut InMemory::new(&table, 2), None);
    let (shape, range, watch) = (*shape, RANGE, &mut |_| ControlFlow::Continue(()));
    algorithm.fit(algorithm::Run { plan, shape, range, backend, public, releaser, watch }).unwrap()
}
