//! Phases attacked with neighbours that were built to be as far apart as they can be, without noise.
use quietly_core::random::Random;
use quietly_engine::linalg::norm;

use super::*;
use crate::{
    design_matrix::{Features, Shape},
    localisation::epoch_dp_sgd,
    loss::Loss,
    problem::Problem,
    regulariser::Regulariser,
    set::Set,
};

const SHAPE: Shape = Shape { width: 2, constant: 0.0, l1: None, radius: 1.0 };
/// A row and its target; NaN for the null record.
type Record = ([f64; 2], f64);
const NULL: Record = ([0.0, 0.0], f64::NAN);

fn problem(loss: Loss, set: Set, ridge: f64) -> Problem {
    let regulariser = Regulariser { ridge, ..Regulariser::default() };
    let (constant, l1, longest, finds_radius) = (0.0, None, 1.0, false);
    Problem {
        loss,
        set,
        regulariser,
        constant,
        l1,
        longest,
        finds_radius,
        scales: false,
        cut: 1.0,
        clip: None,
        steps: None,
        step_size: None,
        stages: None,
        growth: None,
    }
}

fn examples<'a>(flat: &'a [f64], rows: &[Record]) -> Examples<'a> {
    Examples::new(SHAPE, Features::Dense(flat), rows.iter().map(|r| r.1).collect(), 1)
}

fn flat(rows: &[Record]) -> Vec<f64> {
    rows.iter().flat_map(|r| r.0).collect()
}

/// One phase of a problem, and where it starts.
struct Trial {
    problem: Problem,
    phase: Phase,
    from: usize,
    ball: Option<f64>,
    start: [f64; 2],
}

impl Trial {
    fn new(problem: Problem, phase: Phase) -> Self {
        Trial { problem, phase, from: 0, ball: None, start: [1.0, 0.0] }
    }

    fn parameters(&self) -> ProblemParameters {
        self.problem.parameters(2, 1.0, 1.0).unwrap()
    }

    /// How far apart the means of two tables are, and how far they may be.
    fn apart(&self, rows: &[Record], others: &[Record]) -> (f64, f64) {
        let parameters = self.parameters();
        assert!(self.phase.suits(&parameters));
        let centre = self.start.to_vec();
        let ball = self.ball.map(|radius| Ball { centre: centre.clone(), radius });
        let set = BallIntersection { set: self.problem.set.clone(), ball };
        let glm = self.problem.glm(2, 1.0).unwrap();
        let (problem, phase, from) = (&self.problem, &self.phase, self.from);
        let pass =
            Pass { problem, glm, phase, parameters: &parameters, set: &set, centre: &centre, from };
        let (a, b) = (flat(rows), flat(others));
        let a = pass.mean(&examples(&a, rows), &self.start);
        let b = pass.mean(&examples(&b, others), &self.start);
        (distance(&a, &b), pass.apart())
    }

    /// The largest part of the bound that a replaced row was found to use; never more than all of it.
    fn worst(&self, seed: u64, rounds: usize) -> f64 {
        let mut random = Random(seed);
        let (mut worst, count) = (0.0_f64, self.phase.rows);
        for round in 0..rounds {
            // The others: not there, tiny, anything, or all of one kind.
            let kind = pair(1.2 + 0.5 * random.number()).0;
            let other = |random: &mut Random| match round % 4 {
                0 => NULL,
                1 => ([1e-6 * random.number(), 0.0], 1.0),
                2 => ([random.number(), random.number()], random.number().signum()),
                _ => kind,
            };
            let mut rows: Vec<Record> =
                (0..self.from + count).map(|_| other(&mut random)).collect();
            let at = match round % 3 {
                0 => 0,
                1 => count - 1,
                _ => random.word() as usize % count,
            };
            let (one, two) = match round % 5 {
                0..3 => pair(1.2 + 0.05 * random.number()),
                3 => (([random.number(), random.number()], 1.0), NULL),
                _ => (kind, ([random.number(), random.number()], -1.0)),
            };
            rows[self.from + at] = one;
            let mut others = rows.clone();
            others[self.from + at] = two;
            let (found, bound) = self.apart(&rows, &others);
            assert!(found <= bound, "round {round}: {found} > {bound}");
            worst = worst.max(found / bound);
        }
        worst
    }
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    norm(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>())
}

/// Two rows at an angle to either side of (1, 0), whose gradients there differ most for about 1.2.
fn pair(angle: f64) -> (Record, Record) {
    let row = |side: f64| ([-angle.cos(), -side * angle.sin()], 1.0);
    (row(1.0), row(-1.0))
}

