//! Projections that are finite computations: scaling, clamping, and one threshold for all entries.
//!
//! Sums run in the order of the entries, so the same input gives the same bits everywhere. Numbers
//! that are infinite or NaN never get here; if they did, nothing would panic, and the result would
//! be of no use.

/// The Euclidean length, also where squares would overflow or vanish.
pub(super) fn norm(v: &[f64]) -> f64 {
    let squares: f64 = v.iter().map(|x| x * x).sum();
    if (1e-280..1e280).contains(&squares) {
        return squares.sqrt();
    }
    let top = largest(v);
    if top == 0.0 || !top.is_finite() {
        return top;
    }
    top * v.iter().map(|x| (x / top) * (x / top)).sum::<f64>().sqrt()
}

/// ‖a - b‖.
pub(super) fn distance(a: &[f64], b: &[f64]) -> f64 {
    norm(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>())
}

pub(super) fn largest(v: &[f64]) -> f64 {
    v.iter().fold(0.0, |top, x| x.abs().max(top))
}

pub(super) fn sum_of_sizes(v: &[f64]) -> f64 {
    v.iter().map(|x| x.abs()).sum()
}

/// Onto the L2 ball around zero.
pub(super) fn onto_l2(v: &mut [f64], radius: f64) {
    let norm = norm(v);
    if norm > radius {
        v.iter_mut().for_each(|x| *x *= radius / norm);
    }
}

/// Onto the L1 ball around zero: the sizes, onto a simplex.
pub(super) fn onto_l1(v: &mut [f64], radius: f64) {
    if sum_of_sizes(v) <= radius {
        return;
    }
    let top = largest(v);
    let cut = threshold(v.iter().map(|x| x.abs() - top), radius);
    v.iter_mut().for_each(|x| *x = (x.abs() - top - cut).max(0.0).copysign(*x));
}

/// Onto {w ≥ 0, Σw = total}.
pub(super) fn onto_simplex(v: &mut [f64], total: f64) {
    let top = v.iter().fold(f64::NEG_INFINITY, |top, x| x.max(top));
    let cut = threshold(v.iter().map(|x| x - top), total);
    v.iter_mut().for_each(|x| *x = (*x - top - cut).max(0.0));
}

/// The c for which Σ max(0, d - c) = total, over entries d ≤ 0 of which the largest is 0.
///
/// Michelot's algorithm: c is tried for all that may lie above it; those that do not are dropped,
/// which only raises c. A few rounds are enough but for contrived entries, which are sorted: then
/// the first k entries lie above c, for the largest k whose c is below the k-th.
///
/// The largest entry was subtracted because the projection does not change and digits are not
/// lost: entries at or below -total are dropped at once, since the largest alone would then add
/// more than the total.
fn threshold(below: impl Iterator<Item = f64>, total: f64) -> f64 {
    const ROUNDS: usize = 12;
    let mut left: Vec<f64> = below.filter(|&d| d > -total).collect();
    let cut = |left: &[f64]| (left.iter().sum::<f64>() - total) / left.len() as f64;
    for _ in 0..ROUNDS {
        let (before, c) = (left.len(), cut(&left));
        left.retain(|&d| d > c);
        if left.len() == before {
            return c;
        }
    }
    left.sort_unstable_by(|a, b| b.total_cmp(a));
    let mut sum = 0.0;
    let above = left.iter().enumerate().take_while(|&(k, &d)| {
        sum += d;
        d > (sum - total) / (k + 1) as f64
    });
    let above = above.count();
    cut(&left[..above])
}

/// Each entry towards zero by `by`, and not past it: the proximal map of by · ‖v‖₁.
pub(super) fn soften(v: &mut [f64], by: f64) {
    if by > 0.0 {
        v.iter_mut().for_each(|x| *x = (x.abs() - by).max(0.0).copysign(*x));
    }
}

#[cfg(test)]
mod tests {
    use quietly_core::random::Random;

    use super::*;

    /// Geometric entries drop one by one, so that rounds run out and sorting takes over.
    #[test]
    fn sorting_gives_the_threshold_that_dropping_gives() {
        let mut random = Random(4);
        for size in [1usize, 2, 5, 40, 200] {
            for ratio in [0.1, 0.5, 0.9, 0.999] {
                let total = 0.5 + random.number().abs();
                let below: Vec<f64> = (0..size).map(|k| f64::powi(ratio, k as i32) - 1.0).collect();
                let c = threshold(below.iter().copied(), total);
                let reached: f64 = below.iter().map(|d| (d - c).max(0.0)).sum();
                assert!((reached - total).abs() < 1e-13 * total.max(1.0), "{size} {ratio}");
            }
        }
        let ladder: Vec<f64> = (0..60).map(|k| -1.0 + 2f64.powi(-k)).rev().collect();
        let c = threshold(ladder.iter().map(|d| d - 0.0), 3.0);
        assert!((ladder.iter().map(|d| (d - c).max(0.0)).sum::<f64>() - 3.0).abs() < 1e-13);
    }

    #[test]
    fn lengths_survive_huge_and_tiny_entries() {
        assert!((norm(&[3e200, -4e200]) / 5e200 - 1.0).abs() < 1e-15);
        assert!((norm(&[3e-200, 4e-200]) / 5e-200 - 1.0).abs() < 1e-15);
        assert_eq!(norm(&[]), 0.0);
        let mut v = [1e300, 1.0];
        onto_l1(&mut v, 2.0);
        assert_eq!(v, [2.0, 0.0]);
        onto_simplex(&mut v, 1.0);
        assert_eq!(v, [1.0, 0.0]);
    }

    #[test]
    fn no_entry_makes_a_projection_panic() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for at in 0..3 {
                let mut v = [1.0, -2.0, 3.0];
                v[at] = bad;
                onto_l1(&mut v.clone(), 1.0);
                onto_l2(&mut v.clone(), 1.0);
                onto_simplex(&mut v, 1.0);
            }
        }
    }
}
