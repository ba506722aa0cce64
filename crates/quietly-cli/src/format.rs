//! Numbers and text for reading: rounded to the safe side, wrapped, and the odds in words.
use quietly_accounting::PrivacyBound;
use serde_json::{Value, json};

/// A JSON number, or the string "infinity", as JSON has no such number.
pub fn json(x: f64) -> Value {
    if x.is_finite() {
        Value::from(x)
    } else if x > 0.0 {
        Value::from("infinity")
    } else {
        Value::from(format!("{x}"))
    }
}

/// An interval as JSON.
pub(crate) fn interval_json(answer: &PrivacyBound) -> Value {
    json!({ "lower": json(answer.lower), "upper": json(answer.upper) })
}

/// "between 1.827 and 1.829", the lower end rounded down and the upper end up.
pub(crate) fn between(answer: &PrivacyBound) -> String {
    if answer.upper.is_infinite() {
        return format!("at least {}, with no finite bound", low(answer.lower));
    }
    let (lower, upper) = (low(answer.lower), high(answer.upper));
    if lower == upper { lower } else { format!("between {lower} and {upper}") }
}

/// Four significant digits, not above `x`.
pub(crate) fn low(x: f64) -> String {
    digits(x, f64::floor)
}

/// Four significant digits, not below `x`.
pub(crate) fn high(x: f64) -> String {
    digits(x, f64::ceil)
}

fn digits(x: f64, round: fn(f64) -> f64) -> String {
    if x == 0.0 || !x.is_finite() {
        return if x == 0.0 { "0".into() } else { "infinity".into() };
    }
    let power = x.abs().log10().floor() as i32;
    if power < -3 {
        let scale = 10.0_f64.powi(-power);
        return format!("{:.3}e{power}", round(x * scale * 1e3) / 1e3);
    }
    let places = (3 - power).max(0);
    let scale = 10.0_f64.powi(places);
    format!("{:.*}", places as usize, round(x * scale) / scale)
}

/// The next number up with five significant digits.
pub(crate) fn neat_above(x: f64) -> f64 {
    let scale = 10.0_f64.powi(4 - x.abs().log10().floor() as i32);
    (x * scale).ceil() / scale
}

/// The next number down with five significant digits.
pub(crate) fn neat_below(x: f64) -> f64 {
    let scale = 10.0_f64.powi(4 - x.abs().log10().floor() as i32);
    (x * scale).floor() / scale
}

/// A round ε to suggest next, below `epsilon`.
pub(crate) fn suggestion(epsilon: f64) -> f64 {
    if epsilon > 1.1 {
        return 1.0;
    }
    let half = (0.5 * epsilon).max(0.001);
    let scale = 10.0_f64.powi(-(half.log10().floor() as i32));
    (half * scale).round() / scale
}

/// The theorem behind the upper end, and the chance that sampling misled it.
pub(crate) fn theorem(answer: &PrivacyBound) -> String {
    if answer.failure == 0.0 {
        return format!("theorem: {}", answer.method);
    }
    format!(
        "theorem: {}. Sampled with a seed fixed in the source; the chance of {:.0e} that the draws mislead is \
         counted inside delta.",
        answer.method, answer.failure
    )
}

/// What the price means for one person: how often the best guess can be right.
///
/// (ε, δ) bounds the accuracy of any guess from even odds by (e^ε + δ)/(1 + e^ε), and that is all it bounds: the chance that a
/// result moves the odds further than e^ε can be many times δ.
pub(crate) fn odds(epsilon: f64, delta: f64) -> String {
    let right =
        (100.0 + 100.0 * delta.clamp(0.0, 1.0) * (-epsilon).exp()) / (1.0 + (-epsilon).exp());
    if right > 99.94 || !right.is_finite() {
        return "if someone's guess about you was 50 : 50, after seeing the result it may be close to certain: at this \
                epsilon the bound gives no meaningful protection. More noise or fewer steps bring it down."
            .into();
    }
    // Show the digits in which the odds differ from what they were, rounded up.
    let places = if epsilon < 0.005 { 2 } else { 1 };
    let unit = 10.0_f64.powi(places as i32);
    let right = (right * unit * (1.0 - 1e-12)).ceil() / unit;
    let before =
        "if someone's guess about you was 50 : 50, with the result in hand it is right at most";
    format!(
        "{before} {right:.places$} times in 100 ({right:.places$} : {:.places$}).",
        100.0 - right
    )
}

/// `text` in lines of at most `width`, each after `indent`.
pub fn wrap(text: &str, indent: &str, width: usize) -> String {
    let mut lines = vec![String::from(indent)];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("starts with one line");
        if line.len() > indent.len() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(format!("{indent}{word}"));
        } else {
            if line.len() > indent.len() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odds_read_as_promised() {
        // 73.106 of 100, rounded up.
        let said = odds(1.0, 1e-5);
        assert_eq!(
            said,
            "if someone's guess about you was 50 : 50, with the result in hand it is right at most 73.2 times in \
             100 (73.2 : 26.8)."
        );
        assert!(odds(0.0015, 1e-12).contains("(50.04 : 49.96)"));
        assert!(odds(5.0, 1e-5).contains("(99.4 : 0.6)"));
        // A large δ counts: (e + 1/2)/(1 + e) = 0.8655.
        assert!(odds(1.0, 0.5).contains("(86.6 : 13.4)"), "{}", odds(1.0, 0.5));
        for huge in [8.0, 800.0, 1e5, f64::INFINITY] {
            assert!(odds(huge, 1e-5).contains("no meaningful protection"), "{huge}");
        }
    }

    #[test]
    fn rounding_stays_on_the_safe_side() {
        assert_eq!((low(1.82715), high(1.82715)), ("1.827".into(), "1.828".into()));
        assert_eq!((low(0.012345), high(0.012345)), ("0.01234".into(), "0.01235".into()));
        assert_eq!((low(1.23456e-7), high(1.23456e-7)), ("1.234e-7".into(), "1.235e-7".into()));
        assert_eq!((low(12345.6), high(12345.6)), ("12345".into(), "12346".into()));
        assert_eq!(high(f64::INFINITY), "infinity");
        assert_eq!(neat_above(1.234561), 1.2346);
    }

    #[test]
    fn suggestions_are_below_what_was_found() {
        for epsilon in [0.01, 0.3, 0.9, 1.9, 2.1, 70.0] {
            assert!(suggestion(epsilon) < epsilon, "{epsilon}");
        }
    }

    #[test]
    fn json_never_holds_a_nan() {
        assert_eq!(json(f64::INFINITY), "infinity");
        assert_eq!(json(f64::NAN), "NaN");
        assert_eq!(json(0.5), 0.5);
    }

    #[test]
    fn wrapped_lines_fit() {
        let text = wrap(&odds(1.0, 1e-5), "  ", 40);
        assert!(text.lines().count() > 3 && text.lines().all(|l| l.len() <= 40));
    }
}
