//! Chooses sampler, noise and number of steps from public quantities alone.
//!
//! In T steps of η over batches of n/b rows the weights can move by ηT along a gradient that all rows agree on, while the noise
//! Σ_t ξ_t that they end with has a standard deviation of ηκ(b/n)·√V in every direction, with V = Σ_s (a_0 + … + a_s)² for noise that
//! is mixed by a. So J = κ·b·√V/T is what the sampler and the noise cost, whatever η is, and the candidate with the least J is taken.
use quietly_accounting::gaussian_mu;
use quietly_core::{
    budget::Budget,
    mechanism::{Correlation, Sampler},
    release::depth,
};
use quietly_engine::error::Error;

use super::{
    architecture::{LastLayer, NetworkLoss, NetworkShape},
    config::{Alternative, NetworkNoise},
    planning::noise,
};

/// Steps without any noise.
pub(super) const PLAIN_STEPS: u64 = 400;
/// How much of a direction may be that of the steps before.
const MOST_MOMENTUM: f64 = 0.9;
/// The least noise that the accountants know.
pub(super) const LEAST_NOISE: f64 = 0.1 * (1.0 + 1e-9);
/// Full batches of an affordable run: at least, and at most.
const FULL_STEPS: (u64, u64) = (150, 500);
/// What all steps together reach, over nμ.
const REACH: f64 = 1.2;
/// How steep the scores of a network are in its weights, squared, about: in those below the last layer, and in those of it.
const SQUARED_SLOPES: (f64, f64) = (0.1, 0.5);
/// Batches to a pass, and passes, of other runs.
const BATCHES: u64 = 20;
const PASSES: u64 = 10;
/// What a run may read, rows times steps: for as few full batches as there may be, and for more.
const AFFORDABLE: (f64, f64) = (2e8, 2e7);

/// The sampler of a network: which rows a step sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkSampler {
    /// Every row in every step.
    FullBatch,
    /// Each row in each step independently, with one probability.
    Poisson,
    /// Each row in one step of every epoch, drawn once and kept secret.
    BallsAndBins,
    /// The same, but its privacy does not rest on the secret.
    Cyclic,
    /// So many rows in every step, drawn anew.
    FixedSize,
}

impl NetworkSampler {
    /// Keywords and their samplers.
    const NAMES: [(&str, NetworkSampler); 5] = [
        ("full-batch", NetworkSampler::FullBatch),
        ("poisson", NetworkSampler::Poisson),
        ("balls-and-bins", NetworkSampler::BallsAndBins),
        ("cyclic", NetworkSampler::Cyclic),
        ("fixed-size", NetworkSampler::FixedSize),
    ];

    /// The keywords, for help and messages.
    pub const KEYWORDS: &str = "full-batch, poisson, balls-and-bins, cyclic or fixed-size";

    /// Its keyword.
    pub(super) fn name(self) -> &'static str {
        let named = Self::NAMES.iter().find(|(_, sampler)| *sampler == self);
        named.expect("every sampler has a keyword").0
    }

    /// The sampler of a keyword.
    pub fn named(keyword: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(name, _)| *name == keyword).map(|(_, sampler)| *sampler)
    }
}

/// What a user may ask for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Requested {
    pub(super) sampling: Option<NetworkSampler>,
    pub(super) batches: Option<u64>,
    pub(super) passes: Option<u64>,
    pub(super) noise: Option<NetworkNoise>,
    /// How long a step without momentum may be.
    pub(super) longest_step: f64,
}

/// A way to train.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    pub(super) sampler: Sampler,
    pub(super) noise: NetworkNoise,
    pub(super) steps: u64,
}

impl Candidate {
    /// Whether there is a theorem for it, under replace-one or add-remove.
    pub(super) fn goes_together(&self, replaced: bool) -> bool {
        let steps = self.sampler.steps().is_none_or(|steps| steps == self.steps);
        let sampler = match self.sampler {
            Sampler::FullBatch | Sampler::BallsAndBins { .. } | Sampler::Cyclic { .. } => true,
            // A replaced row of mixed Poisson samples has no price here.
            Sampler::Poisson { .. } => self.noise == NetworkNoise::Independent || !replaced,
            Sampler::FixedSize { batch, rows, .. } => replaced && batch <= rows,
            Sampler::Partition { .. } => self.noise == NetworkNoise::Tree,
            Sampler::RandomAllocation { .. } | Sampler::OrderedPartition { .. } => false,
        };
        let tree = matches!(self.sampler, Sampler::Partition { .. });
        steps && sampler && tree == (self.noise == NetworkNoise::Tree)
    }

    /// The share of rows that a step sees.
    pub(super) fn share(&self) -> f64 {
        self.sampler.share()
    }

