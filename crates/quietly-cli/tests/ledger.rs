//! What is spent on a table is written down before it is read.
use serde_json::Value;

mod run;
use run::{Folder, SCHEMA, table};

#[test]
fn a_ledger_is_begun_charged_and_refuses() {
    let folder = Folder::new();
    folder.write("t.csv", table(300));
    folder.write("s.toml", SCHEMA);
    let none = folder.quietly("budget t.ledger");
    assert_eq!(none.code, 2, "{}", none.stderr);
    assert!(
        none.stderr.contains("this ledger does not exist; pass --limit to create it"),
        "{}",
        none.stderr
    );
    let begun = folder.quietly("budget t.ledger --limit 1.5 --delta 1e-4");
    assert_eq!(begun.code, 0, "{}", begun.stderr);
    let fit = "fit linear t.csv --schema s.toml --target y --epsilon 1 --delta 1e-5 --ledger t.ledger --output y.quietly";
    let done = folder.quietly(fit);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stdout.contains("ledger: spent epsilon 1, delta 1e-5"), "{}", done.stdout);
    let (model, ledger) = (folder.read("y.quietly"), folder.read("t.ledger"));
    // What cannot be paid for is not read: there need not even be a table that can be.
    folder.write("t.csv", "a,b,c,y,name\n\"");
    let refused = folder.quietly(&fit.replace("y.quietly", "z.quietly"));
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("error[Q07]"), "{}", refused.stderr);
    assert!(refused.stderr.contains("the ledger has epsilon 0.5"), "{}", refused.stderr);
    assert_eq!((folder.read("y.quietly"), folder.read("t.ledger")), (model, ledger.clone()));
    let shown: Value =
        serde_json::from_str(&folder.quietly("budget t.ledger --json").stdout).unwrap();
    assert_eq!(shown["entries"].as_array().unwrap().len(), 1);
    assert_eq!(shown["entries"][0]["what"], "linear regression of y");
    assert_eq!(shown["limit"]["epsilon"], 1.5);
    // A limit stands, and no output takes the ledger's place.
    assert_eq!(folder.quietly("budget t.ledger --limit 9 --delta 1e-4").code, 1);
    let over = "fit linear t.csv --schema s.toml --target y --epsilon .1 --ledger t.ledger --output t.ledger";
    assert_eq!(folder.quietly(over).code, 1);
    assert_eq!(folder.read("t.ledger"), ledger);
}
