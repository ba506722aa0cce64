//! Q: a fit, a model or an evaluation goes wrong.
use super::Entry;

pub(super) const ENTRIES: [Entry; 8] = [
    Entry {
        code: "Q01",
        title: "there is no randomness",
        why: "The operating system returned no random bytes. Noise from any other source could be removed, so none is \
              drawn.",
        fix: "Try again later, or on another machine: this is rare, and suggests a very restricted system.",
        example: "quietly fit linear clinic.csv --target days --epsilon 1 --output q01.quietly",
    },
    Entry {
        code: "Q02",
        title: "a parameter is outside its domain",
        why: "A parameter has a value that is not valid here: an epsilon for a range below 0.001 or above 100 for \
              each column, a table of no rows, a million features or more, a range of a public column that has no \
              two different numbers.",
        fix: "Change the named flag or line of the schema. Errors in flags, schema and column types are found before anything \
              is charged.",
        example: "quietly bounds clinic.csv age bmi --epsilon 0.2 --rows 20000",
    },
    Entry {
        code: "Q03",
        title: "this needs too much memory or disk",
        why: "The run would need far more memory or disk than is reasonable. The message says how much, and what to do \
              instead.",
        fix: "Follow the message: often one pass over the table, or fewer features. Nothing was charged.",
        example: "quietly plan linear clinic.schema.toml --target days --epsilon 1 --method one-pass",
    },
    Entry {
        code: "Q04",
        title: "the model file cannot be read",
        why: "The file was not made by `quietly fit`, was damaged or changed afterwards, or comes from a newer version than \
              this one. The certificate in a file must agree with the plan, and the digest with the contents. Older models \
              can always be read.",
        fix: "Check the name; fit again, or update quietly. A file that was changed by hand has no certificate: restore it \
              from a backup, or fit again.",
        example: "quietly fit linear clinic.csv --target days --epsilon 1 --output q04.quietly",
    },
    Entry {
        code: "Q05",
        title: "a file could not be read or written",
        why: "The operating system refuses. It may be the model, or the temporary disk space of one pass (in TMPDIR).",
        fix: "Check the path and the free space. A ledger whose last line is incomplete is repaired by `quietly \
              budget LEDGER --repair`.",
        example: "quietly fit linear clinic.csv --target days --epsilon 1 --method one-pass --output q05.quietly",
    },
    Entry {
        code: "Q06",
        title: "interrupted",
        why: "Ctrl-C, or a signal of the system. Nothing was released: no model and no partial file remains. What was charged \
              to a ledger stays charged, as it cannot be proven that nothing was seen. The exit status is 130.",
        fix: "Start again. With --checkpoint the same command resumes the run, and is not charged again.",
        example: "quietly fit linear clinic.csv --target days --epsilon 1 --output q06.quietly",
    },
    Entry {
        code: "Q07",
        title: "the ledger has too little left",
        why: "Spending on a table adds up, and its owner set a limit. The run would exceed the limit, so the table was not \
              read.",
        fix: "Give a smaller epsilon or delta; `quietly budget LEDGER` shows what is left. A limit cannot be raised.",
        example: "quietly budget clinic.ledger --limit 3 --delta 1e-5",
    },
    Entry {
        code: "Q08",
        title: "the cluster did not respond",
        why: "The scheduler cannot be reached, has no executors, or lost them all; or an executor cannot read a file of the table. \
              An interrupted step released nothing.",
        fix: "Check that `quietly-cluster scheduler` and executors run, and that they see the table under the same path. With \
              --checkpoint the same command resumes the run.",
        example: "quietly plan linear clinic.schema.toml --target days --epsilon 1",
    },
];
