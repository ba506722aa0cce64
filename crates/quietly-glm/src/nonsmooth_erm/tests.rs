use quietly_core::random::Random;
use quietly_engine::linalg::norm;

use super::*;
use crate::design_matrix::{Features, Shape};

const SHAPE: Shape = Shape { width: 3, constant: 0.5, l1: None, radius: 1.5 };

/// Rows, a set, b, and the minimiser, which is known because b was chosen for it.
struct Known {
    features: Vec<f64>,
    target: Vec<f64>,
    set: Set,
    linear_term: Vec<f64>,
    minimiser: Vec<f64>,
    nonsmooth: NonsmoothSum,
}

/// Derivatives of every row at the minimiser: at an end where its residual is not zero, anywhere where it is.
fn known(loss: Loss, set: Set, count: usize, strong: f64, seed: u64) -> Known {
    let mut random = Random(seed);
    let features: Vec<f64> = (0..3 * count).map(|_| random.number()).collect();
    // Pushed outwards, so that the set is in the way; what was moved by the projection is normal to it.
    let pushed: Vec<f64> = (0..4).map(|_| random.number()).collect();
    let mut minimiser = pushed.clone();
    set.project(&mut minimiser);
    let mut target: Vec<f64> = (0..count)
        .map(|_| if loss.needs_labels() { random.number().signum() } else { random.number() })
        .collect();
    let examples = Examples::new(SHAPE, Features::Dense(&features), target.clone(), 1);
    let scores: Vec<f64> = (0..count).map(|i| examples.score(i, &minimiser)).collect();
    if !loss.needs_labels() {
        // Every third row sits in the corner itself.
        (0..count).step_by(3).for_each(|i| target[i] = scores[i]);
    }
    let examples = Examples::new(SHAPE, Features::Dense(&features), target.clone(), 1);
    let mut linear_term = vec![0.0; 4];
    for i in 0..count {
        let (r, (lo, hi)) = (scores[i] - target[i], loss.derivative_range(target[i]));
        let inside = lo + (hi - lo) * (0.5 + 0.5 * random.number());
        let s = if r == 0.0 {
            inside
        } else if r > 0.0 {
            hi
        } else {
            lo
        };
        examples.add_to(i, -s, &mut linear_term);
    }
    for ((b, w), p) in linear_term.iter_mut().zip(&minimiser).zip(&pushed) {
        *b -= strong * w + strong * (p - w);
    }
    // ‖b‖ ≤ Λ·far is what rounding is bounded by.
    let far = 2.0 + norm(&linear_term) / strong;
    let nonsmooth = NonsmoothSum { loss, radius: 1.5, size: 4, strong, rows: count as f64, far };
    Known { features, target, set, linear_term, minimiser, nonsmooth }
}

fn problems() -> Vec<Known> {
    let sets = [
        Set::L2 { radius: 3.0 },
        Set::L2 { radius: 0.4 },
        Set::L1 { radius: 0.6 },
        Set::Linf { radius: 0.2 },
        Set::Simplex { total: 1.0 },
        Set::Box { lo: vec![-0.1; 4], hi: vec![0.3; 4] },
    ];
    let losses = [Loss::Hinge, Loss::Quantile { level: 0.8 }, Loss::Quantile { level: 0.5 }];
    let of = |(k, set): (usize, Set)| {
        losses.map(|loss| known(loss, set.clone(), 30, [2.0, 20.0][k % 2], 40 + k as u64))
    };
    sets.into_iter().enumerate().flat_map(of).collect()
}

