//! The memory of one pass over a table that is larger than we allow it.
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use arrow_array::{ArrayRef, Float64Array, RecordBatch};
use parquet::{arrow::ArrowWriter, file::properties::WriterProperties};

use crate::Line;

const FEATURES: usize = 20;
/// 21 columns of 8 bytes make 5.04 GB.
const ROWS: usize = 30_000_000;
/// Rows that are made and written at a time, as one row group.
const BATCH: usize = 100_000;

/// Writes the table into the folder for temporary files, fits it with the `quietly` that was built beside this program,
/// and removes it.
pub(crate) fn lines() -> Vec<Line> {
    let quietly = std::env::current_exe().expect("a path").with_file_name("quietly");
    if !quietly.exists() {
        println!("left out: memory of one pass (run `make bench-memory`)");
        return vec![];
    }
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let table = folder.path().join("table.parquet");
    let bytes = write(&table);
    let start = Instant::now();
    let peak = peak_kib(&quietly, folder.path(), &table);
    println!(
        "one pass over {:.2} GB of Parquet: {:.0} s, {:.0} MB at most",
        bytes as f64 / 1e9,
        start.elapsed().as_secs_f64(),
        peak * 1024.0 / 1e6
    );
    vec![
        Line::at_least("size of the Parquet table", bytes as f64 / 1e9, 5.0, "GB"),
        Line::at_most("one pass over it: most memory", peak * 1024.0 / 1e6, 300.0, "MB"),
    ]
}

/// Writes the table and its schema; returns the size of the table's file.
fn write(path: &Path) -> u64 {
    // Marsaglia's xorshift: any numbers will do that cannot be compressed.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut number = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    let plain = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_max_row_group_row_count(Some(BATCH))
        .build();
    let mut writer = None;
    for _ in 0..ROWS / BATCH {
        let mut columns: Vec<(String, ArrayRef)> = (0..FEATURES)
            .map(|j| {
                let column = Float64Array::from_iter_values((0..BATCH).map(|_| number()));
                (format!("x{j}"), Arc::new(column) as ArrayRef)
            })
            .collect();
        let target = Float64Array::from_iter_values((0..BATCH).map(|_| number()));
        columns.push(("y".into(), Arc::new(target)));
        let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
        let writer = writer.get_or_insert_with(|| {
            let file = File::create(path).expect("a file");
            ArrowWriter::try_new(file, batch.schema(), Some(plain.clone())).expect("a writer")
        });
        writer.write(&batch).expect("room for the table");
    }
    writer.expect("at least one batch").close().expect("room for the table");
    let schema = format!("rows = {ROWS}\n[columns]\n\"*\" = {{ range = [-1, 1] }}\n");
    fs::write(schema_of(path), schema).expect("room for the schema");
    fs::metadata(path).expect("the file that was written").len()
}

fn schema_of(table: &Path) -> PathBuf {
    table.with_extension("schema.toml")
}

/// The most memory that a fit has resident, in KiB, as the system counts it.
fn peak_kib(quietly: &Path, folder: &Path, table: &Path) -> f64 {
    let mut child = Command::new(quietly)
        .args(["fit", "linear", "--method", "one-pass", "--target", "y", "--epsilon", "1"])
        .args(["--threads", "2", "--json", "--force", "--schema"])
        .arg(schema_of(table))
        .arg("--output")
        .arg(folder.join("model.quietly"))
        .arg(table)
        .env("TMPDIR", folder)
        .stdout(Stdio::null())
        .spawn()
        .expect("the program that was built");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0.0_f64;
    // The mark only rises, and what comes after the last look is the end of the program.
    while child.try_wait().expect("a child").is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let mark = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = mark.and_then(|mark| mark.trim().trim_end_matches("kB").trim().parse().ok());
        peak = peak.max(kib.unwrap_or(0.0));
        thread::sleep(Duration::from_millis(2));
    }
    assert!(child.wait().expect("a child").success(), "the fit has failed");
    peak
}
