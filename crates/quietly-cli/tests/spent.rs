//! What is charged, what is refused before, and what is not lost: budgets, models and files.
use std::{
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use parquet::{arrow::ArrowWriter, file::properties::WriterProperties};
use serde_json::Value;

mod run;
use run::{Folder, table};

const FIT: &str = "fit linear train.csv --target y --schema s.toml --epsilon 1 --delta 1e-7";

/// A folder with tables and a ledger `L`.
fn with_ledger() -> Folder {
    let folder = Folder::with_tables();
    folder.good("budget L --limit 9 --delta 1e-4");
    folder
}

/// What the ledger has, charge by charge.
fn releases(folder: &Folder) -> Vec<Value> {
    folder.json("budget L")["entries"].as_array().unwrap().clone()
}

fn parquet(folder: &Folder, name: &str, columns: Vec<(&str, ArrayRef)>, group: usize) {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = std::fs::File::create(folder.path(name)).unwrap();
    let small = WriterProperties::builder().set_max_row_group_row_count(Some(group)).build();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(small)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

fn command(folder: &Folder, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quietly"));
    command.args(arguments.split_whitespace()).current_dir(folder.path("."));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn every_verb_charges_once() {
    let folder = with_ledger();
    folder.write("s.toml", folder.read("s.toml") + "k = { values = [\"u\", \"v\"] }\n");
    folder.write("train.csv", table(3000).replace("a,b,c,y,name", "a,b,k,y,name"));
    folder.write("s.toml", folder.read("s.toml").replace("c = { values = [\"u\", \"v\"] }\n", ""));
    folder.good(&format!("{FIT} --features a,b --output m.quietly"));
    let verbs = [
        format!("{FIT} --features a,b --ledger L"),
        "bounds train.csv a b --epsilon 0.2 --ledger L".into(),
        "check train.csv --schema s.toml --epsilon 0.1 --ledger L".into(),
        "evaluate m.quietly train.csv --epsilon 0.1 --ledger L".into(),
        "diagnose train.csv --schema s.toml --target k --features a,b --epsilon 1 --spend 0.1 --ledger L".into(),
    ];
    for (before, verb) in verbs.iter().enumerate() {
        folder.good(verb);
        let releases = releases(&folder);
        assert_eq!(releases.len(), before + 1, "{verb}");
        assert_eq!(releases[before]["state"], "finished", "{verb}");
        let at = releases[before]["at"].as_str().unwrap();
        assert!(at.starts_with("20") && at.ends_with('Z') && at.len() == 20, "{at}");
    }
    let spent = &folder.json("budget L")["spent"];
    assert!((spent["epsilon"].as_f64().unwrap() - 1.5).abs() < 1e-12, "{spent}");
    // The same by the environment, and not if it is declined.
    let by_environment = |more: &str| {
        let line = format!("bounds train.csv a --epsilon 0.1 {more}");
        let done = command(&folder, &line).env("QUIETLY_LEDGER", "L").output().unwrap();
        assert!(done.status.success());
        releases(&folder).len()
    };
    assert_eq!((by_environment(""), by_environment("--no-ledger")), (6, 6));
    let shown = folder.good("budget L");
    assert!(shown.contains("date") && shown.contains("ranges of a, b"), "{shown}");
    // A line that was deleted, changed or moved is found.
    let lines: Vec<String> = folder.read("L").lines().map(String::from).collect();
    let swapped = [&lines[..2], &[lines[3].clone(), lines[2].clone()], &lines[4..]].concat();
    let deleted = [&lines[..1], &lines[2..]].concat();
    let mut changed = lines.clone();
    changed[1] = changed[1].replace("\"epsilon\":1.0", "\"epsilon\":0.1");
    assert_ne!(changed, lines);
    for (lines, at) in [(deleted, "line 2"), (changed, "line 3"), (swapped, "line 3")] {
        folder.write("L", lines.join("\n") + "\n");
        let message = folder.bad("budget L", "Q05", 2);
        assert!(message.contains(at), "{message}");
        folder.bad("bounds train.csv a --epsilon 0.1 --ledger L", "Q05", 2);
    }
}

#[test]
fn a_schema_that_names_its_ledger_is_not_passed_by() {
    let folder = with_ledger();
    folder.write("train.schema.toml", format!("ledger = \"L\"\n{}", folder.read("s.toml")));
    let fit = "fit linear train.csv --target y --epsilon 1 --delta 1e-7";
    folder.good(&format!("{fit} --output a.quietly"));
    folder.good("bounds train.csv a --epsilon 0.1");
    folder.good("evaluate a.quietly train.csv --epsilon 0.1");
    assert_eq!(releases(&folder).len(), 3);
    folder.good("budget other --limit 9 --delta 1e-4");
    for line in
        [format!("{fit} --ledger other"), "bounds train.csv a --epsilon 0.1 --ledger other".into()]
    {
        folder.bad(&line, "C15", 1);
    }
    folder.good("bounds train.csv a --epsilon 0.1 --no-ledger");
    // Verbs that take the rows to be public would pass it by, too.
    for line in [
        "check train.csv --public",
        "diagnose train.csv --target c --epsilon 1 --public",
        "compare train.csv --target y --methods full-batch --epsilons 1 --seeds 1",
        "compare test.csv --schema s.toml --target y --methods full-batch --epsilons 1 --seeds 1 --test train.csv",
        "bounds --public train.csv a",
    ] {
        folder.bad(line, "C15", 1);
        folder.good(&format!("{line} --no-ledger"));
    }
    let public = "fit relu test.csv --schema s.toml --target y --epsilon 1 --method dp-glmtron";
    folder.bad(&format!("{public} --public train.csv"), "C15", 1);
    folder.bad(&format!("{public} --public test.csv"), "Q02", 1);
    assert_eq!(releases(&folder).len(), 3);
    // Nor does a schema without that line, or a copy of the table elsewhere.
    folder.good(&format!("{fit} --schema s.toml --output b.quietly"));
    std::fs::create_dir(folder.path("d")).unwrap();
    std::fs::copy(folder.path("train.csv"), folder.path("d/t.csv")).unwrap();
    folder.good("evaluate a.quietly d/t.csv --epsilon 0.1 --schema train.schema.toml");
    folder.good("bounds d/t.csv a --epsilon 0.1 --schema train.schema.toml");
    assert_eq!(releases(&folder).len(), 6);
    folder.write("d/t.schema.toml", format!("ledger = \"other\"\n{}", folder.read("s.toml")));
    folder.bad("bounds d/t.csv a --epsilon 0.1 --schema train.schema.toml", "C15", 1);
    // Whatever the table is called: through a link, as one of several files, or as a file of a folder that is a table.
    #[cfg(unix)]
    {
        std::fs::create_dir_all(folder.path("links")).unwrap();
        std::os::unix::fs::symlink(folder.path("train.csv"), folder.path("links/x.csv")).unwrap();
        std::fs::create_dir_all(folder.path("train")).unwrap();
        std::fs::copy(folder.path("train.csv"), folder.path("train/part.csv")).unwrap();
        let before = releases(&folder).len();
        for (k, files) in
            ["links/x.csv", "test.csv train.csv", "train/part.csv", "train/*.csv", "train"]
                .iter()
                .enumerate()
        {
            folder.good(&format!("evaluate a.quietly {files} --epsilon 0.1 --delta 1e-7"));
            assert_eq!(releases(&folder).len(), before + k + 1, "{files}");
        }
    }
    // A ledger that is not there is no reason to spend without one.
    std::fs::remove_file(folder.path("L")).unwrap();
    folder.bad("bounds train.csv a --epsilon 0.1", "Q05", 2);
}

/// A run that names no delta leaves nine tenths of what there is.
#[test]
fn the_default_delta_leaves_room() {
    let folder = Folder::with_tables();
    folder.good("budget L --limit 9 --delta 1e-5");
    for delta in [1e-6, 1e-7] {
        let fit = FIT.replace(" --delta 1e-7", "");
        let said = folder.json(&format!("{fit} --ledger L --force"));
        assert_eq!(said["delta"], delta);
        folder.good("evaluate y-linear.quietly test.csv --epsilon 0.1 --ledger L");
    }
    assert_eq!(releases(&folder).len(), 4);
    assert!(releases(&folder).iter().all(|charge| charge["delta"].as_f64().unwrap() <= 1e-6));
}

/// Neither pictures nor the example replace a file of the user.
#[test]
fn pictures_and_examples_replace_nothing() {
    let folder = Folder::with_tables();
    folder.good("budget L --limit 3 --delta 1e-4");
    let (ledger, schema) = (folder.read("L"), folder.read("s.toml"));
    folder.bad("audit canary --epsilon 1 --runs 1000 --svg L", "C10", 1);
    let compare = "compare train.csv --schema s.toml --target y --methods full-batch --epsilons 1 --seeds 1 --svg";
    let done = folder.quietly(&format!("{compare} s.toml"));
    assert_eq!(done.code, 1, "{}", done.stderr);
    folder.good(&format!("{compare} p.svg"));
    folder.good(&format!("{compare} p.svg"));
    folder.write("clinic.csv", "my,own,table\n1,2,3\n");
    folder.bad("example", "C10", 1);
    assert!(
        folder.read("clinic.csv").starts_with("my,own")
            && !folder.path("clinic.schema.toml").exists()
    );
    assert_eq!((folder.read("L"), folder.read("s.toml")), (ledger, schema));
    std::fs::remove_file(folder.path("clinic.csv")).unwrap();
    folder.good("example");
    folder.good("example");
}

/// A plan that asks nothing of the rows costs nothing, and a folder is no place for a model: both are known before the charge.
#[test]
fn what_is_not_asked_is_not_charged() {
    let folder = with_ledger();
    folder.write("few.toml", folder.read("s.toml").replace("rows = 3000", "rows = 2"));
    let rows = folder.read("few.toml");
    assert!(rows.contains("rows = 2\n"), "{rows}");
    let fit = "fit linear train.csv --schema few.toml --target y --epsilon 1 --ledger L";
    assert!(folder.good(&format!("{fit} --output few.quietly")).contains("epsilon 0 of 1 spent"));
    let done = folder.quietly(&format!("{FIT} --ledger L --output days.quietly/"));
    assert!(done.code == 2 && done.stderr.contains("error[C09]"), "{}", done.stderr);
    assert_eq!(releases(&folder).len(), 0);
}

#[test]
fn a_model_that_is_there_is_not_replaced() {
    let folder = with_ledger();
    folder.write("m.quietly", "a paid model");
    let fit = format!("{FIT} --ledger L --output m.quietly");
    folder.bad(&fit, "C10", 1);
    assert_eq!((releases(&folder).len(), folder.read("m.quietly")), (0, "a paid model".into()));
    folder.good(&format!("{fit} --force"));
    folder.good(&format!("{fit} --force"));
    assert_eq!(folder.read("m.quietly.1"), "a paid model");
    folder.good("certificate m.quietly.2");
    // Other verbs replace what they wrote themselves, and no table.
    let table = folder.read("test.csv");
    folder.write("keep.csv", &table);
    for verb in ["label m.quietly", "predict m.quietly test.csv"] {
        folder.bad(&format!("{verb} --output keep.csv"), "C10", 1);
        assert_eq!(folder.read("keep.csv"), table);
        folder.good(&format!("{verb} --output own"));
        folder.good(&format!("{verb} --output own"));
        folder.good(&format!("{verb} --output keep.csv --force"));
        folder.write("keep.csv", &table);
        std::fs::remove_file(folder.path("own")).unwrap();
    }
    // Eight at once: one model, one charge.
    let before = releases(&folder).len();
    let fit = format!("{FIT} --ledger L --output one.quietly");
    let all: Vec<_> = (0..8).map(|_| command(&folder, &fit).spawn().unwrap()).collect();
    let ends = all.into_iter().map(|run| run.wait_with_output().unwrap());
    let mut codes: Vec<_> = ends.map(|end| end.status.code().unwrap()).collect();
    codes.sort_unstable();
    assert_eq!(codes, [0, 1, 1, 1, 1, 1, 1, 1]);
    assert_eq!(releases(&folder).len(), before + 1);
    assert!(folder.list().iter().all(|name| !name.contains("partial")));
}

/// Files may not grow beyond 32 kB here, which is less than a model may take.
#[cfg(unix)]
#[test]
fn a_full_disk_is_found_out_before_the_charge() {
    let folder = with_ledger();
    let fit = format!("{FIT} --ledger L --output m.quietly");
    let line = format!("trap '' XFSZ; ulimit -f 64; exec {} {fit}", env!("CARGO_BIN_EXE_quietly"));
    let mut shell = Command::new("sh");
    let done = shell.args(["-c", &line]).current_dir(folder.path(".")).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(2), "{said}");
    assert!(said.starts_with("error[C09]"), "{said}");
    assert_eq!(releases(&folder).len(), 0);
    assert_eq!(folder.list(), ["L", "s.toml", "test.csv", "train.csv"]);
    // A model that was paid for and cannot be written is not thrown away.
    if std::path::Path::new("/dev/full").exists() {
        std::fs::create_dir(folder.path("t")).unwrap();
        let full = format!("{FIT} --ledger L --output /dev/full");
        let done = command(&folder, &full).env("TMPDIR", folder.path("t")).output().unwrap();
        assert_eq!(done.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&done.stderr).contains("not lost"));
        folder.good("certificate t/full.1");
    }
}

#[test]
fn a_torn_ledger_is_repaired_when_asked() {
    let folder = with_ledger();
    folder.good(&format!("{FIT} --ledger L --output m.quietly"));
    let whole = folder.read("L");
    folder.write("L", format!("{whole}{{\"when\":"));
    let message = folder.bad("budget L", "Q05", 2);
    assert!(message.contains("--repair"), "{message}");
    folder.bad("bounds train.csv a --epsilon 0.1 --ledger L", "Q05", 2);
    let said = folder.good("budget L --repair");
    assert!(said.contains("8 bytes of an incomplete last line were removed"), "{said}");
    assert!(folder.good("budget L --repair").contains("nothing to repair"));
    folder.good("bounds train.csv a --epsilon 0.1 --ledger L");
    assert_eq!(releases(&folder).len(), 2);
}

#[test]
fn what_is_public_is_refused_before_the_charge() {
    let folder = with_ledger();
    let numbers = || Arc::new(Float64Array::from_iter_values((0..500).map(f64::from))) as ArrayRef;
    let texts = || Arc::new(StringArray::from_iter_values((0..500).map(|i| i.to_string())));
    let times = Arc::new(TimestampMicrosecondArray::from_iter_values(0..500)) as ArrayRef;
    let columns =
        vec![("w", times), ("a", numbers()), ("s", texts() as ArrayRef), ("y", numbers())];
    parquet(&folder, "t.parquet", columns, 500);
    let a = "a = { range = [0, 500] }\ny = { range = [0, 500] }\n";
    for (name, rules) in [
        ("time", "w = { range = [0, 1] }\na = { range = [0, 1] }\ny = { range = [0, 1] }\n"),
        ("text", "s = { range = [0, 1] }\ny = { range = [0, 1] }\n"),
        ("target", "a = { range = [0, 1] }\ny = { range = [0, 1] }\ns = { range = [0, 1] }\n"),
        ("values", "a = { values = [\"x\", \"z\"] }\ny = { range = [0, 1] }\n"),
        ("fine", a),
        ("insists", "s = { range = [0, 500], numbers_in_text = true }\ny = { range = [0, 500] }\n"),
    ] {
        folder.write(name, format!("rows = 500\n[columns]\n{rules}"));
    }
    let fit = |schema: &str, target: &str, more: &str| {
        format!(
            "fit linear t.parquet --schema {schema} --target {target} --epsilon 1 --delta 1e-7 --ledger L {more}"
        )
    };
    for (schema, target) in [("time", "y"), ("text", "y"), ("target", "s"), ("values", "y")] {
        let message = folder.bad(&fit(schema, target, ""), "D13", 1);
        assert_eq!(releases(&folder).len(), 0, "{message}");
    }
    folder.bad("bounds t.parquet s --epsilon 1 --ledger L", "D13", 1);
    folder.bad(&fit("fine", "y", "--steps 0 --method dp-ssgd"), "Q02", 1);
    // One pass keeps rows on disk for a while.
    let one_pass = "fit linear train.csv --schema s.toml --target y --epsilon 8 --delta 1e-7 --ledger L --method one-pass";
    let done = command(&folder, one_pass).env("TMPDIR", "/nowhere").output().unwrap();
    assert_eq!(done.status.code(), Some(2));
    // More features than one pass takes.
    let names: Vec<String> = (0..1100).map(|i| format!("x{i}")).collect();
    folder.write("wide.csv", format!("{}\n", names.join(",")));
    folder.write(
        "wide",
        "rows = 1e9\n[columns]\n\"*\" = { range = [0, 1] }\nx0 = { range = [0, 1] }\n",
    );
    let wide =
        "fit linear wide.csv --schema wide --target x0 --epsilon 1 --method one-pass --ledger L";
    folder.bad(wide, "Q03", 1);
    assert_eq!(releases(&folder).len(), 0);
    // The controls: what can be read is, and who insists is heard.
    folder.good(&fit("fine", "y", "--output a.quietly"));
    folder.good(&fit("insists", "y", "--output b.quietly"));
    assert_eq!(releases(&folder).len(), 2);
}

/// A folder with a table in Parquet whose rows a run asks step by step.
fn with_parquet() -> Folder {
    let folder = with_ledger();
    let number = |k: u64| {
        let one = move |i: u64| ((i * 2_654_435_761 + k * 40_503) % 1_000_003) as f64 / 1_000_003.0;
        Arc::new(Float64Array::from_iter_values((0..200_000).map(one))) as ArrayRef
    };
    parquet(
        &folder,
        "c.parquet",
        vec![("a", number(1)), ("b", number(2)), ("y", number(3))],
        20_000,
    );
    let rules = ["a", "b", "y"].map(|name| format!("{name} = {{ range = [0, 1] }}\n")).concat();
    folder.write("c.toml", format!("rows = 200000\n[columns]\n{rules}"));
    folder
}

fn stepwise(output: &str, checkpoint: &str, ledger: &str) -> String {
    format!(
        "fit linear c.parquet --schema c.toml --target y --epsilon 0.5 --delta 1e-7 --threads 1 --output {output} \
         --checkpoint {checkpoint} {ledger}"
    )
}

/// Kills a run once its checkpoint has so many lines.
fn killed(folder: &Folder, line: &str, checkpoint: &str, lines: usize) {
    let mut run = command(folder, line).spawn().unwrap();
    let start = Instant::now();
    let count = || {
        std::fs::read(folder.path(checkpoint))
            .map_or(0, |text| text.iter().filter(|byte| **byte == b'\n').count())
    };
    while count() < lines {
        assert!(run.try_wait().unwrap().is_none(), "the run was too quick");
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
    run.kill().unwrap();
    run.wait().unwrap();
}

/// A checkpoint that was put back releases nothing twice: before the end, after the end, as a hard link, as a copy elsewhere.
#[cfg(unix)]
#[test]
fn a_checkpoint_that_was_put_back_is_refused() {
    for ledger in ["--ledger L", ""] {
        let folder = with_parquet();
        let refused = |output: &str, checkpoint: &str, say: &str| {
            let done = folder.quietly(&stepwise(output, checkpoint, ledger));
            assert_eq!(done.code, 2, "{checkpoint}: {}", done.stdout);
            assert!(done.stderr.contains(say), "{checkpoint}: {}", done.stderr);
            assert!(!folder.path(output).exists());
        };
        killed(&folder, &stepwise("1.quietly", "j", ledger), "j", 4);
        let backup = folder.read("j");
        // Before the end: the run resumes for some entries, and then an older checkpoint is restored.
        let lines: Vec<&str> = backup.lines().collect();
        folder.write("j", lines[..lines.len() - 2].join("\n") + "\n");
        refused("2.quietly", "j", "older than what its run released");
        folder.write("j", &backup);
        std::fs::hard_link(folder.path("j"), folder.path("k")).unwrap();
        std::fs::create_dir(folder.path("d")).unwrap();
        folder.write("d/j", &backup);
        if ledger.is_empty() {
            refused("2.quietly", "k", "copied");
            refused("2.quietly", "d/j", "copied");
        }
        let said = folder.good(&stepwise("1.quietly", "j", ledger));
        assert!(said.contains("resuming the interrupted run"), "{said}");
        assert!(!folder.path("j").exists());
        // After the end: under its own name, by the link, and in another folder.
        let end = if ledger.is_empty() { "copied" } else { "is complete" };
        folder.write("j", &backup);
        refused("2.quietly", "j", "is complete");
        folder.write("k", &backup);
        refused("2.quietly", "k", end);
        refused("2.quietly", "d/j", end);
        if !ledger.is_empty() {
            assert_eq!(releases(&folder).len(), 1);
            // Without its checkpoint it is another run, and charged again.
            std::fs::remove_file(folder.path("j")).unwrap();
            folder.good(&stepwise("2.quietly", "j", ledger));
            assert_eq!(releases(&folder).len(), 2);
            assert_eq!(folder.path("L.runs").read_dir().unwrap().count(), 0);
        }
    }
}

#[cfg(unix)]
#[test]
fn a_run_that_is_stopped_stays_charged() {
    stopped(&with_parquet(), &stepwise("1.quietly", "j", "--ledger L"));
    // The same for units of several rows, where delta is the usual one of the unit.
    let units = with_parquet();
    units.write("c.toml", format!("rows_per_unit = 4\n{}", units.read("c.toml")));
    stopped(&units, &stepwise("1.quietly", "j", "--ledger L").replace("--delta 1e-7", ""));
}

#[cfg(unix)]
fn stopped(folder: &Folder, line: &str) {
    let mut run = command(folder, line).spawn().unwrap();
    let start = Instant::now();
    while !std::fs::read_to_string(folder.path("j")).is_ok_and(|text| text.lines().count() > 2) {
        assert!(run.try_wait().unwrap().is_none() && start.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
    Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(130));
    assert!(
        folder.list().iter().all(|name| !name.contains("partial") && !name.contains("quietly"))
    );
    let charge = releases(folder);
    assert_eq!((charge.len(), &charge[0]["state"]), (1, &"begun".into()));
    // The same command resumes, and is not charged again.
    folder.good(line);
    let charge = releases(folder);
    assert_eq!((charge.len(), &charge[0]["state"]), (1, &"finished".into()));
}
