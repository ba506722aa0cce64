//! The canary audit: how well an attacker distinguishes fits with and without one row.
//!
//! A threshold is chosen on the first half of the runs and judged on the second, so that choosing costs nothing. The
//! chances of a hit and of a false alarm are then limited by Clopper and Pearson's exact bounds, and with them ε: any
//! (ε, δ)-private mechanism has P(hit) ≤ e^ε P(false alarm) + δ, whatever the test, in both directions.
use quietly_accounting::Neighbours;
use quietly_core::{
    charge::Charge,
    progress::{ProgressCallback, report},
};
use quietly_data::{Private, Table};
use quietly_engine::error::Error;
use quietly_noise::Key;

use super::{
    Claim, Verdict,
    confidence::{chance_above, chance_below, quantile},
    synthetic::{Group, World},
};
use crate::plan::{FitInput, FitOptions, Plan};

/// The chance that an audit accuses a mechanism which keeps its promise, at most.
pub const FALSE_ACCUSATION: f64 = 1e-3;

/// What a canary gave away.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Canary {
    /// What was claimed.
    pub claim: Claim,
    /// How many runs there were with the canary, and as many without.
    pub runs: u64,
    /// ε at the claim's δ is above this, whatever the mechanism, with [`confidence`](Self::confidence).
    pub epsilon: f64,
    /// The test that shows it.
    pub sighting: Sighting,
    /// If the mechanism is μ-GDP, μ is above this, with the same confidence.
    pub mu: f64,
    /// The test that shows it, and the most hits that the claim allows for its false alarms.
    pub curve: (Sighting, f64),
    /// How sure all of this is, together.
    pub confidence: f64,
    /// The scores without the canary, in the order of their size.
    pub without: Vec<f64>,
    /// The scores with it.
    pub with: Vec<f64>,
}

/// A test and how it fared on runs that had no part in choosing it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Sighting {
    /// Scores beyond this are an alarm.
    pub threshold: f64,
    /// Whether high scores say "with"; otherwise low scores say "without", and these are the hits.
    pub above: bool,
    /// False alarms.
    pub false_alarms: u64,
    /// Hits.
    pub hits: u64,
    /// Runs of each kind.
    pub of: u64,
    /// The chance of a false alarm is below this.
    pub most_false_alarms: f64,
    /// The chance of a hit is above this.
    pub least_hits: f64,
}

impl Canary {
    /// Whether what was seen is within the claim.
    pub fn verdict(&self) -> Verdict {
        let (sighting, ceiling) = &self.curve;
        if self.epsilon > self.claim.epsilon || sighting.least_hits > *ceiling {
            Verdict::Caught
        } else {
            Verdict::Within
        }
    }
}

/// Audits anything: `release(with, run)` makes one release, with the canary or without, and scores it.
///
/// High scores should speak for "with". Each call must be a fresh, independent run.
///
/// ```
/// use quietly::{Budget, Key, audit::{Broken, Mechanism, Scheme, Verdict, canary}};
/// use std::ops::ControlFlow;
///
/// let quiet = &mut |_| ControlFlow::Continue(());
/// let mut audit = |broken| {
///     let budget = Budget::new(4.0, 1e-5)?;
///     let mechanism = Mechanism::new(Scheme::Full, 1, budget, broken, &Key::from_seed(1))?;
///     canary(mechanism.claim(), 2000, |with, run| mechanism.release(with, run), quiet)
/// };
/// assert_eq!(audit(None)?.verdict(), Verdict::Within);
/// assert_eq!(audit(Some(Broken::HalfNoise))?.verdict(), Verdict::Caught);
/// # Ok::<(), quietly::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Parameter`] unless there are from 100 to ten million runs; [`Error::Interrupted`] if `watch` says so; whatever
/// `release` returns.
pub fn canary(
    claim: &Claim,
    runs: u64,
    mut release: impl FnMut(bool, u64) -> Result<f64, Error>,
    watch: &mut ProgressCallback<'_>,
) -> Result<Canary, Error> {
    Error::ensure((100..=10_000_000).contains(&runs), "runs", "from 100 to ten million", runs)?;
    let mut scores = [Vec::new(), Vec::new()];
    for run in 0..runs {
        if run % 64 == 0 {
            report(watch, "canary", run, runs)?;
        }
        for with in [false, true] {
            let score = release(with, run)?;
            // A score that is no number says nothing, but must not disturb the order.
            scores[usize::from(with)].push(if score.is_nan() { 0.0 } else { score });
        }
    }
    let [mut without, mut with] = scores;
    let half = runs as usize / 2;
    let early = Runs::new(&without[..half], &with[..half]);
    let late = Runs::new(&without[half..], &with[half..]);
    // Two tests of two limits each.
    let error = 0.25 * FALSE_ACCUSATION;
    let delta = claim.delta;
    let epsilon = |s: &Sighting| ((s.least_hits - delta) / s.most_false_alarms).max(1.0).ln();
    // In units of normal quantiles, in which a Gaussian's curve is a straight line.
    let probit = |p: f64| quantile(p.clamp(1e-12, 1.0 - 1e-12));
    let excess = |s: &Sighting| probit(s.least_hits) - probit(claim.hits(s.most_false_alarms));
    let sighting = late.judge(early.choose(error, epsilon), error);
    let curve = late.judge(early.choose(error, excess), error);
    let mu = probit(curve.least_hits) - probit(curve.most_false_alarms);
    without.sort_by(f64::total_cmp);
    with.sort_by(f64::total_cmp);
    Ok(Canary {
        claim: claim.clone(),
        runs,
        epsilon: epsilon(&sighting),
        sighting,
        mu: mu.max(0.0),
        curve: (curve, claim.hits(curve.most_false_alarms)),
        confidence: 1.0 - FALSE_ACCUSATION,
        without,
        with,
    })
}

