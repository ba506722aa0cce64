//! The privacy label: a certificate as one page for people who did not make the model.
//!
//! The page is complete in itself: no scripts, no fonts, nothing external. All text of the user is escaped, and no data
//! is in it, as there is none in a certificate.
use std::{fmt::Write as _, ops::Deref};

use quietly_core::{certificate::Certificate, privacy_plan::UncheckedPlan};
use quietly_data::is_hidden;

use crate::{model::Model, plan::Plan};

mod curve;

/// What differential privacy does promise.
const COVERED: [&str; 3] = [
    "any use of the model: its weights, its predictions, plots, and whatever is computed from them later",
    "attackers who know all other rows, the algorithm and this page, with any amount of computing",
    "every release above, those of scales and thresholds included: the epsilon and delta count all of them",
];

/// What may go wrong beside the mathematics, who takes care of it, and how.
const HAZARDS: [(&str, &str, &str); 7] = [
    (
        "floating point",
        "covered",
        "noise is rounded to a lattice, exactly, and what rounding does is within the bounds",
    ),
    (
        "several releases of one table",
        "yours to check",
        "their costs add up: add all epsilons and deltas, this one's included",
    ),
    (
        "bounds looked up in the data",
        "yours to check",
        "ranges, values and the number of rows are published as the schema has them: they must come from public knowledge",
    ),
    (
        "settings tried on the same table",
        "yours to check",
        "if this model is the best of several fits, all of those fits were spent",
    ),
    (
        "scores on sensitive rows",
        "yours to check",
        "accuracy that was computed from the rows, without noise, is a separate release, and is not part of this cost",
    ),
    (
        "clocks and memory",
        "not covered",
        "how long the fit took, and what others on the same machine could see of it; the quietly command leaves no core files, other programs may",
    ),
    (
        "access",
        "not covered",
        "who can read the table itself, its copies, or the logs of other programs",
    ),
];

/// A certificate as HTML.
pub trait Label {
    /// The label: one HTML page with everything that the certificate says, the odds first.
    fn label(&self) -> String;

    /// The same in brief, to stand within another page: a notebook, say.
    fn fragment(&self) -> String;
}

impl Label for Certificate {
    fn label(&self) -> String {
        Page(self).page(("A release", "A release"), None)
    }

    fn fragment(&self) -> String {
        Page(self).fragment()
    }
}

/// A certificate that is being written as HTML.
struct Page<'a>(&'a Certificate);

impl Deref for Page<'_> {
    type Target = Certificate;

    fn deref(&self) -> &Certificate {
        self.0
    }
}

impl Page<'_> {
    fn fragment(&self) -> String {
        let mut html = String::from(
            "<div style=\"border:1px solid #8888;border-radius:6px;padding:.6em 1em;max-width:46em\">\n",
        );
        add(&mut html, &self.banner());
        add(&mut html, &format!("<p style=\"margin:.3em 0\">{}</p>", self.headline()));
        add(&mut html, "<table>");
        for (name, value) in self.facts() {
            add(
                &mut html,
                &format!("<tr><td>{name}</td><td style=\"text-align:left\">{value}</td></tr>"),
            );
        }
        add(&mut html, "</table>");
        for (heading, items) in self.lists() {
            add(&mut html, &format!("<p style=\"margin:.3em 0\"><b>{heading}</b></p>"));
            add(&mut html, &list(items));
        }
        html + "</div>\n"
    }

    /// What is public and what is not covered, in the words and the order of the text.
    fn lists(&self) -> [(&'static str, &[String]); 2] {
        [("Public", &self.public), ("Not covered", &self.not_covered)]
    }

    /// The page of a release: its name as text and as HTML, and the file's digest.
    fn page(&self, (title, what): (&str, &str), digest: Option<&str>) -> String {
        let mut html = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n<title>Privacy label: {title}</title>\n\
             <style>{STYLE}</style>\n</head>\n<body>\n<h1>Privacy label</h1>\n<p class=\"what\">{what}</p>\n",
            title = escaped(title)
        );
        add(&mut html, &self.banner());
        add(&mut html, &format!("<p class=\"odds\">{}</p>", self.headline()));
        add(&mut html, "<table class=\"facts\">");
        for (name, value) in self.facts() {
            add(&mut html, &format!("<tr><th scope=\"row\">{name}</th><td>{value}</td></tr>"));
        }
        if let Some(digest) = digest {
            let digest = escaped(digest);
            add(&mut html, &format!("<tr><th scope=\"row\">digest</th><td>{digest}</td></tr>"));
        }
        add(&mut html, "</table>");
        add(&mut html, &self.questions());
        add(&mut html, "<h2>Epsilon and delta</h2>");
        add(&mut html, &curve::figure(self.0));
        if self.budget.is_private() {
            add(&mut html, "<h2>Covered</h2>");
            add(&mut html, &list(&COVERED.map(String::from)));
        }
        for (heading, items) in self.lists() {
            add(&mut html, &format!("<h2>{heading}</h2>"));
            add(&mut html, &list(items));
        }
        if self.budget.is_private() {
            add(&mut html, &hazards(&escaped_around(&self.unit, |unit| self.scope_of(unit))));
        }
        add(&mut html, &format!("<footer>made by {}</footer>", escaped(&self.made_by)));
        html + "</body>\n</html>\n"
    }

    /// The warning at the top, if there is one.
    fn banner(&self) -> String {
        let alarm = |text: &str| {
            format!(
                "<p role=\"alert\" style=\"background:#b00020;color:white;padding:.6em 1em;font-weight:bold\">{text}</p>"
            )
        };
        if !self.budget.is_private() {
            return alarm(
                "NO PRIVACY: epsilon was infinite. This model may reveal any row of its table.",
            );
        }
        if self.test_only {
            return alarm(
                "TEST ONLY: made with a fixed seed; anyone who knows the seed can remove the noise.",
            );
        }
        String::new()
    }

    fn headline(&self) -> String {
        if !self.budget.is_private() {
            return "This model has no privacy guarantee.".into();
        }
        let odds = escaped_around(&self.unit, |unit| self.odds_of(unit));
        let (first, rest) = odds.split_at(odds.chars().next().map_or(0, char::len_utf8));
        format!("{}{rest}", first.to_uppercase())
    }

    /// Names and values, as HTML.
    fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts =
            vec![("unit of privacy", escaped_around(&self.unit, |unit| self.scope_of(unit)))];
        if !self.budget.is_private() {
            facts[0].1 = name(&self.unit);
            return facts;
        }
        let relation = escaped_around(&self.unit, |unit| self.relation_of(unit));
        facts.extend([
            ("protects", format!("{relation} ({})", self.budget.neighbours().name())),
            (
                "epsilon",
                format!("<b>{}</b> of a budget of {}", self.rounded(), self.budget.epsilon()),
            ),
            ("delta", format!("<b>{}</b>", self.budget.delta_in_words())),
            ("accountant", format!("{}, a certified upper bound", escaped(&self.theorem))),
            ("randomness", escaped(&self.randomness)),
        ]);
        facts
    }

    /// Every question that was put to the data, part by part.
    fn questions(&self) -> String {
        let mut html = String::from("<h2>Releases</h2>\n");
        if self.stages.is_empty() {
            let nothing = match self.budget.is_private() {
                true => "<p>Nothing.</p>",
                false => "<p>Everything, without noise.</p>",
            };
            return html + nothing;
        }
        add(&mut html, &format!("<p>Rows: {}.</p>", escaped(&self.sampler.to_string())));
        add(&mut html, "<table class=\"questions\">");
        add(&mut html, "<tr><th>stage</th><th>times</th><th>release</th><th>mechanism</th></tr>");
        for stage in &self.stages {
            for charge in &stage.releases {
                let release = format!("{}{}", charge.purpose, stage.whom(charge));
                let cells =
                    [stage.name.clone(), stage.steps.to_string(), release, self.how(charge)];
                let cells: String =
                    cells.iter().map(|cell| format!("<td>{}</td>", escaped(cell))).collect();
                add(&mut html, &format!("<tr>{cells}</tr>"));
            }
        }
        add(&mut html, "</table>");
        match self.chosen() {
            Some(chosen) => html + &format!("<p>Chosen: {}.</p>", escaped(&chosen)),
            None => html,
        }
    }
}

