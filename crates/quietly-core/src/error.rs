//! The errors of the core. Crates above convert them into their own error, variant by variant.

/// Why there is no result. Names parameters and files; never a data value.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages explain the fields")]
pub enum Error {
    /// The accountant refuses.
    #[error(transparent)]
    Accounting(#[from] quietly_accounting::Error),
    /// No randomness.
    #[error(transparent)]
    Noise(#[from] quietly_noise::Error),
    /// A parameter is outside its domain.
    #[error("{name} must be {want}, but is {got}")]
    Parameter { name: &'static str, want: &'static str, got: String },
    /// A file could not be read or written.
    #[error("{path}: {why}")]
    File { path: String, why: String },
    /// A ledger has less left than a run costs.
    #[error(
        "this run needs {requested}, but the ledger has {left} left of {limit}; nothing was read or spent"
    )]
    BudgetExceeded { requested: String, left: String, limit: String },
    /// The run was interrupted. Nothing was released.
    #[error("interrupted; nothing was released")]
    Interrupted,
}

impl Error {
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
