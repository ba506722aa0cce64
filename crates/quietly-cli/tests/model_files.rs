//! Model files that were changed, names with characters that cannot be seen, and units of several rows.
use quietly::{Model, Schema, is_hidden};
use serde_json::{Value, json};

mod run;
use run::{Folder, SCHEMA, table};

const FIT: &str =
    "train.csv --target y --schema s.toml --epsilon 1 --delta 1e-5 --seed 1 --output y.quietly";

/// What may be changed in a file without a digest, and why nothing else in the file can tell.
const MAY_CHANGE: [(&str, &str); 23] = [
    ("/version", "a higher version reads the same"),
    ("/intercept", "what was learnt is not in the plan"),
    ("/weights/", "what was learnt is not in the plan"),
    ("/rows", "what was learnt is not in the plan"),
    ("/columns", "what was learnt is not in the plan"),
    ("/tail", "what was learnt is not in the plan"),
    ("/least_probability", "it follows from the number of rows, which is public"),
    ("/clamped", "it is the user's choice, and costs nothing"),
    ("/encoding/inputs", "ranges and names of columns are the schema's, which is not in the file"),
    ("/encoding/target/lo", "as the other ranges"),
    ("/encoding/target/hi", "as the other ranges"),
    ("/encoding/target/classes", "names of classes are the schema's"),
    ("/plan/method", "how stages were made says nothing about what they cost"),
    ("/plan/algorithm", "as the method"),
    ("/plan/expected_loss", "an expectation, which promises nothing"),
    ("/plan/warnings", "as the expectation"),
    ("/certificate/rows_used/about", "a release, which is not in the plan"),
    ("/certificate/rows_used/deviation", "as the number beside it"),
    ("/certificate/unit", "a word of the schema's"),
    ("/certificate/theorem", "a name; the price itself is checked by `certificate` and `label`"),
    ("/certificate/curve", "checked by the accountant, in `certificate` and `label`"),
    ("/certificate/public/2", "what follows the built-in lines is the caller's"),
    ("/certificate/public/3", "as the line before: the files that were read"),
];

/// Who made it is a name, too; it is apart, as its prefix is no field's of another.
const MADE_BY: &str = "/certificate/made_by";

fn read(value: &Value) -> Result<Model, quietly::Error> {
    Model::from_json(value.to_string().as_bytes(), "the file")
}

/// All places in a document: `/a/0/b`.
fn places(value: &Value, at: &str, all: &mut Vec<String>) {
    let mut inside = |key: &str, value: &Value| {
        let place = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
        all.push(place.clone());
        places(value, &place, all);
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| inside(key, value)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(k, value)| inside(&k.to_string(), value));
        }
        _ => {}
    }
}

/// The same document with one value changed, or taken out.
fn changed(value: &Value, place: &str, remove: bool) -> Value {
    let mut value = value.clone();
    if remove {
        let (parent, key) = place.rsplit_once('/').unwrap();
        match value.pointer_mut(parent).unwrap() {
            Value::Object(fields) => drop(fields.remove(key)),
            Value::Array(items) => drop(items.remove(key.parse().unwrap())),
            _ => unreachable!("a place is within something"),
        }
        return value;
    }
    let at = value.pointer_mut(place).unwrap();
    *at = match at {
        Value::Null => json!(1),
        Value::Bool(truth) => json!(!*truth),
        Value::Number(n) if n.is_u64() => json!(n.as_u64().unwrap() + 1),
        Value::Number(n) => json!(n.as_f64().unwrap() * 1.5 + 0.25),
        Value::String(text) => json!(format!("{text}x")),
        Value::Array(_) => json!([]),
        Value::Object(_) => json!({}),
    };
    value
}

#[test]
fn no_field_of_a_file_can_be_changed() {
    let folder = Folder::with_tables();
    for fit in [
        format!("fit linear {FIT}"),
        format!("fit logistic {}", FIT.replace("--target y", "--target c")),
    ] {
        folder.good(&fit);
        let good: Value = serde_json::from_str(&folder.read("y.quietly")).unwrap();
        std::fs::remove_file(folder.path("y.quietly")).unwrap();
        assert!(
            read(&good).unwrap().digest().is_some_and(|d| d.starts_with("sha256:")),
            "a control"
        );
        let mut bare = good.clone();
        bare.as_object_mut().unwrap().remove("digest");
        let (old, mut all) = (read(&bare).unwrap(), vec![]);
        assert_eq!(old.digest(), None);
        places(&bare, "", &mut all);
        assert!(all.len() > 100, "{}", all.len());
        for (place, remove) in all.iter().flat_map(|place| [(place, false), (place, true)]) {
            // With the digest nothing may be changed at all.
            let forged = changed(&good, place, remove);
            if forged != good {
                assert!(read(&forged).is_err(), "{place} {remove}");
            }
            let forged = changed(&bare, place, remove);
            let listed = MAY_CHANGE.iter().any(|(prefix, _)| place.starts_with(prefix));
            if forged != bare && !listed && place != MADE_BY {
                assert!(
                    read(&forged).is_err(),
                    "{place} {remove} may be changed, and is not listed"
                );
            }
        }
        // White space and the order of fields are not what a digest is about.
        let mut sorted = good.clone();
        sorted.sort_all_objects();
        assert!(Model::from_json(format!("{sorted:#}\n\n").as_bytes(), "sorted").is_ok());
    }
}

