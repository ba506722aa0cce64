//! C: the command line, and the world around it.
use super::Entry;

pub(super) const ENTRIES: [Entry; 16] = [
    Entry {
        code: "C01",
        title: "participation is missing or ambiguous",
        why: "With correlated noise the privacy cost depends on the steps in which one row takes part. Describe \
              them in exactly one way.",
        fix: "Give one of: --full; --sampling-rate Q; --bins B; --period P, perhaps with --sampling-rate Q; --separation S with \
              --participations K; --records N with --batch B.",
        example: "quietly account correlated --lambda 0.9 --sampling-rate 0.1 --noise-multiplier 118 --steps 1000 --delta 1e-5 --json",
    },
    Entry {
        code: "C02",
        title: "this is not a number",
        why: "The value of a flag could not be read as a number, or as a list of numbers for --bands and --epsilons.",
        fix: "Write numbers with a point and without units: 0.01, 1e-5, 1000, 1e6.",
        example: "quietly account gaussian --noise-multiplier 2 --steps 10 --delta 1e-5",
    },
    Entry {
        code: "C03",
        title: "the target is missing, or there are two",
        why: "A run satisfies many pairs (ε, δ). --delta gives the epsilon at that delta, --epsilon gives the \
              delta at that epsilon.",
        fix: "Give exactly one of them.",
        example: "quietly account gaussian --noise-multiplier 2 --steps 10 --epsilon 1",
    },
    Entry {
        code: "C04",
        title: "the strategy is missing, or there are two",
        why: "Correlated noise is described either by one number, --lambda, or by the first coefficients of a Toeplitz \
              matrix, --bands.",
        fix: "Give exactly one of them. --lambda 0 is independent noise.",
        example: "quietly account correlated --bands 1,0.5,0.25 --full --noise-multiplier 50 --steps 100 --delta 1e-5",
    },
    Entry {
        code: "C05",
        title: "the command is not valid",
        why: "A word or a flag is unknown, missing, or in the wrong place.",
        fix: "Every help page starts with an example that runs as it is.",
        example: "quietly account --help",
    },
    Entry {
        code: "C06",
        title: "there is no such code",
        why: "This version has no such code.",
        fix: "List the codes, or use the one in brackets after the word `error`.",
        example: "quietly explain",
    },
    Entry {
        code: "C07",
        title: "the result could not be written",
        why: "The result was computed, but writing it failed: a full disk, or a closed file. A pipe whose reader stops \
              early, such as `head`, is no error.",
        fix: "Free some space, or write to another place.",
        example: "quietly account gaussian --noise-multiplier 2 --steps 10 --delta 1e-5 --json",
    },
    Entry {
        code: "C08",
        title: "internal error",
        why: "A bug in quietly. No result is given, because it could be wrong.",
        fix: "Please report it with the command; a command contains parameters, no data.",
        example: "quietly --version",
    },
    Entry {
        code: "C09",
        title: "a file could not be written",
        why: "The operating system refuses: the folder does not exist, is not writable or is full, or the \
              name is that of a folder. A fit checks this before anything is charged, and reserves the space for the \
              model. If the file still cannot be written, the model goes to the folder for temporary \
              files, or to stdout, and the message says so. No partial file is left.",
        fix: "Create the folder, free some space, or give another name with --output.",
        example: "quietly fit linear clinic.csv --target days --epsilon 1 --output c09.quietly",
    },
    Entry {
        code: "C10",
        title: "a file would be replaced",
        why: "--output names an input of the same command, or a file that exists: for `fit` any file, as a model costs \
              privacy budget; for `init` a schema, which may be filled in; for `label`, `predict` and `show` any file \
              that is not empty and does not look like their own output; for `quietly-lab reproduce` its folder. Or \
              another `fit` is writing the same file. Nothing was charged or written.",
        fix: "Give another name with --output. --force overwrites a file that is not an input; `fit` then keeps the \
              old model as NAME.1.",
        example: "quietly init clinic.csv --output new.schema.toml",
    },
    Entry {
        code: "C11",
        title: "bounds needs a budget or columns",
        why: "A range that is estimated from a sensitive table has a privacy cost, --epsilon, and is estimated only for \
              the columns that you name. A range from a public file costs nothing.",
        fix: "Name the columns and give --epsilon, or --public with a public file.",
        example: "quietly bounds clinic.csv age --epsilon 0.1",
    },
    Entry {
        code: "C12",
        title: "the header is needed",
        why: "The schema has a line for \"*\", every column that it does not name. Only the table's header lists \
              them, and a plan depends on their number.",
        fix: "Give the table with --header. Only its first line is read.",
        example: "quietly plan linear clinic.schema.toml --header clinic.csv --target days --epsilon 1",
    },
    Entry {
        code: "C13",
        title: "an audit exceeds the claimed bound",
        why: "An attack on synthetic tables gives a lower bound on epsilon, and this bound exceeds the proven one, or the \
              proven trade-off of hits and false alarms. A correct mechanism fails at most once in a thousand audits. \
              The numbers are on stdout, and the exit status is 1.",
        fix: "Run it again with another --seed. If it fails again, release nothing made in this way, and report it. With \
              --broken this result is expected.",
        example: "quietly audit canary --epsilon 1",
    },
    Entry {
        code: "C14",
        title: "diagnose needs a signal or a budget",
        why: "A diagnosis is about one signal: of a known strength, --snr with --rows, or the one in a table. Estimating it \
              on a sensitive table has a privacy cost, --spend; on a public table it costs nothing.",
        fix: "Give --snr and --rows, or a table with --target and either --spend or --public.",
        example: "quietly diagnose clinic.csv --target sex --epsilon 1 --spend 0.1",
    },
    Entry {
        code: "C15",
        title: "the ledger of a table would be bypassed",
        why: "A schema of the table, in use or beside it, names the ledger of all its spending. --ledger or another schema names a \
              second one, or the command reads the rows as public ones (`compare`, and any command with --public). Either would \
              make the ledger incomplete. Nothing was charged.",
        fix: "Leave out --ledger. Use --no-ledger for a release that no ledger counts, or for public rows.",
        example: "quietly budget c15.ledger --limit 3 --delta 1e-4",
    },
    Entry {
        code: "C16",
        title: "no row could be scored",
        why: "`quietly evaluate` without --epsilon found no row with a target, or the schema drops them all: the table does not \
              match the model's schema. Scores without --epsilon are not private, and neither is this error.",
        fix: "Check the types of the columns, the decimal and thousands separators, the spelling of categories, and `missing`. \
              `quietly check --public` finds the column of a public table.",
        example: "quietly check clinic-test.csv --schema clinic.schema.toml --target days --public",
    },
];
