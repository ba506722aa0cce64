//! Small tables in temporary folders.
#![allow(dead_code, reason = "every test uses some of it")]
use std::{
    fs::File,
    io::Write,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};
use quietly_data::{Encoding, Error, Options, Schema, Source};

pub(crate) type Rows = (Vec<f64>, Vec<f64>);

pub(crate) struct Folder(pub(crate) tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    pub(crate) fn gzip(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        let mut gz = GzEncoder::new(File::create(&path).unwrap(), Compression::fast());
        gz.write_all(bytes.as_ref()).unwrap();
        gz.finish().unwrap();
        path
    }
}

pub(crate) fn schema(columns: &str) -> Schema {
    Schema::parse(&format!("rows = 100\nfeatures = 3\n[columns]\n{columns}")).unwrap()
}

pub(crate) fn open(paths: &[&Path]) -> Result<Source, Error> {
    // A name that libsvm text does not have: the format of the file is detected.
    let unknown = |path: &&Path| path.extension().is_none_or(|ending| ending == "unknown");
    let names = match paths.iter().any(unknown) {
        true => vec!["y".into()],
        false => Vec::new(),
    };
    Source::open(paths, &Options { features: Some(3), names, ..Options::default() })
}

/// The rows of a table, and a check that streaming gives the same bits as reading, and any number
/// of threads the same as one.
pub(crate) fn rows_of(source: &Source, encoding: &Encoding) -> Rows {
    let table = source.read(encoding, 1).unwrap().declassify();
    let rows = (table.features().to_vec(), table.target().to_vec());
    for threads in [0, 2, 5] {
        let mut streamed: Rows = (Vec::new(), Vec::new());
        let mut last = 0;
        source
            .blocks(encoding, threads, &mut |block| {
                assert_eq!(block.features.len(), block.rows * block.width);
                assert!(last <= block.position && block.position <= source.bytes());
                last = block.position;
                streamed.0.extend(&block.features);
                streamed.1.extend(&block.target);
                ControlFlow::Continue(())
            })
            .unwrap();
        assert!(same(&streamed, &rows), "{threads} threads");
    }
    rows
}

pub(crate) fn same(a: &Rows, b: &Rows) -> bool {
    let bits = |v: &[f64]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    bits(&a.0) == bits(&b.0) && bits(&a.1) == bits(&b.1)
}

/// Reads files with the target `y`.
pub(crate) fn read(paths: &[&Path], schema: &Schema) -> Rows {
    let source = open(paths).unwrap();
    let encoding = Encoding::new(schema, source.columns(), None, Some("y")).unwrap();
    rows_of(&source, &encoding)
}

/// Reads a CSV text with the target `y`.
pub(crate) fn csv(text: impl AsRef<[u8]>, schema: &Schema) -> Rows {
    let folder = Folder::new();
    read(&[&folder.write("t.csv", text)], schema)
}

/// Reads a CSV text for prediction.
pub(crate) fn predict(text: impl AsRef<[u8]>, schema: &Schema) -> Rows {
    let folder = Folder::new();
    let source = open(&[&folder.write("t.csv", text)]).unwrap();
    let encoding = Encoding::new(schema, source.columns(), None, None).unwrap().predicting();
    rows_of(&source, &encoding)
}

/// SplitMix64: enough for tests, and needs no crate.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}
