//! `quietly-lab reproduce features --only images`, as a user would run it, and as a machine that fails would end it.
use std::{
    fs,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

#[path = "../../quietly-cli/tests/run/mod.rs"]
mod run;
use run::{BINARY, Folder};

fn tables(folder: &Folder, name: &str) -> Value {
    let report: Value = serde_json::from_str(&folder.read(&format!("{name}/report.json"))).unwrap();
    report["tables"].clone()
}

/// `kill -9` in the middle of a training: the next run goes on from the last page, and all of its numbers and pictures are
/// those of an uninterrupted run.
#[test]
fn a_killed_run_goes_on_and_ends_the_same() {
    let folder = Folder::new();
    let theirs = folder.path("whole.unfinished");
    fs::create_dir(&theirs).unwrap();
    fs::write(theirs.join("thesis"), "mine").unwrap();
    folder.good("reproduce features --only images --tiny --output whole");
    // What was there before stays, and alone.
    assert_eq!(fs::read_dir(&theirs).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(theirs.join("thesis")).unwrap(), "mine");

    let mut child = Command::new(BINARY)
        .args("reproduce features --only images --tiny --output r --threads 1".split(' '))
        .current_dir(folder.path(""))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let unfinished = folder.path("r.unfinished");
    let page = unfinished.join("pasted-snr-4-epsilon-8").join("page");
    let started = Instant::now();
    while !page.exists() && started.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(1));
    }
    // SIGKILL: nothing is tidied up.
    child.kill().unwrap();
    child.wait().unwrap();
    let bytes = fs::read(&page).expect("killed in the middle of the first network");
    let step = u64::from_le_bytes(bytes[48..56].try_into().unwrap());
    assert!((10..300).contains(&step), "{step}");
    assert!(!folder.path("r").exists());

    folder.good("reproduce features --only images --tiny --output r --threads 2");
    assert_eq!(tables(&folder, "r"), tables(&folder, "whole"));
    let picture = |name: &str| fs::read(folder.path(name).join("attention-pasted.png")).unwrap();
    assert_eq!(picture("r"), picture("whole"));
    assert!(picture("r").starts_with(b"\x89PNG\r\n\x1a\n"));
    // Nothing secret stays behind.
    assert!(!unfinished.exists());
}

#[test]
fn pictures_are_read_where_they_are_and_missed_politely() {
    let folder = Folder::new();
    fs::create_dir(folder.path("d")).unwrap();
    folder.good("reproduce features --only images --tiny --data d --output r");
    let report = folder.read("r/report.md");
    for part in
        ["CIFAR-10 was left out", "Share of Grad-CAM inside the patch", "attention-pasted.png"]
    {
        assert!(report.contains(part), "{part}");
    }
    assert!(!report.contains("Phase diagram"));
}
