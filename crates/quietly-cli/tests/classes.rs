//! Classifiers in use: models written by hand, predicted and evaluated.
//!
//! Golden numbers are those of scikit-learn 1.9.1 (`accuracy_score`, `log_loss`, `roc_auc_score`) on the same table, and of ten
//! equal bins in numpy.
use serde_json::{Value, json};

mod run;
use run::Folder;

/// Sixty rows without randomness: a in [0, 10], b in [-1, 1], c in [0, 1]; a label of two classes and one of three.
fn table() -> String {
    let mut text = String::from("a,b,c,label,kind\n");
    for i in 0..60_u32 {
        let a = f64::from(i * 37 % 101) / 10.0;
        let b = f64::from(i * 53 % 89) / 44.5 - 1.0;
        let c = f64::from(i * 29 % 97) / 97.0;
        let yes = f64::from(i * 7 % 13) + 3.0 * a / 10.0 + 2.0 * b > 7.0;
        let kind = if i % 5 == 0 { 2 } else { i * i % 3 };
        let (label, kind) =
            (if yes { "yes" } else { "no" }, ["x", "y", "\"z, or so\""][kind as usize]);
        text += &format!("{a:.3},{b:.3},{c:.3},{label},{kind}\n");
    }
    text
}

/// A model file of three features.
fn model(link: &str, target: Value, intercepts: &[f64], weights: &[f64]) -> Value {
    let input = |name: &str, lo: f64, hi: f64| json!({ "column": name, "rule": { "range": { "lo": lo, "hi": hi, "missing": "middle" } } });
    let budget = json!({ "epsilon": "infinity", "delta": 1e-5, "neighbours": "add-remove" });
    let softmax = link == "softmax";
    let mut model = json!({
        "format": "quietly model", "version": 2, "link": link, "target": target["name"],
        "encoding": { "inputs": [input("a", 0.0, 10.0), input("b", -1.0, 1.0), input("c", 0.0, 1.0)], "target": target },
        "intercept": if softmax { 0.0 } else { intercepts[0] }, "weights": weights,
        "plan": {
            "link": link, "method": "exact", "rows": 60, "width": 3, "budget": budget, "sampler": "full",
            "stages": [], "epsilon": "infinity", "expected_loss": 0.0, "warnings": [],
        },
        "certificate": {
            "asked": budget, "epsilon": "infinity", "unit": "person", "sampler": "full", "stages": [], "accountant": "none",
            "curve": [], "randomness": "none", "test_only": true, "made_by": "a test",
            "public": ["the schema: names, ranges and values of the columns", "that there are about 60 rows"],
            "not_covered": [
                "facts about the population that hold with or without any one of its members",
                "more rows than the unit has: k units cost k times epsilon, at a larger delta",
                "other releases from the same table: their epsilons and deltas add up",
                "who can read the table, or the machine's memory or clock during the fit",
            ],
        },
    });
    if softmax {
        model["intercepts"] = json!(intercepts);
    }
    model
}

fn two() -> Value {
    json!({ "name": "label", "lo": 0.0, "hi": 1.0, "classes": ["no", "yes"] })
}

const WEIGHTS: [f64; 3] = [0.7, 1.5, -0.4];

fn folder(link: &str, weights: &[f64]) -> Folder {
    let folder = Folder::new();
    folder.write("t.csv", table());
    folder.write("m.quietly", model(link, two(), &[0.25], weights).to_string());
    folder
}

fn near(found: &Value, want: f64) {
    let found = found.as_f64().unwrap_or_else(|| panic!("{found} instead of {want}"));
    assert!((found - want).abs() < 1e-9 * want.abs().max(1.0), "{found} instead of {want}");
}

#[test]
fn logistic_scores_are_those_of_scikit_learn() {
    let folder = folder("logistic", &WEIGHTS);
    let scores = folder.json("evaluate m.quietly t.csv");
    near(&scores["accuracy"], 0.6);
    near(&scores["log_loss"], 0.710207161152329);
    near(&scores["auc"], 0.6038159371492705);
    near(&scores["calibration_error"], 0.10073536222509254);
    assert_eq!((&scores["rows"], &scores["left_out"]), (&json!(60.0), &json!(0)));
    assert_eq!((&scores["private"], &scores["classes"]), (&json!(false), &json!(["no", "yes"])));
    let bins = scores["calibration"].as_array().unwrap();
    assert_eq!(bins.len(), 9, "the first tenth is empty");
    assert_eq!((&bins[0]["from"], &bins[0]["rows"]), (&json!(0.1), &json!(3.0)));
    near(&bins[0]["probability"], 0.17828428949732236);
    near(&bins[0]["fraction"], 2.0 / 3.0);
    let said = folder.good("evaluate m.quietly t.csv");
    for line in [
        "accuracy           0.6000",
        "log loss           0.7102",
        "AUC                0.6038",
        "rows               60",
    ] {
        assert!(said.contains(line), "{said}");
    }
    assert!(said.contains("probability of yes") && said.contains("they are NOT"), "{said}");
    assert!(!said.contains("left out"), "{said}");
}

