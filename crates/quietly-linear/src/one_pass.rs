//! One-pass regression by random allocation: for tables of any size, at the speed of reading them.
//!
//! Each row is in one of T steps, drawn uniformly, secretly and on its own. The first step counts the values of columns and of the
//! target in trees, the next finds the norm of rows, then come the second moment and the first histogram of gradient norms; the rest
//! are a descent: robust first, with a high clip last, averaged. A step is
//! asked one question, so that all rows are read once. A row meets one step only, so the
//! theorem of random allocation prices the whole run by what a step may cost, about as much noise per step as T steps
//! over all rows would have.
//!
//! Gradients are taken in the table's own columns, winsorised, centred and scaled, so that a row costs O(d); whitening is applied
//! to their noisy sum, which is post-processing.
use std::cell::Cell;

use quietly_accounting::Neighbours;
use quietly_core::{
    budget::Budget,
    mechanism::{PlannedRelease, Sampler, Stage},
    privacy_plan::PrivacyPlan,
    progress::{ProgressCallback, report},
    release::Releaser,
    rows_used::ROWS_USED,
};
use quietly_engine::{
    algorithm::{Access, Algorithm, Run, Shape, mu},
    backend::{Backend, Batch, run_query},
    column_map::{ColumnMap, MOST_RANK_NOISE, MappedColumn, cut, rank_noise, tree_noise},
    descent::{Average, Descent},
    error::Error,
    histogram::bin_value,
    linalg::Square,
    link::Link,
    query::{
        ClippedGradients, ColumnTree, Combined, Query, SecondMoment, TargetBins, TargetHistogram,
        TreeColumns, column_tree::NODES,
    },
    target_scaling::TargetScaling,
    transform::RowTransform,
};
use serde::{Deserialize, Serialize};

use self::{
    space::Space,
    steps::{Clips, Gradients, Newton},
};
use crate::{
    full_batch::{
        COLUMNS, CONSTANT, LAST, MOMENT, NORM, NORMS, ROBUST, TARGET, check_numbers, norms,
    },
    linear_fit::LinearFit,
};

mod space;
mod steps;

/// Shares of the first step: the trees of the columns, that of the target, the number of rows.
const FIRST_STEP: [f64; 3] = [0.6, 0.35, 0.05];
/// The share that a histogram of norms takes of a robust step.
const HISTOGRAM: f64 = 0.2;

/// How many steps there are, unless one asks for others.
const STEPS: u64 = 21;
/// Steps that find the scale of the residuals.
const ROBUST_STEPS: u64 = 4;
/// Steps before them: trees, norm, second moment, first histogram.
const FIRST_STEPS: u64 = 4;

/// How much of the budget's worth a question to one of T steps has, compared with one to all rows: about √T/T, as it sees that
/// part of the rows and random allocation makes noise √T times smaller.
pub fn efficiency(steps: u64) -> f64 {
    1.0 / (steps as f64).sqrt()
}

/// One pass over the rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OnePass {
    /// Linear or ReLU.
    pub link: Link,
    /// The features that are numeric columns, which a map may winsorise: public. None turns the map off.
    pub numbers: Vec<usize>,
    /// How many steps there are: what is more than a few makes the last ones more.
    pub steps: u64,
    /// Whether the trees of columns are released, and rows go through the map that they make.
    pub columns: bool,
}

impl OnePass {
    /// A pass of so many steps, or of the usual number.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if there are too few to learn anything, or more than are of use.
    pub fn new(
        link: Link,
        numbers: Vec<usize>,
        steps: Option<u64>,
        (shape, budget): (Shape, Budget),
    ) -> Result<Self, Error> {
        let steps = steps.unwrap_or(STEPS);
        let mut pass = OnePass { link, numbers, steps, columns: false };
        pass.check_steps()?;
        // A step sees its part of the rows, and its noise is that of so many steps over all of them.
        let worth = efficiency(steps) * mu(budget) * FIRST_STEP[0].sqrt();
        let trees = pass.numbers.len();
        let sd = tree_noise(trees, Neighbours::AddRemove, 1.0 / worth);
        pass.columns = trees > 0 && rank_noise(sd, shape.rows as f64) <= MOST_RANK_NOISE;
        Ok(pass)
    }

    fn check_steps(&self) -> Result<(), Error> {
        let fine = (10..=1000).contains(&self.steps);
        Error::ensure(fine, "steps", "from 10 to 1000 for one pass", self.steps)
    }

