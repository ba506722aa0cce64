//! Claims of the papers, compared with measurements.
use quietly_cli::format;
use serde_json::{Value, json};

use crate::reproduce::report::number;

/// A statement, and the measurements that decide it.
pub(crate) struct Claim {
    pub(crate) says: String,
    /// Its source: a theorem, a table, or this library's own documents.
    pub(crate) from: &'static str,
    pub(crate) checks: Vec<Check>,
}

/// One measurement, and where it must lie.
pub(crate) struct Check {
    pub(crate) what: String,
    /// None if it could not be measured.
    pub(crate) value: Option<f64>,
    pub(crate) from: f64,
    pub(crate) to: f64,
}

/// The verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Reproduced,
    Partly,
    Not,
    NotMeasured,
}

impl Verdict {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::Partly => "partly",
            Verdict::Not => "not reproduced",
            Verdict::NotMeasured => "not measured",
        }
    }
}

impl Check {
    /// The value must lie between these.
    pub(crate) fn within(what: impl Into<String>, value: Option<f64>, from: f64, to: f64) -> Check {
        Check { what: what.into(), value, from, to }
    }

    pub(crate) fn below(what: impl Into<String>, value: Option<f64>, to: f64) -> Check {
        Check::within(what, value, f64::NEG_INFINITY, to)
    }

    pub(crate) fn above(what: impl Into<String>, value: Option<f64>, from: f64) -> Check {
        Check::within(what, value, from, f64::INFINITY)
    }

    /// Whether it holds; what is no number does not.
    fn holds(&self) -> Option<bool> {
        self.value.map(|v| self.from <= v && v <= self.to)
    }

    fn wanted(&self) -> String {
        match (self.from.is_finite(), self.to.is_finite()) {
            (true, true) => format!("{} to {}", number(self.from), number(self.to)),
            (true, false) => format!("at least {}", number(self.from)),
            _ => format!("at most {}", number(self.to)),
        }
    }

    fn tell(&self) -> String {
        let wanted = self.wanted();
        match (self.value, self.holds()) {
            (Some(value), Some(true)) => format!("{} {} ({wanted})", self.what, number(value)),
            (Some(value), _) => format!("{} {}, NOT {wanted}", self.what, number(value)),
            (None, _) => format!("{} not measured", self.what),
        }
    }
}

impl Claim {
    pub(crate) fn new(says: impl Into<String>, from: &'static str, checks: Vec<Check>) -> Claim {
        Claim { says: says.into(), from, checks }
    }

    /// All that was measured holds, some of it, or none.
    pub(crate) fn verdict(&self) -> Verdict {
        let held: Vec<bool> = self.checks.iter().filter_map(Check::holds).collect();
        match held.iter().filter(|h| **h).count() {
            _ if held.is_empty() => Verdict::NotMeasured,
            0 => Verdict::Not,
            n if n < held.len() => Verdict::Partly,
            // What could not be measured is not reproduced.
            n if n < self.checks.len() => Verdict::Partly,
            _ => Verdict::Reproduced,
        }
    }

    /// The numbers that decided.
    pub(crate) fn why(&self) -> String {
        let told = |checks: &mut dyn Iterator<Item = &Check>| {
            checks.map(Check::tell).collect::<Vec<_>>().join("; ")
        };
        if self.checks.len() <= 6 {
            return told(&mut self.checks.iter());
        }
        let values: Vec<f64> = self.checks.iter().filter_map(|c| c.value).collect();
        let held = self.checks.iter().filter(|c| c.holds() == Some(true)).count();
        let (low, high) = values
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
        let mut why = format!("{held} of {} hold", self.checks.len());
        if !values.is_empty() {
            why += &format!("; values from {} to {}", number(low), number(high));
        }
        let mut misses = self.checks.iter().filter(|c| c.holds() != Some(true)).take(4).peekable();
        if misses.peek().is_some() {
            why += &format!("; {}", told(&mut misses));
        }
        why
    }

    pub(crate) fn json(&self) -> Value {
        let check = |c: &Check| {
            let (value, from, to) =
                (c.value.map(format::json), format::json(c.from), format::json(c.to));
            json!({ "what": c.what, "value": value, "from": from, "to": to, "holds": c.holds() })
        };
        json!({
            "claim": self.says, "source": self.from, "verdict": self.verdict().name(), "why": self.why(),
            "checks": self.checks.iter().map(check).collect::<Vec<_>>(),
        })
    }
}

/// The slope of log y on log x by least squares; none with fewer than two points that have logarithms.
pub(crate) fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let logs: Vec<(f64, f64)> = points
        .iter()
        .map(|(x, y)| (x.ln(), y.ln()))
        .filter(|(x, y)| x.is_finite() && y.is_finite())
        .collect();
    let n = logs.len() as f64;
    let (x, y) = logs.iter().fold((0.0, 0.0), |(a, b), (x, y)| (a + x / n, b + y / n));
    let across: f64 = logs.iter().map(|p| (p.0 - x) * (p.0 - x)).sum();
    let along: f64 = logs.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    (logs.len() >= 2 && across > 0.0).then(|| along / across)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_decide() {
        let claim = |values: [Option<f64>; 2]| {
            let checks = values.map(|v| Check::within("slope", v, -2.4, -1.7));
            Claim::new("risk falls as N^-2", "somewhere", checks.into())
        };
        let verdict = |values| claim(values).verdict();
        assert_eq!(verdict([Some(-2.0), Some(-1.8)]), Verdict::Reproduced);
        assert_eq!(verdict([Some(-2.0), Some(-1.0)]), Verdict::Partly);
        assert_eq!(verdict([Some(-2.0), None]), Verdict::Partly);
        assert_eq!(verdict([Some(-1.0), Some(-0.5)]), Verdict::Not);
        assert_eq!(verdict([Some(f64::NAN), Some(f64::INFINITY)]), Verdict::Not);
        assert_eq!(verdict([None, None]), Verdict::NotMeasured);
        let why = claim([Some(-2.0), Some(-1.0)]).why();
        assert_eq!(why, "slope -2.0 (-2.4 to -1.7); slope -1.0, NOT -2.4 to -1.7");
        assert_eq!(claim([None, None]).json()["verdict"], "not measured");
    }

    #[test]
    fn many_checks_are_counted_and_misses_are_named() {
        let check = |i: u32| Check::below(format!("cell {i}"), Some(f64::from(i)), 7.5);
        let claim = Claim::new("small", "somewhere", (1..=8).map(check).collect());
        assert_eq!(claim.verdict(), Verdict::Partly);
        let why = claim.why();
        assert!(why.starts_with("7 of 8 hold; values from 1.0 to 8.0; cell 8 8.0, NOT"), "{why}");
    }

    #[test]
    fn slopes_are_those_of_power_laws() {
        let law = |k: f64| [1.0, 2.0, 4.0, 9.0].map(|x: f64| (x, 3.0 * x.powf(k)));
        for k in [-2.0, 0.0, 1.5] {
            assert!((slope(&law(k)).unwrap() - k).abs() < 1e-12);
        }
        let mut wild = law(-2.0).to_vec();
        wild.extend([(5.0, -1.0), (6.0, f64::NAN), (7.0, f64::INFINITY)]);
        assert!((slope(&wild).unwrap() + 2.0).abs() < 1e-12);
        assert_eq!(slope(&[(1.0, 1.0)]), None);
        assert_eq!(slope(&[(1.0, 1.0), (1.0, 2.0)]), None);
    }
}
