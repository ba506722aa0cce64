//! Steps of Kolmogorov–Arnold networks: what privacy costs beside the same step without it.
use quietly::kan::{Input, NetworkLoss, NetworkShape};

use crate::{Line, kan_speed::step_speed, regression::THREADS, rival::Rival};

/// Inputs, hidden units and spline functions per input.
const SHAPES: [(usize, usize, usize); 2] = [(30, 64, 8), (64, 128, 5)];
const BATCH: usize = 1024;
const RUNS: usize = 200;

pub(crate) fn lines(rivals: &[Rival]) -> Vec<Line> {
    SHAPES.into_iter().flat_map(|shape| step(shape, rivals)).collect()
}

fn step((inputs, units, basis): (usize, usize, usize), rivals: &[Rival]) -> Vec<Line> {
    let mut shape = NetworkShape::new(vec![Input::Spline; inputs], NetworkLoss::Logistic);
    (shape.hidden, shape.basis) = (vec![units], basis);
    let speed = step_speed(&shape, BATCH, THREADS, RUNS).expect("a network");
    let name = format!("kan {inputs}, {units}, {basis}");
    let (clipped, noisy) = (speed.clipped / speed.plain, speed.noisy / speed.plain);
    let rows = BATCH as f64 / speed.noisy;
    println!("{name}: {rows:.3e} rows per second, noise included");
    let mut lines = vec![
        Line::at_most(format!("{name}: clipped step / plain step"), clipped, 1.15, "x"),
        Line::at_most(format!("{name}: noisy step / plain step"), noisy, 2.0, "x"),
    ];
    for (scheme, least) in [("torch vmap kan", 50.0), ("torch plain kan", 2.0)] {
        let shape = [inputs, units, basis].map(|x| x as f64);
        let rival = rivals.iter().find(|r| r.scheme == scheme && r.parameters == shape);
        let Some(rival) = rival else {
            println!("{name}: left out beside {scheme}, which `make bench-torch` measures");
            continue;
        };
        let ratio = rival.seconds / speed.noisy;
        lines.push(Line::at_least(
            format!("{name}: rows per second / {scheme}"),
            ratio,
            least,
            "x",
        ));
    }
    lines
}
