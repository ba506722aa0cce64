//! `quietly label`: the page for people who did not make the model.
use serde_json::Value;

mod run;
use run::{Folder, SCHEMA, table};

const FIT: &str =
    "train.csv --target y --schema s.toml --epsilon 1 --delta 1e-5 --output y.quietly";

#[test]
fn the_page_says_what_the_certificate_says() {
    let folder = Folder::with_tables();
    folder.good(&format!("fit linear {FIT}"));
    let said = folder.good("label y.quietly --output label.html");
    assert!(said.starts_with("label.html: one self-contained HTML page"), "{said}");
    let (page, value) = (folder.read("label.html"), folder.json("certificate y.quietly"));
    let epsilon = (value["epsilon"].as_f64().unwrap() * 1e4).ceil() / 1e4;
    for part in [
        "linear regression of <bdi>y</bdi> on 3 features",
        &format!("<b>{epsilon}</b> of a budget of 1"),
        "whether one row is in the table (add-remove)",
        "one row (called <bdi>person</bdi>); if a person has several rows, they are NOT protected at this epsilon",
        "<svg",
        "operating system",
    ] {
        assert!(page.contains(part), "{part}:\n{page}");
    }
    assert!(!page.contains("TEST ONLY"));
    // Both streams carry the same certificate.
    let json: Value = folder.json("label y.quietly --output again.html");
    assert_eq!((&json["output"], &json["certificate"]), (&"again.html".into(), &value));
    assert_eq!(folder.read("again.html"), page);
}

#[test]
fn names_of_columns_cannot_write_the_page() {
    let folder = Folder::new();
    folder.write("train.csv", table(3000).replacen(",y,", ",<script>,", 1));
    let schema = SCHEMA.replace("y = {", "\"<script>\" = {").replace("person", "<i>soul</i>");
    folder.write("s.toml", schema);
    folder.good(&format!("fit linear {}", FIT.replace("--target y", "--target <script>")));
    folder.good("label y.quietly --output label.html");
    let page = folder.read("label.html");
    assert!(page.contains("linear regression of <bdi>&lt;script&gt;</bdi> on"), "{page}");
    assert!(
        page.contains("<title>Privacy label: linear regression of &lt;script&gt; on"),
        "{page}"
    );
    assert!(!page.contains("<script") && !page.contains("<i>"), "{page}");
}

#[test]
fn a_seed_is_shouted_and_a_changed_certificate_has_no_label() {
    let folder = Folder::with_tables();
    folder.good(&format!("fit linear {FIT} --seed 3"));
    folder.good("label y.quietly --output label.html");
    assert!(folder.read("label.html").contains("TEST ONLY"));
    let mut model: Value = serde_json::from_str(&folder.read("y.quietly")).unwrap();
    model["certificate"]["epsilon"] = 0.01.into();
    folder.write("less.quietly", model.to_string());
    let before = folder.list();
    folder.bad("label less.quietly --output less.html", "Q04", 2);
    folder.bad("label missing.quietly --output less.html", "Q05", 2);
    folder.bad("label y.quietly --output nowhere/label.html", "C09", 2);
    folder.bad("label y.quietly --output .", "C09", 2);
    assert_eq!(folder.list(), before, "no refusal leaves anything behind");
    // The model is not written over by its own label.
    let model = folder.read("y.quietly");
    assert_ne!(folder.quietly("label y.quietly --output y.quietly").code, 0);
    assert_eq!(folder.read("y.quietly"), model);
}
