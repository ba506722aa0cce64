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
use quietly_data::{Private, Table};
use quietly_noise::Stream;

use crate::{
    charge::{Charge, Stage},
    counts::tally,
    descent::{Average, LEVEL, Residual, StepSize, TO_MEDIAN, unclipped},
    error::Error,
    full_batch::{centres, falling, middle, quarters},
    lattice::Lattice,
    linalg::{Square, dot, eigen},
    model::Link,
    pass::{Affine, Bucket, Grid, Query, Rows, Tally, allocate, second_moment},
    plan::Plan,
    progress::{Watch, tell},
    release::{Door, LatticeSum},
    spill::Spill,
    unit::Unit,
};

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
    /// Rows on disk, step by step.
    Disk(Private<Spill>),
}

impl<'a> Feed<'a> {
    /// Gives each row of a table to a step.
    pub(crate) fn memory(
        table: &'a Private<Table>,
        steps: usize,
        stream: &Stream,
        threads: usize,
    ) -> Result<Self, Error> {
        let words = |block: u64| {
            let mut bits =
                stream.bits(block).expect("there are fewer blocks than steps of a stream");
            move || bits.word().expect("a block has fewer words than a stream")
        };
        Ok(Feed::Memory(table.as_ref().map(|table| {
            let rows = allocate(table.target(), steps, words, threads);
            (table, rows)
        })))
    }

