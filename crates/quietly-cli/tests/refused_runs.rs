//! Budgets, models and places that are refused, and runs that are stopped: no partial file is ever left.
use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

mod run;
use run::{Folder, table};

const FIT: &str = "fit linear train.csv --target y --schema s.toml --output m.quietly";

#[test]
fn a_senseless_budget_is_refused_under_its_flag() {
    let folder = Folder::with_tables();
    folder.good(&format!("{FIT} --epsilon 1"));
    let verbs = [
        FIT.replace("m.quietly", "n.quietly"),
        "plan linear s.toml --target y".into(),
        "evaluate m.quietly test.csv".into(),
    ];
    for verb in verbs {
        for epsilon in ["0", "-1", "nan", "-inf", "1e-9", "1e9"] {
            let message = folder.bad(&format!("{verb} --epsilon {epsilon}"), "A01", 1);
            assert!(message.starts_with("error[A01]: --epsilon must be"), "{message}");
        }
        // Other methods have it.
        let code = if verb.starts_with("evaluate") { "A01" } else { "Q02" };
        let message = folder.bad(&format!("{verb} --epsilon 1 --delta 0"), code, 1);
        assert!(message.starts_with(&format!("error[{code}]: --delta must be")), "{message}");
        for delta in ["1", "1.5", "-1", "nan", "inf", "1e-300"] {
            let message = folder.bad(&format!("{verb} --epsilon 1 --delta {delta}"), "A01", 1);
            assert!(message.starts_with("error[A01]: --delta must be"), "{message}");
        }
        folder.bad(&format!("{verb} --epsilon one"), "C02", 2);
        folder.bad(&format!("{verb} --epsilon 1 --neighbours both"), "C05", 2);
    }
    for epsilon in ["0", "-1", "nan", "inf", "1000", "0.001"] {
        let message = folder.bad(&format!("bounds train.csv a b --epsilon {epsilon}"), "Q02", 1);
        assert!(message.starts_with("error[Q02]: --epsilon must be"), "{message}");
        // The number that was typed, not a share of it.
        let typed = epsilon.replace("nan", "NaN");
        assert!(message.contains(&format!("but is {typed}\n")), "{message}");
    }
    for flag in ["--threads 0", "--threads 2.5", "--seed -1", "--seed 2.5"] {
        let message = folder.bad(&format!("{FIT} --epsilon 1 {flag}"), "A01", 1);
        assert!(message.contains(&flag[..6]), "{message}");
    }
    folder.bad("bounds train.csv a --epsilon 1 --rows 0", "A01", 1);
    folder.bad("plan s.toml --target y --epsilon 1", "C05", 2);
}

#[test]
fn a_budget_that_is_too_small_is_a_warning_in_plan_and_fit() {
    let folder = Folder::with_tables();
    let warned =
        |text: &str| text.contains("warning: epsilon 0.001 is too small for about 3000 rows");
    assert!(warned(&folder.good("plan linear s.toml --target y --epsilon 0.001")));
    assert!(warned(&folder.good(&format!("{FIT} --epsilon 0.001"))));
    for command in ["plan linear s.toml --target y".into(), format!("{FIT} --force")] {
        let warnings = &folder.json(&format!("{command} --epsilon 0.001"))["warnings"];
        assert_eq!(warnings.as_array().map(Vec::len), Some(1), "{warnings}");
    }
    // No privacy at all says so, too.
    let said = folder.good(&format!("{FIT} --epsilon inf --force"));
    assert!(said.contains("NO PRIVACY"), "{said}");
    assert!(folder.good("certificate m.quietly").contains("NO PRIVACY"));
    assert_eq!(folder.json("certificate m.quietly")["epsilon"], "infinity");
}

/// Only a word means infinity: digits that are too large for a number are refused as other large numbers are.
#[test]
fn digits_are_never_infinite() {
    let folder = Folder::with_tables();
    for epsilon in ["1e300", "1e999"] {
        let said = folder.bad(&format!("{FIT} --epsilon {epsilon}"), "A01", 1);
        assert!(said.contains("--epsilon must be from 0.001 to 1000"), "{said}");
    }
    folder.good(&format!("{FIT} --epsilon Infinity"));
}

#[test]
fn a_place_that_cannot_be_written_costs_nothing() {
    let folder = Folder::with_tables();
    folder.good(&format!("{FIT} --epsilon 1"));
    for output in [".", "missing/m.quietly", "train.csv/m.quietly"] {
        folder.bad(&format!("{} --epsilon 1", FIT.replace("m.quietly", output)), "C09", 2);
        folder.bad(&format!("predict m.quietly test.csv --output {output}"), "C09", 2);
        folder.bad(&format!("init test.csv --force --output {output}"), "C09", 2);
    }
    // What is read is not written over: neither under its name nor under another.
    let before = folder.read("train.csv");
    for output in ["train.csv", "./train.csv"] {
        folder.bad(&format!("{} --epsilon 1", FIT.replace("m.quietly", output)), "C10", 1);
    }
    for output in ["test.csv", "m.quietly"] {
        folder.bad(&format!("predict m.quietly test.csv --output {output}"), "C10", 1);
    }
    assert!(folder.read("train.csv") == before);
}

