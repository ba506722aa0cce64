//! Axes: which values are shown, where, and the round numbers beside them.

/// What an axis shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Its name.
    pub label: String,
    /// Whether it is logarithmic.
    pub log: bool,
    /// Values above are drawn at this one.
    pub ceiling: f64,
}

/// An axis between two positions of a canvas.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    axis: Axis,
    /// The first and the last value, or their logarithms.
    ends: (f64, f64),
    /// Their positions.
    pixels: (f64, f64),
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: &str) -> Axis {
        Axis { label: label.into(), log: false, ceiling: f64::INFINITY }
    }

    /// A logarithmic axis.
    pub fn log(label: &str) -> Axis {
        Axis { log: true, ..Axis::linear(label) }
    }

    /// A scale from one value to another.
    pub fn between(self, (from, to): (f64, f64), pixels: (f64, f64)) -> Scale {
        let ends = if self.log { (from.log10(), to.log10()) } else { (from, to) };
        Scale { axis: self, ends, pixels }
    }

    /// A scale that reaches a little beyond these values.
    pub fn around(self, values: impl IntoIterator<Item = f64>, pixels: (f64, f64)) -> Scale {
        let ends = self.span(values.into_iter());
        Scale { axis: self, ends, pixels }
    }

    /// The value, or its logarithm; none if it cannot be shown.
    fn place(&self, value: f64) -> Option<f64> {
        let value = value.min(self.ceiling);
        let place = if self.log { value.log10() } else { value };
        place.is_finite().then_some(place)
    }

    fn span(&self, values: impl Iterator<Item = f64>) -> (f64, f64) {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for place in values.filter_map(|v| self.place(v)) {
            (low, high) = (low.min(place), high.max(place));
        }
        match high - low {
            width if width.is_infinite() || width.is_nan() => (0.0, 1.0),
            // One value, or one that hardly varies.
            width if width < 1e-9 * high.abs().max(1e-9) => (low - 0.5, high + 0.5),
            width => (low - 0.05 * width, high + 0.05 * width),
        }
    }

    /// A tick's number.
    fn number(&self, value: f64) -> String {
        let usual = if self.log { 1e-2..1e4 } else { 1e-4..1e6 };
        if value == 0.0 || usual.contains(&value.abs()) {
            format!("{value}")
        } else {
            format!("{value:e}")
        }
    }
}

impl Scale {
    /// The position of a value; none if it cannot be shown.
    pub fn at(&self, value: f64) -> Option<f64> {
        let share = (self.axis.place(value)? - self.ends.0) / (self.ends.1 - self.ends.0);
        let (from, to) = self.pixels;
        Some(from + (to - from) * share)
    }

    /// The positions of the ends.
    pub fn pixels(&self) -> (f64, f64) {
        self.pixels
    }

    /// The name of the axis.
    pub fn label(&self) -> &str {
        &self.axis.label
    }

    /// Round values between the ends, as positions and numbers.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        let values = self.tick_values().into_iter();
        values.filter_map(|v| Some((self.at(v)?, self.axis.number(v)))).collect()
    }

    fn tick_values(&self) -> Vec<f64> {
        let (low, high) = self.ends;
        if !self.axis.log {
            return ticks(low, high);
        }
        let decades = (high - low).max(1e-9);
        let steps: &[u8] = match decades {
            d if d < 1.6 => &[1, 2, 5],
            d if d < 3.0 => &[1, 3],
            _ => &[1],
        };
        let every = (decades / 9.0).ceil() as i32;
        let powers = (low.floor() as i32..=high.ceil() as i32).filter(|p| p % every == 0);
        // From text, as powers of ten by multiplication are not always the nearest numbers.
        let value = |step: &u8, power: i32| format!("{step}e{power}").parse().unwrap_or(f64::NAN);
        let all = powers.flat_map(|p| steps.iter().map(move |s| value(s, p)));
        let found: Vec<f64> = all.filter(|v: &f64| (low..=high).contains(&v.log10())).collect();
        // Less than a decade has few of these, or none.
        if found.len() >= 2 { found } else { ticks(10.0_f64.powf(low), 10.0_f64.powf(high)) }
    }
}

