//! Any bytes as a table: nothing panics, aborts or eats the machine, no cell decides, none is told,
//! and the rows do not depend on threads, pieces or compression.
use std::{io::Write, ops::ControlFlow, path::Path};

use quietly_data::{Encoding, Error, Options, Schema, Source};
use quietly_fuzz::arbitrary::Unstructured;

const SCHEMA: &str = "rows = 100\n[columns]\n\
    a = { range = [0, 10] }\n\
    b = { range = [-1, 1], missing = \"drop\" }\n\
    c = { values = [\"u\", \"v\", 3], other = true }\n\
    y = { range = [0, 40] }\n";

/// Stands in cells, and in no message.
const MARK: char = '\u{2603}';

/// Cells of built tables: good ones, bad ones, and ones that break framing if they are not quoted.
const CELLS: [&str; 16] = [
    "1",
    "-0.5",
    "u",
    "v",
    "",
    "NaN",
    "inf",
    "1e999",
    "\u{2603}",
    "K\u{2603}7",
    "\"\"",
    "\"x\u{2603}\"",
    "3",
    "0x10",
    "?",
    " 2 ",
];

/// Every feature and target, in order, as bits.
type Rows = Vec<u64>;

fn read(source: &Source, encoding: &Encoding, threads: usize) -> Result<Rows, Error> {
    let mut rows = Rows::new();
    source.blocks(encoding, threads, &mut |block| {
        for (row, target) in block.target.iter().enumerate() {
            let features = &block.features[row * block.width..(row + 1) * block.width];
            rows.extend(features.iter().chain([target]).map(|x| x.to_bits()));
        }
        ControlFlow::Continue(())
    })?;
    Ok(rows)
}

/// The rows of a file, or why there are none. All ways to read it agree.
fn outcome(path: &Path, schema: &Schema, names: bool) -> Result<Result<Rows, Error>, String> {
    let options = match names {
        true => Options { features: Some(3), ..Options::of_schema(schema) },
        false => Options { features: Some(3), header: true, ..Options::default() },
    };
    let source = match Source::open([path], &options) {
        Ok(source) => source,
        Err(error) => return Ok(Err(error)),
    };
    let target = if source.is_sparse() { "label" } else { "y" };
    let encoding = match Encoding::new(schema, source.columns(), None, Some(target)) {
        Ok(encoding) => encoding,
        Err(error) => return Ok(Err(error)),
    };
    let one = read(&source, &encoding, 1);
    for threads in [2, 5] {
        if read(&source, &encoding, threads) != one {
            return Err(format!("{threads} threads read other rows than one"));
        }
    }
    let mut scanned = Rows::new();
    let scan = source.scan(&encoding, &mut |table| {
        for (row, target) in table.target().iter().enumerate() {
            let features = &table.features()[row * table.width()..(row + 1) * table.width()];
            scanned.extend(features.iter().chain([target]).map(|x| x.to_bits()));
        }
        ControlFlow::Continue(())
    });
    if scan.map(|()| scanned) != one {
        return Err("small pieces have other rows".into());
    }
    if let Ok(rows) = &one {
        let width = encoding.width() + 1;
        for row in rows.chunks(width) {
            let within = |bits: &u64| (-1.0..=1.0).contains(&f64::from_bits(*bits));
            if !row[..width - 1].iter().all(within) {
                return Err("a feature outside [-1, 1]".into());
            }
        }
    }
    Ok(one)
}

fn said(outcome: &Result<Rows, Error>) -> String {
    outcome.as_ref().err().map(|e| format!("{} {e} {e:?}", e.code())).unwrap_or_default()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(bytes).expect("memory");
    gz.finish().expect("memory")
}

/// A table with a good header, cell by cell.
fn built(choices: &mut Unstructured<'_>) -> Option<Vec<String>> {
    let rows = choices.int_in_range(1..=12).ok()?;
    let mut lines = vec!["a,b,c,y".to_string()];
    for _ in 0..rows {
        let cells = choices.int_in_range(3..=5).ok()?;
        let cell = |choices: &mut Unstructured<'_>| choices.choose(&CELLS).copied().ok();
        let line: Option<Vec<&str>> = (0..cells).map(|_| cell(choices)).collect();
        lines.push(line?.join(","));
    }
    Some(lines)
}

#[test]
fn tables() {
    let folder = tempfile::tempdir().expect("a folder");
    let schema = Schema::parse(SCHEMA).expect("a schema");
    let sparse =
        Schema::parse("rows = 9\n[columns]\n\"*\" = { range = [0, 1] }").expect("a schema");
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("a disk");
        path
    };
    quietly_fuzz::check("tables", 1200, |bytes| {
        let Some((kind, content)) = bytes.split_first() else { return Ok(()) };
        let names = kind & 0x80 == 0;
        quietly_fuzz::within((64 << 20) + 16 * bytes.len(), || {
            let tell = |outcome: Result<Rows, Error>| {
                let message = said(&outcome);
                match message.contains(MARK) {
                    true => Err(format!("a cell is told: {message}")),
                    false => Ok(outcome),
                }
            };
            match kind & 0x7F {
                b'p' => tell(outcome(&write("t.parquet", content), &schema, names)?).map(drop),
                b'a' => tell(outcome(&write("t.arrow", content), &schema, names)?).map(drop),
                b'l' => tell(outcome(&write("t.svm", content), &sparse, false)?).map(drop),
                b'g' => tell(outcome(&write("g.csv.gz", content), &schema, names)?).map(drop),
                b'b' => {
                    let choices = &mut Unstructured::new(content);
                    let (Some(mut lines), Ok(place)) = (built(choices), choices.arbitrary::<u8>())
                    else {
                        return Ok(());
                    };
                    let end = ["\n", "\r\n", "\r"][usize::from(*content.first().unwrap_or(&0)) % 3];
                    let text = |lines: &[String]| lines.join(end) + end;
                    let before = outcome(&write("t.csv", text(&lines).as_bytes()), &schema, names)?;
                    let before = tell(before)?;
                    let record = 1 + usize::from(place) % (lines.len() - 1);
                    lines[record] = "1,K\u{2603},\u{2603},".into();
                    let after = outcome(&write("t.csv", text(&lines).as_bytes()), &schema, names)?;
                    match said(&before) == said(&tell(after)?) {
                        true => Ok(()),
                        false => Err("a record decides".into()),
                    }
                }
                _ => {
                    let plain = tell(outcome(&write("t.csv", content), &schema, names)?)?;
                    if content.starts_with(&[0x1F, 0x8B]) {
                        return Ok(());
                    }
                    let packed = outcome(&write("t.csv.gz", &gzip(content)), &schema, names)?;
                    match (&plain, &packed) {
                        (Ok(plain), Ok(packed)) if plain == packed => Ok(()),
                        (Err(plain), Err(packed)) if plain.code() == packed.code() => Ok(()),
                        _ => Err("gzip changes what is read".into()),
                    }
                }
            }
        })
    });
}
