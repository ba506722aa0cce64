//! Projections against Dykstra's algorithm, the condition that defines them, and each other.
use quietly_core::random::Random;
use quietly_engine::linalg::dot;

use super::{
    ball_intersection::{Ball, BallIntersection, ERROR},
    projection::{distance, norm},
    set::Set,
};

fn vector(random: &mut Random, width: usize, size: f64) -> Vec<f64> {
    (0..width).map(|_| size * random.number()).collect()
}

fn sets(random: &mut Random, width: usize) -> Vec<Set> {
    let lo = vector(random, width, 1.0);
    let hi = lo.iter().map(|lo| lo + random.number().abs()).collect();
    vec![
        Set::Everything,
        Set::L2 { radius: 1.3 },
        Set::L1 { radius: 1.0 },
        Set::Linf { radius: 0.7 },
        Set::Simplex { total: 1.5 },
        Set::Box { lo, hi },
    ]
}

/// A point of the set, somewhere.
fn inside(set: &Set, random: &mut Random, width: usize) -> Vec<f64> {
    let mut v = vector(random, width, 2.0);
    set.project(&mut v);
    let (middle, part) = (set.center(width), random.number().abs());
    v.iter().zip(middle).map(|(v, m)| m + part * (v - m)).collect()
}

fn cut(set: &Set, random: &mut Random, width: usize) -> BallIntersection {
    let ball =
        Ball { centre: inside(set, random, width), radius: 0.6 * random.number().abs() + 0.01 };
    BallIntersection { set: set.clone(), ball: Some(ball) }
}

/// p is the projection of z exactly if ⟨z - p, u - p⟩ ≤ 0 for every u of the set.
fn worst_angle(z: &[f64], p: &[f64], others: impl Iterator<Item = Vec<f64>>) -> f64 {
    let less = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>();
    let away = less(z, p);
    others.map(|u| dot(&away, &less(&u, p))).fold(f64::NEG_INFINITY, f64::max)
}

#[test]
fn projections_are_nearest_points() {
    let mut random = Random(7);
    for width in [1, 2, 3, 7, 50] {
        for _ in 0..60 {
            for set in sets(&mut random, width) {
                let z = vector(&mut random, width, 3.0);
                let mut p = z.clone();
                set.project(&mut p);
                assert!(set.contains(&p, 1e-14), "{set:?} {z:?} {p:?}");
                let others: Vec<_> = (0..40).map(|_| inside(&set, &mut random, width)).collect();
                let mut corner = p.clone();
                if set != Set::Everything {
                    // The u that would break the condition first.
                    let down: Vec<f64> = p.iter().zip(&z).map(|(p, z)| p - z).collect();
                    set.lowest_point(&down, &mut corner);
                    assert!(set.contains(&corner, 1e-14), "{set:?}");
                }
                let worst = worst_angle(&z, &p, others.into_iter().chain([corner]));
                assert!(worst < 1e-13, "{set:?} {worst}");
                let mut again = p.clone();
                set.project(&mut again);
                assert!(distance(&again, &p) < 1e-14);
            }
        }
    }
    // A point that is a little off does not pass for the nearest.
    let (z, p) = (vec![2.0, 0.5], vec![0.999, 0.001]);
    let set = Set::L1 { radius: 1.0 };
    let others = (0..2000).map(|_| inside(&set, &mut random, 2));
    assert!(worst_angle(&z, &p, others) > 1e-4);
}

/// Dykstra's alternation between a set and a ball, to a standstill.
fn dykstra(within: &BallIntersection, z: &[f64]) -> Vec<f64> {
    let ball = within.ball.as_ref().unwrap();
    let (mut u, mut p, mut q) = (z.to_vec(), vec![0.0; z.len()], vec![0.0; z.len()]);
    for _ in 0..200_000 {
        let before = u.clone();
        let mut a: Vec<f64> = u.iter().zip(&p).map(|(u, p)| u + p).collect();
        let sum = a.clone();
        within.set.project(&mut a);
        p = sum.iter().zip(&a).map(|(s, a)| s - a).collect();
        let sum: Vec<f64> = a.iter().zip(&q).map(|(a, q)| a + q).collect();
        let keep = (ball.radius / distance(&sum, &ball.centre)).min(1.0);
        u = sum.iter().zip(&ball.centre).map(|(s, c)| c + keep * (s - c)).collect();
        q = sum.iter().zip(&u).map(|(s, u)| s - u).collect();
        if distance(&u, &before) < 1e-17 && distance(&u, &a) < 1e-14 {
            break;
        }
    }
    u
}

