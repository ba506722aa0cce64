//! `quietly diagnose`, as a user would run it.
mod run;
use run::Folder;

/// Two classes, apart in the first of three columns; no randomness, no real person.
fn labels(rows: usize) -> String {
    let mut text = String::from("a,b,c,label\n");
    for i in 0..rows {
        let fraction = |m: usize| (i * m % 1009) as f64 / 1009.0;
        let sick = i % 2 == 0;
        let a = 2.0 * fraction(331) + if sick { 6.0 } else { 2.0 };
        let (b, c) = (10.0 * fraction(577), 10.0 * fraction(97));
        text += &format!("{a:.3},{b:.3},{c:.3},{}\n", if sick { "sick" } else { "well" });
    }
    text
}

const SCHEMA: &str = "\
rows = 5000
unit = \"person\"
[columns]
a = { range = [0, 10] }
b = { range = [0, 10] }
c = { range = [0, 10] }
label = { values = [\"well\", \"sick\"] }
";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("t.csv", labels(5000));
    folder.write("t.schema.toml", SCHEMA);
    folder
}

/// In units of half a range the classes are 2·0.4 apart, and the variances are 1/75, 1/3 and 1/3.
const TRUTH: f64 = 0.4851;

#[test]
fn numbers_are_diagnosed() {
    let folder = Folder::new();
    let flags = "diagnose --snr 0.6 --rows 200 --epsilon 1 --delta 1e-5";
    let said = folder.good(flags);
    assert!(said.contains("verdict: enough"), "{said}");
    let value = folder.json(flags);
    assert_eq!(value["verdict"], "enough");
    assert!((value["q_priv"].as_f64().unwrap() - 32.2).abs() < 0.1, "{value}");
    assert!((value["q_stat"].as_f64().unwrap() - 43.2).abs() < 0.1, "{value}");
    assert!(value["q_time"].is_null());
    let rows = value["least"]["rows"].as_u64().unwrap();
    let fewer =
        folder.json(&format!("diagnose --snr 0.6 --rows {} --epsilon 1 --delta 1e-5", rows - 1));
    assert_eq!(fewer["verdict"], "marginal");
    let replaced = folder.json(&format!("{flags} --neighbours replace-one"));
    assert_eq!(replaced["verdict"], "marginal");
    let slow = folder.json("diagnose --snr 0.2 --rows 100000 --epsilon 1 --steps 500");
    assert_eq!(slow["verdict"], "no");
    assert!(slow["least"]["rows"].is_null() && slow["least"]["epsilon"].is_null(), "{slow}");
    let said = folder.good("diagnose --snr 0.6 --rows 50 --epsilon 1");
    assert!(said.contains("multiply SNR·n by 3.8"), "{said}");
}

#[test]
fn a_table_is_diagnosed_at_a_price_or_as_public() {
    let folder = folder();
    let flags = "diagnose t.csv --target label --epsilon 1 --delta 1e-5";
    let public = folder.json(&format!("{flags} --public"));
    assert!((public["snr"].as_f64().unwrap() / TRUTH - 1.0).abs() < 0.01, "{public}");
    assert_eq!((&public["private"], &public["snr_from"]), (&false.into(), &"public".into()));
    assert!(public.get("certificate").is_none());
    let said = folder.good(&format!("{flags} --public"));
    assert!(said.contains("spent   nothing") && said.contains("NOT private"), "{said}");
    for neighbours in ["add-remove", "replace-one"] {
        let flags = format!("{flags} --spend 0.5 --seed 1 --neighbours {neighbours}");
        let private = folder.json(&flags);
        assert!((private["snr"].as_f64().unwrap() / TRUTH - 1.0).abs() < 0.2, "{private}");
        assert!(private["spent"].as_f64().unwrap() <= 0.5);
        assert_eq!(private["certificate"]["budget"]["neighbours"], neighbours);
        assert_eq!(private["test_only"], true);
        let said = folder.good(&flags);
        assert!(said.contains("TEST ONLY") && said.contains("class means, counts"), "{said}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let folder = folder();
    folder.write("more.schema.toml", SCHEMA.replace("[\"well\"", "[\"unknown\", \"well\""));
    for (flags, code, exit, says) in [
        ("--epsilon 1", "C14", 2, "neither"),
        ("t.csv --snr 1 --epsilon 1", "C14", 2, "both"),
        ("--snr 1 --epsilon 1", "C14", 2, "--rows"),
        ("--snr 1 --rows 10 --epsilon 1 --spend 1", "C14", 2, "for a table"),
        ("t.csv --epsilon 1 --spend 1", "C14", 2, "--target"),
        ("t.csv --target label --epsilon 1", "C14", 2, "--spend"),
        ("t.csv --target label --epsilon 1 --public --rows 7", "C14", 2, "--rows"),
        ("t.csv --target label --epsilon 1 --public --spend 1", "C05", 2, "--spend"),
        ("--snr 1 --rows 10", "C05", 2, "--epsilon"),
        ("--snr one --rows 10 --epsilon 1", "C02", 2, "--snr"),
        ("--snr -1 --rows 10 --epsilon 1", "Q02", 1, "SNR must be from 0"),
        ("--snr nan --rows 10 --epsilon 1", "Q02", 1, "SNR"),
        ("--snr 1 --rows 0 --epsilon 1", "A01", 1, "--rows"),
        ("--snr 1 --rows 10 --epsilon 0", "A01", 1, "--epsilon"),
        ("--snr 1 --rows 10 --epsilon inf", "A01", 1, "finite"),
        ("--snr 1 --rows 10 --epsilon 1 --delta 2", "A01", 1, "--delta"),
        ("--snr 1 --rows 10 --epsilon 1 --delta 0", "Q02", 1, "--delta"),
        ("--snr 1 --rows 10 --epsilon 1 --power 2", "Q02", 1, "power must be above 2"),
        ("--snr 1 --rows 10 --epsilon 1 --steps 0", "Q02", 1, "--steps"),
        ("t.csv --target a --epsilon 1 --spend 1", "D12", 1, "a"),
        ("t.csv --target label --epsilon 1 --spend -1", "A01", 1, "--epsilon"),
        ("t.csv --target label --epsilon 1 --spend inf", "A01", 1, "finite"),
        (
            "t.csv --target label --schema more.schema.toml --epsilon 1 --spend 1",
            "Q02",
            1,
            "number of classes",
        ),
        ("gone.csv --target label --epsilon 1 --spend 1", "D01", 2, "gone"),
    ] {
        let said = folder.bad(&format!("diagnose {flags}"), code, exit);
        assert!(said.contains(says), "{flags}: {said}");
        assert!(!said.contains("sick"), "{said}");
    }
    // Three classes are fine without privacy, if each is present.
    folder.bad(
        "diagnose t.csv --target label --schema more.schema.toml --epsilon 1 --public",
        "Q02",
        1,
    );
    folder.write("three.csv", labels(5000).replacen("well", "unknown", 900));
    let flags = "diagnose three.csv --target label --schema more.schema.toml --epsilon 1 --public";
    assert_eq!(folder.json(flags)["separation"]["classes"], 3);
}

/// Cells that cannot be read, and a class without rows, are no reason to fail.
#[test]
fn no_row_can_stop_a_private_estimate() {
    let folder = folder();
    for table in ["a,b,c,label\n", "a,b,c,label\nx,,nan,who\n", "a,b,c,label\n1,2,3,sick\n"] {
        folder.write("t.csv", table);
        folder.good("diagnose t.csv --target label --epsilon 1 --spend 0.1");
    }
}
