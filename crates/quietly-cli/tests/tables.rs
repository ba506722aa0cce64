//! The verbs on tables, in every form that is promised.
use serde_json::Value;

mod run;
use run::{Folder, SCHEMA, but_for_files, table};

const FIT: &str = "train.csv --target y --schema s.toml --epsilon 1 --delta 1e-5";

/// `predictions.csv`, without its header.
fn predictions(folder: &Folder, name: &str) -> Vec<f64> {
    let text = folder.read(name);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("prediction"));
    lines.map(|l| l.parse().expect(l)).collect()
}

#[test]
fn the_promised_forms_work() {
    let folder = Folder::with_tables();
    for model in ["linear", "relu"] {
        for neighbours in ["add-remove", "replace-one"] {
            let fit =
                format!("fit {model} {FIT} --neighbours {neighbours} --force --output m.quietly");
            let said = folder.json(&fit);
            assert_eq!(said["kind"], model);
            assert_eq!(said["neighbours"], neighbours);
            assert_eq!((&said["test_only"], &said["delta"]), (&false.into(), &1e-5.into()));
            let spent = said["epsilon"].as_f64().unwrap();
            assert!(spent > 0.9 && spent <= 1.0, "{spent}");
            assert_eq!(said["certificate"]["epsilon"], spent);
            assert_eq!(said["certificate"]["unit"], "person");
            assert_eq!(said["ignored_columns"], 1);
            assert_eq!(said["files"], serde_json::json!(["train.csv"]));

            folder.good("predict m.quietly test.csv --output pred.csv");
            assert_eq!(predictions(&folder, "pred.csv").len(), 200);
        }
    }
    let kept = ["m.quietly", "m.quietly.1", "m.quietly.2", "m.quietly.3"];
    assert_eq!(folder.list()[..4], kept, "no model is lost");
    assert_eq!(folder.list()[4..], ["pred.csv", "s.toml", "test.csv", "train.csv"]);
}

#[test]
fn predictions_stand_in_row_order() {
    let folder = Folder::with_tables();
    let text = table(200);
    let truth = text.lines().skip(1).map(|l| l.split(',').nth(3).unwrap().parse::<f64>().unwrap());
    let truth: Vec<f64> = truth.collect();
    for model in ["linear", "relu"] {
        folder.good(&format!("fit {model} {FIT} --seed 1 --force --output m.quietly"));
        let said = folder.json("predict m.quietly test.csv --output pred.csv");
        assert_eq!((&said["output"], &said["rows"]), (&"pred.csv".into(), &200.into()));
        let found = predictions(&folder, "pred.csv");
        let off = |shift: usize| {
            let pairs = found.iter().cycle().skip(shift).zip(&truth);
            pairs.map(|(p, y)| (p - y).abs()).sum::<f64>() / 200.0
        };
        assert!(off(0) < 1.5, "{model}: off by {}", off(0));
        // Rows are far from their neighbours: any other order would be seen.
        assert!(off(1) > 5.0, "{model}: {}", off(1));
    }
}

#[test]
fn people_are_told_what_it_cost_and_what_comes_next() {
    let folder = Folder::with_tables();
    let said = folder.good(&format!("fit linear {FIT}"));
    for part in ["linear regression of y on 3 features", "about 3000 rows", "of 1 spent", "50 : 50"]
    {
        assert!(said.contains(part), "{part}:\n{said}");
    }
    assert!(said.contains("saved y-linear.quietly") && !said.contains("TEST ONLY"), "{said}");
    assert!(said.contains("next: quietly certificate y-linear.quietly"), "{said}");
    let label = folder.good("certificate y-linear.quietly");
    for part in
        ["of a budget of 1, at delta 1e-5", "whether one row is in the table", "operating system"]
    {
        assert!(label.contains(part), "{part}:\n{label}");
    }
    let value = folder.json("certificate y-linear.quietly");
    assert_eq!(value["test_only"], false);
    assert!(value["stages"].as_array().is_some_and(|s| s.len() > 1), "{value}");
}

