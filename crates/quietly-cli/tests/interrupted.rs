//! Signals: whatever a command is doing, it ends with exit code 130 and leaves no rows behind, neither in files nor in core files.
#![cfg(target_os = "linux")]
use std::{
    fs,
    io::Read,
    os::unix::{fs::PermissionsExt, process::ExitStatusExt},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use run::Folder;

mod run;

/// `quietly` with these words, at work in a folder.
fn started(folder: &Folder, words: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_quietly"))
        .args(words.split_whitespace())
        .current_dir(folder.path("."))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until a process has a handler for SIGINT: before that, it is not our code that runs.
fn wait_for_handler(child: &Child) {
    let status = format!("/proc/{}/status", child.id());
    let program = format!("/proc/{}/exe", child.id());
    until("a handler", || {
        // Before that it may be a shell, which has handlers of its own.
        let is_ours = fs::read_link(&program).is_ok_and(|path| path.ends_with("quietly"));
        let text = fs::read_to_string(&status).unwrap_or_default();
        let caught = |mask: &str| u64::from_str_radix(mask.trim(), 16).unwrap() & 2 != 0;
        is_ours && text.lines().find_map(|line| line.strip_prefix("SigCgt:")).is_some_and(caught)
    });
}

fn until(what: &str, mut good: impl FnMut() -> bool) {
    let start = Instant::now();
    while !good() {
        assert!(start.elapsed() < Duration::from_secs(60), "waited too long for {what}");
        sleep(Duration::from_millis(1));
    }
}

/// Sends a signal, and waits for the end.
fn ended(mut child: Child, signal: &str) -> (ExitStatus, String) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let status = child.wait().unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    (status, said)
}

/// A Parquet file that takes a while to prepare.
fn large_table(folder: &Folder) {
    let (rows, columns) = (60_000, 12);
    let names: Vec<String> = (0..columns).map(|k| format!("c{k}")).collect();
    let fields: Vec<_> = names
        .iter()
        .map(|name| arrow_schema::Field::new(name, arrow_schema::DataType::Float64, false))
        .collect();
    let schema = std::sync::Arc::new(arrow_schema::Schema::new(fields));
    let column = |k: usize| {
        let numbers = (0..rows).map(|i| ((i * (331 + 2 * k)) % 1009) as f64 / 1009.0);
        std::sync::Arc::new(arrow_array::Float64Array::from_iter_values(numbers)) as _
    };
    let batch =
        arrow_array::RecordBatch::try_new(schema.clone(), (0..columns).map(column).collect());
    let batch = batch.unwrap();
    let file = fs::File::create(folder.path("large.parquet")).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, schema, None).unwrap();
    for _ in 0..4 {
        writer.write(&batch).unwrap();
        writer.flush().unwrap();
    }
    writer.close().unwrap();
}

const PREPARE: &str = "partition large.parquet --steps 21 --output p --threads 1";

/// Everything below a folder, whatever its name.
fn below(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}

/// Two runs with each signal, at times that a fixed generator spreads over a whole run. A run that ends first is complete.
#[test]
fn an_interrupted_prepare_leaves_no_byte() {
    let folder = Folder::new();
    large_table(&folder);
    let place = folder.path("p");
    let start = Instant::now();
    assert!(started(&folder, PREPARE).wait().unwrap().success());
    let whole = start.elapsed();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&place), 0o700);
    for entry in fs::read_dir(&place).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
    assert_eq!(below(&place), 2, "a part and the manifest");
    fs::remove_dir_all(&place).unwrap();
    let (mut state, mut stopped) = (4711_u64, 0);
    for signal in ["-INT", "-TERM", "-HUP", "-KILL"].repeat(2) {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let share = (state >> 40) as f64 / (1 << 24) as f64;
        let child = started(&folder, PREPARE);
        wait_for_handler(&child);
        sleep(whole.mul_f64(0.9 * share));
        let (status, said) = ended(child, signal);
        if status.success() {
            fs::remove_dir_all(&place).unwrap();
            continue;
        }
        stopped += 1;
        if signal == "-KILL" {
            assert_eq!(status.signal(), Some(9));
        } else {
            assert_eq!(status.code(), Some(130), "{signal}: {said}");
            assert!(said.starts_with("error[Q06]: "), "{signal}: {said}");
        }
        assert_eq!(below(&place), 0, "{signal} after {share:.2} of a run");
    }
    assert!(stopped >= 4, "{stopped} of 8 runs were interrupted");
    println!("{stopped} of 8 runs were interrupted");
    // What is left, an empty folder at most, is no obstacle.
    folder.good(PREPARE);
}

