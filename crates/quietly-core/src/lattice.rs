//! The integer lattice on which clipped rows are added, with the sensitivity after rounding.
//!
//! # Proof: one row on the lattice
//!
//! A record is a coefficient c (its residual) times a vector z of width d. It enters a sum as the
//! integers q_j = round(a·z_j), where a is c in units of the step h, held to |a| ≤ reach/N and
//! N is what [`norm`] says of z. Let u = 2⁻⁵³, and let bars mark exact values.
//!
//! 1. *The norm.* A sum of d squares in any order is at least (1-u)^d Σ z_j² - d·2⁻¹⁰⁷⁵, where
//!    the last term counts squares that fall below the smallest number. A square root and
//!    2⁻⁵⁰⁰ ≥ 2·√d·2⁻⁵³⁷ on top give ‖z‖ ≤ N (1+u)² (1-u)^(-d/2). A square that overflows makes N
//!    infinite and a zero.
//! 2. *The product.* One division and one product round: |fl(a·z_j)| ≤ |z_j|·reach/N·(1+u)², or
//!    is below the smallest normal number and rounds to the integer 0. Together
//!    ‖fl(a·z)‖ ≤ reach·(1+u)⁴(1-u)^(-d/2) ≤ reach·(1 + (d+16)u), for d ≤ 2²⁴.
//! 3. *The lattice.* Rounding to the nearest integer moves each coordinate by at most ½, so
//!    ‖q‖ ≤ reach·(1 + (d+16)u) + √d/2.
//! 4. [`Lattice::new`] takes C = ⌊zeta/h⌋, exactly, and reach = (C - √d/2 - 1)·(1 - (d+32)·2u),
//!    whose own few roundings the excess 16 and the 1 pay for. Hence **‖q‖ ≤ C**, and h·C ≤ zeta.
//!
//! Nothing is assumed of c: one that is not finite counts as zero. The entries of z must be
//! finite, which the rows of a table and of the engine's cached rows always are.
//!
//! # Proof: sums are exact
//!
//! 2³⁰ ≤ C < 2³¹, so 2³² rows can be added in `i64`; after each block of rows the sums go to
//! `i128`, which no number of rows can fill. At the end the total is clamped to ±2⁶²; a clamp
//! never moves two numbers apart, so C remains the sensitivity whatever the number of rows.
use crate::release::Sensitivity;

/// log2 of how many steps a clip is worth, rounded down, for sums of records.
const SUM_BITS: i32 = 30;

/// The same for outer products: C < 2¹⁷, so that an entry of the product is below 2³⁴, block sums
/// stay below 2⁵³, and 2²⁸ rows fit before the clamp at 2⁶² is felt.
const PRODUCT_BITS: i32 = 16;

/// 1.5·2⁵². Adding it to |v| < 2⁵¹ lands where numbers are one apart: the low bits of the result
/// are the integer nearest to v.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// A clip norm, put on an integer lattice.
#[derive(Clone, Debug)]
pub struct Lattice {
    step: f64,
    bound: i64,
    reach: f64,
    /// Two powers of two whose product is 1/h, which itself may be too large for a number.
    per_step: [f64; 2],
}

impl Lattice {
    /// The lattice for sums of `width`-vectors of norm at most `clip`.
    ///
    /// # Panics
    ///
    /// If `clip` is not within 1e-300 to 1e300, or `width` not below 2²⁴: both are public.
    pub fn for_sums(clip: f64, width: usize) -> Self {
        Self::new(clip, width, SUM_BITS)
    }

    /// The lattice for sums of outer products of such vectors with themselves.
    ///
    /// The product of an integer row q with itself has Frobenius norm ‖q‖² ≤ C² exactly, and two
    /// of them are at most √2·C² apart, as their inner product (q·q')² is not negative.
    ///
    /// # Panics
    ///
    /// As [`for_sums`](Self::for_sums).
    pub fn for_products(clip: f64, width: usize) -> Self {
        Self::new(clip, width, PRODUCT_BITS)
    }

    /// The lattice of a lower clip with the same step, so that their sums can be added.
    ///
    /// The clip is not lowered beyond 2⁻¹², where the lattice would become coarse.
    pub fn with_clip(&self, clip: f64, width: usize) -> Self {
        let most = self.step * self.bound as f64;
        let clip = clip.clamp(most / 4096.0, most);
        let bits = exponent(clip) - exponent(self.step);
        Self::new(clip, width, bits)
    }

