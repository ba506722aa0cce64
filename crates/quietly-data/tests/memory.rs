//! Tables in memory are read like files of the same rows.
use std::sync::Arc;

use arrow_array::{
    ArrayRef, FixedSizeListArray, Float32Array, Float64Array, RecordBatch, StringArray,
};
use arrow_schema::{DataType, Field};
use quietly_data::{Encoding, Error, Source};

use crate::common::{Folder, Rows, open, rows_of, schema};

mod common;

const ROWS: usize = 30_000;

fn numbers() -> Vec<[f64; 2]> {
    let each = |i: usize| {
        let x = (i as f64 * 0.7).sin() * 3.0;
        [
            if i.is_multiple_of(97) { f64::NAN } else { x },
            if i.is_multiple_of(101) { f64::INFINITY } else { x * x },
        ]
    };
    (0..ROWS).map(each).collect()
}

fn labels() -> Vec<Option<&'static str>> {
    let each = |i: usize| match i % 7 {
        0 => None,
        1 => Some("surprise"),
        2 | 3 => Some(" yes"),
        _ => Some("no"),
    };
    (0..ROWS).map(each).collect()
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true)))
        .unwrap()
}

/// A row-major matrix, as in numpy.
fn matrix(values: ArrayRef, width: i32) -> ArrayRef {
    let item = Arc::new(Field::new("item", values.data_type().clone(), true));
    Arc::new(FixedSizeListArray::new(item, width, values, None))
}

fn names() -> Vec<String> {
    ["a", "b", "y"].map(String::from).to_vec()
}

fn encoding(source: &Source) -> Encoding {
    let rules = "a = { range = [-1, 2], missing = \"drop\" }\nb = { range = [0, 4] }\ny = { values = [\"no\", \"yes\"] }";
    Encoding::new(&schema(rules), source.columns(), None, Some("y")).unwrap()
}

fn rows(columns: Vec<String>, batches: Vec<RecordBatch>) -> Rows {
    let source = Source::in_memory(columns, batches).unwrap();
    assert_eq!(source.files().count(), 0);
    rows_of(&source, &encoding(&source))
}

/// CSV, columns, and a row-major matrix, also in many batches, some of them empty or slices.
#[test]
fn memory_and_files_give_the_same_bits() {
    let folder = Folder::new();
    let mut text = String::from("a,b,y\n");
    for ([a, b], y) in numbers().iter().zip(labels()) {
        text += &format!("{a},{b},{}\n", y.unwrap_or(""));
    }
    let file = open(&[&folder.write("table.csv", text)]).unwrap();
    let wanted = rows_of(&file, &encoding(&file));
    assert!(wanted.1.len() > ROWS / 2 && wanted.1.len() < ROWS);

    let column = |k: usize| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(numbers().iter().map(|row| row[k])))
    };
    let y: ArrayRef = Arc::new(StringArray::from(labels()));
    let columns = batch(vec![("a", column(0)), ("b", column(1)), ("y", y.clone())]);
    assert!(rows(names(), vec![columns.clone()]) == wanted);

    let flat = Float64Array::from_iter_values(numbers().into_iter().flatten());
    let matrix = batch(vec![("x", matrix(Arc::new(flat), 2)), ("y", y)]);
    assert!(rows(names(), vec![matrix.clone()]) == wanted);

    for whole in [columns, matrix] {
        let cuts = [0, 1, 1, 500, 17_000, ROWS];
        let parts = cuts.windows(2).map(|cut| whole.slice(cut[0], cut[1] - cut[0]));
        assert!(rows(names(), parts.collect()) == wanted);
    }
}

#[test]
fn numbers_of_32_bits_are_what_they_are() {
    let flat: Vec<f32> = vec![0.1, 3.9, f32::NAN, 1.0, 1.7, -5.0];
    let y: ArrayRef = Arc::new(StringArray::from(vec!["no", "yes", "yes"]));
    let narrow =
        batch(vec![("x", matrix(Arc::new(Float32Array::from(flat.clone())), 2)), ("y", y)]);
    let (features, target) = rows(names(), vec![narrow]);
    let encoded = |x: f32, lo: f64, hi: f64| {
        (f64::from(x).clamp(lo, hi) - (lo + hi) / 2.0) / ((hi - lo) / 2.0)
    };
    let wanted = [(flat[0], flat[1]), (flat[4], flat[5])]
        .map(|(a, b)| [encoded(a, -1.0, 2.0), encoded(b, 0.0, 4.0)]);
    assert_eq!((features, target), (wanted.concat(), vec![0.0, 1.0]));
}

#[test]
fn batches_that_are_not_one_table_are_refused() {
    let numbers = |name| batch(vec![(name, Arc::new(Float64Array::from(vec![1.0])) as ArrayRef)]);
    let texts = batch(vec![("a", Arc::new(StringArray::from(vec!["1"])) as ArrayRef)]);
    let made = |columns: &[&str], batches| {
        Source::in_memory(columns.iter().map(|c| c.to_string()).collect(), batches).err()
    };
    assert!(matches!(made(&["a", "a"], vec![]), Some(Error::DuplicateColumns { .. })));
    assert!(matches!(made(&["a", "b"], vec![numbers("a")]), Some(Error::Batches { .. })));
    assert!(matches!(made(&["a"], vec![numbers("a"), texts]), Some(Error::Batches { .. })));
    assert_eq!(made(&["a"], vec![numbers("a"), numbers("b")]), None);

    // A type that cannot be read is an error before any row is read.
    let lists = matrix(Arc::new(StringArray::from(vec!["1", "2"])), 2);
    assert!(matches!(lists.data_type(), DataType::FixedSizeList(..)));
    let source = Source::in_memory(vec!["a".into()], vec![batch(vec![("a", lists)])]).unwrap();
    let encoding = Encoding::new(&schema("a = { range = [0, 1] }"), source.columns(), None, None);
    let Err(error) = source.read(&encoding.unwrap(), 1) else { panic!("texts are no numbers") };
    assert!(error.to_string().starts_with("the table has columns that cannot be read"), "{error}");
}
