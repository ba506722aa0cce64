//! How the rows of a partitioned table were allocated to steps: part of a certificate.
use std::fmt;

use serde::{Deserialize, Serialize};

/// How records came to their steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Allocation {
    /// What tells it from others.
    pub id: String,
    /// How many steps there are.
    pub steps: u64,
    /// Where the steps came from.
    pub randomness: String,
    /// From a fixed seed: not for release.
    pub test_only: bool,
}

impl fmt::Display for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Allocation { id, steps, randomness, .. } = self;
        write!(
            f,
            "each row in one of {steps} steps, uniformly at random: allocation {id}, {randomness}, deleted afterwards"
        )
    }
}