impl Model {
    /// The label of this model: [`Certificate::label`], with what was fitted.
    pub fn label(&self) -> String {
        let kind = match self.link {
            _ if self.network.is_some() => "Kolmogorov-Arnold network".into(),
            quietly_engine::link::Link::Svm => "support vector machine".into(),
            link => format!("{} regression", link.name()),
        };
        let what =
            |target: &str| format!("{kind} of {target} on {} features", self.encoding.width());
        let digest = self.digest_in_words();
        Page(&self.certificate)
            .page((&what(&self.target), &what(&name(&self.target))), Some(&digest))
    }
}

impl<P: AsRef<UncheckedPlan>> Plan<P> {
    /// The plan as it prints, to stand within another page: a notebook, say.
    pub fn fragment(&self) -> String {
        format!("<pre>{}</pre>\n", escaped(&self.to_string()))
    }
}

fn add(html: &mut String, line: &str) {
    if !line.is_empty() {
        writeln!(html, "{line}").expect("a string takes everything");
    }
}

fn hazards(scope: &str) -> String {
    let row = |(hazard, whose, how): &(&str, &str, &str)| {
        format!("<tr><th scope=\"row\">{hazard}</th><td>{whose}</td><td>{how}</td></tr>\n")
    };
    let rows: String = HAZARDS.iter().map(row).collect();
    let rows = rows + &row(&("several rows of one person", "yours to check", scope));
    format!("<h2>To check before a release</h2>\n<table class=\"hazards\">\n{rows}</table>")
}

fn list(items: &[String]) -> String {
    let items: String = items.iter().map(|item| format!("<li>{}</li>\n", escaped(item))).collect();
    format!("<ul>\n{items}</ul>")
}

/// A name that a user typed, kept from turning the text around it.
fn name(text: &str) -> String {
    format!("<bdi>{}</bdi>", escaped(text))
}

/// A sentence of ours about a unit, as HTML.
fn escaped_around(unit: &str, sentence: impl Fn(&str) -> String) -> String {
    // Our own words have nothing to escape but the apostrophe, which may stay.
    match unit {
        "row" => sentence(unit),
        unit => sentence(&name(unit)),
    }
}

/// Text that cannot be taken for a tag, an attribute or an entity.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c if c != '\n' && is_hidden(c) => safe.extend(c.escape_unicode()),
            c => safe.push(c),
        }
    }
    safe
}

const STYLE: &str = "body{font:16px/1.45 system-ui,sans-serif;max-width:46em;margin:2em auto;padding:0 1em;color:#222;background:#fff}\
h1{margin-bottom:0}h2{font-size:1.1em;margin-top:1.8em}.what{color:#666;margin-top:0}.odds{font-size:1.25em}\
table{border-collapse:collapse}th,td{text-align:left;vertical-align:top;padding:.25em 1em .25em 0;border-bottom:1px solid #ddd}\
.questions,.hazards{font-size:.9em}svg{max-width:100%;height:auto}footer{margin-top:2em;color:#666}@media print{body{margin:0}}";

#[cfg(test)]
mod tests;
