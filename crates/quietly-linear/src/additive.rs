//! The additive regression: a linear model first, then bends of columns and of pairs for what it leaves over, then a gate.
//!
//! 1. The linear model is the default regression ([`FullBatch`]) with its share of μ². It releases the trees of the columns,
//!    whose ranks the bends are functions of, and is kept as it is.
//! 2. Two second moments: of the linear features, which whitens them, and of all, which makes the metric.
//! 3. Eight steps with a heavy ball and sixteen that are averaged, along clipped gradients of what the linear model leaves over;
//!    before either kind a histogram of gradient norms gives the clip.
//! 4. What is known of the noise in the average shrinks each block of features: the linear ones, those of a column, of a pair.
//! 5. Two more sums tell what the bends gain over the linear model, which are multiplied by t within [0, 1].
//!
//! Every question goes through the releaser under one of the names below or of the linear model; between them there is only
//! post-processing. Each is a query of the engine, which proves what one row can add to it, so the plan's charges compose.
//! Which rung of the ladder is taken, public numbers decide ([`ladder`](crate::ladder)).
//!
//! docs/spec/default.md#5
use std::cell::Cell;

use quietly_core::{
    budget::Budget,
    mechanism::{PlannedRelease, Sampler, Stage},
    progress::report,
    release::Releaser,
};
use quietly_engine::{
    algorithm::{Access, Algorithm, Run, Shape},
    backend::{Backend, Batch, run_query},
    bends::{Base, Bends},
    column_map::ColumnMap,
    descent::{Average, Descent},
    error::Error,
    linalg::Square,
    link::Link,
    query::SecondMoment,
    target_scaling::TargetScaling,
    transform::RowTransform,
};
use serde::{Deserialize, Serialize};

use self::{
    metric::{Metric, whitened},
    steps::{BendGradients, BendSteps},
};
use crate::{
    budget_split::{Design, Learnable, TREES, Wanted},
    full_batch::{
        FullBatch,
        clip::{Found, Histograms},
        gate::Gate,
    },
    ladder::{CUT, LadderInput, LadderShares, MOST_PAIRED, Rung},
    linear_fit::{FittedBends, LinearFit},
};

mod metric;
mod steps;

pub const LINEAR_MOMENT: &str = "second moment of the features";
pub const BENT_MOMENT: &str = "second moment of the bends";
pub const BENT_NORMS: &str = "gradient norm histogram (bends)";
pub const FIRST_BENDS: &str = "gradient (bends, first steps)";
pub const LAST_BENDS: &str = "gradient (bends, last steps)";
pub const GAIN: &str = "gain of the bends";

/// Steps that find the place, and those whose average is the answer.
const STEPS: (u64, u64) = (8, 16);
/// The heavy ball of the first.
const MOMENTUM: f64 = 0.4;
/// Rows of d whitened linear features are cut at so many times √d.
const LINEAR_CUT: f64 = 1.3;

/// The additive regression: its linear part, its rung, and how it divides the budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Additive {
    /// The model that comes first, and the columns that bend.
    pub linear: FullBatch,
    /// How many bends there are.
    pub rung: Rung,
    /// Shares of μ²; they add up to one.
    pub shares: LadderShares,
}

impl Additive {
    /// On this rung. None where the linear model would have nothing to bend: no map of columns, or no weights.
    pub fn new(
        input: LadderInput,
        numbers: Vec<usize>,
        (rung, shares): (Rung, LadderShares),
    ) -> Option<Self> {
        let LadderInput { rows, width, mu, neighbours, .. } = input;
        let design = Design::new(Wanted {
            link: Link::Linear,
            rows,
            width,
            numbers: numbers.len(),
            mu: mu * shares.linear.sqrt(),
            neighbours,
            trees: TREES / shares.linear,
            // Tails come with the bends.
            tails: false,
        });
        let additive =
            Additive { linear: FullBatch { link: Link::Linear, numbers, design }, rung, shares };
        additive.bends().then_some(additive)
    }

    /// How many features a row has with its bends, at most.
    pub fn most_features(&self) -> usize {
        let (rung, numbers) = (self.rung, &self.linear.numbers);
        numbers.len() * (rung.functions() + 3) + rung.pairs(numbers).len() * rung.products().len()
    }

