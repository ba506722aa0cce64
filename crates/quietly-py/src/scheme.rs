//! A scheme as Python gives it: the flags of `quietly account` under the same names, and one event out.
use pyo3::{prelude::*, types::PyDict};
use quietly_accounting::{
    CorrelatedGaussian, DerivativeBound, Error, Event, Participation, Strategy,
};

use crate::{
    errors::{exception, raise},
    plan::Keywords,
};

const NAMES: &str = "gaussian, laplace, exponential, objective, approximate-dp, poisson, fixed-size, random-allocation, shuffle, tree or correlated";

/// What makes the noise of a scheme, as the accountant counts it.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum NoiseParameter {
    Noise,
    Scale,
    EpsilonEach,
    /// None: the mechanism has its epsilon and delta.
    Nothing,
}

/// A scheme but for its noise_parameter.
pub(crate) struct Scheme {
    pub(crate) noise_parameter: NoiseParameter,
    event: Box<dyn Fn(f64) -> Result<Event, Error> + Send + Sync>,
}

impl Scheme {
    fn new(
        noise_parameter: NoiseParameter,
        event: impl Fn(f64) -> Result<Event, Error> + Send + Sync + 'static,
    ) -> PyResult<Self> {
        Ok(Scheme { noise_parameter, event: Box::new(event) })
    }

    pub(crate) fn read(said: &Bound<'_, PyDict>) -> PyResult<Self> {
        let keywords = Keywords(said);
        let name = keywords.word("scheme")?.unwrap_or_default();
        let taken: &[&str] = match name.as_str() {
            "gaussian" | "laplace" | "exponential" => &["steps"],
            "objective" => &["smoothness", "derivative", "classes", "most", "steps"],
            "approximate-dp" => &["epsilon_each", "delta_each", "steps"],
            "poisson" => &["sampling_rate", "steps"],
            "fixed-size" => &["records", "batch", "steps"],
            "random-allocation" => &["steps", "select", "epochs"],
            "shuffle" | "tree" => &["steps", "epochs"],
            "correlated" => &[
                "steps",
                "lambda",
                "bands",
                "full",
                "sampling_rate",
                "bins",
                "period",
                "separation",
                "participations",
                "records",
                "batch",
            ],
            _ => {
                return Err(wrong(&format!("scheme must be {NAMES}, but is {name:?}")));
            }
        };
        let mine = ["scheme", "neighbours", "noise_multiplier", "scale", "epsilon_each"];
        for (flag, _) in said {
            let flag: String = flag.extract()?;
            let known = mine.contains(&flag.as_str()) || taken.contains(&flag.as_str());
            if !known {
                let takes = taken.join(", ");
                return Err(wrong(&format!("{name} takes {takes}, but no {flag}")));
            }
        }
        let count = |name: &str| Ok::<u64, PyErr>(keywords.count(name)?.unwrap_or(1));
        let number = |name: &str| Ok::<f64, PyErr>(keywords.number(name)?.unwrap_or(f64::NAN));
        let (steps, epochs) = (count("steps")?, count("epochs")?);
        match name.as_str() {
            "gaussian" => {
                Scheme::new(NoiseParameter::Noise, move |x| Event::gaussian(x)?.repeat(steps))
            }
            "laplace" => {
                Scheme::new(NoiseParameter::Scale, move |x| Event::laplace(x)?.repeat(steps))
            }
            "exponential" => Scheme::new(NoiseParameter::EpsilonEach, move |x| {
                Event::exponential(x)?.repeat(steps)
            }),
            "objective" => {
                let (smoothness, bound) = (number("smoothness")?, derivative_bound(&keywords)?);
                Scheme::new(NoiseParameter::Noise, move |x| {
                    Event::objective_perturbation(x, smoothness, bound)?.repeat(steps)
                })
            }
            "approximate-dp" => {
                let (epsilon, delta) =
                    (number("epsilon_each")?, keywords.number("delta_each")?.unwrap_or(0.0));
                Scheme::new(NoiseParameter::Nothing, move |_| {
                    Event::approximate_dp(epsilon, delta)?.repeat(steps)
                })
            }
            "poisson" => {
                let rate = number("sampling_rate")?;
                Scheme::new(NoiseParameter::Noise, move |x| Event::poisson(rate, x)?.repeat(steps))
            }
            "fixed-size" => {
                let (records, batch) = (count("records")?, count("batch")?);
                Scheme::new(NoiseParameter::Noise, move |x| {
                    Event::fixed_size(records, batch, x)?.repeat(steps)
                })
            }
            "random-allocation" => {
                let select = count("select")?;
                Scheme::new(NoiseParameter::Noise, move |x| {
                    Event::random_allocation(steps, select, x)?.repeat(epochs)
                })
            }
            "shuffle" => Scheme::new(NoiseParameter::Noise, move |x| {
                Event::shuffled(steps, x)?.repeat(epochs)
            }),
            "tree" => {
                Scheme::new(NoiseParameter::Noise, move |x| Event::tree(steps, x)?.repeat(epochs))
            }
            _ => {
                let (strategy, participation) = (strategy(&keywords)?, participation(&keywords)?);
                Scheme::new(NoiseParameter::Noise, move |x| {
                    CorrelatedGaussian::new(strategy.clone(), participation, steps, x)
                        .map(Event::correlated)
                })
            }
        }
    }

