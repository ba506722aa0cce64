//! Steps of Kolmogorov–Arnold networks: what privacy costs beside the same step without it.
use quietly::kan::{Input, NetworkLoss, NetworkShape, step_speed};

use crate::{Line, regression::THREADS};

/// Inputs, hidden units and spline functions per input.
const SHAPES: [(usize, usize, usize); 2] = [(30, 64, 8), (64, 128, 5)];
const BATCH: usize = 1024;
const RUNS: usize = 200;

pub(crate) fn lines() -> Vec<Line> {
    SHAPES.into_iter().flat_map(step).collect()
}

fn step((inputs, units, basis): (usize, usize, usize)) -> [Line; 2] {
    let mut shape = NetworkShape::new(vec![Input::Spline; inputs], NetworkLoss::Logistic);
    (shape.hidden, shape.basis) = (vec![units], basis);
    let speed = step_speed(&shape, BATCH, THREADS, RUNS).expect("a network");
    let name = format!("kan {inputs}, {units}, {basis}");
    [
        Line::at_most(
            format!("{name}: clipped step / plain step"),
            speed.clipped / speed.plain,
            1.15,
            "x",
        ),
        Line::at_least(
            format!("{name}: clipped rows per second"),
            BATCH as f64 / speed.clipped,
            4e5,
            "",
        ),
    ]
}
