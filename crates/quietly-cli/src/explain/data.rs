//! D: the table or its schema cannot be used.
use super::Entry;

pub(super) const ENTRIES: [Entry; 19] = [
    Entry {
        code: "D01",
        title: "a file cannot be read",
        why: "There is no such file, or it is not yours to read. Unless --schema names one, the schema of \
              people.csv is people.schema.toml, in the same folder.",
        fix: "Check the path. `quietly init` writes a schema where there is none.",
        example: "quietly fit linear clinic.csv --target days --schema clinic.schema.toml --epsilon 1 --output d01.quietly",
    },
    Entry {
        code: "D02",
        title: "there is no table",
        why: "A folder or a list of files holds nothing whose name ends like that of a table: .csv, .tsv, \
              .parquet, .arrow, .svm and the like, also with .gz.",
        fix: "Name the files themselves, and give --format if their names do not say what they are.",
        example: "quietly bounds clinic.csv age --epsilon 0.1 --format csv",
    },
    Entry {
        code: "D03",
        title: "a file is damaged, or of another format",
        why: "A gzip, Parquet or Arrow file does not hold what its name promises, or was cut off; or a file is a \
              zip archive, a workbook, a database or text in UTF-16. What could be \
              read of it was not used, and nothing is saved. Damage among the rows is found after a ledger was charged, \
              and stays charged. A cell that makes no sense is not damage, and never \
              leads here.",
        fix: "Copy or make the file again, or say with --format what it really is.",
        example: "quietly fit linear clinic.csv --target days --epsilon 1 --format csv --output d03.quietly",
    },
    Entry {
        code: "D04",
        title: "a file has no header",
        why: "The first line of a CSV file names its columns, and this file seems to have no such line: it is empty or \
              blank; it has none of the names that the schema or the model gives; or a cell of it is empty, a number, a \
              date, very long or has a control character. Rows are not public, and none is taken for names.",
        fix: "Add a line of names. If the first line has them, and they look like data (2020, 2021), say so: header = true \
              in the schema, or --header-is-names.",
        example: "quietly init clinic-test.csv --output test.schema.toml",
    },
    Entry {
        code: "D05",
        title: "two columns have the same name",
        why: "A schema, a model and --target know columns by name, so that each name must stand for one of them.",
        fix: "Rename all but one in the file. The message counts columns from 1; it quotes no name that only the file says.",
        example: "quietly bounds --public clinic-test.csv bmi",
    },
    Entry {
        code: "D06",
        title: "the files are not one table",
        why: "Several files, or a folder of them, are read as one table, one after the other. That needs the same \
              columns in the same order.",
        fix: "Leave out what does not belong, or bring the columns into one order.",
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
        why: "`quietly init` wrote \"?\" where only people know the answer: about how many rows there are, the \
              range of a number, the values of a category. Whatever is looked up in the rows instead would give \
              them away.",
        fix: "Write what everybody may know. Delete the lines of columns that are not to be used. Or have a range \
              estimated at a price, or taken from a public file for nothing.",
        example: "quietly bounds clinic.csv systolic --epsilon 0.1 --rows 20000",
    },
    Entry {
        code: "D09",
        title: "the schema says something impossible",
        why: "All lines that make no sense are listed: a range whose ends are swapped, a value that stands there \
              twice, a word that is not a key, a name with a control or format character or of more than 200 characters.",
        fix: "Repair those lines.",
        example: "quietly plan linear clinic.schema.toml --target days --epsilon 1",
    },
    Entry {
        code: "D10",
        title: "the table lacks a column",
        why: "The schema, the model or the command names a column that is not in the table's header. To predict, a \
              table needs every column that the model was fitted on, but not the target.",
        fix: "Use the names of the header, letter by letter; delete a line of the schema that has no column.",
        example: "quietly bounds clinic.csv bmi --epsilon 0.1",
    },
    Entry {
        code: "D11",
        title: "the schema does not describe a column",
        why: "--target and --features can only name columns with a line in the schema: without a public range \
              there is no telling what one row can do.",
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
              cannot. Nor can a column hold what its rule wants if that is a range and it has texts, or if all values \
              are texts and it has numbers. Nothing was charged.",
        fix: "Convert the columns, or leave them out of the schema. numbers_in_text = true in a column's rule says that its \
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
        title: "nothing is left to learn from",
        why: "Besides the target there is no column with a line in the schema, or none that --features names.",
        fix: "Add a line under [columns], or name other features.",
        example: "quietly plan linear clinic.schema.toml --target days --features age --epsilon 1",
    },
    Entry {
        code: "D16",
        title: "this cannot stand between cells",
        why: "The delimiter of a CSV file is one byte that is neither a quote nor the end of a line.",
        fix: "Give one such as ';' or tab, or leave it out: it is found in the header.",
        example: "quietly bounds clinic.csv age --epsilon 0.1 --delimiter ,",
    },
    Entry {
        code: "D17",
        title: "batches in memory do not make one table",
        why: "A program handed a table over in parts that have other columns, or without a name for each of them.",
        fix: "Give all parts the same columns; files do not have this trouble.",
        example: "quietly plan linear clinic.schema.toml --target days --features age --epsilon 1",
    },
    Entry {
        code: "D18",
        title: "this cannot be read in parts",
        why: "A cluster, a prepared table and a run that can go on read parts of files again and again. Only Parquet knows where its \
              rows are.",
        fix: "Write the table as Parquet first, or fit it on this machine without --cluster and --checkpoint.",
        example: "quietly plan linear clinic.schema.toml --target days --epsilon 1",
    },
    Entry {
        code: "D19",
        title: "the same rows may be in the table twice",
        why: "A file is named twice; or a folder holds files of more than one format, or a file and a copy of it (t.csv, \
              t.csv.gz, t copy.csv, t (1).csv). A person whose row is read twice is protected half as well as the \
              certificate says.",
        fix: "Name each file of the table once. Files that are named one by one are taken as they are, but none twice.",
        example: "quietly fit linear clinic.csv clinic-test.csv --target days --epsilon 1 --output days.quietly",
    },
];
