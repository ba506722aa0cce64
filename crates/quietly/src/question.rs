//! Questions to the rows of a table, as data: where the rows are does not matter.
//!
//! Every answer is a sum over rows of integers, to which a row adds what it would add alone. So a table may be asked in parts,
//! wherever they are and in any order: answers are added up, exactly. Questions hold public values, and the coins of a step where it sees
//! a sample, which are for workers alone; answers are private until the door has added noise to them.
use quietly_data::Table;
use serde::{Deserialize, Serialize};

use crate::{
    convex::Asked as Convex,
    counts::tally,
    descent::Residual,
    full_batch::centres,
    lattice::{Lattice, clamped},
    pass::{Affine, Bucket, Cached, Grid, Linear, Query, Rows, Tally, second_moment},
    unit::Unit,
};

/// What is asked of every row of a table. Nothing in it is private, but it may hold the coins of a sample, which are secret and
/// not printed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question(Vec<Ask>);

/// Sums over rows, exactly. They are **private**: only noise makes them public.
#[derive(Clone, Default, PartialEq)]
pub struct Answer(Vec<i128>);

/// One of the things that are asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Ask {
    /// How many targets lie in each bin.
    Targets { unit: Unit, bins: Bins },
    /// How many first features, times `scale`, lie in each bin between these thresholds.
    Values { scale: f64, thresholds: Vec<f64> },
    /// Σ z zᵀ over rows z, each scaled down to this norm: the upper triangle.
    Moment { view: View, norm: f64 },
    /// Σ of gradients, and how many of their norms lie in each bin.
    Gradients(Gradients),
    /// What a convex method asks.
    Convex(Convex),
}

/// Bins of targets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Bins {
    /// Of their sizes, between these thresholds.
    Sizes(Vec<f64>),
    /// Of themselves, as [`centres`] says for this scale.
    Centres(f64),
}

/// A row z with target y has the gradient c·z, where c is its residual at ⟨z, weights⟩ and y; or z itself, without a residual.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Gradients {
    pub(crate) view: View,
    pub(crate) weights: Vec<f64>,
    pub(crate) residual: Option<Residual>,
    pub(crate) unit: Unit,
    /// What is taken from a target, in its units.
    pub(crate) centre: f64,
    /// The norm that gradients are cut to; without one there is no sum.
    pub(crate) clip: Option<f64>,
    /// The ends of the bins that norms are counted in before they are cut.
    pub(crate) thresholds: Option<Vec<f64>>,
}

/// A public map of rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct View {
    map: Map,
    /// Whether transformed rows are rounded to single precision, as those are that are kept.
    single: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Map {
    /// Features shifted and scaled, and a constant after them.
    Affine { shift: Vec<f64>, scale: Vec<f64>, constant: f64 },
    /// A matrix times the row and 1.
    Linear { matrix: Vec<f64>, width: usize },
}

impl View {
    /// Rows as they are, with a constant feature, read once.
    pub(crate) fn plain(width: usize, constant: f64) -> Self {
        View::shifted(vec![0.0; width], vec![1.0; width], constant)
    }

    /// Features shifted and scaled, with a constant feature, read once.
    pub(crate) fn shifted(shift: Vec<f64>, scale: Vec<f64>, constant: f64) -> Self {
        View { map: Map::Affine { shift, scale, constant }, single: false }
    }

    /// Features scaled alike, with a constant feature, kept.
    pub(crate) fn scaled(width: usize, scale: f64, constant: f64) -> Self {
        let (shift, scale) = (vec![0.0; width], vec![scale; width]);
        View { map: Map::Affine { shift, scale, constant }, single: true }
    }

    /// A matrix, whose rows lie one after the other, times a row of `width` features and 1; kept.
    pub(crate) fn turned(matrix: Vec<f64>, width: usize) -> Self {
        View { map: Map::Linear { matrix, width }, single: true }
    }

    /// How many features a row has in this view.
    fn width(&self) -> usize {
        match &self.map {
            Map::Affine { shift, .. } => shift.len() + 1,
            Map::Linear { matrix, width } => matrix.len() / (width + 1),
        }
    }

    /// The rows of a table, kept, in the place of others.
    pub(crate) fn cached(&self, spare: Option<Cached>, table: &Table, threads: usize) -> Cached {
        match &self.map {
            Map::Affine { shift, scale, constant } => {
                Cached::again(spare, table, &Affine::new(shift, scale, *constant), threads)
            }
            Map::Linear { matrix, width } => {
                let map = Linear::new(*width, matrix);
                Cached::again(spare, table, &map, threads)
            }
        }
    }

