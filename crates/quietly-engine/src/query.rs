//! A query: what is summed over the rows of a table, with its sensitivity.
//!
//! A query adds a vector of integers for every unit of privacy, or counts it in one bin. Integers add up to the same in any
//! order, so that the rows may be split over threads, files and machines: every split gives the same bits. A query holds public
//! values alone. Its sum is private until a release has added noise to it.
//!
//! # The unit of privacy
//!
//! Today a unit of privacy is one row. [`Query::add`] is given whole units all the same: a backend never splits the rows of a
//! unit over two calls. What decides privacy is what `add` makes of one unit, so that units with many rows are settled there:
//! combine the rows of a unit, then clip once to the bound that [`Query::outputs`] declares.
use std::any::Any;

use quietly_core::{
    lattice::clamped,
    release::{BoundedSum, Histogram},
};
use quietly_data::{Private, Sparse, Table};
use serde::{Deserialize, Serialize};

use crate::kernels::Bucket;

pub use quietly_core::{release::Norm, release::Sensitivity};

pub use self::{
    clipped_gradients::{ClippedGradients, SecondMoment, TransformedRows},
    column_tree::{ColumnTree, TreeColumns},
    gain::ModelGain,
    histograms::{TargetBins, TargetHistogram, ValueHistogram},
};

mod clipped_gradients;
pub mod column_tree;
mod gain;
mod histograms;

/// What is summed over rows.
pub trait Query: Send + Sync {
    /// What comes out, in order, with its sensitivity. It follows from public values.
    fn outputs(&self) -> Vec<Output>;

    /// Adds what these rows contribute to the totals of all outputs, exactly.
    ///
    /// The rows are whole units of privacy. Each unit adds at most what [`outputs`](Self::outputs) declares, whatever is in its
    /// rows and in the others. The cache belongs to these rows: it holds what an earlier query left there, or nothing.
    fn add(&self, rows: &Rows<'_>, cache: &mut Cache, totals: &mut [i128]);

    /// The query as bytes, for workers in other processes.
    fn encode(&self) -> Vec<u8>;

    /// Whether [`add`](Self::add) needs nothing but this cache, so that the rows behind it need not be read again.
    fn is_served_by(&self, _cache: &Cache) -> bool {
        false
    }
}

impl dyn Query + '_ {
    /// Totals of no rows: one number for every number of every output.
    pub fn zeros(&self) -> Vec<i128> {
        vec![0; size(&self.outputs())]
    }
}

/// Decodes the bytes of [`Query::encode`]; none if no query wrote them. Only the crate that knows all queries can do this.
pub type Decode = fn(&[u8]) -> Option<Box<dyn Query>>;

/// One output of a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Output {
    /// A sum of vectors, one of every unit of privacy.
    Sum {
        /// How many numbers it has.
        len: usize,
        /// What one unit of privacy can add.
        sensitivity: Sensitivity,
    },
    /// How many units of privacy fall into each bin. Each falls into one bin at most.
    Counts {
        /// How many bins there are.
        bins: usize,
    },
}

impl Output {
    /// How many numbers it has.
    pub fn size(&self) -> usize {
        match *self {
            Output::Sum { len, .. } => len,
            Output::Counts { bins } => bins,
        }
    }
}

/// How many numbers all outputs have.
fn size(outputs: &[Output]) -> usize {
    outputs.iter().map(Output::size).sum()
}

/// The rows of a table in memory.
#[derive(Clone, Copy)]
pub enum Dataset<'a> {
    /// Every feature of every row.
    Dense(&'a Table),
    /// Features that are not zero.
    Sparse(&'a Sparse),
}

impl<'a> Dataset<'a> {
    /// How many records there are, null records among them.
    pub fn records(&self) -> usize {
        match self {
            Dataset::Dense(table) => table.rows() + table.nulls().len(),
            Dataset::Sparse(rows) => rows.rows(),
        }
    }

    /// The table.
    ///
    /// # Panics
    ///
    /// If it is sparse: plans refuse sparse tables that their queries cannot read.
    pub fn dense(&self) -> &'a Table {
        match self {
            Dataset::Dense(table) => table,
            Dataset::Sparse(_) => panic!("a plan that reads sparse rows"),
        }
    }
}

