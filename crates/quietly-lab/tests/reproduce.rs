//! `quietly-lab`, as a user would run it.
#[path = "../../quietly-cli/tests/run/mod.rs"]
mod run;
use run::{Folder, quietly, well_formed};

/// The commands at the head of a help page.
fn example(page: &str) -> Vec<String> {
    let help = quietly(&format!("{page} --help"));
    assert_eq!(help.code, 0, "{}", help.stderr);
    let mut lines = help.stdout.lines();
    assert_eq!(lines.next(), Some("Example:"), "{page}");
    lines.map_while(|l| l.strip_prefix("  ").map(String::from)).collect()
}

#[test]
fn every_help_page_starts_with_an_example_that_works() {
    for page in [
        "",
        "reproduce",
        "reproduce linear",
        "reproduce relu",
        "reproduce convex",
        "reproduce features",
        "reproduce kan",
    ] {
        let folder = Folder::new();
        let commands = example(page);
        let [command] = &commands[..] else { panic!("one line: {commands:?}") };
        let typed = command.strip_prefix("quietly-lab ").expect(command);
        assert!(typed.starts_with(page), "{page}: {command}");
        // Two minutes are too long for a test.
        folder.good(&typed.replace("--quick", "--tiny"));
    }
}

#[test]
fn errors_have_the_manners_of_the_product() {
    let folder = Folder::new();
    assert!(folder.good("--version").starts_with("quietly-lab "));
    let said = folder.bad("reproduce linear --fast", "C05", 2);
    assert!(said.contains("`quietly-lab reproduce linear --help`"), "{said}");
    let said = folder.bad("reproduce linear --threads two", "C02", 2);
    assert!(said.contains("--threads must be a whole number"), "{said}");
    folder.bad("fit linear t.csv", "C05", 2);
    let short = folder.quietly("reproduce");
    assert_eq!((short.code, short.stdout.as_str()), (2, ""));
    assert!(short.stderr.contains("Usage: quietly-lab reproduce"), "{}", short.stderr);
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
    assert!(said.contains("r exists already"), "{said}");
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
    for part in
        ["SYNTHETIC", "They are no releases", "| amp |", "Growth with theta 4", "as printed"]
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
    assert!(page.contains("a9a, eps 0.5") && !page.contains("SYNTHETIC"), "{page}");
}

#[test]
fn feature_learning_is_reproduced_in_a_folder() {
    let folder = Folder::new();
    let said = folder.good("reproduce features --tiny --output r");
    assert!(said.contains("11 pictures"), "{said}");
    let report = folder.read("r/report.md");
    for part in [
        "Signal and noise in the filters",
        "NO guarantee",
        "Diagnoses and test errors",
        "Phase diagram",
    ] {
        assert!(report.contains(part), "{part}");
    }
    let again = folder.good("reproduce features --tiny --output s --threads 1");
    assert_eq!(said.lines().nth(1), again.lines().nth(1));
    for file in ["figure-2a.svg", "figure-2h.svg", "phases.svg", "collapse.svg"] {
        assert_eq!(folder.read(&format!("r/{file}")), folder.read(&format!("s/{file}")), "{file}");
    }
}
