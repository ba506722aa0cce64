//! The help pages: each starts with an example that works as it stands.
use clap::CommandFactory;

use crate::{args::Cli, program::example};

/// The command with an example at the head of each page.
pub(crate) fn command() -> clap::Command {
    let about = |about: &'static str| move |c: clap::Command| c.about(about).long_about(None);
    let mut command = about(ABOUT)(Cli::command()).before_help(example(&FIRST));
    for (verb, line) in SCHEMES {
        command = command.mut_subcommand(verb, |c| {
            c.before_help(example(&[line])).disable_help_subcommand(true)
        });
    }
    for (verb, before, line, more) in TABLES {
        let example = example(&[before, &[line]].concat());
        command = command.mut_subcommand(verb, |c| c.before_help(example).after_help(more));
    }
    for (name, what, line, more) in ATTACKS {
        let page = |c: clap::Command| about(what)(c).before_help(example(&[line])).after_help(more);
        command = command.mut_subcommand("audit", |c| c.mut_subcommand(name, page));
    }
    for (name, what, account, calibrate) in PAGES {
        let page = |verb: &str, flags: &str| {
            let example = example(&[&format!("quietly {verb} {name} {flags}")]);
            move |c: clap::Command| about(what)(c).before_help(example)
        };
        command =
            command.mut_subcommand("account", |c| c.mut_subcommand(name, page("account", account)));
        if !calibrate.is_empty() {
            command = command.mut_subcommand("calibrate", |c| {
                c.mut_subcommand(name, page("calibrate", calibrate))
            });
        }
    }
    command
}

const ABOUT: &str =
    "Learn from sensitive tables with a certificate, and know what any private computation costs.";
const FIRST: [&str; 2] = [
    "quietly example",
    "quietly fit linear clinic.csv --target days --epsilon 1 --output days.quietly",
];
const SCHEMES: [(&str, &str); 4] = [
    (
        "account",
        "quietly account poisson --sampling-rate 0.01 --noise-multiplier 1 --steps 1000 --delta 1e-5",
    ),
    (
        "calibrate",
        "quietly calibrate poisson --sampling-rate 0.01 --steps 1000 --epsilon 1 --delta 1e-5",
    ),
    ("audit", "quietly audit canary --epsilon 1"),
    ("explain", "quietly explain A01"),
];

/// An attack, what it is, an example, and what flags cannot say.
const ATTACKS: [(&str, &str, &str, &str); 2] = [
    (
        "canary",
        "Tests whether one worst-case row can be detected",
        "quietly audit canary --mechanism random-allocation --epsilon 2 --svg canary.svg",
        "Tables are synthetic. The attack on a mechanism sees every noisy sum; the attack on a fit\n\
         (--method) sees only the finished model, and detects much less. Exit status: 0 if the\n\
         attack stays within the claim, which is no proof; 1 if it exceeds the claim (C13).",
    ),
    (
        "tracing",
        "Membership inference on models of synthetic tables",
        "quietly audit tracing --method full-batch --epsilon 1 --rows 300 --features 20 --runs 20",
        "Tables are synthetic. The attack is strong where there are many features for few rows.\n\
         Exit status: 0 if the attack stays within the claim, which is no proof; 1 if it exceeds\n\
         the claim (C13).",
    ),
];

