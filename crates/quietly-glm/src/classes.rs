//! Classes: the default of logistic regression, for two or more of them.
//!
//! Class counts are released first. Then comes the linear arm: the minimiser of a perturbed objective on rows that are privately centred,
//! scaled and bounded ([`arm`]), or a descent along noisy gradients where the table is small and no class is large. docs/spec/default.md#9
//! has the rules; [`Classes`] holds what public numbers decide of them.
//!
//! # Proof: what a run for classes costs
//!
//! Every release is one of these, given those before it.
//!
//! 1. *Class counts*: one row adds 1 to one count; a replaced one moves two counts by one each, √2 in length.
//! 2. *An arm*, by the proofs of `standardise.rs`, `objective_perturbation.rs` and `query.rs`. Its map, its radius, the centre of its ridge
//!    and Λ are functions of released numbers. Whatever they are, rows are clipped to the radius R that was taken, b has the planned
//!    multiple of R as its standard deviation, and Λ is at least the planned multiple of R²: noise over the longest gradient and curvature
//!    over Λ, which are all that the theorem knows, are the planned ones. So the charge holds for every radius.
//! 3. *The solver*: which of the two runs is a function of the released counts, and the charge of the minimiser covers both
//!    (`mechanism/branches.rs` of quietly-core).
//!
//! 4. *Splines*, another arm of 2, of rows that a public map expands.
//! 5. *The gate*: see there.
//!
//! Shrinkage, bounds on probabilities and the choice of the solver are post-processing.
use quietly_core::{
    budget::Budget,
    mechanism::{PlannedRelease, Sampler, Stage},
    privacy_plan::PrivacyPlan,
    release::Histogram,
};
use quietly_data::Private;
use quietly_engine::{
    algorithm::{Access, Algorithm, Run, Shape},
    error::Error,
    expansion::{Expander, Expansion},
};
use serde::{Deserialize, Serialize};

use super::{
    design_matrix::{Features, in_parts},
    fit::{ConvexFit, ConvexMethod, for_one, mu},
    loss::Loss,
    objective_perturbation::ObjectivePerturbation,
    problem::Problem,
    query,
    run::{Fitting, Weights, target},
};

use self::arm::Arm;

mod arm;
mod descent;
pub mod gate;

/// The release of the class counts.
pub const COUNTS: &str = "class counts";
/// The least and the largest share of μ² that it takes.
const COUNTS_SHARE: (f64, f64) = (0.03, 0.25);
/// Shares are to be known to one over this, where the largest share of μ² allows it.
const KNOWN_TO: f64 = 30.0;
/// The share of μ² that the linear arm takes of what both arms have: 0.40 beside 0.50.
const LINEAR: f64 = 4.0 / 9.0;
/// Sums have this much noise at least: about the least that is accounted for.
pub(crate) const LEAST_NOISE: f64 = 0.11;
/// What the names of the releases of splines begin with.
const SPLINES: &str = "splines: ";
/// nμ from which on a gate knows more than it costs, and the same for splines; of these also for every numeric feature.
const GATE_FROM: f64 = 350.0;
const SPLINES_FROM: f64 = 800.0;
const SPLINES_PER_NUMBER: f64 = 32.0;
/// nμ per feature from which on the linear arm needs no gate, and splines have one.
const MANY: f64 = 20.0;
/// No more expanded features, and no more rows times their square: about ten seconds on one core (docs/spec/default.md#11).
const MOST_EXPANDED: usize = 2000;
const MOST_WORK: f64 = 1e10;
/// A private share is shrunk towards that of equal classes as if true ones had this variance around it.
const PRIOR: f64 = 0.09;

/// A classifier by the default rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Classes {
    /// What the linear arm solves: a logistic loss of two or more classes, on scaled rows.
    pub problem: Problem,
    /// The steps of the descent that runs instead where no class is large, if the table is small enough for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descent: Option<u64>,
    /// Whether the linear arm must be better than the classes' shares.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gated: bool,
    /// The arm of splines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub splines: Option<Splines>,
}

/// A second arm, of rows that are expanded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Splines {
    /// What it solves, on scaled rows.
    pub problem: Problem,
    /// What is made of the features of a row.
    pub expansion: Expansion,
}

/// What is released of the classes, and the rows that arms are fitted to.
struct Rows<'a> {
    features: Private<Features<'a>>,
    target: Private<Vec<f64>>,
    shares: Vec<f64>,
    /// The standard deviation of their noise.
    doubt: f64,
}

impl Classes {
    /// The same with a descent where the table is small enough for one, for a budget that is worth `mu` for a row that is there or not.
    #[must_use]
    pub fn with_descent(self, shape: Shape, mu: f64) -> Self {
        let descent = descent::steps(shape.rows, shape.width, self.count(), mu);
        Classes { descent, ..self }
    }

    /// The same with a gate where there are enough rows for one and few for every feature (docs/spec/default.md#9.4).
    #[must_use]
    pub fn with_gate(self, shape: Shape, mu: f64) -> Self {
        let signal = shape.rows as f64 * mu;
        let gated = signal >= GATE_FROM && signal < MANY * shape.width as f64;
        Classes { gated, ..self }
    }

