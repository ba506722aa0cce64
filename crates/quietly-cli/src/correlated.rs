//! Correlated noise, as typed: one strategy, one participation.
use clap::Args;
use quietly_accounting::{CorrelatedGaussian as Run, Error, Event, Participation, Strategy};
use serde_json::Value;

use crate::{
    error::Failure,
    format,
    parse::{Count, Number, Numbers},
    scheme::{Flag, NoiseParameter, Plan, Scheme},
};

/// Noise correlated from step to step.
#[derive(Args, Debug)]
pub(crate) struct Correlated {
    /// Number of noisy sums that are released
    #[arg(long, value_name = "T")]
    steps: Count,
    /// Correlated noise: step t adds z(t) - L z(t-1)
    #[arg(long, value_name = "L", help_heading = "Strategy (one of)")]
    lambda: Option<Number>,
    /// A banded Toeplitz matrix: its first coefficients, c0 = 1
    #[arg(long, value_name = "C0,C1,..", help_heading = "Strategy (one of)")]
    bands: Option<Numbers>,
    /// In every step
    #[arg(long, help_heading = "A row takes part (one of)")]
    full: bool,
    /// In each step with probability Q (with --period: in each of its steps)
    #[arg(long, value_name = "Q", help_heading = "A row takes part (one of)")]
    sampling_rate: Option<Number>,
    /// In every B-th step from a random first ("balls and bins")
    #[arg(long, value_name = "B", help_heading = "A row takes part (one of)")]
    bins: Option<Count>,
    /// In every P-th step, from a fixed first
    #[arg(long, value_name = "P", help_heading = "A row takes part (one of)")]
    period: Option<Count>,
    /// At least S steps apart (with --participations)
    #[arg(long, value_name = "S", help_heading = "A row takes part (one of)")]
    separation: Option<Count>,
    /// At most K times (with --separation)
    #[arg(long, value_name = "K", help_heading = "A row takes part (one of)")]
    participations: Option<Count>,
    /// In fixed-size batches out of N rows (with --batch)
    #[arg(long, value_name = "N", help_heading = "A row takes part (one of)")]
    records: Option<Count>,
    /// Rows in each batch (with --records)
    #[arg(long, value_name = "B", help_heading = "A row takes part (one of)")]
    batch: Option<Count>,
}

impl Scheme for Correlated {
    fn plan(&self) -> Result<Plan, Failure> {
        let strategy = self.strategy()?;
        let participation = self.participation()?;
        let steps = self.steps.get("steps")?;
        Ok(Plan::new("correlated", NoiseParameter::Noise, self.flags(), move |noise| {
            Run::new(strategy.clone(), participation, steps, noise).map(Event::correlated)
        }))
    }
}

impl Correlated {
    fn strategy(&self) -> Result<Strategy, Failure> {
        match (&self.lambda, &self.bands) {
            (Some(lambda), None) => Ok(Strategy::Lambda(lambda.0)),
            (None, Some(bands)) => Ok(Strategy::Banded(bands.0.clone())),
            (None, None) => Err(Failure::Strategy("neither was given")),
            (Some(_), Some(_)) => Err(Failure::Strategy("both were given")),
        }
    }

    /// The flags that speak of participation, in the order of the help page.
    fn joined(&self) -> Vec<Flag> {
        let count = |name, count: Option<Count>| count.map(|c| (name, c.json()));
        let full = self.full.then_some(("full", Value::Bool(true)));
        let rate = self.sampling_rate.map(|r| ("sampling-rate", format::json(r.0)));
        let counts = [
            ("bins", self.bins),
            ("period", self.period),
            ("separation", self.separation),
            ("participations", self.participations),
            ("records", self.records),
            ("batch", self.batch),
        ];
        let counts = counts.into_iter().filter_map(|(name, c)| count(name, c));
        full.into_iter().chain(rate).chain(counts).collect()
    }

    fn flags(&self) -> Vec<Flag> {
        let lambda = self.lambda.map(|l| ("lambda", format::json(l.0)));
        let bands = self
            .bands
            .as_ref()
            .map(|b| ("bands", Value::Array(b.0.iter().map(|x| format::json(*x)).collect())));
        let steps = ("steps", self.steps.json());
        lambda.into_iter().chain(bands).chain(self.joined()).chain([steps]).collect()
    }

    fn participation(&self) -> Result<Participation, Failure> {
        let given = self.joined();
        let names: Vec<&str> = given.iter().map(|(name, _)| *name).collect();
        // The pattern has matched on the names, so that what is read is there.
        let count = |c: Option<Count>, name| c.map_or(Ok(0), |c| c.get(name));
        let rate = self.sampling_rate.map_or(f64::NAN, |r| r.0);
        Ok(match names[..] {
            ["full"] => Participation::FullBatch,
            ["sampling-rate"] => Participation::Poisson { rate },
            ["bins"] => Participation::BallsAndBins { bins: count(self.bins, "bins")? },
            ["period"] => Participation::Cyclic { period: count(self.period, "period")? },
            ["sampling-rate", "period"] => {
                Participation::CyclicPoisson { period: count(self.period, "period")?, rate }
            }
            ["separation", "participations"] => Participation::Separated {
                separation: count(self.separation, "separation")?,
                most: count(self.participations, "participations")?,
            },
            ["records", "batch"] => {
                share(count(self.records, "records")?, count(self.batch, "batch")?)?
            }
            [] => return Err(Failure::Participation("none was given".into())),
            [alone] if alone != "full" => {
                return Err(Failure::Participation(format!(
                    "--{alone} needs --{}",
                    partner(alone)
                )));
            }
            _ => {
                let typed: Vec<String> = names.iter().map(|n| format!("--{n}")).collect();
                return Err(Failure::Participation(format!(
                    "{} cannot be combined",
                    typed.join(", ")
                )));
            }
        })
    }
}

fn partner(flag: &str) -> &'static str {
    match flag {
        "separation" => "participations",
        "participations" => "separation",
        "records" => "batch",
        _ => "records",
    }
}

fn share(records: u64, batch: u64) -> Result<Participation, Error> {
    // The library's own check of a batch and its table.
    Event::fixed_size(records, batch, 1.0)?;
    let share = batch as f64 / records as f64;
    let want = "at least a billionth of --records";
    if share < 1e-9 {
        return Err(Error::Parameter { name: "batch", want, got: batch as f64 });
    }
    Ok(Participation::FixedSize { share })
}
