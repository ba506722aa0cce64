//! Labels, null rows that keep their positions, and sparse rows.
use std::{path::Path, sync::Arc};

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use quietly_data::{Encoding, Options, Schema, Source};

mod common;
use common::*;

fn encoding(schema: &Schema, source: &Source, target: &str) -> Encoding {
    Encoding::new(schema, source.columns(), None, Some(target)).unwrap()
}

fn labels(text: &str, rule: &str) -> Vec<f64> {
    let folder = Folder::new();
    let source = open(&[&folder.write("t.csv", text)]).unwrap();
    let schema = schema(&format!("a = {{ range = [0, 10] }}\ny = {rule}"));
    rows_of(&source, &encoding(&schema, &source, "y")).1
}

#[test]
fn a_label_becomes_the_number_of_its_class() {
    let text = "a,y\n1,no\n1,yes\n1,maybe\n1,\n1, yes \n1,\"no\"\n";
    assert_eq!(labels(text, "{ values = [\"no\", \"yes\"] }"), [0.0, 1.0, 1.0, 0.0]);
    let other = "{ values = [\"no\", \"yes\"], other = true }";
    assert_eq!(labels(text, other), [0.0, 1.0, 2.0, 2.0, 1.0, 0.0]);
    assert_eq!(labels("a,y\n1,True\n1,false\n1,1\n", "{ values = [false, true] }"), [1.0, 0.0]);
}

#[test]
fn one_is_written_in_many_ways() {
    let folder = Folder::new();
    let text = "+1 1:1\n1 2:1\n1.0 3:1\n-1 1:1\n-1.0\n0 1:1\n1e0 1:1\n2 1:1\nnan 1:1\n";
    let source = open(&[&folder.write("t.svm", text)]).unwrap();
    let schema = schema("label = { values = [-1, 1] }\n\"*\" = { range = [-1, 1] }");
    let encoding = encoding(&schema, &source, "label");
    assert_eq!(rows_of(&source, &encoding).1, [1.0, 1.0, 1.0, 0.0, 0.0, 1.0]);
    let kept = rows_of(&source, &encoding.keeping_null_rows()).1;
    let nulls: Vec<usize> = (0..kept.len()).filter(|i| kept[*i].is_nan()).collect();
    assert_eq!((kept.len(), nulls), (9, vec![5, 7, 8]));
}

fn write_arrow(folder: &Folder, name: &str, a: Vec<Option<f64>>, y: Vec<Option<&str>>) {
    let columns: [(&str, ArrayRef); 2] =
        [("a", Arc::new(Float64Array::from(a))), ("y", Arc::new(StringArray::from(y)))];
    let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(n, a)| (n, a, true)));
    let batch = batch.unwrap();
    let file = std::fs::File::create(folder.path(name)).unwrap();
    if name.ends_with("parquet") {
        let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    } else {
        let mut writer = arrow_ipc::writer::FileWriter::try_new(file, &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
    }
}

fn places(path: &Path, target: &str) -> Vec<(Vec<f64>, f64)> {
    let source = open(&[path]).unwrap();
    let rules = "y = { values = [\"no\", \"yes\"] }\nlabel = { values = [0, 1] }";
    let schema = schema(&format!(
        "a = {{ range = [0, 10], missing = \"drop\" }}\n\"*\" = {{ values = [0, 1, 2] }}\n{rules}"
    ));
    let numbered = ["1", "2", "3"].map(String::from);
    let features = (target == "label").then_some(&numbered[..]);
    let own = Schema {
        columns: schema
            .columns
            .iter()
            .filter(|c| c.0 != "label" || features.is_some())
            .cloned()
            .collect(),
        ..schema
    };
    let only = ["a".to_string()];
    let features = features.unwrap_or(&only);
    let encoding = Encoding::new(&own, source.columns(), Some(features), Some(target)).unwrap();
    let (features, target) = rows_of(&source, &encoding.keeping_null_rows());
    let width = encoding.width();
    features.chunks(width).map(<[f64]>::to_vec).zip(target).collect()
}

/// Neither the number of rows nor their positions depend on the cells.
#[test]
fn null_rows_keep_their_positions_in_every_format() {
    let folder = Folder::new();
    let cells =
        [(Some(5.0), Some("yes")), (None, Some("no")), (Some(1.0), Some("x")), (Some(10.0), None)];
    let want = |rows: &[(Vec<f64>, f64)]| {
        let nulls: Vec<bool> = rows.iter().map(|r| r.1.is_nan()).collect();
        assert_eq!(nulls, [false, true, true, true]);
        assert_eq!((rows[0].0[0], rows[0].1), (0.0, 1.0));
        assert!(rows[1..].iter().all(|r| r.0.iter().all(|x| x.to_bits() == 0)));
    };
    for name in ["t.parquet", "t.arrow"] {
        let (a, y) = cells.iter().copied().unzip();
        write_arrow(&folder, name, a, y);
        want(&places(&folder.path(name), "y"));
    }
    want(&places(&folder.write("t.csv", "a,y\n5,yes\n,no\n1,x\n10,\n"), "y"));
    // Lines that cannot be read are rows, too.
    want(&places(&folder.write("r.csv", "a,y\n5,yes\n1,no,3\n1\n\"1\"x,no\n"), "y"));
    let svm = "1 1:0 2:1\n0 1:7\n5 2:1\nnonsense 9:1\n";
    want(&places(&folder.write("t.svm", svm), "label"));
}