    /// The steps at the end.
    fn last(&self) -> u64 {
        self.steps.saturating_sub(FIRST_STEPS + ROBUST_STEPS)
    }
}

impl Algorithm for OnePass {
    type Fitted = LinearFit;

    fn sampler(&self, _: Shape) -> Sampler {
        Sampler::RandomAllocation { steps: self.steps }
    }

    /// A step as a whole is 1/noise-GDP for a row that is there or not.
    fn stages(&self, _: Shape, _: Budget, noise: f64) -> Vec<Stage> {
        let sum = |purpose: &str, share: f64| PlannedRelease::sum(purpose, noise / share.sqrt());
        // The theorem wants the price of a row that is there or not, under either relation.
        let choice = |purpose: &str, level: f64, share: f64| {
            PlannedRelease::quantile(purpose, level, share.sqrt() / noise, Neighbours::AddRemove)
        };
        let [columns, target, count] = FIRST_STEP;
        let mut first = match self.columns {
            true => vec![sum(COLUMNS, columns), sum(TARGET, target)],
            false => vec![sum(TARGET, columns + target)],
        };
        first.push(sum(ROWS_USED, count));
        vec![
            Stage::new("columns and target", 1, first),
            Stage::new("rows", 1, vec![choice(NORM, 0.5, 1.0)]),
            Stage::new("whitening", 1, vec![sum(MOMENT, 1.0)]),
            Stage::new("first clip", 1, vec![sum(FIRST_NORMS, 1.0)]),
            Stage::new(
                "robust steps",
                ROBUST_STEPS,
                vec![sum(ROBUST, 1.0 - HISTOGRAM), sum(NORMS, HISTOGRAM)],
            ),
            Stage::new("last steps", self.last(), vec![sum(LAST, 1.0)]),
        ]
    }

    /// The first step counts its rows.
    fn count_stage(&self, _: Budget, _: Sampler) -> Result<Option<Stage>, Error> {
        Ok(None)
    }

    fn check(&self, shape: Shape, budget: Budget) -> Result<(), Error> {
        self.check_steps()?;
        self.link.check_least_squares()?;
        check_numbers(&self.numbers, shape)?;
        let columns = !self.columns || !self.numbers.is_empty();
        Error::ensure(columns, "plan", "as it was planned", "one that was changed")?;
        Ok(budget.unless_pure()?)
    }

    fn access(&self) -> Access {
        Access::Sums
    }

    fn fit(&self, run: Run<'_, '_>) -> Result<LinearFit, Error> {
        let Run { plan, shape, range, backend, releaser, watch, .. } = run;
        let unit = TargetScaling::new(self.link, range);
        backend.begin(&releaser.draw(plan.sampler))?;
        let pass = Pass { layout: self, plan, shape, unit, backend, releaser };
        Ok(pass.run(range, watch)?.in_units(&unit, range))
    }
}

/// The histogram of a step of its own: the others share their steps with gradients.
pub const FIRST_NORMS: &str = "first gradient norm histogram";

/// A pass on its way, in units of the target's range.
struct Pass<'a> {
    layout: &'a OnePass,
    plan: &'a PrivacyPlan,
    shape: Shape,
    unit: TargetScaling,
    backend: &'a mut dyn Backend,
    releaser: &'a mut Releaser,
}

