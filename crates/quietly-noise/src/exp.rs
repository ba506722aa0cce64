//! e^-b with a proven error, in integers: the same bits on every machine.
//!
//! # Proof: the error of the exponential
//!
//! Both functions below do the same with words of P fractional bits; a *unit*
//! is 2^-P. They halve b until t = b/2ᵏ < 1/2, sum the series
//! e^-t = Σ (-t)ʲ/j! to j = n by Horner's rule, and square k times.
//!
//! *Series.* Put c_j = ⌊2^P/j!⌋ units, h_n = c_n and h_j = c_j - ⌊t·h_{j+1}⌋. Let H_j be
//! the same without the floors. c_j is at most one unit low and the inner floor
//! at most one unit low, so |h_j - H_j| ≤ 1 + 1 + t|h_{j+1} - H_{j+1}| (the errors
//! have opposite sign; the bound does not use that) and hence, with t < 1/2,
//! |h_0 - H_0| < 4 units. Terms alternate in sign and fall at least by half, so leaving out j > n
//! costs at most t^(n+1)/(n+1)! < 2^-(n+1)/(n+1)!, which is below one unit by the choice of n.
//! Where t itself was rounded down by less than one unit, e^-t moves by less than one more.
//! Together fewer than 6 units. (No h_j is negative: t·h_{j+1} < c_{j+1}/2 + 1 ≤ c_j.)
//!
//! *Squaring.* If 0 ≤ h ≤ 1 is within D units of the truth g ≤ 1 then ⌊h²⌋ is within
//! (h + g)D + 1 ≤ 2D + 1 units of g². From 6 units, k squarings give fewer than 2ᵏ·7.
//! Clamping h to 1 - 1 unit, so that it fits its word, is one more at the start: 2ᵏ·8.
//!
//! [`exp_neg`]: P = 64, k = 5, n = 17: within 256 units of 2⁻⁶⁴, that is 2⁻⁵⁶.
//! [`exp_neg_wide`]: P = p + k + 8: within 2^(k+3) units, less than 2⁻⁵ of a unit of 2^-p.
use num_bigint::BigUint;

/// Halvings in [`exp_neg`]: b < 16 becomes t < 1/2.
const HALVINGS: u32 = 5;
const TERMS: usize = 17;

/// |`exp_neg(b)` - 2⁶⁴ e^-b| is at most this.
pub(crate) const EXP_ERROR: u64 = 256;

/// c_j = ⌊2⁶⁴/j!⌋.
const COEFFICIENTS: [u128; TERMS + 1] = {
    let mut c = [1 << 64; TERMS + 1];
    let mut j = 1;
    let mut factorial = 1;
    while j <= TERMS {
        factorial *= j as u128;
        c[j] = (1 << 64) / factorial;
        j += 1;
    }
    c
};

/// 2⁶⁴ e^-b for b in units of 2⁻⁶⁰, within [`EXP_ERROR`].
pub(crate) const fn exp_neg(b: u64) -> u64 {
    // t·2⁶⁴ = b·2⁶⁴⁻⁶⁰⁻⁵.
    let t = (b >> (HALVINGS - 4)) as u128;
    let mut h = COEFFICIENTS[TERMS];
    let mut j = TERMS;
    while j > 0 {
        j -= 1;
        h = COEFFICIENTS[j] - ((t * h) >> 64);
    }
    if h >> 64 != 0 {
        h = u64::MAX as u128;
    }
    let mut k = 0;
    while k < HALVINGS {
        h = (h * h) >> 64;
        k += 1;
    }
    h as u64
}

/// Bounds on 2^p e^-b for b in units of 2^-p: low ≤ truth ≤ high ≤ low + 3.
pub(crate) fn exp_neg_wide(b: &BigUint, p: u64) -> (BigUint, BigUint) {
    let halvings = (b.bits() + 1).saturating_sub(p);
    let guard = halvings + 8;
    let precision = p + guard;
    // b is scaled up by 2^guard and down by 2^halvings: exact.
    let t = b << (guard - halvings);
    let one = BigUint::from(1u8) << precision;

    // n terms with 2^-(n+1)/(n+1)! below a unit.
    let (mut terms, mut log2_left) = (0u64, precision as i64 + 1);
    while log2_left > 0 {
        terms += 1;
        log2_left -= 1 + i64::from((terms + 1).ilog2());
    }
    let mut coefficients = vec![one.clone()];
    let mut factorial = BigUint::from(1u8);
    for j in 1..=terms {
        factorial *= j;
        coefficients.push(&one / &factorial);
    }
    let mut h = coefficients.pop().expect("there is a last term");
    while let Some(c) = coefficients.pop() {
        h = c - ((&t * h) >> precision);
    }
    h = h.min(one - 1u8);
    for _ in 0..halvings {
        h = (&h * &h) >> precision;
    }
    let floor = h >> guard;
    let low = if floor == BigUint::ZERO { BigUint::ZERO } else { &floor - 1u8 };
    (low, floor + 2u8)
}

#[cfg(test)]
mod tests {
    use dashu_float::{FBig, round::mode::HalfEven};
    use dashu_int::{IBig, UBig};

    use super::*;

    type Float = FBig<HalfEven, 2>;

    /// 2^scale e^-b for b in units of 2^-p, by another library.
    fn oracle(b: &BigUint, p: u64, scale: isize, precision: usize) -> Float {
        let b = UBig::from_le_bytes(&b.to_bytes_le());
        let b = Float::from_parts(-IBig::from(b), -(p as isize)).with_precision(precision).value();
        b.exp() << scale
    }

    fn big(x: BigUint) -> Float {
        Float::from_parts(IBig::from(UBig::from_le_bytes(&x.to_bytes_le())), 0)
    }

    #[test]
    fn the_narrow_function_keeps_its_bound() {
        let mut worst = 0.0f64;
        let step = u64::MAX / 3000;
        for b in (0..3000).map(|i| i * step + i * i * 977).chain([0, 1, 31, 32, 1 << 60, u64::MAX])
        {
            let want = oracle(&b.into(), 60, 64, 160);
            let error = (Float::from(exp_neg(b)) - want).to_f64().value().abs();
            worst = worst.max(error);
        }
        assert!(worst <= EXP_ERROR as f64, "{worst}");
        // The bound is of the right size, so a wrong unit would be seen.
        assert!(worst > 8.0, "{worst}");
    }

    #[test]
    fn the_wide_function_encloses() {
        for p in [64u64, 128, 192, 320] {
            for i in 0..60u64 {
                // From far below one unit's effect to e^-200.
                let b = (BigUint::from(0x9e37_79b9_7f4a_7c15u64 ^ i) << p >> 64) * (i * i) / 18u8;
                let (low, high) = exp_neg_wide(&b, p);
                let want = oracle(&b, p, p as isize, p as usize + 700);
                assert!(big(low.clone()) <= want && want <= big(high.clone()), "{p} {i}");
                assert!(high - low <= 3u8.into());
            }
        }
    }
}
