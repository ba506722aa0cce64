//! The questions: what does an event cost, and how much noise does a budget need.
use crate::{
    account::Account,
    compose::Target,
    correlated::sampled,
    error::Error,
    event::{Event, Kind, Neighbours},
    gaussian,
    interval::Interval,
    part::Part,
    renyi, sampling,
};

/// A certified answer.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Answer {
    /// What some pair of neighbouring tables is known to leak: no accountant can promise less.
    pub lower: f64,
    /// What may be promised; `f64::INFINITY` if nothing finite can.
    pub upper: f64,
    /// The theorem behind the upper end.
    pub method: &'static str,
    /// The probability that the upper end, found by sampling with a fixed seed, is wrong; zero for all other methods. It is
    /// counted inside δ already.
    pub failure: f64,
    /// The neighbouring relation it holds for.
    pub neighbours: Neighbours,
}

impl Answer {
    /// (upper - lower) / upper.
    pub fn relative_width(&self) -> f64 {
        Interval { lower: self.lower, upper: self.upper }.relative_width()
    }
}

/// The ε that `event` costs at `delta`.
///
/// # Errors
///
/// [`Error::Parameter`] unless `delta` is in [1e-12, 0.5]; [`Error::Unsupported`] where there is no theorem.
pub fn epsilon(event: &Event, neighbours: Neighbours, delta: f64) -> Result<Answer, Error> {
    ask(event, neighbours, Target::Delta(Error::delta(delta)?))
}

/// The δ at which `event` is (`epsilon`, δ)-private.
///
/// # Errors
///
/// [`Error::Parameter`] unless `epsilon` is in [0.001, 1000]; [`Error::Unsupported`] where there is no theorem.
pub fn delta(event: &Event, neighbours: Neighbours, epsilon: f64) -> Result<Answer, Error> {
    ask(event, neighbours, Target::Epsilon(Error::epsilon(epsilon)?))
}

/// ε at thirteen δ from 1e-12 to 0.5: the whole curve, certified point by point, without sampling.
pub fn curve(event: &Event, neighbours: Neighbours) -> Result<Vec<(f64, Answer)>, Error> {
    let branches = branches(event, neighbours)?;
    let deltas = (1..=12).rev().map(|k| 10.0_f64.powi(-k)).chain([0.5]);
    Ok(deltas.map(|d| (d, answer(event, &branches, neighbours, Target::Delta(d), 0))).collect())
}

