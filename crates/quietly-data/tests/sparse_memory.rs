//! Sparse rows in memory equal those of libsvm text and of the dense matrix.
use std::sync::Arc;

use arrow_array::{
    ArrayRef, FixedSizeListArray, Float64Array, RecordBatch,
    builder::{Float64Builder, GenericListBuilder, Int32Builder, Int64Builder, StructBuilder},
};
use arrow_schema::{DataType, Field, Fields};
use quietly_data::{Encoding, Error, Source};

use crate::common::{Folder, rows_of};

mod common;

const ROWS: usize = 5000;
const WIDTH: usize = 6;

/// (index, value) pairs of every row; columns 4 and 5 are categories, one of which has no 0.
fn pairs() -> Vec<Vec<(usize, f64)>> {
    let each = |i: usize| {
        let x = (i as f64 * 0.7).sin() * 3.0;
        let mut row = vec![(1, x), (5, 1.0 + (i % 3) as f64)];
        if i.is_multiple_of(5) {
            row.insert(0, (0, if i.is_multiple_of(35) { f64::NAN } else { -x }));
        }
        if i.is_multiple_of(3) {
            row.insert(row.len() - 1, (4, 1.0));
        }
        if i.is_multiple_of(41) {
            row.pop();
        }
        row
    };
    (0..ROWS).map(each).collect()
}

fn target(i: usize) -> f64 {
    if i.is_multiple_of(53) { f64::NAN } else { (i as f64).cos() }
}

/// A CSR matrix as in scipy, with 32 or 64 bit indices.
fn lists(rows: &[Vec<(usize, f64)>], wide: bool) -> ArrayRef {
    let index = if wide { DataType::Int64 } else { DataType::Int32 };
    let fields =
        vec![Field::new("index", index, true), Field::new("value", DataType::Float64, true)];
    let pair = StructBuilder::from_fields(Fields::from(fields), 0);
    let mut list = GenericListBuilder::<i64, _>::new(pair);
    for row in rows {
        for (index, x) in row {
            let pair = list.values();
            match wide {
                true => pair.field_builder::<Int64Builder>(0).unwrap().append_value(*index as i64),
                false => pair.field_builder::<Int32Builder>(0).unwrap().append_value(*index as i32),
            }
            pair.field_builder::<Float64Builder>(1).unwrap().append_value(*x);
            pair.append(true);
        }
        list.append(true);
    }
    Arc::new(list.finish())
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true)))
        .unwrap()
}

fn targets(rows: usize) -> ArrayRef {
    let values: ArrayRef = Arc::new(Float64Array::from_iter_values((0..rows).map(target)));
    // A column of numpy: a matrix of width one.
    let item = Arc::new(Field::new("item", DataType::Float64, true));
    Arc::new(FixedSizeListArray::new(item, 1, values, None))
}

fn names() -> Vec<String> {
    let numbered = (1..=WIDTH).map(|i| i.to_string());
    numbered.chain(["label".to_string()]).collect()
}

fn encoding(source: &Source) -> Encoding {
    let rules = "features = 6\n[columns]\n\"*\" = { range = [-1, 2] }\n\"5\" = { values = [0, 1] }\n\
                 \"6\" = { values = [1, 2] }\nlabel = { range = [-1, 1] }";
    let schema = quietly_data::Schema::parse(&format!("rows = 9\n{rules}")).unwrap();
    Encoding::new(&schema, source.columns(), None, Some("label")).unwrap()
}

#[test]
fn sparse_rows_equal_those_of_the_matrix_and_of_the_text() {
    let rows = pairs();
    let mut text = String::new();
    for (i, row) in rows.iter().enumerate() {
        text += &target(i).to_string();
        row.iter().for_each(|(index, x)| text += &format!(" {}:{x}", index + 1));
        text += "\n";
    }
    let folder = Folder::new();
    let options = quietly_data::Options { features: Some(WIDTH), ..Default::default() };
    let file = Source::open([folder.write("table.libsvm", text)], &options).unwrap();
    let mut flat = vec![0.0; ROWS * WIDTH];
    for (i, row) in rows.iter().enumerate() {
        row.iter().for_each(|(index, x)| flat[i * WIDTH + index] = *x);
    }
    let item = Arc::new(Field::new("item", DataType::Float64, true));
    let flat: ArrayRef = Arc::new(Float64Array::from(flat));
    let matrix = Arc::new(FixedSizeListArray::new(item, WIDTH as i32, flat, None));
    let dense =
        Source::in_memory(names(), vec![batch(vec![("x", matrix), ("y", targets(ROWS))])]).unwrap();
    let wanted = rows_of(&dense, &encoding(&dense));
    // Rows without a sixth column, or of kind 3, and those without a target are dropped.
    assert!(wanted.1.len() > ROWS / 2 && wanted.1.len() < ROWS * 2 / 3);
    for wide in [false, true] {
        let whole = batch(vec![("x", lists(&rows, wide)), ("y", targets(ROWS))]);
        let cuts = [0, 1, 1, 700, ROWS].windows(2).map(|cut| whole.slice(cut[0], cut[1] - cut[0]));
        for batches in [vec![whole.clone()], cuts.collect()] {
            let source = Source::in_memory(names(), batches).unwrap();
            assert!(source.is_sparse());
            let encoding = encoding(&source);
            assert!(rows_of(&source, &encoding) == wanted);
            for encoding in
                [encoding.clone(), encoding.with_symmetric_ranges(), encoding.keeping_null_rows()]
            {
                let mine = source.read_sparse(&encoding, 2).unwrap().declassify();
                let text = file.read_sparse(&encoding, 2).unwrap().declassify();
                assert!(mine.index == text.index && mine.starts == text.starts);
                let bits = |all: &[f64]| all.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&mine.values), bits(&text.values));
                assert_eq!(bits(&mine.target), bits(&text.target));
            }
        }
    }
}

#[test]
fn an_index_beyond_the_table_makes_a_null_row() {
    let rows = [vec![(0, 0.5), (5, 1.0)], vec![(WIDTH, 1.0), (5, 1.0)], vec![(usize::MAX, 1.0)]];
    let table = batch(vec![("x", lists(&rows, true)), ("y", targets(3))]);
    // The target of the first row is missing: count it as well.
    let source = Source::in_memory(names(), vec![table]).unwrap();
    let keeping = encoding(&source).keeping_null_rows();
    let (_, target) = rows_of(&source, &keeping);
    assert!(target.iter().all(|y| y.is_nan()) && target.len() == 3);
    for encoding in [keeping.with_symmetric_ranges(), keeping] {
        let thin = source.read_sparse(&encoding.keeping_null_rows(), 1).unwrap().declassify();
        assert_eq!(thin.rows(), 3);
        assert!(thin.index.is_empty());
    }
    // Prediction returns every row.
    let predicting = encoding(&source).predicting();
    assert_eq!(rows_of(&source, &predicting).1.len(), 3);
}

#[test]
fn at_most_one_column_is_sparse() {
    let both = batch(vec![("x", lists(&pairs(), true)), ("z", lists(&pairs(), false))]);
    let made = Source::in_memory(names(), vec![both]).err();
    assert!(matches!(made, Some(Error::Batches { .. })));
}
