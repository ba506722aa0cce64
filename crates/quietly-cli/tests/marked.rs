//! No cell is told: in tables whose cells all hold a snowman, no verb says or writes one.
//!
//! Names that only a file says are cells until proven otherwise. So files without a header are
//! tried as well, with every end of a line and in every format.
mod run;
use std::{fs, io::Write, path::Path, sync::Arc};

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use run::Folder;

const MARK: char = '\u{2603}';

const SCHEMA: &str = "rows = 60\nunit = \"person\"\n[columns]\n\
    a = { range = [0, 10] }\nb = { range = [-1, 1] }\nc = { values = [\"u\", \"v\"] }\ny = { range = [0, 40] }\n";

/// What every good table is called by; the last name is one that only the file says.
const HEADER: [&str; 5] = ["a", "b", "c", "y", "extra \u{2603}"];

/// A word of the marked alphabet. SplitMix64 is enough, and the same each time.
fn word(state: &mut u64) -> String {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z ^= z >> 27;
    let letters: String =
        (0..1 + z % 5).map(|k| char::from(b'a' + (z >> (8 * k)) as u8 % 26)).collect();
    match z % 3 {
        0 => format!("{MARK}{letters}"),
        1 => format!("{letters} {MARK}"),
        _ => format!("{}{MARK}{letters}", letters.to_uppercase()),
    }
}

fn rows(seed: u64) -> Vec<Vec<String>> {
    let mut state = seed;
    (0..60).map(|_| (0..HEADER.len()).map(|_| word(&mut state)).collect()).collect()
}

fn csv(rows: &[Vec<String>], header: bool, end: &str) -> String {
    let header = header.then(|| HEADER.join(",")).into_iter();
    header.chain(rows.iter().map(|row| row.join(","))).map(|line| line + end).collect()
}

fn gzip(text: &str) -> Vec<u8> {
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(text.as_bytes()).unwrap();
    gz.finish().unwrap()
}

/// The columns under these names; a table without header has its first row there.
fn batch(rows: &[Vec<String>], header: bool) -> RecordBatch {
    let (names, rows): (Vec<String>, _) = match header {
        true => (HEADER.map(String::from).to_vec(), rows),
        false => (rows[0].clone(), &rows[1..]),
    };
    let column = |k: usize| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row[k])))
    };
    RecordBatch::try_from_iter(names.into_iter().enumerate().map(|(k, n)| (n, column(k)))).unwrap()
}

fn parquet(batch: &RecordBatch) -> Vec<u8> {
    let mut writer =
        parquet::arrow::ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}

fn arrow(batch: &RecordBatch) -> Vec<u8> {
    let mut writer = arrow_ipc::writer::FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}

/// Every file below a folder but tables.
fn written(folder: &Path, into: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            written(&path, into);
        } else if !name.starts_with("table") && !name.ends_with(".parquet") {
            into.push((name, String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned()));
        }
    }
}

/// Runs a verb, and looks at all that it said and wrote.
fn try_verb(folder: &Folder, verb: &str, how: &str) -> i32 {
    let done = folder.quietly(verb);
    let said = format!("{verb} ({how})\n{}{}", done.stdout, done.stderr);
    assert!(matches!(done.code, 0..=2), "{said}");
    assert!(!said.contains(MARK), "{said}");
    assert!(!done.stderr.contains("[C08]"), "{said}");
    let mut files = Vec::new();
    written(&folder.path("."), &mut files);
    for (name, text) in files {
        // Names are what init is for. It says so, and that they may be private data.
        assert!(name == "init.toml" || !text.contains(MARK), "{verb} wrote {name} ({how})\n{text}");
    }
    done.code
}

#[test]
fn no_verb_tells_a_cell() {
    let fit = "--schema s.toml --epsilon 1 --seed 1 --output m.quietly";
    let verbs = [
        "init T --force --output init.toml".to_string(),
        "bounds T a --epsilon 0.1 --rows 60 --seed 1".into(),
        "bounds --public T a".into(),
        "check T --schema s.toml --epsilon 0.1 --seed 1".into(),
        "plan linear s.toml --target y --epsilon 1 --header T".into(),
        format!("fit linear T --target y {fit}"),
        format!("fit logistic T --target c {fit}"),
        format!("fit linear good.csv T --target y {fit}"),
        "predict linear.quietly T --output p.csv".into(),
        "evaluate linear.quietly T".into(),
        "evaluate linear.quietly T --epsilon 1 --seed 1".into(),
        "evaluate classes.quietly T".into(),
        "partition T --steps 2 --output prepared --seed 1".into(),
        "compare linear T --target y --schema s.toml --epsilons 1 --seeds 1 --methods full-batch"
            .into(),
        "diagnose T --target c --schema s.toml --epsilon 1 --spend 0.1 --seed 1".into(),
    ];
    let mut done = [0; 3];
    for header in [true, false] {
        let folder = Folder::new();
        folder.write("s.toml", SCHEMA);
        folder.write(
            "good.csv",
            "a,b,c,y,name\n1,0.5,u,3,x\n".to_string() + &"2,0,v,4,x\n".repeat(50),
        );
        let good = "good.csv --schema s.toml --epsilon 1 --seed 1";
        folder.good(&format!("fit linear {good} --target y --output linear.quietly"));
        folder.good(&format!("fit logistic {good} --target c --output classes.quietly"));
        let rows = rows(7);
        let tables = [
            ("table.csv", csv(&rows, header, "\n").into_bytes()),
            ("table-crlf.csv", csv(&rows, header, "\r\n").into_bytes()),
            ("table-cr.csv", csv(&rows, header, "\r").into_bytes()),
            ("table.csv.gz", gzip(&csv(&rows, header, "\n"))),
            ("table.parquet", parquet(&batch(&rows, header))),
            ("table.arrow", arrow(&batch(&rows, header))),
        ];
        for (i, (name, bytes)) in tables.iter().enumerate() {
            folder.write(name, bytes);
            for (k, verb) in verbs.iter().enumerate() {
                // Each verb for people and for programs, though not on every table.
                let json = if (i + k) % 2 == 0 { " --json" } else { "" };
                let verb = verb.replace('T', name) + json;
                let how = if header { "with header" } else { "without header" };
                done[try_verb(&folder, &verb, how) as usize] += 1;
                let _ = fs::remove_dir_all(folder.path("prepared"));
                let _ = fs::remove_file(folder.path("m.quietly"));
            }
            fs::remove_file(folder.path(name)).unwrap();
        }
    }
    // Many succeed and many are refused, or this proves nothing.
    assert!(done[0] > 40 && done[1] > 40, "{done:?}");
}

