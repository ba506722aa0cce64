//! The crates depend on each other as docs/ARCHITECTURE.md says, and in no other way.
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// The crates that docs/ARCHITECTURE.md gives after each arrow.
fn allowed(page: &str, all: &BTreeSet<String>) -> BTreeMap<String, BTreeSet<String>> {
    let mut allowed = BTreeMap::new();
    for line in page.lines() {
        let Some((name, rest)) = line.trim_start().split_once(' ') else { continue };
        let name = if name == "quietly" { "quietly".into() } else { name.to_string() };
        let known = all.contains(&name);
        if !known || !rest.trim_start().starts_with(|c: char| c.is_ascii_digit()) {
            continue;
        }
        let words = rest.split_once("->").map_or("", |(_, after)| after);
        let short = |word: &&str| all.contains(&format!("quietly-{word}")) || *word == "quietly";
        let full = |word: &str| match word {
            "quietly" => word.to_string(),
            _ => format!("quietly-{word}"),
        };
        let named = words.split_whitespace().take_while(short).map(full).collect();
        let uses = if words.contains("all of the above") {
            allowed.keys().cloned().collect()
        } else {
            named
        };
        allowed.insert(name, uses);
    }
    allowed
}

/// What a crate may use: the crates after its arrow, and what those may use.
fn closure(of: &str, allowed: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&String> = allowed[of].iter().collect();
    while let Some(name) = open.pop() {
        if found.insert(name.clone()) {
            open.extend(&allowed[name]);
        }
    }
    found
}

/// The crates of this workspace among the dependencies of a manifest, those for tests left out.
fn used(manifest: &str) -> BTreeSet<String> {
    let mut section = "";
    let mut used = BTreeSet::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line;
        }
        let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
        if section.ends_with("dependencies]")
            && !section.contains("dev-")
            && (name == "quietly" || name.starts_with("quietly-"))
        {
            used.insert(name.to_string());
        }
    }
    used
}

#[test]
fn crates_use_only_what_stands_below_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let manifest = |name: &String| {
        fs::read_to_string(root.join("crates").join(name).join("Cargo.toml")).unwrap()
    };
    let all: BTreeSet<String> = fs::read_dir(root.join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let page = fs::read_to_string(root.join("docs/ARCHITECTURE.md")).unwrap();
    let allowed = allowed(&page, &all);
    assert_eq!(allowed.keys().collect::<Vec<_>>(), all.iter().collect::<Vec<_>>());
    for name in &all {
        let used = used(&manifest(name));
        let below = closure(name, &allowed);
        let above: Vec<_> = used.difference(&below).collect();
        assert!(
            above.is_empty(),
            "{name} uses {above:?}, which docs/ARCHITECTURE.md does not allow"
        );
    }
    // The control: the test sees what is there.
    assert!(used(&manifest(&"quietly-core".into())).contains("quietly-accounting"));
    assert!(!closure("quietly-core", &allowed).contains("quietly-data"));
    assert_eq!(used("[dependencies]\nquietly-data.workspace = true").len(), 1);
    assert_eq!(used("[dev-dependencies]\nquietly-data.workspace = true").len(), 0);
}