/// Some rows of one table, as a query sees them: whole units of privacy.
pub struct Rows<'a> {
    /// The rows.
    pub data: Dataset<'a>,
    /// How many records of the whole table come before the first.
    pub first: u64,
    /// Which of them are meant; all of them without it.
    pub members: Option<&'a Bucket>,
    /// How many threads may work on them.
    pub threads: usize,
}

impl<'a> Rows<'a> {
    /// All rows, of which so many records of the whole table come before.
    pub fn all(data: Dataset<'a>, first: u64, threads: usize) -> Self {
        Rows { data, first, members: None, threads }
    }

    /// The target of every row that is meant.
    pub fn targets(&self) -> &[f64] {
        self.members.map_or(self.data.dense().target(), |these| these.targets())
    }
}

/// Rows in the form that a query reads: whitened in single precision, say, or with their norms.
pub type CachedRows = Box<dyn Any + Send + Sync>;

/// A place where a query leaves rows for the next query over the same rows.
pub struct Cache {
    rows: Option<CachedRows>,
    reused: bool,
}

impl Cache {
    /// A cache that the backend hands to every query over these rows.
    pub fn reused() -> Self {
        Cache { rows: None, reused: true }
    }

    /// A cache for rows that come once: nothing is gained by what only later queries would use.
    pub fn once() -> Self {
        Cache { rows: None, reused: false }
    }

    /// Whether later queries will see what is left here.
    pub fn is_reused(&self) -> bool {
        self.reused
    }

    /// What is there, if it has this form.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.rows.as_ref()?.downcast_ref()
    }

    /// Takes what is there. Rows of another form are dropped, before others are made in their place.
    pub fn take<T: Any>(&mut self) -> Option<T> {
        self.rows.take()?.downcast().ok().map(|rows| *rows)
    }

    /// Leaves rows there.
    pub fn put(&mut self, rows: impl Any + Send + Sync) {
        self.rows = Some(Box::new(rows));
    }
}

/// The totals of a query, which are **private**, and its outputs, which are public.
///
/// The outputs stand outside of [`Private`]: a sensitivity cannot be computed from rows.
pub struct QuerySum {
    outputs: Vec<Output>,
    totals: Private<Vec<i128>>,
}

impl QuerySum {
    /// The sum over no rows.
    pub fn zero(query: &dyn Query) -> Self {
        QuerySum::new(query, Private::new(query.zeros()))
    }

    /// Totals that [`Query::add`] has made, all outputs one after the other.
    pub fn new(query: &dyn Query, totals: Private<Vec<i128>>) -> Self {
        QuerySum { outputs: query.outputs(), totals }
    }

    /// Adds the sum over other rows.
    ///
    /// # Panics
    ///
    /// If it is the sum of another query.
    #[must_use]
    pub fn plus(self, other: QuerySum) -> Self {
        assert_eq!(self.outputs, other.outputs, "sums of one query");
        let both = |(mut totals, more): (Vec<i128>, Vec<i128>)| {
            totals.iter_mut().zip(&more).for_each(|(a, b)| *a += b);
            totals
        };
        QuerySum { totals: self.totals.zip(other.totals).map(both), ..self }
    }

    /// The totals as bytes, sixteen for each number. They are as private as the rows.
    pub fn encode(&self) -> Private<Vec<u8>> {
        self.totals.as_ref().map(|totals| totals.iter().flat_map(|x| x.to_le_bytes()).collect())
    }

    /// From such bytes; none if they are not the totals of `query`.
    pub fn decode(bytes: &[u8], query: &dyn Query) -> Option<Self> {
        let outputs = query.outputs();
        let (numbers, rest) = bytes.as_chunks();
        let fits = rest.is_empty() && numbers.len() == size(&outputs);
        let totals = || numbers.iter().map(|x| i128::from_le_bytes(*x)).collect();
        fits.then(|| QuerySum { totals: Private::new(totals()), outputs })
    }