    /// Asks every row of a step, as often as the step has parts; parts are added by `add`.
    fn ask<T>(
        &mut self,
        step: usize,
        map: &Affine,
        start: T,
        mut ask: impl FnMut(&mut T, &Rows<'_>),
    ) -> Result<Private<T>, Error> {
        match self {
            Feed::Memory(memory) => Ok(memory.as_ref().map(|(table, steps)| {
                let mut answer = start;
                ask(&mut answer, &Rows::these(table, map, &steps[step]));
                answer
            })),
            Feed::Disk(spill) => Spill::ask(spill, step, start, |answer, table| {
                ask(answer, &Rows::all(table, map));
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
        let start = Tally { sum: Vec::new(), counts: Vec::new() };
        let tally = self.ask(step, map, start, |all: &mut Tally, rows| {
            let part = rows.pass(query, threads);
            if all.sum.is_empty() && all.counts.is_empty() {
                *all = part;
            } else {
                all.sum.iter_mut().zip(part.sum).for_each(|(a, b)| *a = a.saturating_add(b));
                all.counts.iter_mut().zip(part.counts).for_each(|(a, b)| *a += b);
            }
        })?;
        Ok(tally.map(|t| filled(t, query)).split())
    }
}

/// A step without rows has zeros for an answer.
fn filled<L>(mut tally: Tally, query: &Query<'_, L>) -> (Vec<i64>, Vec<u64>)
where
    L: Fn(f64, f64) -> f64 + Sync,
{
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
    let start = (Vec::<f64>::new(), vec![0_u64; grid.bins()]);
    let first =
        rows.ask(now, &plain, start, |(targets, counts): &mut (Vec<f64>, Vec<u64>), rows| {
            targets.extend(rows.targets().iter().map(|y| unit.of(*y)));
            let part = rows.pass(&query, threads).counts;
            counts.iter_mut().zip(part).for_each(|(a, b)| *a += b);
        })?;
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
    let start = vec![0_i64; d * (d + 1) / 2];
    let sum = rows.ask(now, &plain, start, |all: &mut Vec<i64>, rows| {
        let part = second_moment(rows, &lattice, threads);
        all.iter_mut().zip(part).for_each(|(a, b)| *a = a.saturating_add(b));
    })?;
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

/// Columns centred and scaled, and the inverse of their noisy second moment.
struct Space {
    map: Affine,
    shift: Vec<f64>,
    scale: Vec<f64>,
    /// The regularised second moment in the space, over the rows of a step, and its inverse.
    moment: Square,
    inverse: Square,
}

impl Space {
    /// From a noisy second moment over about `rows` rows, with noise `std` on its diagonal.
    fn new(moment: &Square, std: f64, rows: f64) -> Self {
        let d = moment.size;
        let p = d - 1;
        let floor = 0.7 * std * (2.0 * d as f64).sqrt();
        let count = (moment.at(p, p) / CONSTANT / CONSTANT).clamp(0.1 * rows, 10.0 * rows);
        let shift: Vec<f64> =
            (0..p).map(|j| (moment.at(j, p) / CONSTANT / count).clamp(-1.0, 1.0)).collect();
        let spread = |j: usize| {
            let variance = moment.at(j, j) / count - shift[j] * shift[j];
            1.0 / variance.max(floor / count).max(1e-12).sqrt()
        };
        let scale: Vec<f64> = (0..p).map(spread).collect();
        // The same second moment in the new columns, whose constant is 1.
        let centred = |j: usize, k: usize| {
            let (a, b) = (shift.get(j), shift.get(k));
            match (a, b) {
                (Some(a), Some(b)) => (moment.at(j, k) / count - a * b) * scale[j] * scale[k],
                (None, None) => 1.0,
                _ => 0.0,
            }
        };
        let inside = Square::new(d, centred);
        // Noise on an entry is `std` over the count, times the scales of its columns.
        let mean = dot(&scale, &scale) / p.max(1) as f64;
        let blur = (floor / count * mean).clamp(1e-9, 1.0);
        let moment = regular(&inside, blur);
        // Its eigenvalues are at least `blur`, so that only overflow could make this fail.
        let inverse = inverse(&moment).unwrap_or_else(|| Square::identity(d));
        let map = Affine::new(&shift, &scale, 1.0);
        Space { map, shift, scale, moment, inverse }
    }

    /// Newton's direction for a gradient.
    fn solve(&self, gradient: &[f64]) -> Vec<f64> {
        let mut x = vec![0.0; gradient.len()];
        for (k, g) in gradient.iter().enumerate() {
            add(&mut x, self.inverse.row(k), *g);
        }
        x
    }

    /// The noise of a Newton step, root mean square over coordinates, where the gradient's is `std`.
    fn noise(&self, std: f64) -> f64 {
        std * (self.squares() / self.inverse.size as f64).sqrt()
    }

    /// The sum of the inverse's squared eigenvalues.
    fn squares(&self) -> f64 {
        dot(&self.inverse.entries, &self.inverse.entries)
    }

    /// The sum of its eigenvalues.
    fn trace(&self) -> f64 {
        (0..self.inverse.size).map(|k| self.inverse.at(k, k)).sum()
    }

    /// The standard deviation of the scores of rows under these weights, without the constant's.
    fn size(&self, w: &[f64]) -> f64 {
        let p = w.len() - 1;
        let part = |j: usize| w[j] * dot(&self.moment.row(j)[..p], &w[..p]);
        (0..p).map(part).sum::<f64>().max(0.0).sqrt()
    }

    /// The highest clip, in medians, for which the average of the last steps has little noise: 0.8 % of the residuals'
    /// variance.
    fn highest_clip(&self, noise: f64, steps: u64, rows: f64) -> f64 {
        let d = self.inverse.size as f64;
        let one = 0.455 * (noise / rows).powi(2) / steps as f64 * d * self.trace();
        (0.008 / one).sqrt().clamp(1.0, 16.0)
    }

    /// James and Stein's factor, in predictions, for all weights but the constant's.
    fn shrink(&self, mut w: Vec<f64>, noise: f64) -> Vec<f64> {
        let p = w.len() - 1;
        let total = dot(&w, &self.moment.apply(&w)) - w[p] * w[p];
        let noise = noise * noise * self.inverse.size as f64 / self.squares() * self.trace();
        let kept = if total > 0.0 { (1.0 - noise / total).max(0.0) } else { 0.0 };
        w[..p].iter_mut().for_each(|w| *w *= kept);
        w
    }

    /// The intercept and the weights of the table's own columns.
    fn unmap(&self, w: &[f64], centre: f64) -> (f64, Vec<f64>) {
        let weights: Vec<f64> = w.iter().zip(&self.scale).map(|(w, s)| w * s).collect();
        (centre + w[self.shift.len()] - dot(&weights, &self.shift), weights)
    }
}

/// The matrix whose eigenvalues are those of a symmetric `matrix`, or zero where they are negative, plus `blur`.
fn regular(matrix: &Square, blur: f64) -> Square {
    let d = matrix.size;
    let mut regular = matrix.clone();
    // Eigenvalues cost ten times what it costs to see that none of them is negative.
    if root(matrix).is_none() {
        let (values, vectors) = eigen(&matrix.entries, d);
        regular.entries.fill(0.0);
        for (value, vector) in values.iter().zip(vectors.chunks_exact(d)) {
            for (line, v) in regular.entries.chunks_exact_mut(d).zip(vector) {
                add(line, vector, value.max(0.0) * v);
            }
        }
    }
    (0..d).for_each(|k| regular.entries[k * (d + 1)] += blur);
    regular
}

/// Cholesky's upper triangle U with UᵀU = `matrix`, if that is positive definite.
pub(crate) fn root(matrix: &Square) -> Option<Square> {
    let d = matrix.size;
    let mut u = matrix.clone();
    for k in 0..d {
        let (done, below) = u.entries.split_at_mut((k + 1) * d);
        let line = &mut done[k * d + k..];
        let length = line[0].sqrt();
        if !(length.is_finite() && length > 0.0) {
            return None;
        }
        line.iter_mut().for_each(|x| *x /= length);
        for (i, below) in below.chunks_exact_mut(d).enumerate() {
            let line = &line[i + 1..];
            add(&mut below[k + 1 + i..], line, -line[0]);
        }
    }
    Some(u)
}

/// The inverse of a positive definite matrix: V·Vᵀ, where V is the inverse of its root.
fn inverse(matrix: &Square) -> Option<Square> {
    let d = matrix.size;
    let root = root(matrix)?;
    // The rows of Vᵀ, one after the other.
    let mut back = Square::identity(d);
    for i in 0..d {
        let (done, line) = back.entries.split_at_mut(i * d);
        let line = &mut line[..=i];
        for (k, done) in done.chunks_exact(d).enumerate() {
            add(&mut line[..=k], &done[..=k], -root.at(k, i));
        }
        line.iter_mut().for_each(|x| *x /= root.at(i, i));
    }
    let mut inverse = Square { size: d, entries: vec![0.0; d * d] };
    for (k, line) in back.entries.chunks_exact(d).enumerate() {
        for (i, into) in inverse.entries.chunks_exact_mut(d).take(k + 1).enumerate() {
            add(&mut into[..=i], &line[..=i], line[i]);
        }
    }
    for i in 0..d {
        for j in 0..i {
            inverse.entries[j * d + i] = inverse.entries[i * d + j];
        }
    }
    inverse.entries.iter().all(|x| x.is_finite()).then_some(inverse)
}

/// x += factor·y
fn add(x: &mut [f64], y: &[f64], factor: f64) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += factor * y);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Aᵀ·A less a multiple of the identity: definite for none, otherwise not.
    fn matrix(less: f64) -> Square {
        let a = Square::new(7, |i, j| ((i * 5 + j * 3) as f64).sin() + f64::from(u8::from(i == j)));
        let mut product = a.transposed().times(&a);
        (0..7).for_each(|k| product.entries[k * 8] -= less);
        product
    }

    fn near(a: &Square, b: &Square) -> bool {
        a.entries.iter().zip(&b.entries).all(|(a, b)| (a - b).abs() < 1e-9)
    }

    #[test]
    fn an_inverse_is_one() {
        let definite = matrix(0.0);
        assert!(near(&inverse(&definite).unwrap().times(&definite), &Square::identity(7)));
        assert_eq!(inverse(&matrix(1.0)), None);
        let odd = Square { size: 1, entries: vec![f64::NAN] };
        assert_eq!(inverse(&odd), None);
    }

    #[test]
    fn negative_eigenvalues_become_the_blur() {
        for (less, negative) in [(0.0, false), (1.0, true)] {
            let matrix = matrix(less);
            let (values, vectors) = eigen(&matrix.entries, 7);
            assert_eq!(values[0] < 0.0, negative);
            let vectors = Square { size: 7, entries: vectors };
            let wanted = |i: usize, j: usize| -> f64 {
                let part = |k: usize| vectors.at(k, i) * vectors.at(k, j);
                (0..7).map(|k| (values[k].max(0.0) + 0.1) * part(k)).sum()
            };
            assert!(near(&regular(&matrix, 0.1), &Square::new(7, wanted)));
        }
    }
}
