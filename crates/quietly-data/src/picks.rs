//! Rows of a table in memory, picked by their places: what is not picked is not touched, and nothing else is copied.
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, NullArray, RecordBatch, UInt32Array};
use arrow_select::take::take;

use crate::{
    Encoding, Error, Private, Source, Table,
    columns::Tile,
    csr, matrix, memory,
    plan::{Cell, Plan},
    source::Layout,
};

/// A table in memory whose rows are encoded when they are asked for.
pub struct Picks<'a> {
    plan: Plan,
    batches: &'a [RecordBatch],
    /// How many records there are before each batch, and in all.
    starts: Vec<usize>,
    /// How many columns of the table each column of a batch stands for.
    widths: Vec<usize>,
    /// Whether a feature may come from a category.
    categories: bool,
}

impl Source {
    /// The rows of a table in memory, to be encoded a few at a time; none if it is not in memory, or has 2³² records.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn picks(&self, encoding: &Encoding) -> Result<Option<Private<Picks<'_>>>, Error> {
        let plan = Plan::new(encoding, self.columns())?;
        self.check_types(&plan)?;
        let [input] = self.inputs() else { return Ok(None) };
        let Layout::Memory(memory) = &input.layout else { return Ok(None) };
        let batches = memory.batches();
        let mut starts = vec![0];
        for batch in batches {
            starts.push(starts[starts.len() - 1] + batch.num_rows());
        }
        if u32::try_from(starts[batches.len()]).is_err() {
            return Ok(None);
        }
        let width = |batch| memory::widths(batch, plan.cells.len());
        let widths = batches.first().map(width).unwrap_or_default();
        let categories = plan.cells.iter().any(|cell| matches!(cell, Cell::Category(_)));
        Ok(Some(Private::new(Picks { plan, batches, starts, widths, categories })))
    }
}