#[test]
fn a_set_within_a_ball_agrees_with_dykstra() {
    let mut random = Random(8);
    for width in [2, 3, 5, 7] {
        let mut searched = 0;
        for _ in 0..15 {
            for set in sets(&mut random, width) {
                let within = cut(&set, &mut random, width);
                let z = vector(&mut random, width, 2.0);
                let mut p = z.clone();
                let error = within.project(&mut p);
                let ball = within.ball.as_ref().unwrap();
                assert!(error <= ERROR * distance(&z, &ball.centre).max(1.0));
                assert!(set.contains(&p, 1e-14) && distance(&p, &ball.centre) <= ball.radius);
                let apart = distance(&p, &dykstra(&within, &z));
                assert!(apart < 1e-10, "{within:?} {z:?} {apart}");
                searched += usize::from(error > 0.0);
            }
        }
        assert!(searched > 20, "{searched}");
    }
}

#[test]
fn a_set_within_a_ball_projects_to_the_nearest_point_in_many_dimensions() {
    let mut random = Random(9);
    for set in sets(&mut random, 200) {
        for _ in 0..10 {
            let within = cut(&set, &mut random, 200);
            let z = vector(&mut random, 200, 1.0);
            let mut p = z.clone();
            within.project(&mut p);
            let others: Vec<Vec<f64>> = (0..50)
                .map(|_| {
                    let mut u = inside(&set, &mut random, 200);
                    within.project(&mut u);
                    u
                })
                .collect();
            let worst = worst_angle(&z, &p, others.into_iter());
            assert!(worst < 1e-12, "{set:?} {worst}");
        }
    }
}

/// Ten thousand pairs for every set, half of them within a ball, near and far.
#[test]
fn projections_never_lengthen_a_distance() {
    let mut random = Random(10);
    for set in sets(&mut random, 5) {
        let mut shorter = 0;
        for round in 0..10_000 {
            let ball = if round % 2 == 0 { None } else { cut(&set, &mut random, 5).ball };
            let within = BallIntersection { set: set.clone(), ball };
            let mut a = vector(&mut random, 5, 2.0);
            let step = 10f64.powi(-(round % 7));
            let mut b: Vec<f64> = a.iter().map(|a| a + step * random.number()).collect();
            let before = distance(&a, &b);
            let by = if round % 3 == 0 { 0.3 } else { 0.0 };
            let error = within.shrink(by, &mut a) + within.shrink(by, &mut b);
            let after = distance(&a, &b);
            assert!(after <= before + error + 1e-14, "{within:?} {before} {after}");
            shorter += usize::from(after < 0.9 * before);
        }
        assert!(shorter > 2000, "{set:?} {shorter}");
    }
}

#[test]
fn the_closed_form_for_two_balls_agrees_with_the_search() {
    let mut random = Random(11);
    let mut both = 0;
    for _ in 0..6000 {
        let set = Set::L2 { radius: 1.3 };
        let within = cut(&set, &mut random, 4);
        let z = vector(&mut random, 4, 3.0);
        let (mut fast, mut slow) = (z.clone(), z.clone());
        within.project(&mut fast);
        let ball = within.ball.as_ref().unwrap();
        set.project(&mut slow);
        if distance(&slow, &ball.centre) > ball.radius {
            let error = within.search(ball, 0.0, &z, &mut slow);
            assert!(error <= ERROR * distance(&z, &ball.centre).max(1.0));
        }
        let apart = distance(&fast, &slow);
        assert!(apart < 2e-13, "{within:?} {z:?} {apart}");
        both += usize::from(
            norm(&slow) > 1.3 - 1e-12 && distance(&slow, &ball.centre) > ball.radius - 1e-12,
        );
    }
    assert!(both > 100, "both surfaces met {both} times");
}

