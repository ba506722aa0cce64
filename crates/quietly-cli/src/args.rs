//! The command line, declared.
use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use quietly_accounting::Neighbours;

use crate::{
    audit::Audit,
    bounds::Bounds,
    certificate::Show,
    check::Check,
    compare::SideBySide,
    correlated::Correlated,
    diagnose::Diagnose,
    error::Failure,
    evaluate::Evaluate,
    fit::{Fit, PlanOnly},
    init::Init,
    label::Label,
    ledger,
    methods::Methods,
    parse::{Count, Number, Numbers},
    partition::Partition,
    predict::Predict,
    scheme::{self, Plan, Scheme},
    show::Look,
};

/// Learn from sensitive tables, quietly.
#[derive(Parser, Debug)]
// Examples are for pasting: never wrapped, whatever features of clap others in the workspace switch on.
#[command(name = "quietly", version, disable_help_subcommand = true, term_width = 0)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Verb {
    /// Write a synthetic clinic to try everything on
    Example {
        /// The folder for its three files
        #[arg(default_value = ".")]
        folder: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write a schema to fill in, from a table's header
    Init(Init),
    /// Estimate ranges for a schema: privately, or from a public file
    Bounds(Bounds),
    /// Check privately whether a table matches its schema
    Check(Check),
    /// Group a Parquet table by random step, for one run of one pass
    Partition(Partition),
    /// Show what a fit will do and cost; no row is read
    Plan(Box<PlanOnly>),
    /// Fit a private model and save it with its certificate
    Fit(Box<Fit>),
    /// List the methods: what each assumes, why it is private, when to use it
    Methods(Methods),
    /// Predict the target of every row
    Predict(Predict),
    /// Score a model on a table
    Evaluate(Evaluate),
    /// Show the privacy certificate of a model
    Certificate(Show),
    /// Write the certificate as one HTML page, for people who approve a release
    Label(Label),
    /// Show what a model has learnt: weights, or a network's curves
    Show(Look),
    /// Show or create the ledger of a table: its limit, and what was spent
    Budget(ledger::Account),
    /// Compare methods on a public table
    Compare(SideBySide),
    /// Show whether a signal can be learnt within a budget, and what would be enough
    Diagnose(Diagnose),
    /// Compute what a run costs: epsilon at a delta, or delta at an epsilon
    Account {
        #[command(subcommand)]
        what: Account,
    },
    /// Find the least noise for a budget
    Calibrate {
        #[command(subcommand)]
        what: Each<Sought, Sought, Sought, Budget>,
    },
    /// Attack a method, and compare with the proven bound
    Audit {
        #[command(subcommand)]
        what: Audit,
    },
    /// Explain an error code
    Explain {
        /// The code in brackets, such as A01; all codes are listed without one
        code: Option<String>,
        #[arg(long, hide = true)]
        markdown: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Subcommand, Debug)]
pub(crate) enum Account {
    #[command(flatten)]
    Scheme(Each<Noise, Scale, EpsilonEach, Question>),
    Compare(Compare),
}

/// One variant per scheme: `N`, `S` and `E` set its dial, `Q` is what is asked.
#[derive(Subcommand, Debug)]
pub(crate) enum Each<N: Args, S: Args, E: Args, Q: Args> {
    Gaussian(Asked<scheme::Gaussian, N, Q>),
    Laplace(Asked<scheme::Laplace, S, Q>),
    Exponential(Asked<scheme::Exponential, E, Q>),
    Poisson(Asked<scheme::Poisson, N, Q>),
    FixedSize(Asked<scheme::FixedSize, N, Q>),
    RandomAllocation(Asked<scheme::RandomAllocation, N, Q>),
    Shuffle(Asked<scheme::Shuffle, N, Q>),
    Tree(Asked<scheme::Tree, N, Q>),
    Correlated(Asked<Correlated, N, Q>),
}

