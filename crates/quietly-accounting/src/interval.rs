use std::fmt;

/// A number known to lie between two ends.
///
/// The upper end is certified: it is what may be promised. The lower end is what a particular pair of
/// neighbouring tables is shown to leak, so that no better theorem could promise less than it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval {
    /// The certified lower end.
    pub(crate) lower: f64,
    /// The certified upper end; `f64::INFINITY` if nothing finite can be promised.
    pub(crate) upper: f64,
}

impl Interval {
    pub(crate) fn new(lower: f64, upper: f64) -> Self {
        // What is not a number says nothing.
        let upper = if upper.is_nan() { f64::INFINITY } else { upper };
        Interval { lower: lower.max(0.0).min(upper), upper }
    }

    /// (upper - lower) / upper: how much of the answer is numerical or theoretical slack.
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
