//! What was done to the data.
use crate::{correlated::Correlated, error::Error, objective::Slopes};

/// What was done: a mechanism, or mechanisms put together.
///
/// An event says nothing of the data and holds no privacy number; the accountant reads it under one neighbouring
/// relation at a time. What samples and adds noise makes the event, so that what is charged is what ran.
///
/// `noise` is always the standard deviation over what one record can add to the sum (its clip norm), under either relation:
/// replacing a record can change the sum by twice that, and the accountant knows.
///
/// ```
/// use quietly_accounting::{Event, Neighbours, epsilon};
///
/// // A private quantile, then a thousand steps on Poisson samples of one percent.
/// let run = Event::selection(0.1)?.then(Event::poisson(0.01, 1.0)?.repeat(1000)?);
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
    Selection { add_remove: f64, replace_one: f64 },
    Promise { epsilon: f64, delta: f64 },
    Objective { noise: f64, bend: f64, slopes: Slopes },
    Poisson { rate: f64, noise: f64 },
    FixedSize { rate: f64, noise: f64 },
    Allocation { steps: u64, select: u64, noise: f64 },
    Shuffled { blocks: u64, noise: f64 },
    Correlated(Correlated),
    Repeated { times: u64, event: Box<Event> },
    Composed(Vec<Event>),
    Disjoint(Vec<Event>),
}

/// How two tables that must look alike may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Neighbours {
    /// One record is there or not. Where the number of records is public: it is there or is the null record.
    AddRemove,
    /// One record has other values. The number of records is public.
    ReplaceOne,
}

impl Neighbours {
    /// The words used on the command line and in certificates.
    pub fn name(self) -> &'static str {
        match self {
            Neighbours::AddRemove => "add-remove",
            Neighbours::ReplaceOne => "replace-one",
        }
    }
}

/// The most repetitions of anything.
const MOST: u64 = 10_000_000;

impl Event {
    /// A sum over all records, with Gaussian noise.
    pub fn gaussian(noise: f64) -> Result<Event, Error> {
        Ok(Kind::Gaussian { noise: Error::noise("noise", noise)? }.into())
    }

    /// A sum over all records, with Laplace noise of scale `scale` times what one record can add in the 1-norm.
    pub fn laplace(scale: f64) -> Result<Event, Error> {
        Ok(Kind::Laplace { scale: Error::noise("scale", scale)? }.into())
    }

    /// A choice by the exponential mechanism with parameter `epsilon`: weights exp(epsilon·score/2Δ), Δ the most that adding
    /// or removing one record can move a score. Replacing one is charged twice that.
    pub fn selection(epsilon: f64) -> Result<Event, Error> {
        Event::selection_with(epsilon, 2.0 * epsilon)
    }

    /// The same, where replacing a record moves scores by less than twice Δ: its parameter under each relation.
    pub fn selection_with(add_remove: f64, replace_one: f64) -> Result<Event, Error> {
        let want = "from 0.000001 to 100";
        let range = 1e-6..=100.0;
        Error::within("epsilon", want, add_remove, range.contains(&add_remove))?;
        Error::within("epsilon", want, replace_one, (1e-6..=200.0).contains(&replace_one))?;
        Ok(Kind::Selection { add_remove, replace_one }.into())
    }

    /// Something that is proven to be (ε, δ)-differentially private, and of which nothing else is known: the same under
    /// either relation.
    ///
    /// ```
    /// use quietly_accounting::{Event, Neighbours, epsilon};
    ///
    /// let run = Event::promise(1.0, 1e-6)?.then(Event::gaussian(10.0)?);
    /// let cost = epsilon(&run, Neighbours::AddRemove, 1e-5)?;
    /// assert!(cost.upper < 1.39 && cost.relative_width() < 0.01);
    /// // Below its own δ it promises nothing.
    /// assert_eq!(epsilon(&run, Neighbours::AddRemove, 1e-7)?.upper, f64::INFINITY);
    /// # Ok::<(), quietly_accounting::Error>(())
    /// ```
    pub fn promise(epsilon: f64, delta: f64) -> Result<Event, Error> {
        let known = (1e-6..=100.0).contains(&epsilon);
        Error::within("epsilon", "from 0.000001 to 100", epsilon, known)?;
        Error::within("delta", "from 0 to 0.5", delta, (0.0..=0.5).contains(&delta))?;
        Ok(Kind::Promise { epsilon, delta }.into())
    }

