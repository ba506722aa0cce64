//! Whoever keeps the rows of a table, and answers questions about them.
use std::{ops::Range, sync::Mutex};

use quietly_data::{Picks, Private, Table};

use crate::{
    error::Error,
    pass::{Cached, in_blocks},
    question::{Answer, Kept, Part, Question},
};

/// Numbers that are encoded at a time: they stay in the cache until they are asked.
pub(crate) const PART: usize = 1 << 14;

/// How much memory may be taken to keep rows of a table that somebody else holds: what a reader of files holds at one time.
const KEPT: usize = 24 << 20;

/// Rows, wherever they are: whoever answers for all of them can be asked by a plan.
pub trait Keeper {
    /// The answer of all rows of a step; there is one step, 0, where every row is in all of them.
    ///
    /// # Errors
    ///
    /// If rows cannot be reached. No row can cause an error.
    fn ask(&mut self, step: usize, question: &Question) -> Result<Private<Answer>, Error>;
}

/// A table that is there, encoded, and its rows as they were seen last.
pub(crate) struct Held<'a> {
    table: &'a Private<Table>,
    kept: Private<Kept>,
    threads: usize,
}

impl<'a> Held<'a> {
    pub(crate) fn new(table: &'a Private<Table>, threads: usize) -> Self {
        Held { table, kept: Private::new(None), threads }
    }

    /// A place for rows.
    pub(crate) fn spare(self) -> Private<Option<Cached>> {
        self.kept.map(|kept| kept.map(|(_, cached)| cached))
    }
}

impl Keeper for Held<'_> {
    fn ask(&mut self, _step: usize, question: &Question) -> Result<Private<Answer>, Error> {
        let threads = self.threads;
        Ok(self.table.as_ref().zip(self.kept.as_mut()).map(|(table, kept)| {
            question.of(&mut Part { table, place: 0, these: None, kept, threads })
        }))
    }
}

/// A table in memory that somebody else holds: its rows are encoded anew for every question, and nothing is copied but what fits in
/// [`KEPT`] bytes.
pub(crate) struct Borrowed<'a> {
    picks: Private<Picks<'a>>,
    /// The first parts of the table, as they were seen last.
    kept: Private<Vec<Mutex<Kept>>>,
    threads: usize,
}

impl<'a> Borrowed<'a> {
    pub(crate) fn new(picks: Private<Picks<'a>>, threads: usize) -> Self {
        let slots = |picks: &Picks<'_>| {
            let parts = picks.records().div_ceil(part(picks));
            let width = picks.width() + 1;
            // Each has its own view beside it, which may be a matrix.
            let each = Cached::bytes(part(picks), width) + width * width * size_of::<f64>();
            let most = KEPT / each;
            (0..most.min(parts)).map(|_| Mutex::new(None)).collect()
        };
        Borrowed { kept: picks.as_ref().map(slots), picks, threads }
    }
}

impl Keeper for Borrowed<'_> {
    fn ask(&mut self, _step: usize, question: &Question) -> Result<Private<Answer>, Error> {
        let threads = self.threads;
        Ok(self.picks.as_ref().zip(self.kept.as_ref()).map(|(picks, kept)| {
            let all = |part: Range<usize>| (part.start as u32..part.end as u32).collect();
            ask_picked(picks, picks.records(), all, kept, question, threads)
        }))
    }
}

/// How many records are encoded at a time. A question of d² numbers should be worth its while.
fn part(picks: &Picks<'_>) -> usize {
    (PART / picks.width()).max(64).max(picks.width() / 2)
}

/// Asks some records of a table in memory: a worker for each thread encodes a few and asks them while they are near. There may be a slot for the
/// first parts of them, to be kept for the next question.
pub(crate) fn ask_picked(
    picks: &Picks<'_>,
    count: usize,
    places: impl Fn(Range<usize>) -> Vec<u32> + Sync,
    slots: &[Mutex<Kept>],
    question: &Question,
    threads: usize,
) -> Answer {
    let size = part(picks);
    let start = || (question.nothing(), Table::empty(picks.width()));
    let work = |(all, rows): &mut (Answer, Table), part: Range<usize>| {
        let slot = slots.get(part.start / size);
        let mut slot = slot.map(|slot| slot.lock().expect("a worker has its parts alone"));
        let mut none = None;
        let kept = slot.as_deref_mut().unwrap_or(&mut none);
        if !question.is_of(kept) {
            picks.pick(&places(part), rows);
        }
        all.add(&question.of(&mut Part { table: rows, place: 0, these: None, kept, threads: 1 }));
    };
    let workers = in_blocks(count, size, threads, start, work);
    let mut all = question.nothing();
    workers.iter().for_each(|(answer, _)| all.add(answer));
    all
}
