//! Intervals with certified ends.
use std::fmt;

/// Lower and upper bounds of a privacy cost.
///
/// The upper end is a certified bound for all neighbouring tables. The lower end is what one pair
/// of neighbouring tables leaks, so no theorem can give a smaller bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval {
    /// The certified lower end.
    pub(crate) lower: f64,
    /// The certified upper end; `f64::INFINITY` if there is no finite bound.
    pub(crate) upper: f64,
}

impl Interval {
    pub(crate) fn new(lower: f64, upper: f64) -> Self {
        // NaN is no bound.
        let upper = if upper.is_nan() { f64::INFINITY } else { upper };
        Interval { lower: lower.max(0.0).min(upper), upper }
    }

    /// (upper - lower) / upper: the share of numerical and theoretical slack.
    pub(crate) fn relative_width(&self) -> f64 {
        if self.upper == 0.0 || self.lower == self.upper {
            return 0.0;
        }
        if self.upper.is_finite() { (self.upper - self.lower) / self.upper } else { 1.0 }
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{:.6}, {:.6}]", self.lower, self.upper)
    }
}
