//! The tracing attack: whether a model distinguishes its training rows from others.
//!
//! Ding, Lei, Wang, Zheng, Wang and Xu, *Nearly Optimal Differentially Private ReLU Regression*, with the factor x that their (5)
//! lacks, and the direction put right: members score high. Every number is a mean over models, as the scores of one
//! model depend on each other.
//!
//! # Proof: ceilings of the tracing attack
//!
//! Why the ceilings hold. Take a member, and strangers drawn afresh. Replace the member by a stranger: the model's law moves by no
//! more than is claimed for a replaced row, and the member is now one stranger among n + 1, so that it scores above the
//! k-th of the others with chance k/(n + 1) at most. With the member in place the chance is at most hits(k/(n + 1)).
use quietly_accounting::Neighbours;
use quietly_core::{
    charge::Charge,
    progress::{ProgressCallback, report},
};
use quietly_data::Private;
use quietly_engine::error::Error;
use quietly_noise::Key;

use super::{
    Claim, FALSE_ACCUSATION, Verdict,
    confidence::{mean_below, moments},
    synthetic::{Group, World},
};
use crate::plan::{FitInput, FitOptions, Plan};

/// What tracing found.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Tracing {
    /// What is claimed for a replaced row.
    pub claim: Claim,
    /// How many models were made.
    pub models: u64,
    /// How far the members' mean score is above the strangers', in standard errors of one model's; √(d/2) for least squares.
    pub z: f64,
    /// The members' scores, added up, in units of the noise in the target: d for unbiased fits.
    pub sum: f64,
    /// How often a member scores above a stranger.
    pub pairs: Mean,
    /// How often a member scores above all but so many strangers.
    pub hits: Vec<(f64, Mean)>,
    /// The area under the curve that the claim allows for scores pooled over models: above the ceiling of `pairs`.
    pub area: f64,
    /// ε at the claim's δ is above this for a replaced row.
    pub epsilon: f64,
    /// How sure all of this is, together.
    pub confidence: f64,
    /// The scores of strangers, in units of each model's deviation, in order.
    pub strangers: Vec<f64>,
    /// The scores of members.
    pub members: Vec<f64>,
}

/// A mean over models.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Mean {
    /// What was found.
    pub found: f64,
    /// What it is above, with confidence.
    pub least: f64,
    /// What the claim allows.
    pub most: f64,
}

/// Rates of false alarms at which hits are counted.
const RATES: [f64; 5] = [0.01, 0.05, 0.1, 0.25, 0.5];

impl Tracing {
    /// Whether what was seen is within the claim.
    pub fn verdict(&self) -> Verdict {
        let mut all = self.hits.iter().map(|(_, hits)| hits).chain([&self.pairs]);
        if all.any(|mean| mean.least > mean.most) { Verdict::Caught } else { Verdict::Within }
    }
}