impl<N: Setting, S: Setting, E: Setting, Q: Args> Each<N, S, E, Q> {
    /// The plan, its dial's setting and the question.
    pub(crate) fn parts(&self) -> Result<(Plan, f64, &Q), Failure> {
        match self {
            Each::Gaussian(a) => a.parts(),
            Each::Laplace(a) => a.parts(),
            Each::Exponential(a) => a.parts(),
            Each::Poisson(a) => a.parts(),
            Each::FixedSize(a) => a.parts(),
            Each::RandomAllocation(a) => a.parts(),
            Each::Shuffle(a) => a.parts(),
            Each::Tree(a) => a.parts(),
            Each::Correlated(a) => a.parts(),
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct Asked<R: Args, D: Args, Q: Args> {
    #[command(flatten)]
    dial: D,
    #[command(flatten)]
    run: R,
    #[command(flatten)]
    question: Q,
}

impl<R: Scheme, D: Setting, Q: Args> Asked<R, D, Q> {
    fn parts(&self) -> Result<(Plan, f64, &Q), Failure> {
        Ok((self.run.plan()?, self.dial.setting(), &self.question))
    }
}

/// Where the dial stands.
pub(crate) trait Setting: Args {
    fn setting(&self) -> f64;
}

#[derive(Args, Debug)]
pub(crate) struct Noise {
    /// Noise multiplier: standard deviation over sensitivity (the clipping norm of a row)
    #[arg(long, value_name = "S")]
    noise_multiplier: Number,
}

impl Setting for Noise {
    fn setting(&self) -> f64 {
        self.noise_multiplier.0
    }
}

#[derive(Args, Debug)]
pub(crate) struct Scale {
    /// Scale of the noise over the 1-norm sensitivity
    #[arg(long, value_name = "B")]
    scale: Number,
}

impl Setting for Scale {
    fn setting(&self) -> f64 {
        self.scale.0
    }
}

#[derive(Args, Debug)]
pub(crate) struct EpsilonEach {
    /// Epsilon of each release: its weights are exp(E score / 2D), D the sensitivity of the scores
    #[arg(long, value_name = "E")]
    epsilon_each: Number,
}

impl Setting for EpsilonEach {
    fn setting(&self) -> f64 {
        self.epsilon_each.0
    }
}

/// Not set, but to be found. Its setting is one that every event refuses, should it be used by mistake.
#[derive(Args, Debug)]
pub(crate) struct Sought {}

impl Setting for Sought {
    fn setting(&self) -> f64 {
        f64::NAN
    }
}

#[derive(Args, Debug)]
pub(crate) struct Question {
    /// Compute the epsilon at this delta
    #[arg(long, value_name = "D")]
    pub(crate) delta: Option<Number>,
    /// Compute the delta at this epsilon
    #[arg(long, value_name = "E")]
    pub(crate) epsilon: Option<Number>,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Args, Debug)]
pub(crate) struct Budget {
    /// Privacy budget ε
    #[arg(long, value_name = "E")]
    pub(crate) epsilon: Number,
    /// Privacy budget δ
    #[arg(long, value_name = "D")]
    pub(crate) delta: Number,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Args, Debug)]
pub(crate) struct Compare {
    #[command(flatten)]
    pub(crate) noise: Noise,
    /// Sampling rate: 1 / (steps per epoch)
    #[arg(long, value_name = "Q")]
    pub(crate) sampling_rate: Number,
    /// Number of noisy sums that are released: whole epochs
    #[arg(long, value_name = "T")]
    pub(crate) steps: Count,
    #[command(flatten)]
    pub(crate) question: Question,
}

#[derive(Args, Debug)]
pub(crate) struct Common {
    /// Neighbouring relation: add-remove or replace-one
    #[arg(long, value_name = "HOW", hide_possible_values = true, value_enum, default_value_t = Relation::AddRemove)]
    neighbours: Relation,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl Common {
    pub(crate) fn neighbours(&self) -> Neighbours {
        self.neighbours.into()
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Relation {
    AddRemove,
    ReplaceOne,
}

impl From<Relation> for Neighbours {
    fn from(relation: Relation) -> Neighbours {
        match relation {
            Relation::AddRemove => Neighbours::AddRemove,
            Relation::ReplaceOne => Neighbours::ReplaceOne,
        }
    }
}

/// The arguments, with `--steps -1` written as `--steps=-1`: a senseless number is for the library to refuse by name, and
/// must not be taken for a flag.
pub(crate) fn joined(typed: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut all: Vec<OsString> = vec![];
    for next in typed {
        let text = next.to_str().unwrap_or_default();
        let negative = text.starts_with('-') && text.parse::<Numbers>().is_ok();
        match all.last_mut().filter(|last| negative && last.to_string_lossy().starts_with("--")) {
            Some(flag) => {
                flag.push("=");
                flag.push(next);
            }
            None => all.push(next),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_numbers_stay_with_their_flags() {
        let join = |text: &str| {
            let words = joined(text.split(' ').map(OsString::from));
            words.iter().map(|w| w.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            join("a --noise-multiplier -1 --bands -1,2 --sampling-rate -inf"),
            "a --noise-multiplier=-1 --bands=-1,2 --sampling-rate=-inf"
        );
        assert_eq!(
            join("a --noise-multiplier --steps 10 -h"),
            "a --noise-multiplier --steps 10 -h"
        );
        assert_eq!(join("a -1"), "a -1");
    }
}
