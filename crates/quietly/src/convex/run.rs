//! Running a convex plan: from rows to weights.
use quietly_accounting::Neighbours;
use quietly_data::{Encoding, Private, Source};

use super::{
    asked::What,
    bolt_on,
    descent::{self, Rows},
    examples::{Examples, Features, Shape},
    glm::Glm,
    loss::Loss,
    perturb,
    phases::{self, PHASE},
    plain, planning,
    program::Program,
    scaling::{self, Found, RowMap},
    set::Set,
};
use crate::{
    charge::{Charge, Mechanism, Sampler, Stage},
    counts::tally,
    error::Error,
    expand::Expander,
    full_batch::quarters,
    keeper::Keeper,
    linalg::dot,
    method::Method,
    model::Link,
    pass::Grid,
    plan::Plan,
    progress::Watch,
    question::Answer,
    release::{Door, LatticeSum},
    rows_used::ROWS_USED,
    unit::Unit,
};

/// The question for a bound on rows.
pub(crate) const RADIUS: &str = "norm that most rows do not exceed";
/// Shares of rows that are cut, about: where there is little noise, and where there is much.
const CUT_ROWS: (f64, f64) = (0.1, 0.5);
/// The share that is cut, over √size/(rows·μ): how long the noise of one release of a mean is, for rows of norm 1.
const CUT_BY_NOISE: f64 = 60.0;
/// Bounds are looked for from the longest row down, in quarters of an octave.
const RADII: i32 = 24;

/// A run of a convex plan.
pub(crate) struct Fitting<'a, 'w> {
    pub(crate) plan: &'a Plan,
    pub(crate) program: &'a Program,
    pub(crate) door: &'a mut Door,
    pub(crate) watch: &'a mut Watch<'w>,
    /// The number of rows where that is public, and otherwise about that.
    pub(crate) rows: f64,
    /// What no row exceeds: released, or known.
    pub(crate) radius: f64,
    /// The constant feature.
    pub(crate) constant: f64,
    /// The share of the last class, and the score that says as much; released, or one half and zero.
    pub(crate) share: f64,
    pub(crate) offset: f64,
}

/// The share of rows that are not cut, about. All noise grows with the longest row, and cutting rows is wrong by what it takes
/// from them: the more noise, the more rows. Of public numbers alone; any share is as private.
fn most_rows(plan: &Plan) -> f64 {
    let noise = (plan.program().size(plan.width) as f64).sqrt() / (plan.rows as f64 * plan.mu());
    1.0 - (CUT_BY_NOISE * noise).clamp(CUT_ROWS.0, CUT_ROWS.1)
}

/// The question for a bound on rows, worth `mu`.
pub(crate) fn radius_stage(plan: &Plan, mu: f64) -> Stage {
    let charge = Charge::quantile(RADIUS, most_rows(plan), mu, plan.budget.neighbours());
    Stage::new("rows", 1, vec![charge]).of_all_rows()
}

/// The same, worth `epsilon` where δ is 0.
pub(crate) fn pure_radius_stage(plan: &Plan, epsilon: f64) -> Stage {
    let charge = Charge::pure_quantile(RADIUS, most_rows(plan), epsilon, plan.budget.neighbours());
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
        _ => Unit::new(Link::Linear, range).of(raw).clamp(-1.0, 1.0),
    }
}

/// Whether every row is looked at once, so that it need not be measured before.
fn reads_once(plan: &Plan) -> bool {
    let program = plan.program();
    let passes = match plan.method {
        Method::ScPsgd => program.steps == Some(1),
        Method::PhasedErm => false,
        _ => matches!(plan.sampler, Sampler::Places { .. }),
    };
    passes && !program.finds_radius
}

/// What a convex plan learns.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Weights {
    /// The intercept and the weights of every output.
    pub outputs: Vec<(f64, Vec<f64>)>,
    /// How rows come to the weights, if not as they are.
    pub rows: Option<RowMap>,
    /// What expands rows before that, if anything does.
    pub(crate) expander: Option<Expander>,
}

