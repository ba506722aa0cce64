//! Refuses files that seem to hold the same rows: one file twice, a copy, or two formats of a table.
//!
//! A row that is read k times has k times the sensitivity, and no certificate accounts for that.
//! Paths and formats are public, so an error may depend on them. The contents of files are not
//! public, so they are not compared.
use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
};

use crate::{Error, format::Format};

/// Refuses a file that is listed twice, under one name or two.
pub(crate) fn check_files(files: &[PathBuf]) -> Result<(), Error> {
    let mut seen: HashMap<Identity, &PathBuf> = HashMap::new();
    for file in files {
        for identity in identities(file) {
            if let Some(before) = seen.insert(identity, file)
                && !std::ptr::eq(before, file)
            {
                let problem = "these are the same file";
                return Err(Error::RepeatedFiles {
                    files: vec![before.clone(), file.clone()],
                    problem,
                });
            }
        }
    }
    Ok(())
}

#[derive(PartialEq, Eq, Hash)]
enum Identity {
    Path(PathBuf),
    #[cfg(unix)]
    Inode(u64, u64),
}

/// What identifies a file. A file that does not exist has none: opening it is an error.
fn identities(file: &Path) -> Vec<Identity> {
    let mut all: Vec<Identity> = file.canonicalize().ok().map(Identity::Path).into_iter().collect();
    #[cfg(unix)]
    if let Ok(metadata) = std::fs::metadata(file) {
        use std::os::unix::fs::MetadataExt;
        all.push(Identity::Inode(metadata.dev(), metadata.ino()));
    }
    all
}

/// Refuses a folder with more than one format, or with two files of one stem, which may be one table
/// twice. Files that are listed one by one are not checked.
pub(crate) fn check_folder(files: &[PathBuf]) -> Result<(), Error> {
    let refuse = |files: Vec<PathBuf>, problem| Err(Error::RepeatedFiles { files, problem });
    let format = |file: &PathBuf| Format::of_name(file).map(|format| format.to_string());
    let formats: HashSet<Option<String>> = files.iter().map(format).collect();
    if formats.len() > 1 {
        return refuse(
            files.to_vec(),
            "a folder with files of more than one format, which may be one table twice (list the \
             files one by one if it is not)",
        );
    }
    let mut seen: HashMap<String, &PathBuf> = HashMap::new();
    for file in files {
        if let Some(before) = seen.insert(stem(file), file) {
            return refuse(
                vec![before.clone(), file.clone()],
                "one of these looks like a copy of the other (list the files one by one if it is not)",
            );
        }
    }
    Ok(())
}

/// The name of a file without endings and the marks of a copy: `t` for `t.csv.gz`,
/// `t (1).csv`, `t - Copy.csv` and `Copy of t.csv`.
fn stem(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let ending = crate::format::ENDINGS.into_iter().find(|ending| name.ends_with(ending));
    let mut stem = ending.and_then(|ending| name.strip_suffix(ending)).unwrap_or(name);
    loop {
        let before = stem;
        stem = stem.trim().strip_prefix("copy of ").unwrap_or(stem.trim());
        stem = without_count(stem);
        stem = stem.trim_start_matches(['#', '~']);
        for word in
            ["copy", "kopie", "copie", "copia", "(copy)", "(kopie)", "bak", "backup", "old", "orig"]
        {
            let bare = stem.strip_suffix(word);
            let apart = bare.filter(|bare| bare.ends_with([' ', '-', '_', '.']));
            stem = apart.map_or(stem, |bare| bare.trim_end_matches([' ', '-', '_', '.']));
        }
        if stem == before {
            return stem.into();
        }
    }
}

/// Without ` (2)` or, after the word copy, ` 2`.
fn without_count(stem: &str) -> &str {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if let Some((bare, count)) = stem.strip_suffix(')').and_then(|rest| rest.rsplit_once('('))
        && digits(count)
        && !bare.is_empty()
    {
        return bare.trim_end();
    }
    match stem.rsplit_once(' ') {
        Some((bare, count)) if digits(count) && bare.ends_with("copy") => bare,
        _ => stem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_have_one_stem() {
        for name in [
            "t.csv",
            "t.csv.gz",
            "t.parquet",
            "T.CSV",
            "t copy.csv",
            "t copy 2.csv",
            "t (1).csv",
            "t(2).csv",
            "t - Copy.csv",
            "t - Copy (3).csv",
            "t_copy.csv",
            "t - Kopie.csv",
            "Copy of t.csv",
            "t (Kopie).csv",
            "t.bak.csv",
            "t_old.csv",
            "t-backup.csv.gz",
            "#t.csv",
        ] {
            assert_eq!(stem(Path::new(name)), "t", "{name}");
        }
        for name in
            ["t1.csv", "t-2.csv", "t_2.csv", "t 2.csv", "photocopy.csv", "(1).csv", "household.csv"]
        {
            assert_ne!(stem(Path::new(name)), "t", "{name}");
        }
        assert_eq!(stem(Path::new("photocopy.csv")), "photocopy");
    }

    #[test]
    fn a_folder_with_copies_is_refused() {
        let files = |names: &str| names.split(',').map(PathBuf::from).collect::<Vec<_>>();
        for good in ["a.parquet,b.parquet", "p-1.csv,p-2.csv.gz", "t.csv"] {
            assert_eq!(check_folder(&files(good)), Ok(()), "{good}");
        }
        for bad in ["t.csv,u.parquet", "t.csv,t.csv.gz", "t.csv,t.tsv", "t (1).csv,t.csv"] {
            assert_eq!(check_folder(&files(bad)).unwrap_err().code(), "D19", "{bad}");
        }
    }
}