    /// Whether its linear model makes a map of columns and has weights.
    fn bends(&self) -> bool {
        let design = &self.linear.design;
        design.reach == Learnable::Weights && design.columns && !self.linear.numbers.is_empty()
    }
}

impl Algorithm for Additive {
    type Fitted = LinearFit;

    fn sampler(&self, _: Shape) -> Sampler {
        Sampler::FullBatch
    }

    fn stages(&self, shape: Shape, budget: Budget, noise: f64) -> Vec<Stage> {
        let shares = &self.shares;
        let mut stages = self.linear.stages(shape, budget, noise / shares.linear.sqrt());
        let mut add = |name: &str, steps: u64, purpose: &str, share: f64| {
            let each = PlannedRelease::sum(purpose, noise / (share / steps as f64).sqrt());
            stages.push(Stage::new(name, steps, vec![each]));
        };
        add("whitening of the features", 1, LINEAR_MOMENT, shares.linear_moment);
        add("metric of the bends", 1, BENT_MOMENT, shares.moment);
        add("clips of the bends", 2, BENT_NORMS, shares.norms);
        add("first steps of the bends", STEPS.0, FIRST_BENDS, shares.first);
        add("last steps of the bends", STEPS.1, LAST_BENDS, shares.last);
        add("gate of the bends", 1, GAIN, shares.gate);
        stages
    }

    fn check(&self, shape: Shape, budget: Budget) -> Result<(), Error> {
        self.linear.check(shape, budget)?;
        let shares = &self.shares;
        let all = [shares.linear, shares.linear_moment, shares.moment, shares.norms]
            .into_iter()
            .chain([shares.first, shares.last, shares.gate]);
        let paired = self.rung.products().is_empty() || self.linear.numbers.len() <= MOST_PAIRED;
        let good = self.linear.link == Link::Linear
            && self.bends()
            && paired
            && all.into_iter().all(|share| share > 0.0 && share < 1.0);
        Error::ensure(good, "plan", "as it was planned", "one that was changed")
    }

    fn access(&self) -> Access {
        Access::Sums
    }

    fn fit(&self, run: Run<'_, '_>) -> Result<LinearFit, Error> {
        let Run { plan, shape, range, backend, releaser, watch, .. } = run;
        backend.begin(&releaser.draw(plan.sampler))?;
        let unit = TargetScaling::new(Link::Linear, range);
        let linear =
            self.linear.fit_scaled(plan, shape, (unit, range), backend, releaser, watch)?;
        let map = linear.map.clone().expect("the plan asks for a map");
        let mut done = 0;
        let mut step = || {
            done += 1;
            Ok(report(watch, "step of the bends", done, STEPS.0 + STEPS.1 + 2)?)
        };
        let neighbours = plan.budget.neighbours();
        let fit =
            BendFit { rung: self.rung, rows: shape.rows, unit, neighbours, backend, releaser };
        let bends = fit.run(&linear, map, &self.linear.numbers, &mut step)?;
        Ok(LinearFit { bends, ..linear }.in_units(&unit, range))
    }
}

/// A fit of bends on its way, in units of the target's range.
struct BendFit<'a> {
    rung: Rung,
    rows: u64,
    unit: TargetScaling,
    neighbours: quietly_accounting::Neighbours,
    backend: &'a mut dyn Backend,
    releaser: &'a mut Releaser,
}

