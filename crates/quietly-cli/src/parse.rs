//! Numbers as people type them.
//!
//! Whether a number makes sense is the library's to say: `-1`, `nan` and `0` are read here and refused there, under
//! the flag's own name. Only what is no number at all stops here. Only a word means infinity: digits that are too large
//! for a number are the largest number, which the library refuses as it refuses 1e300.
use std::str::FromStr;

use quietly_accounting::Error;

/// A real number, perhaps a senseless one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number(pub f64);

/// A count: `1000`, `1e6`, or something that will be refused as a count by name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Count {
    typed: f64,
    whole: Option<u64>,
}

/// Numbers separated by commas.
#[derive(Clone, Debug, PartialEq)]
pub struct Numbers(pub Vec<f64>);

/// Not a number at all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unreadable(pub &'static str);

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Unreadable {}

/// A number, finite unless a word says otherwise.
fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let typed: f64 = text.parse().ok()?;
    let digits = text.contains(|c: char| c.is_ascii_digit());
    Some(if digits { typed.clamp(f64::MIN, f64::MAX) } else { typed })
}

impl FromStr for Number {
    type Err = Unreadable;

    fn from_str(text: &str) -> Result<Number, Unreadable> {
        let wanted = Unreadable("a number, such as 0.5 or 1e-5");
        number(text).map(Number).ok_or(wanted)
    }
}

impl FromStr for Numbers {
    type Err = Unreadable;

    fn from_str(text: &str) -> Result<Numbers, Unreadable> {
        let wanted = Unreadable("numbers with commas between them, such as 1,0.5,0.25");
        let each: Option<Vec<f64>> = text.split(',').map(number).collect();
        each.map(Numbers).ok_or(wanted)
    }
}

impl FromStr for Count {
    type Err = Unreadable;

    fn from_str(text: &str) -> Result<Count, Unreadable> {
        let text = text.trim();
        let wanted = Unreadable("a whole number, such as 1000 or 1e6");
        let typed: f64 = text.parse().map_err(|_| wanted)?;
        // Beyond `u64` the conversion stops at the largest count, which every limit of the library refuses by name.
        let by_value =
            (typed >= 0.0 && typed.is_finite() && typed.fract() == 0.0).then_some(typed as u64);
        Ok(Count { typed, whole: text.parse().ok().or(by_value) })
    }
}

impl Count {
    /// The number as it was typed, rounded to a double.
    pub fn shown(self) -> f64 {
        self.typed
    }

    /// The count, or an error under the name of its flag.
    pub fn get(self, name: &'static str) -> Result<u64, Error> {
        let want = "a whole number, at least 1";
        self.whole.ok_or(Error::Parameter { name, want, got: self.typed })
    }

    /// The count, or an error under the name of its flag, also if it is not a number.
    pub fn at_least_one(self, name: &'static str) -> Result<u64, Error> {
        let want = "a whole number, at least 1";
        let count = self.get(name)?;
        if count > 0 { Ok(count) } else { Err(Error::Parameter { name, want, got: self.typed }) }
    }

    /// As typed, to be shown again.
    pub fn json(self) -> serde_json::Value {
        self.whole.map_or_else(|| crate::format::json(self.typed), Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_may_be_written_in_powers_of_ten() {
        let count = |text: &str| text.parse::<Count>().unwrap().get("steps");
        assert_eq!(count("1e6"), Ok(1_000_000));
        assert_eq!(count("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(count("9007199254740993"), Ok(9_007_199_254_740_993));
        assert_eq!(count("99999999999999999999"), Ok(u64::MAX));
        assert_eq!(count("0"), Ok(0));
        for bad in ["-1", "2.5", "nan", "inf", "-inf"] {
            assert!(matches!(count(bad), Err(Error::Parameter { name: "steps", .. })), "{bad}");
        }
        assert!("many".parse::<Count>().is_err());
        assert!("".parse::<Count>().is_err());
    }

    #[test]
    fn senseless_numbers_are_read_and_words_are_not() {
        assert_eq!("-1".parse(), Ok(Number(-1.0)));
        assert!("nan".parse::<Number>().unwrap().0.is_nan());
        assert!("one".parse::<Number>().is_err());
        // Only a word means infinity.
        for word in ["inf", "Infinity", "-inf"] {
            assert!(word.parse::<Number>().unwrap().0.is_infinite(), "{word}");
        }
        for digits in ["1e999", "-1e999", "9".repeat(400).as_str()] {
            let read = digits.parse::<Number>().unwrap().0;
            assert!(read.is_finite() && read.abs() > 1e300, "{digits}");
            assert_eq!(digits.parse(), Ok(Numbers(vec![read])));
        }
        assert_eq!("1,-0.5".parse(), Ok(Numbers(vec![1.0, -0.5])));
        assert!("1,,2".parse::<Numbers>().is_err());
    }
}
