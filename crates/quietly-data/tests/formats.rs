//! Every format and every split into files gives the same table.
use std::{fs::File, path::Path, sync::Arc};

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use parquet::{
    arrow::ArrowWriter, basic::Compression as Packing, file::properties::WriterProperties,
};
use quietly_data::{Encoding, Format, Options, Schema, Source};

mod common;
use common::*;

type Row = (Option<f64>, Option<String>, Option<i64>, Option<f64>);

const COLUMNS: &str = r#"
x = { range = [-1, 2] }
c = { values = ["a", "b, \"q\"", "e"], other = true }
k = { range = [0, 50], missing = "drop" }
y = { range = [-1, 1] }
"#;

fn rows(n: usize) -> Vec<Row> {
    let random = &mut Random(11);
    (0..n)
        .map(|_| {
            let x = (random.below(9) > 0).then(|| 4.0 * random.unit() - 2.0);
            let words = ["a", "b, \"q\"", "e", "b,\nwhat", "ü"];
            let c = (random.below(9) > 0).then(|| words[random.below(5) as usize].to_string());
            let k = (random.below(20) > 0).then(|| random.below(60) as i64);
            let y = (random.below(20) > 0).then(|| 3.0 * random.unit() - 1.5);
            (x, c, k, y)
        })
        .collect()
}

fn csv_text(rows: &[Row], delimiter: char, newline: &str) -> String {
    let d = delimiter;
    let mut text = format!("x{d}id{d}c{d}k{d}y{newline}");
    for (i, (x, c, k, y)) in rows.iter().enumerate() {
        let number = |x: &Option<f64>| x.map_or("NA".to_string(), |x| x.to_string());
        let c = c.as_ref().map_or(String::new(), |c| match c.contains(['"', ',', '\n', d]) {
            true => format!("\"{}\"", c.replace('"', "\"\"")),
            false => c.clone(),
        });
        let k = k.map_or(String::new(), |k| k.to_string());
        text += &format!("{}{d}\"{i}\"{d}{c}{d}{k}{d}{}{newline}", number(x), number(y));
    }
    text
}

fn batch(rows: &[Row]) -> RecordBatch {
    let x: Float64Array = rows.iter().map(|r| r.0).collect();
    let id: Int64Array = (0..rows.len() as i64).collect();
    let c: StringArray = rows.iter().map(|r| r.1.as_deref()).collect();
    let k: Int64Array = rows.iter().map(|r| r.2).collect();
    let y: Float64Array = rows.iter().map(|r| r.3).collect();
    let columns: [(&str, ArrayRef); 5] = [
        ("x", Arc::new(x)),
        ("id", Arc::new(id)),
        ("c", Arc::new(c)),
        ("k", Arc::new(k)),
        ("y", Arc::new(y)),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(n, a)| (n, a, true))).unwrap()
}

