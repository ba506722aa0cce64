//! Hashes the sources that decide what is summed over rows, so that the parts of a cluster can tell builds apart. A packaged crate is
//! without its siblings: there the version stands for them.
use std::{fs, io, path::Path};

/// What decides sums: the lattice, draws, tables, rows and their transforms, and the queries of the models.
const SOURCES: [&str; 8] = [
    "src",
    "../quietly-core/src",
    "../quietly-data/src",
    "../quietly-noise/src",
    "../quietly/src",
    "../quietly-glm/src",
    "../quietly-kan/src",
    "../quietly-linear/src",
];

fn main() -> io::Result<()> {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    for folder in SOURCES {
        if Path::new(folder).exists() {
            println!("cargo::rerun-if-changed={folder}");
            add(Path::new(folder), &mut hash)?;
        }
    }
    println!("cargo::rustc-env=QUIETLY_SOURCES={hash:016x}");
    Ok(())
}

/// Adds the names and the bytes of all files, in order: FNV-1a, which every compiler computes alike.
fn add(path: &Path, hash: &mut u64) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut text = name.into_owned().into_bytes();
    if path.is_dir() {
        let mut files = fs::read_dir(path)?.collect::<io::Result<Vec<_>>>()?;
        files.sort_by_key(fs::DirEntry::file_name);
        files.iter().try_for_each(|file| add(&file.path(), hash))?;
    } else {
        text.extend(fs::read(path)?);
    }
    // A checkout may end lines otherwise.
    for byte in text.into_iter().filter(|byte| *byte != b'\r') {
        *hash = (*hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    Ok(())
}
