//! Every error of the command line, in the words that the user typed.
use std::{
    io::{self, Write},
    path::Path,
};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use quietly_accounting::Error;
use serde_json::json;

use crate::{format, interrupt, program, terminal::json_text};

/// Why there is no answer.
#[derive(Debug)]
#[expect(missing_docs, reason = "the messages explain the fields")]
pub enum Failure {
    /// The library's refusal; parameters bear the names of their flags.
    Refused(Error),
    /// A refusal about tables and models.
    Library(quietly::Error),
    /// A file could not be read or written.
    File { path: String, why: String },
    /// A file that is there would be replaced.
    Exists(String),
    /// Another run is about to write a file of this name.
    Busy(String),
    /// Two ledgers are named for one table.
    Ledgers { typed: String, named: String },
    /// The schema names a ledger, and rows are to be read beside it.
    Unledgered { named: String },
    /// No row of a table could be scored.
    NoRows,
    /// The output would replace what is read.
    Input(String),
    /// A folder that is there would be replaced.
    Folder(String),
    /// `bounds` was not told what it may cost.
    Price { file: String },
    /// `plan` cannot know what a schema's `*` stands for.
    Header,
    /// `bounds` was given no column.
    NoColumns { file: String },
    /// Which steps a record takes part in is not said, or said twice.
    Participation(String),
    /// A flag that has no meaning for this model.
    Misplaced(String),
    /// No method has this name.
    NoSuchMethod(String),
    /// Not a number.
    Unreadable { flag: String, typed: String, wanted: String },
    /// Neither δ nor ε was given, or both.
    Question(&'static str),
    /// `diagnose` does not know the signal, or what finding it may cost.
    Signal(String),
    /// Neither λ nor bands, or both.
    Strategy(&'static str),
    /// The command line makes no sense to clap.
    Usage { message: String, help: String },
    /// The command is incomplete; its help page says what is missing.
    Unfinished { page: String },
    /// `explain` was asked for a code that does not exist.
    NoSuchCode(String),
    /// An audit saw more than was claimed.
    Caught { seen: f64, claimed: f64 },
    /// The result could not be written.
    Output(io::Error),
    /// A bug.
    Broken(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Refused(error)
    }
}

impl From<quietly::CoreError> for Failure {
    fn from(error: quietly::CoreError) -> Failure {
        quietly::Error::from(error).into()
    }
}

impl From<quietly::Error> for Failure {
    fn from(error: quietly::Error) -> Failure {
        match error {
            quietly::Error::Accounting(error) => Failure::Refused(error),
            other => Failure::Library(other),
        }
    }
}

impl From<quietly_noise::Error> for Failure {
    fn from(error: quietly_noise::Error) -> Failure {
        Failure::Library(error.into())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Output(error)
    }
}

impl Failure {
    /// What the operating system says about a file.
    pub fn file(path: &Path, error: &io::Error) -> Failure {
        Failure::File { path: path.display().to_string(), why: error.to_string() }
    }

    /// The stable code that `quietly explain` takes.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Failure::Refused(error) => error.code(),
            Failure::Library(error) => error.code(),
            // That of a parameter outside its domain.
            Failure::Misplaced(_) => {
                let (name, want, got) = ("flags", "", String::new());
                quietly::Error::Parameter { name, want, got }.code()
            }
            Failure::Participation(_) => "C01",
            Failure::Unreadable { .. } | Failure::NoSuchMethod(_) => "C02",
            Failure::Question(_) => "C03",
            Failure::Strategy(_) => "C04",
            Failure::Usage { .. } | Failure::Unfinished { .. } => "C05",
            Failure::NoSuchCode(_) => "C06",
            Failure::Output(_) => "C07",
            Failure::Broken(_) => "C08",
            Failure::File { .. } => "C09",
            Failure::Exists(_) | Failure::Busy(_) | Failure::Input(_) | Failure::Folder(_) => "C10",
            Failure::Price { .. } | Failure::NoColumns { .. } => "C11",
            Failure::Header => "C12",
            Failure::Caught { .. } => "C13",
            Failure::Signal(_) => "C14",
            Failure::Ledgers { .. } | Failure::Unledgered { .. } => "C15",
            Failure::NoRows => "C16",
        }
    }