/// A verb, what must be typed before, an example, and what flags cannot say.
const TABLES: [(&str, &[&str], &str, &str); 16] = [
    (
        "example",
        &[],
        "quietly example",
        "All patients are synthetic, and the files are the same every time. The schema beside the table\n\
         is a good one to copy from.",
    ),
    (
        "init",
        &FIRST_LINE,
        "quietly init clinic.csv --output new.schema.toml",
        "The schema is published with the model. Fill it in from public knowledge; ranges and\n\
         categories taken from the rows would reveal rows.",
    ),
    (
        "bounds",
        &FIRST_LINE,
        "quietly bounds clinic.csv age --epsilon 0.1 --rows 20000",
        "The cost adds to that of a fit. The range leaves out about one row in a hundred\n\
         at each end, or more if epsilon is small; those will be clamped.",
    ),
    (
        "check",
        &FIRST_LINE,
        "quietly check clinic.csv --target days --epsilon 0.1",
        "Counts usable rows, and for each column the cells that are missing or not what the schema\n\
         declares, with noise. Run it once, where a fit says that few rows were used.",
    ),
    (
        "partition",
        &[],
        "quietly partition people --steps 50 --output partitioned",
        "Keep the output as confidential as the table: it reveals each row's step. One run may use\n\
         it: quietly fit linear partitioned --target COLUMN --epsilon 1",
    ),
    (
        "plan",
        &FIRST_LINE,
        "quietly plan linear clinic.schema.toml --target days --epsilon 1",
        "A plan depends on the schema and these flags alone, so you can plan as often as you like.\n\
         It warns if the budget is too small for the table.",
    ),
    (
        "fit",
        &FIRST_LINE,
        FIRST[1],
        "Everything about the table that is not in the schema is estimated with noise, within\n\
         epsilon. Cells that cannot be read never stop a fit: the schema says what they count as.\n\
         Each fit of the same table costs again.",
    ),
    (
        "methods",
        &[],
        "quietly methods dp-ambssgd",
        "auto is the default. The others are algorithms of research papers, corrected where they\n\
         were wrong, for comparison.",
    ),
    (
        "predict",
        &FIRST,
        "quietly predict days.quietly clinic-test.csv --output predictions.csv",
        "One line for every row, in the order of the files; also for rows with missing or\n\
         unreadable cells. Predicting costs nothing.",
    ),
    (
        "evaluate",
        &FIRST,
        "quietly evaluate days.quietly clinic-test.csv",
        "Without --epsilon the scores are exact, and NOT private. With it they are noisy, and\n\
         their cost adds to the model's.",
    ),
    (
        "certificate",
        &FIRST,
        "quietly certificate days.quietly",
        "The certificate is part of the model file. It holds parameters and theorems, no data.",
    ),
    (
        "label",
        &FIRST,
        "quietly label days.quietly --output label.html",
        "For people who approve a release: the odds in words, what was released, what it cost, what\n\
         is covered and what is not. The page has no scripts and loads nothing.",
    ),
    (
        "show",
        &FIRST,
        "quietly show days.quietly",
        "A model is public, and so is all that can be read from it: no table is opened. Of a\n\
         network (quietly fit kan) --output draws what each column does to predictions, in the\n\
         column's own units.",
    ),
    (
        "budget",
        &[],
        "quietly budget clinic.ledger --limit 3 --delta 1e-5",
        "`quietly fit --ledger clinic.ledger` records the cost of a fit before it reads the table, and\n\
         refuses a fit that exceeds what is left. Epsilons and deltas add up.",
    ),
    (
        "compare",
        &FIRST_LINE,
        "quietly compare clinic.csv --target days --methods full-batch,one-pass --epsilons 0.1,1 --seeds 2",
        "For public or synthetic tables. Scores are exact, and choosing among many results reveals\n\
         more than any single one: on a sensitive table this is NOT private, and the sum of all\n\
         epsilons is printed.",
    ),
    (
        "diagnose",
        &[],
        "quietly diagnose --snr 0.6 --rows 200 --epsilon 1 --delta 1e-5",
        "--epsilon is the budget of the planned training. Estimating the signal of a table costs\n\
         --spend in addition: quietly diagnose clinic.csv --target sex --epsilon 1 --spend 0.1.\n\
         The limits were measured on synthetic images; they are not a theorem.",
    ),
];
const FIRST_LINE: [&str; 1] = [FIRST[0]];

/// Name, what it is, and the flags of an example for each verb.
const PAGES: [(&str, &str, &str, &str); 10] = [
    (
        "gaussian",
        "Gaussian noise on sums over all rows",
        "--noise-multiplier 2 --steps 10 --delta 1e-5",
        "--steps 10 --epsilon 1 --delta 1e-5",
    ),
    (
        "laplace",
        "Laplace noise on sums over all rows",
        "--scale 20 --steps 100 --delta 1e-5",
        "--steps 100 --epsilon 1 --delta 1e-5",
    ),
    (
        "exponential",
        "The exponential mechanism",
        "--epsilon-each 0.1 --steps 100 --delta 1e-5",
        "--steps 100 --epsilon 1 --delta 1e-5",
    ),
    (
        "poisson",
        "Poisson sampling: each row is in each batch with probability Q, independently",
        "--sampling-rate 0.01 --noise-multiplier 1 --steps 1000 --delta 1e-5",
        "--sampling-rate 0.01 --steps 1000 --epsilon 1 --delta 1e-5",
    ),
    (
        "fixed-size",
        "Fixed-size batches, drawn independently for each step",
        "--records 60000 --batch 600 --noise-multiplier 1 --steps 1000 --neighbours replace-one --delta 1e-5",
        "--records 60000 --batch 600 --steps 1000 --epsilon 1 --delta 1e-5",
    ),
    (
        "random-allocation",
        "Random allocation: each row in K random steps of each epoch (\"balls and bins\")",
        "--steps 100 --select 1 --epochs 1 --noise-multiplier 1 --delta 1e-5",
        "--steps 100 --select 1 --epochs 10 --epsilon 1 --delta 1e-5",
    ),
    (
        "shuffle",
        "A shuffled table split into blocks (no amplification)",
        "--steps 100 --epochs 10 --noise-multiplier 10 --delta 1e-5",
        "--steps 100 --epochs 10 --epsilon 1 --delta 1e-5",
    ),
    (
        "tree",
        "Tree aggregation, each row in one leaf",
        "--steps 1000 --noise-multiplier 15 --delta 1e-5",
        "--steps 1000 --epsilon 1 --delta 1e-5",
    ),
    (
        "correlated",
        "Noise correlated from step to step",
        "--lambda 0.9 --sampling-rate 0.1 --noise-multiplier 118 --steps 1000 --delta 1e-5",
        "--lambda 0.9 --sampling-rate 0.1 --steps 1000 --epsilon 1 --delta 1e-5",
    ),
    (
        "compare",
        "Four ways to draw batches, at equal noise",
        "--noise-multiplier 1 --steps 1000 --sampling-rate 0.01 --delta 1e-5",
        "",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::page_of;

    #[test]
    fn the_declaration_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn a_page_is_named_by_the_words_that_are_understood() {
        let page = |typed: &str| page_of(&command(), typed.split(' ').map(String::from));
        assert_eq!(page("account poisson --sampling-rate"), "quietly account poisson");
        assert_eq!(page("plan clinic.schema.toml"), "quietly plan");
        assert_eq!(page("acount poisson"), "quietly");
    }
}
