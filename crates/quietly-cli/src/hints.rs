//! What to do about each failure.
use quietly::DataError;
use quietly_accounting::Error;

use crate::error::Failure;

impl Failure {
    /// What to do about it.
    pub(crate) fn hint(&self) -> String {
        match self {
            Failure::Refused(error) => of_accounting(error).into(),
            Failure::Library(quietly::Error::Data(error)) => of_data(error).into(),
            Failure::Library(error) => of_library(error),
            Failure::File { .. } => "check the path and its permissions".into(),
            Failure::Exists(_) => "give another name, move the file, or use --force where the command has it".into(),
            Failure::Busy(_) => "give another name with --output; nothing was read or charged".into(),
            Failure::NoRows => {
                "the table does not match the model's schema: check types, decimal separators and categories"
                    .into()
            }
            Failure::Ledgers { .. } => {
                "leave out --ledger, or use --no-ledger to charge none. Nothing was read or charged".into()
            }
            Failure::Unledgered { .. } => {
                "if the rows are public, use --no-ledger. Nothing was read".into()
            }
            Failure::Folder(_) => "give the name of a new folder with --output; nothing was run".into(),
            Failure::Input(_) => "give another name with --output; nothing was written".into(),
            Failure::Price { file } => format!(
                "quietly bounds {file} COLUMN --epsilon 0.1, or quietly bounds --public OTHER COLUMN, which costs nothing"
            ),
            Failure::Header => "give the table with --header FILE: only its first line is read".into(),
            Failure::NoColumns { file } => format!("quietly bounds {file} COLUMN --epsilon 0.1"),
            Failure::Participation(_) => {
                "give one of --full, --sampling-rate, --bins, --period (perhaps with --sampling-rate), --separation with --participations, \
                 --records with --batch"
                    .into()
            }
            Failure::Misplaced(_) => "nothing was read or spent".into(),
            Failure::NoSuchMethod(_) => "`quietly methods` lists them".into(),
            Failure::Unreadable { flag, .. } if flag == "--format" => "or leave it out: it is detected from the file's name".into(),
            Failure::Unreadable { flag, .. } if flag == "--method" || flag == "--model" => {
                "`quietly audit tracing --help` starts with an example".into()
            }
            Failure::Unreadable { flag, .. } if flag == "--delimiter" => "such as --delimiter ';', or --delimiter tab".into(),
            Failure::Unreadable { flag, .. } if flag.starts_with("--expand") => "such as --expand splines, or --expand fourier=100".into(),
            Failure::Unreadable { .. } => "write numbers with a point and without units".into(),
            Failure::Question(_) => "for example --delta 1e-5".into(),
            Failure::Signal(_) => {
                "for example --snr 0.6 --rows 200 --epsilon 1, or TABLE --target COLUMN --epsilon 1 --spend 0.1".into()
            }
            Failure::Strategy(_) => "for example --lambda 0.9, or --bands 1,0.5,0.25".into(),
            Failure::Usage { help, .. } => help.clone(),
            Failure::Unfinished { .. } => "`quietly --help` starts with an example".into(),
            Failure::NoSuchCode(_) => "`quietly explain` lists all codes".into(),
            Failure::Caught { .. } => {
                "the noise, the sampling or the accounting is wrong (expected with --broken); try another --seed".into()
            }
            Failure::Output(_) => "check the free space of the disk".into(),
            Failure::Broken(_) => "please report this bug with the command".into(),
        }
    }
}

fn of_accounting(error: &Error) -> &'static str {
    match error {
        Error::Parameter { name, .. } | Error::TooLarge { name, .. } => of_flag(name),
        Error::Unsupported { .. } => "`quietly account --help` lists the other schemes",
        Error::Unreachable { .. } => {
            "raise --epsilon or --delta, or lower --steps or --sampling-rate"
        }
        _ => "see `quietly account --help`",
    }
}

fn of_library(error: &quietly::Error) -> String {
    use quietly::Error as Library;
    match error {
        Library::Parameter { name: "epsilon", .. } => {
            "--epsilon is shared by all columns; 0.1 for each is a common start, and nothing was spent".into()
        }
        Library::Parameter { name: "method", .. } => {
            "`quietly methods` says what each of them fits; nothing was spent".into()
        }
        Library::Parameter { name: "delta", .. } => of_flag("delta").into(),
        Library::Parameter { name: "rows of the table" | "rows of --test" | "rows of --public", .. } => {
            "check the files; a comparison needs some hundred rows to be useful".into()
        }
        Library::Parameter { name: "--radius" | "--public", .. } => {
            "give the flag, or leave the method out of --methods".into()
        }
        Library::Parameter { name: "rows", .. } => {
            "set rows = N in the schema, the approximate number; nothing was spent".into()
        }
        Library::Parameter { name: "number of features", .. } => {
            "select fewer with --features A,B; a category is one feature per value".into()
        }
        Library::Parameter { name: "column", .. } => {
            "a range is for numbers; a category has values = [...] in the schema".into()
        }
        Library::File { why, .. } if why.contains("--repair") => {
            "--repair removes the incomplete line and records that; nothing was charged".into()
        }
        Library::File { why, .. } if why.contains("pass `limit`") => {
            "quietly budget LEDGER --limit 3 --delta 1e-5 creates one; nothing was read or charged".into()
        }
        Library::File { why, .. } if why.contains("nothing can be charged") => {
            "restore the ledger from a backup, and check who can write to it; nothing was read or charged".into()
        }
        Library::File { why, .. } if why.contains("checkpoint") || why.contains("another run") => {
            "nothing was read or charged".into()
        }
        Library::File { .. } => "check the path and its permissions".into(),
        other => other.hint(),
    }
}