/// The control: a mark that may be told is found where it is expected.
#[test]
fn init_writes_the_names_of_a_header() {
    let folder = Folder::new();
    folder.write("table.csv", csv(&rows(3), true, "\n"));
    let said = folder.good("init table.csv --output init.toml");
    assert!(!said.contains(MARK), "{said}");
    assert!(said.contains("if these are data"), "{said}");
    assert!(folder.read("init.toml").contains("extra \u{2603}"));
    let mut files = Vec::new();
    written(&folder.path("."), &mut files);
    assert!(files.iter().any(|(name, text)| name == "init.toml" && text.contains(MARK)));
}

/// What `split -l` makes of a table: the second file has no header.
#[test]
fn the_rest_of_a_split_table_is_refused() {
    let folder = Folder::new();
    folder.write("p1.csv", "name,age,diagnosis,y\nX,5,flu,1\n");
    folder.write("p2.csv", "K-4711,44,HIV positive,3.2\nB,5,flu,1\n");
    folder.write("mac.csv", "name,age,diagnosis,y\rK-4711,44,HIV positive,3.2\rD,6,asthma,2\r");
    folder.write("s.toml", "rows=500\n[columns]\nage={range=[0,100]}\ny={range=[0,10]}\n");
    folder
        .write("star.toml", "rows=500\n[columns]\n\"3.2\"={range=[0,10]}\n\"*\"={range=[0,100]}\n");
    let silent = |said: &str| assert!(!said.contains("4711") && !said.contains("HIV"), "{said}");
    let fit = "--schema s.toml --target y --epsilon 1";
    silent(&folder.bad(&format!("fit linear p1.csv p2.csv {fit}"), "D04", 1));
    silent(&folder.bad(&format!("fit linear p2.csv {fit}"), "D04", 1));
    silent(&folder.bad("bounds p2.csv HIV --epsilon 0.1", "D04", 1));
    silent(&folder.bad("init p2.csv", "D04", 1));
    silent(&folder.bad("fit linear p2.csv --schema star.toml --target 3.2 --epsilon 1", "D04", 1));
    silent(&folder.good(&format!("fit linear mac.csv {fit}")));
    // A user who insists gets the model, and a certificate that says so.
    folder.write("years.csv", "2020,2021,y\n1,2,3\n");
    folder.write(
        "years.toml",
        "rows=500\nheader=true\n[columns]\ny={range=[0,10]}\n\"*\"={range=[0,9]}\n",
    );
    let model = folder
        .json("fit linear years.csv --schema years.toml --target y --epsilon 1 --output m.quietly");
    let public = model["certificate"]["public"].to_string();
    assert!(public.contains("the names in the table's first line"), "{public}");
    folder.good("predict m.quietly years.csv --output p.csv --header-is-names");
    folder.good("init years.csv --header-is-names");
}

/// A row that is there three times has three times the sensitivity.
#[test]
fn the_same_rows_twice_are_refused_before_the_charge() {
    let folder = Folder::with_tables();
    folder.good("budget L --limit 3 --delta 1e-3");
    let ledger = folder.read("L");
    fs::create_dir(folder.path("f")).unwrap();
    fs::copy(folder.path("train.csv"), folder.path("f/t.csv")).unwrap();
    let fit = "--target y --schema s.toml --epsilon 1 --ledger L --output m.quietly";
    let refused = |files: &str| {
        let message = folder.bad(&format!("fit linear {files} {fit}"), "D19", 1);
        assert_eq!(folder.read("L"), ledger, "{message}");
        message
    };
    assert!(refused("train.csv ./train.csv").contains("train.csv"));
    refused("f f/t.csv");
    for copy in ["f/t.csv.gz", "f/t_copy.csv", "f/t(1).csv", "f/u.arrow"] {
        fs::copy(folder.path("train.csv"), folder.path(copy)).unwrap();
        assert!(refused("f").contains(copy.trim_start_matches("f/")), "{copy}");
        fs::remove_file(folder.path(copy)).unwrap();
    }
    fs::copy(folder.path("test.csv"), folder.path("f/u.csv")).unwrap();
    let said = folder.good(&format!("fit linear f {fit}"));
    assert!(said.contains("table (2 files): t.csv, u.csv"), "{said}");
    let said = folder.good("evaluate m.quietly test.csv");
    assert!(said.starts_with("table: test.csv"), "{said}");
    let said = folder.good("bounds train.csv a --epsilon 0.1");
    assert!(said.starts_with("# table: "), "{said}");
}
