//! Numbers of 106 bits, as unevaluated sums of two: for certificates that 53 bits cannot give.
//!
//! Dekker 1971, Knuth; error bounds of Joldes, Muller, Popescu, *Tight and rigorous error bounds for basic building blocks
//! of double-word arithmetic*, 2017: every operation below errs by less than 2⁻¹⁰⁰ of its result (a sum of numbers of either
//! sign, of what they measure), as long as nothing goes beyond 2^±450.
use std::ops::{Add, Mul, Neg, Sub};

/// hi + lo, |lo| ≤ ulp(hi)/2.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Double {
    pub hi: f64,
    pub lo: f64,
}

/// The sum and what rounding took from it: exact.
#[inline(always)]
pub fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let from_b = sum - a;
    (sum, (a - (sum - from_b)) + (b - from_b))
}

fn quick_two_sum(a: f64, b: f64) -> Double {
    let hi = a + b;
    Double { hi, lo: b - (hi - a) }
}

impl From<f64> for Double {
    fn from(hi: f64) -> Self {
        Double { hi, lo: 0.0 }
    }
}

impl Add for Double {
    type Output = Double;

    fn add(self, other: Double) -> Double {
        let (s, e) = two_sum(self.hi, other.hi);
        let (t, f) = two_sum(self.lo, other.lo);
        let Double { hi, lo } = quick_two_sum(s, e + t);
        quick_two_sum(hi, lo + f)
    }
}

impl Neg for Double {
    type Output = Double;

    fn neg(self) -> Double {
        Double { hi: -self.hi, lo: -self.lo }
    }
}

impl Sub for Double {
    type Output = Double;

    fn sub(self, other: Double) -> Double {
        self + -other
    }
}

impl Mul for Double {
    type Output = Double;

    fn mul(self, other: Double) -> Double {
        let Double { hi, lo } = Double::product(self.hi, other.hi);
        quick_two_sum(hi, lo + (self.hi * other.lo + self.lo * other.hi))
    }
}

impl Double {
    /// The exact product of two numbers below 2⁹⁰⁰: by halves of 26 bits, whose products are exact (Veltkamp, Dekker).
    ///
    /// Not by a fused product, which is slow where the processor has none.
    pub fn product(a: f64, b: f64) -> Double {
        let split = |x: f64| {
            let big = 134_217_729.0 * x;
            let high = big - (big - x);
            (high, x - high)
        };
        let ((a1, a2), (b1, b2)) = (split(a), split(b));
        let hi = a * b;
        Double { hi, lo: ((a1 * b1 - hi) + a1 * b2 + a2 * b1) + a2 * b2 }
    }

    /// 1/x: Newton's step from the nearest number, which squares its error.
    pub fn recip(self) -> Double {
        let first = Double::from(1.0 / self.hi);
        let second = first + first * (Double::from(1.0) - first * self);
        second + second * (Double::from(1.0) - second * self)
    }

    /// e^x for |x| ≤ 700, within 2⁻⁸⁸ of itself: x = k·ln 2 + 2⁹·r, Taylor's series at |r| < 2⁻¹⁰ to r⁹, nine squarings, each of
    /// which doubles the relative error.
    pub fn exp(self) -> Double {
        /// ln 2 in two words.
        const LN2: Double = Double { hi: std::f64::consts::LN_2, lo: 2.319_046_813_846_299_6e-17 };
        let k = (self.hi / std::f64::consts::LN_2).round();
        let r = (self - Double::from(k) * LN2).scaled(1.0 / 512.0);
        // Horner: 1 + r(1 + r/2(1 + r/3(...))).
        let mut series = Double::from(1.0);
        for n in (1..=10_u8).rev() {
            let n = Double::from(f64::from(n)).recip();
            series = Double::from(1.0) + series * r * n;
        }
        for _ in 0..9 {
            series = series * series;
        }
        // In two halves, as 2^k alone may be beyond the range.
        let half = (k / 2.0).floor() as i32;
        series.scaled(2f64.powi(half)).scaled(2f64.powi(k as i32 - half))
    }

    /// The nearest number within [lo, hi].
    pub fn clamp(self, lo: f64, hi: f64) -> Double {
        let beyond = |x: f64| self.hi - x + self.lo;
        match (beyond(lo) < 0.0, beyond(hi) > 0.0) {
            (true, _) => lo.into(),
            (_, true) => hi.into(),
            _ => self,
        }
    }

    /// Times a power of two.
    fn scaled(self, power: f64) -> Double {
        Double { hi: self.hi * power, lo: self.lo * power }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Golden: mpmath with 60 digits, as the nearest number and what is left of it.
    #[test]
    fn exponentials_have_a_hundred_bits() {
        let golden = [
            (0.1, 1.1051709180756477, -8.149523913327619e-17),
            (-0.7, 0.4965853037914095, 9.827550225511106e-18),
            (1.0, std::f64::consts::E, 1.4456468917292502e-16),
            (-3.3, 0.036883167401240015, -2.8625274258701676e-18),
            (12.5, 268337.2865208745, -2.0035114163950887e-11),
            (-40.25, 3.3086216207858244e-18, 1.3601916932590803e-34),
            (300.1, 2.1467131625231985e+130, -1.2143805928062731e+114),
            (-600.7, 1.3161479774412904e-261, 4.024437178328534e-278),
        ];
        for (x, hi, lo) in golden {
            let found = Double::from(x).exp();
            let error = ((found.hi - hi) + (found.lo - lo)) / hi;
            assert!(error.abs() < 2f64.powi(-88), "{x}: {error:e}");
            // Control: one word is not enough.
            assert!((x.exp() - hi - lo).abs() > 2f64.powi(-88) * hi, "{x}");
        }
    }

    #[test]
    fn reciprocals_and_products_undo_each_other() {
        for x in [3.0, -0.1, 1e30, 7e-20] {
            let x = Double::from(x) + Double::from(x * 1e-17);
            let one = x * x.recip() - Double::from(1.0);
            assert!(one.hi.abs() < 2f64.powi(-100), "{one:?}");
        }
    }
}
