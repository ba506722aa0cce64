//! What the paper says of its figures, held against them.
use super::{
    figures::Outcomes,
    problem::{AMP, ERM, ITERATED, Kind, PHASED, PSA, Problem, SC, THREEFOLD},
};
use crate::reproduce::{
    claim::{Check, Claim},
    report::{Entry, Grid},
};

const FIGURES: &str = "SHW, section 6";
const OURS: &str = "our analysis of SHW's methods";

/// Losses this near are the same.
pub(super) const SAME: f64 = 1e-3;
/// Excess below this counts as zero: test rows differ from training rows by as much.
const FLOOR: f64 = 1e-4;

type Key<'a> = (Kind, &'a str);

/// Where budgets vary: a table, a problem, a budget.
pub(super) type Place = (usize, Problem, f64);

impl Outcomes {
    pub(super) fn places(&self, problems: &[Problem]) -> Vec<Place> {
        let mut places = vec![];
        for table in 0..self.tables.len() {
            for problem in problems {
                places.extend(self.epsilons.iter().map(|e| (table, *problem, *e)));
            }
        }
        places
    }

    fn loss(&self, (table, problem, epsilon): Place, key: Key<'_>) -> Option<f64> {
        Some(self.find(table, problem, self.main_size(table), epsilon, key)?.mean()?.0)
    }

    /// The loss beyond that of the fit without noise.
    fn excess(&self, place: Place, key: Key<'_>) -> Option<f64> {
        Some(self.loss(place, key)? - self.loss(place, (Kind::Plain, "no noise"))?)
    }

    /// The least loss among several.
    fn best(&self, place: Place, kind: Kind, bases: &[&str]) -> Option<f64> {
        bases.iter().filter_map(|base| self.loss(place, (kind, base))).reduce(f64::min)
    }

    pub(super) fn tell(&self, (table, problem, epsilon): Place) -> String {
        format!("{} {} eps {epsilon}:", self.tables[table], problem.name())
    }

    /// One method is no worse than another, by at most so much.
    fn order(&self, places: &[Place], better: Key<'_>, worse: Key<'_>, slack: f64) -> Vec<Check> {
        let check = |place: &Place| {
            let apart = self.loss(*place, better).zip(self.loss(*place, worse));
            Check::below(self.tell(*place), apart.map(|(a, b)| a - b), slack)
        };
        places.iter().map(check).collect()
    }

    /// The share of places in which one method is no worse than another.
    fn share(&self, places: &[Place], better: Key<'_>, worse: Key<'_>) -> Check {
        let apart = self.order(places, better, worse, 0.0).into_iter().filter_map(|c| c.value);
        let apart: Vec<f64> = apart.collect();
        let held = apart.iter().filter(|x| **x <= 0.0).count() as f64;
        let share = (!apart.is_empty()).then(|| held / apart.len() as f64);
        Check::above(format!("share of {} cells:", apart.len()), share, 0.51)
    }

    /// Excess over excess, as a geometric mean over tables and problems.
    fn ratio(&self, epsilon: f64, above: Key<'_>, below: Key<'_>) -> Option<f64> {
        let logs: Vec<f64> = self
            .places(&Problem::ALL)
            .into_iter()
            .filter(|place| place.2 == epsilon)
            .filter_map(|place| {
                let (a, b) = (self.excess(place, above)?, self.excess(place, below)?);
                Some((a.max(FLOOR) / b.max(FLOOR)).ln())
            })
            .collect();
        let mean = logs.iter().sum::<f64>() / logs.len().max(1) as f64;
        (!logs.is_empty()).then(|| mean.exp())
    }
}