    /// The same with an arm of splines, if there are enough rows for it (docs/spec/default.md#9.3), where a row has `numbers` numeric
    /// features. `problem` is that of the expanded rows.
    #[must_use]
    pub fn with_splines(self, shape: Shape, mu: f64, numbers: usize, splines: Splines) -> Self {
        let signal = shape.rows as f64 * mu;
        let (width, expanded) = (shape.width as f64, splines.expansion.width());
        let many = signal >= SPLINES_FROM
            && signal >= MANY * width
            && signal >= SPLINES_PER_NUMBER * numbers as f64;
        // Passes of a minimiser over the expanded rows.
        let work = shape.rows as f64 * (expanded * expanded) as f64;
        match many && numbers > 0 && expanded <= MOST_EXPANDED && work <= MOST_WORK {
            true => Classes { splines: Some(splines), gated: true, descent: None, ..self },
            false => self,
        }
    }

    /// How many classes there are.
    fn count(&self) -> usize {
        match self.problem.loss {
            Loss::Softmax { classes } => classes,
            _ => 2,
        }
    }

    /// The share of the linear arm in what the arms have.
    fn linear_share(&self) -> f64 {
        if self.splines.is_some() { LINEAR } else { 1.0 }
    }

    /// The share of μ² that the class counts take, where the budget is worth `mu`.
    fn counts_share(&self, shape: Shape, mu: f64) -> f64 {
        // A descent of several classes takes no more of it than its start.
        if self.descent.is_some() && self.count() > 2 {
            return COUNTS_SHARE.0;
        }
        let wanted = KNOWN_TO / (shape.rows as f64 * mu);
        (wanted * wanted).clamp(COUNTS_SHARE.0, COUNTS_SHARE.1)
    }

    /// Releases the class counts, and makes shares of them: those of the sampled classes in the order of the schema.
    fn shares(
        &self,
        run: &mut Fitting<'_, '_>,
        target: &Private<Vec<f64>>,
    ) -> Result<(Vec<f64>, f64), Error> {
        let (classes, two) = (self.count(), self.problem.loss == Loss::Logistic);
        let counts = target.as_ref().map(|target| {
            let mut counts = vec![0_u64; classes];
            for y in target.iter().filter(|y| !y.is_nan()) {
                counts[if two { usize::from(*y > 0.0) } else { *y as usize }] += 1;
            }
            counts
        });
        let counts = Histogram::new(counts).into_sum(run.plan.budget.neighbours());
        let (counts, noise) = run.releaser.sum(COUNTS, counts)?;
        Ok((shares(&counts, noise, run.rows), noise / run.rows))
    }
}

/// Shares of classes from noisy counts of about so many rows.
fn shares(counts: &[f64], noise: f64, rows: f64) -> Vec<f64> {
    let (even, doubt) = (1.0 / counts.len() as f64, noise / rows);
    let total = counts.iter().map(|c| c.max(0.0)).sum::<f64>().clamp(0.25 * rows, 4.0 * rows);
    let trust = PRIOR / (PRIOR + doubt * doubt);
    // No share is smaller than what noise would hide.
    let least = doubt.max(0.5 / rows).min(even);
    let near = |count: &f64| (even + trust * (count.max(0.0) / total - even)).max(least);
    let shares: Vec<f64> = counts.iter().map(near).collect();
    let total: f64 = shares.iter().sum();
    shares.into_iter().map(|share| share / total).collect()
}

/// The scores that say these shares: of the last of two classes, or of each.
fn offsets(loss: Loss, shares: &[f64]) -> Vec<f64> {
    if loss == Loss::Logistic {
        return vec![(shares[1] / shares[0]).ln()];
    }
    let mean = shares.iter().map(|p| p.ln()).sum::<f64>() / shares.len() as f64;
    shares.iter().map(|p| p.ln() - mean).collect()
}

impl Algorithm for Classes {
    type Fitted = Weights;

    fn sampler(&self, _: Shape) -> Sampler {
        Sampler::FullBatch
    }

    fn stages(&self, shape: Shape, budget: Budget, noise: f64) -> Vec<Stage> {
        if !budget.is_private() {
            return Vec::new();
        }
        let mu = for_one(mu(&self.problem, shape, budget), budget);
        let counts = self.counts_share(shape, mu);
        let question = PlannedRelease::sum(COUNTS, (1.0 / (counts.sqrt() * mu)).max(LEAST_NOISE));
        let mut stages = vec![Stage::new("classes", 1, vec![question])];
        let gate = if self.gated { gate::SHARE } else { 0.0 };
        let left = 1.0 - counts - gate;
        let (share, problem) = (left * self.linear_share(), &self.problem);
        let arm = Arm { name: "", problem, shape, share };
        stages.extend(arm.stages(budget, mu, noise, self.descent));
        if let Some(Splines { problem, expansion }) = &self.splines {
            let shape = Shape { width: expansion.width(), ..shape };
            let arm = Arm { name: SPLINES, problem, shape, share: left - share };
            stages.extend(arm.stages(budget, mu, noise, None));
        }
        stages.extend(self.gated.then(|| gate::stage(mu)));
        stages
    }