    fn new(clip: f64, width: usize, bits: i32) -> Self {
        assert!((1e-300..=1e300).contains(&clip), "a clip norm must be within 1e-300 to 1e300");
        assert!(width < 1 << 24, "a record must have fewer than 2^24 features");
        let exponent = exponent(clip) - bits;
        let half = -exponent / 2;
        let per_step = [2f64.powi(half), 2f64.powi(-exponent - half)];
        let bound = (clip * per_step[0] * per_step[1]).floor();
        let margin = 1.0 - (width as f64 + 32.0) * f64::EPSILON;
        let reach = (bound - (width as f64).sqrt() / 2.0 - 1.0) * margin;
        // Not `powi` alone: the step may be subnormal, where a reciprocal would overflow.
        let step = 1.0 / per_step[0] / per_step[1];
        Self { step, bound: bound as i64, reach, per_step }
    }

    /// h: what one unit of a sum is worth, a power of two.
    pub fn step(&self) -> f64 {
        self.step
    }

    /// C: the norm of what one record can add, in units.
    pub fn bound(&self) -> i64 {
        self.bound
    }

    /// What one record can add to a sum of vectors.
    pub fn sensitivity(&self) -> Sensitivity {
        Sensitivity::l2(self.bound as f64, self.step)
    }

    /// What one record can add to a sum of outer products of vectors of this size.
    pub fn product_sensitivity(&self, size: usize) -> Sensitivity {
        Sensitivity::frobenius((self.bound as f64).powi(2), self.step * self.step, size)
    }

    /// `residual` in units per feature, clipped so that a row of this norm adds at most the clipping norm.
    #[inline(always)]
    pub fn clipped_coefficient(&self, residual: f64, norm: f64) -> f64 {
        let most = self.reach / norm;
        let units = residual * self.per_step[0] * self.per_step[1];
        let clipped = units.max(-most).min(most);
        // Without the second half, a norm that is zero or not a number would lift the limit.
        if residual.is_finite() & (0.0..f64::INFINITY).contains(&most) { clipped } else { 0.0 }
    }
}

/// ⌊log2 x⌋ of a normal number: its exponent is stored plainly.
fn exponent(x: f64) -> i32 {
    (x.to_bits() >> 52) as i32 - 1023
}

/// An upper bound, up to the rounding counted above, on the norm of a row from the computed sum of
/// its squares.
#[inline(always)]
pub fn norm(squares: f64) -> f64 {
    const TINY: f64 = f64::from_bits((1023 - 500) << 52);
    squares.sqrt() + TINY
}

/// The integer nearest to v, which is below 2⁵¹, and [`ROUNDER`]'s bits on top; ties go to the even one.
///
/// Adding these up, wrapping, and taking all of the bits away in the end ([`lowered`]) saves one operation per number.
#[inline(always)]
pub fn raised(v: f64) -> i64 {
    (v + ROUNDER).to_bits() as i64
}

/// The sum of integers from the wrapped sum of as many [`raised`] ones: exact if it fits in `i64`, as 2⁶⁴ is what wraps.
pub fn lowered(sum: i64, count: usize) -> i64 {
    sum.wrapping_sub((ROUNDER.to_bits() as i64).wrapping_mul(count as i64))
}

/// The integer nearest to v, as a number.
#[inline(always)]
pub fn nearest_f64(v: f64) -> f64 {
    (v + ROUNDER) - ROUNDER
}