    /// √V.
    fn left(&self) -> Result<f64, Error> {
        let steps = self.steps as f64;
        Ok(match self.noise {
            NetworkNoise::Independent => steps.sqrt(),
            NetworkNoise::Tree => {
                (depth(self.steps) as f64 * f64::from(self.steps.count_ones())).sqrt()
            }
            NetworkNoise::Mixed { correlation } => {
                let (mut prefix, mut total) = (0.0, 0.0);
                let coefficients = correlation.coefficients()?;
                for (s, a) in coefficients.iter().enumerate().take(self.steps as usize) {
                    prefix += a.value();
                    let times = if s + 1 == coefficients.len() { steps - s as f64 } else { 1.0 };
                    total += times * prefix * prefix;
                }
                total.sqrt()
            }
        })
    }

    /// J.
    fn cost(&self, budget: &Budget) -> Result<f64, Error> {
        self.cost_of(noise(self, budget)?)
    }

    /// The same for a κ that is known.
    pub(super) fn cost_of(&self, noise: f64) -> Result<f64, Error> {
        Ok(noise * self.left()? / (self.share() * self.steps as f64))
    }

    fn words(&self) -> String {
        let noise = match self.noise {
            NetworkNoise::Independent => "independent noise".into(),
            NetworkNoise::Mixed { correlation } => format!("{correlation}"),
            NetworkNoise::Tree => "tree noise".into(),
        };
        match self.sampler {
            Sampler::FullBatch => format!("full batch, {} steps, {noise}", self.steps),
            _ => format!("{}, {noise}", self.sampler),
        }
    }
}

/// The best of all candidates that go with what is asked for, and the others.
pub(super) fn choose(
    requested: &Requested,
    rows: u64,
    budget: Budget,
) -> Result<(Candidate, Vec<Alternative>), Error> {
    let candidates = candidates(requested, rows, &budget)?;
    let [only] = candidates[..] else {
        let mut costs = Vec::new();
        for candidate in &candidates {
            costs.push((candidate.cost(&budget)?, *candidate));
        }
        costs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (least, taken) = costs[0];
        let other = |(cost, candidate): &(f64, Candidate)| Alternative {
            what: candidate.words(),
            noise: cost / least,
        };
        return Ok((taken, costs[1..].iter().map(other).collect()));
    };
    Ok((only, Vec::new()))
}

fn candidates(requested: &Requested, rows: u64, budget: &Budget) -> Result<Vec<Candidate>, Error> {
    let replaced = budget.neighbours() == quietly_accounting::Neighbours::ReplaceOne;
    let affordable = (rows * FULL_STEPS.0) as f64 <= AFFORDABLE.0;
    let usual = BATCHES.max(rows.div_ceil(1 << 16)).min(rows.max(2));
    let batches = requested.batches.unwrap_or(usual);
    let fine = (2..=rows.max(2)).contains(&batches);
    Error::ensure(fine, "batches_per_epoch", "at least 2, and no more than rows", batches)?;
    let passes = requested.passes.unwrap_or(PASSES);
    Error::ensure((1..=100_000).contains(&passes), "epochs", "from 1 to 100000", passes)?;
    let steps = batches.checked_mul(passes).filter(|s| *s <= 1_000_000);
    let steps = steps.ok_or(Error::Parameter {
        name: "steps",
        want: "at most a million: fewer batches or epochs",
        got: format!("{batches} x {passes}"),
    })?;
    let sampler = |sampling: NetworkSampler| match sampling {
        NetworkSampler::FullBatch => Sampler::FullBatch,
        NetworkSampler::Poisson => {
            let rate = (2f64.powi(32) / batches as f64).round() * 2f64.powi(-32);
            Sampler::Poisson { steps, rate }
        }
        NetworkSampler::BallsAndBins => Sampler::BallsAndBins { bins: batches, passes },
        NetworkSampler::Cyclic => Sampler::Cyclic { period: batches, passes },
        NetworkSampler::FixedSize => {
            Sampler::FixedSize { steps, batch: rows.div_ceil(batches), rows }
        }
    };
    let candidate = |sampling: NetworkSampler, noise: NetworkNoise| {
        let sampler = sampler(sampling);
        let full =
            requested.passes.unwrap_or_else(|| full_steps(rows, budget, requested.longest_step));
        let sampler = match noise {
            NetworkNoise::Tree => Sampler::Partition { steps: batches },
            _ => sampler,
        };
        Candidate { sampler, noise, steps: sampler.steps().unwrap_or(full) }
    };
    let mixed = |lambda: f64| {
        Correlation::lambda(lambda).map(|correlation| NetworkNoise::Mixed { correlation })
    };
    if let Some(NetworkNoise::Tree) = requested.noise {
        let sampling = requested.sampling.unwrap_or(NetworkSampler::Cyclic);
        let passes = requested.passes.unwrap_or(1);
        let fine = sampling == NetworkSampler::Cyclic && passes == 1;
        let want = "for cyclic sampling and one epoch, where each row is in one batch";
        let got = format!("for {} sampling and {passes} epochs", sampling.name());
        Error::ensure(fine, "tree noise", want, got)?;
        return Ok(vec![candidate(NetworkSampler::Cyclic, NetworkNoise::Tree)]);
    }
    let samplings = match requested.sampling {
        Some(sampling) => vec![sampling],
        None if affordable && requested.batches.is_none() => {
            vec![NetworkSampler::FullBatch, NetworkSampler::Poisson, NetworkSampler::BallsAndBins]
        }
        None => vec![NetworkSampler::Poisson, NetworkSampler::BallsAndBins],
    };
    let noises = match requested.noise {
        Some(noise) => vec![noise],
        None => vec![NetworkNoise::Independent, mixed(0.625)?, mixed(0.875)?],
    };
    let usual = |sampling: NetworkSampler, noise: NetworkNoise| match sampling {
        // One sampler is known to be best with either noise.
        NetworkSampler::Poisson | NetworkSampler::FullBatch if requested.noise.is_none() => {
            noise == NetworkNoise::Independent
        }
        NetworkSampler::BallsAndBins
            if requested.sampling.is_none() && requested.noise.is_none() =>
        {
            noise != NetworkNoise::Independent
        }
        NetworkSampler::FixedSize if requested.noise.is_none() => {
            noise == NetworkNoise::Independent
        }
        _ => true,
    };
    let all = samplings.iter().flat_map(|s| noises.iter().map(move |n| (*s, *n)));
    let all: Vec<Candidate> = all
        .filter(|(sampling, noise)| usual(*sampling, *noise))
        .map(|(sampling, noise)| candidate(sampling, noise))
        .filter(|candidate| candidate.goes_together(replaced))
        .collect();
    let want = "one with a known privacy bound: fixed-size needs `neighbours` replace-one, and poisson with correlated noise \
                needs `neighbours` add-remove";
    let asked = requested.sampling.map_or("any", NetworkSampler::name);
    let got = format!("{asked} with neighbours {}", budget.neighbours().name());
    Error::ensure(!all.is_empty(), "sampler", want, got)?;
    Ok(all)
}

