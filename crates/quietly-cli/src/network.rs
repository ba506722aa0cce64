//! `quietly fit kan`: the flags of a network.
use clap::Args;

use crate::{
    failure::Failure,
    number::{Count, Number},
};

#[derive(Args, Debug)]
#[command(next_help_heading = "Networks (fit kan)")]
pub(crate) struct Network {
    /// Units of every hidden layer, such as 32 or 32,16
    #[arg(long, value_name = "M,..", hide_short_help = true)]
    hidden: Option<String>,
    /// Spline functions for every input
    #[arg(long, value_name = "P", hide_short_help = true)]
    basis: Option<Count>,
    /// The degree of the splines
    #[arg(long, value_name = "O", hide_short_help = true)]
    degree: Option<Count>,
    /// Whether the last layer learns: fixed or trainable
    #[arg(long, value_name = "HOW", hide_short_help = true)]
    last_layer: Option<String>,
    /// How rows come to steps: full, poisson, bins, cyclic or fixed-size
    #[arg(long, value_name = "HOW", hide_short_help = true)]
    sampling: Option<String>,
    /// Batches to a pass
    #[arg(long, value_name = "B", hide_short_help = true)]
    batches: Option<Count>,
    /// Passes over the table
    #[arg(long, value_name = "K", hide_short_help = true)]
    passes: Option<Count>,
    /// Noise from step to step: independent, tree, lambda=L or bands=J
    #[arg(long, value_name = "HOW", hide_short_help = true)]
    noise: Option<String>,
    /// Where gradients are cut: a norm, or never
    #[arg(long, value_name = "C", hide_short_help = true)]
    clip: Option<String>,
    /// How much of a step's direction is that of the steps before: 0 for plain steps
    #[arg(long, value_name = "B", hide_short_help = true)]
    momentum: Option<Number>,
    /// Which weights are handed out: last, half, all or lot
    #[arg(long, value_name = "WHICH", hide_short_help = true)]
    average: Option<String>,
    /// The public seed of the first weights
    #[arg(long, value_name = "N", hide_short_help = true)]
    network_seed: Option<Count>,
}

impl Network {
    /// Puts them into words that the planner takes.
    pub(crate) fn ask(&self, asked: &mut quietly::Network) -> Result<(), Failure> {
        let count =
            |given: Option<Count>, name: &'static str| given.map(|c| c.get(name)).transpose();
        if let Some(hidden) = &self.hidden {
            let unit = |part: &str| part.trim().parse::<usize>().ok();
            let units: Option<Vec<usize>> = hidden.split(',').map(unit).collect();
            let (flag, typed) = ("--hidden".into(), hidden.clone());
            let wanted = "units of every hidden layer, such as 32 or 32,16".into();
            asked.hidden = Some(units.ok_or(Failure::Unreadable { flag, typed, wanted })?);
        }
        asked.basis = count(self.basis, "basis")?.map(|p| p as usize);
        asked.degree = count(self.degree, "degree")?.map(|o| o as usize);
        asked.batches = count(self.batches, "batches")?;
        asked.passes = count(self.passes, "passes")?;
        asked.network_seed = count(self.network_seed, "network seed")?;
        asked.momentum = self.momentum.map(|beta| beta.0);
        asked.last_layer.clone_from(&self.last_layer);
        asked.sampling.clone_from(&self.sampling);
        asked.noise.clone_from(&self.noise);
        asked.clip.clone_from(&self.clip);
        asked.average.clone_from(&self.average);
        Ok(())
    }

    /// The flags, to be typed again.
    pub(crate) fn typed(&self) -> String {
        let counts = [
            ("basis", self.basis),
            ("degree", self.degree),
            ("batches", self.batches),
            ("passes", self.passes),
            ("network-seed", self.network_seed),
        ];
        let words = [
            ("hidden", &self.hidden),
            ("last-layer", &self.last_layer),
            ("sampling", &self.sampling),
            ("noise", &self.noise),
            ("clip", &self.clip),
            ("average", &self.average),
        ];
        let counts =
            counts.into_iter().filter_map(|(name, count)| Some((name, count?.shown().to_string())));
        let words = words.into_iter().filter_map(|(name, word)| Some((name, word.clone()?)));
        let momentum = self.momentum.map(|beta| ("momentum", beta.0.to_string()));
        counts
            .chain(words)
            .chain(momentum)
            .map(|(name, value)| format!(" --{name} {value}"))
            .collect()
    }

    /// Whether any of them is given.
    pub(crate) fn is_asked_for(&self) -> bool {
        !self.typed().is_empty()
    }
}
