//! The one error type of the crate.

/// Why noise could not be drawn. Names parameters, never a data value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages explain the fields")]
#[non_exhaustive]
pub enum Error {
    /// A parameter is outside its domain.
    #[error("{name} must be {want}, but is {got}")]
    Parameter { name: &'static str, want: &'static str, got: String },
    /// The operating system gave no randomness, so nothing private can be made.
    #[error("the operating system gave no random key: {reason}")]
    OperatingSystem { reason: String },
    /// A coordinate used up its private counter range. With ideal bits this
    /// has probability far below 2⁻¹⁰⁰⁰⁰, so it means a broken generator.
    #[error(
        "step {step}, coordinate {coordinate} used all its random bits; is the generator broken?"
    )]
    Exhausted { step: u64, coordinate: u64 },
}

impl Error {
    /// The name of the exception in other languages, without its suffix "Error".
    pub fn name(&self) -> &'static str {
        match self {
            Error::Parameter { .. } => "NoiseParameter",
            Error::OperatingSystem { .. } => "NoRandomness",
            Error::Exhausted { .. } => "RandomnessExhausted",
        }
    }

    pub(crate) fn parameter(name: &'static str, want: &'static str, got: impl ToString) -> Self {
        Self::Parameter { name, want, got: got.to_string() }
    }

    /// `Ok` when `good`, else the parameter error.
    pub(crate) fn ensure(
        good: bool,
        name: &'static str,
        want: &'static str,
        got: impl ToString,
    ) -> Result<(), Self> {
        if good { Ok(()) } else { Err(Self::parameter(name, want, got)) }
    }
}
