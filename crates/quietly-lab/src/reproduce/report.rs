//! The report of a reproduction: a page, the same as JSON, and charts.
use std::{fmt::Write as _, path::PathBuf};

use quietly_cli::format;
use serde_json::{Value, json};

use crate::reproduce::claim::{Claim, Verdict};

/// Everything that was found.
pub(crate) struct Report {
    pub(crate) title: String,
    /// What was run and what was left out, in sentences.
    pub(crate) about: Vec<String>,
    pub(crate) claims: Vec<Claim>,
    pub(crate) tables: Vec<Grid>,
    /// File names, captions and SVG.
    pub(crate) pictures: Vec<(String, String, String)>,
    /// File names, captions and PNG.
    pub(crate) bitmaps: Vec<(String, String, Vec<u8>)>,
    /// Files of a run in progress, which the finished report replaces.
    pub(crate) kept: Vec<PathBuf>,
    pub(crate) seconds: f64,
}

/// A table of results.
pub(crate) struct Grid {
    pub(crate) title: String,
    pub(crate) note: String,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<Entry>>,
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Entry {
    Word(String),
    Number(f64),
    /// A number of which four decimals count.
    Fine(f64),
    /// A number that belongs to another method, with its mark.
    Marked(f64, &'static str),
    Nothing,
}

impl Entry {
    pub(crate) fn of(value: Option<f64>) -> Entry {
        value.map_or(Entry::Nothing, Entry::Number)
    }

    pub(crate) fn text(&self) -> String {
        match self {
            Entry::Word(word) => word.clone(),
            Entry::Number(value) => number(*value),
            Entry::Fine(value) if value.is_finite() => format!("{value:.4}"),
            Entry::Fine(value) => number(*value),
            Entry::Marked(value, mark) => format!("{}{mark}", number(*value)),
            Entry::Nothing => "-".into(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Entry::Word(word) => word.clone().into(),
            Entry::Number(value) | Entry::Fine(value) => format::json(*value),
            Entry::Marked(value, _) => json!({ "value": format::json(*value), "stand_in": true }),
            Entry::Nothing => Value::Null,
        }
    }
}

/// Two digits that count.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => "diverged".into(),
        0.0 => "0".into(),
        size if !(1e-3..1e4).contains(&size) => format!("{value:.1e}"),
        size => {
            let places = (1 - size.log10().floor() as i32).max(0) as usize;
            format!("{value:.places$}")
        }
    }
}

impl Grid {
    pub(crate) fn markdown(&self) -> String {
        let mut text = format!("## {}\n\n", self.title);
        if !self.note.is_empty() {
            let _ = writeln!(text, "{}\n", self.note);
        }
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        text += &line(self.columns.clone());
        text += &line(vec!["---".into(); self.columns.len()]);
        for row in &self.rows {
            text += &line(row.iter().map(Entry::text).collect());
        }
        text
    }

    fn json(&self) -> Value {
        let row = |row: &Vec<Entry>| -> Value {
            let cells = self.columns.iter().cloned().zip(row.iter().map(Entry::json));
            Value::Object(cells.collect())
        };
        let rows: Vec<Value> = self.rows.iter().map(row).collect();
        json!({ "title": self.title, "note": self.note, "rows": rows })
    }
}

impl Report {
    /// One line for each claim, for the screen.
    pub(crate) fn verdicts(&self, width: usize) -> String {
        let each = self.claims.iter().map(|c| {
            let head = format!("{:<15}", format!("{}:", c.verdict().name()));
            let said = format::wrap(&format!("{} [{}]", c.says, c.from), "                ", width);
            let why = format::wrap(&c.why(), "                  ", width);
            format!("{head} {}\n{why}", said.trim_start())
        });
        each.collect::<Vec<_>>().join("\n")
    }

    /// "7 reproduced, 2 partly, 1 not reproduced, 0 not measured".
    pub(crate) fn tally(&self) -> String {
        let kinds = [Verdict::Reproduced, Verdict::Partly, Verdict::Not, Verdict::NotMeasured];
        let count = |kind| self.claims.iter().filter(|c| c.verdict() == kind).count();
        kinds.map(|kind| format!("{} {}", count(kind), kind.name())).join(", ")
    }

    pub(crate) fn markdown(&self) -> String {
        let mut text = format!("# {}\n\n", self.title);
        for line in &self.about {
            let _ = writeln!(text, "{line}\n");
        }
        text += "## Claims\n\n";
        let _ = writeln!(text, "{}.\n", self.tally());
        text += "| claim | source | verdict | why |\n| --- | --- | --- | --- |\n";
        for claim in &self.claims {
            let (verdict, why) = (claim.verdict().name(), claim.why());
            let _ = writeln!(text, "| {} | {} | **{verdict}** | {why} |", claim.says, claim.from);
        }
        let drawn = self.pictures.iter().map(|(file, caption, _)| (file, caption));
        for (file, caption) in drawn.chain(self.bitmaps.iter().map(|(f, c, _)| (f, c))) {
            let _ = write!(text, "\n![{caption}]({file})\n");
        }
        for grid in &self.tables {
            let _ = write!(text, "\n{}", grid.markdown());
        }
        text
    }

    /// All charts and pictures, by file name.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let drawn = self.pictures.iter().map(|(name, _, svg)| (name.as_str(), svg.as_bytes()));
        drawn.chain(self.bitmaps.iter().map(|(name, _, png)| (name.as_str(), png.as_slice())))
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "title": self.title,
            "about": self.about,
            "claims": self.claims.iter().map(Claim::json).collect::<Vec<_>>(),
            "tables": self.tables.iter().map(Grid::json).collect::<Vec<_>>(),
            "pictures": self.files().map(|(name, _)| name).collect::<Vec<_>>(),
            "seconds": self.seconds,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::claim::Check;

    #[test]
    fn numbers_are_short() {
        let all = [0.0, 1.0, -2.04, 0.0123, 12.7, 256.0, 3.21e-6, 1e30, f64::INFINITY];
        let told = all.map(number).join(" ");
        assert_eq!(told, "0 1.0 -2.0 0.012 13 256 3.2e-6 1.0e30 diverged");
    }

    #[test]
    fn the_page_and_the_json_say_the_same() {
        let bad = Claim::new("up", "here", vec![Check::above("x", Some(1.0), 2.0)]);
        let rows = vec![vec![Entry::Word("a".into()), Entry::Number(0.5), Entry::Nothing]];
        let columns = ["method", "risk", "none"].map(String::from).into();
        let grid = Grid { title: "t".into(), note: String::new(), columns, rows };
        let report = Report {
            title: "r".into(),
            about: vec!["small".into()],
            claims: vec![bad],
            tables: vec![grid],
            pictures: vec![],
            bitmaps: vec![],
            kept: vec![],
            seconds: 1.0,
        };
        let page = report.markdown();
        assert!(
            page.contains("| up | here | **not reproduced** | x 1.0, NOT at least 2.0 |"),
            "{page}"
        );
        assert!(page.contains("| a | 0.50 | - |"), "{page}");
        let value = report.json();
        assert_eq!(value["claims"][0]["verdict"], "not reproduced");
        assert_eq!(value["tables"][0]["rows"][0]["risk"], 0.5);
        assert!(
            report.verdicts(80).starts_with("not reproduced: up [here]"),
            "{}",
            report.verdicts(80)
        );
        assert!(report.tally().contains("1 not reproduced, 0 not measured"));
    }
}
