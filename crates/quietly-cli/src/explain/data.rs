//! D: the table or its schema cannot be used.
use super::Entry;

pub(super) const ENTRIES: [Entry; 19] = [
    Entry {
        code: "D01",
        title: "a file cannot be read",
        why: "The file does not exist, or is not readable. Unless --schema names one, the schema of \
              people.csv is people.schema.toml, in the same folder.",
        fix: "Check the path. `quietly init` writes a schema where there is none.",
        example: "quietly fit linear clinic.csv --target days --schema clinic.schema.toml --epsilon 1 --output d01.quietly",
    },
    Entry {
        code: "D02",
        title: "there is no table",
        why: "No file in the folder or list has the ending of a table: .csv, .tsv, \
              .parquet, .arrow, .svm and the like, also with .gz.",
        fix: "Name the files themselves, and give --format if their names have other endings.",
        example: "quietly bounds clinic.csv age --epsilon 0.1 --format csv",
    },
    Entry {
        code: "D03",
        title: "a file is damaged, or of another format",
        why: "A gzip, Parquet or Arrow file does not have the format of its name, or is truncated; or a file is a \
              zip archive, a workbook, a database or text in UTF-16. Nothing was used or \
              saved. Damage among the rows is detected after a ledger was charged, and the charge stays. A cell \
              that cannot be read is not damage, and never causes this error.",
        fix: "Copy or create the file again, or give its real format with --format.",
        example: "quietly fit linear clinic.csv --target days --epsilon 1 --format csv --output d03.quietly",
    },
    Entry {
        code: "D04",
        title: "a file has no header",
        why: "The first line of a CSV file names its columns, and this file seems to have none: the line is empty or \
              blank, has none of the names of the schema or the model, or has a cell that is empty, a number, a date, \
              very long or has a control character. Rows are not public, and are never used as names.",
        fix: "Add a line of names. If the first line has names that look like data (2020, 2021), set header = true in the \
              schema, or use --header-is-names.",
        example: "quietly init clinic-test.csv --output test.schema.toml",
    },
    Entry {
        code: "D05",
        title: "two columns have the same name",
        why: "A schema, a model and --target identify columns by name, so names must be unique.",
        fix: "Rename all but one in the file. The message counts columns from 1; it quotes no name that only the file has.",
        example: "quietly bounds --public clinic-test.csv bmi",
    },
    Entry {
        code: "D06",
        title: "the files are not one table",
        why: "Several files, or a folder of them, are read as one table, one after the other. That needs the same \
              columns in the same order.",
        fix: "Leave out files that do not belong, or bring the columns into the same order.",
        example: "quietly fit linear clinic.csv clinic-test.csv --target days --epsilon 1 --output d06.quietly",
    },
    Entry {
        code: "D07",
        title: "the schema is not TOML",
        why: "The file cannot be read at the place that the message shows: perhaps a quote or a bracket is \
              missing, or a name with a blank in it has no quotes.",
        fix: "Repair that line. Compare it with a schema that works.",
        example: "quietly plan linear clinic.schema.toml --target days --epsilon 1",
    },
    Entry {
        code: "D08",
        title: "the schema is not finished",
        why: "`quietly init` wrote \"?\" where public knowledge is needed: the approximate number of rows, the \
              range of a number, the values of a category. Values taken from the rows instead would reveal rows.",
        fix: "Fill in public knowledge. Delete the lines of columns that are not used. Or estimate a range privately, or \
              take it from a public file at no cost.",
        example: "quietly bounds clinic.csv systolic --epsilon 0.1 --rows 20000",
    },
    Entry {
        code: "D09",
        title: "the schema has invalid lines",
        why: "All invalid lines are listed: a range with swapped ends, a repeated value, an unknown key, a name with a control or format character or of more than 200 characters.",
        fix: "Repair those lines.",
        example: "quietly plan linear clinic.schema.toml --target days --epsilon 1",
    },
    Entry {
        code: "D10",
        title: "the table lacks a column",
        why: "The schema, the model or the command names a column that is not in the table's header. To predict, a \
              table needs every column that the model was fitted on, but not the target.",
        fix: "Use exactly the names of the header; delete lines of the schema without a column.",
        example: "quietly bounds clinic.csv bmi --epsilon 0.1",
    },
    Entry {
        code: "D11",
        title: "the schema does not describe a column",
        why: "--target and --features can only name columns with a line in the schema: without a public range \
              the sensitivity to one row is unknown.",
        fix: "Add a line under [columns], or correct the name.",
        example: "quietly fit linear clinic.csv --target days --features age,bmi --epsilon 1 --output d11.quietly",
    },
    Entry {
        code: "D12",
        title: "this column cannot be the target",
        why: "A regression predicts a number, so its target needs a range in the schema; a classifier predicts one of \
              at least two classes, so its target needs values. Neither can be one of the features as well.",
        fix: "Name another target, or give this one a range or values, such as label = { values = [-1, 1] }.",
        example: "quietly plan relu clinic.schema.toml --target days --epsilon 1",
    },
    Entry {
        code: "D13",
        title: "a column has a type that cannot be used",
        why: "Parquet and Arrow columns have types. Numbers, texts and booleans can be read; dates, lists and structures \
              cannot. A column of texts cannot have a range, and a column of numbers cannot have \
              values that are all texts. Nothing was charged.",
        fix: "Convert the columns, or leave them out of the schema. Set numbers_in_text = true in the rule of a column whose \
              texts are numbers.",
        example: "quietly fit linear clinic.csv --target days --features age,visits --epsilon 1 --output d13.quietly",
    },
    Entry {
        code: "D14",
        title: "libsvm text needs a count of features",
        why: "libsvm text has no header, and the highest index in it depends on the rows. How many features there \
              are must be public.",
        fix: "Write features = N into the schema, or let `quietly init FILE --features N` do it.",
        example: "quietly init --help",
    },
    Entry {
        code: "D15",
        title: "there are no features",
        why: "Besides the target there is no column with a line in the schema, or none that --features names.",
        fix: "Add a line under [columns], or name other features.",
        example: "quietly plan linear clinic.schema.toml --target days --features age --epsilon 1",
    },
    Entry {
        code: "D16",
        title: "the delimiter is not valid",
        why: "The delimiter of a CSV file is one byte that is neither a quote nor the end of a line.",
        fix: "Give one such as ';' or tab, or leave it out: it is detected from the header.",
        example: "quietly bounds clinic.csv age --epsilon 0.1 --delimiter ,",
    },
    Entry {
        code: "D17",
        title: "batches in memory do not make one table",
        why: "A program passed a table in parts with different columns, or without a name for each column.",
        fix: "Give all parts the same named columns.",
        example: "quietly plan linear clinic.schema.toml --target days --features age --epsilon 1",
    },
    Entry {
        code: "D18",
        title: "this cannot be read in parts",
        why: "A cluster, a partitioned table and a checkpoint read parts of files repeatedly. Only Parquet supports that.",
        fix: "Convert the table to Parquet, or fit it on this machine without --cluster and --checkpoint.",
        example: "quietly plan linear clinic.schema.toml --target days --epsilon 1",
    },
    Entry {
        code: "D19",
        title: "the same rows may be in the table twice",
        why: "A file is named twice; or a folder holds files of more than one format, or a file and a copy of it (t.csv, \
              t.csv.gz, t copy.csv, t (1).csv). A person whose row is read twice has half the protection that the \
              certificate states.",
        fix: "Name each file of the table once. Files that are named one by one are taken as they are, but none twice.",
        example: "quietly fit linear clinic.csv clinic-test.csv --target days --epsilon 1 --output days.quietly",
    },
];
