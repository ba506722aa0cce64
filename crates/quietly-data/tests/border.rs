//! Names that only a file contains are not printed, no row is read twice, and no file ends the process.
use std::{fs::File, sync::Arc};

use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, LargeStringArray, ListArray, NullArray, RecordBatch,
    StringArray, StringViewArray, types::Int32Type,
};
use arrow_buffer::OffsetBuffer;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field};
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, Encoding as Packed},
    file::properties::{EnabledStatistics, WriterProperties, WriterVersion},
};
use quietly_data::{Encoding, Error, Options, Schema, Source};

mod common;
use common::*;

type Keys = DictionaryArray<Int32Type>;

fn two() -> Schema {
    schema("a = { range = [0, 10] }\ny = { range = [0, 10] }")
}

fn refused(paths: &[&std::path::Path]) -> Error {
    Source::open(paths, &Options::of_schema(&two())).err().expect("an error")
}

#[test]
fn a_cell_of_the_first_row_is_not_printed() {
    let folder = Folder::new();
    let good = folder.write("p1.csv", "name,a,b,y\nX,5,flu,1\n");
    let rows = [
        "K-4711,44,HIV positive,3.2\nB,5,flu,1\n",
        "K-4711,HIV positive,x,flu\nB,flu,flu,x\n",
        "K-4711,,HIV positive,flu\rB,,flu,x\r",
        "K-4711,2020-02-01,HIV positive,flu\r\n",
        "HIV positive,K-4711,HIV positive,K-4711\n",
    ];
    for (i, row) in rows.iter().enumerate() {
        let bad = folder.write(&format!("row{i}.csv"), row);
        for paths in [vec![&good, &bad], vec![&bad], vec![&bad, &good]] {
            let paths: Vec<&std::path::Path> = paths.into_iter().map(|p| p.as_path()).collect();
            let error = refused(&paths);
            let said = format!("{error} {error:?}");
            assert_eq!(error.code(), "D04", "{said}");
            assert!(!said.contains("4711") && !said.contains("HIV"), "{said}");
        }
        // Nor without a schema.
        let options = Options::default();
        if let Err(error) = Source::open([&good, &bad], &options) {
            let said = format!("{error} {error:?}");
            assert!(!said.contains("4711") && !said.contains("HIV"), "{said}");
        }
    }
}

#[test]
fn names_that_look_like_data_must_be_declared() {
    let folder = Folder::new();
    let years = folder.write("years.csv", "2020,2021,y\n1,2,3\n");
    let open = |options: &Options| Source::open([&years], options).map(|s| s.columns().to_vec());
    assert_eq!(open(&Options::default()).unwrap_err().code(), "D04");
    let insisting = Options { header: true, ..Options::default() };
    assert_eq!(open(&insisting).unwrap(), ["2020", "2021", "y"]);
    let schema = Schema::parse("rows = 1\nheader = true\n[columns]\n\"*\" = { range = [0, 1] }");
    assert!(open(&Options::of_schema(&schema.unwrap())).is_ok());
    // All names of the schema are there: this is a header, whatever the others look like.
    let index = folder.write("index.csv", ",a,2020,y\n0,1,2,3\n");
    assert!(Source::open([&index], &Options::of_schema(&two())).is_ok());
    assert_eq!(Source::open([&index], &Options::default()).err().unwrap().code(), "D04");
}