    /// The map for rows that are not kept.
    fn affine(&self) -> Affine {
        match &self.map {
            Map::Affine { shift, scale, constant } => Affine::new(shift, scale, *constant),
            Map::Linear { .. } => unreachable!("rows in a turned view are kept"),
        }
    }
}

/// Rows to be asked.
pub(crate) struct Part<'a> {
    pub(crate) table: &'a Table,
    /// How many records of the whole table come before.
    pub(crate) place: u64,
    /// Which of them, if not all.
    pub(crate) these: Option<&'a Bucket>,
    /// All of them in some view: those that one question was asked of may serve the next.
    pub(crate) kept: &'a mut Kept,
    pub(crate) threads: usize,
}

/// All rows of a table in some view.
pub(crate) type Kept = Option<(View, Cached)>;

impl Part<'_> {
    fn rows<'b>(&'b self, map: &'b Affine) -> Rows<'b> {
        match self.these {
            Some(these) => Rows::these(self.table, map, these),
            None => Rows::all(self.table, map),
        }
    }

    fn targets(&self) -> &[f64] {
        self.these.map_or(self.table.target(), |these| these.targets())
    }

    fn in_view(&mut self, view: &View) -> &Cached {
        assert!(self.these.is_none(), "rows that are kept are all rows");
        let there = self.kept.as_ref().is_some_and(|(kept, _)| kept == view);
        if !there {
            let spare = self.kept.take().map(|(_, cached)| cached);
            *self.kept = Some((view.clone(), view.cached(spare, self.table, self.threads)));
        }
        &self.kept.as_ref().expect("just made").1
    }
}

impl Question {
    /// How many targets lie in each bin.
    pub(crate) fn targets(unit: Unit, bins: Bins) -> Self {
        Question(vec![Ask::Targets { unit, bins }])
    }

    /// How many first features, times `scale`, lie in each bin.
    pub(crate) fn values(scale: f64, thresholds: Vec<f64>) -> Self {
        Question(vec![Ask::Values { scale, thresholds }])
    }

    /// The second moment of rows scaled down to a norm.
    pub(crate) fn moment(view: View, norm: f64) -> Self {
        Question(vec![Ask::Moment { view, norm }])
    }

    /// The sum of gradients, and how many of their norms lie in each bin.
    pub(crate) fn gradients(gradients: Gradients) -> Self {
        Question(vec![Ask::Gradients(gradients)])
    }

    /// What a convex method asks.
    pub(crate) fn convex(convex: Convex) -> Self {
        Question(vec![Ask::Convex(convex)])
    }

    /// How many norms of rows lie in each bin.
    pub(crate) fn norms(view: View, thresholds: Vec<f64>) -> Self {
        Question::gradients(Gradients {
            weights: vec![0.0; view.width()],
            view,
            residual: None,
            unit: Unit::ITSELF,
            centre: 0.0,
            clip: None,
            thresholds: Some(thresholds),
        })
    }

    /// Both at once: the answer is that to the first, and then that to the second.
    #[must_use]
    pub(crate) fn and(mut self, other: Question) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Whether all that is asked is asked of rows that are kept like this.
    pub(crate) fn is_of(&self, kept: &Kept) -> bool {
        kept.as_ref().is_some_and(|(view, _)| self.0.iter().all(|ask| ask.view() == Some(view)))
    }

    /// The answer of a table without rows.
    pub fn nothing(&self) -> Answer {
        Answer(vec![0; self.0.iter().map(Ask::length).sum()])
    }

    /// The answer of all rows of a small table, whose records come after so many others.
    pub(crate) fn of_table(&self, table: &Table, place: u64) -> Answer {
        self.of(&mut Part { table, place, these: None, kept: &mut None, threads: 1 })
    }

    pub(crate) fn of(&self, part: &mut Part<'_>) -> Answer {
        Answer(self.0.iter().flat_map(|ask| ask.of(part)).collect())
    }
}

impl Ask {
    /// The view in which rows are kept to be asked this.
    fn view(&self) -> Option<&View> {
        match self {
            Ask::Moment { view, .. } | Ask::Gradients(Gradients { view, .. }) => Some(view),
            Ask::Targets { .. } | Ask::Values { .. } | Ask::Convex(_) => None,
        }
        .filter(|view| view.single)
    }

