//! One-pass regression by random allocation: for tables of any size, at the speed of reading them.
//!
//! Each row is in one of T steps, drawn uniformly, secretly and on its own. The first step finds scales, the next the centre of
//! the target, the next the second moment, the rest are a descent: robust first, with a high clip last, averaged. A step is
//! asked one question, so that all rows are read once. A row meets one step only, so the
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
    descent::{Average, LEVEL, Residual, StepSize, TO_MEDIAN, unclipped},
    error::Error,
    full_batch::{centres, falling, middle, quarters, size},
    keeper::{self, Keeper},
    lattice::Lattice,
    linalg::Square,
    model::Link,
    pass::{Bucket, allocate, places},
    plan::Plan,
    progress::{Watch, tell},
    question::{Answer, Bins, Gradients, Part, Question, View},
    release::{Door, LatticeSum},
    rows_used::ROWS_USED,
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
/// Shares of a step's budget: for the target's scale and the row norm; for thresholds in robust steps.
const SCALES: [f64; 2] = [0.6, 0.4];
/// The share of the first step that the number of its rows takes from them.
const COUNT: f64 = 0.05;
const THRESHOLDS: f64 = 0.2;
/// The quantile that is asked for where most rows have one and the same target.
const TAIL: f64 = 0.95;

/// How many steps there are, unless one asks for others.
const STEPS: u64 = 21;

/// How much of the budget's worth a question to one of T steps has, compared with one to all rows: about √T/T, as it sees that
/// part of the rows and random allocation makes noise √T times smaller.
pub(crate) fn efficiency(steps: u64) -> f64 {
    1.0 / (steps as f64).sqrt()
}

/// Which step does what.
pub(crate) struct OnePass {
    robust: u64,
    last: u64,
}

impl OnePass {
    /// So many steps: what is more than a few makes the last ones more.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if there are too few to learn anything, or more than are of use.
    pub(crate) fn new(steps: Option<u64>) -> Result<Self, Error> {
        let steps = steps.unwrap_or(STEPS);
        Error::unless(
            (10..=1000).contains(&steps),
            "steps",
            "from 10 to 1000 for one pass",
            steps,
        )?;
        Ok(OnePass { robust: 4, last: steps - 8 })
    }

    /// How many steps there are: scales, centre, second moment, first threshold, and the descent.
    pub(crate) fn steps(&self) -> u64 {
        4 + self.robust + self.last
    }

