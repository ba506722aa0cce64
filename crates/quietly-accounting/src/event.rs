//! Events: what was run on the data.
use crate::{
    correlated::CorrelatedGaussian, error::Error, objective_perturbation::DerivativeBound,
};

/// A mechanism, or a composition of mechanisms.
///
/// An event contains no data and no privacy cost. An accountant prices it under one neighbouring
/// relation. The code that samples and adds noise builds the event, so the cost is that of the run.
///
/// `noise_multiplier` is the standard deviation of the noise over the sensitivity, under both
/// relations. The sensitivity is the largest norm that one unit can add to the sum (the clipping
/// norm). Replacing a unit changes the sum by up to twice that, and the accountant includes it.
///
/// ```
/// use quietly_accounting::{Event, Neighbours, epsilon};
///
/// // A private quantile, then a thousand steps on Poisson samples of one percent.
/// let run = Event::exponential(0.1)?.then(Event::poisson(0.01, 1.0)?.repeat(1000)?);
/// let cost = epsilon(&run, Neighbours::AddRemove, 1e-5)?;
/// assert!(cost.upper < 1.85 && cost.relative_width() < 0.05);
/// # Ok::<(), quietly_accounting::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    Gaussian { noise: f64 },
    Laplace { scale: f64 },
    Exponential { add_remove: f64, replace_one: f64 },
    ApproximateDp { epsilon: f64, delta: f64 },
    ObjectivePerturbation { noise: f64, smoothness: f64, derivative: DerivativeBound },
    Poisson { rate: f64, noise: f64 },
    FixedSize { rate: f64, noise: f64 },
    RandomAllocation { steps: u64, select: u64, noise: f64 },
    Shuffled { blocks: u64, noise: f64 },
    Correlated(CorrelatedGaussian),
    Repeated { times: u64, event: Box<Event> },
    Composed(Vec<Event>),
    Disjoint(Vec<Event>),
}

/// The neighbouring relation: how two tables may differ that must be hard to tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Neighbours {
    /// One unit is added or removed. Where the number of units is public, it is replaced by a null
    /// unit, which contributes nothing.
    AddRemove,
    /// One unit is replaced by another. The number of units is public.
    ReplaceOne,
}

impl Neighbours {
    /// The name on the command line and in certificates.
    pub fn name(self) -> &'static str {
        match self {
            Neighbours::AddRemove => "add-remove",
            Neighbours::ReplaceOne => "replace-one",
        }
    }
}

/// The largest number of repetitions.
const MOST: u64 = 10_000_000;

impl Event {
    /// A sum over all units, with Gaussian noise.
    pub fn gaussian(noise_multiplier: f64) -> Result<Event, Error> {
        Ok(Kind::Gaussian { noise: Error::noise("noise_multiplier", noise_multiplier)? }.into())
    }

    /// A sum over all units, with Laplace noise. `scale` is the noise scale over the sensitivity in
    /// the 1-norm.
    pub fn laplace(scale: f64) -> Result<Event, Error> {
        Ok(Kind::Laplace { scale: Error::noise("scale", scale)? }.into())
    }

    /// The exponential mechanism with parameter `epsilon`: weights exp(epsilon·score/2Δ), where Δ
    /// is the largest change of a score when one unit is added or removed. Replacing a unit is
    /// charged for 2Δ.
    pub fn exponential(epsilon: f64) -> Result<Event, Error> {
        Event::exponential_with(epsilon, 2.0 * epsilon)
    }

    /// The exponential mechanism with its parameter under each relation, for scores that change by
    /// less than 2Δ when a unit is replaced.
    pub fn exponential_with(add_remove: f64, replace_one: f64) -> Result<Event, Error> {
        let want = "from 0.000001 to 100";
        let range = 1e-6..=100.0;
        Error::within("epsilon", want, add_remove, range.contains(&add_remove))?;
        Error::within("epsilon", want, replace_one, (1e-6..=200.0).contains(&replace_one))?;
        Ok(Kind::Exponential { add_remove, replace_one }.into())
    }

