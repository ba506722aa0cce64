//! The plan of a network.
use quietly_core::{budget::Budget, mechanism::Correlation};
use quietly_data::{Encoding, Kind};
use quietly_engine::error::Error;
use quietly_kan::{
    Average, Clip, Input, Kan, LastLayer, NetworkLoss, NetworkNoise, NetworkShape, Sampling,
};

use super::{ModelSpec, unknown};
use crate::plan::Plan;

/// Residuals count in full up to this part of half the target's range.
const ROBUST: f64 = 0.25;

impl ModelSpec {
    pub(super) fn network(
        &self,
        encoding: &Encoding,
        rows: u64,
        budget: Budget,
    ) -> Result<Plan, Error> {
        let mut kan = Kan::new(self.shape(encoding)?);
        if let Some(how) = &self.sampler {
            kan = kan.sampling(sampler(how)?);
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
                || clip.parse().map_err(|_| unknown("clipping_norm", "a norm, or none", clip));
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
        Plan::kan(&kan, rows, budget)
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

/// A count that every limit refuses where it is too large for the machine.
fn size(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn sampler(how: &str) -> Result<Sampling, Error> {
    Ok(match how {
        "full-batch" => Sampling::Full,
        "poisson" => Sampling::Poisson,
        "balls-and-bins" => Sampling::Bins,
        "cyclic" => Sampling::Cyclic,
        "fixed-size" => Sampling::FixedSize,
        _ => {
            let want = "full-batch, poisson, balls-and-bins, cyclic or fixed-size";
            return Err(unknown("sampler", want, how));
        }
    })
}

fn average(which: &str) -> Result<Average, Error> {
    Ok(match which {
        "last" => Average::Last,
        "last-half" => Average::Half,
        "all" => Average::All,
        "random" => Average::Lot,
        _ => return Err(unknown("average", "last, last-half, all or random", which)),
    })
}

fn noise(how: &str) -> Result<NetworkNoise, Error> {
    let wrong = || {
        let want = "independent, tree, lambda=L with 0 <= L < 1, or banded=J";
        unknown("noise_correlation", want, how)
    };
    let mixing = match how.split_once('=') {
        None if how == "independent" => return Ok(NetworkNoise::Independent),
        None if how == "tree" => return Ok(NetworkNoise::Tree),
        Some(("lambda", lambda)) => Correlation::lambda(lambda.parse().map_err(|_| wrong())?)?,
        Some(("banded", bands)) => Correlation::bands(bands.parse().map_err(|_| wrong())?)?,
        _ => return Err(wrong()),
    };
    Ok(NetworkNoise::Mixed { mixing })
}
