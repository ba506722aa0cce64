//! The parameters of a model: what each is called, and what it does to a plan.
use quietly_engine::error::Error;
use quietly_kan::{Clip, Kan, LastLayer, NetworkSampler, NetworkShape};

use super::{
    Family,
    declare::{
        ParameterGroup, ParameterInfo, ParameterKind, ParameterValue, Value, help, parameters,
    },
    network::{average, noise, sampler, size},
    set, unknown,
};
use crate::plan::{Convex, Regression};

parameters! {
    /// auto, full-batch, one-pass, or a name that `quietly methods` lists
    method: Word(String), "NAME", Linear;
    /// How many steps, for methods from papers
    steps: Count(u64), "T", Linear;
    /// Step size, for methods from papers: for a mean gradient, with features of mean square one
    step_size: Number(f64), "X", Every;
    /// The largest norm of the weights, for features and a target within [-1, 1]: for dp-pgd, and the
    /// size of `constraint`, 1 by default. For a network, the largest distance of weights from their start
    radius: Number(f64), "W", Every;
    /// Basis expansion of the features: splines[=P] of every number, or fourier[=N] random
    /// Fourier features of all
    expand: Word(String), "HOW", Linear;
    /// The constraint set of the weights: l1, l2, linf or simplex, of size `radius`
    constraint: Word(String), "SET", Convex;
    /// Adds X/2 times the squared norm of the weights to the loss of every row
    ridge: Number(f64), "X", Convex;
    /// Adds X times the 1-norm of the weights to the loss of every row
    lasso: Number(f64), "X", Convex;
    /// Which quantile of the target, between 0 and 1: for quantile regression
    quantile: Number(f64), "Q", Convex;
    /// How fast the objective grows around its minimum, for methods from papers: the exponent theta
    growth_exponent: Number(f64), "T", Convex;
    /// The factor of that growth
    growth_constant: Number(f64), "X", Convex;
    /// Units of every hidden layer, such as 32 or 32,16
    hidden_layer_sizes: Counts(Vec<usize>), "M,..", Network;
    /// Spline functions for every input
    spline_basis: Count(u64), "P", Network;
    /// The degree of the splines
    spline_degree: Count(u64), "O", Network;
    /// Whether the last layer is trained: fixed or trainable
    last_layer: Word(String), "HOW", Network;
    /// Which rows a step sees
    sampler: Word(String), "HOW", Network, NetworkSampler::KEYWORDS;
    /// Batches per epoch
    batches_per_epoch: Count(u64), "B", Network;
    /// Epochs: passes over the table
    epochs: Count(u64), "K", Network;
    /// How noise is correlated from step to step: independent, tree, lambda=L or banded=J
    noise_correlation: Word(String), "HOW", Network;
    /// The largest norm of the gradient of a row, or none
    clipping_norm: Word(String), "C", Network;
    /// Momentum: the share of a step's direction that comes from earlier steps; 0 for none
    momentum: Number(f64), "B", Network;
    /// Which iterates to average: last, last-half, all or random
    average: Word(String), "WHICH", Network;
    /// The public seed of the first weights
    network_seed: Count(u64), "N", Network;
}

/// What each parameter does, where it is given.
impl ModelSpec {
    pub(super) fn given_to_regression(&self, mut regression: Regression) -> Regression {
        if let Some(steps) = self.steps {
            regression = regression.steps(steps);
        }
        if let Some(size) = self.step_size {
            regression = regression.step_size(size);
        }
        if let Some(radius) = self.radius {
            regression = regression.radius(radius);
        }
        regression
    }

    pub(super) fn given_to_convex(&self, mut convex: Convex) -> Result<Convex, Error> {
        if let Some(name) = &self.constraint {
            convex = convex.within(set(name, self.radius.unwrap_or(1.0))?);
        }
        if let Some(steps) = self.steps {
            convex = convex.steps(steps);
        }
        if let Some(size) = self.step_size {
            convex = convex.step_size(size);
        }
        if let Some(ridge) = self.ridge {
            convex = convex.ridge(ridge);
        }
        if let Some(lasso) = self.lasso {
            convex = convex.lasso(lasso);
        }
        match (self.growth_exponent, self.growth_constant) {
            (Some(exponent), Some(constant)) => convex = convex.growing(exponent, constant),
            (None, None) => {}
            _ => {
                let want = "given together with `growth_constant`";
                return Err(unknown("growth_exponent", want, "one of the two"));
            }
        }
        Ok(convex)
    }

    pub(super) fn given_to_network(&self, mut kan: Kan) -> Result<Kan, Error> {
        if let Some(how) = &self.sampler {
            kan = kan.sampler(sampler(how)?);
        }
        if let Some(batches) = self.batches_per_epoch {
            kan = kan.batches(batches);
        }
        if let Some(passes) = self.epochs {
            kan = kan.passes(passes);
        }
        if let Some(how) = &self.noise_correlation {
            kan = kan.noise(noise(how)?);
        }
        if let Some(clip) = &self.clipping_norm {
            let norm =
                || clip.parse().map_err(|_| unknown("clipping_norm", "a number, or none", clip));
            kan = kan.clip(if clip == "none" { Clip::Never } else { Clip::At(norm()?) });
        }
        if let Some(momentum) = self.momentum {
            kan = kan.momentum(momentum);
        }
        if let Some(which) = &self.average {
            kan = kan.average(average(which)?);
        }
        if let Some(seed) = self.network_seed {
            kan = kan.seed(seed);
        }
        if let Some(radius) = self.radius {
            kan = kan.within(radius);
        }
        if let Some(size) = self.step_size {
            kan = kan.step_size(size);
        }
        Ok(kan)
    }

    pub(super) fn given_to_shape(&self, mut shape: NetworkShape) -> Result<NetworkShape, Error> {
        if let Some(hidden) = &self.hidden_layer_sizes {
            shape.hidden.clone_from(hidden);
        }
        if let Some(basis) = self.spline_basis {
            shape.basis = size(basis);
        }
        if let Some(degree) = self.spline_degree {
            shape.degree = size(degree);
        }
        if let Some(how) = &self.last_layer {
            shape.last = match how.as_str() {
                "fixed" => LastLayer::Fixed,
                "trainable" => LastLayer::Trainable,
                _ => return Err(unknown("last_layer", "fixed or trainable", how)),
            };
        }
        Ok(shape)
    }
}

/// Names of earlier versions, and what they are called now.
pub const RENAMED: &[(&str, &str)] = &[
    ("basis", "spline_basis"),
    ("batches", "batches_per_epoch"),
    ("clip", "clipping_norm"),
    ("degree", "spline_degree"),
    ("hidden", "hidden_layer_sizes"),
    ("level", "quantile"),
    ("noise", "noise_correlation"),
    ("passes", "epochs"),
    ("rate", "growth_constant"),
    ("sampling", "sampler"),
    ("theta", "growth_exponent"),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// A name that is free to be used again would hide the sentence that names the new one.
    #[test]
    fn old_names_are_no_parameters_and_new_ones_are() {
        let is = |name: &str| PARAMETERS.iter().any(|info| info.name == name);
        for (old, new) in RENAMED {
            assert!(!is(old) && is(new), "{old} {new}");
        }
    }
}
