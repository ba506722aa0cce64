//! Running a convex plan: from rows to weights.
use quietly_accounting::Neighbours;
use quietly_core::{
    budget::Budget,
    mechanism::{Mechanism, PlannedRelease, Stage},
    privacy_plan::PrivacyPlan,
    progress::ProgressCallback,
    release::{BoundedSum, Histogram, Releaser, Sensitivity},
    rows_used::ROWS_USED,
};
use quietly_data::Private;
use quietly_engine::{
    algorithm::{Access, Run, Shape},
    backend::{Backend, Batch, run_query},
    error::Error,
    expansion::Expander,
    histogram::{geometric_bins, tally},
    kernels::Bins,
    linalg::dot,
    link::Link,
    query::QuerySum,
    target_scaling::TargetScaling,
};

use super::{
    design_matrix::{Examples, Features, Shape as RowShape},
    fit::{ConvexFit, ConvexMethod, mu},
    glm::Glm,
    loss::Loss,
    problem::Problem,
    query::{self, ConvexQuery, Statistic},
    set::Set,
    standardise::{self, Found, RowMap},
};

/// The question for a bound on rows.
pub const RADIUS: &str = "row norm quantile";
/// Shares of rows that are cut, about: where there is little noise, and where there is much.
const CUT_ROWS: (f64, f64) = (0.1, 0.5);
/// The share that is cut, over √size/(rows·μ): how long the noise of one release of a mean is, for rows of norm 1.
const CUT_BY_NOISE: f64 = 60.0;
/// Bounds are looked for from the longest row down, in quarters of an octave.
const RADII: i32 = 24;

/// A run of a convex plan.
pub struct Fitting<'a, 'w> {
    pub plan: &'a PrivacyPlan,
    pub shape: Shape,
    pub problem: &'a Problem,
    pub releaser: &'a mut Releaser,
    pub watch: &'a mut ProgressCallback<'w>,
    /// The public range of the target.
    pub range: (f64, f64),
    /// The number of rows where that is public, and otherwise about that.
    pub rows: f64,
    /// What no row exceeds: released, or known.
    pub radius: f64,
    /// The constant feature.
    pub constant: f64,
    /// p(1 - p) of the class, and the scores that say what the shares of the classes are, one for each output; released, or one quarter
    /// and none.
    pub variance: f64,
    pub offsets: Vec<f64>,
    /// What the names of releases begin with.
    pub arm: &'static str,
}

/// The share of rows that are not cut, about. All noise grows with the longest row, and cutting rows is wrong by what it takes
/// from them: the more noise, the more rows. Of public numbers alone; any share is as private.
fn most_rows(problem: &Problem, shape: Shape, budget: Budget) -> f64 {
    let mu = mu(problem, shape, budget);
    let noise = (problem.size(shape.width) as f64).sqrt() / (shape.rows as f64 * mu);
    1.0 - (CUT_BY_NOISE * noise).clamp(CUT_ROWS.0, CUT_ROWS.1)
}

/// The question for a bound on rows, worth `mu`.
pub fn radius_stage(problem: &Problem, shape: Shape, budget: Budget, mu: f64) -> Stage {
    let level = most_rows(problem, shape, budget);
    let charge = PlannedRelease::quantile(RADIUS, level, mu, budget.neighbours());
    Stage::new("rows", 1, vec![charge]).of_all_rows()
}

/// The same, worth `epsilon` where δ is 0.
pub fn pure_radius_stage(problem: &Problem, shape: Shape, budget: Budget, epsilon: f64) -> Stage {
    let level = most_rows(problem, shape, budget);
    let charge = PlannedRelease::pure_quantile(RADIUS, level, epsilon, budget.neighbours());
    Stage::new("rows", 1, vec![charge]).of_all_rows()
}

