//! Classifiers and their kin, from the table to the prediction, as a user types it.
use serde_json::Value;

mod run;
use run::Folder;

/// Two thousand rows: a, b in [-1, 1], a city, a label that a and b decide with some noise, a kind of three, and y = 2a - b.
fn folder() -> Folder {
    let folder = Folder::new();
    let mut text = String::from("a,b,city,label,kind,y\n");
    for i in 0..2000_u32 {
        let (a, b) = (f64::from(i * 37 % 201) / 100.0 - 1.0, f64::from(i * 53 % 199) / 99.0 - 1.0);
        let noise = f64::from(i * 71 % 41) / 20.0 - 1.0;
        let label = if 2.0 * a - b + noise > 0.0 { "yes" } else { "no" };
        let kind = if a > 0.3 {
            "x"
        } else if b > 0.0 {
            "y"
        } else {
            "z"
        };
        text += &format!(
            "{a:.3},{b:.3},{},{label},{kind},{:.3}\n",
            ["N", "S"][i as usize % 2],
            2.0 * a - b
        );
    }
    folder.write("t.csv", text);
    folder.write(
        "s.toml",
        "rows = 2000\n[columns]\na = { range = [-1, 1] }\nb = { range = [-1, 1] }\ncity = { values = [\"N\", \"S\"] }\n\
         label = { values = [\"no\", \"yes\"] }\nkind = { values = [\"x\", \"y\", \"z\"] }\ny = { range = [-3, 3] }\n",
    );
    folder
}

fn json(folder: &Folder, line: &str) -> Value {
    let done = folder.quietly(line);
    assert_eq!(done.code, 0, "{line}: {}", done.stderr);
    serde_json::from_str(&done.stdout).unwrap()
}

/// The form that others rely on, to the letter.
#[test]
fn logistic_regression_from_the_table_to_probabilities() {
    let folder = folder();
    let fit = json(
        &folder,
        "fit logistic t.csv --target label --schema s.toml --features a,b,city --epsilon 1 --delta 1e-5 --neighbours add-remove \
         --output m.quietly --json",
    );
    assert_eq!((&fit["kind"], &fit["test_only"]), (&"logistic".into(), &false.into()));
    assert!(fit["epsilon"].as_f64().unwrap() <= 1.0 && fit["epsilon"].as_f64().unwrap() > 0.97);
    json(&folder, "predict m.quietly t.csv --output p.csv --json");
    let text = folder.read("p.csv");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("prediction,probability"));
    for line in lines {
        let (class, probability) = line.split_once(',').unwrap();
        let probability: f64 = probability.parse().unwrap();
        assert_eq!(class == "yes", probability > 0.5, "{line}");
    }
    let scores = json(&folder, "evaluate m.quietly t.csv --json");
    assert!(scores["accuracy"].as_f64().unwrap() > 0.8, "{scores}");
    assert!(scores["log_loss"].as_f64().unwrap() < 0.45, "{scores}");
}

/// Every model and every method runs by its name and beats what knows nothing.
#[test]
fn all_models_and_methods_run_by_name() {
    let folder = folder();
    let fit = |what: &str| {
        let line = format!(
            "fit {what} t.csv --schema s.toml --epsilon 4 --seed 5 --force --output m.quietly --json"
        );
        json(&folder, &line);
        json(&folder, "evaluate m.quietly t.csv --json")
    };
    let accuracy = |what: &str| fit(what)["accuracy"].as_f64().unwrap();
    assert!(accuracy("svm --target label --features a,b") > 0.8);
    assert!(accuracy("logistic --target kind --features a,b") > 0.6);
    let r2 = |what: &str| fit(what)["r2"].as_f64().unwrap();
    assert!(r2("robust --target y --features a,b") > 0.8);
    assert!(r2("quantile --target y --features a,b") > 0.8);
    assert!(
        r2("linear --target y --features a,b --constraint l1 --radius 2 --neighbours replace-one")
            > 0.8
    );
    for method in [
        "amp",
        "dp-gd",
        "dp-sgd",
        "sc-psgd",
        "gd-op",
        "phased-sgd",
        "psa",
        "phased-sgd-sc",
        "psa-ii",
        "iterated-phased-sgd",
        "phased-erm",
        "epoch-dp-sgd",
        "faster-dpsgd-sc",
    ] {
        let found = accuracy(&format!(
            "logistic --target label --features a,b --neighbours replace-one --constraint l2 --radius 4 --ridge 0.01 --growth-exponent 2 \
             --growth-constant 0.1 --method {method}"
        ));
        assert!(found > 0.65, "{method}: {found}");
    }
    let found = accuracy(
        "logistic --target label --features a,b --constraint l1 --radius 4 --method frank-wolfe",
    );
    assert!(found > 0.65, "frank-wolfe: {found}");
    // Without delta.
    let found = accuracy("logistic --target label --features a,b --delta 0");
    assert!(found > 0.65, "{found}");
}

