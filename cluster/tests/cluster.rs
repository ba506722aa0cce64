//! A scheduler and two executors on this machine: the same bits as without them, whatever is killed.
//!
//! `quietly` is built before, and named by the variable QUIETLY (`make test-cluster` does both).
use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

const CLUSTER: &str = env!("CARGO_BIN_EXE_quietly-cluster");

fn quietly() -> PathBuf {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/debug/quietly");
    std::env::var_os("QUIETLY").map_or(default, PathBuf::from)
}

/// The token of all clusters here.
const TOKEN: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/// `quietly-cluster` with these words, with the token.
fn part(words: &[&str]) -> Command {
    let mut command = Command::new(CLUSTER);
    command.args(words).env("QUIETLY_CLUSTER_TOKEN", TOKEN);
    command
}

/// Processes that end with the test, and their folder.
struct Cluster {
    place: tempfile::TempDir,
    address: String,
    scheduler: Child,
    executors: Vec<Child>,
}

impl Cluster {
    fn new(executors: usize) -> Self {
        let place = tempfile::tempdir().unwrap();
        let (scheduler, address) = scheduler(place.path(), 0, "scheduler.log");
        let mut cluster = Cluster { place, address, scheduler, executors: Vec::new() };
        (0..executors).for_each(|_| cluster.add_executor());
        cluster
    }

