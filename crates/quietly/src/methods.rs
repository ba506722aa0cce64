//! The ways to fit a regression, by name.
use serde::{Deserialize, Serialize};

pub use self::about::MethodInfo;
use quietly_engine::link::Link;

mod about;

/// How a regression is fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Method {
    /// Full batch where the table fits into memory, otherwise one pass.
    Auto,
    /// Every row in every step, from memory.
    FullBatch,
    /// Each row in one step drawn at random, streamed.
    OnePass,
    /// Least squares without noise: what ε = ∞ asks for.
    Exact,
    /// One row a step, one clip.
    DpSsgd,
    /// Minibatches with adaptive clipping.
    DpAmbssgd,
    /// The same as published: parts without amplification, thresholds by noisy counts.
    DpAmbssgdPublished,
    /// One row a step, thresholds from public rows.
    DpGlmtron,
    /// Minibatches with private or public thresholds.
    DpMbglmtron,
    /// The same as published: parts without amplification, thresholds by noisy counts.
    DpMbglmtronPublished,
    /// Prefix sums released by a tree.
    DpTaglmtron,
    /// Full batch with bounds known beforehand, projected.
    DpPgd,
    /// Poisson samples with one clip.
    DpSgd,
    /// DP-SGD as one pass of minibatches with adaptive clipping.
    DpSgdOnePass,
    /// DP-SGD with one row a step, thresholds from public rows.
    DpSgdOneRow,
    /// Full batch, whitened, clipped at a private median.
    AdaptiveGd,
    /// Noisy sufficient statistics, regularised.
    #[serde(rename = "adassp")]
    AdaSsp,
    /// The same, boosted by clipped residuals.
    #[serde(rename = "boosted-adassp")]
    BoostedAdaSsp,
    /// A deep point among many least-squares fits.
    TukeyEm,
    /// The minimiser of a perturbed objective.
    Amp,
    /// The same on rows that are privately centred, scaled and bounded.
    ScaledAmp,
    /// Full-batch descent on clipped gradients of a convex loss.
    DpGd,
    /// Steps towards the lowest vertex of the set.
    FrankWolfe,
    /// Passes of gradient steps, of which the last point is released.
    ScPsgd,
    /// Full-batch descent of which the last point is released.
    GdOp,
    /// Phases of single passes, each released.
    PhasedSgd,
    /// Phased-SGD in balls that halve.
    Psa,
    /// Phased-SGD on parts that double, for strongly convex losses.
    PhasedSgdSc,
    /// Phased-SGD-SC around centres that follow.
    #[serde(rename = "psa-ii")]
    PsaTwo,
    /// Phased-SGD on parts that double.
    IteratedPhasedSgd,
    /// Phases of certified minimisers.
    PhasedErm,
    /// Passes that double while steps halve.
    EpochDpSgd,
    /// Epoch-DP-SGD from Iterated Phased-SGD.
    FasterDpsgdSc,
    /// DP-SGD on a Kolmogorov–Arnold network.
    Kan,
}

impl Method {
    /// Whether it cannot do without public rows.
    pub fn wants_public_rows(self) -> bool {
        matches!(self, Method::DpGlmtron | Method::DpSgdOneRow)
    }

    /// Every method that can be asked for.
    pub const ALL: [Method; 32] = [
        Method::Auto,
        Method::FullBatch,
        Method::OnePass,
        Method::AdaptiveGd,
        Method::DpSsgd,
        Method::DpAmbssgd,
        Method::DpAmbssgdPublished,
        Method::DpGlmtron,
        Method::DpMbglmtron,
        Method::DpMbglmtronPublished,
        Method::DpTaglmtron,
        Method::DpPgd,
        Method::DpSgd,
        Method::DpSgdOnePass,
        Method::DpSgdOneRow,
        Method::AdaSsp,
        Method::BoostedAdaSsp,
        Method::TukeyEm,
        Method::ScaledAmp,
        Method::Amp,
        Method::DpGd,
        Method::FrankWolfe,
        Method::ScPsgd,
        Method::GdOp,
        Method::PhasedSgd,
        Method::Psa,
        Method::PhasedSgdSc,
        Method::PsaTwo,
        Method::IteratedPhasedSgd,
        Method::PhasedErm,
        Method::EpochDpSgd,
        Method::FasterDpsgdSc,
    ];

    /// The method of this name.
    pub fn named(name: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|m| m.name() == name)
    }

    /// Whether it fits convex losses, and not squares alone.
    pub fn is_convex(self) -> bool {
        self.about().links.contains(&Link::Logistic)
    }

    /// The word used on the command line and in files.
    pub fn name(self) -> &'static str {
        self.about().name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_ones_in_files() {
        for method in Method::ALL {
            assert_eq!(serde_json::to_value(method).unwrap(), method.name());
            assert_eq!(Method::named(method.name()), Some(method));
        }
    }
}
