//! Units of several rows: every price is for all rows of one unit, whichever verb asks, and a ledger adds up units of one size.
use serde_json::Value;

mod run;
use run::Folder;

/// Rows whose schema says that a person has up to `rows` of them, and a ledger.
fn people(rows: u64) -> Folder {
    let folder = Folder::with_tables();
    let schema = format!("rows_per_unit = {rows}\nledger = \"L\"\n{}", folder.read("s.toml"));
    folder.write("train.schema.toml", schema);
    folder.good("budget L --limit 9 --delta 1e-4");
    folder
}

fn releases(folder: &Folder) -> Vec<Value> {
    folder.json("budget L")["entries"].as_array().unwrap().clone()
}

#[test]
fn a_range_is_paid_for_all_rows_of_a_unit() {
    // Few rows, so that the price shows: with an eighth of it, ends are sought farther inside.
    let ends = |folder: &Folder, epsilon: f64| {
        let said =
            folder.json(&format!("bounds train.csv b --rows 3000 --epsilon {epsilon} --seed 1"));
        (said["ranges"].clone(), said["rows_per_unit"].clone())
    };
    let (one, eight) = (people(1), people(8));
    // What eight rows pay together is an eighth for each.
    let (row, whole) = (ends(&one, 0.05), ends(&one, 0.4));
    let (unit, rows) = ends(&eight, 0.4);
    assert_eq!((&row.0, &rows), (&unit, &8.into()));
    assert_ne!(whole.0, unit);
    let charged = releases(&eight);
    assert_eq!((&charged[0]["rows_per_unit"], &charged[0]["epsilon"]), (&8.into(), &0.4.into()));
    // Too many rows for the price are refused before the charge.
    eight.bad("bounds train.csv a --epsilon 0.1 --rows-per-unit 1000", "Q02", 1);
    assert_eq!(releases(&eight).len(), 1);
    let said = eight.good("bounds train.csv a --epsilon 1");
    assert!(said.contains("up to 8 rows of one unit added or removed"), "{said}");
}

#[test]
fn scores_are_for_the_larger_unit_of_model_and_table() {
    let folder = people(8);
    let fit = "fit linear train.csv --target y --epsilon 8 --delta 1e-5 --no-ledger --schema";
    folder.good(&format!("{fit} s.toml --output row.quietly"));
    folder.good(&format!("{fit} train.schema.toml --output person.quietly"));
    folder.write("other.csv", folder.read("train.csv"));
    for (model, table) in [("row", "train.csv"), ("person", "other.csv"), ("person", "train.csv")] {
        let line = format!("evaluate {model}.quietly {table} --epsilon 1 --no-ledger --seed 3");
        let said = folder.json(&line);
        let certificate = &said["certificate"];
        assert_eq!(certificate["budget"]["rows_per_unit"], 8, "{line}");
        assert!(certificate["epsilon"].as_f64().unwrap() <= 1.0);
    }
    let said = folder.json("evaluate row.quietly other.csv --epsilon 1 --no-ledger --seed 3");
    assert_eq!(said["certificate"]["budget"]["rows_per_unit"], Value::Null);
}

#[test]
fn a_ledger_adds_up_units_of_one_size() {
    let folder = people(8);
    let fit = |schema: &str, output: &str| {
        format!(
            "fit linear train.csv --schema {schema} --target y --epsilon 1 --delta 1e-5 --output {output} --ledger L"
        )
    };
    folder.good(&fit("train.schema.toml", "1.quietly"));
    let before = folder.read("L");
    let message = folder.bad(&fit("s.toml", "2.quietly"), "Q02", 1);
    assert!(message.contains("rows_per_unit"), "{message}");
    assert_eq!(folder.read("L"), before);
    assert!(!folder.path("2.quietly").exists());
    folder.good(&fit("train.schema.toml", "2.quietly"));
    let shown = folder.good("budget L");
    assert!(shown.contains("for units of up to 8 rows"), "{shown}");
}
