//! One-pass regression by random allocation: for tables of any size, at the speed of reading them.
//!
//! Each row is in one of T steps, drawn uniformly, secretly and on its own. The first step finds scales, the next the
//! second moment, the rest are a descent: robust first, with a high clip last, averaged. A row meets one step only, so the
//! theorem of random allocation prices the whole run by what a step may cost, about as much noise per step as T steps
//! over all rows would have.
//!
//! Gradients are taken in the table's own columns, centred and scaled, so that a row costs O(d); whitening is applied
//! to their noisy sum, which is post-processing.
use quietly_accounting::Neighbours;
use std::ops::{ControlFlow, Range};

use quietly_data::{Encoding, Picks, Private, Source, Table};
use quietly_noise::Stream;

use self::space::Space;
use crate::{
    charge::{Charge, Stage},
    counts::tally,
    descent::{Average, LEVEL, Residual, StepSize, TO_MEDIAN, unclipped},
    error::Error,
    full_batch::{centres, falling, middle, quarters},
    lattice::Lattice,
    linalg::Square,
    model::Link,
    pass::{Affine, Bucket, Grid, Query, Rows, Tally, allocate, in_blocks, places, second_moment},
    plan::Plan,
    progress::{Watch, tell},
    release::{Door, LatticeSum},
    spill::Spill,
    unit::Unit,
};

mod space;

const SCALE: &str = "scale of the target";
const CENTRE: &str = "centre of the target";
const NORM: &str = "norm of the rows";
const MOMENT: &str = "second moment";
const FIRST: &str = "first threshold";
const ROBUST: &str = "gradient, clipped at the median";
const THRESHOLD: &str = "threshold";
const LAST: &str = "gradient, last steps";

/// The value of the constant feature.
const CONSTANT: f64 = 0.5;
/// Shares of a step's budget: for the target's scale, its centre and the row norm; for thresholds in robust steps.
const SCALES: [f64; 3] = [0.4, 0.3, 0.3];
const THRESHOLDS: f64 = 0.2;

/// How much of the budget's worth a question to one step has, compared with one to all rows: about √20/20, as a step
/// sees a twentieth of the rows and random allocation makes noise √20 times smaller.
pub(crate) const EFFICIENCY: f64 = 0.22;

/// Which step does what.
pub(crate) struct OnePass {
    robust: u64,
    last: u64,
}

impl OnePass {
    /// Steps for about `rows` rows.
    pub(crate) fn new(_rows: u64, _width: usize, _mu: f64) -> Self {
        OnePass { robust: 4, last: 13 }
    }

    /// How many steps there are: scales, second moment, first threshold, and the descent.
    pub(crate) fn steps(&self) -> u64 {
        3 + self.robust + self.last
    }

    /// The questions of each step, where a step as a whole is 1/noise-GDP for a row that is there or not.
    pub(crate) fn stages(&self, noise: f64) -> Vec<Stage> {
        let sum = |purpose: &str, share: f64| Charge::sum(purpose, noise / share.sqrt());
        // The theorem wants the price of a row that is there or not, under either relation.
        let choice = |purpose: &str, level: f64, share: f64| {
            Charge::quantile(purpose, level, share.sqrt() / noise, Neighbours::AddRemove)
        };
        vec![
            Stage::new(
                "scales",
                1,
                vec![
                    choice(SCALE, LEVEL, SCALES[0]),
                    choice(CENTRE, 0.5, SCALES[1]),
                    choice(NORM, 0.5, SCALES[2]),
                ],
            ),
            Stage::new("whitening", 1, vec![sum(MOMENT, 1.0)]),
            Stage::new("scale", 1, vec![choice(FIRST, LEVEL, 1.0)]),
            Stage::new(
                "robust steps",
                self.robust,
                vec![sum(ROBUST, 1.0 - THRESHOLDS), choice(THRESHOLD, LEVEL, THRESHOLDS)],
            ),
            Stage::new("last steps", self.last, vec![sum(LAST, 1.0)]),
        ]
    }
}

/// A sum and counts, apart.
type Answers = (Private<Vec<i64>>, Private<Vec<u64>>);

