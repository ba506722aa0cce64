//! Convex losses, their public constants, and the sets that weights are kept in.
//!
//! The objective is f(w, z) = ℓ(w, z) + r(w): a data term ℓ(w, (x, y)) = q(⟨w, x⟩, y) and a
//! regulariser r. Privacy hangs on two numbers, both suprema over everything that is possible:
//! the longest gradient of ℓ, and the longest difference of two gradients of ℓ at one w. Neither
//! sees r, which is the same for all records, nor any data.
//!
//! * [`Loss`] is q: its values, derivatives and bends.
//! * `constants` bounds the gradients, from what is public about rows and weights.
//! * [`Set`] is where the weights live, and projects onto it; `BallIntersection` cuts a ball out of it.
//! * [`Regulariser`] is r.
//!
//! Four kinds of method fit it. One perturbs the objective and minimises (`perturb`, with `minimise` and `projected` for minimisers
//! that come with a proof, and `scaling` for rows of even size); one releases a point after every phase of rows (`phases`, and
//! one short file for every algorithm); one releases the last point of a descent (`bolt_on`); one adds noise to every
//! gradient (`descent`). The first three have δ = 0 as well.
pub use self::{
    classes::Classes,
    dp_gd::NoisyGradients,
    fit::ConvexFit,
    localisation::Localisation,
    loss::Loss,
    non_private::Minimiser,
    objective_perturbation::ObjectivePerturbation,
    output_perturbation::OutputPerturbation,
    problem::{Growth, Problem},
    regulariser::Regulariser,
    run::Weights,
    set::Set,
    standardise::RowMap,
};
pub use self::{
    fit::{ConvexMethod, mu, planned},
    query::ConvexQuery,
};

pub mod ball_intersection;
pub mod classes;
pub mod constants;
pub mod constrained_minimiser;
pub mod design_matrix;
pub mod double_double;
pub mod dp_gd;
pub mod fit;
pub mod glm;
pub mod gradient_diameter;
pub mod localisation;
pub mod loss;
pub mod minimiser;
pub mod newton;
pub mod non_private;
pub mod nonsmooth_erm;
pub mod objective_perturbation;
pub mod output_perturbation;
pub mod problem;
pub mod projection;
#[cfg(test)]
mod projection_tests;
pub mod quantile_intercept;
pub mod query;
pub mod regulariser;
pub mod run;
pub mod set;
pub mod softmax;
pub mod standardise;
