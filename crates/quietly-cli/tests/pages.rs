//! Help, explanations and documents: what they show can be pasted.
use std::{
    io::Read,
    path::PathBuf,
    process::{Command, Stdio},
};

mod run;
use run::{console, quietly};

const SCHEMES: [&str; 9] = [
    "gaussian",
    "laplace",
    "selection",
    "poisson",
    "fixed-size",
    "allocation",
    "shuffle",
    "tree",
    "correlated",
];

/// The command on a help page's second line.
fn example(page: &str) -> String {
    let help = quietly(&format!("{page} --help"));
    assert_eq!(help.code, 0, "{}", help.stderr);
    let mut lines = help.stdout.lines();
    assert_eq!(lines.next(), Some("Example:"), "{page}");
    lines.next().unwrap().trim().to_string()
}

#[test]
fn every_help_page_starts_with_an_example_that_works() {
    let mut pages: Vec<String> =
        ["", "account", "calibrate", "explain", "account compare"].map(String::from).into();
    for scheme in SCHEMES {
        pages.extend([format!("account {scheme}"), format!("calibrate {scheme}")]);
    }
    for page in pages {
        let command = example(&page);
        assert!(command.starts_with(format!("quietly {page}").trim_end()), "{page}: {command}");
        let done = console(&command);
        assert_eq!(done.code, 0, "{command}\n{}", done.stderr);
        assert!(!done.stdout.is_empty());
    }
}

#[test]
fn every_code_has_an_explanation_with_an_example_that_works() {
    let list = quietly("explain").stdout;
    let codes: Vec<&str> = list.lines().take_while(|l| !l.is_empty()).map(|l| &l[..3]).collect();
    assert!(codes.len() >= 12, "{codes:?}");
    for code in codes {
        let page = quietly(&format!("explain {}", code.to_lowercase()));
        assert_eq!(page.code, 0);
        assert!(page.stdout.starts_with(code), "{}", page.stdout);
        let command = page.stdout.lines().last().unwrap().trim();
        assert_eq!(console(command).code, 0, "{command}");
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

/// The commands in console blocks, with the exit code that the page announces: `error[A..]` in the block means 1.
fn commands(page: &str) -> Vec<(String, i32)> {
    let mut found: Vec<(String, i32)> = vec![];
    let mut inside = false;
    for line in page.lines() {
        match line {
            "```console" => inside = true,
            "```" => inside = false,
            _ if !inside => {}
            _ if line.starts_with("$ quietly") => found.push((line[2..].to_string(), 0)),
            _ if line.starts_with("error[A") => found.last_mut().expect("a command first").1 = 1,
            _ if line.starts_with("error[C") => found.last_mut().expect("a command first").1 = 2,
            _ => {}
        }
    }
    found
}

#[test]
fn documents_can_be_pasted() {
    for (name, least) in [("README.md", 5), ("docs/accounting.md", 9), ("docs/errors.md", 12)] {
        let found = commands(&read(name));
        assert!(found.len() >= least, "{name}: {found:?}");
        for (command, code) in found {
            let done = console(&command);
            assert_eq!(done.code, code, "{name}: {command}\n{}", done.stderr);
        }
    }
}

#[test]
fn a_reader_that_stops_early_is_no_error() {
    let line = "account gaussian --noise 2 --steps 10 --delta 1e-5";
    for arguments in [line, "account --help", "explain", "explain A01", "--version"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_quietly"))
            .args(arguments.split(' '))
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
}
