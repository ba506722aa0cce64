//! The schemes, as typed: flags in, one event out.
//!
//! There is no arithmetic about privacy here. Each scheme names the library's event for what ran, and says under which
//! flag a count was typed where the library knows it by another name.
use clap::Args;
use quietly_accounting::{Error, Event};
use serde_json::{Map, Value};

use crate::{error::Failure, format, parse::Count};

/// What is set by `account` and found by `calibrate`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum NoiseParameter {
    Noise,
    Scale,
    EpsilonEach,
}

impl NoiseParameter {
    /// The flag without its dashes.
    pub(crate) fn flag(self) -> &'static str {
        match self {
            NoiseParameter::Noise => "noise-multiplier",
            NoiseParameter::Scale => "scale",
            NoiseParameter::EpsilonEach => "epsilon-each",
        }
    }
}

/// A flag and its value, as typed.
pub(crate) type Flag = (&'static str, Value);

/// A scheme with all flags read, but for the noise_parameter.
pub(crate) struct Plan {
    pub(crate) name: &'static str,
    pub(crate) noise_parameter: NoiseParameter,
    pub(crate) flags: Vec<Flag>,
    /// Said under the answer, where the answer may surprise.
    pub(crate) note: Option<&'static str>,
    event: Box<dyn Fn(f64) -> Result<Event, Error>>,
}

impl Plan {
    pub(crate) fn new(
        name: &'static str,
        noise_parameter: NoiseParameter,
        flags: Vec<Flag>,
        event: impl Fn(f64) -> Result<Event, Error> + 'static,
    ) -> Plan {
        Plan { name, noise_parameter, flags, note: None, event: Box::new(event) }
    }

    /// The event at a setting of the noise_parameter.
    pub(crate) fn event(&self, setting: f64) -> Result<Event, Error> {
        (self.event)(setting)
    }

    /// The parameters as a JSON object.
    pub(crate) fn parameters(&self, setting: Option<f64>) -> Value {
        let noise_parameter = setting.map(|x| (self.noise_parameter.flag(), format::json(x)));
        let all = noise_parameter.into_iter().chain(self.flags.iter().cloned());
        Value::Object(
            all.map(|(flag, value)| (flag.replace('-', "_"), value)).collect::<Map<_, _>>(),
        )
    }

    /// The flags as one would type them again.
    pub(crate) fn typed(&self, setting: Option<f64>) -> String {
        let noise_parameter = setting.map(|x| (self.noise_parameter.flag(), format::json(x)));
        let mut text = self.name.to_string();
        for (flag, value) in self.flags.iter().cloned().chain(noise_parameter) {
            match value {
                Value::Bool(_) => text.push_str(&format!(" --{flag}")),
                Value::Array(items) => {
                    let items: Vec<String> =
                        items.iter().map(|x| plain(&x.to_string()).into()).collect();
                    text.push_str(&format!(" --{flag} {}", items.join(",")));
                }
                Value::Number(x) => text.push_str(&format!(" --{flag} {}", plain(&x.to_string()))),
                other => text.push_str(&format!(" --{flag} {other}")),
            }
        }
        text
    }
}

/// "118" for "118.0".
fn plain(number: &str) -> &str {
    number.strip_suffix(".0").unwrap_or(number)
}

/// The same error under the name the user typed.
pub(crate) fn called(from: &str, to: &'static str) -> impl Fn(Error) -> Error {
    move |error| match error {
        Error::Parameter { name, want, got } if name == from => {
            Error::Parameter { name: to, want, got }
        }
        Error::TooLarge { name, most, instead } if name == from => {
            Error::TooLarge { name: to, most, instead }
        }
        other => other,
    }
}

/// The library's check of a number of steps and of its product with a number of passes.
fn in_all(steps: u64, epochs: u64) -> Result<(), Error> {
    let steps = Event::gaussian(1.0)?.repeat(steps)?;
    steps.repeat(epochs).map_err(called("steps", "epochs")).map(|_| ())
}

/// A scheme that has no flag but how often it is run.
fn repeated(
    name: &'static str,
    noise_parameter: NoiseParameter,
    steps: &Count,
    event: fn(f64) -> Result<Event, Error>,
) -> Result<Plan, Failure> {
    let flags = vec![("steps", steps.json())];
    let steps = steps.get("steps")?;
    Ok(Plan::new(name, noise_parameter, flags, move |setting| event(setting)?.repeat(steps)))
}

/// A scheme of some steps that make a pass, and of passes.
fn in_passes(
    name: &'static str,
    (steps, epochs): (&Count, &Count),
    event: fn(u64, f64) -> Result<Event, Error>,
) -> Result<Plan, Failure> {
    let flags = vec![("steps", steps.json()), ("epochs", epochs.json())];
    let (steps, epochs) = (steps.get("steps")?, epochs.get("epochs")?);
    in_all(steps, epochs)?;
    Ok(Plan::new(name, NoiseParameter::Noise, flags, move |noise| {
        event(steps, noise)?.repeat(epochs).map_err(called("steps", "epochs"))
    }))
}

/// Flags that become a plan.
pub(crate) trait Scheme: Args {
    fn plan(&self) -> Result<Plan, Failure>;
}

/// Every record in every step.
#[derive(Args, Debug)]
pub(crate) struct Gaussian {
    /// Number of noisy sums that are released
    #[arg(long, value_name = "T", default_value = "1")]
    steps: Count,
}

impl Scheme for Gaussian {
    fn plan(&self) -> Result<Plan, Failure> {
        repeated("gaussian", NoiseParameter::Noise, &self.steps, Event::gaussian)
    }
}

/// Laplace noise.
#[derive(Args, Debug)]
pub(crate) struct Laplace {
    /// Number of noisy sums that are released
    #[arg(long, value_name = "T", default_value = "1")]
    steps: Count,
}

impl Scheme for Laplace {
    fn plan(&self) -> Result<Plan, Failure> {
        repeated("laplace", NoiseParameter::Scale, &self.steps, Event::laplace)
    }
}

/// The exponential mechanism.
#[derive(Args, Debug)]
pub(crate) struct Exponential {
    /// Number of releases
    #[arg(long, value_name = "T", default_value = "1")]
    steps: Count,
}

impl Scheme for Exponential {
    fn plan(&self) -> Result<Plan, Failure> {
        repeated("exponential", NoiseParameter::EpsilonEach, &self.steps, |each| {
            Event::exponential(each).map_err(called("epsilon", "epsilon-each"))
        })
    }
}

/// Poisson samples.
#[derive(Args, Debug)]
pub(crate) struct Poisson {
    /// Sampling rate: each row joins each step with this probability, independently
    #[arg(long, value_name = "Q")]
    sampling_rate: crate::parse::Number,
    /// Number of noisy sums that are released
    #[arg(long, value_name = "T")]
    steps: Count,
}

impl Scheme for Poisson {
    fn plan(&self) -> Result<Plan, Failure> {
        let (rate, steps) = (self.sampling_rate.0, self.steps.get("steps")?);
        let flags = vec![("sampling-rate", format::json(rate)), ("steps", self.steps.json())];
        Ok(Plan::new("poisson", NoiseParameter::Noise, flags, move |noise| {
            Event::poisson(rate, noise)?.repeat(steps)
        }))
    }
}

/// Batches of one size.
#[derive(Args, Debug)]
pub(crate) struct FixedSize {
    /// Number of rows of the table
    #[arg(long, value_name = "N")]
    records: Count,
    /// Number of rows in each batch
    #[arg(long, value_name = "B")]
    batch: Count,
    /// Number of noisy sums that are released
    #[arg(long, value_name = "T")]
    steps: Count,
}

impl Scheme for FixedSize {
    fn plan(&self) -> Result<Plan, Failure> {
        let (records, batch) = (self.records.get("records")?, self.batch.get("batch")?);
        let steps = self.steps.get("steps")?;
        let flags = vec![
            ("records", self.records.json()),
            ("batch", self.batch.json()),
            ("steps", self.steps.json()),
        ];
        Ok(Plan::new("fixed-size", NoiseParameter::Noise, flags, move |noise| {
            Event::fixed_size(records, batch, noise)?.repeat(steps)
        }))
    }
}

/// Random allocation.
#[derive(Args, Debug)]
pub(crate) struct RandomAllocation {
    /// Steps per epoch
    #[arg(long, value_name = "T")]
    steps: Count,
    /// In how many of them each row takes part, at random
    #[arg(long, value_name = "K", default_value = "1")]
    select: Count,
    /// Number of epochs, each drawn independently
    #[arg(long, value_name = "E", default_value = "1")]
    epochs: Count,
}

impl Scheme for RandomAllocation {
    fn plan(&self) -> Result<Plan, Failure> {
        let (steps, select) = (self.steps.get("steps")?, self.select.get("select")?);
        let epochs = self.epochs.get("epochs")?;
        in_all(steps, epochs)?;
        let flags = vec![
            ("steps", self.steps.json()),
            ("select", self.select.json()),
            ("epochs", self.epochs.json()),
        ];
        Ok(Plan::new("random-allocation", NoiseParameter::Noise, flags, move |noise| {
            Event::random_allocation(steps, select, noise)?
                .repeat(epochs)
                .map_err(called("steps", "epochs"))
        }))
    }
}

/// A shuffled table cut into blocks.
#[derive(Args, Debug)]
pub(crate) struct Shuffle {
    /// Blocks per epoch; the cost does not depend on it
    #[arg(long, value_name = "T", default_value = "1")]
    steps: Count,
    /// Number of epochs
    #[arg(long, value_name = "E", default_value = "1")]
    epochs: Count,
}

impl Scheme for Shuffle {
    fn plan(&self) -> Result<Plan, Failure> {
        let note = "a shuffle is priced as one full release per epoch, without amplification: its blocks have \
                    fixed sizes, so the steps of rows depend on each other. For a lower cost, draw the step of \
                    each row independently: `quietly account random-allocation`.";
        let plan = in_passes("shuffle", (&self.steps, &self.epochs), Event::shuffled)?;
        Ok(Plan { note: Some(note), ..plan })
    }
}

/// Tree aggregation.
#[derive(Args, Debug)]
pub(crate) struct Tree {
    /// Leaves of the tree, one per step; each row is in one of them
    #[arg(long, value_name = "T")]
    steps: Count,
    /// Number of epochs, with one tree each
    #[arg(long, value_name = "E", default_value = "1")]
    epochs: Count,
}

impl Scheme for Tree {
    fn plan(&self) -> Result<Plan, Failure> {
        in_passes("tree", (&self.steps, &self.epochs), Event::tree)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_can_be_typed_again() {
        let flags = vec![
            ("sampling-rate", format::json(0.01)),
            ("full", true.into()),
            ("bands", vec![1.0, 0.5].into()),
        ];
        let plan = Plan::new("poisson", NoiseParameter::Noise, flags, Event::gaussian);
        assert_eq!(
            plan.typed(Some(118.0)),
            "poisson --sampling-rate 0.01 --full --bands 1,0.5 --noise-multiplier 118"
        );
        assert_eq!(plan.parameters(None)["sampling_rate"], 0.01);
    }

    #[test]
    fn errors_take_the_name_of_the_flag() {
        let error = Event::gaussian(1.0).unwrap().repeat(0).map_err(called("steps", "epochs"));
        assert_eq!(error.unwrap_err().to_string(), "epochs must be at least 1, but is 0");
    }
}