/// What cannot be kept is refused before a row is read, with what was wanted, what was got and what to do; nothing is written.
#[test]
fn what_does_not_go_together_is_refused() {
    let folder = folder();
    for (line, say) in [
        ("logistic --target y", "needs values"),
        ("svm --target kind", "two; take logistic regression"),
        ("robust --target label", "needs a range"),
        ("logistic --target label --method phased-sgd", "replace-one"),
        ("logistic --target label --method phased-sgd --neighbours replace-one", "bounded"),
        (
            "logistic --target label --method epoch-dp-sgd --neighbours replace-one --constraint l2",
            "ridge",
        ),
        (
            "logistic --target label --method psa-ii --neighbours replace-one --constraint l2",
            "growth",
        ),
        (
            "logistic --target label --method psa-ii --neighbours replace-one --constraint l2 --growth-exponent 1 --growth-constant 1",
            "--growth-exponent must be above 1",
        ),
        ("logistic --target label --method dp-gd --delta 0", "delta"),
        ("logistic --target label --method full-batch", "method"),
        ("logistic --target label --constraint cube", "l1, l2, linf or simplex"),
        ("logistic --target label --constraint l2 --radius 0", "radius"),
        ("quantile --target y --quantile 1", "--quantile must be between 0 and 1"),
        ("linear --target y --quantile 0.5", "only quantile regression has it"),
        ("linear --target y --delta 0", "delta"),
        ("logistic --target label --ridge -1", "ridge"),
        ("linear --target y --method amp --constraint l2 --radius nan", "radius"),
    ] {
        let line = format!("fit {line} t.csv --schema s.toml --epsilon 1 --output bad.quietly");
        let done = folder.quietly(&line);
        assert!(done.code != 0 && done.stderr.contains(say), "{line}: {}", done.stderr);
        assert!(!folder.path("bad.quietly").exists(), "{line}");
    }
}

/// Labels that were not declared, and rows without any feature, as libsvm text has them.
#[test]
fn sparse_text_with_strange_labels_is_learnt() {
    let folder = Folder::new();
    let mut text = String::new();
    for i in 0..1500_u32 {
        let label = match i % 50 {
            0 => "7",
            _ if i * 37 % 11 > 5 => "+1",
            _ => "-1",
        };
        let first = if label == "+1" { "1:1 " } else { "" };
        let second = if i % 3 == 0 { "5:1" } else { "" };
        text += &format!("{label} {first}{second}\n");
    }
    folder.write("t.svm", text);
    folder.write(
        "s.toml",
        "rows = 1500\nfeatures = 6\n[columns]\nlabel = { values = [-1, 1] }\n\"*\" = { range = [0, 1] }\n",
    );
    json(
        &folder,
        "fit logistic t.svm --format libsvm --target label --schema s.toml --epsilon 2 --output m.quietly --json",
    );
    let scores = json(&folder, "evaluate m.quietly t.svm --format libsvm --json");
    assert!(scores["accuracy"].as_f64().unwrap() > 0.9, "{scores}");
    assert_eq!(scores["rows"].as_f64(), Some(1470.0), "{scores}");
}