impl Weights {
    /// The score of every output for a row of features.
    pub fn scores(&self, features: &[f64]) -> Vec<f64> {
        let expanded = self.expander.as_ref().map(|expander| expander.apply(features));
        let row = expanded.as_deref().unwrap_or(features);
        let mapped = self.rows.as_ref().map(|map| map.apply(row));
        let row = mapped.as_deref().unwrap_or(row);
        let score = |(intercept, w): &(f64, Vec<f64>)| intercept + dot(w, row);
        self.outputs.iter().map(score).collect()
    }
}

impl From<(f64, Vec<f64>)> for Weights {
    fn from(output: (f64, Vec<f64>)) -> Weights {
        Weights { outputs: vec![output], rows: None, expander: None }
    }
}

/// Whether null records keep their places: under replace-one the number of records is public, null records among them, and some
/// methods go by a row's place.
pub(crate) fn keeps_places(plan: &Plan) -> bool {
    let poisson = matches!(plan.sampler, Sampler::Poisson { .. });
    plan.budget.neighbours() == Neighbours::ReplaceOne || poisson
}

/// Reads a table and fits it.
pub(crate) fn read(
    plan: &Plan,
    source: &Source,
    encoding: &Encoding,
    range: (f64, f64),
    door: &mut Door,
    watch: &mut Watch<'_>,
) -> Result<Weights, Error> {
    let encoding = if keeps_places(plan) { encoding.keeping_places() } else { encoding.clone() };
    let (threads, nulls) = (door.threads(), Private::new(Vec::new()));
    if source.is_sparse() {
        let rows = source.read_sparse(&encoding, threads)?;
        let rows = rows.as_ref().map(|rows| (Features::from(rows), &rows.target[..]));
        return fit(plan, rows, nulls, range, door, watch);
    }
    let mut table = source.read(&encoding, threads)?;
    if let Some(expander) = plan.expander()? {
        table = expander.table(&table, threads);
    }
    let rows = table.as_ref().map(|t| (Features::Dense(t.features()), t.target()));
    fit(plan, rows, nulls, range, door, watch)
}

