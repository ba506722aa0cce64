//! B-splines on [-1, 1] with uniform knots that go on beyond both ends.
//!
//! p functions of degree o on I = p - o intervals, of which o + 1 are not zero at a point. They
//! are never negative and add up to one. Knots never come from private data.

use serde::{Deserialize, Serialize};

/// The highest degree. Values at a point are arrays of this and one more.
pub const MAX_DEGREE: usize = 5;

/// One number per function that is not zero at a point; those beyond the degree are zero.
pub type Locals = [f64; MAX_DEGREE + 1];

/// 1/k, so that no division is needed.
const RECIPROCAL: [f64; MAX_DEGREE + 1] = [0.0, 1.0, 0.5, 1.0 / 3.0, 0.25, 0.2];

/// How one feature enters a basis expansion or a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// A number within [-1, 1], through splines.
    Spline,
    /// A number within [0, 1], as it is: one column of a one-hot code, or a sign that something
    /// is missing.
    Plain,
}

/// The functions of one layer: all its inputs share them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Basis {
    pub degree: usize,
    pub intervals: usize,
}

/// What is not zero at a point.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// The interval, which is also the number of the first function that is not zero.
    pub interval: usize,
    /// The functions from there on.
    pub values: Locals,
    /// Their derivatives; zero outside [-1, 1], where values are frozen.
    pub slopes: Locals,
}

impl Basis {
    /// `size` functions of `degree`, which must be less.
    pub fn new(size: usize, degree: usize) -> Self {
        assert!((1..=MAX_DEGREE).contains(&degree) && size > degree, "a basis");
        Self { degree, intervals: size - degree }
    }

    /// How many functions there are.
    pub fn size(&self) -> usize {
        self.intervals + self.degree
    }

    /// How many functions are not zero at a point.
    pub fn active(&self) -> usize {
        self.degree + 1
    }

    /// How many intervals there are per unit of length: 1/κ_h.
    pub fn density(&self) -> f64 {
        self.intervals as f64 / 2.0
    }

    /// The interval of v and the place within it, from 0 to 1. Points outside count as the end.
    #[inline(always)]
    pub fn locate(&self, v: f64) -> (usize, f64) {
        let t = (v.clamp(-1.0, 1.0) + 1.0) * self.density();
        let interval = (t as usize).min(self.intervals - 1);
        (interval, t - interval as f64)
    }

    /// Values and derivatives at v. Not a number gives no numbers.
    #[inline(always)]
    pub fn at(&self, v: f64) -> Point {
        let (interval, u) = self.locate(v);
        let inside = if (-1.0..=1.0).contains(&v) { self.density() } else { 0.0 };
        let (values, slopes) = match self.degree {
            // The loops below, unrolled by the compiler.
            3 => local(3, u, inside),
            degree => local(degree, u, inside),
        };
        Point { interval, values, slopes }
    }

    /// The least and the greatest Σ b_k(v)² over all v.
    ///
    /// Σ b_k² as a function of the place u in an interval is even around ½ and monotone on either
    /// side, so it has its extremes at the knots and half-way between.
    pub fn square_range(&self) -> (f64, f64) {
        let squares = |u| local(self.degree, u, 0.0).0.iter().map(|b| b * b).sum::<f64>();
        let (knot, middle) = (squares(0.0), squares(0.5));
        (knot.min(middle), knot.max(middle))
    }

    /// The function Σ c_k b_k on every interval as a polynomial in the place u: coefficients of
    /// 1, u, u², … one interval after the other.
    pub fn polynomials(&self, coefficients: &[f64]) -> Vec<Locals> {
        let monomials = self.monomials();
        let active = self.active();
        let of = |c: &[f64]| {
            let mut sum = Locals::default();
            for (c, powers) in c.iter().zip(&monomials) {
                sum.iter_mut().zip(powers).for_each(|(sum, power)| *sum += c * power);
            }
            sum
        };
        coefficients.windows(active).map(of).collect()
    }