    /// Its sums and its counts, apart, each in the order of the outputs. Sums are held to ±2⁶².
    pub fn split(self) -> (Vec<BoundedSum>, Vec<Histogram>) {
        let (mut sums, mut counts) = (Vec::new(), Vec::new());
        let mut from = 0;
        for output in self.outputs {
            let range = from..from + output.size();
            from = range.end;
            let part = self.totals.as_ref().map(|totals| &totals[range]);
            match output {
                Output::Sum { sensitivity, .. } => {
                    let values = part.map(|part| part.iter().map(|x| clamped(*x)).collect());
                    sums.push(BoundedSum::new(values, sensitivity));
                }
                Output::Counts { .. } => {
                    let part = part.map(|part| part.iter().map(|x| *x as u64).collect());
                    counts.push(Histogram::new(part));
                }
            }
        }
        (sums, counts)
    }

    /// The sum of a query that has this one output.
    ///
    /// # Panics
    ///
    /// If it has others.
    pub fn sum(self) -> BoundedSum {
        match self.split() {
            (mut sums, counts) if sums.len() == 1 && counts.is_empty() => sums.remove(0),
            _ => panic!("a query for one sum"),
        }
    }

    /// The counts of a query that has this one output.
    ///
    /// # Panics
    ///
    /// If it has others.
    pub fn histogram(self) -> Histogram {
        match self.split() {
            (sums, mut counts) if counts.len() == 1 && sums.is_empty() => counts.remove(0),
            _ => panic!("a query for one histogram"),
        }
    }
}

impl std::fmt::Debug for QuerySum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("QuerySum(..)")
    }
}

/// Several queries in one pass over the rows: the outputs of the first, then those of the next.
pub struct Combined(Vec<(Box<dyn Query>, usize)>);

impl Combined {
    /// What [`encoded`] is told.
    pub const KIND: &str = "combined";

    pub fn new(queries: Vec<Box<dyn Query>>) -> Self {
        let with_size = |query: Box<dyn Query>| {
            let size = size(&query.outputs());
            (query, size)
        };
        Combined(queries.into_iter().map(with_size).collect())
    }

    /// From the body of an encoded query, whose parts `decode` reads.
    pub fn decode(body: &[u8], decode: Decode) -> Option<Self> {
        let parts: Vec<Vec<u8>> = ciborium::from_reader(body).ok()?;
        let queries: Option<Vec<_>> = parts.iter().map(|part| decode(part)).collect();
        Some(Combined::new(queries?))
    }
}

impl Query for Combined {
    fn outputs(&self) -> Vec<Output> {
        self.0.iter().flat_map(|(query, _)| query.outputs()).collect()
    }

    fn add(&self, rows: &Rows<'_>, cache: &mut Cache, totals: &mut [i128]) {
        let mut rest = totals;
        for (query, size) in &self.0 {
            let (own, others) = rest.split_at_mut(*size);
            query.add(rows, cache, own);
            rest = others;
        }
    }

    fn encode(&self) -> Vec<u8> {
        let parts: Vec<Vec<u8>> = self.0.iter().map(|(query, _)| query.encode()).collect();
        encoded(Self::KIND, &parts)
    }

    fn is_served_by(&self, cache: &Cache) -> bool {
        self.0.iter().all(|(query, _)| query.is_served_by(cache))
    }
}

/// The bytes of a query: its kind, the end of a line, and its fields.
pub fn encoded(kind: &str, fields: &impl Serialize) -> Vec<u8> {
    let mut bytes = format!("{kind}\n").into_bytes();
    ciborium::into_writer(fields, &mut bytes).expect("plain fields");
    bytes
}

/// The kind and the fields of such bytes.
pub fn kind_and_fields(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    Some((std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 1..]))
}

/// What [`encoded`] was told of a query.
pub fn fields<T: for<'de> Deserialize<'de>>(fields: &[u8]) -> Option<T> {
    ciborium::from_reader(fields).ok()
}

/// A query from its fields.
pub fn decoded<Q: Query + for<'de> Deserialize<'de> + 'static>(
    fields: &[u8],
) -> Option<Box<dyn Query>> {
    Some(Box::new(ciborium::from_reader::<Q, _>(fields).ok()?))
}

/// Adds sums and then counts to totals.
pub fn add_to(totals: &mut [i128], sums: &[i64], counts: &[u64]) {
    let all = sums.iter().map(|x| i128::from(*x)).chain(counts.iter().map(|x| i128::from(*x)));
    totals.iter_mut().zip(all).for_each(|(total, x)| *total += x);
}