/// A total as it is handed out.
pub fn clamped(total: i128) -> i64 {
    total.clamp(-(1 << 62), 1 << 62) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// The integers of a record, the way the passes make them.
    fn integers(lattice: &Lattice, residual: f64, z: &[f64]) -> Vec<i64> {
        let a = lattice.clipped_coefficient(residual, norm(z.iter().map(|z| z * z).sum()));
        z.iter().map(|z| nearest(a * z)).collect()
    }

    fn nearest(v: f64) -> i64 {
        lowered(raised(v), 1)
    }

    fn squared(q: &[i64]) -> i128 {
        q.iter().map(|&q| i128::from(q) * i128::from(q)).sum()
    }

    #[test]
    fn no_record_is_longer_than_the_bound() {
        let mut random = Random(1);
        let (mut records, mut tight) = (0, 0);
        for clip in [1e-300, 3e-7, 0.8, 1.0, f64::from_bits(0x3fff_ffff_ffff_ffff), 1e9, 1e300] {
            for width in [1, 2, 3, 21, 201, 4000] {
                for make in [Lattice::for_sums, Lattice::for_products] {
                    let lattice = make(clip, width);
                    let most = i128::from(lattice.bound()).pow(2);
                    for i in 0..3_200_000 / (84 * (width + 3)) {
                        let size = random.size();
                        // Equal entries all round the same way, which is the worst case.
                        let z: Vec<f64> = (0..width)
                            .map(|_| if i % 2 == 0 { size } else { size * random.number() })
                            .collect();
                        let length = z.iter().map(|z| z * z).sum::<f64>().sqrt();
                        for residual in [clip / length, 1.0000001 * clip / length, random.size()] {
                            let q = squared(&integers(&lattice, residual, &z));
                            assert!(q <= most, "{clip} {width} {residual} {q} {most}");
                            tight += usize::from(q as f64 > 0.99 * most as f64);
                            records += 1;
                        }
                    }
                }
            }
        }
        // The bound is met often, so one that is too loose would be seen: 5/8 of the sizes are not
        // extreme, half of those have squares in range, and 2/3 of the residuals reach the clip.
        assert!(records > 1_000_000 && tight > records / 5, "{tight} of {records}");
    }

    #[test]
    fn what_is_not_finite_is_zero_and_what_is_small_is_kept() {
        let lattice = Lattice::for_sums(1.0, 2);
        for residual in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(integers(&lattice, residual, &[1.0, 0.5]), [0, 0]);
        }
        assert_eq!(lattice.clipped_coefficient(1.0, f64::NAN), 0.0);
        assert_eq!(lattice.clipped_coefficient(1.0, 0.0), 0.0);
        assert_eq!(lattice.clipped_coefficient(1.0, f64::INFINITY), 0.0);
        assert_eq!(integers(&lattice, 1.0, &[1e200, 1.0]), [0, 0]);
        // Below the clip nothing is scaled: a half is half of 2³⁰ steps.
        assert_eq!(integers(&lattice, 0.5, &[1.0, -0.5]), [1 << 29, -(1 << 28)]);
    }

    #[test]
    fn a_lattice_is_exact_at_any_scale() {
        for clip in [1e-300, 1e-20, 0.75, 1.0, 1e20, 1e300] {
            for (lattice, bits) in
                [(Lattice::for_sums(clip, 9), 30), (Lattice::for_products(clip, 9), 16)]
            {
                let bound = lattice.bound() as f64;
                assert!(lattice.bound() >> bits == 1, "{clip}");
                assert!(bound * lattice.step() <= clip);
                assert!((bound + 1.0) * lattice.step() > clip);
            }
        }
    }

    #[test]
    fn rounding_is_to_the_nearest() {
        let mut random = Random(2);
        for _ in 0..100_000 {
            let v = (random.number() * 4e9).trunc() / 2.0 + random.number() * 0.49;
            assert_eq!(nearest(v), v.round_ties_even() as i64);
            assert_eq!(nearest_f64(v), v.round_ties_even());
        }
        for v in [0.5, 1.5, -0.5, -1.5, 2.5, 0.49999999999999994, -0.0, 5e-324, 2f64.powi(50)] {
            assert_eq!(nearest(v), v.round_ties_even() as i64, "{v}");
        }
    }

    #[test]
    fn raised_integers_add_up() {
        let mut random = Random(3);
        let values: Vec<f64> = (0..5000).map(|_| (random.number() * 4e9).trunc()).collect();
        let sum = values.iter().fold(0i64, |sum, &v| sum.wrapping_add(raised(v)));
        assert_eq!(lowered(sum, values.len()), values.iter().map(|&v| v as i64).sum::<i64>());
        assert_eq!(lowered(0, 0), 0);
    }

    #[test]
    fn totals_are_clamped() {
        assert_eq!(clamped(i128::MAX), 1 << 62);
        assert_eq!(clamped(i128::MIN), -(1 << 62));
        assert_eq!(clamped(-7), -7);
    }
}
