//! Audits: lower bounds on ε by experiment, beside the proven upper bound.
//!
//! A proof bounds ε from above and can have a mistake, as can the code that it is about. An attack bounds ε from below and
//! cannot prove privacy, but it catches mistakes: an empirical lower bound above the proven upper bound is one.
//!
//! * [`tracing`] trains models on made-up tables and looks for the tables in them.
//! * [`canary`] adds one row as bad as can be, many times, and tells the releases with it from those without. It looks at
//!   a [`Mechanism`] from the inside, at whole fits ([`canary_in_fits`]), or at any closure.
//! * [`Claim`] is what is proven, as an attacker reads it.
//!
//! All tables are synthetic: an audit reads no private data and spends nothing. A mechanism that keeps its guarantee is
//! accused with chance [`FALSE_ACCUSATION`] at most.
pub use canary::{Canary, FALSE_ACCUSATION, Sighting, canary, canary_in_fits};
pub use mechanism::{Broken, Mechanism, Scheme};
pub use tracing::{Mean, Tracing, tracing};
pub use tradeoff_curve::Claim;

mod canary;
mod confidence;
mod mechanism;
mod synthetic;
mod tracing;
mod tradeoff_curve;

#[cfg(test)]
mod tests;

/// What an audit concludes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing was seen that the claim does not allow. That is no proof.
    Within,
    /// More was seen than the claim allows: it is wrong, but for the stated chance.
    Caught,
}

impl Verdict {
    /// The word used on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Within => "within the claim",
            Verdict::Caught => "caught",
        }
    }
}
