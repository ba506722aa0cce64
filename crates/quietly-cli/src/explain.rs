//! `quietly explain CODE`, and the page docs/errors.md, from one table.
use serde_json::json;

use crate::{failure::Failure, screen::Screen, words};

/// One code, explained.
pub(crate) struct Entry {
    pub(crate) code: &'static str,
    title: &'static str,
    why: &'static str,
    fix: &'static str,
    example: &'static str,
}

/// Every code that the library and the command can produce. A for accounting, C for the command line.
pub(crate) const ENTRIES: [Entry; 12] = [
    Entry {
        code: "A01",
        title: "a parameter is outside its domain",
        why: "A parameter has a value for which the theorem means nothing, such as noise below zero, a rate above \
              1, no steps at all or lambda = 1. A delta of 0 has no finite answer wherever the noise is Gaussian. The \
              message names the flag, the values it may have and the one it has.",
        fix: "Change that flag. Nothing was computed, and no default took its place.",
        example: "quietly account poisson --rate 0.01 --noise 1 --steps 1000 --delta 1e-5",
    },
    Entry {
        code: "A02",
        title: "no theorem covers this scheme",
        why: "What was described can be run, but nobody has proven a useful price for it, at least under this \
              neighbouring relation. A price for some other scheme would be a guess, and is not given.",
        fix: "Use the scheme that the message names, and run that one as well.",
        example: "quietly account correlated --bands 1,0.5 --period 4 --rate 0.1 --noise 5 --steps 100 --delta 1e-5",
    },
    Entry {
        code: "A03",
        title: "a count, or a product of counts, is too large",
        why: "Steps are counted up to ten million in all: steps times epochs, too. Beyond that rounding could not be \
              bounded, and a wrapped product would charge for too little.",
        fix: "Lower the flag that is named, or split the run and add up the epsilons and the deltas of its parts.",
        example: "quietly account allocation --steps 1000 --epochs 10 --noise 2 --delta 1e-5",
    },
    Entry {
        code: "A04",
        title: "no noise meets the budget",
        why: "`calibrate` tries noise from 0.1 to 100000 times what one record can add. Even the most of it costs more \
              than was asked for.",
        fix: "Ask for a larger epsilon or delta, take fewer steps, or sample less.",
        example: "quietly calibrate poisson --rate 0.01 --steps 1000 --epsilon 1 --delta 1e-5",
    },
    Entry {
        code: "C01",
        title: "participation is missing or ambiguous",
        why: "With correlated noise the price depends on the steps in which one record takes part. Exactly one \
              description of that is needed.",
        fix: "Give one of: --full; --rate Q; --bins B; --period P, perhaps with --rate Q; --separation S with \
              --participations K; --records N with --batch B.",
        example: "quietly account correlated --lambda 0.9 --rate 0.1 --noise 118 --steps 1000 --delta 1e-5 --json",
    },
    Entry {
        code: "C02",
        title: "this is not a number",
        why: "The value of a flag could not be read as a number, or as a list of numbers for --bands.",
        fix: "Write numbers with a point and without units: 0.01, 1e-5, 1000, 1e6.",
        example: "quietly account gaussian --noise 2 --steps 10 --delta 1e-5",
    },
    Entry {
        code: "C03",
        title: "the question is missing, or there are two",
        why: "A run has a whole curve of prices. --delta asks for the epsilon at that delta, --epsilon asks for the \
              delta at that epsilon.",
        fix: "Give exactly one of them.",
        example: "quietly account gaussian --noise 2 --steps 10 --epsilon 1",
    },
    Entry {
        code: "C04",
        title: "the strategy is missing, or there are two",
        why: "Correlated noise is described either by one number, --lambda, or by the first coefficients of a Toeplitz \
              matrix, --bands.",
        fix: "Give exactly one of them. --lambda 0 is independent noise.",
        example: "quietly account correlated --bands 1,0.5,0.25 --full --noise 50 --steps 100 --delta 1e-5",
    },
    Entry {
        code: "C05",
        title: "the command was not understood",
        why: "A word or a flag is unknown, is missing, or stands where it cannot stand.",
        fix: "Every help page starts with an example that works as it is.",
        example: "quietly account --help",
    },
    Entry {
        code: "C06",
        title: "there is no such code",
        why: "`quietly explain` was asked for a code that does not exist in this version.",
        fix: "List the codes, or take the one in brackets after the word `error`.",
        example: "quietly explain",
    },
    Entry {
        code: "C07",
        title: "the result could not be written",
        why: "The answer was there, but writing it failed: a full disk, or a closed file. A pipe whose reader stops \
              early, such as `head`, is no error.",
        fix: "Make room, or write somewhere else.",
        example: "quietly account gaussian --noise 2 --steps 10 --delta 1e-5 --json",
    },
    Entry {
        code: "C08",
        title: "something in quietly broke",
        why: "A bug. No answer was given, because it could not be trusted.",
        fix: "Please report it with the command you typed; it holds parameters only, no data.",
        example: "quietly --version",
    },
];