fn pass(rows: usize, step: f64, batch: usize, pull: f64) -> Phase {
    Phase { rows, step, batch: Some(batch), pull, ball: None, moves_centre: true }
}

/// (2.5a) and (2.5b), with a ridge and with a pull, in batches, in first and later phases.
#[test]
fn a_replaced_row_moves_a_pass_by_what_is_said_and_no_more() {
    let disc = Set::L2 { radius: 1.0 };
    for (ridge, pull, rows, batch, step) in [
        (0.0, 0.0, 20, 1, 0.5),
        (0.0, 0.0, 21, 4, 0.1),
        (0.3, 0.0, 20, 1, 0.5),
        (0.0, 0.3, 20, 1, 0.5),
        (0.2, 1.5, 20, 1, 0.5),
        (0.3, 0.2, 22, 4, 0.1),
    ] {
        let mut trial =
            Trial::new(problem(Loss::Logistic, disc.clone(), ridge), pass(rows, step, batch, pull));
        for from in [0, 7] {
            trial.from = from;
            let worst = trial.worst(5, 300);
            assert!(worst > 0.95, "{ridge} {pull} {batch}: {worst}");
            // Half of G would not do.
            let mut parameters = trial.parameters();
            let whole = trial.phase.moved(&parameters);
            parameters.constants.diameter *= 0.5;
            assert!(trial.phase.moved(&parameters) < worst * whole);
        }
    }
}

/// (5.7), for every epoch, and PSA's ball, whether it is in the way or not.
#[test]
fn a_replaced_row_moves_an_epoch_and_a_ball_by_no_more_than_is_said() {
    let disc = Set::L2 { radius: 1.0 };
    let ridge = problem(Loss::Logistic, disc.clone(), 0.5);
    let parameters = ridge.parameters(2, 1.0, 1.0).unwrap();
    for phase in epoch_dp_sgd::phases(&parameters, 210, 3) {
        let worst = Trial::new(ridge.clone(), phase).worst(6, 120);
        assert!(worst > 0.95, "{phase:?} {worst}");
    }
    for (set, least) in [
        (disc, 0.95),
        (Set::L1 { radius: 1.0 }, 0.6),
        (Set::Linf { radius: 1.0 }, 0.6),
        (Set::Box { lo: vec![-1.0; 2], hi: vec![1.0; 2] }, 0.6),
    ] {
        let problem = problem(Loss::Logistic, set, 0.0);
        for (radius, least) in [(2.0, least), (0.9, least), (0.05, 0.0)] {
            let ball = Some(radius);
            let phase = Phase { ball, ..pass(20, 0.5, 1, 0.0) };
            let trial = Trial { ball, ..Trial::new(problem.clone(), phase) };
            let worst = trial.worst(7, 120);
            assert!(worst >= least, "{:?} {radius} {worst}", problem.set);
        }
    }
}

/// A row of another phase, or beyond the last, does not move this one; rows that are missing are null records.
#[test]
fn phases_see_their_own_rows_only() {
    let problem = problem(Loss::Logistic, Set::L2 { radius: 1.0 }, 0.0);
    let trial = Trial { from: 5, ..Trial::new(problem, pass(10, 0.3, 3, 0.0)) };
    let rows = vec![pair(1.2).0; 25];
    for at in 0..25 {
        let mut others = rows.clone();
        others[at] = pair(1.2).1;
        let (found, _) = trial.apart(&rows, &others);
        assert_eq!(found == 0.0, !(5..15).contains(&at), "{at}");
    }
    for count in [0, 3, 5, 6, 11, 14] {
        let mut padded = rows[..count].to_vec();
        padded.resize(25, NULL);
        assert_eq!(trial.apart(&rows[..count], &padded).0, 0.0, "{count}");
    }
}

/// E1: a start that was not projected is where the constants do not hold, and a row moves the mean by more than Δ.
#[test]
fn a_start_outside_the_set_breaks_the_bound() {
    let problem = problem(Loss::Fourth, Set::Linf { radius: 1.0 }, 0.0);
    let mut trial = Trial::new(problem, pass(8, 0.005, 1, 0.0));
    let row = |side: f64| ([0.1, side * 0.99], -1.0);
    let (mut rows, mut others) = (vec![NULL; 8], vec![NULL; 8]);
    (rows[0], others[0]) = (row(1.0), row(-1.0));
    trial.start = [1.0, 0.0];
    let (found, bound) = trial.apart(&rows, &others);
    assert!(found <= bound, "{found} {bound}");
    trial.start = [30.0, 0.0];
    let (found, bound) = trial.apart(&rows, &others);
    assert!(found > 1.2 * bound, "{found} {bound}");
}