/// About six round numbers from `low` to `high`.
pub fn ticks(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / 6.0;
    let power = 10.0_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].iter().map(|m| m * power).find(|s| *s >= rough);
    let step = step.unwrap_or(10.0 * power);
    let first = (low / step).ceil() as i64;
    // Rounded, so that 0.30000000000000004 is written as 0.3. Numbers far from 0 need more digits
    // to differ.
    let digits =
        (2.0 + (low.abs().max(high.abs()) / step).log10().ceil()).clamp(6.0, 16.0) as usize;
    // Adding 0 turns -0 into 0.
    let neat = |k: i64| format!("{:.digits$e}", k as f64 * step).parse().unwrap_or(0.0) + 0.0;
    let all = (0..12).map(|k| neat(first.saturating_add(k)));
    let mut ticks: Vec<f64> = all.take_while(|t| *t <= high + 1e-9 * step).collect();
    ticks.dedup();
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks(0.0, 1.0), [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]);
        assert_eq!(ticks(0.0, 3.9), [0.0, 1.0, 2.0, 3.0]);
        assert_eq!(ticks(-0.31, 0.34), [-0.2, 0.0, 0.2]);
        for most in [1e-4, 7.0, 999.9] {
            let found = ticks(0.0, most);
            assert!((3..=7).contains(&found.len()), "{found:?}");
            assert!(found.iter().all(|t| *t <= most), "{found:?}");
        }
        // Narrow ranges far from 0 end, and have ticks that differ.
        assert_eq!(ticks(1e9, 1e9 + 1.0)[1], 1_000_000_000.2);
        for (low, high) in [(1.0, 1.0 + f64::EPSILON), (1e15, 1e15 + 0.5), (1e300, 2e300)] {
            let found = ticks(low, high);
            assert!(found.len() <= 12 && found.windows(2).all(|two| two[0] < two[1]), "{low}");
        }
    }

    #[test]
    fn scales_write_round_numbers() {
        let told = |axis: Axis, ends: (f64, f64)| {
            let scale = Scale { axis, ends, pixels: (0.0, 100.0) };
            let ticks = scale.ticks();
            assert!(ticks.windows(2).all(|two| two[0].0 < two[1].0), "{ticks:?}");
            ticks.into_iter().map(|(_, number)| number).collect::<Vec<_>>().join(" ")
        };
        let log = || Axis::log("");
        assert_eq!(told(log(), (-1.05, 0.05)), "0.1 0.2 0.5 1");
        assert_eq!(told(log(), (-6.2, -0.9)), "1e-6 1e-5 1e-4 1e-3 0.01 0.1");
        assert_eq!(told(log(), (0.38, 0.41)), "2.4 2.45 2.5 2.55");
        assert_eq!(told(Axis::linear(""), (-0.1, 1.05)), "0 0.2 0.4 0.6 0.8 1");
        assert_eq!(told(Axis::linear(""), (0.0, 3e-5)), "0 1e-5 2e-5 3e-5");
    }

    #[test]
    fn values_that_cannot_be_shown_have_no_position() {
        let axis = Axis { ceiling: 10.0, ..Axis::log("") };
        let scale = axis.around([0.1, 1e30, f64::NAN, 0.0], (0.0, 100.0));
        // A failed fit counts as the worst.
        assert_eq!(scale.at(f64::NAN), scale.at(10.0));
        assert_eq!((scale.at(0.0), scale.at(-1.0)), (None, None));
        assert_eq!(scale.at(1e30), scale.at(10.0));
        assert_eq!(Axis::linear("").between((1.0, 3.0), (100.0, 0.0)).at(1.5), Some(75.0));
    }
}