    /// The minimiser of a perturbed objective: `noise` is the standard deviation of the perturbation over the longest gradient of
    /// one record, `bend` the largest second derivative of one record over the objective's strong convexity.
    ///
    /// ```
    /// use quietly_accounting::{Event, Neighbours, Slopes, epsilon, gaussian_mu};
    ///
    /// // Logistic regression at ε = 1 with bend up to ε/4 costs what one Gaussian sum costs.
    /// let noise = 1.0 / gaussian_mu(1.0, 1e-5)?;
    /// let run = Event::objective(noise, 0.25, Slopes::Logistic { most: 1.0 })?;
    /// assert!(epsilon(&run, Neighbours::AddRemove, 1e-5)?.upper < 1.004);
    /// # Ok::<(), quietly_accounting::Error>(())
    /// ```
    pub fn objective(noise: f64, bend: f64, slopes: Slopes) -> Result<Event, Error> {
        let noise = Error::noise("noise", noise)?;
        Error::within("bend", "above 0 and at most 1", bend, bend > 0.0 && bend <= 1.0)?;
        match slopes {
            Slopes::Logistic { most } => {
                let fine = most > 0.0 && most <= 1.0;
                Error::within("most", "above 0 and at most 1", most, fine)?;
            }
            Slopes::Classes { count } => {
                let fine = (2..=10_000).contains(&count);
                Error::within("classes", "from 2 to 10000", count as f64, fine)?;
            }
            Slopes::OneSign | Slopes::TwoSigns => {}
        }
        Ok(Kind::Objective { noise, bend, slopes }.into())
    }

    /// A sum over a sample that each record joins with probability `rate`, on its own, with Gaussian noise.
    pub fn poisson(rate: f64, noise: f64) -> Result<Event, Error> {
        let noise = Error::noise("noise", noise)?;
        Ok(Kind::Poisson { rate: Error::rate(rate)?, noise }.into())
    }

    /// A sum over a sample of exactly `batch` out of `records` records, drawn anew, with Gaussian noise.
    ///
    /// Far dearer than a Poisson sample of the same size: whoever takes another's place in the batch gives it away.
    pub fn fixed_size(records: u64, batch: u64, noise: f64) -> Result<Event, Error> {
        Error::count("records", records, 1 << 53)?;
        Error::count("batch", batch, 1 << 53)?;
        if batch > records {
            return Err(Error::Parameter {
                name: "batch",
                want: "at most records",
                got: batch as f64,
            });
        }
        let noise = Error::noise("noise", noise)?;
        Ok(Kind::FixedSize { rate: batch as f64 / records as f64, noise }.into())
    }

    /// One pass of `steps` noisy sums in which each record takes part in `select` steps, drawn uniformly and on its own.
    pub fn allocation(steps: u64, select: u64, noise: f64) -> Result<Event, Error> {
        Error::count("steps", steps, MOST)?;
        Error::count("select", select, MOST)?;
        if select > steps {
            return Err(Error::Parameter {
                name: "select",
                want: "at most steps",
                got: select as f64,
            });
        }
        Ok(Kind::Allocation { steps, select, noise: Error::noise("noise", noise)? }.into())
    }

    /// One pass over a shuffled table cut into `blocks` blocks of fixed size, a noisy sum of each.
    ///
    /// Charged as one Gaussian release: each record is in one block, and there is no amplification to be had. With blocks of
    /// fixed size the others' places give a record away, so that neither Poisson's nor allocation's price would be true.
    pub fn shuffled(blocks: u64, noise: f64) -> Result<Event, Error> {
        Error::count("steps", blocks, MOST)?;
        Ok(Kind::Shuffled { blocks, noise: Error::noise("noise", noise)? }.into())
    }

    /// A run of noisy sums whose noises are correlated.
    pub fn correlated(run: Correlated) -> Event {
        Kind::Correlated(run).into()
    }

    /// Tree aggregation: every node of a binary tree over `steps` leaves is released with noise `noise`; each record is in
    /// one leaf, hence in ⌈log₂ steps⌉ + 1 nodes.
    pub fn tree(steps: u64, noise: f64) -> Result<Event, Error> {
        Error::count("steps", steps, MOST)?;
        let levels = steps.next_power_of_two().ilog2() + 1;
        Event::gaussian(noise)?.repeat(levels.into())
    }

    /// Whether an exponential mechanism takes part.
    pub(crate) fn has_selection(&self) -> bool {
        match &self.kind {
            Kind::Selection { .. } => true,
            Kind::Repeated { event, .. } => event.has_selection(),
            Kind::Composed(events) | Kind::Disjoint(events) => {
                events.iter().any(Event::has_selection)
            }
            _ => false,
        }
    }

    /// The same thing `times` times, each free to look at what came before.
    pub fn repeat(self, times: u64) -> Result<Event, Error> {
        Error::count("steps", times, MOST)?;
        if let Kind::Repeated { times: inner, event } = self.kind {
            let all = inner.checked_mul(times).filter(|&t| t <= MOST);
            let too_large = Error::TooLarge { name: "steps", most: MOST, instead: "split the run" };
            return Ok(Kind::Repeated { times: all.ok_or(too_large)?, event }.into());
        }
        Ok(Kind::Repeated { times, event: Box::new(self) }.into())
    }

    /// This, then `next` on the same records, which is free to look at what came before.
    pub fn then(self, next: Event) -> Event {
        match self.kind {
            Kind::Composed(mut events) => {
                events.push(next);
                Kind::Composed(events).into()
            }
            _ => Kind::Composed(vec![self, next]).into(),
        }
    }

    /// Each event on records of its own, fixed before any data is read: a record pays only for its own event. Repeated, every
    /// record keeps its event.
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