    /// Any mechanism that is proven to be (ε, δ)-differentially private, with the same ε and δ
    /// under both relations.
    ///
    /// ```
    /// use quietly_accounting::{Event, Neighbours, epsilon};
    ///
    /// let run = Event::approximate_dp(1.0, 1e-6)?.then(Event::gaussian(10.0)?);
    /// let cost = epsilon(&run, Neighbours::AddRemove, 1e-5)?;
    /// assert!(cost.upper < 1.39 && cost.relative_width() < 0.01);
    /// // Below its own δ the mechanism has no guarantee.
    /// assert_eq!(epsilon(&run, Neighbours::AddRemove, 1e-7)?.upper, f64::INFINITY);
    /// # Ok::<(), quietly_accounting::Error>(())
    /// ```
    pub fn approximate_dp(epsilon: f64, delta: f64) -> Result<Event, Error> {
        let known = (1e-6..=100.0).contains(&epsilon);
        Error::within("epsilon", "from 0.000001 to 100", epsilon, known)?;
        Error::within("delta", "from 0 to 0.5", delta, (0.0..=0.5).contains(&delta))?;
        Ok(Kind::ApproximateDp { epsilon, delta }.into())
    }

    /// Objective perturbation: the minimiser of an objective with a random linear term.
    ///
    /// `noise_multiplier` is the standard deviation of the perturbation over the largest gradient
    /// norm of one unit. `smoothness` is the largest second derivative of one unit's loss over the
    /// strong convexity of the objective.
    ///
    /// ```
    /// use quietly_accounting::{Event, Neighbours, DerivativeBound, epsilon, gaussian_mu};
    ///
    /// // Logistic regression at ε = 1 with smoothness up to ε/4 costs as much as one Gaussian sum.
    /// let noise = 1.0 / gaussian_mu(1.0, 1e-5)?;
    /// let run = Event::objective_perturbation(noise, 0.25, DerivativeBound::Logistic { clip: 1.0 })?;
    /// assert!(epsilon(&run, Neighbours::AddRemove, 1e-5)?.upper < 1.004);
    /// # Ok::<(), quietly_accounting::Error>(())
    /// ```
    pub fn objective_perturbation(
        noise_multiplier: f64,
        smoothness: f64,
        derivative: DerivativeBound,
    ) -> Result<Event, Error> {
        let noise = Error::noise("noise_multiplier", noise_multiplier)?;
        Error::within(
            "smoothness",
            "above 0 and at most 1",
            smoothness,
            smoothness > 0.0 && smoothness <= 1.0,
        )?;
        match derivative {
            DerivativeBound::Logistic { clip } => {
                let fine = clip > 0.0 && clip <= 1.0;
                Error::within("most", "above 0 and at most 1", clip, fine)?;
            }
            DerivativeBound::Softmax { classes } => {
                let fine = (2..=10_000).contains(&classes);
                Error::within("classes", "from 2 to 10000", classes as f64, fine)?;
            }
            DerivativeBound::OneSign | DerivativeBound::TwoSigns => {}
        }
        Ok(Kind::ObjectivePerturbation { noise, smoothness, derivative }.into())
    }

    /// A sum over a Poisson sample, with Gaussian noise: each unit is included independently with
    /// probability `rate`.
    pub fn poisson(rate: f64, noise_multiplier: f64) -> Result<Event, Error> {
        let noise = Error::noise("noise_multiplier", noise_multiplier)?;
        Ok(Kind::Poisson { rate: Error::rate(rate)?, noise }.into())
    }

    /// A sum over a fresh uniform sample of exactly `batch` of `records` units, with Gaussian
    /// noise.
    ///
    /// It costs far more than a Poisson sample of the same size: the unit that takes the place of
    /// another in the batch reveals whether that other unit was sampled.
    pub fn fixed_size(records: u64, batch: u64, noise_multiplier: f64) -> Result<Event, Error> {
        Error::count("records", records, 1 << 53)?;
        Error::count("batch", batch, 1 << 53)?;
        if batch > records {
            return Err(Error::Parameter {
                name: "batch",
                want: "at most records",
                got: batch as f64,
            });
        }
        let noise = Error::noise("noise_multiplier", noise_multiplier)?;
        Ok(Kind::FixedSize { rate: batch as f64 / records as f64, noise }.into())
    }

