//! Expanded features, and the model that `auto` takes.
use serde_json::json;

mod run;
use run::Folder;

/// `inside` is whether (a, b) lies in a circle: no weighted sum of a and b knows. No randomness.
fn circle() -> Folder {
    let folder = Folder::new();
    let table = |rows: usize, shift: usize| {
        let mut text = String::from("a,b,c,inside,square\n");
        for i in shift..shift + rows {
            let fraction = |m: usize| (i * m % 10007) as f64 / 5003.5 - 1.0;
            let (a, b, c) = (fraction(3571), fraction(6301), ["u", "v", "w"][i % 3]);
            let square = a * a + b * b;
            let inside = if square < 0.6 { "yes" } else { "no" };
            text += &format!("{a:.4},{b:.4},{c},{inside},{square:.4}\n");
        }
        text
    };
    folder.write("t.csv", table(4000, 0));
    folder.write("test.csv", table(1000, 4000));
    folder.write(
        "s.toml",
        "rows = 4000\n[columns]\na = { range = [-1, 1] }\nb = { range = [-1, 1] }\n\
         c = { values = ['u', 'v', 'w'] }\ninside = { values = ['no', 'yes'] }\nsquare = { range = [0, 2] }\n",
    );
    folder
}

const INSIDE: &str = "--schema s.toml --target inside --features a,b,c --epsilon 1";

#[test]
fn expanded_features_are_planned_fitted_saved_and_predicted_with() {
    let folder = circle();
    let said = folder.good(&format!("plan logistic s.toml {} --expand splines=5", &INSIDE[16..]));
    assert!(said.contains("on 4 features (5 splines for each number: 12 in all)"), "{said}");
    assert!(said.contains("next: quietly fit logistic") && said.contains(" --expand splines=5"));
    let plan = folder.json(&format!("plan logistic s.toml {} --expand fourier=20", &INSIDE[16..]));
    assert_eq!((&plan["expansion"]["by"], &plan["width"]), (&json!("fourier"), &json!(20)));

    let accuracy = |flags: &str| {
        folder.good(&format!("fit logistic t.csv {INSIDE} --seed 1 --output m.quietly{flags}"));
        folder.good("predict m.quietly test.csv --output p.csv");
        let found = folder.json("evaluate m.quietly test.csv")["accuracy"].as_f64().unwrap();
        ["m.quietly", "p.csv"]
            .iter()
            .for_each(|name| std::fs::remove_file(folder.path(name)).unwrap());
        found
    };
    let [plain, splines, waves] = ["", " --expand splines", " --expand fourier"].map(accuracy);
    assert!(plain < 0.65 && splines > 0.9 && waves > 0.85, "{plain}, {splines}, {waves}");

    let fit = folder
        .json(&format!("fit logistic t.csv {INSIDE} --seed 1 --output m.quietly --expand splines"));
    assert_eq!(fit["expansion"]["functions"], 6);
    let weights = fit["weights"].as_object().unwrap();
    assert!(weights.len() == 14 && weights.contains_key("b #6") && weights.contains_key("c=v"));

    // The file says what it needs, and a file whose parts do not go together is refused.
    let model = folder.read("m.quietly");
    let read = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut model: serde_json::Value = serde_json::from_str(&model).unwrap();
        change(&mut model);
        model.as_object_mut().unwrap().remove("digest");
        folder.write("changed.quietly", model.to_string());
    };
    read(&|model| assert_eq!(model["version"], 5));
    folder.good("evaluate changed.quietly test.csv");
    read(&|model| model["expansion"]["functions"] = json!(5));
    folder.bad("evaluate changed.quietly test.csv", "Q04", 2);
    read(&|model| model["expansion"]["functions"] = json!(3));
    folder.bad("evaluate changed.quietly test.csv", "Q04", 2);
}

#[test]
fn least_squares_bend_too() {
    let folder = circle();
    let error = |flags: &str| {
        let fit =
            "fit linear t.csv --schema s.toml --target square --features a,b --epsilon 2 --seed 3";
        folder.good(&format!("{fit} --output m.quietly{flags}"));
        let scores = folder.json("evaluate m.quietly test.csv");
        std::fs::remove_file(folder.path("m.quietly")).unwrap();
        scores["r2"].as_f64().unwrap_or_else(|| panic!("{scores}"))
    };
    let (plain, splines) = (error(""), error(" --expand splines"));
    assert!(plain < 0.2 && splines > 0.8, "{plain}, {splines}");
}