/// The four forgeries by which certificates once were printed and labelled, the digest left out.
#[test]
fn certificates_that_contradict_their_plan_are_refused() {
    let folder = Folder::with_tables();
    folder.good(&format!("fit linear {FIT}"));
    let good: Value = serde_json::from_str(&folder.read("y.quietly")).unwrap();
    let forge = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut value = good.clone();
        value.as_object_mut().unwrap().remove("digest");
        change(&mut value["certificate"]);
        folder.write("forged.quietly", value.to_string());
        for verb in ["certificate forged.quietly", "show forged.quietly"] {
            let said = folder.bad(verb, "Q04", 2);
            assert!(said.contains("forged.quietly is not a model"), "{name}: {said}");
        }
        folder.bad("label forged.quietly --output l.html", "Q04", 2);
        let done = folder.quietly("predict forged.quietly test.csv --output p.csv");
        assert!(done.code == 2 && done.stderr.starts_with("error[Q04]"), "{name}: {}", done.stderr);
    };
    forge("seeded", &|c| c["test_only"] = false.into());
    forge("zero", &|c| {
        (c["stages"], c["curve"], c["epsilon"]) = (json!([]), json!([]), json!(0.0));
    });
    forge("tenth", &|c| {
        for stage in c["stages"].as_array_mut().unwrap() {
            for charge in stage["releases"].as_array_mut().unwrap() {
                for (key, value) in charge.as_object_mut().unwrap() {
                    let factor = match key.as_str() {
                        "noise_multiplier" => 12.0,
                        "add_remove" | "replace_one" => 1.0 / 12.0,
                        _ => continue,
                    };
                    *value = json!(value.as_f64().unwrap() * factor);
                }
            }
        }
        (c["budget"]["epsilon"], c["epsilon"], c["curve"]) = (json!(0.1), json!(0.0999), json!([]));
    });
    forge("family", &|c| (c["public"], c["not_covered"]) = (json!([]), json!([])));
    // Nothing asked in plan and certificate alike, and weights all the same.
    let mut value = good.clone();
    value.as_object_mut().unwrap().remove("digest");
    for part in ["plan", "certificate"] {
        (value[part]["stages"], value[part]["epsilon"]) = (json!([]), json!(0.0));
    }
    value["certificate"]["curve"] = json!([]);
    value["plan"]["algorithm"]["reach"] = "nothing".into();
    folder.write("forged.quietly", value.to_string());
    folder.bad("certificate forged.quietly", "Q04", 2);
    // All releases but the count of rows left out, and its price alone claimed.
    let mut value = good.clone();
    value.as_object_mut().unwrap().remove("digest");
    for part in ["plan", "certificate"] {
        let last = value[part]["stages"].as_array().unwrap().last().unwrap().clone();
        (value[part]["stages"], value[part]["epsilon"]) = (json!([last]), json!(0.06));
    }
    value["certificate"]["curve"] = json!([]);
    folder.write("forged.quietly", value.to_string());
    assert!(folder.bad("certificate forged.quietly", "Q04", 2).contains("other releases"));
    // A count that is told more finely than its noise is, and a theorem of the forger's own.
    forge("narrow", &|c| c["rows_used"]["deviation"] = json!(0.5));
    let mut value = good.clone();
    value.as_object_mut().unwrap().remove("digest");
    value["certificate"]["theorem"] = "certified by the regulator".into();
    folder.write("forged.quietly", value.to_string());
    folder.bad("certificate forged.quietly", "Q04", 2);
    folder.bad("label forged.quietly --output l.html", "Q04", 2);
    // A key that stands twice is read by some as the first, and by others as the last.
    let twice =
        folder.read("y.quietly").replacen("\"unit\":", "\"unit\": \"family\", \"unit\":", 1);
    folder.write("forged.quietly", twice);
    assert!(folder.bad("certificate forged.quietly", "Q04", 2).contains("repeated key"));
    // The control: a file of an earlier version has no digest, and says so.
    let mut old = good.clone();
    old.as_object_mut().unwrap().remove("digest");
    let lines = &mut old["certificate"]["not_covered"];
    lines[1] = "several rows of one person, unless the unit says so: k rows cost k times epsilon, at a larger delta".into();
    lines[3] =
        "who can read the table, the machine's memory or its clock while the model is made".into();
    folder.write("old.quietly", old.to_string());
    assert!(folder.good("certificate old.quietly").contains("no digest: an earlier version"));
    folder.good("label old.quietly --output old.html");
    assert!(folder.read("old.html").contains("no digest: an earlier version"));
    assert_eq!(folder.json("certificate old.quietly")["digest"], Value::Null);
}