#[test]
fn a_seed_repeats_the_model_and_marks_it() {
    let folder = Folder::with_tables();
    let fit = |seed: &str, output: &str| {
        folder.good(&format!("fit linear {FIT} {seed} --output {output}"))
    };
    let said = fit("--seed 7", "a.quietly");
    assert!(said.contains("TEST ONLY"), "{said}");
    fit("--seed 7", "b.quietly");
    fit("--seed 8", "c.quietly");
    fit("", "d.quietly");
    fit("", "e.quietly");
    let read = |name: &str| folder.read(name);
    assert_eq!(read("a.quietly"), read("b.quietly"));
    assert_ne!(read("a.quietly"), read("c.quietly"));
    assert_ne!(read("d.quietly"), read("e.quietly"));
    assert_eq!(folder.json("certificate a.quietly")["test_only"], true);
    let label = folder.good("certificate a.quietly");
    assert!(label.contains("TEST ONLY") && label.contains("seed 7"), "{label}");
    assert!(!folder.good("certificate d.quietly").contains("TEST ONLY"));
}

/// The sums are exact integers, so nothing depends on who adds them up or where the files end.
#[test]
fn threads_and_files_do_not_change_a_bit() {
    let folder = Folder::new();
    folder.good("example");
    let text = folder.read("clinic.csv");
    let lines: Vec<&str> = text.lines().collect();
    for (name, from, to) in [("p1.csv", 1, 40), ("p2.csv", 40, 9001), ("p3.csv", 9001, 20_001)] {
        let part = [&lines[..1], &lines[from..to]].concat().join("\n");
        folder.write(name, part + "\n");
    }
    for recipe in
        ["linear --method full-batch", "relu --method full-batch", "linear --method one-pass"]
    {
        let (model, method) = recipe.split_once(' ').unwrap();
        let fit = |files: &str, threads: u32| {
            let flags = "--target days --schema clinic.schema.toml --epsilon 1 --seed 5 --force --output m.quietly";
            folder.good(&format!("fit {model} {files} {flags} {method} --threads {threads}"));
            but_for_files(&folder.read("m.quietly"))
        };
        let one = fit("clinic.csv", 1);
        for (files, threads) in [
            ("clinic.csv", 2),
            ("clinic.csv", 7),
            ("p1.csv p2.csv p3.csv", 1),
            ("p1.csv p2.csv p3.csv", 3),
        ] {
            assert!(one == fit(files, threads), "{recipe}: {files}, {threads} threads");
        }
    }
    folder.good("predict m.quietly clinic.csv --output whole.csv --threads 1");
    folder.good("predict m.quietly p1.csv p2.csv p3.csv --output parts.csv --threads 3");
    assert!(folder.read("whole.csv") == folder.read("parts.csv"));
}

#[test]
fn a_plan_is_what_the_fit_does() {
    let folder = Folder::with_tables();
    for method in ["auto", "full-batch", "one-pass"] {
        let flags = format!("--target y --epsilon 1 --delta 1e-5 --method {method}");
        let plan = folder.json(&format!("plan linear s.toml {flags}"));
        let fit =
            format!("fit linear train.csv --schema s.toml {flags} --force --output m.quietly");
        folder.json(&fit);
        let model: Value = serde_json::from_str(&folder.read("m.quietly")).unwrap();
        assert_eq!(model["plan"], plan, "{method}");
        assert_eq!(model["certificate"]["epsilon"], plan["epsilon"], "{method}");
    }
    // The next step is the same plan, and no other.
    let flags = "--target y --features a,c --epsilon 2 --delta 1e-6 --neighbours replace-one --method one-pass";
    let said = folder.good(&format!("plan relu s.toml {flags} --header train.csv"));
    let next = said.lines().last().unwrap().strip_prefix("next: ").unwrap();
    assert_eq!(next, format!("quietly fit relu train.csv --schema s.toml {flags}"));
    assert_eq!(folder.console(next).code, 0);
    std::fs::remove_file(folder.path("train.csv")).unwrap();
    let said = folder.good("plan linear s.toml --target y --epsilon 1");
    assert!(said.contains("Nothing was spent, and no row was read."), "{said}");
    assert!(!said.contains("warning"), "{said}");
}

