//! `quietly compare`, as a user would run it.
mod run;
use run::{Folder, well_formed};

const COMPARE: &str = "compare train.csv --target y --schema s.toml --methods full-batch,one-pass --epsilons 0.5,2 \
                       --seeds 2 --seed 1";

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