    /// One epoch of `steps` noisy sums. Each unit takes part in `select` of them, drawn uniformly
    /// at random and independently of other units.
    pub fn random_allocation(
        steps: u64,
        select: u64,
        noise_multiplier: f64,
    ) -> Result<Event, Error> {
        Error::count("steps", steps, MOST)?;
        Error::count("select", select, MOST)?;
        if select > steps {
            return Err(Error::Parameter {
                name: "select",
                want: "at most steps",
                got: select as f64,
            });
        }
        Ok(Kind::RandomAllocation {
            steps,
            select,
            noise: Error::noise("noise_multiplier", noise_multiplier)?,
        }
        .into())
    }

    /// One epoch over a shuffled table, split into `blocks` blocks of fixed size, with a noisy sum
    /// of each.
    ///
    /// It costs as much as one Gaussian release: each unit is in one block, and there is no
    /// amplification. With blocks of fixed size, the positions of the other units reveal the one
    /// that is left. The smaller costs of Poisson sampling and of random allocation do not hold
    /// here.
    pub fn shuffled(blocks: u64, noise_multiplier: f64) -> Result<Event, Error> {
        Error::count("steps", blocks, MOST)?;
        Ok(Kind::Shuffled { blocks, noise: Error::noise("noise_multiplier", noise_multiplier)? }
            .into())
    }

    /// A run of noisy sums whose noise is correlated between steps.
    pub fn correlated(run: CorrelatedGaussian) -> Event {
        Kind::Correlated(run).into()
    }

    /// Tree aggregation: every node of a binary tree over `steps` leaves is released with Gaussian
    /// noise. Each unit is in one leaf, hence in ⌈log₂ steps⌉ + 1 nodes.
    pub fn tree(steps: u64, noise_multiplier: f64) -> Result<Event, Error> {
        Error::count("steps", steps, MOST)?;
        let levels = steps.next_power_of_two().ilog2() + 1;
        Event::gaussian(noise_multiplier)?.repeat(levels.into())
    }

    /// Whether the event contains an exponential mechanism.
    pub(crate) fn has_exponential(&self) -> bool {
        match &self.kind {
            Kind::Exponential { .. } => true,
            Kind::Repeated { event, .. } => event.has_exponential(),
            Kind::Composed(events) | Kind::Disjoint(events) => {
                events.iter().any(Event::has_exponential)
            }
            _ => false,
        }
    }

    /// The event repeated `times` times. Each repetition may depend on earlier results.
    pub fn repeat(self, times: u64) -> Result<Event, Error> {
        Error::count("steps", times, MOST)?;
        if let Kind::Repeated { times: inner, event } = self.kind {
            let all = inner.checked_mul(times).filter(|&t| t <= MOST);
            let too_large = Error::TooLarge {
                name: "steps",
                most: MOST,
                instead: "account for parts of the run and add up",
            };
            return Ok(Kind::Repeated { times: all.ok_or(too_large)?, event }.into());
        }
        Ok(Kind::Repeated { times, event: Box::new(self) }.into())
    }

    /// This event, then `next` on the same units. `next` may depend on earlier results.
    pub fn then(self, next: Event) -> Event {
        match self.kind {
            Kind::Composed(mut events) => {
                events.push(next);
                Kind::Composed(events).into()
            }
            _ => Kind::Composed(vec![self, next]).into(),
        }
    }

    /// Parallel composition: each event reads its own units, in a partition that is fixed before
    /// any data is read. A unit pays for its own event only. If repeated, every unit keeps its
    /// event.
    pub fn disjoint(events: Vec<Event>) -> Result<Event, Error> {
        Error::count("events", events.len() as u64, 64)?;
        Ok(Kind::Disjoint(events).into())
    }
}

impl From<Kind> for Event {
    fn from(kind: Kind) -> Event {
        Event { kind }
    }
}