#[test]
fn the_number_of_rows_does_not_depend_on_cells() {
    let folder = Folder::new();
    let random = &mut Random(5);
    let likely = ["5", "yes", "no", "", "NA", "1,2", "\"5\"", "1e999", "x:y", "\0", "7"];
    for i in 0..200 {
        let mut text = String::from("a,y\n");
        for _ in 0..50 {
            let mut pick = || likely[random.below(likely.len() as u64) as usize];
            text += &format!("{},{}\n", pick(), pick());
        }
        let rows = places(&folder.write("t.csv", &text), "y");
        assert_eq!(rows.len(), 50, "{i}");
    }
}

fn sparse_like_dense(source: &Source, encoding: &Encoding) -> usize {
    let (features, target) = rows_of(source, encoding);
    for threads in [1, 3] {
        let sparse = source.read_sparse(encoding, threads).unwrap().declassify();
        let mut dense = vec![0.0; features.len()];
        for row in 0..sparse.rows() {
            let (index, values) = sparse.row(row);
            assert!(index.is_sorted_by(|a, b| a < b), "ascending, none twice");
            for (i, x) in index.iter().zip(values) {
                assert!(*x != 0.0);
                dense[row * sparse.width + *i as usize] = *x;
            }
        }
        assert!(same(&(dense, sparse.target.clone()), &(features.clone(), target.clone())));
        assert_eq!((sparse.starts.len(), sparse.rows()), (target.len() + 1, target.len()));
    }
    target.len()
}

#[test]
fn sparse_rows_equal_dense_rows() {
    let folder = Folder::new();
    let random = &mut Random(3);
    let (mut svm, mut csv) = (String::new(), String::from("label,1,2,3\n"));
    for _ in 0..3000 {
        let label = ["+1", "-1", "1.0", "7"][random.below(4) as usize];
        svm += label;
        for _ in 0..random.below(5) {
            // Out of order, twice, zero, not a number, and now and then out of range.
            let index = 1 + random.below(3) + u64::from(random.below(50) == 0);
            let value = ["0", "1", "-2.5", "nan", "0.25"][random.below(5) as usize];
            svm += &format!(" {index}:{value}");
        }
        svm += "\n";
        csv += &format!("{label},{},,{}\n", random.below(3), random.unit());
    }
    for rules in [
        "\"*\" = { range = [0, 2] }",
        "\"*\" = { range = [0, 2], missing = \"drop\" }",
        "2 = { values = [0, 1] }\n\"*\" = { range = [-1, 2] }",
        "2 = { values = [1, 0.25] }\n\"*\" = { range = [-1, 2] }",
        "3 = { range = [1, 2] }\n\"*\" = { values = [1], other = true }",
    ] {
        let schema = schema(&format!("{rules}\nlabel = {{ values = [-1, 1] }}"));
        for path in [folder.write("t.svm", &svm), folder.write("t.csv", &csv)] {
            let source = insisting(&path);
            let plain = encoding(&schema, &source, "label");
            for encoding in [plain.clone(), plain.with_symmetric_ranges()] {
                sparse_like_dense(&source, &encoding.keeping_null_rows());
                assert!(sparse_like_dense(&source, &encoding) < 2500);
                assert_eq!(sparse_like_dense(&source, &encoding.predicting()), 3000);
            }
        }
    }
}

/// Columns that are named 1, 2 and 3 look like a row of data.
fn insisting(path: &Path) -> Source {
    let options = Options { features: Some(3), header: true, ..Options::default() };
    Source::open([path], &options).unwrap()
}

#[test]
fn symmetric_ranges_encode_zero_as_zero() {
    let folder = Folder::new();
    let text = "label,1,2,3\n1,0,0,0\n1,4,-1,7\n1,,,\n";
    let source = insisting(&folder.write("t.csv", text));
    let schema = schema(
        "1 = { range = [0, 4] }\n2 = { range = [-1, 4] }\n3 = { range = [5, 7] }\nlabel = { range = [0, 1] }",
    );
    let encoding = encoding(&schema, &source, "label").with_symmetric_ranges();
    let (features, _) = rows_of(&source, &encoding);
    assert_eq!(features[..3], [0.0, 0.0, -1.0]);
    assert_eq!(features[3..6], [1.0, -0.25, 1.0]);
    // A missing number is still the middle of the declared range: 2, 1.5 and 6.
    assert_eq!(features[6..], [0.5, 0.375, 0.0]);
    // A model file stores it.
    let back: Encoding = serde_json::from_value(serde_json::to_value(&encoding).unwrap()).unwrap();
    assert!(same(&rows_of(&source, &back), &rows_of(&source, &encoding)));
}

/// A hundred thousand features, nearly all 0: the time depends on the others.
#[test]
fn wide_rows_take_no_time_for_their_zeros() {
    let folder = Folder::new();
    let mut text = String::new();
    for i in 0..20_000_u64 {
        text += &format!("{} {}:1 {}:0.5\n", i % 2, 1 + i % 1000, 50_000 + i);
    }
    let path = folder.write("wide.svm", text);
    let options = quietly_data::Options { features: Some(100_000), ..Default::default() };
    let source = Source::open([&path], &options).unwrap();
    let schema = schema("label = { values = [0, 1] }\n\"*\" = { range = [0, 1] }");
    let encoding = encoding(&schema, &source, "label").with_symmetric_ranges();
    let sparse = source.read_sparse(&encoding, 2).unwrap().declassify();
    // Dense rows would take sixteen gigabytes.
    assert_eq!((sparse.rows(), sparse.values.len()), (20_000, 40_000));
    assert_eq!(sparse.row(7), (&[7, 50_006][..], &[1.0, 0.5][..]));
}