#[test]
fn a_model_that_cannot_be_read_is_refused() {
    let folder = Folder::with_tables();
    folder.good(&format!("{FIT} --epsilon 1"));
    let model = folder.read("m.quietly");
    assert!(model.contains("\"version\": 5,"), "{model}");
    let broken = [
        ("newer", model.replace("\"version\": 5,", "\"version\": 999,")),
        ("cut", model[..model.len() / 2].to_string()),
        ("other", "{\"format\": \"something else\"}".into()),
        ("empty", String::new()),
        ("text", table(3)),
        ("weights", model.replace("\"weights\": [", "\"weights\": [1.0, ")),
        ("null", model.replace("\"intercept\": ", "\"intercept\": null, \"was\": ")),
        ("bounds", model.replace("\"hi\": 10.0", "\"hi\": -10.0")),
    ];
    for (name, text) in broken {
        assert_ne!(text, model, "{name}");
        folder.write(name, text);
        for verb in ["predict {} test.csv --output p.csv", "evaluate {} test.csv", "certificate {}"]
        {
            let message = folder.bad(&verb.replace("{}", name), "Q04", 2);
            assert!(message.contains(name), "{message}");
        }
    }
    let newer = folder.bad("certificate newer", "Q04", 2);
    assert!(newer.contains("newer quietly") && newer.contains("update quietly"), "{newer}");
    folder.bad("certificate missing", "Q05", 2);
    folder.bad("certificate .", "Q05", 2);
    // A model that was edited by hand, even where it makes sense.
    folder.write("edited", model.replace("\"link\": \"linear\"", "\"link\": \"relu\""));
    assert!(folder.bad("predict edited test.csv --output p.csv", "Q04", 2).contains("digest"));
}

#[test]
fn a_prediction_needs_the_features_and_not_the_target() {
    let folder = Folder::with_tables();
    folder.good(&format!("{FIT} --epsilon 1"));
    folder.write("no-b.csv", "a,c,y\n1,u,3\n");
    let message = folder.bad("predict m.quietly no-b.csv --output p.csv", "D10", 1);
    assert!(message.contains("\"b\""), "{message}");
    folder.write("no-y.csv", "c,a,b\nu,1,0.5\nv,2,0\n");
    folder.good("predict m.quietly no-y.csv --output p.csv");
    assert_eq!(folder.read("p.csv").lines().count(), 3);
    folder.bad("evaluate m.quietly no-y.csv", "D10", 1);
}

/// Sends a signal as soon as a partial file is there. Says how the process ended, or nothing if it was too quick for us.
#[cfg(unix)]
fn interrupted(folder: &Folder, arguments: &str, signal: &str) -> Option<(i32, String)> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_quietly"))
        .args(arguments.split_whitespace())
        .current_dir(folder.path("."))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    // A probe comes and goes: the file that stays has something in it.
    let growing = || {
        let partial = folder.list().into_iter().find(|n| n.ends_with(".partial"));
        partial.is_some_and(|n| folder.path(&n).metadata().is_ok_and(|m| m.len() > 0))
    };
    while !growing() {
        if child.try_wait().unwrap().is_some() {
            return None;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "nothing is written");
        std::thread::sleep(Duration::from_millis(1));
    }
    let kill = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(kill.success() || output.status.success());
    Some((output.status.code().expect("not killed"), String::from_utf8(output.stderr).unwrap()))
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_leaves_nothing_behind() {
    let folder = Folder::with_tables();
    folder.good(&format!("{FIT} --epsilon 1"));
    let part = table(30_000);
    let (header, rows) = part.split_once('\n').unwrap();
    folder.write("large.csv", format!("{header}\n{}", rows.repeat(40)));
    let predict = "predict m.quietly large.csv --output p.csv --threads 1";
    let mut stopped = 0;
    for signal in ["-INT", "-TERM", "-INT"] {
        let Some((code, message)) = interrupted(&folder, predict, signal) else { continue };
        if code == 0 {
            // It was done just before: then it is whole.
            assert_eq!(folder.read("p.csv").lines().count(), 1_200_001);
            continue;
        }
        stopped += 1;
        assert_eq!(code, 130, "{message}");
        assert!(message.starts_with("error[Q06]: interrupted"), "{message}");
        let left = ["large.csv", "m.quietly", "s.toml", "test.csv", "train.csv"];
        assert_eq!(folder.list(), left);
    }
    assert!(stopped > 0, "the table is too small to be interrupted");
    fits_are_whole_or_not_there(&folder);
}

/// Whenever the signal comes, also before its handler is installed: the model exists if and only if the exit status is 0.
#[cfg(unix)]
fn fits_are_whole_or_not_there(folder: &Folder) {
    let fit = FIT.replace("train.csv", "large.csv").replace("m.quietly", "new.quietly");
    for (i, method) in ["one-pass", "full-batch", "one-pass", "full-batch"].iter().enumerate() {
        let mut child = Command::new(env!("CARGO_BIN_EXE_quietly"))
            .args(format!("{fit} --epsilon 1 --method {method}").split_whitespace())
            .current_dir(folder.path("."))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(1 << (2 * i + 1)));
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        let code = child.wait().unwrap().code();
        assert!([None, Some(0), Some(130)].contains(&code), "{code:?}");
        assert_eq!(folder.path("new.quietly").exists(), code == Some(0));
        assert!(folder.list().iter().all(|n| !n.contains("partial")), "{:?}", folder.list());
        let _ = std::fs::remove_file(folder.path("new.quietly"));
    }
}