/// The rows of every step: in memory, or on disk.
pub(crate) enum Feed<'a> {
    /// A table, and which of its rows belong to which step.
    Memory(Private<(&'a Table, Vec<Bucket>)>),
    /// A table in memory that somebody else holds: the rows of a step are encoded when it is their turn.
    Picked(Private<Picked<'a>>),
    /// Rows on disk, step by step.
    Disk(Private<Spill>),
}

/// A table, and where the records of every step are.
pub(crate) struct Picked<'a> {
    picks: Picks<'a>,
    steps: Vec<Vec<u32>>,
}

/// Numbers that are encoded at a time: they stay in the cache until they are asked.
const PART: usize = 1 << 14;

impl<'a> Feed<'a> {
    /// Gives each row of a table to a step.
    pub(crate) fn memory(
        table: &'a Private<Table>,
        steps: usize,
        stream: &Stream,
        threads: usize,
    ) -> Result<Self, Error> {
        Ok(Feed::Memory(table.as_ref().map(|table| {
            let rows = allocate(table, steps, stream, threads);
            (table, rows)
        })))
    }

    /// Gives each record of a source to a step: those of a table in memory stay where they are, others are kept on disk.
    ///
    /// `watch` is told how many bytes have been read.
    pub(crate) fn read(
        source: &'a Source,
        encoding: &Encoding,
        steps: usize,
        stream: &Stream,
        threads: usize,
        watch: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Self, Error> {
        match source.picks(encoding)? {
            Some(picks) => Ok(Feed::Picked(picks.map(|picks| {
                let steps = places(picks.records(), steps, stream, threads);
                Picked { picks, steps }
            }))),
            None => Ok(Feed::Disk(Spill::new(source, encoding, steps, stream, threads, watch)?)),
        }
    }

    /// Asks every row of a step. It may come in parts: each is asked with so many threads, and answers are added up.
    fn ask<T: Send>(
        &mut self,
        step: usize,
        map: &Affine,
        threads: usize,
        ask: impl Fn(&Rows<'_>, usize) -> T + Sync,
        add: impl Fn(&mut T, T) + Sync,
    ) -> Result<Private<Option<T>>, Error> {
        let join = |all: &mut Option<T>, part: T| match all {
            Some(all) => add(all, part),
            None => *all = Some(part),
        };
        match self {
            Feed::Memory(memory) => Ok(memory
                .as_ref()
                .map(|(table, steps)| Some(ask(&Rows::these(table, map, &steps[step]), threads)))),
            // A worker for each thread, which encodes a few rows and asks them while they are near.
            Feed::Picked(picked) => Ok(picked.as_mut().map(|Picked { picks, steps }| {
                let (places, width) = (std::mem::take(&mut steps[step]), picks.width());
                let start = || (None, Table::empty(width));
                let work = |(all, rows): &mut (Option<T>, Table), part: Range<usize>| {
                    picks.pick(&places[part], rows);
                    join(all, ask(&Rows::all(rows, map), 1));
                };
                let part = (PART / width).max(64);
                let workers = in_blocks(places.len(), part, threads, start, work);
                let mut all = None;
                workers.into_iter().filter_map(|(part, _)| part).for_each(|p| join(&mut all, p));
                all
            })),
            Feed::Disk(spill) => Spill::ask(spill, step, None, |all, table| {
                join(all, ask(&Rows::all(table, map), threads));
            }),
        }
    }

    /// Tallies a query over the rows of a step.
    fn tally<L: Fn(f64, f64) -> f64 + Sync>(
        &mut self,
        step: usize,
        map: &Affine,
        query: &Query<'_, L>,
        threads: usize,
    ) -> Result<Answers, Error> {
        let ask = |rows: &Rows<'_>, threads| rows.pass(query, threads);
        let tally = self.ask(step, map, threads, ask, |all, part| {
            add_up(&mut all.sum, part.sum);
            all.counts.iter_mut().zip(part.counts).for_each(|(a, b)| *a += b);
        })?;
        Ok(tally.map(|tally| filled(tally, query)).split())
    }
}

fn add_up(all: &mut [i64], part: Vec<i64>) {
    all.iter_mut().zip(part).for_each(|(a, b)| *a = a.saturating_add(b));
}

/// A step without rows has zeros for an answer.
fn filled<L>(tally: Option<Tally>, query: &Query<'_, L>) -> (Vec<i64>, Vec<u64>)
where
    L: Fn(f64, f64) -> f64 + Sync,
{
    let mut tally = tally.unwrap_or(Tally { sum: Vec::new(), counts: Vec::new() });
    if query.clip.is_some() {
        tally.sum.resize(query.weights.len(), 0);
    }
    if let Some(grid) = query.grid {
        tally.counts.resize(grid.bins(), 0);
    }
    (tally.sum, tally.counts)
}

/// The intercept and the weights, in units of the target's range.
pub(crate) fn fit(
    plan: &Plan,
    mut rows: Feed<'_>,
    unit: &Unit,
    door: &mut Door,
    threads: usize,
    watch: &mut Watch<'_>,
) -> Result<(f64, Vec<f64>), Error> {
    let (width, d) = (plan.width, plan.width + 1);
    let layout = OnePass::new(plan.rows, width, 0.0);
    let steps = layout.steps();
    let share = plan.rows as f64 / steps as f64;
    let mut at = 0_usize;
    let mut step = |watch: &mut Watch<'_>| {
        at += 1;
        tell(watch, "step", at as u64, steps).map(|()| at - 1)
    };

    // Scales: medians of |y|, of y, and of the rows' norms. One reading of the rows serves all three: the second median
    // is looked for on a grid that depends on the first, so values are counted on the finest grid of both kinds.
    let now = step(watch)?;
    let plain = Affine::identity(width, CONSTANT);
    let norms = crate::full_batch::norms(width);
    let grid = Grid::new(norms.clone());
    let zero = vec![0.0; d];
    let query = Query { weights: &zero, residual: |_, _| 1.0, clip: None, grid: Some(&grid) };
    let ask = |rows: &Rows<'_>, threads| {
        let targets: Vec<f64> = rows.targets().iter().map(|y| unit.of(*y)).collect();
        (targets, rows.pass(&query, threads).counts)
    };
    let first = rows.ask(now, &plain, threads, ask, |all, part| {
        all.0.extend(part.0);
        all.1.iter_mut().zip(part.1).for_each(|(a, b)| *a += b);
    })?;
    let first = first.map(|first| first.unwrap_or((Vec::new(), vec![0; grid.bins()])));
    let (targets, counts) = first.split();
    let wide = quarters(1.0, -80, 1);
    let sizes = Grid::new(wide.clone());
    let bin = |y: f64| sizes.bin(y.abs());
    let tallied = targets.as_ref().map(|y| tally(y, sizes.bins(), bin, threads));
    let scale = middle(&wide, door.quantile(SCALE, LEVEL, tallied)?);
    let (places, bin) = centres(scale);
    let tallied = targets.as_ref().map(|y| tally(y, places.len() + 1, bin, threads));
    let centre = places[door.quantile(CENTRE, 0.5, tallied)?];
    let centre = if plan.link == Link::Linear { centre } else { 0.0 };
    let norm = 1.1 * middle(&norms, door.quantile(NORM, 0.5, counts)?);
    let y = |raw: f64| unit.of(raw) - centre;

    // The second moment of rows cut to that norm.
    let now = step(watch)?;
    let lattice = Lattice::for_products(norm, d);
    let ask = |rows: &Rows<'_>, threads| second_moment(rows, &lattice, threads);
    let sum = rows.ask(now, &plain, threads, ask, |all, part| add_up(all, part))?;
    let sum = sum.map(|sum| sum.unwrap_or(vec![0; d * (d + 1) / 2]));
    let bound = (lattice.bound() as f64).powi(2);
    let what = LatticeSum { sum, bound, unit: lattice.step() * lattice.step() };
    let (upper, std) = door.matrix(MOMENT, d, what)?;
    let space = Space::new(&Square::symmetric(d, &upper), std, share);

    // The descent.
    let residual = Residual::approaching(plan.link);
    let mut w = vec![0.0; d];
    let mut thresholds = quarters(scale * (d as f64).sqrt(), -40, 8);
    let mut threshold = 0.0;
    let mut stepping = StepSize::new(vec![1.0; d]);
    let mut average = Average::new(d);
    let mut noise = 0.0;
    for t in 0..=layout.robust + layout.last {
        let now = step(watch)?;
        let last = t > layout.robust;
        let residual = if t > layout.robust + layout.last / 2 {
            Residual::polishing(plan.link)
        } else {
            residual
        };
        let of = |u: f64, raw: f64| residual.of(u, y(raw));
        let grid = Grid::new(thresholds.clone());
        // The high clip: as far as noise allows; robust steps clip at the median.
        let factor =
            if last { space.highest_clip(door.noise(LAST), layout.last, share) } else { 1.0 };
        let clip = Lattice::for_sums((TO_MEDIAN * threshold * factor).clamp(1e-250, 1e250), d);
        let query = Query {
            weights: &w,
            residual: of,
            clip: (t > 0).then_some(&clip),
            grid: (!last).then_some(&grid),
        };
        let (sum, counts) = rows.tally(now, &space.map, &query, threads)?;
        if t > 0 {
            let purpose = if last { LAST } else { ROBUST };
            let what = LatticeSum { sum, bound: clip.bound() as f64, unit: clip.step() };
            let (gradient, std) = door.sum(purpose, what)?;
            let left = if last { unclipped(factor) } else { 0.5 };
            let far = 1.0 / left / share;
            let gradient: Vec<f64> = gradient.iter().map(|g| g * far).collect();
            let plain = space.solve(&gradient);
            let direction = residual.newton(&w, &gradient, plain, space.size(&w));
            noise = space.noise(std * far * residual.stretch());
            stepping.go(&mut w, direction, noise, 0.0);
        }
        if last {
            average.take(&w);
        } else {
            let purpose = if t == 0 { FIRST } else { THRESHOLD };
            threshold = middle(&thresholds, door.quantile(purpose, LEVEL, counts)?);
            thresholds = falling(threshold, 12);
        }
    }
    let w = space.shrink(average.mean(), noise / (layout.last as f64).sqrt());
    Ok(space.unmap(&w, centre))
}