/// The target of a row as the loss wants it: ±1 for two classes, the number of a class, or in units of its range.
pub(super) fn target(loss: Loss, raw: f64, range: (f64, f64)) -> f64 {
    match loss {
        Loss::Softmax { classes } => {
            // A number that is no class makes a row the null record.
            if raw >= 0.0 && raw < classes as f64 && raw.fract() == 0.0 { raw } else { f64::NAN }
        }
        loss if loss.needs_labels() => match raw {
            raw if raw == range.0 => -1.0,
            raw if raw == range.1 => 1.0,
            _ => f64::NAN,
        },
        _ => TargetScaling::new(Link::Linear, range).encode(raw).clamp(-1.0, 1.0),
    }
}

/// What a convex plan learns.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// The intercept and the weights of every output.
    pub outputs: Vec<(f64, Vec<f64>)>,
    /// How rows come to the weights, if not as they are.
    pub rows: Option<RowMap>,
    /// What expands rows before that, if anything does.
    pub expander: Option<Expander>,
    /// What no probability of a class is below.
    pub least: Option<f64>,
    /// Weights of expanded rows, whose scores are added to these.
    pub splines: Option<Box<Weights>>,
}

impl Weights {
    /// The score of every output for a row of features.
    pub fn scores(&self, features: &[f64]) -> Vec<f64> {
        let expanded = self.expander.as_ref().map(|expander| expander.apply(features));
        let row = expanded.as_deref().unwrap_or(features);
        let mapped = self.rows.as_ref().map(|map| map.apply(row));
        let row = mapped.as_deref().unwrap_or(row);
        let score = |(intercept, w): &(f64, Vec<f64>)| intercept + dot(w, row);
        let mut scores: Vec<f64> = self.outputs.iter().map(score).collect();
        if let Some(splines) = &self.splines {
            scores.iter_mut().zip(splines.scores(features)).for_each(|(u, more)| *u += more);
        }
        scores
    }

    /// The same with all scores times `share`.
    pub(super) fn times(mut self, share: f64) -> Weights {
        for (intercept, weights) in &mut self.outputs {
            *intercept *= share;
            weights.iter_mut().for_each(|w| *w *= share);
        }
        self
    }
}

impl From<(f64, Vec<f64>)> for Weights {
    fn from(output: (f64, Vec<f64>)) -> Weights {
        Weights { outputs: vec![output], rows: None, expander: None, least: None, splines: None }
    }
}

/// Fits rows wherever they are.
pub fn fit<M: ConvexMethod>(fit: &ConvexFit<M>, run: Run<'_, '_>) -> Result<Weights, Error> {
    let Run { plan, shape, range, backend, releaser, watch, .. } = run;
    let problem = &fit.problem;
    // Null records are records: their number is not public, that of all is.
    let neighbours = plan.budget.neighbours();
    let count = match neighbours {
        Neighbours::ReplaceOne => {
            releaser.public_rows(neighbours, backend.count()?.map(|count| count as usize))
        }
        Neighbours::AddRemove => None,
    };
    let fitting = Fitting {
        plan,
        shape,
        problem,
        releaser,
        watch,
        range,
        rows: count.map_or(shape.rows as f64, |n| n.max(1) as f64),
        radius: problem.longest,
        variance: 0.25,
        offsets: Vec::new(),
        arm: "",
        constant: problem.constant,
    };
    match fit.method.access() {
        Access::Sums => fitting.sums(&fit.method, backend),
        Access::Rows => fitting.all_rows(&fit.method, backend),
    }
}

impl Fitting<'_, '_> {
    /// Fits by sums over rows, wherever these are.
    fn sums(
        mut self,
        method: &dyn ConvexMethod,
        backend: &mut dyn Backend,
    ) -> Result<Weights, Error> {
        let (plan, problem) = (self.plan, self.problem);
        backend.begin(&self.releaser.draw(plan.sampler))?;
        if self.releaser.planned_for(ROWS_USED).is_some() {
            let used = self.run_query(backend, &Batch::All, Statistic::RowCount)?.histogram();
            self.releaser.count_rows(plan, self.shape.rows, used.total())?;
        }
        if problem.finds_radius {
            let radii = geometric_bins(problem.longest, -RADII, 0);
            let norms = Statistic::NormHistogram(radii.clone());
            let counts = self.run_query(backend, &Batch::All, norms)?.histogram();
            self.radius = radii[self.releaser.quantile(
                RADIUS,
                most_rows(problem, self.shape, plan.budget),
                counts,
            )?];
        }
        let weights = method.solve_sums(&mut self, backend)?;
        Ok(self.weights(&weights, None))
    }