/// Fits rows of features and targets as they came, and null records that are at these places among all.
pub(crate) fn fit(
    plan: &Plan,
    rows: Private<(Features<'_>, &[f64])>,
    nulls: Private<Vec<usize>>,
    range: (f64, f64),
    door: &mut Door,
    watch: &mut Watch<'_>,
) -> Result<Weights, Error> {
    let (features, raw) = rows.split();
    let target: Private<Vec<f64>> =
        raw.map(|raw| raw.iter().map(|&y| target(plan.program().loss, y, range)).collect());
    let (program, threads) = (plan.program(), door.threads());
    let used = |target: &Vec<f64>| target.iter().filter(|y| !y.is_nan()).count() as u64;
    door.count_rows(plan, target.as_ref().map(used))?;
    // Null records are records: their number is not public, that of all is.
    let count = target.as_ref().zip(nulls.as_ref()).map(|(rows, nulls)| rows.len() + nulls.len());
    let rows = door.public_rows(plan.budget.neighbours(), count);
    let rows = rows.map_or(plan.rows as f64, |n| n.max(1) as f64);
    let (width, longest) = (plan.width, program.longest);
    let shape = Shape { width, constant: program.constant, l1: program.l1, radius: longest };
    let mut run = Fitting {
        plan,
        program,
        door,
        watch,
        rows,
        radius: longest,
        share: 0.5,
        offset: 0.0,
        constant: shape.constant,
    };
    if program.scales {
        let Found { map, share } = scaling::find(
            run.door,
            &features,
            &target,
            (width, longest, rows),
            program.cut >= 1.0,
        )?;
        run.constant = program.constant * map.radius;
        run.radius =
            map.radius * (1.0 + program.constant * program.constant).sqrt() * (1.0 + 1e-12);
        if program.loss == Loss::Logistic {
            (run.share, run.offset) = (share, (share / (1.0 - share)).ln());
        }
        let shape = Shape { constant: run.constant, radius: run.radius, ..shape };
        let rows = features.zip(target).map(|(features, target)| {
            let rows = map.rows(features, target.len(), threads);
            (rows, target)
        });
        let examples = rows.as_ref().map(|(rows, target)| {
            Examples::new(shape, Features::Dense(rows), target.clone(), threads)
        });
        let weights = perturb::fit(&mut run, &examples)?;
        return Ok(Weights {
            outputs: run.parted(&weights, range),
            rows: Some(map),
            expander: None,
        });
    }
    let mut examples = features.zip(target).zip(nulls).map(|((features, target), nulls)| {
        let new = if reads_once(plan) { Examples::for_one_pass } else { Examples::new };
        new(shape, features, target, threads).without(nulls)
    });
    if program.finds_radius && plan.budget.is_private() {
        let radii = quarters(longest, -RADII, 0);
        let grid = Grid::new(radii.clone());
        let norms =
            |e: &Examples<'_>| tally(e.measures(), grid.bins(), |m| grid.bin(m.norm), threads);
        let counts = examples.as_ref().map(norms);
        run.radius = radii[run.door.quantile(RADIUS, most_rows(plan), counts)?];
        examples = examples.map(|examples| examples.bounded_by(run.radius));
    }
    let weights = match plan.method {
        Method::Exact => plain::fit(&mut run, examples)?,
        Method::Amp => perturb::fit(&mut run, &examples)?,
        Method::DpGd | Method::DpSgd => descent::fit(&mut run, Rows::Here(&examples))?,
        Method::FrankWolfe => descent::frank_wolfe(&mut run, Rows::Here(&examples))?,
        Method::ScPsgd | Method::GdOp => bolt_on::fit(&mut run, &examples)?,
        _ => {
            // A replaced row moves a point twice as far as noise is planned for.
            let mu = 2.0 / run.noise(PHASE);
            let ground = program.ground(width, run.radius, mu)?;
            let phases = planning::phases(plan, &ground)?;
            phases::fit(&mut run, &examples, &phases, &ground)?
        }
    };
    Ok(Weights { outputs: run.parted(&weights, range), rows: None, expander: None })
}

/// Whether all that a plan asks are sums over rows.
pub(crate) fn asks_for_sums(plan: &Plan) -> bool {
    matches!(plan.method, Method::DpGd | Method::DpSgd | Method::FrankWolfe)
        && !plan.program().scales
        && plan.budget.is_private()
}

/// Fits rows that somebody else keeps, of which there are so many if that is public.
///
/// # Panics
///
/// Unless the plan [asks for sums](asks_for_sums).
pub(crate) fn fit_kept(
    plan: &Plan,
    rows: &mut dyn Keeper,
    records: Option<u64>,
    range: (f64, f64),
    door: &mut Door,
    watch: &mut Watch<'_>,
) -> Result<Weights, Error> {
    assert!(asks_for_sums(plan), "a plan of sums");
    let (program, width) = (plan.program(), plan.width);
    let mut run = Fitting {
        plan,
        program,
        door,
        watch,
        rows: records.map_or(plan.rows as f64, |n| n.max(1) as f64),
        radius: program.longest,
        share: 0.5,
        offset: 0.0,
        constant: program.constant,
    };
    let mut kept = descent::Kept { rows, program: program.clone(), width, range };
    if run.door.planned_for(ROWS_USED).is_some() {
        let used = kept.ask(run.door, 0, What::Rows)?.map(|answer| answer.counts()[0]);
        run.door.count_rows(plan, used)?;
    }
    if program.finds_radius {
        let radii = quarters(program.longest, -RADII, 0);
        let counts = kept.ask(run.door, 0, What::Norms(radii.clone()))?.map(Answer::counts);
        run.radius = radii[run.door.quantile(RADIUS, most_rows(plan), counts)?];
    }
    let weights = match plan.method {
        Method::FrankWolfe => descent::frank_wolfe(&mut run, Rows::Kept(&mut kept))?,
        _ => descent::fit(&mut run, Rows::Kept(&mut kept))?,
    };
    Ok(Weights { outputs: run.parted(&weights, range), rows: None, expander: plan.expander()? })
}

impl<'a> Fitting<'a, '_> {
    /// The intercept and the weights of every output, for targets as they came.
    fn parted(&self, weights: &[f64], range: (f64, f64)) -> Vec<(f64, Vec<f64>)> {
        let (width, program) = (self.plan.width, self.program);
        let one = |w: &[f64]| {
            let intercept = w.get(width).map_or(0.0, |w| w * self.constant);
            let weights = w[..width].to_vec();
            if program.loss.needs_labels() {
                return (intercept, weights);
            }
            Unit::new(Link::Linear, range).back(intercept, weights)
        };
        weights.chunks_exact(program.size(width) / program.loss.outputs()).map(one).collect()
    }

    /// The set, if weights are to be sought within it; otherwise they are projected onto it in the end.
    ///
    /// The proof of how near a minimiser is needs the number of rows within a set, which only replace-one makes public.
    pub(crate) fn set_inside(&self) -> Option<&'a Set> {
        let public = self.plan.budget.neighbours() == Neighbours::ReplaceOne;
        (public && self.program.set != Set::Everything).then_some(&self.program.set)
    }

    /// The loss with its bounds, for rows as they are bounded now.
    pub(crate) fn glm(&self) -> Result<Glm, Error> {
        let glm = self.program.slopes(self.plan.width, self.radius)?;
        // A loss with a corner has no bound on its bend, and nothing that asks for one.
        Ok(Glm { bend: if glm.bend.is_finite() { glm.bend } else { 0.0 }, ..glm })
    }

    /// The standard deviation of a release in every coordinate, over what one row may move it in the Euclidean norm.
    pub(crate) fn noise(&self, purpose: &str) -> f64 {
        match self.door.planned(purpose) {
            // That of Laplace noise is √2 times its scale, and the 1-norm √d times the other.
            Mechanism::Laplace { scale } => {
                scale * (2.0 * self.program.size(self.plan.width) as f64).sqrt()
            }
            _ => self.door.noise(purpose),
        }
    }

    /// Releases a point that neighbours move by at most `apart`, with the planned noise.
    ///
    /// On the lattice √d units more; holding what is beyond it brings points nearer. Laplace noise counts in the 1-norm: √d times
    /// `apart`, d units more on the lattice, and of that the integer part, as the difference of integers is one.
    pub(crate) fn release(
        &mut self,
        purpose: &str,
        point: Private<Vec<f64>>,
        apart: f64,
    ) -> Result<Vec<f64>, Error> {
        assert!(apart > 0.0 && apart.is_finite(), "{purpose} has a bound");
        let size = self.program.size(self.plan.width) as f64;
        let pure = matches!(self.door.planned(purpose), Mechanism::Laplace { .. });
        let (apart, corner) = if pure { (apart * size.sqrt(), size) } else { (apart, size.sqrt()) };
        // Rounding costs at most a thousandth.
        let unit = 2f64.powi((apart / corner).log2().floor() as i32 - 10);
        let most = (1_i64 << 61) as f64;
        let on_lattice = |w: &f64| (w / unit).clamp(-most, most).round() as i64;
        let sum = point.map(|w| w.iter().map(on_lattice).collect::<Vec<_>>());
        let apart = (apart / unit + corner) * (1.0 + 1e-12);
        if pure {
            let bound = self.each_way(apart.floor());
            return Ok(self.door.laplace(purpose, LatticeSum { sum, bound, unit })?.0);
        }
        let bound = self.each_way(apart);
        Ok(self.door.sum(purpose, LatticeSum { sum, bound, unit })?.0)
    }

    /// What one row may add, if neighbours' values are at most so far apart: a replaced row is charged for twice that.
    fn each_way(&self, apart: f64) -> f64 {
        match self.plan.budget.neighbours() {
            Neighbours::AddRemove => apart,
            Neighbours::ReplaceOne => 0.5 * apart,
        }
    }
}
