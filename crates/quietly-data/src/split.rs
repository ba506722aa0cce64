//! Splits a table in memory into two, row by row.
use arrow_array::{BooleanArray, RecordBatch};
use arrow_select::filter::filter_record_batch;

use crate::{
    Error,
    source::{Layout, Source},
};

impl Source {
    /// The rows for which `choose` returns true, and the others. It is called once for every row, in
    /// order, and must not depend on the rows. `None` if the table is not in memory.
    ///
    /// # Errors
    ///
    /// [`Error::Batches`] if the rows of a column cannot be selected.
    pub fn split(&self, choose: &mut dyn FnMut() -> bool) -> Result<Option<(Self, Self)>, Error> {
        let [input] = self.inputs() else { return Ok(None) };
        let Layout::Memory(memory) = &input.layout else { return Ok(None) };
        let (mut chosen, mut others) = (Vec::new(), Vec::new());
        for batch in memory.batches() {
            let these: Vec<bool> = (0..batch.num_rows()).map(|_| choose()).collect();
            let rest: Vec<bool> = these.iter().map(|x| !x).collect();
            chosen.push(part(batch, these)?);
            others.push(part(batch, rest)?);
        }
        let names = || self.columns().to_vec();
        Ok(Some((Source::in_memory(names(), chosen)?, Source::in_memory(names(), others)?)))
    }
}

fn part(batch: &RecordBatch, these: Vec<bool>) -> Result<RecordBatch, Error> {
    // The error of Arrow may quote cells.
    let problem = "a column has a type whose rows cannot be selected";
    filter_record_batch(batch, &BooleanArray::from(these)).map_err(|_| Error::Batches { problem })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, FixedSizeListArray, Float64Array, StringArray};
    use arrow_schema::{DataType, Field, Schema};

    use super::*;
    use crate::Encoding;

    /// A matrix of two columns and a column of texts, in two batches; every third row is chosen.
    #[test]
    fn every_row_is_in_one_of_two_tables() {
        let item = Arc::new(Field::new("item", DataType::Float64, true));
        let batch = |from: u32, count: u32| {
            let numbers: Vec<f64> =
                (from..from + count).flat_map(|k| [f64::from(k), 0.5]).collect();
            let matrix = FixedSizeListArray::new(
                item.clone(),
                2,
                Arc::new(Float64Array::from(numbers)),
                None,
            );
            let words: Vec<&str> = (0..count).map(|_| "yes").collect();
            let columns: Vec<ArrayRef> = vec![Arc::new(matrix), Arc::new(StringArray::from(words))];
            let field =
                |(k, c): (usize, &ArrayRef)| Field::new(k.to_string(), c.data_type().clone(), true);
            let schema = Schema::new(columns.iter().enumerate().map(field).collect::<Vec<_>>());
            RecordBatch::try_new(Arc::new(schema), columns).unwrap()
        };
        let names = ["a", "b", "c"].map(String::from).to_vec();
        let source = Source::in_memory(names.clone(), vec![batch(0, 10), batch(10, 5)]).unwrap();
        let mut count = 0;
        let mut choose = || {
            count += 1;
            count % 3 == 0
        };
        let (chosen, others) = source.split(&mut choose).unwrap().unwrap();
        let schema = "rows = 15\n[columns]\na = { range = [0, 15] }\nb = { range = [0, 1] }\nc = { values = [\"yes\"] }";
        let encoding =
            Encoding::new(&crate::Schema::parse(schema).unwrap(), &names, None, Some("a")).unwrap();
        let rows = |source: &Source| {
            let mut all = Vec::new();
            source
                .blocks(&encoding, 1, &mut |block| {
                    all.extend(block.target.iter().map(|y| *y as u32));
                    std::ops::ControlFlow::Continue(())
                })
                .unwrap();
            all
        };
        assert_eq!(rows(&chosen), [2, 5, 8, 11, 14]);
        assert_eq!(rows(&others), [0, 1, 3, 4, 6, 7, 9, 10, 12, 13]);
    }
}