impl Known {
    fn with<T>(&self, work: impl FnOnce(Dual<'_>) -> T) -> T {
        let features = Features::Dense(&self.features);
        let examples = Examples::new(SHAPE, features, self.target.clone(), 1);
        let (nonsmooth, rows) = (self.nonsmooth, 0..self.target.len());
        let (linear_term, set) = (&self.linear_term[..], &self.set);
        work(Dual { nonsmooth, examples: &examples, rows, linear_term, set, lasso: 0.0 })
    }

    fn away(&self, point: &[f64]) -> f64 {
        norm(&point.iter().zip(&self.minimiser).map(|(a, b)| a - b).collect::<Vec<_>>())
    }
}

#[test]
fn the_minimiser_is_as_near_as_it_is_said_to_be() {
    for problem in problems() {
        let reach = problem.nonsmooth.reach(2.0 * 1.5);
        let mut passes = 0;
        let mut keep_on = |pass| -> Result<(), ()> {
            passes = pass;
            Ok(())
        };
        let found = problem.with(|dual| dual.minimise(reach, &mut keep_on).unwrap());
        let away = problem.away(&found.point);
        let name = format!("{:?} {:?}", problem.nonsmooth.loss, problem.set);
        assert!(
            away <= found.distance && found.distance <= reach.near,
            "{name} {away:e} {reach:?}"
        );
        assert!(problem.set.contains(&found.point, 1e-9));
        // Coordinates found it, and did not need the proof.
        assert!(passes <= TRIES, "{name} {passes}");
    }
}

/// At the cap the theorem holds without a check; long before it, it does not.
#[test]
fn the_cap_is_enough_without_a_certificate() {
    let mut late = 0;
    for problem in problems() {
        let reach = problem.nonsmooth.reach(2.0 * 1.5);
        let after = |steps| {
            let reach = Learnable { steps, ..reach };
            let found =
                problem.with(|dual| dual.accelerate::<()>(reach, u64::MAX, &mut |_| Ok(())));
            problem.away(&found.unwrap().point)
        };
        let away = after(reach.steps);
        assert!(away <= reach.near, "{:?} {away:e} {reach:?}", problem.set);
        late += usize::from(after(3) > reach.near);
    }
    assert!(late > 5, "{late}");
}

/// The constants of the cap: n·R/(0.85·Λ·a), derived in the module.
#[test]
fn caps_follow_from_public_numbers() {
    let nonsmooth = NonsmoothSum {
        loss: Loss::Hinge,
        radius: 1.0,
        size: 4,
        strong: 50.0,
        rows: 1000.0,
        far: 1.0,
    };
    let Learnable { near, steps } = nonsmooth.reach(2.0);
    assert_eq!(near, 0.01 * 2.0 / 50.0);
    assert_eq!(steps, (1000.0_f64 / (0.85 * 50.0 * near)).ceil() as u64);
    assert!(nonsmooth.check(2.0).is_ok());
    assert!(NonsmoothSum { rows: 1e7, ..nonsmooth }.check(2.0).is_err());
}

#[test]
fn the_certificate_is_never_below_the_distance() {
    let mut random = Random(3);
    for problem in problems() {
        let (mut loose, mut all) = (0, 0);
        problem.with(|dual| {
            let range = dual.range();
            let mut s: Vec<f64> = range
                .iter()
                .map(|(lo, hi)| lo + (hi - lo) * (0.5 + 0.5 * random.number()))
                .collect();
            for _ in 0..12 {
                let found = dual.look(&s, &range);
                let away = problem.away(&found.point);
                assert!(away <= found.distance, "{away} {}", found.distance);
                all += 1;
                loose += usize::from(found.distance > 100.0 * away.max(1e-3));
                dual.ascend(&mut s, &range);
            }
        });
        assert!(loose < all, "{:?}", problem.set);
    }
}

#[test]
fn null_records_and_no_rows_at_all_are_fine() {
    let mut problem = known(Loss::Hinge, Set::L2 { radius: 1.0 }, 12, 5.0, 9);
    let reach = problem.nonsmooth.reach(3.0);
    problem.target.fill(f64::NAN);
    let centre: Vec<f64> = {
        let mut w: Vec<f64> = problem.linear_term.iter().map(|b| -b / 5.0).collect();
        problem.set.project(&mut w);
        w
    };
    let found = problem.with(|dual| dual.minimise::<()>(reach, &mut |_| Ok(())).unwrap().point);
    let none = problem.with(|dual| {
        Dual { rows: 3..3, ..dual }.minimise::<()>(reach, &mut |_| Ok(())).unwrap().point
    });
    assert!(found == centre && none == centre);
}
