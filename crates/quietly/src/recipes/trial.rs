//! A table to try recipes on.
use std::ops::ControlFlow;

use quietly_accounting::{Neighbours, gaussian_mu};
use quietly_data::{Private, Table};
use quietly_noise::Key;

use super::Run;
use crate::{
    budget::Budget,
    charge::Stage,
    error::Error,
    model::Link,
    pass::random::Random,
    plan::{Plan, Regression},
    progress::Watch,
    release::Door,
    unit::Unit,
};

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

pub(super) fn plan(rows: u64, width: usize, epsilon: f64, neighbours: Neighbours) -> Plan {
    let budget = Budget::new(epsilon, 1e-5).unwrap().under(neighbours);
    Regression::new(Link::Linear).plan(rows, width, budget).unwrap()
}

/// The μ of a plan's whole budget.
pub(super) fn mu(plan: &Plan) -> f64 {
    let gap = if plan.budget.neighbours() == Neighbours::ReplaceOne { 2.0 } else { 1.0 };
    gaussian_mu(plan.budget.epsilon(), plan.budget.delta()).unwrap() / gap
}

/// The plan with these questions, calibrated.
pub(super) fn calibrated(mut plan: Plan, stages: impl Fn(&Plan, f64, f64) -> Vec<Stage>) -> Plan {
    let (of, mu) = (plan.clone(), mu(&plan));
    plan.calibrate(|noise| stages(&of, mu, noise)).unwrap();
    assert!(plan.epsilon <= plan.budget.epsilon());
    assert!(plan.epsilon > 0.95 * plan.budget.epsilon(), "{}", plan.epsilon);
    plan
}

/// The share of the variance that a fit explains on other rows.
pub(super) fn r2(
    plan: &Plan,
    seed: u64,
    fit: impl Fn(&mut Run<'_>, &mut Watch<'_>) -> Result<(f64, Vec<f64>), Error>,
) -> f64 {
    let table = Private::new(table(plan.rows as usize, plan.width, 40 + seed));
    let unit = Unit::new(Link::Linear, RANGE);
    let mut door = Door::new(Key::from_seed(seed), &plan.stages, 2);
    let mut run =
        Run { plan, table: &table, public: None, unit: &unit, door: &mut door, threads: 2 };
    let (intercept, weights) = fit(&mut run, &mut |_| ControlFlow::Continue(())).unwrap();
    let (intercept, weights) = unit.back(intercept, weights);
    let other = self::table(5000, plan.width, 7);
    let mean = other.target().iter().sum::<f64>() / 5000.0;
    let (mut left, mut all) = (0.0, 0.0);
    for (x, y) in other.features().chunks_exact(plan.width).zip(other.target()) {
        let u = intercept + x.iter().zip(&weights).map(|(x, w)| x * w).sum::<f64>();
        left += (y - u).powi(2);
        all += (y - mean).powi(2);
    }
    1.0 - left / all
}