    /// The functions that are not zero on an interval, as polynomials in u.
    fn monomials(&self) -> [Locals; MAX_DEGREE + 1] {
        let mut b = [Locals::default(); MAX_DEGREE + 1];
        b[0][0] = 1.0;
        for (k, reciprocal) in RECIPROCAL.iter().enumerate().take(self.degree + 1).skip(1) {
            for j in (0..=k).rev() {
                let (right, left) = (b[j], if j > 0 { b[j - 1] } else { Locals::default() });
                for power in 0..=MAX_DEGREE {
                    let below = |of: &Locals| if power > 0 { of[power - 1] } else { 0.0 };
                    let rising = below(&left) + (k - j) as f64 * left[power];
                    let falling = (j + 1) as f64 * right[power] - below(&right);
                    b[j][power] = (rising + falling) * reciprocal;
                }
            }
        }
        b
    }
}

/// The triangle of de Boor and Cox for knots one apart, on the interval from 0 to 1:
/// b_j of degree k is ((u + k - j) b_{j-1} + (j + 1 - u) b_j)/k of degree k - 1, and its
/// derivative is the difference of the same two.
#[inline(always)]
fn local(degree: usize, u: f64, density: f64) -> (Locals, Locals) {
    let (mut b, mut slopes) = (Locals::default(), Locals::default());
    b[0] = 1.0;
    for (k, reciprocal) in RECIPROCAL.iter().enumerate().take(degree + 1).skip(1) {
        if k == degree {
            for j in 0..=k {
                let left = if j > 0 { b[j - 1] } else { 0.0 };
                slopes[j] = (left - b[j]) * density;
            }
        }
        for j in (0..=k).rev() {
            let left = if j > 0 { b[j - 1] } else { 0.0 };
            let (rising, falling) = (u + (k - j) as f64, (j + 1) as f64 - u);
            b[j] = (rising * left + falling * b[j]) * reciprocal;
        }
    }
    (b, slopes)
}

#[cfg(test)]
mod tests {
    use quietly_core::random::Random;

    use super::*;

    fn bases() -> impl Iterator<Item = Basis> {
        (1..=MAX_DEGREE).flat_map(|o| [1, 2, 5, 9].map(|i| Basis::new(o + i, o)))
    }

    /// All functions at v, and all derivatives.
    fn dense(basis: Basis, v: f64) -> (Vec<f64>, Vec<f64>) {
        let (mut values, mut slopes) = (vec![0.0; basis.size()], vec![0.0; basis.size()]);
        let point = basis.at(v);
        for k in 0..basis.active() {
            values[point.interval + k] = point.values[k];
            slopes[point.interval + k] = point.slopes[k];
        }
        (values, slopes)
    }

    #[test]
    fn the_functions_add_up_to_one() {
        let mut random = Random(1);
        for basis in bases() {
            for v in (0..200).map(|_| random.number()).chain([-1.0, 1.0, 0.0]) {
                let (values, slopes) = dense(basis, v);
                assert!((values.iter().sum::<f64>() - 1.0).abs() < 1e-15 * 8.0);
                assert!(slopes.iter().sum::<f64>().abs() < 1e-13);
                assert!(values.iter().all(|b| *b >= 0.0));
                // One function less and they do not, unless it is zero there.
                let rest = values[..basis.size() - 1].iter().sum::<f64>();
                assert_eq!(rest < 1.0 - 1e-9, values[basis.size() - 1] > 1e-9);
            }
        }
    }

    /// Central differences err by the third derivative times h²/6, and by rounding over h.
    #[test]
    fn derivatives_are_those_of_the_values() {
        const H: f64 = 2e-5;
        let mut random = Random(2);
        for basis in bases() {
            for _ in 0..500 {
                let v = 0.999 * random.number();
                let (_, u) = basis.locate(v);
                let margin = 2.0 * H * basis.density();
                if !(margin..1.0 - margin).contains(&u) {
                    continue; // Across a knot, a difference is no derivative of low degrees.
                }
                let (_, slopes) = dense(basis, v);
                let (above, below) = (dense(basis, v + H).0, dense(basis, v - H).0);
                for k in 0..basis.size() {
                    let difference = (above[k] - below[k]) / (2.0 * H);
                    let curvature = H * H * basis.density().powi(3);
                    assert!((slopes[k] - difference).abs() < 1e-9 + curvature, "{basis:?} {v}");
                }
            }
        }
        // The bound is not so wide that a wrong derivative would pass.
        assert!(H * H * 4.5f64.powi(3) < 1e-7);
    }

