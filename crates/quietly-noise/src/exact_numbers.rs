//! The exact numbers that noise is made of: scales, dyadic coefficients, ratios.
use crate::error::Error;

/// A standard deviation in lattice units: the exact value of an `f64` from 1/4 to 2⁴⁵.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    pub(crate) value: f64,
    /// s = mantissa·2^(exponent - 64), the top bit of the mantissa set.
    pub(crate) mantissa: u64,
    pub(crate) exponent: i32,
}

impl Scale {
    pub(crate) const MAX: f64 = (1u64 << 45) as f64;

    pub(crate) fn new(value: f64) -> Result<Self, Error> {
        let good = (0.25..=Self::MAX).contains(&value);
        Error::ensure(good, "scale", "from 1/4 to 2^45 lattice units", value)?;
        // A normal positive f64: eleven bits of exponent, 52 of fraction below a hidden one.
        let bits = value.to_bits();
        let exponent = (bits >> 52) as i32 - 1022;
        Ok(Self { value, mantissa: (bits << 11) | 1 << 63, exponent })
    }

    /// 2s as an integer over 2ᵏ: (m, k) with m < 2⁵⁴ and k at most 54.
    pub(crate) fn twice(&self) -> (u64, u32) {
        (self.mantissa >> 10, (53 - self.exponent) as u32)
    }
}

/// a/2ᵏ: an exact coefficient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dyadic {
    numerator: i64,
    log2_denominator: u32,
}

impl Dyadic {
    /// One.
    pub const ONE: Self = Self { numerator: 1, log2_denominator: 0 };

    /// `numerator / 2^log2_denominator`.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if the numerator exceeds 2⁴⁰ or the exponent 32.
    pub fn new(numerator: i64, log2_denominator: u32) -> Result<Self, Error> {
        let small = numerator.unsigned_abs() <= 1 << 40;
        Error::ensure(small, "numerator", "at most 2^40 in size", numerator)?;
        let fine = log2_denominator <= 32;
        Error::ensure(fine, "log2_denominator", "at most 32", log2_denominator)?;
        Ok(Self { numerator, log2_denominator })
    }

    /// The multiple of 2^-`log2_denominator` nearest to `value`. What is used afterwards, in the
    /// noise and by the accountant, is the rounded number.
    ///
    /// # Errors
    ///
    /// As [`Dyadic::new`], and if `value` is not finite.
    pub fn nearest(value: f64, log2_denominator: u32) -> Result<Self, Error> {
        Error::ensure(log2_denominator <= 32, "log2_denominator", "at most 32", log2_denominator)?;
        let scaled = (value * (1u64 << log2_denominator) as f64).round();
        let good = scaled.abs() <= (1u64 << 40) as f64;
        Error::ensure(good, "coefficient", "finite, with numerator at most 2^40", value)?;
        Self::new(scaled as i64, log2_denominator)
    }

    /// The value, exactly: 41 bits fit an `f64`.
    pub fn value(self) -> f64 {
        self.numerator as f64 / (1u64 << self.log2_denominator) as f64
    }

    pub(crate) fn log2_denominator(self) -> u32 {
        self.log2_denominator
    }

    /// The numerator over 2^`log2`, which is at least this denominator and at most 2³².
    pub(crate) fn over(self, log2: u32) -> i128 {
        i128::from(self.numerator) << (log2 - self.log2_denominator)
    }
}

impl std::ops::Neg for Dyadic {
    type Output = Self;

    fn neg(self) -> Self {
        Self { numerator: -self.numerator, ..self }
    }
}

/// n/d: an exact non-negative ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    numerator: u64,
    denominator: u64,
}

impl Ratio {
    /// `numerator / denominator`.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if the denominator is zero.
    pub fn new(numerator: u64, denominator: u64) -> Result<Self, Error> {
        Error::ensure(denominator > 0, "denominator", "positive", denominator)?;
        Ok(Self { numerator, denominator })
    }

    /// n.
    pub fn numerator(self) -> u64 {
        self.numerator
    }

    /// d.
    pub fn denominator(self) -> u64 {
        self.denominator
    }

    /// The value, rounded to an `f64`.
    pub fn value(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_is_the_exact_value_of_its_float() {
        for s in [0.25, 0.3, 1.0, 3.0, 1000.0, 12345.678, 2f64.powi(30), 2f64.powi(45)] {
            let scale = Scale::new(s).unwrap();
            assert_eq!(scale.mantissa >> 63, 1);
            assert_eq!((scale.mantissa as f64) * 2f64.powi(scale.exponent - 64), s);
            assert!((-1..=46).contains(&scale.exponent));
            let (twice, k) = scale.twice();
            assert_eq!(twice as f64 / 2f64.powi(k as i32), 2.0 * s);
        }
        for s in [0.0, -1.0, 0.2499999, 2f64.powi(45) + 1.0, f64::NAN, f64::INFINITY] {
            assert!(Scale::new(s).is_err(), "{s}");
        }
        let text = Scale::new(f64::NAN).unwrap_err().to_string();
        assert_eq!(text, "scale must be from 1/4 to 2^45 lattice units, but is NaN");
    }

    #[test]
    fn bad_coefficients_are_refused() {
        assert!(Dyadic::new(1 << 40, 32).is_ok());
        assert!(Dyadic::new((1 << 40) + 1, 0).is_err());
        assert!(Dyadic::new(i64::MIN, 0).is_err());
        assert!(Dyadic::new(1, 33).is_err());
        assert_eq!(Dyadic::nearest(0.3, 4), Dyadic::new(5, 4));
        assert!(Dyadic::nearest(f64::NAN, 4).is_err());
        assert!(Dyadic::nearest(1e300, 4).is_err());
        assert!(Dyadic::nearest(0.5, 64).is_err());
        assert!(Ratio::new(1, 0).is_err());
        assert_eq!(Ratio::new(1, 2).unwrap().value(), 0.5);
    }
}
