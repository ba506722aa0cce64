//! Losses: convex functions of a score u = ⟨w, x⟩ and a target y.
//!
//! Residuals of least squares are in `residual.rs` of quietly-engine, losses of networks in `architecture.rs` of quietly-kan.
use quietly_engine::{error::Error, link::Link};
use serde::{Deserialize, Serialize};

use super::double_double::Double;

#[cfg(test)]
mod tests;

/// How bad a score u is for a target y. All are convex in u.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "loss", rename_all = "kebab-case")]
pub enum Loss {
    /// (u - y)².
    Squared,
    /// ln(1 + exp(-yu)), for labels y = ±1.
    Logistic,
    /// (u - y)⁴.
    Fourth,
    /// max(0, 1 - yu), for labels y = ±1.
    Hinge,
    /// The hinge with a parabola for its corner, for labels y = ±1.
    SmoothHinge {
        /// The parabola spans margins from 1 - width to 1 + width.
        width: f64,
    },
    /// (u - y)²/2 up to a distance, straight lines beyond.
    Huber {
        /// The distance from which on the loss is straight.
        width: f64,
    },
    /// The pinball loss, whose mean is least at a quantile of y.
    Quantile {
        /// Which quantile, between 0 and 1.
        level: f64,
    },
    /// The pinball loss with a parabola for its corner.
    SmoothQuantile {
        /// Which quantile, between 0 and 1.
        level: f64,
        /// The parabola spans residuals from -width to width.
        width: f64,
    },
    /// -yu, for labels y = ±1: the hard instance of the lower bounds.
    Margin,
    /// The logistic loss of several classes, with one score for each.
    Softmax {
        /// How many classes.
        classes: usize,
    },
}

impl Loss {
    /// The loss of score `u` for target `y`.
    ///
    /// # Panics
    ///
    /// For [`Softmax`](Loss::Softmax), as do all functions of one score.
    pub fn value(self, u: f64, y: f64) -> f64 {
        let (r, m) = (u - y, y * u);
        match self {
            Loss::Squared => r * r,
            Loss::Logistic => (-m).max(0.0) + libm::log1p(libm::exp(-m.abs())),
            Loss::Fourth => r * r * r * r,
            Loss::Hinge => (1.0 - m).max(0.0),
            Loss::SmoothHinge { width } if m <= 1.0 - width => 1.0 - m,
            Loss::SmoothHinge { width } => smoothed_corner(1.0 - m, width),
            Loss::Huber { width } if r.abs() <= width => r * r / 2.0,
            Loss::Huber { width } => width * (r.abs() - width / 2.0),
            Loss::Quantile { level } => (-level * r).max((1.0 - level) * r),
            Loss::SmoothQuantile { level, width } if r.abs() >= width => {
                Loss::Quantile { level }.value(u, y)
            }
            Loss::SmoothQuantile { level, width } => smoothed_corner(r, width) - level * r,
            Loss::Margin => -m,
            Loss::Softmax { .. } => one_score_only(),
        }
    }

    /// A derivative of the loss in `u`; at a corner, one of the subgradients.
    ///
    /// It never decreases in u. For finite arguments it is never NaN, however large they are.
    #[inline(always)]
    pub fn derivative(self, u: f64, y: f64) -> f64 {
        let (r, m) = (u - y, y * u);
        match self {
            Loss::Squared => 2.0 * r,
            Loss::Logistic => -y * logistic(-m),
            Loss::Fourth => 4.0 * r * r * r,
            Loss::Hinge => -y * step(1.0 - m),
            Loss::SmoothHinge { width } => -y * ramp(1.0 - m, width),
            Loss::Huber { width } => r.max(-width).min(width),
            Loss::Quantile { level } => step(r) - level,
            Loss::SmoothQuantile { level, width } => ramp(r, width) - level,
            Loss::Margin => -y,
            Loss::Softmax { .. } => one_score_only(),
        }
    }

