//! Exact sums of decimal numbers: ten times 0.1 is 1, and nothing beyond a limit fits into it.
//!
//! A number in a ledger is the decimal text that stands there. Sums are whole multiples of 10⁻³⁰,
//! which every ε and δ of at most 17 digits from 10⁻¹³ on is. What is finer is rounded against the
//! spender, and what is too large for 128 bits counts as the most there is.

/// How many digits there are after the point.
const PLACES: i32 = 30;

/// Multiples of 10⁻³⁰.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Decimal(u128);

impl Decimal {
    /// The number, or the next multiple above.
    pub(super) fn above(x: f64) -> Self {
        Decimal(units(x, true))
    }

    /// The number, or the next multiple below.
    pub(super) fn below(x: f64) -> Self {
        Decimal(units(x, false))
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Decimal(self.0.saturating_add(other.0))
    }

    /// What is left, and nothing if more is taken than is there.
    pub(super) fn minus(self, other: Self) -> Self {
        Decimal(self.0.saturating_sub(other.0))
    }

    /// A float whose text is not below.
    pub(super) fn up(self) -> f64 {
        let mut x = self.nearest();
        while Decimal::below(x) < self && x < f64::MAX {
            x = x.next_up();
        }
        x
    }

    /// A float whose text is not above.
    pub(super) fn down(self) -> f64 {
        let mut x = self.nearest();
        while Decimal::above(x) > self && x > 0.0 {
            x = x.next_down();
        }
        x
    }

    fn nearest(self) -> f64 {
        let one = 10_u128.pow(PLACES as u32);
        let text = format!("{}.{:030}", self.0 / one, self.0 % one);
        text.parse().expect("digits and a point")
    }
}

fn units(x: f64, up: bool) -> u128 {
    if x.is_nan() || x <= 0.0 {
        return if x.is_nan() && up { u128::MAX } else { 0 };
    }
    if x.is_infinite() {
        return u128::MAX;
    }
    // The shortest text that means this float: what a ledger has, too.
    let text = format!("{x:e}");
    let (digits, exponent) = text.split_once('e').expect("scientific notation");
    let places = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len() as i32);
    let number: u128 = digits.replace('.', "").parse().expect("at most 17 digits");
    let power = exponent.parse::<i32>().expect("an exponent") - places + PLACES;
    let scale = 10_u128.checked_pow(power.unsigned_abs());
    match (power >= 0, scale) {
        (true, scale) => scale.and_then(|scale| number.checked_mul(scale)).unwrap_or(u128::MAX),
        (false, Some(scale)) if up => number.div_ceil(scale),
        (false, Some(scale)) => number / scale,
        (false, None) => u128::from(up),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_exact() {
        let ten = (0..10).fold(Decimal::default(), |sum, _| sum.plus(Decimal::above(0.1)));
        assert_eq!(ten, Decimal::below(1.0));
        // The control: floats say otherwise.
        assert_ne!((0..10).fold(0.0, |sum, _| sum + 0.1), 1.0);
        let odd = 0.123_456_789_012_345_67e-12;
        assert_eq!((Decimal::above(odd).up(), Decimal::below(odd).down()), (odd, odd));
        assert_eq!(Decimal::below(3.0).minus(Decimal::above(2.9)).down(), 0.1);
        assert_eq!(Decimal::below(1.0).minus(Decimal::above(2.0)), Decimal::default());
    }

    #[test]
    fn what_does_not_fit_is_rounded_against_the_spender() {
        assert!(Decimal::above(1e-40) > Decimal::below(1e-40));
        assert_eq!(Decimal::below(1e-40), Decimal::default());
        for x in [1e300, f64::INFINITY, f64::NAN] {
            assert_eq!(Decimal::above(x).0, u128::MAX);
        }
        assert_eq!(Decimal::below(f64::NAN).0, 0);
        assert!(Decimal(u128::MAX).up().is_finite());
    }
}