    /// 1 if the question was understood and refused, 2 if it was not understood or something broke, 130 if it was
    /// interrupted.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::Refused(_) | Failure::Exists(_) | Failure::Input(_) | Failure::Folder(_) => 1,
            Failure::Caught { .. } | Failure::Busy(_) => 1,
            Failure::Ledgers { .. } | Failure::Unledgered { .. } => 1,
            Failure::NoRows | Failure::Misplaced(_) => 1,
            Failure::Library(quietly::Error::Interrupted) => interrupt::EXIT,
            Failure::Library(error) if error.is_refusal() => 1,
            _ => 2,
        }
    }

    /// What was asked and what is wrong.
    pub(crate) fn message(&self) -> String {
        match self {
            // The library knows parameters by name; here each of them is a flag.
            Failure::Refused(error @ (Error::Parameter { .. } | Error::TooLarge { .. })) => {
                format!("--{}", flag_first(&error.to_string()))
            }
            Failure::Refused(error) => error.to_string(),
            // So are some of these; others stand in the schema.
            Failure::Library(error @ quietly::Error::Parameter { name, .. }) if is_flag(name) => {
                format!("--{}", flag_first(&error.to_string()))
            }
            Failure::Library(error) => with_flags(&error.to_string()),
            Failure::Misplaced(message) => message.clone(),
            Failure::File { path, why } => format!("{path}: {why}"),
            Failure::Exists(path) | Failure::Folder(path) => format!("{path} exists already"),
            Failure::Busy(path) => format!("another run is writing {path}"),
            Failure::NoRows => "no row of the table could be used: nothing was scored".into(),
            Failure::Ledgers { typed, named } => {
                format!("--ledger is {typed}, but the schema of this table names {named}")
            }
            Failure::Unledgered { named } => format!(
                "the schema of this table names the ledger {named}, and this command reads rows as public ones"
            ),
            Failure::Input(path) => format!("--output {path} would replace a file that is read"),
            Failure::Price { .. } => {
                "a range from a sensitive table has a privacy cost: give --epsilon".into()
            }
            Failure::NoColumns { file } => format!("no column of {file} was given"),
            Failure::Header => {
                "the schema's \"*\" stands for columns that only the table's header lists".into()
            }
            Failure::Participation(what) => {
                format!(
                    "correlated noise needs one participation (in which steps a row takes part): {what}"
                )
            }
            Failure::NoSuchMethod(name) => format!("there is no method {name}"),
            Failure::Unreadable { flag, typed, wanted } => {
                format!("{flag} must be {wanted}, but is '{typed}'")
            }
            Failure::Question(what) => {
                format!("give --delta to compute epsilon, or --epsilon to compute delta: {what}")
            }
            Failure::Signal(what) => {
                format!("a diagnosis needs a table or --snr: {what}")
            }
            Failure::Strategy(what) => {
                format!("correlated noise needs --lambda or --bands: {what}")
            }
            Failure::Usage { message, .. } => message.clone(),
            Failure::Unfinished { .. } => "the command is incomplete".into(),
            Failure::NoSuchCode(code) => format!("there is no error code '{code}'"),
            Failure::Caught { seen, claimed } if seen > claimed => format!(
                "epsilon is at least {}, but at most {} was claimed",
                format::low(*seen),
                format::high(*claimed)
            ),
            Failure::Caught { .. } => "the attack exceeds the claimed trade-off curve".into(),
            Failure::Output(error) => format!("the result could not be written: {error}"),
            Failure::Broken(what) => format!("something in quietly broke: {what}"),
        }
    }

    /// Writes to stderr, for people or for programs, and gives the exit code.
    pub(crate) fn report(&self, json: bool) -> u8 {
        let (code, message, hint) = (self.code(), self.message(), self.hint());
        let text = if let (Failure::Unfinished { page }, false) = (self, json) {
            page.trim_end().into()
        } else if json {
            json_text(&json!({ "error": { "code": code, "message": message, "hint": hint } }))
        } else {
            format!("error[{code}]: {message}\n  hint: {hint}\n  more: quietly explain {code}")
        };
        // If stderr is closed, the error cannot be reported.
        let _ = writeln!(io::stderr(), "{}", quietly::visible(&text));
        self.exit_code()
    }

    /// An error of the parser as a `Failure`. `command` tells which help page to name.
    pub(crate) fn from_clap(error: &clap::Error, command: &clap::Command) -> Failure {
        let text = |kind| match error.get(kind) {
            Some(ContextValue::String(text)) => text.clone(),
            _ => String::new(),
        };
        if error.kind() == ErrorKind::ValueValidation {
            let flag = text(ContextKind::InvalidArg);
            let flag = flag.split_whitespace().next().unwrap_or_default().to_string();
            let wanted =
                std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
            return Failure::Unreadable { flag, typed: text(ContextKind::InvalidValue), wanted };
        }
        if error.kind() == ErrorKind::UnknownArgument
            && matches!(std::env::args().nth(1).as_deref(), Some("fit" | "plan"))
            && text(ContextKind::InvalidArg).starts_with("--noise-multiplier")
        {
            let message =
                "--noise-multiplier is not a flag of fit: the noise is calibrated from --epsilon"
                    .into();
            let help = "`quietly account` computes the cost of a given noise multiplier".into();
            return Failure::Usage { message, help };
        }
        let renamed = match error.kind() {
            ErrorKind::UnknownArgument => renamed(&text(ContextKind::InvalidArg)),
            ErrorKind::InvalidSubcommand => renamed_verb(&text(ContextKind::InvalidSubcommand)),
            _ => None,
        };
        if let Some(message) = renamed {
            let page = program::page_of(command, std::env::args().skip(1));
            return Failure::Usage { message, help: format!("`{page} --help` lists all flags") };
        }
        let plain = error.render().to_string();
        if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            return Failure::Unfinished { page: plain };
        }
        let body = plain.split("\n\nUsage:").next().unwrap_or_default();
        let body = body.split("\n\nFor more information").next().unwrap_or_default();
        let message = body.trim_start_matches("error: ").trim().replace("\n\n", "\n");
        let page = program::page_of(command, std::env::args().skip(1));
        Failure::Usage { message, help: format!("`{page} --help` starts with an example") }
    }
}

