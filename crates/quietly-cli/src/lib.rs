//! The `quietly` command: private models with their certificates, and what any private computation
//! costs.
//!
//! This crate reads flags, calls `quietly` and `quietly-accounting`, and prints. There is no
//! privacy arithmetic in it.
//!
//! * `args` declares the command line, `help` its pages; `tables`, `scheme` and `correlated` turn
//!   flags into requests.
//! * `init`, `bounds`, `check`, `fit` (with `plan`), `methods`,
//!   `predict`, `evaluate`, `certificate`, `label`, `show`, `ledger` (`quietly budget`),
//!   `compare`, `diagnose` and `example` are the verbs on tables.
//! * `partition`, `remote` and `cluster` are for tables that are not held in memory: grouped by
//!   step, in parts, or on other machines.
//! * `account`, `account_compare`, `calibrate`, `explain` and `audit` are the verbs on mechanisms.
//!
//! The public modules are what `quietly-lab` shares: [`program`] runs a command, [`mod@error`] has
//! every error with its code and `hints` its remedy, [`terminal`], [`mod@format`], [`parse`] and
//! [`output`] deal with screen, numbers and files, and [`trial`] fits many models at once.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use crate::{
    args::{Account, Cli, Verb},
    error::Failure,
    terminal::Screen,
};

mod account;
mod account_compare;
mod args;
mod audit;
mod bounds;
mod calibrate;
mod certificate;
mod check;
mod cluster;
mod compare;
mod correlated;
mod diagnose;
pub mod error;
mod evaluate;
mod example;
mod explain;
mod fit;
pub mod format;
mod help;
mod hints;
mod init;
mod interrupt;
mod label;
mod ledger;
mod methods;
pub mod output;
pub mod parse;
mod partition;
mod plot;
mod predict;
pub mod program;
mod remote;
mod reserved;
mod scheme;
mod show;
mod tables;
pub mod terminal;
pub mod trial;

/// Runs the `quietly` command with the arguments of the process.
pub fn main() -> ExitCode {
    program::run(help::command(), |cli: Cli, screen| run(&cli.verb, screen))
}

fn run(verb: &Verb, screen: &mut Screen) -> Result<(), Failure> {
    match verb {
        Verb::Example { folder, json } => example::run(folder, *json, screen),
        Verb::Init(init) => init::run(init, screen),
        Verb::Bounds(bounds) => bounds::run(bounds, screen),
        Verb::Check(check) => check::run(check, screen),
        Verb::Partition(partition) => partition::run(partition, screen),
        Verb::Plan(only) => fit::plan(only, screen),
        Verb::Fit(fit) => fit::fit(fit, screen),
        Verb::Methods(methods) => methods::run(methods, screen),
        Verb::Predict(predict) => predict::run(predict, screen),
        Verb::Evaluate(evaluate) => evaluate::run(evaluate, screen),
        Verb::Certificate(show) => certificate::run(show, screen),
        Verb::Label(label) => label::run(label, screen),
        Verb::Show(look) => show::run(look, screen),
        Verb::Budget(account) => ledger::run(account, screen),
        Verb::Compare(compare) => compare::run(compare, screen),
        Verb::Diagnose(asked) => diagnose::run(asked, screen),
        Verb::Account { what: Account::Scheme(scheme) } => {
            let (plan, setting, question) = scheme.parts()?;
            account::run(&plan, setting, question, screen)
        }
        Verb::Account { what: Account::Compare(compare) } => account_compare::run(compare, screen),
        Verb::Calibrate { what } => {
            let (plan, _, budget) = what.parts()?;
            calibrate::run(&plan, budget, screen)
        }
        Verb::Audit { what } => audit::run(what, screen),
        Verb::Explain { code, markdown, json } => {
            explain::run(code.as_deref(), *markdown, *json, screen)
        }
    }
}