    fn check(&self, shape: Shape, budget: Budget) -> Result<(), Error> {
        let got = "one without private classes on scaled rows";
        let classes = matches!(self.problem.loss, Loss::Logistic | Loss::Softmax { .. });
        let sound = classes && self.problem.scales && budget.is_private() && !budget.is_pure();
        Error::ensure(sound, "plan", "as it was planned", got)?;
        let steps = self.descent.unwrap_or(1);
        Error::ensure((1..=100_000).contains(&steps), "steps", "from 1 to 100000", steps)?;
        if let Some(Splines { problem, expansion }) = &self.splines {
            expansion.check()?;
            let inputs = expansion.inputs() == shape.width && self.gated && self.descent.is_none();
            let alike = problem.loss == self.problem.loss && problem.scales;
            Error::ensure(inputs && alike, "plan", "as it was planned", "one of other splines")?;
            problem.check(expansion.width())?;
            let shape = Shape { width: expansion.width(), ..shape };
            ObjectivePerturbation {}.check(problem, shape, budget)?;
        }
        let fit = ConvexFit { method: ObjectivePerturbation {}, problem: self.problem.clone() };
        fit.problem.check(shape.width)?;
        fit.method.check(&fit.problem, shape, budget)
    }

    fn access(&self) -> Access {
        Access::Rows
    }

    fn keeps_places(&self, plan: &PrivacyPlan) -> bool {
        plan.budget.neighbours() == quietly_accounting::Neighbours::ReplaceOne
    }

    fn fit(&self, run: Run<'_, '_>) -> Result<Weights, Error> {
        let Run { plan, shape, range, backend, releaser, watch, .. } = run;
        let neighbours = plan.budget.neighbours();
        let count = backend.count()?.map(|count| count as usize);
        let rows = releaser.public_rows(neighbours, count).map_or(shape.rows, |n| n.max(1) as u64);
        let problem = &self.problem;
        let (features, raw) = backend
            .rows()?
            .map(|data| {
                let (features, raw, _) = query::parts(data);
                (features, raw)
            })
            .split();
        let target: Private<Vec<f64>> =
            raw.map(|raw| raw.iter().map(|&y| target(problem.loss, y, range)).collect());
        let used = |target: &Vec<f64>| target.iter().filter(|y| !y.is_nan()).count() as u64;
        releaser.count_rows(plan, shape.rows, target.as_ref().map(used))?;
        let mut fitting = Fitting {
            plan,
            shape,
            problem,
            releaser,
            watch,
            range,
            rows: rows as f64,
            radius: problem.longest,
            variance: 0.25,
            offsets: Vec::new(),
            arm: "",
            constant: problem.constant,
        };
        let (shares, doubt) = self.shares(&mut fitting, &target)?;
        let rows = Rows { features, target, shares, doubt };
        let linear = arm::fit(&mut fitting, &rows, self.descent)?;
        let splines = match &self.splines {
            Some(splines) => Some(splines.fit(&mut fitting, &rows)?),
            None => None,
        };
        let weights = match self.gated {
            true => gate::choose(&mut fitting, &rows, linear, splines)?,
            false => linear,
        };
        Ok(Weights { least: Some(0.25 / fitting.rows), ..weights })
    }
}

impl Splines {
    /// Fits this arm to rows that are expanded first.
    fn fit(&self, run: &mut Fitting<'_, '_>, rows: &Rows<'_>) -> Result<Weights, Error> {
        let (expander, width) = (Expander::new(&self.expansion)?, run.shape.width);
        let (threads, expanded) = (run.releaser.threads(), self.expansion.width());
        let features =
            rows.features.as_ref().zip(rows.target.as_ref()).map(|(features, target)| {
                let parts = in_parts(threads, 0..target.len(), |range| {
                    let (mut row, mut all) = (vec![0.0; width], vec![0.0; range.len() * expanded]);
                    for (i, into) in range.zip(all.chunks_exact_mut(expanded)) {
                        features.row(i, width).fill(&mut row);
                        expander.fill(&row, into);
                    }
                    all
                });
                parts.concat()
            });
        let target = rows.target.as_ref().map(Vec::clone);
        let (shares, doubt) = (rows.shares.clone(), rows.doubt);
        let features = features.as_ref().map(|all| Features::Dense(all));
        let rows = Rows { features, target, shares, doubt };
        let mut arm = Fitting {
            shape: Shape { width: expanded, ..run.shape },
            problem: &self.problem,
            releaser: &mut *run.releaser,
            watch: &mut *run.watch,
            radius: self.problem.longest,
            constant: self.problem.constant,
            arm: SPLINES,
            offsets: Vec::new(),
            ..*run
        };
        let weights = arm::fit(&mut arm, &rows, None)?;
        Ok(Weights { expander: Some(expander), ..weights })
    }
}