impl Pass<'_> {
    fn run(
        mut self,
        range: (f64, f64),
        watch: &mut ProgressCallback<'_>,
    ) -> Result<LinearFit, Error> {
        let OnePass { link, steps, .. } = *self.layout;
        let (width, unit, last_steps) = (self.shape.width, self.unit, self.layout.last());
        let rows = self.shape.rows as f64 / steps as f64;
        let mut at = 0;
        let mut step = || {
            at += 1;
            report(watch, "step", at, steps)
        };

        step()?;
        let (map, target) = self.trees(rows)?;
        let middle = target.centre.clamp(unit.encode(range.0), unit.encode(range.1));
        // max(u, 0) cannot be moved.
        let centre = if link == Link::Linear { middle } else { 0.0 };
        let columns = map.as_ref().map(|map| map.standardise(false));
        let plain = RowTransform::plain(width, CONSTANT).after(columns.clone());

        step()?;
        let grid = norms(width);
        let query = ClippedGradients::norms(plain.clone(), grid.clone());
        let counts = self.ask(1, &query)?.histogram();
        let norm = 1.1 * bin_value(&grid, self.releaser.quantile(NORM, 0.5, counts)?);

        step()?;
        let moment = self.ask(2, &SecondMoment { transform: plain, norm })?.sum();
        let (upper, std) = self.releaser.sum(MOMENT, moment)?;
        let space = Space::new(&Square::symmetric(width + 1, &upper), std, rows, columns);

        // The descent: its clip is that of the histogram before, for the noise that its last steps make.
        let left = Cell::new(1.0);
        let noise = space.trace().sqrt() / rows;
        let mut clips = Clips {
            robust: FIRST_STEPS..FIRST_STEPS + ROBUST_STEPS,
            rows,
            noise: [ROBUST, LAST].map(|release| noise * self.releaser.noise(release)),
            last_steps: last_steps as f64,
            width: width + 1,
            counts: false,
            norms: None,
            left: &left,
        };
        let (first, robust) = (FIRST_STEPS, FIRST_STEPS + ROBUST_STEPS);
        let polished = robust;
        let mut newton = Newton::new(&space, link, (rows, polished), &left);
        let mut w = vec![0.0; width + 1];
        // The step before the descent has its first histogram.
        step()?;
        for (release, range) in [(ROBUST, first..robust), (LAST, robust..steps)] {
            let backend = &mut *self.backend;
            let mut gradients = Gradients { backend, space: &space, link, unit, centre, polished };
            let average = match release {
                LAST => Average::over(range.clone()),
                _ => Average::Last,
            };
            let mut descent =
                Descent { release, steps: range, clip: &mut clips, update: &mut newton, average };
            w = descent.run(w, &mut gradients, self.releaser, &mut |_| Ok(step()?))?;
        }
        let w = space.shrink(w, newton.noise / (last_steps as f64).sqrt());
        let (intercept, weights) = space.unmap(&w, centre);
        let fit = LinearFit::plain(link, (intercept, weights));
        Ok(LinearFit { map, centre: middle, ..fit })
    }
}

impl Pass<'_> {
    fn ask(
        &mut self,
        step: u64,
        query: &dyn Query,
    ) -> Result<quietly_engine::query::QuerySum, Error> {
        run_query(self.backend, self.releaser, &Batch::step(step), query)
    }

    /// The map of the columns, and that of the target, from the rows of the first step; they are counted as well.
    fn trees(&mut self, rows: f64) -> Result<(Option<ColumnMap>, MappedColumn), Error> {
        let OnePass { numbers, columns, .. } = self.layout;
        // Steps are priced for a row that is there or not, under either relation.
        let tree = |columns| ColumnTree { columns, neighbours: Neighbours::AddRemove };
        let bins = TargetBins::Sizes(vec![1.0]);
        let mut all: Vec<Box<dyn Query>> = vec![
            Box::new(tree(TreeColumns::Target(self.unit))),
            Box::new(TargetHistogram { unit: self.unit, bins }),
        ];
        if *columns {
            all.push(Box::new(tree(TreeColumns::Features(numbers.clone()))));
        }
        let (sums, counts) = self.ask(0, &Combined::new(all))?.split();
        let mut sums = sums.into_iter();
        let mut released = |purpose: &str, trees: usize, releaser: &mut Releaser| {
            let sum = sums.next().expect("a sum for each tree");
            let (counts, _) = releaser.sum(purpose, sum)?;
            let sd = tree_noise(trees, Neighbours::AddRemove, releaser.noise(purpose));
            let cut = cut(rank_noise(sd, rows));
            let map = |counts: &[f64]| MappedColumn::from_tree(counts, sd, cut);
            Ok::<_, Error>(counts.chunks_exact(NODES).map(map).collect::<Vec<_>>())
        };
        let mut target = released(TARGET, 1, self.releaser)?;
        let count = counts.into_iter().next().expect("one histogram").total();
        self.releaser.count_rows(self.plan, self.shape.rows, count)?;
        let mut map = None;
        if *columns {
            let mut all = ColumnMap { columns: vec![None; self.shape.width] };
            let found = released(COLUMNS, numbers.len(), self.releaser)?;
            for (feature, column) in numbers.iter().zip(found) {
                all.columns[*feature] = Some(column);
            }
            map = Some(all);
        }
        Ok((map, target.remove(0)))
    }
}