/// How long steps without momentum may be so that they settle: a step of η·g/clip does while η/clip times the curvature stays below 2,
/// that of the loss times that of the scores. With momentum β steps may be 1/(1 - β) times as long.
pub(super) fn longest_step(shape: &NetworkShape, clip: f64) -> f64 {
    let bend = match shape.loss {
        NetworkLoss::Logistic => 0.25,
        NetworkLoss::Softmax { .. } => 0.5,
        NetworkLoss::Huber { .. } => 1.0,
    };
    let (below, last) = SQUARED_SLOPES;
    let slope = below + if shape.last == LastLayer::Trainable { last } else { 0.0 };
    2.0 * clip / (slope * bend)
}

/// The least momentum with which steps of this length settle, if any does. More of it only comes late.
pub(super) fn momentum(longest: f64, step: f64) -> f64 {
    (1.0 - longest / step).clamp(0.0, MOST_MOMENTUM)
}

/// How far all steps together are to go, for a gradient that all rows agree on: A = 1.2·nμ.
///
/// The noise of the last weights is then at least 1.2 in every direction, whatever the budget, beside weights of one that it starts from.
/// 0.8 and 1.6 did about as well on three small tasks, 0.4 and 3.2 worse.
pub(super) fn reach(rows: u64, budget: &Budget) -> f64 {
    let mu = gaussian_mu(budget.epsilon(), budget.delta()).unwrap_or(1.0);
    REACH * rows as f64 * mu
}

/// So many full batches that steps settle and go as far as that, if it does not take too long. Their noise grows as what they
/// learn does: more of them cost time alone.
fn full_steps(rows: u64, budget: &Budget, longest: f64) -> u64 {
    let most = (AFFORDABLE.1 / rows as f64).min(FULL_STEPS.1 as f64).max(FULL_STEPS.0 as f64);
    // What is wrong with the step is said elsewhere.
    let wanted = reach(rows, budget) * (1.0 - MOST_MOMENTUM) / longest;
    wanted.max(FULL_STEPS.0 as f64).min(most) as u64
}

#[cfg(test)]
mod tests {
    use super::NetworkSampler;

    #[test]
    fn help_and_messages_list_every_keyword() {
        let names: Vec<&str> = NetworkSampler::NAMES.iter().map(|(name, _)| *name).collect();
        let (last, others) = names.split_last().unwrap();
        assert_eq!(NetworkSampler::KEYWORDS, format!("{} or {last}", others.join(", ")));
        for (name, sampler) in NetworkSampler::NAMES {
            assert_eq!((sampler.name(), NetworkSampler::named(name)), (name, Some(sampler)));
        }
    }
}
