//! The plan of a network.
use quietly_core::{budget::Budget, mechanism::Correlation};
use quietly_data::{Encoding, Kind};
use quietly_engine::error::Error;
use quietly_kan::{Average, Input, Kan, NetworkLoss, NetworkNoise, NetworkSampler, NetworkShape};

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
        let kan = self.given_to_network(Kan::new(self.shape(encoding)?))?;
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
        let shape = NetworkShape::new(inputs, loss);
        self.given_to_shape(shape)
    }
}

/// A count that every limit refuses where it is too large for the machine.
pub(super) fn size(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

pub(super) fn sampler(how: &str) -> Result<NetworkSampler, Error> {
    NetworkSampler::named(how).ok_or_else(|| unknown("sampler", NetworkSampler::KEYWORDS, how))
}

pub(super) fn average(which: &str) -> Result<Average, Error> {
    Ok(match which {
        "last" => Average::Last,
        "last-half" => Average::Half,
        "all" => Average::All,
        "random" => Average::Random,
        _ => return Err(unknown("average", "last, last-half, all or random", which)),
    })
}

pub(super) fn noise(how: &str) -> Result<NetworkNoise, Error> {
    let wrong = || {
        let want = "independent, tree, lambda=L with 0 <= L < 1, or banded=J";
        unknown("noise_correlation", want, how)
    };
    let correlation = match how.split_once('=') {
        None if how == "independent" => return Ok(NetworkNoise::Independent),
        None if how == "tree" => return Ok(NetworkNoise::Tree),
        Some(("lambda", lambda)) => Correlation::lambda(lambda.parse().map_err(|_| wrong())?)?,
        Some(("banded", bands)) => Correlation::bands(bands.parse().map_err(|_| wrong())?)?,
        _ => return Err(wrong()),
    };
    Ok(NetworkNoise::Mixed { correlation })
}
