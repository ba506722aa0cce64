//! Networks in use: fitted, shown, refused.
mod run;
use run::Folder;

const SCHEMA: &str = "\
rows = 2000
[columns]
a = { range = [0, 10] }
b = { range = [-1, 1] }
c = { values = [\"u\", \"v\"], other = true }
same = { values = [\"no\", \"yes\"] }
kind = { values = [\"x\", \"y\", \"z\"] }
y = { range = [0, 40] }
";

/// `same` is whether a and b are on one side of their middles, which no weighted sum can tell.
fn table(rows: usize) -> String {
    let mut text = String::from("a,b,c,same,kind,y\n");
    for i in 0..rows {
        let fraction = |m: usize| (i * m % 1009) as f64 / 1009.0;
        let (a, b) = (10.0 * fraction(331), 2.0 * fraction(577) - 1.0);
        let c = ["u", "v", "w"][i % 3];
        let same = if (a > 5.0) == (b > 0.0) { "yes" } else { "no" };
        let kind = if a < 3.0 { "x" } else { ["y", "z"][i % 2] };
        text += &format!("{a:.3},{b:.3},{c},{same},{kind},{:.2}\n", 4.0 * a);
    }
    text
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("t.csv", table(2000));
    folder.write("s.toml", SCHEMA);
    folder
}

fn fitted(folder: &Folder, target: &str) {
    let fit =
        format!("fit kan t.csv --target {target} --features a,b,c --schema s.toml --epsilon 8");
    folder.good(&format!("{fit} --seed 3 --output {target}.quietly"));
}

#[test]
fn a_network_sees_that_columns_work_together_and_shows_it() {
    let folder = folder();
    fitted(&folder, "same");
    let score = folder.json("evaluate same.quietly t.csv");
    assert!(score["accuracy"].as_f64().unwrap() > 0.85, "{score}");
    let said = folder.good("show same.quietly");
    assert!(
        said.contains("log odds of same = yes") && said.contains("next: quietly show"),
        "{said}"
    );
    let value = folder.json("show same.quietly");
    let effect = |k: usize| value["columns"][k]["effect"].as_f64().unwrap();
    let name = |k: usize| value["columns"][k]["column"].as_str().unwrap().to_string();
    let mut first = [name(0), name(1)];
    first.sort();
    assert_eq!((first, name(2)), (["a", "b"].map(String::from), "c".into()));
    // The class does not hang on c, but noise is noise.
    assert!(effect(1) > 2.0 * effect(2), "{value}");
}

#[test]
fn pictures_are_written_and_said() {
    let folder = folder();
    for (target, axis) in [
        ("same", "log odds of same = yes"),
        ("kind", "probabilities of kind"),
        ("y", "prediction of y"),
    ] {
        fitted(&folder, target);
        let said = folder.good(&format!("show {target}.quietly --output {target}.svg"));
        assert!(said.contains(&format!("{target}.svg: 3 panels")) && said.contains(axis), "{said}");
        let svg = folder.read(&format!("{target}.svg"));
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        // In the column's own units, and categories by their names.
        for word in [axis, ">a<", ">b<", ">c<", ">8<", ">u<", ">v<", ">other<"] {
            assert!(svg.contains(word), "{target}: {word}");
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{target}");
        let said = folder.good(&format!("show {target}.quietly --units 4 --output units.svg"));
        assert!(said.contains("4 units"), "{said}");
        assert_eq!(folder.read("units.svg").matches("unit ").count(), 4);
        let value = folder.json(&format!("show {target}.quietly --output again.svg"));
        assert_eq!(value["output"], "again.svg");
        assert_eq!(folder.read("again.svg"), svg, "the same model, the same picture");
    }
}

#[test]
fn weights_are_told_in_the_units_of_the_columns() {
    let folder = Folder::with_tables();
    let fit = "--target y --schema s.toml --epsilon inf --output";
    folder.good(&format!("fit linear train.csv {fit} m.quietly"));
    let value = folder.json("show m.quietly");
    let per_unit = |k: usize| value["outputs"][0]["weights"][k]["per_unit"].as_f64().unwrap();
    assert!((per_unit(0) - 3.0).abs() < 0.05 && (per_unit(1) - 5.0).abs() < 0.05, "{value}");
    assert!((per_unit(2) - 2.0).abs() < 0.05, "{value}");
    let said = folder.good("show m.quietly");
    assert!(said.contains("c=v") && said.contains("per unit"), "{said}");
    let message = folder.bad("show m.quietly --output x.svg", "Q02", 1);
    assert!(message.contains("weights only"), "{message}");
    folder.bad("show m.quietly --units 3", "Q02", 1);
}

#[test]
fn a_logistic_model_of_several_classes_has_a_column_for_each() {
    let folder = folder();
    let fit = "fit logistic t.csv --target kind --features a,b,c --schema s.toml --epsilon 8";
    folder.good(&format!("{fit} --output k.quietly"));
    let said = folder.good("show k.quietly");
    assert!(said.lines().nth(1).unwrap().ends_with("x             y             z"), "{said}");
    assert_eq!(folder.json("show k.quietly")["outputs"].as_array().unwrap().len(), 3);
}

#[test]
fn what_cannot_be_shown_is_refused() {
    let folder = folder();
    fitted(&folder, "same");
    folder.bad("show same.quietly --units 3", "Q02", 1);
    folder.bad("show same.quietly --output same.quietly", "C10", 1);
    folder.bad("show t.csv", "Q04", 2);
    folder.bad("show missing.quietly", "Q05", 2);
}

/// A certificate whose noise was lowered by hand says less than its questions cost.
#[test]
fn a_changed_certificate_is_not_shown() {
    let folder = folder();
    fitted(&folder, "same");
    folder.good("certificate same.quietly");
    let mut model: serde_json::Value = serde_json::from_str(&folder.read("same.quietly")).unwrap();
    model.as_object_mut().expect("fields").remove("digest");
    for part in ["plan", "certificate"] {
        let noise = &mut model[part]["stages"][0]["releases"][0]["noise_multiplier"];
        *noise = (0.9 * noise.as_f64().expect("a noise")).into();
    }
    folder.write("less.quietly", model.to_string());
    let said = folder.bad("certificate less.quietly", "Q04", 2);
    assert!(said.contains("do not cost what it says"), "{said}");
    let mut model: serde_json::Value = serde_json::from_str(&folder.read("same.quietly")).unwrap();
    model.as_object_mut().expect("fields").remove("digest");
    let point = &mut model["certificate"]["curve"][3][1];
    *point = (0.9 * point.as_f64().expect("an epsilon")).into();
    folder.write("curve.quietly", model.to_string());
    folder.bad("certificate curve.quietly", "Q04", 2);
}

#[test]
fn what_is_read_is_not_written_over() {
    let folder = folder();
    let before = folder.read("s.toml");
    let fit = "fit kan t.csv --target kind --schema s.toml --epsilon 8 --epochs 2";
    folder.bad(&format!("{fit} --output s.toml"), "C10", 1);
    assert_eq!(folder.read("s.toml"), before);
    folder.bad(&format!("{fit} --public t.csv"), "Q02", 1);
}

#[test]
fn samplers_and_noises_that_do_not_go_together_are_refused_before_rows_are_read() {
    let folder = folder();
    let plan = "plan kan s.toml --target same --features a,b,c --epsilon 2";
    for (flags, words) in [
        ("--sampler fixed-size", "fixed-size needs --neighbours replace-one"),
        ("--noise-correlation lambda=1", "below 1"),
        ("--noise-correlation lambda=0.5 --sampler poisson --neighbours replace-one", "add-remove"),
        ("--noise-correlation tree --sampler balls-and-bins", "each row is in one batch"),
        ("--spline-basis 3", "more than the degree"),
        ("--clipping-norm 0", "--clipping-norm must be"),
        ("--batches-per-epoch 4000", "no more than rows"),
    ] {
        let message = folder.bad(&format!("{plan} {flags}"), "Q02", 1);
        assert!(message.contains(words), "{flags}: {message}");
    }
    let old = folder.bad(&format!("{plan} --hidden 3"), "C05", 2);
    assert!(old.contains("--hidden is called --hidden-layer-sizes now"), "{old}");
}
