//! DP-PGD: projected full-batch descent with bounds known beforehand.
//!
//! Shen et al., *Differentially Private Non-convex Learning for Multi-layer Neural Networks*, 2023.
//!
//! With rows of norm R, targets within Y and weights of norm W no gradient exceeds R·(R·W + Y), and gradients are clipped there.
//! R is 1.25 private medians and Y a private quantile, so that some rows are longer and some targets farther: theirs may be
//! clipped, where the paper scales them down. W must be given. Twenty averaged steps do what the paper asks N²
//! evaluations for. The bound does not follow the residuals, and the noise with it: a factor R·W/σ behind adaptive clipping.
use quietly_engine::{error::Error, link::Link};

use super::{Clip, Pace, Paper, Parameters, Recipe, approaching, steps};

/// The level of the target's bound.
pub(super) const TARGET_LEVEL: f64 = 0.98;

pub(super) fn recipe(link: Link, asked: &Parameters) -> Result<Recipe, Error> {
    let got = asked.radius.map_or("missing".into(), |radius| radius.to_string());
    let radius = asked.radius.filter(|radius| *radius > 0.0 && *radius < 1e12);
    let want = "given: the largest norm of the weights, above 0 and below 1e12";
    Error::ensure(radius.is_some(), "radius", want, got)?;
    Ok(Recipe {
        whitenings: 0,
        clip: Clip::Bound,
        pace: Pace::Given { step: if link == Link::Relu { 2.0 } else { 1.0 } },
        radius,
        ..Recipe::usual(Paper::DpPgd, approaching(link), steps(asked, 20)?)
    })
}