/// A cell that is not Unicode is an undeclared value, as in CSV. It does not decide whether a file
/// can be read.
#[test]
fn a_cell_that_is_not_unicode_is_no_error() {
    let folder = Folder::new();
    let texts = |last: &str| Arc::new(StringArray::from(vec!["F", "M", last])) as ArrayRef;
    let large = |last: &str| Arc::new(LargeStringArray::from(vec!["F", "M", last])) as ArrayRef;
    let view = |last: &str| Arc::new(StringViewArray::from(vec!["F", "M", last])) as ArrayRef;
    let keys = |last: &str| Arc::new(["F", "M", last].into_iter().collect::<Keys>()) as ArrayRef;
    let known = schema("a = { values = [\"F\", \"M\"], other = true }\ny = { range = [0, 10] }");
    let makers: [&dyn Fn(&str) -> ArrayRef; 4] = [&texts, &large, &view, &keys];
    for (kind, column) in makers.iter().enumerate() {
        let batch = |last: &str| {
            let y = Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0])) as ArrayRef;
            RecordBatch::try_from_iter([("a", column(last)), ("y", y)]).unwrap()
        };
        let write = |name: &str, batch: &RecordBatch| {
            let (path, schema) = (folder.path(name), batch.schema());
            let file = File::create(&path).unwrap();
            match name.rsplit('.').next() {
                Some("parquet") => {
                    let mut writer = ArrowWriter::try_new(file, schema, None).unwrap();
                    writer.write(batch).unwrap();
                    writer.close().unwrap();
                }
                Some("arrow") => {
                    let mut writer = FileWriter::try_new(file, &schema).unwrap();
                    writer.write(batch).unwrap();
                    writer.finish().unwrap();
                }
                _ => {
                    let mut writer = StreamWriter::try_new(file, &schema).unwrap();
                    writer.write(batch).unwrap();
                    writer.finish().unwrap();
                }
            }
            path
        };
        for name in ["t.parquet", "t.arrow", "t.arrows"] {
            let name = format!("{kind}{name}");
            let want = read(&[&write(&name, &batch("other"))], &known);
            let path = write(&name, &batch("MARKED"));
            let mut bytes = std::fs::read(&path).unwrap();
            let mark = b"MARKED";
            let places: Vec<usize> =
                (0..bytes.len() - 6).filter(|i| &bytes[*i..i + 6] == mark).collect();
            assert!(!places.is_empty(), "{name}");
            places
                .iter()
                .for_each(|i| bytes[*i..i + 6].copy_from_slice(b"\xff\xfe\xff\xfe\xff\xff"));
            std::fs::write(&path, bytes).unwrap();
            assert!(same(&want, &read(&[&path], &known)), "{name}");
        }
    }
}

/// A null in a field that is declared without nulls is a missing value. It does not decide whether a
/// file can be read.
#[test]
fn an_undeclared_null_is_no_error() {
    let folder = Folder::new();
    let rule = schema(
        "a = { range = [0, 10], missing = \"drop\" }\n\
         b = { values = [\"F\", \"M\"], other = true }\ny = { range = [0, 10] }",
    );
    // The writers check only the types of a batch, so the schema may declare what no row satisfies.
    let fields = |nullable: [bool; 3]| {
        let kinds = [DataType::Float64, DataType::Utf8, DataType::Float64];
        let named = ["a", "b", "y"].into_iter().zip(kinds).zip(nullable);
        let field = |((name, kind), nullable)| Field::new(name, kind, nullable);
        Arc::new(arrow_schema::Schema::new(named.map(field).collect::<Vec<_>>()))
    };
    let a = Arc::new(Float64Array::from(vec![Some(1.0), None, Some(3.0)])) as ArrayRef;
    let b = Arc::new(StringArray::from(vec![Some("F"), Some("M"), None])) as ArrayRef;
    let y = Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0])) as ArrayRef;
    let open = fields([true; 3]);
    let batch = RecordBatch::try_new(open.clone(), vec![a, b, y]).unwrap();
    let write = |name: &str, schema: Arc<arrow_schema::Schema>| {
        let path = folder.path(name);
        let file = File::create(&path).unwrap();
        if name.ends_with(".arrow") {
            let mut writer = FileWriter::try_new(file, &schema).unwrap();
            writer.write(&batch).unwrap();
            writer.finish().unwrap();
        } else {
            let mut writer = StreamWriter::try_new(file, &schema).unwrap();
            writer.write(&batch).unwrap();
            writer.finish().unwrap();
        }
        path
    };
    let want = read(&[&write("open.arrow", open)], &rule);
    assert_eq!(want.1, [1.0, 3.0]);
    for (i, nullable) in [[false, true, true], [false; 3], [true, false, false]].iter().enumerate()
    {
        for end in ["arrow", "arrows"] {
            let path = write(&format!("{i}.{end}"), fields(*nullable));
            assert!(same(&want, &read(&[&path], &rule)), "{nullable:?} {end}");
        }
    }
}

