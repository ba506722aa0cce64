//! The theorem for each event under each neighbouring relation. A theorem of more than a few lines has a file of its own.
use crate::{
    accountant::PrivacyBound,
    composition::Composition,
    convolution::Target,
    correlated::sampled,
    dominating_pair::DominatingPair,
    error::Error,
    event::{Event, Kind, Neighbours},
    gaussian,
    interval::Interval,
    objective_perturbation::ObjectivePerturbation,
};

mod fixed_size;
mod random_allocation;

/// The cost of the units of one branch of a parallel composition: alternatives, each of which is a
/// bound.
#[derive(Clone, Default)]
pub(crate) struct Branch {
    direct: Vec<(Composition, &'static str)>,
    /// Upper bounds under add-remove, for replace-one as removal and addition.
    absent: Vec<(Composition, &'static str)>,
    lower: Vec<Composition>,
    /// Whether replace-one as removal and addition may give a smaller bound.
    through_absence: bool,
}

/// The largest number of alternatives in a composition, and of branches of disjoint events.
const ALTERNATIVES: usize = 8;
const BRANCHES: usize = 256;

impl Branch {
    pub(crate) fn answer(&self, neighbours: Neighbours, target: Target) -> PrivacyBound {
        let mut known: Vec<(&Composition, Interval)> = vec![];
        let mut bracket = |account| match known.iter().find(|(a, _)| *a == account) {
            Some((_, found)) => *found,
            None => {
                let found = Composition::bracket(account, target);
                known.push((account, found));
                found
            }
        };
        let mut best = PrivacyBound {
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
                    (best.upper, best.method) = (upper, "replace-one as removal and addition");
                }
            }
        }
        best
    }

    /// The upper bound alone, from one composition.
    pub(crate) fn upper(&self, neighbours: Neighbours, target: Target, coarser: f64) -> f64 {
        self.uppers(neighbours, target, &[target], coarser)[0]
    }

    /// Upper bounds for several targets, from one composition that is tuned to `around`.
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

    /// Adds the bound without sampling: a sample leaks no more than the full batch. It remains
    /// where the loss is too small to be distinguished from rounding.
    fn or_full_batch(mut self, mu: f64) -> Branch {
        self.direct.push((Composition::gaussian(mu), "Gaussian, full batch"));
        self
    }

    /// One composition that is upper and lower bound.
    fn exact(account: Composition, absent: Composition, method: &'static str) -> Branch {
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
        let named = |left: &[(Composition, &'static str)],
                     right: &[(Composition, &'static str)]| {
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
            |accounts: &[Composition]| accounts.iter().map(|a| (a.clone(), "")).collect::<Vec<_>>();
        let mut lower: Vec<Composition> =
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
            // A unit is in one branch of a disjoint event, and stays there when the event is
            // repeated.
            Ok(inner.into_iter().map(|b| b.repeat(*times)).collect())
        }
        Kind::Composed(events) => {
            let mut all =
                vec![Branch::exact(Composition::default(), Composition::default(), "composition")];
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
            Composition::gaussian(gap / noise),
            Composition::gaussian(1.0 / noise),
            "Gaussian, exact",
        ),
        Kind::Laplace { scale } => {
            let part = |gap: f64| Composition::of(DominatingPair::Laplace { scale: scale / gap });
            Branch::exact(part(gap), part(1.0), "Laplace, privacy loss distribution")
        }
        Kind::Exponential { add_remove, replace_one } => {
            let range = if replace { *replace_one } else { *add_remove };
            let both = |range: f64| {
                vec![
                    (
                        Composition::gaussian(gaussian::exponential_mu(range)),
                        "exponential mechanism as Gaussian",
                    ),
                    (
                        Composition::of(DominatingPair::PureDp { epsilon: range }),
                        "exponential mechanism as pure",
                    ),
                ]
            };
            // An instance: two candidates whose log-odds change from -range/2 to range/2.
            let lower = vec![Composition::of(DominatingPair::PureDp { epsilon: 0.5 * range })];
            Branch { direct: both(range), absent: both(*add_remove), lower, through_absence: false }
        }
        Kind::ApproximateDp { epsilon, delta } => {
            // The dominating pair is itself such a mechanism, so the bound is exact.
            let account =
                Composition::of(DominatingPair::ApproximateDp { epsilon: *epsilon, delta: *delta });
            Branch::exact(account.clone(), account, "approximate DP, privacy loss distribution")
        }
        Kind::ObjectivePerturbation { noise, smoothness, derivative } => {
            let account =
                |neighbours| {
                    Composition::of(DominatingPair::ObjectivePerturbation(
                        ObjectivePerturbation::new(*noise, *smoothness, *derivative, neighbours),
                    ))
                };
            let method = "objective perturbation, privacy loss distribution";
            Branch::exact(account(neighbours), account(Neighbours::AddRemove), method)
        }
        Kind::Poisson { rate, noise } => {
            let method = "Poisson, privacy loss distribution";
            let account = |n| sampled(*rate, *noise, 1, n);
            Branch::exact(account(neighbours), account(Neighbours::AddRemove), method)
                .or_full_batch(gap / noise)
        }
        Kind::FixedSize { rate, noise } => fixed_size::bound(*rate, *noise, replace),
        Kind::RandomAllocation { steps, select, noise } => {
            random_allocation::bound(*steps, *select, *noise, gap)
        }
        Kind::Shuffled { blocks, noise } => {
            // Each unit is in one block, and which one may be known. With all other units at zero
            // (for replace-one, at -1) the block sums are constant except in one random block,
            // which is shifted by the gap: random allocation is an instance.
            let account = |gap: f64| Composition::gaussian(gap / noise);
            let method = "Gaussian, no amplification";
            let lower = match blocks {
                1 => account(gap),
                _ => Composition::of(DominatingPair::RandomAllocation {
                    steps: *blocks,
                    sigma: noise / gap,
                }),
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
