//! Sampling of fixed size.
use super::Branch;
use crate::{composition::Composition, dominating_pair::DominatingPair};

/// The lower bound is an instance. With all other units at +1 and the unit at -1 or +1, the pair is
/// N(0) against a shift of two with probability `rate` (replace-one). With all others at zero it is
/// an instance of replacement by the null unit.
pub(super) fn bound(rate: f64, noise: f64, replace: bool) -> Branch {
    let gap = if replace { 2.0 } else { 1.0 };
    if rate == 1.0 {
        return Branch::exact(
            Composition::gaussian(gap / noise),
            Composition::gaussian(1.0 / noise),
            "Gaussian, exact",
        );
    }
    let doubled = Composition::of(DominatingPair::FixedSize { rate, sigma: 0.5 * noise });
    let method = "fixed size, symmetrised pair";
    let lower = vec![Composition::of(DominatingPair::Poisson { rate, sigma: noise / gap })];
    let branch = Branch {
        direct: vec![(doubled.clone(), method)],
        absent: vec![(doubled, method)],
        lower,
        through_absence: false,
    };
    branch.or_full_batch(gap / noise)
}