impl Picks<'_> {
    /// How many records there are, null records among them.
    pub fn records(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    /// How many features a row has.
    pub fn width(&self) -> usize {
        self.plan.width
    }

    /// Encodes the records at these places, which ascend, over what was in `table`. Null records are left out.
    ///
    /// # Panics
    ///
    /// If there is no record at a place, which is a bug in the caller.
    pub fn pick(&self, places: &[u32], table: &mut Table) {
        let width = self.plan.width;
        let (features, target) = table.restart(width, places.len());
        // All but categories write every number.
        if self.categories {
            features.fill(0.0);
        }
        target.fill(0.0);
        let mut kept = vec![true; places.len()];
        let (mut batch, mut done) = (0, 0);
        let mut rows = Vec::with_capacity(places.len());
        while done < places.len() {
            while self.starts[batch + 1] <= places[done] as usize {
                batch += 1;
            }
            let (start, end) = (self.starts[batch], self.starts[batch + 1]);
            let here = places[done..].iter().take_while(|p| (**p as usize) < end);
            rows.clear();
            rows.extend(here.map(|p| p - start as u32));
            let next = done + rows.len();
            let tile = &mut Tile {
                width,
                features: &mut features[done * width..next * width],
                target: &mut target[done..next],
                kept: &mut kept[done..next],
            };
            self.fill(&self.batches[batch], &rows, tile);
            done = next;
        }
        if kept.contains(&false) {
            for (y, _) in target.iter_mut().zip(&kept).filter(|(_, kept)| !**kept) {
                *y = f64::NAN;
            }
            table.leave_out_nulls();
        }
    }

    /// Fills a tile with rows of a batch.
    fn fill(&self, batch: &RecordBatch, rows: &[u32], tile: &mut Tile<'_>) {
        let mut cells = &self.plan.cells[..];
        let mut index = None;
        for (column, width) in batch.columns().iter().zip(&self.widths) {
            let (here, rest) = cells.split_at(*width);
            cells = rest;
            if here.iter().all(|cell| matches!(cell, Cell::Skip)) {
                continue;
            }
            if matrix::fill(tile, column, here, |i| rows[i] as usize) {
                continue;
            }
            let index = index.get_or_insert_with(|| UInt32Array::from(rows.to_vec()));
            // Types were checked before: those that can be read can be taken from.
            let none = |_| Arc::new(NullArray::new(rows.len())) as ArrayRef;
            let part = take(column, index, None).unwrap_or_else(none);
            match csr::values(column.data_type()) {
                Some(_) => csr::fill(tile, &part, here, self.plan.nulls),
                None => tile.fill(&part, &here[0]),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{FixedSizeListArray, Float32Array, Float64Array, Int64Array, StringArray};
    use arrow_schema::Field;

    use super::*;

    /// A matrix of two columns, words, and a target with gaps: what is picked is what is read.
    #[test]
    fn picked_rows_are_those_that_are_read() {
        let batch = |from: i64, count: i64, single: bool| {
            let gap = |k: i64| if k % 11 == 3 { f64::NAN } else { k as f64 };
            let numbers: Vec<f64> = (from..from + count).flat_map(|k| [gap(k), 0.5]).collect();
            let values: ArrayRef = match single {
                true => Arc::new(numbers.iter().map(|x| Some(*x as f32)).collect::<Float32Array>()),
                false => Arc::new(Float64Array::from(numbers)),
            };
            let item = Arc::new(Field::new("item", values.data_type().clone(), true));
            let matrix = FixedSizeListArray::new(item, 2, values, None);
            let words = (from..from + count).map(|k| ["yes", "no", "?", "maybe"][k as usize % 4]);
            let target = (from..from + count).map(|k| (k % 7 != 2).then_some(k));
            let columns: [ArrayRef; 3] = [
                Arc::new(matrix),
                Arc::new(StringArray::from_iter_values(words)),
                Arc::new(target.collect::<Int64Array>()),
            ];
            let named = columns.into_iter().enumerate().map(|(k, c)| (k.to_string(), c));
            RecordBatch::try_from_iter_with_nullable(named.map(|(n, c)| (n, c, true))).unwrap()
        };
        let names = ["a", "b", "c", "y"].map(String::from).to_vec();
        for (single, missing) in [(false, ""), (true, ", missing = \"drop\"")] {
            let batches = vec![batch(0, 700, single), batch(0, 0, single), batch(700, 500, single)];
            let source = Source::in_memory(names.clone(), batches).unwrap();
            let schema = format!(
                "rows = 1200\n[columns]\na = {{ range = [0, 1000]{missing} }}\nb = {{ range = [0, 1] }}\n\
                 c = {{ values = [\"yes\", \"no\"], other = true }}\ny = {{ range = [0, 1100] }}"
            );
            let schema = crate::Schema::parse(&schema).unwrap();
            let encoding = Encoding::new(&schema, &names, None, Some("y")).unwrap();
            let all = source.read(&encoding, 2).unwrap().declassify();
            let picks = source.picks(&encoding).unwrap().unwrap().declassify();
            assert_eq!((picks.records(), picks.width()), (1200, 4));
            let null = |place: u32| all.nulls().binary_search(&(place as usize)).is_ok();
            let mut some = Table::empty(4);
            for (first, step) in [(0, 1), (5, 3), (699, 1), (1199, 1), (1100, 200), (2, 7)] {
                let places: Vec<u32> = (first..1200).step_by(step).collect();
                picks.pick(&places, &mut some);
                let row = |place: &u32| {
                    *place as usize - all.nulls().partition_point(|n| *n < *place as usize)
                };
                let rows: Vec<usize> = places.iter().filter(|p| !null(**p)).map(row).collect();
                let targets: Vec<f64> = rows.iter().map(|r| all.target()[*r]).collect();
                assert_eq!(some.target(), targets);
                let features = rows.iter().flat_map(|r| &all.features()[4 * r..4 * r + 4]);
                assert!(features.eq(some.features()));
            }
            picks.pick(&[], &mut some);
            assert_eq!(some.rows(), 0);
        }
    }

    #[test]
    fn files_are_not_picked_from() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        std::fs::write(&path, "a,y\n1,2\n").unwrap();
        let source = Source::open([&path], &crate::Options::default()).unwrap();
        let schema = "rows = 1\n[columns]\na = { range = [0, 1] }\ny = { range = [0, 1] }";
        let schema = crate::Schema::parse(schema).unwrap();
        let encoding = Encoding::new(&schema, source.columns(), None, Some("y")).unwrap();
        assert!(source.picks(&encoding).unwrap().is_none());
    }
}
