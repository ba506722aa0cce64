//! Running a convex plan: from rows to weights.
use quietly_accounting::Neighbours;
use quietly_data::Private;

use super::{
    examples::{Examples, Features, Shape},
    glm::Glm,
    loss::Loss,
    minimise::{Objective, Terms},
    perturb,
    phases::{self, PHASE},
    planning,
    program::Program,
    set::Set,
};
use crate::{
    charge::{Charge, Stage},
    counts::tally,
    error::Error,
    full_batch::quarters,
    method::Method,
    model::Link,
    pass::Grid,
    plan::Plan,
    progress::{Watch, tell},
    release::{Door, LatticeSum},
    unit::Unit,
};

/// The question for a bound on rows.
pub(crate) const RADIUS: &str = "norm that most rows do not exceed";
/// How many rows are not to be cut, about.
const MOST_ROWS: f64 = 0.9;
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
}

/// The question for a bound on rows, worth `mu`.
pub(crate) fn radius_stage(mu: f64, neighbours: Neighbours) -> Stage {
    let charge = Charge::quantile(RADIUS, MOST_ROWS, mu, neighbours);
    Stage::new("rows", 1, vec![charge]).of_all_rows()
}

/// The target of a row as the loss wants it: ±1 for two classes, the number of a class, or in units of its range.
pub(crate) fn target(plan: &Plan, raw: f64, range: (f64, f64)) -> f64 {
    let program = plan.convex.as_ref().expect("a convex plan has a program");
    match program.loss {
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

/// The intercept and the weights of every output, for targets as they came.
pub(crate) fn parted(plan: &Plan, weights: &[f64], range: (f64, f64)) -> Vec<(f64, Vec<f64>)> {
    let program = plan.convex.as_ref().expect("a convex plan has a program");
    let size = plan.width + usize::from(program.constant != 0.0);
    let one = |w: &[f64]| {
        let intercept = w.get(plan.width).map_or(0.0, |w| w * program.constant);
        let weights = w[..plan.width].to_vec();
        if program.loss.needs_labels() {
            return (intercept, weights);
        }
        Unit::new(Link::Linear, range).back(intercept, weights)
    };
    weights.chunks_exact(size).map(one).collect()
}

/// The weights of every output, each with that of the constant last.
pub(crate) fn fit(
    plan: &Plan,
    features: Private<Features<'_>>,
    target: Private<Vec<f64>>,
    nulls: Private<Vec<usize>>,
    door: &mut Door,
    watch: &mut Watch<'_>,
) -> Result<Vec<f64>, Error> {
    let program = plan.convex.as_ref().expect("a convex plan has a program");
    let shape = Shape {
        width: plan.width,
        constant: program.constant,
        l1: program.l1,
        radius: program.longest,
    };
    let threads = door.threads();
    // Null records are records: their number is not public, that of all is.
    let count =
        target.as_ref().zip(nulls.as_ref()).map(|(target, nulls)| target.len() + nulls.len());
    let rows =
        door.public_rows(plan.budget.neighbours(), count).map_or(plan.rows as f64, |n| n as f64);
    let mut examples = features.zip(target).zip(nulls).map(|((features, target), nulls)| {
        Examples::new(shape, features, target, threads).without(nulls)
    });
    let mut radius = program.longest;
    if program.finds_radius {
        let radii = quarters(program.longest, -RADII, 0);
        let grid = Grid::new(radii.clone());
        let counts =
            examples.as_ref().map(|e| tally(e.norms(), grid.bins(), |x| grid.bin(x), threads));
        radius = radii[door.quantile(RADIUS, MOST_ROWS, counts)?];
        examples = examples.map(|examples| examples.bounded_by(radius));
    }
    let mut run = Fitting { plan, program, door, watch, rows, radius };
    match plan.method {
        Method::Exact => exact(&mut run, examples),
        Method::Amp => perturb::fit(&mut run, examples),
        _ => {
            // A replaced row moves a point twice as far as noise is planned for.
            let mu = 2.0 / run.door.noise(PHASE);
            let ground = program.ground(plan.width, radius, mu)?;
            let phases = planning::phases(plan, &ground)?;
            phases::fit(&mut run, &examples, &phases, &ground)
        }
    }
}

/// The minimiser itself, for plans that promise nothing.
fn exact(run: &mut Fitting<'_, '_>, examples: Private<Examples<'_>>) -> Result<Vec<f64>, Error> {
    let (program, watch) = (run.program, &mut *run.watch);
    let glm = program.glm(run.plan.width, run.radius)?;
    let all = program.size(run.plan.width);
    run.door.plain(examples, |examples| {
        let rows = examples.rows().max(1) as f64;
        let far = match &program.set {
            Set::Everything => 0.0,
            set => perturb::farthest(set, all),
        };
        let bowl = program.regulariser.bowl(rows, far);
        // Separable classes have no minimiser: a little ridge gives them one.
        let most = rows * glm.bend * run.radius * run.radius + bowl.bend;
        let strong = (rows * program.regulariser.strong()).max(1e-9 * most);
        let terms = Terms { glm, radius: run.radius, size: all / glm.outputs(), strong, bowl };
        let tilt = vec![0.0; all];
        let objective =
            Objective { terms, examples: &examples, rows: 0..examples.rows(), tilt: &tilt };
        let mut keep_on = |pass: u64| tell(watch, "pass", pass, pass.max(30));
        let near = 1e-3 / run.radius;
        let found = match &program.set {
            Set::Everything => objective.minimise(near, &mut keep_on)?,
            set => {
                let near = near.max(terms.least_distance_within(rows, far, 0.0));
                objective.minimise_within(
                    set,
                    rows * program.regulariser.lasso,
                    far,
                    near,
                    &mut keep_on,
                )?
            }
        };
        Ok(found.point)
    })
}

impl<'a> Fitting<'a, '_> {
    /// The set, if weights are to be sought within it; otherwise they are projected onto it in the end.
    ///
    /// The proof of how near a minimiser is needs the number of rows within a set, which only replace-one makes public.
    pub(crate) fn set_inside(&self) -> Option<&'a Set> {
        let public = self.plan.budget.neighbours() == Neighbours::ReplaceOne;
        (public && self.program.set != Set::Everything).then_some(&self.program.set)
    }

    /// The loss with its bounds, for rows as they are bounded now.
    pub(crate) fn glm(&self) -> Result<Glm, Error> {
        self.program.bounded(self.plan.width, self.radius)
    }

    /// Releases a point that neighbours move by at most `apart`, with the planned noise.
    ///
    /// On the lattice √d units more; holding what is beyond it brings points nearer.
    pub(crate) fn release(
        &mut self,
        purpose: &str,
        point: Private<Vec<f64>>,
        apart: f64,
    ) -> Result<Vec<f64>, Error> {
        let corner = (self.program.size(self.plan.width) as f64).sqrt();
        // Rounding costs at most a thousandth.
        let unit = 2f64.powi((apart / corner).log2().floor() as i32 - 10);
        let most = (1_i64 << 61) as f64;
        let on_lattice = |w: &f64| (w / unit).clamp(-most, most).round() as i64;
        let sum = point.map(|w| w.iter().map(on_lattice).collect::<Vec<_>>());
        let bound = self.each_way(apart / unit + corner) * (1.0 + 1e-12);
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
