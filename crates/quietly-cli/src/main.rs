//! The `quietly` command: what a differentially private computation costs, and how much noise a budget needs.
//!
//! This crate reads flags, asks `quietly-accounting` and prints. There is no privacy arithmetic in it.
//!
//! * `args` declares the command line, `help` its pages; `scheme` and `correlated` turn flags into events.
//! * `account`, `calibrate`, `compare` and `explain` are the verbs.
//! * `failure` holds every error with its code; `words`, `plot` and `screen` do the talking.
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
mod calibrate;
mod compare;
mod correlated;
mod explain;
mod failure;
mod help;
mod number;
mod plot;
mod scheme;
mod screen;
mod words;

/// Where a bug was, for the report.
static PLACE: Mutex<String> = Mutex::new(String::new());

fn main() -> ExitCode {
    let json = std::env::args_os().any(|a| a == "--json");
    // A bug is reported like every other failure, and never as an answer.
    panic::set_hook(Box::new(|info| {
        if let Ok(mut place) = PLACE.lock() {
            *place = info.to_string().replace('\n', " ");
        }
    }));
    let result = panic::catch_unwind(run).unwrap_or_else(|_| {
        let place = PLACE.lock().map(|p| p.clone()).unwrap_or_default();
        Err(Failure::Broken(place))
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(json).into(),
    }
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
        Verb::Account { what: Account::Scheme(scheme) } => {
            let (plan, setting, question) = scheme.parts()?;
            account::run(&plan, setting, question, &mut screen)
        }
        Verb::Account { what: Account::Compare(compare) } => compare::run(compare, &mut screen),
        Verb::Calibrate { what } => {
            let (plan, _, budget) = what.parts()?;
            calibrate::run(&plan, budget, &mut screen)
        }
        Verb::Explain { code, markdown, json } => {
            explain::run(code.as_deref(), *markdown, *json, &mut screen)
        }
    }
}