/// One record's account: alternatives, any of which bounds its loss.
#[derive(Clone, Default)]
struct Branch {
    direct: Vec<(Account, &'static str)>,
    /// Under add-remove, for when replace-one goes through the record's absence.
    absent: Vec<(Account, &'static str)>,
    lower: Vec<Account>,
    /// Whether the way through absence may pay.
    through_absence: bool,
}

/// Most alternatives followed in a composition, and most branches of disjoint events.
const ALTERNATIVES: usize = 8;
const BRANCHES: usize = 256;
/// From which relative width on other theorems are tried, and the work that sampling may take: about half a second.
const WIDE: f64 = 0.05;
const SAMPLING: u64 = 300_000_000;

fn ask(event: &Event, neighbours: Neighbours, target: Target) -> Result<Answer, Error> {
    Ok(answer(event, &branches(event, neighbours)?, neighbours, target, SAMPLING))
}

fn answer(
    event: &Event,
    branches: &[Branch],
    neighbours: Neighbours,
    target: Target,
    work: u64,
) -> Answer {
    let mut worst = Answer { lower: 0.0, upper: 0.0, method: "none", failure: 0.0, neighbours };
    for branch in branches {
        let answer = branch.answer(neighbours, target);
        if answer.upper > worst.upper || worst.method == "none" {
            (worst.upper, worst.method) = (answer.upper, answer.method);
        }
        worst.lower = worst.lower.max(answer.lower);
    }
    if worst.relative_width() > WIDE {
        worst.improve(event, target, work);
    }
    worst.lower = worst.lower.min(worst.upper);
    worst
}

impl Answer {
    /// Other theorems, tried where the bracket is wide: Rényi divergences, which suit selections, and the exact likelihood ratio
    /// by sampling, for correlated noise with random participation.
    fn improve(&mut self, event: &Event, target: Target, work: u64) {
        let Target::Delta(delta) = target else { return };
        if let Ok(upper) = renyi::epsilon(event, self.neighbours, delta)
            && upper < self.upper
        {
            (self.upper, self.method) = (upper, "Rényi divergence");
        }
        let Kind::Correlated(run) = &event.kind else { return };
        if work > 0
            && self.neighbours == Neighbours::AddRemove
            && let Some(found) = sampling::epsilon(run, delta, self.upper, work)
            && found.epsilon < self.upper
        {
            (self.upper, self.method) = (found.epsilon, "exact likelihood ratio, sampled");
            self.failure = found.failure;
        }
    }
}

impl Branch {
    fn answer(&self, neighbours: Neighbours, target: Target) -> Answer {
        let mut known: Vec<(&Account, Interval)> = vec![];
        let mut bracket = |account| match known.iter().find(|(a, _)| *a == account) {
            Some((_, found)) => *found,
            None => {
                let found = Account::bracket(account, target);
                known.push((account, found));
                found
            }
        };
        let mut best = Answer {
            lower: 0.0,
            upper: f64::INFINITY,
            method: "no theorem",
            failure: 0.0,
            neighbours,
        };
        for (account, method) in &self.direct {
            let upper = bracket(account).upper;
            if upper < best.upper {
                (best.upper, best.method) = (upper, method);
            }
        }
        for account in &self.lower {
            best.lower = best.lower.max(bracket(account).lower);
        }
        if neighbours == Neighbours::ReplaceOne && self.through_absence {
            for (account, _) in &self.absent {
                let upper = account.through_absence(target);
                if upper < best.upper {
                    (best.upper, best.method) = (upper, "through the record's absence");
                }
            }
        }
        best
    }

    /// The upper end alone, from one pass.
    fn upper(&self, neighbours: Neighbours, target: Target, coarser: f64) -> f64 {
        let direct = self.direct.iter().map(|(a, _)| a.upper(target, coarser));
        let absent = self.absent.iter().map(|(a, _)| a.through_absence(target));
        let through = neighbours == Neighbours::ReplaceOne && self.through_absence;
        direct
            .chain(absent.take(if through { usize::MAX } else { 0 }))
            .fold(f64::INFINITY, f64::min)
    }

    /// A sample leaks no more than all records would: what remains where the loss is too small to be told from rounding.
    fn or_all_records(mut self, mu: f64) -> Branch {
        self.direct.push((Account::gaussian(mu), "Gaussian, all records"));
        self
    }

    /// One account, its own lower bound.
    fn exact(account: Account, absent: Account, method: &'static str) -> Branch {
        Branch {
            lower: vec![account.clone()],
            direct: vec![(account, method)],
            absent: vec![(absent, method)],
            through_absence: false,
        }
    }

    fn repeat(mut self, times: u64) -> Branch {
        self.direct.iter_mut().for_each(|(a, _)| a.repeat(times));
        self.absent.iter_mut().for_each(|(a, _)| a.repeat(times));
        self.lower.iter_mut().for_each(|a| a.repeat(times));
        self
    }

    fn join(&self, other: &Branch) -> Branch {
        let named = |left: &[(Account, &'static str)], right: &[(Account, &'static str)]| {
            let mut all = vec![];
            for (a, method) in left {
                for (b, other) in right {
                    let mut sum = a.clone();
                    sum.join(b);
                    all.push((sum, if method == other { *method } else { "composition" }));
                }
            }
            all.truncate(ALTERNATIVES);
            all
        };
        let plain =
            |accounts: &[Account]| accounts.iter().map(|a| (a.clone(), "")).collect::<Vec<_>>();
        let mut lower: Vec<Account> =
            named(&plain(&self.lower), &plain(&other.lower)).into_iter().map(|(a, _)| a).collect();
        if self.lower.is_empty() || other.lower.is_empty() {
            lower = [&self.lower[..], &other.lower[..]].concat();
        }
        Branch {
            direct: named(&self.direct, &other.direct),
            absent: named(&self.absent, &other.absent),
            lower,
            through_absence: self.through_absence || other.through_absence,
        }
    }
}

fn branches(event: &Event, neighbours: Neighbours) -> Result<Vec<Branch>, Error> {
    match &event.kind {
        Kind::Repeated { times, event } => {
            let inner = branches(event, neighbours)?;
            if let [one] = &inner[..] {
                return Ok(vec![one.clone().repeat(*times)]);
            }
            // A record has one place in a disjoint event; repeated, it keeps it.
            Ok(inner.into_iter().map(|b| b.repeat(*times)).collect())
        }
        Kind::Composed(events) => {
            let mut all =
                vec![Branch::exact(Account::default(), Account::default(), "composition")];
            for event in events {
                let next = branches(event, neighbours)?;
                if all.len() * next.len() > BRANCHES {
                    let most = BRANCHES as u64;
                    let instead = "compose fewer disjoint events";
                    return Err(Error::TooLarge { name: "disjoint events", most, instead });
                }
                all = all.iter().flat_map(|a| next.iter().map(|b| a.join(b))).collect();
            }
            Ok(all)
        }
        Kind::Disjoint(events) => {
            let each: Result<Vec<_>, _> = events.iter().map(|e| branches(e, neighbours)).collect();
            let mut all: Vec<Branch> = each?.into_iter().flatten().collect();
            all.dedup_by(|a, b| a.direct == b.direct && a.lower == b.lower && a.absent == b.absent);
            Ok(all)
        }
        _ => Ok(vec![leaf(event, neighbours)?]),
    }
}

fn leaf(event: &Event, neighbours: Neighbours) -> Result<Branch, Error> {
    let replace = neighbours == Neighbours::ReplaceOne;
    let gap = if replace { 2.0 } else { 1.0 };
    Ok(match &event.kind {
        Kind::Gaussian { noise } => Branch::exact(
            Account::gaussian(gap / noise),
            Account::gaussian(1.0 / noise),
            "Gaussian, exact",
        ),
        Kind::Laplace { scale } => {
            let part = |gap: f64| Account::part(Part::Laplace { scale: scale / gap });
            Branch::exact(part(gap), part(1.0), "Laplace, privacy loss distribution")
        }
        Kind::Selection { add_remove, replace_one } => {
            let range = if replace { *replace_one } else { *add_remove };
            let both = |range: f64| {
                vec![
                    (
                        Account::gaussian(gaussian::selection_mu(range)),
                        "exponential mechanism as Gaussian",
                    ),
                    (Account::part(Part::Pure { epsilon: range }), "exponential mechanism as pure"),
                ]
            };
            // Two candidates whose log-odds go from -range/2 to range/2.
            let lower = vec![Account::part(Part::Pure { epsilon: 0.5 * range })];
            Branch { direct: both(range), absent: both(*add_remove), lower, through_absence: false }
        }
        Kind::Poisson { rate, noise } => {
            let method = "Poisson, privacy loss distribution";
            let account = |n| sampled(*rate, *noise, 1, n);
            Branch::exact(account(neighbours), account(Neighbours::AddRemove), method)
                .or_all_records(gap / noise)
        }
        Kind::FixedSize { rate, noise } => fixed_size(*rate, *noise, replace),
        Kind::Allocation { steps, select, noise } => allocation(*steps, *select, *noise, gap),
        Kind::Shuffled { blocks, noise } => {
            // Each record is in one block; which one may be known. With all other records at zero (for replace-one, at -1) the
            // block sums are constant but for one random block, shifted by the gap: an allocation is an instance.
            let account = |gap: f64| Account::gaussian(gap / noise);
            let method = "Gaussian, no amplification";
            let lower = match blocks {
                1 => account(gap),
                _ => Account::part(Part::Allocation { steps: *blocks, sigma: noise / gap }),
            };
            Branch { lower: vec![lower], ..Branch::exact(account(gap), account(1.0), method) }
        }
        Kind::Correlated(run) => {
            let bounds = run.bounds(neighbours)?;
            let absent = if replace {
                run.bounds(Neighbours::AddRemove)?.upper
            } else {
                bounds.upper.clone()
            };
            Branch {
                direct: bounds.upper,
                absent,
                lower: bounds.lower,
                through_absence: run.is_allocated(),
            }
        }
        Kind::Repeated { .. } | Kind::Composed(_) | Kind::Disjoint(_) => unreachable!("not a leaf"),
    })
}

/// With all other records at +1 and the record at -1 or +1, a sample of fixed size is N(0) against a shift of two with
/// probability `rate`: an instance of replace-one. With all others at zero it is an instance of zero-out.
fn fixed_size(rate: f64, noise: f64, replace: bool) -> Branch {
    let gap = if replace { 2.0 } else { 1.0 };
    if rate == 1.0 {
        return Branch::exact(
            Account::gaussian(gap / noise),
            Account::gaussian(1.0 / noise),
            "Gaussian, exact",
        );
    }
    let doubled = Account::part(Part::Doubled { rate, sigma: 0.5 * noise });
    let method = "fixed size, symmetrised pair";
    let lower = vec![Account::part(Part::Poisson { rate, sigma: noise / gap })];
    let branch = Branch {
        direct: vec![(doubled.clone(), method)],
        absent: vec![(doubled, method)],
        lower,
        through_absence: false,
    };
    branch.or_all_records(gap / noise)
}

/// k of t: a mixture, over partitions into k blocks, of one step per block; so no worse than k allocations in sequence.
fn allocation(steps: u64, select: u64, noise: f64, gap: f64) -> Branch {
    let unamplified = Account::gaussian(gap * (select as f64).sqrt() / noise);
    if select == steps {
        let absent = Account::gaussian((select as f64).sqrt() / noise);
        return Branch::exact(unamplified, absent, "Gaussian, exact");
    }
    let (short, long) = (steps / select, steps.div_ceil(select));
    let mut amplified = Account::default();
    for (block, times) in [(short, select - steps % select), (long, steps % select)] {
        if times > 0 {
            let mut one = match block {
                1 => Account::gaussian(1.0 / noise),
                _ => Account::part(Part::Allocation { steps: block, sigma: noise }),
            };
            one.repeat(times);
            amplified.join(&one);
        }
    }
    // The plain sum of all steps is shifted by `select`, against √steps times the noise.
    let sum = Account::gaussian(gap * select as f64 / (noise * (steps as f64).sqrt()));
    let mut lower = vec![sum];
    if select == 1 {
        lower.push(amplified.clone());
    }
    let method = "random allocation";
    let absent = vec![(amplified.clone(), method)];
    // Replacing a record has no amplified theorem of its own; it goes through the record's absence.
    let mut direct = vec![(unamplified, "Gaussian, no amplification")];
    if gap == 1.0 {
        direct.insert(0, (amplified, method));
    }
    Branch { direct, absent, lower, through_absence: true }
}

/// The largest μ for which μ-GDP, a Gaussian release of noise 1/μ, is (`epsilon`, `delta`)-private: exact, from below.
///
/// ```
/// // Noise 3.7306 for one Gaussian release at epsilon 1 and delta 1e-5.
/// let mu = quietly_accounting::gaussian_mu(1.0, 1e-5)?;
/// assert!((1.0 / mu - 3.730_631_635).abs() < 1e-8);
/// # Ok::<(), quietly_accounting::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Parameter`] outside the range of ε and δ.
pub fn gaussian_mu(epsilon: f64, delta: f64) -> Result<f64, Error> {
    Ok(gaussian::mu(Error::epsilon(epsilon)?, Error::delta(delta)?))
}

/// The least noise that meets a budget.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Calibration {
    /// Noise over what one record can add.
    pub noise_multiplier: f64,
    /// The ε that this noise costs at the δ asked for: `epsilon.upper` never exceeds what was asked.
    pub epsilon: Answer,
}

/// The least noise for which `event(noise)` costs at most `target_epsilon` at `delta`, to one part in a thousand.
///
/// The cost of the noise returned has been computed and is at most the target; this is checked, not extrapolated.
///
/// ```
/// use quietly_accounting::{Event, Neighbours, calibrate};
///
/// let run = |noise| Event::poisson(0.01, noise)?.repeat(1000);
/// let found = calibrate(run, Neighbours::AddRemove, 1.0, 1e-5)?;
/// assert!(found.epsilon.upper <= 1.0 && found.epsilon.upper > 0.99);
/// # Ok::<(), quietly_accounting::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Unreachable`] if no noise in [0.1, 100000] will do, and whatever `event` returns.
pub fn calibrate(
    event: impl Fn(f64) -> Result<Event, Error>,
    neighbours: Neighbours,
    target_epsilon: f64,
    delta: f64,
) -> Result<Calibration, Error> {
    let goal = Error::epsilon(target_epsilon)?;
    let target = Target::Delta(Error::delta(delta)?);
    let cost = |noise: f64, coarser: f64| -> Result<f64, Error> {
        let upper = |b: &Branch| b.upper(neighbours, target, coarser);
        Ok(branches(&event(noise)?, neighbours)?.iter().map(upper).fold(0.0, f64::max))
    };
    let unreachable = Error::Unreachable {
        least: LEAST,
        most: MOST,
        epsilon: goal,
        delta,
        instead: "take fewer steps, sample less, or allow a larger epsilon",
    };
    // A coarse search first: each of its answers costs a tenth of a fine one.
    let about =
        least_noise(|noise| cost(noise, 3.0), goal, 1.0, 1.003)?.ok_or(unreachable.clone())?;
    let noise_multiplier =
        least_noise(|noise| cost(noise, 1.0), goal, about, 1.0004)?.ok_or(unreachable)?;
    let epsilon = epsilon(&event(noise_multiplier)?, neighbours, delta)?;
    Ok(Calibration { noise_multiplier, epsilon })
}

/// The range of noise multipliers.
const LEAST: f64 = 0.1;
const MOST: f64 = 1e5;

/// The least noise whose `cost` is at most `goal`, to a factor of `precision`, searched from `start`.
///
/// Only noise whose cost was computed is returned. ε falls about as a power of the noise, so that the next guess
/// interpolates between logarithms.
fn least_noise(
    cost: impl Fn(f64) -> Result<f64, Error>,
    goal: f64,
    start: f64,
    precision: f64,
) -> Result<Option<f64>, Error> {
    let mut noise = start;
    let mut short: Option<(f64, f64)> = None;
    let mut enough: Option<(f64, f64)> = None;
    for round in 0..60 {
        let found = cost(noise)?;
        if found <= goal {
            enough = Some((noise, found.max(1e-9)))
        } else {
            short = Some((noise, found.min(1e6)))
        }
        noise = match (short, enough) {
            (None, Some((n, _))) if n <= LEAST => break,
            (Some((n, _)), None) if n >= MOST => return Ok(None),
            (_, Some((_, found))) if found * precision > goal => break,
            (Some((s, _)), Some((n, _))) if n < s * precision => break,
            (Some((s, e)), Some((n, found))) => {
                let slope = (e / found).ln() / (n / s).ln();
                // Aim a little to the safe side; keep off the ends, and halve now and then in case the power law fails.
                let aim = goal * (1.0 - 0.3 * (precision - 1.0));
                let share = ((e / aim).ln() / slope / (n / s).ln()).clamp(0.02, 0.98);
                s * (n / s).powf(if round % 6 == 5 || !share.is_finite() { 0.5 } else { share })
            }
            // ε falls at least about as fast as 1/noise: a guess on the safe side if it falls faster.
            (Some((s, e)), None) => {
                (s * (e / goal).clamp(1.0 + 0.3 * (precision - 1.0), 8.0)).min(MOST)
            }
            (None, Some((n, found))) => (n * (found / goal).sqrt().clamp(0.125, 0.9999)).max(LEAST),
            (None, None) => unreachable!("one of them was just set"),
        };
    }
    Ok(enough.map(|(noise, _)| noise))
}