/// Says what a code means, or lists all of them.
pub(crate) fn run(
    code: Option<&str>,
    markdown: bool,
    json: bool,
    screen: &mut Screen,
) -> Result<(), Failure> {
    if markdown {
        return Ok(screen.say(&page())?);
    }
    let Some(code) = code else {
        if json {
            let all: Vec<_> = ENTRIES.iter().map(Entry::json).collect();
            return Ok(screen.say_json(&json!({ "codes": all }))?);
        }
        for entry in &ENTRIES {
            screen.say(&format!("{}  {}", screen.bold(entry.code), entry.title))?;
        }
        return Ok(screen.say("\nnext: quietly explain A01")?);
    };
    let wanted = code.trim_matches(['[', ']']).to_ascii_uppercase();
    let found = ENTRIES.iter().find(|e| e.code == wanted);
    let entry = found.ok_or_else(|| Failure::NoSuchCode(code.into()))?;
    if json {
        return Ok(screen.say_json(&entry.json())?);
    }
    let title = screen.bold(&format!("{}: {}", entry.code, entry.title));
    let body = |text| words::wrap(text, "  ", crate::screen::WIDTH);
    screen.say(&format!("{title}\n\n{}\n\n{}\n", body(entry.why), body(entry.fix)))?;
    Ok(screen.say(&format!("for example:\n  {}", entry.example))?)
}

impl Entry {
    fn json(&self) -> serde_json::Value {
        json!({
            "code": self.code, "title": self.title, "why": self.why, "fix": self.fix, "example": self.example,
        })
    }
}

/// docs/errors.md.
fn page() -> String {
    let mut text = String::from(
        "# Error codes\n\n\
         Every refusal has a code that stays. `quietly explain CODE` prints what stands here; this page is made by\n\
         `quietly explain --markdown` and a test compares them.\n\n\
         Exit status: 0 done; 1 refused, as the parameters, the theorems or the budget do not allow it (A codes);\n\
         2 not understood or broken (C codes). Errors go to stderr, with `--json` as JSON, and nothing goes to stdout.\n",
    );
    for entry in &ENTRIES {
        let body = |text| words::wrap(text, "", 100);
        text.push_str(&format!("\n## {}: {}\n\n{}\n\n", entry.code, entry.title, body(entry.why)));
        text.push_str(&format!("{}\n\n```console\n$ {}\n```\n", body(entry.fix), entry.example));
    }
    text.trim_end().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The codes that stand as string literals in some source text.
    fn codes(source: &str) -> Vec<String> {
        let quoted = source.split('"').skip(1).step_by(2);
        let looks = |c: &&str| {
            c.len() == 3 && c.starts_with(['A', 'C']) && c[1..].bytes().all(|b| b.is_ascii_digit())
        };
        quoted.filter(looks).map(String::from).collect()
    }

    #[test]
    fn every_code_is_explained_and_no_other() {
        let mut produced = codes(include_str!("failure.rs").split("#[cfg(test)]").next().unwrap());
        produced.extend(codes(include_str!("../../quietly-accounting/src/error.rs")));
        produced.sort();
        let mut explained: Vec<&str> = ENTRIES.iter().map(|e| e.code).collect();
        explained.sort_unstable();
        assert_eq!(produced, explained);
        assert!(produced.len() >= 12, "{produced:?}");
    }
}