/// The messages say what is wrong; this is which flag or file to change.
fn of_data(error: &DataError) -> &'static str {
    match error {
        DataError::Unreadable { path, .. } if path.extension().is_some_and(|e| e == "toml") => {
            "`quietly init TABLE` writes a schema beside the table; --schema FILE names another one"
        }
        DataError::Unreadable { .. } => "check the path and its permissions",
        DataError::NoFiles { .. } => "name the files one by one, with --format NAME",
        DataError::Damaged { .. } => {
            "give --format csv, parquet, arrow or libsvm, or copy the file again"
        }
        DataError::NoHeader { .. } => {
            "the first line must name the columns: age,hours,income; if it does, use --header-is-names"
        }
        DataError::DuplicateColumns { .. } => "change the names in the first line of the file",
        DataError::DifferentColumns { .. } => "give only files that are parts of one table",
        DataError::Foreign { .. } => {
            "CSV, Parquet, Arrow IPC and libsvm text are read, also with .gz"
        }
        DataError::RepeatedFiles { .. } => {
            "a repeated row has half the protection; give each file once, one by one"
        }
        DataError::Syntax { .. } => "a line reads  age = { range = [0, 100] }",
        DataError::Unfinished { .. } => {
            "fill in public knowledge; or `quietly bounds TABLE COLUMN --epsilon 0.1`, which spends 0.1; or `quietly \
             bounds --public FILE COLUMN`, which spends nothing"
        }
        DataError::Schema { .. } => {
            "`quietly init TABLE --output new.schema.toml` shows all that a line can say"
        }
        DataError::MissingColumns { .. } => "names must equal those of the table's first line",
        DataError::UnknownColumns { .. } => {
            "--target and --features take names from the schema's [columns]"
        }
        DataError::Target { .. } | DataError::NoTarget => {
            "--target names one column that has a range in the schema, or values for a classifier"
        }
        DataError::Types { .. } => {
            "remove their lines from the schema, or the columns from --features"
        }
        DataError::Features { .. } => {
            "`quietly init FILE --features N` writes a schema that says so; `bounds` takes --features, too"
        }
        DataError::NoFeatures { .. } => {
            "the schema's [columns], or --features, must name one besides the target"
        }
        DataError::Delimiter { .. } => "such as --delimiter ';', or --delimiter tab",
        DataError::NotParquet { .. } => "convert the table to Parquet, or leave out --checkpoint",
        _ => "`quietly init TABLE` writes a schema to start from",
    }
}

/// What a flag means and what is usual.
fn of_flag(name: &str) -> &'static str {
    match name {
        "noise_multiplier" => {
            "--noise-multiplier is the standard deviation of the noise over the sensitivity; 1 is a common start"
        }
        "scale" => {
            "--scale is the scale of Laplace noise over the sensitivity; 1 is a common start"
        }
        "sampling_rate" => {
            "--sampling-rate is the probability that a row is in a batch: batch size over rows, such as 0.01"
        }
        "delta" => "choose --delta well below one over the number of rows, such as 1e-5",
        "epsilons" => "write --epsilons as 0.1,1: every fit spends its own; 0.1 to 10 is usual",
        "seeds" => {
            "--seeds is the number of random splits, each with independent noise; 5 is a common start"
        }
        "epsilon" => {
            "--epsilon is the privacy budget: 1 is strong, 4 is weak, and above 7 there is no meaningful protection"
        }
        "epsilon-each" => "--epsilon-each is the epsilon of one release, such as 0.1",
        "lambda" => {
            "--lambda is the share of the last step's noise that is subtracted; 0 is independent noise, 0.9 is usual"
        }
        "bands" => "write --bands as 1,0.5,0.25: the first coefficient is 1",
        "steps" => "--steps is the number of noisy sums; write 1000 or 1e3, up to 1e7 in all",
        "epochs" => "--epochs is the number of epochs; --epochs times --steps is at most 1e7",
        "select" => "--select is in how many steps of an epoch a row takes part: at most --steps",
        "threads" => "--threads is the number of threads; all cores by default",
        "seed" => "--seed is any whole number, for tests; leave it out for a release",
        "rows" => "--rows is the approximate number of rows, which is public",
        "features" => "--features is the highest index in the libsvm text",
        "records" => "--records is the number of rows of the table",
        "batch" => "--batch is the size of one batch: at most --records",
        "period" | "bins" | "separation" | "participations" => {
            "it is a number of steps: at least 1, at most --steps"
        }
        _ => "see `quietly account --help`",
    }
}