    fn add_executor(&mut self) {
        let log = format!("executor-{}.log", self.executors.len());
        let child = part(&["executor", &self.address, "--cores", "1", "--verbose", "--scratch"])
            .arg(self.path("scratch"))
            .arg("--data-root")
            .arg(self.place.path())
            .arg("--scratch-root")
            .arg(self.place.path())
            .stdout(Stdio::null())
            .stderr(fs::File::create(self.path(&log)).unwrap())
            .spawn()
            .unwrap();
        self.executors.push(child);
        let registered = self.executors.len();
        wait("an executor", || {
            self.log().matches("Received register executor").count() >= registered
        });
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// What all schedulers have said.
    fn log(&self) -> String {
        let logs = ["scheduler.log", "scheduler-2.log"].map(|name| self.path(name));
        logs.iter().filter_map(|path| fs::read_to_string(path).ok()).collect()
    }

    /// A table, whose files are named several times.
    fn table(&self, rows: usize, times: usize) -> PathBuf {
        let folder = self.path("people");
        let made = Command::new(CLUSTER)
            .args(["example", "--features", "6", "--files", "4", "--rows", &rows.to_string()])
            .arg(&folder)
            .output()
            .unwrap();
        assert!(made.status.success());
        for (file, time) in (0..4).flat_map(|file| (1..times).map(move |time| (file, time))) {
            let part = |name: String| folder.join(name);
            let first = part(format!("part-{file:03}.parquet"));
            // Links would be one file twice.
            fs::copy(first, part(format!("part-{file:03}-{time}.parquet"))).unwrap();
        }
        folder
    }

    /// `quietly` with these words, in the folder.
    fn quietly(&self, words: &str) -> Command {
        let mut command = Command::new(quietly());
        let path = std::env::var("PATH").unwrap_or_default();
        let beside = Path::new(CLUSTER).parent().unwrap().display().to_string();
        command
            .args(words.split_whitespace())
            .current_dir(self.place.path())
            .env("PATH", format!("{beside}:{path}"))
            .env("QUIETLY_CLUSTER_TOKEN", TOKEN)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// The same on the cluster.
    fn away(&self, words: &str) -> Command {
        self.quietly(&format!("{words} --cluster {}", self.address))
    }

    fn kill_executor(&mut self) {
        let mut child = self.executors.pop().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    fn finished_jobs(&self) -> usize {
        self.log().matches("Job finished successfully").count()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for child in self.executors.iter_mut().chain([&mut self.scheduler]) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A scheduler at a port, or at any that is free.
fn scheduler(place: &Path, port: u16, log: &str) -> (Child, String) {
    let mut child = part(&["scheduler", "--verbose", "--port", &port.to_string()])
        .stdout(Stdio::piped())
        .stderr(fs::File::create(place.join(log)).unwrap())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("quietly-cluster scheduler at ").expect("an address");
    (child, address.into())
}

fn wait(what: &str, mut until: impl FnMut() -> bool) {
    let started = Instant::now();
    while !until() {
        assert!(started.elapsed() < Duration::from_secs(60), "waited too long for {what}");
        sleep(Duration::from_millis(20));
    }
}

fn succeeded(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

const Y: &str =
    "--schema people.schema.toml --target y --features x0,x1,x2,x3,x4,x5 --epsilon 1 --seed 5";
const SICK: &str =
    "--schema people.schema.toml --target sick --features x0,x1,x2,x3,x4,x5 --epsilon 1 --seed 5";

/// Every recipe whose steps are sums: the model of a cluster is that of one machine, to the last bit.
#[test]
fn a_cluster_gives_the_bits_of_one_machine() {
    let cluster = Cluster::new(2);
    cluster.table(40_000, 1);
    for (name, words) in [
        ("linear", format!("fit linear people {Y} --method full-batch")),
        ("relu", format!("fit relu people {Y}")),
        ("splines", format!("fit linear people {Y} --expand splines=5")),
        ("replaced", format!("fit linear people {Y} --neighbours replace-one")),
        ("dp-gd", format!("fit logistic people {SICK} --method dp-gd --steps 4")),
        ("dp-sgd", format!("fit logistic people {SICK} --method dp-sgd --steps 4")),
        ("robust", format!("fit robust people {Y} --method dp-gd --steps 3 --constraint l2")),
        ("frank-wolfe", format!("fit logistic people {SICK} --method frank-wolfe --constraint l1")),
    ] {
        let (here, there) = (format!("{name}-1.quietly"), format!("{name}-2.quietly"));
        succeeded(&cluster.quietly(&format!("{words} --output {here}")).output().unwrap());
        let jobs = cluster.finished_jobs();
        succeeded(&cluster.away(&format!("{words} --tasks 3 --output {there}")).output().unwrap());
        assert!(cluster.finished_jobs() > jobs, "{name} was asked on the cluster");
        let read = |file: &String| fs::read(cluster.path(file)).unwrap();
        assert!(read(&here) == read(&there), "{name}");
    }
    let bounds = "bounds people y x0 --epsilon 1 --rows 40000 --seed 5";
    let (here, there) =
        (cluster.quietly(bounds).output().unwrap(), cluster.away(bounds).output().unwrap());
    succeeded(&there);
    assert_eq!(here.stdout, there.stdout);
    // What is no sum is refused before anything is asked.
    let refused = cluster.away(&format!("fit logistic people {SICK}")).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("sums over rows"));
    // Neither secrets nor sums are in what the engine says, nor is the table.
    let mut said = cluster.log();
    (0..2).for_each(|k| {
        said += &fs::read_to_string(cluster.path(&format!("executor-{k}.log"))).unwrap()
    });
    assert!(said.contains("Tasks"), "the control: plans are shown");
    for secret in ["secret", "weights", "people"] {
        assert!(!said.contains(secret), "{secret}");
    }
}

/// A table prepared on the cluster is that prepared here, byte for byte, and a run of one pass reads each row once: its model is that of
/// the table as it came.
#[test]
fn a_prepared_table_gives_the_bits_of_one_pass() {
    let cluster = Cluster::new(2);
    cluster.table(60_000, 1);
    succeeded(
        &cluster.quietly("partition people --steps 25 --seed 5 --output here").output().unwrap(),
    );
    succeeded(
        &cluster.away("partition people --steps 25 --seed 5 --output there").output().unwrap(),
    );
    for entry in fs::read_dir(cluster.path("here")).unwrap() {
        let name = entry.unwrap().file_name();
        let read = |folder: &str| fs::read(cluster.path(folder).join(&name)).unwrap();
        assert!(read("here") == read("there"), "{name:?}");
    }
    let fit = |folder: &str, more: &str| {
        format!("fit linear {folder} {Y} --method one-pass --steps 25 {more}")
    };
    succeeded(&cluster.quietly(&fit("people", "--output plain.quietly")).output().unwrap());
    succeeded(&cluster.quietly(&fit("here", "--output here.quietly")).output().unwrap());
    let jobs = cluster.finished_jobs();
    succeeded(&cluster.away(&fit("there", "--output there.quietly")).output().unwrap());
    assert_eq!(
        cluster.finished_jobs() - jobs,
        26,
        "a look at builds, and a question for every step"
    );
    let model = |name: &str| fs::read_to_string(cluster.path(name)).unwrap();
    assert_eq!(model("here.quietly"), model("there.quietly"));
    // But for the allocation, which the certificate records.
    let weights = |name: &str| {
        let model = model(name);
        let start = model.find("\"weights\"").unwrap();
        model[start..model[start..].find(']').unwrap() + start].to_string()
    };
    assert_eq!(weights("plain.quietly"), weights("here.quietly"));
    let recorded = |name: &str| model(name).contains("\"allocation\": {");
    assert!(recorded("here.quietly") && !recorded("plain.quietly"));
}

/// An executor is killed in the middle of a step: its tasks are lost and done again by the other, with the same bits.
#[test]
fn a_killed_executor_changes_no_bit() {
    let mut cluster = Cluster::new(2);
    cluster.table(2_000_000, 8);
    let words = format!("fit logistic people {SICK} --method dp-gd --steps 2");
    succeeded(&cluster.quietly(&format!("{words} --output here.quietly")).output().unwrap());
    let run = cluster.away(&format!("{words} --tasks 24 --output there.quietly")).spawn().unwrap();
    wait("a step", || cluster.log().contains("Job submitted"));
    sleep(Duration::from_millis(300));
    cluster.kill_executor();
    let output = run.wait_with_output().unwrap();
    succeeded(&output);
    let log = cluster.log();
    let reset =
        log.lines().find(|line| line.contains("on lost Executor") && line.contains("Reset "));
    let reset = reset.expect("tasks were lost");
    let count = reset.split("Reset ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    assert!(count.parse::<u32>().unwrap() > 0, "{reset}");
    println!("tasks that were lost and done again: {count}");
    let read = |name: &str| fs::read(cluster.path(name)).unwrap();
    assert!(read("here.quietly") == read("there.quietly"));
}

/// All executors are lost: the run ends with an error that says so, and no model. With new ones the same command goes on
/// where it stopped: old steps are not asked again, and the model is that of an unbroken run.
#[test]
fn a_run_without_executors_ends_and_goes_on_later() {
    let mut cluster = Cluster::new(2);
    cluster.table(500_000, 8);
    let words = format!("fit logistic people {SICK} --method dp-gd --steps 12");
    succeeded(&cluster.quietly(&format!("{words} --output here.quietly")).output().unwrap());
    let away = format!("{words} --checkpoint run.checkpoint --output there.quietly");
    let run = cluster.away(&away).spawn().unwrap();
    // The first job asks which build the executors are of.
    wait("some steps", || cluster.finished_jobs() >= 4);
    cluster.kill_executor();
    cluster.kill_executor();
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("error[Q08]") && said.contains("did not respond"), "{said}");
    assert!(!cluster.path("there.quietly").exists() && cluster.path("run.checkpoint").exists());

    // A copy is refused, and so is another plan.
    fs::copy(cluster.path("run.checkpoint"), cluster.path("copy.checkpoint")).unwrap();
    let copy = away.replace("run.checkpoint", "copy.checkpoint");
    let refused = cluster.away(&copy).output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("copied"));
    let refused = cluster.away(&away.replace("--steps 12", "--steps 13")).output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("another plan"));

    cluster.add_executor();
    let jobs = cluster.finished_jobs();
    let output = cluster.away(&away).output().unwrap();
    succeeded(&output);
    assert!(String::from_utf8_lossy(&output.stdout).contains("resuming the interrupted run"));
    // The build, then 12 gradients, a histogram of norms and a count of rows, less what was asked before: three of these jobs had finished,
    // and the sums of the last may have been lost with their executor.
    let more = cluster.finished_jobs() - jobs;
    assert!((1..=13).contains(&more), "{more}");
    let read = |name: &str| fs::read(cluster.path(name)).unwrap();
    assert!(read("here.quietly") == read("there.quietly"));
    assert!(!cluster.path("run.checkpoint").exists());
}

/// The driver is killed, as by kill -9, and started again: no step is released twice, and the model is that of an unbroken run.
#[test]
fn a_killed_driver_goes_on() {
    let cluster = Cluster::new(2);
    cluster.table(500_000, 4);
    let words = format!("fit linear people {Y} --method full-batch");
    succeeded(&cluster.quietly(&format!("{words} --output here.quietly")).output().unwrap());
    let away = format!("{words} --checkpoint run.checkpoint --output there.quietly");
    let mut runs = 0;
    while runs < 3 {
        let jobs = cluster.finished_jobs();
        let mut run = cluster.away(&away).spawn().unwrap();
        // The first job of each run asks which build the executors are of.
        wait("some steps", || cluster.finished_jobs() >= jobs + 4);
        run.kill().unwrap();
        run.wait().unwrap();
        runs += 1;
    }
    let pages = |text: String| text.lines().count() - 1;
    let before = pages(fs::read_to_string(cluster.path("run.checkpoint")).unwrap());
    assert!(before >= 6, "{before}");
    succeeded(&cluster.away(&away).output().unwrap());
    let read = |name: &str| fs::read(cluster.path(name)).unwrap();
    assert!(read("here.quietly") == read("there.quietly"));
}

/// The scheduler is killed in the middle of a run and started again at its port: executors come back to it, the step is
/// asked anew, and the model is the same.
#[test]
fn a_restarted_scheduler_is_found_again() {
    let mut cluster = Cluster::new(2);
    cluster.table(500_000, 8);
    let words = format!("fit logistic people {SICK} --method dp-gd --steps 12");
    succeeded(&cluster.quietly(&format!("{words} --output here.quietly")).output().unwrap());
    let away = format!("{words} --checkpoint run.checkpoint --output there.quietly");
    let run = cluster.away(&away).spawn().unwrap();
    wait("some steps", || cluster.finished_jobs() >= 3);
    cluster.scheduler.kill().unwrap();
    cluster.scheduler.wait().unwrap();
    let port = cluster.address.rsplit(':').next().unwrap().parse().unwrap();
    (cluster.scheduler, _) = scheduler(cluster.place.path(), port, "scheduler-2.log");
    let output = run.wait_with_output().unwrap();
    if !output.status.success() {
        // Executors may come back too late: then it ends with a clear error, and goes on.
        assert!(String::from_utf8_lossy(&output.stderr).contains("error[Q08]"));
        println!("the run was interrupted, and resumes");
        succeeded(&cluster.away(&away).output().unwrap());
    }
    let read = |name: &str| fs::read(cluster.path(name)).unwrap();
    assert!(read("here.quietly") == read("there.quietly"));
}

/// The walk-through of docs/cluster.md, as it stands there.
#[test]
fn the_guide_can_be_pasted() {
    let page = include_str!("../../docs/cluster.md");
    let script = page.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let place = tempfile::tempdir().unwrap();
    let beside = |path: &Path| path.parent().unwrap().display().to_string();
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("bash")
        .args(["-ec", &format!("set -m\n{script}")])
        .current_dir(place.path())
        .env("PATH", format!("{}:{}:{path}", beside(Path::new(CLUSTER)), beside(&quietly())))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("saved full.quietly") && said.contains("allocation"), "{said}");
}

/// Files that only the driver sees, a scheduler that is not there, and addresses that are none: errors, and no model.
#[test]
fn what_cannot_be_asked_is_said() {
    let cluster = Cluster::new(1);
    cluster.table(1000, 1);
    let words = format!("fit linear people {Y} --method full-batch --output model.quietly");
    for (address, say) in
        [("df://127.0.0.1:1", "there was no scheduler"), ("nowhere", "df://host:port")]
    {
        let output = cluster.quietly(&format!("{words} --cluster {address}")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(say), "{said}");
    }
    // CSV cannot be read in parts.
    fs::write(cluster.path("people.csv"), "x0,x1,x2,x3,x4,x5,y,sick\n0,0,0,0,0,0,0,0\n").unwrap();
    let output = cluster.away(&words.replace("people ", "people.csv ")).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("error[D18]"));
    assert!(!cluster.path("model.quietly").exists());
}

/// Strangers: a plain client of the engine, another token, and no token.
#[test]
fn strangers_are_refused() {
    let cluster = Cluster::new(1);
    cluster.table(1000, 1);
    fs::write(cluster.path("secret.csv"), "a,b\n4711,2\n").unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let csv = cluster.path("secret.csv").display().to_string();
    let asked = runtime.block_on(async {
        use ballista::prelude::SessionContextExt;
        use datafusion::prelude::{CsvReadOptions, SessionContext};
        let session = SessionContext::remote(&cluster.address).await?;
        session.register_csv("t", &csv, CsvReadOptions::new()).await?;
        session.sql("SELECT * FROM t").await?.collect().await
    });
    let said = asked.unwrap_err().to_string();
    assert!(said.contains("needs its token") && !said.contains("4711"), "{said}");
    let words = format!("fit linear people {Y} --method full-batch --output model.quietly");
    for token in ["ff".repeat(32), String::new(), "7".into()] {
        let output = cluster.away(&words).env("QUIETLY_CLUSTER_TOKEN", &token).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("token") || said.contains("QUIETLY_CLUSTER_TOKEN"), "{said}");
    }
    let joined = part(&["executor", &cluster.address, "--cores", "1", "--data-root", "."])
        .env("QUIETLY_CLUSTER_TOKEN", "ff".repeat(32))
        .output()
        .unwrap();
    assert!(!joined.status.success());
    assert_eq!(cluster.log().matches("Received register executor").count(), 1);
    assert!(!cluster.path("model.quietly").exists());
}

/// Files and folders outside of an executor's own.
#[test]
fn an_executor_keeps_to_its_folders() {
    let cluster = Cluster::new(1);
    cluster.table(1000, 1);
    let elsewhere = tempfile::tempdir().unwrap();
    let outside = elsewhere.path().join("people");
    fs::create_dir(&outside).unwrap();
    for entry in fs::read_dir(cluster.path("people")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, outside.join(path.file_name().unwrap())).unwrap();
    }
    let table = outside.display().to_string();
    let read = format!("fit linear {table} {Y} --method full-batch --output model.quietly");
    let write =
        format!("partition people --steps 25 --output {}", elsewhere.path().join("p").display());
    for (words, say) in [(read, "--data-root"), (write, "--scratch-root")] {
        let output = cluster.away(&words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(say), "{said}");
    }
    assert!(!elsewhere.path().join("p").exists() && !cluster.path("model.quietly").exists());
}