    /// The questions of each step, where a step as a whole is 1/noise-GDP for a row that is there or not.
    pub(crate) fn stages(&self, noise: f64, counts: bool) -> Vec<Stage> {
        let sum = |purpose: &str, share: f64| Charge::sum(purpose, noise / share.sqrt());
        // The theorem wants the price of a row that is there or not, under either relation.
        let choice = |purpose: &str, level: f64, share: f64| {
            Charge::quantile(purpose, level, share.sqrt() / noise, Neighbours::AddRemove)
        };
        let [scale, norm] = SCALES.map(|share| if counts { share * (1.0 - COUNT) } else { share });
        let mut scales = vec![choice(SCALE, LEVEL, scale), choice(NORM, 0.5, norm)];
        if counts {
            scales.push(sum(ROWS_USED, COUNT));
        }
        vec![
            Stage::new("scales", 1, scales),
            Stage::new("centre", 1, vec![choice(CENTRE, 0.5, 1.0)]),
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

/// The rows of every step: in memory, or on disk.
#[expect(clippy::large_enum_variant, reason = "there is one of them in a run")]
enum Feed<'a> {
    /// A table, and which of its rows belong to which step.
    Memory(Private<(&'a Table, Vec<Bucket>)>),
    /// A table in memory that somebody else holds, and where the records of each step are: they are encoded when it is their
    /// turn.
    Picked(Private<(Picks<'a>, Vec<Vec<u32>>)>),
    /// Rows on disk, step by step.
    Disk(Private<Spill>),
}

/// Rows that go to steps, and the threads that they are asked with.
pub(crate) struct Steps<'a> {
    feed: Feed<'a>,
    threads: usize,
}

impl<'a> Steps<'a> {
    /// Gives each row of a table to a step.
    pub(crate) fn memory(
        table: &'a Private<Table>,
        steps: usize,
        stream: &Stream,
        threads: usize,
    ) -> Result<Self, Error> {
        let feed = Feed::Memory(table.as_ref().map(|table| {
            let rows = allocate(table, steps, stream, threads);
            (table, rows)
        }));
        Ok(Steps { feed, threads })
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
        let feed = match source.picks(encoding)? {
            Some(picks) => Feed::Picked(picks.map(|picks| {
                let steps = places(picks.records(), steps, stream, threads);
                (picks, steps)
            })),
            None => Feed::Disk(Spill::new(source, encoding, steps, stream, threads, watch)?),
        };
        Ok(Steps { feed, threads })
    }
}

impl Keeper for Steps<'_> {
    fn ask(&mut self, step: usize, question: &Question) -> Result<Private<Answer>, Error> {
        let threads = self.threads;
        match &mut self.feed {
            Feed::Memory(memory) => Ok(memory.as_ref().map(|(table, steps)| {
                let these = Some(&steps[step]);
                question.of(&mut Part { table, place: 0, these, kept: &mut None, threads })
            })),
            Feed::Picked(picked) => Ok(picked.as_ref().map(|(picks, steps)| {
                let these = &steps[step];
                let places = |part: Range<usize>| these[part].to_vec();
                keeper::ask_picked(picks, these.len(), places, &[], question, threads)
            })),
            Feed::Disk(spill) => Spill::ask(spill, step, question.nothing(), |all, table| {
                let part = &mut Part { table, place: 0, these: None, kept: &mut None, threads };
                all.add(&question.of(part));
            }),
        }
    }
}

/// The intercept and the weights, in units of the target's range.
pub(crate) fn fit(
    plan: &Plan,
    rows: &mut dyn Keeper,
    unit: &Unit,
    door: &mut Door,
    watch: &mut Watch<'_>,
) -> Result<(f64, Vec<f64>), Error> {
    let (width, d) = (plan.width, plan.width + 1);
    let layout = OnePass::new(plan.sampler.steps())?;
    let steps = layout.steps();
    let share = plan.rows as f64 / steps as f64;
    let mut at = 0_usize;
    let mut step = |watch: &mut Watch<'_>| {
        at += 1;
        tell(watch, "step", at as u64, steps).map(|()| at - 1)
    };

    // Scales: medians of |y| and of the rows' norms.
    let now = step(watch)?;
    let plain = View::plain(width, CONSTANT);
    let (wide, norms) = (quarters(1.0, -80, 1), crate::full_batch::norms(width));
    let sizes = Question::targets(*unit, Bins::Sizes(wide.clone()));
    let both = sizes.and(Question::norms(plain.clone(), norms.clone()));
    let (sizes, lengths) = door.ask(rows, now, &both)?.map(|a| a.cut(wide.len() + 1)).split();
    let sizes = sizes.map(Answer::counts);
    let count = sizes.as_ref().map(|counts| counts.iter().sum());
    let scale = size(&wide, door.quantile(SCALE, LEVEL, sizes)?);
    let norm = 1.1 * middle(&norms, door.quantile(NORM, 0.5, lengths.map(Answer::counts))?);
    door.count_rows(plan, count)?;

    // The median of y, on a grid of that size.
    let now = step(watch)?;
    let counts = door.ask(rows, now, &Question::targets(*unit, Bins::Centres(scale)))?;
    let centre = centres(scale).0[door.quantile(CENTRE, 0.5, counts.map(Answer::counts))?];
    let centre = if plan.link == Link::Linear { centre } else { 0.0 };

    // The second moment of rows cut to that norm.
    let now = step(watch)?;
    let lattice = Lattice::for_products(norm, d);
    let sum = door.ask(rows, now, &Question::moment(plain, norm))?.map(Answer::sums);
    let bound = (lattice.bound() as f64).powi(2);
    let what = LatticeSum { sum, bound, unit: lattice.step() * lattice.step() };
    let (upper, std) = door.matrix(MOMENT, d, what)?;
    let space = Space::new(&Square::symmetric(d, &upper), std, share);

    // The descent.
    let residual = Residual::approaching(plan.link);
    let mut w = vec![0.0; d];
    let grid = quarters(scale * (d as f64).sqrt(), -40, 8);
    let mut thresholds = grid.clone();
    let mut threshold = 0.0;
    let is_least = |threshold: f64| threshold < grid[1];
    // Whether most rows have one and the same target: the others have all there is to learn, and nothing of them is clipped.
    let mut spiked = false;
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
        // The high clip: as far as noise allows; robust steps clip at the median.
        let factor =
            if last { space.highest_clip(door.noise(LAST), layout.last, share) } else { 1.0 };
        let clip = if spiked { threshold } else { TO_MEDIAN * threshold * factor };
        let clip = clip.clamp(1e-250, 1e250);
        let lattice = Lattice::for_sums(clip, d);
        let question = Question::gradients(Gradients {
            view: space.view.clone(),
            weights: w.clone(),
            residual: Some(residual),
            unit: *unit,
            centre,
            clip: (t > 0).then_some(clip),
            thresholds: (!last).then(|| thresholds.clone()),
        });
        let sums = if t > 0 { d } else { 0 };
        let (sum, counts) = door.ask(rows, now, &question)?.map(|a| a.parted(sums)).split();
        if t > 0 {
            let purpose = if last { LAST } else { ROBUST };
            let what = LatticeSum { sum, bound: lattice.bound() as f64, unit: lattice.step() };
            let (gradient, std) = door.sum(purpose, what)?;
            let left = match () {
                () if spiked => 1.0,
                () if last => unclipped(factor),
                () => 0.5,
            };
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
            // After a first threshold that is none, the next is that of the tail.
            let tail = t == 1 && is_least(threshold);
            let level = if tail { TAIL } else { LEVEL };
            let found = middle(&thresholds, door.quantile(purpose, level, counts)?);
            threshold = if spiked { threshold } else { found };
            spiked |= tail && !is_least(found);
            let wide = t == 0 && is_least(threshold);
            thresholds = if wide { grid.clone() } else { falling(threshold, 12) };
        }
    }
    let w = space.shrink(average.mean(), noise / (layout.last as f64).sqrt());
    Ok(space.unmap(&w, centre))
}
