//! `quietly compare` and `quietly reproduce`, as a user would run them.
mod run;
use run::Folder;

const COMPARE: &str = "compare train.csv --target y --schema s.toml --methods full-batch,one-pass --epsilons 0.5,2 \
                       --seeds 2 --seed 1";

/// Every tag that opens also closes, in order.
fn well_formed(text: &str) -> bool {
    let mut open: Vec<&str> = vec![];
    for part in text.split('<').skip(1) {
        let Some((tag, _)) = part.split_once('>') else { return false };
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name) {
                return false;
            }
        } else if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().unwrap_or_default());
        }
    }
    open.is_empty()
}

#[test]
fn methods_stand_side_by_side_and_the_price_is_said() {
    let folder = Folder::with_tables();
    let said = folder.good(&format!("{COMPARE} --svg c.svg"));
    assert!(said.lines().all(|l| l.chars().count() <= 100), "{said}");
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "full-batch",
        "one-pass",
        "without noise: R2",
        "NOT private",
        "8 private fits",
        "saved c.svg",
    ] {
        assert!(said.contains(part), "{part}:\n{said}");
    }
    let svg = folder.read("c.svg");
    assert!(svg.starts_with("<svg") && well_formed(&svg) && svg.contains("one-pass"), "{svg}");

    let value = folder.json(COMPARE);
    assert_eq!(value["private"], false);
    assert!(value["warning"].as_str().unwrap().contains("NOT private"), "{value}");
    assert_eq!((&value["fits"], &value["splits"]), (&8.into(), &2.into()));
    let spent = value["epsilon_spent_in_all"].as_f64().unwrap();
    // Two methods at 0.5 and 2, on two splits; none above what it was given.
    assert!(spent > 9.0 && spent <= 10.0, "{spent}");
    let results = value["results"].as_array().unwrap();
    assert_eq!(results.len(), 4);
    for result in results {
        let loss = result["loss_of_r2"]["median"].as_f64().unwrap();
        assert!(loss > -0.01 && loss < 0.2, "{result}");
    }
    assert_eq!(value["results"], folder.json(COMPARE)["results"]);
    assert!(folder.list().iter().all(|name| !name.contains("partial")));
}

#[test]
fn other_tables_models_and_relations_are_taken() {
    let folder = Folder::with_tables();
    let base = "train.csv --target y --schema s.toml --epsilons 1 --seeds 1";
    let value = folder.json(&format!("compare {base} --methods auto --test test.csv --model relu"));
    assert_eq!((&value["model"], &value["test"]), (&"relu".into(), &"tested on test.csv".into()));
    let value = folder
        .json(&format!("compare {base} --methods auto --neighbours replace-one --delta 1e-6"));
    assert_eq!((&value["neighbours"], &value["delta"]), (&"replace-one".into(), &1e-6.into()));
    let relu = "--model relu --methods dp-pgd --radius 2";
    assert!(folder.good(&format!("compare {base} {relu}")).contains("dp-pgd"));
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let folder = Folder::with_tables();
    folder.write("one.csv", "a,b,c,y,name\n3,0.5,u,12,x\n");
    let ask = |rest: &str| format!("compare train.csv --schema s.toml --seeds 1 {rest}");
    let good = "--target y --methods auto --epsilons 1";
    let unknown = folder.quietly(&ask("--target y --methods magic --epsilons 1"));
    assert_eq!(unknown.code, 2, "{}", unknown.stderr);
    assert!(
        unknown.stderr.contains("magic") && unknown.stderr.contains("quietly methods"),
        "{}",
        unknown.stderr
    );
    let said = folder.bad(&ask("--target y --methods dp-mbglmtron --epsilons 1"), "Q02", 1);
    assert!(said.contains("one for linear models, but is dp-mbglmtron"), "{said}");
    for epsilons in ["0", "-1", "1,0", "nan", "inf"] {
        let said =
            folder.bad(&ask(&format!("--target y --methods auto --epsilons {epsilons}")), "A01", 1);
        assert!(said.contains("--epsilons must be"), "{said}");
    }
    folder.bad(&ask("--target y --methods auto --epsilons one"), "C02", 2);
    folder.bad(&ask("--target z --methods auto --epsilons 1"), "D11", 1);
    folder.bad(&ask("--methods auto --epsilons 1"), "C05", 2);
    folder.bad(&ask("--target y --methods auto"), "C05", 2);
    folder.bad(&ask(&format!("{good} --seeds 0")).replace("--seeds 1 ", ""), "A01", 1);
    folder.bad(&ask(&format!("{good} --test gone.csv")), "D01", 2);
    folder.bad(&ask(&format!("{good} --svg train.csv")), "C10", 1);
    folder.bad(&ask(&format!("{good} --svg no/such/c.svg")), "C09", 2);
    let said = folder.bad(&format!("compare one.csv --schema s.toml {good}"), "Q02", 1);
    assert!(said.contains("rows of the table must be at least 10"), "{said}");
    let relu = "--target y --model relu --epsilons 1";
    assert!(
        folder.bad(&ask(&format!("{relu} --methods dp-glmtron")), "Q02", 1).contains("--public")
    );
    assert!(folder.bad(&ask(&format!("{relu} --methods dp-pgd")), "Q02", 1).contains("--radius"));
}

