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
            Failure::File { .. } => "is the path right, and may you write there?".into(),
            Failure::Exists(_) => "give another name, move the file away, or say --force where the command has it".into(),
            Failure::Busy(_) => "give another name with --output; nothing was read or charged".into(),
            Failure::NoRows => {
                "the table does not hold what the model's schema says: check types, decimal separators and categories"
                    .into()
            }
            Failure::Ledgers { .. } => {
                "leave --ledger out; --no-ledger insists on charging none. Nothing was read or charged".into()
            }
            Failure::Unledgered { .. } => {
                "--no-ledger insists that the rows are public. Nothing was read".into()
            }
            Failure::Folder(_) => "give the name of a new folder with --output; nothing was run".into(),
            Failure::Input(_) => "give another name with --output; nothing was written".into(),
            Failure::Price { file } => format!(
                "quietly bounds {file} COLUMN --epsilon 0.1, or quietly bounds --public OTHER COLUMN, which costs nothing"
            ),
            Failure::Header => "give the table with --header FILE: its first line is read, and no row".into(),
            Failure::NoColumns { file } => format!("quietly bounds {file} COLUMN --epsilon 0.1"),
            Failure::Participation(_) => {
                "give one of --full, --sampling-rate, --bins, --period (perhaps with --sampling-rate), --separation with --participations, \
                 --records with --batch"
                    .into()
            }
            Failure::NoSuchMethod(_) => "`quietly methods` lists them".into(),
            Failure::Unreadable { flag, .. } if flag == "--format" => "or leave it out: the file's name says it, too".into(),
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
                "the noise, the sampling or the accounting is wrong, unless --broken asked for it; try another --seed".into()
            }
            Failure::Output(_) => "is the disk full?".into(),
            Failure::Broken(_) => "please report it, with the command you typed".into(),
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
            "`quietly methods` says what each is for; nothing was spent".into()
        }
        Library::Parameter { name: "delta", .. } => of_flag("delta").into(),
        Library::Parameter { name: "rows of the table" | "rows of --test" | "rows of --public", .. } => {
            "are the files right? Some hundred rows are the least from which anything can be learnt".into()
        }
        Library::Parameter { name: "--radius" | "--public", .. } => {
            "give the flag, or leave the method out of --methods".into()
        }
        Library::Parameter { name: "rows", .. } => {
            "rows = N in the schema says about how many there are; nothing was spent".into()
        }
        Library::Parameter { name: "number of features", .. } => {
            "name fewer with --features A,B; a category makes one for each of its values".into()
        }
        Library::Parameter { name: "column", .. } => {
            "a range is for numbers; a category has values = [...] in the schema".into()
        }
        Library::File { why, .. } if why.contains("--repair") => {
            "--repair shows what is left of the history, cuts off what was not finished, and writes that down; nothing was charged".into()
        }
        Library::File { why, .. } if why.contains("give a limit") => {
            "quietly budget LEDGER --limit 3 --delta 1e-5 creates one; nothing was read or charged".into()
        }
        Library::File { why, .. } if why.contains("nothing can be charged") => {
            "restore the ledger from a backup, and ask who may write to it; nothing was read or charged".into()
        }
        Library::File { why, .. } if why.contains("journal") || why.contains("another run") => {
            "nothing was read or charged".into()
        }
        Library::File { .. } => "is the path right, and may you read it?".into(),
        other => other.hint(),
    }
}

/// The messages say what is wrong; this is which flag or file to change.
fn of_data(error: &DataError) -> &'static str {
    match error {
        DataError::Unreadable { path, .. } if path.extension().is_some_and(|e| e == "toml") => {
            "`quietly init TABLE` writes a schema beside the table; --schema FILE names another one"
        }
        DataError::Unreadable { .. } => "is the path right, and may you read it?",
        DataError::NoFiles { .. } => "name the files one by one, with --format NAME",
        DataError::Damaged { .. } => {
            "--format csv, parquet, arrow or libsvm says what it is; or copy the file once more"
        }
        DataError::NoHeader { .. } => {
            "the first line names the columns: age,hours,income; if it does, --header-is-names says so"
        }
        DataError::DuplicateColumns { .. } => "change the names in the first line of the file",
        DataError::DifferentColumns { .. } => "name only files that are parts of one table",
        DataError::Foreign { .. } => {
            "CSV, Parquet, Arrow IPC and libsvm text are read, also with .gz"
        }
        DataError::RepeatedFiles { .. } => {
            "a row that is there twice is protected half as well; name each file once, one by one"
        }
        DataError::Syntax { .. } => "a line reads  age = { range = [0, 100] }",
        DataError::Unfinished { .. } => {
            "write what everybody knows; or `quietly bounds TABLE COLUMN --epsilon 0.1`, at that price; or `quietly \
             bounds --public FILE COLUMN`, for nothing"
        }
        DataError::Schema { .. } => {
            "`quietly init TABLE --output new.schema.toml` shows all that a line can say"
        }
        DataError::MissingColumns { .. } => {
            "names must be those of the table's first line, letter by letter"
        }
        DataError::UnknownColumns { .. } => {
            "--target and --features take names from the schema's [columns]"
        }
        DataError::Target { .. } | DataError::NoTarget => {
            "--target names one column that has a range in the schema, or values for a classifier"
        }
        DataError::Types { .. } => {
            "leave their lines out of the schema, or the columns out of --features"
        }
        DataError::Features { .. } => {
            "`quietly init FILE --features N` writes a schema that says so; `bounds` takes --features, too"
        }
        DataError::NoFeatures { .. } => {
            "the schema's [columns], or --features, must name one besides the target"
        }
        DataError::Delimiter { .. } => "such as --delimiter ';', or --delimiter tab",
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
            "--sampling-rate is the probability that a row joins a step: batch size over rows, such as 0.01"
        }
        "delta" => "choose --delta well below one over the number of records, such as 1e-5",
        "epsilons" => {
            "write --epsilons as 0.1,1: each is spent by every fit, and 0.1 to 10 is usual"
        }
        "seeds" => "--seeds counts random splits, each with noise of its own; 5 is a common start",
        "epsilon" => {
            "--epsilon is the promise itself: 1 is strong, 4 is weak, and above 7 there is no meaningful protection"
        }
        "epsilon-each" => "--epsilon-each is the parameter of one choice, such as 0.1",
        "lambda" => {
            "--lambda says how much of the last step's noise is taken back; 0 is independent noise, 0.9 is usual"
        }
        "bands" => "write --bands as 1,0.5,0.25: the first coefficient is 1",
        "steps" => "--steps counts noisy sums; write 1000 or 1e3, up to 1e7 in all",
        "epochs" => "--epochs counts passes over the table; together with --steps at most 1e7",
        "select" => "--select is in how many steps of a pass a record takes part: at most --steps",
        "threads" => "--threads is how many may work at once; all cores do without it",
        "seed" => "--seed is any whole number, for tests; leave it out for a release",
        "rows" => "--rows is about how many rows the table has, as everybody may know",
        "features" => "--features is the highest index that the libsvm text may have",
        "records" => "--records is the size of the table",
        "batch" => "--batch is the size of one batch: at most --records",
        "period" | "bins" | "separation" | "participations" => {
            "it is counted in steps: at least 1, at most --steps"
        }
        _ => "see `quietly account --help`",
    }
}