impl BendFit<'_> {
    /// The bends for what a linear model leaves over; none if they are worth nothing.
    fn run(
        self,
        linear: &LinearFit,
        map: ColumnMap,
        numbers: &[usize],
        step: &mut dyn FnMut() -> Result<(), Error>,
    ) -> Result<Option<FittedBends>, Error> {
        let BendFit { rung, rows, unit, neighbours, backend, releaser } = self;
        let n = rows as f64;
        let products = rung.products().to_vec();
        let bends = Bends::new(map, rung.functions(), rung.pairs(numbers), products);
        let base = Base {
            unit,
            map: linear.map.clone().map(ColumnMap::without_ranks),
            tails: linear.tails.clone(),
            intercept: linear.intercept,
            weights: [&linear.weights[..], &linear.tail_weights].concat(),
        };

        // The metric.
        let own = bends.inputs();
        step()?;
        let first = Square::identity(own);
        let norm = LINEAR_CUT * ((own + 1) as f64).sqrt();
        let (moment, std) =
            second_moment(LINEAR_MOMENT, &bends, alone(&bends, &first), norm, backend, releaser)?;
        let own = whitened(&moment, std, n);
        step()?;
        let features = metric::features(&bends, &own);
        let norm = CUT * metric::squared_norm(rung, &bends).sqrt();
        let (moment, std) =
            second_moment(BENT_MOMENT, &bends, features.clone(), norm, backend, releaser)?;
        let noises = [FIRST_BENDS, LAST_BENDS].map(|release| releaser.noise(release));
        let worth = STEPS.0 as f64 / noises[0].powi(2) + STEPS.1 as f64 / noises[1].powi(2);
        let most = ((bends.inputs() + 1) as f64).powi(2) + 0.001 * n * n * worth;
        let metric = Metric::new(&moment, std, n, most.sqrt());

        // Steps.
        let matrix = metric.matrix(&features);
        let transform = RowTransform::bent(bends.clone(), matrix, Some(base));
        let found = Found { left: Cell::new(1.0), scale: Cell::new(1.0) };
        let noise_of =
            |noise: f64, last: u64| noise / n * (metric.effective_width() / last as f64).sqrt();
        let mut clip = Histograms {
            release: BENT_NORMS,
            phases: vec![(0, noise_of(noises[0], 1)), (STEPS.0, noise_of(noises[1], STEPS.1))],
            rows,
            neighbours,
            clip: 1.0,
            found: &found,
        };
        let mut update = BendSteps::new(n, &found);
        let mut gradients = BendGradients { backend, transform: &transform };
        let all = STEPS.0 + STEPS.1;
        let phases = [(FIRST_BENDS, 0..STEPS.0, MOMENTUM), (LAST_BENDS, STEPS.0..all, 0.0)];
        let mut w = vec![0.0; metric.width()];
        for (release, steps, momentum) in phases {
            let averaged = release == LAST_BENDS;
            update.begin(momentum, averaged);
            let average = if averaged { Average::over(steps.clone()) } else { Average::Last };
            let (clip, update) = (&mut clip, &mut update);
            let mut descent = Descent { release, steps, clip, update, average };
            w = descent.run(w, &mut gradients, releaser, &mut |_| step())?;
        }

        // Shrinkage, and the gate.
        let blocks: Vec<_> = bends.blocks().into_iter().map(|block| block.range).collect();
        let theta = metric.shrunk(&w, &update.noises, &blocks);
        let scale = found.scale.get() / metric.effective_width().max(1.0).sqrt();
        let gate = Gate {
            release: GAIN,
            transform: &transform,
            link: Link::Linear,
            range: (f64::NEG_INFINITY, f64::INFINITY),
            unit: TargetScaling::ITSELF,
            rows: n,
            neighbours,
            base: 0.0,
            scale,
            energy: metric.energy(&theta),
            effective_width: metric.effective_width(),
        };
        let kept = gate.kept(metric.turned(&theta), 0.0, backend, releaser)?;
        let weights = metric::of_rows(&features, &theta);
        Ok((kept > 0.0).then(|| FittedBends::new(bends, weights, kept)))
    }
}

/// A square matrix for the features of the row alone, as rows of a matrix for the bent row.
fn alone(bends: &Bends, own: &Square) -> Vec<f64> {
    let width = bends.width();
    let mut matrix = vec![0.0; own.size * width];
    for (into, row) in matrix.chunks_exact_mut(width).zip(own.entries.chunks_exact(own.size)) {
        into[..own.size].copy_from_slice(row);
    }
    matrix
}

/// The released second moment of bent rows under a matrix, cut to this norm, and the noise on its diagonal.
fn second_moment(
    release: &str,
    bends: &Bends,
    matrix: Vec<f64>,
    norm: f64,
    backend: &mut dyn Backend,
    releaser: &mut Releaser,
) -> Result<(Square, f64), Error> {
    let transform = RowTransform::bent(bends.clone(), matrix, None);
    let size = transform.width();
    let query = SecondMoment { transform, norm };
    let moment = run_query(backend, releaser, &Batch::All, &query)?.sum();
    let (upper, std) = releaser.sum(release, moment)?;
    Ok((Square::symmetric(size, &upper), std))
}
