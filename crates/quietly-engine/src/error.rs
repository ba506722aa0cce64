//! The one error type of the engine, of all models, and of `quietly`.

/// Why there is no result. Names parameters, columns and files; never a data value.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages explain the fields")]
#[non_exhaustive]
pub enum Error {
    /// The accountant refuses.
    #[error(transparent)]
    Accounting(#[from] quietly_accounting::Error),
    /// The file or its schema cannot be used.
    #[error(transparent)]
    Data(#[from] quietly_data::Error),
    /// No randomness.
    #[error(transparent)]
    Noise(#[from] quietly_noise::Error),
    /// A parameter is outside its domain.
    #[error("{name} must be {want}, but is {got}")]
    Parameter { name: &'static str, want: &'static str, got: String },
    /// The table is too large for what was asked.
    #[error("{what} would need about {needed}; {instead}")]
    TooLarge { what: &'static str, needed: String, instead: &'static str },
    /// The model file cannot be used.
    #[error("{path} is not a model that this version can read: {why}")]
    Model { path: String, why: String },
    /// A file could not be read or written.
    #[error("{path}: {why}")]
    File { path: String, why: String },
    /// A ledger has less left than a run costs.
    #[error(
        "this run needs {requested}, but the ledger has {left} left of {limit}; nothing was read or spent"
    )]
    BudgetExceeded { requested: String, left: String, limit: String },
    /// Rows on other machines could not be asked.
    #[error("the cluster at {address} did not respond: {why}")]
    Remote { address: String, why: String },
    /// The run was asked to stop. Nothing was released.
    #[error("interrupted; nothing was released")]
    Interrupted,
}

impl Error {
    /// The stable code that `quietly explain` takes.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Accounting(error) => error.code(),
            Error::Data(error) => error.code(),
            Error::Noise(_) => "Q01",
            Error::Parameter { .. } => "Q02",
            Error::TooLarge { .. } => "Q03",
            Error::Model { .. } => "Q04",
            Error::File { .. } => "Q05",
            Error::Interrupted => "Q06",
            Error::BudgetExceeded { .. } => "Q07",
            Error::Remote { .. } => "Q08",
        }
    }

    /// What the other languages call it: the name of an exception without its "Error".
    pub fn name(&self) -> &'static str {
        match self {
            Error::Accounting(error) => error.name(),
            Error::Data(error) => error.name(),
            Error::Noise(error) => error.name(),
            Error::Parameter { .. } => "Parameter",
            Error::TooLarge { .. } => "TooLarge",
            Error::Model { .. } => "Model",
            Error::File { .. } => "File",
            Error::BudgetExceeded { .. } => "BudgetExceeded",
            Error::Remote { .. } => "Remote",
            Error::Interrupted => "FitInterrupted",
        }
    }

    /// Whether what was asked for is understood and refused, rather than broken.
    pub fn is_refusal(&self) -> bool {
        use quietly_data::Error as Data;
        match self {
            Error::Data(error) => {
                use Data::{Damaged, Foreign, Unreadable};
                !matches!(error, Unreadable { .. } | Damaged { .. } | Foreign { .. })
            }
            Error::Accounting(_)
            | Error::Parameter { .. }
            | Error::TooLarge { .. }
            | Error::BudgetExceeded { .. } => true,
            _ => false,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Error::Accounting(_) => "see `quietly account --help`",
            Error::Data(_) => "`quietly init FILE` writes a schema to start from",
            Error::Noise(_) => "no noise could be made, so nothing was released",
            Error::Parameter { .. } => "change that parameter; nothing was spent",
            Error::TooLarge { .. } => "nothing was spent",
            Error::Model { .. } => "make the model again with `quietly fit`, or update quietly",
            Error::File { .. } => "check the path, its permissions and the free space",
            Error::BudgetExceeded { .. } => {
                "lower epsilon or delta, or ask the owner of the ledger; a limit cannot be raised"
            }
            Error::Remote { .. } => {
                "check that the scheduler and executors run and see the same files. No model was made; with --checkpoint the \
                 same command resumes the run"
            }
            Error::Interrupted => {
                "what was charged to a ledger stays charged; with --checkpoint the same command resumes without a new charge"
            }
        }
        .into()
    }

    /// [`Error::Parameter`] unless something holds.
    ///
    /// # Errors
    ///
    /// That one.
    pub fn ensure(
        good: bool,
        name: &'static str,
        want: &'static str,
        got: impl ToString,
    ) -> Result<(), Self> {
        if good { Ok(()) } else { Err(Self::Parameter { name, want, got: got.to_string() }) }
    }
}

impl From<quietly_core::error::Error> for Error {
    fn from(error: quietly_core::error::Error) -> Self {
        use quietly_core::error::Error as Core;
        match error {
            Core::Accounting(error) => Error::Accounting(error),
            Core::Noise(error) => Error::Noise(error),
            Core::Parameter { name, want, got } => Error::Parameter { name, want, got },
            Core::File { path, why } => Error::File { path, why },
            Core::BudgetExceeded { requested, left, limit } => {
                Error::BudgetExceeded { requested, left, limit }
            }
            Core::Interrupted => Error::Interrupted,
        }
    }
}