#[test]
fn fit_certificate_and_label_tell_the_digest_of_the_file() {
    let folder = Folder::with_tables();
    let said = folder.good(&format!("fit linear {FIT}"));
    let good: Value = serde_json::from_str(&folder.read("y.quietly")).unwrap();
    let digest = good["digest"].as_str().unwrap();
    assert_eq!(digest.len(), "sha256:".len() + 64);
    folder.good("label y.quietly --output l.html");
    let (text, page) = (folder.good("certificate y.quietly"), folder.read("l.html"));
    for said in [said, text, page] {
        assert!(said.contains(digest), "{said}");
    }
    assert_eq!(folder.json("certificate y.quietly")["digest"], digest);
}

/// Every hidden character in every name: refused, and told by its number alone.
#[test]
fn no_hidden_character_is_taken() {
    let folder = Folder::with_tables();
    folder.good(&format!("fit linear {FIT}"));
    let mut good: Value = serde_json::from_str(&folder.read("y.quietly")).unwrap();
    good.as_object_mut().unwrap().remove("digest");
    let hidden: Vec<char> = ('\0'..=char::MAX).filter(|c| is_hidden(*c)).collect();
    assert!(hidden.len() > 200);
    let schema = |unit: &str, column: &str, value: &str| {
        let text =
            |s: &str| s.chars().map(|c| format!("\\U{:08X}", u32::from(c))).collect::<String>();
        let (unit, column, value) = (text(unit), text(column), text(value));
        Schema::parse(&format!(
            "rows = 9\nunit = \"{unit}\"\n[columns]\n\"{column}\" = {{ range = [0, 1] }}\nb = {{ values = [\"{value}\", \"z\"] }}"
        ))
    };
    assert!(schema("person", "age", "no").is_ok(), "a control");
    assert!(schema("per\u{200d}son", "Größe \u{200c}", "né").is_ok(), "a control");
    for c in hidden {
        let bad = &format!("a{c}b");
        for refused in
            [schema(bad, "age", "no"), schema("unit", bad, "no"), schema("unit", "age", bad)]
        {
            let error = refused.unwrap_err();
            assert_eq!(error.code(), "D09");
            assert!(!error.to_string().replace('\n', "").chars().any(is_hidden), "{error:?}");
        }
        for (place, text) in [
            ("/certificate/unit", bad.clone()),
            ("/encoding/inputs/0/column", bad.clone()),
            ("/encoding/inputs/2/rule/values/values/1", bad.clone()),
            ("/certificate/public/2", bad.clone()),
        ] {
            let mut forged = good.clone();
            *forged.pointer_mut(place).unwrap() = text.into();
            let error = read(&forged).unwrap_err().to_string();
            assert!(error.contains("cannot be seen"), "{place} {error}");
        }
    }
    // In a header as well, and the first line may be a row: it is not quoted.
    folder.write("esc.csv", table(20).replacen(",name", ",na\u{1b}[31mme", 1));
    let said = folder.bad(&format!("fit linear {}", FIT.replace("train.csv", "esc.csv")), "D04", 1);
    assert!(!said.contains("31m"), "{said}");
    // What is typed is shown by its numbers.
    let done = folder.quietly("show \u{1b}[2Jmodel\u{202e}.quietly");
    assert!(done.stderr.contains("\\u{1b}[2Jmodel\\u{202e}.quietly"), "{}", done.stderr);
    let long =
        format!("rows = 9\nunit = \"{}\"\n[columns]\na = {{ range = [0, 1] }}", "u".repeat(201));
    assert_eq!(Schema::parse(&long).unwrap_err().code(), "D09");
}