#[test]
fn predictions_are_labels_with_probabilities() {
    let logistic = folder("logistic", &WEIGHTS);
    logistic.good("predict m.quietly t.csv --output p.csv");
    let text = logistic.read("p.csv");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), lines[0]), (61, "prediction,probability"));
    for (line, (label, p)) in
        lines[1..].iter().zip([("no", 0.17508627), ("yes", 0.62604809), ("no", 0.39666033)])
    {
        let (found, probability) = line.split_once(',').unwrap();
        assert_eq!(found, label);
        assert!((probability.parse::<f64>().unwrap() - p).abs() < 1e-8, "{line}");
    }
    let svm = folder("svm", &WEIGHTS);
    svm.good("predict m.quietly t.csv --output p.csv");
    assert!(svm.read("p.csv").starts_with("prediction\nno\nyes\nno\n"));
}

#[test]
fn a_support_vector_machine_has_no_probabilities() {
    let folder = folder("svm", &WEIGHTS);
    let scores = folder.json("evaluate m.quietly t.csv");
    near(&scores["accuracy"], 0.6);
    near(&scores["auc"], 0.6038159371492705);
    assert!(scores["log_loss"].is_null() && scores["calibration_error"].is_null());
    let said = folder.good("evaluate m.quietly t.csv");
    assert!(!said.contains("log loss") && !said.contains("calibration"), "{said}");
    let private = folder.json("evaluate m.quietly t.csv --epsilon 100 --seed 1");
    assert!(private["log_loss"].is_null() && private["accuracy"].is_f64());
}

#[test]
fn three_classes() {
    let folder = Folder::new();
    folder.write("t.csv", table());
    let target = json!({ "name": "kind", "lo": 0.0, "hi": 2.0, "classes": ["x", "y", "z, or so"] });
    let weights = [0.5, -1.0, 0.2, 0.0, 0.8, -0.6, -0.3, 0.1, 0.9];
    folder.write("m.quietly", model("softmax", target, &[0.1, -0.2, 0.05], &weights).to_string());
    let scores = folder.json("evaluate m.quietly t.csv");
    near(&scores["accuracy"], 0.35);
    near(&scores["log_loss"], 1.251817664935442);
    assert!(scores["auc"].is_null() && scores["calibration"] == json!([]));
    folder.good("predict m.quietly t.csv --output p.csv");
    let text = folder.read("p.csv");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "prediction,probability,probability x,probability y,\"probability z, or so\""
    );
    let cells: Vec<&str> = lines[1].split(',').collect();
    assert_eq!((cells[0], cells[1]), ("x", cells[2]));
    assert!((cells[2].parse::<f64>().unwrap() - 0.55578197).abs() < 1e-8);
    assert!(lines[4].starts_with("\"z, or so\","), "{}", lines[4]);
    let private = folder.json("evaluate m.quietly t.csv --epsilon 1000 --seed 1");
    assert!((private["accuracy"].as_f64().unwrap() - 0.35).abs() < 0.02, "{private}");
}

#[test]
fn labels_that_are_not_declared_are_left_out_and_counted() {
    let folder = folder("logistic", &WEIGHTS);
    folder.write("u.csv", table() + "5,0,0,maybe,x\n5,0,0,,x\n5,0\n");
    let (plain, more) =
        (folder.json("evaluate m.quietly t.csv"), folder.json("evaluate m.quietly u.csv"));
    assert_eq!((&more["left_out"], &more["rows"]), (&json!(3), &json!(60.0)));
    for score in ["accuracy", "log_loss", "auc"] {
        assert_eq!(plain[score], more[score]);
    }
    assert!(folder.good("evaluate m.quietly u.csv").contains("left out           3 "));
    assert!(folder.json("evaluate m.quietly u.csv --epsilon 1 --seed 1").get("left_out").is_none());
    folder.good("predict m.quietly u.csv --output p.csv");
    assert_eq!(folder.read("p.csv").lines().count(), 64, "predictions leave no row out");
}