/// Makes `models` models of a plan, each on a table of its own, and looks for the tables in them.
///
/// The tables are made up: normal features, and a target with normal noise around the truth, which the attacker knows.
///
/// # Errors
///
/// [`Error::Parameter`] unless there are from 20 to a million models and at least 2 rows; [`Error::Accounting`] where nothing is
/// proven for a replaced row; as [`Plan::fit`].
pub fn tracing(
    plan: &Plan,
    models: u64,
    key: &Key,
    watch: &mut ProgressCallback<'_>,
) -> Result<Tracing, Error> {
    Error::ensure((20..=1_000_000).contains(&models), "runs", "from 20 to a million", models)?;
    Error::ensure(plan.rows() > 1, "rows", "at least 2", plan.rows())?;
    let claim = Claim::of_plan(plan, Neighbours::ReplaceOne)?;
    let n = plan.rows() as usize;
    // The k-th highest of n strangers; a further one is above it with chance k/(n + 1).
    let places = RATES.map(|rate| ((rate * (n + 1) as f64) as usize).clamp(1, n));
    let (mut z, mut sums, mut pairs) = (vec![], vec![], vec![]);
    let mut hits = RATES.map(|_| vec![]);
    let (mut all_members, mut all_strangers) = (vec![], vec![]);
    let seeds = key.stream("seeds of models");
    let world = World::new(plan, key)?;
    let public = world.draw(Group::Public, 0, plan.rows())?.into_table();
    for model in 0..models {
        report(watch, "models", model, models)?;
        let members = world.draw(Group::Members, model, plan.rows())?;
        let strangers = world.draw(Group::Strangers, model, plan.rows())?;
        let table = Private::new(members.clone().into_table());
        let key = Key::from_seed(seeds.bits(model)?.word()?);
        let options = FitOptions::new(Charge::without_ledger(key)).threads(1).public(&public);
        let fit = plan.fit(FitInput::table(&table, world.range()), options)?;
        let (intercept, weights) = fit.coefficients()?;
        let members = world.scores(&members, intercept, &weights);
        let mut strangers = world.scores(&strangers, intercept, &weights);
        let ((inside, spread), (outside, deviation)) = (moments(&members), moments(&strangers));
        let error = ((spread * spread + deviation * deviation) / n as f64).sqrt();
        z.push((inside - outside) / error.max(f64::MIN_POSITIVE));
        sums.push(members.iter().sum());
        strangers.sort_by(f64::total_cmp);
        pairs.push(above(&members, &strangers));
        for (place, hits) in places.iter().zip(&mut hits) {
            let threshold = strangers[n - place];
            let beyond = members.iter().filter(|s| **s > threshold).count();
            hits.push(beyond as f64 / n as f64);
        }
        let scale = deviation.max(f64::MIN_POSITIVE);
        all_members.extend(members.iter().map(|s| s / scale));
        all_strangers.extend(strangers.iter().map(|s| s / scale));
    }
    let error = FALSE_ACCUSATION / (RATES.len() + 1) as f64;
    let mean = |values: &[f64], most: f64| {
        let found = moments(values).0;
        // A law on [0, 1] has no mean outside.
        Mean { found, least: mean_below(values, error).clamp(0.0, 1.0), most }
    };
    let pairs = mean(&pairs, claim.pairs());
    let rates = places.map(|place| place as f64 / (n + 1) as f64);
    let hits: Vec<(f64, Mean)> =
        rates.iter().zip(&hits).map(|(&rate, h)| (rate, mean(h, claim.hits(rate)))).collect();
    let tests =
        hits.iter().map(|(rate, h)| (*rate, h.least)).chain([(1.0 - pairs.least, pairs.least)]);
    let epsilon =
        tests.map(|(rate, hits)| least_epsilon(rate, hits, claim.delta)).fold(0.0, f64::max);
    all_members.sort_by(f64::total_cmp);
    all_strangers.sort_by(f64::total_cmp);
    Ok(Tracing {
        area: claim.area(),
        claim,
        models,
        z: moments(&z).0,
        sum: moments(&sums).0,
        pairs,
        hits,
        epsilon,
        confidence: 1.0 - FALSE_ACCUSATION,
        strangers: all_strangers,
        members: all_members,
    })
}

/// The least ε for which (ε, δ) allows so many hits with so many false alarms.
fn least_epsilon(false_alarms: f64, hits: f64, delta: f64) -> f64 {
    let growing = (hits - delta) / false_alarms;
    let falling = (1.0 - delta - false_alarms) / (1.0 - hits);
    growing.max(falling).max(1.0).ln()
}

/// How often one of `these` is above one of `those`, which are in order; ties count half.
fn above(these: &[f64], those: &[f64]) -> f64 {
    let beaten = |score: &f64| {
        let below = those.partition_point(|s| s < score);
        let not_above = those.partition_point(|s| s <= score);
        0.5 * (below + not_above) as f64
    };
    these.iter().map(beaten).sum::<f64>() / (these.len() * those.len()) as f64
}
