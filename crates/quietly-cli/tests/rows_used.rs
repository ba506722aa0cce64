//! Tables that do not match their schema: the fit continues with a warning.
mod run;

use run::Folder;

const SCHEMA: &str = "rows = 5000\nmissing = \"drop\"\n[columns]\na = { range = [0, 100] }\ny = { range = [0, 15] }\n";

/// 5000 rows: a date, a number, a category and a target, without any randomness.
fn rows() -> impl Iterator<Item = (String, f64, &'static str, f64)> {
    (0..5000_usize).map(|i| {
        let fraction = |m: usize| (i * m % 1009) as f64 / 1009.0;
        let a = 20.0 + 60.0 * fraction(331);
        let when = format!("2020-{:02}-{:02} 10:00", 1 + i % 12, 1 + i % 28);
        (when, a, if i % 3 == 0 { "white" } else { "black" }, 0.1 * a + 2.0 * fraction(97))
    })
}

fn tables() -> Folder {
    let folder = Folder::new();
    let mut text = String::from("when,a,race,y\n");
    let mut german = String::from("a;y\n");
    for (when, a, race, y) in rows() {
        text += &format!("{when},{a:.2},{race},{y:.3}\n");
        german += &format!("{a:.2};{y:.3}\n").replace('.', ",");
    }
    folder.write("t.csv", text);
    folder.write("de.csv", german);
    folder.write("good.toml", SCHEMA);
    folder.write("when.toml", format!("{SCHEMA}when = {{ range = [0, 1e5] }}\n"));
    folder.write("race.toml", format!("{SCHEMA}race = {{ values = [\"White\", \"Black\"] }}\n"));
    folder.write("german.toml", format!("decimal = \",\"\n{SCHEMA}"));
    folder
}

#[test]
fn a_fit_that_used_no_row_says_so() {
    let folder = tables();
    for (table, schema) in [("de.csv", "good"), ("t.csv", "when"), ("t.csv", "race")] {
        for model in ["linear", "linear --method one-pass", "relu --method dp-sgd", "robust", "kan"]
        {
            let fit = format!(
                "fit {model} {table} --schema {schema}.toml --target y --epsilon 1 --seed 1"
            );
            let said = folder.good(&format!("{fit} --output m.quietly --force"));
            let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(
                said.contains("WARNING: about ") && said.contains("does not match the schema"),
                "{fit}\n{said}"
            );
            let json = folder.json(&format!("{fit} --output m.quietly --force"));
            let used = json["rows_used"]["about"].as_f64().unwrap();
            let deviation = json["rows_used"]["deviation"].as_f64().unwrap();
            assert!(used < 5.0 * deviation, "{json}");
            assert!(json["warnings"].to_string().contains("does not match the schema"), "{json}");
        }
        folder.bad(&format!("evaluate m.quietly {table}"), "C16", 1);
    }
    // The control: the same tables, read rightly.
    for (table, schema) in [("t.csv", "good"), ("de.csv", "german")] {
        let fit =
            format!("fit linear {table} --schema {schema}.toml --target y --epsilon 1 --seed 1");
        let said = folder.good(&format!("{fit} --output m.quietly --force"));
        assert!(!said.contains("WARNING"), "{said}");
        assert!(said.contains(" of the declared 5 000 rows were used"), "{said}");
        assert!(
            folder.good("certificate m.quietly").contains(" of the declared 5 000 rows were used")
        );
        folder.good(&format!("evaluate m.quietly {table}"));
    }
}

#[test]
fn a_check_finds_the_column() {
    let folder = tables();
    let check = |schema: &str, more: &str| {
        folder.json(&format!("check t.csv --schema {schema}.toml --target y {more}"))
    };
    let found = check("race", "--epsilon 0.5 --seed 1");
    let share = |at: usize| found["columns"][at]["missing"].as_f64().unwrap();
    assert!(share(0) < 0.2 && share(2) > 0.8, "{found}");
    assert_eq!(found["columns"][2]["column"], "race");
    assert!(found["warning"].as_str().unwrap().contains("does not match the schema"));
    let exact = check("race", "--public");
    assert_eq!((exact["usable"]["about"].as_u64(), exact["rows"].as_u64()), (Some(0), Some(5000)));
    assert_eq!(exact["private"], false);
    let good = check("good", "--epsilon 0.5 --seed 1");
    assert!(good["warning"].is_null(), "{good}");
    let said = folder.good("check t.csv --schema race.toml --epsilon 0.5 --seed 1");
    assert!(
        said.contains("<- not what the schema says") && said.contains("spent epsilon"),
        "{said}"
    );
}

#[test]
fn a_range_of_no_numbers_is_no_range() {
    let folder = tables();
    for seed in 1..6 {
        let line = format!("bounds t.csv race when a --epsilon 0.6 --rows 5000 --seed {seed}");
        let said = folder.good(&line);
        assert!(said.contains("# race: too few numbers"), "{said}");
        assert!(said.contains("# when: too few numbers") && said.contains("a = { range"), "{said}");
        assert!(folder.json(&line)["ranges"]["race"].is_null());
    }
}