/// Whether a parameter of the library is a flag here; others stand in the schema.
fn is_flag(name: &str) -> bool {
    let common =
        ["epsilon", "delta", "runs", "steps", "neighbours", "mechanism", "output", "checkpoint"];
    common.contains(&name) || quietly::PARAMETERS.iter().any(|info| info.name == name)
}

/// A message that begins with the name of a parameter, which becomes its flag.
fn flag_first(message: &str) -> String {
    let (name, rest) = message.split_once(' ').unwrap_or((message, ""));
    format!("{} {}", name.replace('_', "-"), with_flags(rest))
}

/// A message with flags in place of the names of parameters, which the library quotes.
fn with_flags(message: &str) -> String {
    let common = ["neighbours", "limit", "delta", "epsilon"];
    let names = common.into_iter().chain(quietly::PARAMETERS.iter().map(|info| info.name));
    names.fold(message.to_string(), |message, name| {
        message.replace(&format!("`{name}`"), &format!("--{}", name.replace('_', "-")))
    })
}

/// Flags of `account` and `calibrate` in earlier versions, and what they are called now.
const ACCOUNTED: [(&str, &str); 2] = [("noise", "noise-multiplier"), ("rate", "sampling-rate")];
/// Verbs and schemes of earlier versions, and what they are called now.
const VERBS: [(&str, &str); 4] = [
    ("allocation", "random-allocation"),
    ("prepare", "partition"),
    ("reproduce", "quietly-lab reproduce"),
    ("selection", "exponential"),
];

/// What an unknown flag is called now, if an earlier version had it.
fn renamed(flag: &str) -> Option<String> {
    let name = flag.split(['=', ' ']).next()?.strip_prefix("--")?;
    let verb = std::env::args().nth(1).unwrap_or_default();
    let table =
        if verb == "account" || verb == "calibrate" { &ACCOUNTED } else { quietly::RENAMED };
    let (_, new) = table.iter().find(|(old, _)| *old == name)?;
    Some(format!("--{name} is called --{} now", new.replace('_', "-")))
}

/// The same of a verb or a scheme.
fn renamed_verb(verb: &str) -> Option<String> {
    let (old, new) = VERBS.iter().find(|(old, _)| *old == verb)?;
    Some(format!("`{old}` is called `{new}` now"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_flags_and_keep_the_library_s_words() {
        let failure = Failure::from(quietly_accounting::Event::gaussian(-1.0).unwrap_err());
        assert_eq!(failure.code(), "A01");
        assert!(
            failure.message().starts_with("--noise-multiplier must be"),
            "{}",
            failure.message()
        );
        assert!(failure.message().ends_with("but is -1"), "{}", failure.message());
        assert!(failure.hint().starts_with("--noise-multiplier"));
    }

    #[test]
    fn refusals_and_broken_commands_differ() {
        let refused = Failure::from(quietly_accounting::Event::gaussian(f64::NAN).unwrap_err());
        assert_eq!((refused.exit_code(), Failure::Question("both").exit_code()), (1, 2));
    }
}
