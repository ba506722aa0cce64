//! Q: a fit, a model or an evaluation goes wrong.
use super::Entry;

pub(super) const ENTRIES: [Entry; 8] = [
    Entry {
        code: "Q01",
        title: "there is no randomness",
        why: "The operating system gave none. Noise from anything else could be removed, so none is \
              made.",
        fix: "Try again later, or elsewhere: this is rare, and points to a machine that is set up too tightly.",
        example: "quietly fit linear clinic.csv --target days --epsilon 1 --output q01.quietly",
    },
    Entry {
        code: "Q02",
        title: "a parameter is outside its domain",
        why: "A parameter has a value that means nothing here: an epsilon for a range below 0.001 or above 100 for \
              each column, a table of no rows, a million features or more, a range of a public column that has no \
              two different numbers.",
        fix: "Change the flag, or the line of the schema, that is named. What follows from flags, schema and the types of \
              columns is refused before anything is charged.",
        example: "quietly bounds clinic.csv age bmi --epsilon 0.2 --rows 20000",
    },
    Entry {
        code: "Q03",
        title: "this would not fit",
        why: "What was asked for needs more memory or disk than can be meant. The message says how much, and what \
              to do instead.",
        fix: "Follow the message: often one pass over the table, or fewer features. Nothing was charged.",
        example: "quietly plan linear clinic.schema.toml --target days --epsilon 1 --method one-pass",
    },
    Entry {
        code: "Q04",
        title: "this is not a model that can be read",
        why: "The file was not made by `quietly fit`, was damaged or changed afterwards, or comes from a newer version than \
              this one. The certificate in a file must say what the plan beside it says, and its digest must be that of the \
              rest. Older models can always be read.",
        fix: "Check the name; fit again, or update quietly. A file that was changed by hand has no certificate: restore it \
              from a backup, or fit again.",
        example: "quietly fit linear clinic.csv --target days --epsilon 1 --output q04.quietly",
    },
    Entry {
        code: "Q05",
        title: "a file could not be read or written",
        why: "The operating system says no. It may be the model, or the disk space that one pass needs for a while \
              (TMPDIR says where).",
        fix: "Check the path, and whether there is room. A ledger whose last line was not finished is repaired by `quietly \
              budget LEDGER --repair`.",
        example: "quietly fit linear clinic.csv --target days --epsilon 1 --method one-pass --output q05.quietly",
    },
    Entry {
        code: "Q06",
        title: "stopped before the end",
        why: "Ctrl-C, or the machine wanted to end. Nothing was released: no model and no partial file of one is left \
              behind, and what was in memory is gone. What was charged to a ledger stays charged, as nobody can prove \
              that nothing was seen. The exit status is 130.",
        fix: "Start again. With --checkpoint the same command goes on where it stopped, and is not charged again.",
        example: "quietly fit linear clinic.csv --target days --epsilon 1 --output q06.quietly",
    },
    Entry {
        code: "Q07",
        title: "the ledger has not so much left",
        why: "What is spent on a table adds up, and whoever owns it has set a limit. The run would go beyond it, so the table \
              was not read.",
        fix: "Ask for a smaller epsilon or delta; `quietly budget LEDGER` tells what is left. A limit cannot be raised.",
        example: "quietly budget clinic.ledger --limit 3 --delta 1e-5",
    },
    Entry {
        code: "Q08",
        title: "the cluster gave no answer",
        why: "The scheduler cannot be reached, has no executors, or lost them all; or an executor cannot read a file of the table. \
              A step that was broken off released nothing.",
        fix: "See that `quietly-cluster scheduler` and executors run, and that they see the table under the same path. With \
              --checkpoint the same command goes on where it stopped.",
        example: "quietly plan linear clinic.schema.toml --target days --epsilon 1",
    },
];