/// Nor do a long cell and a long list of one row, although their lengths are in headers.
#[test]
fn one_long_cell_is_no_error() {
    let folder = Folder::new();
    let y = Arc::new(Float64Array::from(vec![1.0, 2.0])) as ArrayRef;
    let long = "x".repeat(3 << 20);
    let texts = Arc::new(StringArray::from(vec!["F", &long])) as ArrayRef;
    let batch = RecordBatch::try_from_iter([("a", texts), ("y", y.clone())]).unwrap();
    let path = folder.path("long.parquet");
    let properties = WriterProperties::builder()
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_write_page_header_statistics(true)
        .set_statistics_truncate_length(None)
        .set_dictionary_enabled(false);
    let file = File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let known = schema("a = { values = [\"F\"], other = true }\ny = { range = [0, 10] }");
    assert_eq!(read(&[&path], &known).1, [1.0, 2.0]);

    let nulls = Arc::new(NullArray::new(3 << 20)) as ArrayRef;
    let item = Arc::new(Field::new("item", DataType::Null, true));
    let lists = ListArray::new(item, OffsetBuffer::from_lengths([0, 3 << 20]), nulls, None);
    let columns = [("a", y.clone()), ("notes", Arc::new(lists) as ArrayRef), ("y", y)];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let path = folder.path("long.arrow");
    let mut writer = FileWriter::try_new(File::create(&path).unwrap(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    assert_eq!(read(&[&path], &two()).1, [1.0, 2.0]);
}

/// libsvm text has no header. Its first line is a row, which decides neither the format nor whether
/// the file can be read.
#[test]
fn a_first_row_of_libsvm_text_decides_nothing() {
    let folder = Folder::new();
    let text = "rows = 9\nfeatures = 3\n[columns]\nlabel = { values = [-1, 1] }\n\"*\" = { range = [0, 1] }";
    let schema = Schema::parse(text).unwrap();
    let options = Options::of_schema(&schema);
    let rows = |name: &str, first: &[u8]| {
        let path = folder.path(name);
        std::fs::write(&path, first).unwrap();
        let source = Source::open([&path], &options).map_err(|e| format!("{name} {first:?}: {e}"));
        let source = source.unwrap();
        let encoding = Encoding::new(&schema, source.columns(), None, Some("label")).unwrap();
        let mut count = 0;
        let each = &mut |table: &quietly_data::Table| {
            count += table.target().len();
            std::ops::ControlFlow::Continue(())
        };
        source.scan(&encoding, each).unwrap();
        count
    };
    for name in ["t", "t.svm", "a9a.train"] {
        let firsts: [&[u8]; 9] = [
            b"+1 1:0.5\n",
            b"+1\n",
            b"%PDF-1 1:0.5\n",
            b"\x1f\x8b\x08 1:0.5\n",
            b"PAR1 1:0.5\n",
            b"ARROW1 1:0.5\n",
            b"PK\x03\x04 1:0.5\n",
            b"a,b,c\n",
            b"\xff\xfe\n",
        ];
        for first in firsts {
            // A line that cannot be read may be dropped.
            assert!(rows(name, &[first, b"-1 2:1\n"].concat()) >= 1, "{name} {first:?}");
        }
        assert_eq!(rows(name, b""), 0);
    }
}

/// Delta-encoded text is read like plain text: with nulls, in both page versions, compressed or not,
/// in many blocks.
#[test]
fn texts_are_read_in_every_encoding() {
    let folder = Folder::new();
    let rows = 5000;
    // A whole page of nulls, and then some of everything.
    let text = |i: usize| match i % 7 {
        _ if i < 4200 => None,
        0 => None,
        1 => Some("F".to_string()),
        2 => Some(String::new()),
        _ => Some(format!("M{}", "x".repeat(i % 40))),
    };
    let texts = Arc::new((0..rows).map(text).collect::<StringArray>()) as ArrayRef;
    let y = Arc::new((0..rows).map(|i| (i % 10) as f64).collect::<Float64Array>()) as ArrayRef;
    let batch = RecordBatch::try_from_iter([("a", texts), ("y", y)]).unwrap();
    let known = schema("a = { values = [\"F\", \"Mxx\"], other = true }\ny = { range = [0, 10] }");
    let mut want = None;
    for encoding in [Packed::PLAIN, Packed::DELTA_LENGTH_BYTE_ARRAY, Packed::DELTA_BYTE_ARRAY] {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            for packing in [Compression::UNCOMPRESSED, Compression::SNAPPY] {
                let path = folder.path("t.parquet");
                let properties = WriterProperties::builder()
                    .set_writer_version(version)
                    .set_compression(packing)
                    .set_dictionary_enabled(false)
                    .set_column_encoding("a".into(), encoding)
                    .set_data_page_row_count_limit(1500);
                let file = File::create(&path).unwrap();
                let properties = Some(properties.build());
                let mut writer = ArrowWriter::try_new(file, batch.schema(), properties).unwrap();
                writer.write(&batch).unwrap();
                writer.close().unwrap();
                let found = read(&[&path], &known);
                assert_eq!(found.1.len(), rows);
                let want = want.get_or_insert_with(|| found.clone());
                assert!(same(want, &found), "{encoding:?} {version:?} {packing:?}");
            }
        }
    }
}

#[test]
fn a_lone_cr_ends_a_line() {
    let rows = ["a,y", "1,2", "\"3\",\"4\"", ",5", "x,6", "7,8,9", "\"1\n2\",3", "9,1"];
    let folder = Folder::new();
    let read_with = |name: &str, end: &str| {
        let path = folder.write(name, rows.join(end) + end);
        read(&[&path], &two())
    };
    let want = read_with("lf.csv", "\n");
    assert_eq!(want.1, [2.0, 4.0, 5.0, 6.0, 3.0, 1.0]);
    assert!(same(&want, &read_with("cr.csv", "\r")));
    assert!(same(&want, &read_with("crlf.csv", "\r\n")));
    assert!(same(&want, &read_with("blank.csv", "\r\r\n")));
    // Also where chunks end.
    let mut random = Random(7);
    let lines: Vec<String> =
        (0..200_000).map(|_| format!("{},{}", random.below(10), random.below(10))).collect();
    let big = |end: &str| csv(format!("a,y{end}{}", lines.join(end)), &two());
    assert!(same(&big("\n"), &big("\r")) && same(&big("\n"), &big("\r\n")));
    let svm = schema("\"*\" = { range = [0, 10] }");
    let read_svm = |name: &str, end: &str| {
        let source = open(&[&folder.write(name, ["1 1:2", "0 3:1", ""].join(end))]).unwrap();
        let encoding = Encoding::new(&svm, source.columns(), None, Some("label")).unwrap();
        rows_of(&source, &encoding)
    };
    assert!(same(&read_svm("lf.svm", "\n"), &read_svm("cr.svm", "\r")));
}

#[test]
fn files_with_the_same_rows_are_refused() {
    let folder = Folder::new();
    let text = "a,y\n1,2\n";
    let t = folder.write("t.csv", text);
    let other = folder.write("u.csv", text);
    let code = |paths: &[&std::path::Path]| {
        Source::open(paths, &Options::default()).err().map(|e| (e.code(), e.to_string()))
    };
    let roundabout = folder.0.path().join(".").join("t.csv");
    for paths in [[&t, &t], [&t, &roundabout]] {
        let (code, message) = code(&[paths[0], paths[1]]).unwrap();
        assert!(code == "D19" && message.contains("t.csv"), "{message}");
    }
    #[cfg(unix)]
    {
        let (hard, soft) = (folder.path("hard.csv"), folder.path("soft.csv"));
        std::fs::hard_link(&t, &hard).unwrap();
        std::os::unix::fs::symlink(&t, &soft).unwrap();
        assert_eq!(code(&[&t, &hard]).unwrap().0, "D19");
        assert_eq!(code(&[&t, &soft]).unwrap().0, "D19");
        std::fs::remove_file(hard).unwrap();
        std::fs::remove_file(soft).unwrap();
    }
    assert_eq!(code(&[folder.0.path()]), None, "two files of one table");
    assert_eq!(code(&[folder.0.path(), &t]).unwrap().0, "D19");
    for copy in ["t.csv.gz", "t copy.csv", "t (1).csv", "x.arrow", "x.svm"] {
        let path = folder.write(copy, text);
        let (code_of_folder, message) = code(&[folder.0.path()]).unwrap();
        assert_eq!(code_of_folder, "D19", "{copy}");
        assert!(message.contains(copy), "{message}");
        if copy.ends_with(".csv") {
            // Files that are listed one by one are accepted.
            assert_eq!(code(&[&t, &path, &other]), None);
        }
        std::fs::remove_file(path).unwrap();
    }
    let source = Source::open([&t, &other], &Options::default()).unwrap();
    assert_eq!(source.file_names(), ["t.csv", "u.csv"]);
}

#[test]
fn other_formats_are_recognised() {
    let folder = Folder::new();
    let zip = [&b"PK\x03\x04\x14\0\0\0\0\0abcdt.csv"[..], b"a,y\n1,2\n"].concat();
    for (start, word) in [
        (&zip[..], "zip"),
        (b"PK\x03\x04\x14\0[Content_Types].xml", "Excel"),
        (b"\x28\xB5\x2F\xFDa,y\n", "zstd"),
        (b"\xFD7zXZ\0a,y\n", "xz"),
        (b"BZh91AY&SYa,y\n", "bzip2"),
        (b"SQLite format 3\0a,y\n", "SQLite"),
        (b"%PDF-1.7\na,y\n", "PDF"),
        (b"\xFF\xFEa\0,\0y\0\n\0", "UTF-16"),
        (b"\xFE\xFF\0a\0,\0y\0\n", "UTF-16"),
        (b"PAR1a,y\n", "Parquet"),
    ] {
        for error in
            [refused(&[&folder.write("t.csv", start)]), refused(&[&folder.gzip("t.csv.gz", start)])]
        {
            assert_eq!(error.code(), "D03", "{word}");
            assert!(error.to_string().contains(word), "{error}");
        }
    }
}

#[test]
fn absurd_sizes_are_refused() {
    let schema = |features: &str| {
        Schema::parse(&format!(
            "rows = 9\nfeatures = {features}\n[columns]\na = {{ range = [0, 1] }}"
        ))
    };
    assert!(schema("1000000").is_ok());
    for features in ["1000001", "4000000000", "1e15"] {
        assert_eq!(schema(features).unwrap_err().code(), "D09", "{features}");
    }
    let folder = Folder::new();
    let svm = folder.write("t.svm", "1 1:1\n");
    let options = Options { features: Some(4_000_000_000), ..Options::default() };
    assert_eq!(Source::open([&svm], &options).err().unwrap().code(), "D09");
    // A hundred million commas, and a line of 17 MB without one.
    let commas = folder.gzip("c.csv.gz", vec![b','; 100_000_000]);
    let long = folder.gzip("l.csv.gz", vec![b'x'; 17_000_000]);
    let many = folder.gzip("m.csv.gz", [&vec![b','; 2_000_000][..], b"\n1\n"].concat());
    let started = std::time::Instant::now();
    for path in [&commas, &long, &many] {
        assert_eq!(Source::open([path], &Options::default()).err().unwrap().code(), "D04");
    }
    // This took minutes when every 64 kB scanned the line again.
    assert!(started.elapsed().as_secs() < 20);
    // A star with many values has a billion features.
    let values: Vec<String> = (0..2000).map(|v| v.to_string()).collect();
    let star = Schema::parse(&format!(
        "rows = 9\n[columns]\ny = {{ range = [0, 1] }}\n\"*\" = {{ values = [{}] }}",
        values.join(", ")
    ));
    let columns: Vec<String> = (0..500_000).map(|c| format!("x{c}")).chain(["y".into()]).collect();
    let error = Encoding::new(&star.unwrap(), &columns, None, Some("y")).unwrap_err();
    assert_eq!(error.code(), "D09");
}

#[test]
fn numbers_are_read_in_the_notation_of_the_schema() {
    let german = Schema::parse(
        "rows = 9\ndecimal = \",\"\nthousands = \".\"\n[columns]\n\
         a = { range = [0, 2000] }\nc = { values = [1.5, 2.5] }\ny = { range = [0, 10] }",
    );
    let german = german.unwrap();
    let folder = Folder::new();
    let semicolons = folder.write("s.csv", "a;c;y\n1.000,0;1,5;3,5\n500;2,5;7\n");
    let commas = folder.write("c.csv", "a,c,y\n\"1.000,0\",\"1,5\",\"3,5\"\n500,\"2,5\",7\n");
    for path in [&semicolons, &commas] {
        let (features, target) = read(&[path], &german);
        assert_eq!(features, [0.0, 0.0, -0.5, 1.0]);
        assert_eq!(target, [3.5, 7.0]);
    }
    // A model stores it for predictions.
    let source = open(&[&semicolons]).unwrap();
    let encoding = Encoding::new(&german, source.columns(), None, Some("y")).unwrap();
    let kept: Encoding = serde_json::from_str(&serde_json::to_string(&encoding).unwrap()).unwrap();
    assert_eq!(rows_of(&source, &kept.predicting()).0, [0.0, 0.0, -0.5, 1.0]);
}

fn batch() -> RecordBatch {
    let numbers = |step: f64| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values((0..50).map(|i| f64::from(i) * step)))
    };
    let words: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..50).map(|i| ["x", "yy"][i % 2])));
    RecordBatch::try_from_iter([("a", numbers(0.1)), ("s", words), ("y", numbers(0.2))]).unwrap()
}

