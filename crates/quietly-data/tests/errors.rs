//! Messages describe headers, files and schemas in full, and never quote a cell.
use std::{fs::File, path::Path, sync::Arc};

use arrow_array::{ArrayRef, Float64Array, ListArray, RecordBatch, types::Float64Type};
use quietly_data::{Encoding, Error, Format, Options, Source};

mod common;
use common::*;

const SECRET: &str = "4711.25";

fn error(paths: &[&Path]) -> Error {
    let error = open(paths).err().expect("an error");
    assert!(!error.to_string().contains(SECRET), "{error}");
    error
}

#[test]
fn files_that_do_not_exist_or_are_not_tables() {
    let folder = Folder::new();
    assert_eq!(error(&[&folder.path("no.csv")]).code(), "D01");
    assert_eq!(error(&[folder.0.path()]).code(), "D02");
    assert_eq!(error(&[&folder.path("*.csv")]).code(), "D02");
    assert_eq!(error(&[]).code(), "D02");
    for name in ["a.parquet", "a.arrow"] {
        assert_eq!(error(&[&folder.write(name, SECRET)]).code(), "D03");
    }
    assert_eq!(error(&[&folder.write("a.csv.gz", b"\x1F\x8B4711.25")]).code(), "D03");
    assert_eq!(error(&[&folder.write("e.csv", "")]).code(), "D04");
    assert_eq!(error(&[&folder.write("e.parquet", "")]).code(), "D04");
    assert_eq!(error(&[&folder.write("b.csv", "\n\r\n\n")]).code(), "D04");
    assert_eq!(error(&[&folder.write("n.csv", "4711.25,1.5,x\n1,2,3\n")]).code(), "D04");
    let svm = folder.write("a.svm", "1 1:2\n");
    let options = Options::default();
    assert_eq!(Source::open([&svm], &options).err().unwrap().code(), "D14");
    let options = Options { delimiter: Some(b'"'), ..options };
    assert_eq!(
        Source::open([&folder.write("q.csv", "a\n")], &options).err().unwrap().code(),
        "D16"
    );
}

#[test]
fn headers_that_differ() {
    let folder = Folder::new();
    let twice = error(&[&folder.write("a.csv", "a,b,a,b,c\n4711.25,1,1,1,1\n")]);
    assert!(matches!(&twice, Error::DuplicateColumns { columns, .. } if columns == &[1, 2, 3, 4]));
    assert!(twice.to_string().starts_with("columns 1, 2, 3 and 4 of "), "{twice}");
    let first = folder.write("1.csv", "a,b\n4711.25,1\n");
    let second = folder.write("2.csv", "a,c\n4711.25,1\n");
    let third = folder.write("3.csv", "b,a\n4711.25,1\n");
    let differ = error(&[&first, &second]).to_string();
    let message = "1 column is only in the first, 1 column is only in the second";
    assert!(differ.contains(message), "{differ}");
    assert!(differ.contains("1.csv") && differ.contains("2.csv"));
    assert!(error(&[&first, &third]).to_string().contains("another order"));
}

#[test]
fn names_that_do_not_exist() {
    let schema = schema("age = { range = [0, 9] }\nsex = { values = [\"F\", \"M\"] }");
    let columns = ["age", "sex", "x"].map(String::from);
    let code = |features: Option<&[&str]>, target, columns: &[String]| {
        let features: Option<Vec<String>> =
            features.map(|f| f.iter().map(|s| s.to_string()).collect());
        let error = Encoding::new(&schema, columns, features.as_deref(), target).unwrap_err();
        (error.code(), error.to_string())
    };
    let (d11, message) = code(Some(&["agee", "x"]), None, &columns);
    assert_eq!(d11, "D11");
    assert!(message.contains("\"agee\", \"x\"") && message.contains("did you mean \"age\"?"));
    let (d10, message) = code(None, None, &["Age".into(), "gender".into()]);
    assert_eq!(d10, "D10");
    assert!(message.contains("\"age\", \"sex\"") && !message.contains("Age"), "{message}");
    let sex = Encoding::new(&schema, &columns, None, Some("sex")).unwrap();
    let message = sex.expect_range().unwrap_err().to_string();
    assert!(message.contains("the target needs a range"), "{message}");
    assert_eq!(code(Some(&["age"]), Some("age"), &columns).0, "D12");
    assert_eq!(code(None, Some("agee"), &columns).0, "D11");
    assert_eq!(code(Some(&[]), Some("age"), &columns).0, "D15");
    let encoding = Encoding::new(&schema, &columns, None, Some("age")).unwrap();
    assert_eq!(encoding.ignored(), 1);
    // A column of the model that a later file lacks.
    let folder = Folder::new();
    let source = open(&[&folder.write("a.csv", "age\n4711.25\n")]).unwrap();
    let error = source.read(&encoding.predicting(), 1).unwrap_err();
    assert_eq!((error.code(), error.to_string().contains(SECRET)), ("D10", false));
}

#[test]
fn a_list_is_not_a_number() {
    let folder = Folder::new();
    let a: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(vec![Some(
        vec![Some(4711.25)],
    )]));
    let y: ArrayRef = Arc::new(Float64Array::from(vec![4711.25]));
    let batch = RecordBatch::try_from_iter([("a", a), ("y", y)]).unwrap();
    let path = folder.path("a.parquet");
    let mut writer =
        parquet::arrow::ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), None)
            .unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let source = open(&[&path]).unwrap();
    let schema = schema("a = { range = [0, 1] }\ny = { range = [0, 1] }");
    let encoding = Encoding::new(&schema, source.columns(), None, Some("y")).unwrap();
    let error = source.read(&encoding, 2).unwrap_err();
    assert!(matches!(&error, Error::Types { columns, .. } if columns.len() == 1), "{error}");
    assert!(error.to_string().contains("\"a\" is a list") && !error.to_string().contains(SECRET));
    // A column that is not used may have any type.
    let only: Vec<String> = vec!["y".into()];
    let encoding = Encoding::new(&schema, source.columns(), Some(&only), None).unwrap();
    assert_eq!(rows_of(&source, &encoding).0, [1.0]);
}

#[test]
fn a_truncated_file_is_an_error() {
    let folder = Folder::new();
    let mut text = String::from("a,y\n");
    for i in 0..50_000 {
        text += &format!("{SECRET},{i}\n");
    }
    let schema = schema("\"*\" = { range = [0, 1] }");
    let gz = folder.gzip("a.csv.gz", &text);
    let bytes = std::fs::read(&gz).unwrap();
    let gz = folder.write("a.csv.gz", &bytes[..bytes.len() - 100]);
    let source = open(&[&gz]).unwrap();
    let encoding = Encoding::new(&schema, source.columns(), None, Some("y")).unwrap();
    for threads in [1, 2] {
        let error = source.read(&encoding, threads).unwrap_err();
        assert_eq!(error, Error::Damaged { path: gz.clone(), format: Format::Csv });
    }
}