#[test]
fn hostile_tables_give_no_nonsense() {
    let folder = folder("logistic", &WEIGHTS);
    folder.write("none.csv", "a,b,c,label\n");
    folder.write("one.csv", "a,b,c,label\n1,0,0,yes\n9,0,0,yes\n");
    folder.write("unknown.csv", "a,b,c,label\n1,0,0,7\n");
    folder.write("constant.quietly", model("logistic", two(), &[0.25], &[0.0; 3]).to_string());
    folder.write(
        "huge.quietly",
        model("logistic", two(), &[0.0], &[1e308, 1e308, -1e308]).to_string(),
    );
    for name in ["none.csv", "unknown.csv"] {
        folder.bad(&format!("evaluate m.quietly {name}"), "C16", 1);
    }
    let one = folder.json("evaluate m.quietly one.csv");
    assert!(one["auc"].is_null() && one["log_loss"].is_f64());
    let constant = folder.json("evaluate constant.quietly t.csv");
    near(&constant["auc"], 0.5);
    near(&constant["accuracy"], 33.0 / 60.0);
    let huge = folder.json("evaluate huge.quietly t.csv");
    // Every wrong answer costs -ln 1e-15.
    let wrong = 1.0 - huge["accuracy"].as_f64().unwrap();
    near(&huge["log_loss"], wrong * -(1e-15_f64.ln()));
    for table in ["none.csv", "one.csv", "unknown.csv", "t.csv"] {
        for file in ["m.quietly", "huge.quietly", "constant.quietly"] {
            for epsilon in ["0.01", "1", "100"] {
                let line = format!(
                    "evaluate {file} {table} --epsilon {epsilon} --neighbours replace-one --seed 3"
                );
                let said = folder.good(&line);
                assert!(!said.contains("NaN") && !said.contains("inf "), "{line}\n{said}");
                let scores = folder.json(&line);
                let accuracy = scores["accuracy"].as_f64().unwrap();
                assert!((0.0..=1.0).contains(&accuracy), "{scores}");
            }
        }
    }
}

/// At a large epsilon the private scores are near the plain ones; the certificate keeps the budget.
#[test]
fn private_scores_of_many_rows_are_near() {
    let folder = folder("logistic", &WEIGHTS);
    let header = "a,b,c,label,kind\n";
    let body = table();
    folder.write("big.csv", header.to_string() + &body.strip_prefix(header).unwrap().repeat(200));
    let private = folder.json("evaluate m.quietly big.csv --epsilon 1 --seed 5");
    assert_eq!(private["private"], true);
    assert!(private["certificate"]["epsilon"].as_f64().unwrap() <= 1.0);
    let off = |name: &str, want: f64| (private[name].as_f64().unwrap() - want).abs();
    // The noise in a count is about 8 of 12 000; five standard deviations.
    assert!(private["noise"].as_f64().unwrap() < 10.0, "{private}");
    assert!(off("accuracy", 0.6) < 0.005, "{private}");
    assert!(off("log_loss", 0.710207161152329) < 0.03, "{private}");
    // Within a bin rows count as ties.
    assert!(off("auc", 0.6038159371492705) < 0.02, "{private}");
    assert!(off("calibration_error", 0.10073536222509254) < 0.04, "{private}");
    let said = folder.good("evaluate m.quietly big.csv --epsilon 1 --seed 5");
    assert!(said.contains("approximate") && said.contains("A private estimate"), "{said}");
}

#[test]
fn models_whose_parts_do_not_fit_are_refused() {
    let folder = folder("logistic", &WEIGHTS);
    let refused = |change: &dyn Fn(&mut Value), why: &str| {
        let mut value = model("logistic", two(), &[0.25], &WEIGHTS);
        change(&mut value);
        folder.write("bad.quietly", value.to_string());
        let said = folder.bad("evaluate bad.quietly t.csv", "Q04", 2);
        assert!(said.contains(why), "{said}");
    };
    refused(&|m| m["version"] = json!(1000), "newer");
    refused(&|m| m["version"] = json!(1), "does not know");
    refused(&|m| m["link"] = json!("linear"), "predicts a number");
    refused(&|m| m["link"] = json!("softmax"), "one intercept for every class");
    refused(&|m| m["intercepts"] = json!([1.0, 2.0]), "only a softmax model");
    refused(&|m| m["weights"] = json!([1.0]), "one weight for every feature");
    refused(&|m| m["encoding"]["target"]["hi"] = json!(2.0), "numbered");
    let three = json!({ "name": "label", "lo": 0.0, "hi": 2.0, "classes": ["a", "b", "c"] });
    refused(&|m| m["encoding"]["target"] = three.clone(), "two classes");
    let range = json!({ "name": "label", "lo": 0.0, "hi": 2.0 });
    refused(&|m| m["encoding"]["target"] = range.clone(), "two classes");
}

#[test]
fn a_regression_refuses_classes_and_says_what_to_do() {
    let folder = Folder::with_tables();
    for command in ["fit linear train.csv --output m.quietly", "plan linear s.toml"] {
        let schema = if command.starts_with("fit") { " --schema s.toml" } else { "" };
        let said = folder.bad(&format!("{command} --target c --epsilon 1{schema}"), "D12", 1);
        assert!(said.contains("needs a range") && said.contains("logistic regression"), "{said}");
    }
}