fn parquet(path: &Path, batch: &RecordBatch, group: usize, packing: Packing) {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(group))
        .set_compression(packing)
        .build();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn every_format_gives_the_same_table() {
    let folder = Folder::new();
    let schema = schema(COLUMNS);
    let rows = rows(3000);
    let want = read(&[&folder.write("a.csv", csv_text(&rows, ',', "\n"))], &schema);
    assert!(want.1.len() > 2500 && want.1.len() < 2900, "{}", want.1.len());
    assert_eq!(want.0.len(), want.1.len() * 5);

    let batch = batch(&rows);
    let crlf = csv_text(&rows, ';', "\r\n").replace("b,\r\n", "b,\n");
    let mut paths = vec![
        folder.write("b.csv", format!("\u{feff}{crlf}")),
        folder.write("c.tsv", csv_text(&rows, '\t', "\n").trim_end()),
        folder.write("unnamed", csv_text(&rows, '|', "\n")),
        folder.gzip("d.csv.gz", csv_text(&rows, ',', "\n")),
        folder.gzip("e.csv", csv_text(&rows, ',', "\n")),
    ];
    let packings = [Packing::UNCOMPRESSED, Packing::SNAPPY, Packing::LZ4_RAW];
    for (i, packing) in packings.into_iter().enumerate() {
        let path = folder.path(&format!("f{i}.parquet"));
        parquet(&path, &batch, [10_000, 700, 1][i], packing);
        paths.push(path);
    }
    let zstd = folder.path("no-ending");
    parquet(&zstd, &batch, 1000, Packing::ZSTD(Default::default()));
    paths.push(zstd);
    let file = folder.path("g.arrow");
    let mut writer = FileWriter::try_new(File::create(&file).unwrap(), &batch.schema()).unwrap();
    writer.write(&batch.slice(0, 1300)).unwrap();
    writer.write(&batch.slice(1300, 1700)).unwrap();
    writer.finish().unwrap();
    paths.push(file);
    let stream = folder.path("h.unknown");
    let mut writer =
        StreamWriter::try_new(File::create(&stream).unwrap(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    paths.push(stream);
    for path in paths {
        assert!(same(&read(&[&path], &schema), &want), "{}", path.display());
    }
}

#[test]
fn every_split_over_files_gives_the_same_table() {
    let folder = Folder::new();
    let schema = schema(COLUMNS);
    let rows = rows(2000);
    let want = read(&[&folder.write("a.csv", csv_text(&rows, ',', "\n"))], &schema);
    let parts = Folder::new();
    parts.write("readme.txt", "not a table");
    parts.write("_SUCCESS", "");
    let mut random = Random(5);
    let (mut start, mut all) = (0, Vec::new());
    for part in 0.. {
        let end = rows.len().min(start + random.below(400) as usize);
        let (name, slice) = (format!("part-{part:02}"), &rows[start..end]);
        let path = match random.below(3) {
            0 => parts.write(
                &format!("{name}.csv"),
                csv_text(slice, ';', "\r\n").replace("b,\r\n", "b,\n"),
            ),
            1 => parts.gzip(&format!("{name}.csv.gz"), csv_text(slice, ',', "\n")),
            _ => {
                let path = parts.path(&format!("{name}.parquet"));
                parquet(&path, &batch(slice), 64, Packing::SNAPPY);
                path
            }
        };
        all.push(path);
        start = end;
        if start == rows.len() {
            break;
        }
    }
    let all: Vec<&Path> = all.iter().map(|path| path.as_path()).collect();
    assert!(same(&read(&all, &schema), &want));
    // A folder of two formats may hold one table twice. The same table in one format is read.
    assert_eq!(open(&[parts.0.path()]).err().unwrap().code(), "D19");
    let parts = Folder::new();
    parts.write("_SUCCESS", "");
    for (part, slice) in rows.chunks(300).enumerate() {
        match part % 2 {
            0 => parts.write(
                &format!("part-{part}.csv"),
                csv_text(slice, ';', "\r\n").replace("b,\r\n", "b,\n"),
            ),
            _ => parts.gzip(&format!("part-{part}.csv.gz"), csv_text(slice, ',', "\n")),
        };
    }
    assert!(same(&read(&[parts.0.path()], &schema), &want));
    assert!(same(&read(&[&parts.path("part-*")], &schema), &want));
    assert!(!same(&read(&[&parts.path("part-*.csv")], &schema), &want));
}

#[test]
fn chunks_of_long_texts_end_where_rows_end() {
    // Many chunks, with quoted newlines everywhere, and quotes that are not at the start of a field.
    let schema =
        schema("c = { values = [\"a\", \"5\\\" pipe\"], other = true }\ny = { range = [0, 1e9] }");
    let mut text = String::from("c,y\n");
    let mut want = Vec::new();
    for i in 0..200_000u32 {
        text += &match i % 4 {
            0 => format!("a,{i}\n"),
            1 => format!("\"x\ny\",{i}\n"),
            2 => format!("5\" pipe,\"{i}\"\r\n"),
            _ => format!("\"5\"\" pipe\" , {i} \n"),
        };
        want.push(f64::from(i));
    }
    let (features, target) = csv(&text, &schema);
    assert!(target == want);
    let pairs: Vec<&[f64]> = features.chunks(2).take(4).collect();
    assert_eq!(pairs, [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]);
}

#[test]
fn libsvm_is_a_table_of_numbered_columns() {
    let folder = Folder::new();
    let text = "+1 1:0.5 3:-2 # why\n\n-1 2:1e0\r\nx 1:1\n1 4:1\n1 1\n1 0:1\n1 1:?\n-1";
    let schema = schema("\"*\" = { range = [-1, 1] }");
    let plain = folder.write("a.svm", text);
    let want = (
        vec![0.5, 0.0, -1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        vec![1.0, -1.0, 1.0, -1.0],
    );
    for path in [plain, folder.gzip("b.libsvm.gz", text), folder.write("c", text)] {
        let source = open(&[&path]).unwrap();
        assert_eq!(source.columns(), ["label", "1", "2", "3"]);
        let encoding = Encoding::new(&schema, source.columns(), None, Some("label")).unwrap();
        assert_eq!(rows_of(&source, &encoding), want);
        // For prediction every line that is not blank is a row.
        let all = Encoding::new(&schema, source.columns(), Some(&["1".into()]), None).unwrap();
        let predicted = rows_of(&source, &all.predicting());
        assert_eq!(predicted.0, [0.5, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    }
}

#[test]
fn a_format_and_a_delimiter_can_be_given() {
    let folder = Folder::new();
    let path = folder.write("a.parquet", "a-y\n1-2\n");
    let options =
        Options { format: Some(Format::Csv), delimiter: Some(b'-'), ..Options::default() };
    let source = Source::open([&path], &options).unwrap();
    let schema = schema("\"*\" = { range = [-2, 2] }");
    let encoding = Encoding::new(&schema, source.columns(), None, Some("y")).unwrap();
    assert_eq!(rows_of(&source, &encoding), (vec![0.5], vec![2.0]));
}

#[test]
fn an_encoding_survives_a_model_file_and_reads_another_table() {
    let folder = Folder::new();
    let rows = rows(300);
    let schema = schema(COLUMNS);
    let train = open(&[&folder.write("a.csv", csv_text(&rows, ',', "\n"))]).unwrap();
    let encoding = Encoding::new(&schema, train.columns(), None, Some("y")).unwrap();
    let json = serde_json::to_string(&encoding).unwrap();
    let again: Encoding = serde_json::from_str(&json).unwrap();
    assert_eq!(again.features(), encoding.features());
    assert_eq!(rows_of(&train, &again), rows_of(&train, &encoding));
    assert!(serde_json::from_str::<Encoding>(&json.replace("2.0", "-1.0")).is_err());
    // Another order, other columns, no target, and every row is there.
    let other = open(&[&folder.write("b.csv", "k,z,c,x\n25,1,e,0.5\n,,,\n1\n")]).unwrap();
    let predicted = rows_of(&other, &again.predicting());
    assert_eq!(predicted.0[..5], [0.0, 0.0, 1.0, 0.0, 0.0]);
    assert_eq!(predicted.0[5..], [0.0, 0.0, 0.0, 1.0, 0.0].repeat(2));
    assert_eq!(predicted.1, [0.0; 3]);
}

#[test]
fn ten_thousand_columns_work() {
    let columns: Vec<String> = (0..10_000).map(|i| format!("x{i}")).collect();
    let mut text = columns.join(",") + ",y\n";
    for row in 0..20 {
        let cells: Vec<String> = (0..10_000).map(|i| format!("{}", (row * i) % 7)).collect();
        text += &(cells.join(",") + ",1\n");
    }
    let schema = Schema::parse("rows = 20\n[columns]\n\"*\" = { range = [0, 6] }").unwrap();
    let (features, target) = csv(&text, &schema);
    assert_eq!((features.len(), target.len()), (200_000, 20));
    assert_eq!(features[10_001], -2.0 / 3.0);
}
