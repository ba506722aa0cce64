//! From events to accounts: which theorem covers what, under which relation.
use crate::{
    account::Account,
    compose::Target,
    correlated::sampled,
    error::Error,
    event::{Event, Kind, Neighbours},
    gaussian,
    interval::Interval,
    objective::Objective,
    part::Part,
    privacy::Answer,
};

/// One record's account: alternatives, any of which bounds its loss.
#[derive(Clone, Default)]
pub(crate) struct Branch {
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

impl Branch {
    pub(crate) fn answer(&self, neighbours: Neighbours, target: Target) -> Answer {
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
            method: "no finite bound",
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
    pub(crate) fn upper(&self, neighbours: Neighbours, target: Target, coarser: f64) -> f64 {
        self.uppers(neighbours, target, &[target], coarser)[0]
    }

    /// The upper ends for several targets, from a pass that is made for `around`.
    pub(crate) fn uppers(
        &self,
        neighbours: Neighbours,
        around: Target,
        targets: &[Target],
        coarser: f64,
    ) -> Vec<f64> {
        let mut best = vec![f64::INFINITY; targets.len()];
        let mut meet = |found: Vec<f64>| {
            best.iter_mut().zip(found).for_each(|(best, found)| *best = best.min(found));
        };
        for (account, _) in &self.direct {
            meet(account.uppers(around, targets, coarser));
        }
        if neighbours == Neighbours::ReplaceOne && self.through_absence {
            for (account, _) in &self.absent {
                meet(targets.iter().map(|target| account.through_absence(*target)).collect());
            }
        }
        best
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

pub(crate) fn branches(event: &Event, neighbours: Neighbours) -> Result<Vec<Branch>, Error> {
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
        Kind::Promise { epsilon, delta } => {
            // The dominating pair is itself such a mechanism, so that no bound could be lower.
            let account = Account::part(Part::Promise { epsilon: *epsilon, delta: *delta });
            Branch::exact(account.clone(), account, "promise, privacy loss distribution")
        }
        Kind::Objective { noise, bend, slopes } => {
            let account = |neighbours| {
                Account::part(Part::Objective(Objective::new(*noise, *bend, *slopes, neighbours)))
            };
            let method = "objective perturbation, privacy loss distribution";
            Branch::exact(account(neighbours), account(Neighbours::AddRemove), method)
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
