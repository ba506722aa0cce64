//! `quietly audit`: what an attacker really sees, beside what was proven.
use std::{ops::ControlFlow, path::PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use quietly::{
    Budget, Key, Link, Method, Neighbours, Plan, Regression,
    audit::{self, Broken, Canary, Claim, Mechanism, Scheme, Sighting, Tracing, Verdict},
};
use serde_json::{Value, json};

use self::histogram::Picture;
use crate::{
    args::Relation,
    error::Failure,
    fit::Kind,
    format, output,
    parse::{Count, Number},
    tables::key,
    terminal::{Progress, Screen, WIDTH},
};

mod histogram;

#[derive(Subcommand, Debug)]
pub(crate) enum Audit {
    Canary(CanaryArgs),
    Tracing(TracingArgs),
}

/// What every attack is told.
#[derive(Args, Debug)]
struct Common {
    /// The claimed epsilon; inf for no claim, in fits
    #[arg(long, value_name = "E")]
    epsilon: Number,
    /// The claimed delta
    #[arg(long, value_name = "D", default_value = "1e-5")]
    delta: Number,
    /// Neighbouring relation: add-remove or replace-one
    #[arg(long, value_name = "HOW", hide_possible_values = true, value_enum)]
    neighbours: Option<Relation>,
    /// A fixed seed, to repeat an audit
    #[arg(long, value_name = "N")]
    seed: Option<Count>,
    /// Plot the scores of both groups to this SVG file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Common {
    fn budget(&self, usual: Neighbours) -> Result<Budget, Failure> {
        let neighbours = self.neighbours.map_or(usual, Neighbours::from);
        Ok(Budget::new(self.epsilon.0, self.delta.0)?.under(neighbours))
    }

    /// A picture that cannot be written is found out before the work, not after.
    fn key(&self) -> Result<Key, Failure> {
        if let Some(path) = &self.svg {
            output::probe_own(path, &[], false, output::is_svg)?;
        }
        key(self.seed)
    }

    fn draw(&self, picture: &Picture<'_>, screen: &mut Screen) -> Result<(), Failure> {
        if let Some(path) = &self.svg {
            output::write(path, histogram::draw(picture).as_bytes())?;
            if !self.json {
                screen.say(&format!("saved {}", path.display()))?;
            }
        }
        Ok(())
    }
}

/// A fit on tables that are made up.
#[derive(Args, Debug)]
struct Fits {
    /// linear or relu; by default what the method fits
    #[arg(long, value_name = "MODEL", hide_possible_values = true, value_enum)]
    model: Option<Kind>,
    /// Number of rows of each table
    #[arg(long, value_name = "N", default_value = "500")]
    rows: Count,
}

impl Fits {
    fn plan(&self, method: &str, width: u64, budget: Budget) -> Result<Plan, Failure> {
        let method = Method::named(method).ok_or_else(|| Failure::Unreadable {
            flag: "--method".into(),
            typed: method.into(),
            wanted: format!("one of {}", Method::ALL.map(Method::name).join(", ")),
        })?;
        let links = method.about().links;
        let link = match self.model {
            Some(Kind::Linear) => Link::Linear,
            Some(Kind::Relu) => Link::Relu,
            None => links[0],
        };
        if !links.contains(&link) {
            return Err(Failure::Unreadable {
                flag: "--model".into(),
                typed: link.name().into(),
                wanted: format!("{} for {}", links[0].name(), method.name()),
            });
        }
        let mut regression = Regression::new(link).method(method);
        // These two need public values.
        if method.wants_public_rows() {
            regression = regression.with_public_rows();
        }
        if method == Method::DpPgd {
            regression = regression.radius(2.0);
        }
        let rows = self.rows.at_least_one("rows")?;
        // Audits make many fits of small tables; a large one would be a mistake.
        let small = |name, want, got: u64, good| {
            let refusal = quietly_accounting::Error::Parameter { name, want, got: got as f64 };
            if good { Ok(()) } else { Err(refusal) }
        };
        small("rows", "from 2 to a million", rows, (2..=1_000_000).contains(&rows))?;
        small("features", "from 1 to 1000", width, (1..=1000).contains(&width))?;
        Ok(regression.plan(rows, width as usize, budget)?)
    }
}

#[derive(Args, Debug)]
pub(crate) struct TracingArgs {
    #[command(flatten)]
    common: Common,
    /// Method of the fits: a name that `fit --method` takes
    #[arg(long, value_name = "NAME", default_value = "auto")]
    method: String,
    #[command(flatten)]
    fits: Fits,
    /// Number of features of each table
    #[arg(long, value_name = "D", default_value = "50")]
    features: Count,
    /// Number of models: at least 20
    #[arg(long, value_name = "R", default_value = "40")]
    runs: Count,
}

#[derive(Args, Debug)]
pub(crate) struct CanaryArgs {
    #[command(flatten)]
    common: Common,
    /// The mechanism to audit: gaussian, random-allocation or poisson
    #[arg(long, value_name = "NAME", hide_possible_values = true, value_enum, default_value_t = Inside::Gaussian)]
    mechanism: Inside,
    /// Number of noisy sums that the mechanism releases; 1, or 20 if rows are sampled
    #[arg(long, value_name = "T")]
    steps: Option<Count>,
    /// Add a known bug: half-noise, shuffled-as-poisson or shuffled-as-allocation
    #[arg(long, value_name = "HOW", hide_possible_values = true, value_enum)]
    broken: Option<Mistake>,
    /// Audit whole fits instead: a name that `fit --method` takes
    #[arg(long, value_name = "NAME", conflicts_with_all = ["mechanism", "steps", "broken"])]
    method: Option<String>,
    #[command(flatten)]
    fits: Fits,
    /// Number of features of each table
    #[arg(long, value_name = "D", default_value = "5")]
    features: Count,
    /// Number of runs with the canary, and of runs without; 200000, or 2000 fits
    #[arg(long, value_name = "R")]
    runs: Option<Count>,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Inside {
    Gaussian,
    #[value(name = "random-allocation", alias = "allocation")]
    Allocation,
    Poisson,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Mistake {
    HalfNoise,
    ShuffledAsPoisson,
    ShuffledAsAllocation,
}

/// Attacks, and says whether more was seen than promised.
pub(crate) fn run(audit: &Audit, screen: &mut Screen) -> Result<(), Failure> {
    match audit {
        Audit::Tracing(args) => tracing(args, screen),
        Audit::Canary(args) => canary(args, screen),
    }
}

fn tracing(args: &TracingArgs, screen: &mut Screen) -> Result<(), Failure> {
    let common = &args.common;
    let budget = common.budget(Neighbours::AddRemove)?;
    let (models, width) = (args.runs.get("runs")?, args.features.get("features")?);
    let plan = args.fits.plan(&args.method, width, budget)?;
    let key = common.key()?;
    let progress = Progress::new("models");
    let found = audit::tracing(&plan, models, &key, &mut |at| {
        progress.say(&at.to_string());
        ControlFlow::Continue(())
    });
    drop(progress);
    let (found, what) = (found?, describe(&plan));
    if common.json {
        screen.say_json(&tracing_json(&found, &plan, &key))?;
    } else {
        screen.say(&screen.bold(&format!("tracing {models} models of {what}")))?;
        warn(&plan.warnings, screen)?;
        let proven = [("proven", budget.neighbours(), plan.epsilon())];
        let other = [("", Neighbours::ReplaceOne, found.claim.epsilon)];
        let both = budget.neighbours() == Neighbours::AddRemove;
        for (name, neighbours, epsilon) in
            proven.into_iter().chain(other.into_iter().filter(|_| both))
        {
            say_proven(name, epsilon, common.delta.0, neighbours, screen)?;
        }
        say_seen(found.epsilon, found.confidence, ", for a replaced row", screen)?;
        screen.say("\n                                 found   at least  allowed")?;
        let mut line = |name: &str, m: &audit::Mean| {
            let allowed = (m.most * 1e4).ceil() / 1e4;
            screen.say(&format!("  {name:<29}  {:.4}  {:.4}    {allowed:.4}", m.found, m.least))
        };
        line("member above non-member (AUC)", &found.pairs)?;
        let (rate, hits) = &found.hits[0];
        line(&format!("hits at {:.2} % false alarms", 100.0 * rate), hits)?;
        let theory = match plan.link() {
            Link::Linear => format!("; least squares: {:.2}", (0.5 * plan.width() as f64).sqrt()),
            _ => String::new(),
        };
        screen.say(&format!(
            "  members are {:.2} standard errors above non-members{theory}",
            found.z
        ))?;
    }
    common.draw(
        &Picture {
            title: &format!("Scores of {what}"),
            axis: "score, in standard deviations of non-members",
            series: [("non-members", &found.strangers), ("members", &found.members)],
            threshold: None,
        },
        screen,
    )?;
    conclude(common, found.verdict(), found.epsilon, &found.claim, screen)
}

fn canary(args: &CanaryArgs, screen: &mut Screen) -> Result<(), Failure> {
    let common = &args.common;
    let progress = Progress::new("canary");
    let mut watch = |at: quietly::Progress| {
        progress.say(&at.to_string());
        ControlFlow::Continue(())
    };
    let usual = |count: u64| args.runs.map_or(Ok(count), |runs| runs.get("runs"));
    let (found, what, warnings, key) = if let Some(method) = &args.method {
        let budget = common.budget(Neighbours::AddRemove)?;
        let plan = args.fits.plan(method, args.features.get("features")?, budget)?;
        let (runs, key) = (usual(2000)?, common.key()?);
        let found = audit::canary_in_fits(&plan, runs, &key, &mut watch);
        (found, describe(&plan), plan.warnings, key)
    } else {
        let (mechanism, name, key) = args.mechanism()?;
        let runs = usual(200_000)?;
        let release = |with, run| mechanism.release(with, run);
        let found = audit::canary(mechanism.claim(), runs, release, &mut watch);
        (found, format!("{name} (noise multiplier {:.3})", mechanism.noise()), vec![], key)
    };
    drop(progress);
    let found = found?;
    let claim = &found.claim;
    if common.json {
        screen.say_json(&canary_json(&found, &what, &warnings, &key))?;
    } else {
        screen.say(&screen.bold(&format!("a canary in {what}")))?;
        warn(&warnings, screen)?;
        say_proven("proven", claim.epsilon, claim.delta, claim.neighbours, screen)?;
        say_seen(found.epsilon, found.confidence, "", screen)?;
        screen
            .say(&format!("  as mu    at least {:<9} if it is Gaussian", format::low(found.mu)))?;
        let (sighting, ceiling) = &found.curve;
        screen.say(&format!(
            "  curve    at {:.4} false alarms at least {:.4} hits, of {:.4} allowed",
            sighting.most_false_alarms, sighting.least_hits, ceiling
        ))?;
        screen.say(&format!(
            "  runs     {} with the canary, {} without; half of them to choose a test",
            found.runs, found.runs
        ))?;
    }
    common.draw(
        &Picture {
            title: &format!("A canary in {what}"),
            axis: if args.method.is_some() {
                "prediction for the canary"
            } else {
                "log likelihood ratio"
            },
            series: [("without the canary", &found.without), ("with it", &found.with)],
            threshold: Some(found.sighting.threshold),
        },
        screen,
    )?;
    conclude(common, found.verdict(), found.epsilon, claim, screen)
}

impl CanaryArgs {
    fn mechanism(&self) -> Result<(Mechanism, String, Key), Failure> {
        let (scheme, broken) = match (self.broken, self.mechanism) {
            (Some(Mistake::ShuffledAsPoisson), _) => (Scheme::Poisson, Some(Broken::Shuffled)),
            (Some(Mistake::ShuffledAsAllocation), _) => {
                (Scheme::Allocation, Some(Broken::Shuffled))
            }
            (broken, Inside::Gaussian) => (Scheme::Full, broken.map(|_| Broken::HalfNoise)),
            (broken, Inside::Allocation) => (Scheme::Allocation, broken.map(|_| Broken::HalfNoise)),
            (broken, Inside::Poisson) => (Scheme::Poisson, broken.map(|_| Broken::HalfNoise)),
        };
        let usual = if scheme == Scheme::Full { 1 } else { 20 };
        let steps = self.steps.map_or(Ok(usual), |steps| steps.at_least_one("steps"))?;
        let usual = match broken {
            Some(Broken::Shuffled) => Neighbours::ReplaceOne,
            _ => Neighbours::AddRemove,
        };
        let budget = self.common.budget(usual)?;
        if !budget.is_private() {
            // A mechanism without noise is no mechanism.
            let want = "from 0.001 to 1000";
            let got = self.common.epsilon.0;
            return Err(quietly_accounting::Error::Parameter { name: "epsilon", want, got }.into());
        }
        let key = self.common.key()?;
        let made = Mechanism::new(scheme, steps, budget, broken, &key)?;
        let sums = match scheme {
            Scheme::Full => format!("{steps} Gaussian sum{}", if steps == 1 { "" } else { "s" }),
            Scheme::Allocation => format!("one of {steps} sums, drawn at random"),
            _ => format!("{steps} sums, each with probability 1/{steps}"),
        };
        let name = match (broken, scheme) {
            (Some(Broken::HalfNoise), _) => format!("{sums}, BROKEN: half the noise"),
            (Some(_), Scheme::Poisson) => {
                format!("{steps} shuffled blocks, BROKEN: charged as Poisson samples")
            }
            (Some(_), _) => {
                format!("{steps} shuffled blocks, BROKEN: charged as an allocation")
            }
            (None, _) => sums,
        };
        Ok((made, name, key))
    }
}

/// Where a plan learns little, there is little to see, and a pass says little.
fn warn(warnings: &[String], screen: &mut Screen) -> Result<(), Failure> {
    for warning in warnings {
        screen.say(&format::wrap(&format!("warning: {warning}"), "", WIDTH))?;
    }
    Ok(())
}

fn describe(plan: &Plan) -> String {
    format!(
        "{} {} regression, {} rows of {} features",
        plan.method().name(),
        plan.link().name(),
        plan.rows(),
        plan.width()
    )
}

fn say_proven(
    name: &str,
    epsilon: f64,
    delta: f64,
    neighbours: Neighbours,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let bound = if epsilon.is_finite() {
        format!("epsilon at most  {:<9}", format::high(epsilon))
    } else {
        "nothing: no noise         ".into()
    };
    Ok(screen.say(&format!("  {name:<8} {bound} at delta {delta:e}, {}", neighbours.name()))?)
}

fn say_seen(
    epsilon: f64,
    confidence: f64,
    relation: &str,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let sure = 100.0 * confidence;
    Ok(screen.say(&format!(
        "  seen     epsilon at least {:<9} with confidence {sure:.1} %{relation}",
        format::low(epsilon)
    ))?)
}

fn conclude(
    common: &Common,
    verdict: Verdict,
    epsilon: f64,
    claim: &Claim,
    screen: &mut Screen,
) -> Result<(), Failure> {
    if verdict == Verdict::Caught {
        if !common.json {
            screen.say("\nverdict: CAUGHT")?;
        }
        return Err(Failure::Caught { seen: epsilon, claimed: claim.epsilon });
    }
    if common.json {
        return Ok(());
    }
    let said = if claim.epsilon.is_finite() {
        "verdict: within the claim. That is no proof: a stronger attack may detect more."
    } else {
        "verdict: no bound was claimed, so none can be violated."
    };
    Ok(screen.say(&format!("\n{}", format::wrap(said, "", WIDTH)))?)
}

fn claim_json(claim: &Claim) -> Value {
    json!({
        "epsilon": format::json(claim.epsilon), "delta": claim.delta, "neighbours": claim.neighbours.name(),
    })
}

fn histogram_json(names: [&str; 2], series: [&[f64]; 2]) -> Value {
    let found = histogram::histogram(series);
    let [first, second] = found.shares;
    json!({ "from": found.from, "step": found.step, (names[0]): first, (names[1]): second })
}

fn sighting_json(s: &Sighting) -> Value {
    json!({
        "threshold": s.threshold, "alarm": if s.above { "above" } else { "below" },
        "hits": s.hits, "false_alarms": s.false_alarms, "of": s.of,
        "hits_at_least": s.least_hits, "false_alarms_at_most": s.most_false_alarms,
    })
}

fn canary_json(found: &Canary, what: &str, warnings: &[String], key: &Key) -> Value {
    let (curve, ceiling) = &found.curve;
    let mut curve = sighting_json(curve);
    curve.as_object_mut().expect("made as one").insert("hits_allowed".into(), json!(ceiling));
    json!({
        "attack": "canary", "of": what, "proven": claim_json(&found.claim),
        "seen": { "epsilon": found.epsilon, "mu": found.mu, "confidence": found.confidence },
        "verdict": found.verdict().name(), "runs": found.runs,
        "test": sighting_json(&found.sighting), "curve": curve, "warnings": warnings,
        "randomness": key.source().to_string(),
        "scores": histogram_json(["without", "with"], [&found.without, &found.with]),
    })
}

fn tracing_json(found: &Tracing, plan: &Plan, key: &Key) -> Value {
    let mean =
        |m: &audit::Mean| json!({ "found": m.found, "at_least": m.least, "allowed": m.most });
    let hits = found.hits.iter().map(|(rate, m)| {
        let mut object = mean(m);
        object.as_object_mut().expect("made as one").insert("false_alarms".into(), json!(rate));
        object
    });
    json!({
        "attack": "tracing", "method": plan.method().name(), "model": plan.link().name(),
        "rows": plan.rows(), "features": plan.width(), "runs": found.models, "warnings": plan.warnings,
        "proven": {
            "epsilon": format::json(plan.epsilon()), "delta": plan.budget().delta(),
            "neighbours": plan.budget().neighbours().name(),
        },
        "proven_for_a_replaced_row": claim_json(&found.claim),
        "seen": { "epsilon": found.epsilon, "confidence": found.confidence },
        "verdict": found.verdict().name(), "z": found.z, "sum_of_members": found.sum,
        "auc": mean(&found.pairs), "pooled_auc_allowed": found.area, "hits": hits.collect::<Vec<_>>(),
        "randomness": key.source().to_string(),
        "scores": histogram_json(["strangers", "members"], [&found.strangers, &found.members]),
    })
}