    /// The sum of a statistic over the rows of a batch.
    pub fn run_query(
        &mut self,
        backend: &mut dyn Backend,
        batch: &Batch,
        statistic: Statistic,
    ) -> Result<QuerySum, Error> {
        let query = ConvexQuery::new(self, statistic);
        run_query(backend, self.releaser, batch, &query)
    }

    /// Fits by a method that works on the rows themselves.
    fn all_rows(
        mut self,
        method: &dyn ConvexMethod,
        backend: &mut dyn Backend,
    ) -> Result<Weights, Error> {
        let (plan, problem, range) = (self.plan, self.problem, self.range);
        let (threads, width, longest) =
            (self.releaser.threads(), self.shape.width, problem.longest);
        let (features, rest) = backend
            .rows()?
            .map(|data| {
                let (features, raw, nulls) = query::parts(data);
                (features, (raw, nulls))
            })
            .split();
        let (raw, nulls) = rest.split();
        let target: Private<Vec<f64>> =
            raw.map(|raw| raw.iter().map(|&y| target(problem.loss, y, range)).collect());
        let used = |target: &Vec<f64>| target.iter().filter(|y| !y.is_nan()).count() as u64;
        self.releaser.count_rows(plan, self.shape.rows, target.as_ref().map(used))?;
        let shape = RowShape { width, constant: problem.constant, l1: problem.l1, radius: longest };
        if problem.scales {
            let Found { map, share } = standardise::find(
                self.releaser,
                &features,
                &target,
                (width, longest, self.rows),
                problem.cut >= 1.0,
            )?;
            self.constant = problem.constant * map.radius;
            self.radius =
                map.radius * (1.0 + problem.constant * problem.constant).sqrt() * (1.0 + 1e-12);
            if problem.loss == Loss::Logistic {
                self.variance = share * (1.0 - share);
                self.offsets = vec![(share / (1.0 - share)).ln()];
            }
            let shape = RowShape { constant: self.constant, radius: self.radius, ..shape };
            let rows = features.zip(target).map(|(features, target)| {
                let rows = map.rows(features, target.len(), threads);
                (rows, target)
            });
            let examples = rows.as_ref().map(|(rows, target)| {
                Examples::new(shape, Features::Dense(rows), target.clone(), threads)
            });
            let weights = method.solve(&mut self, examples)?;
            return Ok(self.weights(&weights, Some(map)));
        }
        let mut examples = features.zip(target).zip(nulls).map(|((features, target), nulls)| {
            let once = method.reads_once(problem) && !problem.finds_radius;
            let new = if once { Examples::for_one_pass } else { Examples::new };
            new(shape, features, target, threads).without(nulls.to_vec())
        });
        if problem.finds_radius && plan.budget.is_private() {
            let radii = geometric_bins(longest, -RADII, 0);
            let grid = Bins::new(radii.clone());
            let norms =
                |e: &Examples<'_>| tally(e.measures(), grid.bins(), |m| grid.bin(m.norm), threads);
            let counts = Histogram::new(examples.as_ref().map(norms));
            self.radius = radii[self.releaser.quantile(
                RADIUS,
                most_rows(problem, self.shape, plan.budget),
                counts,
            )?];
            examples = examples.map(|examples| examples.bounded_by(self.radius));
        }
        let weights = method.solve(&mut self, examples)?;
        Ok(self.weights(&weights, None))
    }

    /// What is learnt, for targets as they came.
    pub(super) fn weights(&self, weights: &[f64], rows: Option<RowMap>) -> Weights {
        let outputs = self.parted(weights, self.range);
        Weights { outputs, rows, expander: None, least: None, splines: None }
    }
}

