//! The lines of a ledger file: JSON, one for every event, each with the digest of the one before.
//!
//! A version 1 reader knows `when`, `what`, `epsilon` and `delta`, and skips the other fields: to
//! it, a finished run is a charge of nothing.
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{budget::Budget, group::Group};

/// What the first line says.
pub(super) const FORMAT: &str = "quietly ledger";

/// The first line: what may be spent in all.
#[derive(Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) format: String,
    pub(super) version: u64,
    pub(super) limit: Budget,
}

/// What a line is about; a charge if it does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    /// A run is charged.
    #[default]
    Begin,
    /// Its result is saved, and it never resumes.
    Finish,
    /// The end of the file was repaired.
    Repair,
}

/// Any line but the first.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Line {
    pub(super) when: u64,
    pub(super) what: String,
    pub(super) epsilon: f64,
    pub(super) delta: f64,
    /// The number of rows of a unit: the cost is for all of them.
    #[serde(rename = "rows_per_unit", default, skip_serializing_if = "Group::is_one_row")]
    pub(super) group: Group,
    #[serde(default)]
    pub(super) kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) allocation: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) prev: Option<String>,
}

impl Line {
    pub(super) fn is_sound(&self) -> bool {
        let fine = |x: f64| x >= 0.0 && x.is_finite();
        fine(self.epsilon) && fine(self.delta)
    }
}

/// A line, if that is what it is.
pub(super) fn read<T: for<'a> Deserialize<'a>>(line: &str) -> Option<T> {
    serde_json::from_str(line).ok()
}

/// A line as it stands in the file.
pub(super) fn written(line: &impl Serialize) -> String {
    serde_json::to_string(line).expect("plain fields") + "\n"
}

/// The digest of a line.
pub fn digest(line: &str) -> String {
    let bytes = Sha256::digest(line.as_bytes());
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// Text for a line: short, and without characters that change how it is shown.
pub(super) fn plain(text: &str) -> String {
    let turns = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().filter(|c| !c.is_control() && !turns(*c)).take(200).collect()
}

/// A time as ISO 8601 writes it: `2026-03-02T09:14:05Z`.
pub(super) fn iso_8601(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Howard Hinnant's civil_from_days: years begin in March, so that a leap day ends one.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + 400 * era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The dates are those of `date -u -d @N +%FT%TZ` (GNU coreutils).
    #[test]
    fn times_are_written_as_everybody_reads_them() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_772_442_845, "2026-03-02T09:14:05Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(iso_8601(seconds), text);
        }
    }

    /// The digest is that of `printf abc | sha256sum`.
    #[test]
    fn a_digest_is_that_of_other_tools() {
        let abc = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest("abc"), abc);
    }
}
