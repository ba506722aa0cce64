//! Help, explanations and documents: what they show can be pasted.
use std::{
    io::Read,
    path::PathBuf,
    process::{Command, Stdio},
};

mod run;
use run::{Folder, quietly};

const SCHEMES: [&str; 9] = [
    "gaussian",
    "laplace",
    "exponential",
    "poisson",
    "fixed-size",
    "random-allocation",
    "shuffle",
    "tree",
    "correlated",
];

const TABLES: [&str; 16] = [
    "example",
    "init",
    "bounds",
    "check",
    "partition",
    "plan",
    "fit",
    "methods",
    "predict",
    "evaluate",
    "certificate",
    "label",
    "show",
    "budget",
    "compare",
    "diagnose",
];

/// The commands at the head of a help page.
fn example(page: &str) -> Vec<String> {
    let help = quietly(&format!("{page} --help"));
    assert_eq!(help.code, 0, "{}", help.stderr);
    let mut lines = help.stdout.lines();
    assert_eq!(lines.next(), Some("Example:"), "{page}");
    lines.map_while(|l| l.strip_prefix("  ").map(String::from)).collect()
}

#[test]
fn every_help_page_starts_with_an_example_that_works() {
    let mut pages: Vec<String> =
        ["", "account", "calibrate", "explain", "account compare"].map(String::from).into();
    pages.extend(["audit", "audit canary", "audit tracing"].map(String::from));
    pages.extend(TABLES.map(String::from));
    for scheme in SCHEMES {
        pages.extend([format!("account {scheme}"), format!("calibrate {scheme}")]);
    }
    for page in pages {
        let folder = Folder::new();
        let commands = example(&page);
        let last = commands.last().expect("an example");
        assert!(last.starts_with(format!("quietly {page}").trim_end()), "{page}: {last}");
        for command in commands {
            // There is no Parquet here; the tests of the cluster have some.
            if page == "partition" {
                continue;
            }
            let done = folder.console(&command);
            assert_eq!(done.code, 0, "{command}\n{}", done.stderr);
            assert!(!done.stdout.is_empty());
        }
    }
}

/// A verb without a help page of its own would not be run above.
#[test]
fn the_first_page_lists_the_verbs_and_leads_with_fitting() {
    let help = quietly("--help").stdout;
    let verbs = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let verbs: Vec<&str> = verbs.lines().map(|l| l.split_whitespace().next().unwrap()).collect();
    assert_eq!(verbs, [&TABLES[..], &["account", "calibrate", "audit", "explain"]].concat());
    assert!(example("")[1].starts_with("quietly fit linear"));
}

#[test]
fn every_code_has_an_explanation_with_an_example_that_works() {
    let list = quietly("explain").stdout;
    let codes: Vec<&str> = list.lines().take_while(|l| !l.is_empty()).map(|l| &l[..3]).collect();
    assert!(codes.len() >= 38, "{codes:?}");
    let folder = Folder::new();
    for code in codes {
        let page = quietly(&format!("explain {}", code.to_lowercase()));
        assert_eq!(page.code, 0);
        assert!(page.stdout.starts_with(code), "{}", page.stdout);
        let command = page.stdout.lines().last().unwrap().trim();
        // Afresh for each code: no example needs what another one made.
        folder.list().iter().for_each(|name| std::fs::remove_file(folder.path(name)).unwrap());
        folder.good("example");
        let done = folder.console(command);
        assert_eq!(done.code, 0, "{command}\n{}", done.stderr);
    }
}

/// The root of the workspace.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).expect(name)
}

#[test]
fn the_page_of_errors_is_up_to_date() {
    let made = quietly("explain --markdown").stdout;
    assert_eq!(made, read("docs/errors.md"), "run: quietly explain --markdown > docs/errors.md");
}

/// The commands in console blocks, with the exit status that belongs to the code that the page shows.
fn commands(page: &str) -> Vec<(String, i32)> {
    let mut found: Vec<(String, i32)> = vec![];
    let mut inside = false;
    for line in page.lines() {
        match line {
            "```console" => inside = true,
            "```" => inside = false,
            _ if !inside => {}
            _ if line.starts_with("$ quietly ") => found.push((line[2..].to_string(), 0)),
            _ if line.starts_with("error[") => {
                found.last_mut().expect("a command first").1 = exit(&line[6..9]);
            }
            _ => {}
        }
    }
    found
}

/// As docs/errors.md says.
fn exit(code: &str) -> i32 {
    match code {
        "D01" | "D03" => 2,
        "C10" | "C13" | "C15" | "C16" | "Q02" | "Q03" | "Q07" => 1,
        "Q06" => 130,
        _ if code.starts_with(['A', 'D']) => 1,
        _ => 2,
    }
}

/// One folder for each document, empty at first; the commands in their order.
#[test]
fn documents_can_be_pasted() {
    let mut pages = vec![("README.md".to_string(), 5)];
    for entry in std::fs::read_dir(root().join("docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let least = match name.as_str() {
            "accounting.md" => 9,
            "errors.md" => 39,
            _ => 0,
        };
        pages.extend(name.ends_with(".md").then(|| (format!("docs/{name}"), least)));
    }
    assert!(pages.len() >= 3, "{pages:?}");
    for (name, least) in pages {
        let found = commands(&read(&name));
        assert!(found.len() >= least, "{name}: {found:?}");
        let folder = Folder::new();
        for (command, code) in found {
            let done = folder.console(&command);
            assert_eq!(done.code, code, "{name}: {command}\n{}", done.stderr);
        }
    }
}

/// It is not the end of the work, either: a model that was asked for is there.
#[test]
fn a_reader_that_stops_early_is_no_error() {
    let folder = Folder::new();
    folder.good("example");
    let line = "account gaussian --noise-multiplier 2 --steps 10 --delta 1e-5";
    let fit = "fit linear clinic.csv --target days --epsilon 1";
    let predict = "predict days-linear.quietly clinic.csv --output /dev/stdout";
    for arguments in [line, "account --help", "explain", "explain A01", "--version", fit, predict] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_quietly"))
            .args(arguments.split(' '))
            .current_dir(folder.path("."))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!(stderr, "", "{arguments}");
        assert_eq!(child.wait().unwrap().code(), Some(0), "{arguments}");
    }
    assert_eq!(folder.json("certificate days-linear.quietly")["test_only"], false);
}