    /// The event at the given value of the noise parameter.
    pub(crate) fn told(said: &Bound<'_, PyDict>) -> PyResult<Event> {
        let scheme = Scheme::read(said)?;
        let keywords = Keywords(said);
        let name = match scheme.noise_parameter {
            NoiseParameter::Noise => "noise_multiplier",
            NoiseParameter::Scale if said.contains("scale")? => "scale",
            NoiseParameter::Scale => "noise_multiplier",
            NoiseParameter::EpsilonEach => "epsilon_each",
            NoiseParameter::Nothing => "",
        };
        let setting = keywords.number(name)?.unwrap_or(f64::NAN);
        (scheme.event)(setting).map_err(raise)
    }

    /// The event for an amount of noise: a choice has the less of it, the more each choice may cost.
    pub(crate) fn event(&self, noise: f64) -> Result<Event, Error> {
        (self.event)(self.setting(noise))
    }

    /// The noise_parameter's setting for an amount of noise.
    pub(crate) fn setting(&self, noise: f64) -> f64 {
        if self.noise_parameter == NoiseParameter::EpsilonEach { 1.0 / noise } else { noise }
    }
}

fn wrong(message: &str) -> PyErr {
    exception("ParameterError", message, None)
}

fn derivative_bound(keywords: &Keywords<'_, '_>) -> PyResult<DerivativeBound> {
    match keywords.word("derivative")?.unwrap_or_default().as_str() {
        "logistic" => {
            Ok(DerivativeBound::Logistic { clip: keywords.number("most")?.unwrap_or(1.0) })
        }
        "one-sign" => Ok(DerivativeBound::OneSign),
        "two-signs" => Ok(DerivativeBound::TwoSigns),
        "classes" => {
            Ok(DerivativeBound::Softmax { classes: keywords.count("classes")?.unwrap_or(2) })
        }
        other => Err(wrong(&format!(
            "derivative must be logistic, one-sign, two-signs or classes, but is {other:?}"
        ))),
    }
}

fn strategy(keywords: &Keywords<'_, '_>) -> PyResult<Strategy> {
    let bands = keywords.get::<Vec<f64>>("bands", "the first coefficients, such as [1.0, 0.5]")?;
    match (keywords.number("lambda")?, bands) {
        (Some(lambda), None) => Ok(Strategy::Lambda(lambda)),
        (None, Some(bands)) => Ok(Strategy::Banded(bands)),
        (None, None) => Err(wrong("correlated noise needs lambda or bands, but neither was given")),
        (Some(_), Some(_)) => {
            Err(wrong("correlated noise needs lambda or bands, but both were given"))
        }
    }
}

fn participation(keywords: &Keywords<'_, '_>) -> PyResult<Participation> {
    let full = keywords.get::<bool>("full", "True or False")?.unwrap_or(false);
    let rate = keywords.number("sampling_rate")?;
    let count = |name: &str| keywords.count(name);
    let given = (full, rate, count("bins")?, count("period")?);
    let rest = (count("separation")?, count("participations")?, count("records")?, count("batch")?);
    Ok(match (given, rest) {
        ((true, None, None, None), (None, None, None, None)) => Participation::FullBatch,
        ((false, Some(rate), None, None), (None, None, None, None)) => {
            Participation::Poisson { rate }
        }
        ((false, None, Some(bins), None), (None, None, None, None)) => {
            Participation::BallsAndBins { bins }
        }
        ((false, None, None, Some(period)), (None, None, None, None)) => {
            Participation::Cyclic { period }
        }
        ((false, Some(rate), None, Some(period)), (None, None, None, None)) => {
            Participation::CyclicPoisson { period, rate }
        }
        ((false, None, None, None), (Some(separation), Some(most), None, None)) => {
            Participation::Separated { separation, most }
        }
        ((false, None, None, None), (None, None, Some(records), Some(batch))) => {
            // The library's own check of a batch and its table.
            Event::fixed_size(records, batch, 1.0).map_err(raise)?;
            let share = batch as f64 / records as f64;
            if share < 1e-9 {
                return Err(wrong("batch must be at least a billionth of records"));
            }
            Participation::FixedSize { share }
        }
        _ => {
            return Err(wrong(
                "a row takes part in one way: full=True, sampling_rate, bins, period (alone or with sampling_rate), \
                 separation with participations, or records with batch",
            ));
        }
    })
}
