//! Gathers rows of a table in memory by their positions. Other rows are not read, and the table is
//! not copied.
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, NullArray, RecordBatch, UInt32Array};
use arrow_select::take::take;

use crate::{
    Encoding, Error, Private, Source, Table,
    column_decoder::{ColumnDecoder, RowDecoder},
    columns::Tile,
    csr, matrix, memory,
    source::Layout,
};

/// A table in memory whose rows are encoded on demand.
#[doc(alias = "Picks")]
pub struct Gather<'a> {
    decoder: RowDecoder,
    batches: &'a [RecordBatch],
    /// The number of rows before each batch, and in all.
    starts: Vec<usize>,
    /// How many columns of the table each column of a batch represents.
    widths: Vec<usize>,
    /// Whether a feature is of a category.
    categories: bool,
}

impl Source {
    /// The rows of a table in memory, to be encoded on demand. `None` if the table is not in memory,
    /// or has 2³² rows.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn gather(&self, encoding: &Encoding) -> Result<Option<Private<Gather<'_>>>, Error> {
        let decoder = RowDecoder::new(encoding, self.columns())?;
        self.check_types(&decoder)?;
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
        let width = |batch| memory::widths(batch, decoder.cells.len());
        let widths = batches.first().map(width).unwrap_or_default();
        let categories =
            decoder.cells.iter().any(|cell| matches!(cell, ColumnDecoder::Category(_)));
        Ok(Some(Private::new(Gather { decoder, batches, starts, widths, categories })))
    }
}

impl Gather<'_> {
    /// The number of rows, null rows included.
    pub fn rows(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    /// The number of features of a row.
    pub fn width(&self) -> usize {
        self.decoder.width
    }

    /// Encodes the rows at these positions, which ascend, and replaces the rows of `table` by them.
    /// Null rows are dropped.
    ///
    /// # Panics
    ///
    /// If a position is not in the table, which is a bug in the caller.
    pub fn take(&self, places: &[u32], table: &mut Table) {
        let width = self.decoder.width;
        let (features, target) = table.restart(width, places.len());
        // Only categories leave features unwritten.
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
            table.drop_null_rows();
        }
    }

    /// Fills a tile with rows of a batch.
    fn fill(&self, batch: &RecordBatch, rows: &[u32], tile: &mut Tile<'_>) {
        let mut cells = &self.decoder.cells[..];
        let mut index = None;
        for (column, width) in batch.columns().iter().zip(&self.widths) {
            let (here, rest) = cells.split_at(*width);
            cells = rest;
            if here.iter().all(|cell| matches!(cell, ColumnDecoder::Skip)) {
                continue;
            }
            if matrix::fill(tile, column, here, |i| rows[i] as usize) {
                continue;
            }
            let index = index.get_or_insert_with(|| UInt32Array::from(rows.to_vec()));
            // Types were checked before: Arrow can take rows of all that can be read.
            let none = |_| Arc::new(NullArray::new(rows.len())) as ArrayRef;
            let part = take(column, index, None).unwrap_or_else(none);
            match csr::values(column.data_type()) {
                Some(_) => csr::fill(tile, &part, here, self.decoder.nulls),
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

    /// A matrix of two columns, a category, and a target with missing values.
    #[test]
    fn gathered_rows_equal_those_that_are_read() {
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
            let gather = source.gather(&encoding).unwrap().unwrap().declassify();
            assert_eq!((gather.rows(), gather.width()), (1200, 4));
            let null = |place: u32| all.nulls().binary_search(&(place as usize)).is_ok();
            let mut some = Table::empty(4);
            for (first, step) in [(0, 1), (5, 3), (699, 1), (1199, 1), (1100, 200), (2, 7)] {
                let places: Vec<u32> = (first..1200).step_by(step).collect();
                gather.take(&places, &mut some);
                let row = |place: &u32| {
                    *place as usize - all.nulls().partition_point(|n| *n < *place as usize)
                };
                let rows: Vec<usize> = places.iter().filter(|p| !null(**p)).map(row).collect();
                let targets: Vec<f64> = rows.iter().map(|r| all.target()[*r]).collect();
                assert_eq!(some.target(), targets);
                let features = rows.iter().flat_map(|r| &all.features()[4 * r..4 * r + 4]);
                assert!(features.eq(some.features()));
            }
            gather.take(&[], &mut some);
            assert_eq!(some.rows(), 0);
        }
    }

    #[test]
    fn rows_of_files_cannot_be_gathered() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        std::fs::write(&path, "a,y\n1,2\n").unwrap();
        let source = Source::open([&path], &crate::Options::default()).unwrap();
        let schema = "rows = 1\n[columns]\na = { range = [0, 1] }\ny = { range = [0, 1] }";
        let schema = crate::Schema::parse(schema).unwrap();
        let encoding = Encoding::new(&schema, source.columns(), None, Some("y")).unwrap();
        assert!(source.gather(&encoding).unwrap().is_none());
    }
}
