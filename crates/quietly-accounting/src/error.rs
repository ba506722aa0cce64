/// Why a cost could not be computed. No variant carries data: an accountant reads none.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages explain the fields")]
#[non_exhaustive]
pub enum Error {
    /// A parameter is outside its domain.
    #[error("{name} must be {want}, but is {}", readable(*.got))]
    Parameter { name: &'static str, want: &'static str, got: f64 },
    /// No theorem covers this event under this neighbouring relation.
    #[error("there is no privacy theorem for {event} under {relation}; {instead}")]
    Unsupported { event: &'static str, relation: &'static str, instead: &'static str },
    /// A count is above what can be accounted for.
    #[error("{name} is too large: at most {most} can be accounted for; {instead}")]
    TooLarge { name: &'static str, most: u64, instead: &'static str },
    /// No amount of noise in the supported range meets the target.
    #[error(
        "no noise multiplier between {least} and {most} meets epsilon = {epsilon} at delta = {delta}; {instead}"
    )]
    Unreachable { least: f64, most: f64, epsilon: f64, delta: f64, instead: &'static str },
}

/// Large numbers in scientific notation.
fn readable(x: f64) -> String {
    if x.abs() < 1e16 || !x.is_finite() { x.to_string() } else { format!("{x:e}") }
}

impl Error {
    /// The stable code that `quietly explain` takes.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Parameter { .. } => "A01",
            Error::Unsupported { .. } => "A02",
            Error::TooLarge { .. } => "A03",
            Error::Unreachable { .. } => "A04",
        }
    }

    /// The name of the exception in other languages, without its suffix "Error".
    pub fn name(&self) -> &'static str {
        match self {
            Error::Parameter { .. } => "Parameter",
            Error::Unsupported { .. } => "Unsupported",
            Error::TooLarge { .. } => "TooMany",
            Error::Unreachable { .. } => "Unreachable",
        }
    }

    pub(crate) fn within(
        name: &'static str,
        want: &'static str,
        got: f64,
        ok: bool,
    ) -> Result<f64, Error> {
        if ok && got.is_finite() { Ok(got) } else { Err(Error::Parameter { name, want, got }) }
    }

    pub(crate) fn noise(name: &'static str, got: f64) -> Result<f64, Error> {
        let want = "a number from 0.1 to 100000 (standard deviation over sensitivity)";
        Error::within(name, want, got, (0.1..=1e5).contains(&got))
    }

    pub(crate) fn rate(got: f64) -> Result<f64, Error> {
        let want = "a probability from 1e-9 to 1";
        Error::within("sampling_rate", want, got, (1e-9..=1.0).contains(&got))
    }

    pub(crate) fn delta(got: f64) -> Result<f64, Error> {
        let want = "from 1e-12 to 0.5 (Gaussian noise has no finite epsilon at delta 0)";
        Error::within("delta", want, got, (1e-12..=0.5).contains(&got))
    }

    pub(crate) fn epsilon(got: f64) -> Result<f64, Error> {
        Error::within("epsilon", "from 0.001 to 1000", got, (1e-3..=1e3).contains(&got))
    }

    pub(crate) fn count(name: &'static str, got: u64, most: u64) -> Result<u64, Error> {
        if got == 0 {
            return Err(Error::Parameter { name, want: "at least 1", got: 0.0 });
        }
        if got > most {
            return Err(Error::TooLarge {
                name,
                most,
                instead: "use a smaller value, or account for parts of the run and add up",
            });
        }
        Ok(got)
    }
}
