//! Citations of specifications lead somewhere, and the index of proofs is complete.
//!
//! A citation is `docs/spec/NAME.md`, or with a section `docs/spec/NAME.md` + `#N`, where N is the
//! number of a heading that has an anchor `<a id="N"></a>`. A proof stands at the head of its file
//! under `//! # Proof: title`, and `docs/PROOFS.md` lists title, file and statement.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Where sources and pages are, from the root of the repository.
const PLACES: [&str; 6] = ["crates", "python", "bench", "cluster", "fuzz", "docs"];
const ENDINGS: [&str; 6] = ["rs", "py", "md", "toml", "sh", "cff"];
const FOLDER: &str = "docs/spec/";

/// The sections of every specification, by file name.
type Sections = BTreeMap<String, BTreeSet<String>>;

#[test]
fn citations_lead_to_a_section() {
    let sections = sections();
    let (mut found, mut faults) = (0, Vec::new());
    for (path, text) in sources() {
        let cited = citations(&text, path.parent().is_some_and(|at| at.ends_with("docs/spec")));
        found += cited.len();
        for (line, citation) in cited {
            if let Some(fault) = fault(&citation, &sections) {
                faults.push(format!("{}:{line}: {fault}", path.display()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(found > 40, "only {found} citations were found");
}

#[test]
fn no_citation_is_bare() {
    let names: Vec<String> = sections().into_keys().collect();
    let mut faults = Vec::new();
    for (path, text) in sources() {
        if path.parent().is_some_and(|at| at.ends_with("docs/spec")) {
            continue;
        }
        for (number, line) in (1..).zip(text.lines()) {
            if bare(line, &names) {
                faults.push(format!("{}:{number}: {}", path.display(), line.trim()));
            }
        }
    }
    assert!(faults.is_empty(), "write docs/spec/NAME.md#N:\n{}", faults.join("\n"));
}

/// The control: what the two tests above look for is found where it is.
#[test]
fn wrong_citations_are_found() {
    let sections = sections();
    let faults = |text: &str| {
        citations(text, false).iter().filter(|(_, cited)| fault(cited, &sections).is_some()).count()
    };
    let at = |tail: &str| format!("// See {FOLDER}{tail}, where it is shown.");
    assert_eq!(faults(&at("convex.md#5.1")), 0);
    assert_eq!(faults(&at("convex.md")), 0);
    assert_eq!(faults(&at("convex.md#99.1")), 1);
    assert_eq!(faults(&at("nothing.md#1")), 1);
    assert_eq!(faults(&at("convex.md#5.1 and #99.1")), 1);
    assert_eq!(citations("[here](convex.md#99.1)", true).len(), 1);

    let names: Vec<String> = sections.into_keys().collect();
    for line in ["/// Spec 5.1: steps", "(spec (4.2))", "// convex.md 5.1", "// regression.md G4"] {
        assert!(bare(line, &names), "{line}");
    }
    for line in [at("convex.md#5.1").as_str(), "a spec of a model", "docs/networks.md has more"] {
        assert!(!bare(line, &names), "{line}");
    }
}

#[test]
fn every_proof_is_in_the_index() {
    let (mut stated, mut headings) = (BTreeSet::new(), 0);
    let index = fs::read_to_string(root().join("docs/PROOFS.md")).unwrap();
    let mut group = "";
    for line in index.lines() {
        if let Some(name) = line.strip_prefix("## ") {
            group = name;
        }
        let Some(row) = line.strip_prefix("| [") else { continue };
        let (title, rest) = row.split_once("](../").expect("a link to a file");
        let (path, statement) = rest.split_once(") | ").expect("a statement");
        assert!(statement.len() > 20, "{title} has no statement");
        assert!(path.starts_with(&format!("crates/{group}/")), "{path} is not in {group}");
        assert!(stated.insert((title.to_owned(), path.to_owned())), "{title} stands there twice");
    }
    let mut written = BTreeSet::new();
    for (path, text) in sources() {
        let place = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
        for line in text.lines().filter(|_| place.ends_with(".rs")) {
            if let Some(title) = line.strip_prefix("//! # Proof: ") {
                headings += 1;
                written.insert((title.to_owned(), place.clone()));
            }
        }
    }
    assert!(headings >= 40, "only {headings} proofs were found");
    assert_eq!(headings, written.len(), "a file has two proofs of one title");
    let missing: Vec<_> = written.difference(&stated).collect();
    assert!(missing.is_empty(), "not in docs/PROOFS.md: {missing:#?}");
    let gone: Vec<_> = stated.difference(&written).collect();
    assert!(gone.is_empty(), "in docs/PROOFS.md, but in no file: {gone:#?}");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// All sources and pages but this one, which is full of examples.
fn sources() -> Vec<(PathBuf, String)> {
    let mut folders: Vec<PathBuf> = PLACES.iter().map(|place| root().join(place)).collect();
    let mut files: Vec<PathBuf> = entries(&root());
    while let Some(folder) = folders.pop() {
        for entry in entries(&folder) {
            let name = entry.file_name().unwrap().to_string_lossy().into_owned();
            match entry.is_dir() {
                true if name != "target" && !name.starts_with('.') => folders.push(entry),
                true => {}
                false => files.push(entry),
            }
        }
    }
    let text =
        |path: &PathBuf| ENDINGS.iter().any(|end| path.extension().is_some_and(|e| e == *end));
    let here = Path::new(file!()).file_name();
    files.retain(|path| path.is_file() && text(path) && path.file_name() != here);
    files.sort();
    assert!(files.len() > 300, "only {} files were found", files.len());
    files.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn sections() -> Sections {
    let mut all = Sections::new();
    for path in entries(&root().join(FOLDER)) {
        let text = fs::read_to_string(&path).unwrap();
        let mut sections = BTreeSet::new();
        for piece in text.split("<a id=\"").skip(1) {
            let (id, rest) = piece.split_once("\"></a>").expect("an anchor that ends");
            let shown = rest.trim_start_matches('*');
            assert!(shown.starts_with(&format!("{id} ")), "{id} in {} is misnamed", path.display());
            assert!(sections.insert(id.to_owned()), "{id} is twice in {}", path.display());
        }
        all.insert(path.file_name().unwrap().to_string_lossy().into_owned(), sections);
    }
    all
}

/// The lines and targets, such as `convex.md#5.1`, of all citations. Among themselves
/// specifications cite by links.
fn citations(text: &str, within: bool) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        for mark in [FOLDER, "]("].into_iter().take(1 + usize::from(within)) {
            for tail in line.split(mark).skip(1) {
                let end = tail.find(|c: char| !(c.is_ascii_alphanumeric() || "-.#".contains(c)));
                let target = tail[..end.unwrap_or(tail.len())].trim_end_matches('.');
                let Some((file, _)) = target.split_once(".md") else { continue };
                found.push((number, target.to_owned()));
                // "convex.md#5.1 and #5.2": further sections of the same specification.
                for more in tail.split(" #").skip(1) {
                    let end = more.find(|c: char| !(c.is_ascii_alphanumeric() || c == '.'));
                    let section = more[..end.unwrap_or(more.len())].trim_end_matches('.');
                    if section.starts_with(|c: char| c.is_ascii_digit()) {
                        found.push((number, format!("{file}.md#{section}")));
                    }
                }
            }
        }
    }
    found
}

fn fault(citation: &str, sections: &Sections) -> Option<String> {
    let (file, section) = citation.split_once('#').unwrap_or((citation, ""));
    match sections.get(file) {
        None => Some(format!("there is no {FOLDER}{file}")),
        Some(all) if !section.is_empty() && !all.contains(section) => {
            Some(format!("{file} has no section {section}"))
        }
        Some(_) => None,
    }
}

/// Whether a line cites a section without a link: "Spec 5.1", "spec (4.2)", "convex.md 5.1".
fn bare(line: &str, names: &[String]) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let section = |word: &str| {
        let word = word.trim_start_matches('(');
        word.starts_with(|c: char| c.is_ascii_digit() || c == '*')
            || word.starts_with('G') && word[1..].starts_with(|c: char| c.is_ascii_digit())
            || word == "section"
    };
    words.windows(2).any(|pair| {
        let cited = pair[0].trim_start_matches(['(', '[', '`']).trim_end_matches(['`', ',']);
        (matches!(cited, "Spec" | "spec") || names.iter().any(|name| name == cited))
            && section(pair[1])
    })
}

/// Every link of a page to a file resolves.
#[test]
fn files_that_pages_name_are_there() {
    let (mut named, mut missing) = (0, Vec::new());
    for (path, text) in
        sources().into_iter().filter(|(path, _)| path.extension().is_some_and(|e| e == "md"))
    {
        // A changelog tells of its time.
        if path.ends_with("CHANGELOG.md") {
            continue;
        }
        for word in text.split('`').skip(1).step_by(2) {
            let is_file = word.starts_with("crates/") && word.ends_with(".rs");
            if is_file && !word.contains("NAME") {
                named += 1;
                if !root().join(word).exists() {
                    missing.push(format!("{}: {word}", path.display()));
                }
            }
        }
    }
    assert!(named > 20, "only {named} files are named");
    assert!(missing.is_empty(), "{missing:#?}");
}