    /// The derivative to more digits, good to 2⁻⁸⁰ of the largest derivative: a certified minimiser rests on it. Where the loss is not smooth
    /// there is none, and the derivative is as it is.
    pub fn derivative_in_double(self, u: Double, y: f64) -> Double {
        let one = Double::from(1.0);
        // From 0 to 1, as x goes from -width to width.
        let ramp = |x: Double, width: f64| {
            let at = (one + x * Double::from(width).recip()) * 0.5.into();
            at.clamp(0.0, 1.0)
        };
        let (r, m) = (u - y.into(), u * y.into());
        match self {
            Loss::Squared => r * 2.0.into(),
            Loss::Fourth => r * r * r * 4.0.into(),
            Loss::Logistic => -(Double::from(y) * falling(m)),
            Loss::SmoothHinge { width } => -(Double::from(y) * ramp(one - m, width)),
            Loss::Huber { width } => r.clamp(-width, width),
            Loss::SmoothQuantile { level, width } => ramp(r, width) - level.into(),
            Loss::Hinge | Loss::Quantile { .. } | Loss::Margin => self.derivative(u.hi, y).into(),
            Loss::Softmax { .. } => one_score_only(),
        }
    }

    /// The second derivative in `u`: zero at corners and on straight lines.
    pub fn second_derivative(self, u: f64, y: f64) -> f64 {
        let (r, m) = (u - y, y * u);
        let inside = |x: f64, width: f64, value: f64| if x.abs() < width { value } else { 0.0 };
        match self {
            Loss::Squared => 2.0,
            Loss::Logistic => y * y * logistic(m) * logistic(-m),
            Loss::Fourth => 12.0 * r * r,
            Loss::SmoothHinge { width } => y * y * inside(1.0 - m, width, 0.5 / width),
            Loss::Huber { width } => inside(r, width, 1.0),
            Loss::SmoothQuantile { width, .. } => inside(r, width, 0.5 / width),
            Loss::Hinge | Loss::Quantile { .. } | Loss::Margin => 0.0,
            Loss::Softmax { .. } => one_score_only(),
        }
    }

    /// The derivatives that target `y` allows, over all scores: from, to.
    pub fn derivative_range(self, y: f64) -> (f64, f64) {
        match self {
            Loss::Squared | Loss::Fourth => (f64::NEG_INFINITY, f64::INFINITY),
            Loss::Logistic | Loss::Hinge | Loss::SmoothHinge { .. } => (-y.max(0.0), -y.min(0.0)),
            Loss::Huber { width } => (-width, width),
            Loss::Quantile { level } | Loss::SmoothQuantile { level, .. } => (-level, 1.0 - level),
            Loss::Margin => (-y, -y),
            Loss::Softmax { .. } => (-1.0, 1.0),
        }
    }

    /// φ of [`spread`](super::gradient_diameter): the largest derivative away from a target within ±`target` at score `u`, or zero.
    pub fn derivative_bound(self, target: f64, u: f64) -> f64 {
        let far = (target + u).max(0.0);
        match self {
            Loss::Squared => 2.0 * far,
            Loss::Fourth => 4.0 * far * far * far,
            Loss::Logistic => logistic(u),
            Loss::Hinge if u < -1.0 => 0.0,
            Loss::Hinge | Loss::Margin | Loss::Softmax { .. } => 1.0,
            Loss::SmoothHinge { width } => ramp(1.0 + u, width),
            Loss::Huber { width } => far.min(width),
            Loss::Quantile { level } => level.max(1.0 - level),
            Loss::SmoothQuantile { level, width } => {
                (ramp(target + u, width) - level.min(1.0 - level)).max(0.0)
            }
        }
    }

    /// The largest second derivative for targets within ±`target` and scores within ±`reach`; infinite at corners.
    pub fn smoothness_bound(self, target: f64, reach: f64) -> f64 {
        match self {
            Loss::Squared => 2.0,
            Loss::Fourth => 12.0 * (target + reach) * (target + reach),
            Loss::Logistic => 0.25,
            Loss::SmoothHinge { width } | Loss::SmoothQuantile { width, .. } => 0.5 / width,
            Loss::Huber { .. } => 1.0,
            // diag(p) - ppᵀ has row sums of absolute values 2p(1 - p).
            Loss::Softmax { .. } => 0.5,
            Loss::Margin => 0.0,
            Loss::Hinge | Loss::Quantile { .. } => f64::INFINITY,
        }
    }

    /// What a fit of this loss predicts.
    pub fn link(self) -> Link {
        match self {
            Loss::Logistic => Link::Logistic,
            Loss::Softmax { .. } => Link::Softmax,
            Loss::Hinge | Loss::SmoothHinge { .. } | Loss::Margin => Link::Svm,
            Loss::Huber { .. } | Loss::Fourth => Link::Robust,
            Loss::Quantile { .. } | Loss::SmoothQuantile { .. } => Link::Quantile,
            Loss::Squared => Link::Linear,
        }
    }

