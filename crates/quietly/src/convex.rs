//! Convex losses, their public constants, and the sets that weights are kept in.
//!
//! The objective is f(w, z) = ℓ(w, z) + r(w): a data term ℓ(w, (x, y)) = q(⟨w, x⟩, y) and a
//! regulariser r. Privacy hangs on two numbers, both suprema over everything that is possible:
//! the longest gradient of ℓ, and the longest difference of two gradients of ℓ at one w. Neither
//! sees r, which is the same for all records, nor any data.
//!
//! * [`Loss`] is q: its values, slopes and bends.
//! * `constants` bounds the gradients, from what is public about rows and weights.
//! * [`Set`] is where the weights live, and projects onto it; `Within` cuts a ball out of it.
//! * [`Regulariser`] is r.
//!
//! Four kinds of method fit it. One perturbs the objective and minimises (`perturb`, with `minimise` and `projected` for minimisers
//! that come with a proof, and `scaling` for rows of even size); one releases a point after every phase of rows (`phases`, and
//! one short file for every algorithm); one releases the last point of a descent (`bolt_on`); one adds noise to every
//! gradient (`descent`). The first three have δ = 0 as well.
pub use self::{
    bolt_on::OutputPerturbation,
    descent::NoisyGradients,
    fit::ConvexFit,
    localisation::Localisation,
    loss::Loss,
    perturb::ObjectivePerturbation,
    plain::Minimiser,
    program::{Growth, Program},
    regulariser::Regulariser,
    run::Weights,
    scaling::RowMap,
    set::Set,
};
pub(crate) use self::{
    fit::{ConvexMethod, mu, planned},
    query::ConvexQuery,
};

pub(crate) mod bolt_on;
mod constants;
mod corner_erm;
pub(crate) mod descent;
mod double;
mod epoch;
mod examples;
mod fit;
mod glm;
mod iterated;
mod localisation;
mod loss;
#[cfg(test)]
mod method_tests;
mod minimise;
mod newton;
mod perturb;
mod phased_erm;
mod phased_sgd;
mod phases;
mod plain;
#[cfg(test)]
mod plan_tests;
mod program;
mod project;
mod projected;
#[cfg(test)]
mod projection_tests;
mod psa;
mod psa_two;
#[cfg(test)]
mod pure_tests;
mod query;
mod regulariser;
#[cfg(test)]
mod rival_tests;
mod run;
pub(crate) mod scaling;
mod set;
mod shift;
mod softmax;
mod spread;
#[cfg(test)]
mod utility_tests;
mod within;