/// 8 rows of each person: the budget is the person's, in every text and in the ledger.
#[test]
fn a_unit_of_eight_rows_pays_for_all_of_them() {
    let folder = Folder::with_tables();
    folder.write("s8.toml", SCHEMA.replace("[columns]", "rows_per_unit = 8\n[columns]"));
    folder.good("budget L --limit 2 --delta 1e-3");
    let fit8 = FIT.replace("s.toml", "s8.toml").replace("y.quietly", "8.quietly");
    let said = folder.good(&format!("fit linear {fit8} --ledger L"));
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat(&said).contains("up to 8 rows each, as the schema declares"), "{said}");
    assert!(said.contains("of 1 spent at delta 1e-5"), "{said}");
    let model = Model::read(&folder.path("8.quietly")).unwrap();
    assert!(model.certificate.is_consistent() && model.rows_per_unit() == 8);
    assert!(model.certificate.epsilon <= 1.0 && model.certificate.epsilon > 0.9);
    assert!(model.plan.epsilon() <= 0.125, "{}", model.plan.epsilon());
    let ledger: Value = folder.json("budget L");
    assert!(ledger.to_string().contains("\"epsilon\":1.0"), "{ledger}");
    let certificate = folder.json("certificate 8.quietly");
    assert_eq!(certificate["budget"]["rows_per_unit"], 8);
    assert_eq!(certificate["protects"], "whether one person, with up to 8 rows, is in the table");
    let plan = "--target y --epsilon 1 --delta 1e-5";
    assert!(
        folder
            .good(&format!("plan linear s8.toml {plan}"))
            .contains("for the up to 8 rows of a unit")
    );
    // Scores are for the same unit, and eight times as noisy as those for one row.
    let scores = folder.json("evaluate 8.quietly test.csv --epsilon 1 --delta 1e-5 --seed 1");
    assert!(scores.to_string().contains("\"rows_per_unit\":8"), "{scores}");
    // With one row for a unit nothing is claimed for a person.
    let said = folder.good(&format!("fit linear {FIT}"));
    let text = flat(
        &(said
            + &folder.good("certificate y.quietly")
            + &folder.good(&format!("plan linear s.toml {plan}"))),
    );
    let warned = "if a person has several rows, they are NOT protected at this epsilon";
    assert!(text.contains(warned), "{text}");
    assert_eq!(
        text.replace(warned, "").replace("(called person)", "").matches("person").count(),
        0,
        "{text}"
    );
    // Too many rows are refused before anything is charged.
    folder.write("s9.toml", SCHEMA.replace("[columns]", "rows_per_unit = 1001\n[columns]"));
    let fit9 = FIT.replace("s.toml", "s9.toml").replace("y.quietly", "9.quietly");
    let before = folder.read("L");
    let said = folder.quietly(&format!("fit linear {fit9} --ledger L"));
    assert!(said.code == 1 && said.stderr.contains("rows_per_unit must be"), "{}", said.stderr);
    assert_eq!(folder.read("L"), before);
}

/// Labels that a spreadsheet would run are written as they are, unless it is asked otherwise.
#[test]
fn formulas_are_defused_on_demand() {
    let folder = Folder::with_tables();
    let (first, second) = ("=HYPERLINK(\"\"http://x\"\")", "@SUM(1)");
    let swap = |text: String| {
        text.replace(",u,", &format!(",\"{first}\",")).replace(",v,", &format!(",{second},"))
    };
    folder.write("train.csv", swap(table(3000)));
    folder.write("test.csv", swap(table(50)));
    let values = "[\"=HYPERLINK(\\\"http://x\\\")\", \"@SUM(1)\", \"plain\"]";
    folder.write("s.toml", SCHEMA.replace("[\"u\", \"v\"]", values));
    folder.good(&format!("fit logistic {}", FIT.replace("--target y", "--target c")));
    folder.good("predict y.quietly test.csv --output raw.csv");
    folder.good("predict y.quietly test.csv --output safe.csv --for-spreadsheets");
    let (raw, safe) = (folder.read("raw.csv"), folder.read("safe.csv"));
    let begins = |text: &str| {
        let cells = text.lines().map(|line| line.trim_start_matches('"').chars().next().unwrap());
        cells.filter(|c| ['=', '+', '-', '@'].contains(c)).count()
    };
    assert_eq!((begins(&raw), begins(&safe)), (50, 0), "{raw}");
    assert_eq!(raw.lines().next(), safe.lines().next(), "no name of a column begins so");
    assert!(
        safe.lines().skip(1).all(|line| line.starts_with("\"'=") || line.starts_with("'@")),
        "{safe}"
    );
}
