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
        Self::keeping(picks, KEPT, threads)
    }

    /// The same, where so many bytes may be kept.
    fn keeping(picks: Private<Picks<'a>>, bytes: usize, threads: usize) -> Self {
        let slots = |picks: &Picks<'_>| {
            let parts = picks.records().div_ceil(part(picks));
            let width = picks.width() + 1;
            // Each has its own view beside it, which may be a matrix.
            let each = Cached::bytes(part(picks), width) + width * width * size_of::<f64>();
            (0..(bytes / each).min(parts)).map(|_| Mutex::new(None)).collect()
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, FixedSizeListArray, Float64Array, RecordBatch};
    use arrow_schema::{DataType, Field};
    use quietly_data::{Encoding, Schema, Source};

    use super::*;
    use crate::{
        descent::Residual,
        model::Link,
        question::{Bins, Gradients, View},
        unit::Unit,
    };

    /// 3000 rows of 400 numbers, so that there are many parts; some are null records.
    fn source() -> (Source, Encoding) {
        let number = |k: usize| ((k * 7919 % 1009) as f64 / 504.5 - 1.0) * 1.1;
        let numbers = Float64Array::from_iter_values((0..3000 * 400).map(number));
        let item = Arc::new(Field::new("item", DataType::Float64, true));
        let matrix: ArrayRef =
            Arc::new(FixedSizeListArray::new(item, 400, Arc::new(numbers), None));
        let target = |k: usize| if k % 17 == 3 { f64::NAN } else { number(5 * k + 1) };
        let target: ArrayRef = Arc::new(Float64Array::from_iter_values((0..3000).map(target)));
        let batch = RecordBatch::try_from_iter([("x", matrix), ("y", target)]).unwrap();
        let mut names: Vec<String> = (0..400).map(|k| format!("x{k}")).collect();
        let columns: String =
            names.iter().map(|n| format!("{n} = {{ range = [-1, 1] }}\n")).collect();
        let schema = format!("rows = 3000\n[columns]\n{columns}y = {{ range = [-1, 1] }}");
        names.push("y".into());
        let schema = Schema::parse(&schema).unwrap();
        let encoding = Encoding::new(&schema, &names, None, Some("y")).unwrap();
        (Source::in_memory(names, vec![batch]).unwrap(), encoding)
    }

    /// Questions in views that come and go, and such as no view answers.
    fn questions() -> Vec<Question> {
        let turned = |by: f64| {
            View::turned(
                (0..3 * 401).map(|k| by * ((k * 31 % 101) as f64 - 50.0) / 500.0).collect(),
                400,
            )
        };
        let gradients = |view: &View, at: f64| {
            Question::gradients(Gradients {
                view: view.clone(),
                weights: vec![at; 3],
                residual: Some(Residual::approaching(Link::Linear)),
                unit: Unit::ITSELF,
                centre: 0.1,
                clip: Some(0.5),
                thresholds: Some(vec![0.1, 0.2, 0.4]),
            })
        };
        let (one, other) = (turned(1.0), turned(-0.5));
        let targets = Question::targets(Unit::ITSELF, Bins::Sizes(vec![0.25, 0.5]));
        vec![
            targets.clone(),
            gradients(&one, 0.0),
            gradients(&one, 0.2),
            gradients(&other, 0.2).and(targets.clone()),
            targets,
            gradients(&other, -0.1),
            Question::moment(View::plain(400, 0.5), 3.0),
            Question::moment(one.clone(), 3.0),
            gradients(&one, 0.3).and(gradients(&other, 0.3)),
            gradients(&one, 0.4),
        ]
    }

    #[test]
    fn a_borrowed_table_answers_like_one_that_is_held() {
        let (source, encoding) = source();
        let table = source.read(&encoding, 2).unwrap();
        let mut held = Held::new(&table, 2);
        let mut wanted = |question: &Question| held.ask(0, question).unwrap();
        // Nothing is kept, a few parts are, or all.
        for bytes in [0, 5 << 20, 1 << 30] {
            for threads in [1, 3] {
                let picks = source.picks(&encoding).unwrap().unwrap();
                let mut rows = Borrowed::keeping(picks, bytes, threads);
                for question in &questions() {
                    let both = rows.ask(0, question).unwrap().zip(wanted(question));
                    _ = both.map(|(found, wanted)| {
                        assert!(found == wanted && wanted != question.nothing(), "{question:?}");
                    });
                }
            }
        }
    }
}
