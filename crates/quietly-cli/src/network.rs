//! `quietly fit kan`: the flags of a network.
use clap::Args;
use quietly::{
    Budget, Encoding, Kind, Mixing, Plan,
    kan::{
        Average, Clip, Input, Kan, LastLayer, NetworkLoss, NetworkNoise, NetworkShape, Sampling,
    },
};

use crate::{
    failure::Failure,
    number::{Count, Number},
};

/// Residuals count in full up to this part of half the target's range.
const ROBUST: f64 = 0.25;

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
    /// The plan of a network.
    pub(crate) fn plan(
        &self,
        encoding: &Encoding,
        (rows, budget): (u64, Budget),
        (radius, step_size): (Option<Number>, Option<Number>),
    ) -> Result<Plan, Failure> {
        let mut kan = Kan::new(self.shape(encoding)?);
        if let Some(how) = &self.sampling {
            kan = kan.sampling(one_of("--sampling", how, &SAMPLINGS)?);
        }
        if let Some(batches) = self.batches {
            kan = kan.batches(batches.get("batches")?);
        }
        if let Some(passes) = self.passes {
            kan = kan.passes(passes.get("passes")?);
        }
        if let Some(how) = &self.noise {
            kan = kan.noise(noise(how)?);
        }
        if let Some(clip) = &self.clip {
            let norm = || number("--clip", clip, "a norm such as 0.3, or never");
            kan = kan.clip(if clip == "never" { Clip::Never } else { Clip::At(norm()?) });
        }
        if let Some(momentum) = self.momentum {
            kan = kan.momentum(momentum.0);
        }
        if let Some(which) = &self.average {
            kan = kan.average(one_of("--average", which, &AVERAGES)?);
        }
        if let Some(seed) = self.network_seed {
            kan = kan.seed(seed.get("network seed")?);
        }
        if let Some(radius) = radius {
            kan = kan.within(radius.0);
        }
        if let Some(size) = step_size {
            kan = kan.step_size(size.0);
        }
        Ok(kan.plan(rows, budget)?)
    }

    fn shape(&self, encoding: &Encoding) -> Result<NetworkShape, Failure> {
        let classes = encoding.target().map_or(0, |target| target.class_count());
        let loss = match classes {
            0 => {
                encoding.expect_range().map_err(quietly::Error::from)?;
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
            let unit = |part: &str| part.trim().parse::<usize>().ok();
            let units: Option<Vec<usize>> = hidden.split(',').map(unit).collect();
            shape.hidden = units.ok_or_else(|| {
                unreadable("--hidden", hidden, "units of every hidden layer, such as 32 or 32,16")
            })?;
        }
        if let Some(basis) = self.basis {
            shape.basis = basis.get("basis")? as usize;
        }
        if let Some(degree) = self.degree {
            shape.degree = degree.get("degree")? as usize;
        }
        if let Some(how) = &self.last_layer {
            shape.last = one_of("--last-layer", how, &LAST_LAYERS)?;
        }
        Ok(shape)
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

const SAMPLINGS: [(&str, Sampling); 5] = [
    ("full", Sampling::Full),
    ("poisson", Sampling::Poisson),
    ("bins", Sampling::Bins),
    ("cyclic", Sampling::Cyclic),
    ("fixed-size", Sampling::FixedSize),
];
const AVERAGES: [(&str, Average); 4] = [
    ("last", Average::Last),
    ("half", Average::Half),
    ("all", Average::All),
    ("lot", Average::Lot),
];
const LAST_LAYERS: [(&str, LastLayer); 2] =
    [("fixed", LastLayer::Fixed), ("trainable", LastLayer::Trainable)];

fn one_of<T: Copy>(flag: &str, typed: &str, all: &[(&str, T)]) -> Result<T, Failure> {
    let found = all.iter().find(|(name, _)| *name == typed);
    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    found.map(|(_, value)| *value).ok_or_else(|| unreadable(flag, typed, &names.join(", ")))
}

fn noise(typed: &str) -> Result<NetworkNoise, Failure> {
    let wanted = "independent, tree, lambda=L with 0 <= L < 1, or bands=J";
    match typed.split_once('=') {
        None if typed == "independent" => Ok(NetworkNoise::Independent),
        None if typed == "tree" => Ok(NetworkNoise::Tree),
        Some(("lambda", lambda)) => {
            let mixing = Mixing::lambda(number("--noise", lambda, wanted)?)?;
            Ok(NetworkNoise::Mixed { mixing })
        }
        Some(("bands", bands)) => {
            let bands = bands.parse().map_err(|_| unreadable("--noise", typed, wanted))?;
            Ok(NetworkNoise::Mixed { mixing: Mixing::bands(bands)? })
        }
        _ => Err(unreadable("--noise", typed, wanted)),
    }
}

fn number(flag: &str, typed: &str, wanted: &str) -> Result<f64, Failure> {
    typed.parse().map_err(|_| unreadable(flag, typed, wanted))
}

fn unreadable(flag: &str, typed: &str, wanted: &str) -> Failure {
    Failure::Unreadable { flag: flag.into(), typed: typed.into(), wanted: wanted.into() }
}
