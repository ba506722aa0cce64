//! What the commands of this workspace share around their verbs: parsing, errors, panics and
//! signals, each with the same exit codes.
use std::{
    panic::{self, AssertUnwindSafe},
    process::ExitCode,
    sync::Mutex,
};

use clap::{Command, FromArgMatches, error::ErrorKind};

use crate::{args, error::Failure, interrupt, terminal::Screen};

/// Where a panic happened, for the error message.
static PLACE: Mutex<String> = Mutex::new(String::new());

/// Parses the arguments of the process as `command` declares them, and runs `work` with them.
///
/// Help and version go to stdout. An error goes to stderr, with exit code 1 or 2; so does a panic,
/// which is a bug. A signal ends the process with exit code 130 and removes partial output.
pub fn run<T: FromArgMatches>(
    command: Command,
    work: impl FnOnce(T, &mut Screen) -> Result<(), Failure>,
) -> ExitCode {
    quietly::forbid_core_files();
    interrupt::listen();
    // The message of a panic may depend on data, so only its place is reported.
    panic::set_hook(Box::new(|info| {
        if let (Ok(mut place), Some(at)) = (PLACE.lock(), info.location()) {
            *place = format!("{}, line {}", shown(at.file()), at.line());
        }
    }));
    let result = panic::catch_unwind(AssertUnwindSafe(|| parse_and_run(command, work)));
    let result = result.unwrap_or_else(|_| {
        let place = PLACE.lock().map(|p| p.clone()).unwrap_or_default();
        Err(Failure::Broken(place))
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(wants_json()).into(),
    }
}

fn parse_and_run<T: FromArgMatches>(
    command: Command,
    work: impl FnOnce(T, &mut Screen) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut screen = Screen::new();
    let parsed = command
        .clone()
        .try_get_matches_from(args::joined(std::env::args_os()))
        .and_then(|matches| T::from_arg_matches(&matches));
    match parsed {
        Ok(parsed) => work(parsed, &mut screen),
        Err(page) if matches!(page.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            Ok(screen.say(page.render().to_string().trim_end())?)
        }
        Err(error) => Err(Failure::from_clap(&error, &command)),
    }
}

/// The path of a source file without the folders of the machine that built this: those of a
/// dependency are absolute. `arrow-ipc-59.0.0/src/convert.rs` and `crates/quietly/src/plan.rs`.
fn shown(file: &str) -> String {
    let parts: Vec<&str> = file.split(['/', '\\']).collect();
    if !std::path::Path::new(file).has_root() && !file.contains(':') {
        return parts.join("/");
    }
    // A package's sources are in src, or in library/NAME/src of the compiler.
    match parts.iter().rposition(|part| *part == "src") {
        Some(source) => parts[source.saturating_sub(1)..].join("/"),
        None => parts[parts.len() - 1].into(),
    }
}

/// Whether errors, too, are printed as JSON.
pub(crate) fn wants_json() -> bool {
    std::env::args_os().any(|a| a == "--json")
}

/// The example at the head of a help page: lines that work in this order, in an empty folder.
pub fn example(lines: &[&str]) -> String {
    format!("Example:\n  {}", lines.join("\n  "))
}

/// The help page of the subcommand that was typed, as far as it is known:
/// `quietly account poisson`.
pub(crate) fn page_of(command: &Command, typed: impl Iterator<Item = String>) -> String {
    let mut page = command.get_name().to_string();
    let mut at = command;
    for word in typed {
        let Some(next) = at.find_subcommand(&word) else { break };
        page = format!("{page} {word}");
        at = next;
    }
    page
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_panic_does_not_tell_who_built_this() {
        for (file, want) in [
            ("crates/quietly/src/plan.rs", "crates/quietly/src/plan.rs"),
            (
                "/home/me/.cargo/registry/src/index.crates.io-1/arrow-ipc-59.3.2/src/convert.rs",
                "arrow-ipc-59.3.2/src/convert.rs",
            ),
            ("/home/me/src/quietly/crates/quietly/src/plan/run.rs", "quietly/src/plan/run.rs"),
            ("C:\\Users\\me\\.cargo\\zstd-0.13\\src\\lib.rs", "zstd-0.13/src/lib.rs"),
            ("/rustc/0a1b/library/core/src/option.rs", "core/src/option.rs"),
            ("/home/me/x.rs", "x.rs"),
        ] {
            assert_eq!(super::shown(file), want);
        }
    }
}