#[test]
fn the_distance_that_is_searched_never_falls() {
    let mut random = Random(12);
    for set in sets(&mut random, 6) {
        for _ in 0..30 {
            let (c, z) = (inside(&set, &mut random, 6), vector(&mut random, 6, 3.0));
            let by = random.number().max(0.0);
            let mut last = 0.0;
            for k in 0..=200 {
                let t = f64::from(k) / 200.0;
                let mut u: Vec<f64> = c.iter().zip(&z).map(|(c, z)| c + t * (z - c)).collect();
                set.shrink(t * by, &mut u);
                let now = distance(&u, &c);
                assert!(now >= last - 1e-14, "{set:?} {t}");
                last = now;
            }
        }
    }
}

#[test]
fn set_sizes_hold_and_are_met() {
    let mut random = Random(13);
    for set in sets(&mut random, 3).into_iter().skip(1) {
        let start = vector(&mut random, 3, 0.5);
        let (diameter, radius, norms) = (set.diameter(3), set.radius_from(&start), set.norms(3));
        let (mut widest, mut farthest) = (0f64, 0f64);
        let corners: Vec<Vec<f64>> = (0..400)
            .map(|_| {
                let mut u = vec![0.0; 3];
                set.lowest_point(&vector(&mut random, 3, 1.0), &mut u);
                u
            })
            .collect();
        for u in &corners {
            farthest = farthest.max(distance(u, &start));
            corners.iter().for_each(|v| widest = widest.max(distance(u, v)));
            assert!(norm(u) <= norms.l2 + 1e-12);
            assert!(u.iter().map(|x| x.abs()).sum::<f64>() <= norms.l1 + 1e-12);
            assert!(u.iter().all(|x| x.abs() <= norms.linf + 1e-12));
        }
        assert!(widest <= diameter + 1e-12 && widest > 0.98 * diameter, "{set:?} {widest}");
        assert!(farthest <= radius + 1e-12 && farthest > 0.98 * radius, "{set:?} {farthest}");
        assert!(set.contains(&set.center(3), 1e-15));
        set.check(3).unwrap();
    }
    assert!(Set::L1 { radius: f64::INFINITY }.check(1).is_err());
    assert!(Set::Box { lo: vec![1.0], hi: vec![0.0] }.check(1).is_err());
    assert!(Set::Box { lo: vec![0.0], hi: vec![1.0] }.check(2).is_err());
}

#[test]
fn vertices_are_lowest() {
    let g = [0.5, -2.0, 1.0, 2.0];
    assert_eq!(Set::L1 { radius: 3.0 }.lowest_vertex(&g), Some((1, 3.0)));
    assert_eq!(Set::L1 { radius: 3.0 }.lowest_vertex(&g[2..]), Some((1, -3.0)));
    assert_eq!(Set::Simplex { total: 2.0 }.lowest_vertex(&g), Some((1, 2.0)));
    assert_eq!(Set::L2 { radius: 2.0 }.lowest_vertex(&g), None);
    let mut corner = [0.0; 4];
    Set::Linf { radius: 2.0 }.lowest_point(&g, &mut corner);
    assert_eq!(corner, [-2.0, 2.0, -2.0, -2.0]);
}

/// A measurement, not a test: `cargo test --release a_million -- --ignored --nocapture`.
#[test]
#[ignore = "a clock decides nothing on a busy machine"]
fn a_million_weights_take_how_long() {
    let mut random = Random(14);
    let wide = vector(&mut random, 1_000_000, 1.0);
    for set in [Set::L1 { radius: 1.0 }, Set::L1 { radius: 1e5 }, Set::Simplex { total: 30.0 }] {
        let mut v = wide.clone();
        let begun = std::time::Instant::now();
        set.project(&mut v);
        println!("{set:?}: {:?}", begun.elapsed());
        assert!(set.contains(&v, 1e-8));
    }
}
