//! The words for a network.
use quietly_data::{Encoding, Kind};

use super::unread;
use crate::{
    budget::Budget,
    charge::Mixing,
    error::Error,
    kan::{
        Average, Clip, Input, Kan, LastLayer, NetworkLoss, NetworkNoise, NetworkShape, Sampling,
    },
    plan::Plan,
};

/// Residuals count in full up to this part of half the target's range.
const ROBUST: f64 = 0.25;

/// How a network looks and learns, where that is not left to the planner.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Network {
    /// Units of every hidden layer.
    pub hidden: Option<Vec<usize>>,
    /// Spline functions for every input.
    pub basis: Option<usize>,
    /// The degree of the splines.
    pub degree: Option<usize>,
    /// Whether the last layer learns: `fixed` or `trainable`.
    pub last_layer: Option<String>,
    /// How rows come to steps: `full`, `poisson`, `bins`, `cyclic` or `fixed-size`.
    pub sampling: Option<String>,
    /// Batches to a pass.
    pub batches: Option<u64>,
    /// Passes over the table.
    pub passes: Option<u64>,
    /// Noise from step to step: `independent`, `tree`, `lambda=L` or `bands=J`.
    pub noise: Option<String>,
    /// Where gradients are cut: a norm, or `never`.
    pub clip: Option<String>,
    /// How much of a step's direction is that of the steps before.
    pub momentum: Option<f64>,
    /// Which weights are handed out: `last`, `half`, `all` or `lot`.
    pub average: Option<String>,
    /// The public seed of the first weights.
    pub network_seed: Option<u64>,
}

impl Network {
    pub(super) fn plan(
        &self,
        encoding: &Encoding,
        (rows, budget): (u64, Budget),
        (radius, step_size): (Option<f64>, Option<f64>),
    ) -> Result<Plan, Error> {
        let mut kan = Kan::new(self.shape(encoding)?);
        if let Some(how) = &self.sampling {
            kan = kan.sampling(sampling(how)?);
        }
        if let Some(batches) = self.batches {
            kan = kan.batches(batches);
        }
        if let Some(passes) = self.passes {
            kan = kan.passes(passes);
        }
        if let Some(how) = &self.noise {
            kan = kan.noise(noise(how)?);
        }
        if let Some(clip) = &self.clip {
            let norm = || clip.parse().map_err(|_| unread("clip", "a norm, or never", clip));
            kan = kan.clip(if clip == "never" { Clip::Never } else { Clip::At(norm()?) });
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
        if let Some(radius) = radius {
            kan = kan.within(radius);
        }
        if let Some(size) = step_size {
            kan = kan.step_size(size);
        }
        kan.plan(rows, budget)
    }

    fn shape(&self, encoding: &Encoding) -> Result<NetworkShape, Error> {
        let loss = match encoding.target().map_or(0, |target| target.class_count()) {
            0 => {
                encoding.expect_range()?;
                NetworkLoss::Huber { width: ROBUST }
            }
            2 => NetworkLoss::Logistic,
            classes => NetworkLoss::Softmax { classes },
        };
        let input = |kind: &Kind| match kind {
            Kind::Number { .. } => Input::Spline,
            _ => Input::Plain,
        };
        let inputs: Vec<Input> = encoding.features().iter().map(|f| input(&f.kind)).collect();
        let mut shape = NetworkShape::new(inputs, loss);
        if let Some(hidden) = &self.hidden {
            shape.hidden.clone_from(hidden);
        }
        if let Some(basis) = self.basis {
            shape.basis = basis;
        }
        if let Some(degree) = self.degree {
            shape.degree = degree;
        }
        if let Some(how) = &self.last_layer {
            shape.last = match how.as_str() {
                "fixed" => LastLayer::Fixed,
                "trainable" => LastLayer::Trainable,
                _ => return Err(unread("last_layer", "fixed or trainable", how)),
            };
        }
        Ok(shape)
    }
}

fn sampling(how: &str) -> Result<Sampling, Error> {
    Ok(match how {
        "full" => Sampling::Full,
        "poisson" => Sampling::Poisson,
        "bins" => Sampling::Bins,
        "cyclic" => Sampling::Cyclic,
        "fixed-size" => Sampling::FixedSize,
        _ => return Err(unread("sampling", "full, poisson, bins, cyclic or fixed-size", how)),
    })
}

fn average(which: &str) -> Result<Average, Error> {
    Ok(match which {
        "last" => Average::Last,
        "half" => Average::Half,
        "all" => Average::All,
        "lot" => Average::Lot,
        _ => return Err(unread("average", "last, half, all or lot", which)),
    })
}

fn noise(how: &str) -> Result<NetworkNoise, Error> {
    let wrong = || unread("noise", "independent, tree, lambda=L with 0 <= L < 1, or bands=J", how);
    let mixing = match how.split_once('=') {
        None if how == "independent" => return Ok(NetworkNoise::Independent),
        None if how == "tree" => return Ok(NetworkNoise::Tree),
        Some(("lambda", lambda)) => Mixing::lambda(lambda.parse().map_err(|_| wrong())?)?,
        Some(("bands", bands)) => Mixing::bands(bands.parse().map_err(|_| wrong())?)?,
        _ => return Err(wrong()),
    };
    Ok(NetworkNoise::Mixed { mixing })
}
