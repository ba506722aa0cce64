//! No cell and no row decides between success and failure, or appears in a message.
use std::{path::Path, sync::Arc};

use arrow_array::{ArrayRef, Float64Array, RecordBatch};
use quietly_data::{Encoding, Schema};

mod common;
use common::*;

fn one(rule: &str) -> Schema {
    schema(&format!("a = {rule}\ny = {{ range = [0, 10] }}"))
}

/// The features of rows `a,y` with y = 0, 1, 2, …
fn cells(rule: &str, cells: &[&str]) -> Rows {
    let rows = cells.iter().enumerate().map(|(i, cell)| format!("{cell},{i}\n"));
    csv(String::from("a,y\n") + &rows.collect::<String>(), &one(rule))
}

const MISSING: [&str; 10] = ["", " ", "NA", "NaN", "nan", "null", "None", "?", "-", "1.2.3"];

#[test]
fn numbers_are_clamped_and_scaled() {
    let (features, target) =
        cells("{ range = [0, 10] }", &["0", "10", "5", " 7.5 ", "-1e9", "inf", "-inf", "1e999"]);
    assert_eq!(features, [-1.0, 1.0, 0.0, 0.5, -1.0, 1.0, -1.0, 1.0]);
    assert_eq!(target, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
}

#[test]
fn a_missing_number_follows_its_rule() {
    assert_eq!(cells("{ range = [0, 10] }", &MISSING).0, [0.0; 10]);
    assert_eq!(cells("{ range = [0, 10], missing = 10 }", &MISSING).0, [1.0; 10]);
    assert_eq!(cells("{ range = [0, 10], missing = \"drop\" }", &MISSING).1, [0.0; 0]);
    let dropping = "rows = 1\nmissing = \"drop\"\n[columns]\n\"*\" = { range = [0, 2] }";
    let (features, target) = csv("a,b,y\n1,,1\n1,2,2\n", &Schema::parse(dropping).unwrap());
    assert_eq!((features, target), (vec![0.0, 1.0], vec![2.0]));
}

#[test]
fn an_unknown_category_is_other_or_a_null_row() {
    let values = ["F", "M", "X", "", "?", " M ", "\"M\"", "m"];
    let (features, target) = cells("{ values = [\"F\", \"M\"] }", &values);
    assert_eq!((features, target), (vec![0.0, 1.0, 1.0, 1.0], vec![0.0, 1.0, 5.0, 6.0]));
    let (features, _) = cells("{ values = [\"F\", \"M\"], other = true }", &values[..4]);
    assert_eq!(features, [0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0]);
    let (features, target) = cells("{ values = [0, 1.5, true] }", &["0.0", "15e-1", "True", "2"]);
    assert_eq!((features, target.len()), (vec![0.0, 0.0, 1.0, 0.0, 0.0, 1.0], 3));
}

#[test]
fn a_row_without_a_target_is_a_null_row() {
    let schema = one("{ range = [0, 10] }");
    let (_, target) = csv("a,y\n1,\n1,NaN\n1,x\n1,inf\n1,-5\n1,3\n", &schema);
    assert_eq!(target, [10.0, 0.0, 3.0]);
}

#[test]
fn a_ragged_line_is_a_null_row() {
    let schema = one("{ range = [0, 10] }");
    let text = "a,y\n1\n5,1\n1,2,3\n5,1\n1,2,\n\"1,2\n\"5\"x,2\n5,2\n";
    assert_eq!(csv(text, &schema), (vec![0.0; 3], vec![1.0, 1.0, 2.0]));
    // For prediction, row i is row i.
    let (features, _) = predict("a\n1,2\n5\n\"\n0\n", &schema_of_a());
    assert_eq!(features, [0.0, 0.0, 0.0, -1.0]);
}

fn schema_of_a() -> Schema {
    schema("a = { range = [0, 10], missing = \"drop\" }")
}

#[test]
fn an_unclosed_quote_makes_one_null_row() {
    let schema = one("{ range = [0, 10] }");
    // Longer than any quoted field, so that the lines after the quote are read as rows.
    let line = format!("5,{}1\n", " ".repeat(60));
    let text = format!("a,y\n\"5,1\n{}\"5\",1\n", line.repeat(300_000));
    assert_eq!(csv(&text, &schema).1.len(), 300_001);
}

#[test]
fn a_very_long_line_is_a_null_row() {
    let schema = one("{ range = [0, 10] }");
    let text = format!("a,y\n5,1\n{}\n5,2\n", "7".repeat(40 << 20));
    assert_eq!(csv(text, &schema).1, [1.0, 2.0]);
}

#[test]
fn a_header_alone_is_a_table_without_rows() {
    let schema = one("{ range = [0, 10] }");
    for text in ["a,y", "a,y\n", "\u{feff}a,y\r\n", "\n\na,y\n\n\n"] {
        assert_eq!(csv(text, &schema).1.len(), 0, "{text:?}");
    }
}

#[test]
fn prediction_drops_no_row() {
    let schema = schema(
        "a = { range = [0, 10], missing = \"drop\" }\nb = { range = [0, 10], missing = 10 }\n\
         c = { values = [\"F\", \"M\"] }\nd = { values = [1], other = true }",
    );
    let (features, target) = predict("a,b,c,d\n,,,\n10,0,M,1\nx,x,x,x\n", &schema);
    assert_eq!(features[..4], [0.0, 1.0, 0.0, 1.0]);
    assert_eq!(features[4..8], [1.0, -1.0, 1.0, 0.0]);
    assert_eq!(features[8..], [0.0, 1.0, 0.0, 1.0]);
    assert_eq!(target, [0.0; 3]);
}

fn write_parquet(path: &Path, a: Vec<Option<f64>>, y: Vec<Option<f64>>) {
    let columns: [(&str, ArrayRef); 2] =
        [("a", Arc::new(Float64Array::from(a))), ("y", Arc::new(Float64Array::from(y)))];
    let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(n, a)| (n, a, true)));
    let batch = batch.unwrap();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn missing_values_in_parquet_follow_the_same_rules() {
    let folder = Folder::new();
    let path = folder.path("a.parquet");
    write_parquet(
        &path,
        vec![Some(f64::NAN), None, Some(f64::INFINITY), Some(2.5)],
        vec![Some(1.0), Some(2.0), Some(3.0), Some(f64::NAN)],
    );
    let middle = read(&[&path], &one("{ range = [0, 10] }"));
    assert_eq!(middle, (vec![0.0, 0.0, 1.0], vec![1.0, 2.0, 3.0]));
    let dropping = one("{ range = [0, 10], missing = \"drop\" }");
    assert_eq!(read(&[&path], &dropping), (vec![1.0], vec![3.0]));
    // A column without nulls may still have NaN.
    write_parquet(&path, vec![Some(f64::NAN), Some(5.0)], vec![Some(1.0), Some(2.0)]);
    assert_eq!(read(&[&path], &dropping), (vec![0.0], vec![2.0]));
}