/// Everything that is said of the figures.
pub(super) fn all(found: &Outcomes) -> Vec<Claim> {
    let every = found.places(&Problem::ALL);
    let only = |problem| found.places(&[problem]);
    let printed = |base| (Kind::Printed, base);
    let mut claims = vec![];

    for (kind, how) in [(Kind::Printed, "as printed"), (Kind::Found, "with exact accounting")] {
        let check = |place: &Place| {
            let rivals = ["dp-sgd", "sc-psgd"].map(|base| found.loss(*place, (Kind::Found, base)));
            let worst = rivals[0].zip(rivals[1]).map(|(a, b)| a.max(b));
            let best = found.best(*place, kind, &THREEFOLD);
            let apart = worst.zip(best).map(|(a, b)| a - b);
            Check::below(found.tell(*place), apart, 0.0)
        };
        claims.push(Claim::new(
            format!(
                "DP-SGD and SC-psgd are the best: both have less test loss than Phased-SGD, PSA and Iterated {how}"
            ),
            FIGURES,
            every.iter().map(check).collect(),
        ));
    }
    for base in ITERATED {
        claims.push(Claim::new(
            format!("linear: {base} beats Phased-SGD in most cases (as printed)"),
            FIGURES,
            vec![found.share(&only(Problem::Linear), printed(base), printed(PHASED))],
        ));
        claims.push(Claim::new(
            format!("logistic: {base} beats Phased-SGD-SC (as printed)"),
            FIGURES,
            found.order(&only(Problem::Logistic), printed(base), printed(SC), 0.0),
        ));
    }
    let check = |base: &&'static str| {
        let share = found.share(&every, (Kind::Found, base), (Kind::Found, PHASED));
        Check { what: format!("{base}, {}", share.what), ..share }
    };
    claims.push(Claim::new(
        "with exact accounting, too, Iterated Phased-SGD beats Phased-SGD in most cases",
        "SHW, Theorem 14 and section 6",
        ITERATED.iter().map(check).collect(),
    ));
    claims.push(Claim::new(
        "linear: PSA beats Phased-SGD in most cases (as printed)",
        FIGURES,
        vec![found.share(&only(Problem::Linear), printed(PSA), printed(PHASED))],
    ));
    claims.push(Claim::new(
        "linear: PSA beats Iterated Phased-SGD with either theta (as printed)",
        FIGURES,
        ITERATED
            .iter()
            .flat_map(|base| found.order(&only(Problem::Linear), printed(PSA), printed(base), 0.0))
            .collect(),
    ));
    claims.push(Claim::new(
        "theta 1.5 is better than theta 2 (as printed)",
        FIGURES,
        found.order(&every, printed(ITERATED[0]), printed(ITERATED[1]), 0.0),
    ));
    let small = found.epsilons[0];
    let fourth: Vec<Place> =
        only(Problem::Fourth).into_iter().filter(|place| place.2 == small).collect();
    let first = |place: &Place| {
        let rivals = found.best(*place, Kind::Found, &["dp-sgd", "sc-psgd"]);
        let apart = found.loss(*place, printed(PSA)).zip(rivals).map(|(a, b)| a - b);
        Check::below(found.tell(*place), apart, 0.0)
    };
    claims.push(Claim::new(
        format!(
            "L4 at epsilon {small}: PSA may be the best (as printed, against DP-SGD and SC-psgd)"
        ),
        FIGURES,
        fourth.iter().map(first).collect(),
    ));
    claims.extend(shapes(found));
    let large = ["psa-ii", "faster-dpsgd-sc"].iter().flat_map(|base| {
        let kind = |base| (Kind::Found, base);
        let mut checks = found.order(&every, kind(PHASED), kind(*base), 0.0);
        checks.retain(|check| check.value.is_some());
        checks.iter_mut().for_each(|check| check.what = format!("{base}, {}", check.what));
        checks
    });
    claims.push(Claim::new(
        "PSA-II and Faster-DPSGD-SC are impractical: Phased-SGD beats both",
        FIGURES,
        large.collect(),
    ));
    claims.extend(ours(found, &every));
    claims
}