    #[test]
    fn cubics_are_the_known_polynomials() {
        let mut random = Random(3);
        let basis = Basis::new(8, 3);
        for _ in 0..1000 {
            let v = random.number();
            let (_, u) = basis.locate(v);
            let point = basis.at(v);
            let expected = [
                (1.0 - u).powi(3) / 6.0,
                (3.0 * u * u * u - 6.0 * u * u + 4.0) / 6.0,
                (-3.0 * u * u * u + 3.0 * u * u + 3.0 * u + 1.0) / 6.0,
                u * u * u / 6.0,
            ];
            let slopes = [
                -(1.0 - u) * (1.0 - u),
                3.0 * u * u - 4.0 * u,
                -3.0 * u * u + 2.0 * u + 1.0,
                u * u,
            ];
            for k in 0..4 {
                assert!((point.values[k] - expected[k]).abs() < 1e-15);
                assert!((point.slopes[k] - slopes[k] * basis.density() / 2.0).abs() < 1e-14);
            }
        }
    }

    #[test]
    fn cubics_have_the_known_constants() {
        let basis = Basis::new(8, 3);
        let (least, most) = basis.square_range();
        // (1 + 23² + 23² + 1)/48² half-way, (1 + 16 + 1)/36 at the knots.
        assert!((least - 1060.0 / 2304.0).abs() < 1e-15 && (most - 0.5).abs() < 1e-15);
        let (mut value, mut slope, mut range) = (0f64, 0f64, (f64::INFINITY, 0f64));
        for i in 0..=20_000 {
            let point = basis.at(f64::from(i) / 1e4 - 1.0);
            value = point.values.iter().fold(value, |m, b| m.max(*b));
            slope = point.slopes.iter().fold(slope, |m, b| m.max(b.abs()));
            let squares = point.values.iter().map(|b| b * b).sum::<f64>();
            assert!((least - 1e-15..=most + 1e-15).contains(&squares));
            let slopes = point.slopes.iter().map(|b| b * b).sum::<f64>().sqrt() / basis.density();
            range = (range.0.min(slopes), range.1.max(slopes));
        }
        assert!((value - 2.0 / 3.0).abs() < 1e-12);
        assert!((slope - 2.0 / 3.0 * basis.density()).abs() < 1e-6);
        assert!((range.0 - 0.5f64.sqrt()).abs() < 1e-4 && (range.1 - 0.901).abs() < 1e-3);
    }

    #[test]
    fn squares_have_their_extremes_where_they_are_looked_for() {
        for basis in bases() {
            let (least, most) = basis.square_range();
            for i in 0..=1000 {
                let point = basis.at(f64::from(i) / 500.0 - 1.0);
                let squares = point.values.iter().map(|b| b * b).sum::<f64>();
                assert!((least - 1e-14..=most + 1e-14).contains(&squares), "{basis:?}");
            }
            assert!(least < most);
        }
    }

    #[test]
    fn values_are_frozen_outside() {
        for basis in bases() {
            for (outside, end) in [(1.5, 1.0), (-7.0, -1.0), (f64::INFINITY, 1.0)] {
                let (there, here) = (basis.at(outside), basis.at(end));
                assert_eq!((there.interval, there.values), (here.interval, here.values));
                assert_eq!(there.slopes, Locals::default());
                assert_ne!(here.slopes, Locals::default());
            }
            assert!(basis.at(f64::NAN).values[0].is_nan());
        }
    }

    #[test]
    fn polynomials_are_the_same_function() {
        let mut random = Random(4);
        for basis in bases() {
            let c: Vec<f64> = (0..basis.size()).map(|_| random.number()).collect();
            let polynomials = basis.polynomials(&c);
            assert_eq!(polynomials.len(), basis.intervals);
            for _ in 0..100 {
                let v = random.number();
                let (interval, u) = basis.locate(v);
                let horner = polynomials[interval].iter().rev().fold(0.0, |sum, a| sum * u + a);
                let plain: f64 = dense(basis, v).0.iter().zip(&c).map(|(b, c)| b * c).sum();
                assert!((horner - plain).abs() < 1e-13);
            }
        }
    }
}