#[test]
fn a_star_in_the_schema_takes_the_header_s_columns() {
    let folder = Folder::with_tables();
    folder.write(
        "star.toml",
        "rows = 3000\n[columns]\ny = { range = [0, 40] }\n\"*\" = { range = [-10, 10] }\n",
    );
    folder.bad("plan linear star.toml --target y --epsilon 1", "C12", 2);
    let plan = folder.json("plan linear star.toml --target y --epsilon 1 --header train.csv");
    assert_eq!(plan["width"], 4);
}

#[test]
fn an_evaluation_says_whether_it_is_private() {
    let folder = Folder::with_tables();
    folder.good(&format!("fit linear {FIT} --seed 2 --output m.quietly"));
    let plain = folder.json("evaluate m.quietly test.csv");
    assert_eq!((&plain["private"], &plain["rows"]), (&false.into(), &200.0.into()));
    assert!(plain["r2"].as_f64().unwrap() > 0.9, "{plain}");
    assert!(plain["warning"].as_str().unwrap().contains("NOT private"), "{plain}");
    assert!(folder.good("evaluate m.quietly test.csv").contains("they are NOT"));

    let spent = folder
        .json("evaluate m.quietly train.csv --epsilon 2 --delta 1e-6 --neighbours replace-one");
    assert_eq!(spent["private"], true);
    let epsilon = spent["certificate"]["epsilon"].as_f64().unwrap();
    assert!(epsilon > 1.9 && epsilon <= 2.0, "{epsilon}");
    assert_ne!(spent["rows"], 3000.0);
    let said = folder.good("evaluate m.quietly train.csv --epsilon 2 --seed 1");
    assert!(said.contains("A private estimate") && said.contains("TEST ONLY"), "{said}");
    // Flags of a private estimate are not dropped in silence.
    for flag in ["--delta 1e-5", "--seed 1", "--neighbours replace-one"] {
        folder.bad(&format!("evaluate m.quietly train.csv {flag}"), "C05", 2);
    }
}

#[test]
fn bounds_have_a_price_or_a_public_source() {
    let folder = Folder::with_tables();
    let found = folder.json("bounds train.csv a b --epsilon 2 --rows 3000");
    assert_eq!((&found["epsilon"], &found["delta"]), (&2.0.into(), &0.into()));
    assert_eq!((&found["test_only"], &found["neighbours"]), (&false.into(), &"add-remove".into()));
    let said = folder.good("bounds train.csv a --epsilon 1 --seed 3");
    assert!(said.contains("spent epsilon 1") && said.contains("TEST ONLY"), "{said}");
    let line = said.lines().find(|line| line.starts_with("a = ")).unwrap();
    folder
        .write("line.toml", format!("rows = 3000\n[columns]\ny = {{ range = [0, 40] }}\n{line}\n"));
    folder.good("plan linear line.toml --target y --epsilon 1");

    let said = folder.good("bounds --public test.csv a y");
    assert!(said.contains("a = { range = [") && said.contains("spent nothing"), "{said}");
    let public = folder.json("bounds --public test.csv a");
    assert_eq!((&public["epsilon"], &public["test_only"]), (&0.0.into(), &false.into()));
}

/// A range that is wider than the column by orders of magnitude clamps nothing and tells nothing.
#[test]
fn private_bounds_are_near_the_ends() {
    let folder = Folder::with_tables();
    let found = folder.json("bounds train.csv a b --epsilon 20 --rows 3000 --seed 1");
    assert_eq!(found["test_only"], true);
    let ends = |name: &str| {
        let end = |i: usize| found["ranges"][name][i].as_f64().unwrap();
        (end(0), end(1))
    };
    let ((a, to_a), (b, to_b)) = (ends("a"), ends("b"));
    assert!((-1.0..=0.5).contains(&a) && (9.0..=16.0).contains(&to_a), "{a} {to_a}");
    assert!((-1.5..=-0.9).contains(&b) && (0.9..=1.5).contains(&to_b), "{b} {to_b}");
}