#[test]
fn what_cannot_be_expanded_is_refused_before_anything_is_read() {
    let folder = circle();
    let fit = |rest: &str| format!("fit logistic t.csv {INSIDE} {rest}");
    for wrong in ["spline", "splines=x", "fourier="] {
        let said = folder.bad(&fit(&format!("--expand {wrong}")), "Q02", 1);
        assert!(said.contains("splines=P"), "{said}");
    }
    assert!(folder.bad(&fit("--expand splines=3"), "Q02", 1).contains("more than their degree"));
    assert!(folder.bad(&fit("--expand fourier=1"), "Q02", 1).contains("from 2"));
    let kan = format!("fit kan t.csv {INSIDE} --expand splines");
    assert!(
        folder
            .bad(&kan, "Q02", 1)
            .contains("--expand belongs to other models; leave it out for fit kan")
    );
    let one = "fit linear t.csv --schema s.toml --target square --features a,b --epsilon 1 --method one-pass";
    assert!(folder.bad(&format!("{one} --expand splines"), "Q02", 1).contains("full-batch"));
    folder.write("t.svm", "1 1:0.5 2:0.1\n-1 2:0.25\n");
    folder.write(
        "sparse.toml",
        "rows = 100\nfeatures = 2\n[columns]\n\"*\" = { range = [-1, 1] }\nlabel = { values = [-1, 1] }\n",
    );
    let sparse = "fit logistic t.svm --format libsvm --schema sparse.toml --target label --epsilon 1 --expand splines";
    assert!(folder.bad(sparse, "Q02", 1).contains("sparse"));
}

/// Weights of functions of features stand under the names of those functions.
#[test]
fn expanded_weights_have_their_own_names() {
    let folder = circle();
    folder.good(&format!(
        "fit logistic t.csv {INSIDE} --expand splines=5 --output s.quietly --seed 1"
    ));
    let shown = folder.json("show s.quietly");
    let model = quietly::Model::read(&folder.path("s.quietly")).unwrap();
    let (weights, all) = (&shown["outputs"][0]["weights"], &model.affine()[0].weights);
    assert_eq!(weights.as_array().unwrap().len(), all.len());
    assert_eq!(weights[7]["weight"], all[7]);
    assert!(weights[7]["per_unit"].is_null() && weights[7]["feature"].as_str().unwrap().len() > 1);
    let text = folder.good("show s.quietly");
    assert!(text.contains("functions of the features") && !text.contains("per unit"), "{text}");
}

#[test]
fn auto_takes_a_model_by_what_is_public() {
    let folder = circle();
    let chosen = |flags: &str| folder.json(&format!("plan auto s.toml {flags}"))["auto"].clone();
    let features = "--features a,b,c";
    let classes = chosen(&format!("--target inside {features} --epsilon 0.03"));
    assert_eq!(classes["model"], "logistic");
    // 4000 rows, and two of the features are numbers.
    for (epsilon, model, why) in [
        ("3", "additive", "rung "),
        ("0.03", "linear", "(rung 0 of 6): the ranks of"),
        ("inf", "linear", "least squares: without noise"),
        ("1 --expand splines", "linear", "given expand"),
        ("1 --ridge 0.1 --constraint l2", "linear", "given constraint, ridge"),
    ] {
        let number = chosen(&format!("--target square {features} --epsilon {epsilon}"));
        assert_eq!(number["model"], model, "{epsilon}");
        assert!(number["why"].as_str().unwrap().contains(why), "{number}");
    }
    for flags in ["--expand splines", "--delta 0", "--ridge 0.1", "--epsilon inf"] {
        let epsilon = if flags.contains("epsilon") { "" } else { "--epsilon 1" };
        let one = chosen(&format!("--target inside {features} {epsilon} {flags}"));
        assert_eq!(one["model"], "logistic", "{flags}");
    }
    // Flags of a network are refused with a sentence, whatever auto takes.
    let flags = "--target square --features a,b,c --epsilon 1 --epochs 3";
    let said = folder.bad(&format!("plan auto s.toml {flags}"), "Q02", 1);
    assert!(said.contains("--epochs belongs to fit kan"), "{said}");

    // A fit takes what the plan takes, whatever the rows are, and says why.
    let fit = "--schema s.toml --target inside --features a,b,c --epsilon 0.03 --seed 1";
    let said = folder.good(&format!("fit auto t.csv {fit} --output m.quietly"));
    assert!(said.starts_with("auto uses logistic regression: the target has 2 classes"), "{said}");
    let other = folder.json(&format!("fit auto test.csv {fit} --output n.quietly"));
    assert_eq!((&other["auto"], &other["kind"]), (&classes, &json!("logistic")));
}