    /// Whether the target alone says which way the score should go: derivative · y ≤ 0 always.
    pub fn sign_known(self) -> bool {
        self.needs_labels() && self.outputs() == 1
    }

    /// How many scores a row has.
    pub fn outputs(self) -> usize {
        if let Loss::Softmax { classes } = self { classes } else { 1 }
    }

    /// Whether derivatives are continuous, so that gradient steps need not shrink.
    pub fn is_smooth(self) -> bool {
        !matches!(self, Loss::Hinge | Loss::Quantile { .. })
    }

    /// Whether targets are labels: ±1, or for softmax the number of a class.
    pub fn needs_labels(self) -> bool {
        use Loss::{Hinge, Logistic, Margin, SmoothHinge, Softmax};
        matches!(self, Logistic | Hinge | SmoothHinge { .. } | Margin | Softmax { .. })
    }

    /// # Errors
    ///
    /// [`Error::Parameter`] for a width that is not positive, a level outside (0, 1), or fewer than
    /// two classes.
    pub fn check(self) -> Result<(), Error> {
        let fits = |width: f64| {
            let good = width > 0.0 && width.is_finite();
            Error::ensure(good, "the loss's width", "positive", width)
        };
        let between = |level: f64| {
            let good = level > 0.0 && level < 1.0;
            Error::ensure(good, "quantile", "between 0 and 1", level)
        };
        match self {
            Loss::SmoothHinge { width } | Loss::Huber { width } => fits(width),
            Loss::Quantile { level } => between(level),
            Loss::SmoothQuantile { level, width } => between(level).and(fits(width)),
            Loss::Softmax { classes } => {
                Error::ensure(classes >= 2, "the number of classes", "two or more", classes)
            }
            _ => Ok(()),
        }
    }
}

/// 1/(1 + exp(-t)), to the last digits also where it is tiny.
#[inline(always)]
pub fn logistic(t: f64) -> f64 {
    let e = falling_exp(t.abs());
    if t >= 0.0 { 1.0 / (1.0 + e) } else { e / (1.0 + e) }
}

/// e^-t for t ≥ 0, within two units of its last place; zero from 708 on, where that is below 2⁻¹⁰²¹.
///
/// e^-t = 2^k·e^r with |r| ≤ ln 2/2 and e^r by its series, whose first term left out is below 2⁻⁵⁷. Without branches, so that
/// one row does not wait for another.
#[inline(always)]
fn falling_exp(t: f64) -> f64 {
    // ln 2 in two words; the first has 21 zeros at its end, so that its products with k are exact.
    const LN_2: (f64, f64) = (0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10);
    // 1/12!, 1/11!, …, 1/0!.
    const SERIES: [f64; 13] = {
        let (mut series, mut k) = ([1.0; 13], 1);
        while k < 13 {
            series[12 - k] = series[13 - k] / k as f64;
            k += 1;
        }
        series
    };
    let held = if t > 708.0 { 708.0 } else { t };
    // Adding and taking away 1.5·2⁵² rounds to an integer, which the last bits of the sum are.
    const SHIFT: f64 = 6_755_399_441_055_744.0;
    let shifted = SHIFT - held * std::f64::consts::LOG2_E;
    let k = shifted - SHIFT;
    let r = (-held - k * LN_2.0) - k * LN_2.1;
    let sum = SERIES.iter().fold(SERIES[0] / 13.0, |sum, term| sum * r + term);
    let power = f64::from_bits((shifted.to_bits() << 52).wrapping_add(1.0_f64.to_bits()));
    if t > 708.0 { 0.0 } else { sum * power }
}

/// 1/(1 + e^t).
fn falling(t: Double) -> Double {
    let one = Double::from(1.0);
    match t.hi {
        t if t > 600.0 => Double::default(),
        t if t < -600.0 => one,
        _ => (one + t.exp()).recip(),
    }
}

fn step(x: f64) -> f64 {
    if x > 0.0 { 1.0 } else { 0.0 }
}

/// From 0 to 1, as x goes from -width to width.
fn ramp(x: f64, width: f64) -> f64 {
    // Halved first: width + width may overflow.
    (0.5 + 0.5 * (x / width)).clamp(0.0, 1.0)
}

/// The integral of [`ramp`] for x ≤ width.
fn smoothed_corner(x: f64, width: f64) -> f64 {
    let part = (x / width).max(-1.0) + 1.0;
    0.25 * width * part * part
}

fn one_score_only() -> ! {
    panic!("softmax has a score for every class: use `value_of` and `derivatives_of`")
}
