//! Bad tables, schemas, models and places: a sentence with a code, nothing left behind, and never a cell in a message.
//!
//! What is wrong with a row is different: it decides nothing, and is not reported.
mod run;
use run::{Folder, SCHEMA, table};

const FIT: &str = "--target y --schema s.toml --epsilon 1 --seed 1 --force --output m.quietly";
/// Planted in cells; stands in no message, model or prediction.
const MARKER: &str = "918273645";

/// Every verb that reads rows, on a table that has its columns but perhaps no sensible row: all succeed.
fn rows_decide_nothing(folder: &Folder, file: &str, lines: usize) {
    let mut said = String::new();
    for method in ["full-batch", "one-pass"] {
        said += &folder.good(&format!("fit linear {file} {FIT} --method {method}"));
        said += &folder.read("m.quietly");
    }
    said += &folder.good(&format!("predict m.quietly {file} --output p.csv"));
    let predictions = folder.read("p.csv");
    assert_eq!(predictions.lines().count(), lines + 1, "{file}");
    for line in predictions.lines().skip(1) {
        assert!(line.parse::<f64>().is_ok_and(f64::is_finite), "{file}: {line}");
    }
    said += &predictions;
    // Scores without epsilon are of the rows themselves, and so is the refusal to score none.
    for form in ["", "--json"] {
        let done = folder.quietly(&format!("evaluate m.quietly {file} {form}"));
        said += &format!("{}{}", done.stdout, done.stderr);
        assert!(done.code == 0 || done.code == 1 && said.contains("C16"), "{file}\n{said}");
    }
    said += &folder.good(&format!("evaluate m.quietly {file} --epsilon 1"));
    said += &folder.json(&format!("bounds {file} a b --epsilon 1")).to_string();
    said += &folder.good(&format!("init {file} --output t.toml"));
    said += &folder.read("t.toml");
    assert!(!said.contains(MARKER) && !said.contains("NaN,"), "{file}\n{said}");
    for name in ["m.quietly", "p.csv", "t.toml"] {
        std::fs::remove_file(folder.path(name)).unwrap();
    }
    assert!(folder.list().iter().all(|n| !n.contains("partial")), "{:?}", folder.list());
}

#[test]
fn no_row_decides_between_success_and_failure() {
    let folder = Folder::with_tables();
    let header = "a,b,c,y,name\n";
    let cells = [
        format!("{MARKER},0.5,u,12,x\n"),
        format!("{MARKER}x,0.5,u,12,x\n"),
        format!("3,0.5,{MARKER},12,{MARKER}\n"),
        format!("3,0.5,u,{MARKER}e300,x\n"),
        "1e308,-1e308,u,1e308,x\n".into(),
        "NaN,inf,v,-inf,x\n".into(),
        "inf,nan,v,NaN,x\n".into(),
        "1e999,-1e-999,u,1e400,x\n".into(),
        ",,,,\n".into(),
        format!("{MARKER}\n"),
        format!("1,2,u,4,x,6,7,{MARKER}\n"),
        format!("1,\"{MARKER},u,4,x\n"),
        "\u{fffd}\0\u{7f},\u{1F984},u,4,x\n".into(),
    ];
    let constant = "3,0.5,u,12,x\n".repeat(500);
    let tables = [
        ("header-only.csv", String::new(), 0),
        ("one-row.csv", "3,0.5,u,12,x\n".to_string(), 1),
        ("constant.csv", constant, 500),
        ("far.csv", "1e308,-1e308,v,1e308,x\n".repeat(300), 300),
        ("broken.csv", "what,is,this,row,?\n".repeat(300), 300),
    ];
    for (name, rows, lines) in tables {
        folder.write(name, format!("{header}{rows}"));
        rows_decide_nothing(&folder, name, lines);
    }
    for (i, cell) in cells.iter().enumerate() {
        let name = format!("cell-{i}.csv");
        // An open quote goes on to the end of the file: such a row stands last.
        folder.write(&name, table(300) + cell);
        rows_decide_nothing(&folder, &name, 301);
    }
}

#[test]
fn a_table_that_does_not_fit_is_refused_before_a_row_is_read() {
    let folder = Folder::with_tables();
    let rows = format!("{MARKER},{MARKER},{MARKER},{MARKER}\n").repeat(20);
    folder.write("wrong.csv", format!("alpha,beta,gamma,delta\n{rows}"));
    folder.write("no-target.csv", format!("a,b,c,z\n{rows}"));
    folder.write("twice.csv", format!("a,b,c,y,y\n{rows}"));
    folder.write("empty.csv", "");
    folder.write("blank.csv", "\n\n\n");
    folder.write("no-header.csv", format!("{MARKER}.5,2.5,-3.5,4.5\n"));
    folder.write("other.csv", format!("b,a,c,y,name\n{rows}"));
    for (files, code, exit) in [
        ("wrong.csv", "D04", 1),
        ("no-target.csv", "D10", 1),
        ("twice.csv", "D05", 1),
        ("empty.csv", "D04", 1),
        ("blank.csv", "D04", 1),
        ("no-header.csv", "D04", 1),
        ("train.csv other.csv", "D06", 1),
        ("train.csv no-header.csv", "D04", 1),
        ("train.csv train.csv", "D19", 1),
        ("missing.csv", "D01", 2),
    ] {
        for verb in [format!("fit linear {files} {FIT}"), format!("fit relu {files} {FIT}")] {
            let message = folder.bad(&verb, code, exit);
            assert!(!message.contains(MARKER), "{message}");
        }
    }
    folder.bad(&format!("fit linear . {}", FIT.replace("s.toml", "none.toml")), "D01", 2);
    let fit = |flags: &str| format!("fit linear train.csv --schema s.toml --epsilon 1 {flags}");
    let message = folder.bad(&fit("--target yy"), "D11", 1);
    assert!(message.contains("did you mean \"y\"?"), "{message}");
    folder.bad(&fit("--target c"), "D12", 1);
    folder.bad(&fit("--target y --features a,zzz"), "D11", 1);
    folder.bad(&fit("--target y --features y"), "D12", 1);
    folder.bad(&fit("--target y --format xml"), "C02", 2);
    folder.bad(&fit("--target y --delimiter ab"), "C02", 2);
    folder.bad("bounds train.csv aa --epsilon 1", "D10", 1);
    folder.bad("bounds --public train.csv aa", "D10", 1);
    folder.bad("bounds --public train.csv c", "Q02", 1);
    folder.bad("bounds train.csv a", "C11", 2);
    folder.bad("bounds train.csv --epsilon 1", "C11", 2);
}