/// Audits whole fits: a row as far out as the schema allows is in the table or not (replaced by another one, if that is
/// the plan's relation), and the finished model's prediction for it is the score.
///
/// An attacker with the model alone sees less than one who sees every noisy sum. The result is a lower bound all the same.
///
/// # Errors
///
/// As [`canary`] and [`Plan::fit`].
pub fn canary_in_fits(
    plan: &Plan,
    runs: u64,
    key: &Key,
    watch: &mut ProgressCallback<'_>,
) -> Result<Canary, Error> {
    let neighbours = plan.budget().neighbours();
    let claim = Claim::of_plan(plan, neighbours)?;
    let world = World::new(plan, key)?;
    let mut rows = world.draw(Group::Members, 0, plan.rows() - 1)?;
    let public = world.draw(Group::Public, 0, plan.rows())?.into_table();
    let without = match neighbours {
        Neighbours::AddRemove => rows.clone(),
        Neighbours::ReplaceOne => {
            let mut other = rows.clone();
            other.push(&world.row_at_the_bound(-1.0), world.target_at_the_bound(1.0));
            other
        }
    };
    let bound = world.row_at_the_bound(1.0);
    rows.push(&bound, world.target_at_the_bound(1.0));
    let tables: [Private<Table>; 2] = [without, rows].map(|rows| Private::new(rows.into_table()));
    let seeds = key.stream("seeds of fits");
    let score = |with: bool, run: u64| {
        let mut words = seeds.bits(2 * run + u64::from(with))?;
        let key = Key::from_seed(words.word()?);
        let input = FitInput::table(&tables[usize::from(with)], world.range());
        let options = FitOptions::new(Charge::without_ledger(key)).threads(1).public(&public);
        let (intercept, weights) = plan.fit(input, options)?.coefficients()?;
        Ok(intercept + bound.iter().zip(weights).map(|(x, w)| x * w).sum::<f64>())
    };
    canary(&claim, runs, score, watch)
}

/// Scores of both kinds, each in order.
struct Runs {
    without: Vec<f64>,
    with: Vec<f64>,
}

impl Runs {
    fn new(without: &[f64], with: &[f64]) -> Self {
        let sorted = |scores: &[f64]| {
            let mut scores = scores.to_vec();
            scores.sort_by(f64::total_cmp);
            scores
        };
        Runs { without: sorted(without), with: sorted(with) }
    }

    /// False alarms and hits of a test.
    fn counts(&self, threshold: f64, above: bool) -> (u64, u64) {
        let low = |scores: &[f64]| scores.partition_point(|s| *s <= threshold) as u64;
        let (without, with) = (low(&self.without), low(&self.with));
        let of = self.without.len() as u64;
        if above { (of - without, of - with) } else { (with, without) }
    }

    /// The test for which `worth` is most, by limits that are quick and nearly right.
    fn choose(&self, error: f64, worth: impl Fn(&Sighting) -> f64) -> (f64, bool) {
        let z = quantile(1.0 - error);
        let of = self.without.len() as u64;
        // Wilson's limits.
        let limit = |hits: u64, sign: f64| {
            let (n, p) = (of as f64, hits as f64 / of as f64);
            let spread = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
            ((p + z * z / (2.0 * n) + sign * spread) / (1.0 + z * z / n)).clamp(1e-12, 1.0)
        };
        let mut best = (f64::NEG_INFINITY, (0.0, true));
        // Dense in the tails, where the ratio of the chances is largest.
        let ranks = (0..400).map(|k| (1.025_f64.powi(k) as usize) - 1);
        let ranks = ranks.take_while(|r| *r < self.without.len());
        for rank in ranks.chain((1..100).map(|k| k * self.without.len() / 100)) {
            let top = self.without.len() - 1 - rank;
            for threshold in
                [self.without[rank], self.without[top], self.with[rank], self.with[top]]
            {
                for above in [true, false] {
                    let (false_alarms, hits) = self.counts(threshold, above);
                    let worth = worth(&Sighting {
                        threshold,
                        above,
                        false_alarms,
                        hits,
                        of,
                        most_false_alarms: limit(false_alarms, 1.0),
                        least_hits: limit(hits, -1.0),
                    });
                    if worth > best.0 {
                        best = (worth, (threshold, above));
                    }
                }
            }
        }
        best.1
    }

    /// A chosen test, judged by exact limits.
    fn judge(&self, (threshold, above): (f64, bool), error: f64) -> Sighting {
        let (false_alarms, hits) = self.counts(threshold, above);
        let of = self.without.len() as u64;
        let most_false_alarms = chance_above(false_alarms, of, error);
        let least_hits = chance_below(hits, of, error);
        Sighting { threshold, above, false_alarms, hits, of, most_false_alarms, least_hits }
    }
}
