//! The loss of a perturbed objective: the minimiser of Σ q(⟨w, x_i⟩) + Λ/2·‖w‖² + ⟨b, w⟩ with b ~ N(0, σ²I).
//!
//! A record's slope at the minimiser is s·(a sign that the record fixes), 0 ≤ s ≤ τ, and its curvature is at most s(1 - s): the
//! logistic loss, whose slopes may be cut at τ. With m = ‖x‖/σ and c = ‖x‖²/Λ, the ratio of the minimiser's densities with and
//! without the record, at the point that b leads to, is at most e^f(s),
//!
//! f(s) = s·z + s²m²/2 + ln(1 + s(1 - s)c),    z ~ N(0, m²):
//!
//! the first two terms are (‖b + v‖² - ‖b‖²)/2σ² for v = ±s·x, the third is the ratio of the determinants, at most
//! 1 + s(1 - s)·xᵀM⁻¹x with M ⪰ ΛI. Without the record in P it is below 1 and left out. As s is whatever it is, the loss is at most
//!
//! U(z) = max over s in [0, τ] of f(s) ≥ 0.
//!
//! So δ(ε) ≤ E(1 - e^(ε - U))₊ for every ε of either sign, which is all that composition asks of a loss. U never falls in z, so
//! U ≤ t iff z ≤ z(t) = min over s of (t - s²m²/2 - ln(1 + s(1 - s)c))/s, and its law is that of a normal tail. A shorter record has
//! smaller m and c, hence a smaller f for every s at the same z/m ≥ 0; where z < 0 it moves f towards zero, and U is 0 or bounded
//! by the third term alone: lengthening is covered by U ≥ 0 and by a c that is the longest record's, see [`Perturbed::top`].
use crate::{
    cells::Cells,
    normal::{cdf, upper_tail},
};

/// m, c and τ of the longest record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Perturbed {
    pub(crate) mu: f64,
    pub(crate) bend: f64,
    pub(crate) most: f64,
}
