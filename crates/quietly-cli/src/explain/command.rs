//! C: the command line, and the world around it.
use super::Entry;

pub(super) const ENTRIES: [Entry; 16] = [
    Entry {
        code: "C01",
        title: "participation is missing or ambiguous",
        why: "With correlated noise the price depends on the steps in which one record takes part. Exactly one \
              description of that is needed.",
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
        title: "the question is missing, or there are two",
        why: "A run has a whole curve of prices. --delta asks for the epsilon at that delta, --epsilon asks for the \
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
        example: "quietly account gaussian --noise-multiplier 2 --steps 10 --delta 1e-5 --json",
    },
    Entry {
        code: "C08",
        title: "something in quietly broke",
        why: "A bug. No answer was given, because it could not be trusted.",
        fix: "Please report it with the command you typed; it holds parameters only, no data.",
        example: "quietly --version",
    },
    Entry {
        code: "C09",
        title: "a file could not be written",
        why: "The operating system says no: the folder is not there, is not yours to write to or is full, or the \
              name is that of a folder. For a fit this is found out before anything is charged: the room for the model \
              is taken first. If its file cannot be written all the same, the model goes to the folder for temporary \
              files, or to stdout, and the message says so. No partial file is left.",
        fix: "Make the folder, make room, or give another name with --output.",
        example: "quietly fit linear clinic.csv --target days --epsilon 1 --output c09.quietly",
    },
    Entry {
        code: "C10",
        title: "a file would be replaced",
        why: "--output names a file that is read by the same command, or one that is there: for `fit` any file, as a model \
              was paid for; for `init` a schema, which may have been filled in; for `label`, `predict` and `show` any \
              file that is not empty and does not look like their own output; for `quietly-lab reproduce` its folder. \
              Or another `fit` is about to write the same file. Nothing was charged or written.",
        fix: "Give another name with --output. --force insists, but for a file that the same command reads; `fit` then \
              keeps the old model as NAME.1.",
        example: "quietly init clinic.csv --output new.schema.toml",
    },
    Entry {
        code: "C11",
        title: "bounds needs to know more",
        why: "A range that is estimated from a sensitive table gives something away, so it has a price, --epsilon, \
              and is made only for columns that are named. A range from a file that everybody may see has none.",
        fix: "Name the columns and give --epsilon, or --public with a public file.",
        example: "quietly bounds clinic.csv age --epsilon 0.1",
    },
    Entry {
        code: "C12",
        title: "the header is needed",
        why: "The schema has a line for \"*\", every column that it does not name. How many there are only the \
              table's header says, and a plan depends on it.",
        fix: "Give the table with --header. Its first line is read, and no row.",
        example: "quietly plan linear clinic.schema.toml --header clinic.csv --target days --epsilon 1",
    },
    Entry {
        code: "C13",
        title: "an audit saw more than was claimed",
        why: "An attack on made-up tables bounds epsilon from below, and this bound is above the proven one, or beyond the \
              proven curve of hits and false alarms. A mechanism that keeps its promise is accused once in a thousand \
              audits at most. The numbers stand on stdout, and the exit status is 1.",
        fix: "Run it again with another --seed. If it is caught again, release nothing made in this way, and report it; \
              with --broken it was to be expected.",
        example: "quietly audit canary --epsilon 1",
    },
    Entry {
        code: "C14",
        title: "diagnose needs to know more",
        why: "A diagnosis is about one signal: of a known strength, --snr with --rows, or the one in a table. Finding it in \
              a sensitive table gives something away, so it has a price, --spend; in a public table it has none.",
        fix: "Give --snr and --rows, or a table with --target and either --spend or --public.",
        example: "quietly diagnose clinic.csv --target sex --epsilon 1 --spend 0.1",
    },
    Entry {
        code: "C15",
        title: "the ledger of a table would be passed by",
        why: "A schema of the table, in use or beside it, says which ledger counts what is spent on it. --ledger or another schema \
              names a second one, or the verb reads the rows as public ones (`compare`, and whatever takes --public). Either would \
              make the ledger false. Nothing was charged.",
        fix: "Leave --ledger out. --no-ledger insists on a release that no ledger counts, or that the rows are public.",
        example: "quietly budget c15.ledger --limit 3 --delta 1e-4",
    },
    Entry {
        code: "C16",
        title: "no row could be scored",
        why: "`quietly evaluate` without --epsilon found no row with a target, or the schema drops them all: the table does not \
              hold what the model's schema says. Scores without --epsilon are not private, and neither is this refusal.",
        fix: "Check the types of the columns, the decimal and thousands separators, the spelling of categories, and `missing`. \
              `quietly check --public` finds the column of a public table.",
        example: "quietly check clinic-test.csv --schema clinic.schema.toml --target days --public",
    },
];
