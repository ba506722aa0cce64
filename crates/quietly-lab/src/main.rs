//! The `quietly-lab` command: what the papers behind `quietly` claim, measured.
//!
//! * `reproduce` runs the experiments of a paper and writes a report with verdicts.
//!
//! Research code: no part of the product, and no sensitive table should be given to it.
#![forbid(unsafe_code)]
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use quietly_cli::program;

mod reproduce;

/// Run the experiments behind quietly.
#[derive(Parser, Debug)]
#[command(name = "quietly-lab", version, disable_help_subcommand = true, term_width = 0)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// What the papers claim, measured here
    Reproduce {
        #[command(subcommand)]
        what: reproduce::What,
    },
}

fn main() -> ExitCode {
    program::run(command(), |cli: Cli, screen| match &cli.verb {
        Verb::Reproduce { what } => reproduce::run(what, screen),
    })
}

/// The command with an example at the head of each help page.
fn command() -> clap::Command {
    let example = |of: &str| program::example(&[&format!("quietly-lab reproduce {of} --quick")]);
    let mut command =
        Cli::command().before_help(example("linear")).mut_subcommand("reproduce", |c| {
            c.before_help(example("linear")).after_help(MORE).disable_help_subcommand(true)
        });
    for of in ["linear", "relu", "convex", "features", "kan"] {
        command = command
            .mut_subcommand("reproduce", |c| c.mut_subcommand(of, |c| c.before_help(example(of))));
    }
    command
}

const MORE: &str = "Tables are drawn from a seed, so the same command gives the same numbers. Each verdict follows\n\
                    from the measurements. With --data DIR, public tables take part.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_declaration_is_sound() {
        command().debug_assert();
    }
}