#[test]
fn init_asks_and_reads_no_values() {
    let folder = Folder::with_tables();
    let said = folder.good("init train.csv");
    assert!(
        said.contains(
            "5 columns.\nThe column names are the first line of train.csv; no other line was read."
        ),
        "{said}"
    );
    let text = folder.read("train.schema.toml");
    assert!(
        ["a", "b", "c", "y", "name"].iter().all(|c| text.contains(&format!("\n{c} = \"?\""))),
        "{text}"
    );
    folder.bad("init train.csv", "C10", 1);
    assert_eq!(folder.json("init train.csv --force")["columns"], 5);
    let message = folder.bad("fit linear train.csv --target y --epsilon 1", "D08", 1);
    assert!(message.contains("quietly bounds") && message.contains("\"rows\""), "{message}");
    // Filled in, it is used without being named.
    folder.write("train.schema.toml", SCHEMA);
    folder.good("fit linear train.csv --target y --epsilon 1");
}

#[test]
fn a_folder_other_delimiters_and_libsvm_text_are_tables_too() {
    let folder = Folder::with_tables();
    let text = table(3000);
    let lines: Vec<&str> = text.lines().collect();
    std::fs::create_dir(folder.path("parts")).unwrap();
    for (name, rows) in [("parts/1.csv", &lines[1..700]), ("parts/2.csv", &lines[700..])] {
        folder.write(name, [&lines[..1], rows].concat().join("\n"));
    }
    folder.write("semi.csv", text.replace(',', ";"));
    folder.write("tabs.txt", text.replace(',', "\t"));
    let fit = |table: &str| {
        folder.good(&format!(
            "fit linear {table} --target y --schema s.toml --epsilon 1 --seed 1 --force"
        ));
        but_for_files(&folder.read("y-linear.quietly"))
    };
    let whole = fit("train.csv");
    for table in
        ["parts", "semi.csv", "semi.csv --delimiter ;", "tabs.txt --format csv --delimiter tab"]
    {
        assert!(fit(table) == whole, "{table}");
    }

    let rows = lines[1..].iter().map(|l| l.split(',').collect::<Vec<_>>());
    let sparse: String = rows.map(|r| format!("{} 1:{} 3:{}\n", r[3], r[0], r[1])).collect();
    folder.write("t.svm", sparse);
    folder.bad("init t.svm", "D14", 1);
    folder.bad("bounds t.svm 1 --epsilon 1", "D14", 1);
    folder.good("bounds t.svm 1 --epsilon 1 --features 3");
    assert_eq!(folder.json("init t.svm --features 3")["columns"], 4);
    let schema = folder.read("t.schema.toml");
    let filled =
        schema.replace("rows = \"?\"", "rows = 3000").replace("= \"?\"", "= { range = [-1, 40] }");
    folder.write("t.schema.toml", filled);
    folder.good("fit linear t.svm --target label --epsilon 1 --output t.quietly");
    folder.good("predict t.quietly t.svm --output p.csv");
    assert_eq!(predictions(&folder, "p.csv").len(), 3000);
}

#[test]
fn the_example_is_the_same_every_time() {
    let folder = Folder::new();
    let said = folder.json("example one");
    assert_eq!(said["files"].as_array().unwrap().len(), 3);
    let said = folder.good("example two");
    assert!(folder.read("one/clinic.csv") == folder.read("two/clinic.csv"));
    let next = said.lines().last().unwrap().strip_prefix("next: ").unwrap();
    assert_eq!(folder.console(next).code, 0, "{next}");
    let score = folder.json("evaluate days.quietly two/clinic-test.csv");
    assert_eq!(score["rows"], 5000.0, "{score}");
}
