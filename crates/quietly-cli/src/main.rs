//! The `quietly` command: private models with their certificates, and what any private computation costs.
//!
//! This crate reads flags, asks `quietly` and `quietly-accounting`, and prints. There is no privacy arithmetic in it.
//!
//! * `args` declares the command line, `help` its pages; `tables`, `scheme` and `correlated` turn flags into questions.
//! * `init`, `bounds`, `check`, `fit` (with `plan`, `loss`, `network` and `auto`), `methods`, `predict`, `evaluate`, `certificate`, `label`, `show`, `ledger` (`quietly budget`), `diagnose` and `example` are the verbs on tables.
//! * `prepare`, `elsewhere` and `cluster` are for tables that are not held: grouped by step, in parts, or on other machines.
//! * `side_by_side` (`quietly compare`) and `reproduce` try methods against each other, by `trial`, and draw with `chart`.
//! * `account`, `calibrate`, `compare` and `explain` are the verbs on mechanisms.
//! * `audit` attacks on made-up tables, and draws what it saw with `svg`.
//! * `failure` holds every error with its code, `hints` what to do about each; `words`, `plot`, `screen`, `output`, `reserved` and `stop` deal with the world.
#![forbid(unsafe_code)]

use std::{panic, process::ExitCode, sync::Mutex};

use clap::{FromArgMatches, error::ErrorKind};

use crate::{
    args::{Account, Cli, Verb},
    failure::Failure,
    screen::Screen,
};

mod account;
mod args;
mod audit;
mod auto;
mod bounds;
mod calibrate;
mod certificate;
mod chart;
mod check;
mod cluster;
mod compare;
mod correlated;
mod diagnose;
mod elsewhere;
mod evaluate;
mod example;
mod explain;
mod failure;
mod fit;
mod help;
mod hints;
mod init;
mod label;
mod ledger;
mod loss;
mod methods;
mod network;
mod number;
mod output;
mod plot;
mod predict;
mod prepare;
mod recipe;
mod reproduce;
mod reserved;
mod scheme;
mod screen;
mod show;
mod side_by_side;
mod stop;
mod svg;
mod tables;
mod trial;
mod words;

/// Where a bug was, for the report.
static PLACE: Mutex<String> = Mutex::new(String::new());

fn main() -> ExitCode {
    quietly::forbid_core_files();
    stop::listen();
    // A bug is reported like every other failure, and never as an answer: where it was, but not what it says, which may
    // depend on data.
    panic::set_hook(Box::new(|info| {
        if let (Ok(mut place), Some(at)) = (PLACE.lock(), info.location()) {
            *place = format!("{}, line {}", shown(at.file()), at.line());
        }
    }));
    let result = panic::catch_unwind(run).unwrap_or_else(|_| {
        let place = PLACE.lock().map(|p| p.clone()).unwrap_or_default();
        Err(Failure::Broken(place))
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(wants_json()).into(),
    }
}

/// Where a source file is, without the folders of the machine that built this: those of a
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

/// Whether errors, too, are for programs.
fn wants_json() -> bool {
    std::env::args_os().any(|a| a == "--json")
}

fn run() -> Result<(), Failure> {
    let mut screen = Screen::new();
    let parsed = help::command()
        .try_get_matches_from(args::joined(std::env::args_os()))
        .and_then(|m| Cli::from_arg_matches(&m));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(page) if matches!(page.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            return Ok(screen.say(page.render().to_string().trim_end())?);
        }
        Err(error) => return Err(Failure::from_clap(&error)),
    };
    match &cli.verb {
        Verb::Example { folder, json } => example::run(folder, *json, &mut screen),
        Verb::Init(init) => init::run(init, &mut screen),
        Verb::Bounds(bounds) => bounds::run(bounds, &mut screen),
        Verb::Check(check) => check::run(check, &mut screen),
        Verb::Prepare(prepare) => prepare::run(prepare, &mut screen),
        Verb::Plan(only) => fit::plan(only, &mut screen),
        Verb::Fit(fit) => fit::fit(fit, &mut screen),
        Verb::Methods(methods) => methods::run(methods, &mut screen),
        Verb::Predict(predict) => predict::run(predict, &mut screen),
        Verb::Evaluate(evaluate) => evaluate::run(evaluate, &mut screen),
        Verb::Certificate(show) => certificate::run(show, &mut screen),
        Verb::Label(label) => label::run(label, &mut screen),
        Verb::Show(look) => show::run(look, &mut screen),
        Verb::Budget(account) => ledger::run(account, &mut screen),
        Verb::Compare(compare) => side_by_side::run(compare, &mut screen),
        Verb::Diagnose(asked) => diagnose::run(asked, &mut screen),
        Verb::Reproduce { what } => reproduce::run(what, &mut screen),
        Verb::Account { what: Account::Scheme(scheme) } => {
            let (plan, setting, question) = scheme.parts()?;
            account::run(&plan, setting, question, &mut screen)
        }
        Verb::Account { what: Account::Compare(compare) } => compare::run(compare, &mut screen),
        Verb::Calibrate { what } => {
            let (plan, _, budget) = what.parts()?;
            calibrate::run(&plan, budget, &mut screen)
        }
        Verb::Audit { what } => audit::run(what, &mut screen),
        Verb::Explain { code, markdown, json } => {
            explain::run(code.as_deref(), *markdown, *json, &mut screen)
        }
    }
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