#[test]
fn a_damaged_file_is_named() {
    let folder = Folder::with_tables();
    folder.write("a.csv.gz", [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xff, 0xff, 0xff]);
    folder.write("b.parquet", format!("PAR1{}PAR1", MARKER.repeat(30)));
    folder.write("c.arrow", MARKER.repeat(30));
    // Two stored blocks, of which the second promises more than there is: the header can be read, the end cannot.
    let text = table(6000);
    let mut gz = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    for (last, from, length, kept) in [(0, 0, 60_000, 60_000), (1, 60_000, 60_000_u16, 59_000)] {
        gz.push(last);
        gz.extend([length.to_le_bytes(), (!length).to_le_bytes()].concat());
        gz.extend(&text.as_bytes()[from..from + kept]);
    }
    folder.write("d.csv.gz", &gz);
    for file in ["a.csv.gz", "b.parquet", "c.arrow", "d.csv.gz"] {
        for method in ["full-batch", "one-pass"] {
            let message =
                folder.bad(&format!("fit linear {file} {FIT} --method {method}"), "D03", 2);
            assert!(message.contains(file) && !message.contains(MARKER), "{message}");
        }
    }
    folder.good(&format!("fit linear train.csv {FIT}"));
    for file in ["a.csv.gz", "b.parquet", "d.csv.gz"] {
        folder.bad(&format!("predict m.quietly {file} --output p.csv"), "D03", 2);
        folder.bad(&format!("evaluate m.quietly {file}"), "D03", 2);
        folder.bad(&format!("bounds {file} a --epsilon 1"), "D03", 2);
    }
}

#[test]
fn a_schema_is_refused_with_all_that_is_wrong() {
    let folder = Folder::with_tables();
    let with = |from: &str, to: &str| {
        assert!(SCHEMA.contains(from), "{from}");
        SCHEMA.replace(from, to)
    };
    for (text, code, word) in [
        (with("[0, 10]", "[0, 10"), "D07", "TOML"),
        (with("{ range = [0, 10] }", "\"?\""), "D08", "\"a\""),
        (with("3000", "\"?\""), "D08", "\"rows\""),
        (with("[0, 10]", "[10, 0]"), "D09", "range"),
        (with("[0, 10]", "[0, inf]"), "D09", "range"),
        (with("rows = 3000", "rows = 0"), "D09", "rows"),
        (with("rows = 3000", "rows = -5"), "D09", "rows"),
        (with("rows = 3000\n", ""), "D09", "rows"),
        (with("[\"u\", \"v\"]", "[\"u\", \"u\"]"), "D09", "twice"),
        (with("a = ", "age = "), "D10", "\"age\""),
        ("rows = 3000\n[columns]\ny = { range = [0, 40] }\n".into(), "D15", "features"),
        (String::new(), "D09", "rows"),
    ] {
        folder.write("s.toml", &text);
        let message = folder.bad(&format!("fit linear train.csv {FIT}"), code, 1);
        assert!(message.contains(word), "{text}\n{message}");
        if code != "D10" {
            folder.bad("plan linear s.toml --target y --epsilon 1", code, 1);
        }
    }
}

#[test]
fn ten_thousand_columns_are_no_trouble() {
    let folder = Folder::new();
    let names: Vec<String> = (0..10_000).map(|i| format!("x{i}")).collect();
    let row = "1,".repeat(10_000) + "5\n";
    folder.write("wide.csv", format!("{},y\n{}", names.join(","), row.repeat(20)));
    folder.write(
        "s.toml",
        "rows = 20\n[columns]\ny = { range = [0, 40] }\n\"*\" = { range = [0, 2] }\n",
    );
    let said = folder.good(&format!("fit linear wide.csv {FIT}"));
    assert!(
        said.contains("10000 features") && said.contains("warning: epsilon 1 is too small"),
        "{said}"
    );
    folder.good("predict m.quietly wide.csv --output p.csv");
    folder.good("init wide.csv");
    // A long list of names is cut.
    folder.write("narrow.csv", "x0,y\n1,2\n");
    let message = folder.bad("predict m.quietly narrow.csv --output q.csv", "D10", 1);
    assert!(message.len() < 1000 && message.contains("more"), "{message}");
}