#[test]
fn a_reproduction_leaves_a_whole_folder() {
    let folder = Folder::new();
    let said = folder.good("reproduce relu --tiny --output r");
    assert!(said.contains("mean nothing") && said.contains("saved r/report.md"), "{said}");
    let inside = |name: &str| folder.read(&format!("r/{name}"));
    let page = inside("report.md");
    for part in ["## Claims", "| DLW, Table 4 |", "Excess risk, setting T4", "![", "Slopes"] {
        assert!(page.contains(part), "{part}:\n{page}");
    }
    let value: serde_json::Value = serde_json::from_str(&inside("report.json")).unwrap();
    let claims = value["claims"].as_array().unwrap();
    assert!(claims.len() >= 15, "{}", claims.len());
    for claim in claims {
        let verdict = claim["verdict"].as_str().unwrap();
        // On screen, too, each with its verdict.
        assert!(
            said.contains(&format!("{verdict}:")) && page.contains(claim["why"].as_str().unwrap())
        );
        let holds = claim["checks"].as_array().unwrap().iter().map(|c| c["holds"] == true);
        assert_eq!(verdict == "reproduced", holds.clone().all(|h| h) && holds.len() > 0, "{claim}");
    }
    for picture in value["pictures"].as_array().unwrap() {
        assert!(well_formed(&inside(picture.as_str().unwrap())), "{picture}");
    }
    assert_eq!(folder.list(), ["r"]);
    // A folder that is there stays as it is, and nothing is run.
    let said = folder.bad("reproduce relu --tiny --output r", "C10", 1);
    assert!(said.contains("r is there already"), "{said}");
    assert_eq!(inside("report.md"), page);
    folder.bad("reproduce linear --tiny --data gone", "C09", 2);
    folder.bad("reproduce linear --tiny --output no/such/place", "C09", 2);
    folder.bad("reproduce linear --tiny --threads 0", "A01", 1);
    folder.bad("reproduce trees", "C05", 2);
}

#[test]
fn the_convex_reproduction_has_a_stand_in_and_takes_the_papers_files() {
    let folder = Folder::new();
    let said = folder.good("reproduce convex --tiny --output r");
    assert!(said.contains("mean nothing") && said.contains("saved r/report.md"), "{said}");
    let page = folder.read("r/report.md");
    for part in ["MADE-UP", "They are no releases", "| amp |", "Growth with theta 4", "as printed"]
    {
        assert!(page.contains(part), "{part}:\n{page}");
    }
    let value: serde_json::Value = serde_json::from_str(&folder.read("r/report.json")).unwrap();
    assert!(value["claims"].as_array().unwrap().len() >= 20);
    for picture in value["pictures"].as_array().unwrap() {
        assert!(well_formed(&folder.read(&format!("r/{}", picture.as_str().unwrap()))));
    }
    // Every method has been run on every problem: a plan that fails would leave its row without numbers.
    let tables = value["tables"].as_array().unwrap();
    for table in tables.iter().filter(|t| t["title"].as_str().unwrap().contains("Test loss")) {
        for row in table["rows"].as_array().unwrap() {
            assert!(row.as_object().unwrap().values().all(|v| !v.is_null()), "{row}");
        }
    }

    // Of tuned rivals the best setting counts, and the table says that choosing it is not paid for.
    let said = folder.good("reproduce convex --tiny --only tuned --json --output t");
    let value: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(value["claims"].as_array().unwrap().len(), 3);
    let [table] = &value["tables"].as_array().unwrap()[..] else { panic!("one table: {value}") };
    assert!(table["note"].as_str().unwrap().contains("NOT PAID FOR"), "{table}");
    let rows = table["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 6);
    for row in rows {
        assert!(row.as_object().unwrap().values().all(|v| !v.is_null()), "{row}");
        let [auto, rival] = ["auto", "tuned DP-SGD"].map(|name| row[name].as_f64().unwrap());
        let word = if auto - rival <= 1e-3 { "yes" } else { "NO" };
        assert_eq!(row["within 0.001 of DP-SGD"], word, "{row}");
    }

    // Files as the paper has them, packed or not.
    std::fs::create_dir_all(folder.path("d/a9a")).unwrap();
    let row = |i: usize| {
        format!("{} {}:1 123:1\n", if i.is_multiple_of(3) { "+1" } else { "-1" }, i % 3 + 1)
    };
    let rows: String = (0..500).map(row).collect();
    folder.write("d/a9a/a9a.gz", &rows);
    folder.write("d/a9a/a9a.t", &rows);
    folder.good("reproduce convex --tiny --data d --output s");
    let page = folder.read("s/report.md");
    assert!(page.contains("a9a, eps 0.5") && !page.contains("MADE-UP"), "{page}");
}