    /// How many numbers the answer has.
    fn length(&self) -> usize {
        match self {
            Ask::Targets { bins: Bins::Sizes(thresholds), .. } => thresholds.len() + 1,
            Ask::Targets { bins: Bins::Centres(scale), .. } => centres(*scale).0.len() + 1,
            Ask::Values { thresholds, .. } => thresholds.len() + 1,
            Ask::Moment { view, .. } => view.width() * (view.width() + 1) / 2,
            Ask::Gradients(Gradients { weights, clip, thresholds, .. }) => {
                clip.map_or(0, |_| weights.len()) + thresholds.as_ref().map_or(0, |t| t.len() + 1)
            }
            Ask::Convex(asked) => asked.length(),
        }
    }

    fn of(&self, part: &mut Part<'_>) -> Vec<i128> {
        let threads = part.threads;
        let (sums, counts) = match self {
            Ask::Targets { unit, bins: Bins::Sizes(thresholds) } => {
                let grid = Grid::new(thresholds.clone());
                let bin = |y: f64| grid.bin(unit.of(y).abs());
                (vec![], tally(part.targets(), grid.bins(), bin, threads))
            }
            Ask::Targets { unit, bins: Bins::Centres(scale) } => {
                let (places, bin) = centres(*scale);
                let bin = |y: f64| bin(unit.of(y));
                (vec![], tally(part.targets(), places.len() + 1, bin, threads))
            }
            Ask::Values { scale, thresholds } => {
                assert!(part.these.is_none(), "values of all rows");
                let mut counts = vec![0; thresholds.len() + 1];
                for row in part.table.features().chunks_exact(part.table.width()) {
                    counts[thresholds.partition_point(|&end| end < row[0] * scale)] += 1;
                }
                (vec![], counts)
            }
            Ask::Moment { view, norm } => {
                let lattice = Lattice::for_products(*norm, view.width());
                let sum = match view.single {
                    true => second_moment(part.in_view(view), &lattice, threads),
                    false => second_moment(&part.rows(&view.affine()), &lattice, threads),
                };
                (sum, vec![])
            }
            Ask::Gradients(asked) => {
                let (unit, centre) = (asked.unit, asked.centre);
                let tally = match asked.residual {
                    None => asked.of(part, |_, _| 1.0),
                    Some(residual) => {
                        asked.of(part, |u, raw| residual.of(u, unit.of(raw) - centre))
                    }
                };
                (tally.sum, tally.counts)
            }
            Ask::Convex(asked) => asked.of(part.table, part.place, part.threads),
        };
        sums.into_iter().map(i128::from).chain(counts.into_iter().map(i128::from)).collect()
    }
}

impl Gradients {
    fn of(&self, part: &mut Part<'_>, residual: impl Fn(f64, f64) -> f64 + Sync) -> Tally {
        let clip = self.clip.map(|clip| Lattice::for_sums(clip, self.weights.len()));
        let grid = self.thresholds.clone().map(Grid::new);
        let (clip, grid, threads) = (clip.as_ref(), grid.as_ref(), part.threads);
        let query = Query { weights: &self.weights, residual, clip, grid };
        match self.view.single {
            true => part.in_view(&self.view).pass(&query, threads),
            false => part.rows(&self.view.affine()).pass(&query, threads),
        }
    }
}

impl Answer {
    /// Adds what another part of the table says.
    ///
    /// # Panics
    ///
    /// If it answers another question.
    pub fn add(&mut self, other: &Answer) {
        assert_eq!(self.0.len(), other.0.len(), "answers to one question");
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a += b);
    }

    /// Its numbers, sixteen bytes each. They are as private as the rows.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|x| x.to_le_bytes()).collect()
    }

    /// From such bytes; none if they are not an answer to `question`.
    pub fn from_bytes(bytes: &[u8], question: &Question) -> Option<Self> {
        let (numbers, rest) = bytes.as_chunks();
        let fits = rest.is_empty() && numbers.len() == question.nothing().0.len();
        fits.then(|| Answer(numbers.iter().map(|x| i128::from_le_bytes(*x)).collect()))
    }

    /// The first `sums` of them as sums, within ±2⁶², and the others as counts.
    pub(crate) fn parted(self, sums: usize) -> (Vec<i64>, Vec<u64>) {
        let counts = self.0[sums..].iter().map(|x| *x as u64).collect();
        (self.0[..sums].iter().map(|x| clamped(*x)).collect(), counts)
    }

    pub(crate) fn sums(self) -> Vec<i64> {
        let all = self.0.len();
        self.parted(all).0
    }

    pub(crate) fn counts(self) -> Vec<u64> {
        self.parted(0).1
    }

    /// The first numbers, and the others.
    pub(crate) fn cut(mut self, first: usize) -> (Answer, Answer) {
        let rest = self.0.split_off(first);
        (self, Answer(rest))
    }
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Answer(..)")
    }
}