/// 1, 2 or 4 bytes are changed, as by a faulty disk: the file is read or refused with D03.
fn survive(name: &str, good: &[u8], tries: u64) {
    let folder = Folder::new();
    let schema =
        schema("a = { range = [0, 5] }\ns = { values = [\"x\", \"yy\"] }\ny = { range = [0, 9] }");
    let mut random = Random(5);
    let (mut read, mut damaged) = (0, 0);
    for _ in 0..tries {
        let mut bytes = good.to_vec();
        for _ in 0..1 << random.below(3) {
            let place = random.below(bytes.len() as u64) as usize;
            bytes[place] = random.next() as u8;
        }
        let path = folder.write(name, bytes);
        let options = Options { names: vec![], ..Options::default() };
        let done = Source::open([&path], &options).and_then(|source| {
            let encoding = Encoding::new(&schema, source.columns(), None, Some("y"))?;
            source.read(&encoding, 2).map(drop)
        });
        match done {
            Ok(()) => read += 1,
            Err(error) => {
                damaged += u64::from(error.code() == "D03");
                let codes = ["D03", "D04", "D05", "D10", "D13"];
                assert!(codes.contains(&error.code()), "{error}");
            }
        }
    }
    // Both must happen, otherwise this proves nothing.
    assert!(read > tries / 10 && damaged > tries / 10, "{name}: {read} {damaged} of {tries}");
}

#[test]
fn damaged_files_are_refused() {
    let folder = Folder::new();
    let (arrow, stream) = (folder.path("t.arrow"), folder.path("t.arrows"));
    let packed = folder.path("lz4.arrow");
    let batch = batch();
    let mut writer = FileWriter::try_new(File::create(&arrow).unwrap(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    let mut writer =
        StreamWriter::try_new(File::create(&stream).unwrap(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    let codec = Some(arrow_ipc::CompressionType::LZ4_FRAME);
    let options = IpcWriteOptions::default().try_with_compression(codec).unwrap();
    let to = File::create(&packed).unwrap();
    let mut writer = FileWriter::try_new_with_options(to, &batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    let parquet = folder.path("t.parquet");
    let to = File::create(&parquet).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(to, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    for (path, name) in
        [(arrow, "c.arrow"), (stream, "c.arrows"), (packed, "d.arrow"), (parquet, "c.parquet")]
    {
        survive(name, &std::fs::read(path).unwrap(), 400);
    }
}