/// What a run that was killed between two names has left is removed, and that is said. Other files are not touched.
#[test]
fn leftovers_are_removed_and_others_are_not() {
    let folder = Folder::new();
    large_table(&folder);
    folder.good(PREPARE);
    let place = folder.path("p");
    fs::remove_file(place.join("prepared.json")).unwrap();
    fs::write(place.join(".part-000001.parquet.17-4711"), "rows").unwrap();
    let said = folder.good(PREPARE);
    assert!(said.contains("removed 2 files that an interrupted run left in p"), "{said}");
    assert_eq!(below(&place), 2);
    folder.bad(PREPARE, "Q05", 2);
    // A part of another process, and the table itself.
    let other = folder.path("q");
    fs::create_dir(&other).unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o700)).unwrap();
    fs::copy(folder.path("large.parquet"), other.join("part-000000.parquet")).unwrap();
    folder.bad(&PREPARE.replace("output p", "output q"), "Q05", 2);
    fs::remove_file(place.join("prepared.json")).unwrap();
    folder.bad("partition p/part-000000.parquet --steps 21 --output p", "Q05", 2);
    assert!(place.join("part-000000.parquet").exists() && below(&other) == 1);
}

#[test]
fn a_folder_that_others_may_enter_is_refused() {
    let folder = Folder::new();
    large_table(&folder);
    fs::create_dir(folder.path("p")).unwrap();
    for mode in [0o755, 0o710, 0o701] {
        fs::set_permissions(folder.path("p"), fs::Permissions::from_mode(mode)).unwrap();
        let said = folder.bad(PREPARE, "Q02", 1);
        assert!(said.contains("--output must be") && said.contains("chmod 700"), "{said}");
        assert_eq!(below(&folder.path("p")), 0);
    }
    fs::set_permissions(folder.path("p"), fs::Permissions::from_mode(0o700)).unwrap();
    folder.good(PREPARE);
}

/// A CSV table that takes a while to read.
fn long_table(folder: &Folder) {
    let part = run::table(30_000);
    let (header, rows) = part.split_once('\n').unwrap();
    folder.write("long.csv", format!("{header}\n{}", rows.repeat(40)));
}

/// Commands that write nothing, or nothing yet, end like the others.
#[test]
fn every_verb_ends_with_130() {
    let folder = Folder::with_tables();
    folder.good("fit linear train.csv --schema s.toml --target y --epsilon 1 --output m.quietly");
    long_table(&folder);
    let before = folder.list();
    let busy = [
        "bounds long.csv y --epsilon 0.1 --rows 3000 --threads 1",
        "evaluate m.quietly long.csv --threads 1",
        "fit linear long.csv --schema s.toml --target y --epsilon 1 --threads 1 --output n.quietly",
    ];
    for (words, signal) in busy.iter().zip(["-INT", "-TERM", "-HUP"]) {
        let child = started(&folder, words);
        wait_for_handler(&child);
        sleep(Duration::from_millis(50));
        let (status, said) = ended(child, signal);
        assert_eq!(status.code(), Some(130), "{words}: {status}: {said}");
        assert!(said.starts_with("error[Q06]: "), "{words}: {said}");
    }
    assert_eq!(folder.list(), before);
}

/// A command of quietly, after a command of the shell.
fn shell(folder: &Folder, before: &str, words: &str) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("{before} && exec {} {words}", env!("CARGO_BIN_EXE_quietly"))])
        .current_dir(folder.path("."))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

/// What `nohup` starts continues when the terminal is closed, and ends at SIGTERM.
#[test]
fn a_hangup_that_is_ignored_ends_nothing() {
    let folder = Folder::with_tables();
    long_table(&folder);
    let words = "bounds long.csv y --epsilon 0.1 --rows 3000 --threads 1";
    let mut child = shell(&folder, "trap '' HUP", words).spawn().unwrap();
    wait_for_handler(&child);
    let hangup = Command::new("kill").args(["-HUP", &child.id().to_string()]).status().unwrap();
    assert!(hangup.success());
    sleep(Duration::from_millis(150));
    match child.try_wait().unwrap() {
        // It was done before.
        Some(status) => assert!(status.success(), "{status}"),
        None => assert_eq!(ended(child, "-TERM").0.code(), Some(130)),
    }
}

/// SIGQUIT in the middle of a fit, where core files are allowed: there is none. `QUIETLY_DEBUG=1` leaves the limit as it was.
#[test]
fn a_fit_leaves_no_core_file() {
    let folder = Folder::with_tables();
    long_table(&folder);
    let before = folder.list();
    let fit = "fit linear long.csv --schema s.toml --target y --epsilon 1 --output n.quietly";
    for (debug, signal) in [("", "-QUIT"), ("1", "-KILL")] {
        let mut command = shell(&folder, "ulimit -c 1000000", &format!("{fit} --threads 1"));
        let child = command.env("QUIETLY_DEBUG", debug).spawn().unwrap();
        wait_for_handler(&child);
        let limits = fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
        let line = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
        let limit = line.split_whitespace().nth(4).unwrap();
        assert_eq!(limit == "0", debug.is_empty(), "{line}");
        sleep(Duration::from_millis(100));
        let (status, _) = ended(child, signal);
        assert!(matches!(status.signal(), Some(3 | 9)) && !status.core_dumped(), "{status}");
        // What a fit has not finished has another name.
        let is_core = |name: &&String| name.starts_with("core");
        assert_eq!(folder.list().iter().find(is_core), None);
        folder.list().iter().filter(|n| !before.contains(n)).for_each(|n| {
            fs::remove_file(folder.path(n)).unwrap();
        });
    }
}