/// Losses fall with n and with ε.
fn shapes(found: &Outcomes) -> [Claim; 2] {
    let (mut over_epsilon, mut over_n) = (vec![], vec![]);
    let last = *found.epsilons.last().expect("some budgets");
    let first = found.epsilons[0];
    for (table, problem, _) in found.places(&Problem::ALL).into_iter().step_by(found.epsilons.len())
    {
        for base in THREEFOLD {
            let key = (Kind::Known, base);
            let (high, low) =
                (found.loss((table, problem, first), key), found.loss((table, problem, last), key));
            let Some((high, low)) = high.zip(low) else { continue };
            let what = format!("{} {} {base}:", found.tables[table], problem.name());
            over_epsilon.push(Check::below(&what, Some(low - high), 0.0));
            let sizes = found.sizes(table);
            let mean = |n: usize| Some(found.find(table, problem, n, first, key)?.mean()?.0);
            let change = mean(sizes[0]).zip(mean(sizes[sizes.len() - 1])).map(|(a, b)| b - a);
            over_n.push(Check::below(what, change, 0.0));
        }
    }
    [
        Claim::new(
            format!("losses fall from epsilon {first} to {last}, whatever the method"),
            "SHW, figures 3 to 5",
            over_epsilon,
        ),
        Claim::new(
            format!("losses fall with n at epsilon {first}, whatever the method"),
            "SHW, figures 1 and 2",
            over_n,
        ),
    ]
}

/// What this library says.
fn ours(found: &Outcomes, every: &[Place]) -> Vec<Claim> {
    let exact = THREEFOLD.iter().flat_map(|base| {
        found.epsilons.iter().map(move |e| {
            let ratio = found.ratio(*e, (Kind::Known, base), (Kind::Printed, base));
            Check::below(format!("{base}, eps {e}:"), ratio, 0.75)
        })
    });
    let radius = THREEFOLD.iter().flat_map(|base| {
        found.epsilons.iter().map(move |e| {
            let ratio = found.ratio(*e, (Kind::Found, base), (Kind::Known, base));
            Check::below(format!("{base}, eps {e}:"), ratio, 1.0)
        })
    });
    let family = |place: &Place| {
        let best = found.best(*place, Kind::Found, &THREEFOLD);
        let apart = found.loss(*place, (Kind::Found, ERM)).zip(best).map(|(a, b)| a - b);
        Check::below(found.tell(*place), apart, SAME)
    };
    let mut rivals = THREEFOLD.to_vec();
    rivals.extend([ERM, "psa-ii", "faster-dpsgd-sc"]);
    rivals.extend(["dp-sgd", "dp-gd", "sc-psgd", "gd-op", "frank-wolfe"]);
    let amp = |place: &Place| {
        let best = found.best(*place, Kind::Found, &rivals);
        let apart = found.loss(*place, (Kind::Found, AMP)).zip(best).map(|(a, b)| a - b);
        Check::below(found.tell(*place), apart, 2.0 * SAME)
    };
    vec![
        Claim::new(
            "exact accounting leaves at most three quarters of the excess loss of the printed form",
            OURS,
            exact.collect(),
        ),
        Claim::new(
            "a private bound on rows pays for itself: the excess loss does not grow",
            OURS,
            radius.collect(),
        ),
        Claim::new(
            "of the paper's methods Phased-ERM is the best (within 0.001)",
            OURS,
            every.iter().map(family).collect(),
        ),
        Claim::new(
            format!(
                "AMP, untuned, is within 0.002 of the best of all others, at n = {}",
                found.rows
            ),
            "this library",
            every.iter().map(amp).collect(),
        ),
    ]
}

/// What exact accounting and a private bound on rows leave of the excess loss.
pub(super) fn accounting(found: &Outcomes) -> Grid {
    let mut columns = vec!["method".to_string(), "over its printed form".into()];
    columns.extend(found.epsilons.iter().map(|e| format!("eps {e}")));
    let mut rows = vec![];
    for base in THREEFOLD {
        for (kind, what) in
            [(Kind::Known, "exact accounting"), (Kind::Found, "and a private radius")]
        {
            let mut row = vec![Entry::Word(base.into()), Entry::Word(what.into())];
            let ratio = |e: &f64| Entry::of(found.ratio(*e, (kind, base), (Kind::Printed, base)));
            row.extend(found.epsilons.iter().map(ratio));
            rows.push(row);
        }
    }
    Grid {
        title: "What exact accounting buys".into(),
        note: "Excess test loss over that of the printed form, as a geometric mean over tables and problems; excess below 0.0001 \
               counts as that."
            .into(),
        columns,
        rows,
    }
}