/// Eight hundred files of garbage after a good header, drawn from the bytes that matter most.
#[test]
fn garbage_is_never_an_error() {
    let schema = schema(
        "a = { range = [0, 10] }\nc = { values = [\"F\"], other = true }\n\
                         \"*\" = { range = [0, 1] }",
    );
    let folder = Folder::new();
    let random = &mut Random(2);
    let likely = b"\"\",,\n\r 0123456789.eE+-NnaifF:#;\t\0\xFF\xC3";
    let mut rows = 0;
    for i in 0..800 {
        let mut text = if i % 4 == 0 { Vec::new() } else { b"a,c,y\n".to_vec() };
        for _ in 0..random.below(300) {
            let any = random.below(8) == 0;
            text.push(if any {
                random.next() as u8
            } else {
                likely[random.below(likely.len() as u64) as usize]
            });
        }
        if text.is_empty() {
            continue;
        }
        let (name, target) = if i % 4 == 0 { ("t.svm", "label") } else { ("t.csv", "y") };
        let source = open(&[&folder.write(name, &text)]).unwrap();
        let features = (i % 4 == 0).then(|| vec!["1".to_string(), "2".to_string()]);
        let encoding =
            Encoding::new(&schema, source.columns(), features.as_deref(), Some(target)).unwrap();
        let (features, target) = rows_of(&source, &encoding);
        rows += target.len();
        assert!(features.iter().all(|x| (-1.0..=1.0).contains(x)));
        assert!(target.iter().all(|y| (0.0..=1.0).contains(y)));
        let predicted = rows_of(&source, &encoding.predicting()).1.len();
        assert!(predicted >= target.len());
    }
    assert!(rows > 10, "some garbage makes rows: {rows}");
}

/// Rows do not depend on where chunks end: a random text of many chunks is compared with the same
/// text, split into files at line ends outside quotes.
#[test]
fn rows_do_not_depend_on_where_chunks_end() {
    let schema = schema("\"*\" = { range = [0, 9] }");
    let random = &mut Random(9);
    let mut lines: Vec<String> = Vec::new();
    for _ in 0..400_000 {
        lines.push(match random.below(6) {
            0 => format!("\"{}\n,\",{}\n", random.below(9), random.below(9)),
            1 => format!("{}\"x,{}\n", random.below(9), random.below(9)),
            2 => format!("\"{}\"x,{}\n", random.below(9), random.below(9)),
            3 => format!("\"{}\"\"\",{}\r\n", random.below(9), random.below(9)),
            _ => format!("{},{}\n", random.below(9), random.below(9)),
        });
    }
    let folder = Folder::new();
    let whole = folder.write("whole.csv", String::from("a,y\n") + &lines.concat());
    let mut parts = Vec::new();
    for (i, part) in lines.chunks(37_777).enumerate() {
        let text = String::from("a,y\n") + &part.concat();
        parts.push(folder.write(&format!("{i:03}.csv"), text));
    }
    let parts: Vec<_> = parts.iter().map(|p| p.as_path()).collect();
    let want = read(&[&whole], &schema);
    assert!(want.1.len() > 250_000);
    assert!(same(&read(&parts, &schema), &want));
}
