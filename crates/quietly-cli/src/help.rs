//! The help pages: each starts with an example that works as it stands.
use clap::CommandFactory;

use crate::args::Cli;

/// The command with an example at the head of each page.
pub(crate) fn command() -> clap::Command {
    let mut command = Cli::command().before_help(EXAMPLE_FIRST).about(ABOUT).long_about(None);
    for (verb, example) in VERBS {
        command =
            command.mut_subcommand(verb, |c| c.before_help(example).disable_help_subcommand(true));
    }
    for (name, about, account, calibrate) in PAGES {
        let page = |about: &str, verb: &str, flags: &str| {
            let (about, example) =
                (about.to_string(), format!("Example:\n  quietly {verb} {name} {flags}"));
            move |c: clap::Command| c.about(about).long_about(None).before_help(example)
        };
        command = command
            .mut_subcommand("account", |c| c.mut_subcommand(name, page(about, "account", account)));
        if !calibrate.is_empty() {
            command = command.mut_subcommand("calibrate", |c| {
                c.mut_subcommand(name, page(about, "calibrate", calibrate))
            });
        }
    }
    command
}

const ABOUT: &str =
    "Know what a differentially private computation costs, and how much noise a budget needs.";
const EXAMPLE_FIRST: &str =
    "Example:\n  quietly account poisson --rate 0.01 --noise 1 --steps 1000 --delta 1e-5";
const VERBS: [(&str, &str); 3] = [
    ("account", EXAMPLE_FIRST),
    (
        "calibrate",
        "Example:\n  quietly calibrate poisson --rate 0.01 --steps 1000 --epsilon 1 --delta 1e-5",
    ),
    ("explain", "Example:\n  quietly explain A01"),
];

/// Name, what it is, and the flags of an example for each verb.
const PAGES: [(&str, &str, &str, &str); 10] = [
    (
        "gaussian",
        "Gaussian noise on sums over all records",
        "--noise 2 --steps 10 --delta 1e-5",
        "--steps 10 --epsilon 1 --delta 1e-5",
    ),
    (
        "laplace",
        "Laplace noise on sums over all records",
        "--scale 20 --steps 100 --delta 1e-5",
        "--steps 100 --epsilon 1 --delta 1e-5",
    ),
    (
        "selection",
        "Choices by the exponential mechanism",
        "--epsilon-each 0.1 --steps 100 --delta 1e-5",
        "--steps 100 --epsilon 1 --delta 1e-5",
    ),
    (
        "poisson",
        "Batches that each record joins by a coin of its own",
        "--rate 0.01 --noise 1 --steps 1000 --delta 1e-5",
        "--rate 0.01 --steps 1000 --epsilon 1 --delta 1e-5",
    ),
    (
        "fixed-size",
        "Batches of one size, drawn anew for each step",
        "--records 60000 --batch 600 --noise 1 --steps 1000 --neighbours replace-one --delta 1e-5",
        "--records 60000 --batch 600 --steps 1000 --epsilon 1 --delta 1e-5",
    ),
    (
        "allocation",
        "Each record in K random steps of each pass (\"balls and bins\")",
        "--steps 100 --select 1 --epochs 1 --noise 1 --delta 1e-5",
        "--steps 100 --select 1 --epochs 10 --epsilon 1 --delta 1e-5",
    ),
    (
        "shuffle",
        "A shuffled table cut into blocks (charged without amplification)",
        "--steps 100 --epochs 10 --noise 10 --delta 1e-5",
        "--steps 100 --epochs 10 --epsilon 1 --delta 1e-5",
    ),
    (
        "tree",
        "Tree aggregation, each record in one leaf",
        "--steps 1000 --noise 15 --delta 1e-5",
        "--steps 1000 --epsilon 1 --delta 1e-5",
    ),
    (
        "correlated",
        "Noise correlated from step to step",
        "--lambda 0.9 --rate 0.1 --noise 118 --steps 1000 --delta 1e-5",
        "--lambda 0.9 --rate 0.1 --steps 1000 --epsilon 1 --delta 1e-5",
    ),
    (
        "compare",
        "Four ways to draw batches, at equal noise",
        "--noise 1 --steps 1000 --rate 0.01 --delta 1e-5",
        "",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_declaration_is_sound() {
        command().debug_assert();
    }
}
