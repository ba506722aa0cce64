//! What is compared, and what came of it.
use std::env;

use crate::known::KNOWN;

/// Whether all comparisons are wanted, or those that take seconds.
pub(crate) fn all() -> bool {
    env::var("QUIETLY_PROPERTIES").is_ok_and(|value| value == "all")
}

/// So many seeds, or fewer in the fast selection.
pub(crate) fn seeds(many: u64, few: u64) -> std::ops::Range<u64> {
    0..if all() { many } else { few }
}

/// The comparisons of one test.
pub(crate) struct Report {
    property: &'static str,
    failed: Vec<String>,
}

impl Report {
    pub(crate) fn new(property: &'static str) -> Self {
        Report { property, failed: Vec::new() }
    }

    /// One comparison: `what` names it, and `measured` is to be at most `most`.
    pub(crate) fn at_most(&mut self, what: &str, measured: f64, most: f64) {
        self.line(what, measured <= most, &format!("{measured:.4}, at most {most:.4}"));
    }

    fn line(&mut self, what: &str, holds: bool, numbers: &str) {
        let name = format!("{} {what}", self.property);
        let known = KNOWN.iter().find(|known| known.0 == name);
        let verdict = match (holds, known) {
            (true, None) => "holds".to_string(),
            (true, Some(_)) => "holds here, and is on the list of known failures".to_string(),
            (false, Some((_, then))) => format!("known to fail ({then})"),
            (false, None) => "FAILS".to_string(),
        };
        println!("{name}: {numbers}: {verdict}");
        if !holds && known.is_none() {
            self.failed.push(format!("{name}: {numbers}"));
        }
    }

    /// Fails if a comparison did that is not known to.
    pub(crate) fn done(self) {
        let count = self.failed.len();
        assert!(count == 0, "{count} comparisons fail:\n{}", self.failed.join("\n"));
    }
}