impl<'a> Fitting<'a, '_> {
    /// The intercept and the weights of every output, for targets as they came.
    fn parted(&self, weights: &[f64], range: (f64, f64)) -> Vec<(f64, Vec<f64>)> {
        let (width, problem) = (self.shape.width, self.problem);
        let one = |w: &[f64]| {
            let intercept = w.get(width).map_or(0.0, |w| w * self.constant);
            let weights = w[..width].to_vec();
            if problem.loss.needs_labels() {
                return (intercept, weights);
            }
            TargetScaling::new(Link::Linear, range).decode(intercept, weights)
        };
        weights.chunks_exact(problem.size(width) / problem.loss.outputs()).map(one).collect()
    }

    /// The name of a release.
    pub fn named(&self, release: &str) -> String {
        format!("{}{release}", self.arm)
    }

    /// The set, if weights are to be sought within it; otherwise they are projected onto it in the end.
    ///
    /// The proof of how near a minimiser is needs the number of rows within a set, which only replace-one makes public.
    pub fn set_inside(&self) -> Option<&'a Set> {
        let public = self.plan.budget.neighbours() == Neighbours::ReplaceOne;
        (public && self.problem.set != Set::Everything).then_some(&self.problem.set)
    }

    /// The loss with its bounds, for rows as they are bounded now.
    pub fn glm(&self) -> Result<Glm, Error> {
        let glm = self.problem.derivatives(self.shape.width, self.radius)?;
        // A loss with a corner has no bound on its bend, and nothing that asks for one.
        Ok(Glm { smoothness: if glm.smoothness.is_finite() { glm.smoothness } else { 0.0 }, ..glm })
    }

    /// The standard deviation of a release in every coordinate, over what one row may move it in the Euclidean norm.
    pub fn noise(&self, purpose: &str) -> f64 {
        match self.releaser.planned(purpose) {
            // That of Laplace noise is √2 times its scale, and the 1-norm √d times the other.
            Mechanism::Laplace { scale } => {
                scale * (2.0 * self.problem.size(self.shape.width) as f64).sqrt()
            }
            _ => self.releaser.noise(purpose),
        }
    }

    /// Releases a point that neighbours move by at most `apart`, with the planned noise.
    ///
    /// On the lattice √d units more; holding what is beyond it brings points nearer. Laplace noise counts in the 1-norm: √d times
    /// `apart`, d units more on the lattice, and of that the integer part, as the difference of integers is one.
    pub fn release(
        &mut self,
        purpose: &str,
        point: Private<Vec<f64>>,
        apart: f64,
    ) -> Result<Vec<f64>, Error> {
        assert!(apart > 0.0 && apart.is_finite(), "{purpose} has a bound");
        let size = self.problem.size(self.shape.width) as f64;
        let pure = matches!(self.releaser.planned(purpose), Mechanism::Laplace { .. });
        let (apart, corner) = if pure { (apart * size.sqrt(), size) } else { (apart, size.sqrt()) };
        // Rounding costs at most a thousandth.
        let unit = 2f64.powi((apart / corner).log2().floor() as i32 - 10);
        let most = (1_i64 << 61) as f64;
        let on_lattice = |w: &f64| (w / unit).clamp(-most, most).round() as i64;
        let sum = point.map(|w| w.iter().map(on_lattice).collect::<Vec<_>>());
        let apart = (apart / unit + corner) * (1.0 + 1e-12);
        if pure {
            let bound = self.each_way(apart.floor());
            return Ok(self
                .releaser
                .sum(purpose, BoundedSum::new(sum, Sensitivity::l1(bound, unit)))?
                .0);
        }
        let bound = self.each_way(apart);
        Ok(self.releaser.sum(purpose, BoundedSum::new(sum, Sensitivity::l2(bound, unit)))?.0)
    }

    /// What one row may add, if neighbours' values are at most so far apart: a replaced row is charged for twice that.
    fn each_way(&self, apart: f64) -> f64 {
        match self.plan.budget.neighbours() {
            Neighbours::AddRemove => apart,
            Neighbours::ReplaceOne => 0.5 * apart,
        }
    }
}
